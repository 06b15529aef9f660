//! CTAs come and go: a CTA starts, its warps take slots, it ends, and the cycles of its warps are accounted for.

use smallvec::SmallVec;

use crate::exec::execute::Cta;
use crate::exec::launch::Launch;
use crate::exec::warp::Warp;
use crate::kit::cycle::Cycle;
use crate::kit::ids::WarpSlot;
use crate::time::sm::issue::slot::Position;
use crate::time::sm::probe::{CtaEvent, Probe, State, WarpEvent};
use crate::time::sm::{Context, Resident, Sm};

const HAS_SLOT: &str = "a warp that starts has a slot";

impl<const N: usize, P: Probe> Sm<N, P> {
    /// Puts a CTA of the grid on the SM, which has room for it, at cycle `now`.
    pub(crate) fn start_cta(&mut self, context: &Context<'_>, number: u64, now: Cycle) {
        self.agenda.now = self.agenda.now.max(now);
        let Launch { chip, kernel, shape, occupancy, check_uninitialised, .. } = context.launch;
        let at = self.residents.iter().position(Option::is_none).expect("the SM has room");
        let per_cta = occupancy.warps_per_cta;
        let first = at as u8 * per_cta as u8;
        let warp =
            |w| Warp::new(w, shape.block, kernel, chip.sm.divergence).track_local(*check_uninitialised);
        let warps = (0..per_cta).map(warp).collect();
        let cta = Cta::new(context.launch, number, self.id, at as u32);
        let slots = (first..first + per_cta as u8).map(|slot| Some(WarpSlot(slot))).collect();
        self.place_cta(context, at, Resident { cta, warps, slots, kernel: 0 }, now);
    }

    /// Puts a CTA at index `at` of the residents, and its warps into their slots.
    pub(crate) fn place_cta(&mut self, context: &Context<'_>, at: usize, resident: Resident<N>, now: Cycle) {
        let slots = resident.slots.clone();
        let (number, warps) = (resident.cta.number, slots.len() as u32);
        self.residents[at] = Some(resident);
        self.vacant -= 1;
        let first = slots[0].expect(HAS_SLOT);
        self.probe.cta_started(now, CtaEvent { number, first, warps });
        for (warp, slot) in slots.into_iter().enumerate() {
            self.occupy(context, slot.expect(HAS_SLOT), at, warp, now);
        }
        self.agenda.wake = self.agenda.now;
        self.changed = true;
    }

    /// A warp of resident `at` begins in a slot.
    pub(crate) fn occupy(
        &mut self,
        context: &Context<'_>,
        slot: WarpSlot,
        at: usize,
        warp: usize,
        now: Cycle,
    ) {
        let (kernel, cta) =
            self.residents[at].as_ref().map_or((0, 0), |resident| (resident.kernel, resident.cta.number));
        self.probe.warp_entered(now, slot, WarpEvent { kernel, cta, warp: warp as u32 });
        let entry = &mut self.slots[slot.index()];
        *entry = entry.next(at, warp, now);
        (entry.occupant.kernel, entry.occupant.code_start) = (kernel, context.of(kernel).code_start);
        self.locate(slot);
        let age = self.warps_started;
        self.warps_started += 1;
        self.policy_of(slot).started(now, slot, age);
        if let Some(unit) = &mut self.spin_unit {
            unit.started(now, slot);
        }
        if let Some(lanes) = self.waited_at.get_mut(slot.index()) {
            *lanes = [u64::MAX; N];
        }
        self.refresh(context, slot, now);
    }

    /// Copies the position of the warp in a slot into the slot.
    pub(crate) fn locate(&mut self, slot: WarpSlot) {
        let entry = &mut self.slots[slot.index()];
        let resident = self.residents[entry.occupant.resident()].as_ref();
        entry.position =
            resident.map_or(Position::Ended, |resident| Position::of(&resident.warps[entry.occupant.warp()]));
    }

    /// A warp has left its slot although it has not ended.
    pub(crate) fn vacate(&mut self, slot: WarpSlot, now: Cycle) {
        let entry = &mut self.slots[slot.index()];
        let status = &mut entry.status;
        if now > status.since {
            self.probe.spent(slot, status.state, status.since, now - status.since);
        }
        status.since = now;
        (status.state, entry.position) = (State::Drain, Position::Ended);
        entry.occupant.life += 1;
        self.fetch.forget(slot);
        self.policy_of(slot).ended(now, slot);
        if let Some(unit) = &mut self.spin_unit {
            unit.left(now, slot);
        }
    }

    /// Frees the place of a CTA once all its threads have ended and its accesses are done.
    #[inline(always)]
    pub(crate) fn end_cta_if_done(&mut self, resident: usize, now: Cycle) {
        if self.residents[resident].as_ref().is_some_and(|there| there.cta.live_warps == 0) {
            self.end_drained_cta(resident, now);
        }
    }

    /// All threads of a CTA have ended: frees its place if its accesses are done.
    #[inline(never)]
    fn end_drained_cta(&mut self, resident: usize, now: Cycle) {
        let Some(there) = &self.residents[resident] else { return };
        if there.slots.iter().flatten().any(|slot| self.slots[slot.index()].status.outstanding > 0) {
            return;
        }
        let number = there.cta.number;
        if self.engine.as_ref().is_some_and(|engine| engine.holds(number)) {
            return;
        }
        // The cycle of the last instruction is part of the CTA's time.
        let end = now + 1;
        self.account_end(resident, end);
        let there = self.residents[resident].take().expect("it was here before");
        for slot in there.slots.iter().flatten() {
            self.slots[slot.index()].occupant.life += 1;
            self.fetch.forget(*slot);
        }
        self.locks.forget(number);
        self.ended_ctas.push((number, there.kernel));
        self.dispatched.cta_ended(there, end);
        self.vacant += 1;
        self.last_end = end;
        self.changed = true;
    }

    /// The launch ends at `end` although CTAs are resident: the cycles of their warps up to then are accounted for.
    pub(crate) fn cut_off(&mut self, end: Cycle) {
        for resident in 0..self.residents.len() {
            self.account_end(resident, end);
        }
    }

    /// A CTA's time on the SM is over: the last states of its warps are accounted for.
    fn account_end(&mut self, resident: usize, end: Cycle) {
        let Some(there) = &self.residents[resident] else { return };
        let slots: SmallVec<[WarpSlot; 8]> = there.slots.iter().flatten().copied().collect();
        // A fault ends a launch in the middle of a cycle that some warps have used.
        let end = slots.iter().map(|slot| self.slots[slot.index()].status.since).fold(end, Cycle::max);
        for &slot in &slots {
            let status = &mut self.slots[slot.index()].status;
            if end > status.since {
                self.probe.spent(slot, status.state, status.since, end - status.since);
            }
            if status.state == State::Ready {
                let busy = status.waited_for_unit(&self.units, slot, end);
                self.unit_busy += busy;
                self.probe.unit_busy(slot, busy);
            }
            status.since = end;
        }
        let first = slots.first().copied().unwrap_or(WarpSlot(0));
        let warps = slots.len() as u32;
        self.probe.cta_ended(end, CtaEvent { number: there.cta.number, first, warps });
    }
}
