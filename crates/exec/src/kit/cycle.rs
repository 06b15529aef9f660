//! Cycles of the core clock.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};

/// A cycle of the core clock. Differences are numbers of cycles.
///
/// DRAM, the interconnect and the aggregator have clocks of their own; their counts are not of this type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cycle(pub u64);

impl Cycle {
    /// Sentinel: no event is scheduled.
    pub const NEVER: Cycle = Cycle(u64::MAX);

    /// The cycles since `earlier`; 0 if that is not earlier.
    #[inline(always)]
    pub fn saturating_sub(self, earlier: Cycle) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

impl fmt::Display for Cycle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Add<u64> for Cycle {
    type Output = Cycle;

    #[inline(always)]
    fn add(self, cycles: u64) -> Cycle {
        Cycle(self.0 + cycles)
    }
}

impl AddAssign<u64> for Cycle {
    #[inline(always)]
    fn add_assign(&mut self, cycles: u64) {
        self.0 += cycles;
    }
}

impl Sub for Cycle {
    type Output = u64;

    #[inline(always)]
    fn sub(self, earlier: Cycle) -> u64 {
        self.0 - earlier.0
    }
}

impl Sub<u64> for Cycle {
    type Output = Cycle;

    #[inline(always)]
    fn sub(self, cycles: u64) -> Cycle {
        Cycle(self.0 - cycles)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_numbers() {
        let mut cycle = Cycle(7);
        cycle += 3;
        assert_eq!((cycle, cycle + 1, cycle - 1), (Cycle(10), Cycle(11), Cycle(9)));
        assert_eq!(cycle - Cycle(4), 6);
        assert_eq!((cycle.saturating_sub(Cycle(4)), cycle.saturating_sub(Cycle(11))), (6, 0));
        assert!(cycle < Cycle::NEVER && Cycle::default() < cycle);
    }
}
