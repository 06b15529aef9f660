//! The load/store unit: sends the accesses of warps in order, one piece per cycle, to shared memory, the constant
//! cache, the L1 or the network. Start at [`MemoryUnit::step`].
//!
//! A piece is what one memory can serve at once: all lanes of shared memory without bank conflicts, one word of
//! constants, one row of local memory, one line of global memory. An access whose piece is refused blocks all others
//! behind it.

mod atomics;
mod bank_conflicts;
pub(crate) mod coherent;
pub(crate) mod inbox;
pub(crate) mod l1;
pub(crate) mod messages;
pub(crate) mod stats;
pub(crate) mod switch;
mod texture;
pub(crate) mod transfer;
mod under_way;

use std::collections::VecDeque;

use warploom_isa::AtomOp;

use crate::chip::Chip;
use crate::chip::timing::{AtomicSpec, Coherence, FenceScope, L1Policy, SECTOR_BYTES, SharedSpec};
use crate::exec::memory::access::{MemoryOp, SpaceLanes, WarpAccess};
use crate::kit::cycle::Cycle;
use crate::kit::ids::{ProbeId, Ticket, TransferId};
use crate::kit::lane_mask::LaneMask;
use crate::kit::line::LineAddress;
use crate::kit::slab::Slab;
use crate::time::cache::Tags;
use crate::time::directory::{Given, Probe};
use crate::time::map::AddressMap;
use crate::time::network::message::{Asks, Request, RequestKind};
use crate::time::sm::load_store::bank_conflicts::shared_turns;
use crate::time::sm::load_store::coherent::Update;
use crate::time::sm::load_store::l1::{L1, Lookup, Refusal};
use crate::time::sm::load_store::messages::{Flight, Purpose};
use crate::time::sm::load_store::stats::L1Stats;
use crate::time::sm::load_store::switch::Switches;
use crate::time::sm::load_store::texture::TextureUnits;
use crate::time::sm::load_store::transfer::Transfer;
use crate::time::sm::load_store::under_way::UnderWay;

/// Where local memory lies, as the L2 sees it.
const LOCAL_BASE: u64 = 1 << 49;

/// Where constants and parameters lie, as the L2 sees them.
pub(crate) const CONSTANT_BASE: u64 = 1 << 50;

/// Where the constants and parameters of a kernel lie, of several that run together.
pub(crate) fn constant_base(kernel: u16) -> u64 {
    CONSTANT_BASE + (u64::from(kernel) << 24)
}

/// What the unit did in a cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// No piece can be sent.
    Idle,
    /// The front access was refused; trying again makes sense after an answer or when the network has room.
    Refused(Refusal),
    /// A piece of this access was sent.
    Sent(TransferId),
    /// Its last piece was sent.
    Finished(TransferId),
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

/// What the network takes from an SM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Room {
    pub packets: u32,
    /// How many of them may be atomics.
    pub atomics: u32,
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
    /// Of them, atomics.
    atomic_room: u32,
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
    map: AddressMap,
    pub(crate) line_bytes: u64,
    bypass_bytes: u64,
    atomic: AtomicSpec,
    pub l1: L1,
    pub stats: L1Stats,
    shared: SharedSpec,
    pub(crate) hit_latency: u64,
    line_cycles: u64,
    constant_latency: u64,
    texture: Option<TextureUnits>,
    /// What it takes a warp to sum up its operands and to hand out the results.
    aggregation_cycles: u64,
    local_words: u64,
    constant: Tags,
    /// Lines of constants in flight, with their tickets.
    constant_misses: Vec<(LineAddress, Ticket)>,
    /// What the directory asks of a coherent L1 on behalf of others.
    pub(crate) probes: Slab<ProbeId, Probe>,
    /// Clean lines that a coherent L1 has evicted.
    pub dropped: Vec<LineAddress>,
    /// The L1's responses to probes: the cycle they are sent, the line, and its bytes.
    pub responses: Vec<(Cycle, LineAddress, Option<Box<Given>>)>,
    /// Accesses that take turns, piece by piece. Those behind them wait.
    turns: usize,
    /// Where fences follow accesses through the memory system.
    under_way: Option<Box<UnderWay>>,
    /// Numbers of fences' messages that have been answered.
    pub fences_answered: Vec<u64>,
    /// A store or an atomic has changed what a coherent L1 holds.
    pub stored: bool,
    /// What atomics did in a coherent L1, and with `shows_stores` also what stores did.
    pub updates: Vec<Update<N>>,
    pub(crate) shows_stores: bool,
}

/// A vote, a comparison and a branch see to it that all lanes take part. Five shuffles, each with an addition, sum up
/// their operands, and a sixth hands out what the word held. Each instruction takes three cycles more than its unit.
fn aggregation_cycles(chip: &Chip) -> u64 {
    let units = &chip.units;
    let [shuffle, vote] =
        [units.exchange, units.vote.unwrap_or(units.exchange)].map(|[latency, _]| latency + 3);
    let (add, branch) = (units.int.add[0] + 3, units.branch_latency_cycles + 3);
    u64::from(6 * (shuffle + add) + vote + add + branch)
}

impl<const N: usize> MemoryUnit<N> {
    /// An idle unit. With `shows_stores` it records what stores do in a coherent L1.
    pub(crate) fn new(chip: &Chip, sm: u16, shows_stores: bool, mut l1: L1, constant: Tags) -> Self {
        if chip.l1.coherence == Coherence::Moesi {
            l1.make_coherent();
        }
        let follows = chip.units.fence_waits_for == FenceScope::Sm && !l1.is_coherent();
        MemoryUnit {
            sm,
            shared: chip.shared.clone(),
            policy: chip.l1.global,
            map: AddressMap::new(&chip.l2, &chip.dram),
            line_bytes: chip.l1.cache.line_bytes as u64,
            bypass_bytes: chip.l1.bypass_bytes as u64,
            atomic: chip.atomic.clone(),
            hit_latency: chip.l1.hit_latency_cycles as u64,
            line_cycles: chip.l1.line_cycles as u64,
            constant_latency: chip.constant.hit_latency_cycles as u64,
            texture: TextureUnits::new(chip),
            aggregation_cycles: aggregation_cycles(chip),
            local_words: chip.memory.local_bytes_per_thread.div_ceil(4) as u64,
            transfers: Slab::default(),
            flights: Slab::default(),
            queue: VecDeque::new(),
            l1,
            constant,
            constant_misses: Vec::new(),
            free_at: Cycle(0),
            next_piece: Cycle::NEVER,
            refused: false,
            wants_room: false,
            completed: Vec::new(),
            outbox: Vec::new(),
            switches: Switches::default(),
            probes: Slab::default(),
            dropped: Vec::new(),
            responses: Vec::new(),
            turns: match chip.interconnect.atomic_window {
                0 => 1,
                _ => (chip.interconnect.queue_packets / chip.sm.warp_lanes).max(1) as usize,
            },
            under_way: follows.then(|| Box::new(UnderWay::new(chip))),
            fences_answered: Vec::new(),
            stored: false,
            updates: Vec::new(),
            shows_stores,
            room: chip.interconnect.queue_packets,
            atomic_room: match chip.interconnect.atomic_window {
                0 => u32::MAX,
                window => window,
            },
            stats: L1Stats::default(),
        }
    }

    /// Its caches, cleared, unless the L1 is coherent.
    pub(crate) fn into_caches(self) -> Option<(L1, Tags)> {
        let MemoryUnit { mut l1, mut constant, .. } = self;
        if l1.is_coherent() {
            return None;
        }
        l1.clear();
        constant.clear();
        Some((l1, constant))
    }

    /// An access whose operands have been read at `ready` joins the queue.
    pub(crate) fn push(&mut self, id: TransferId, ready: Cycle) {
        let transfer = &mut self.transfers[id];
        let is_silent = matches!(transfer.access.kind, MemoryOp::Atomic { silent: true, .. });
        // Without a result there is nothing to hand out, and the operands are added up by one instruction.
        let sums_up = transfer.pending.aggregated && !is_silent;
        let ready = if sums_up { ready + self.aggregation_cycles } else { ready };
        transfer.number_lines(self.line_bytes);
        transfer.pending.begin(transfer.access.lanes, ready);
        let SpaceLanes { global, shared, local, constant } = transfer.access.lanes;
        let elsewhere = shared | constant | local;
        let uses_l1 = self.policy == L1Policy::WriteEvict && transfer.looks_in_l1()
            || self.l1.is_coherent()
            || transfer.access.kind == MemoryOp::Texture;
        let needs_room = !global.is_empty() && elsewhere.is_empty() && !uses_l1;
        self.queue.push_back(Queued { id, needs_room, ready });
        // It may go before atomics that have to wait.
        if self.refused && self.wants_room && self.room > 0 && self.passable(ready).is_some() {
            self.refused = false;
        }
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

    /// The network takes so many packets from `now` on. Returns whether the unit can proceed because of that.
    pub(crate) fn set_room(&mut self, Room { packets, atomics }: Room, now: Cycle) -> bool {
        let had_none = std::mem::replace(&mut self.room, packets) == 0;
        self.atomic_room = atomics;
        if packets == 0 {
            return false;
        }
        let mut goes_on = !self.switches.is_idle();
        if self.refused && self.wants_room && (atomics > 0 || self.passable(now).is_some()) {
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
        if self.atomic_room == 0 {
            self.pass_atomics(now);
        }
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
        if self.transfers[id].access.kind == MemoryOp::Texture {
            self.sent_texels(now, id);
        }
        let pending = &self.transfers[id].pending;
        if !pending.unsent.all().is_empty() {
            if self.turns > 1 && self.queue.len() > 1 {
                self.take_turns();
            }
            let goes_on = self.queue.front().is_some_and(|front| front.id == id);
            if goes_on && matches!(self.transfers[id].access.kind, MemoryOp::Load | MemoryOp::Store) {
                self.free_at = self.free_at.max(now + self.line_cycles);
            }
            return Progress::Sent(id);
        }
        self.queue.pop_front();
        if pending.outstanding == 0 {
            let done = pending.ready_at + self.filter_cycles(id);
            self.completed.push((id, done));
        }
        if self.under_way.is_some() {
            self.send_fences(now);
        }
        Progress::Finished(id)
    }

    /// The front access goes behind the others that take turns with it, but not behind one of its own warp.
    fn take_turns(&mut self) {
        let Some(front) = self.queue.pop_front() else { return };
        let slot = self.transfers[front.id].pending.slot;
        let others = self.queue.len().min(self.turns - 1);
        let mut accesses = self.queue.iter().take(others);
        let place = accesses.position(|access| self.transfers[access.id].pending.slot == slot);
        self.queue.insert(place.unwrap_or(others), front);
    }

    /// Among the accesses that take turns, the first that is no atomic on global memory and may overtake those before
    /// it, as none of them is of its warp.
    fn passable(&self, now: Cycle) -> Option<usize> {
        let is_atomic = |id: TransferId| {
            let Transfer { pending, access, .. } = &self.transfers[id];
            matches!(access.kind, MemoryOp::Atomic { silent: false, .. }) && !pending.unsent.global.is_empty()
        };
        let slot = |at: usize| self.transfers[self.queue[at].id].pending.slot;
        (0..self.queue.len().min(self.turns)).find(|&at| {
            let Queued { id, ready, .. } = self.queue[at];
            ready <= now && !is_atomic(id) && (0..at).all(|earlier| slot(earlier) != slot(at))
        })
    }

    /// No more atomics can be sent: another access comes first.
    fn pass_atomics(&mut self, now: Cycle) {
        if let Some(at) = self.passable(now).filter(|&at| at > 0)
            && let Some(access) = self.queue.remove(at)
        {
            self.queue.push_front(access);
        }
    }

    fn send_shared(&mut self, now: Cycle, id: TransferId) {
        let transfer = &mut self.transfers[id];
        let lanes = std::mem::take(&mut transfer.pending.unsent.shared);
        let access = &transfer.access;
        let (mut turns, conflicts) = shared_turns(&access.addresses, access.bytes, lanes, self.shared.banks);
        self.stats.shared_accesses += 1;
        self.stats.shared_words += u64::from(lanes.count() * access.bytes.div_ceil(4));
        self.stats.bank_conflicts += conflicts as u64;
        let mut latency = self.shared.latency_cycles;
        if let MemoryOp::Atomic { op, .. } = access.kind {
            let same_word = if transfer.pending.aggregated { 1 } else { transfer.same_word(lanes) };
            turns += (same_word - 1) * self.shared.atomic_cycles;
            latency += if op == AtomOp::Cas { self.shared.cas_cycles } else { 0 };
            self.stats.shared_atomics += lanes.count() as u64;
        }
        self.free_at = now + turns as u64;
        let done = self.free_at - 1 + u64::from(latency);
        transfer.pending.ready_at = transfer.pending.ready_at.max(done);
    }

    /// Cycles that an access of another SM takes in shared memory.
    pub(crate) fn remote_turns(&mut self, access: &WarpAccess<N>, lanes: LaneMask) -> u64 {
        let (turns, conflicts) = shared_turns(&access.addresses, access.bytes, lanes, self.shared.banks);
        self.stats.shared_accesses += 1;
        self.stats.shared_words += u64::from(lanes.count() * access.bytes.div_ceil(4));
        self.stats.bank_conflicts += u64::from(conflicts);
        u64::from(self.shared.latency_cycles + turns - 1)
    }

    pub(crate) fn prefetch_parameters(&mut self, kernel: u16, bytes: u64) {
        for start in (0..bytes).step_by(self.line_bytes as usize) {
            let number = LineAddress(constant_base(kernel) + start).number(self.line_bytes);
            if let Some(way) = self.constant.victim(number) {
                self.constant.replace(way, number);
            }
        }
    }

    fn send_constant(&mut self, now: Cycle, id: TransferId) -> Result<(), Refusal> {
        let transfer = &self.transfers[id];
        let (block, lanes) = transfer.access.addresses.block(transfer.pending.unsent.constant, 4);
        let line = LineAddress::of(constant_base(transfer.kernel) + block, self.line_bytes);
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

    /// Writes a way's line back, if it is dirty, before the way is used for another line. A directory is told of all.
    pub(crate) fn make_way(&mut self, now: Cycle, way: crate::time::cache::Way) -> Result<(), Refusal> {
        if let Some(held) = self.l1.held(way) {
            return self.give_up(now, way, held);
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
        let is_fetch = transfer.access.kind == MemoryOp::Texture;
        let through_l1 = cached && transfer.looks_in_l1() || is_fetch;
        if self.room == 0 && !through_l1 {
            return Err(Refusal::Network);
        }
        let unsent = transfer.pending.unsent.global;
        let (line, mut lanes) = transfer.line(unsent, self.line_bytes);
        match transfer.access.kind {
            MemoryOp::Load | MemoryOp::Texture if through_l1 => self.load_through_l1(now, id, line, lanes)?,
            MemoryOp::Load
            | MemoryOp::Lock { .. }
            | MemoryOp::Copy
            | MemoryOp::Matrix
            | MemoryOp::Texture => {
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
            MemoryOp::Atomic { silent: false, .. } if self.atomic_room == 0 => return Err(Refusal::Network),
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
}
