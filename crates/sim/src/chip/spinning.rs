//! The part of a chip's configuration that is about warps that spin: BOWS and DDOS (ElTantawy and Aamodt, HPCA 2018).

use serde::{Deserialize, Serialize};

use crate::chip::Chip;

/// Who says which branches are spin-inducing: the backward branches of loops that wait.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum SibSource {
    /// The hardware finds them as they spin.
    Ddos,
    /// The kernel's text (`.pragma "warploom.sib"`).
    Annotated,
    /// The analysis of loops that `warploom check` shows.
    Static,
}

impl SibSource {
    /// All, with the names they have in chip files and on the command line.
    pub const ALL: [(SibSource, &'static str); 3] =
        [(SibSource::Ddos, "ddos"), (SibSource::Annotated, "annotated"), (SibSource::Static, "static")];

    /// Its name.
    pub fn name(self) -> &'static str {
        SibSource::ALL.iter().find(|(source, _)| *source == self).map_or("", |&(_, name)| name)
    }
}

/// In which order warps leave the backed-off queue.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum BackedOffOrder {
    /// As they came.
    Queue,
    /// As the policy underneath chooses.
    Policy,
}

/// How long a warp has to wait at least between two turns of a spin loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DelayLimit {
    /// So many cycles.
    Fixed(u64),
    /// What the SM finds best.
    Adaptive,
}

/// Back-off of spinning warps.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct BowsSpec {
    /// Whether it is on.
    pub enabled: bool,
    /// Who names the spin-inducing branches.
    pub sib: SibSource,
    /// Whether the delay limit follows the kernel; else it is `limit_cycles`.
    pub adaptive: bool,
    /// The delay limit, unless it is adaptive.
    pub limit_cycles: u64,
    /// The adaptive limit is looked at after every so many cycles.
    pub window_cycles: u64,
    /// And moves by this.
    pub step_cycles: u64,
    /// It is never below.
    pub min_limit_cycles: u64,
    /// It is never above.
    pub max_limit_cycles: u64,
    /// It rises while more than this share of the instructions are spin-inducing branches.
    pub frac1: f64,
    /// It falls when instructions for each such branch become fewer than this share of what they were.
    pub frac2: f64,
    /// The order of warps that are backed off.
    pub order: BackedOffOrder,
    /// A warp is backed off also by a spin-inducing branch that none of its lanes takes.
    pub untaken: bool,
}

impl BowsSpec {
    /// The delay limit that the keys say.
    pub fn limit(&self) -> DelayLimit {
        if self.adaptive { DelayLimit::Adaptive } else { DelayLimit::Fixed(self.limit_cycles) }
    }

    /// Sets the delay limit.
    pub fn set_limit(&mut self, limit: DelayLimit) {
        match limit {
            DelayLimit::Adaptive => self.adaptive = true,
            DelayLimit::Fixed(cycles) => (self.adaptive, self.limit_cycles) = (false, cycles),
        }
    }

    /// The longest delay that can be.
    pub fn longest_cycles(&self) -> u64 {
        if self.adaptive { self.max_limit_cycles } else { self.limit_cycles }
    }
}

/// Whether spinning warps back off, and how; what is not given is the chip's (`issue.bows`).
#[derive(Clone, Debug, Default)]
pub struct Bows {
    /// On or off.
    pub enabled: Option<bool>,
    /// The delay limit.
    pub limit: Option<DelayLimit>,
    /// Who names the spin-inducing branches.
    pub sib: Option<SibSource>,
}

impl Bows {
    /// All on, as the chip has it.
    pub fn on() -> Bows {
        Bows { enabled: Some(true), ..Bows::default() }
    }

    /// What is in force on a chip: none if it is off.
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

/// Which locks in global memory have queues, in which threads wait instead of spinning.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum QueueMode {
    /// None.
    #[default]
    Off,
    /// Each word has its own, and there are as many as are needed.
    Ideal,
    /// Each line has one, for all its words, while a way of its set can be locked for it (as in HQL).
    Hql,
}

/// Queues of locks at the L2.
#[derive(Clone, Debug, Default, Deserialize, Serialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct LockQueueSpec {
    /// Which locks have one.
    pub mode: QueueMode,
    /// Sets of a slice, for `hql`; 0 is as many as its cache has.
    #[serde(default)]
    pub sets: u32,
    /// Lines of a set that can be locked at a time, for `hql`; 0 is all.
    #[serde(default)]
    pub ways: u32,
}

/// How a path or a value becomes a few bits.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Hash {
    /// All pieces of that width over one another.
    Xor,
    /// The lowest bits.
    Modulo,
}

impl Hash {
    /// The hash of all 32 bits in `bits` bits, of which there are 1 to 32.
    pub fn of(self, value: u32, bits: u32) -> u32 {
        let mask = u32::MAX >> (32 - bits);
        match self {
            Hash::Modulo => value & mask,
            Hash::Xor => (0..32).step_by(bits as usize).fold(0, |hash, at| hash ^ value >> at & mask),
        }
    }
}

/// Detection of spinning warps.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct DdosSpec {
    /// The hash of paths and values.
    pub hash: Hash,
    /// Bits of a hashed path (m).
    pub path_bits: u32,
    /// Bits of a hashed value (k).
    pub value_bits: u32,
    /// Comparisons that a warp's history registers hold (l).
    pub history: u32,
    /// Confidence from which on a branch is taken to be spin-inducing (t).
    pub threshold: u32,
    /// Branches that the prediction table of an SM holds.
    pub table_entries: u32,
    /// A branch that was found spin-inducing stays so.
    pub keep_confirmed: bool,
    /// The warps of an SM take turns with one set of history registers.
    pub time_sharing: bool,
    /// Cycles of a turn.
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
