//! DDOS: detects the backward branches of loops that wait (ElTantawy and Aamodt, HPCA 2018, Section IV).
//!
//! Two steps. The history registers of a warp tell whether it spins: its profiled lane makes the same comparisons of
//! the same values over and over. A table of the SM collects the backward branches that spinning warps execute, and
//! confirms those that they execute often enough.
//!
//! Only comparisons and backward branches are looked at: no annotation, and no analysis of the program.

use warploom_isa::Pc;

use crate::chip::spinning::DdosSpec;
use crate::kit::cycle::Cycle;
use crate::kit::ids::{SlotSet, WarpSlot};
use crate::kit::lane_mask::LaneMask;

pub(crate) mod history;
pub(crate) mod table;

use crate::time::sched::ddos::history::{History, Phase, Sample};
use crate::time::sched::ddos::table::SibTable;

#[derive(Clone, Debug, Default)]
struct Warp {
    /// The lane whose comparisons are looked at. It stays the same as long as it is active.
    lane: Option<u8>,
    history: History,
    /// What its registers said last. A warp that had to pass them on keeps it.
    spinning: bool,
}

/// The detector of an SM.
#[derive(Clone, Debug)]
pub(crate) struct Ddos {
    spec: DdosSpec,
    warps: Vec<Warp>,
    pub table: SibTable,
    live: SlotSet,
    sharing: Sharing,
}

/// Who has the history registers, if warps share them.
#[derive(Clone, Copy, Debug, Default)]
struct Sharing {
    owner: Option<WarpSlot>,
    since: Cycle,
}

impl Ddos {
    pub(crate) fn new(spec: &DdosSpec, slots: usize) -> Ddos {
        Ddos {
            spec: spec.clone(),
            warps: vec![Warp::default(); slots],
            table: SibTable::new(spec),
            live: SlotSet::default(),
            sharing: Sharing::default(),
        }
    }

    pub(crate) fn started(&mut self, slot: WarpSlot) {
        self.live.insert(slot);
        self.warps[slot.index()] = Warp::default();
    }

    /// A warp has ended. With the last one the table is cleared, too: the next warp may run another program.
    pub(crate) fn ended(&mut self, slot: WarpSlot) {
        self.live.remove(slot);
        if self.sharing.owner == Some(slot) {
            self.sharing.owner = None;
        }
        if self.live.is_empty() {
            self.table.clear();
        }
    }

    /// A warp with these active lanes executes a comparison. Returns the lane whose operands are recorded, if any.
    pub(crate) fn profiled(&mut self, now: Cycle, slot: WarpSlot, lanes: LaneMask) -> Option<usize> {
        if self.spec.time_sharing && !self.has_registers(now, slot) {
            return None;
        }
        let warp = &mut self.warps[slot.index()];
        let first = (!lanes.is_empty()).then(|| lanes.lowest() as u8)?;
        let lane = *warp.lane.get_or_insert(first);
        if lanes.contains(lane.into()) {
            return Some(lane.into());
        }
        // Another lane starts a new history.
        *warp = Warp { lane: Some(first), ..Warp::default() };
        Some(first.into())
    }

    /// Its profiled lane compares two values.
    pub(crate) fn compared(&mut self, slot: WarpSlot, pc: Pc, values: [u32; 2]) {
        let warp = &mut self.warps[slot.index()];
        warp.history.push(&self.spec, Sample::new(&self.spec, pc.0, values));
        warp.spinning = warp.history.phase() == Phase::Spinning;
    }

    /// A warp executes a backward branch. Returns whether it is a spin-inducing one.
    pub(crate) fn branched(&mut self, slot: WarpSlot, pc: Pc, taken: bool) -> bool {
        self.table.executed(pc, self.warps[slot.index()].spinning, taken)
    }

    /// Whether a warp that compares has the shared registers. When their owner's epoch is over, the first other warp
    /// to compare takes them, as in the authors' simulator.
    fn has_registers(&mut self, now: Cycle, slot: WarpSlot) -> bool {
        let Sharing { owner, since } = self.sharing;
        if owner == Some(slot) {
            return true;
        }
        if owner.is_some() && now - since < self.spec.epoch_cycles {
            return false;
        }
        self.sharing = Sharing { owner: Some(slot), since: now };
        // The registers hold the history of their last owner.
        self.warps[slot.index()].history.clear();
        self.warps[slot.index()].lane = None;
        true
    }
}

#[cfg(test)]
mod tests;
