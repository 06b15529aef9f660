//! A DRAM channel: a controller that chooses commands, banks that hold one open row each, and a shared data bus.
//!
//! A transfer goes through a pipe of `latency_cycles` and waits there until the controller's queue has room. In each
//! command clock the controller gives at most one command, first ready, first come (`controller`). It knows the clock
//! of its next command unless a transfer arrives before, so clocks without a command cost nothing.
//!
//! Refresh is not modelled. No bytes are kept here, so a read may pass an older write to the same place.

mod bank;
mod choice;
mod clock;
mod controller;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use crate::chip::timing::{ClockSpec, DramSpec};
use crate::kit::cycle::Cycle;
use crate::time::dram::clock::{Clocks, End, NO_CLOCK};
use crate::time::dram::controller::Controller;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Read,
    Write,
}

/// An access of the L2 to memory: bursts of one row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Transfer {
    pub bank: u16,
    /// At least one.
    pub bursts: u8,
    pub direction: Direction,
    /// The sender's name for a read, which comes back when it is done.
    pub tag: u32,
    pub row: u64,
}

/// Counters of a channel.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct DramStats {
    /// Bursts read.
    pub reads: u64,
    /// Bursts written.
    pub writes: u64,
    /// Bursts that found their row open: all but the first after each activate.
    pub row_hits: u64,
    /// Activate commands.
    pub row_misses: u64,
    pub precharges: u64,
    /// Clocks with data on the bus.
    pub busy_clocks: u64,
    /// Clocks that transfers waited, from their arrival at the controller to their last column command.
    pub wait_clocks: u64,
    /// Bytes moved.
    pub bytes: u64,
}

crate::kit::counters::add_up!(DramStats {
    reads,
    writes,
    row_hits,
    row_misses,
    precharges,
    busy_clocks,
    wait_clocks,
    bytes
});

/// A transfer in flight.
#[derive(Clone, Copy, Debug)]
struct Pending {
    transfer: Transfer,
    /// The clock in which it reaches the controller.
    arrival_clock: u64,
}

/// A DRAM channel and its controller.
#[derive(Clone, Debug)]
pub(crate) struct Channel {
    clocks: Clocks,
    latency_cycles: u64,
    pipe_limit: usize,
    /// Sent by the L2 and not yet taken by the controller.
    pipe: VecDeque<Pending>,
    controller: Controller,
    /// The next clock in which the controller does something.
    next_clock: u64,
    /// Reads whose last data is on the bus by a cycle, which may be a later one: that cycle and the tag.
    done: VecDeque<(Cycle, u32)>,
}

impl Channel {
    /// An idle channel with all banks closed.
    pub(crate) fn new(spec: &DramSpec, clock: &ClockSpec) -> Channel {
        let pipe_limit = (spec.latency_cycles + spec.queue_requests).max(2) as usize;
        Channel {
            clocks: Clocks::new(clock),
            latency_cycles: spec.latency_cycles as u64,
            pipe_limit,
            pipe: VecDeque::with_capacity(pipe_limit),
            controller: Controller::new(spec),
            next_clock: NO_CLOCK,
            done: VecDeque::new(),
        }
    }

    /// How many more transfers can be sent. The pipe has a place for each of its cycles and as many more as the
    /// controller's queue, so that it never runs dry while the L2 has transfers to send.
    #[inline]
    pub(crate) fn room(&self) -> u32 {
        (self.pipe_limit - self.pipe.len()) as u32
    }

    /// The L2 sends a transfer in a cycle that the channel has not run yet.
    pub(crate) fn send(&mut self, cycle: Cycle, transfer: Transfer) {
        debug_assert!(self.room() > 0 && transfer.bursts > 0);
        let arrival_clock = self.clocks.first_clock(cycle + self.latency_cycles);
        self.pipe.push_back(Pending { transfer, arrival_clock });
        self.next_clock = self.next_clock.min(self.next_arrival());
    }

    /// Whether it has nothing to do, and no read that is done waits to be taken.
    #[inline]
    pub(crate) fn is_quiet(&self) -> bool {
        self.next_clock == NO_CLOCK && self.done.is_empty()
    }

    /// Runs all cycles below `until`, but not beyond the one in which the next read is done.
    #[inline]
    pub(crate) fn run(&mut self, until: Cycle) {
        let end = self.clocks.end(self.next_done().map_or(until, |done| done.min(until)));
        if self.clocks.is_before(self.next_clock, end) {
            self.run_clocks(end);
        }
    }

    fn run_clocks(&mut self, mut end: End) {
        while self.clocks.is_before(self.next_clock, end) {
            let arrival = self.next_arrival();
            // A transfer can be chosen in the clock in which it arrives.
            if arrival <= self.controller.next_command()
                && let Some(pending) = self.pipe.pop_front()
            {
                self.controller.take(arrival, pending);
            } else if let Some((clock, tag)) = self.controller.give_command() {
                let cycle = self.clocks.cycle_after(clock);
                self.done.push_back((cycle, tag));
                end = end.min(self.clocks.end(cycle));
            }
            self.next_clock = self.next_arrival().min(self.controller.next_command());
        }
    }

    /// The next cycle in which it gives a command or takes a transfer, if it has any.
    pub(crate) fn next_event(&self) -> Option<Cycle> {
        (self.next_clock < NO_CLOCK).then(|| self.clocks.cycle_of(self.next_clock))
    }

    /// The cycle in which the next read is done, as far as is known: when its last data was on the bus.
    #[inline]
    pub(crate) fn next_done(&self) -> Option<Cycle> {
        self.done.front().map(|&(cycle, _)| cycle)
    }

    /// Takes the next read that is done; returns its tag.
    #[inline]
    pub(crate) fn take_done(&mut self) -> Option<u32> {
        self.done.pop_front().map(|(_, tag)| tag)
    }

    pub(crate) fn stats(&self) -> &DramStats {
        &self.controller.stats
    }

    /// The clock in which the controller takes a transfer from the pipe.
    #[inline]
    fn next_arrival(&self) -> u64 {
        match self.pipe.front() {
            Some(first) => self.controller.next_taking().max(first.arrival_clock),
            None => NO_CLOCK,
        }
    }
}
