//! Control state of a warp: a SIMT stack ([`stack`](super::stack)) or independent threads
//! ([`independent`](super::independent)).
//!
//! A *path* is a set of lanes at one pc in one activation of a function. The machine asks for the current path,
//! executes its instruction, and reports where the lanes continue.

use std::ops::Range;

use warploom_isa::Pc;

use crate::kit::lane_mask::LaneMask;
use crate::warp::Since;
pub use crate::warp::independent::Splits;
pub use crate::warp::stack::SimtStack;

/// One activation of a function: its registers, its frame, and where it returns to. The default is the kernel's own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Activation {
    /// Index into the kernel's functions.
    pub function: u32,
    /// Index of its first register in the warp's registers.
    pub registers: u32,
    /// Index of its first predicate.
    pub predicates: u32,
    /// Its frame's address in local memory.
    pub frame: u32,
    /// Number of calls from the kernel down to it.
    pub depth: u32,
    /// `None` for the kernel itself.
    pub caller: Option<Caller>,
}

/// The call that made an activation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caller {
    /// Index into the kernel's call sites.
    pub site: u32,
    /// The caller's frame.
    pub frame: u32,
    /// Where the caller continues.
    pub resume: Pc,
}

/// Lanes at one pc.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group {
    pub pc: Pc,
    pub mask: LaneMask,
}

/// How far the current path of a warp goes on, whatever the others do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stretch {
    pub(crate) path: Group,
    /// Until it is here.
    pub(crate) until: Pc,
    /// And no longer than it stays in this part of the code.
    pub(crate) within: Range<Pc>,
    /// And for no more instructions.
    pub(crate) most: u64,
}

impl Stretch {
    /// Nothing but a place ends it.
    #[inline(always)]
    pub(crate) fn until(path: Group, until: Pc) -> Stretch {
        Stretch { path, until, within: Pc(0)..Pc::RETURN, most: u64::MAX }
    }
}

/// Lanes that enter a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The function's first instruction.
    pub start: Pc,
    pub mask: LaneMask,
    pub activation: Activation,
}

/// Why a path cannot run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// At a named barrier.
    Barrier,
    /// For all `members` (its own lanes included) to reach the same instruction, or, with `anywhere`, any
    /// `bar.warp.sync` with the same members.
    Lanes { members: LaneMask, anywhere: bool },
    /// At a reconvergence point of the SIMT stack, for these lanes to arrive there.
    Reconverge(LaneMask),
    /// On the other side of a branch, below the lanes `first` on the SIMT stack, until those reach `reconverge`.
    OtherPath { first: LaneMask, reconverge: Pc },
}

/// The control state of a warp.
#[derive(Clone, Debug)]
pub enum Control {
    /// Paths run one after the other and reconverge at the immediate post-dominator.
    Stack(SimtStack),
    /// Every path makes progress.
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
    /// All lanes of `mask` begin at the kernel's first instruction.
    pub(crate) fn restart(&mut self, start: Pc, mask: LaneMask) {
        match self {
            Control::Stack(stack) => stack.restart(start, mask),
            Control::Independent(splits) => splits.restart(start, mask),
        }
    }

    /// The path to run next; `None` if every path waits or has ended.
    #[inline(always)]
    pub fn current(&self) -> Option<Group> {
        forward!(self, inner => inner.current())
    }

    /// The path to run next, and its activation.
    #[inline(always)]
    pub fn running(&self) -> Option<(Group, &Activation)> {
        forward!(self, inner => inner.running())
    }

    #[inline(always)]
    pub fn activation(&self) -> Activation {
        forward!(self, inner => inner.activation())
    }

    /// The current path continues with the next instruction. Returns whether it certainly still is the current one.
    #[inline(always)]
    pub fn advance(&mut self) -> bool {
        forward!(self, inner => inner.advance())
    }

    /// How far the current path goes on whatever the other paths do, if it does.
    #[inline(always)]
    pub(crate) fn straight(&self) -> Option<Stretch> {
        forward!(self, inner => inner.straight())
    }

    /// The current path has run so many instructions of its stretch, and is at `pc`.
    #[inline(always)]
    pub(crate) fn arrive(&mut self, pc: Pc, ran: u64) {
        match self {
            Control::Stack(stack) => stack.arrive(pc),
            Control::Independent(splits) => splits.arrive(pc, ran),
        }
    }

    /// The same if a branch is next, at which it diverges.
    #[inline(always)]
    pub(crate) fn arrive_at_branch(&mut self, pc: Pc, ran: u64) {
        match self {
            Control::Stack(stack) => stack.arrive(pc),
            Control::Independent(splits) => splits.arrive_at_branch(pc, ran),
        }
    }

    /// The current path splits into `groups`, which partition its lanes; they reconverge at `reconverge`.
    pub fn branch(&mut self, groups: &[Group], reconverge: Pc) {
        forward!(self, inner => inner.branch(groups, reconverge))
    }

    /// Lanes enter functions. Lanes in no entry continue with the next instruction, as do the others after their
    /// return.
    pub fn call(&mut self, entries: &[Entry]) {
        forward!(self, inner => inner.call(entries))
    }

    /// Lanes of the current path return from its activation; the others continue with the next instruction.
    pub fn ret(&mut self, mask: LaneMask) {
        forward!(self, inner => inner.ret(mask))
    }

    /// Lanes of the current path end; the others continue with the next instruction.
    pub fn exit(&mut self, mask: LaneMask) {
        forward!(self, inner => inner.exit(mask))
    }

    /// The current path waits at its instruction.
    pub fn wait(&mut self, wait: Wait) {
        forward!(self, inner => inner.wait(wait))
    }

    /// Lanes of the current path wait at their instruction, each set for its own. The others are still to execute it.
    pub(crate) fn wait_apart(&mut self, waits: &[(LaneMask, Wait)]) {
        match self {
            Control::Independent(splits) => splits.wait_apart(waits),
            Control::Stack(_) => unreachable!("the lanes of a SIMT stack do not wait for each other"),
        }
    }

    /// Releases the paths with lanes of `mask` that wait at a barrier: they continue with the next instruction.
    pub fn release_barrier(&mut self, mask: LaneMask) {
        forward!(self, inner => inner.release_barrier(mask))
    }

    /// The paths with lanes of `mask` that wait at a barrier.
    pub fn barrier_paths(&self, mask: LaneMask) -> Vec<(Group, Activation)> {
        match self {
            Control::Stack(stack) => stack.top_path().map(|(group, at, _)| (group, at)).into_iter().collect(),
            Control::Independent(splits) => {
                let at_barrier = |p: &(Group, Activation, Option<Wait>)| {
                    p.2 == Some(Wait::Barrier) && !(p.0.mask & mask).is_empty()
                };
                splits.paths().filter(at_barrier).map(|(group, at, _)| (group, at)).collect()
            }
        }
    }

    /// Whether independent threads have diverged into several paths.
    pub fn is_parted(&self) -> bool {
        matches!(self, Control::Independent(splits) if splits.is_parted())
    }

    /// Whether all lanes are where they were in `before` and will run the same way again.
    pub fn repeats(&self, before: &Control, since: Since) -> bool {
        match (self, before) {
            (Control::Stack(a), Control::Stack(b)) => a.is_as(b),
            (Control::Independent(a), Control::Independent(b)) => a.repeats(b, since),
            _ => false,
        }
    }

    /// The current path spins in a loop that waits for others: other independent threads run first, as with the `YIELD`
    /// hints that compilers put into such loops.
    pub fn yield_path(&mut self) {
        if let Control::Independent(splits) = self {
            splits.yield_path();
        }
    }

    /// Lanes that could run, but wait for others where paths meet.
    pub fn held_back(&self) -> LaneMask {
        match self {
            Control::Stack(_) => LaneMask::NONE,
            Control::Independent(splits) => splits.held_back(),
        }
    }

    /// They run after the next instruction.
    pub fn run_held_back(&mut self) {
        if let Control::Independent(splits) = self {
            splits.run_held_back();
        }
    }

    /// The current path sleeps from its next instruction on, while other independent threads run.
    pub fn sleep(&mut self) {
        if let Control::Independent(splits) = self {
            splits.sleep();
        }
    }

    /// Paths that sleep wake up.
    pub fn wake(&mut self) {
        if let Control::Independent(splits) = self {
            splits.wake();
        }
    }

    /// Number of paths that can run.
    pub fn running_paths(&self) -> usize {
        self.paths().iter().filter(|(_, wait)| wait.is_none()).count()
    }

    pub fn waits_at_barrier(&self) -> bool {
        self.paths().iter().any(|(_, wait)| *wait == Some(Wait::Barrier))
    }

    /// All paths with their waits, for messages.
    pub fn paths(&self) -> Vec<(Group, Option<Wait>)> {
        self.activated_paths().into_iter().map(|(group, _, wait)| (group, wait)).collect()
    }

    /// All paths with their activations and waits, for messages.
    pub fn activated_paths(&self) -> Vec<(Group, Activation, Option<Wait>)> {
        match self {
            Control::Stack(stack) => stack.paths(),
            Control::Independent(splits) => splits.paths().collect(),
        }
    }
}
