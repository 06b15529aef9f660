//! The load/store unit: sends the accesses of warps in order, one piece per cycle, to shared memory, the constant
//! cache, the L1 or the network. Start at [`MemoryUnit::step`].
//!
//! A piece is what one memory can serve at once: all lanes of shared memory without bank conflicts, one word of
//! constants, one row of local memory, one line of global memory. An access whose piece is refused blocks all others
//! behind it.

mod bank_conflicts;
pub(crate) mod coherent;
pub(crate) mod inbox;
pub(crate) mod l1;
pub(crate) mod stats;
pub(crate) mod switch;
pub(crate) mod transfer;

use std::collections::VecDeque;

use smallvec::SmallVec;
use warploom_isa::AtomOp;

use crate::chip::Chip;
use crate::chip::timing::{AtomicSpec, Carries, Coherence, L1Policy, SECTOR_BYTES, SameWord, SharedSpec};
use crate::exec::memory::access::{MemoryOp, SpaceLanes};
use crate::exec::memory::store::Memory;
use crate::kit::cycle::Cycle;
use crate::kit::ids::{ProbeId, SwitchId, Ticket, TransferId};
use crate::kit::lane_mask::LaneMask;
use crate::kit::line::LineAddress;
use crate::kit::slab::Slab;
use crate::time::cache::{LineBytes, LineWritten, MAX_LINE_BYTES, Tags};
use crate::time::directory::{Given, Grant, Probe};
use crate::time::network::message::{Asks, Reply, Request, RequestKind};
use crate::time::network::node::Node;
use crate::time::sm::load_store::bank_conflicts::shared_turns;
use crate::time::sm::load_store::coherent::Update;
use crate::time::sm::load_store::l1::{L1, Lookup, Refusal};
use crate::time::sm::load_store::stats::L1Stats;
use crate::time::sm::load_store::switch::Switches;
use crate::time::sm::load_store::transfer::Transfer;

/// Where local memory lies, as the L2 sees it.
const LOCAL_BASE: u64 = 1 << 49;

/// Where constants and parameters lie, as the L2 sees them.
const CONSTANT_BASE: u64 = 1 << 50;

const MOVES_STATE: &str = "the message has a line of a warp's state";

/// What a message is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// A line for the L1, of local or global memory.
    Fill {
        local: bool,
    },
    /// Bytes for a load that skips the L1.
    Load,
    Store,
    Atomic,
    /// A line of instructions.
    Instruction,
    /// A line of constants.
    Constant,
    /// An evicted line of local memory.
    WriteBack,
    /// A line of a warp's state, which is saved or restored.
    Switch,
    /// A dirty line that a coherent L1 evicts.
    GiveBack,
}

/// A message that has not been answered. The fields that all messages use come first, on one line of the host's cache.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub(crate) struct Flight {
    pub purpose: Purpose,
    /// What a coherent L1 may do with the line, once answered.
    pub granted: Option<Grant>,
    /// The line's bytes come with the answer.
    pub comes: bool,
    pub line: LineAddress,
    /// Transfers and their lanes that wait for the answer.
    pub waiting: SmallVec<[(TransferId, LaneMask); 2]>,
    /// The line as its slice found it.
    pub bytes: LineBytes,
    /// Which of its bytes were ever written.
    pub written: LineWritten,
    /// Of [`Purpose::Switch`]: the warp's state, and the number of the line in it.
    state_line: Option<(SwitchId, usize)>,
}

/// What the unit did in a cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// No piece can be sent.
    Idle,
    /// The front access was refused; trying again makes sense after an answer or when the network has room.
    Refused(Refusal),
    /// A piece was sent.
    Sent,
    /// The last piece of the front access was sent.
    Finished,
}

/// An access with pieces to send.
#[derive(Clone, Copy, Debug)]
struct Queued {
    id: TransferId,
    /// All its pieces go to the network, so it need not be tried while there is no room.
    needs_room: bool,
    /// When its operands have been read.
    ready: Cycle,
}

/// The load/store unit of an SM with its L1. The fields that every cycle needs come first.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct MemoryUnit<const N: usize> {
    /// When the front access's next piece is sent, unless something happens before. Read in every cycle.
    next_piece: Cycle,
    /// When the unit can send another piece.
    pub(crate) free_at: Cycle,
    /// Packets that the network still takes.
    room: u32,
    sm: u16,
    /// The front access was refused, and nothing has changed since.
    refused: bool,
    /// It was refused because the network had no room.
    wants_room: bool,
    /// In the order of issue.
    queue: VecDeque<Queued>,
    /// Completed accesses with their cycle, for the SM to take.
    pub completed: Vec<(TransferId, Cycle)>,
    /// Messages for the network, with the cycle they are sent.
    pub outbox: Vec<(Cycle, Request)>,
    /// Warps whose state is saved or restored.
    pub switches: Switches,
    pub transfers: Slab<TransferId, Transfer<N>>,
    pub flights: Slab<Ticket, Flight>,
    policy: L1Policy,
    pub(crate) line_bytes: u64,
    bypass_bytes: u64,
    atomic: AtomicSpec,
    pub l1: L1,
    pub stats: L1Stats,
    shared: SharedSpec,
    pub(crate) hit_latency: u64,
    constant_latency: u64,
    local_words: u64,
    constant: Tags,
    /// Lines of constants in flight, with their tickets.
    constant_misses: Vec<(LineAddress, Ticket)>,
    /// What the directory asks of a coherent L1 on behalf of others.
    pub(crate) probes: Slab<ProbeId, Probe>,
    /// The L1's responses to probes: the cycle they are sent, the line, and its bytes.
    pub responses: Vec<(Cycle, LineAddress, Option<Box<Given>>)>,
    /// A store or an atomic has changed what a coherent L1 holds.
    pub stored: bool,
    /// What atomics did in a coherent L1, and with `shows_stores` also what stores did.
    pub updates: Vec<Update<N>>,
    pub(crate) shows_stores: bool,
}

impl<const N: usize> MemoryUnit<N> {
    /// An idle unit. With `shows_stores` it records what stores do in a coherent L1.
    pub(crate) fn new(chip: &Chip, sm: u16, shows_stores: bool) -> Self {
        let mut l1 = L1::new(&chip.l1);
        if chip.l1.coherence == Coherence::Moesi {
            l1.make_coherent();
        }
        MemoryUnit {
            sm,
            shared: chip.shared.clone(),
            policy: chip.l1.global,
            line_bytes: chip.l1.cache.line_bytes as u64,
            bypass_bytes: chip.l1.bypass_bytes as u64,
            atomic: chip.atomic.clone(),
            hit_latency: chip.l1.hit_latency_cycles as u64,
            constant_latency: chip.constant.hit_latency_cycles as u64,
            local_words: chip.memory.local_bytes_per_thread.div_ceil(4) as u64,
            transfers: Slab::default(),
            flights: Slab::default(),
            queue: VecDeque::new(),
            l1,
            constant: Tags::new(&chip.constant.cache),
            constant_misses: Vec::new(),
            free_at: Cycle(0),
            next_piece: Cycle::NEVER,
            refused: false,
            wants_room: false,
            completed: Vec::new(),
            outbox: Vec::new(),
            switches: Switches::default(),
            probes: Slab::default(),
            responses: Vec::new(),
            stored: false,
            updates: Vec::new(),
            shows_stores,
            room: chip.interconnect.queue_packets,
            stats: L1Stats::default(),
        }
    }

    /// An access whose operands have been read at `ready` joins the queue.
    pub(crate) fn push(&mut self, id: TransferId, ready: Cycle) {
        let transfer = &mut self.transfers[id];
        transfer.number_lines(self.line_bytes);
        transfer.pending.begin(transfer.access.lanes, ready);
        let SpaceLanes { global, shared, local, constant } = transfer.access.lanes;
        let elsewhere = shared | constant | local;
        let uses_l1 = self.policy == L1Policy::WriteEvict && transfer.looks_in_l1() || self.l1.is_coherent();
        let needs_room = !global.is_empty() && elsewhere.is_empty() && !uses_l1;
        self.queue.push_back(Queued { id, needs_room, ready });
        self.find_next_piece();
    }

    #[inline]
    fn find_next_piece(&mut self) {
        self.next_piece = match self.queue.front() {
            Some(front) if !self.refused && (self.room > 0 || !front.needs_room) => {
                self.free_at.max(front.ready)
            }
            _ => Cycle::NEVER,
        };
    }

    /// The network takes `packets` packets from `now` on. Returns whether the unit can proceed because of that.
    pub(crate) fn set_room(&mut self, packets: u32, now: Cycle) -> bool {
        let had_none = std::mem::replace(&mut self.room, packets) == 0;
        if packets == 0 {
            return false;
        }
        let mut goes_on = !self.switches.is_idle();
        if self.refused && self.wants_room {
            self.refused = false;
            goes_on = true;
        } else if had_none && let Some(front) = self.queue.front().filter(|front| front.needs_room) {
            if self.free_at.max(front.ready) < now {
                self.stats.refuse(Refusal::Network);
            }
            goes_on = true;
        }
        if goes_on {
            self.find_next_piece();
        }
        goes_on
    }

    /// When the next piece or line could be sent; [`Cycle::NEVER`] if none can.
    #[inline]
    pub(crate) fn next_step(&self) -> Cycle {
        if self.switches.is_idle() || self.room == 0 {
            return self.next_piece;
        }
        self.next_piece.min(self.switches.next_line().unwrap_or(Cycle::NEVER))
    }

    /// Sends a line of a warp's state, if the network has room.
    #[cold]
    fn send_line(&mut self, now: Cycle) {
        let Some(line) = self.switches.line(now).filter(|_| self.room > 0) else { return };
        let kind = if line.saves { RequestKind::Write } else { RequestKind::Read };
        if let Ok(ticket) = self.send(now, Purpose::Switch, line.address, self.all_sectors(), kind) {
            self.flights[ticket].state_line = Some((line.switch, line.index));
            self.switches.sent(now);
        }
    }

    /// Runs one cycle.
    pub(crate) fn step(&mut self, now: Cycle) -> Progress {
        if !self.switches.is_idle() {
            self.send_line(now);
        }
        if self.next_piece > now {
            return Progress::Idle;
        }
        let progress = self.send_piece(now);
        self.find_next_piece();
        progress
    }

    /// Sends a piece of the front access.
    #[inline]
    fn send_piece(&mut self, now: Cycle) -> Progress {
        let Some(&Queued { id, .. }) = self.queue.front() else { return Progress::Idle };
        self.free_at = now + 1;
        let unsent = &self.transfers[id].pending.unsent;
        let sent = if !unsent.shared.is_empty() {
            self.send_shared(now, id);
            Ok(())
        } else if !unsent.constant.is_empty() {
            self.send_constant(now, id)
        } else if !unsent.local.is_empty() {
            self.send_local(now, id)
        } else if !unsent.global.is_empty() {
            self.send_global(now, id)
        } else {
            Ok(())
        };
        if let Err(refusal) = sent {
            self.stats.refuse(refusal);
            self.refused = true;
            self.wants_room = refusal == Refusal::Network;
            return Progress::Refused(refusal);
        }
        let pending = &self.transfers[id].pending;
        if !pending.unsent.all().is_empty() {
            return Progress::Sent;
        }
        self.queue.pop_front();
        if pending.outstanding == 0 {
            self.completed.push((id, pending.ready_at));
        }
        Progress::Finished
    }

    fn send_shared(&mut self, now: Cycle, id: TransferId) {
        let transfer = &mut self.transfers[id];
        let lanes = std::mem::take(&mut transfer.pending.unsent.shared);
        let access = &transfer.access;
        let (mut turns, conflicts) = shared_turns(&access.addresses, access.bytes, lanes, self.shared.banks);
        self.stats.shared_accesses += 1;
        self.stats.shared_words += u64::from(lanes.count() * access.bytes.div_ceil(4));
        self.stats.bank_conflicts += conflicts as u64;
        if let MemoryOp::Atomic { .. } = access.kind {
            turns += (transfer.same_word(lanes) - 1) * self.shared.atomic_cycles;
            self.stats.shared_atomics += lanes.count() as u64;
        }
        self.free_at = now + turns as u64;
        let done = self.free_at - 1 + self.shared.latency_cycles as u64;
        transfer.pending.ready_at = transfer.pending.ready_at.max(done);
    }

    fn send_constant(&mut self, now: Cycle, id: TransferId) -> Result<(), Refusal> {
        let transfer = &self.transfers[id];
        let (block, lanes) = transfer.access.addresses.block(transfer.pending.unsent.constant, 4);
        let line = LineAddress::of(CONSTANT_BASE + block, self.line_bytes);
        let number = line.number(self.line_bytes);
        if let Some(way) = self.constant.find(number) {
            self.constant.touch(way);
            self.stats.constant_hits += 1;
        } else if let Some(&(_, ticket)) = self.constant_misses.iter().find(|&&(waited, _)| waited == line) {
            self.wait_for(ticket, id, lanes);
        } else {
            let ticket = self.send(now, Purpose::Constant, line, self.all_sectors(), RequestKind::Read)?;
            self.wait_for(ticket, id, lanes);
            self.constant_misses.push((line, ticket));
            self.stats.constant_misses += 1;
        }
        let pending = &mut self.transfers[id].pending;
        pending.unsent.constant &= !lanes;
        pending.ready_at = pending.ready_at.max(now + self.constant_latency);
        Ok(())
    }

    /// Local memory is interleaved by words: lanes at the same local address lie side by side and form a row.
    fn send_local(&mut self, now: Cycle, id: TransferId) -> Result<(), Refusal> {
        let Transfer { pending, access, .. } = &self.transfers[id];
        let (block, lanes) = access.addresses.block(pending.unsent.local, 4);
        let row = pending.slot.0 as u64 * self.local_words + (block & 0x00ff_ffff) / 4;
        let sm_rows = 64 * self.local_words;
        let address = LOCAL_BASE + (self.sm as u64 * sm_rows + row) * N as u64 * 4;
        let line = LineAddress::of(address, self.line_bytes);
        let is_load = access.kind == MemoryOp::Load;
        if is_load {
            match self.l1.look(line) {
                Lookup::Hit(_) => self.stats.local_hits += 1,
                Lookup::Merged(ticket) => self.wait_for(ticket, id, lanes),
                Lookup::Miss(way) => {
                    self.make_way(now, way)?;
                    let purpose = Purpose::Fill { local: true };
                    let ticket = self.send(now, purpose, line, self.all_sectors(), RequestKind::Read)?;
                    self.l1.fetch(way, line, ticket, now, true);
                    self.wait_for(ticket, id, lanes);
                    self.stats.local_misses += 1;
                }
                Lookup::Refused(refusal) => return Err(refusal),
            }
        } else {
            let (way, hit) = self.l1.write_local(line)?;
            if !hit {
                self.make_way(now, way)?;
            }
            self.l1.dirty_local(way, line, hit);
            if hit { self.stats.local_hits += 1 } else { self.stats.local_misses += 1 }
        }
        let pending = &mut self.transfers[id].pending;
        pending.unsent.local &= !lanes;
        pending.ready_at = pending.ready_at.max(now + self.hit_latency);
        Ok(())
    }

    /// Writes a way's line back, if it is dirty, before the way is used for another line.
    pub(crate) fn make_way(&mut self, now: Cycle, way: crate::time::cache::Way) -> Result<(), Refusal> {
        if self.l1.is_coherent() && self.l1.must_give_back(way).is_some() {
            return self.give_back(now, way);
        }
        let Some(old) = self.l1.must_write_back(way) else { return Ok(()) };
        self.send(now, Purpose::WriteBack, old, self.all_sectors(), RequestKind::Write)?;
        // Even if the network has no room left for the new line's packet, the old line is written back only once.
        self.l1.wrote_back(way);
        self.stats.write_backs += 1;
        Ok(())
    }

    fn send_global(&mut self, now: Cycle, id: TransferId) -> Result<(), Refusal> {
        if self.l1.is_coherent() {
            return self.send_coherent(now, id);
        }
        let transfer = &self.transfers[id];
        let cached = self.policy == L1Policy::WriteEvict;
        let through_l1 = cached && transfer.looks_in_l1();
        if self.room == 0 && !through_l1 {
            return Err(Refusal::Network);
        }
        let unsent = transfer.pending.unsent.global;
        let (line, mut lanes) = transfer.line(unsent, self.line_bytes);
        match transfer.access.kind {
            MemoryOp::Load if through_l1 => self.load_through_l1(now, id, line, lanes)?,
            MemoryOp::Load | MemoryOp::Lock { .. } | MemoryOp::Copy => {
                let sectors = self.widen(transfer.sectors(lanes, line));
                let ticket = self.send(now, Purpose::Load, line, sectors, RequestKind::Read)?;
                if cached {
                    self.l1.forget(line);
                }
                self.wait_for(ticket, id, lanes);
                self.stats.bypasses += 1;
            }
            MemoryOp::Store | MemoryOp::Unlock { .. } => {
                let sectors = transfer.sectors(lanes, line);
                let whole = transfer.whole_sectors(lanes, line);
                let ticket = self.send_write(now, line, sectors, whole)?;
                if cached && self.l1.forget(line) {
                    self.stats.evictions_by_write += 1;
                }
                self.wait_for(ticket, id, lanes);
                self.stats.stores += 1;
            }
            MemoryOp::Atomic { .. } => {
                let on_line = lanes;
                lanes = self.lanes_of_request(transfer, lanes);
                self.send_atomic(now, id, line, (lanes, on_line))?;
                if cached {
                    self.l1.forget(line);
                }
            }
        }
        self.transfers[id].pending.unsent.global &= !lanes;
        Ok(())
    }

    /// Of the lanes of an atomic on one line, those that travel in the next request.
    #[inline]
    fn lanes_of_request(&self, transfer: &Transfer<N>, lanes: LaneMask) -> LaneMask {
        if lanes.0.is_power_of_two() {
            return lanes;
        }
        let group = self.atomic.request_lanes;
        let first = lanes.lowest() as u32 / group * group;
        let mut lanes = lanes & LaneMask((u64::MAX >> (u64::BITS - group)) << first);
        if u64::from(self.atomic.request_bytes) < self.line_bytes {
            (_, lanes) = transfer.access.addresses.block(lanes, u64::from(self.atomic.request_bytes));
        }
        match self.atomic.same_word {
            SameWord::Together => lanes,
            SameWord::Apart => transfer.one_per_word(lanes),
        }
    }

    /// Sends lanes of an atomic to their slice. `on_line` are all of its unsent lanes on that line.
    fn send_atomic(
        &mut self,
        now: Cycle,
        id: TransferId,
        line: LineAddress,
        (lanes, on_line): (LaneMask, LaneMask),
    ) -> Result<(), Refusal> {
        let transfer = &self.transfers[id];
        let MemoryOp::Atomic { op, silent, .. } = transfer.access.kind else {
            unreachable!("called for atomics")
        };
        let mut sectors = transfer.sectors(lanes, line);
        // Mostly one, and counting bits is slow.
        let count = if lanes.0.is_power_of_two() { 1 } else { lanes.count() };
        let is_cas = op == AtomOp::Cas;
        let operands = if is_cas { 2 } else { 1 };
        let same_word = transfer.same_word(lanes);
        let per_pass = if is_cas && transfer.several_words(on_line) { self.atomic.cas_passes } else { 1 };
        let passes = transfer.passes(lanes, u64::from(self.atomic.pass_bytes)) * per_pass;
        let (operand_bytes, result_bytes) = match self.atomic.carries {
            Carries::Operands => (count * operands * transfer.access.bytes, count * transfer.access.bytes),
            Carries::Segment => {
                sectors = segment(sectors);
                let bytes = sectors.count_ones() * SECTOR_BYTES;
                (bytes, bytes)
            }
        };
        let kind = RequestKind::Atomic {
            passes: passes as u16,
            same_word: same_word as u8,
            words: transfer.words(lanes, line),
            lanes: count as u8,
            operand_bytes: operand_bytes as u16,
            result_bytes: if silent { 0 } else { result_bytes as u16 },
        };
        let ticket = self.send(now, Purpose::Atomic, line, sectors, kind)?;
        self.wait_for(ticket, id, lanes);
        self.stats.atomics += 1;
        self.stats.atomic_lanes += count as u64;
        Ok(())
    }

    pub(crate) fn load_through_l1(
        &mut self,
        now: Cycle,
        id: TransferId,
        line: LineAddress,
        lanes: LaneMask,
    ) -> Result<(), Refusal> {
        match self.l1.look(line) {
            Lookup::Hit(way) => {
                let Transfer { pending, access, .. } = &mut self.transfers[id];
                access.load_from_line(line.0, self.l1.bytes(way), self.l1.written(way), lanes);
                pending.ready_at = pending.ready_at.max(now + self.hit_latency);
                self.stats.hits += 1;
            }
            Lookup::Merged(ticket) => {
                self.wait_for(ticket, id, lanes);
                self.stats.merges += 1;
            }
            Lookup::Miss(way) => {
                self.make_way(now, way)?;
                let ticket = if self.l1.is_coherent() {
                    self.ask(now, line, Asks::Share)?
                } else {
                    let purpose = Purpose::Fill { local: false };
                    self.send(now, purpose, line, self.all_sectors(), RequestKind::Read)?
                };
                self.l1.fetch(way, line, ticket, now, false);
                self.wait_for(ticket, id, lanes);
                self.stats.misses += 1;
            }
            Lookup::Refused(refusal) => return Err(refusal),
        }
        Ok(())
    }

    pub(crate) fn wait_for(&mut self, ticket: Ticket, id: TransferId, lanes: LaneMask) {
        self.flights[ticket].waiting.push((id, lanes));
        self.transfers[id].pending.outstanding += 1;
    }

    pub(crate) fn all_sectors(&self) -> u8 {
        ((1u32 << (self.line_bytes as u32 / SECTOR_BYTES)) - 1) as u8
    }

    /// Rounds sectors up to the granularity of accesses that skip the L1.
    fn widen(&self, sectors: u8) -> u8 {
        let piece = (self.bypass_bytes as u32 / SECTOR_BYTES).max(1);
        let all = self.all_sectors();
        if piece == 1 {
            return sectors & all;
        }
        let mut wide = 0;
        for first in (0..8).step_by(piece as usize) {
            let group = (((1u32 << piece) - 1) << first) as u8 & all;
            if sectors & group != 0 {
                wide |= group;
            }
        }
        wide
    }

    fn send_write(
        &mut self,
        now: Cycle,
        line: LineAddress,
        sectors: u8,
        whole: u8,
    ) -> Result<Ticket, Refusal> {
        let ticket = self.send(now, Purpose::Store, line, sectors, RequestKind::Write)?;
        self.outbox.last_mut().expect("just sent").1.whole = whole;
        Ok(ticket)
    }

    /// Sends a message, if the network has room.
    pub(crate) fn send(
        &mut self,
        now: Cycle,
        purpose: Purpose,
        line: LineAddress,
        sectors: u8,
        kind: RequestKind,
    ) -> Result<Ticket, Refusal> {
        if self.room == 0 {
            return Err(Refusal::Network);
        }
        self.room -= 1;
        let ticket = self.flights.take(|| Flight {
            purpose,
            line,
            waiting: SmallVec::new(),
            bytes: [0; MAX_LINE_BYTES],
            written: LineWritten::MAX,
            granted: None,
            comes: true,
            state_line: None,
        });
        let flight = &mut self.flights[ticket];
        (flight.purpose, flight.line) = (purpose, line);
        flight.waiting.clear();
        let request = Request {
            line,
            sectors,
            whole: sectors,
            kind,
            from: Node::Sm(self.sm),
            ticket,
            asks: Asks::Nothing,
            missed: false,
            far: false,
        };
        self.outbox.push((now, request));
        Ok(ticket)
    }

    /// Asks for a line of instructions. Returns whether the network took the message.
    pub(crate) fn fetch_instructions(&mut self, now: Cycle, line: LineAddress) -> bool {
        let aligned = LineAddress::of(line.0, self.line_bytes);
        match self.send(now, Purpose::Instruction, aligned, self.all_sectors(), RequestKind::Read) {
            Ok(ticket) => {
                // The fetch unit's lines may be smaller than the L2's.
                self.flights[ticket].line = line;
                true
            }
            Err(_) => false,
        }
    }

    /// An L2 slice serves message `ticket`: bytes move between memory and this SM's accesses. Returns the lanes of an
    /// atomic that changed what they found; for a store, with `notice`, whether any did.
    pub(crate) fn serve(&mut self, ticket: Ticket, memory: &mut Memory, notice: bool) -> LaneMask {
        let flight = &mut self.flights[ticket];
        match flight.purpose {
            Purpose::Fill { local: false } | Purpose::Load => {
                memory.read_line(flight.line.0, &mut flight.bytes[..self.line_bytes as usize]);
                flight.written = memory.written_from(flight.line.0);
                LaneMask::NONE
            }
            Purpose::Store => {
                let (id, lanes) = flight.waiting[0];
                if self.transfers[id].access.store(memory, lanes, notice) { lanes } else { LaneMask::NONE }
            }
            Purpose::Atomic => {
                let (id, lanes) = flight.waiting[0];
                self.transfers[id].access.update(memory, lanes)
            }
            Purpose::Switch => {
                let (switch, index) = flight.state_line.expect(MOVES_STATE);
                let line = &mut flight.bytes[..self.line_bytes as usize];
                if let Some(image) = self.switches.image_to_save(switch) {
                    let bytes = &image[index * line.len()..];
                    memory.write(flight.line.0, &bytes[..line.len()]);
                } else {
                    memory.read_line(flight.line.0, line);
                }
                LaneMask::NONE
            }
            Purpose::GiveBack => {
                let Some(given) = self.l1.leaving(ticket) else { return LaneMask::NONE };
                memory.write_line(flight.line.0, &given.bytes[..self.line_bytes as usize], given.written);
                LaneMask::NONE
            }
            _ => LaneMask::NONE,
        }
    }

    /// A reply arrives. Returns a line of instructions, if it brings one.
    pub(crate) fn arrive(&mut self, now: Cycle, reply: Reply) -> Option<LineAddress> {
        if std::mem::take(&mut self.refused) {
            self.find_next_piece();
        }
        let ticket = match reply {
            Reply::Answer(ticket) | Reply::FarAnswer(ticket) => ticket,
            Reply::Probe(id) => {
                self.answer_probe(now, id);
                return None;
            }
        };
        let flight = &self.flights[ticket];
        if let Some(grant) = flight.granted {
            self.arrive_granted(now, ticket, grant);
            return None;
        }
        let (purpose, line) = (flight.purpose, flight.line);
        match purpose {
            Purpose::Fill { local } => {
                let way = self.l1.fill(line, ticket, &flight.bytes);
                if let Some(way) = way.filter(|_| !local) {
                    self.l1.set_written(way, flight.written);
                }
            }
            Purpose::Constant => {
                let number = line.number(self.line_bytes);
                if let Some(way) = self.constant.victim(number) {
                    self.constant.replace(way, number);
                }
                self.constant_misses.retain(|&(_, waited)| waited != ticket);
            }
            Purpose::GiveBack => self.l1.has_left(ticket),
            Purpose::Switch => {
                let (switch, index) = flight.state_line.expect(MOVES_STATE);
                self.switches.arrived(switch, index, &flight.bytes[..self.line_bytes as usize]);
                self.flights.give_back(ticket);
                return None;
            }
            _ => {}
        }
        let flight = &self.flights[ticket];
        for &(id, lanes) in &flight.waiting {
            let Transfer { pending, access, .. } = &mut self.transfers[id];
            if matches!(purpose, Purpose::Fill { local: false } | Purpose::Load) {
                access.load_from_line(line.0, &flight.bytes, flight.written, lanes);
            }
            pending.outstanding -= 1;
            if pending.is_done() {
                self.completed.push((id, pending.ready_at.max(now)));
            }
        }
        self.flights.give_back(ticket);
        (purpose == Purpose::Instruction).then_some(line)
    }

    /// One of the messages of an access has been answered.
    pub(crate) fn part_done(&mut self, now: Cycle, id: TransferId) {
        let pending = &mut self.transfers[id].pending;
        pending.outstanding -= 1;
        if pending.is_done() {
            self.completed.push((id, pending.ready_at.max(now)));
        }
    }
}

/// The smallest aligned segment of one, two or four sectors that covers some sectors of a line.
fn segment(sectors: u8) -> u8 {
    const HALVES: [u8; 2] = [0b0011, 0b1100];
    match HALVES.into_iter().find(|half| sectors & !half == 0) {
        Some(half) if sectors != half => sectors,
        Some(half) => half,
        None => 0b1111,
    }
}
