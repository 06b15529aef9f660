//! Counts of what happened: the probe that every timed launch has, and the counters of the units.

use crate::kit::cycle::Cycle;
use crate::kit::ids::WarpSlot;
use crate::time::sched::Issue;
use crate::time::sm::front_end::decode::{Class, Decoded};
use crate::time::sm::front_end::operation::Operation;
use crate::time::sm::probe::{CtaEvent, Probe, State};

/// Counters of the warps of an SM.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SmStats {
    /// Instructions issued, by class.
    pub issued: [u64; Class::ALL.len()],
    /// Instructions issued, each counted once per active lane.
    pub thread_instructions: u64,
    /// Active lanes by what the instruction asks of a lane.
    pub lanes: [u64; Operation::COUNT],
    /// Registers read, each counted once per active lane.
    pub register_reads: u64,
    /// Registers written, each counted once per active lane.
    pub register_writes: u64,
    /// Cycles of resident warps by state.
    pub spent: [u64; State::COUNT],
    /// Of the ready cycles, those in which no unit could take the instruction.
    pub unit_busy: u64,
    /// Cycles of resident warps, counted when CTAs come and go.
    pub warp_cycles: u64,
    pub ctas: u64,
    /// Cycles without a resident warp, in a run of firmware.
    pub stalled_on_aggregator: u64,
    pub(crate) by_slot: BySlot,
}

/// Instructions issued by slot, since somebody set them to 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BySlot(pub(crate) [u32; WarpSlot::COUNT]);

impl Default for BySlot {
    fn default() -> Self {
        BySlot([0; WarpSlot::COUNT])
    }
}

impl SmStats {
    /// All instructions issued.
    pub fn warp_instructions(&self) -> u64 {
        self.issued.iter().sum()
    }

    /// Why warps did not issue: cycles of resident warps by reason. With `issued` they make up `warp_cycles`.
    pub fn stalls(&self) -> Vec<(&'static str, u64)> {
        State::ALL
            .iter()
            .flat_map(|&state| match state {
                State::Ready => {
                    let busy = self.unit_busy.min(self.spent[state as usize]);
                    vec![("not_selected", self.spent[state as usize] - busy), ("pipe_throttle", busy)]
                }
                state => vec![(state.name(), self.spent[state as usize])],
            })
            .collect()
    }

    /// Instructions issued, by class.
    pub fn classes(&self) -> impl Iterator<Item = (&'static str, u64)> {
        Class::ALL.iter().map(|&class| (class.name(), self.issued[class as usize]))
    }

    /// Adds another SM's counts.
    pub fn add(&mut self, other: &SmStats) {
        for (a, b) in self.issued.iter_mut().zip(other.issued) {
            *a += b;
        }
        for (a, b) in self.lanes.iter_mut().zip(other.lanes) {
            *a += b;
        }
        for (a, b) in self.spent.iter_mut().zip(other.spent) {
            *a += b;
        }
        self.thread_instructions += other.thread_instructions;
        self.register_reads += other.register_reads;
        self.register_writes += other.register_writes;
        self.unit_busy += other.unit_busy;
        // While CTAs run, it is not a sum yet (see `cta_started`).
        self.warp_cycles = self.warp_cycles.wrapping_add(other.warp_cycles);
        self.ctas += other.ctas;
        self.stalled_on_aggregator += other.stalled_on_aggregator;
    }
}

impl Probe for SmStats {
    #[inline(always)]
    fn issued(&mut self, _now: Cycle, issue: &Issue, inst: &Decoded) {
        self.issued[inst.class as usize] += 1;
        self.by_slot.0[issue.slot.index()] += 1;
        let lanes = u64::from(issue.lanes.count());
        self.thread_instructions += lanes;
        self.lanes[inst.operation as usize] += lanes;
        self.register_reads += lanes * inst.reads.len() as u64;
        self.register_writes += lanes * u64::from(inst.written);
    }

    #[inline(always)]
    fn spent(&mut self, _slot: WarpSlot, state: State, _from: Cycle, cycles: u64) {
        self.spent[state as usize] += cycles;
    }

    fn cta_started(&mut self, now: Cycle, cta: CtaEvent) {
        // Subtracted now and added at the end, so that the sum does not come from the states it is compared with.
        self.warp_cycles = self.warp_cycles.wrapping_sub(now.0 * cta.warps as u64);
        self.ctas += 1;
    }

    fn cta_ended(&mut self, now: Cycle, cta: CtaEvent) {
        self.warp_cycles = self.warp_cycles.wrapping_add(now.0 * cta.warps as u64);
    }

    fn warp_left(&mut self, now: Cycle, _slot: WarpSlot) {
        self.warp_cycles = self.warp_cycles.wrapping_add(now.0);
    }

    fn warp_came_back(&mut self, now: Cycle, _slot: WarpSlot) {
        self.warp_cycles = self.warp_cycles.wrapping_sub(now.0);
    }
}
