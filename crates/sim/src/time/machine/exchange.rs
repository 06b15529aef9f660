//! The exchange between two windows: requests that slices served read and change memory, and messages cross the network
//! in a fixed order, which makes runs the same on any number of host threads.

use super::*;
use crate::exec::locks::holders::is_exclusive;
use crate::exec::memory::access::MemoryOp;
use crate::kit::ids::{ProbeId, Ticket};
use crate::kit::lane_mask::LaneMask;
use crate::time::l2::Role;
use crate::time::sm::load_store::messages::Flight;
use crate::time::sm::load_store::transfer::Transfer;

impl<const N: usize, P: Probe> Machine<'_, N, P> {
    /// Ends a window at `until`: moves the bytes of served requests, and the messages of the window.
    pub(super) fn exchange(&mut self, until: Cycle) {
        self.exchanged = until;
        let slices = self.side.slices;
        let mut memory = self.memory.write().expect(NO_PANIC);
        let mut changed = false;
        if P::WATCHES_MEMORY && !self.cut_off {
            self.sms.iter_mut().for_each(|sm| sm.probe.window_ended());
        }
        if self.coherence.is_some() {
            changed |= self.serve_coherent(&mut memory, until);
        }
        self.noticed.partitions.drain(..).for_each(|partition| self.busy.mark(partition));
        self.busy.sort();
        if self.apart {
            self.bring_near();
        }
        for place in 0..self.busy.len() {
            let partition = self.busy.number(place);
            let mut served = std::mem::take(&mut self.partitions[partition].served);
            for served in &served {
                let request = &served.request;
                match request.from {
                    Node::Aggregator => {
                        let aggregator = self.aggregator.as_mut().expect("it sent the request");
                        changed |= aggregator.serve(request.ticket, &mut memory);
                    }
                    Node::Sm(id) => {
                        let sm = &mut self.sms[id as usize];
                        let lanes = serve(sm, &mut memory, &mut self.locks, request.ticket, !changed);
                        changed |= !lanes.is_empty();
                        if P::WATCHES_MEMORY && !self.cut_off {
                            sm.show_served(request.ticket, lanes, served.cycle);
                        }
                        if let Some(queues) = self.lock_queues.as_deref_mut().filter(|_| !self.cut_off) {
                            let arrival = until.max(served.cycle + self.window);
                            queues.grant_at(arrival);
                            let what = (request.ticket, lanes);
                            lock_queues::served(queues, sm, &self.context, &memory, what, until);
                            lock_queues::deliver_grants(queues, &mut self.sms, arrival);
                        }
                    }
                }
                let port = partition * slices as usize + served.slice as usize;
                let (sink, bytes) = (self.nodes.port(request.from), request.reply_bytes());
                let answer = if served.far { Reply::FarAnswer } else { Reply::Answer };
                self.replies.inject(port, served.cycle, sink, bytes, answer(request.ticket));
            }
            served.clear();
            self.partitions[partition].served = served;
        }
        if self.clusters.is_some() {
            self.exchange_clusters(until);
        }
        if let Some(shared) = &self.context.launch.chip.fetch.shared {
            self.exchange_lines(shared.sms, until);
        }
        self.pass_on(until);
        self.leave_lock_queues(until, &memory);
        if self.coherence.is_some() || self.clusters.is_some() {
            // Messages of this exchange may have had effects in SMs.
            self.sms.iter_mut().for_each(|sm| self.noticed.look(sm));
        }
        changed |= self.noticed.changed;
        self.any_fault |= self.noticed.fault;
        let mut requests = self.noticed.take_requests();
        self.send_requests(&mut requests);
        requests.clear();
        self.noticed.requests = requests;
        changed |= self.exchange_with_firmware(&mut memory);
        if self.coherence.is_some() {
            changed |= self.exchange_coherent(&mut memory, until);
        } else {
            self.advance_requests(until);
        }
        if self.atomic_window > 0 {
            for place in 0..self.busy.len() {
                for node in self.partitions[self.busy.number(place)].take_entered() {
                    if let Node::Sm(sm) = node {
                        self.atomics[sm as usize] -= 1;
                    }
                }
            }
        }
        let (nodes, sms, far) = (self.nodes, &mut self.sms, self.side.far_cycles);
        let (aggregator, coherence) = (&mut self.aggregator, &mut self.coherence);
        let (post, later) = (&mut self.post, self.apart && coherence.is_none());
        self.replies.advance(
            until,
            |_| u32::MAX,
            |sink, arrival, &reply| {
                let arrival = if let Reply::FarAnswer(_) = reply { arrival + far } else { arrival };
                match nodes.node(sink) {
                    Node::Sm(sm) if later => post.put(sms.owner(sm.into()), (sm.into(), arrival, reply)),
                    node => Self::deliver(sms, aggregator, coherence, (node, arrival), reply),
                }
            },
        );
        if let Some(aggregator) = &mut self.aggregator {
            aggregator.set_room(self.requests.room(self.nodes.port(Node::Aggregator)), until);
        }
        for at in 0..self.sms.count() {
            let id = self.sms.number(at);
            let atomics = match self.atomic_window {
                0 => u32::MAX,
                window => window.saturating_sub(self.atomics[id]),
            };
            let room = Room { packets: self.requests.room(id), atomics };
            if self.told_room[id] != Some(room) {
                self.told_room[id] = Some(room);
                self.sms[id].set_room(room);
            }
        }
        self.tell_partitions(until);
        if changed {
            self.quiet_since = until;
        }
    }

    /// Reads what this exchange will use of SMs that other threads have run. Each line comes from another processor's
    /// cache, and they come at the same time if none has to be known to find the next.
    fn bring_near(&self) {
        let served = || {
            let busy = (0..self.busy.len()).map(|place| &self.partitions[self.busy.number(place)]);
            busy.flat_map(|partition| &partition.served).filter_map(|served| match served.request.from {
                Node::Sm(id) => Some((&self.sms[id as usize], served.request.ticket)),
                Node::Aggregator => None,
            })
        };
        let flights = served().map(|(sm, ticket)| {
            let Flight { line, written, .. } = &sm.memory.flights[ticket];
            (line.0, *written as u64, sm.wakes_at().0)
        });
        std::hint::black_box(flights.fold(0, |sum, (a, b, c)| sum ^ a ^ b ^ c));
        let transfers = served().filter_map(|(sm, ticket)| {
            let &(id, lanes) = sm.memory.flights[ticket].waiting.first()?;
            let Transfer { pending, access, .. } = &sm.memory.transfers[id];
            Some((
                u64::from(pending.outstanding),
                u64::from(access.pc.0),
                access.addresses.at(lanes.lowest()),
            ))
        });
        std::hint::black_box(transfers.fold(0, |sum, (a, b, c)| sum ^ a ^ b ^ c));
    }

    /// SMs that share an instruction cache learn of each other's lines.
    fn exchange_lines(&mut self, sharers: u32, until: Cycle) {
        for at in 0..self.sms.count() {
            let from = self.sms.number(at);
            let news = self.sms[from].fetch.take_news();
            if news.is_empty() {
                continue;
            }
            let group = from as u32 / sharers;
            for sm in self.sms.iter_mut().filter(|sm| sm.id() / sharers == group && sm.id() != from as u32) {
                sm.hear_of_lines(&news, until);
            }
        }
    }

    /// Tells partitions what room they have for replies and for requests to their twins, where that may have changed.
    fn tell_partitions(&mut self, until: Cycle) {
        let slices = self.side.slices;
        let has_twins = self.side.far_cycles > 0;
        let answers_moved = self.coherence.as_mut().is_some_and(|coherence| coherence.take_moved());
        // A partition and its twin follow each other.
        let together = 1 + usize::from(has_twins);
        for first in (0..self.partitions.len()).step_by(together) {
            let pair = first..first + together;
            let touched = pair.clone().any(|at| self.busy.contains(at));
            let ports = first * slices as usize..pair.end * slices as usize;
            if !self.replies.take_moved(ports) && !touched && !answers_moved {
                continue;
            }
            for partition in pair {
                for slice in 0..slices {
                    let room = self.reply_room(partition * slices as usize + slice as usize);
                    self.partitions[partition].set_reply_room(slice, until, room);
                    if has_twins {
                        let room = self.partitions[partition ^ 1].room_for_twin(slice);
                        self.partitions[partition].set_twin_room(slice, until, room);
                    }
                }
            }
        }
        self.busy.clear();
    }

    /// Hands the requests of SMs, which come SM by SM, to the network in the order in which they leave the ports.
    fn send_requests(&mut self, requests: &mut [(Cycle, Request)]) {
        let Some(mut ports) = self.shared_ports.take() else {
            return requests.iter_mut().for_each(|(at, request)| self.send(*at, request));
        };
        let sharers = ports.sms();
        let port_of = |request: &Request| request.from.number() / sharers;
        for together in requests.chunk_by_mut(|(_, one), (_, other)| port_of(one) == port_of(other)) {
            let port = port_of(&together[0].1);
            if !together.is_sorted_by_key(|&(at, _)| at) {
                together.sort_by_key(|&(at, _)| at);
            }
            for (at, request) in together {
                let at = ports.pass(port, *at, request);
                self.send(at, request);
            }
        }
        self.shared_ports = Some(ports);
    }

    #[inline]
    fn send(&mut self, at: Cycle, request: &mut Request) {
        let (port, sm);
        (port, request.far) = self.side.near_port(request);
        sm = request.from.number();
        // It uses up the room that its SM knows of.
        self.told_room[sm] = None;
        if self.atomic_window > 0 {
            self.atomics[sm] += u32::from(request.is_awaited_atomic());
        }
        self.requests.inject(sm, at, port, request.request_bytes(), *request);
    }

    /// Requests for lines of the other half of the L2 cross to the slices that have them.
    fn pass_on(&mut self, until: Cycle) {
        if self.side.far_cycles == 0 {
            return;
        }
        for place in 0..self.busy.len() {
            let partition = self.busy.number(place);
            let mut passed = std::mem::take(&mut self.partitions[partition].passed);
            for passed in passed.drain(..) {
                let arrival = until.max(passed.cycle + self.side.far_cycles);
                self.partitions[partition ^ 1].accept_passed(arrival, &passed);
                self.busy.mark(partition ^ 1);
            }
            self.partitions[partition].passed = passed;
        }
    }

    /// Moves requests through the network to the slices.
    fn advance_requests(&mut self, until: Cycle) {
        let partitions = std::cell::RefCell::new(&mut self.partitions);
        // A partition has a power of two of slices.
        let (shift, low) = (self.side.slices.trailing_zeros(), self.side.slices - 1);
        let place = |port: usize| (port >> shift, port as u32 & low);
        let (floor, busy) = (&self.side.floor, &mut self.busy);
        self.requests.advance(
            until,
            |port| {
                let (partition, slice) = place(port);
                partitions.borrow()[partition].room(slice)
            },
            |port, arrival, request| {
                let (partition, slice) = place(port);
                let partitions = &mut *partitions.borrow_mut();
                let role = if request.far {
                    partitions[partition ^ 1].role_of_twin(slice, request)
                } else {
                    Role::Home
                };
                let arrival = arrival + floor.distance(request.from, port, role == Role::Pass);
                partitions[partition].accept_as(role, slice, arrival, request);
                busy.mark(partition);
            },
        );
    }

    /// A message from a slice arrives at a node.
    #[inline]
    fn deliver(
        sms: &mut Dealt<Sm<N, (SmStats, P)>>,
        aggregator: &mut Option<Unit<'_>>,
        coherence: &mut Option<Box<Coherence>>,
        (node, arrival): (Node, Cycle),
        reply: Reply,
    ) {
        match (reply, node) {
            (Reply::Probe(id), _) => {
                let coherence = coherence.as_mut().expect("L1s are coherent");
                Self::deliver_probe(sms, aggregator, coherence, (node, arrival), id);
            }
            (_, Node::Sm(sm)) => sms[sm as usize].receive(arrival, reply),
            (Reply::Answer(ticket) | Reply::FarAnswer(ticket), Node::Aggregator) => {
                aggregator.as_mut().expect("it sent a request").receive(arrival, ticket);
            }
        }
    }

    fn deliver_probe(
        sms: &mut Dealt<Sm<N, (SmStats, P)>>,
        aggregator: &mut Option<Unit<'_>>,
        coherence: &mut Coherence,
        (node, arrival): (Node, Cycle),
        id: ProbeId,
    ) {
        let probe = coherence.probes[id];
        coherence.probes.give_back(id);
        match node {
            Node::Aggregator => {
                aggregator.as_mut().expect("it has the line").receive_probe(arrival, probe);
            }
            Node::Sm(sm) => {
                let sm = &mut sms[sm as usize];
                let id = sm.memory.probes.put(probe);
                sm.receive(arrival, Reply::Probe(id));
            }
        }
    }
}

/// Moves the bytes of a request of an SM that a slice served. Returns the lanes that changed memory; for a store, not 0
/// if any did.
pub(super) fn serve<const N: usize, P: Probe>(
    sm: &mut Sm<N, P>,
    memory: &mut Memory,
    locks: &mut LockTable,
    ticket: Ticket,
    notice: bool,
) -> LaneMask {
    let unit = &mut sm.memory;
    let flight = &unit.flights[ticket];
    if !matches!(flight.purpose, Purpose::Atomic | Purpose::Store) {
        unit.serve(ticket, memory);
        return LaneMask::NONE;
    }
    let (id, lanes) = flight.waiting[0];
    let Transfer { who, pending, access, .. } = &mut unit.transfers[id];
    let MemoryOp::Atomic { op, .. } = access.kind else {
        let changed = access.store(memory, lanes, notice);
        locks.stored((*who, access.pc), &access.addresses, lanes, |address| address);
        return if changed { lanes } else { LaneMask::NONE };
    };
    let changed = access.update(memory, lanes);
    let change = |lane| access.change(lane);
    if pending.polls {
        let who = (*who, access.pc, is_exclusive(op));
        locks.tried(who, &access.addresses, (lanes, changed), change, |address| address);
    } else {
        locks.changed((*who, access.pc), &access.addresses, lanes & changed, change, |address| address);
    }
    changed
}
