//! The load/store unit in front of a coherent L1: loads, stores and atomics all happen in the cache. Stores and atomics
//! read a line for ownership first.

use smallvec::SmallVec;
use warploom_isa::Pc;

use crate::exec::locks::holders::Change;
use crate::exec::memory::access::MemoryOp;
use crate::exec::memory::address::Addresses;
use crate::exec::memory::store::Memory;
use crate::kit::cycle::Cycle;
use crate::kit::ids::{ProbeId, Ticket, TransferId, WarpSlot};
use crate::kit::lane_mask::LaneMask;
use crate::kit::line::LineAddress;
use crate::time::cache::{LineBytes, Way};
use crate::time::directory::{Given, Grant};
use crate::time::network::message::{Asks, RequestKind};
use crate::time::sm::load_store::MemoryUnit;
use crate::time::sm::load_store::l1::Refusal;
use crate::time::sm::load_store::l1::coherent::{Held, Writable};
use crate::time::sm::load_store::messages::Purpose;

/// What lanes did to a line in the L1, for observers.
#[derive(Clone, Debug)]
pub(crate) struct Update<const N: usize> {
    /// The cycle.
    pub at: Cycle,
    pub slot: WarpSlot,
    pub pc: Pc,
    pub addresses: Addresses<N>,
    /// Lanes that took part.
    pub lanes: LaneMask,
    /// Of an atomic, the lanes that changed what they found; of a store, all.
    pub changed: LaneMask,
    /// An atomic, not a store.
    pub atomic: bool,
    /// Of an atomic, what the lanes of `changed` did to their words, in their order.
    pub changes: SmallVec<[Option<Change>; 1]>,
}

impl<const N: usize> Update<N> {
    pub(crate) fn change(&self, lane: usize) -> Option<Change> {
        let before = LaneMask(self.changed.0 & ((1 << lane) - 1)).count();
        self.changes.get(before as usize).copied().flatten()
    }
}

impl<const N: usize> MemoryUnit<N> {
    /// Sends the lanes of an access that touch one line.
    pub(crate) fn send_coherent(&mut self, now: Cycle, id: TransferId) -> Result<(), Refusal> {
        let transfer = &self.transfers[id];
        let (line, lanes) = transfer.line(transfer.pending.unsent.global, self.line_bytes);
        match transfer.access.kind {
            MemoryOp::Load
            | MemoryOp::Lock { .. }
            | MemoryOp::Copy
            | MemoryOp::Matrix
            | MemoryOp::Texture => {
                self.load_through_l1(now, id, line, lanes)?;
            }
            MemoryOp::Store | MemoryOp::Unlock { .. } => {
                self.write_coherent(now, id, line, lanes)?;
                self.stats.stores += 1;
            }
            MemoryOp::Atomic { .. } => {
                self.write_coherent(now, id, line, lanes)?;
                self.stats.atomics += 1;
                self.stats.atomic_lanes += lanes.count() as u64;
            }
        }
        self.transfers[id].pending.unsent.global &= !lanes;
        Ok(())
    }

    fn write_coherent(
        &mut self,
        now: Cycle,
        id: TransferId,
        line: LineAddress,
        lanes: LaneMask,
    ) -> Result<(), Refusal> {
        match self.l1.look_to_write(line) {
            Writable::Hit(way) => {
                // Further lanes of an atomic on one word keep the unit busy.
                self.free_at = self.write_line(now, id, line, way, lanes);
                let pending = &mut self.transfers[id].pending;
                pending.ready_at = pending.ready_at.max(self.free_at - 1 + self.hit_latency);
                self.stats.hits += 1;
            }
            Writable::Merged(ticket) => {
                self.wait_for(ticket, id, lanes);
                self.stats.merges += 1;
            }
            Writable::Upgrade(way) => {
                let ticket = self.ask(now, line, Asks::Own { has_copy: true })?;
                self.l1.upgrade(way, ticket, now);
                self.wait_for(ticket, id, lanes);
                self.stats.misses += 1;
            }
            Writable::Miss(way) => {
                self.make_way(now, way)?;
                let ticket = self.ask(now, line, Asks::Own { has_copy: false })?;
                self.l1.fetch_to_write(way, line, ticket, now);
                self.wait_for(ticket, id, lanes);
                self.stats.misses += 1;
            }
            Writable::Refused(refusal) => return Err(refusal),
        }
        Ok(())
    }

    /// Asks the directory for a line.
    pub(crate) fn ask(&mut self, now: Cycle, line: LineAddress, asks: Asks) -> Result<Ticket, Refusal> {
        let purpose = Purpose::Fill { local: false };
        let ticket = self.send(now, purpose, line, self.all_sectors(), RequestKind::Read)?;
        self.outbox.last_mut().expect("just sent").1.asks = asks;
        Ok(ticket)
    }

    /// Evicts a line: it goes back to the directory if it differs from memory. Otherwise the directory is told.
    pub(crate) fn give_up(&mut self, now: Cycle, way: Way, held: Held) -> Result<(), Refusal> {
        match held {
            Held::Clean(line) => {
                self.l1.drop_line(way);
                self.dropped.push(line);
            }
            Held::Dirty(line) => {
                let ticket =
                    self.send(now, Purpose::GiveBack, line, self.all_sectors(), RequestKind::Write)?;
                self.outbox.last_mut().expect("just sent").1.asks = Asks::GiveBack;
                self.l1.give_back(way, ticket);
                self.stats.write_backs += 1;
            }
        }
        Ok(())
    }

    /// The lanes of a store or an atomic change a line that the L1 owns. Returns the first cycle after that.
    fn write_line(
        &mut self,
        now: Cycle,
        id: TransferId,
        line: LineAddress,
        way: Way,
        lanes: LaneMask,
    ) -> Cycle {
        let line_bytes = self.line_bytes as usize;
        let transfer = &mut self.transfers[id];
        let written = transfer.covered(lanes, line);
        let MemoryOp::Atomic { .. } = transfer.access.kind else {
            let bytes = self.l1.write(way, written);
            let changed = transfer.store_to_line(line, &mut bytes[..line_bytes], lanes);
            self.stored |= changed;
            if self.shows_stores {
                let (slot, pc, addresses) =
                    (transfer.pending.slot, transfer.access.pc, transfer.access.addresses);
                self.updates.push(Update {
                    at: now,
                    slot,
                    pc,
                    addresses,
                    lanes,
                    changed: lanes,
                    atomic: false,
                    changes: SmallVec::new(),
                });
            }
            return now + 1;
        };
        // An atomic that changes nothing leaves the line as it is.
        let mut bytes = *self.l1.bytes(way);
        let changed =
            transfer.access.update_line(line.0, &mut bytes[..line_bytes], self.l1.written(way), lanes);
        if !changed.is_empty() {
            *self.l1.write(way, written) = bytes;
            self.stored = true;
        }
        let (slot, pc, addresses) = (transfer.pending.slot, transfer.access.pc, transfer.access.addresses);
        let changes = changed.lanes().map(|lane| transfer.access.change(lane)).collect();
        self.updates.push(Update { at: now, slot, pc, addresses, lanes, changed, atomic: true, changes });
        now + transfer.same_word(lanes) as u64
    }

    /// The directory answers message `ticket`, which asked for a line: what the L1 may do with it, and its bytes if
    /// another cache gave them.
    pub(crate) fn granted(
        &mut self,
        ticket: Ticket,
        grant: Grant,
        given: Option<&Given>,
        comes: bool,
        memory: &Memory,
    ) {
        let line_bytes = self.line_bytes as usize;
        let flight = &mut self.flights[ticket];
        (flight.granted, flight.comes) = (Some(grant), comes);
        match given {
            Some(given) => (flight.bytes, flight.written) = (given.bytes, given.written),
            None => {
                memory.read_line(flight.line.0, &mut flight.bytes[..line_bytes]);
                flight.written = memory.written_from(flight.line.0);
            }
        }
    }

    /// The answer to a message that asked for a line arrives: the accesses that waited for it proceed, in order.
    pub(crate) fn arrive_granted(&mut self, now: Cycle, ticket: Ticket, grant: Grant) {
        let flight = &mut self.flights[ticket];
        let (line, waiting) = (flight.line, std::mem::take(&mut flight.waiting));
        let given = flight.comes.then_some((&flight.bytes, flight.written));
        let way = self.l1.grant(line, ticket, grant, given).expect("a way is kept for it");
        for &(id, lanes) in &waiting {
            let mut done = now;
            let access = &mut self.transfers[id].access;
            match access.kind {
                MemoryOp::Store | MemoryOp::Unlock { .. } | MemoryOp::Atomic { .. } => {
                    done = self.write_line(now, id, line, way, lanes) - 1;
                }
                _ => access.load_from_line(line.0, self.l1.bytes(way), self.l1.written(way), lanes),
            }
            self.part_done(done, id);
        }
        self.flights[ticket].granted = None;
        self.flights.give_back(ticket);
    }

    /// Answers a probe.
    pub(crate) fn answer_probe(&mut self, now: Cycle, id: ProbeId) {
        let probe = self.probes[id];
        self.probes.give_back(id);
        let given = self.l1.probe(probe);
        self.responses.push((now + self.hit_latency, probe.line, given));
    }

    /// Lines that are newer here than in memory.
    pub(crate) fn newer_lines(&self) -> Vec<(LineAddress, Vec<u8>)> {
        let line = |(line, bytes, _): (LineAddress, &LineBytes, _)| {
            (line, bytes[..self.line_bytes as usize].to_vec())
        };
        self.l1.dirty_lines().map(line).collect()
    }

    /// Writes all newer lines to memory without taking time, so that the host can look at it.
    pub(crate) fn show_host(&self, memory: &mut Memory) {
        for (line, bytes, written) in self.l1.dirty_lines() {
            memory.write_line(line.0, &bytes[..self.line_bytes as usize], written);
        }
    }
}
