//! Functions that experiments run where a workload with its plain report is not enough. One file each.
//!
//! They are part of what a kept result depends on: a change in this folder makes every kept run stale. What judges
//! results belongs to `experiments/`, which can change freely.

pub mod lock_code;
pub mod lock_hangs;
pub mod no_yield;
