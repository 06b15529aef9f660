//! Durations of many events: how many, how long all together, and the longest.

use serde::{Deserialize, Serialize};

/// Durations in cycles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span {
    pub count: u64,
    /// All together.
    pub cycles: u64,
    pub longest_cycles: u64,
}

impl Span {
    #[inline]
    pub(super) fn add(&mut self, cycles: u64) {
        self.count += 1;
        self.cycles += cycles;
        self.longest_cycles = self.longest_cycles.max(cycles);
    }

    pub(super) fn merge(&mut self, other: &Span) {
        self.count += other.count;
        self.cycles += other.cycles;
        self.longest_cycles = self.longest_cycles.max(other.longest_cycles);
    }

    /// The average, rounded down; 0 of none.
    pub fn mean(&self) -> u64 {
        self.cycles.checked_div(self.count).unwrap_or(0)
    }
}
