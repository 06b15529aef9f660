//! A launch as both models see it: kernel, shape, parameters, limits.

use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, MutexGuard};

use serde::Serialize;
use warploom_isa::Kernel;

use crate::chip::Chip;
use crate::occupancy::{LocalLimit, Occupancy};
use crate::races::Races;

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
    /// Device memory through which the CTAs of a cooperative launch synchronize; 0 in other launches.
    pub workspace: u64,
}

impl Launch<'_> {
    /// The detector of races, if any.
    #[inline(always)]
    pub fn races(&self) -> Option<MutexGuard<'_, Races>> {
        self.races.map(|races| races.lock().expect("whoever holds it does not panic"))
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
}

impl Shape {
    /// The coordinates of the CTA with this number; `x` varies fastest.
    pub fn cta(&self, number: u64) -> [u32; 3] {
        let [x, y, _] = self.grid.map(u64::from);
        [(number % x) as u32, (number / x % y) as u32, (number / x / y) as u32]
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
    /// CTAs of the grid.
    pub ctas: AtomicU64,
}
