//! Who issues: schedulers take turns, and each asks its policy for one of its ready warps.

use std::hint::select_unpredictable;

use crate::exec::execute::Execution;
use crate::kit::cycle::Cycle;
use crate::kit::ids::{SlotSet, WarpSlot};
use crate::time::sched::Policy;
use crate::time::sm::cycle::Event;
use crate::time::sm::execution_units::ExecutionUnits;
use crate::time::sm::front_end::decode::ExecUnit;
use crate::time::sm::issue::Issued;
use crate::time::sm::probe::Probe;
use crate::time::sm::{Context, Sm};

/// A scheduler and its warps.
pub(crate) struct Scheduler {
    owned: SlotSet,
    pub(crate) policy: Box<dyn Policy>,
}

impl Scheduler {
    /// Scheduler `number` of `count`: slots are dealt out in turn.
    pub(crate) fn new(number: u32, count: u32, policy: Box<dyn Policy>) -> Scheduler {
        let owned = (0..64).filter(|slot| u32::from(*slot) % count == number).map(WarpSlot).collect();
        Scheduler { owned, policy }
    }
}

/// The warps whose next instruction could issue if its unit were free.
#[derive(Debug, Default)]
#[repr(C)]
pub(crate) struct ReadyWarps {
    all: SlotSet,
    by_unit: [SlotSet; ExecUnit::COUNT],
}

impl ReadyWarps {
    #[inline(always)]
    pub(crate) fn insert(&mut self, slot: WarpSlot, unit: ExecUnit) {
        self.by_unit[unit as usize].insert(slot);
        self.all.insert(slot);
    }

    #[inline(always)]
    pub(crate) fn remove(&mut self, slot: WarpSlot, unit: ExecUnit) {
        self.by_unit[unit as usize].remove(slot);
        self.all.remove(slot);
    }

    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The warps whose unit is free at `now`. Lanes of those in `taken` cannot go into the load/store unit.
    #[inline]
    fn issuable(&self, free_at: &[Cycle; ExecUnit::COUNT], taken: SlotSet, now: Cycle) -> SlotSet {
        const { assert!(ExecUnit::Control as usize == ExecUnit::COUNT - 1) };
        let mut found = self.by_unit[ExecUnit::Control as usize].0;
        // Branch-free: which units are free is unpredictable.
        for (ready, &free_at) in self.by_unit.iter().zip(&free_at[..ExecUnit::Control as usize]) {
            found |= ready.0 & u64::from(free_at <= now).wrapping_neg();
        }
        SlotSet(found & !(taken.0 & self.by_unit[ExecUnit::Memory as usize].0))
    }

    /// The first cycle in which the unit of some warp is free, or [`Cycle::NEVER`].
    #[inline]
    pub(crate) fn next_issuable(&self, units: &ExecutionUnits) -> Cycle {
        let mut next = Cycle::NEVER;
        if self.is_empty() {
            return next;
        }
        let accesses = self.by_unit[ExecUnit::Memory as usize];
        let waits_for_port = !accesses.is_empty() && accesses.0 & !units.lane_ports.taken().0 == 0;
        for (unit, (ready, &free_at)) in self.by_unit.iter().zip(&units.free_at).enumerate() {
            let absent = ready.is_empty() || waits_for_port && unit == ExecUnit::Memory as usize;
            next = next.min(select_unpredictable(absent, Cycle::NEVER, free_at));
        }
        if waits_for_port {
            let free_at = units.free_at[ExecUnit::Memory as usize];
            next = next.min(units.lane_ports.free_for(accesses).max(free_at));
        }
        next
    }
}

impl<const N: usize, P: Probe> Sm<N, P> {
    /// The policy that schedules the warp in a slot.
    pub(crate) fn policy_of(&mut self, slot: WarpSlot) -> &mut dyn Policy {
        let schedulers = self.schedulers.len();
        &mut *self.schedulers[slot.index() % schedulers].policy
    }

    /// If the policy of a warp may never pick it although it is ready: the cycles in which its turn comes twice.
    pub(crate) fn starves_after(&self, slot: WarpSlot) -> Option<u64> {
        let policy = &self.schedulers[slot.index() % self.schedulers.len()].policy;
        policy.may_starve().then(|| policy.turn_cycles().saturating_mul(2))
    }

    /// Every scheduler issues, if it can. Returns false if a thread faulted.
    pub(crate) fn schedule_all<'a>(
        &mut self,
        context: &Context<'a>,
        execution: &mut Execution<'a>,
        now: Cycle,
    ) -> bool {
        self.units.lane_ports.look(now);
        let mut issuable = self.issuable(now);
        if issuable.is_empty() {
            return true;
        }
        let (count, of_first) = (self.schedulers.len(), self.schedulers[0].owned);
        let mut scheduler = self.first_scheduler(issuable, now);
        for left in (0..count).rev() {
            // Slots are dealt out in turn.
            let ready = issuable & SlotSet(of_first.0 << scheduler);
            if !ready.is_empty() {
                if !self.schedule(context, execution, scheduler, ready, now) {
                    return false;
                }
                if left == 0 {
                    break;
                }
                // It may have taken the units that other schedulers' warps need.
                issuable = self.issuable(now);
            }
            scheduler = if scheduler + 1 == count { 0 } else { scheduler + 1 };
        }
        true
    }

    /// Who goes first: of the schedulers with warps for the same free unit, the next after the one that had it last.
    /// Taking turns by cycle is not enough, because a unit may be free only in every eighth cycle.
    fn first_scheduler(&self, issuable: SlotSet, now: Cycle) -> usize {
        // Its slots are as far apart as there are schedulers.
        let of_first = self.schedulers[0].owned;
        let is_of_one = |set: SlotSet| set.0 >> set.0.trailing_zeros() & !of_first.0 == 0;
        if is_of_one(issuable) {
            return 0;
        }
        for unit in [ExecUnit::Memory, ExecUnit::Sfu, ExecUnit::Dp, ExecUnit::Sp] {
            let ready = self.agenda.ready.by_unit[unit as usize];
            if ready.is_empty() || self.units.free_at[unit as usize] > now {
                continue;
            }
            if !is_of_one(ready) {
                let turn = self.turns[unit as usize];
                return if turn == self.schedulers.len() { 0 } else { turn };
            }
        }
        0
    }

    /// One scheduler issues from a set that is not empty. Returns false if a thread faulted.
    #[inline(always)]
    fn schedule<'a>(
        &mut self,
        context: &Context<'a>,
        execution: &mut Execution<'a>,
        scheduler: usize,
        ready: SlotSet,
        now: Cycle,
    ) -> bool {
        let Some(slot) = self.pick(scheduler, ready, now) else {
            self.agenda.held_back = true;
            return true;
        };
        debug_assert!(ready.contains(slot));
        for number in 1.. {
            match self.issue(context, execution, scheduler, slot, now) {
                Issued::GoesOn if number < self.width && self.issuable(now).contains(slot) => {}
                issued => return issued != Issued::Faulted,
            }
        }
        true
    }

    /// The scheduler's choice from a set that is not empty. `None` lets all of them wait.
    fn pick(&mut self, scheduler: usize, ready: SlotSet, now: Cycle) -> Option<WarpSlot> {
        let policy = &mut *self.schedulers[scheduler].policy;
        match &self.spin_unit {
            Some(unit) => unit.back_off.pick(now, ready, policy),
            None => policy.pick(now, ready),
        }
    }

    /// If a warp backed off with its last instruction, schedules the end of its delay. Returns whether it did.
    pub(super) fn begin_back_off(&mut self, slot: WarpSlot, now: Cycle) -> bool {
        let until = self.spin_unit.as_ref().and_then(|unit| unit.back_off.until(slot));
        if let Some(until) = until.filter(|&until| until > now + 1) {
            let life = self.slots[slot.index()].occupant.life;
            self.agenda.events.push(until, Event::Wake { slot, life });
        }
        until.is_some()
    }

    #[inline]
    fn issuable(&self, now: Cycle) -> SlotSet {
        self.agenda.ready.issuable(&self.units.free_at, self.units.lane_ports.taken(), now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chip::Chip;
    use crate::time::sched::POLICIES;

    #[test]
    fn warps_issue_when_their_unit_is_free() {
        let mut ready = ReadyWarps::default();
        let mut units = ExecutionUnits::new(&Chip::load("gtx480", &[]).unwrap());
        assert_eq!(ready.next_issuable(&units), Cycle::NEVER);
        ready.insert(WarpSlot(3), ExecUnit::Sfu);
        ready.insert(WarpSlot(5), ExecUnit::Memory);
        let free_at = &mut units.free_at;
        (free_at[ExecUnit::Sfu as usize], free_at[ExecUnit::Memory as usize]) = (Cycle(8), Cycle::NEVER);
        assert_eq!(ready.next_issuable(&units), Cycle(8));
        let issuable = |now| ready.issuable(&units.free_at, SlotSet(0), Cycle(now));
        assert_eq!([7, 8].map(issuable), [SlotSet(0), SlotSet(1 << 3)]);
        ready.remove(WarpSlot(3), ExecUnit::Sfu);
        assert!(!ready.is_empty() && ready.next_issuable(&units) == Cycle::NEVER);
    }

    #[test]
    fn lanes_of_a_scheduler_go_into_the_load_store_unit_one_warp_after_the_other() {
        let set = ["units.access_interval_cycles=4", "issue.schedulers=2"].map(String::from);
        let mut units = ExecutionUnits::new(&Chip::load("gtx480", &set).unwrap());
        let mut ready = ReadyWarps::default();
        units.lane_ports.take(Cycle(10), 4);
        // Scheduler 0 has slots 4 and 6, scheduler 1 has slot 7.
        [6, 7].into_iter().for_each(|slot| ready.insert(WarpSlot(slot), ExecUnit::Memory));
        let mut issuable = |now| {
            units.lane_ports.look(Cycle(now));
            ready.issuable(&units.free_at, units.lane_ports.taken(), Cycle(now))
        };
        assert_eq!([11, 13, 14].map(&mut issuable), [SlotSet(1 << 7), SlotSet(1 << 7), SlotSet(3 << 6)]);
        let waited = |units: &ExecutionUnits, now| units.busy_cycles(ExecUnit::Memory, 6, Cycle(now));
        assert_eq!([12, 14].map(|now| waited(&units, now)), [1, 3]);
        ready.remove(WarpSlot(7), ExecUnit::Memory);
        units.lane_ports.take(Cycle(14), 4);
        assert_eq!(ready.next_issuable(&units), Cycle(18));
        assert_eq!([16, 20].map(|now| waited(&units, now)), [4, 6]);
    }

    #[test]
    fn slots_are_dealt_to_schedulers_in_turn() {
        let chip = Chip::load("gtx480", &[]).unwrap();
        let (_, _, make) = POLICIES[0];
        let owned = [0, 1, 2].map(|number| Scheduler::new(number, 3, make(&chip)).owned);
        assert_eq!(owned.map(|owned| owned.first()), [0, 1, 2].map(|slot| Some(WarpSlot(slot))));
        assert_eq!(owned.iter().map(|owned| owned.len()).sum::<u32>(), 64);
        assert!(owned[1].contains(WarpSlot(61)));
    }
}
