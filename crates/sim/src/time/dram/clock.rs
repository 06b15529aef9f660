//! Core cycles and command clocks, converted exactly: cycle `c` and clock `k` begin at `c / core` and `k / dram`.

use crate::chip::timing::ClockSpec;

/// A clock that never comes.
pub(crate) const NEVER: u64 = u64::MAX >> 10;

/// The ratio of the two frequencies in lowest terms.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clocks {
    core: u64,
    dram: u64,
}

/// A time before which commands are given, ready to be compared with clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct End(u64);

impl Clocks {
    pub fn new(clock: &ClockSpec) -> Clocks {
        let (core, dram) = (clock.core_mhz as u64, clock.dram_mhz as u64);
        let (mut divisor, mut rest) = (core, dram);
        while rest > 0 {
            (divisor, rest) = (rest, divisor % rest);
        }
        Clocks { core: core / divisor, dram: dram / divisor }
    }

    /// The first clock that begins in the cycle or later.
    pub fn first_clock(self, cycle: u64) -> u64 {
        (cycle * self.dram).div_ceil(self.core)
    }

    /// The cycle in which the clock begins.
    pub fn cycle_of(self, clock: u64) -> u64 {
        clock * self.core / self.dram
    }

    /// The first cycle that begins with the clock or later.
    pub fn cycle_after(self, clock: u64) -> u64 {
        (clock * self.core).div_ceil(self.dram)
    }

    /// The beginning of a cycle.
    pub fn end(self, until: u64) -> End {
        End(until.saturating_mul(self.dram).min(NEVER))
    }

    /// Whether the clock begins before that.
    pub fn is_before(self, clock: u64, end: End) -> bool {
        clock.saturating_mul(self.core) < end.0
    }
}
