//! What a launch did ([`Stats`]) and why it failed ([`LaunchError`]).

use std::sync::Arc;

use crate::exec::fault::Fault;
use crate::exec::occupancy::Unlaunchable;
use crate::exec::outside::OutsideLoad;
use crate::exec::races::Race;
use crate::exec::uninitialised::UninitialisedRead;
use crate::explain::hang::Hang;
use crate::explain::lock_warnings::LockWarning;
use crate::explain::profile::Profile;
use crate::explain::trace::Trace;
use crate::gpu::fast::Estimate;
use crate::time::machine::totals::TimedStats;

/// What a launch did.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stats {
    /// Instructions executed, counted once per warp.
    pub warp_instructions: u64,
    /// Instructions executed, counted once per active lane, whether its guard holds or not.
    pub thread_instructions: u64,
    pub ctas: u64,
    pub warps: u64,
    /// What the kernel printed, in the order of CTAs and threads.
    pub output: String,
    /// Reads of memory that was never written, one entry per instruction; empty unless the [`Gpu`](crate::Gpu) checks.
    pub uninitialised: Vec<UninitialisedRead>,
    /// Accesses that race, one entry per pair of instructions; empty unless the [`Gpu`](crate::Gpu) checks.
    pub races: Vec<Race>,
    /// Suspicious uses of lock bits.
    pub lock_warnings: Vec<LockWarning>,
    /// Loads outside of all allocations that read zeros, one entry per instruction; empty unless the
    /// [`Gpu`](crate::Gpu) lets them pass.
    pub outside_loads: Vec<OutsideLoad>,
    /// The timed model's counters; `None` in the functional model.
    pub timed: Option<Box<TimedStats>>,
    /// In the fast model: which part of the launch `timed` is of, and the cycles of all of it.
    pub estimate: Option<Estimate>,
    /// The timeline, if it was asked for ([`Timing::trace`](crate::Timing::trace)).
    pub trace: Option<Trace>,
    /// Where the time went, if that was asked for ([`Timing::profile`](crate::Timing::profile)).
    pub profile: Option<Arc<Profile>>,
}

/// Why a launch failed. `stats` has what it did until then.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// It cannot run on this chip.
    #[error(transparent)]
    Unlaunchable(#[from] Unlaunchable),
    /// A thread did something undefined.
    #[error("{fault}")]
    Fault { fault: Box<Fault>, stats: Box<Stats> },
    /// It makes no progress, or it reached its limit of cycles.
    #[error("{hang}")]
    Hang { hang: Box<Hang>, stats: Box<Stats> },
    /// Firmware failed or gave up.
    #[error("{message}")]
    Firmware { message: String, stats: Box<Stats> },
    /// It ran together with a kernel that failed ([`Gpu::run_plan`](crate::Gpu::run_plan)), or was to follow it.
    #[error("ended because kernel `{kernel}`, beside it or before it, failed")]
    Beside { kernel: String, stats: Box<Stats> },
    /// The host stopped it ([`Limits::interrupt`](crate::Limits::interrupt)).
    #[error("stopped by the user after {} warp instructions", stats.warp_instructions)]
    Interrupted {
        /// What every warp did then.
        state: Box<Hang>,
        stats: Box<Stats>,
    },
}
