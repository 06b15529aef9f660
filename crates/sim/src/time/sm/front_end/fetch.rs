//! Instruction supply: one warp fetches a cycle, from the instruction cache into its buffer.

use warploom_isa::Pc;

use crate::chip::timing::FetchSpec;
use crate::kit::divisor::Divisor;
use crate::kit::ids::{SlotSet, WarpSlot};
use crate::kit::line::LineNumber;
use crate::time::cache::Tags;

/// Where kernels' code lies in memory, as the L2 sees it: above every address that data can have.
const CODE_BASE: u64 = 1 << 48;

/// What a fetch found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fetched {
    /// Instructions that can issue at a cycle: how many, from the pc that was asked for.
    Hit {
        /// How many.
        count: u32,
        /// When.
        at: u64,
    },
    /// The line is not here; it has to be asked for.
    Miss {
        /// The line's address.
        line: u64,
    },
    /// The line is on its way already.
    Pending,
}

/// The fetch unit of an SM.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Fetch {
    /// Warps whose buffer is empty and that have not asked yet.
    wants: SlotSet,
    /// Warps that wait for a line, with the line.
    waits: Vec<(WarpSlot, u64)>,
    last: u8,
    /// Fetches that found their line.
    pub hits: u64,
    tags: Tags,
    spec: FetchSpec,
    line_bytes: Divisor,
    instruction_bytes: Divisor,
    /// Fetches that did not.
    pub misses: u64,
}

impl Fetch {
    /// An empty cache, nobody fetching.
    pub fn new(spec: &FetchSpec) -> Fetch {
        Fetch {
            spec: spec.clone(),
            line_bytes: Divisor::new(spec.cache.line_bytes as u64),
            instruction_bytes: Divisor::new(spec.instruction_bytes as u64),
            tags: Tags::new(&spec.cache),
            wants: SlotSet::default(),
            waits: Vec::new(),
            last: 0,
            hits: 0,
            misses: 0,
        }
    }

    /// Warps that can fetch in a cycle.
    pub fn warps_per_cycle(&self) -> u32 {
        self.spec.warps_per_cycle
    }

    /// A warp's buffer is empty.
    pub fn want(&mut self, slot: WarpSlot) {
        self.wants.insert(slot);
    }

    /// A warp needs no instruction any more.
    pub fn forget(&mut self, slot: WarpSlot) {
        self.wants.remove(slot);
        self.waits.retain(|&(waiting, _)| waiting != slot);
    }

    /// Whether some warp would fetch in this cycle.
    pub fn is_busy(&self) -> bool {
        !self.wants.is_empty()
    }

    /// The warp that fetches in this cycle, in turn.
    pub fn next_warp(&mut self) -> Option<WarpSlot> {
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

    /// The warp fetches at `pc`.
    pub fn fetch(&mut self, now: u64, slot: WarpSlot, pc: Pc) -> Fetched {
        let line_bytes = self.line_bytes.get();
        let address = CODE_BASE + pc.0 as u64 * self.instruction_bytes.get();
        let number = self.line_bytes.quotient(address);
        if let Some(way) = self.tags.find(LineNumber(number)).filter(|&way| self.tags.line(way).valid != 0) {
            self.tags.touch(way);
            self.hits += 1;
            let left = self.instruction_bytes.quotient((number + 1) * line_bytes - address);
            let count = self.spec.width.min(self.spec.buffer_entries).min(left as u32);
            return Fetched::Hit { count, at: now + self.spec.latency_cycles as u64 };
        }
        self.misses += 1;
        let line = number * line_bytes;
        let pending = self.waits.iter().any(|&(_, waited)| waited == line);
        self.waits.push((slot, line));
        if pending { Fetched::Pending } else { Fetched::Miss { line } }
    }

    /// A line has come. Those who waited for it fetch again.
    pub fn fill(&mut self, line: u64) {
        let number = LineNumber(self.line_bytes.quotient(line));
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
