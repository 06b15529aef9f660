//! Issue: an instruction leaves a warp's buffer and does what it does.
//!
//! `schedule` chooses the warp, `readiness` says which warps could issue; here is what follows from the choice.

mod barrier;
pub(crate) mod copies;
mod polling;
pub(crate) mod products;
mod readiness;
pub(crate) mod schedule;
pub(crate) mod scoreboard;
pub(crate) mod slot;
pub(crate) mod spin_unit;

use warploom_isa::{BarMode, ClusterBar, Dst, Guard, Inst, Op, Operand, Pc, Scope};

use crate::chip::Chip;
use crate::exec::execute::{Execution, Next, branch};
use crate::exec::fault::{Fault, Place};
use crate::exec::lanes;
use crate::exec::locks::holders::{WarpName, is_exclusive, shared_offset};
use crate::exec::memory::access::{MemoryOp, SpaceLanes};
use crate::exec::memory::reach::Bad;
use crate::exec::warp::Warp;
use crate::exec::warp::control::{Activation, Group};
use crate::kit::cycle::Cycle;
use crate::kit::ids::WarpSlot;
use crate::kit::lane_mask::LaneMask;
use crate::time::sched::{BranchOutcome, Issue};
use crate::time::sm::cycle::Event;
use crate::time::sm::front_end::decode::{Decoded, ExecUnit, SpinRole, next};
use crate::time::sm::issue::polling::note_tries;
use crate::time::sm::issue::slot::Position;
use crate::time::sm::load_store::transfer::Transfer;
use crate::time::sm::probe::{Accessing, BarrierArrival, Probe, State};
use crate::time::sm::watch::{Watch, Watched};
use crate::time::sm::{Context, Resident, Sm};

const IS_RESIDENT: &str = "the CTA of a ready warp is resident";

/// An instruction that issues.
struct Issuing<'a> {
    slot: WarpSlot,
    now: Cycle,
    path: Group,
    /// The lanes of the path on which it acts.
    mask: LaneMask,
    activation: &'a Activation,
    inst: &'a Inst,
    decoded: &'a Decoded,
}

/// What became of an instruction that issued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Issued {
    /// The warp may issue the next one in the same cycle.
    GoesOn,
    /// What follows the branch waits for its turn in the queue of backed-off warps.
    BacksOff,
    /// It has not issued: a thread faulted.
    Faulted,
}

/// What a warp issues, beside the atomic, to add once for all its lanes: a vote, which is the first lane and how many
/// there are (with a move between them and the lanes' registers), whether it is this one, and a product. What it takes
/// longer with a result, the load/store unit knows.
const AGGREGATION_INSTRUCTIONS: u64 = 6;

/// What atomics without results cost a warp beside their issue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SilentAtomics {
    /// Cycles from one that leaves to the next. 0: no limit.
    interval: u64,
    /// Cycles in which the longest queue of them leaves.
    queue: u64,
    /// Cycles before one that adds for all lanes: a vote, how many lanes there are, and a product.
    sum: u64,
}

impl SilentAtomics {
    pub(crate) fn new(chip: &Chip) -> SilentAtomics {
        let (units, atomic) = (&chip.units, &chip.atomic);
        let [vote, count] =
            [units.vote, units.count_bits].map(|times| times.unwrap_or(units.exchange)[0] + 3);
        let interval = u64::from(atomic.silent_cycles);
        let queue = interval * u64::from(atomic.silent_queue);
        SilentAtomics { interval, queue, sum: u64::from(vote + count + units.int.mad[0] + 3) }
    }
}

impl<const N: usize, P: Probe> Sm<N, P> {
    /// The warp in `slot`, which is ready, issues its next instruction, for a scheduler. Not inlined, so that the loop
    /// over cycles stays small.
    #[inline(never)]
    pub(crate) fn issue<'a>(
        &mut self,
        context: &Context<'a>,
        execution: &mut Execution<'a>,
        scheduler: usize,
        slot: WarpSlot,
        now: Cycle,
    ) -> Issued {
        let number = self.slots[slot.index()].occupant.kernel;
        let context = context.of(number);
        debug_assert_eq!(self.assess(context, slot, now).0, State::Ready);
        let entry = &mut self.slots[slot.index()];
        execution.launch = context.launch;
        self.notes.of(number, &mut execution.effects.notes);
        let kernel = context.launch.kernel;
        entry.yielded = false;
        let waited = entry.status.waited_for_unit(&self.units, slot, now);
        self.unit_busy += waited;
        self.probe.unit_busy(slot, waited);
        entry.status.account_issue(&mut self.probe, slot, now);
        self.agenda.ready.remove(slot, entry.status.unit);
        let resident = self.residents[entry.occupant.resident()].as_mut().expect(IS_RESIDENT);
        let warp = &mut resident.warps[entry.occupant.warp()];
        let (path, &activation) = warp.control.running().expect("a ready warp has a path");
        let (inst, decoded) = (&kernel.code[path.pc.index()], &context.code[path.pc.index()]);
        let mask = guarded(warp, &activation, inst, path);
        let branch = outcome(inst, path, mask);
        let mut issue = Issue { slot, pc: path.pc, lanes: path.mask, branch, is_sib: false };
        if let Some(unit) = &mut self.spin_unit {
            // Kernels that run together differ in where their code lies.
            let placed = issue.moved_by(context.code_start);
            let (warp, what) = ((&mut *warp, &activation), (inst, &placed));
            issue.is_sib = unit.issues(&kernel.imms, warp, what, (path, mask), now);
        }
        self.probe.issued(now, &issue, decoded);
        execution.clock = now.0;
        let issuing = Issuing { slot, now, path, mask, activation: &activation, inst, decoded };
        let result = match decoded.unit {
            ExecUnit::Memory => self.issue_access(context, execution, issuing),
            ExecUnit::Control => self.issue_control(context, execution, issuing),
            _ => {
                let times = self.units.issue(now, slot.index(), activation.registers, decoded);
                if !decoded.writes.is_empty() {
                    let (registers, predicates) = (activation.registers, activation.predicates);
                    decoded.writes.at(registers, predicates, |writes| entry.board.reserve(writes, false));
                    let life = entry.occupant.life;
                    let event = Event::Written { slot, life, pc: path.pc, registers, predicates };
                    self.agenda.events.push(times.written, event);
                } else if let Op::Wgmma(_) = inst.op {
                    entry.products.get_or_insert_default().begin(times.written);
                }
                let registers = &mut warp.registers(&activation);
                let is_done = match &decoded.lanes {
                    Some(operation) => {
                        operation.execute(inst, registers, context.constants, mask);
                        true
                    }
                    None => lanes::execute(inst, registers, &kernel.imms, mask),
                };
                if is_done {
                    Ok(entry.goes_on(&mut warp.control, path.pc))
                } else {
                    // Rebuilt, so that the struct is in memory only on this path.
                    let issuing = Issuing { slot, now, path, mask, activation: &activation, inst, decoded };
                    self.issue_special(context, execution, issuing)
                }
            }
        };
        let goes_on = match result {
            Ok(goes_on) => goes_on,
            Err(bad) => {
                self.fail(context, slot, path.pc, bad, now);
                return Issued::Faulted;
            }
        };
        if execution.uninitialised.is_some() {
            self.note_uninitialised(execution, slot, path.pc);
        }
        if let Some(watch) = &mut self.watch {
            let branch = branch.map(|branch| (!branch.taken.is_empty(), !branch.fallen.is_empty()));
            watch.issued(slot, Watched { path, activation: &activation, op: inst.op, branch });
        }
        if decoded.notes_spin {
            self.note_spin(kernel, decoded, &issue, now);
        }
        let mut has_ended = false;
        if goes_on {
            self.refresh_inline(context, slot, now + 1);
        } else {
            has_ended = self.after_issue(context, slot, now, path.pc);
        }
        self.turns[decoded.unit as usize] = scheduler + 1;
        let policy = &mut self.schedulers[scheduler].policy;
        policy.issued(now, &issue);
        if has_ended {
            policy.ended(now, slot);
            if let Some(unit) = &mut self.spin_unit {
                unit.ended(now, slot);
            }
        }
        if issue.is_sib && self.begin_back_off(slot, now) { Issued::BacksOff } else { Issued::GoesOn }
    }

    /// A thread has faulted: the SM stops.
    #[cold]
    fn fail(&mut self, context: &Context<'_>, slot: WarpSlot, pc: Pc, bad: Bad, now: Cycle) {
        // It has not done what it was ready for.
        let entry = &mut self.slots[slot.index()];
        entry.status.state = State::Ready;
        self.agenda.ready.insert(slot, entry.status.unit);
        let occupant = &entry.occupant;
        let resident = self.residents[occupant.resident()].as_ref().expect(IS_RESIDENT);
        let kernel = context.launch.kernel;
        let fault = Fault {
            kind: bad.kind,
            kernel: kernel.name.clone(),
            cta: resident.cta.id,
            thread: resident.warps[occupant.warp()].thread(bad.lane),
            place: Place::of(kernel, pc),
        };
        self.faulty = occupant.kernel;
        self.fault = Some((now, Box::new(fault)));
    }

    /// A warp read memory that was never written.
    #[cold]
    fn note_uninitialised(&mut self, execution: &mut Execution<'_>, slot: WarpSlot, pc: Pc) {
        let Some((lane, space, address, bytes)) = execution.uninitialised.take() else { return };
        let occupant = &self.slots[slot.index()].occupant;
        let resident = self.residents[occupant.resident()].as_ref().expect(IS_RESIDENT);
        let read = (lane, space.name(), address, bytes);
        let warp = &resident.warps[occupant.warp()];
        self.unwritten.note(execution.launch.kernel, &resident.cta, warp, pc, read);
    }

    /// Follows the warp to where it is after the instruction at `pc`, which may not be the next one. Returns whether it
    /// has ended.
    #[inline(never)]
    fn after_issue(&mut self, context: &Context<'_>, slot: WarpSlot, now: Cycle, pc: Pc) -> bool {
        let entry = &mut self.slots[slot.index()];
        entry.leave(pc);
        let at = entry.occupant.resident();
        let resident = self.residents[at].as_ref().expect(IS_RESIDENT);
        entry.position = Position::of(&resident.warps[entry.occupant.warp()]);
        // A warp that waits keeps its buffer for when it goes on.
        let jumps = matches!(entry.position, Position::At(here) if here != next(pc));
        let ended = entry.position == Position::Ended;
        if ended {
            entry.buffer.count = 0;
            if entry.spinning {
                entry.spinning = false;
                self.spinning_warps -= 1;
                self.probe.spinning(now, slot, LaneMask::NONE);
            }
        } else if jumps {
            self.redirect(slot, now);
        }
        self.refresh(context, slot, now + 1);
        if ended {
            self.changed = true;
            self.end_cta_if_done(at, now);
        }
        ended
    }

    /// Control and barriers take effect when they issue. Returns false: `after_issue` finds out where the warp is.
    #[inline(always)]
    fn issue_control(
        &mut self,
        context: &Context<'_>,
        execution: &mut Execution<'_>,
        issuing: Issuing<'_>,
    ) -> Result<bool, Bad> {
        let Issuing { slot, now, path, mask, activation, inst, decoded } = issuing;
        if matches!(inst.op, Op::Bra) {
            let occupant = &self.slots[slot.index()].occupant;
            let Some(resident) = &mut self.residents[occupant.resident()] else {
                unreachable!("{IS_RESIDENT}")
            };
            let control = &mut resident.warps[occupant.warp()].control;
            if mask.is_empty() {
                control.advance();
            } else {
                branch(control, inst, path, mask);
            }
            return Ok(false);
        }
        // Rebuilt, so that the struct is in memory only on this path.
        let issuing = Issuing { slot, now, path, mask, activation, inst, decoded };
        self.issue_special(context, execution, issuing)
    }

    /// Instructions that concern more than the registers and the position of their own warp. Returns false, as
    /// `issue_control`.
    #[inline(never)]
    fn issue_special(
        &mut self,
        context: &Context<'_>,
        execution: &mut Execution<'_>,
        Issuing { slot, now, path, mask, activation, inst, decoded }: Issuing<'_>,
    ) -> Result<bool, Bad> {
        let kernel = context.launch.kernel;
        let entry = &mut self.slots[slot.index()];
        let (w, life) = (entry.occupant.warp(), entry.occupant.life);
        let Some(resident) = &mut self.residents[entry.occupant.resident()] else {
            unreachable!("{IS_RESIDENT}")
        };
        if let Op::Nanosleep = inst.op
            && !mask.is_empty()
        {
            // Lanes may ask for different durations, but the warp has one timer: the shortest counts.
            let asked = resident.warps[w].registers(activation).read32(inst.src[0]);
            let nanoseconds = mask.lanes().map(|lane| asked[lane]).min().unwrap_or(0);
            let until = end_of_sleep(context.launch.chip, now + 1, nanoseconds);
            let control = &mut resident.warps[w].control;
            if until > now + 1 {
                if control.is_parted() {
                    control.sleep();
                    entry.sleeps_until = entry.sleeps_until.min(until);
                } else {
                    entry.not_before = (until, State::Sleeping);
                }
                self.agenda.events.push(until, Event::Wake { slot, life });
            }
        }
        if inst.op == Op::CpAsyncCommit {
            entry.copies.commit();
        }
        if let Some(products) = &mut entry.products {
            if inst.op == Op::WgmmaCommit {
                products.commit();
            }
            if let (Op::WgmmaWait, Operand::Imm(left)) = (inst.op, inst.src[0])
                && let Some(until) = products.wait(left).filter(|&until| until > now + 1)
            {
                entry.not_before = (until, State::ExecutionDependency);
                self.agenda.events.push(until, Event::Wake { slot, life });
            }
        }
        if inst.op == Op::BulkCommit {
            entry.bulk.get_or_insert_default().commit();
        }
        if let Op::Fence(_, Scope::Cta) = inst.op
            && context.launch.chip.units.cta_fence_cycles > 0
        {
            let until = now + 1 + u64::from(context.launch.chip.units.cta_fence_cycles);
            entry.not_before = (until, State::Membar);
            self.agenda.events.push(until, Event::Wake { slot, life });
        }
        if let Op::Fence(_, scope) = inst.op
            && scope != Scope::Cta
        {
            self.memory.l1.invalidate();
            let units = &context.launch.chip.units;
            // A fence that had to wait for an access follows it through the memory system.
            let waited = now <= entry.quiet_since + 1;
            let cycles = if waited { units.fence_after_access_cycles } else { units.fence_cycles };
            entry.fenced = self.fences.as_mut().is_some_and(|fences| {
                self.memory.begin_fence(now, || fences.begin());
                fences.wait(slot)
            });
            if cycles > 0 && !entry.fenced {
                let until = now + 1 + u64::from(cycles);
                entry.not_before = (until, State::Membar);
                self.agenda.events.push(until, Event::Wake { slot, life });
            }
        }
        if P::WATCHES_MEMORY && decoded.spin == Some(SpinRole::Poll) {
            let warp = (&mut resident.warps[w], activation);
            let by = Accessing { slot, pc: path.pc, lanes: mask };
            Self::show_mbarrier(&mut self.probe, kernel, warp, inst, (now, by));
        }
        if inst.op == Op::Yield && !mask.is_empty() && self.dispatched.can_yield {
            let resource = resident.warps[w].registers(activation).read64(inst.src[0], &kernel.imms);
            self.yield_warp(context, slot, resource[first(mask)]);
            return Ok(false);
        }
        let watched = self.watch.as_ref().is_some_and(Watch::proves) && matches!(inst.op, Op::Mbarrier(..));
        let shared_before = watched.then(|| resident.cta.shared.bytes.clone());
        if matches!(inst.op, Op::Printf | Op::AssertFail) && self.memory.l1.is_coherent() {
            execution.effects.fresh = self.memory.newer_lines();
        }
        let live = resident.warps[w].live;
        let barrier = (P::WATCHES_MEMORY && matches!(inst.op, Op::Bar(_)) && !mask.is_empty()).then(|| {
            let id = resident.warps[w].registers(activation).read32(inst.src[0])[first(mask)];
            (id, !resident.cta.barriers.is_open(id))
        });
        let next = execution.step(&mut resident.cta, &mut resident.warps, w, path, None)?;
        if let Some((id, is_first)) = barrier {
            let is_last = !resident.cta.barriers.is_open(id);
            self.probe.arrived(now, BarrierArrival { slot, pc: path.pc, id, is_first, is_last });
        }
        let ended = live & !resident.warps[w].live;
        if !ended.is_empty()
            && let Some(lanes) = &mut self.lanes_ended
        {
            lanes.push((slot, ended));
        }
        if shared_before.is_some_and(|before| before != resident.cta.shared.bytes) {
            self.changed = true;
        }
        let units = &context.launch.chip.units;
        let mut arrived = now;
        if matches!(inst.op, Op::Bar(_)) {
            arrived = self.next_arrival.max(now);
            self.next_arrival = arrived + units.barrier_interval_cycles as u64;
        }
        if matches!(inst.op, Op::Bar(mode) if mode != BarMode::Arrive)
            && resident.warps[w].control.current().is_some()
        {
            // The last warp to arrive waits for the barrier, too.
            let until = arrived + 1 + units.barrier_latency_cycles as u64;
            entry.not_before = (until, State::Barrier);
            self.agenda.events.push(until, Event::Wake { slot, life });
        }
        if matches!(inst.op, Op::Bar(_) | Op::Exit | Op::Ret) {
            self.release_from_barrier(context, slot, now, arrived);
        }
        if matches!(inst.op, Op::ClusterBar(mode) if mode != ClusterBar::Wait) && !mask.is_empty() {
            self.arrives_at_cluster(now);
        }
        if next == Next::Remote {
            self.reach_cluster(context, execution, (slot, path.pc), now);
        }
        Ok(false)
    }

    /// A load, store, atomic or copy: checked now, sent by the load/store unit. Returns whether the warp goes on with
    /// the next instruction, as far as is known here.
    #[inline(always)]
    fn issue_access(
        &mut self,
        context: &Context<'_>,
        execution: &mut Execution<'_>,
        Issuing { slot, now, path, mask, activation, inst, decoded }: Issuing<'_>,
    ) -> Result<bool, Bad> {
        let kernel = context.launch.kernel;
        let entry = &mut self.slots[slot.index()];
        let w = entry.occupant.warp();
        let Some(Resident { cta, warps, .. }) = &mut self.residents[entry.occupant.resident()] else {
            unreachable!("{IS_RESIDENT}")
        };
        let warp = &mut warps[w];
        if mask.is_empty() {
            return Ok(entry.goes_on(&mut warp.control, path.pc));
        }
        let id = self.memory.transfers.take(Transfer::new);
        let transfer = &mut self.memory.transfers[id];
        let polls = decoded.spin == Some(SpinRole::Poll);
        transfer.pending.restart(slot, decoded.skips_l1, polls);
        let who = WarpName { cta: cta.number, warp: w as u32 };
        // Parameters of firmware's tasks are in the constant cache, whatever the kernel.
        let kernel_of_constants = if self.dispatched.together { entry.occupant.kernel } else { 0 };
        (transfer.who, transfer.kernel, transfer.engine) = (who, kernel_of_constants, None);
        let access = &mut transfer.access;
        access.restart(path.pc, *activation, mask);
        let watched = self.watch.as_ref().is_some_and(Watch::proves)
            && matches!(
                inst.op,
                Op::St(_) | Op::Atom(..) | Op::CpAsync(_) | Op::SurfaceSt(_) | Op::SurfaceRed(..)
            );
        let shared_before = watched.then(|| cta.shared.bytes.clone());
        if !decoded.shared_word.is_some_and(|word| access.begin_word(word, warp, &cta.shared)) {
            let mut reach = execution.reach(cta);
            access.begin(&mut reach, warp, inst)?;
            if reach.uninitialised.is_some() {
                execution.uninitialised = reach.uninitialised;
            }
        }
        let goes_on = entry.goes_on(&mut warp.control, path.pc);
        // Machine code does so only if all lanes take part.
        transfer.pending.aggregated = decoded.aggregated && mask == LaneMask::first_lanes(N as u32);
        let is_silent = matches!(access.kind, MemoryOp::Atomic { silent: true, .. });
        let (mut until, mut reason) = (now, State::ExecutionDependency);
        if transfer.pending.aggregated && !(is_silent && decoded.shares_sum) {
            until = now + 1 + if is_silent { self.silent.sum } else { AGGREGATION_INSTRUCTIONS };
        }
        if is_silent && self.silent.interval > 0 && !access.lanes.global.is_empty() {
            entry.silent_left = entry.silent_left.max(now) + self.silent.interval;
            let room = Cycle(entry.silent_left.saturating_sub(Cycle(self.silent.queue)));
            if room > until {
                (until, reason) = (room, State::LongScoreboard);
            }
        }
        if until > now {
            entry.not_before = (until, reason);
            self.agenda.events.push(until, Event::Wake { slot, life: entry.occupant.life });
        }
        self.memory.stats.global_lanes += u64::from(access.lanes.global.count());
        if let Some(mut races) = context.launch.races() {
            races.access(kernel, cta, warp, access);
        }
        if let Some(unit) = execution.effects.lock_units.of_mut(self.id) {
            self.changed |= std::mem::take(&mut unit.changed);
            if std::mem::take(&mut unit.passing)
                && let Some(watch) = &mut self.watch
            {
                watch.met_by_chance(slot);
            }
        }
        if shared_before.is_some_and(|before| before != cta.shared.bytes) {
            self.changed = true;
        }
        if let Some(watch) = &mut self.watch
            && !access.lanes.local.is_empty()
        {
            watch.accessed_local(slot, path.pc, activation, access.local_words(kernel.windows.local));
        }
        let word = |address| (who.cta, shared_offset(address, kernel.windows.shared));
        if let MemoryOp::Unlock { changed, of } = access.kind {
            self.changed |= !changed.is_empty();
            if decoded.spin == Some(SpinRole::Try) {
                note_tries(&mut self.locks, (who, access), (changed, true), kernel.windows.shared);
            } else if of.is_some() {
                let who = (who, access.pc);
                self.locks.changed(who, &access.addresses, changed, |lane| access.change(lane), word);
            }
        }
        if polls
            && !access.lanes.shared.is_empty()
            && inst.dst != Dst::None
            && let MemoryOp::Atomic { op, .. } = access.kind
        {
            let changed = (access.changed_in_sm(access.lanes.shared), is_exclusive(op));
            note_tries(&mut self.locks, (who, access), changed, kernel.windows.shared);
        } else if !access.lanes.shared.is_empty() {
            let (who, lanes) = ((who, access.pc), access.lanes.shared);
            match access.kind {
                MemoryOp::Store => self.locks.stored(who, &access.addresses, lanes, word),
                MemoryOp::Atomic { .. } => {
                    self.locks.changed(who, &access.addresses, lanes, |lane| access.change(lane), word);
                }
                _ => {}
            }
        }
        let SpaceLanes { global, shared, local, constant } = access.lanes;
        let is_shared = !shared.is_empty() && (global | local | constant).is_empty();
        decoded.writes.at(activation.registers, activation.predicates, |writes| {
            entry.board.reserve_for_access(writes, is_shared);
        });
        entry.status.outstanding += 1;
        let unlocks = matches!(access.kind, MemoryOp::Unlock { .. });
        entry.unlocking += u32::from(unlocks);
        if self.barrier_after_stores {
            entry.shared_stores += u32::from(access.stores_to_shared());
        }
        let is_remote = !access.remote.is_empty();
        if access.kind == MemoryOp::Copy {
            transfer.group = entry.copies.begin();
        }
        // Later instructions of the warp wait for an acquire.
        entry.status.held = decoded.ordering.before_all;
        if let Some(watch) = &mut self.watch
            && !unlocks
            && matches!(
                (inst.op, inst.dst),
                (Op::St(_) | Op::SurfaceSt(_) | Op::SurfaceRed(..), _) | (Op::Atom(..), Dst::None)
            )
        {
            watch.store_began(slot, id);
        }
        if let Some(fences) = &mut self.fences {
            transfer.number = fences.begin();
        }
        if decoded.named_wait {
            self.note_wait(slot, id);
        }
        if P::WATCHES_MEMORY {
            self.show_access(context, id, now);
        }
        let ready = self.units.issue_memory(now, slot.index(), activation.registers, decoded);
        if is_remote {
            self.expect_from_cluster(context, id);
        }
        self.memory.push(id, ready);
        Ok(goes_on)
    }
}

/// The lanes of a path on which an instruction acts.
#[inline(always)]
fn guarded<const N: usize>(
    warp: &mut Warp<N>,
    activation: &Activation,
    inst: &Inst,
    path: Group,
) -> LaneMask {
    match inst.guard {
        Guard::Always => path.mask,
        Guard::If(pred) => path.mask & LaneMask(warp.registers(activation).preds[pred.index()]),
        Guard::Unless(pred) => path.mask & !LaneMask(warp.registers(activation).preds[pred.index()]),
    }
}

/// How a branch goes; `None` for other instructions.
#[inline(always)]
fn outcome(inst: &Inst, path: Group, mask: LaneMask) -> Option<BranchOutcome> {
    let (Op::Bra, Operand::Imm(target), Operand::Imm(reconverge)) = (inst.op, inst.src[0], inst.src[1])
    else {
        return None;
    };
    Some(BranchOutcome {
        target: Pc(target),
        reconverge: Pc(reconverge),
        taken: mask,
        fallen: path.mask & !mask,
    })
}

/// The first lane, or lane 0 if there is none.
fn first(mask: LaneMask) -> usize {
    if mask.is_empty() { 0 } else { mask.lowest() }
}

/// When a sleep ends that begins in a cycle. On a chip with ticks that is the next multiple of its duration, rounded up
/// to a power of two.
fn end_of_sleep(chip: &Chip, begin: Cycle, nanoseconds: u32) -> Cycle {
    let mhz = u64::from(chip.clock.core_mhz);
    let cycles = |nanoseconds: u64| (nanoseconds * mhz).div_ceil(1000);
    let least = begin + u64::from(chip.units.sleep_cycles);
    if nanoseconds == 0 {
        return least;
    }
    if !chip.units.sleep_ticks {
        return least.max(begin + cycles(u64::from(nanoseconds)));
    }
    let tick = u64::from(nanoseconds).next_power_of_two();
    let next = (begin.0 * 1000 / mhz / tick + 1) * tick;
    least.max(Cycle(cycles(next)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sleep_ends_after_its_duration_or_at_a_tick() {
        let mut chip = Chip::load("h200", &[]).unwrap();
        let end = |chip: &Chip, begin, nanoseconds| end_of_sleep(chip, Cycle(begin), nanoseconds).0;
        // Ticks of 128 ns are 253.44 cycles apart, those of 1,024 ns 2,027.52.
        assert_eq!(end(&chip, 10, 100), 254);
        assert_eq!(end(&chip, 254, 100), 507);
        assert_eq!(end(&chip, 254, 1000), 2028);
        assert_eq!(end(&chip, 2028, 1000), 4056);
        assert_eq!(end(&chip, 2027, 1000), 2100, "not before the least time");
        assert_eq!(end(&chip, 5, 0), 78);
        chip.units.sleep_ticks = false;
        assert_eq!(end(&chip, 254, 1000), 254 + 1980);
    }
}
