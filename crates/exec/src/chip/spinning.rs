//! The sections of a chip file about spinning warps: BOWS and DDOS (ElTantawy and Aamodt, HPCA 2018), and lock queues.

use serde::{Deserialize, Serialize};

use crate::chip::Chip;

/// How spin-inducing branches (SIBs) are known: the backward branches of loops that wait.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum SibSource {
    /// The hardware detects them at run time (DDOS).
    Ddos,
    /// The kernel's text marks them (`.pragma "warploom.sib"`).
    Annotated,
    /// The static loop analysis that `warploom check` shows.
    Static,
}

impl SibSource {
    /// All sources, with their names in chip files and on the command line.
    pub const ALL: [(SibSource, &'static str); 3] =
        [(SibSource::Ddos, "ddos"), (SibSource::Annotated, "annotated"), (SibSource::Static, "static")];
}

/// The order in which warps leave the backed-off queue.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum BackedOffOrder {
    /// First in, first out.
    Queue,
    /// The order of the underlying policy.
    Policy,
}

/// The least time between two iterations of a spin loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DelayLimit {
    /// In cycles.
    Fixed(u64),
    /// Each SM adapts it to the kernel, within the bounds of `issue.bows`.
    Adaptive,
}

/// BOWS: back-off of spinning warps.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct BowsSpec {
    pub enabled: bool,
    pub sib: SibSource,
    /// Whether the delay limit is adaptive; otherwise it is `limit_cycles`.
    pub adaptive: bool,
    /// The fixed delay limit.
    pub limit_cycles: u64,
    /// The adaptive limit is adjusted once per window.
    pub window_cycles: u64,
    /// The adaptive limit is raised by one step or lowered by two.
    pub step_cycles: u64,
    pub min_limit_cycles: u64,
    pub max_limit_cycles: u64,
    /// The limit is raised while more than this share of the instructions are spin-inducing branches.
    pub frac1: f64,
    /// The limit is lowered when the instructions per spin-inducing branch drop below this share of the last window's.
    pub frac2: f64,
    pub order: BackedOffOrder,
    /// A spin-inducing branch backs its warp off even if no lane takes it.
    pub untaken: bool,
}

impl BowsSpec {
    fn set_limit(&mut self, limit: DelayLimit) {
        match limit {
            DelayLimit::Adaptive => self.adaptive = true,
            DelayLimit::Fixed(cycles) => (self.adaptive, self.limit_cycles) = (false, cycles),
        }
    }

    /// The longest possible delay.
    pub fn longest_cycles(&self) -> u64 {
        if self.adaptive { self.max_limit_cycles } else { self.limit_cycles }
    }
}

/// A launch's own settings of BOWS; what is `None` is as in the chip's `issue.bows`.
#[derive(Clone, Debug, Default)]
pub struct Bows {
    pub enabled: Option<bool>,
    pub limit: Option<DelayLimit>,
    pub sib: Option<SibSource>,
}

impl Bows {
    /// On, with the chip's settings.
    pub fn on() -> Bows {
        Bows { enabled: Some(true), ..Bows::default() }
    }

    /// The settings in force on `chip`; `None` if BOWS is off.
    pub fn on_chip(&self, chip: &Chip) -> Option<BowsSpec> {
        let mut spec = chip.issue.bows.clone();
        spec.enabled = self.enabled.unwrap_or(spec.enabled);
        spec.sib = self.sib.unwrap_or(spec.sib);
        if let Some(limit) = self.limit {
            spec.set_limit(limit);
        }
        spec.enabled.then_some(spec)
    }
}

/// Which locks in global memory have a queue in which threads wait instead of spinning.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum QueueMode {
    #[default]
    Off,
    /// Every word has its own queue, without limit.
    Ideal,
    /// As in HQL: a line has one queue for all its words, while one of the ways of its set can be locked for it.
    Hql,
}

/// Lock queues at the L2.
#[derive(Clone, Debug, Default, Deserialize, Serialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct LockQueueSpec {
    pub mode: QueueMode,
    /// For `hql`: sets per slice; 0: as many as its cache has.
    #[serde(default)]
    pub sets: u32,
    /// For `hql`: lines of a set that can be locked at the same time; 0: all.
    #[serde(default)]
    pub ways: u32,
}

/// How DDOS hashes a path or a value.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Hash {
    /// All pieces of the hash's width, XORed.
    Xor,
    /// The lowest bits.
    Modulo,
}

impl Hash {
    /// Hashes `value` to `bits` bits, 1 to 32.
    pub fn of(self, value: u32, bits: u32) -> u32 {
        let mask = u32::MAX >> (32 - bits);
        match self {
            Hash::Modulo => value & mask,
            Hash::Xor => (0..32).step_by(bits as usize).fold(0, |hash, at| hash ^ value >> at & mask),
        }
    }
}

/// DDOS: detection of spinning warps. The letters are the paper's.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct DdosSpec {
    pub hash: Hash,
    /// Bits of a hashed path (m).
    pub path_bits: u32,
    /// Bits of a hashed value (k).
    pub value_bits: u32,
    /// Entries of a warp's history registers (l).
    pub history: u32,
    /// A branch with at least this confidence counts as spin-inducing (t).
    pub threshold: u32,
    /// Entries of an SM's prediction table.
    pub table_entries: u32,
    /// A branch that was confirmed as spin-inducing stays confirmed.
    pub keep_confirmed: bool,
    /// The warps of an SM share one set of history registers, one warp per epoch.
    pub time_sharing: bool,
    /// Length of such an epoch.
    pub epoch_cycles: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_by_hand() {
        assert_eq!(Hash::Modulo.of(0x1234_56f7, 4), 0x7);
        assert_eq!(Hash::Modulo.of(0x1234_56f7, 32), 0x1234_56f7);
        assert_eq!(Hash::Xor.of(0x1234_56f7, 8), 0x12 ^ 0x34 ^ 0x56 ^ 0xf7);
        assert_eq!(Hash::Xor.of(0x1234_56f7, 4), [1, 2, 3, 4, 5, 6, 15, 7].iter().fold(0, |x, y| x ^ y));
        // Pieces of three bits; the last one has two.
        assert_eq!(Hash::Xor.of(0x8000_0000, 3), 0b10);
        assert_eq!(Hash::Xor.of(0xdead_beef, 32), 0xdead_beef);
    }

    #[test]
    fn every_bit_counts_in_a_folded_hash_and_only_the_low_ones_in_the_other() {
        for bits in 1..=32 {
            for at in 0..32 {
                let changes = |hash: Hash| hash.of(0x5a5a_1234, bits) != hash.of(0x5a5a_1234 ^ 1 << at, bits);
                assert!(changes(Hash::Xor), "bit {at} in {bits} bits");
                assert_eq!(changes(Hash::Modulo), at < bits, "bit {at} in {bits} bits");
            }
        }
    }
}
