//! What a kernel on the host sees: its element, and the channels.

use std::sync::atomic::AtomicU32;

use bytemuck::Pod;

use crate::channel::Channel;
use crate::error::undeclared;
use crate::graph::{Node, Plan, words};
use crate::memory::Arena;

/// One element being processed by a kernel on the host.
#[derive(Clone, Copy, Debug)]
pub struct Lane<'a> {
    pub(super) memory: &'a Arena<AtomicU32>,
    pub(super) channels: &'a [Channel],
    pub(super) plan: &'a Plan,
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

    /// Puts adjacent elements into a level of a stack. Returns the position of the first. If that is not what the
    /// graph's [`writes`](crate::Graph::writes) states, the run ends here with an error.
    pub fn put<T: Pod>(&self, node: Node, level: u32, elements: &[T]) -> u32 {
        let to = self.target(node, level);
        let count = elements.len() as u32;
        let most =
            self.plan.cells[self.source].feeds.iter().filter(|&&(at, _)| at == to).map(|&(_, most)| most);
        let (kernel, name) = (self.kernel(), &self.plan.names.channels[to]);
        let Some(most) = most.max() else { misuse(undeclared(kernel, name)) };
        if count > most {
            misuse(format!(
                "kernel `{kernel}` puts {count} elements at once into {name}, where it may put {most} as declared: \
                 raise the bound of `writes` or `spawns`"
            ))
        }
        let channel = &self.channels[to];
        let Some(position) = channel.talloc(self.memory, count) else {
            misuse(format!(
                "kernel `{kernel}` puts more elements into {name} than it declares: it is full; raise the bound of \
                 `writes` or `spawns`"
            ))
        };
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
        self.channels[self.target(node, level)].word(position, word)
    }

    fn kernel(&self) -> &str {
        &self.plan.names.kernels[self.plan.cells[self.source].kernel]
    }

    /// The index of the channel for a level of a stack.
    fn target(&self, node: Node, level: u32) -> usize {
        let (name, levels) = &self.plan.names.stacks[node.0];
        if level >= *levels {
            let kernel = self.kernel();
            misuse(format!(
                "kernel `{kernel}` puts elements behind the last level of channel `{name}`, which has {levels}: give \
                 its recursion as many levels as this input needs"
            ))
        }
        self.plan.first[node.0] + level as usize
    }

    /// The memory that all kernels of the graph share.
    pub fn memory(&self) -> &Arena<AtomicU32> {
        self.memory
    }
}

/// What a kernel on the host did wrong. It ends the kernel and the run by unwinding, which [`super::Machine`] catches.
pub(super) struct Misuse(pub String);

fn misuse(message: String) -> ! {
    // Not a panic: nothing is printed on the way.
    std::panic::resume_unwind(Box::new(Misuse(message)))
}
