//! What BOWS and DDOS cost an SM in storage (the paper's Table III), from the chip's settings.

use serde::Serialize;

use crate::chip::Chip;

/// Bits of a program counter in the prediction table.
const PC_BITS: u64 = 32;

/// States of a warp's detector: no history, searching, matching, spinning.
const STATES: u64 = 4;

/// Bits of storage per SM.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct StorageBits {
    /// The prediction table: a branch and its confidence in each entry.
    pub sib_table: u64,
    /// Path and value histories: of every warp, or of one at a time if they share the registers.
    pub history: u64,
    /// The state of each warp's detector.
    pub states: u64,
    /// The pending-delay registers.
    pub delay_counters: u64,
    /// The backed-off queues of the schedulers.
    pub queue: u64,
}

impl StorageBits {
    pub fn of(chip: &Chip) -> StorageBits {
        let (bows, ddos) = (&chip.issue.bows, &chip.issue.ddos);
        let warps = u64::from(chip.sm.max_warps);
        let sample = u64::from(ddos.path_bits) + 2 * u64::from(ddos.value_bits);
        let histories = if ddos.time_sharing { 1 } else { warps };
        let of_scheduler = warps.div_ceil(u64::from(chip.issue.schedulers));
        StorageBits {
            sib_table: u64::from(ddos.table_entries) * (PC_BITS + bits(u64::from(ddos.threshold))),
            history: histories * u64::from(ddos.history) * sample,
            states: warps * bits(STATES - 1),
            delay_counters: warps * bits(bows.longest_cycles()),
            queue: warps * bits(of_scheduler.saturating_sub(1)),
        }
    }

    /// Name and bits of each part.
    pub fn named(&self) -> [(&'static str, u64); 5] {
        [
            ("SIB prediction table", self.sib_table),
            ("history registers", self.history),
            ("detector states", self.states),
            ("pending-delay counters", self.delay_counters),
            ("backed-off queue", self.queue),
        ]
    }
}

/// Bits that hold every number up to `most`.
fn bits(most: u64) -> u64 {
    u64::from(u64::BITS - most.leading_zeros())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cost(chip: &str, set: &[&str]) -> StorageBits {
        let set: Vec<_> = set.iter().map(|s| s.to_string()).collect();
        StorageBits::of(&Chip::load(chip, &set).unwrap())
    }

    #[test]
    fn table_3() {
        let cost = cost("gtx480", &[]);
        assert_eq!((cost.sib_table, cost.history), (560, 9216));
        assert_eq!((cost.delay_counters, cost.queue), (672, 240));
        // 48 machines of four states.
        assert_eq!(cost.states, 96);
    }

    #[test]
    fn settings_count() {
        assert_eq!(cost("gtx480", &["issue.ddos.time_sharing=true"]).history, 192);
        assert_eq!(cost("gtx480", &["issue.ddos.threshold=12"]).sib_table, 16 * 36);
        assert_eq!(cost("gtx480", &["issue.ddos.path_bits=4", "issue.ddos.value_bits=4"]).history, 48 * 96);
        assert_eq!(cost("gtx480", &["issue.bows.adaptive=false"]).delay_counters, 48 * 10);
        // 64 warps, 16 per scheduler.
        assert_eq!(cost("gtx1080ti", &[]).queue, 64 * 4);
    }
}
