//! A memory partition: L2 slices in front of one DRAM channel.
//!
//! Only time is modelled here: no bytes are kept. A request reads or changes memory when it is *served*, and the
//! order in which a slice serves requests is the order in which their effects happen.
//!
//! Within a cycle, lines that came from memory reach the slices first, then each slice goes on by one request, then
//! the channel gives its commands of that cycle. Cycles in which none of them has anything to do are skipped.

mod fetch;
mod mshr;
mod slice;
#[cfg(test)]
mod tests;

pub mod lock_queue;

use std::hint::select_unpredictable;

use crate::chip::timing::{ClockSpec, DramSpec, L2Spec};
use crate::time::dram::{Channel, DramStats};
use crate::time::l2::fetch::Fill;
use crate::time::l2::slice::{Slice, Turn};
use crate::time::map::AddressMap;
use crate::time::network::message::Request;

/// A request that was served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Served {
    /// The cycle in which its reply leaves; never decreases from one request of a slice to the next.
    pub cycle: u64,
    /// The slice of the partition.
    pub slice: u32,
    /// The request.
    pub request: Request,
}

/// What the slices of a partition did. A stall counts when it ends.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct PartitionStats {
    /// Reads that looked up their line.
    pub reads: u64,
    /// Writes that did.
    pub writes: u64,
    /// Atomics that did.
    pub atomics: u64,
    /// Requests that found all they needed.
    pub hits: u64,
    /// Requests that did not, and were the first to ask for it.
    pub misses: u64,
    /// Requests for a line that was on its way.
    pub merges: u64,
    /// Lines written to memory to make place.
    pub writebacks: u64,
    /// Cycles without progress for want of an MSHR, or of a place in the line's one.
    pub stall_mshr_cycles: u64,
    /// Because all lines of the set were on their way.
    pub stall_line_cycles: u64,
    /// For want of room towards the DRAM.
    pub stall_dram_cycles: u64,
    /// For want of room for replies.
    pub stall_reply_cycles: u64,
    /// Because the atomic unit was busy.
    pub stall_atomic_cycles: u64,
    /// Lanes of atomics.
    pub atomic_lanes: u64,
    /// Cycles of the atomic unit that lanes on different words would not have taken.
    pub same_word_cycles: u64,
    /// Cycles in which data went through a port.
    pub port_busy_cycles: u64,
    /// Cycles that requests waited between the pipeline and the tags.
    pub queue_wait_cycles: u64,
}

crate::kit::counters::add_up!(PartitionStats {
    reads,
    writes,
    atomics,
    hits,
    misses,
    merges,
    writebacks,
    stall_mshr_cycles,
    stall_line_cycles,
    stall_dram_cycles,
    stall_reply_cycles,
    stall_atomic_cycles,
    atomic_lanes,
    same_word_cycles,
    port_busy_cycles,
    queue_wait_cycles,
});

/// A memory partition: L2 slices in front of one DRAM channel.
#[derive(Clone, Debug)]
pub struct Partition {
    /// What was served since the machine last cleared it, in the order of service.
    pub served: Vec<Served>,
    map: AddressMap,
    slices: Vec<Slice>,
    channel: Channel,
    /// A slice waits for room towards the channel.
    starved: bool,
    stats: PartitionStats,
}

impl Partition {
    /// An empty partition, without room for replies.
    pub fn new(l2: &L2Spec, dram: &DramSpec, clock: &ClockSpec) -> Partition {
        Partition {
            served: Vec::new(),
            map: AddressMap::new(l2, dram),
            slices: (0..l2.slices_per_partition).map(|index| Slice::new(index, l2, dram)).collect(),
            channel: Channel::new(dram, clock),
            starved: false,
            stats: PartitionStats::default(),
        }
    }

    /// How many more requests the slice takes.
    pub fn room(&self, slice: u32) -> u32 {
        self.slices[slice as usize].room()
    }

    /// A request leaves the network, in a cycle that the partition has not run yet. Cycles of arrival at a slice do
    /// not decrease.
    pub fn accept(&mut self, slice: u32, arrival: u64, request: &Request) {
        let number = self.map.line_in_slice(request.line);
        self.slices[slice as usize].accept(arrival, number, request);
    }

    /// How many replies the slice may hand to the network from `cycle` (which the partition has not run yet) until
    /// told otherwise; each served request uses one.
    pub fn set_reply_room(&mut self, slice: u32, cycle: u64, replies: u32) {
        self.slices[slice as usize].set_reply_room(cycle, replies);
    }

    /// Runs all cycles below `until`.
    pub fn run(&mut self, until: u64) {
        loop {
            let (next, wake) = self.next_slice();
            let mut cycle = self.next_turn(wake).min(until);
            if !self.channel.is_quiet() {
                // It stops early at a read that is done in between.
                self.channel.run(cycle);
                cycle = self.channel.next_done().map_or(cycle, |done| done.min(cycle));
            }
            if self.starved {
                let room = self.channel.room();
                self.slices.iter_mut().for_each(|slice| slice.offer_dram(cycle, room));
            }
            if cycle >= until {
                return;
            }
            // Mostly it is one slice's turn, and nothing else happens.
            if wake == cycle && !self.starved && self.channel.next_done() != Some(cycle) {
                self.step_slice(next, cycle);
                continue;
            }
            while self.channel.next_done() == Some(cycle)
                && let Some(tag) = self.channel.take_done()
            {
                let fill = Fill::from_tag(tag);
                self.slices[fill.slice as usize].fill(cycle, fill);
            }
            self.step_slices(cycle);
        }
    }

    /// The next cycle in which it does something by itself, `None` if it only waits for requests or reply room.
    pub fn next_event(&self) -> Option<u64> {
        let wake = self.slices.iter().map(Slice::wake).min().filter(|&wake| wake != Slice::NEVER);
        [wake, self.channel.next_done(), self.channel.next_event()].into_iter().flatten().min()
    }

    /// What the slices did so far.
    pub fn stats(&self) -> &PartitionStats {
        &self.stats
    }

    /// What the channel did so far.
    pub fn dram_stats(&self) -> &DramStats {
        self.channel.stats()
    }

    /// The first slice that goes on by itself, and when. (Which one it is cannot be foreseen.)
    fn next_slice(&self) -> (usize, u64) {
        let (mut first, mut wake) = (0, Slice::NEVER);
        for (number, slice) in self.slices.iter().enumerate() {
            first = select_unpredictable(slice.wake() < wake, number, first);
            wake = wake.min(slice.wake());
        }
        (first, wake)
    }

    /// The next cycle in which a slice may go on, as far as is known.
    fn next_turn(&self, wake: u64) -> u64 {
        let room = if self.starved { self.channel.next_event() } else { None };
        room.map_or(wake, |command| wake.min(command + 1))
    }

    fn step_slices(&mut self, cycle: u64) {
        self.starved = false;
        for slice in 0..self.slices.len() {
            if self.slices[slice].wake() <= cycle {
                self.step_slice(slice, cycle);
            }
            self.starved |= self.slices[slice].wants_dram();
        }
    }

    fn step_slice(&mut self, slice: usize, cycle: u64) {
        let mut turn = Turn {
            cycle,
            map: &self.map,
            channel: &mut self.channel,
            served: &mut self.served,
            stats: &mut self.stats,
        };
        self.slices[slice].step(&mut turn);
        self.starved |= self.slices[slice].wants_dram();
    }
}
