//! Messages between the aggregator and the SMs: commands to start CTAs and restart warps, and reports of their ends.

use std::sync::Arc;

use crate::exec::execute::Task;
use crate::kit::ids::AwayId;

/// A wavefront that yielded: its restart record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Yielded {
    /// The SM it was on and goes back to.
    pub cu: u32,
    /// The kernel's number in the run.
    pub kernel: u16,
    /// What it waits for: the operand of its `wl.yield`.
    pub resource: u64,
    /// Where its state lies in memory.
    pub saved_at: u64,
    pub(crate) away: AwayId,
    /// No wavefront of its CTA is in a slot.
    pub(crate) cta_left: bool,
}

/// From the aggregator to an SM.
#[derive(Clone, Debug)]
pub(crate) enum Command {
    /// Start a CTA of a task.
    Start {
        task: Arc<Task>,
        /// The CTA's number in the task.
        index: u32,
        /// The CTA's number in the run.
        number: u64,
    },
    /// Restart a wavefront that yielded.
    Restart(AwayId),
}

/// From an SM to the aggregator.
#[derive(Clone, Copy, Debug)]
pub(crate) enum News {
    /// A CTA of a kernel has ended.
    Ended { kernel: u16 },
    /// A wavefront has yielded; its slot is free.
    Yielded(Yielded),
}
