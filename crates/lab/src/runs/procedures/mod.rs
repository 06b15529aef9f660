//! Procedures: functions that runs execute where a workload's report is not enough. One file each.
//!
//! Kept results depend on them: a change in this folder makes every kept result stale. Code that judges results
//! belongs to `experiments/`, which can change freely.

pub(crate) mod lock_code;
pub(crate) mod lock_hangs;
pub(crate) mod no_yield;

use super::Procedure;

/// All procedures: a process that executes runs finds them by name.
pub(crate) const PROCEDURES: &[&Procedure] =
    &[&lock_code::LOCK_CODE, &lock_hangs::LOCK_HANGS, &no_yield::NO_YIELD];
