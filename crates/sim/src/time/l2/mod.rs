//! A memory partition: L2 slices in front of one DRAM channel.
//!
//! Only time is modelled here: no bytes are kept. A request reads or changes memory when it is *served*, and the order
//! in which a slice serves requests is the order in which their effects happen.
//!
//! Within a cycle, lines that came from memory reach the slices first, then each slice handles one request, then the
//! channel gives its commands of that cycle. Cycles in which none of them has anything to do are skipped.
//!
//! Start with [`Partition::run`]; `slice` has what a slice does in a cycle.

mod fetch;
mod mshr;
mod slice;
#[cfg(test)]
mod tests;

pub(crate) mod lock_queue;

use std::hint::select_unpredictable;

use crate::chip::timing::{AtomicSpec, ClockSpec, DramSpec, L2Spec};
use crate::kit::cycle::Cycle;
use crate::kit::line::LineAddress;
use crate::time::cache::Tags;
use crate::time::dram::{Channel, DramStats};
use crate::time::l2::fetch::Fill;
pub(crate) use crate::time::l2::slice::Role;
use crate::time::l2::slice::{Passed, Slice, Turn};
use crate::time::map::AddressMap;
use crate::time::network::message::Request;
use crate::time::network::node::Node;

/// A request that was served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Served {
    /// The cycle in which its reply leaves; never decreases from one request of a slice to the next.
    pub cycle: Cycle,
    /// The slice's number in the partition.
    pub slice: u32,
    /// The reply comes as late as from the other half of the L2.
    pub far: bool,
    pub request: Request,
}

/// Counters of the slices of a partition. A stall counts when it ends.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct PartitionStats {
    /// Reads that looked up their line.
    pub reads: u64,
    /// Writes that did.
    pub writes: u64,
    /// Atomics that did.
    pub atomics: u64,
    /// Fences that were answered.
    pub fences: u64,
    /// Requests that found all they needed.
    pub hits: u64,
    /// Requests that did not, and were the first to miss.
    pub misses: u64,
    /// Requests for a line that was in flight.
    pub merges: u64,
    /// Requests for a line of the other half of the L2, passed on.
    pub passed: u64,
    /// Dirty lines evicted.
    pub writebacks: u64,
    /// Cycles without progress for want of an MSHR, or of a place in the line's MSHR.
    pub stall_mshr_cycles: u64,
    /// Because all ways of the set were reserved for lines in flight.
    pub stall_line_cycles: u64,
    /// For want of room towards the DRAM.
    pub stall_dram_cycles: u64,
    /// For want of room for replies.
    pub stall_reply_cycles: u64,
    /// Because the atomic unit was busy.
    pub stall_atomic_cycles: u64,
    /// It waits for a store to the line that it is to read.
    pub stall_write_cycles: u64,
    /// For want of room in the other half of the L2.
    pub stall_twin_cycles: u64,
    /// Lanes of atomics.
    pub atomic_lanes: u64,
    /// Cycles that passes of the atomic unit took beyond what its lanes per cycle would have.
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
    fences,
    hits,
    misses,
    merges,
    passed,
    writebacks,
    stall_mshr_cycles,
    stall_line_cycles,
    stall_dram_cycles,
    stall_reply_cycles,
    stall_atomic_cycles,
    stall_write_cycles,
    stall_twin_cycles,
    atomic_lanes,
    same_word_cycles,
    port_busy_cycles,
    queue_wait_cycles,
});

/// L2 slices in front of one DRAM channel.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Partition {
    /// The next cycle in which it does something by itself, or [`Cycle::NEVER`]. Read in every window.
    wake: Cycle,
    /// Requests served since the machine last took them, in the order of service.
    pub served: Vec<Served>,
    /// Requests for the other half of the L2 that its slices have passed on since the machine last took them.
    pub(crate) passed: Vec<Passed>,
    map: AddressMap,
    slices: Vec<Slice>,
    channel: Channel,
    /// A slice waits for room towards the channel.
    starved: bool,
    stats: PartitionStats,
}

impl Partition {
    /// An empty partition, without room for replies.
    pub fn new(l2: &L2Spec, atomic: &AtomicSpec, dram: &DramSpec, clock: &ClockSpec) -> Partition {
        Partition {
            wake: Cycle::NEVER,
            served: Vec::new(),
            passed: Vec::new(),
            map: AddressMap::new(l2, dram),
            slices: (0..l2.slices_per_partition).map(|index| Slice::new(index, l2, atomic, dram)).collect(),
            channel: Channel::new(dram, clock),
            starved: false,
            stats: PartitionStats::default(),
        }
    }

    /// From now on it tells whose atomics enter the slices' pipelines.
    pub(crate) fn tell_entries(&mut self) {
        self.slices.iter_mut().for_each(Slice::tell_entries);
    }

    /// Whose atomics have entered since the last call.
    pub(crate) fn take_entered(&mut self) -> impl Iterator<Item = Node> {
        self.slices.iter_mut().flat_map(|slice| slice.entered.drain(..))
    }

    /// How many more requests a slice takes.
    pub fn room(&self, slice: u32) -> u32 {
        self.slices[slice as usize].room()
    }

    /// A request leaves the network, in a cycle that the partition has not run yet.
    pub fn accept(&mut self, slice: u32, arrival: Cycle, request: &Request) {
        self.accept_as(Role::Home, slice, arrival, request);
    }

    /// The same for a slice that may not have the line itself.
    pub(crate) fn accept_as(&mut self, role: Role, slice: u32, arrival: Cycle, request: &Request) {
        let number = self.map.line_in_slice(request.line);
        self.slices[slice as usize].accept(arrival, number, request, role);
        self.wake_with(slice);
    }

    /// A request comes from a slice's twin.
    pub(crate) fn accept_passed(&mut self, arrival: Cycle, passed: &Passed) {
        let number = self.map.line_in_slice(passed.request.line);
        self.slices[passed.slice as usize].accept_passed(arrival, number, passed);
        self.wake_with(passed.slice);
    }

    /// Something has come for a slice.
    #[inline]
    fn wake_with(&mut self, slice: u32) {
        self.wake = self.wake.min(self.slices[slice as usize].wake());
    }

    /// What a slice's twin is to a request that has come to it for a line of the slice.
    pub(crate) fn role_of_twin(&mut self, slice: u32, request: &Request) -> Role {
        let number = self.map.line_in_slice(request.line);
        self.slices[slice as usize].role_of_twin(number, request)
    }

    /// How many more requests a slice takes from its twin.
    pub(crate) fn room_for_twin(&self, slice: u32) -> u32 {
        self.slices[slice as usize].room_for_twin()
    }

    /// How many requests a slice may pass to its twin from `cycle` on until the next call.
    pub(crate) fn set_twin_room(&mut self, slice: u32, cycle: Cycle, requests: u32) {
        self.slices[slice as usize].set_twin_room(cycle, requests);
        self.wake_with(slice);
    }

    /// A sector was read or written while the machine stood still.
    pub(crate) fn touch(&mut self, slice: u32, line: LineAddress, sectors: u8, writes: bool) {
        self.slices[slice as usize].touch(self.map.line_in_slice(line), sectors, writes);
    }

    /// The host has written a line.
    pub fn write_by_host(&mut self, slice: u32, line: LineAddress) {
        self.slices[slice as usize].write_by_host(self.map.line_in_slice(line));
    }

    /// How many replies each slice may hand to the network from `cycle` (which the partition has not run yet) until the
    /// next call; each served request uses one.
    pub fn set_reply_rooms(&mut self, cycle: Cycle, replies: impl Fn(usize) -> u32) {
        for (number, slice) in self.slices.iter_mut().enumerate() {
            slice.set_reply_room(cycle, replies(number));
            self.wake = self.wake.min(slice.wake());
        }
    }

    /// Runs all cycles below `until`. Returns whether it had anything to do.
    #[inline]
    pub fn run(&mut self, until: Cycle) -> bool {
        let awake = self.wake < until;
        if awake {
            self.run_awake(until);
            self.wake = self.find_wake();
        }
        awake
    }

    fn run_awake(&mut self, until: Cycle) {
        loop {
            if self.channel.is_quiet() && !self.starved {
                self.run_quiet(until);
            }
            let (next, wake) = next_slice(&self.slices);
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
            // Mostly one slice has something to do, and nothing else happens.
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

    /// Steps slices as long as nothing is on its way from or to memory, which is mostly so.
    fn run_quiet(&mut self, until: Cycle) {
        let (channel, map, passed) = (&mut self.channel, &self.map, &mut self.passed);
        let (served, stats) = (&mut self.served, &mut self.stats);
        let mut turn = Turn { cycle: Cycle(0), map, channel, served, passed, stats };
        let (mut next, mut wake) = next_slice(&self.slices);
        while wake < until {
            turn.cycle = wake;
            self.slices[next].step(&mut turn);
            if !turn.channel.is_quiet() || self.slices[next].wants_dram() {
                self.starved |= self.slices[next].wants_dram();
                return;
            }
            (next, wake) = next_slice(&self.slices);
        }
    }

    /// The next cycle in which it does something by itself, `None` if it only waits for requests or reply room.
    pub fn next_event(&self) -> Option<Cycle> {
        (self.wake != Cycle::NEVER).then_some(self.wake)
    }

    fn find_wake(&self) -> Cycle {
        let (_, wake) = next_slice(&self.slices);
        let channel = [self.channel.next_done(), self.channel.next_event()];
        channel.into_iter().flatten().fold(wake, Cycle::min)
    }

    /// The tags of its slices.
    pub(crate) fn tags(&self) -> impl Iterator<Item = &Tags> {
        self.slices.iter().map(Slice::tags)
    }

    pub fn stats(&self) -> &PartitionStats {
        &self.stats
    }

    pub fn dram_stats(&self) -> &DramStats {
        self.channel.stats()
    }

    /// The next cycle in which a slice may have something to do, as far as is known.
    fn next_turn(&self, wake: Cycle) -> Cycle {
        let room = if self.starved { self.channel.next_event() } else { None };
        room.map_or(wake, |command| wake.min(command + 1))
    }

    fn step_slices(&mut self, cycle: Cycle) {
        self.starved = false;
        for slice in 0..self.slices.len() {
            if self.slices[slice].wake() <= cycle {
                self.step_slice(slice, cycle);
            }
            self.starved |= self.slices[slice].wants_dram();
        }
    }

    fn step_slice(&mut self, slice: usize, cycle: Cycle) {
        let mut turn = Turn {
            cycle,
            map: &self.map,
            channel: &mut self.channel,
            served: &mut self.served,
            passed: &mut self.passed,
            stats: &mut self.stats,
        };
        self.slices[slice].step(&mut turn);
        self.starved |= self.slices[slice].wants_dram();
    }
}

/// The first slice that has something to do by itself, and when. (Which one it is, is unpredictable for a host.)
#[inline]
fn next_slice(slices: &[Slice]) -> (usize, Cycle) {
    let (mut first, mut wake) = (0, Cycle::NEVER);
    for (number, slice) in slices.iter().enumerate() {
        first = select_unpredictable(slice.wake() < wake, number, first);
        wake = wake.min(slice.wake());
    }
    (first, wake)
}
