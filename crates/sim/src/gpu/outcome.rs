//! How a launch ended and what it did.

use crate::exec::fault::Fault;
use crate::exec::occupancy::Unlaunchable;
use crate::exec::uninitialised::UninitialisedRead;
use crate::explain::hang::Hang;
use crate::explain::lock_warnings::LockWarning;
use crate::explain::trace::Trace;
use crate::time::machine::totals::TimedStats;

/// What a launch did.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stats {
    /// Instructions executed by warps.
    pub warp_instructions: u64,
    /// The same, each counted once for every active lane, guarded off or not.
    pub thread_instructions: u64,
    /// CTAs run.
    pub ctas: u64,
    /// Warps run.
    pub warps: u64,
    /// What the kernel printed, by CTA and thread.
    pub output: String,
    /// Reads of memory that nobody wrote, one for each instruction, if they were asked for.
    pub uninitialised: Vec<UninitialisedRead>,
    /// What looks wrong with the use of lock bits.
    pub lock_warnings: Vec<LockWarning>,
    /// What the timed model adds.
    pub timed: Option<Box<TimedStats>>,
    /// What the warps did over time, if it was asked for ([`Timing::trace`](crate::Timing::trace)).
    pub trace: Option<Trace>,
}

/// Why a launch failed.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// It cannot run on this chip.
    #[error(transparent)]
    Unlaunchable(#[from] Unlaunchable),
    /// A thread did something wrong.
    #[error("{fault}")]
    Fault {
        /// What and where.
        fault: Box<Fault>,
        /// What happened until then.
        stats: Box<Stats>,
    },
    /// Nothing moves any more, or a limit was reached.
    #[error("{hang}")]
    Hang {
        /// Who waits for what.
        hang: Box<Hang>,
        /// What happened until then.
        stats: Box<Stats>,
    },
    /// Firmware did something wrong, or gave up.
    #[error("{message}")]
    Firmware {
        /// What.
        message: String,
        /// What happened until then.
        stats: Box<Stats>,
    },
    /// The user stopped it.
    #[error("stopped by the user after {} warp instructions", stats.warp_instructions)]
    Interrupted {
        /// What happened until then.
        stats: Box<Stats>,
    },
}
