//! The aggregator's port to memory: its data cache, its messages, and the store queue in front of them.
//!
//! Stores leave the queue one after the other, so that all others see them in program order. Atomics happen at the L2
//! slice, after all earlier stores. The data cache is used only where it is coherent with the SMs' L1s.

use std::collections::VecDeque;

use warploom_isa::{AtomOp, Ty};

use crate::chip::Chip;
use crate::chip::timing::{Coherence, L1Policy, L1Spec, SECTOR_BYTES};
use crate::exec::lanes::{AtomicUnit, atomic};
use crate::exec::memory::store::Memory;
use crate::kit::cycle::Cycle;
use crate::kit::ids::{ResultId, Ticket};
use crate::kit::line::LineAddress;
use crate::kit::slab::Slab;
use crate::time::cache::{LineBytes, LineWritten, MAX_LINE_BYTES, Way};
use crate::time::directory::{Given, Grant, Probe};
use crate::time::map::AddressMap;
use crate::time::network::message::{Asks, Request, RequestKind};
use crate::time::network::node::Node;
use crate::time::sm::load_store::l1::coherent::{Held, Writable};
use crate::time::sm::load_store::l1::{L1, Lookup};

#[derive(Clone, Copy, Debug)]
pub(crate) struct Atomic {
    pub address: u64,
    pub op: AtomOp,
    pub ty: Ty,
    pub operands: [u64; 2],
}

/// What a message is for.
#[derive(Clone, Debug)]
enum Errand {
    /// A load past the cache.
    Load {
        address: u64,
        bytes: u32,
        waiter: Waiter,
    },
    /// The first store of the queue, past the cache.
    Store,
    Atomic(Atomic, Waiter),
    /// A line for the cache, for these loads, and for the first store if the line may be written.
    Fill {
        line: LineAddress,
        /// Address and bytes of each.
        loads: Vec<(u64, u32, Waiter)>,
        grant: Option<Grant>,
        /// The line's bytes come with the answer.
        comes: bool,
    },
    /// A dirty line that the cache writes back.
    GiveBack {
        line: LineAddress,
    },
}

/// Who waits for an access: the instruction's number, and where its result goes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waiter {
    pub number: Option<u64>,
    pub result: Option<ResultId>,
}

/// A store that others do not see yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Store {
    pub address: u64,
    pub bytes: u32,
    pub value: u64,
    pub waiter: Waiter,
}

/// A message that has not been answered.
#[derive(Clone, Debug)]
struct Flight {
    errand: Errand,
    value: u64,
    bytes: LineBytes,
    written: LineWritten,
}

/// An access that is done.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Done {
    pub waiter: Waiter,
    pub value: u64,
}

#[derive(Debug)]
pub(crate) struct Port {
    line_bytes: u64,
    map: AddressMap,
    hit_cycles: u64,
    cache: Option<L1>,
    flights: Slab<Ticket, Flight>,
    stores: VecDeque<Store>,
    /// The first of `stores` is in flight.
    storing: bool,
    /// Atomics in flight.
    pub atomics: u32,
    /// Messages for the network, with the cycle they are sent.
    pub outbox: Vec<(Cycle, Request)>,
    /// Clean lines that the cache has evicted.
    pub dropped: Vec<LineAddress>,
    /// Responses to probes, with the cycle they are sent and the line.
    pub responses: Vec<(Cycle, LineAddress, Option<Box<Given>>)>,
    /// Accesses that are done and that the core has not taken.
    pub done: Vec<Done>,
    /// Packets that the network still takes.
    pub room: u32,
    last_sent: Cycle,
    /// A store has changed a line of the cache.
    pub stored: bool,
    pub hits: u64,
    pub misses: u64,
}

impl Port {
    pub(crate) fn new(chip: &Chip) -> Port {
        let spec = chip.aggregator.as_ref().expect("the chip has an aggregator");
        let cache = (chip.l1.coherence == Coherence::Moesi).then(|| {
            let mut cache = L1::new(&L1Spec {
                line_cycles: 1,
                cache: spec.cache.clone(),
                global: L1Policy::WriteEvict,
                coherence: Coherence::Moesi,
                hit_latency_cycles: 1,
                mshrs: spec.mshrs,
                mshr_merges: u32::MAX,
                bypass_bytes: SECTOR_BYTES,
            });
            cache.make_coherent();
            cache
        });
        let hit = spec.hit_latency_clocks as u64 * chip.clock.core_mhz as u64;
        Port {
            map: AddressMap::new(&chip.l2, &chip.dram),
            line_bytes: chip.l2.cache.line_bytes as u64,
            hit_cycles: hit.div_ceil(spec.clock_mhz as u64),
            cache,
            flights: Slab::default(),
            stores: VecDeque::new(),
            storing: false,
            atomics: 0,
            outbox: Vec::new(),
            dropped: Vec::new(),
            responses: Vec::new(),
            done: Vec::new(),
            room: chip.interconnect.queue_packets,
            last_sent: Cycle(0),
            stored: false,
            hits: 0,
            misses: 0,
        }
    }

    pub(crate) fn line_bytes(&self) -> u64 {
        self.line_bytes
    }

    fn line(&self, address: u64) -> LineAddress {
        LineAddress::of(address, self.line_bytes)
    }

    /// Whether an earlier store to the same line waits.
    pub(crate) fn stores_to_line(&self, address: u64) -> bool {
        self.stores.iter().any(|store| self.line(store.address) == self.line(address))
    }

    /// How many stores are in the queue.
    pub(crate) fn pending_stores(&self) -> usize {
        self.stores.len()
    }

    /// Whether the network takes as many packets as an access may need: a line written back, and a request.
    pub(crate) fn has_room(&self) -> bool {
        self.room >= 2
    }

    /// Begins a load, if it can be made now. Returns the value, if it is in the cache.
    pub(crate) fn load(
        &mut self,
        cycle: Cycle,
        address: u64,
        bytes: u32,
        waiter: Waiter,
    ) -> Result<Option<u64>, ()> {
        let line = self.line(address);
        let Some(cache) = &mut self.cache else {
            self.send(
                cycle,
                address,
                RequestKind::Read,
                Asks::Nothing,
                Errand::Load { address, bytes, waiter },
            );
            return Ok(None);
        };
        match cache.look(line) {
            Lookup::Hit(_) => {
                self.hits += 1;
                return Ok(cache.peek(address, bytes));
            }
            Lookup::Merged(ticket) => {
                if let Errand::Fill { loads, .. } = &mut self.flights[ticket].errand {
                    loads.push((address, bytes, waiter));
                }
            }
            Lookup::Miss(way) => {
                self.make_way(cycle, way);
                let loads = vec![(address, bytes, waiter)];
                let ticket = self.fill(cycle, line, Asks::Share, loads);
                self.cache.as_mut().expect("it was here before").fetch(way, line, ticket, cycle, false);
            }
            Lookup::Refused(_) => return Err(()),
        }
        Ok(None)
    }

    /// Begins an atomic, if it can be made now.
    pub(crate) fn atomic(&mut self, cycle: Cycle, atomic: Atomic, waiter: Waiter) -> Result<(), ()> {
        if let Some(cache) = &mut self.cache {
            let line = LineAddress::of(atomic.address, self.line_bytes);
            if let Some(way) = cache.step_aside(line).map_err(|_| ())? {
                self.make_way(cycle, way);
            }
        }
        let operands = if atomic.op == AtomOp::Cas { 2 } else { 1 };
        let bytes = atomic.ty.bytes() as u8;
        let kind = RequestKind::Atomic {
            passes: 1,
            same_word: 1,
            words: 1 << (atomic.address % self.line_bytes / 4),
            lanes: 1,
            adds: atomic.op == AtomOp::Add,
            operand_bytes: u16::from(operands * bytes),
            result_bytes: u16::from(bytes),
        };
        self.atomics += 1;
        self.send(cycle, atomic.address, kind, Asks::Nothing, Errand::Atomic(atomic, waiter));
        Ok(())
    }

    /// A store joins the queue.
    pub(crate) fn store(&mut self, cycle: Cycle, store: Store) {
        self.stores.push_back(store);
        self.next_store(cycle);
    }

    /// Makes the first stores of the queue, as far as they can be made now.
    pub(crate) fn next_store(&mut self, cycle: Cycle) {
        while !self.storing && self.has_room() {
            let Some(&store) = self.stores.front() else { return };
            let line = self.line(store.address);
            let Some(cache) = &mut self.cache else {
                self.storing = true;
                self.send(cycle, store.address, RequestKind::Write, Asks::Nothing, Errand::Store);
                return;
            };
            match cache.look_to_write(line) {
                Writable::Hit(way) => {
                    self.hits += 1;
                    self.write(way);
                }
                Writable::Upgrade(way) => {
                    self.storing = true;
                    let ticket = self.fill(cycle, line, Asks::Own { has_copy: true }, Vec::new());
                    self.cache.as_mut().expect("it was here before").upgrade(way, ticket, cycle);
                }
                Writable::Miss(way) => {
                    self.storing = true;
                    self.make_way(cycle, way);
                    let ticket = self.fill(cycle, line, Asks::Own { has_copy: false }, Vec::new());
                    self.cache.as_mut().expect("it was here before").fetch_to_write(way, line, ticket, cycle);
                }
                // Tried again after an answer.
                Writable::Merged(_) | Writable::Refused(_) => return,
            }
        }
    }

    /// The first store happens in the cache.
    fn write(&mut self, way: Way) {
        let Some(store) = self.stores.pop_front() else { return };
        let at = (store.address % self.line_bytes) as usize;
        let count = store.bytes as usize;
        let Some(cache) = &mut self.cache else { return };
        let word = &mut cache.write(way, ((1 << count) - 1) << at)[at..at + count];
        let new = store.value.to_le_bytes();
        self.stored |= *word != new[..count];
        word.copy_from_slice(&new[..count]);
        self.done.push(Done { waiter: store.waiter, value: 0 });
    }

    /// Gives up a line before its way is used for another.
    fn make_way(&mut self, cycle: Cycle, way: Way) {
        match self.cache.as_ref().and_then(|cache| cache.held(way)) {
            Some(Held::Dirty(line)) => {
                let errand = Errand::GiveBack { line };
                let ticket = self.send(cycle, line.0, RequestKind::Write, Asks::GiveBack, errand);
                self.cache.as_mut().expect("it was here before").give_back(way, ticket);
            }
            Some(Held::Clean(line)) => {
                self.cache.as_mut().expect("it was here before").drop_line(way);
                self.dropped.push(line);
            }
            None => {}
        }
    }

    fn fill(
        &mut self,
        cycle: Cycle,
        line: LineAddress,
        asks: Asks,
        loads: Vec<(u64, u32, Waiter)>,
    ) -> Ticket {
        self.misses += 1;
        let errand = Errand::Fill { line, loads, grant: None, comes: true };
        self.send(cycle, line.0, RequestKind::Read, asks, errand)
    }

    fn send(&mut self, cycle: Cycle, address: u64, kind: RequestKind, asks: Asks, errand: Errand) -> Ticket {
        debug_assert!(self.room > 0, "the network takes no more");
        self.room -= 1;
        let line = self.line(address);
        let sectors = match asks {
            Asks::Nothing => 1 << ((address - line.0) / SECTOR_BYTES as u64),
            _ => ((1u32 << (self.line_bytes as u32 / SECTOR_BYTES)) - 1) as u8,
        };
        let whole = if asks == Asks::GiveBack { sectors } else { 0 };
        let (bytes, written) = ([0; MAX_LINE_BYTES], LineWritten::MAX);
        let ticket = self.flights.put(Flight { errand, value: 0, bytes, written });
        self.last_sent = self.last_sent.max(cycle);
        let from = Node::Aggregator;
        let port = self.map.port_of(line);
        let request =
            Request { line, port, sectors, whole, kind, from, ticket, asks, missed: false, far: false };
        self.outbox.push((self.last_sent, request));
        ticket
    }

    /// An L2 slice has served a message: moves its bytes. Returns whether memory changed.
    pub(crate) fn serve(&mut self, ticket: Ticket, memory: &mut Memory) -> bool {
        let flight = &mut self.flights[ticket];
        match flight.errand {
            Errand::Load { address, bytes, .. } => {
                flight.value = word(memory, address, bytes);
                false
            }
            Errand::Store => {
                let Some(&Store { address, bytes, value, .. }) = self.stores.front() else { return false };
                let before = word(memory, address, bytes);
                memory.write(address, &value.to_le_bytes()[..bytes as usize]);
                before != word(memory, address, bytes)
            }
            Errand::Atomic(Atomic { address, op, ty, operands: [b, c] }, _) => {
                let found = word(memory, address, ty.bytes());
                let new = atomic(AtomicUnit::L2, op, ty, [found, b, c]);
                memory.write(address, &new.to_le_bytes()[..ty.bytes() as usize]);
                flight.value = found;
                found != word(memory, address, ty.bytes())
            }
            Errand::GiveBack { line } => {
                if let Some(given) = self.cache.as_ref().and_then(|cache| cache.leaving(ticket)) {
                    memory.write_line(line.0, &given.bytes[..self.line_bytes as usize], given.written);
                }
                false
            }
            Errand::Fill { .. } => false,
        }
    }

    /// The directory answers a message that asked for a line.
    pub(crate) fn granted(
        &mut self,
        ticket: Ticket,
        granted: Grant,
        given: Option<&Given>,
        brings: bool,
        memory: &Memory,
    ) {
        let flight = &mut self.flights[ticket];
        let Errand::Fill { line, grant, comes, .. } = &mut flight.errand else { return };
        (*grant, *comes) = (Some(granted), brings);
        match given {
            Some(given) => (flight.bytes, flight.written) = (given.bytes, given.written),
            None => {
                memory.read_line(line.0, &mut flight.bytes[..self.line_bytes as usize]);
                flight.written = memory.written_from(line.0);
            }
        }
    }

    /// The answer to a message arrives in a cycle.
    pub(crate) fn arrive(&mut self, cycle: Cycle, ticket: Ticket) {
        let nothing = Errand::GiveBack { line: LineAddress(0) };
        let flight = &mut self.flights[ticket];
        let (errand, value) = (std::mem::replace(&mut flight.errand, nothing), flight.value);
        match errand {
            Errand::Load { waiter, .. } => self.done.push(Done { waiter, value }),
            Errand::Store => {
                let store = self.stores.pop_front().expect("it was the first");
                self.done.push(Done { waiter: store.waiter, value: 0 });
                self.storing = false;
            }
            Errand::Atomic(_, waiter) => {
                self.atomics -= 1;
                self.done.push(Done { waiter, value });
            }
            Errand::GiveBack { .. } => {
                if let Some(cache) = &mut self.cache {
                    cache.has_left(ticket);
                }
            }
            Errand::Fill { line, loads, grant, comes } => {
                let cache = self.cache.as_mut().expect("it asked for a line");
                let given = comes.then_some((&flight.bytes, flight.written));
                let way = cache.grant(line, ticket, grant.expect("it is answered"), given);
                for (address, bytes, waiter) in loads {
                    let value = cache.peek(address, bytes).unwrap_or(0);
                    self.done.push(Done { waiter, value });
                }
                if let (Some(way), Some(Grant::Modified)) = (way, grant) {
                    self.storing = false;
                    self.write(way);
                }
            }
        }
        self.flights.give_back(ticket);
        self.next_store(cycle);
    }

    pub(crate) fn answer_probe(&mut self, cycle: Cycle, probe: Probe) {
        let given = self.cache.as_mut().and_then(|cache| cache.probe(probe));
        self.responses.push((cycle + self.hit_cycles, probe.line, given));
    }

    /// Writes dirty lines to memory, without taking time.
    pub(crate) fn show_host(&self, memory: &mut Memory) {
        for (line, bytes, written) in self.cache.iter().flat_map(L1::dirty_lines) {
            memory.write_line(line.0, &bytes[..self.line_bytes as usize], written);
        }
    }

    /// Whether no access is in flight.
    pub(crate) fn is_idle(&self) -> bool {
        self.flights.in_use() == 0 && self.stores.is_empty()
    }
}

fn word(memory: &Memory, address: u64, bytes: u32) -> u64 {
    let data = memory.read(address, bytes as usize).unwrap_or(&[]);
    data.iter().rev().fold(0, |value, &byte| value << 8 | byte as u64)
}
