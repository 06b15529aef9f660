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
    epoch: u64,
    owner: Option<WarpSlot>,
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

    pub(crate) fn started(&mut self, now: Cycle, slot: WarpSlot) {
        self.share(now);
        self.live.insert(slot);
        self.warps[slot.index()] = Warp::default();
    }

    /// A warp has ended. With the last one the table is cleared, too: the next warp may run another program.
    pub(crate) fn ended(&mut self, now: Cycle, slot: WarpSlot) {
        self.share(now);
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
        if self.spec.time_sharing {
            self.share(now);
            // A warp that starts while no warp has the registers need not wait for the next epoch.
            if *self.sharing.owner.get_or_insert(slot) != slot {
                return None;
            }
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

    /// Passes shared registers to the next warps in turn, one for each epoch that has ended.
    ///
    /// Epochs may end while nothing compares. Each call that reads the owner or changes who takes part catches up
    /// first.
    fn share(&mut self, now: Cycle) {
        let epoch = now.0 / self.spec.epoch_cycles;
        if !self.spec.time_sharing || epoch == self.sharing.epoch {
            return;
        }
        let warps = u64::from(self.live.len().max(1));
        let turns = (epoch - self.sharing.epoch) % warps;
        let mut owner = self.sharing.owner.filter(|_| !self.live.is_empty());
        for _ in 0..turns {
            owner = self.next_after(owner);
        }
        // The registers hold the history of their last owner.
        if let Some(slot) = owner {
            self.warps[slot.index()].history.clear();
            self.warps[slot.index()].lane = None;
        }
        self.sharing = Sharing { epoch, owner };
    }

    fn next_after(&self, owner: Option<WarpSlot>) -> Option<WarpSlot> {
        let above = owner.map_or(u64::MAX, |slot| (u64::MAX << slot.0) << 1);
        SlotSet(self.live.0 & above).first().or(self.live.first())
    }
}

#[cfg(test)]
mod tests;
