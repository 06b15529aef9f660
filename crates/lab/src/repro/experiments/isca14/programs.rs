//! The paper's four programs with the inputs of the experiments.

use crate::repro::{Failed, Results, Run, Scale};

/// In the order of the paper's tables.
pub(super) const PROGRAMS: [&str; 4] = ["Fibonacci", "Queens", "Sort", "Strassen"];

/// Rows of the board that are spawned in both forms. For the paper's 13 queens this gives the number of wavefronts
/// nearest to the paper's.
const SPAWNED_ROWS: u32 = 5;

/// A program on the 8 compute units of the apu, with the paper's input or a small one.
pub(super) fn program(name: &str, scale: Scale) -> Run {
    let run = match name {
        "Fibonacci" => Run::work("fibonacci").with("n", scale.pick(16, 24)),
        "Queens" => {
            let n = scale.pick(8, 13);
            Run::work("queens").with("n", n).with("serial", n - SPAWNED_ROWS)
        }
        "Sort" => Run::work("sort").with("count", scale.pick(6_000, 1_000_000)),
        _ => Run::work("strassen").with("size", scale.pick(64, 512)),
    };
    run.chip("apu")
}

/// A program for sweeps of many runs: Strassen reads its tiles four numbers at a time. That is the same graph with the
/// same tasks, and a quarter of the instructions to simulate.
pub(super) fn swept(name: &str, scale: Scale) -> Run {
    let run = program(name, scale);
    if name == "Strassen" { run.with("reads", "vector") } else { run }
}

/// A run with one wavefront in flight at a time: narrow channels, and the largest input for which nobody yields (for
/// Queens, the largest board with two spawned rows).
pub(super) fn one_by_one(name: &str) -> Run {
    let run = match name {
        "Fibonacci" => Run::work("fibonacci").with("n", 11u32),
        "Queens" => Run::work("queens").with("n", 9u32).with("serial", 7u32),
        "Sort" => Run::work("sort").with("count", 3_000u32),
        _ => Run::work("strassen").with("size", 64u32),
    };
    run.with("width", 64u32).chip("apu").set("sm.count", 1)
}

/// Runs on so many compute units instead of the apu's 8.
pub(super) fn on(run: Run, cus: u32) -> Run {
    if cus == 8 { run } else { run.set("sm.count", cus) }
}

/// Cycles that a command takes in the runs of [`perturbed`], beside the chip's 22.
const LATENCIES: [u32; 2] = [23, 25];

/// The same run with commands that take a cycle more or less, which changes the order in which wavefronts start. That
/// alone changes the time of a run by some percent, Strassen's by 13. So where two runs are compared, their times are
/// means over these.
pub(super) fn perturbed(run: &Run) -> Vec<Run> {
    let others = LATENCIES.map(|cycles| run.clone().set("aggregator.command_latency_cycles", cycles));
    std::iter::once(run.clone()).chain(others).collect()
}

/// The mean of a figure over runs.
pub(super) fn mean(results: &Results, runs: &[Run], what: &str) -> Result<f64, Failed> {
    let sum = runs.iter().map(|run| results.number(run, what)).sum::<Result<f64, Failed>>()?;
    Ok(sum / runs.len() as f64)
}
