//! CTAs leave the SM in the middle of their work, and come back further on: the fast model executes a part of it
//! functionally (`machine/leap.rs`).

use crate::exec::functional;
use crate::kit::cycle::Cycle;
use crate::kit::ids::WarpSlot;
use crate::time::sm::probe::{CtaEvent, Probe, State};
use crate::time::sm::{Context, Resident, Sm, WarpSlots};

/// The place that a CTA has left.
#[derive(Debug)]
pub(crate) struct Place {
    pub sm: usize,
    /// The CTA's index among the residents, its number in the grid, and its slots.
    at: usize,
    number: u64,
    slots: WarpSlots,
}

impl Place {
    pub(crate) fn slots(&self) -> impl Iterator<Item = WarpSlot> {
        self.slots.iter().flatten().copied()
    }
}

impl<const N: usize, P: Probe> Sm<N, P> {
    /// All CTAs leave at cycle `now`. Nothing that their warps have begun is under way any more.
    pub(crate) fn send_off(&mut self, now: Cycle) -> Vec<(Place, functional::Resident<N>)> {
        let mut leaving = Vec::new();
        for at in 0..self.residents.len() {
            let Some(Resident { cta, warps, slots, .. }) = self.residents[at].take() else { continue };
            for (&slot, warp) in slots.iter().flatten().zip(&warps) {
                debug_assert_eq!(self.slots[slot.index()].status.outstanding, 0);
                if self.slots[slot.index()].state() == State::Ready {
                    self.stop_waiting_for_unit(slot, now);
                }
                if !warp.is_done() {
                    self.vacate(slot, now);
                }
                let status = &mut self.slots[slot.index()].status;
                self.probe.spent(slot, status.state, status.since, now.saturating_sub(status.since));
                status.since = now;
            }
            let place = Place { sm: self.id as usize, at, number: cta.number, slots };
            leaving.push((place, functional::Resident { cta, warps, slot: at as u32 }));
        }
        leaving
    }

    /// The CTA that has left a place comes back to it, or the one that has followed it. It may have ended.
    pub(crate) fn take_back(
        &mut self,
        context: &Context<'_>,
        (place, resident): (Place, functional::Resident<N>),
        now: Cycle,
    ) {
        let Place { at, number, slots, .. } = place;
        let functional::Resident { cta, warps, .. } = resident;
        let first = slots.iter().flatten().next().copied().expect("a CTA in the grid has warps");
        let event = |number: u64| CtaEvent { number, first, warps: slots.len() as u32 };
        let new = cta.number;
        if new != number {
            self.probe.cta_ended(now, event(number));
            self.locks.forget(number);
            self.probe.cta_started(now, event(new));
            self.changed = true;
        }
        if cta.live_warps == 0 {
            self.probe.cta_ended(now, event(new));
            self.locks.forget(new);
            self.vacant += 1;
            (self.last_end, self.changed) = (now, true);
            return;
        }
        let done: Vec<bool> = warps.iter().map(|warp| warp.is_done()).collect();
        self.residents[at] = Some(Resident { cta, warps, slots: slots.clone(), kernel: 0 });
        for (warp, slot) in slots.iter().copied().enumerate() {
            if let Some(slot) = slot.filter(|_| !done[warp]) {
                self.occupy(context, slot, at, warp, now);
            }
        }
        self.agenda.wake = self.agenda.now;
    }
}
