//! DDOS: which backward branches are those of loops that wait (ElTantawy and Aamodt, HPCA 2018, Section IV).
//!
//! Two steps. The history registers of a warp tell whether it spins: its profiled lane makes the same comparisons of the
//! same values over and over. A table of the SM collects the backward branches that spinning warps execute, and is
//! confident of those that are executed so often enough.
//!
//! Nothing but comparisons and backward branches is looked at: no annotation, and no analysis of the program.

use warploom_isa::Pc;

use crate::chip::spinning::DdosSpec;
use crate::kit::ids::{SlotSet, WarpSlot};

pub mod history;
pub mod table;

use crate::time::sched::ddos::history::{History, Phase, Sample};
use crate::time::sched::ddos::table::SibTable;

/// What is kept of a warp.
#[derive(Clone, Debug, Default)]
struct Warp {
    /// The lane whose comparisons are looked at. It stays the same as long as it is active.
    lane: Option<u8>,
    history: History,
    /// As its registers said last; a warp that had to give them to another keeps it.
    spinning: bool,
}

/// The detector of an SM.
#[derive(Clone, Debug)]
pub struct Ddos {
    spec: DdosSpec,
    warps: Vec<Warp>,
    /// The prediction table.
    pub table: SibTable,
    live: SlotSet,
    turn: Turn,
}

/// Whose turn it is with the registers, if they are shared.
#[derive(Clone, Copy, Debug, Default)]
struct Turn {
    epoch: u64,
    owner: Option<WarpSlot>,
}

impl Ddos {
    /// A detector for so many warp slots.
    pub fn new(spec: &DdosSpec, slots: usize) -> Ddos {
        Ddos {
            spec: spec.clone(),
            warps: vec![Warp::default(); slots],
            table: SibTable::new(spec),
            live: SlotSet::default(),
            turn: Turn::default(),
        }
    }

    /// A warp begins.
    pub fn started(&mut self, now: u64, slot: WarpSlot) {
        self.share(now);
        self.live.insert(slot);
        self.warps[slot.index()] = Warp::default();
    }

    /// A warp has ended. With the last one the table is forgotten, too: the next may run something else.
    pub fn ended(&mut self, now: u64, slot: WarpSlot) {
        self.share(now);
        self.live.remove(slot);
        if self.turn.owner == Some(slot) {
            self.turn.owner = None;
        }
        if self.live.is_empty() {
            self.table.clear();
        }
    }

    /// A warp with these active lanes comes to a comparison: the lane whose operands are to be looked at, if any.
    pub fn profiled(&mut self, now: u64, slot: WarpSlot, lanes: u64) -> Option<usize> {
        if self.spec.time_sharing {
            self.share(now);
            // A warp that begins when nobody has the registers need not wait for the next turn.
            if *self.turn.owner.get_or_insert(slot) != slot {
                return None;
            }
        }
        let warp = &mut self.warps[slot.index()];
        let first = (lanes != 0).then(|| lanes.trailing_zeros() as u8)?;
        let lane = *warp.lane.get_or_insert(first);
        if lanes >> lane & 1 == 1 {
            return Some(lane.into());
        }
        // Another thread has another history.
        *warp = Warp { lane: Some(first), ..Warp::default() };
        Some(first.into())
    }

    /// Its profiled lane compares two values.
    pub fn compared(&mut self, slot: WarpSlot, pc: Pc, values: [u32; 2]) {
        let warp = &mut self.warps[slot.index()];
        warp.history.push(&self.spec, Sample::new(&self.spec, pc.0, values));
        warp.spinning = warp.history.phase() == Phase::Spinning;
    }

    /// A warp executes a backward branch. Returns whether it is a spin-inducing one.
    pub fn branched(&mut self, slot: WarpSlot, pc: Pc, taken: bool) -> bool {
        self.table.executed(pc, self.warps[slot.index()].spinning, taken)
    }

    /// Gives shared registers to the next warps in turn, one for each epoch that has ended.
    ///
    /// Epochs may end while nothing compares. Each call that reads the turn or changes who takes part catches up first.
    fn share(&mut self, now: u64) {
        let epoch = now / self.spec.epoch_cycles;
        if !self.spec.time_sharing || epoch == self.turn.epoch {
            return;
        }
        let warps = u64::from(self.live.len().max(1));
        let turns = (epoch - self.turn.epoch) % warps;
        let mut owner = self.turn.owner.filter(|_| !self.live.is_empty());
        for _ in 0..turns {
            owner = self.next_after(owner);
        }
        // The registers do not know whose they were.
        if let Some(slot) = owner {
            self.warps[slot.index()].history.clear();
            self.warps[slot.index()].lane = None;
        }
        self.turn = Turn { epoch, owner };
    }

    fn next_after(&self, owner: Option<WarpSlot>) -> Option<WarpSlot> {
        let above = owner.map_or(u64::MAX, |slot| (u64::MAX << slot.0) << 1);
        SlotSet(self.live.0 & above).first().or(self.live.first())
    }
}

#[cfg(test)]
mod tests;
