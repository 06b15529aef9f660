//! What a kernel on the host sees: its element, and the channels.

use std::sync::atomic::AtomicU32;

use bytemuck::Pod;

use crate::channel::Channel;
use crate::graph::{Node, words};
use crate::memory::Arena;

/// One element being processed by a kernel on the host.
#[derive(Clone, Copy, Debug)]
pub struct Lane<'a> {
    pub(super) memory: &'a Arena<AtomicU32>,
    pub(super) channels: &'a [Channel],
    /// Index of each stack's first channel in `channels`.
    pub(super) stacks: &'a [usize],
    pub(super) source: usize,
    /// Level of the element in its stack.
    pub level: u32,
    pub(super) position: u32,
}

impl Lane<'_> {
    /// The element. `T` must be the type that the graph's [`reads`](crate::Graph::reads) states.
    pub fn read<T: Pod>(&self) -> T {
        let channel = &self.channels[self.source];
        let words: Vec<u32> =
            (0..channel.shape.words).map(|at| self.memory.load(channel.word(self.position, at))).collect();
        let bytes: &[u8] = bytemuck::cast_slice(&words);
        bytemuck::pod_read_unaligned(&bytes[..size_of::<T>()])
    }

    /// Puts adjacent elements into a level of a stack. Returns the position of the first.
    ///
    /// # Panics
    ///
    /// If there is no room, because the kernel puts more than the graph's [`writes`](crate::Graph::writes) states.
    pub fn put<T: Pod>(&self, node: Node, level: u32, elements: &[T]) -> u32 {
        let channel = &self.channels[self.stacks[node.0] + level as usize];
        let count = elements.len() as u32;
        let position = channel.talloc(self.memory, count).unwrap_or_else(|| {
            panic!("a kernel on the host puts more into a channel than its graph says it does")
        });
        for (i, element) in elements.iter().enumerate() {
            for (at, word) in words(element).into_iter().enumerate() {
                self.memory.store(channel.word(position.wrapping_add(i as u32), at as u32), word);
            }
        }
        channel.enq(self.memory, position, count);
        position
    }

    /// The address of a word of an element in a level of a stack.
    pub fn word(&self, node: Node, level: u32, position: u32, word: u32) -> u64 {
        self.channels[self.stacks[node.0] + level as usize].word(position, word)
    }

    /// The memory that all kernels of the graph share.
    pub fn memory(&self) -> &Arena<AtomicU32> {
        self.memory
    }
}
