//! The memory layout of a channel.
//!
//! `kernels/flow/channel.cuh` is the device's half of this contract: its `Channel` is the descriptor written
//! here. The two must agree.

use crate::memory::{Arena, Word};

/// Bytes of a descriptor: one cache line for the constants, and one for each of the four counters.
pub const DESCRIPTOR_BYTES: u64 = 320;

/// Default number of elements that share a `done` counter (Section 8.2.1 of the paper).
const GROUP: u32 = 64;

/// Lanes of a wavefront, and elements that it consumes.
pub(crate) const WAVE: u32 = 64;

/// How the words of elements are arranged in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Layout {
    /// One element after another: an array of structures.
    #[default]
    Structures,
    /// An array of structures with each element on its own cache lines, like the elements of a linked list.
    Padded,
    /// The first words of all elements, then the second ones: a structure of arrays.
    Arrays,
}

/// Size and layout of a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Elements in the channel, a power of two.
    pub width: u32,
    /// 32-bit words per element.
    pub words: u32,
    /// Elements that share a `done` counter: a power of two, at most `width`.
    pub group: u32,
    pub layout: Layout,
    /// Lanes reserve elements one by one instead of once per wavefront: the baseline of the paper's Figure 17.
    pub lane_by_lane: bool,
}

impl Shape {
    /// A channel of `width` elements of `words` words, with default grouping and layout.
    pub fn new(width: u32, words: u32) -> Shape {
        Shape { width, words, group: GROUP.min(width), layout: Layout::Structures, lane_by_lane: false }
    }

    /// Bytes from an element to the next, and from a word of an element to its next word.
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

    /// Bytes of the three arrays, each starting on its own cache line.
    pub fn array_bytes(&self) -> u64 {
        let line = |bytes: u64| bytes.next_multiple_of(64);
        line(self.element_bytes()) + line(self.entry_bytes()) + line(self.done_bytes())
    }
}

/// A channel in memory: a ring of elements, a control array that lists the ready ones in order, and `done` counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Channel {
    pub shape: Shape,
    /// Address of the descriptor, by which kernels know the channel.
    pub descriptor: u64,
    elements: u64,
    entries: u64,
    done: u64,
}

impl Channel {
    /// Address of its arrays, which lie side by side.
    pub(crate) fn arrays(&self) -> u64 {
        self.elements
    }

    /// A channel with its descriptor and its arrays at these addresses.
    pub fn at(shape: Shape, descriptor: u64, arrays: u64) -> Channel {
        let entries = arrays + shape.element_bytes().next_multiple_of(64);
        let done = entries + shape.entry_bytes().next_multiple_of(64);
        Channel { shape, descriptor, elements: arrays, entries, done }
    }

    /// Writes the descriptor into zeroed memory. All counters are 0: the channel is empty. Kernels put at most `most`
    /// elements at once.
    pub fn describe<W: Word>(&self, memory: &Arena<W>, most: u32) {
        self.constants(most).for_each(|(address, word)| memory.store(address, word));
    }

    /// The words of the descriptor that stay the same, with their addresses.
    pub(crate) fn constants(&self, most: u32) -> impl Iterator<Item = (u64, u32)> {
        let halves = |address: u64| [address as u32, (address >> 32) as u32];
        let arrays = [self.elements, self.entries, self.done].into_iter().flat_map(halves);
        let (slot, word) = self.shape.strides();
        let group_shift = self.shape.group.trailing_zeros();
        let words = [self.shape.width, slot, word, group_shift, most, self.shape.lane_by_lane as u32];
        let descriptor = self.descriptor;
        let address = move |(at, word): (usize, u32)| (descriptor + 4 * at as u64, word);
        arrays.chain(words).enumerate().map(address)
    }

    /// The words of elements that are ready in an empty channel, and of its counters, with their addresses.
    pub(crate) fn filled<'e>(&'e self, elements: &'e [Vec<u32>]) -> impl Iterator<Item = (u64, u32)> + 'e {
        let counters = [self.tail(), self.reserve(), self.ready()];
        let words = (0..).zip(elements).flat_map(move |(position, element)| {
            let entry = (self.entry(position), self.slot(position) << 1 | self.written_bit(position));
            let words = (0..).zip(element).map(move |(at, &word)| (self.word(position, at), word));
            words.chain([entry])
        });
        counters.map(|counter| (counter, elements.len() as u32)).into_iter().chain(words)
    }

    /// Address of the counter of reserved elements. Producers advance it.
    pub fn tail(&self) -> u64 {
        self.descriptor + 64
    }

    /// Address of the counter of freed elements. The aggregator advances it.
    pub fn head(&self) -> u64 {
        self.descriptor + 128
    }

    /// Address of the counter of reserved control entries. Producers advance it.
    pub fn reserve(&self) -> u64 {
        self.descriptor + 192
    }

    /// Address of the counter of ready control entries. Producers advance it.
    pub fn ready(&self) -> u64 {
        self.descriptor + 256
    }

    /// Address of the `done` counter for the group of a position.
    pub fn done(&self, position: u32) -> u64 {
        self.done + 4 * (self.slot(position) / self.shape.group) as u64
    }

    /// Address of a word of the element at a position.
    pub fn word(&self, position: u32, word: u32) -> u64 {
        let (slot_stride, word_stride) = self.shape.strides();
        self.elements + self.slot(position) as u64 * slot_stride as u64 + word as u64 * word_stride as u64
    }

    /// Address of the control entry at a position.
    pub(crate) fn entry(&self, position: u32) -> u64 {
        self.entries + 4 * (position & (2 * self.shape.width - 1)) as u64
    }

    /// The low bit of the control entry at a position once it is written. It flips on each pass through the
    /// array, so that an old entry does not look written.
    pub(crate) fn written_bit(&self, position: u32) -> u32 {
        ((position / (2 * self.shape.width)) & 1) ^ 1
    }

    pub(crate) fn slot(&self, position: u32) -> u32 {
        position & (self.shape.width - 1)
    }
}
