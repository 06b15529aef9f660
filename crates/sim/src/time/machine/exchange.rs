//! The exchange between two windows: requests that slices served read and change memory, and messages cross the network
//! in a fixed order, which makes runs the same on any number of host threads.

use super::*;
use crate::exec::locks::holders::is_exclusive;
use crate::exec::memory::access::MemoryOp;
use crate::kit::ids::ProbeId;
use crate::kit::lane_mask::LaneMask;
use crate::time::sm::load_store::messages::Flight;
use crate::time::sm::load_store::transfer::Transfer;

impl<const N: usize, P: Probe> Machine<'_, N, P> {
    /// Ends a window at `until`: moves the bytes of served requests, and the messages of the window.
    pub(super) fn exchange(&mut self, until: Cycle, crew: &Crew<Share<N, P>>) {
        self.exchanged = until;
        let memory_lock = self.memory;
        let mut memory = memory_lock.write().expect(NO_PANIC);
        let mut changed = false;
        if P::WATCHES_MEMORY && !self.cut_off {
            self.sms.iter_mut().for_each(|sm| sm.probe.window_ended());
        }
        if self.coherence.is_some() {
            changed |= self.serve_coherent(&mut memory, until);
        }
        let has_errands = self.has_errands();
        self.take_served(!has_errands);
        if has_errands {
            self.requests.sent = self.noticed.take_requests();
            self.give_errands(until, crew);
        }
        if self.apart {
            self.bring_near();
        }
        changed |= self.serve_all(&mut memory, until, !changed);
        if self.clusters.is_some() {
            self.exchange_clusters(until);
        }
        if let Some(shared) = &self.context.launch.chip.fetch.shared {
            self.exchange_lines(shared.sms, until);
        }
        self.leave_lock_queues(until, &memory);
        if self.coherence.is_some() || self.clusters.is_some() {
            // Messages of this exchange may have had effects in SMs.
            self.sms.iter_mut().for_each(|sm| self.noticed.look(sm));
        }
        changed |= self.noticed.changed;
        self.any_fault |= self.noticed.fault;
        if has_errands {
            self.take_back_errands(until, crew);
        } else {
            changed |= self.cross_alone(&mut memory, until);
        }
        self.noticed.give_back(std::mem::take(&mut self.requests.sent));
        self.requests.tell_sms(&mut self.sms);
        let all = self.coherence.as_mut().is_some_and(|coherence| coherence.take_moved());
        let (replies, coherence) = (&mut self.replies.network, self.coherence.as_deref());
        self.requests.tell_slices(&mut self.partitions, replies, coherence, (until, all));
        if changed {
            self.quiet_since = until;
        }
    }

    /// Moves messages through the network. Returns whether anything was changed on the way.
    fn cross_alone(&mut self, memory: &mut Memory, until: Cycle) -> bool {
        let mut changed = false;
        self.requests.sent = self.noticed.take_requests();
        if self.aggregator.is_none() && self.coherence.is_none() {
            self.requests.cross(&mut self.partitions, until);
        } else {
            self.requests.pass_on(&mut self.partitions, until);
            self.requests.send();
            changed |= self.exchange_with_firmware(memory);
            if self.coherence.is_some() {
                changed |= self.exchange_coherent(memory, until);
            } else {
                self.requests.advance(&mut self.partitions, until);
            }
            self.requests.count_entries(&mut self.partitions);
        }
        let (nodes, sms) = (self.nodes, &mut self.sms);
        let (aggregator, coherence) = (&mut self.aggregator, &mut self.coherence);
        self.replies.cross_to(until, |port, arrival, reply| {
            Self::deliver(sms, aggregator, coherence, (nodes.node(port), arrival), reply);
        });
        if let Some(aggregator) = &mut self.aggregator {
            aggregator.set_room(self.requests.network.room(self.nodes.port(Node::Aggregator)), until);
        }
        changed
    }

    /// Takes what slices have served in the window. The answers join the network, `now` or when replies cross it.
    fn take_served(&mut self, now: bool) {
        let slices = self.side.routes.slices as usize;
        let busy = &mut self.requests.busy;
        self.noticed.partitions.drain(..).for_each(|partition| busy.mark(partition));
        busy.sort();
        for place in 0..busy.len() {
            let partition = busy.number(place);
            let of_partition = &mut self.partitions[partition].served;
            for served in of_partition.iter() {
                self.replies.answer(partition * slices + served.slice as usize, served, now);
                self.served.push((served.cycle, served.request.from, served.request.ticket));
            }
            of_partition.clear();
        }
    }

    /// Requests that slices have served read and change memory. Returns whether any has changed it; it need not be
    /// found out without `notice`.
    fn serve_all(&mut self, memory: &mut Memory, until: Cycle, notice: bool) -> bool {
        let mut changed = false;
        let mut served = std::mem::take(&mut self.served);
        for (cycle, from, ticket) in served.drain(..) {
            let Node::Sm(id) = from else {
                let aggregator = self.aggregator.as_mut().expect("it sent the request");
                changed |= aggregator.serve(ticket, memory);
                continue;
            };
            let sm = &mut self.sms[id as usize];
            let lanes = serve(sm, memory, &mut self.locks, ticket, notice && !changed);
            changed |= !lanes.is_empty();
            if P::WATCHES_MEMORY && !self.cut_off {
                sm.show_served(ticket, lanes, cycle);
            }
            if let Some(queues) = self.lock_queues.as_deref_mut().filter(|_| !self.cut_off) {
                let arrival = until.max(cycle + self.window);
                queues.grant_at(arrival);
                lock_queues::served(queues, sm, &self.context, memory, (ticket, lanes), until);
                lock_queues::deliver_grants(queues, &mut self.sms, arrival);
            }
        }
        self.served = served;
        changed
    }

    /// Reads what this exchange will use of SMs that other threads have run. Each line comes from another processor's
    /// cache, and they come at the same time if none has to be known to find the next.
    fn bring_near(&self) {
        let served = || {
            self.served.iter().filter_map(|&(_, from, ticket)| match from {
                Node::Sm(id) => Some((&self.sms[id as usize], ticket)),
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
