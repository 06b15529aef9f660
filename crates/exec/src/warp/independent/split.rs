//! A split: lanes of a warp at one pc, in one activation.

use smallvec::SmallVec;
use warploom_isa::Pc;

use crate::kit::lane_mask::LaneMask;
use crate::warp::control::{Activation, Group, Wait};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Split {
    pub(super) pc: Pc,
    pub(super) mask: LaneMask,
    pub(super) wait: Option<Wait>,
    /// Sleeps (`nanosleep`) while others run.
    pub(super) asleep: bool,
    /// Activations from the kernel to the running function.
    pub(super) frames: SmallVec<[Activation; 1]>,
    /// Number of its last quantum; the split with the lowest starves most.
    pub(super) last_quantum: u32,
    /// Where it meets lanes that branches separated from it, the innermost last.
    pub(super) reconvergences: SmallVec<[Reconvergence; 2]>,
}

/// Where lanes separated by a branch meet again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reconvergence {
    pub(super) at: Pc,
    /// Number of activations at the branch.
    pub(super) depth: u32,
    pub(super) lanes: LaneMask,
}

/// What decides when a split runs, as one number: the lowest runs first. In it are whether the split is stopped,
/// whether it is early, how deep it is in calls, and its pc.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rank(u64);

impl Rank {
    /// A split of this rank or a higher one is stopped.
    pub(super) const STOPPED: Rank = Rank(1 << 63);
    /// The same, or is early.
    pub(super) const EARLY: Rank = Rank(1 << 62);
    const DEEPEST: u32 = (1 << 30) - 1;

    /// That of some split at `pc`.
    pub(super) fn at(pc: Pc) -> Rank {
        Rank(pc.0.into())
    }

    pub(super) fn pc(self) -> Pc {
        Pc(self.0 as u32)
    }

    pub(super) fn is_early(self) -> bool {
        self.0 & Rank::EARLY.0 != 0
    }
}

impl Split {
    pub(super) fn new(pc: Pc, mask: LaneMask, activation: Activation) -> Split {
        Split {
            pc,
            mask,
            wait: None,
            asleep: false,
            frames: SmallVec::from_buf([activation]),
            last_quantum: 0,
            reconvergences: SmallVec::new(),
        }
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.wait.is_some() || self.asleep
    }

    pub(super) fn depth(&self) -> u32 {
        self.frames.len() as u32
    }

    /// Whether it is at a reconvergence point that some lanes have not reached.
    pub(super) fn is_early(&self, live: LaneMask) -> bool {
        self.reconvergences.last().is_some_and(|m| self.is_at(m) && !(m.lanes & live & !self.mask).is_empty())
    }

    fn is_at(&self, point: &Reconvergence) -> bool {
        point.at == self.pc && point.depth == self.depth()
    }

    pub(super) fn rank(&self, live: LaneMask) -> Rank {
        let stopped = if self.is_stopped() { Rank::STOPPED.0 } else { 0 };
        let early = if self.is_early(live) { Rank::EARLY.0 } else { 0 };
        let depth = Rank::DEEPEST - self.depth();
        Rank(stopped | early | u64::from(depth) << 32 | u64::from(self.pc.0))
    }

    /// It was separated from others of its lanes, which it meets again at `at`.
    pub(super) fn part_until(&mut self, at: Pc) {
        let point = Reconvergence { at, depth: self.depth(), lanes: self.mask };
        // A loop that lanes leave one by one separates them again and again, but they meet only once.
        let known = self.reconvergences.last().is_some_and(|m| m.at == at && m.depth == point.depth);
        if !known {
            self.reconvergences.push(point);
        }
    }

    /// Some of its lanes, which go on at another pc.
    pub(super) fn part(&self, Group { pc, mask }: Group) -> Split {
        Split {
            pc,
            mask,
            wait: self.wait,
            asleep: self.asleep,
            frames: SmallVec::from_slice(&self.frames),
            last_quantum: self.last_quantum,
            reconvergences: SmallVec::from_slice(&self.reconvergences),
        }
    }

    /// Drops reconvergences that all lanes have reached. Returns its rank.
    #[inline]
    pub(super) fn settle(&mut self, live: LaneMask) -> Rank {
        while self.reconvergences.last().is_some_and(|m| {
            m.depth > self.depth() || self.is_at(m) && (m.lanes & live & !self.mask).is_empty()
        }) {
            self.reconvergences.pop();
        }
        self.rank(live)
    }

    /// Whether the two can run as one from now on.
    pub(super) fn merges_with(&self, other: &Split) -> bool {
        self.pc == other.pc && self.takes_lanes_of(other)
    }

    /// Whether lanes of another split, if they come to its pc, can run as one with it from then on.
    pub(super) fn takes_lanes_of(&self, other: &Split) -> bool {
        let same_place = self.frames == other.frames && self.asleep == other.asleep;
        let barrier = Some(Wait::Barrier);
        // Teams that wait for lanes of their own keep apart until others arrive.
        let apart = self.wait.is_some() && other.wait.is_some() && self.wait != other.wait;
        same_place && !apart && self.wait != barrier && other.wait != barrier
    }

    /// Takes in lanes of another split that have come to its pc.
    pub(super) fn merge(&mut self, lanes: LaneMask, other: &Split) {
        // A split that waited for lanes checks again with the lanes that arrived.
        self.wait = None;
        self.mask |= lanes;
        // A reconvergence that only one of them had is over, or was left by a jump that compilers do not make.
        let pairs = self.reconvergences.iter().zip(&other.reconvergences);
        let common = pairs.take_while(|(a, b)| a == b).count();
        self.reconvergences.truncate(common);
    }
}
