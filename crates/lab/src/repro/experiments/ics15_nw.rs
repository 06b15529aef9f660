//! Shared by the experiments with Needleman-Wunsch: the runs, and three readings of their time.

use crate::repro::{Failed, Results, Run};

/// A version of the workload on the paper's chip.
pub(super) fn run(version: &'static str, size: u32) -> Run {
    Run::work("nw").chip("gtx570").with("version", version).with("size", size)
}

/// The longest launch in microseconds.
pub(super) fn longest_us(results: &Results, run: &Run) -> Result<f64, Failed> {
    Ok(results.number(run, "longest_launch_s")? * 1e6)
}

/// All launches in microseconds, without the host's launch overhead.
pub(super) fn total_us(results: &Results, run: &Run) -> Result<f64, Failed> {
    Ok(results.number(run, "kernel_s")? * 1e6)
}

/// All launches in microseconds, with the host's launch overhead.
pub(super) fn total_with_overhead_us(results: &Results, run: &Run) -> Result<f64, Failed> {
    Ok(total_us(results, run)? + results.number(run, "launch_overhead_ns")? / 1e3)
}
