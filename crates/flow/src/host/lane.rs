//! What a kernel on the host sees: its element, and the channels.

use std::sync::atomic::AtomicU32;

use bytemuck::Pod;

use crate::channel::Channel;
use crate::graph::{Constant, Node, words};
use crate::memory::Arena;

/// One lane of a kernel on the host.
#[derive(Clone, Copy, Debug)]
pub struct Lane<'a> {
    pub(super) memory: &'a Arena<AtomicU32>,
    pub(super) channels: &'a [Channel],
    /// Where each stack begins in `channels`.
    pub(super) stacks: &'a [usize],
    pub(super) constants: &'a [Constant],
    pub(super) source: usize,
    /// The level of its element in its stack.
    pub level: u32,
    pub(super) position: u32,
}

impl Lane<'_> {
    /// Its element.
    pub fn read<T: Pod>(&self) -> T {
        let channel = &self.channels[self.source];
        let words: Vec<u32> =
            (0..channel.shape.words).map(|at| self.memory.load(channel.word(self.position, at))).collect();
        let bytes: &[u8] = bytemuck::cast_slice(&words);
        bytemuck::pod_read_unaligned(&bytes[..size_of::<T>()])
    }

    /// A constant argument that is a word or an address.
    pub fn constant(&self, at: usize) -> u64 {
        match self.constants.get(at) {
            Some(&Constant::Word(word)) => word.into(),
            Some(&Constant::Address(address)) => address,
            _ => 0,
        }
    }

    /// Puts elements side by side into a level of a stack. `make` gets the position of the first one.
    ///
    /// # Panics
    /// If there is no room: the kernel puts more than its graph says.
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

    /// The address of a word of an element.
    pub fn word(&self, node: Node, level: u32, position: u32, word: u32) -> u64 {
        self.channels[self.stacks[node.0] + level as usize].word(position, word)
    }

    /// The memory that kernels share.
    pub fn memory(&self) -> &Arena<AtomicU32> {
        self.memory
    }
}
