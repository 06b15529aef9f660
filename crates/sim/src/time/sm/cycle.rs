//! The clock of an SM: one cycle of its pipeline, and which cycle is worth running next.
//!
//! A cycle has five parts: replies from memory arrive, due events happen, the load/store unit sends one piece, every
//! scheduler issues, one warp fetches. When none of them has anything to do the SM skips to its next event.

use warploom_isa::Pc;

use crate::exec::execute::Execution;
use crate::exec::memory::store::{Global, Memory};
use crate::kit::cycle::Cycle;
use crate::kit::ids::{TransferId, WarpSlot};
use crate::time::network::message::Reply;
use crate::time::sm::front_end::fetch::LineNews;
use crate::time::sm::issue::slot::Position;
use crate::time::sm::load_store::{Progress, Room};
use crate::time::sm::probe::Probe;
use crate::time::sm::{Agenda, BETWEEN_WINDOWS, Context, Sm};

/// Something that happens in a later cycle. `life` tells whether the warp is still in its slot by then.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Event {
    /// The results of an instruction are in its registers.
    Written { slot: WarpSlot, life: u32, pc: Pc, registers: u32, predicates: u32 },
    /// Fetched instructions can issue.
    Decoded { slot: WarpSlot, life: u32, count: u32 },
    /// A warp can fetch after a branch.
    Refetch { slot: WarpSlot, life: u32 },
    /// The time that a warp had to wait is over.
    Wake { slot: WarpSlot, life: u32 },
    /// A lock queue grants a lane its lock.
    Granted { slot: WarpSlot, life: u32, lane: u32 },
    /// An access is complete.
    Complete { transfer: TransferId },
    /// Messages of other SMs of a cluster arrive.
    FromCluster,
    /// The copy engine can go on.
    CopyEngine,
}

impl<const N: usize, P: Probe> Sm<N, P> {
    /// Runs the cycles from `from` on and below `until`.
    pub(crate) fn run(&mut self, context: &Context<'_>, memory: &Memory, from: Cycle, until: Cycle) {
        if self.agenda.wake >= until {
            self.agenda.now = until;
            return;
        }
        self.agenda.now = self.agenda.wake.max(from);
        let mut execution = Execution {
            launch: context.launch,
            memory: Global::Later(memory),
            effects: self.effects.take().expect(BETWEEN_WINDOWS),
            clock: 0,
            uninitialised: None,
        };
        while self.agenda.now < until {
            let now = self.agenda.now;
            if !self.cycle(context, &mut execution, now) {
                break;
            }
            if self.agenda.now == now {
                self.agenda.now = self.next_cycle(until);
            }
        }
        let mut effects = execution.effects;
        for (cta, kernel) in self.ended_ctas.drain(..) {
            if let Some(unit) = effects.lock_units.of(self.id) {
                self.notes.of(kernel, &mut effects.notes);
                effects.notes.locks.cta_ended(unit, cta);
            }
        }
        self.effects = Some(effects);
        self.agenda.wake = self.find_wake();
    }

    /// One cycle. Returns whether the SM goes on: not after a fault.
    #[inline(always)]
    fn cycle<'a>(&mut self, context: &Context<'a>, execution: &mut Execution<'a>, now: Cycle) -> bool {
        self.go_on_with(context, now);
        self.agenda.held_back = false;
        if !self.agenda.ready.is_empty() && !self.schedule_all(context, execution, now) {
            return false;
        }
        if self.fetch.is_busy() || !self.refused_lines.is_empty() {
            for _ in 0..self.fetch.warps_per_cycle(now) {
                self.fetch_one(now);
            }
        }
        true
    }

    /// The part of a cycle that needs no warp: replies arrive, due events happen, an access sends one piece.
    #[inline(always)]
    fn go_on_with(&mut self, context: &Context<'_>, now: Cycle) {
        while let Some(reply) = self.agenda.inbox.take(now) {
            if let Some(line) = self.memory.arrive(now, reply) {
                self.fetch.fill(line);
            }
            self.probe.outstanding(now, self.memory.l1.outstanding());
        }
        while let Some(number) = self.memory.fences_answered.pop() {
            self.pass_fences(context, number, now);
        }
        if !self.memory.completed.is_empty() {
            self.collect_completed(now);
        }
        if !self.memory.switches.done.is_empty() {
            self.finish_switches(context, now);
        }
        if self.agenda.events.next_cycle() == now {
            let mut due = self.agenda.events.take_at(now);
            while let Some(event) = self.agenda.events.pop(&mut due) {
                self.happen(context, event, now);
            }
        }
        if self.memory.next_step() <= now {
            match self.memory.step(now) {
                Progress::Finished(id) if self.memory.transfers[id].engine.is_some() => {
                    let number = self.memory.transfers[id].engine.unwrap_or_default();
                    self.copy_sent(context, number, now);
                    self.collect_completed(now);
                }
                Progress::Finished(id) => {
                    if self.cluster.is_some() {
                        self.send_to_cluster(context, id, now);
                    }
                    self.show_sent(id);
                    self.units.release_memory(now);
                    self.collect_completed(now);
                    self.probe.outstanding(now, self.memory.l1.outstanding());
                }
                Progress::Sent(id) => {
                    self.show_sent(id);
                    self.probe.outstanding(now, self.memory.l1.outstanding());
                }
                Progress::Idle | Progress::Refused(_) => {}
            }
        }
    }

    fn happen(&mut self, context: &Context<'_>, event: Event, now: Cycle) {
        let slot = match event {
            Event::Written { slot, life, pc, registers, predicates } => {
                let entry = &mut self.slots[slot.index()];
                if entry.occupant.life != life || !entry.write_result(context, pc, registers, predicates) {
                    return;
                }
                slot
            }
            Event::Decoded { slot, life, count } => {
                let entry = &mut self.slots[slot.index()];
                if entry.occupant.life != life {
                    return;
                }
                entry.fill_buffer(count);
                return self.refresh_after_fetch(context, slot, now);
            }
            Event::Refetch { slot, life } => {
                if self.slots[slot.index()].occupant.life == life {
                    self.fetch.want(slot);
                }
                return;
            }
            Event::Wake { slot, life } => {
                let entry = &self.slots[slot.index()];
                if entry.occupant.life != life {
                    return;
                }
                if entry.sleeps_until <= now {
                    self.wake_paths(slot, now);
                }
                slot
            }
            Event::Granted { slot, life, lane } => {
                let entry = &mut self.slots[slot.index()];
                if entry.occupant.life != life || !entry.take_grant(lane) {
                    return;
                }
                slot
            }
            Event::Complete { transfer } => return self.complete(context, transfer, now),
            Event::FromCluster => return self.hear_cluster(context, now),
            Event::CopyEngine => return self.feed_copy(now),
        };
        self.refresh(context, slot, now);
    }

    /// Paths of a warp that slept go on.
    fn wake_paths(&mut self, slot: WarpSlot, now: Cycle) {
        let entry = &mut self.slots[slot.index()];
        entry.sleeps_until = Cycle::NEVER;
        let Some(resident) = &mut self.residents[entry.occupant.resident()] else { return };
        let warp = &mut resident.warps[entry.occupant.warp()];
        warp.control.wake();
        entry.position = Position::of(warp);
        if matches!(entry.position, Position::At(pc) if pc != entry.buffer.pc) {
            self.redirect(slot, now);
        }
    }

    /// The next cycle, up to `until`, in which something can happen.
    fn next_cycle(&self, until: Cycle) -> Cycle {
        let soon = self.agenda.now + 1;
        if soon >= until || self.fetch.is_busy() {
            return soon;
        }
        let next = self.agenda.ready.next_issuable(&self.units);
        // A policy that lets ready warps wait says itself until when.
        if next <= soon && !self.agenda.held_back {
            return soon;
        }
        next.min(self.next_event()).clamp(soon, until)
    }

    /// The cycle of the next reply, event or piece of an access that is known now, or [`Cycle::NEVER`].
    fn next_event(&self) -> Cycle {
        let mut next = self.settles_at();
        if self.agenda.held_back {
            let wakes = self.schedulers.iter().filter_map(|s| s.policy.wakes_at()).min();
            next = next.min(wakes.unwrap_or(Cycle::NEVER));
        }
        next
    }

    /// When something that warps have begun goes on, as far as is known, or [`Cycle::NEVER`].
    #[inline]
    pub(crate) fn settles_at(&self) -> Cycle {
        let Agenda { inbox, events, .. } = &self.agenda;
        inbox.next().min(events.next_cycle()).min(self.memory.next_step())
    }

    /// When the SM does something next unless a message arrives first, or [`Cycle::NEVER`].
    pub(crate) fn wakes_at(&self) -> Cycle {
        self.agenda.wake
    }

    fn find_wake(&self) -> Cycle {
        if self.fault.is_some() {
            return Cycle::NEVER;
        }
        let busy = self.fetch.is_busy() || !self.refused_lines.is_empty() || !self.agenda.ready.is_empty();
        if busy { self.agenda.now } else { self.next_event().max(self.agenda.now) }
    }

    /// Wakes the SM no later than at cycle `at`. One that has faulted stays asleep.
    pub(super) fn wake_by(&mut self, at: Cycle) {
        if self.fault.is_none() {
            self.agenda.wake = self.agenda.wake.min(at);
        }
    }

    /// Something reached the SM between two windows.
    pub(crate) fn wake_up(&mut self) {
        self.wake_by(self.agenda.now);
    }

    /// Another SM that shares the instruction cache has requested and received lines, as is known from cycle `now` on.
    pub(crate) fn hear_of_lines(&mut self, news: &LineNews, now: Cycle) {
        if self.fetch.hear(news) {
            self.wake_by(self.agenda.now.max(now));
        }
    }

    /// A reply will arrive at cycle `arrival`.
    pub(crate) fn receive(&mut self, arrival: Cycle, reply: Reply) {
        self.agenda.inbox.push(arrival, reply);
        self.wake_by(arrival);
    }

    /// A lock queue has granted a lane its lock; the SM learns of it at cycle `arrival`.
    pub(crate) fn grant(&mut self, arrival: Cycle, slot: WarpSlot, lane: u32) {
        let life = self.slots[slot.index()].occupant.life;
        self.agenda.events.push(arrival, Event::Granted { slot, life, lane });
        self.wake_by(arrival);
    }

    /// The network now has room for so many packets.
    pub(crate) fn set_room(&mut self, room: Room) {
        if self.memory.set_room(room, self.agenda.now) {
            self.wake_by(self.agenda.now);
        }
    }

    /// Lets what warps have begun go on, from `from` on and below `until`. No warp issues.
    pub(crate) fn settle(&mut self, context: &Context<'_>, from: Cycle, until: Cycle) {
        self.agenda.now = self.agenda.now.max(from);
        while let Some(now) = Some(self.settles_at().max(self.agenda.now)).filter(|&now| now < until) {
            self.agenda.now = now;
            self.go_on_with(context, now);
            self.agenda.now = now + 1;
        }
        self.agenda.now = self.agenda.now.max(until);
        self.agenda.wake = self.find_wake();
    }

    /// When an access in flight goes on, if any is left.
    pub(crate) fn drains_at(&self) -> Option<Cycle> {
        Some(self.agenda.inbox.next().min(self.memory.next_step())).filter(|&at| at != Cycle::NEVER)
    }

    /// Lets accesses in flight go on, from `from` on and below `until`. Warps no longer do anything.
    pub(crate) fn drain(&mut self, from: Cycle, until: Cycle) {
        self.agenda.now = self.agenda.now.max(from);
        while let Some(now) = self.drains_at().map(|at| at.max(self.agenda.now)).filter(|&now| now < until) {
            self.agenda.now = now;
            while let Some(reply) = self.agenda.inbox.take(now) {
                self.memory.arrive(now, reply);
            }
            self.memory.step(now);
            self.memory.completed.clear();
        }
    }
}
