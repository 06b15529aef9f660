//! Wavefront yield: a warp's state is saved to memory and its slot goes to another warp; later it is restored on the
//! same SM.

use crate::kit::cycle::Cycle;
use crate::kit::ids::{AwayId, WarpSlot};
use crate::time::dispatch::{News, Yielded};
use crate::time::sm::dispatched::Away;
use crate::time::sm::probe::Probe;
use crate::time::sm::{Context, Sm};

impl<const N: usize, P: Probe> Sm<N, P> {
    /// The warp in a slot executes `wl.yield`: its state is being saved from now on. Its accesses are complete.
    pub(crate) fn yield_warp(&mut self, context: &Context<'_>, slot: WarpSlot, resource: u64) {
        let chip = context.launch.chip;
        let entry = &mut self.slots[slot.index()];
        let Some(resident) = &mut self.residents[entry.occupant.resident()] else { return };
        let warp = &mut resident.warps[entry.occupant.warp()];
        warp.control.advance();
        let bytes = chip.wavefront_yield.as_ref().map_or(0, |spec| spec.context_bytes) as usize;
        let Some(image) = warp.save(bytes) else { return };
        entry.status.held = true;
        let line_bytes = chip.l2.cache.line_bytes as usize;
        self.memory.switches.begin(slot.0 as u32, resource, image, None, line_bytes);
    }

    /// A warp that yielded gets a free slot: its state is being restored from now on.
    pub(crate) fn restart_warp(&mut self, context: &Context<'_>, id: AwayId, now: Cycle) {
        let Away { resident, warp, address, bytes } = self.dispatched.away[id];
        let slot = self.dispatched.enter(self.slot_count, now);
        let Some(there) = &mut self.residents[resident] else { return };
        there.slots[warp] = Some(slot);
        self.probe.warp_came_back(now, slot);
        self.occupy(context, slot, resident, warp, now);
        self.slots[slot.index()].status.held = true;
        self.refresh(context, slot, now);
        let line_bytes = context.launch.chip.l2.cache.line_bytes as usize;
        self.memory.switches.begin(id.0, 0, vec![0; bytes], Some(address), line_bytes);
        self.wake_up();
        self.changed = true;
    }

    /// The states of some warps are saved, with their restart records, or restored.
    pub(crate) fn finish_switches(&mut self, context: &Context<'_>, now: Cycle) {
        for id in std::mem::take(&mut self.memory.switches.done) {
            let switch = self.memory.switches.end(id);
            if let Some((address, bytes)) = switch.saved {
                self.leave(WarpSlot(switch.warp as u8), address, bytes, switch.resource, now);
            } else {
                self.come_back(context, AwayId(switch.warp), &switch.image, now);
            }
            self.changed = true;
        }
    }

    /// The state of the warp in a slot is saved: the slot is free.
    fn leave(&mut self, slot: WarpSlot, address: u64, bytes: usize, resource: u64, now: Cycle) {
        let entry = &self.slots[slot.index()];
        let (resident, warp, kernel) =
            (entry.occupant.resident(), entry.occupant.warp(), entry.occupant.kernel);
        let Some(there) = &mut self.residents[resident] else { return };
        there.slots[warp] = None;
        let cta_left = there.slots.iter().all(Option::is_none);
        self.vacate(slot, now);
        self.probe.warp_left(now, slot);
        self.dispatched.leave(slot, now);
        let away = self.dispatched.away.put(Away { resident, warp, address, bytes });
        let (cu, saved_at) = (self.id, address);
        let record = Yielded { cu, kernel, resource, saved_at, away, cta_left };
        self.dispatched.news.push((now, News::Yielded(record)));
    }

    /// The state of a warp that yielded is back: it goes on.
    fn come_back(&mut self, context: &Context<'_>, id: AwayId, image: &[u8], now: Cycle) {
        let Away { resident, warp, address, bytes } = self.dispatched.away[id];
        self.dispatched.away.give_back(id);
        self.memory.switches.free.push((bytes, address));
        let Some(there) = &mut self.residents[resident] else { return };
        let restored = there.warps[warp].restore(image);
        debug_assert!(restored, "nobody writes to a saved state");
        let Some(slot) = there.slots[warp] else { return };
        self.slots[slot.index()].status.held = false;
        self.locate(slot);
        self.refresh(context, slot, now);
    }
}
