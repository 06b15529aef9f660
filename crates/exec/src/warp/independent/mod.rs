//! Independent threads: every lane has its own pc and makes progress; lanes at the same pc run together.

mod split;
#[cfg(test)]
mod tests;

use std::hint::select_unpredictable;

use warploom_isa::Pc;

use crate::kit::lane_mask::LaneMask;
use crate::warp::Since;
use crate::warp::control::{Activation, Entry, Group, Stretch, Wait};
use crate::warp::independent::split::{Rank, Split};

/// Instructions after which a path that could run but did not counts as starving.
const STARVATION: u32 = 256;

/// The same for a path that waits for others at its reconvergence point. Only a loop that waits for such a path, and is
/// not known to ([`Splits::yield_path`]), runs that long.
const PATIENCE: u32 = 1 << 16;

/// Instructions that a starving path then runs.
const QUANTUM: u32 = 64;

/// How many others are at the pc of a split.
enum Met {
    Nobody,
    One(usize),
    Several,
}

/// The lanes of a warp, grouped into splits that share pc and activation.
///
/// Lanes that a branch separates meet again at its reconvergence point: a split that has reached it lets the others
/// run first, as the convergence barriers that compilers insert would. Otherwise the split deepest in calls and
/// lowest in pc runs. A split that has not run for too long gets a quantum, so that every thread makes progress. That
/// includes splits at their reconvergence points only when a path yields, as a `YIELD` releases a convergence barrier.
#[derive(Clone, Debug)]
pub struct Splits {
    splits: Vec<Split>,
    /// By split, once there are several: when it runs.
    ranks: Vec<Rank>,
    current: usize,
    /// It was picked because it has the lowest rank of all.
    leads: bool,
    /// Lanes that have not ended.
    live: LaneMask,
    /// More may follow from the last change than ranks: some are at the same pc, have begun to wait, or were woken.
    unsettled: bool,
    /// Instructions since a starving split was last picked.
    ran: u32,
    /// The same for one that may be at its reconvergence point.
    patience: u32,
    /// Instructions left of a starving split's quantum.
    quantum: u32,
}

impl Splits {
    /// All lanes of `mask` at the kernel's first instruction.
    pub fn new(start: Pc, mask: LaneMask, activation: Activation) -> Self {
        Splits {
            splits: vec![Split::new(start, mask, activation)],
            ranks: Vec::new(),
            current: 0,
            leads: false,
            live: mask,
            unsettled: false,
            ran: 0,
            patience: 0,
            quantum: 0,
        }
    }

    /// The same for the next warp.
    pub(super) fn restart(&mut self, start: Pc, mask: LaneMask) {
        self.splits.clear();
        self.splits.push(Split::new(start, mask, Activation::default()));
        (self.current, self.live, self.unsettled) = (0, mask, false);
        (self.ran, self.patience, self.quantum) = (0, 0, 0);
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
    #[inline(always)]
    fn stretch(&self, path: Group) -> Option<Stretch> {
        debug_assert!(self.ranks.len() == self.splits.len());
        // What is unsettled may change the order after the next instruction.
        if self.unsettled {
            return None;
        }
        let most = match self.quantum {
            0 => STARVATION.saturating_sub(self.ran + 1).min(PATIENCE.saturating_sub(self.patience + 1)),
            quantum => quantum,
        };
        let meets = self.splits[self.current].reconvergences.last().map_or(Pc::RETURN, |point| point.at);
        let (mut above, mut below) = (u32::MAX, u32::MAX);
        // How far above and below it others are. One that is on the other side is farther than any code is long.
        for rank in &self.ranks {
            above = above.min(rank.pc().0.wrapping_sub(path.pc.0 + 1));
            below = below.min(path.pc.0.wrapping_sub(rank.pc().0 + 1));
        }
        let mut end = Pc(path.pc.0.saturating_add(above).saturating_add(1));
        let mut first = path.pc.0.saturating_sub(below);
        if meets > path.pc {
            end = end.min(meets);
        } else {
            first = first.max(meets.0 + 1);
        }
        // Otherwise it has had its quantum, and another one comes first.
        let stays = self.quantum > 0 || self.leads;
        let runs = stays && most > 0 && first <= path.pc.0;
        runs.then_some(Stretch { path, until: Pc::RETURN, within: Pc(first)..end, most: most.into() })
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
            self.reschedule_moved(self.splits.len());
        }
    }

    /// It stays the current split up to the branch, and what follows from where it is then is asked for after that.
    #[inline(always)]
    pub(crate) fn arrive_at_branch(&mut self, pc: Pc, ran: u64) {
        self.splits[self.current].pc = pc;
        if self.is_parted() {
            self.ran += ran as u32;
            self.patience += ran as u32;
            self.quantum = self.quantum.saturating_sub(ran as u32);
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
            self.reschedule_moved(self.splits.len());
        }
        is_alone
    }

    pub fn branch(&mut self, groups: &[Group], reconverge: Pc) {
        let (first, rest) = groups.split_first().expect("a branch goes somewhere");
        let split = &mut self.splits[self.current];
        if !rest.is_empty() && reconverge != Pc::RETURN {
            split.part_until(reconverge);
        }
        (split.pc, split.mask) = (first.pc, first.mask);
        if let [group] = rest
            && self.leave_for(*group)
        {
            return self.pick_next();
        }
        let new = self.splits.len();
        for group in rest {
            let split = self.splits[self.current].part(*group);
            self.splits.push(split);
        }
        if self.splits.len() > 1 {
            self.reschedule_moved(new);
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
        self.live &= !mask;
        self.reschedule();
    }

    pub fn wait(&mut self, wait: Wait) {
        self.splits[self.current].wait = Some(wait);
        self.reschedule();
    }

    /// Lanes of the current split wait, each set for its own; the others, if any, are still to execute the instruction.
    pub fn wait_apart(&mut self, waits: &[(LaneMask, Wait)]) {
        self.unsettled = true;
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
        let live = self.live;
        let held = self.splits.iter().filter(|s| !s.is_stopped() && s.is_early(live));
        held.fold(LaneMask::NONE, |mask, s| mask | s.mask)
    }

    /// Lanes that are held back run after the next instruction: those that they wait for never come.
    pub fn run_held_back(&mut self) {
        let newest = self.splits.iter().map(|s| s.last_quantum).max().unwrap_or(0);
        let live = self.live;
        for split in self.splits.iter_mut().filter(|s| !s.is_early(live)) {
            split.last_quantum = newest.wrapping_add(1);
        }
        (self.ran, self.patience, self.quantum) = (STARVATION, PATIENCE, 0);
    }

    /// The current path sleeps from its next instruction on.
    pub fn sleep(&mut self) {
        self.splits[self.current].asleep = true;
        self.unsettled = true;
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

    /// Settles everything that follows from a change, and picks the next split.
    fn reschedule(&mut self) {
        let ran = self.splits.get(self.current).map(|s| s.mask);
        match &mut self.splits[..] {
            // A warp that has not parted, at a barrier.
            [split] if !split.mask.is_empty() && !matches!(split.wait, Some(Wait::Lanes { .. })) => {
                self.ranks.clear();
                self.ranks.push(split.settle(self.live));
                self.unsettled = false;
            }
            _ => self.settle_all(),
        }
        self.ran += 1;
        self.patience += 1;
        self.current = match self.kept(ran) {
            Some(at) => {
                self.quantum -= 1;
                at
            }
            None => self.pick(),
        };
    }

    /// Drops empty splits, merges those at the same place, ranks all, and wakes those whose lanes have arrived.
    fn settle_all(&mut self) {
        self.splits.retain(|split| !split.mask.is_empty());
        debug_assert_eq!(self.splits.iter().fold(LaneMask::NONE, |mask, s| mask | s.mask), self.live);
        if self.share_pcs() {
            self.merge();
        }
        self.ranks.clear();
        self.ranks.extend(self.splits.iter_mut().map(|split| split.settle(self.live)));
        let any_waits = self.splits.iter().any(|split| split.wait.is_some());
        self.unsettled = any_waits && self.wake_members();
        self.unsettled |= self.share_pcs();
    }

    /// Does what [`Splits::reschedule`] does, where only the current split and those from number `new` on have moved.
    /// Mostly nothing follows from that but which split is next, and that is asked for after each instruction of a warp
    /// that has parted.
    #[inline(never)]
    fn reschedule_moved(&mut self, new: usize) {
        if self.unsettled || !self.settle_moved(new) {
            return self.reschedule();
        }
        self.pick_next();
    }

    /// After an instruction that changed no more than is settled.
    #[inline(always)]
    fn pick_next(&mut self) {
        self.ran += 1;
        self.patience += 1;
        if self.quantum > 0 && !self.splits[self.current].is_stopped() {
            self.quantum -= 1;
        } else {
            self.current = self.pick();
        }
    }

    /// Ranks the splits that have moved. If one of them is where another one is, they become one. Returns false if
    /// there is more to do than that.
    #[inline]
    fn settle_moved(&mut self, new: usize) -> bool {
        let count = self.splits.len();
        if self.ranks.len() != new {
            // The warp was together.
            self.ranks.resize(new, Rank::default());
        }
        self.ranks[self.current] = Rank::at(self.splits[self.current].pc);
        self.ranks.extend(self.splits[new..].iter().map(|split| Rank::at(split.pc)));
        let mut pair = None;
        for at in std::iter::once(self.current).chain(new..count) {
            match self.met_by(at) {
                Met::Nobody => {}
                Met::One(other) => {
                    let found = (at.min(other), at.max(other));
                    if pair.replace(found).is_some_and(|before| before != found) {
                        return false;
                    }
                }
                Met::Several => return false,
            }
        }
        if pair.is_some_and(|(a, b)| !self.splits[a].merges_with(&self.splits[b])) {
            return false;
        }
        for at in std::iter::once(self.current).chain(new..count) {
            if pair.is_none_or(|(a, b)| at != a && at != b) {
                self.ranks[at] = self.splits[at].settle(self.live);
            }
        }
        if let Some((a, b)) = pair {
            let (head, tail) = self.splits.split_at_mut(b);
            head[a].merge(tail[0].mask, &tail[0]);
            self.ranks[a] = head[a].settle(self.live);
            self.ranks.swap_remove(b);
            self.splits.swap(b, count - 1);
            self.splits.truncate(count - 1);
            if self.current == b {
                self.current = a;
            } else if self.current == count - 1 {
                self.current = b;
            }
        }
        true
    }

    /// Who else is at the pc of a split, by the ranks of all.
    #[inline(always)]
    fn met_by(&self, at: usize) -> Met {
        let pc = self.ranks[at].pc();
        // Itself is one of them.
        match self.count_at(pc) {
            1 => Met::Nobody,
            2 => Met::One((0..).find(|&other| other != at && self.ranks[other].pc() == pc).unwrap_or(at)),
            _ => Met::Several,
        }
    }

    /// How many ranks have a pc.
    #[inline(always)]
    fn count_at(&self, pc: Pc) -> u64 {
        self.ranks.iter().map(|rank| u64::from(rank.pc() == pc)).sum()
    }

    /// Lanes leave the current split, which has moved, for where another one is: they become one at once. So do nearly
    /// all lanes that leave a loop one by one. Returns false, and does nothing, if there is more to do than that.
    #[inline]
    fn leave_for(&mut self, group: Group) -> bool {
        if self.unsettled || !self.is_parted() {
            return false;
        }
        let here = self.splits[self.current].pc;
        self.ranks[self.current] = Rank::at(here);
        if here == group.pc || self.count_at(here) > 1 || self.count_at(group.pc) != 1 {
            return false;
        }
        let Some(found) = self.ranks.iter().position(|rank| rank.pc() == group.pc) else { return false };
        let Ok([left, joined]) = self.splits.get_disjoint_mut([self.current, found]) else { return false };
        if !joined.takes_lanes_of(left) {
            return false;
        }
        joined.merge(group.mask, left);
        self.ranks[found] = joined.settle(self.live);
        self.ranks[self.current] = left.settle(self.live);
        true
    }

    /// Whether any two are at the same pc.
    fn share_pcs(&self) -> bool {
        let mut seen = 0u64;
        let pcs = || self.splits.iter().map(|split| split.pc);
        let mut perhaps = false;
        for pc in pcs() {
            let bit = 1 << (pc.0 % u64::BITS);
            perhaps |= seen & bit != 0;
            seen |= bit;
        }
        perhaps && pcs().enumerate().any(|(at, pc)| pcs().skip(at + 1).any(|other| other == pc))
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
                if self.splits[at].merges_with(&self.splits[other]) {
                    let other = self.splits.swap_remove(other);
                    self.splits[at].merge(other.mask, &other);
                } else {
                    other += 1;
                }
            }
            at += 1;
        }
    }

    /// Wakes splits whose awaited lanes have arrived or ended. The members of a `bar.warp.sync` may wait at different
    /// places: they are released together once all live ones wait. Returns whether it has woken any.
    fn wake_members(&mut self) -> bool {
        let mut woken = false;
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
            if !(members & self.live & !come).is_empty() {
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
            woken = true;
        }
        if woken {
            self.ranks.clear();
            self.ranks.extend(self.splits.iter().map(|split| split.rank(self.live)));
        }
        woken
    }

    fn pick(&mut self) -> usize {
        self.quantum = 0;
        let (starving, impatient) = (self.ran >= STARVATION, self.patience >= PATIENCE);
        let (mut first, mut lowest) = (0, Rank::EARLY);
        for (at, &rank) in self.ranks.iter().enumerate() {
            first = select_unpredictable(rank < lowest, at, first);
            lowest = lowest.min(rank);
        }
        self.leads = !starving && !impatient && lowest < Rank::EARLY;
        if self.leads {
            return first;
        }
        let sleeper = self.splits.iter().position(|s| s.asleep);
        // A path that waits for others to arrive also waits while they sleep.
        let barred = if sleeper.is_none() || impatient { Rank::STOPPED } else { Rank::EARLY };
        let ready = || self.ranks.iter().enumerate().filter(|(_, rank)| **rank < barred);
        let picked = if starving {
            let turn = |at: usize, rank: Rank| (!impatient && rank.is_early(), self.splits[at].last_quantum);
            ready().min_by_key(|&(at, rank)| turn(at, *rank))
        } else {
            ready().min_by_key(|(_, rank)| **rank)
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
