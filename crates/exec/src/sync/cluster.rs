//! Thread-block clusters: a CTA's place in its cluster, the cluster's barrier, and what CTAs do to each other.
//!
//! Every CTA counts its own arrivals. Once all its threads have arrived it says so, and whoever runs the CTAs ends the
//! phase in all of them when the last one has. Threads that have ended count as arrived.

use smallvec::SmallVec;
use warploom_isa::{AtomOp, MbarrierOp, Space, Ty};

use crate::bulk::Job;
use crate::fault::{AccessKind, FaultKind};
use crate::kit::lane_mask::LaneMask;
use crate::lanes::{AtomicUnit, atomic};
use crate::launch::Shape;
use crate::memory::reach::past_end;
use crate::memory::shared::Shared;
use crate::sync::barrier::Waiter;
use crate::sync::mbarrier;

/// A CTA's place in its cluster, and its part of the cluster's barrier.
#[derive(Clone, Debug)]
pub struct Membership {
    /// The cluster's number in the grid of clusters.
    pub cluster: u64,
    /// The CTA's number in the cluster.
    pub rank: u32,
    /// CTAs of the cluster.
    pub size: u32,
    pub barrier: ClusterBarrier,
}

impl Membership {
    /// The membership of CTA `number` of the grid.
    pub fn new(shape: &Shape, number: u64, warps: u32) -> Membership {
        let (cluster, rank) = shape.cluster_of(number);
        Membership { cluster, rank, size: shape.cluster_ctas(), barrier: ClusterBarrier::new(warps) }
    }
}

/// A use of the cluster's barrier that PTX does not define.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClusterMisuse {
    #[error(
        "the thread arrives at the barrier of its cluster again without having waited for the last phase"
    )]
    ArrivesTwice,
    #[error("the thread waits at the barrier of its cluster without having arrived")]
    WaitsFirst,
}

/// The part of a cluster's barrier that a CTA keeps.
#[derive(Clone, Debug, PartialEq)]
pub struct ClusterBarrier {
    warps: Vec<WarpPart>,
    waiters: SmallVec<[Waiter; 8]>,
    /// All threads of the CTA have arrived, and the cluster has been told.
    told: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct WarpPart {
    /// Lanes that have arrived in this phase.
    arrived: LaneMask,
    /// Lanes whose phase has ended, and that have not waited for it yet.
    passed: LaneMask,
}

impl ClusterBarrier {
    fn new(warps: u32) -> ClusterBarrier {
        let warps = vec![WarpPart::default(); warps as usize];
        ClusterBarrier { warps, waiters: SmallVec::new(), told: false }
    }

    /// A path arrives. The error has the lane that may not.
    pub fn arrive(&mut self, path: Waiter) -> Result<(), (usize, ClusterMisuse)> {
        let part = &mut self.warps[path.warp as usize];
        let again = (part.arrived | part.passed) & path.mask;
        if !again.is_empty() {
            return Err((again.lowest(), ClusterMisuse::ArrivesTwice));
        }
        part.arrived |= path.mask;
        Ok(())
    }

    /// A path waits. Returns whether it has to: not if the phase in which it arrived has ended.
    pub fn wait(&mut self, path: Waiter) -> Result<bool, (usize, ClusterMisuse)> {
        let part = &mut self.warps[path.warp as usize];
        let strangers = path.mask & !(part.arrived | part.passed);
        if !strangers.is_empty() {
            return Err((strangers.lowest(), ClusterMisuse::WaitsFirst));
        }
        let must_wait = !(path.mask & part.arrived).is_empty();
        part.passed &= !path.mask;
        if must_wait {
            self.waiters.push(path);
        }
        Ok(must_wait)
    }

    /// Whether all threads have now arrived and the cluster is to be told; it is told once in a phase. `live` has the
    /// lanes of each warp that have not ended.
    pub fn completes(&mut self, live: impl Iterator<Item = LaneMask>) -> bool {
        let arrived = self.warps.iter().zip(live).all(|(part, live)| (live & !part.arrived).is_empty());
        arrived && !std::mem::replace(&mut self.told, true)
    }

    /// Whether all threads of the CTA have arrived in this phase.
    pub fn has_arrived(&self) -> bool {
        self.told
    }

    /// The phase ends: who waited goes on.
    pub fn end_phase(&mut self) -> SmallVec<[Waiter; 8]> {
        self.told = false;
        let waiters = std::mem::take(&mut self.waiters);
        for (warp, part) in self.warps.iter_mut().enumerate() {
            let waited = waiters.iter().filter(|waiter| waiter.warp as usize == warp);
            let waited = waited.fold(LaneMask::NONE, |all, waiter| all | waiter.mask);
            part.passed |= part.arrived & !waited;
            part.arrived = LaneMask::NONE;
        }
        waiters
    }

    /// For messages: the lanes of a warp that have arrived in this phase.
    pub fn arrived_lanes(&self, warp: u32) -> LaneMask {
        self.warps[warp as usize].arrived
    }

    /// For messages: whether lanes of a warp wait here.
    pub fn is_waiting(&self, warp: u32, lanes: LaneMask) -> bool {
        self.waiters.iter().any(|w| w.warp == warp && !(w.mask & lanes).is_empty())
    }
}

/// Bytes of `st.async` or `red.async`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AsyncBytes {
    /// Where they go.
    pub address: u64,
    pub data: SmallVec<[u8; 16]>,
    /// Instead of being stored, they change a word.
    pub op: Option<(AtomOp, Ty)>,
    /// The mbarrier at which they count.
    pub mbarrier: u64,
}

impl AsyncBytes {
    /// They arrive.
    pub fn arrive(&self, shared: &mut Shared) -> Result<(), FaultKind> {
        let (address, bytes) = (self.address, self.data.len());
        let access = if self.op.is_some() { AccessKind::Atomic } else { AccessKind::Store };
        let (space, size) = (Space::Shared, bytes as u32);
        if !address.is_multiple_of(bytes as u64) {
            return Err(FaultKind::Misaligned { access, space, address, bytes: size });
        }
        let length = shared.bytes.len() as u64;
        let at = usize::try_from(address).unwrap_or(usize::MAX);
        let Some(target) = shared.bytes.get_mut(at..).and_then(|rest| rest.get_mut(..bytes)) else {
            let place = past_end(address, length, "the CTA's shared memory");
            return Err(FaultKind::OutOfBounds { access, space, address, bytes: size, place });
        };
        match self.op {
            None => target.copy_from_slice(&self.data),
            Some((op, ty)) => {
                let word =
                    |bytes: &[u8]| bytes.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte));
                let new = atomic(AtomicUnit::Sm, op, ty, [word(target), word(&self.data), 0]);
                target.copy_from_slice(&new.to_le_bytes()[..bytes]);
            }
        }
        if let Some(written) = &mut shared.written {
            written.insert(at, bytes);
        }
        remote_mbarrier(shared, (MbarrierOp::CompleteTx, self.mbarrier, bytes as u64))
    }
}

/// An operation of another CTA on an mbarrier of this one.
pub fn remote_mbarrier(
    shared: &mut Shared,
    (op, address, value): (MbarrierOp, u64, u64),
) -> Result<(), FaultKind> {
    let word = shared.word64_mut(address)?;
    let old = u64::from_le_bytes(*word);
    let (new, _) =
        mbarrier::perform(op, old, value).map_err(|problem| FaultKind::Mbarrier { address, problem })?;
    *word = new.to_le_bytes();
    Ok(())
}

/// What an instruction does beyond its CTA. Whoever runs the CTAs carries it out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Remote {
    /// All threads of the CTA have arrived at the barrier of its cluster.
    Arrived,
    /// Lanes of the access that has just begun are for other CTAs.
    Access,
    /// Bytes for the shared memory of the CTA of this rank, which count at one of its mbarriers when they are there.
    Bytes { rank: u32, bytes: AsyncBytes, lane: usize },
    /// A bulk copy, which may also stay in the CTA.
    Bulk(Box<Job>),
    /// An operation on an mbarrier of the CTA of this rank, for a lane of the running warp.
    Mbarrier { rank: u32, address: u64, op: MbarrierOp, value: u64, lane: usize },
}

#[cfg(test)]
mod tests {
    use super::*;

    const HALF: LaneMask = LaneMask(0xffff);
    const ALL: LaneMask = LaneMask(0xffff_ffff);

    fn path(warp: u32, mask: LaneMask) -> Waiter {
        Waiter { warp, mask }
    }

    #[test]
    fn a_cta_has_arrived_when_all_its_live_threads_have() {
        let mut barrier = ClusterBarrier::new(2);
        barrier.arrive(path(0, ALL)).unwrap();
        barrier.arrive(path(1, HALF)).unwrap();
        assert!(!barrier.completes([ALL, ALL].into_iter()));
        assert!(barrier.completes([ALL, HALF].into_iter()), "the other half has ended");
        assert!(!barrier.completes([ALL, HALF].into_iter()), "it is told once");
        assert_eq!(barrier.wait(path(0, ALL)), Ok(true));
        assert_eq!(barrier.end_phase().as_slice(), [path(0, ALL)]);
        // Warp 1 finds its phase ended, and may then arrive in the next one.
        assert_eq!(barrier.arrive(path(1, HALF)), Err((0, ClusterMisuse::ArrivesTwice)));
        assert_eq!(barrier.wait(path(1, HALF)), Ok(false));
        assert_eq!(barrier.arrive(path(1, HALF)), Ok(()));
    }

    #[test]
    fn who_waits_must_have_arrived() {
        let mut barrier = ClusterBarrier::new(1);
        assert_eq!(barrier.wait(path(0, ALL)), Err((0, ClusterMisuse::WaitsFirst)));
        barrier.arrive(path(0, HALF)).unwrap();
        assert_eq!(barrier.wait(path(0, ALL)), Err((16, ClusterMisuse::WaitsFirst)));
        assert_eq!(barrier.arrive(path(0, LaneMask(0x18000))), Err((15, ClusterMisuse::ArrivesTwice)));
    }
}
