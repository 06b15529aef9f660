//! What a warp waits for, and the accounting of its cycles.

use warploom_isa::{Op, Pc};

use crate::exec::warp::Warp;
use crate::kit::cycle::Cycle;
use crate::kit::ids::WarpSlot;
use crate::time::sm::cycle::Event;
use crate::time::sm::front_end::decode::ExecUnit;
use crate::time::sm::issue::scoreboard::RegSet;
use crate::time::sm::issue::slot::Position;
use crate::time::sm::probe::{Probe, State};
use crate::time::sm::{Context, Sm};

impl<const N: usize, P: Probe> Sm<N, P> {
    /// Assesses a warp anew for cycle `from`, and accounts for its earlier state up to then.
    #[inline(never)]
    pub(crate) fn refresh(&mut self, context: &Context<'_>, slot: WarpSlot, from: Cycle) {
        let context = context.of(self.slots[slot.index()].occupant.kernel);
        self.refresh_inline(context, slot, from);
    }

    /// [`Sm::refresh`] for a caller that knows the context of the warp's kernel and always gets here.
    #[inline(always)]
    pub(super) fn refresh_inline(&mut self, context: &Context<'_>, slot: WarpSlot, from: Cycle) {
        let (mut state, mut unit) = self.assess(context, slot, from);
        if state == State::Ready && self.yield_cycles > 0 && self.yields(context, slot, from) {
            (state, unit) = (State::Sleeping, ExecUnit::Control);
        }
        let mut entry = &mut self.slots[slot.index()];
        // A warp that sleeps, or waits for a fence or a barrier's latency, fetches meanwhile.
        if entry.begins_fetch(&self.fetch, context.code.len()) {
            self.fetch.want(slot);
        }
        if (entry.status.state, entry.status.unit) == (state, unit) {
            return;
        }
        if entry.status.state == State::Ready {
            self.stop_waiting_for_unit(slot, from);
            entry = &mut self.slots[slot.index()];
        }
        let status = &mut entry.status;
        if state == State::Ready {
            status.begin_wait_for_unit(&self.units, unit, slot, from);
            self.agenda.ready.insert(slot, unit);
        }
        if status.state != state && from > status.since {
            self.probe.spent(slot, status.state, status.since, from - status.since);
            status.since = from;
        }
        (status.state, status.unit) = (state, unit);
    }

    /// A warp that was ready does not issue, because of what others did.
    #[cold]
    pub(crate) fn stop_waiting_for_unit(&mut self, slot: WarpSlot, from: Cycle) {
        let status = &mut self.slots[slot.index()].status;
        let busy = status.waited_for_unit(&self.units, slot, from);
        self.unit_busy += busy;
        self.probe.unit_busy(slot, busy);
        self.agenda.ready.remove(slot, status.unit);
    }

    /// Fetched instructions can issue.
    #[inline]
    pub(crate) fn refresh_after_fetch(&mut self, context: &Context<'_>, slot: WarpSlot, now: Cycle) {
        // A warp that waits for something else still does.
        match self.slots[slot.index()].status.state {
            State::NoInstruction => self.refresh(context, slot, now),
            _ => {
                let entry = &mut self.slots[slot.index()];
                if entry.begins_fetch(&self.fetch, context.of(entry.occupant.kernel).code.len()) {
                    self.fetch.want(slot);
                }
            }
        }
    }

    /// An access of the warp is complete.
    #[inline]
    pub(crate) fn refresh_after_access(&mut self, context: &Context<'_>, slot: WarpSlot, now: Cycle) {
        let status = &self.slots[slot.index()].status;
        // Otherwise the warp waits for no access, or for nothing.
        let may_wait = !matches!(
            status.state,
            State::Ready
                | State::NoInstruction
                | State::ExecutionDependency
                | State::Sleeping
                | State::BackedOff
        );
        if may_wait || status.blocked {
            self.refresh(context, slot, now);
        }
    }

    /// A compiler puts a yield into loops that may wait for other threads. If the lanes of the warp are together,
    /// nobody uses the time. Returns whether it begins.
    #[inline]
    fn yields(&mut self, context: &Context<'_>, slot: WarpSlot, from: Cycle) -> bool {
        let entry = &self.slots[slot.index()];
        let Position::At(pc) = entry.position else { return false };
        let yields = context.of(entry.occupant.kernel).code[pc.index()].yields;
        yields && !entry.yielded && self.begin_yield(slot, from)
    }

    #[inline(never)]
    fn begin_yield(&mut self, slot: WarpSlot, from: Cycle) -> bool {
        let entry = &mut self.slots[slot.index()];
        let resident = self.residents[entry.occupant.resident()].as_ref();
        let warp = entry.occupant.warp();
        if resident.is_some_and(|resident| resident.warps[warp].control.is_parted()) {
            return false;
        }
        entry.yielded = true;
        let until = from + self.yield_cycles;
        entry.not_before = (until, State::Sleeping);
        self.agenda.events.push(until, Event::Wake { slot, life: entry.occupant.life });
        true
    }

    /// In the context of its kernel: the state of a warp in cycle `now` and, if it is ready, the unit that its next
    /// instruction needs.
    #[inline(always)]
    pub(crate) fn assess(&self, context: &Context<'_>, slot: WarpSlot, now: Cycle) -> (State, ExecUnit) {
        let entry = &self.slots[slot.index()];
        let status = &entry.status;
        let none = ExecUnit::Control;
        debug_assert_eq!(entry.position, self.warp_in(slot).map_or(Position::Ended, Position::of));
        let Position::At(pc) = entry.position else { return (self.assess_stopped(slot, now), none) };
        if (status.held | status.blocked | entry.fenced)
            && let Some(state) = self.hindrance(slot)
        {
            return (state, none);
        }
        let (not_before, reason) = entry.not_before;
        if now < not_before {
            return (reason, none);
        }
        if entry.buffer.count == 0 {
            return (State::NoInstruction, none);
        }
        let inst = &context.code[pc.index()];
        let state = if inst.needs_registers_only {
            self.assess_registers(slot, &inst.needs, now)
        } else {
            self.assess_particular(context, slot, pc, now)
        };
        (state, if state == State::Ready { inst.unit } else { none })
    }

    /// The state of a warp whose next instruction waits for nothing but the registers that it needs.
    #[inline(always)]
    fn assess_registers(&self, slot: WarpSlot, needs: &RegSet, now: Cycle) -> State {
        let board = &self.slots[slot.index()].board;
        if !board.waits(needs) {
            let delayed = self.spin_unit.as_ref().is_some_and(|unit| unit.back_off.delays(slot, now));
            if delayed { State::BackedOff } else { State::Ready }
        } else if !board.waits_for_memory(needs) {
            State::ExecutionDependency
        } else if board.waits_for_shared(needs) {
            State::ShortScoreboard
        } else {
            State::LongScoreboard
        }
    }

    /// The state of a warp whose next instruction may wait for other things than registers, or whose registers are
    /// moved.
    #[inline(never)]
    fn assess_particular(&self, context: &Context<'_>, slot: WarpSlot, pc: Pc, now: Cycle) -> State {
        if let Some(state) = self.waits_in_order(context, slot, pc) {
            return state;
        }
        let inst = &context.code[pc.index()];
        if inst.is_moved {
            self.assess_registers(slot, &self.needs_of_activation(context, slot, pc), now)
        } else {
            self.assess_registers(slot, &inst.needs, now)
        }
    }

    /// The state of a warp none of whose paths runs.
    fn assess_stopped(&self, slot: WarpSlot, now: Cycle) -> State {
        let entry = &self.slots[slot.index()];
        if entry.position == Position::Ended {
            return State::Drain;
        }
        if let Some(state) = self.hindrance(slot) {
            return state;
        }
        let (not_before, reason) = entry.not_before;
        if now < not_before {
            return reason;
        }
        if entry.sleeps_until != Cycle::NEVER {
            return State::Sleeping;
        }
        let at_barrier = self.warp_in(slot).is_some_and(|warp| warp.control.waits_at_barrier());
        if at_barrier { State::Barrier } else { State::WarpSync }
    }

    /// Why a warp that has not ended waits, if it does so for a fence, an acquire or a lock queue.
    #[inline(never)]
    fn hindrance(&self, slot: WarpSlot) -> Option<State> {
        let entry = &self.slots[slot.index()];
        if entry.status.held || entry.fenced {
            return Some(State::Membar);
        }
        // Lanes on another path may hold the lock.
        let waits =
            entry.status.blocked && self.warp_in(slot).is_some_and(|warp| warp.control.running_paths() < 2);
        waits.then_some(State::LockQueue)
    }

    /// Why the instruction at `pc` waits, if it does so for earlier accesses of its warp.
    fn waits_in_order(&self, context: &Context<'_>, slot: WarpSlot, pc: Pc) -> Option<State> {
        let entry = &self.slots[slot.index()];
        let inst = &context.code[pc.index()];
        if inst.ordering.after_all
            && entry.status.outstanding > 0
            && inst.leaves_groups.is_none_or(|left| entry.copies.waits(left))
        {
            return Some(State::Membar);
        }
        if inst.ordering.after_bulk_copies
            && let (Some(bulk), Some(left)) = (&entry.bulk, inst.leaves_groups)
            && bulk.waits(context.launch.kernel.code[pc.index()].op == Op::BulkWait(true), left)
        {
            return Some(State::Membar);
        }
        (inst.ordering.after_shared_stores && entry.shared_stores > 0).then_some(State::Barrier)
    }

    /// The registers that the instruction at `pc` needs, where functions call each other.
    fn needs_of_activation(&self, context: &Context<'_>, slot: WarpSlot, pc: Pc) -> RegSet {
        if matches!(context.launch.kernel.code[pc.index()].op, Op::Call | Op::Ret) {
            // Registers of the caller and the callee are different rows that may share a bit.
            return RegSet::ALL;
        }
        let (registers, predicates) = self.warp_in(slot).map_or((0, 0), |warp| {
            let activation = warp.control.activation();
            (activation.registers, activation.predicates)
        });
        context.code[pc.index()].needs.at(registers, predicates, |needs| *needs)
    }

    fn warp_in(&self, slot: WarpSlot) -> Option<&Warp<N>> {
        let occupant = &self.slots[slot.index()].occupant;
        self.residents[occupant.resident()].as_ref().map(|there| &there.warps[occupant.warp()])
    }
}
