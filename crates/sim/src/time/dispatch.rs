//! Messages between the aggregator and the SMs: commands to start and restart, and what became of them.

use std::sync::Arc;

use crate::exec::execute::Task;

/// A wavefront that yielded: its restart record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Yielded {
    /// The SM it was on and goes back to.
    pub cu: u32,
    /// Its kernel's number in the run.
    pub kernel: u16,
    /// What it waits for: the operand of its `wl.yield`.
    pub resource: u64,
    /// Where its state lies in memory.
    pub saved_at: u64,
    /// The SM's number for it.
    pub(crate) ticket: u32,
    /// No wavefront of its CTA is in a slot.
    pub(crate) cta_left: bool,
}

/// What an SM is told.
#[derive(Clone, Debug)]
pub enum Command {
    /// To start a CTA.
    Start {
        /// Of this task.
        task: Arc<Task>,
        /// Its number in the task.
        index: u32,
        /// Its number in the run.
        number: u64,
    },
    /// To restart the wavefront of this number.
    Restart(u32),
}

/// What the aggregator is told.
#[derive(Clone, Copy, Debug)]
pub enum News {
    /// A CTA of a kernel has ended.
    Ended {
        /// The kernel's number.
        kernel: u16,
    },
    /// A wavefront has yielded; its slot is free.
    Yielded(Yielded),
}
