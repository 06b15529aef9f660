//! What firmware starts on an SM: CTAs of any of its kernels, in any slots that are free.

use crate::exec::execute::Cta;
use crate::exec::warp::Warp;
use crate::kit::ids::{AwayId, SlotSet, WarpSlot};
use crate::kit::slab::Slab;
use crate::time::dispatch::{Command, News};
use crate::time::probe::Probe;
use crate::time::sm::core::{Context, Resident, Sm};

/// The SM's books of what firmware started. All empty in a plain launch.
#[derive(Debug, Default)]
pub struct Dispatched {
    /// Slots that hold a warp.
    taken: SlotSet,
    /// News with their cycles.
    pub news: Vec<(u64, News)>,
    /// Since when no slot has been taken.
    pub empty_since: u64,
    /// Cycles in which none was.
    pub empty_cycles: u64,
    /// Warps can give their slots away.
    pub can_yield: bool,
    /// Warps that did.
    pub(crate) away: Slab<AwayId, Away>,
}

/// A warp whose state is in memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Away {
    /// The place of its CTA.
    pub resident: usize,
    /// Its number in the CTA.
    pub warp: usize,
    /// Where its state is, and how many bytes of it.
    pub address: u64,
    pub bytes: usize,
}

impl Dispatched {
    /// A CTA has ended.
    pub(crate) fn cta_ended<const N: usize>(&mut self, there: Resident<N>, end: u64) {
        if there.cta.task.is_some() {
            there.slots.iter().flatten().for_each(|&slot| self.leave(slot, end));
            self.news.push((end, News::Ended { kernel: there.kernel }));
        }
    }

    /// Whether no warp is in a slot.
    pub fn is_empty(&self) -> bool {
        self.taken.is_empty()
    }

    /// The first of `count` slots that is free.
    pub(crate) fn enter(&mut self, count: usize, now: u64) -> WarpSlot {
        let slot = WarpSlot((!self.taken.0).trailing_zeros() as u8);
        debug_assert!(slot.index() < count, "the dispatcher knows what is free");
        if self.taken.is_empty() {
            self.empty_cycles += now - self.empty_since.min(now);
        }
        self.taken.insert(slot);
        slot
    }

    /// A slot is free again.
    pub(crate) fn leave(&mut self, slot: WarpSlot, now: u64) {
        self.taken.remove(slot);
        if self.taken.is_empty() {
            self.empty_since = now;
        }
    }

    /// The run is over at `end`.
    pub fn close(&mut self, end: u64) {
        if self.taken.is_empty() {
            self.empty_cycles += end.saturating_sub(self.empty_since);
            self.empty_since = end;
        }
    }
}

impl<const N: usize, P: Probe> Sm<N, P> {
    /// Does what the aggregator wants, at cycle `now`. The dispatcher knows that there is room.
    pub fn obey(&mut self, context: &Context<'_>, command: Command, now: u64) {
        self.now = self.now.max(now);
        match command {
            Command::Start { task, index, number } => {
                let kernel = task.kernel;
                let launch = context.of(kernel).launch;
                let at = self.residents.iter().position(Option::is_none).unwrap_or_else(|| {
                    self.residents.push(None);
                    self.vacant += 1;
                    self.residents.len() - 1
                });
                let per_cta = launch.occupancy.warps_per_cta;
                let divergence = launch.chip.sm.divergence;
                let warp = |w| Warp::new(w, launch.shape.block, launch.kernel, divergence);
                let warps = (0..per_cta).map(warp).collect();
                let cta = Cta::new(launch, number, self.id, 0).of_task(task, index);
                let count = self.slots.len();
                let slots = (0..per_cta).map(|_| Some(self.dispatched.enter(count, now))).collect();
                self.place_cta(context, at, Resident { cta, warps, slots, kernel }, now);
            }
            Command::Restart(id) => self.restart_warp(context, id, now),
        }
    }
}
