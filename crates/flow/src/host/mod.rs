//! Graphs on the threads of the host: the reference for results on a device.
//!
//! The channels are the same, in memory of the host. Kernels are functions that are called once per element.
//! Nothing can yield here, so a batch is never larger than the room for the elements that it may produce.

mod lane;

use std::collections::VecDeque;
use std::sync::atomic::AtomicU32;

use rayon::prelude::*;

pub use lane::Lane;

use crate::calls::Drain;
use crate::channel::Channel;
use crate::device::Placement;
use crate::error::{FlowError, Result};
use crate::graph::{Graph, HostKernel, Plan};
use crate::memory::Arena;

/// What a run on the host did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostReport {
    /// Elements processed.
    pub elements: u64,
    /// Batches run. A batch is elements of one channel.
    pub batches: u64,
}

struct Machine<'a> {
    graph: &'a Graph,
    plan: Plan,
    channels: Vec<Channel>,
    drains: Vec<Drain>,
    kernels: Vec<HostKernel>,
}

impl Graph {
    /// Runs the graph to its end on all threads of the host. Its channels are appended to `memory`.
    pub fn run_on_host(&self, memory: &mut Arena<AtomicU32>) -> Result<HostReport> {
        self.check()?;
        let kernel = |kernel: &crate::graph::Kernel| {
            kernel.host.clone().ok_or_else(|| FlowError::NotOnHost { kernel: kernel.name.clone() })
        };
        let kernels = self.kernels.iter().map(kernel).collect::<Result<Vec<_>>>()?;
        let plan = Plan::new(self);
        let base = memory.grow(Placement::new(self, &plan, 0).bytes);
        let placement = Placement::new(self, &plan, base);
        placement.fill(self, &plan, |address, word| memory.store(address, word));
        let drains = vec![Drain::default(); placement.channels.len()];
        let machine = Machine { graph: self, plan, channels: placement.channels, drains, kernels };
        machine.run(memory)
    }
}

impl Machine<'_> {
    fn run(mut self, memory: &Arena<AtomicU32>) -> Result<HostReport> {
        let mut report = HostReport::default();
        let mut arrivals: VecDeque<_> = self.graph.arrivals().into();
        loop {
            let ready: Vec<u32> =
                self.drains.iter().zip(&self.channels).map(|(d, c)| d.ready(c, memory)).collect();
            if ready.iter().all(|&ready| ready == 0) {
                // There is no clock: what the host puts comes when everything before it is done.
                let Some((_, node, words)) = arrivals.pop_front() else { return Ok(report) };
                let channel = self.channels[self.plan.first[node.0]];
                let position = channel.talloc(memory, 1).expect("the channel is empty");
                for (at, &word) in (0..).zip(&words) {
                    memory.store(channel.word(position, at), word);
                }
                channel.enq(memory, position, 1);
                continue;
            }
            let Some((at, most)) = self.choose(&ready, memory) else {
                let names: Vec<&str> = (0..ready.len())
                    .filter(|&at| ready[at] > 0)
                    .map(|at| &*self.graph.stacks[self.plan.cells[at].node.0].name)
                    .collect();
                return Err(FlowError::Stuck {
                    graph: self.graph.name.clone(),
                    reason: format!(
                        "no room for what the elements of {} may produce; take wider channels",
                        names.join(", ")
                    ),
                });
            };
            report.elements += self.run_checked(at, most, memory)? as u64;
            report.batches += 1;
        }
    }

    /// The channel to serve next, and how many of its elements. Tasks come first: the shallowest with room for half of
    /// what its elements may produce, else the deepest with any room. Then the deepest continuation after a sync.
    fn choose(&self, ready: &[u32], memory: &Arena<AtomicU32>) -> Option<(usize, u32)> {
        let cells = &self.plan.cells;
        let room = |at: usize| {
            let rooms =
                cells[at].feeds.iter().map(|&(to, most)| self.channels[to].room(memory) / most.max(1));
            rooms.min().unwrap_or(u32::MAX)
        };
        let mut tasks: Vec<usize> =
            (0..cells.len()).filter(|&at| !cells[at].after_sync && ready[at] > 0).collect();
        tasks.sort_by_key(|&at| cells[at].depth);
        let plenty = tasks.iter().find(|&&at| room(at) >= ready[at].div_ceil(2));
        let any = tasks.iter().rev().find(|&&at| room(at) > 0);
        let mut synced: Vec<usize> =
            (0..cells.len()).filter(|&at| cells[at].after_sync && ready[at] > 0).collect();
        synced.sort_by_key(|&at| std::cmp::Reverse((cells[at].depth, at)));
        // Batches run to completion, so deeper work has ended when no deeper channel has ready elements.
        let ended = |at: usize| {
            (0..cells.len()).all(|other| cells[other].depth <= cells[at].depth || ready[other] == 0)
        };
        let after = synced.iter().find(|&&at| room(at) > 0 && ended(at));
        let at = plenty.or(any).or(after).copied()?;
        Some((at, ready[at].min(room(at))))
    }

    /// Runs a batch. A kernel that misuses a channel ends the run with an error; any other panic goes on.
    fn run_checked(&mut self, at: usize, most: u32, memory: &Arena<AtomicU32>) -> Result<u32> {
        let run = std::panic::AssertUnwindSafe(|| self.run_batch(at, most, memory));
        std::panic::catch_unwind(run).map_err(|payload| match payload.downcast::<lane::Misuse>() {
            Ok(misuse) => FlowError::Misuse { graph: self.graph.name.clone(), reason: misuse.0 },
            Err(panic) => std::panic::resume_unwind(panic),
        })
    }

    fn run_batch(&mut self, at: usize, most: u32, memory: &Arena<AtomicU32>) -> u32 {
        let channel = self.channels[at];
        let (first, count) = self.drains[at].dispatch(&channel, memory, most);
        let cell = &self.plan.cells[at];
        let kernel = &self.kernels[cell.kernel];
        (0..count).into_par_iter().with_min_len(16).for_each(|i| {
            let position = channel.deq(memory, first.wrapping_add(i));
            let (channels, plan) = (&self.channels[..], &self.plan);
            kernel(&Lane { memory, channels, plan, source: at, level: cell.level, position });
            channel.tfree(memory, position);
        });
        self.drains[at].free(&channel, memory);
        self.drains[at].close(&channel, memory);
        count
    }
}
