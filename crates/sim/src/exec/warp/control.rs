//! Where the threads of a warp are: on a SIMT stack ([`crate::exec::warp::stack`]), or independent ([`crate::exec::warp::independent`]).
//!
//! A *path* is a set of lanes at one pc in one activation of a function. The machine asks for the current path,
//! executes its instruction, and reports back how the path went on.

use warploom_isa::Pc;

use crate::exec::warp::Since;
pub use crate::exec::warp::independent::Splits;
pub use crate::exec::warp::stack::SimtStack;

/// One activation of a function: where its registers and its frame are, and where it returns to. The default is the
/// kernel's own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Activation {
    /// Index into the kernel's functions.
    pub function: u32,
    /// First word of its registers in the warp's register file.
    pub registers: u32,
    /// First of its predicates.
    pub predicates: u32,
    /// Its frame's address in local memory.
    pub frame: u32,
    /// Calls between the kernel and it.
    pub depth: u32,
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
    /// At a reconvergence point of the SIMT stack, for these lanes to come there too.
    Meet(u64),
    /// On the other side of a branch, for these lanes to leave the top of the SIMT stack.
    Turn {
        /// Lanes that go first.
        after: u64,
        /// Where they have to come.
        meet: Pc,
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
            Control::Stack(stack) => stack.top_path().map(|(group, at, _)| (group, at)).into_iter().collect(),
            Control::Independent(splits) => {
                let at_barrier = |p: &(Group, Activation, Option<Wait>)| {
                    p.2 == Some(Wait::Barrier) && p.0.mask & mask != 0
                };
                splits.paths().filter(at_barrier).map(|(group, at, _)| (group, at)).collect()
            }
        }
    }

    /// Whether independent threads are at different places.
    pub fn is_parted(&self) -> bool {
        matches!(self, Control::Independent(splits) if splits.is_parted())
    }

    /// Whether all lanes are where they were in `before`, and will take the same ways again.
    pub fn repeats(&self, before: &Control, since: Since) -> bool {
        match (self, before) {
            (Control::Stack(a), Control::Stack(b)) => a.is_as(b),
            (Control::Independent(a), Control::Independent(b)) => a.repeats(b, since),
            _ => false,
        }
    }

    /// The current path goes round in a loop that waits for others: independent threads that could run do so first, as the
    /// `YIELD` hints ask for that compilers put into such loops.
    pub fn yield_path(&mut self) {
        if let Control::Independent(splits) = self {
            splits.yield_path();
        }
    }

    /// How many paths could run.
    pub fn running_paths(&self) -> usize {
        self.paths().iter().filter(|(_, wait)| wait.is_none()).count()
    }

    /// Whether some path waits at a barrier.
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
