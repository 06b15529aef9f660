//! Where the threads of a warp are: a SIMT stack, or independent threads.
//!
//! A *path* is a set of lanes at one pc in one activation of a function. The machine asks for the current path,
//! executes its instruction, and reports back how the path went on.

use warploom_isa::Pc;

/// One activation of a function: where its registers and its frame are, and where it goes back to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Activation {
    /// Index into the kernel's functions.
    pub function: u32,
    /// First word of its registers in the warp's register file.
    pub registers: u32,
    /// First of its predicates.
    pub predicates: u32,
    /// Its frame's address in local memory.
    pub frame: u32,
    /// Index of the call site that made it, and its caller's frame; `None` for the kernel itself.
    pub caller: Option<Caller>,
}

/// Who made an activation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caller {
    /// Index into the kernel's call sites.
    pub site: u32,
    /// The caller's frame.
    pub frame: u32,
    /// Where the caller goes on.
    pub resume: Pc,
}

/// Lanes that go on at one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group {
    /// Where.
    pub pc: Pc,
    /// Which lanes.
    pub mask: u64,
}

/// Lanes that enter a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The function's first instruction.
    pub start: Pc,
    /// Which lanes.
    pub mask: u64,
    /// The new activation.
    pub activation: Activation,
}

/// Why a path does not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// At a named barrier.
    Barrier,
    /// For the lanes of a mask to reach the same instruction (or, for `bar.warp.sync`, any such barrier).
    Lanes {
        /// Lanes it waits for, itself included.
        members: u64,
        /// Any `bar.warp.sync` with the same members will do.
        anywhere: bool,
    },
}

/// The control state of a warp.
#[derive(Clone, Debug)]
pub enum Control {
    /// Paths run one after the other and meet at the immediate post-dominator.
    Stack(SimtStack),
    /// Every lane makes progress.
    Independent(Splits),
}

macro_rules! forward {
    ($self:ident, $inner:ident => $call:expr) => {
        match $self {
            Control::Stack($inner) => $call,
            Control::Independent($inner) => $call,
        }
    };
}

impl Control {
    /// The path to run next, or `None` if every path waits or has ended.
    #[inline(always)]
    pub fn current(&self) -> Option<Group> {
        forward!(self, inner => inner.current())
    }

    /// The current path's activation.
    #[inline(always)]
    pub fn activation(&self) -> Activation {
        forward!(self, inner => inner.activation())
    }

    /// The path goes on with the next instruction.
    #[inline(always)]
    pub fn advance(&mut self) {
        forward!(self, inner => inner.advance())
    }

    /// The path's lanes go on at the places of `groups`, which partition it; they may meet again at `reconverge`.
    pub fn branch(&mut self, groups: &[Group], reconverge: Pc) {
        forward!(self, inner => inner.branch(groups, reconverge))
    }

    /// Lanes enter functions; those in no entry, and all after their return, go on with the next instruction.
    pub fn call(&mut self, entries: &[Entry]) {
        forward!(self, inner => inner.call(entries))
    }

    /// Lanes of the current path return from its activation; the others go on with the next instruction.
    pub fn ret(&mut self, mask: u64) {
        forward!(self, inner => inner.ret(mask))
    }

    /// Lanes of the current path end; the others go on with the next instruction.
    pub fn exit(&mut self, mask: u64) {
        forward!(self, inner => inner.exit(mask))
    }

    /// The current path waits; it stays at its instruction.
    pub fn wait(&mut self, wait: Wait) {
        forward!(self, inner => inner.wait(wait))
    }

    /// Paths that wait at a barrier with lanes of `mask` go on with their next instruction.
    pub fn release_barrier(&mut self, mask: u64) {
        forward!(self, inner => inner.release_barrier(mask))
    }

    /// Paths that wait at a barrier with lanes of `mask`, and their activations.
    pub fn barrier_paths(&self, mask: u64) -> Vec<(Group, Activation)> {
        match self {
            Control::Stack(stack) => {
                let top = stack.entries.last();
                top.map(|e| (Group { pc: e.pc, mask: e.mask }, e.activation)).into_iter().collect()
            }
            Control::Independent(splits) => {
                let at_barrier = |s: &&Split| s.wait == Some(Wait::Barrier) && s.mask & mask != 0;
                let path = |s: &Split| (Group { pc: s.pc, mask: s.mask }, *s.frames.last().expect("a frame"));
                splits.splits.iter().filter(at_barrier).map(path).collect()
            }
        }
    }

    /// All paths with their waits, for messages.
    pub fn paths(&self) -> Vec<(Group, Option<Wait>)> {
        match self {
            Control::Stack(stack) => {
                stack.entries.last().map(|e| (Group { pc: e.pc, mask: e.mask }, stack.wait)).into_iter().collect()
            }
            Control::Independent(splits) => {
                splits.splits.iter().map(|s| (Group { pc: s.pc, mask: s.mask }, s.wait)).collect()
            }
        }
    }
}

/// A SIMT stack: the top entry runs; an entry whose pc reaches its reconvergence point is popped, and the entry
/// below goes on with all lanes that met.
#[derive(Clone, Debug)]
pub struct SimtStack {
    entries: Vec<StackEntry>,
    wait: Option<Wait>,
}

#[derive(Clone, Copy, Debug)]
struct StackEntry {
    pc: Pc,
    reconverge: Pc,
    mask: u64,
    /// The first entry of an activation: popping it returns to the caller.
    is_call: bool,
    activation: Activation,
}

impl SimtStack {
    /// All lanes of `mask` at the kernel's first instruction.
    pub fn new(start: Pc, mask: u64, activation: Activation) -> Self {
        let entry = StackEntry { pc: start, reconverge: Pc::RETURN, mask, is_call: false, activation };
        SimtStack { entries: vec![entry], wait: None }
    }

    #[inline(always)]
    fn current(&self) -> Option<Group> {
        let top = self.entries.last()?;
        if self.wait.is_some() {
            return None;
        }
        Some(Group { pc: top.pc, mask: top.mask })
    }

    fn activation(&self) -> Activation {
        self.entries.last().expect("a running warp has a path").activation
    }

    fn top(&mut self) -> &mut StackEntry {
        self.entries.last_mut().expect("a running warp has a path")
    }

    #[inline(always)]
    fn advance(&mut self) {
        let top = self.top();
        top.pc.0 += 1;
        if top.pc == top.reconverge {
            self.settle();
        }
    }

    /// Pops what has no lanes left or has met its reconvergence point.
    fn settle(&mut self) {
        while let Some(top) = self.entries.last() {
            if top.mask != 0 && (top.is_call || top.pc != top.reconverge) {
                break;
            }
            self.entries.pop();
        }
    }

    fn branch(&mut self, groups: &[Group], reconverge: Pc) {
        if let [only] = groups {
            self.top().pc = only.pc;
            return self.settle();
        }
        let top = *self.top();
        // Lanes that would only wait for the same point below need no entry of their own.
        if top.reconverge == reconverge && !top.is_call {
            self.entries.pop();
        } else {
            self.top().pc = reconverge;
        }
        for group in groups.iter().rev().filter(|g| g.pc != reconverge) {
            self.entries.push(StackEntry { pc: group.pc, reconverge, mask: group.mask, is_call: false, ..top });
        }
        self.settle();
    }

    fn call(&mut self, entries: &[Entry]) {
        self.top().pc.0 += 1;
        for entry in entries.iter().rev() {
            self.entries.push(StackEntry {
                pc: entry.start,
                reconverge: Pc::RETURN,
                mask: entry.mask,
                is_call: true,
                activation: entry.activation,
            });
        }
    }

    fn ret(&mut self, mask: u64) {
        self.top().pc.0 += 1;
        for entry in self.entries.iter_mut().rev() {
            entry.mask &= !mask;
            if entry.is_call {
                break;
            }
        }
        self.settle();
    }

    fn exit(&mut self, mask: u64) {
        self.top().pc.0 += 1;
        for entry in &mut self.entries {
            entry.mask &= !mask;
        }
        self.settle();
    }

    fn wait(&mut self, wait: Wait) {
        self.wait = Some(wait);
    }

    fn release_barrier(&mut self, _mask: u64) {
        self.wait = None;
        self.advance();
    }
}

/// How long the path with the lowest pc may run while others could.
const PATIENCE: u32 = 256;

/// How long a path runs that was starving.
const TURN: u32 = 64;

/// Independent threads: lanes are grouped into splits that share pc and activation. The split that is deepest in
/// calls and lowest in pc runs, which lets splits meet where structured code joins; one that has waited too long gets a
/// turn, so that every thread makes progress.
#[derive(Clone, Debug)]
pub struct Splits {
    splits: Vec<Split>,
    current: usize,
    ran: u32,
    /// Instructions left of a starving split's turn.
    turn: u32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Split {
    pc: Pc,
    mask: u64,
    wait: Option<Wait>,
    /// From the kernel to the running function.
    frames: Vec<Activation>,
    /// When it last ran, in turns; the oldest starves most.
    last_turn: u32,
}

impl Splits {
    /// All lanes of `mask` at the kernel's first instruction.
    pub fn new(start: Pc, mask: u64, activation: Activation) -> Self {
        let split = Split { pc: start, mask, wait: None, frames: vec![activation], last_turn: 0 };
        Splits { splits: vec![split], current: 0, ran: 0, turn: 0 }
    }

    #[inline(always)]
    fn current(&self) -> Option<Group> {
        let split = self.splits.get(self.current)?;
        if split.wait.is_some() {
            return None;
        }
        Some(Group { pc: split.pc, mask: split.mask })
    }

    fn activation(&self) -> Activation {
        *self.splits[self.current].frames.last().expect("a split runs in some activation")
    }

    #[inline(always)]
    fn advance(&mut self) {
        self.splits[self.current].pc.0 += 1;
        if self.splits.len() > 1 {
            self.reschedule();
        }
    }

    fn branch(&mut self, groups: &[Group], _reconverge: Pc) {
        let (first, rest) = groups.split_first().expect("a branch goes somewhere");
        let split = &mut self.splits[self.current];
        (split.pc, split.mask) = (first.pc, first.mask);
        for group in rest {
            let split = Split { pc: group.pc, mask: group.mask, ..self.splits[self.current].clone() };
            self.splits.push(split);
        }
        if self.splits.len() > 1 {
            self.reschedule();
        }
    }

    fn call(&mut self, entries: &[Entry]) {
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

    fn ret(&mut self, mask: u64) {
        let split = &mut self.splits[self.current];
        let mut returning = split.clone();
        split.pc.0 += 1;
        split.mask &= !mask;
        let caller = returning.frames.pop().and_then(|a| a.caller).expect("only a called function returns");
        (returning.pc, returning.mask) = (caller.resume, mask);
        self.splits.push(returning);
        self.reschedule();
    }

    fn exit(&mut self, mask: u64) {
        let split = &mut self.splits[self.current];
        split.pc.0 += 1;
        split.mask &= !mask;
        self.reschedule();
    }

    fn wait(&mut self, wait: Wait) {
        self.splits[self.current].wait = Some(wait);
        self.reschedule();
    }

    fn release_barrier(&mut self, mask: u64) {
        for split in &mut self.splits {
            if split.wait == Some(Wait::Barrier) && split.mask & mask != 0 {
                split.wait = None;
                split.pc.0 += 1;
            }
        }
        self.reschedule();
    }

    /// Lanes that have not ended.
    fn live(&self) -> u64 {
        self.splits.iter().fold(0, |mask, s| mask | s.mask)
    }

    /// Drops empty splits, merges those that met, wakes those whose lanes have come, and picks the next.
    fn reschedule(&mut self) {
        let current = self.splits.get(self.current).map(|s| s.mask);
        self.splits.retain(|s| s.mask != 0);
        self.merge();
        self.wake_members();
        // The split that holds what was current, to let it finish its turn.
        let kept = current
            .and_then(|mask| self.splits.iter().position(|s| mask != 0 && s.mask & mask == mask));
        self.ran += 1;
        self.current = match kept.filter(|&at| self.turn > 0 && self.splits[at].wait.is_none()) {
            Some(at) => {
                self.turn -= 1;
                at
            }
            None => self.pick(),
        };
    }

    fn merge(&mut self) {
        let mut at = 0;
        while at < self.splits.len() {
            let mut other = at + 1;
            while other < self.splits.len() {
                let (a, b) = (&self.splits[at], &self.splits[other]);
                let same_place = a.pc == b.pc && a.frames == b.frames;
                let barrier = Some(Wait::Barrier);
                if same_place && a.wait != barrier && b.wait != barrier {
                    // Whoever waited for lanes asks again with the lanes that came.
                    self.splits[at].wait = None;
                    self.splits[at].mask |= self.splits[other].mask;
                    self.splits.swap_remove(other);
                } else {
                    other += 1;
                }
            }
            at += 1;
        }
    }

    /// `bar.warp.sync` may be met at different places: release its members once all that live wait in one; and let
    /// those whose missing lanes have ended go on.
    fn wake_members(&mut self) {
        let live = self.live();
        for at in 0..self.splits.len() {
            let Some(Wait::Lanes { members, anywhere }) = self.splits[at].wait else { continue };
            let here = self.splits[at].mask;
            let come = if anywhere {
                self.splits.iter().filter(|s| s.wait == self.splits[at].wait).fold(0, |m, s| m | s.mask)
            } else {
                here
            };
            if members & live & !come != 0 {
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

    fn pick(&mut self) -> usize {
        self.turn = 0;
        let ready = || self.splits.iter().enumerate().filter(|(_, s)| s.wait.is_none());
        let starving = self.ran >= PATIENCE;
        let picked = if starving {
            ready().min_by_key(|(_, s)| s.last_turn)
        } else {
            ready().min_by_key(|(_, s)| (std::cmp::Reverse(s.frames.len()), s.pc))
        };
        let Some(picked) = picked.map(|(at, _)| at) else { return 0 };
        if starving {
            self.ran = 0;
            self.turn = TURN;
            let newest = self.splits.iter().map(|s| s.last_turn).max().unwrap_or(0);
            self.splits[picked].last_turn = newest.wrapping_add(1);
        }
        picked
    }
}
