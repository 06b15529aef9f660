//! The machine where L1s are coherent: carries out what the directory decides.
//!
//! Requests of coherent lines stop at the directory beside their slice. Answers and probes leave by the slice's port of the
//! reply network, in the order in which the directory makes them; responses have a network of their own, so that no
//! request in front of a slice can keep them from arriving.

use std::collections::VecDeque;

use super::exchange::serve;
use super::*;
use crate::chip::timing::{Coherence as Protocol, InterconnectSpec};
use crate::exec::memory::store::GLOBAL_BASE;
use crate::kit::slab::Slab;
use crate::time::directory::{Action, Directory, DirectoryStats, Given, Probe as LineProbe, Source};
use crate::time::network::message::RequestKind;
use crate::time::sm::front_end::decode::SpinRole;
use crate::time::sm::load_store::coherent::{PROBE, Update};

/// Addresses from here on are those of code, local memory and constants, which are not kept coherent.
const END_OF_GLOBAL: u64 = 1 << 48;

/// Packets that wait at a sender of what must not be held up.
const MANY_PACKETS: u32 = 1 << 20;

/// What a slice's port sends to a node: the number of the request that it answers, or, marked as [`PROBE`], the number of a
/// probe on its way.
pub(crate) type Reply = u32;

/// A message from a slice's port to a node.
#[derive(Clone, Copy, Debug)]
struct Leaving {
    at: u64,
    node: u16,
    bytes: u32,
    reply: Reply,
}

/// The directory and what is on its way from and to it.
#[derive(Debug)]
pub(crate) struct Coherence {
    directory: Directory,
    /// By port: what has not been handed to the reply network.
    leaving: Vec<VecDeque<Leaving>>,
    /// By port: requests that have not been handed to the slice.
    forwards: Vec<VecDeque<(u64, Request)>>,
    /// By port: when the last message left, and when the last request was handed over.
    last: Vec<[u64; 2]>,
    responses: Crossbar<u32>,
    /// Probes on their way.
    pub(super) probes: Slab<LineProbe>,
    /// Responses on their way: line and what was given.
    given: Slab<(u64, Option<Box<Given>>)>,
    line_bytes: u32,
    queue_packets: u32,
}

impl Coherence {
    /// For a chip with coherent L1s.
    pub fn new(chip: &Chip, nodes: usize, ports: usize) -> Option<Box<Coherence>> {
        if chip.l1.coherence != Protocol::Moesi {
            return None;
        }
        Some(Box::new(Coherence {
            directory: Directory::new(chip.l2.latency_cycles as u64, chip.sm.count as u16),
            leaving: vec![VecDeque::new(); ports],
            forwards: vec![VecDeque::new(); ports],
            last: vec![[0; 2]; ports],
            responses: Crossbar::new(nodes, ports, &roomy(&chip.interconnect), &chip.clock),
            probes: Slab::default(),
            given: Slab::default(),
            line_bytes: chip.l2.cache.line_bytes,
            queue_packets: chip.interconnect.queue_packets,
        }))
    }

    /// When something happens by itself.
    pub fn next_event(&self) -> Option<u64> {
        let leaving = self.leaving.iter().filter_map(|queue| queue.front()).map(|leaving| leaving.at);
        let forwards = self.forwards.iter().filter_map(|queue| queue.front()).map(|&(at, _)| at);
        leaving.chain(forwards).chain(self.responses.next_event()).min()
    }

    /// What it counted.
    pub fn stats(&self) -> DirectoryStats {
        self.directory.stats.clone()
    }
}

/// The network's numbers for the replies of a chip: with coherent L1s, the directory's are never held up.
pub(crate) fn reply_network(chip: &Chip) -> InterconnectSpec {
    match chip.l1.coherence {
        Protocol::Moesi => roomy(&chip.interconnect),
        Protocol::None => chip.interconnect.clone(),
    }
}

fn roomy(spec: &InterconnectSpec) -> InterconnectSpec {
    InterconnectSpec { queue_packets: MANY_PACKETS, ..spec.clone() }
}

fn is_coherent(line: u64) -> bool {
    (GLOBAL_BASE..END_OF_GLOBAL).contains(&line)
}

impl<const N: usize, P: Probe> Machine<'_, N, P> {
    /// Slices have served requests in the window that ended at `until`. Returns whether memory changed.
    pub(crate) fn serve_coherent(&mut self, memory: &mut Memory, until: u64) -> bool {
        let slices = self.side.slices as usize;
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
        for (port, queue) in coherence.leaving.iter_mut().enumerate() {
            while let Some(&Leaving { at, node, bytes, reply }) = queue.front().filter(|l| l.at < until) {
                queue.pop_front();
                let last = &mut coherence.last[port][0];
                *last = at.max(*last);
                self.replies.inject(port, *last, node as usize, bytes, reply);
            }
        }
        changed
    }

    /// Bytes move as a request wants, and its answer leaves. Returns whether memory changed.
    fn answer(&mut self, memory: &mut Memory, at: u64, request: &Request, bytes: u32, port: usize) -> bool {
        let changed = match &mut self.aggregator {
            Some(aggregator) if request.sm as usize == self.sms.len() => {
                aggregator.serve(request.ticket, memory)
            }
            _ => {
                let sm = &mut self.sms[request.sm as usize];
                let lanes = serve(sm, memory, &mut self.locks, request.ticket, true);
                if P::WATCHES_MEMORY && !self.cut_off {
                    sm.show_served(&self.context, request.ticket, lanes, at);
                }
                lanes != 0
            }
        };
        self.leave(port, at, request.sm, bytes, request.ticket);
        changed
    }

    fn leave(&mut self, port: usize, at: u64, node: u16, bytes: u32, reply: Reply) {
        let coherence = self.coherence.as_mut().expect("L1s are coherent");
        let queue = &mut coherence.leaving[port];
        // Messages of a port keep their order.
        let at = queue.back().map_or(at, |last| last.at.max(at));
        queue.push_back(Leaving { at, node, bytes, reply });
    }

    /// Does what the directory decided. Returns whether memory changed.
    fn carry_out(&mut self, memory: &mut Memory) -> bool {
        let mut changed = false;
        let coherence = self.coherence.as_mut().expect("L1s are coherent");
        let line_bytes = coherence.line_bytes;
        for action in std::mem::take(&mut coherence.directory.actions) {
            match action {
                Action::Forward { at, request } => {
                    let port = self.side.port(request.line);
                    let coherence = self.coherence.as_mut().expect("L1s are coherent");
                    coherence.forwards[port].push_back((at, request));
                }
                Action::Probe { at, node, probe } => {
                    let port = self.side.port(probe.line);
                    let coherence = self.coherence.as_mut().expect("L1s are coherent");
                    let number = coherence.probes.put(probe);
                    self.leave(port, at, node, 0, PROBE | number);
                }
                Action::Write { line, given } => {
                    memory.write_line(line, &given.bytes[..line_bytes as usize], given.written);
                }
                Action::Keep { request } => {
                    if request.sm as usize == self.sms.len() {
                        self.aggregator.as_mut().expect("it asked").serve(request.ticket, memory);
                    } else {
                        self.sms[request.sm as usize].memory.serve(request.ticket, memory, false);
                    }
                }
                Action::Answer { at, request, grant, given, source } => {
                    let port = self.side.port(request.line);
                    let Some(grant) = grant else {
                        if request.asks == crate::time::network::message::Asks::GiveBack {
                            self.leave(port, at, request.sm, 0, request.ticket);
                        } else {
                            if let (Some(given), RequestKind::Read) = (&given, request.kind) {
                                // A read that keeps nothing takes what the owner has as memory's.
                                memory.write_line(
                                    request.line,
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
                    if request.sm as usize == self.sms.len() {
                        let aggregator = self.aggregator.as_mut().expect("it asked");
                        aggregator.granted(request.ticket, grant, given.as_deref(), comes, memory);
                    } else {
                        let sm = &mut self.sms[request.sm as usize];
                        sm.memory.granted(request.ticket, grant, given.as_deref(), comes, memory);
                    }
                    self.leave(port, at, request.sm, bytes, request.ticket);
                }
            }
        }
        changed
    }

    /// Moves requests and responses through the network to the directory, and from there to the slices.
    pub(crate) fn exchange_coherent(&mut self, memory: &mut Memory, until: u64) -> bool {
        let mut changed = false;
        let nodes = self.sms.len();
        let coherence = self.coherence.as_mut().expect("L1s are coherent");
        let mut send = |node: usize, (at, line, given): (u64, u64, Option<Box<Given>>)| {
            let bytes = if given.is_some() { coherence.line_bytes } else { 0 };
            let message = coherence.given.put((line, given));
            coherence.responses.inject(node, at, self.side.port(line), bytes, message);
        };
        for id in 0..nodes {
            let sm = &mut self.sms[id];
            if !sm.memory.updates.is_empty() {
                let updates = std::mem::take(&mut sm.memory.updates);
                let shown = P::WATCHES_MEMORY && !self.cut_off;
                sm.memory.updates = tell(sm, &self.context, &mut self.locks, updates, shown);
            }
            let unit = &mut sm.memory;
            changed |= std::mem::take(&mut unit.stored);
            unit.responses.drain(..).for_each(|response| send(id, response));
        }
        if let Some(aggregator) = &mut self.aggregator {
            aggregator.responses().drain(..).for_each(|response| send(nodes, response));
        }
        let shift = self.side.slices.trailing_zeros();
        let low = self.side.slices - 1;
        let place = |port: usize| (port >> shift, port as u32 & low);
        let mut arrived: Vec<(u64, Request)> = Vec::new();
        let (partitions, forwards) =
            (&self.partitions, &self.coherence.as_ref().expect("L1s are coherent").forwards);
        self.requests.advance(
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
                let port = self.side.port(request.line);
                coherence.forwards[port].push_back((arrival, request));
            }
        }
        let mut responses = Vec::new();
        let coherence = self.coherence.as_mut().expect("L1s are coherent");
        coherence.responses.advance(
            until,
            |_| u32::MAX,
            |_, arrival, &message| responses.push((arrival, message)),
        );
        for (arrival, message) in responses {
            let coherence = self.coherence.as_mut().expect("L1s are coherent");
            let (line, given) = std::mem::take(&mut coherence.given[message]);
            coherence.given.give_back(message);
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

    /// How many replies a slice may make in the next window.
    pub(crate) fn reply_room(&self, port: usize) -> u32 {
        let room = self.replies.room(port);
        let Some(coherence) = &self.coherence else { return room };
        let waiting = MANY_PACKETS - room + coherence.leaving[port].len() as u32;
        coherence.queue_packets.saturating_sub(waiting)
    }

    /// The host is to see what L1s have and memory does not.
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

/// Says what happened to words in the L1 of an SM. Returns the empty list.
fn tell<const N: usize, P: Probe>(
    sm: &mut Sm<N, P>,
    context: &Context<'_>,
    locks: &mut LockTable,
    mut updates: Vec<Update<N>>,
    shown: bool,
) -> Vec<Update<N>> {
    for update in updates.drain(..) {
        let code = context.of(sm.kernel_of(update.slot)).code;
        if update.atomic && code[update.pc.index()].spin == Some(SpinRole::Poll) {
            let who = (sm.who(update.slot), update.pc);
            locks.tried(who, &update.addresses, (update.lanes, update.changed), |address| address);
        }
        if shown {
            sm.show_update(context, &update);
        }
    }
    updates
}
