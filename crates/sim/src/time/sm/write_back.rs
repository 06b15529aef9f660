//! Write-back: values reach registers, and the scoreboard releases them.

use warploom_isa::Pc;

use crate::exec::locks::polled::Polled;
use crate::exec::memory::access::MemoryOp;
use crate::exec::warp::control::Activation;
use crate::kit::cycle::Cycle;
use crate::kit::ids::TransferId;
use crate::time::sm::cycle::Event;
use crate::time::sm::front_end::decode::SpinRole;
use crate::time::sm::issue::slot::{Position, Slot};
use crate::time::sm::load_store::transfer::Transfer;
use crate::time::sm::probe::{Probe, State};
use crate::time::sm::{Context, Sm};

impl Slot {
    /// The results of an instruction of an execution unit are in registers. Returns whether the warp may now be ready.
    #[inline(always)]
    pub(crate) fn write_result(
        &mut self,
        context: &Context<'_>,
        pc: Pc,
        registers: u32,
        predicates: u32,
    ) -> bool {
        let code = context.of(self.occupant.kernel).code;
        code[pc.index()].writes.at(registers, predicates, |writes| self.board.release(writes));
        // A warp that waits for anything else still does.
        if self.status.state != State::ExecutionDependency {
            return false;
        }
        match self.position {
            Position::At(pc) if code[pc.index()].needs_registers_only => {
                !self.board.waits(&code[pc.index()].needs)
            }
            _ => true,
        }
    }
}

impl<const N: usize, P: Probe> Sm<N, P> {
    /// Books the write-back of accesses that the load/store unit has finished.
    #[inline]
    pub(crate) fn collect_completed(&mut self, now: Cycle) {
        for at in 0..self.memory.completed.len() {
            let (transfer, at) = self.memory.completed[at];
            // Values that go to registers need a port.
            let brings_values = self.memory.transfers[transfer].access.kind.writes_registers();
            let done = if brings_values { self.units.book_port(now, at.max(now)) } else { at.max(now) };
            let written = done + 1;
            self.agenda.events.push(written, Event::Complete { transfer });
        }
        self.memory.completed.clear();
    }

    /// An access is complete: its values are in registers, and whatever waited for it goes on.
    pub(crate) fn complete(&mut self, context: &Context<'_>, id: TransferId, now: Cycle) {
        let Transfer { pending, access, engine, number, .. } = &self.memory.transfers[id];
        if let Some(number) = *engine {
            return self.copy_done(context, id, number, now);
        }
        let number = *number;
        let (slot, queued) = (pending.slot, pending.queued);
        let (pc, kind, mask) = (access.pc, access.kind, access.mask);
        let entry = &mut self.slots[slot.index()];
        let context = context.of(entry.occupant.kernel);
        let kernel = context.launch.kernel;
        let decoded = &context.code[pc.index()];
        let (at, w) = (entry.occupant.resident(), entry.occupant.warp());
        let resident = self.residents[at].as_mut().expect("a CTA stays until its accesses are done");
        let inst = &kernel.code[pc.index()];
        access.finish(kernel, &mut resident.warps[w], &mut resident.cta.shared, inst);
        if let Some(mut races) = context.launch.races() {
            races.arrived(kernel, &resident.cta, &resident.warps[w], access);
        }
        if !access.unwritten.is_empty() {
            let (lane, address, bytes) = access.first_unwritten();
            let read = (lane, "global", address, bytes);
            self.unwritten.note(kernel, &resident.cta, &resident.warps[w], pc, read);
        }
        if let Some(watch) = &mut self.watch {
            watch.completed(slot, id);
            if decoded.spin == Some(SpinRole::Poll)
                || Polled::<N>::may_wait(inst) && access.lanes.local.is_empty()
            {
                watch.polled(slot, access);
            }
            if !watch.proves() {
                let who = self.memory.transfers[id].who;
                self.changed |= watch.wrote(who, access, kernel.windows.shared);
            }
        }
        let Activation { registers, predicates, .. } = access.activation;
        decoded.writes.at(registers, predicates, |writes| entry.board.release(writes));
        entry.status.outstanding -= 1;
        entry.quiet_since = now;
        entry.unlocking -= u32::from(matches!(kind, MemoryOp::Unlock { .. }));
        if self.barrier_after_stores {
            entry.shared_stores -= u32::from(access.stores_to_shared());
        }
        if entry.status.held && decoded.ordering.before_all {
            entry.status.held = false;
            self.memory.l1.invalidate();
        }
        if kind == MemoryOp::Copy {
            self.changed = true;
            entry.copies.end(self.memory.transfers[id].group);
        }
        if P::WATCHES_MEMORY {
            self.probe.access_done(now, id, pc);
        }
        self.memory.transfers.give_back(id);
        if !queued.is_empty() {
            entry.block_on_locks(mask, queued);
        }
        self.refresh_after_access(context, slot, now);
        self.end_cta_if_done(at, now);
        if self.fences.is_some() {
            self.pass_fences(context, number, now);
        }
    }

    /// An access is done, or a fence's message is answered, for which fences may have waited.
    pub(crate) fn pass_fences(&mut self, context: &Context<'_>, number: u64, now: Cycle) {
        let Some(fences) = &mut self.fences else { return };
        fences.end(number);
        while let Some(slot) = self.fences.as_mut().and_then(|fences| fences.release()) {
            let until = now + u64::from(context.launch.chip.units.fence_after_access_cycles);
            let entry = &mut self.slots[slot.index()];
            entry.fenced = false;
            entry.not_before = (until, State::Membar);
            let life = entry.occupant.life;
            self.agenda.events.push(until.max(now + 1), Event::Wake { slot, life });
        }
    }
}
