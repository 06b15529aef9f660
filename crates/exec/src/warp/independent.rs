//! Independent threads: every lane has its own pc and makes progress; lanes at the same pc run together.

use warploom_isa::Pc;

use crate::kit::lane_mask::LaneMask;
use crate::warp::Since;
use crate::warp::control::{Activation, Entry, Group, Stretch, Wait};

/// Instructions after which a path that could run but did not counts as starving.
const STARVATION: u32 = 256;

/// The same for a path that waits for others at its reconvergence point. Only a loop that waits for such a path, and is
/// not known to ([`Splits::yield_path`]), runs that long.
const PATIENCE: u32 = 1 << 16;

/// Instructions that a starving path then runs.
const QUANTUM: u32 = 64;

/// The lanes of a warp, grouped into splits that share pc and activation.
///
/// Lanes that a branch separates meet again at its reconvergence point: a split that has reached it lets the others
/// run first, as the convergence barriers that compilers insert would. Otherwise the split deepest in calls and
/// lowest in pc runs. A split that has not run for too long gets a quantum, so that every thread makes progress. That
/// includes splits at their reconvergence points only when a path yields, as a `YIELD` releases a convergence barrier.
#[derive(Clone, Debug)]
pub struct Splits {
    splits: Vec<Split>,
    current: usize,
    /// Instructions since a starving split was last picked.
    ran: u32,
    /// The same for one that may be at its reconvergence point.
    patience: u32,
    /// Instructions left of a starving split's quantum.
    quantum: u32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Split {
    pc: Pc,
    mask: LaneMask,
    wait: Option<Wait>,
    /// Sleeps (`nanosleep`) while others run.
    asleep: bool,
    /// Activations from the kernel to the running function.
    frames: Vec<Activation>,
    /// Number of its last quantum; the split with the lowest starves most.
    last_quantum: u32,
    /// Where it meets lanes that branches separated from it, the innermost last.
    reconvergences: Vec<Reconvergence>,
}

/// Where lanes separated by a branch meet again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Reconvergence {
    at: Pc,
    /// Length of `frames` at the branch.
    depth: usize,
    lanes: LaneMask,
}

impl Split {
    fn is_stopped(&self) -> bool {
        self.wait.is_some() || self.asleep
    }

    /// Whether it is at a reconvergence point that some lanes have not reached.
    fn is_early(&self, live: LaneMask) -> bool {
        self.reconvergences.last().is_some_and(|m| self.is_at(m) && !(m.lanes & live & !self.mask).is_empty())
    }

    /// Whether it is deeper in calls, or else lower in pc.
    fn comes_before(&self, other: &Split) -> bool {
        (other.frames.len(), self.pc) < (self.frames.len(), other.pc)
    }

    fn is_at(&self, point: &Reconvergence) -> bool {
        point.at == self.pc && point.depth == self.frames.len()
    }
}

impl Splits {
    /// All lanes of `mask` at the kernel's first instruction.
    pub fn new(start: Pc, mask: LaneMask, activation: Activation) -> Self {
        let (frames, reconvergences) = (vec![activation], Vec::new());
        let split =
            Split { pc: start, mask, wait: None, asleep: false, frames, last_quantum: 0, reconvergences };
        Splits { splits: vec![split], current: 0, ran: 0, patience: 0, quantum: 0 }
    }

    #[inline(always)]
    pub fn current(&self) -> Option<Group> {
        let split = self.splits.get(self.current)?;
        if split.is_stopped() {
            return None;
        }
        Some(Group { pc: split.pc, mask: split.mask })
    }

    /// The path to run next, and its activation.
    #[inline(always)]
    pub fn running(&self) -> Option<(Group, &Activation)> {
        let split = self.splits.get(self.current)?;
        if split.is_stopped() {
            return None;
        }
        Some((Group { pc: split.pc, mask: split.mask }, split.frames.last()?))
    }

    #[inline(always)]
    pub(crate) fn straight(&self) -> Option<Stretch> {
        let path = self.current()?;
        if self.is_parted() { self.stretch(path) } else { Some(Stretch::until(path, Pc::RETURN)) }
    }

    /// Which of several paths runs is decided after each instruction. It stays the present one until it comes to where
    /// it meets others, or past one that then is lower in pc, or its turn is over.
    fn stretch(&self, path: Group) -> Option<Stretch> {
        let (present, live) = (&self.splits[self.current], self.live());
        let others = || self.splits.iter().enumerate().filter(|&(at, _)| at != self.current);
        let most = match self.quantum {
            0 => STARVATION.saturating_sub(self.ran + 1).min(PATIENCE.saturating_sub(self.patience + 1)),
            quantum => quantum,
        };
        // It has had its quantum, and another one comes first.
        let is_last =
            |split: &Split| split.is_stopped() || split.is_early(live) || present.comes_before(split);
        if self.quantum == 0 && !others().all(|(_, split)| is_last(split)) {
            return None;
        }
        let places = others().map(|(_, split)| split.pc);
        let (mut first, mut end) = (Pc(0), Pc::RETURN);
        for pc in places.chain(present.reconvergences.last().map(|point| point.at)) {
            if pc > path.pc {
                end = end.min(pc);
            } else {
                first = first.max(Pc(pc.0 + 1));
            }
        }
        let runs = most > 0 && first <= path.pc;
        runs.then_some(Stretch { path, until: Pc::RETURN, within: first..end, most: most.into() })
    }

    #[inline(always)]
    pub(crate) fn arrive(&mut self, pc: Pc, ran: u64) {
        self.splits[self.current].pc = pc;
        if ran > 0 && self.is_parted() {
            // All but the last one changed nothing else.
            let others = ran as u32 - 1;
            self.ran += others;
            self.patience += others;
            self.quantum = self.quantum.saturating_sub(others);
            self.reschedule();
        }
    }

    pub fn is_parted(&self) -> bool {
        self.splits.len() > 1
    }

    /// All paths, with their activations and waits.
    pub fn paths(&self) -> impl Iterator<Item = (Group, Activation, Option<Wait>)> {
        let frame = |s: &Split| *s.frames.last().expect("a split runs in some activation");
        self.splits.iter().map(move |s| (Group { pc: s.pc, mask: s.mask }, frame(s), s.wait))
    }

    /// Whether the lanes are where they were in `before` and will run the same way again, in whatever order splits
    /// are picked. Lanes that do not depend on others of their warp do, if they ran at all since. If lanes
    /// communicated, the order of the splits must be the same too.
    pub fn repeats(&self, before: &Splits, since: Since) -> bool {
        if since.crossed {
            return self.is_as(before);
        }
        let same = |a: &Split, b: &Split| {
            (a.pc, a.mask, a.wait, a.asleep) == (b.pc, b.mask, b.wait, b.asleep) && a.frames == b.frames
        };
        let could_run =
            self.splits.iter().filter(|s| s.wait.is_none()).fold(LaneMask::NONE, |m, s| m | s.mask);
        (could_run & !since.ran).is_empty()
            && self.splits.len() == before.splits.len()
            && self.splits.iter().all(|a| before.splits.iter().any(|b| same(a, b)))
    }

    /// Whether everything is the same, including which split is picked when.
    fn is_as(&self, other: &Splits) -> bool {
        let rank = |of: &Splits, split: &Split| {
            of.splits.iter().filter(|s| s.last_quantum < split.last_quantum).count()
        };
        let same = |(a, b): (&Split, &Split)| {
            (a.pc, a.mask, a.wait, a.asleep) == (b.pc, b.mask, b.wait, b.asleep)
                && a.frames == b.frames
                && rank(self, a) == rank(other, b)
        };
        let turn = |of: &Splits| (of.current, of.ran, of.patience, of.quantum);
        turn(self) == turn(other)
            && self.splits.len() == other.splits.len()
            && self.splits.iter().zip(&other.splits).all(same)
    }

    pub fn activation(&self) -> Activation {
        *self.splits[self.current].frames.last().expect("a split runs in some activation")
    }

    #[inline(always)]
    pub fn advance(&mut self) -> bool {
        self.splits[self.current].pc.0 += 1;
        let is_alone = self.splits.len() <= 1;
        if !is_alone {
            self.reschedule();
        }
        is_alone
    }

    pub fn branch(&mut self, groups: &[Group], reconverge: Pc) {
        let (first, rest) = groups.split_first().expect("a branch goes somewhere");
        let split = &mut self.splits[self.current];
        if !rest.is_empty() && reconverge != Pc::RETURN {
            let point = Reconvergence { at: reconverge, depth: split.frames.len(), lanes: split.mask };
            // A loop that lanes leave one by one separates them again and again, but they meet only once.
            let known =
                split.reconvergences.last().is_some_and(|m| m.at == point.at && m.depth == point.depth);
            if !known {
                split.reconvergences.push(point);
            }
        }
        (split.pc, split.mask) = (first.pc, first.mask);
        for group in rest {
            let split = Split { pc: group.pc, mask: group.mask, ..self.splits[self.current].clone() };
            self.splits.push(split);
        }
        if self.splits.len() > 1 {
            self.reschedule();
        }
    }

    pub fn call(&mut self, entries: &[Entry]) {
        let mut caller = self.splits[self.current].clone();
        caller.pc.0 += 1;
        for entry in entries {
            caller.mask &= !entry.mask;
            let mut split = caller.clone();
            (split.pc, split.mask) = (entry.start, entry.mask);
            split.frames.push(entry.activation);
            self.splits.push(split);
        }
        self.splits[self.current] = caller;
        self.reschedule();
    }

    pub fn ret(&mut self, mask: LaneMask) {
        let split = &mut self.splits[self.current];
        let mut returning = split.clone();
        split.pc.0 += 1;
        split.mask &= !mask;
        let caller = returning.frames.pop().and_then(|a| a.caller).expect("only a called function returns");
        (returning.pc, returning.mask) = (caller.resume, mask);
        self.splits.push(returning);
        self.reschedule();
    }

    pub fn exit(&mut self, mask: LaneMask) {
        let split = &mut self.splits[self.current];
        split.pc.0 += 1;
        split.mask &= !mask;
        self.reschedule();
    }

    pub fn wait(&mut self, wait: Wait) {
        self.splits[self.current].wait = Some(wait);
        self.reschedule();
    }

    /// Lanes of the current split wait, each set for its own; the others, if any, are still to execute the instruction.
    pub fn wait_apart(&mut self, waits: &[(LaneMask, Wait)]) {
        for &(mask, wait) in waits {
            let current = &mut self.splits[self.current];
            if current.mask == mask {
                return self.wait(wait);
            }
            current.mask &= !mask;
            let split = Split { mask, wait: Some(wait), ..current.clone() };
            self.splits.push(split);
        }
    }

    pub fn yield_path(&mut self) {
        if self.splits.len() > 1 {
            let newest = self.splits.iter().map(|s| s.last_quantum).max().unwrap_or(0);
            self.splits[self.current].last_quantum = newest.wrapping_add(1);
            (self.ran, self.patience, self.quantum) = (STARVATION, PATIENCE, 0);
            self.reschedule();
        }
    }

    /// Lanes that could run, but wait for others at their reconvergence point.
    pub fn held_back(&self) -> LaneMask {
        let live = self.live();
        let held = self.splits.iter().filter(|s| !s.is_stopped() && s.is_early(live));
        held.fold(LaneMask::NONE, |mask, s| mask | s.mask)
    }

    /// Lanes that are held back run after the next instruction: those that they wait for never come.
    pub fn run_held_back(&mut self) {
        let newest = self.splits.iter().map(|s| s.last_quantum).max().unwrap_or(0);
        let live = self.live();
        for split in self.splits.iter_mut().filter(|s| !s.is_early(live)) {
            split.last_quantum = newest.wrapping_add(1);
        }
        (self.ran, self.patience, self.quantum) = (STARVATION, PATIENCE, 0);
    }

    /// The current path sleeps from its next instruction on.
    pub fn sleep(&mut self) {
        self.splits[self.current].asleep = true;
    }

    /// All paths that sleep wake up: the warp has one timer.
    pub fn wake(&mut self) {
        self.splits.iter_mut().for_each(|split| split.asleep = false);
        self.reschedule();
    }

    pub fn release_barrier(&mut self, mask: LaneMask) {
        for split in &mut self.splits {
            if split.wait == Some(Wait::Barrier) && !(split.mask & mask).is_empty() {
                split.wait = None;
                split.pc.0 += 1;
            }
        }
        self.reschedule();
    }

    /// Lanes that have not ended.
    fn live(&self) -> LaneMask {
        self.splits.iter().fold(LaneMask::NONE, |mask, s| mask | s.mask)
    }

    /// Drops empty splits, merges those at the same place, wakes those whose lanes have arrived, and picks the next.
    fn reschedule(&mut self) {
        let current = self.splits.get(self.current).map(|s| s.mask);
        // One look at all of them: mostly there is nothing to drop, to merge or to wake.
        let (mut live, mut pcs) = (LaneMask::NONE, 0u64);
        let (mut any_empty, mut perhaps_together, mut any_waits) = (false, false, false);
        for split in &self.splits {
            live |= split.mask;
            any_empty |= split.mask.is_empty();
            any_waits |= split.wait.is_some();
            let pc = 1 << (split.pc.0 % u64::BITS);
            perhaps_together |= pcs & pc != 0;
            pcs |= pc;
        }
        if any_empty {
            self.splits.retain(|s| !s.mask.is_empty());
        }
        if perhaps_together {
            self.merge();
        }
        self.drop_reached(live);
        if any_waits {
            self.wake_members(live);
        }
        self.ran += 1;
        self.patience += 1;
        self.current = match self.kept(current) {
            Some(at) => {
                self.quantum -= 1;
                at
            }
            None => self.pick(live),
        };
    }

    /// The split that holds the lanes of the one that ran, to let it finish its quantum.
    fn kept(&self, ran: Option<LaneMask>) -> Option<usize> {
        let mask = ran.filter(|mask| self.quantum > 0 && !mask.is_empty())?;
        let at = self.splits.iter().position(|s| s.mask & mask == mask)?;
        (!self.splits[at].is_stopped()).then_some(at)
    }

    fn merge(&mut self) {
        let mut at = 0;
        while at < self.splits.len() {
            let mut other = at + 1;
            while other < self.splits.len() {
                let (a, b) = (&self.splits[at], &self.splits[other]);
                let same_place = a.pc == b.pc && a.frames == b.frames && a.asleep == b.asleep;
                let barrier = Some(Wait::Barrier);
                // Teams that wait for lanes of their own keep apart until others arrive.
                let apart = a.wait.is_some() && b.wait.is_some() && a.wait != b.wait;
                if same_place && !apart && a.wait != barrier && b.wait != barrier {
                    // A split that waited for lanes checks again with the lanes that arrived.
                    let other = self.splits.swap_remove(other);
                    let split = &mut self.splits[at];
                    split.wait = None;
                    split.mask |= other.mask;
                    // A reconvergence that only one of them had is over, or was left by a jump that compilers do not
                    // make.
                    let common = split
                        .reconvergences
                        .iter()
                        .zip(&other.reconvergences)
                        .take_while(|(a, b)| a == b)
                        .count();
                    split.reconvergences.truncate(common);
                } else {
                    other += 1;
                }
            }
            at += 1;
        }
    }

    /// Drops reconvergences that all lanes have reached.
    fn drop_reached(&mut self, live: LaneMask) {
        for split in &mut self.splits {
            while split.reconvergences.last().is_some_and(|m| {
                m.depth > split.frames.len() || split.is_at(m) && (m.lanes & live & !split.mask).is_empty()
            }) {
                split.reconvergences.pop();
            }
        }
    }

    /// Wakes splits whose awaited lanes have arrived or ended. The members of a `bar.warp.sync` may wait at different
    /// places: they are released together once all live ones wait.
    fn wake_members(&mut self, live: LaneMask) {
        for at in 0..self.splits.len() {
            let Some(Wait::Lanes { members, anywhere }) = self.splits[at].wait else { continue };
            let here = self.splits[at].mask;
            let come = if anywhere {
                self.splits
                    .iter()
                    .filter(|s| s.wait == self.splits[at].wait)
                    .fold(LaneMask::NONE, |m, s| m | s.mask)
            } else {
                here
            };
            if !(members & live & !come).is_empty() {
                continue;
            }
            if anywhere {
                let wait = self.splits[at].wait;
                for split in self.splits.iter_mut().filter(|s| s.wait == wait) {
                    split.wait = None;
                    split.pc.0 += 1;
                }
            } else {
                self.splits[at].wait = None;
            }
        }
    }

    fn pick(&mut self, live: LaneMask) -> usize {
        self.quantum = 0;
        let (starving, impatient) = (self.ran >= STARVATION, self.patience >= PATIENCE);
        let sleeper = self.splits.iter().position(|s| s.asleep);
        // A path that waits for others to arrive also waits while they sleep.
        let can_run = |s: &Split| !s.is_stopped() && (sleeper.is_none() || impatient || !s.is_early(live));
        let ready = || self.splits.iter().enumerate().filter(|(_, s)| can_run(s));
        let picked = if starving {
            ready().min_by_key(|(_, s)| (!impatient && s.is_early(live), s.last_quantum))
        } else {
            ready().min_by_key(|(_, s)| (s.is_early(live), std::cmp::Reverse(s.frames.len()), s.pc))
        };
        let Some(picked) = picked.map(|(at, _)| at) else { return sleeper.unwrap_or(0) };
        if impatient {
            self.patience = 0;
        }
        if starving {
            self.ran = 0;
            self.quantum = QUANTUM;
            let newest = self.splits.iter().map(|s| s.last_quantum).max().unwrap_or(0);
            self.splits[picked].last_quantum = newest.wrapping_add(1);
        }
        picked
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kernel() -> Activation {
        Activation { function: 0, registers: 0, predicates: 0, frame: 0, depth: 0, caller: None }
    }

    fn splits() -> Splits {
        Splits::new(Pc(0), LaneMask(0b1111), kernel())
    }

    fn go(pc: u32, mask: u64) -> Group {
        Group { pc: Pc(pc), mask: LaneMask(mask) }
    }

    #[test]
    fn paths_of_an_if_meet_again() {
        let mut splits = splits();
        splits.branch(&[go(10, 0b0011), go(1, 0b1100)], Pc(12));
        assert_eq!(splits.current(), Some(go(1, 0b1100)));
        splits.branch(&[go(12, 0b1100)], Pc(12));
        assert_eq!(splits.current(), Some(go(10, 0b0011)));
        splits.advance();
        splits.advance();
        assert_eq!(splits.current(), Some(go(12, 0b1111)));
    }

    /// A lock that is released in the loop that takes it: the other lanes wait where the critical section ends, not
    /// in the loop.
    #[test]
    fn paths_wait_where_they_meet() {
        let mut splits = splits();
        splits.branch(&[go(10, 0b0001), go(5, 0b1110)], Pc(5));
        assert_eq!(
            splits.current(),
            Some(go(10, 0b0001)),
            "the others have reached the reconvergence point, though it is lower"
        );
        splits.branch(&[go(5, 0b0001)], Pc(5));
        assert_eq!(splits.current(), Some(go(5, 0b1111)));
        splits.branch(&[go(0, 0b1110), go(6, 0b0001)], Pc(6));
        splits.branch(&[go(6, 0b1110)], Pc(6));
        assert_eq!(splits.current(), Some(go(6, 0b1111)));
        assert!(splits.splits[0].reconvergences.is_empty());
    }

    #[test]
    fn a_spinning_path_does_not_starve_the_other() {
        let mut splits = splits();
        splits.branch(&[go(0, 0b1110), go(1, 0b0001)], Pc(1));
        let mut ran = 0;
        for _ in 0..100 * PATIENCE {
            match splits.current().unwrap() {
                Group { pc: Pc(0), mask } => splits.branch(&[go(0, mask.0)], Pc(1)),
                _ => {
                    ran += 1;
                    splits.advance();
                }
            }
        }
        assert!(ran > 1000, "the other path ran {ran} times");
    }

    /// Lanes that leave a long loop early wait for the others, however long they compute.
    #[test]
    fn paths_wait_for_a_loop_that_does_not_yield() {
        let mut splits = splits();
        splits.branch(&[go(0, 0b1110), go(1, 0b0001)], Pc(1));
        for _ in 0..PATIENCE / 2 {
            assert_eq!(splits.current(), Some(go(0, 0b1110)));
            splits.branch(&[go(0, 0b1110)], Pc(1));
        }
        splits.branch(&[go(1, 0b1110)], Pc(1));
        assert_eq!(splits.current(), Some(go(1, 0b1111)));
    }

    #[test]
    fn a_stretch_is_as_many_single_steps() {
        for spread in [10, 40, 300] {
            let [mut steps, mut stretches] = [(); 2].map(|()| splits());
            for splits in [&mut steps, &mut stretches] {
                // Three paths that meet one by one.
                splits.branch(&[go(1, 0b1110), go(2 + spread, 0b0001)], Pc(5 * spread));
                splits.branch(&[go(3, 0b0110), go(2 + 2 * spread, 0b1000)], Pc(4 * spread));
            }
            let mut longest = 0;
            while stretches.is_parted() {
                let pc = stretches.current().unwrap().pc;
                let room =
                    |stretch: &Stretch| u64::from(stretch.within.end.0 - pc.0).min(stretch.most).min(90);
                let ran = stretches.straight().as_ref().map_or(0, room);
                longest = longest.max(ran);
                match ran {
                    0 => _ = stretches.advance(),
                    ran => stretches.arrive(Pc(pc.0 + ran as u32), ran),
                }
                (0..ran.max(1)).for_each(|_| _ = steps.advance());
                assert!(steps.is_as(&stretches), "{steps:?} is not {stretches:?}");
            }
            assert_eq!(stretches.current().unwrap().mask, LaneMask(0b1111));
            assert!(longest >= u64::from(spread.min(80)) - 2, "{longest}");
        }
    }

    #[test]
    fn a_path_that_waits_for_others_lets_them_run() {
        let mut splits = splits();
        splits.branch(&[go(0, 0b1110), go(1, 0b0001)], Pc(1));
        assert_eq!(splits.current(), Some(go(0, 0b1110)));
        splits.yield_path();
        assert_eq!(splits.current(), Some(go(1, 0b0001)));
        splits.advance();
        assert_eq!(splits.current(), Some(go(2, 0b0001)), "for more than one instruction");
        splits.yield_path();
        assert_eq!(splits.current(), Some(go(0, 0b1110)));
    }

    #[test]
    fn other_paths_run_while_one_sleeps() {
        let mut splits = splits();
        splits.branch(&[go(10, 0b0011), go(1, 0b1100)], Pc(12));
        splits.sleep();
        splits.advance();
        assert_eq!(splits.current(), Some(go(10, 0b0011)));
        splits.branch(&[go(12, 0b0011)], Pc(12));
        assert_eq!(splits.current(), None, "it waits where they meet");
        splits.wake();
        assert_eq!(splits.current(), Some(go(2, 0b1100)));
    }

    /// A lane that holds a lock and has not run yet must not be taken for one that never continues.
    #[test]
    fn a_path_that_did_not_run_repeats_nothing() {
        let mut splits = splits();
        splits.branch(&[go(0, 0b1110), go(1, 0b0001)], Pc(1));
        let before = splits.clone();
        splits.branch(&[go(0, 0b1110)], Pc(1));
        let since = |ran, crossed| Since { ran, crossed };
        assert!(!splits.repeats(&before, since(LaneMask(0b1110), false)));
        assert!(splits.repeats(&before, since(LaneMask(0b1111), false)));
        assert!(!splits.repeats(&before, since(LaneMask(0b1111), true)), "the other split is picked sooner");
    }

    #[test]
    fn named_lanes_wait_for_each_other() {
        let mut splits = splits();
        splits.branch(&[go(5, 0b0011), go(1, 0b1100)], Pc(9));
        let wait = Wait::Lanes { members: LaneMask(0b1111), anywhere: false };
        splits.branch(&[go(5, 0b1100)], Pc(9));
        assert_eq!(splits.current(), Some(go(5, 0b1111)), "they met before anyone had to wait");
        splits.branch(&[go(7, 0b0011), go(6, 0b1100)], Pc(9));
        splits.advance();
        assert_eq!(splits.current(), Some(go(7, 0b1111)));
        splits.branch(&[go(8, 0b0011), go(20, 0b1100)], Pc(30));
        splits.wait(wait);
        assert_eq!(splits.current(), Some(go(20, 0b1100)));
        splits.exit(LaneMask(0b1100));
        assert_eq!(splits.current(), Some(go(8, 0b0011)), "lanes that ended are not waited for");
    }

    #[test]
    fn a_warp_barrier_may_be_met_at_two_places() {
        let mut splits = splits();
        splits.branch(&[go(10, 0b0011), go(20, 0b1100)], Pc(30));
        let wait = Wait::Lanes { members: LaneMask(0b1111), anywhere: true };
        splits.wait(wait);
        assert_eq!(splits.current(), Some(go(20, 0b1100)));
        splits.wait(wait);
        assert_eq!(splits.current(), Some(go(11, 0b0011)));
    }

    #[test]
    fn lanes_return_to_where_they_were_called() {
        let mut splits = splits();
        let caller = crate::warp::control::Caller { site: 0, frame: 0, resume: Pc(1) };
        let activation = Activation { function: 1, depth: 1, caller: Some(caller), ..kernel() };
        splits.call(&[Entry { start: Pc(100), mask: LaneMask(0b0011), activation }]);
        assert_eq!((splits.current(), splits.activation()), (Some(go(100, 0b0011)), activation));
        splits.ret(LaneMask(0b0001));
        assert_eq!(splits.current(), Some(go(101, 0b0010)), "the deeper path runs first");
        splits.ret(LaneMask(0b0010));
        assert_eq!(splits.current(), Some(go(1, 0b1111)));
    }

    #[test]
    fn barrier_waits_end_together() {
        let mut splits = splits();
        splits.branch(&[go(5, 0b0011), go(1, 0b1100)], Pc(9));
        splits.wait(Wait::Barrier);
        splits.wait(Wait::Barrier);
        assert_eq!(splits.current(), None);
        splits.release_barrier(LaneMask(0b1111));
        assert_eq!(splits.current(), Some(go(2, 0b1100)));
    }
}
