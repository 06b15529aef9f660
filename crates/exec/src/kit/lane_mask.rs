//! Lanes of a warp as a bit mask.

use std::ops::{BitAnd, BitAndAssign, BitOr, BitOrAssign, BitXor, Not};

use crate::kit::bits::{Lanes, lanes};

/// Lanes of a warp, bit 0 the first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct LaneMask(pub u64);

impl LaneMask {
    /// The most lanes that a warp has.
    pub const LANES: usize = 64;
    pub const NONE: LaneMask = LaneMask(0);

    #[inline(always)]
    pub fn of(lane: usize) -> LaneMask {
        LaneMask(1 << lane)
    }

    /// The lanes below `count`, which is at most 64.
    #[inline(always)]
    pub fn first_lanes(count: u32) -> LaneMask {
        LaneMask(if count == 0 { 0 } else { u64::MAX >> (64 - count) })
    }

    /// The lanes, lowest first.
    #[inline(always)]
    pub fn lanes(self) -> Lanes {
        lanes(self.0)
    }

    #[inline(always)]
    pub fn count(self) -> u32 {
        const FULL: u64 = u32::MAX as u64;
        // Mostly it is none, one or all of 32 lanes, and a host that need not be new counts bits in many steps.
        match self.0 {
            FULL => 32,
            0 => 0,
            one if one.is_power_of_two() => 1,
            some => count_bits(some),
        }
    }

    #[inline(always)]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    #[inline(always)]
    pub fn contains(self, lane: usize) -> bool {
        self.0 >> lane & 1 == 1
    }

    /// The lowest lane of a mask that is not empty; 64 of one that is.
    #[inline(always)]
    pub fn lowest(self) -> usize {
        self.0.trailing_zeros() as usize
    }

    /// Without the lowest lane, if there is one.
    #[inline(always)]
    pub fn but_lowest(self) -> LaneMask {
        LaneMask(self.0 & self.0.wrapping_sub(1))
    }

    /// The lowest lane.
    #[inline(always)]
    pub fn first(self) -> Option<usize> {
        (self.0 != 0).then(|| self.0.trailing_zeros() as usize)
    }
}

/// Not inlined: the compiler would count first and ask afterwards whether that was necessary.
#[inline(never)]
fn count_bits(bits: u64) -> u32 {
    bits.count_ones()
}

impl BitAnd for LaneMask {
    type Output = LaneMask;

    #[inline(always)]
    fn bitand(self, other: LaneMask) -> LaneMask {
        LaneMask(self.0 & other.0)
    }
}

impl BitOr for LaneMask {
    type Output = LaneMask;

    #[inline(always)]
    fn bitor(self, other: LaneMask) -> LaneMask {
        LaneMask(self.0 | other.0)
    }
}

impl BitXor for LaneMask {
    type Output = LaneMask;

    #[inline(always)]
    fn bitxor(self, other: LaneMask) -> LaneMask {
        LaneMask(self.0 ^ other.0)
    }
}

impl FromIterator<usize> for LaneMask {
    #[inline(always)]
    fn from_iter<I: IntoIterator<Item = usize>>(lanes: I) -> LaneMask {
        lanes.into_iter().fold(LaneMask::NONE, |mask, lane| mask | LaneMask::of(lane))
    }
}

/// All 64 bits are inverted: `&` the result with the lanes of the warp.
impl Not for LaneMask {
    type Output = LaneMask;

    #[inline(always)]
    fn not(self) -> LaneMask {
        LaneMask(!self.0)
    }
}

impl BitAndAssign for LaneMask {
    #[inline(always)]
    fn bitand_assign(&mut self, other: LaneMask) {
        self.0 &= other.0;
    }
}

impl BitOrAssign for LaneMask {
    #[inline(always)]
    fn bitor_assign(&mut self, other: LaneMask) {
        self.0 |= other.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mask_is_a_set_of_lanes() {
        let mask = LaneMask::of(3) | LaneMask::of(40);
        assert_eq!(mask.lanes().collect::<Vec<_>>(), [3, 40]);
        assert_eq!((mask.count(), mask.first(), mask.is_empty()), (2, Some(3), false));
        assert!(mask.contains(40) && !mask.contains(4));
        assert_eq!((LaneMask::NONE.first(), LaneMask::default()), (None, LaneMask::NONE));
    }

    #[test]
    fn masks_combine_bit_by_bit() {
        let (low, high) = (LaneMask(0b0111), LaneMask(0b1110));
        assert_eq!(
            (low & high, low | high, low ^ high),
            (LaneMask(0b0110), LaneMask(0b1111), LaneMask(0b1001))
        );
        assert_eq!(!low & high, LaneMask(0b1000));
        let mut mask = low;
        mask |= high;
        mask &= !LaneMask::of(0);
        assert_eq!(mask, high);
    }

    #[test]
    fn the_first_lanes_are_none_to_all() {
        assert_eq!(LaneMask::first_lanes(0), LaneMask::NONE);
        assert_eq!(LaneMask::first_lanes(3), LaneMask(0b111));
        assert_eq!(LaneMask::first_lanes(64), LaneMask(u64::MAX));
    }
}
