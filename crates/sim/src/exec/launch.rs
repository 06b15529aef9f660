//! A launch as both models see it: kernel, shape, parameters, limits.

use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, MutexGuard};

use serde::Serialize;
use warploom_isa::Kernel;

use crate::chip::Chip;
use crate::exec::occupancy::{LocalLimit, Occupancy};
use crate::exec::races::Races;

/// Everything about a launch that does not change while it runs.
pub(crate) struct Launch<'a> {
    pub(crate) chip: &'a Chip,
    pub(crate) kernel: &'a Kernel,
    /// The module's constant bank.
    pub(crate) constants: &'a [u8],
    /// The kernel's parameter buffer.
    pub(crate) params: &'a [u8],
    pub(crate) shape: Shape,
    pub(crate) occupancy: Occupancy,
    pub(crate) limits: &'a Limits,
    /// Whether reads of never-written memory are reported.
    pub(crate) check_uninitialised: bool,
    /// Looks for races, if that is asked for.
    pub(crate) races: Option<&'a Mutex<Races>>,
    /// Local memory that a thread can use.
    pub(crate) local_limit: LocalLimit,
    /// `%gridid`.
    pub(crate) grid_id: u64,
}

impl Launch<'_> {
    /// The detector of races, if any.
    #[inline(always)]
    pub(crate) fn races(&self) -> Option<MutexGuard<'_, Races>> {
        self.races.map(|races| races.lock().expect("whoever holds it does not panic"))
    }

    /// Lock bits per SM if the kernel uses any; otherwise 0.
    pub(crate) fn lock_bits(&self) -> u32 {
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
