//! Who waits for what, when nothing moves any more or a limit ends the launch.
//!
//! `scene` looks at the machine: what does every group of lanes do, and for what does it wait? `cause` follows who waits for
//! whom to a circle or to a wait that nobody can end, which is the kind of hang. `rows` makes a few lines of it, equal
//! ones merged over warps and CTAs, and `tell` the message. `docs/hangs.md` shows every kind.

mod advice;
mod cause;
mod code;
mod livelock;
mod rows;
mod scene;
mod stopped;
mod tell;
mod words;

use warploom_isa::{Cmp, Ty};

use crate::exec::fault::Place;
use crate::exec::stop::HangReason;
pub use crate::explain::hang::livelock::{Livelock, SlowHolder};
use crate::explain::hang::scene::Scene;
pub(crate) use crate::explain::hang::scene::shared_word;
pub(crate) use crate::explain::hang::stopped::{explain_functional, explain_timed};
pub use crate::explain::hang::words::{Threads, grouped, lane_ranges};

/// A launch that does not end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hang {
    /// The kernel.
    pub kernel: String,
    /// Why it was ended.
    pub reason: HangReason,
    /// What keeps it from going on, as far as that can be told.
    pub kind: HangKind,
    /// Where the kind shows, for the first line: "in warp 0 of CTA (0,0,0)".
    pub subject: String,
    /// Cycles since the launch began.
    pub cycles: u64,
    /// What lanes do, by CTA; CTAs in which all do the same are shown once, and of many only the first.
    pub ctas: Vec<WaitingCta>,
    /// CTAs that are not shown.
    pub more_ctas: u64,
    /// Warps that have not ended, in all.
    pub live_warps: u64,
    /// CTAs that have not started.
    pub unstarted_ctas: u64,
    /// CTAs of the grid.
    pub grid_ctas: u64,
    /// What the control processor does, in a run of firmware.
    pub aggregator: Option<String>,
    /// If it is a livelock: how it comes about. What lanes do is then not told.
    pub livelock: Option<Box<Livelock>>,
    /// How to repair it.
    pub help: String,
}

/// What keeps lanes from going on. If there are several causes, the first of this order is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum HangKind {
    /// Threads wait for a lock bit that was taken for another word.
    Alias,
    /// Lanes of a warp wait for lanes that can go on only after them.
    SimdDeadlock,
    /// Threads wait for locks in a circle.
    LockCycle,
    /// A barrier misses threads, or barriers wait for each other.
    Barrier,
    /// Threads read an old copy in an L1 that is not coherent.
    Stale,
    /// A word that nobody left writes, or a lock whose holder has ended.
    LostToken,
    /// The same, with CTAs left that cannot start.
    NotResident,
    /// No wavefront is on the chip, and firmware starts none.
    Starved,
    /// A loop that waits for nothing.
    Endless,
    /// Locks are taken and given back, but far too seldom.
    Livelock,
    /// None of these, or not known.
    Unknown,
}

/// What the lanes of a CTA do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitingCta {
    /// The CTA.
    pub id: [u32; 3],
    /// How many more are like it.
    pub alike: u64,
    /// Its lanes, those that do the same together.
    pub groups: Vec<WaitingGroup>,
    /// Groups that are not shown.
    pub more_groups: u64,
}

/// Lanes that do the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitingGroup {
    /// Who.
    pub threads: Threads,
    /// Locks that they took and others wait for, and where.
    pub holds: Vec<(Word, Place)>,
    /// What they do.
    pub waits: Waits,
    /// Where they are.
    pub place: Place,
    /// They are known to change their own state, so that nothing is proved about them.
    pub changes: bool,
}

/// What lanes do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Waits {
    /// Wait at a named barrier.
    Barrier {
        /// Its number.
        id: u32,
        /// Threads that have come.
        come: u32,
        /// Threads it waits for.
        expected: u32,
        /// Threads that have not come, and what they do instead.
        missing: Vec<(Threads, Instead)>,
    },
    /// Ask an mbarrier whether its phase has ended.
    Mbarrier {
        /// The mbarrier.
        word: Word,
        /// Arrivals that its phase misses.
        pending: u64,
        /// Arrivals that a phase has.
        expected: u64,
        /// Bytes of transactions that it misses.
        bytes: i64,
    },
    /// Wait at a reconvergence point.
    Meet {
        /// For these lanes of the warp.
        lanes: u64,
        /// Who are in a loop that ends there.
        loop_ends: bool,
    },
    /// Wait on the other side of a branch, on the SIMT stack.
    Turn {
        /// For these lanes of the warp.
        lanes: u64,
        /// To come here; `None` is the end of the function.
        meet: Option<Place>,
    },
    /// Wait for lanes of the warp that have to execute the same instruction.
    Lanes(u64),
    /// Read words until they change.
    Spin(Spin),
    /// Go round a loop that waits for nothing known.
    Loop,
    /// Run.
    Run,
}

/// A wait for a value in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spin {
    /// The words that are read, each by some of the lanes.
    pub words: Vec<Word>,
    /// What the first of them is, as the lanes see it.
    pub value: u64,
    /// What ends the wait.
    pub until: Until,
    /// Who could change it.
    pub writer: Writer,
    /// They do not read it again, but wait in its queue until it is given back.
    pub queued: bool,
}

/// What ends a wait for a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// It compares so with this value.
    Is(Cmp, u64),
    /// It changes.
    Changes,
    /// Its lock bit, which has this number, is free.
    Free(u32),
}

impl Until {
    /// Whether a value of type `ty` ends the wait.
    pub(crate) fn is_met(self, value: u64, ty: Ty) -> bool {
        let Until::Is(cmp, wanted) = self else { return false };
        let order = if ty.is_signed() {
            let signed = |value: u64| (value << (64 - ty.bits())) as i64;
            signed(value).cmp(&signed(wanted))
        } else {
            value.cmp(&wanted)
        };
        match cmp {
            Cmp::Eq => order.is_eq(),
            Cmp::Ne => order.is_ne(),
            Cmp::Lt => order.is_lt(),
            Cmp::Le => order.is_le(),
            Cmp::Gt => order.is_gt(),
            Cmp::Ge => order.is_ge(),
            _ => false,
        }
    }
}

/// Who could end a wait for a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Writer {
    /// The thread that took the lock.
    Taker(Box<Holder>),
    /// Memory has changed already, but they read a copy in their L1.
    Memory {
        /// What memory holds.
        holds: u64,
        /// The SM with the copy.
        sm: u32,
    },
    /// Lanes of the same warp that may write it, but wait for those that read it.
    Behind(Threads),
    /// Nobody that is known.
    Nobody,
}

/// The thread that took a lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// Who.
    pub who: Threads,
    /// Where it took it.
    pub place: Place,
    /// If it is a lock bit: other words on the same bit, for which it was taken.
    pub alias: Vec<Word>,
    /// What it does now.
    pub now: Instead,
}

/// What threads do instead of what others wait for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Instead {
    /// They have ended.
    Ended,
    /// They wait at a barrier.
    Barrier(u32),
    /// They wait for lanes of their warp.
    Lanes(u64),
    /// They read this word.
    Spin(Word),
    /// They wait in this lock's queue.
    Queue(Word),
    /// They ask this mbarrier.
    Mbarrier(Word),
    /// They run here.
    Run(Place),
}

/// A word in memory, by the name of what holds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word {
    /// The buffer or variable; empty if there is none.
    pub name: String,
    /// The word's offset in it.
    pub offset: u64,
    /// It is in shared memory.
    pub shared: bool,
}

/// Explains why a launch does not end.
fn explain<const N: usize>(scene: &Scene<'_, N>, reason: HangReason, cycles: u64) -> Hang {
    let nodes = scene.nodes();
    let proof = reason.is_proof();
    let livelock = if proof { None } else { livelock::find(scene, &nodes) };
    let cause = match livelock {
        Some(_) => Some(cause::Cause { kind: HangKind::Livelock, nodes: Vec::new() }),
        None => cause::find(scene, &nodes, proof),
    };
    // While locks are taken and given back, who waits for whom changes all the time.
    let moves = !proof && scene.timed.as_ref().is_some_and(|timed| timed.pace.taken > 0);
    let holds =
        |cause: &cause::Cause| !moves || !matches!(cause.kind, HangKind::SimdDeadlock | HangKind::LockCycle);
    let mut hang = rows::hang(scene, &nodes, cause.filter(holds), reason, cycles);
    if let Some(livelock) = livelock {
        hang.help = format!("{}; see docs/hangs.md#livelock", livelock.help());
        hang.livelock = Some(Box::new(livelock));
    }
    hang
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_end_by_comparison() {
        assert!(Until::Is(Cmp::Eq, 0).is_met(0, Ty::B32));
        assert!(!Until::Is(Cmp::Ne, 0).is_met(0, Ty::B32));
        assert!(Until::Is(Cmp::Lt, 0).is_met(0xffff_ffff, Ty::S32));
        assert!(!Until::Is(Cmp::Lt, 0).is_met(0xffff_ffff, Ty::U32));
        assert!(Until::Is(Cmp::Ge, 1).is_met(0x8000_0000, Ty::U32));
        assert!(!Until::Changes.is_met(1, Ty::U32));
    }
}
