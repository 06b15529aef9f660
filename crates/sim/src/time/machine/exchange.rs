//! The exchange between two windows: what slices served is done to memory, and messages cross the network in a fixed
//! order, which makes runs the same on any number of host threads.

use super::*;
use crate::time::sm::load_store::coherent::PROBE;

impl<const N: usize, P: Probe> Machine<'_, N, P> {
    /// Does to memory what was served, and moves the messages of a window that ended at `until`.
    pub(super) fn exchange(&mut self, until: u64) {
        self.exchanged = until;
        let slices = self.side.slices;
        let mut memory = self.memory.write().expect(NO_PANIC);
        let mut changed = false;
        if self.coherence.is_some() {
            changed |= self.serve_coherent(&mut memory, until);
        }
        for partition in 0..self.partitions.len() {
            for served in self.partitions[partition].served.drain(..) {
                let request = served.request;
                if request.sm as usize == self.sms.len() {
                    let aggregator = self.aggregator.as_mut().expect("nobody else has this number");
                    changed |= aggregator.serve(request.ticket, &mut memory);
                    let port = partition * slices as usize + served.slice as usize;
                    let node = self.sms.len();
                    self.replies.inject(port, served.cycle, node, request.reply_bytes(), request.ticket);
                    continue;
                }
                let sm = &mut self.sms[request.sm as usize];
                let lanes = serve(sm, &mut memory, &mut self.locks, request.ticket, !changed);
                changed |= lanes != 0;
                if P::WATCHES_MEMORY && !self.cut_off {
                    sm.show_served(&self.context, request.ticket, lanes, served.cycle);
                }
                if let Some(queues) = self.lock_queues.as_deref_mut().filter(|_| !self.cut_off) {
                    let arrival = until.max(served.cycle + self.window);
                    queues.grant_at(arrival);
                    let what = (request.ticket, lanes);
                    lock_queues::served(queues, sm, &self.context, &memory, what, until);
                    let grants = queues.take_grants();
                    grants.for_each(|lane| self.sms[lane.sm as usize].grant(arrival, lane.slot, lane.lane));
                }
                let port = partition * slices as usize + served.slice as usize;
                let (node, bytes) = (request.sm as usize, request.reply_bytes());
                self.replies.inject(port, served.cycle, node, bytes, request.ticket);
            }
        }
        self.leave_lock_queues(until, &memory);
        for id in 0..self.sms.len() {
            let sm = &mut self.sms[id];
            // What it sent has taken up the room that it was told of.
            if !sm.memory.outbox.is_empty() {
                self.told_room[id] = None;
            }
            for (at, request) in &sm.memory.outbox {
                let port = self.side.port(request.line);
                self.requests.inject(id, *at, port, request.request_bytes(), *request);
            }
            sm.memory.outbox.clear();
            changed |= std::mem::take(&mut sm.changed);
        }
        changed |= self.exchange_with_firmware(&mut memory);
        if self.coherence.is_some() {
            changed |= self.exchange_coherent(&mut memory, until);
        } else {
            self.advance_requests(until);
        }
        let (sms, aggregator, coherence) = (&mut self.sms, &mut self.aggregator, &mut self.coherence);
        self.replies.advance(
            until,
            |_| u32::MAX,
            |node, arrival, &reply| Self::deliver(sms, aggregator, coherence, (node, arrival), reply),
        );
        if let Some(aggregator) = &mut self.aggregator {
            aggregator.set_room(self.requests.room(self.sms.len()), until);
        }
        for id in 0..self.sms.len() {
            let room = self.requests.room(id);
            if self.told_room[id] != Some(room) {
                self.told_room[id] = Some(room);
                self.sms[id].set_room(room);
            }
        }
        for partition in 0..self.partitions.len() {
            for slice in 0..slices {
                let port = partition * slices as usize + slice as usize;
                let room = self.reply_room(port);
                self.partitions[partition].set_reply_room(slice, until, room);
            }
        }
        if changed {
            self.quiet_since = until;
        }
    }

    /// Moves requests through the network to the slices.
    fn advance_requests(&mut self, until: u64) {
        let partitions = std::cell::RefCell::new(&mut self.partitions);
        // Slices of a partition are a power of two.
        let (shift, low) = (self.side.slices.trailing_zeros(), self.side.slices - 1);
        let place = |port: usize| (port >> shift, port as u32 & low);
        self.requests.advance(
            until,
            |port| {
                let (partition, slice) = place(port);
                partitions.borrow()[partition].room(slice)
            },
            |port, arrival, request| {
                let (partition, slice) = place(port);
                partitions.borrow_mut()[partition].accept(slice, arrival, request);
            },
        );
    }

    /// A message from a slice arrives at a node.
    #[inline]
    fn deliver(
        sms: &mut Dealt<Sm<N, (SmStats, P)>>,
        aggregator: &mut Option<Unit<'_>>,
        coherence: &mut Option<Box<Coherence>>,
        (node, arrival): (usize, u64),
        reply: Reply,
    ) {
        if reply & PROBE != 0 {
            let coherence = coherence.as_mut().expect("L1s are coherent");
            Self::deliver_probe(sms, aggregator, coherence, (node, arrival), reply & !PROBE);
        } else if node < sms.len() {
            sms[node].receive(arrival, reply);
        } else {
            aggregator.as_mut().expect("nobody else has this number").receive(arrival, reply);
        }
    }

    fn deliver_probe(
        sms: &mut Dealt<Sm<N, (SmStats, P)>>,
        aggregator: &mut Option<Unit<'_>>,
        coherence: &mut Coherence,
        (node, arrival): (usize, u64),
        number: u32,
    ) {
        let probe = coherence.probes[number];
        coherence.probes.give_back(number);
        match aggregator {
            Some(aggregator) if node == sms.len() => aggregator.receive_probe(arrival, probe),
            _ => {
                let number = sms[node].memory.put_probe(probe);
                sms[node].receive(arrival, number);
            }
        }
    }
}

/// A slice serves a message of an SM: bytes move. Returns the lanes that changed memory (of a store, whether any did).
pub(super) fn serve<const N: usize, P: Probe>(
    sm: &mut Sm<N, P>,
    memory: &mut Memory,
    locks: &mut LockTable,
    ticket: u32,
    notice: bool,
) -> u64 {
    let changed = sm.memory.serve(ticket, memory, notice);
    let flight = &sm.memory.flights[ticket];
    if flight.purpose == Purpose::Atomic {
        let (id, lanes) = flight.waiting[0];
        let transfer = &sm.memory.transfers[id];
        if transfer.polls {
            let who = (transfer.who, transfer.pc);
            locks.tried(who, &transfer.addresses, (lanes, changed), |address| address);
        }
    }
    changed
}
