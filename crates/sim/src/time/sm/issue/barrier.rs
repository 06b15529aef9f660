//! Barriers release the warps that wait at them.

use crate::kit::cycle::Cycle;
use crate::kit::ids::WarpSlot;
use crate::time::sm::cycle::Event;
use crate::time::sm::issue::slot::Position;
use crate::time::sm::probe::{Probe, State};
use crate::time::sm::{Context, Sm};

impl<const N: usize, P: Probe> Sm<N, P> {
    /// Warps of a CTA that no longer wait at a barrier, after what the warp in slot `by` did, go on after its latency.
    /// Its own arrival counts from `arrived` on.
    pub(super) fn release_from_barrier(
        &mut self,
        context: &Context<'_>,
        by: WarpSlot,
        now: Cycle,
        arrived: Cycle,
    ) {
        let latency = context.launch.chip.units.barrier_latency_cycles as u64;
        let at = self.slots[by.index()].occupant.resident();
        let Some(resident) = &self.residents[at] else { return };
        for w in 0..resident.warps.len() {
            let Some(resident) = &self.residents[at] else { return };
            let Some(slot) = resident.slots[w] else { continue };
            let entry = &mut self.slots[slot.index()];
            let control = &resident.warps[w].control;
            entry.position = Position::of(&resident.warps[w]);
            let Some(path) = control.current().filter(|_| slot != by) else { continue };
            let jumps = path.pc != entry.buffer.pc;
            if entry.status.state != State::Barrier {
                // Released lanes may run before those that were about to.
                if control.is_parted() {
                    if jumps {
                        self.redirect(slot, now);
                    }
                    self.refresh(context, slot, now);
                }
                continue;
            }
            let until = arrived + 1 + latency;
            if entry.not_before.0 < until {
                entry.not_before = (until, State::Barrier);
                let life = entry.occupant.life;
                self.agenda.events.push(until, Event::Wake { slot, life });
                if jumps {
                    self.redirect(slot, now);
                }
                // It fetches meanwhile, if it has to.
                self.refresh(context, slot, now + 1);
            }
        }
    }
}
