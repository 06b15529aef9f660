//! The machine where L1s are coherent: carries out what the directory decides.
//!
//! Requests for coherent lines stop at the directory beside their slice. Answers and probes leave by the slice's port
//! of the reply network, in the order in which the directory makes them. Responses have a separate network, so that
//! requests in front of a slice cannot keep them from arriving.

use std::collections::VecDeque;

use warploom_isa::Op;

use super::exchange::serve;
use super::*;
use crate::chip::timing::{Coherence as Protocol, InterconnectSpec};
use crate::exec::locks::holders::is_exclusive;
use crate::exec::memory::store::GLOBAL_BASE;
use crate::kit::ids::{ProbeId, ResponseId};
use crate::kit::line::LineAddress;
use crate::kit::slab::Slab;
use crate::time::directory::{Action, Directory, DirectoryStats, Given, Probe as LineProbe, Source};
use crate::time::network::message::{Asks, RequestKind};
use crate::time::sm::front_end::decode::SpinRole;
use crate::time::sm::load_store::coherent::Update;

/// Addresses from here on are those of code, local memory and constants, which are not kept coherent.
const END_OF_GLOBAL: u64 = 1 << 48;

/// The queue length of a network whose packets are never held up at their sender.
const MANY_PACKETS: u32 = 1 << 20;

/// A message from a slice's port to a node.
#[derive(Clone, Copy, Debug)]
struct Leaving {
    at: Cycle,
    node: Node,
    bytes: u32,
    reply: Reply,
}

/// The response of an L1 to a probe: the line, and its bytes if the L1 owned it.
type Response = (LineAddress, Option<Box<Given>>);

/// The directory, and the messages in flight from and to it.
#[derive(Debug)]
pub(crate) struct Coherence {
    directory: Directory,
    /// By port: messages that have not been handed to the reply network.
    leaving: Vec<VecDeque<Leaving>>,
    /// How many those are, and whether any has come or gone since somebody asked.
    waiting: usize,
    moved: bool,
    /// By port: requests that have not been handed to the slice.
    forwards: Vec<VecDeque<(Cycle, Request)>>,
    /// By port: when the last message left, and when the last request was handed over.
    last: Vec<[Cycle; 2]>,
    responses: Crossbar<ResponseId>,
    /// Probes in flight.
    pub(super) probes: Slab<ProbeId, LineProbe>,
    /// Responses in flight.
    given: Slab<ResponseId, Response>,
    line_bytes: u32,
    queue_packets: u32,
}

impl Coherence {
    /// `None` for a chip whose L1s are not coherent.
    pub(crate) fn new(chip: &Chip, nodes: NodePorts, senders: usize, ports: usize) -> Option<Box<Coherence>> {
        if chip.l1.coherence != Protocol::Moesi {
            return None;
        }
        Some(Box::new(Coherence {
            directory: Directory::new(chip.l2.latency_cycles as u64, nodes),
            leaving: vec![VecDeque::new(); ports],
            waiting: 0,
            moved: true,
            forwards: vec![VecDeque::new(); ports],
            last: vec![[Cycle(0); 2]; ports],
            responses: Crossbar::new(senders, ports, &roomy(&chip.interconnect), &chip.clock),
            probes: Slab::default(),
            given: Slab::default(),
            line_bytes: chip.l2.cache.line_bytes,
            queue_packets: chip.interconnect.queue_packets,
        }))
    }

    /// The next cycle in which a message is due.
    pub(crate) fn next_event(&self) -> Option<Cycle> {
        let leaving = self.leaving.iter().filter_map(|queue| queue.front()).map(|leaving| leaving.at);
        let forwards = self.forwards.iter().filter_map(|queue| queue.front()).map(|&(at, _)| at);
        leaving.chain(forwards).chain(self.responses.next_event()).min()
    }

    /// Whether messages for the reply network have come or gone since the last call.
    pub(super) fn take_moved(&mut self) -> bool {
        std::mem::take(&mut self.moved)
    }

    pub(crate) fn stats(&self) -> DirectoryStats {
        self.directory.stats.clone()
    }
}

/// The reply network of a chip. With coherent L1s, its messages are never held up at their sender.
pub(crate) fn reply_network(chip: &Chip) -> InterconnectSpec {
    match chip.l1.coherence {
        Protocol::Moesi => roomy(&chip.interconnect),
        Protocol::None => chip.interconnect.clone(),
    }
}

fn roomy(spec: &InterconnectSpec) -> InterconnectSpec {
    InterconnectSpec { queue_packets: MANY_PACKETS, ..spec.clone() }
}

fn is_coherent(line: LineAddress) -> bool {
    (GLOBAL_BASE..END_OF_GLOBAL).contains(&line.0)
}

impl<const N: usize, P: Probe> Machine<'_, N, P> {
    /// Handles the requests that slices served in the window that ended at `until`. Returns whether memory changed.
    pub(crate) fn serve_coherent(&mut self, memory: &mut Memory, until: Cycle) -> bool {
        let slices = self.side.routes.slices as usize;
        let mut changed = false;
        for partition in 0..self.partitions.len() {
            let mut served = std::mem::take(&mut self.partitions[partition].served);
            for served in served.drain(..) {
                let port = partition * slices + served.slice as usize;
                if is_coherent(served.request.line) {
                    let coherence = self.coherence.as_mut().expect("L1s are coherent");
                    coherence.directory.served(served.cycle, &served.request);
                    changed |= self.carry_out(memory);
                } else {
                    changed |= self.answer(
                        memory,
                        served.cycle,
                        &served.request,
                        served.request.reply_bytes(),
                        port,
                    );
                }
            }
            self.partitions[partition].served = served;
        }
        let coherence = self.coherence.as_mut().expect("L1s are coherent");
        if coherence.waiting == 0 {
            return changed;
        }
        coherence.moved = true;
        for (port, queue) in coherence.leaving.iter_mut().enumerate() {
            while let Some(&Leaving { at, node, bytes, reply }) = queue.front().filter(|l| l.at < until) {
                queue.pop_front();
                coherence.waiting -= 1;
                let last = &mut coherence.last[port][0];
                *last = at.max(*last);
                self.replies.network.inject(port, *last, self.nodes.port(node), bytes, reply);
            }
        }
        changed
    }

    /// Moves the bytes of a request, and its answer leaves. Returns whether memory changed.
    fn answer(&mut self, memory: &mut Memory, at: Cycle, request: &Request, bytes: u32, port: usize) -> bool {
        let changed = match request.from {
            Node::Aggregator => {
                let aggregator = self.aggregator.as_mut().expect("it sent the request");
                aggregator.serve(request.ticket, memory)
            }
            Node::Sm(id) => {
                let sm = &mut self.sms[id as usize];
                let lanes = serve(sm, memory, &mut self.locks, request.ticket, true);
                if P::WATCHES_MEMORY && !self.cut_off {
                    sm.show_served(request.ticket, lanes, at);
                }
                !lanes.is_empty()
            }
        };
        self.leave(port, at, request.from, bytes, Reply::Answer(request.ticket));
        changed
    }

    fn leave(&mut self, port: usize, at: Cycle, node: Node, bytes: u32, reply: Reply) {
        let coherence = self.coherence.as_mut().expect("L1s are coherent");
        (coherence.waiting, coherence.moved) = (coherence.waiting + 1, true);
        let queue = &mut coherence.leaving[port];
        // Messages of a port keep their order.
        let at = queue.back().map_or(at, |last| last.at.max(at));
        queue.push_back(Leaving { at, node, bytes, reply });
    }

    /// Carries out the actions of the directory. Returns whether memory changed.
    fn carry_out(&mut self, memory: &mut Memory) -> bool {
        let mut changed = false;
        let coherence = self.coherence.as_mut().expect("L1s are coherent");
        let line_bytes = coherence.line_bytes;
        for action in std::mem::take(&mut coherence.directory.actions) {
            match action {
                Action::Forward { at, request } => {
                    let port = self.side.routes.port(request.line);
                    let coherence = self.coherence.as_mut().expect("L1s are coherent");
                    coherence.forwards[port].push_back((at, request));
                }
                Action::Probe { at, node, probe } => {
                    let port = self.side.routes.port(probe.line);
                    let coherence = self.coherence.as_mut().expect("L1s are coherent");
                    let id = coherence.probes.put(probe);
                    self.leave(port, at, node, 0, Reply::Probe(id));
                }
                Action::Write { line, given } => {
                    memory.write_line(line.0, &given.bytes[..line_bytes as usize], given.written);
                }
                Action::Keep { request } => match request.from {
                    Node::Aggregator => {
                        self.aggregator.as_mut().expect("it sent the request").serve(request.ticket, memory);
                    }
                    Node::Sm(sm) => {
                        self.sms[sm as usize].memory.serve(request.ticket, memory);
                    }
                },
                Action::Answer { at, request, grant, given, source } => {
                    let port = self.side.routes.port(request.line);
                    let Some(grant) = grant else {
                        if request.asks == Asks::GiveBack {
                            self.leave(port, at, request.from, 0, Reply::Answer(request.ticket));
                        } else {
                            if let (Some(given), RequestKind::Read) = (&given, request.kind) {
                                // A read that keeps nothing reads memory, which first gets the owner's bytes.
                                memory.write_line(
                                    request.line.0,
                                    &given.bytes[..line_bytes as usize],
                                    given.written,
                                );
                            }
                            changed |= self.answer(memory, at, &request, request.reply_bytes(), port);
                        }
                        continue;
                    };
                    let comes = source != Source::Asker;
                    let bytes = if comes { line_bytes } else { 0 };
                    let given = given.as_deref();
                    match request.from {
                        Node::Aggregator => {
                            let aggregator = self.aggregator.as_mut().expect("it sent the request");
                            aggregator.granted(request.ticket, grant, given, comes, memory);
                        }
                        Node::Sm(sm) => {
                            self.sms[sm as usize].memory.granted(request.ticket, grant, given, comes, memory);
                        }
                    }
                    self.leave(port, at, request.from, bytes, Reply::Answer(request.ticket));
                }
            }
        }
        changed
    }

    /// Moves requests and responses through the network to the directory, and from there to the slices. Returns whether
    /// memory changed.
    pub(crate) fn exchange_coherent(&mut self, memory: &mut Memory, until: Cycle) -> bool {
        let mut changed = false;
        let nodes = self.nodes;
        let coherence = self.coherence.as_mut().expect("L1s are coherent");
        let mut send = |node: Node, at: Cycle, line: LineAddress, given: Option<Box<Given>>| {
            let bytes = if given.is_some() { coherence.line_bytes } else { 0 };
            let response = coherence.given.put((line, given));
            coherence.responses.inject(nodes.port(node), at, self.side.routes.port(line), bytes, response);
        };
        for at in 0..self.sms.count() {
            let id = self.sms.number(at);
            let sm = &mut self.sms[id];
            if !sm.memory.updates.is_empty() {
                let updates = std::mem::take(&mut sm.memory.updates);
                let shown = P::WATCHES_MEMORY && !self.cut_off;
                sm.memory.updates = report(sm, &self.context, &mut self.locks, updates, shown);
            }
            let unit = &mut sm.memory;
            changed |= std::mem::take(&mut unit.stored);
            let responses = unit.responses.drain(..);
            responses.for_each(|(at, line, given)| send(Node::Sm(id as u16), at, line, given));
        }
        if let Some(aggregator) = &mut self.aggregator {
            let responses = aggregator.responses().drain(..);
            responses.for_each(|(at, line, given)| send(Node::Aggregator, at, line, given));
        }
        let routes = Arc::clone(&self.side.routes);
        let place = |port| routes.place(port);
        let mut arrived: Vec<(Cycle, Request)> = Vec::new();
        let (partitions, forwards) =
            (&self.partitions, &self.coherence.as_ref().expect("L1s are coherent").forwards);
        self.requests.network.advance(
            until,
            |port| {
                let (partition, slice) = place(port);
                partitions[partition].room(slice).saturating_sub(forwards[port].len() as u32)
            },
            |_, arrival, &request| arrived.push((arrival, request)),
        );
        for (arrival, request) in arrived {
            let coherence = self.coherence.as_mut().expect("L1s are coherent");
            if is_coherent(request.line) {
                coherence.directory.accept(arrival, request);
                changed |= self.carry_out(memory);
            } else {
                let port = self.side.routes.port(request.line);
                coherence.forwards[port].push_back((arrival, request));
            }
        }
        let mut responses = Vec::new();
        let coherence = self.coherence.as_mut().expect("L1s are coherent");
        coherence.responses.advance(
            until,
            |_| u32::MAX,
            |_, arrival, &response| responses.push((arrival, response)),
        );
        for (arrival, response) in responses {
            let coherence = self.coherence.as_mut().expect("L1s are coherent");
            let (line, given) = std::mem::take(&mut coherence.given[response]);
            coherence.given.give_back(response);
            coherence.directory.respond(arrival, line, given);
            changed |= self.carry_out(memory);
        }
        let coherence = self.coherence.as_mut().expect("L1s are coherent");
        for (port, queue) in coherence.forwards.iter_mut().enumerate() {
            let (partition, slice) = place(port);
            let partition = &mut self.partitions[partition];
            while partition.room(slice) > 0
                && let Some((at, request)) = queue.pop_front()
            {
                let last = &mut coherence.last[port][1];
                *last = at.max(*last).max(until);
                partition.accept(slice, *last, &request);
            }
        }
        changed
    }

    /// Writes dirty lines of coherent L1s to memory, without taking time: the host is about to read it.
    pub(crate) fn show_host(&mut self) {
        if self.coherence.is_none() {
            return;
        }
        let mut memory = self.memory.write().expect(NO_PANIC);
        self.sms.iter().for_each(|sm| sm.memory.show_host(&mut memory));
        if let Some(aggregator) = &self.aggregator {
            aggregator.show_host(&mut memory);
        }
    }
}

/// Reports what lanes did to words in the L1 of an SM. Returns the empty list.
fn report<const N: usize, P: Probe>(
    sm: &mut Sm<N, P>,
    context: &Context<'_>,
    locks: &mut LockTable,
    mut updates: Vec<Update<N>>,
    shown: bool,
) -> Vec<Update<N>> {
    for update in updates.drain(..) {
        let code = context.of(sm.kernel_of(update.slot)).code;
        if update.atomic && code[update.pc.index()].spin == Some(SpinRole::Poll) {
            let op = context.of(sm.kernel_of(update.slot)).launch.kernel.code[update.pc.index()].op;
            let exclusive = matches!(op, Op::Atom(op, _) if is_exclusive(op));
            let who = (sm.who(update.slot), update.pc, exclusive);
            let lanes = (update.lanes, update.changed);
            locks.tried(who, &update.addresses, lanes, |lane| update.change(lane), |address| address);
        }
        let (who, lanes) = ((sm.who(update.slot), update.pc), update.lanes & update.changed);
        if !update.atomic {
            locks.stored(who, &update.addresses, lanes, |address| address);
        } else if code[update.pc.index()].spin != Some(SpinRole::Poll) {
            locks.changed(who, &update.addresses, lanes, |lane| update.change(lane), |address| address);
        }
        if shown {
            sm.show_update(context, &update);
        }
    }
    updates
}
/// How many replies the slice at a port may send in the next window.
#[inline]
pub(super) fn reply_room(replies: &Crossbar<Reply>, coherence: Option<&Coherence>, port: usize) -> u32 {
    let room = replies.room(port);
    let Some(coherence) = coherence else { return room };
    let waiting = MANY_PACKETS - room + coherence.leaving[port].len() as u32;
    coherence.queue_packets.saturating_sub(waiting)
}
