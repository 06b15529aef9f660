//! Explains a launch that does not end: which lanes wait for what, and why nothing can continue.
//!
//! `scene` reads from the stopped machine what every group of lanes does, and `polls` which words they poll. `cause`
//! follows these waits to a cycle, or to a wait that nobody can end: that is the kind of hang. `rows` merges equal
//! groups over warps and CTAs, and `message` prints them. `docs/hangs.md` shows every kind. Start at [`explain_timed`].

mod advice;
mod arithmetic;
mod cause;
mod code;
mod condition;
mod future;
mod livelock;
mod message;
mod polls;
mod rows;
mod scene;
mod stopped;
mod undone;
mod words;

use warploom_isa::{Cmp, Ty};

use crate::exec::fault::Place;
use crate::exec::stop::HangReason;
pub(crate) use crate::explain::hang::livelock::Livelock;
use crate::explain::hang::scene::{Doing, Scene};
pub(crate) use crate::explain::hang::scene::{global_word, shared_word};
pub(crate) use crate::explain::hang::stopped::{explain_functional, explain_timed};
pub(crate) use crate::explain::hang::undone::{KeptWord, UndoneWord};
pub(crate) use crate::explain::hang::words::Threads;
pub(crate) use crate::explain::hang::words::counted;
pub use crate::explain::hang::words::{grouped, lane_ranges};
use crate::kit::lane_mask::LaneMask;

/// Why a launch does not end. Its `Display` is the message for the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hang {
    /// Empty if only firmware is left.
    pub kernel: String,
    /// The chip's name, if the first line is to tell it; empty at first.
    pub chip: String,
    /// Why the launch was ended.
    pub reason: HangReason,
    pub kind: HangKind,
    /// Where the cause is, for the first line: "in warp 0 of CTA (0,0,0)".
    pub subject: String,
    /// Cycles since the launch started.
    pub cycles: u64,
    /// What lanes do, by CTA. CTAs that do the same are one entry, and only the first entries are kept.
    pub ctas: Vec<WaitingCta>,
    /// CTAs that are left out.
    pub more_ctas: u64,
    /// Warps of all CTAs that have not ended.
    pub live_warps: u64,
    pub unstarted_ctas: u64,
    /// CTAs of the grid.
    pub grid_ctas: u64,
    /// What the control processor does, in a firmware run.
    pub aggregator: Option<String>,
    /// Details of a livelock; the message then leaves out what lanes do.
    pub livelock: Option<Box<Livelock>>,
    /// In a livelock of attempts that are undone: the words that change for ever.
    pub undone: Vec<UndoneWord>,
    /// And the words that do not, at which attempts fail.
    pub kept: Vec<KeptWord>,
    /// How to repair it.
    pub help: String,
}

/// What keeps lanes from continuing. Of several causes, the first in this order is reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum HangKind {
    /// Threads wait for a lock bit that was taken for another word.
    Alias,
    /// Lanes of a warp wait for lanes that can continue only after them.
    SimdDeadlock,
    /// Threads wait for locks in a cycle.
    LockCycle,
    /// Threads wait for words that the others among them write only later.
    WaitCycle,
    /// A barrier that threads never reach, or barriers that wait for each other.
    Barrier,
    /// Threads read an old copy in an L1 that is not coherent.
    Stale,
    /// Threads wait for a word that no remaining thread writes, or for a lock whose holder has ended.
    LostToken,
    /// As `LostToken`, but there are CTAs that cannot start and might write the word.
    NotResident,
    /// No wavefront is on the chip, and firmware starts none.
    Starved,
    /// A loop that waits for nothing.
    Endless,
    /// Locks are taken and released, but far too rarely; or attempts are undone for ever.
    Livelock,
    /// None of these, or not known.
    Unknown,
}

/// What the lanes of a CTA do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitingCta {
    /// Coordinates in the grid.
    pub id: [u32; 3],
    /// Other CTAs that do the same.
    pub alike: u64,
    pub groups: Vec<WaitingGroup>,
    /// Groups that are left out.
    pub more_groups: u64,
}

/// Lanes of a CTA that do the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitingGroup {
    pub threads: Threads,
    /// Locks that they hold and others wait for, and where they took them.
    pub holds: Vec<(Word, Place)>,
    pub waits: Waits,
    /// The instruction at which they wait or spin.
    pub place: Place,
    /// Their own state still changes, so that nothing is proved about them.
    pub changes: bool,
}

/// What lanes do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Waits {
    /// Wait at a named barrier. `missing` threads have not arrived; each with what it does instead.
    Barrier {
        id: u32,
        arrived: u32,
        expected: u32,
        missing: Vec<(Threads, Instead)>,
    },
    /// Wait at the barrier of the cluster, to which `arrived` of the `expected` CTAs have come as a whole. `missing`
    /// threads have not; each with what it does instead.
    ClusterBarrier {
        arrived: u32,
        expected: u32,
        missing: Vec<(Threads, Instead)>,
    },
    /// Poll an mbarrier until its phase ends. If only bytes are missing, `announced` has the instructions that tell
    /// mbarriers how many will come.
    Mbarrier {
        word: Word,
        phase: Phase,
        announced: Vec<Place>,
    },
    /// Wait at a reconvergence point for these lanes of the warp, which are in a loop that ends there if `loop_ends`.
    Reconverge {
        lanes: LaneMask,
        loop_ends: bool,
    },
    /// Wait on the other side of a branch, on the SIMT stack, until these lanes of the warp reach `reconverge`;
    /// `None` is the end of the function.
    OtherPath {
        lanes: LaneMask,
        reconverge: Option<Place>,
    },
    /// Wait for these lanes of the warp to execute the same instruction.
    Lanes(LaneMask),
    /// Poll words until they change.
    Spin(Spin),
    /// Repeat a loop that waits for nothing known.
    Loop,
    Run,
}

/// The phase of an mbarrier that threads wait for, which is its present one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Phase {
    /// Of the `expected` arrivals, those that are missing.
    pub pending: u64,
    pub expected: u64,
    /// Of transactions, those that are missing; negative if more came than were announced.
    pub bytes: i64,
    /// If the threads name it by its parity and not by its state.
    pub parity: Option<u64>,
}

impl Phase {
    /// Whether nothing has happened in it. The threads may have meant the one before.
    fn is_new(&self) -> bool {
        self.pending == self.expected && self.bytes == 0
    }

    /// Whether all arrivals have come, but not all bytes.
    fn misses_bytes(&self) -> bool {
        self.pending == 0 && self.bytes != 0
    }
}

/// A wait for a value in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spin {
    /// The words polled, each by some of the lanes.
    pub words: Vec<Word>,
    /// The value of the first word, as the lanes see it.
    pub value: u64,
    pub until: Until,
    pub writer: Writer,
    /// The lanes do not poll, but wait in the lock's queue.
    pub queued: bool,
    /// If more is compared than the word as it is: the condition as the kernel computes it, and the values in it.
    pub condition: Option<String>,
}

/// What ends a wait for a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// The word compares this way with the value.
    Is(Cmp, u64),
    /// The word changes.
    Changes,
    /// The word's lock bit, which has this number, is free.
    Free(u32),
}

impl Until {
    /// Whether a value of type `ty` ends the wait.
    fn is_met(self, value: u64, ty: Ty) -> bool {
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
    /// Memory already holds another value, but the lanes read a copy in the L1 of SM `sm`.
    Memory { holds: u64, sm: u32 },
    /// Lanes of the same warp write the word at this place, or may write it, but wait for those that poll it.
    BlockedLanes(Threads, Option<Place>),
    /// The thread that writes the word later, at its `place`, waits for something else.
    Waiting(Box<Holder>),
    /// The thread that wrote the word last, at its `place`, though not to take a lock.
    Wrote(Box<Holder>),
    /// No thread that is known.
    Nobody,
}

/// The thread that took a lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    pub who: Threads,
    /// Where it took the lock.
    pub place: Place,
    /// For a lock bit: other words on the same bit, for which it was taken.
    pub alias: Vec<Word>,
    /// It changed the word by this much without waiting for it, and has not changed it back.
    pub changed_by: Option<i64>,
    /// What it does now.
    pub now: Instead,
    /// Threads that took of the same word before, such as units of a semaphore, and have not given back either.
    pub others: Vec<Threads>,
}

/// What threads do instead of what others wait for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Instead {
    Ended,
    /// Wait at this named barrier.
    Barrier(u32),
    /// Wait at the barrier of the cluster.
    ClusterBarrier,
    /// Wait for these lanes of their warp.
    Lanes(LaneMask),
    /// Poll this word.
    Spin(Word),
    /// Wait in this lock's queue.
    Queue(Word),
    /// Poll this mbarrier.
    Mbarrier(Word),
    Run(Place),
}

/// A word in memory, by the name of its buffer or variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word {
    /// Empty if the word is in no named buffer or variable.
    pub name: String,
    /// The byte offset in it, or the address.
    pub offset: u64,
    /// Whether it is in shared memory.
    pub shared: bool,
}

fn explain<const N: usize>(scene: &Scene<'_, N>, reason: HangReason, cycles: u64) -> Hang {
    let mut nodes = scene.nodes();
    if reason == HangReason::NoWayOut {
        let out = scene.kernel().ways_out();
        nodes.all.iter_mut().filter(|node| !out[node.pc.index()]).for_each(|node| node.doing = Doing::Loop);
    }
    let proof = reason.is_proof();
    // The functional model repeats itself with all of memory: values may change in between.
    let circle = scene.ctas.first().and_then(|seen| seen.circle);
    let changes = circle.is_some_and(|circle| circle.written.changing().next().is_some());
    let is_undone = matches!(reason, HangReason::Undone(_)) || reason == HangReason::Repeats && changes;
    let is_endless = reason == HangReason::NoWayOut;
    let livelock = if proof || is_undone || is_endless { None } else { livelock::find(scene, &nodes) };
    let cause = match livelock {
        _ if is_undone => Some(cause::Cause { kind: HangKind::Livelock, nodes: Vec::new() }),
        _ if is_endless => {
            let endless = nodes.all.iter().position(|node| node.doing == Doing::Loop);
            endless.map(|node| cause::Cause { kind: HangKind::Endless, nodes: vec![node] })
        }
        Some(_) => Some(cause::Cause { kind: HangKind::Livelock, nodes: Vec::new() }),
        None => cause::find(scene, &nodes, proof),
    };
    // While locks are taken and released, who waits for whom changes all the time.
    let moves = !proof && scene.timed.as_ref().is_some_and(|timed| timed.pace.taken > 0);
    // A launch that was stopped while memory changes, or while threads compute, is alive: what they wait for may come
    // the next moment.
    let is_quiet =
        matches!(reason, HangReason::Quiet(_)) || scene.timed.as_ref().is_some_and(|timed| timed.is_quiet);
    let was_stopped = matches!(reason, HangReason::CycleLimit(_) | HangReason::Interrupted);
    let is_alive = !proof && (!is_quiet || was_stopped && nodes.all.iter().any(|node| node.changes));
    let polls = |cause: &cause::Cause| cause.nodes.iter().any(|&at| nodes.all[at].poll().is_some());
    let holds = |cause: &cause::Cause| match cause.kind {
        HangKind::SimdDeadlock => !moves,
        // Those who have not come to the barrier may poll a word that changes the next moment.
        HangKind::Barrier => !is_alive || !polls(cause),
        HangKind::LockCycle => !moves && !is_alive,
        HangKind::WaitCycle | HangKind::Stale | HangKind::LostToken | HangKind::NotResident => !is_alive,
        _ => true,
    };
    let mut hang = rows::hang(scene, &nodes, cause.filter(holds), reason, cycles);
    if is_undone {
        (hang.undone, hang.kept) = (undone::words(scene, &nodes), undone::kept_words(scene, &nodes));
        hang.help = undone::help();
    }
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
