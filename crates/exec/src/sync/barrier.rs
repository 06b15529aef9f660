//! Named barriers: each counts arriving warps and releases all waiting ones together.
//!
//! Counts are given in threads but kept in whole warps, as in hardware: a warp has arrived when all its live lanes
//! have.

use smallvec::SmallVec;

use crate::kit::lane_mask::LaneMask;

/// A path of a warp at a barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiter {
    /// Number in the CTA.
    pub warp: u32,
    pub mask: LaneMask,
}

/// A use of a barrier that the hardware does not define.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Misuse {
    #[error("barrier {id} does not exist: a CTA has barriers 0 to {last}", last = count - 1)]
    NoSuchBarrier { id: u32, count: u32 },
    #[error(
        "barrier {id} is given {threads} threads, but the count must be a multiple of the warp size {lanes}, \
         and not 0"
    )]
    NotWholeWarps { id: u32, threads: u32, lanes: u32 },
    /// Two different counts in one phase.
    #[error("barrier {id} is given {threads} threads, but {before} by a warp that already arrived")]
    CountChanged { id: u32, threads: u32, before: u32 },
    #[error("more warps arrive at barrier {id} than its count of {threads} threads allows")]
    TooMany { id: u32, threads: u32 },
    /// The same lanes arrive twice in a phase (`bar.arrive` does not wait for its end).
    #[error("warp {warp} arrives twice in one phase of barrier {id}, which still waits for others")]
    Twice { id: u32, warp: u32 },
}

/// The arrival of a path at a barrier.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    pub id: u32,
    /// Threads that the barrier counts; `None`: all of the CTA.
    pub threads: Option<u32>,
    /// `bar.sync` and `bar.red` wait, `bar.arrive` does not.
    pub waits: bool,
    /// Lanes whose predicate is true, for `bar.red`.
    pub votes: LaneMask,
    pub path: Waiter,
    /// Lanes that must arrive before the warp counts as arrived.
    pub warp_lanes: LaneMask,
}

/// The end of a phase: the released paths, and the results of `bar.red`.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Release {
    pub id: u32,
    /// It waited for a count of threads, not for all that had not ended.
    pub counted: bool,
    pub waiters: SmallVec<[Waiter; 8]>,
    /// Number of threads whose predicate was true.
    pub popc: u32,
    /// Whether all predicates were true.
    pub all: bool,
}

/// One barrier. A phase ends when the `arrived` warps make up the expected threads; the count then starts again.
#[derive(Clone, Debug, Default, PartialEq)]
struct Barrier {
    expected: Option<u32>,
    arrived: u32,
    /// The warps that `arrived` counts, one bit each.
    came: u64,
    /// Warps of which only some lanes have arrived.
    partial: SmallVec<[Waiter; 4]>,
    waiters: SmallVec<[Waiter; 8]>,
    /// Lanes whose predicate was true, and all lanes that arrived.
    votes: u32,
    voters: u32,
}

/// The barriers of a CTA.
#[derive(Clone, Debug)]
pub struct Barriers {
    /// Up to the last one that was used: most CTAs use one or none, and all of them are some kilobytes.
    barriers: Vec<Barrier>,
    count: u32,
    lanes: u32,
}

/// Barriers that were never used are as those whose phase has ended.
impl PartialEq for Barriers {
    fn eq(&self, other: &Barriers) -> bool {
        let used = self.barriers.len().max(other.barriers.len());
        let same = |at: usize| match (self.barriers.get(at), other.barriers.get(at)) {
            (Some(one), Some(other)) => one == other,
            (one, other) => one.or(other).is_none_or(|barrier| *barrier == Barrier::default()),
        };
        (self.count, self.lanes) == (other.count, other.lanes) && (0..used).all(same)
    }
}

impl Barriers {
    /// `count` barriers for warps of `lanes` lanes.
    pub fn new(count: u32, lanes: u32) -> Self {
        Barriers { barriers: Vec::new(), count, lanes }
    }

    /// Whether a warp, or a part of one, has arrived at a barrier whose phase has not ended.
    pub fn is_open(&self, id: u32) -> bool {
        self.barriers.get(id as usize).is_some_and(|b| b.arrived > 0 || !b.partial.is_empty())
    }

    /// A path arrives. `live_warps` of the CTA have not ended. Returns the release if this arrival ends the phase.
    pub fn arrive(&mut self, arrival: Arrival, live_warps: u32) -> Result<Option<Release>, Misuse> {
        let Arrival { id, threads, waits, votes, path, warp_lanes } = arrival;
        let Barriers { ref mut barriers, count, lanes } = *self;
        if id >= count {
            return Err(Misuse::NoSuchBarrier { id, count });
        }
        if barriers.len() <= id as usize {
            barriers.resize(id as usize + 1, Barrier::default());
        }
        let barrier = &mut barriers[id as usize];
        if let Some(threads) = threads {
            if threads == 0 || threads % lanes != 0 {
                return Err(Misuse::NotWholeWarps { id, threads, lanes });
            }
            match barrier.expected.replace(threads) {
                Some(before) if before != threads => {
                    return Err(Misuse::CountChanged { id, threads, before });
                }
                _ => {}
            }
        }
        if let Some(known) = barrier.partial.iter_mut().find(|p| p.warp == path.warp) {
            if !(known.mask & path.mask).is_empty() {
                return Err(Misuse::Twice { id, warp: path.warp });
            }
            known.mask |= path.mask;
        } else {
            barrier.partial.push(path);
        }
        barrier.voters += path.mask.count();
        barrier.votes += (votes & path.mask).count();
        if waits {
            barrier.waiters.push(path);
        }
        barrier.settle_warp(path.warp, warp_lanes);
        let expected = barrier.expected.unwrap_or(live_warps * lanes);
        if barrier.arrived * lanes > expected {
            return Err(Misuse::TooMany { id, threads: expected });
        }
        Ok(barrier.complete(id, expected, lanes))
    }

    /// Lanes of `warp` have ended and `warp_lanes` remain: barriers that waited for the ended ones may be complete now.
    #[inline]
    pub fn lanes_ended(
        &mut self,
        warp: u32,
        warp_lanes: LaneMask,
        live_warps: u32,
    ) -> SmallVec<[Release; 1]> {
        let lanes = self.lanes;
        self.barriers
            .iter_mut()
            .zip(0..)
            // Mostly nobody is at any.
            .filter(|(barrier, _)| barrier.arrived > 0 || !barrier.partial.is_empty())
            .filter_map(|(barrier, id)| {
                barrier.settle_warp(warp, warp_lanes);
                let expected = barrier.expected.unwrap_or(live_warps * lanes);
                (barrier.arrived > 0).then(|| barrier.complete(id, expected, lanes)).flatten()
            })
            .collect()
    }

    /// For messages: how many threads have arrived at barrier `id`, and how many it expects.
    pub fn progress(&self, id: u32, live_warps: u32) -> (u32, u32) {
        let live = live_warps * self.lanes;
        let Some(barrier) = self.barriers.get(id as usize) else { return (0, live) };
        let partly = barrier.partial.iter().map(|p| p.mask.count()).sum::<u32>();
        (barrier.arrived * self.lanes + partly, barrier.expected.unwrap_or(live))
    }

    /// For messages: whether barrier `id` was given a count of threads.
    pub fn is_counted(&self, id: u32) -> bool {
        self.barriers.get(id as usize).is_some_and(|barrier| barrier.expected.is_some())
    }

    /// For messages: the lanes of a warp that have arrived at barrier `id` in this phase.
    pub fn arrived_lanes(&self, id: u32, warp: u32) -> LaneMask {
        let Some(barrier) = self.barriers.get(id as usize) else { return LaneMask::NONE };
        if barrier.came >> warp & 1 == 1 {
            return LaneMask(u64::MAX);
        }
        barrier.partial.iter().find(|p| p.warp == warp).map_or(LaneMask::NONE, |p| p.mask)
    }

    /// For messages: the barrier at which some of a warp's `lanes` wait.
    pub fn waiting_at(&self, warp: u32, lanes: LaneMask) -> Option<u32> {
        let waits = |w: &Waiter| w.warp == warp && !(w.mask & lanes).is_empty();
        self.barriers.iter().position(|b| b.waiters.iter().any(waits)).map(|id| id as u32)
    }
}

impl Barrier {
    /// Counts the warp as arrived if all its lanes have.
    fn settle_warp(&mut self, warp: u32, warp_lanes: LaneMask) {
        if let Some(at) =
            self.partial.iter().position(|p| p.warp == warp && (warp_lanes & !p.mask).is_empty())
        {
            self.partial.remove(at);
            self.arrived += 1;
            self.came |= 1 << warp;
        }
    }

    fn complete(&mut self, id: u32, expected: u32, lanes: u32) -> Option<Release> {
        if self.arrived * lanes < expected {
            return None;
        }
        let phase = std::mem::take(self);
        let counted = phase.expected.is_some();
        let (popc, all) = (phase.votes, phase.votes == phase.voters);
        Some(Release { id, counted, waiters: phase.waiters, popc, all })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrival(warp: u32, threads: Option<u32>, waits: bool) -> Arrival {
        let path = Waiter { warp, mask: LaneMask(u32::MAX as u64) };
        Arrival { id: 1, threads, waits, votes: LaneMask(0b11), path, warp_lanes: LaneMask(u32::MAX as u64) }
    }

    #[test]
    fn the_last_warp_releases_all() {
        let mut barriers = Barriers::new(16, 32);
        assert_eq!(barriers.arrive(arrival(0, None, true), 2), Ok(None));
        assert_eq!(barriers.progress(1, 2), (32, 64));
        assert_eq!(barriers.waiting_at(0, LaneMask(1)), Some(1));
        assert_eq!(
            (barriers.arrived_lanes(1, 0), barriers.arrived_lanes(1, 1)),
            (LaneMask(u64::MAX), LaneMask::NONE)
        );
        let release = barriers.arrive(arrival(1, None, true), 2).unwrap().unwrap();
        assert_eq!(release.waiters.len(), 2);
        assert_eq!((release.popc, release.all), (4, false));
        assert_eq!(barriers.progress(1, 2), (0, 64));
    }

    #[test]
    fn a_producer_arrives_without_waiting() {
        let mut barriers = Barriers::new(16, 32);
        assert_eq!(barriers.arrive(arrival(0, Some(64), false), 4), Ok(None));
        let release = barriers.arrive(arrival(3, Some(64), true), 4).unwrap().unwrap();
        assert_eq!(release.waiters.as_slice(), [Waiter { warp: 3, mask: LaneMask(u32::MAX as u64) }]);
    }

    #[test]
    fn a_warp_arrives_when_its_last_lane_does() {
        let mut barriers = Barriers::new(16, 32);
        let half = Arrival { path: Waiter { warp: 0, mask: LaneMask(0xffff) }, ..arrival(0, None, true) };
        assert_eq!(barriers.arrive(half, 1), Ok(None));
        assert_eq!(barriers.arrive(half, 1), Err(Misuse::Twice { id: 1, warp: 0 }));
        // The other half ends instead of arriving.
        let released = barriers.lanes_ended(0, LaneMask(0xffff), 1);
        assert_eq!(released[0].waiters.len(), 1);
    }

    #[test]
    fn misuse_is_told() {
        let mut barriers = Barriers::new(16, 32);
        let text = |r: Result<Option<Release>, Misuse>| r.unwrap_err().to_string();
        assert_eq!(
            text(barriers.arrive(Arrival { id: 16, ..arrival(0, None, true) }, 1)),
            "barrier 16 does not exist: a CTA has barriers 0 to 15"
        );
        assert_eq!(
            text(barriers.arrive(arrival(0, Some(33), true), 4)),
            "barrier 1 is given 33 threads, but the count must be a multiple of the warp size 32, and not 0"
        );
        barriers.arrive(arrival(0, Some(64), true), 4).unwrap();
        assert_eq!(
            text(barriers.arrive(arrival(1, Some(96), true), 4)),
            "barrier 1 is given 96 threads, but 64 by a warp that already arrived"
        );
    }
}
