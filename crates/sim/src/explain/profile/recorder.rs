//! Records what the warps of one SM do, instruction by instruction.
//!
//! Every cycle of a warp is charged to one instruction. What a warp waits for before it issues is charged to the
//! instruction that it issues next; what an issued instruction makes it wait for (a barrier, a fence, sleep, back-off,
//! a lock queue, the end of its CTA) to that instruction.

use std::sync::{Arc, Mutex};

use rustc_hash::FxHashMap;
use warploom_isa::{Pc, Space};

use crate::exec::locks::holders::WarpName;
use crate::explain::profile::code::{Code, KnownOf};
use crate::explain::profile::course::Course;
use crate::explain::profile::span::Span;
use crate::explain::profile::words::{Thread, Try, WordPlace, Words};
use crate::kit::cycle::Cycle;
use crate::kit::ids::{TransferId, WarpSlot};
use crate::kit::lane_mask::LaneMask;
use crate::time::sched::{BranchOutcome, Issue};
use crate::time::sm::front_end::decode::{Decoded, SpinRole};
use crate::time::sm::probe::{Accessing, BarrierArrival, CtaEvent, State, Word};

/// Categories of warp time: the states, and two more.
pub(super) const CATEGORIES: usize = State::COUNT + 2;

/// Ready, but the unit was busy. `State::Ready` has the other ready cycles.
pub(super) const UNIT_BUSY: usize = State::COUNT;

/// Iterations of spin loops that failed.
pub(super) const SPINNING: usize = State::COUNT + 1;

/// States as bits.
const READY: u16 = 1 << State::Ready as u16;
const FENCE: u16 = 1 << State::Membar as u16;

/// The states of [`can_spin`].
const CAN_SPIN: u16 = {
    let (mut states, mut at) = (0, 0);
    while at < State::COUNT {
        states |= (can_spin(State::ALL[at]) as u16) << at;
        at += 1;
    }
    states
};

/// The numbers of the bits that are set.
#[inline]
fn bits(mut set: u16) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let lowest = (set != 0).then(|| set.trailing_zeros() as usize);
        set &= set.wrapping_sub(1);
        lowest
    })
}

/// Whether time in a state is spinning if it is part of a failed iteration. In the others the warp was made to wait.
pub(super) const fn can_spin(state: State) -> bool {
    use State::{BackedOff, Barrier, Drain, LockQueue, Sleeping, WarpSync};
    !matches!(state, Barrier | WarpSync | Sleeping | BackedOff | LockQueue | Drain)
}

/// What an instruction did.
#[derive(Clone, Debug, Default)]
pub(super) struct Row {
    /// Beside the counts, because both are needed at once.
    known: KnownOf,
    /// Times that a warp issued it.
    pub(super) executions: u64,
    /// Active lanes of all executions.
    pub(super) lanes: u64,
    /// Cycles by category.
    pub(super) time: [u64; CATEGORIES],
    /// Pieces that its accesses were sent in.
    pub(super) transactions: u64,
    /// From issue to write-back, for each access.
    pub(super) latency: Span,
    /// Lanes that polled with it, and those that have to poll again.
    pub(super) polls: u64,
    pub(super) failed_polls: u64,
}

impl Row {
    fn add(&mut self, other: &Row) {
        self.executions += other.executions;
        self.lanes += other.lanes;
        self.time.iter_mut().zip(other.time).for_each(|(sum, more)| *sum += more);
        self.transactions += other.transactions;
        self.latency.merge(&other.latency);
        self.polls += other.polls;
        self.failed_polls += other.failed_polls;
    }
}

/// Cycles of the current iteration of a spin loop. Whether it failed is not known yet.
#[derive(Clone, Copy, Debug)]
struct Undecided {
    pc: u32,
    category: u8,
    lanes: LaneMask,
    cycles: u64,
}

/// An iteration that takes longer than this many entries does not fail: it works.
const LONGEST_ITERATION: usize = 1024;

/// A lane that waits for a word, or has just begun to.
#[derive(Clone, Copy, Debug)]
struct LaneWait {
    word: Word,
    /// The instruction that polls.
    pc: Pc,
    /// When it first polled, and when it last did.
    since: Cycle,
    last: Cycle,
    /// It has polled in vain and counts as waiting.
    queued: bool,
}

const NO_WAIT: LaneWait = LaneWait {
    word: Word { space: Space::Global, address: 0 },
    pc: Pc(0),
    since: Cycle(0),
    last: Cycle(0),
    queued: false,
};

/// A warp slot.
#[derive(Clone, Debug)]
struct SlotState {
    who: WarpName,
    /// Cycles since the last instruction, by state; `spent` has a bit for every state that is not zero.
    cycles: [u64; State::COUNT],
    spent: u16,
    unit_busy: u64,
    last_pc: Option<Pc>,
    /// Lanes of the last instruction, and how many they are: counting bits is slow, and they seldom change.
    last_lanes: (LaneMask, u64),
    iteration: Vec<Undecided>,
    /// All lanes of `iteration`.
    in_iteration: LaneMask,
    /// In this iteration a lane took a lock or left the loop.
    progressed: bool,
    /// Lanes whose wait is open.
    waiting: LaneMask,
    waits: Vec<LaneWait>,
}

/// A wait for a word of global memory changes. SMs run in parallel, so the table learns of it after the window.
#[derive(Clone, Copy, Debug)]
enum Note {
    /// The word will be polled.
    Watch(u64),
    /// A thread waits.
    Waits(u64),
    /// A thread no longer waits, although it did not get what it waited for.
    GaveUp(u64),
    /// A thread's wait is over.
    Over(u64, Thread, Try),
}

/// A phase of a barrier.
#[derive(Clone, Copy, Debug)]
struct Phase {
    first: Cycle,
}

/// Records what one SM does.
#[derive(Debug)]
pub(crate) struct Recorder {
    code: Arc<Code>,
    /// Like the slots, none before the first CTA: in many a launch most SMs have no CTA at all.
    rows: Vec<Row>,
    slots: Vec<SlotState>,
    slot_count: usize,
    /// When each access in flight issued.
    began: Vec<Cycle>,
    /// Words of global memory, of all SMs.
    global: Arc<Mutex<Words>>,
    notes: Vec<Note>,
    /// Words of this SM's shared memory.
    shared: Words,
    /// Open phases by CTA and barrier.
    phases: FxHashMap<(u64, u32), Phase>,
    /// By the instruction of the last arrival: from the first to the last, for each phase.
    pub(super) skews: FxHashMap<Pc, Span>,
    course: Option<Course>,
}

const NO_PANIC: &str = "no thread panicked with the table";

impl Recorder {
    pub(super) fn new(
        slots: u32,
        code: Arc<Code>,
        global: Arc<Mutex<Words>>,
        course: Option<Course>,
    ) -> Recorder {
        Recorder {
            rows: Vec::new(),
            code,
            slots: Vec::new(),
            slot_count: slots as usize,
            began: Vec::new(),
            global,
            notes: Vec::new(),
            shared: Words::default(),
            phases: FxHashMap::default(),
            skews: FxHashMap::default(),
            course,
        }
    }

    /// The rows, the words of shared memory, and the course.
    pub(super) fn into_parts(self) -> (Vec<Row>, Words, Option<Course>) {
        (self.rows, self.shared, self.course)
    }

    #[inline]
    pub(crate) fn issued(&mut self, now: Cycle, issue: &Issue, inst: &Decoded) {
        let slot = &mut self.slots[issue.slot.index()];
        if slot.last_lanes.0 != issue.lanes {
            slot.last_lanes = (issue.lanes, u64::from(issue.lanes.count()));
        }
        let row = &mut self.rows[issue.pc.index()];
        row.executions += 1;
        row.lanes += slot.last_lanes.1;
        let known = row.known;
        let in_loop = known.in_loop > 0;
        let lanes = if in_loop { issue.lanes } else { LaneMask::NONE };
        if let Some(course) = &mut self.course {
            if !in_loop {
                course.settle(issue.slot, issue.lanes, false);
            }
            course.charge(issue.slot, slot.unit_busy, lanes);
        }
        if !in_loop {
            slot.progressed = false;
            if !slot.iteration.is_empty() {
                settle(slot, &mut self.rows, issue.lanes, false);
            }
        }
        charge(slot, &mut self.rows, known.fences, issue.pc, lanes);
        slot.last_pc = Some(issue.pc);
        if let Some(branch) = &issue.branch
            && (in_loop || inst.spin.is_some())
        {
            self.branched(now, issue, branch, inst.spin);
        }
    }

    #[inline]
    pub(crate) fn spent(&mut self, slot: WarpSlot, state: State, from: Cycle, cycles: u64) {
        if cycles > 0 {
            if let Some(course) = &mut self.course {
                course.spent(slot, state, from, cycles);
            }
            let slot = &mut self.slots[slot.index()];
            slot.cycles[state as usize] += cycles;
            slot.spent |= 1 << state as usize;
        }
    }

    #[inline]
    pub(crate) fn unit_busy(&mut self, slot: WarpSlot, cycles: u64) {
        self.slots[slot.index()].unit_busy += cycles;
    }

    /// What lanes of a warp did in an iteration is decided: it `failed`, or not.
    fn settle(&mut self, slot: WarpSlot, lanes: LaneMask, failed: bool) {
        if let Some(course) = &mut self.course {
            course.settle(slot, lanes, failed);
        }
        settle(&mut self.slots[slot.index()], &mut self.rows, lanes, failed);
    }

    /// A branch of a spin loop: lanes stay in the loop or leave it.
    fn branched(&mut self, now: Cycle, issue: &Issue, branch: &BranchOutcome, role: Option<SpinRole>) {
        let number = self.code.instructions[issue.pc.index()].in_loop;
        let leaves =
            |pc: Pc, lanes: LaneMask| if self.code.is_in(number, pc) { LaneMask::NONE } else { lanes };
        let left = leaves(branch.target, branch.taken) | leaves(Pc(issue.pc.0 + 1), branch.fallen);
        let slot = &mut self.slots[issue.slot.index()];
        slot.progressed |= !left.is_empty();
        let over = left & slot.waiting;
        if !over.is_empty() {
            self.end_waits(now, issue.slot, over);
        }
        if matches!(role, Some(SpinRole::WaitBranch | SpinRole::LockBranch)) {
            let slot = &mut self.slots[issue.slot.index()];
            let failed = !branch.taken.is_empty() && !std::mem::take(&mut slot.progressed);
            self.settle(issue.slot, branch.taken | branch.fallen, failed);
            self.poll_again(issue.slot, branch.taken, role == Some(SpinRole::WaitBranch));
        } else if self.slots[issue.slot.index()].iteration.len() > LONGEST_ITERATION {
            self.settle(issue.slot, LaneMask(u64::MAX), false);
        }
    }

    /// Lanes stay in their spin loop. With `in_vain`, what they polled was not what they wait for.
    fn poll_again(&mut self, slot: WarpSlot, lanes: LaneMask, in_vain: bool) {
        let SlotState { who, waiting, waits, .. } = &mut self.slots[slot.index()];
        for lane in (lanes & *waiting).lanes() {
            let wait = &mut waits[lane];
            self.rows[wait.pc.index()].failed_polls += u64::from(in_vain);
            if !std::mem::replace(&mut wait.queued, true) {
                match wait.word.space {
                    Space::Shared => self.shared.waits(WordPlace::shared(who.cta, wait.word.address)),
                    _ => self.notes.push(Note::Waits(wait.word.address)),
                }
            }
        }
    }

    /// Lanes leave their spin loop without having taken a lock: what they waited for has happened.
    fn end_waits(&mut self, now: Cycle, slot: WarpSlot, lanes: LaneMask) {
        let SlotState { who, waiting, waits, .. } = &mut self.slots[slot.index()];
        *waiting &= !lanes;
        for lane in lanes.lanes() {
            let wait = std::mem::replace(&mut waits[lane], NO_WAIT);
            if !wait.queued {
                continue;
            }
            let thread = Thread { warp: *who, lane: lane as u32 };
            let by = Try { now, since: wait.since, issued: wait.last, pc: wait.pc, queued: true };
            match wait.word.space {
                Space::Shared => self.shared.over(WordPlace::shared(who.cta, wait.word.address), thread, by),
                _ => self.notes.push(Note::Over(wait.word.address, thread, by)),
            }
        }
    }

    /// Lanes of a warp stop waiting for whatever they waited for.
    fn give_up(&mut self, slot: WarpSlot, lanes: LaneMask) {
        let SlotState { who, waiting, waits, .. } = &mut self.slots[slot.index()];
        for lane in (lanes & *waiting).lanes() {
            let wait = std::mem::replace(&mut waits[lane], NO_WAIT);
            match wait.word.space {
                _ if !wait.queued => {}
                Space::Shared => self.shared.gave_up(WordPlace::shared(who.cta, wait.word.address)),
                _ => self.notes.push(Note::GaveUp(wait.word.address)),
            }
        }
        *waiting &= !lanes;
    }

    pub(crate) fn polled(&mut self, now: Cycle, by: Accessing, word: impl Fn(usize) -> Word) {
        self.rows[by.pc.index()].polls += u64::from(by.lanes.count());
        if self.slots[by.slot.index()].waits.is_empty() {
            self.slots[by.slot.index()].waits = vec![NO_WAIT; 64];
        }
        for lane in by.lanes.lanes() {
            let word = word(lane);
            let slot = &mut self.slots[by.slot.index()];
            if slot.waiting.contains(lane) {
                if slot.waits[lane].word == word {
                    slot.waits[lane].last = now;
                    continue;
                }
                self.give_up(by.slot, LaneMask::of(lane));
            }
            let slot = &mut self.slots[by.slot.index()];
            slot.waits[lane] = LaneWait { word, pc: by.pc, since: now, last: now, queued: false };
            slot.waiting |= LaneMask::of(lane);
            if word.space == Space::Shared {
                self.shared.watch(WordPlace::shared(slot.who.cta, word.address));
            } else if !matches!(self.notes.last(), Some(Note::Watch(last)) if *last == word.address) {
                // Lanes mostly poll the same word.
                self.notes.push(Note::Watch(word.address));
            }
        }
    }

    pub(crate) fn tried(
        &mut self,
        now: Cycle,
        by: Accessing,
        took: LaneMask,
        exclusive: bool,
        word: impl Fn(usize) -> Word,
    ) {
        let (mut global, mut failed) = (None, 0);
        let slot = &mut self.slots[by.slot.index()];
        slot.progressed |= !took.is_empty();
        for lane in by.lanes.lanes() {
            let Word { space, address } = word(lane);
            let (words, place) = match space {
                Space::Shared => (&mut self.shared, WordPlace::shared(slot.who.cta, address)),
                _ => {
                    let global = global.get_or_insert_with(|| self.global.lock().expect(NO_PANIC));
                    (&mut **global, WordPlace::global(address))
                }
            };
            let wait = slot.waits.get_mut(lane).filter(|_| slot.waiting.contains(lane));
            if took.contains(lane) {
                // Without a wait: a try that no spin loop makes.
                let (since, issued, queued) =
                    wait.map_or((now, now, false), |wait| (wait.since, wait.last, wait.queued));
                let thread = Thread { warp: slot.who, lane: lane as u32 };
                words.took(place, thread, Try { now, since, issued, pc: by.pc, queued }, exclusive);
                slot.waiting &= !LaneMask::of(lane);
            } else {
                let (trip, begins) = match wait {
                    Some(wait) => (now - wait.last, !std::mem::replace(&mut wait.queued, true)),
                    None => (0, false),
                };
                words.failed(place, slot.who, by.pc, trip, begins);
                failed += 1;
            }
        }
        self.rows[by.pc.index()].failed_polls += failed;
    }

    pub(crate) fn wrote(&mut self, now: Cycle, by: Accessing, word: impl Fn(usize) -> Word) {
        let mut global = None;
        let warp = self.slots[by.slot.index()].who;
        for lane in by.lanes.lanes() {
            let Word { space, address } = word(lane);
            match space {
                Space::Shared => self.shared.wrote(WordPlace::shared(warp.cta, address), by.pc, now),
                _ => global.get_or_insert_with(|| self.global.lock().expect(NO_PANIC)).wrote(
                    WordPlace::global(address),
                    by.pc,
                    now,
                ),
            }
        }
    }

    pub(crate) fn access_began(&mut self, now: Cycle, id: TransferId) {
        if self.began.len() <= id.0 as usize {
            self.began.resize(id.0 as usize + 1, Cycle(0));
        }
        self.began[id.0 as usize] = now;
    }

    #[inline]
    pub(crate) fn sent(&mut self, pc: Pc) {
        self.rows[pc.index()].transactions += 1;
    }

    pub(crate) fn access_done(&mut self, now: Cycle, id: TransferId, pc: Pc) {
        self.rows[pc.index()].latency.add(now - self.began[id.0 as usize]);
    }

    pub(crate) fn arrived(&mut self, now: Cycle, arrival: BarrierArrival) {
        let barrier = (self.slots[arrival.slot.index()].who.cta, arrival.id);
        if arrival.is_first {
            self.phases.insert(barrier, Phase { first: now });
        }
        if arrival.is_last
            && let Some(phase) = self.phases.remove(&barrier)
        {
            self.skews.entry(arrival.pc).or_default().add(now - phase.first);
        }
    }

    #[inline]
    pub(crate) fn window_ended(&mut self) {
        if !self.notes.is_empty() {
            self.pass_notes();
        }
    }

    fn pass_notes(&mut self) {
        let mut global = self.global.lock().expect(NO_PANIC);
        for note in self.notes.drain(..) {
            match note {
                Note::Watch(address) => global.watch(WordPlace::global(address)),
                Note::Waits(address) => global.waits(WordPlace::global(address)),
                Note::GaveUp(address) => global.gave_up(WordPlace::global(address)),
                Note::Over(address, thread, by) => global.over(WordPlace::global(address), thread, by),
            }
        }
    }

    #[cold]
    fn prepare(&mut self) {
        let slot = SlotState {
            who: WarpName { cta: 0, warp: 0 },
            cycles: [0; State::COUNT],
            spent: 0,
            unit_busy: 0,
            last_pc: None,
            last_lanes: (LaneMask::NONE, 0),
            iteration: Vec::new(),
            in_iteration: LaneMask::NONE,
            progressed: false,
            waiting: LaneMask::NONE,
            waits: Vec::new(),
        };
        self.slots = vec![slot; self.slot_count];
        self.rows = self.code.instructions.iter().map(|&known| Row { known, ..Row::default() }).collect();
    }

    pub(crate) fn cta_started(&mut self, cta: CtaEvent) {
        if self.slots.is_empty() {
            self.prepare();
        }
        for warp in 0..cta.warps {
            let slot = &mut self.slots[cta.first.index() + warp as usize];
            slot.who = WarpName { cta: cta.number, warp };
            slot.last_pc = None;
        }
    }

    pub(crate) fn cta_ended(&mut self, cta: CtaEvent) {
        for at in cta.first.index()..cta.first.index() + cta.warps as usize {
            let slot = WarpSlot(at as u8);
            let last = self.slots[at].last_pc.unwrap_or(Pc(0));
            self.settle(slot, LaneMask(u64::MAX), false);
            if let Some(course) = &mut self.course {
                course.charge(slot, self.slots[at].unit_busy, LaneMask::NONE);
            }
            let fences = self.code.instructions[last.index()].fences;
            charge(&mut self.slots[at], &mut self.rows, fences, last, LaneMask::NONE);
            self.give_up(slot, LaneMask(u64::MAX));
        }
        self.shared.end_cta(cta.number);
        if !self.phases.is_empty() {
            self.phases.retain(|(number, _), _| *number != cta.number);
        }
    }
}

/// Charges the cycles since a warp's last instruction, now that the next one is known. With `fences`, that one waits
/// for earlier accesses; with `lanes`, it is in a spin loop.
#[inline]
fn charge(slot: &mut SlotState, rows: &mut [Row], fences: bool, next: Pc, lanes: LaneMask) {
    let spent = std::mem::take(&mut slot.spent);
    let mut of_last = spent & !CAN_SPIN;
    if spent & FENCE != 0 && !fences {
        of_last |= FENCE;
    }
    let undecided =
        |pc: Pc, category: usize, cycles| Undecided { pc: pc.0, category: category as u8, lanes, cycles };
    if of_last != 0 {
        let last = slot.last_pc.unwrap_or(next);
        let time = &mut rows[last.index()].time;
        for at in bits(of_last) {
            let cycles = std::mem::take(&mut slot.cycles[at]);
            match lanes.is_empty() || CAN_SPIN & 1 << at == 0 {
                true => time[at] += cycles,
                false => slot.iteration.push(undecided(last, at, cycles)),
            }
        }
    }
    let mut of_next = spent & !of_last;
    let time = &mut rows[next.index()].time;
    if of_next & READY != 0 {
        of_next &= !READY;
        let ready = std::mem::take(&mut slot.cycles[State::Ready as usize]);
        let busy = std::mem::take(&mut slot.unit_busy).min(ready);
        for (category, cycles) in [(State::Ready as usize, ready - busy), (UNIT_BUSY, busy)] {
            match lanes.is_empty() {
                true => time[category] += cycles,
                false if cycles > 0 => slot.iteration.push(undecided(next, category, cycles)),
                false => {}
            }
        }
    }
    if lanes.is_empty() {
        bits(of_next).for_each(|at| time[at] += std::mem::take(&mut slot.cycles[at]));
    } else {
        for at in bits(of_next) {
            let cycles = std::mem::take(&mut slot.cycles[at]);
            slot.iteration.push(undecided(next, at, cycles));
        }
        slot.in_iteration |= lanes;
    }
}

/// What lanes of a warp did in an iteration is decided: it `failed`, or not.
fn settle(slot: &mut SlotState, rows: &mut [Row], lanes: LaneMask, failed: bool) {
    let mut add = |spent: &Undecided, spins: bool| {
        let category = if spins { SPINNING } else { usize::from(spent.category) };
        rows[spent.pc as usize].time[category] += spent.cycles;
    };
    if (slot.in_iteration & !lanes).is_empty() {
        slot.iteration.iter().for_each(|spent| add(spent, failed));
        slot.iteration.clear();
        slot.in_iteration = LaneMask::NONE;
        return;
    }
    slot.iteration.retain(|spent| {
        // Of another path of the warp.
        let stays = (spent.lanes & lanes).is_empty();
        if !stays {
            add(spent, failed && (spent.lanes & !lanes).is_empty());
        }
        stays
    });
    slot.in_iteration = slot.iteration.iter().fold(LaneMask::NONE, |all, spent| all | spent.lanes);
}

/// Adds up the rows of all SMs.
pub(super) fn sum(sums: &mut Vec<Row>, rows: &[Row]) {
    sums.resize(sums.len().max(rows.len()), Row::default());
    sums.iter_mut().zip(rows).for_each(|(sum, row)| sum.add(row));
}
