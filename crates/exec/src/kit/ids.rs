//! Small numbers that are types, so that one cannot be taken for another.

use std::ops::BitAnd;

use crate::kit::bits::lanes;
use crate::kit::slab::Id;

/// Ids over `u32`, each the name of a record in a [`Slab`](crate::kit::slab::Slab).
macro_rules! ids {
    ($($(#[$attribute:meta])* $visibility:vis $name:ident,)*) => {$(
        $(#[$attribute])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        $visibility struct $name(pub u32);

        impl Id for $name {
            #[inline(always)]
            fn from_index(index: usize) -> Self {
                $name(index as u32)
            }

            #[inline(always)]
            fn index(self) -> usize {
                self.0 as usize
            }
        }
    )*};
}

ids! {
    /// A message that has not been answered, among those of its sender. It comes back with the reply.
    pub Ticket,
    /// A probe of the directory that is in flight, among those of the directory or of the SM that it has arrived at.
    pub ProbeId,
    /// The response of an L1 to a probe, in flight to the directory.
    pub ResponseId,
    /// A packet in a crossbar.
    pub PacketId,
    /// A request that waits for its line, among those of an L2 slice.
    pub WaitingId,
    /// A result that firmware waits for.
    pub ResultId,
    /// A warp that has yielded, among those of its SM.
    pub AwayId,
    /// A memory access of a warp, among those of its SM.
    pub TransferId,
    /// The state of a warp that moves between its SM and memory, among those of the SM.
    pub SwitchId,
}

/// A warp slot of an SM.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WarpSlot(pub u8);

impl WarpSlot {
    /// An SM has at most so many: a [`SlotSet`] has a bit for each.
    pub const COUNT: usize = 64;

    /// Its place in an array of [`WarpSlot::COUNT`], which needs no check.
    #[inline(always)]
    pub fn index(self) -> usize {
        self.0 as usize % WarpSlot::COUNT
    }
}

/// A set of warp slots of one SM.
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
