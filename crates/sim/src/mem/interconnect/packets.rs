//! Packets, and lists of them.

use std::hint::select_unpredictable;
use std::ops::{Index, IndexMut};

/// A message on its way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Packet<M> {
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
#[derive(Clone, Debug)]
pub(super) struct Packets<M> {
    packets: Vec<Packet<M>>,
    /// The first number that is not in use; such packets form a list.
    free: u32,
}

impl<M: Copy> Packets<M> {
    pub fn new() -> Packets<M> {
        Packets { packets: Vec::new(), free: List::NONE }
    }

    /// Keeps a packet. Returns its number.
    #[inline(always)]
    pub fn put(&mut self, packet: Packet<M>) -> u32 {
        let number = self.free;
        match self.packets.get_mut(number as usize) {
            Some(unused) => {
                self.free = unused.next;
                *unused = packet;
                number
            }
            None => self.grow(packet),
        }
    }

    #[cold]
    fn grow(&mut self, packet: Packet<M>) -> u32 {
        self.packets.push(packet);
        self.packets.len() as u32 - 1
    }

    /// A packet's number can be used again.
    #[inline(always)]
    pub fn give_back(&mut self, number: u32) {
        self.packets[number as usize].next = std::mem::replace(&mut self.free, number);
    }
}

impl<M> Index<u32> for Packets<M> {
    type Output = Packet<M>;
    #[inline(always)]
    fn index(&self, number: u32) -> &Packet<M> {
        &self.packets[number as usize]
    }
}

impl<M> IndexMut<u32> for Packets<M> {
    #[inline(always)]
    fn index_mut(&mut self, number: u32) -> &mut Packet<M> {
        &mut self.packets[number as usize]
    }
}

/// The first and the last of some packets.
#[derive(Clone, Copy, Debug)]
pub(super) struct List {
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
