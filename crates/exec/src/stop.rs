//! Why a launch is stopped before its kernel has ended.

use crate::fault::Fault;

/// Why a machine stopped early.
#[derive(Debug)]
pub enum Stop {
    Fault(Box<Fault>),
    Hang(HangReason),
    /// Firmware failed or gave up; the text is its own message.
    Firmware(String),
    Interrupted,
}

/// Why a launch counts as hanging.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HangReason {
    /// Every warp waits, and none can ever continue.
    Blocked,
    /// Every running warp came back to an earlier state, and nothing that it reads can change.
    Repeats,
    /// No branch leads from where threads are to the kernel's end, and for long no other thread has ended.
    NoWayOut,
    /// No value has changed for this many cycles: a suspicion.
    Quiet(u64),
    /// For this many cycles no warp has ended, and only values that words had before were written: a suspicion.
    Undone(u64),
    CycleLimit(u64),
    /// The host stopped it, and nothing is known about whether it would have ended.
    Interrupted,
}

impl HangReason {
    /// Whether it is certain that no thread will ever do anything else.
    pub fn is_proof(&self) -> bool {
        matches!(self, HangReason::Blocked | HangReason::Repeats)
    }
}
