//! Records what the warps of one SM do, instruction by instruction.
//!
//! Every cycle of a warp is charged to one instruction. What a warp waits for before it issues is charged to the
//! instruction that it issues next; what an issued instruction makes it wait for (a barrier, a fence, sleep, back-off,
//! a lock queue, the end of its CTA) to that instruction.

use std::sync::{Arc, Mutex};

use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use warploom_isa::{Guard, Kernel, Loop, Op, Operand, Pc, Space};

use crate::exec::locks::holders::WarpName;
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

/// What is known of a kernel before it runs.
#[derive(Debug)]
pub(super) struct Code {
    /// By spin loop and instruction: whether it belongs to the loop.
    loops: Vec<Vec<bool>>,
    instructions: Vec<KnownOf>,
}

/// What is known of an instruction before it runs.
#[derive(Clone, Copy, Debug)]
struct KnownOf {
    /// 1 + the index of the innermost spin loop around it, or 0.
    in_loop: u16,
    /// It waits for earlier accesses before it issues.
    fences: bool,
}

impl Code {
    pub(super) fn new(kernel: &Kernel) -> Code {
        let before = predecessors(kernel);
        let spins = kernel.loops.iter().filter(|l| l.spins_on.is_some() && !l.of_atomic);
        let mut loops: Vec<Vec<bool>> = spins.map(|l| body(l, &before)).collect();
        // Inner loops come later and overwrite the outer ones.
        loops.sort_by_key(|body| std::cmp::Reverse(body.iter().filter(|is_in| **is_in).count()));
        loops.truncate(usize::from(u16::MAX) - 1);
        let mut loop_of = vec![0; kernel.code.len()];
        for (number, body) in (1..).zip(&loops) {
            loop_of.iter_mut().zip(body).filter(|(_, is_in)| **is_in).for_each(|(of, _)| *of = number);
        }
        let instructions = kernel.code.iter().zip(loop_of).map(|(inst, in_loop)| KnownOf {
            in_loop,
            fences: matches!(inst.op, Op::Fence(..) | Op::CpAsyncWait),
        });
        let instructions = instructions.collect();
        Code { loops, instructions }
    }

    /// Whether an instruction belongs to the spin loop with this number, counted from 1.
    fn is_in(&self, number: u16, pc: Pc) -> bool {
        let body = usize::from(number).checked_sub(1).map(|at| &self.loops[at]);
        body.is_some_and(|body| body.get(pc.index()) == Some(&true))
    }
}

/// By instruction, those that can come right before it in the same function.
fn predecessors(kernel: &Kernel) -> Vec<SmallVec<[u32; 2]>> {
    let mut before = vec![SmallVec::new(); kernel.code.len()];
    for (at, inst) in kernel.code.iter().enumerate() {
        let ends = matches!(inst.op, Op::Bra | Op::Brx | Op::Exit | Op::Ret | Op::Trap);
        let next = (!ends || inst.guard != Guard::Always).then_some(at + 1);
        let target = match (inst.op, inst.src[0]) {
            (Op::Bra, Operand::Imm(target)) => Some(target as usize),
            _ => None,
        };
        for to in [next, target].into_iter().flatten() {
            if let Some(before) = before.get_mut(to) {
                before.push(at as u32);
            }
        }
    }
    before
}

/// The instructions of a loop: those from which a latch is reached without passing the header.
fn body(of: &Loop, before: &[SmallVec<[u32; 2]>]) -> Vec<bool> {
    let mut body = vec![false; before.len()];
    body[of.header.index()] = true;
    let mut left: Vec<u32> = of.latches.iter().map(|pc| pc.0).collect();
    while let Some(pc) = left.pop() {
        if !std::mem::replace(&mut body[pc as usize], true) {
            left.extend(&before[pc as usize]);
        }
    }
    body
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
    rows: Vec<Row>,
    slots: Vec<SlotState>,
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
        let slot = SlotState {
            who: WarpName { cta: 0, warp: 0 },
            cycles: [0; State::COUNT],
            spent: 0,
            unit_busy: 0,
            last_pc: None,
            last_lanes: (LaneMask::NONE, 0),
            iteration: Vec::new(),
            progressed: false,
            waiting: LaneMask::NONE,
            waits: Vec::new(),
        };
        Recorder {
            rows: vec![Row::default(); code.instructions.len()],
            code,
            slots: vec![slot; slots as usize],
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
        let in_loop = self.code.instructions[issue.pc.index()].in_loop > 0;
        if !in_loop {
            slot.progressed = false;
            if !slot.iteration.is_empty() {
                self.settle(issue.slot, issue.lanes, false);
            }
        }
        self.charge(issue.slot, issue.pc, if in_loop { issue.lanes } else { LaneMask::NONE });
        self.slots[issue.slot.index()].last_pc = Some(issue.pc);
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

    /// Charges the cycles since a warp's last instruction, now that the next one is known. With `lanes`, that one is in
    /// a spin loop.
    #[inline]
    fn charge(&mut self, slot: WarpSlot, next: Pc, lanes: LaneMask) {
        if let Some(course) = &mut self.course {
            course.charge(slot, self.slots[slot.index()].unit_busy, lanes);
        }
        let slot = &mut self.slots[slot.index()];
        let spent = std::mem::take(&mut slot.spent);
        let mut of_last = spent & !CAN_SPIN;
        if spent & FENCE != 0 && !self.code.instructions[next.index()].fences {
            of_last |= FENCE;
        }
        if of_last != 0 {
            let last = slot.last_pc.unwrap_or(next);
            let time = &mut self.rows[last.index()].time;
            for at in bits(of_last) {
                let cycles = std::mem::take(&mut slot.cycles[at]);
                match lanes.is_empty() || CAN_SPIN & 1 << at == 0 {
                    true => time[at] += cycles,
                    false => slot.iteration.push(Undecided { pc: last.0, category: at as u8, lanes, cycles }),
                }
            }
        }
        let mut of_next = spent & !of_last;
        let time = &mut self.rows[next.index()].time;
        let mut undecided = |category: usize, cycles| {
            slot.iteration.push(Undecided { pc: next.0, category: category as u8, lanes, cycles })
        };
        if of_next & READY != 0 {
            of_next &= !READY;
            let ready = std::mem::take(&mut slot.cycles[State::Ready as usize]);
            let busy = std::mem::take(&mut slot.unit_busy).min(ready);
            for (category, cycles) in [(State::Ready as usize, ready - busy), (UNIT_BUSY, busy)] {
                match lanes.is_empty() {
                    true => time[category] += cycles,
                    false if cycles > 0 => undecided(category, cycles),
                    false => {}
                }
            }
        }
        for at in bits(of_next) {
            let cycles = std::mem::take(&mut slot.cycles[at]);
            match lanes.is_empty() {
                true => time[at] += cycles,
                false => undecided(at, cycles),
            }
        }
    }

    /// What lanes of a warp did in an iteration is decided: it `failed`, or not.
    fn settle(&mut self, slot: WarpSlot, lanes: LaneMask, failed: bool) {
        if let Some(course) = &mut self.course {
            course.settle(slot, lanes, failed);
        }
        let rows = &mut self.rows;
        self.slots[slot.index()].iteration.retain(|spent| {
            if (spent.lanes & lanes).is_empty() {
                // Of another path of the warp.
                return true;
            }
            let spins = failed && (spent.lanes & !lanes).is_empty();
            let category = if spins { SPINNING } else { usize::from(spent.category) };
            rows[spent.pc as usize].time[category] += spent.cycles;
            false
        });
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

    pub(crate) fn cta_started(&mut self, cta: CtaEvent) {
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
            self.charge(slot, last, LaneMask::NONE);
            self.give_up(slot, LaneMask(u64::MAX));
        }
        self.shared.end_cta(cta.number);
        if !self.phases.is_empty() {
            self.phases.retain(|(number, _), _| *number != cta.number);
        }
    }
}

/// Adds up the rows of all SMs.
pub(super) fn sum(sums: &mut Vec<Row>, rows: &[Row]) {
    sums.resize(sums.len().max(rows.len()), Row::default());
    sums.iter_mut().zip(rows).for_each(|(sum, row)| sum.add(row));
}
