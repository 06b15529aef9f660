//! Issue: an instruction leaves a warp's buffer and does what it does.

pub mod scoreboard;
pub mod slot;
pub mod spin_unit;

use warploom_isa::{BarMode, Dst, Guard, Inst, Op, Operand, Pc, Scope};

use crate::exec::execute::Execution;
use crate::exec::fault::{Fault, Place};
use crate::exec::lanes;
use crate::exec::locks::holders::{SharedLocks, WarpName, shared_offset};
use crate::exec::memory::access::{MemoryOp, WarpAccess};
use crate::exec::memory::reach::Bad;
use crate::exec::warp::Warp;
use crate::exec::warp::control::{Activation, Group};
use crate::kit::bits::lanes as each;
use crate::kit::ids::WarpSlot;
use crate::time::probe::{Probe, State};
use crate::time::sched::{BranchOutcome, Issue};
use crate::time::sm::core::{Context, Event, Resident, Sm};
use crate::time::sm::front_end::decode::{Decoded, SpinRole, Unit, next};
use crate::time::sm::issue::slot::Front;
use crate::time::sm::load_store::transfer::{Transfer, skips_l1};

/// An instruction that issues.
struct Issuing<'a> {
    slot: WarpSlot,
    now: u64,
    path: Group,
    /// The lanes of the path on which it acts.
    mask: u64,
    activation: Activation,
    inst: &'a Inst,
    decoded: &'a Decoded,
}

impl<const N: usize, P: Probe> Sm<N, P> {
    /// The warp in `slot`, which is ready, issues its next instruction. A function of its own, so that the loop over cycles
    /// stays small.
    #[inline(never)]
    pub(crate) fn issue<'a>(
        &mut self,
        context: &Context<'a>,
        execution: &mut Execution<'a>,
        slot: WarpSlot,
        now: u64,
    ) -> Result<Issue, Box<Fault>> {
        let context = context.of(self.slots[slot.index()].kernel);
        execution.launch = context.launch;
        let kernel = context.launch.kernel;
        debug_assert_eq!(self.assess(context, slot, now).0, State::Ready);
        self.account_issue(slot, now);
        let entry = &self.slots[slot.index()];
        let (at, w) = (entry.resident(), entry.warp());
        let resident = self.residents[at].as_mut().expect("a ready warp's CTA is here");
        let warp = &mut resident.warps[w];
        let path = warp.control.current().expect("a ready warp has a path");
        let (inst, decoded) = (&kernel.code[path.pc.index()], &context.code[path.pc.index()]);
        let activation = warp.control.activation();
        let mask = guarded(warp, &activation, inst, path);
        let branch = outcome(inst, path, mask);
        let mut issue = Issue { slot, pc: path.pc, lanes: path.mask, branch, is_sib: false };
        if let Some(unit) = &mut self.spin_unit {
            let (warp, what) = ((warp, &activation), (inst, &issue));
            issue.is_sib = Self::look_for_spin(unit, &kernel.imms, warp, what, (path, mask), now);
            self.count_for_limit(issue.is_sib, now);
        }
        self.probe.issued(now, &issue, decoded);
        execution.clock = now;
        let issuing = Issuing { slot, now, path, mask, activation, inst, decoded };
        let result = if decoded.unit == Unit::Memory {
            self.issue_access(context, execution, issuing)
        } else {
            self.issue_other(context, execution, issuing)
        };
        if let Err(bad) = result {
            return Err(self.fault_of(context, slot, path.pc, bad));
        }
        if execution.uninitialised.is_some() {
            self.note_uninitialised(execution, slot, path.pc);
        }
        if let Some(watch) = &mut self.watch {
            watch.issued(slot, path.mask, inst.op);
        }
        self.note_spin(decoded, &issue, now);
        self.after_issue(context, slot, now, path.pc);
        Ok(issue)
    }

    /// What a thread of a warp did wrong.
    #[cold]
    fn fault_of(&self, context: &Context<'_>, slot: WarpSlot, pc: Pc, bad: Bad) -> Box<Fault> {
        let entry = &self.slots[slot.index()];
        let resident = self.residents[entry.resident()].as_ref().expect("it was here before");
        let kernel = context.launch.kernel;
        Box::new(Fault {
            kind: bad.kind,
            kernel: kernel.name.clone(),
            cta: resident.cta.id,
            thread: resident.warps[entry.warp()].thread(bad.lane),
            place: Place::of(kernel, pc),
        })
    }

    /// A warp read what nobody wrote.
    #[cold]
    fn note_uninitialised(&mut self, execution: &mut Execution<'_>, slot: WarpSlot, pc: Pc) {
        let Some((lane, space, address, bytes)) = execution.uninitialised.take() else { return };
        let entry = &self.slots[slot.index()];
        let resident = self.residents[entry.resident()].as_ref().expect("it was here before");
        let read = (lane, space.name(), address, bytes);
        let warp = &resident.warps[entry.warp()];
        self.unwritten.note(execution.launch.kernel, &resident.cta, warp, pc, read);
    }

    /// Looks at where the warp is after an instruction at `pc`.
    fn after_issue(&mut self, context: &Context<'_>, slot: WarpSlot, now: u64, pc: Pc) {
        let entry = &mut self.slots[slot.index()];
        entry.buffered -= 1;
        entry.blocked = false;
        let resident = self.residents[entry.resident()].as_ref().expect("it was here before");
        let warp = &resident.warps[entry.warp()];
        entry.front = Front::of(warp);
        // A warp that waits keeps its buffer for when it goes on.
        let moved = matches!(entry.front, Front::At(here) if here != next(pc));
        entry.buffer_pc = next(pc);
        let (ended, at) = (entry.front == Front::Ended, entry.resident());
        if ended {
            entry.buffered = 0;
            if entry.spinning {
                entry.spinning = false;
                self.spinning_warps -= 1;
                self.probe.spinning(now, slot, 0);
            }
        } else if moved {
            self.redirect(slot, now);
        }
        self.refresh(context, slot, now + 1);
        if ended {
            self.changed = true;
            self.end_cta_if_done(at, now);
        }
    }

    /// Arithmetic, control, barriers: done when they issue, as far as anyone can see.
    fn issue_other(
        &mut self,
        context: &Context<'_>,
        execution: &mut Execution<'_>,
        issuing: Issuing<'_>,
    ) -> Result<(), Bad> {
        let Issuing { slot, now, path, mask, activation, inst, decoded } = issuing;
        let entry = &mut self.slots[slot.index()];
        let Some(resident) = &mut self.residents[entry.resident()] else {
            unreachable!("a ready warp's CTA is here")
        };
        if decoded.unit != Unit::Control {
            let times = self.backend.issue(now, slot.index(), activation.registers, decoded);
            if !decoded.writes.is_empty() {
                let (registers, predicates) = (activation.registers, activation.predicates);
                entry.board.reserve(&decoded.writes.at(registers, predicates), false);
                let event = Event::Written { slot, life: entry.life, pc: path.pc, registers, predicates };
                self.events.push(times.written, event);
            }
            let warp = &mut resident.warps[entry.warp()];
            let imms = &context.launch.kernel.imms;
            if lanes::execute(inst, &mut warp.registers(&activation), imms, mask) {
                warp.control.advance();
                return Ok(());
            }
        }
        if matches!(inst.op, Op::Bra) {
            execution.step(&mut resident.cta, &mut resident.warps, entry.warp(), path, None)?;
            return Ok(());
        }
        // Put together again, so that it is in memory only here.
        let issuing = Issuing { slot, now, path, mask, activation, inst, decoded };
        self.issue_special(context, execution, issuing)
    }

    /// What concerns more than the registers and the place of its own warp.
    #[inline(never)]
    fn issue_special(
        &mut self,
        context: &Context<'_>,
        execution: &mut Execution<'_>,
        Issuing { slot, now, path, mask, activation, inst, decoded }: Issuing<'_>,
    ) -> Result<(), Bad> {
        let kernel = context.launch.kernel;
        let entry = &mut self.slots[slot.index()];
        let (at, w, life) = (entry.resident(), entry.warp(), entry.life);
        let Some(resident) = &mut self.residents[at] else { unreachable!("a ready warp's CTA is here") };
        if let Op::Nanosleep = inst.op {
            let nanoseconds = resident.warps[w].registers(&activation).read32(inst.src[0])[first(mask)];
            let cycles = (nanoseconds as u64 * context.launch.chip.clock.core_mhz as u64).div_ceil(1000);
            if mask != 0 && cycles > 0 {
                let until = now + 1 + cycles;
                entry.not_before = (until, State::Asleep);
                self.events.push(until, Event::Wake { slot, life });
            }
        }
        if let Op::Fence(_, scope) = inst.op
            && scope != Scope::Cta
        {
            self.memory.l1.invalidate();
        }
        if P::WATCHES_MEMORY && decoded.spin == Some(SpinRole::Poll) {
            let warp = (slot, &mut resident.warps[w], &activation);
            Self::show_mbarrier(&mut self.probe, kernel, warp, inst, mask);
        }
        if inst.op == Op::Yield && mask != 0 && self.dispatched.can_yield {
            let resource = resident.warps[w].registers(&activation).read64(inst.src[0], &kernel.imms);
            self.yield_warp(context, slot, resource[first(mask)]);
            return Ok(());
        }
        let watched = self.watch.is_some() && matches!(inst.op, Op::Mbarrier(..));
        let shared_before = watched.then(|| resident.cta.shared.bytes.clone());
        if matches!(inst.op, Op::Printf | Op::AssertFail) && self.memory.l1.is_coherent() {
            execution.effects.fresh = self.memory.newer_lines();
        }
        let live = resident.warps[w].live;
        execution.step(&mut resident.cta, &mut resident.warps, w, path, None)?;
        let ended = live & !resident.warps[w].live;
        if ended != 0
            && let Some(lanes) = &mut self.lanes_ended
        {
            lanes.push((slot, ended));
        }
        if shared_before.is_some_and(|before| before != resident.cta.shared.bytes) {
            self.changed = true;
        }
        if matches!(inst.op, Op::Bar(mode) if mode != BarMode::Arrive)
            && resident.warps[w].control.current().is_some()
        {
            // The last to come waits for the barrier, too.
            let until = now + 1 + context.launch.chip.units.barrier_latency_cycles as u64;
            entry.not_before = (until, State::Barrier);
            self.events.push(until, Event::Wake { slot, life });
        }
        if matches!(inst.op, Op::Bar(_) | Op::Exit | Op::Ret) {
            self.release_from_barrier(context, slot, now);
        }
        Ok(())
    }

    /// Warps of a CTA that no longer wait at a barrier, after what the warp in slot `by` did, go on after its latency.
    fn release_from_barrier(&mut self, context: &Context<'_>, by: WarpSlot, now: u64) {
        let latency = context.launch.chip.units.barrier_latency_cycles as u64;
        let at = self.slots[by.index()].resident();
        let Some(resident) = &self.residents[at] else { return };
        for w in 0..resident.warps.len() {
            let Some(resident) = &self.residents[at] else { return };
            let Some(slot) = resident.slots[w] else { continue };
            let entry = &mut self.slots[slot.index()];
            let control = &resident.warps[w].control;
            entry.front = Front::of(&resident.warps[w]);
            if slot == by || control.current().is_none() {
                continue;
            }
            if entry.state != State::Barrier {
                if control.is_parted() {
                    // Lanes that were let go may run before those that were about to.
                    if control.current().is_some_and(|path| path.pc != entry.buffer_pc) {
                        self.redirect(slot, now);
                    }
                    self.refresh(context, slot, now);
                }
                continue;
            }
            let until = now + 1 + latency;
            if entry.not_before.0 < until {
                entry.not_before = (until, State::Barrier);
                let (life, buffer_pc) = (entry.life, entry.buffer_pc);
                let path = resident.warps[w].control.current();
                self.events.push(until, Event::Wake { slot, life });
                if path.is_some_and(|path| path.pc != buffer_pc) {
                    self.redirect(slot, now);
                }
                // It fetches meanwhile, if it has to.
                self.refresh(context, slot, now + 1);
            }
        }
    }

    /// A load, store, atomic or copy: checked now, sent by the load/store unit.
    fn issue_access(
        &mut self,
        context: &Context<'_>,
        execution: &mut Execution<'_>,
        Issuing { slot, now, path, mask, activation, inst, decoded }: Issuing<'_>,
    ) -> Result<(), Bad> {
        let kernel = context.launch.kernel;
        let entry = &mut self.slots[slot.index()];
        let Some(Resident { cta, warps, .. }) = &mut self.residents[entry.resident()] else {
            unreachable!("a ready warp's CTA is here")
        };
        let warp = &mut warps[entry.warp()];
        if mask == 0 {
            warp.control.advance();
            return Ok(());
        }
        let id = self.memory.transfers.take(Transfer::new);
        let transfer = &mut self.memory.transfers[id];
        let polls = decoded.spin == Some(SpinRole::Poll);
        transfer.pending.restart(slot, skips_l1(&inst.op), polls);
        let who = WarpName { cta: cta.number, warp: entry.warp() as u32 };
        transfer.who = who;
        let access = &mut transfer.access;
        access.restart(path.pc, activation, mask);
        let watched = self.watch.is_some() && matches!(inst.op, Op::St(_) | Op::Atom(..) | Op::CpAsync(_));
        let shared_before = watched.then(|| cta.shared.bytes.clone());
        let mut reach = execution.reach(cta);
        access.begin(&mut reach, warp, inst)?;
        if reach.uninitialised.is_some() {
            execution.uninitialised = reach.uninitialised;
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
        if let MemoryOp::Unlock { changed } = access.kind {
            self.changed |= changed != 0;
            if decoded.spin == Some(SpinRole::Try) {
                note_tries(&mut self.locks, (who, access), changed, kernel.windows.shared);
            }
        }
        if polls && access.lanes.shared != 0 && inst.dst != Dst::None {
            if let MemoryOp::Atomic { .. } = access.kind {
                let changed = access.changed_in_sm(access.lanes.shared);
                note_tries(&mut self.locks, (who, access), changed, kernel.windows.shared);
            }
        }
        if decoded.named_wait {
            self.note_wait(slot, id);
        }
        if P::WATCHES_MEMORY {
            self.show_access(context, id, now);
        }
        let entry = &mut self.slots[slot.index()];
        entry.board.reserve(&decoded.writes.at(activation.registers, activation.predicates), true);
        entry.outstanding += 1;
        let unlocks = matches!(self.memory.transfers[id].access.kind, MemoryOp::Unlock { .. });
        entry.unlocking += u32::from(unlocks);
        // Later instructions of the warp wait for an acquire.
        entry.held = decoded.ordering.before_all;
        let ready = self.backend.issue_memory(now, slot.index(), activation.registers, decoded);
        self.memory.push(id, ready);
        let resident = self.residents[self.slots[slot.index()].resident()].as_mut();
        resident.expect("it was here before").warps[self.slots[slot.index()].warp()].control.advance();
        Ok(())
    }

    /// An access is complete: its values are in registers, and whoever waited for it goes on.
    pub(crate) fn complete(&mut self, context: &Context<'_>, id: u32, now: u64) {
        let Transfer { pending, access, .. } = &self.memory.transfers[id];
        let (slot, queued) = (pending.slot, pending.queued);
        let (pc, kind, mask) = (access.pc, access.kind, access.mask);
        let context = context.of(self.slots[slot.index()].kernel);
        let kernel = context.launch.kernel;
        let decoded = &context.code[pc.index()];
        let entry = &mut self.slots[slot.index()];
        let at = entry.resident();
        let resident = self.residents[at].as_mut().expect("a CTA stays until its accesses are done");
        let inst = &kernel.code[pc.index()];
        access.finish(kernel, &mut resident.warps[entry.warp()], &mut resident.cta.shared, inst);
        if access.unwritten != 0 {
            let (lane, address, bytes) = access.first_unwritten();
            let warp = &resident.warps[entry.warp()];
            self.unwritten.note(kernel, &resident.cta, warp, pc, (lane, "global", address, bytes));
        }
        if decoded.spin == Some(SpinRole::Poll)
            && let Some(watch) = &mut self.watch
        {
            watch.polled(slot, access);
        }
        let Activation { registers, predicates, .. } = access.activation;
        entry.board.release(&decoded.writes.at(registers, predicates));
        entry.outstanding -= 1;
        entry.unlocking -= u32::from(matches!(kind, MemoryOp::Unlock { .. }));
        if entry.held && decoded.ordering.before_all {
            entry.held = false;
            self.memory.l1.invalidate();
        }
        if kind == MemoryOp::Copy {
            self.changed = true;
        }
        self.memory.transfers.give_back(id);
        if queued != 0 {
            self.block_on_locks(slot, mask, queued);
        }
        self.refresh(context, slot, now);
        self.end_cta_if_done(at, now);
    }

    /// Lanes of a wait that come back to the address of their last one have waited in vain.
    fn note_wait(&mut self, slot: WarpSlot, id: u32) {
        if self.waited_at.is_empty() {
            self.waited_at = vec![[u64::MAX; N]; self.slots.len()];
        }
        let access = &self.memory.transfers[id].access;
        let last = &mut self.waited_at[slot.index()];
        for lane in each(access.mask) {
            let address = access.addresses.at(lane);
            self.polls[1] += u64::from(std::mem::replace(&mut last[lane], address) == address);
        }
    }

    /// Keeps count of waits, and of who goes round in a spin loop.
    fn note_spin(&mut self, decoded: &Decoded, issue: &Issue, now: u64) {
        if decoded.is_latch
            && issue.branch.is_none_or(|branch| branch.taken != 0)
            && let Some(watch) = &mut self.watch
        {
            let entry = &self.slots[issue.slot.index()];
            if let Some(resident) = &self.residents[entry.resident()] {
                let settled = entry.outstanding == entry.unlocking;
                watch.turn(issue.slot, &resident.warps[entry.warp()], settled);
            }
        }
        let Some(role) = decoded.spin else { return };
        if role == SpinRole::Poll {
            if decoded.class == crate::time::sm::front_end::decode::Class::Load {
                self.polls[0] += issue.lanes.count_ones() as u64;
            }
            return;
        }
        let Some(branch) = issue.branch else { return };
        if role == SpinRole::AtomicBranch {
            self.slots[issue.slot.index()].retries = branch.taken != 0;
            return;
        }
        if role == SpinRole::WaitBranch {
            self.polls[1] += branch.taken.count_ones() as u64;
        }
        let spinning = branch.taken != 0;
        let entry = &mut self.slots[issue.slot.index()];
        if entry.spinning != spinning {
            entry.spinning = spinning;
            if spinning { self.spinning_warps += 1 } else { self.spinning_warps -= 1 }
        }
        if spinning && let Some(resident) = &mut self.residents[entry.resident()] {
            let control = &mut resident.warps[entry.warp()].control;
            if control.current().is_some_and(|path| path.pc == branch.target) {
                control.yield_path();
            }
        }
        self.probe.spinning(now, issue.slot, branch.taken);
    }
}

/// Lanes tried to take locks in shared memory with an access of a spin loop; those of `changed` did. Generic addresses of
/// shared memory begin at `window`.
fn note_tries<const N: usize>(
    locks: &mut SharedLocks,
    (who, access): (WarpName, &WarpAccess<N>),
    changed: u64,
    window: u64,
) {
    locks.tried((who, access.pc), &access.addresses, (access.lanes.shared, changed), |address| {
        (who.cta, shared_offset(address, window))
    });
}

/// The lanes of a path on which a guarded instruction acts.
fn guarded<const N: usize>(warp: &mut Warp<N>, activation: &Activation, inst: &Inst, path: Group) -> u64 {
    match inst.guard {
        Guard::Always => path.mask,
        Guard::If(pred) => path.mask & warp.registers(activation).preds[pred.index()],
        Guard::Unless(pred) => path.mask & !warp.registers(activation).preds[pred.index()],
    }
}

fn outcome(inst: &Inst, path: Group, mask: u64) -> Option<BranchOutcome> {
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

fn first(mask: u64) -> usize {
    if mask == 0 { 0 } else { mask.trailing_zeros() as usize }
}
