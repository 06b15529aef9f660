//! Procedures: functions that runs execute where a workload's report is not enough. One file each.
//!
//! Kept results depend on them: a change in this folder makes every kept result stale. Code that judges results
//! belongs to `experiments/`, which can change freely.

pub(super) mod lock_code;
pub(super) mod lock_hangs;
pub(super) mod no_yield;
