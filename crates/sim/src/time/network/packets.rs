//! Packets, and lists of them.

use std::hint::select_unpredictable;

use crate::kit::ids::PacketId;
use crate::kit::slab::Slab;

/// A message in flight.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packet<M> {
    /// The tick from which on it can leave its queue.
    pub ready: u64,
    /// The one behind it in its list.
    pub next: PacketId,
    pub flits: u32,
    pub source: u16,
    pub sink: u16,
    /// It has been counted as blocked by its sink.
    pub counted: bool,
    pub message: M,
}

pub(crate) type Packets<M> = Slab<PacketId, Packet<M>>;

/// A queue of packets, linked by [`Packet::next`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct List {
    pub first: PacketId,
    last: PacketId,
}

impl List {
    /// Sentinel: no packet.
    pub(crate) const NONE: PacketId = PacketId(u32::MAX);
    pub(crate) const EMPTY: List = List { first: List::NONE, last: List::NONE };

    #[inline(always)]
    pub(crate) fn is_empty(self) -> bool {
        self.first == List::NONE
    }

    /// Adds a packet at the end.
    #[inline(always)]
    pub(crate) fn push<M: Copy>(&mut self, id: PacketId, packets: &mut Packets<M>) {
        // Whether a list is empty is unpredictable for a host, so this has no branch.
        let empty = self.is_empty();
        self.first = select_unpredictable(empty, id, self.first);
        let before = select_unpredictable(empty, id, self.last);
        packets[before].next = id;
        packets[id].next = List::NONE;
        self.last = id;
    }
}
