//! A launch as both models see it: kernel, shape, parameters, limits.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};

use serde::Serialize;
use warploom_isa::Kernel;

use crate::chip::Chip;
use crate::exec::occupancy::Occupancy;

/// A launch: everything that does not change while it runs.
pub(crate) struct Launch<'a> {
    /// The chip.
    pub chip: &'a Chip,
    /// The kernel.
    pub kernel: &'a Kernel,
    /// The module's constants.
    pub constants: &'a [u8],
    /// The kernel's parameters.
    pub params: &'a [u8],
    /// Grid and block.
    pub shape: Shape,
    /// What fits on an SM.
    pub occupancy: Occupancy,
    /// What ends it from outside.
    pub limits: &'a Limits,
    /// Whether reads of never-written memory are reported.
    pub check_uninitialised: bool,
    /// `%gridid`.
    pub grid_id: u64,
}

impl Launch<'_> {
    /// Lock bits of an SM, if the kernel uses any; otherwise 0.
    pub(crate) fn lock_bits(&self) -> u32 {
        if self.kernel.first_lock().is_some() { self.chip.lock.bits } else { 0 }
    }
}

/// The shape of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Shape {
    /// CTAs.
    pub grid: [u32; 3],
    /// Threads of a CTA.
    pub block: [u32; 3],
    /// Bytes of shared memory besides what the kernel declares.
    pub dynamic_shared_bytes: u32,
}

impl Shape {
    /// Where in the grid the CTA of a number is.
    pub fn cta(&self, number: u64) -> [u32; 3] {
        let [x, y, _] = self.grid.map(u64::from);
        [(number % x) as u32, (number / x % y) as u32, (number / x / y) as u32]
    }
}

/// What ends a launch from outside.
#[derive(Clone, Debug, Default)]
pub struct Limits {
    /// Cycles. (The functional model has one cycle a warp instruction.)
    pub max_cycles: Option<u64>,
    /// Becomes true when the user wants to stop.
    pub interrupt: Option<Arc<AtomicBool>>,
    /// Is told how far the launch has come.
    pub progress: Option<Arc<Progress>>,
}

/// How far a launch has come, for whoever watches from another thread.
#[derive(Debug, Default)]
pub struct Progress {
    /// Warp instructions executed.
    pub instructions: AtomicU64,
    /// CTAs that have ended.
    pub ctas_done: AtomicU64,
    /// CTAs of the grid.
    pub ctas: AtomicU64,
}
