//! A streaming multiprocessor with a clock: its warps, and one cycle of its pipeline.
//!
//! A cycle has five parts: answers from memory arrive, events that are due happen, the load/store unit sends a piece,
//! every scheduler issues, one warp fetches. When none of them has anything to do the SM skips to its next event.

use std::hint::select_unpredictable;

use smallvec::SmallVec;
use warploom_isa::{Op, Pc};

use crate::chip::Chip;
use crate::exec::execute::{Cta, Effects, Execution};
use crate::exec::fault::Fault;
use crate::exec::launch::Launch;
use crate::exec::locks::holders::{SharedLocks, WarpName};
use crate::exec::memory::store::{Global, Memory};
use crate::exec::uninitialised::UninitialisedReads;
use crate::exec::warp::Warp;
use crate::kit::cycle::Cycle;
use crate::kit::ids::{SlotSet, WarpSlot};
use crate::kit::wheel::Wheel;
use crate::time::network::message::Reply;
use crate::time::probe::{CtaEvent, Probe, State};
use crate::time::sched::Policy;
use crate::time::sm::dispatched::Dispatched;
use crate::time::sm::front_end::decode::{Decoded, Unit};
use crate::time::sm::front_end::fetch::{Fetch, Fetched};
use crate::time::sm::issue::scoreboard::RegSet;
use crate::time::sm::issue::slot::{Front, Slot};
use crate::time::sm::issue::spin_unit::SpinUnit;
use crate::time::sm::load_store::inbox::Inbox;
use crate::time::sm::load_store::stats::L1Stats;
use crate::time::sm::load_store::{MemoryUnit, Progress};
use crate::time::sm::units::Backend;
use crate::time::sm::watch::Watch;

/// What does not change while a kernel runs.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// The launch.
    pub launch: &'a Launch<'a>,
    /// The kernel as the pipeline sees it.
    pub code: &'a [Decoded],
    /// Where its code begins, in instructions, so that kernels do not share lines of the instruction cache.
    pub code_start: u32,
    /// Kernels that firmware can start besides this one, which is number 0.
    pub others: &'a [Context<'a>],
}

impl<'a> Context<'a> {
    /// What belongs to kernel number `kernel`. Asked of what belongs to a kernel already, it is the same.
    #[inline(always)]
    pub fn of(&self, kernel: u16) -> &Context<'a> {
        if kernel == 0 { self } else { self.others.get(kernel as usize - 1).unwrap_or(self) }
    }
}

/// A CTA on the SM.
#[derive(Debug)]
pub struct Resident<const N: usize> {
    /// Its scratchpad and barriers.
    pub cta: Cta,
    /// Its warps.
    pub warps: Vec<Warp<N>>,
    /// The slot of each.
    pub slots: WarpSlots,
    /// The number of its kernel.
    pub kernel: u16,
}

/// The slots of a CTA's warps. One that has yielded has none.
pub type WarpSlots = SmallVec<[Option<WarpSlot>; 8]>;

/// Something that happens in a later cycle.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Event {
    /// The results of an instruction are in its registers.
    Written { slot: WarpSlot, life: u32, pc: Pc, registers: u32, predicates: u32 },
    /// Fetched instructions can issue.
    Decoded { slot: WarpSlot, life: u32, count: u32 },
    /// A warp can fetch after a branch.
    Refetch { slot: WarpSlot, life: u32 },
    /// A warp may go on.
    Wake { slot: WarpSlot, life: u32 },
    /// A lock queue lets a lane go.
    Granted { slot: WarpSlot, life: u32, lane: u32 },
    /// An access is complete.
    Complete { transfer: u32 },
}

/// A scheduler and its warps.
pub(crate) struct Scheduler {
    owned: SlotSet,
    pub(crate) policy: Box<dyn Policy>,
}

/// The cycle of what does not happen.
const NEVER: u64 = u64::MAX;

const BETWEEN_WINDOWS: &str = "asked for between windows";

/// One SM. What every cycle needs comes first, on few lines of the host's cache: fifteen SMs do not fit it.
#[repr(C, align(64))]
pub struct Sm<const N: usize, P> {
    /// The next cycle to run.
    pub now: u64,
    /// When it does something next, if nothing comes to it from outside; [`NEVER`] if it does not.
    wake: u64,
    /// All of them.
    any_ready: SlotSet,
    /// Ready warps by the unit they need.
    ready: [SlotSet; Unit::COUNT],
    inbox: Inbox,
    pub(crate) events: Wheel<Event>,
    /// A policy let ready warps wait in the last cycle.
    held_back: bool,
    /// Something but the state of a warp has changed since the machine last looked.
    pub changed: bool,
    width: u32,
    lines_refused: Vec<u64>,
    pub(crate) slots: Vec<Slot>,
    pub(crate) residents: Vec<Option<Resident<N>>>,
    pub(crate) schedulers: Vec<Scheduler>,
    /// Whose turn it is at each kind of unit.
    turns: [usize; Unit::COUNT],
    /// Ready warps whose unit was busy, times cycles.
    pub unit_busy: u64,
    branch_latency: u64,
    /// What its instructions do besides; not here while they run.
    effects: Option<Box<Effects>>,
    /// CTAs that ended in this window: they may have left lock bits taken.
    ended: Vec<u64>,
    /// The first fault of a thread, with its cycle.
    pub fault: Option<(u64, Box<Fault>)>,
    fetch: Fetch,
    pub(crate) backend: Backend,
    /// The load/store unit.
    pub memory: MemoryUnit<N>,
    /// What observes it.
    pub probe: P,
    /// What finds and slows down spinning warps, if the chip has it and it is on.
    pub spin_unit: Option<Box<SpinUnit>>,
    pub(crate) id: u32,
    /// How many more CTAs fit.
    pub(crate) vacant: usize,
    pub(crate) warps_started: u64,
    /// When its last CTA ended.
    pub last_end: u64,
    /// The search for warps that repeat themselves, when there is one.
    pub watch: Option<Watch<N>>,
    /// Lanes that polled with a load, and lanes that found they must poll again.
    pub polls: [u64; 2],
    /// Where the lanes of each slot last waited, if the kernel names its waits; no slot before the first does.
    pub(crate) waited_at: Vec<[u64; N]>,
    /// Warps that go round in a spin loop.
    pub spinning_warps: u32,
    /// Reads of memory that nobody wrote.
    pub unwritten: UninitialisedReads,
    /// Who holds which lock in shared memory.
    pub locks: SharedLocks,
    /// Lanes that have ended in this window, if the chip has lock queues to take them out of.
    pub lanes_ended: Option<Vec<(WarpSlot, u64)>>,
    /// What firmware started here.
    pub dispatched: Dispatched,
}

impl<const N: usize, P: Probe> Sm<N, P> {
    /// An empty SM.
    pub fn new(
        chip: &Chip,
        id: u32,
        ctas: u32,
        make_policy: &dyn Fn() -> Box<dyn Policy>,
        probe: P,
        now: u64,
    ) -> Self {
        let schedulers = (0..chip.issue.schedulers)
            .map(|scheduler| {
                let owned = (0..64).filter(|slot| slot % chip.issue.schedulers == scheduler);
                Scheduler { owned: SlotSet(owned.fold(0, |m, slot| m | 1 << slot)), policy: make_policy() }
            })
            .collect();
        Sm {
            id,
            now,
            wake: NEVER,
            residents: (0..ctas).map(|_| None).collect(),
            vacant: ctas as usize,
            slots: vec![Slot::empty(); chip.sm.max_warps as usize],
            ready: [SlotSet::default(); Unit::COUNT],
            any_ready: SlotSet::default(),
            schedulers,
            turns: [0; Unit::COUNT],
            width: chip.issue.width,
            fetch: Fetch::new(&chip.fetch),
            branch_latency: chip.units.branch_latency_cycles as u64,
            backend: Backend::new(chip),
            memory: MemoryUnit::new(chip, id as u16, P::WATCHES_MEMORY),
            inbox: Inbox::new(),
            events: Wheel::new(),
            lines_refused: Vec::new(),
            held_back: false,
            warps_started: 0,
            last_end: now,
            probe,
            effects: Some(Box::default()),
            fault: None,
            watch: None,
            changed: false,
            polls: [0; 2],
            waited_at: Vec::new(),
            unit_busy: 0,
            spinning_warps: 0,
            unwritten: UninitialisedReads::default(),
            locks: SharedLocks::default(),
            spin_unit: None,
            lanes_ended: None,
            ended: Vec::new(),
            dispatched: Dispatched::default(),
        }
    }

    /// Whether another CTA fits.
    pub fn has_room(&self) -> bool {
        self.vacant > 0
    }

    /// Its number.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// Whether no CTA is on it.
    pub fn is_empty(&self) -> bool {
        self.vacant == self.residents.len()
    }

    /// The warp in a slot.
    pub fn who(&self, slot: WarpSlot) -> WarpName {
        let entry = &self.slots[slot.index()];
        let cta = self.residents[entry.resident()].as_ref().map_or(0, |r| r.cta.number);
        WarpName { cta, warp: entry.warp() as u32 }
    }

    /// The number of the kernel of the warp in a slot.
    pub fn kernel_of(&self, slot: WarpSlot) -> u16 {
        self.slots[slot.index()].kernel
    }

    /// What its instructions did besides, between windows.
    pub fn effects(&self) -> &Effects {
        self.effects.as_ref().expect(BETWEEN_WINDOWS)
    }

    /// The same, to change.
    pub fn effects_mut(&mut self) -> &mut Effects {
        self.effects.as_mut().expect(BETWEEN_WINDOWS)
    }

    /// Its CTAs.
    pub fn residents(&self) -> impl Iterator<Item = &Resident<N>> {
        self.residents.iter().flatten()
    }

    /// Counters of the memories beside the pipeline.
    pub fn l1_stats(&self) -> L1Stats {
        L1Stats {
            fetch_hits: self.fetch.hits,
            fetch_misses: self.fetch.misses,
            register_conflicts: self.backend.bank_conflicts,
            ..self.memory.stats.clone()
        }
    }

    /// Puts a CTA of the grid on the SM, which has room for it, at cycle `now`.
    pub fn start_cta(&mut self, context: &Context<'_>, number: u64, now: u64) {
        self.now = self.now.max(now);
        let Launch { chip, kernel, shape, occupancy, .. } = context.launch;
        let at = self.residents.iter().position(Option::is_none).expect("the SM has room");
        let per_cta = occupancy.warps_per_cta;
        let first = at as u8 * per_cta as u8;
        let warps = (0..per_cta).map(|w| Warp::new(w, shape.block, kernel, chip.sm.divergence)).collect();
        let cta = Cta::new(context.launch, number, self.id, at as u32);
        let slots = (first..first + per_cta as u8).map(|slot| Some(WarpSlot(slot))).collect();
        self.place_cta(context, at, Resident { cta, warps, slots, kernel: 0 }, now);
    }

    /// Puts a CTA into a place, and its warps into their slots.
    pub(crate) fn place_cta(&mut self, context: &Context<'_>, at: usize, resident: Resident<N>, now: u64) {
        let slots = resident.slots.clone();
        let (number, warps) = (resident.cta.number, slots.len() as u32);
        self.residents[at] = Some(resident);
        self.vacant -= 1;
        let first = slots[0].expect("a warp that starts has a slot");
        self.probe.cta_started(now, CtaEvent { number, first, warps });
        for (warp, slot) in slots.into_iter().enumerate() {
            self.occupy(context, slot.expect("a warp that starts has a slot"), at, warp, now);
        }
        self.wake = self.now;
        self.changed = true;
    }

    /// A warp of the CTA in place `at` begins in a slot.
    pub(crate) fn occupy(&mut self, context: &Context<'_>, slot: WarpSlot, at: usize, warp: usize, now: u64) {
        let kernel = self.residents[at].as_ref().map_or(0, |resident| resident.kernel);
        let entry = &mut self.slots[slot.index()];
        *entry = entry.next(at, warp, now);
        (entry.kernel, entry.code_start) = (kernel, context.of(kernel).code_start);
        self.find_front(slot);
        let age = self.warps_started;
        self.warps_started += 1;
        let schedulers = self.schedulers.len();
        self.schedulers[slot.index() % schedulers].policy.started(now, slot, age);
        if let Some(unit) = &mut self.spin_unit {
            unit.started(now, slot);
        }
        if let Some(lanes) = self.waited_at.get_mut(slot.index()) {
            *lanes = [u64::MAX; N];
        }
        self.refresh(context, slot, now);
    }

    /// Finds out where the warp in a slot is.
    pub(crate) fn find_front(&mut self, slot: WarpSlot) {
        let entry = &mut self.slots[slot.index()];
        let resident = self.residents[entry.resident()].as_ref();
        entry.front = resident.map_or(Front::Ended, |resident| Front::of(&resident.warps[entry.warp()]));
    }

    /// A warp has left its slot although it has not ended.
    pub(crate) fn vacate(&mut self, slot: WarpSlot, now: u64) {
        let entry = &mut self.slots[slot.index()];
        if now > entry.since {
            self.probe.spent(slot, entry.state, entry.since, now - entry.since);
        }
        entry.since = now;
        (entry.state, entry.front) = (State::Ended, Front::Ended);
        entry.life += 1;
        self.fetch.forget(slot);
        let schedulers = self.schedulers.len();
        self.schedulers[slot.index() % schedulers].policy.ended(now, slot);
        if let Some(unit) = &mut self.spin_unit {
            unit.ended(now, slot);
        }
    }

    /// Runs the cycles from `from` on and below `until`.
    pub fn run(&mut self, context: &Context<'_>, memory: &Memory, from: u64, until: u64) {
        if self.wake >= until {
            self.now = until;
            return;
        }
        self.now = self.wake.max(from);
        let mut execution = Execution {
            launch: context.launch,
            memory: Global::Later(memory),
            effects: self.effects.take().expect(BETWEEN_WINDOWS),
            clock: 0,
            uninitialised: None,
        };
        while self.now < until {
            let now = self.now;
            if !self.cycle(context, &mut execution, now) {
                break;
            }
            if self.now == now {
                self.now = self.next_cycle(until);
            }
        }
        let mut effects = execution.effects;
        for cta in self.ended.drain(..) {
            if let Some(unit) = effects.lock_units.of(self.id) {
                effects.lock_notes.cta_ended(unit, cta);
            }
        }
        self.effects = Some(effects);
        self.wake = self.find_wake();
    }

    /// An answer arrives at a later cycle.
    pub fn receive(&mut self, arrival: u64, reply: Reply) {
        self.inbox.push(arrival, reply);
        if self.fault.is_none() {
            self.wake = self.wake.min(arrival);
        }
    }

    /// A lock queue has let a lane go; the news arrives at a later cycle.
    pub fn grant(&mut self, arrival: u64, slot: WarpSlot, lane: u32) {
        let life = self.slots[slot.index()].life;
        self.events.push(Cycle(arrival), Event::Granted { slot, life, lane });
        if self.fault.is_none() {
            self.wake = self.wake.min(arrival);
        }
    }

    /// The network now takes so many packets.
    pub fn set_room(&mut self, packets: u32) {
        if self.memory.set_room(packets, self.now) && self.fault.is_none() {
            self.wake = self.wake.min(self.now);
        }
    }

    /// Something came to it between two windows.
    pub fn wake_up(&mut self) {
        if self.fault.is_none() {
            self.wake = self.wake.min(self.now);
        }
    }

    /// The next cycle, up to `until`, in which something can happen.
    fn next_cycle(&self, until: u64) -> u64 {
        let soon = self.now + 1;
        if soon >= until || self.fetch.is_busy() {
            return soon;
        }
        let mut next = u64::MAX;
        if !self.any_ready.is_empty() {
            for (ready, &free_at) in self.ready.iter().zip(&self.backend.free_at) {
                next = next.min(select_unpredictable(ready.is_empty(), NEVER, free_at));
            }
        }
        // A policy that lets ready warps wait says itself until when.
        if next <= soon && !self.held_back {
            return soon;
        }
        next.min(self.next_event()).clamp(soon, until)
    }

    /// When something happens by itself, if anything will: an answer, an event, a piece of an access.
    fn next_event(&self) -> u64 {
        let mut next = self.inbox.next().min(self.events.next_cycle().0).min(self.memory.next_step());
        if self.held_back {
            let wakes = self.schedulers.iter().filter_map(|s| s.policy.wakes_at()).min();
            next = next.min(wakes.unwrap_or(u64::MAX));
        }
        next
    }

    /// When the SM does something next, if nothing comes to it from outside.
    pub fn wakes_at(&self) -> u64 {
        self.wake
    }

    fn find_wake(&self) -> u64 {
        if self.fault.is_some() {
            return NEVER;
        }
        let busy = self.fetch.is_busy() || !self.lines_refused.is_empty() || !self.any_ready.is_empty();
        if busy { self.now } else { self.next_event().max(self.now) }
    }

    /// One cycle. Returns whether the SM goes on.
    #[inline(always)]
    fn cycle<'a>(&mut self, context: &Context<'a>, execution: &mut Execution<'a>, now: u64) -> bool {
        while let Some(reply) = self.inbox.take(now) {
            if let Some(line) = self.memory.arrive(now, reply) {
                self.fetch.fill(line);
            }
            self.probe.outstanding(now, self.memory.l1.outstanding());
        }
        if !self.memory.completed.is_empty() {
            self.collect_completed(now);
        }
        if !self.memory.switches.done.is_empty() {
            self.finish_switches(context, now);
        }
        if self.events.next_cycle() == Cycle(now) {
            let mut due = self.events.take_at(Cycle(now));
            while let Some(event) = self.events.pop(&mut due) {
                self.happen(context, event, now);
            }
        }
        if self.memory.next_step() <= now {
            match self.memory.step(now) {
                Progress::Finished => {
                    self.backend.release_memory(now);
                    self.collect_completed(now);
                    self.probe.outstanding(now, self.memory.l1.outstanding());
                }
                Progress::Sent => self.probe.outstanding(now, self.memory.l1.outstanding()),
                Progress::Idle | Progress::Refused(_) => {}
            }
        }
        self.held_back = false;
        if !self.any_ready.is_empty() && !self.schedule_all(context, execution, now) {
            return false;
        }
        if self.fetch.is_busy() || !self.lines_refused.is_empty() {
            for _ in 0..self.fetch.warps_per_cycle() {
                self.fetch_one(now);
            }
        }
        true
    }

    /// Every scheduler issues, if it can. Returns false if a thread faulted.
    fn schedule_all<'a>(&mut self, context: &Context<'a>, execution: &mut Execution<'a>, now: u64) -> bool {
        let mut issuable = self.issuable(now);
        if issuable.is_empty() {
            return true;
        }
        let count = self.schedulers.len();
        let mut scheduler = self.first_scheduler(issuable, now);
        for _ in 0..count {
            let ready = SlotSet(issuable.0 & self.schedulers[scheduler].owned.0);
            if !ready.is_empty() {
                if !self.schedule(context, execution, scheduler, ready, now) {
                    return false;
                }
                // It may have taken the units that others' warps need.
                issuable = self.issuable(now);
            }
            scheduler = if scheduler + 1 == count { 0 } else { scheduler + 1 };
        }
        true
    }

    /// Who goes first: of schedulers with warps for the same free unit, the next after the one that had it last. To take
    /// turns by cycles is not enough, because a unit may be free in every eighth cycle only.
    fn first_scheduler(&self, issuable: SlotSet, now: u64) -> usize {
        let is_of_one =
            |set: SlotSet| self.schedulers.iter().any(|scheduler| set.0 & !scheduler.owned.0 == 0);
        if is_of_one(issuable) {
            return 0;
        }
        for unit in [Unit::Memory, Unit::Sfu, Unit::Dp, Unit::Sp] {
            let ready = self.ready[unit as usize];
            if ready.is_empty() || self.backend.free_at[unit as usize] > now {
                continue;
            }
            if !is_of_one(ready) {
                return self.turns[unit as usize];
            }
        }
        0
    }

    /// One scheduler issues from a set that is not empty. Returns false if a thread faulted.
    fn schedule<'a>(
        &mut self,
        context: &Context<'a>,
        execution: &mut Execution<'a>,
        scheduler: usize,
        ready: SlotSet,
        now: u64,
    ) -> bool {
        let Some(slot) = self.schedulers[scheduler].policy.pick(now, ready) else {
            self.held_back = true;
            return true;
        };
        debug_assert!(ready.contains(slot));
        for _ in 0..self.width {
            let unit = self.slots[slot.index()].unit;
            match self.issue(context, execution, slot, now) {
                Ok(issue) => {
                    let next = if scheduler + 1 == self.schedulers.len() { 0 } else { scheduler + 1 };
                    self.turns[unit as usize] = next;
                    self.schedulers[scheduler].policy.issued(now, &issue);
                    // What comes after the branch waits for its turn in the queue.
                    if issue.is_sib && self.back_off(context, scheduler, &issue, now) {
                        break;
                    }
                }
                Err(fault) => {
                    self.fault = Some((now, fault));
                    return false;
                }
            }
            if self.width == 1 || !self.issuable(now).contains(slot) {
                break;
            }
        }
        if self.slots[slot.index()].state == State::Ended {
            self.schedulers[scheduler].policy.ended(now, slot);
            self.spin_ended(slot, now);
        }
        true
    }

    /// The warps that are ready and whose unit is free.
    #[inline]
    fn issuable(&self, now: u64) -> SlotSet {
        let mut found = 0;
        // Which units are free cannot be foreseen, so this has no branch.
        for (ready, &free_at) in self.ready.iter().zip(&self.backend.free_at) {
            found |= ready.0 & u64::from(free_at <= now).wrapping_neg();
        }
        SlotSet(found)
    }

    fn fetch_one(&mut self, now: u64) {
        // A line that the network did not take is asked for again.
        while let Some(&line) = self.lines_refused.last() {
            if !self.memory.fetch_instructions(now, line) {
                break;
            }
            self.lines_refused.pop();
        }
        let Some(slot) = self.fetch.next_warp() else { return };
        let entry = &mut self.slots[slot.index()];
        let Front::At(pc) = entry.front else {
            entry.fetching = false;
            return;
        };
        entry.fetch_pc = pc;
        let life = entry.life;
        match self.fetch.fetch(now, slot, Pc(entry.code_start + pc.0)) {
            Fetched::Hit { count, at } => self.events.push(Cycle(at), Event::Decoded { slot, life, count }),
            Fetched::Miss { line } => {
                if !self.memory.fetch_instructions(now, line) {
                    self.lines_refused.push(line);
                }
            }
            Fetched::Pending => {}
        }
    }

    pub(crate) fn collect_completed(&mut self, now: u64) {
        for (transfer, at) in self.memory.completed.drain(..) {
            // Values that go to registers need a port.
            let brings_values = self.memory.transfers[transfer].brings_values();
            let done = if brings_values { self.backend.book_port(now, at.max(now)) } else { at.max(now) };
            let written = done + 1;
            self.events.push(Cycle(written), Event::Complete { transfer });
        }
    }

    fn happen(&mut self, context: &Context<'_>, event: Event, now: u64) {
        let slot = match event {
            Event::Written { slot, life, pc, registers, predicates } => {
                let entry = &mut self.slots[slot.index()];
                if entry.life != life {
                    return;
                }
                let code = context.of(entry.kernel).code;
                entry.board.release(&code[pc.index()].writes.at(registers, predicates));
                // Whatever else it may wait for, it still does.
                if entry.state != State::Operand {
                    return;
                }
                slot
            }
            Event::Decoded { slot, life, count } => {
                let entry = &mut self.slots[slot.index()];
                if entry.life != life {
                    return;
                }
                entry.fetching = false;
                if entry.front == Front::At(entry.fetch_pc) {
                    (entry.buffered, entry.buffer_pc) = (count, entry.fetch_pc);
                }
                slot
            }
            Event::Refetch { slot, life } => {
                if self.slots[slot.index()].life == life {
                    self.fetch.want(slot);
                }
                return;
            }
            Event::Wake { slot, life } => {
                if self.slots[slot.index()].life != life {
                    return;
                }
                slot
            }
            Event::Granted { slot, life, lane } => {
                let entry = &mut self.slots[slot.index()];
                if entry.life != life {
                    return;
                }
                if entry.stale_grants >> lane & 1 == 1 {
                    entry.stale_grants &= !(1 << lane);
                    return;
                }
                if !std::mem::take(&mut entry.blocked) {
                    entry.granted |= 1 << lane;
                }
                slot
            }
            Event::Complete { transfer } => return self.complete(context, transfer, now),
        };
        self.refresh(context, slot, now);
    }

    /// Finds out what a warp does from `from` on.
    pub(crate) fn refresh(&mut self, context: &Context<'_>, slot: WarpSlot, from: u64) {
        let (state, unit) = self.assess(context, slot, from);
        let entry = &mut self.slots[slot.index()];
        // A warp that sleeps, or waits for a fence or a barrier's latency, fetches meanwhile.
        if entry.buffered == 0 && !entry.fetching && matches!(entry.front, Front::At(_)) {
            entry.fetching = true;
            self.fetch.want(slot);
        }
        if entry.state == state && entry.unit == unit {
            return;
        }
        if entry.state == State::Ready {
            self.unit_busy += entry.waited_for_unit(&self.backend, from);
            self.ready[entry.unit as usize].remove(slot);
            self.any_ready.remove(slot);
        }
        if state == State::Ready {
            entry.busy_before = self.backend.busy_cycles(unit, from);
            self.ready[unit as usize].insert(slot);
            self.any_ready.insert(slot);
        }
        if entry.state != state {
            self.probe.spent(slot, entry.state, entry.since, from.saturating_sub(entry.since));
            entry.since = entry.since.max(from);
        }
        (entry.state, entry.unit) = (state, unit);
    }

    /// A warp issues at `now`: its state until then, and the cycle of the issue, are accounted for.
    pub(crate) fn account_issue(&mut self, slot: WarpSlot, now: u64) {
        let entry = &mut self.slots[slot.index()];
        self.probe.spent(slot, entry.state, entry.since, now.saturating_sub(entry.since));
        self.unit_busy += entry.waited_for_unit(&self.backend, now);
        // The second instruction of a cycle adds nothing.
        if now >= entry.since {
            self.probe.spent(slot, State::Issued, now, 1);
            entry.since = now + 1;
        }
    }

    pub(crate) fn assess(&self, context: &Context<'_>, slot: WarpSlot, now: u64) -> (State, Unit) {
        let entry = &self.slots[slot.index()];
        let context = context.of(entry.kernel);
        let none = Unit::Control;
        let warp = || self.residents[entry.resident()].as_ref().map(|resident| &resident.warps[entry.warp()]);
        debug_assert_eq!(entry.front, warp().map_or(Front::Ended, Front::of));
        if entry.front == Front::Ended {
            return (State::Ended, none);
        }
        if entry.held {
            return (State::Fence, none);
        }
        // Lanes elsewhere in the code may have the lock.
        if entry.blocked && warp().is_some_and(|warp| warp.control.running_paths() < 2) {
            return (State::LockQueue, none);
        }
        let (not_before, reason) = entry.not_before;
        if now < not_before {
            return (reason, none);
        }
        let Front::At(pc) = entry.front else {
            let at_barrier = warp().is_some_and(|warp| warp.control.waits_at_barrier());
            return (if at_barrier { State::Barrier } else { State::Lanes }, none);
        };
        if entry.buffered == 0 {
            return (State::Fetch, none);
        }
        let inst = &context.code[pc.index()];
        if inst.ordering.after_all && entry.outstanding > 0 {
            return (State::Fence, none);
        }
        let hazard = if context.launch.kernel.functions.len() == 1 {
            entry.board.check(&inst.needs)
        } else if matches!(context.launch.kernel.code[pc.index()].op, Op::Call | Op::Ret) {
            // Registers of the caller and the callee are different rows that may share a bit.
            entry.board.check(&RegSet::ALL)
        } else {
            let (registers, predicates) = warp().map_or((0, 0), |warp| {
                let activation = warp.control.activation();
                (activation.registers, activation.predicates)
            });
            entry.board.check(&inst.needs.at(registers, predicates))
        };
        // Which of these it is cannot be foreseen.
        let (pending, from_memory) = hazard;
        let waits = select_unpredictable(from_memory, State::Memory, State::Operand);
        let goes = if now < entry.delayed_until { State::BackedOff } else { State::Ready };
        let state = select_unpredictable(pending, waits, goes);
        (state, select_unpredictable(state == State::Ready, inst.unit, none))
    }

    /// A warp's next instruction is not the one after its last: its buffer is worth nothing.
    pub(crate) fn redirect(&mut self, slot: WarpSlot, now: u64) {
        let entry = &mut self.slots[slot.index()];
        entry.buffered = 0;
        if !entry.fetching && self.branch_latency > 0 {
            entry.fetching = true;
            let life = entry.life;
            self.events.push(Cycle(now + self.branch_latency), Event::Refetch { slot, life });
        }
    }

    /// All threads of a CTA have ended and its accesses are done: its place is free.
    pub(crate) fn end_cta_if_done(&mut self, resident: usize, now: u64) {
        let Some(there) = &self.residents[resident] else { return };
        let mut slots = there.slots.iter().flatten();
        if there.cta.live_warps > 0 || slots.any(|slot| self.slots[slot.index()].outstanding > 0) {
            return;
        }
        let number = there.cta.number;
        // The cycle of the last instruction is part of the CTA's time.
        let end = now + 1;
        self.account_end(resident, end);
        let there = self.residents[resident].take().expect("it was here before");
        for slot in there.slots.iter().flatten() {
            self.slots[slot.index()].life += 1;
            self.fetch.forget(*slot);
        }
        self.locks.forget(number);
        self.ended.push(number);
        self.dispatched.cta_ended(there, end);
        self.vacant += 1;
        self.last_end = end;
        self.changed = true;
    }

    /// The launch ends at `end` although CTAs are here: what their warps did until then is accounted for.
    pub fn cut_off(&mut self, end: u64) {
        for resident in 0..self.residents.len() {
            self.account_end(resident, end);
        }
    }

    /// When an access that was issued goes on, if any is left.
    pub fn drains_at(&self) -> Option<u64> {
        Some(self.inbox.next().min(self.memory.next_step())).filter(|&at| at != NEVER)
    }

    /// Lets accesses on their way go on, from `from` on and below `until`, while warps do nothing any more.
    pub fn drain(&mut self, from: u64, until: u64) {
        self.now = self.now.max(from);
        while let Some(now) = self.drains_at().map(|at| at.max(self.now)).filter(|&now| now < until) {
            self.now = now;
            while let Some(reply) = self.inbox.take(now) {
                self.memory.arrive(now, reply);
            }
            self.memory.step(now);
            self.memory.completed.clear();
        }
    }

    /// A CTA's time on the SM is over: its warps' last states are accounted for.
    fn account_end(&mut self, resident: usize, end: u64) {
        let Some(there) = &self.residents[resident] else { return };
        let slots: SmallVec<[WarpSlot; 8]> = there.slots.iter().flatten().copied().collect();
        // A fault ends a launch in the middle of a cycle that some warps have used.
        let end = slots.iter().map(|slot| self.slots[slot.index()].since).fold(end, u64::max);
        for &slot in &slots {
            let entry = &mut self.slots[slot.index()];
            if end > entry.since {
                self.probe.spent(slot, entry.state, entry.since, end - entry.since);
            }
            entry.since = end;
            if entry.state == State::Ready {
                self.unit_busy += entry.waited_for_unit(&self.backend, end);
            }
        }
        let first = slots.first().copied().unwrap_or(WarpSlot(0));
        let warps = slots.len() as u32;
        self.probe.cta_ended(end, CtaEvent { number: there.cta.number, first, warps });
    }
}
