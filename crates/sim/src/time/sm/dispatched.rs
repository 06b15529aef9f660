//! CTAs of several kernels on an SM, in any free slots: firmware starts them, or the kernels run together.

use crate::exec::execute::Cta;
use crate::exec::launch::Launch;
use crate::exec::warp::Warp;
use crate::kit::cycle::Cycle;
use crate::kit::ids::{AwayId, SlotSet, WarpSlot};
use crate::kit::slab::Slab;
use crate::time::dispatch::{Command, News};
use crate::time::sm::probe::Probe;
use crate::time::sm::{Context, Resident, Sm};

/// What the SM knows of CTAs of several kernels. Empty in a plain launch.
#[derive(Debug, Default)]
pub(crate) struct Dispatched {
    /// Slots that hold a warp.
    taken: SlotSet,
    /// Reports to the dispatcher, with their cycles.
    pub news: Vec<(Cycle, News)>,
    /// Since when no slot has been taken, if none is.
    pub empty_since: Cycle,
    /// Cycles in which no slot was taken.
    pub empty_cycles: u64,
    /// Kernels run together: the machine is told when CTAs end.
    pub together: bool,
    /// By kernel that runs together with others: whether a CTA of it has been here.
    met: Vec<bool>,
    /// Warps can yield their slots.
    pub can_yield: bool,
    /// Warps that have yielded, by ticket.
    pub(crate) away: Slab<AwayId, Away>,
}

/// A warp whose state is in memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Away {
    /// The index of its CTA among the residents.
    pub resident: usize,
    /// Its number in the CTA.
    pub warp: usize,
    /// Where its state is saved.
    pub address: u64,
    pub bytes: usize,
}

impl Dispatched {
    pub(crate) fn cta_ended<const N: usize>(&mut self, there: Resident<N>, end: Cycle) {
        if self.together || there.cta.task.is_some() {
            there.slots.iter().flatten().for_each(|&slot| self.leave(slot, end));
            self.news.push((end, News::Ended { kernel: there.kernel }));
        }
    }

    /// Whether a CTA is the first of its kernel here.
    fn meet(&mut self, kernel: u16) -> bool {
        let at = usize::from(kernel);
        if self.met.len() <= at {
            self.met.resize(at + 1, false);
        }
        !std::mem::replace(&mut self.met[at], true)
    }

    /// Whether no warp is in a slot.
    pub(crate) fn is_empty(&self) -> bool {
        self.taken.is_empty()
    }

    /// Takes the first free one of `count` slots.
    pub(crate) fn enter(&mut self, count: usize, now: Cycle) -> WarpSlot {
        let slot = WarpSlot((!self.taken.0).trailing_zeros() as u8);
        debug_assert!(slot.index() < count, "the dispatcher keeps count of free slots");
        if self.taken.is_empty() {
            self.empty_cycles += now - self.empty_since.min(now);
        }
        self.taken.insert(slot);
        slot
    }

    /// Frees a slot.
    pub(crate) fn leave(&mut self, slot: WarpSlot, now: Cycle) {
        self.taken.remove(slot);
        if self.taken.is_empty() {
            self.empty_since = now;
        }
    }

    /// The run is over at `end`.
    pub(crate) fn close(&mut self, end: Cycle) {
        if self.taken.is_empty() {
            self.empty_cycles += end.saturating_sub(self.empty_since);
            self.empty_since = end;
        }
    }
}

impl<const N: usize, P: Probe> Sm<N, P> {
    /// Puts a CTA of one of several kernels that run together on the SM, which has room for it.
    pub(crate) fn start_cta_of(&mut self, context: &Context<'_>, kernel: u16, number: u64, now: Cycle) {
        self.agenda.now = self.agenda.now.max(now);
        let of_kernel = context.of(kernel);
        if self.dispatched.meet(kernel) {
            // What earlier kernels have written is seen by later ones: the L1 holds nothing older when one begins.
            self.memory.l1.invalidate();
            self.warm_up(of_kernel, kernel);
        }
        let at = self.residents.iter().position(Option::is_none).expect("the SM has room");
        let cta = Cta::new(of_kernel.launch, number, self.id, at as u32);
        let resident = self.resident(of_kernel.launch, cta, kernel, now);
        self.probe.cta_of_kernel(kernel, &resident.slots);
        self.place_cta(context, at, resident, now);
    }

    /// A CTA with new warps, in free slots.
    fn resident(&mut self, launch: &Launch<'_>, cta: Cta, kernel: u16, now: Cycle) -> Resident<N> {
        let per_cta = launch.occupancy.warps_per_cta;
        let divergence = launch.chip.sm.divergence;
        let warp = |w| {
            let warp = Warp::new(w, launch.shape.block, launch.kernel, divergence);
            warp.track_local(launch.check_uninitialised)
        };
        let warps = (0..per_cta).map(warp).collect();
        let count = self.slot_count;
        let slots = (0..per_cta).map(|_| Some(self.dispatched.enter(count, now))).collect();
        Resident { cta, warps, slots, kernel }
    }

    /// Carries out a command of the aggregator at cycle `now`. The dispatcher has made sure that there is room.
    pub(crate) fn obey(&mut self, context: &Context<'_>, command: Command, now: Cycle) {
        self.agenda.now = self.agenda.now.max(now);
        match command {
            Command::Start { task, index, number } => {
                let kernel = task.kernel;
                let launch = context.of(kernel).launch;
                let at = self.residents.iter().position(Option::is_none).unwrap_or_else(|| {
                    self.residents.push(None);
                    self.vacant += 1;
                    self.residents.len() - 1
                });
                let cta = Cta::new(launch, number, self.id, 0).of_task(task, index);
                let resident = self.resident(launch, cta, kernel, now);
                self.place_cta(context, at, resident, now);
            }
            Command::Restart(id) => self.restart_warp(context, id, now),
        }
    }
}
