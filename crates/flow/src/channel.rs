//! Where the parts of a channel lie in memory.
//!
//! `kernels/flow/channel.cuh` has the other half of this contract: its `Channel` is the descriptor that is written here.

use crate::memory::{Arena, Word};

/// Bytes of a descriptor: a line for what does not change, and one for each word that does.
pub const DESCRIPTOR_BYTES: u64 = 320;

/// Elements that share a count of the freed, unless one says otherwise (Section 8.2.1 of the paper).
pub const GROUP: u32 = 64;

/// Lanes of a wavefront, and elements that it consumes.
pub const WAVE: u32 = 64;

/// Where the words of an element lie.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Layout {
    /// One element after the other: an array of structures.
    #[default]
    Structures,
    /// The same, each on cache lines of its own, as elements of a linked list are.
    Padded,
    /// The first words of all elements, then the second ones: a structure of arrays.
    Arrays,
}

/// What a channel is like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Elements in it, a power of two.
    pub width: u32,
    /// Words of an element.
    pub words: u32,
    /// Elements that share a count of the freed, a power of two no larger than the width.
    pub group: u32,
    /// Where words lie.
    pub layout: Layout,
    /// Lanes reserve one by one and not for a wavefront together: what the paper's Figure 17 starts from.
    pub lane_by_lane: bool,
}

impl Shape {
    /// A channel of so many elements of so many words.
    pub fn new(width: u32, words: u32) -> Shape {
        Shape { width, words, group: GROUP.min(width), layout: Layout::Structures, lane_by_lane: false }
    }

    /// Bytes from an element to the next, and from a word of one to its next word.
    fn strides(&self) -> (u32, u32) {
        let bytes = 4 * self.words;
        match self.layout {
            Layout::Structures => (bytes, 4),
            Layout::Padded => (bytes.next_multiple_of(64), 4),
            Layout::Arrays => (4, 4 * self.width),
        }
    }

    fn element_bytes(&self) -> u64 {
        match self.layout {
            Layout::Padded => self.width as u64 * self.strides().0 as u64,
            _ => 4 * self.width as u64 * self.words as u64,
        }
    }

    fn entry_bytes(&self) -> u64 {
        2 * 4 * self.width as u64
    }

    fn done_bytes(&self) -> u64 {
        4 * (self.width / self.group) as u64
    }

    /// Bytes of the three arrays, each on lines of its own.
    pub fn array_bytes(&self) -> u64 {
        let line = |bytes: u64| bytes.next_multiple_of(64);
        line(self.element_bytes()) + line(self.entry_bytes()) + line(self.done_bytes())
    }
}

/// A channel in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Channel {
    /// What it is like.
    pub shape: Shape,
    /// Where its descriptor lies: the channel's name in kernels.
    pub descriptor: u64,
    elements: u64,
    entries: u64,
    done: u64,
}

impl Channel {
    /// A channel with its descriptor at one address and its arrays from another on.
    pub fn at(shape: Shape, descriptor: u64, arrays: u64) -> Channel {
        let entries = arrays + shape.element_bytes().next_multiple_of(64);
        let done = entries + shape.entry_bytes().next_multiple_of(64);
        Channel { shape, descriptor, elements: arrays, entries, done }
    }

    /// Writes the descriptor. All counts are 0: the channel is empty.
    pub fn describe<W: Word>(&self, memory: &Arena<W>) {
        let (slot, word) = self.shape.strides();
        memory.store64(self.descriptor, self.elements);
        memory.store64(self.descriptor + 8, self.entries);
        memory.store64(self.descriptor + 16, self.done);
        let group_shift = self.shape.group.trailing_zeros();
        let words = [self.shape.width, slot, word, group_shift, self.shape.lane_by_lane as u32];
        for (at, value) in words.into_iter().enumerate() {
            memory.store(self.descriptor + 24 + 4 * at as u64, value);
        }
    }

    /// The end of what is reserved: producers move it.
    pub fn tail(&self) -> u64 {
        self.descriptor + 64
    }

    /// The beginning of what is not free: the aggregator moves it.
    pub fn head(&self) -> u64 {
        self.descriptor + 128
    }

    /// The end of what is reserved of the control array: producers move it.
    pub fn reserve(&self) -> u64 {
        self.descriptor + 192
    }

    /// The end of what is ready in the control array: producers move it.
    pub fn ready(&self) -> u64 {
        self.descriptor + 256
    }

    /// The count of freed elements for the group of a position.
    pub fn done(&self, position: u32) -> u64 {
        self.done + 4 * (self.slot(position) / self.shape.group) as u64
    }

    /// A word of the element at a position.
    pub fn word(&self, position: u32, word: u32) -> u64 {
        let (slot_stride, word_stride) = self.shape.strides();
        self.elements + self.slot(position) as u64 * slot_stride as u64 + word as u64 * word_stride as u64
    }

    /// The entry at a position of the control array.
    pub(crate) fn entry(&self, position: u32) -> u64 {
        self.entries + 4 * (position & (2 * self.shape.width - 1)) as u64
    }

    /// What the entry at a position of the control array has as its last bit when it is written: another on each turn.
    pub(crate) fn turn(&self, position: u32) -> u32 {
        ((position / (2 * self.shape.width)) & 1) ^ 1
    }

    pub(crate) fn slot(&self, position: u32) -> u32 {
        position & (self.shape.width - 1)
    }
}
