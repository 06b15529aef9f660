//! Typed indices: warp slots of an SM, and sets of them as one machine word.

use std::ops::BitAnd;

use crate::kit::bits::lanes;

/// Sentinel: no event is scheduled.
pub const NEVER: u64 = u64::MAX;

/// A warp slot of an SM, by number. Every resident warp occupies one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WarpSlot(pub u8);

impl WarpSlot {
    #[inline(always)]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A set of warp slots of one SM, one bit per slot: an SM has at most 64.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SlotSet(pub u64);

impl SlotSet {
    #[inline(always)]
    pub fn contains(self, slot: WarpSlot) -> bool {
        self.0 >> slot.0 & 1 == 1
    }

    #[inline(always)]
    pub fn insert(&mut self, slot: WarpSlot) {
        self.0 |= 1 << slot.0;
    }

    #[inline(always)]
    pub fn remove(&mut self, slot: WarpSlot) {
        self.0 &= !(1 << slot.0);
    }

    #[inline(always)]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    #[inline(always)]
    pub fn len(self) -> u32 {
        self.0.count_ones()
    }

    /// The lowest slot.
    #[inline(always)]
    pub fn first(self) -> Option<WarpSlot> {
        (self.0 != 0).then(|| WarpSlot(self.0.trailing_zeros() as u8))
    }

    /// The slots, lowest first.
    pub fn iter(self) -> impl Iterator<Item = WarpSlot> {
        lanes(self.0).map(|slot| WarpSlot(slot as u8))
    }

    /// The first slot of `order` that is in the set.
    #[inline]
    pub fn first_of(self, order: &[WarpSlot]) -> Option<WarpSlot> {
        order.iter().copied().find(|&slot| self.contains(slot))
    }
}

impl BitAnd for SlotSet {
    type Output = SlotSet;

    #[inline(always)]
    fn bitand(self, other: SlotSet) -> SlotSet {
        SlotSet(self.0 & other.0)
    }
}

impl FromIterator<WarpSlot> for SlotSet {
    fn from_iter<I: IntoIterator<Item = WarpSlot>>(slots: I) -> Self {
        let mut set = SlotSet::default();
        slots.into_iter().for_each(|slot| set.insert(slot));
        set
    }
}
