//! Checks of BOWS, DDOS and lock queues.

use crate::chip::check::{Checked, Chip};
use crate::chip::spinning::QueueMode;
use crate::chip::timing::Coherence;

/// Entries of a warp's history: far more than the comparisons of any spin loop.
const LONGEST_HISTORY: u32 = 64;

/// In cycles: longer than any kernel runs, and adding it to a cycle cannot overflow.
const LONGEST_DELAY: u64 = 1 << 32;

impl Chip {
    pub(super) fn check_spinning(&self) -> Checked {
        self.check_bows()?;
        self.check_ddos()?;
        self.check_lock_queue()
    }

    fn check_lock_queue(&self) -> Checked {
        let (queue, cache) = (&self.lock_queue, &self.l2.cache);
        self.require(
            queue.mode == QueueMode::Off || self.l1.coherence == Coherence::None,
            "lock_queue.mode",
            format!("{:?}", queue.mode).to_lowercase(),
            "queues are at the slices of the L2, and atomics happen in the L1s (l1.coherence)",
        )?;
        self.not_too_large("lock_queue.sets", queue.sets)?;
        let rule =
            format_args!("a set of the L2 has {} lines that can be locked (l2.cache.ways)", cache.ways);
        self.require(queue.ways <= cache.ways, "lock_queue.ways", queue.ways, rule)
    }

    fn check_bows(&self) -> Checked {
        let bows = &self.issue.bows;
        self.positive("issue.bows.window_cycles", bows.window_cycles)?;
        self.positive("issue.bows.step_cycles", bows.step_cycles)?;
        for (key, cycles) in [
            ("issue.bows.limit_cycles", bows.limit_cycles),
            ("issue.bows.step_cycles", bows.step_cycles),
            ("issue.bows.max_limit_cycles", bows.max_limit_cycles),
        ] {
            let rule = format_args!("it can be at most {LONGEST_DELAY}");
            self.require(cycles <= LONGEST_DELAY, key, cycles, rule)?;
        }
        self.require(
            bows.min_limit_cycles <= bows.max_limit_cycles,
            "issue.bows.max_limit_cycles",
            bows.max_limit_cycles,
            format_args!(
                "it must be at least issue.bows.min_limit_cycles, which is {}",
                bows.min_limit_cycles
            ),
        )?;
        for (key, share) in [("issue.bows.frac1", bows.frac1), ("issue.bows.frac2", bows.frac2)] {
            self.require((0.0..=1.0).contains(&share), key, share, "it is a share, from 0 to 1")?;
        }
        Ok(())
    }

    fn check_ddos(&self) -> Checked {
        let ddos = &self.issue.ddos;
        for (key, bits) in
            [("issue.ddos.path_bits", ddos.path_bits), ("issue.ddos.value_bits", ddos.value_bits)]
        {
            self.require((1..=32).contains(&bits), key, bits, "a hash of 32 bits has 1 to 32")?;
        }
        self.require(
            (1..=LONGEST_HISTORY).contains(&ddos.history),
            "issue.ddos.history",
            ddos.history,
            format_args!("a history has 1 to {LONGEST_HISTORY} entries"),
        )?;
        self.count("issue.ddos.threshold", ddos.threshold)?;
        self.count("issue.ddos.table_entries", ddos.table_entries)?;
        self.positive("issue.ddos.epoch_cycles", ddos.epoch_cycles)
    }
}
