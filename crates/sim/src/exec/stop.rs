//! Why a run stops before its kernel has ended.

use crate::exec::fault::Fault;

/// Why a machine stopped early.
#[derive(Debug)]
pub(crate) enum Stop {
    Fault(Box<Fault>),
    Hang(HangReason),
    /// Firmware did something wrong, or gave up; in its own words.
    Firmware(String),
    /// The user asked for it.
    Interrupted,
}

/// Why a launch is considered hanging.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HangReason {
    /// Every warp waits; none can ever go on.
    Blocked,
    /// Every warp that runs repeats itself, and nothing it reads can change.
    Repeats,
    /// No value has changed for so many cycles: a suspicion.
    Quiet(u64),
    /// The limit on cycles was reached.
    CycleLimit(u64),
}

impl HangReason {
    /// Whether it is certain that the kernel never ends.
    pub fn is_proof(&self) -> bool {
        matches!(self, HangReason::Blocked | HangReason::Repeats)
    }
}
