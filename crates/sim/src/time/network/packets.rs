//! Packets, and lists of them.

use std::hint::select_unpredictable;

use crate::kit::slab::Slab;

/// A message on its way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packet<M> {
    /// When it comes.
    pub ready: u64,
    /// The one behind it in its list.
    pub next: u32,
    pub flits: u32,
    pub source: u16,
    pub sink: u16,
    /// It has been counted as blocked by its sink.
    pub counted: bool,
    pub message: M,
}

/// All packets of a network, each known by a small number.
pub(crate) type Packets<M> = Slab<Packet<M>>;

/// The first and the last of some packets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct List {
    pub first: u32,
    last: u32,
}

impl List {
    /// The number of no packet.
    pub const NONE: u32 = u32::MAX;
    pub const EMPTY: List = List { first: List::NONE, last: List::NONE };

    #[inline(always)]
    pub fn is_empty(self) -> bool {
        self.first == List::NONE
    }

    /// Adds a packet, behind which there is none.
    #[inline(always)]
    pub fn push<M: Copy>(&mut self, number: u32, packets: &mut Packets<M>) {
        // Whether a list is empty cannot be foreseen, so this has no branch.
        let empty = self.is_empty();
        self.first = select_unpredictable(empty, number, self.first);
        let before = select_unpredictable(empty, number, self.last);
        packets[before].next = number;
        packets[number].next = List::NONE;
        self.last = number;
    }
}
