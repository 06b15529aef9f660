//! A launch as both models see it: kernel, shape, parameters, limits.

use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, MutexGuard};

use serde::Serialize;
use warploom_isa::Kernel;

use crate::chip::Chip;
use crate::occupancy::{LocalLimit, Occupancy};
use crate::races::Races;
use crate::texture::Textures;

/// Everything about a launch that does not change while it runs.
pub struct Launch<'a> {
    pub chip: &'a Chip,
    pub kernel: &'a Kernel,
    /// The module's constant bank.
    pub constants: &'a [u8],
    /// The kernel's parameter buffer.
    pub params: &'a [u8],
    pub shape: Shape,
    pub occupancy: Occupancy,
    pub limits: &'a Limits,
    /// Whether reads of never-written memory are reported.
    pub check_uninitialised: bool,
    /// Looks for races, if that is asked for.
    pub races: Option<&'a Mutex<Races>>,
    /// Local memory that a thread can use.
    pub local_limit: LocalLimit,
    /// `%gridid`.
    pub grid_id: u64,
    /// The number of its first CTA: CTAs of kernels that run together have different numbers. 0 in a launch alone.
    pub first_cta: u64,
    /// Device memory through which the CTAs of a cooperative launch synchronize; 0 in other launches.
    pub workspace: u64,
    /// CTAs have a place in a cluster, if only in one of their own: the launch or the kernel uses clusters.
    pub clusters: bool,
    /// Textures, surfaces and samplers that handles name.
    pub textures: &'a Textures,
}

impl Launch<'_> {
    /// The detector of races, if any.
    #[inline(always)]
    pub fn races(&self) -> Option<MutexGuard<'_, Races>> {
        self.races.map(|races| races.lock().expect("whoever holds it does not panic"))
    }

    /// The coordinates in the grid of the CTA with this number.
    pub fn cta(&self, number: u64) -> [u32; 3] {
        self.shape.cta(number - self.first_cta)
    }

    /// CTAs that are resident at once, if the grid has as many.
    pub fn wave(&self) -> u64 {
        self.occupancy.wave(self.chip)
    }

    /// Lock bits per SM if the kernel uses any; otherwise 0.
    pub fn lock_bits(&self) -> u32 {
        if self.kernel.first_lock().is_some() { self.chip.lock.bits } else { 0 }
    }
}

/// Grid and block of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Shape {
    /// CTAs in each dimension.
    pub grid: [u32; 3],
    /// Threads of a CTA in each dimension.
    pub block: [u32; 3],
    /// Shared memory per CTA in addition to what the kernel declares.
    pub dynamic_shared_bytes: u32,
    /// CTAs of a cluster in each dimension, if the launch has clusters. They divide the grid.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster: Option<[u32; 3]>,
}

impl Shape {
    /// CTAs of the grid.
    pub fn ctas(&self) -> u64 {
        self.grid.iter().map(|&extent| u64::from(extent)).product()
    }

    /// The coordinates of the CTA with this number; `x` varies fastest.
    pub fn cta(&self, number: u64) -> [u32; 3] {
        let [x, y, _] = self.grid.map(u64::from);
        [(number % x) as u32, (number / x % y) as u32, (number / x / y) as u32]
    }

    /// CTAs of a cluster.
    pub fn cluster_ctas(&self) -> u32 {
        self.cluster.map_or(1, |cluster| cluster.iter().product())
    }

    /// Clusters in each dimension of the grid.
    pub fn clusters(&self) -> [u32; 3] {
        let cluster = self.cluster.unwrap_or([1; 3]);
        std::array::from_fn(|axis| self.grid[axis] / cluster[axis])
    }

    /// The coordinates of a CTA's cluster, and its own in the cluster.
    pub fn in_cluster(&self, cta: [u32; 3]) -> ([u32; 3], [u32; 3]) {
        let cluster = self.cluster.unwrap_or([1; 3]);
        (std::array::from_fn(|at| cta[at] / cluster[at]), std::array::from_fn(|at| cta[at] % cluster[at]))
    }

    /// The number of a CTA's cluster, and the CTA's rank in it.
    pub fn cluster_of(&self, number: u64) -> (u64, u32) {
        let ([x, y, z], [i, j, k]) = self.in_cluster(self.cta(number));
        let ([w, h, _], [a, b, _]) = (self.clusters().map(u64::from), self.cluster.unwrap_or([1; 3]));
        (u64::from(x) + w * (u64::from(y) + h * u64::from(z)), i + a * (j + b * k))
    }

    /// The number of the CTA of a rank in a cluster.
    pub fn member(&self, cluster: u64, rank: u32) -> u64 {
        let ([w, h, _], [a, b, c]) = (self.clusters().map(u64::from), self.cluster.unwrap_or([1; 3]));
        let place = [cluster % w, cluster / w % h, cluster / w / h];
        let inside = [rank % a, rank / a % b, rank / a / b];
        let at: [u64; 3] =
            std::array::from_fn(|axis| place[axis] * u64::from([a, b, c][axis]) + u64::from(inside[axis]));
        let [x, y, _] = self.grid.map(u64::from);
        at[0] + x * (at[1] + y * at[2])
    }

    /// The number of the CTA that starts as the `turn`th: those of a cluster start together.
    pub fn starting(&self, turn: u64) -> u64 {
        match u64::from(self.cluster_ctas()) {
            1 => turn,
            ctas => self.member(turn / ctas, (turn % ctas) as u32),
        }
    }
}

/// What can end a launch from outside, and where its progress is reported.
#[derive(Clone, Debug, Default)]
pub struct Limits {
    /// In the functional model a cycle is one warp instruction.
    pub max_cycles: Option<u64>,
    /// Set by the host to stop the launch.
    pub interrupt: Option<Arc<AtomicBool>>,
    pub progress: Option<Arc<Progress>>,
}

/// How far a launch has come, for a progress display on another host thread.
#[derive(Debug, Default)]
pub struct Progress {
    /// Warp instructions executed.
    pub instructions: AtomicU64,
    pub ctas_done: AtomicU64,
    /// CTAs that have started, those that are done included.
    pub ctas_started: AtomicU64,
    /// CTAs of the grid.
    pub ctas: AtomicU64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clusters_divide_the_grid() {
        let shape =
            Shape { grid: [6, 4, 1], block: [32, 1, 1], dynamic_shared_bytes: 0, cluster: Some([3, 2, 1]) };
        assert_eq!((shape.cluster_ctas(), shape.clusters()), (6, [2, 2, 1]));
        assert_eq!(shape.cta(11), [5, 1, 0]);
        assert_eq!(shape.cluster_of(11), (1, 5));
        let all: Vec<u64> = (0..24).map(|turn| shape.starting(turn)).collect();
        assert_eq!(all[..6], [0, 1, 2, 6, 7, 8]);
        for (turn, &number) in all.iter().enumerate() {
            assert_eq!(shape.cluster_of(number), (turn as u64 / 6, turn as u32 % 6));
        }
    }
}
