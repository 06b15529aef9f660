//! Instruction fetch: in turn, warps fetch from the instruction cache into their buffers.

use warploom_isa::Pc;

use crate::chip::timing::FetchSpec;
use crate::kit::cycle::Cycle;
use crate::kit::divisor::Divisor;
use crate::kit::ids::{SlotSet, WarpSlot};
use crate::kit::line::{LineAddress, LineNumber};
use crate::time::cache::Tags;
use crate::time::sm::Sm;
use crate::time::sm::cycle::Event;
use crate::time::sm::issue::slot::{Position, Slot};
use crate::time::sm::probe::Probe;

/// Where kernels' code lies in memory, as the L2 sees it: above every address that data can have.
pub(crate) const CODE_BASE: u64 = 1 << 48;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fetched {
    /// `count` instructions, from the pc that was asked for, can issue at cycle `at`.
    Hit { count: u32, at: Cycle },
    /// The line at this address must be requested.
    Miss { line: LineAddress },
    /// The line is in flight already.
    Pending,
}

/// The fetch unit of an SM. What every cycle reads comes first.
#[derive(Clone, Debug)]
#[repr(C)]
pub(crate) struct Fetch {
    /// Warps whose buffer has room and that have not fetched yet.
    wants: SlotSet,
    /// Instructions in a buffer that leave room for a fetch.
    room: u32,
    /// Warps that wait for a line, with its address.
    waits: Vec<(WarpSlot, LineAddress)>,
    /// Lines that were requested.
    in_flight: Vec<LineAddress>,
    /// The slot that fetched last.
    last: u8,
    pub hits: u64,
    tags: Tags,
    spec: FetchSpec,
    line_bytes: Divisor,
    instruction_bytes: Divisor,
    pub misses: u64,
}

impl Fetch {
    /// With the tags of an empty cache.
    pub(crate) fn new(spec: &FetchSpec, tags: Tags) -> Fetch {
        Fetch {
            spec: spec.clone(),
            line_bytes: Divisor::new(spec.cache.line_bytes as u64),
            instruction_bytes: Divisor::new(spec.instruction_bytes as u64),
            tags,
            wants: SlotSet::default(),
            room: spec.buffer_entries.saturating_sub(spec.width),
            waits: Vec::new(),
            in_flight: Vec::new(),
            last: 0,
            hits: 0,
            misses: 0,
        }
    }

    /// The tags of its cache, which are cleared.
    pub(crate) fn into_tags(self) -> Tags {
        let mut tags = self.tags;
        tags.clear();
        tags
    }

    /// The first instructions of a kernel are in the cache, as many as fit.
    pub(crate) fn warm_up(&mut self, code_start: u32, instructions: usize) {
        let bytes = instructions as u64 * self.instruction_bytes.get();
        let lines = self.line_bytes.quotient_up(bytes);
        let room = u64::from(self.spec.cache.sets) * u64::from(self.spec.cache.ways);
        let start = u64::from(code_start) * self.instruction_bytes.get();
        let first = self.line_bytes.quotient(CODE_BASE + start);
        for number in (first..first + lines.min(room)).map(LineNumber) {
            if let Some(way) = self.tags.victim(number) {
                self.tags.replace(way, number);
                self.tags.line_mut(way).valid = 1;
            }
        }
    }

    pub(crate) fn warps_per_cycle(&self) -> u32 {
        self.spec.warps_per_cycle
    }

    /// Whether a buffer with so many instructions takes those of another fetch.
    #[inline]
    pub(crate) fn has_room(&self, buffered: u32) -> bool {
        buffered <= self.room
    }

    /// A warp, whose buffer has room, will fetch when it is its turn.
    pub(crate) fn want(&mut self, slot: WarpSlot) {
        self.wants.insert(slot);
    }

    /// A warp has left its slot.
    pub(crate) fn forget(&mut self, slot: WarpSlot) {
        self.wants.remove(slot);
        self.waits.retain(|&(waiting, _)| waiting != slot);
    }

    /// Whether some warp would fetch in this cycle.
    pub(crate) fn is_busy(&self) -> bool {
        !self.wants.is_empty()
    }

    /// The warp whose turn it is to fetch.
    pub(crate) fn next_warp(&mut self) -> Option<WarpSlot> {
        if self.wants.is_empty() {
            return None;
        }
        let later = self.wants.0 & (u64::MAX.checked_shl(self.last as u32 + 1).unwrap_or(0));
        let from = if later != 0 { later } else { self.wants.0 };
        let slot = WarpSlot(from.trailing_zeros() as u8);
        self.wants.remove(slot);
        self.last = slot.0;
        Some(slot)
    }

    pub(crate) fn fetch(&mut self, now: Cycle, slot: WarpSlot, pc: Pc) -> Fetched {
        let line_bytes = self.line_bytes.get();
        let address = CODE_BASE + pc.0 as u64 * self.instruction_bytes.get();
        let number = LineNumber(self.line_bytes.quotient(address));
        if let Some(way) = self.tags.find(number).filter(|&way| self.tags.line(way).valid != 0) {
            self.tags.touch(way);
            self.hits += 1;
            let left = self.instruction_bytes.quotient((number.0 + 1) * line_bytes - address);
            let count = self.spec.width.min(self.spec.buffer_entries).min(left as u32);
            return Fetched::Hit { count, at: now + self.spec.latency_cycles as u64 };
        }
        self.misses += 1;
        let line = number.address(line_bytes);
        self.waits.push((slot, line));
        if self.in_flight.contains(&line) {
            return Fetched::Pending;
        }
        self.in_flight.push(line);
        Fetched::Miss { line }
    }

    /// The next line after one that missed that is to be fetched with it, as number `ahead`, if it is not here.
    fn prefetch(&mut self, line: LineAddress, ahead: u32) -> Option<LineAddress> {
        let number = LineNumber(self.line_bytes.quotient(line.0) + u64::from(ahead));
        let next = number.address(self.line_bytes.get());
        if self.tags.find(number).is_some() || self.in_flight.contains(&next) {
            return None;
        }
        self.in_flight.push(next);
        Some(next)
    }

    /// A line has arrived. The warps that waited for it fetch again.
    pub(crate) fn fill(&mut self, line: LineAddress) {
        let number = LineNumber(self.line_bytes.quotient(line.0));
        self.in_flight.retain(|&requested| requested != line);
        if let Some(way) = self.tags.victim(number) {
            self.tags.replace(way, number);
            self.tags.line_mut(way).valid = 1;
        }
        let wants = &mut self.wants;
        self.waits.retain(|&(slot, waited)| {
            if waited == line {
                wants.insert(slot);
            }
            waited != line
        });
    }
}

impl Slot {
    /// Fetched instructions are decoded. They are dropped if the warp has gone elsewhere meanwhile.
    #[inline]
    pub(crate) fn fill_buffer(&mut self, count: u32) {
        let buffer = &mut self.buffer;
        buffer.fetching = false;
        if let Position::At(pc) = self.position
            && Pc(pc.0 + buffer.count) == buffer.fetch_pc
        {
            buffer.count += count;
            buffer.pc = pc;
        }
    }
}

impl<const N: usize, P: Probe> Sm<N, P> {
    /// One warp fetches.
    pub(crate) fn fetch_one(&mut self, now: Cycle) {
        // Lines that the network refused are requested again first.
        while let Some(&line) = self.refused_lines.last() {
            if !self.memory.fetch_instructions(now, line) {
                break;
            }
            self.refused_lines.pop();
        }
        let Some(slot) = self.fetch.next_warp() else { return };
        let entry = &mut self.slots[slot.index()];
        let Position::At(pc) = entry.position else {
            entry.buffer.fetching = false;
            return;
        };
        let pc = Pc(pc.0 + entry.buffer.count);
        entry.buffer.fetch_pc = pc;
        let life = entry.occupant.life;
        match self.fetch.fetch(now, slot, Pc(entry.occupant.code_start + pc.0)) {
            Fetched::Hit { count, at } => self.agenda.events.push(at, Event::Decoded { slot, life, count }),
            Fetched::Miss { line } => {
                self.request_line(now, line);
                for ahead in 1..=self.fetch.spec.prefetch_lines {
                    if let Some(next) = self.fetch.prefetch(line, ahead) {
                        self.request_line(now, next);
                    }
                }
            }
            Fetched::Pending => {}
        }
    }

    fn request_line(&mut self, now: Cycle, line: LineAddress) {
        if !self.memory.fetch_instructions(now, line) {
            self.refused_lines.push(line);
        }
    }

    /// A warp's next instruction is not the one after its last: its buffer is dropped.
    pub(crate) fn redirect(&mut self, slot: WarpSlot, now: Cycle) {
        let entry = &mut self.slots[slot.index()];
        entry.buffer.count = 0;
        if !entry.buffer.fetching && self.branch_latency > 0 {
            entry.buffer.fetching = true;
            let life = entry.occupant.life;
            self.agenda.events.push(now + self.branch_latency, Event::Refetch { slot, life });
        }
    }
}
