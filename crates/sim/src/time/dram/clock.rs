//! Core cycles and DRAM command clocks, converted exactly: cycle `c` begins at time `c / core`, clock `k` at
//! `k / dram`.

use crate::chip::timing::ClockSpec;
use crate::kit::cycle::Cycle;

/// Sentinel: no clock. Small enough to be multiplied by a frequency ratio or shifted.
pub(crate) const NO_CLOCK: u64 = u64::MAX >> 10;

/// The two frequencies, in lowest terms.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clocks {
    core: u64,
    dram: u64,
}

/// The beginning of a cycle, in units that clocks can be compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct End(u64);

impl Clocks {
    pub(crate) fn new(clock: &ClockSpec) -> Clocks {
        let (core, dram) = (clock.core_mhz as u64, clock.dram_mhz as u64);
        let (mut divisor, mut rest) = (core, dram);
        while rest > 0 {
            (divisor, rest) = (rest, divisor % rest);
        }
        Clocks { core: core / divisor, dram: dram / divisor }
    }

    /// The first clock that begins in the cycle or later.
    pub(crate) fn first_clock(self, cycle: Cycle) -> u64 {
        (cycle.0 * self.dram).div_ceil(self.core)
    }

    /// The cycle in which the clock begins.
    pub(crate) fn cycle_of(self, clock: u64) -> Cycle {
        Cycle(clock * self.core / self.dram)
    }

    /// The first cycle that begins with the clock or later.
    pub(crate) fn cycle_after(self, clock: u64) -> Cycle {
        Cycle((clock * self.core).div_ceil(self.dram))
    }

    pub(crate) fn end(self, until: Cycle) -> End {
        End(until.0.saturating_mul(self.dram).min(NO_CLOCK))
    }

    pub(crate) fn is_before(self, clock: u64, end: End) -> bool {
        clock.saturating_mul(self.core) < end.0
    }
}
