//! The paper's four programs, and the inputs of the experiments.

use crate::repro::{Run, Scale};

/// In the order of the paper's tables.
pub(super) const PROGRAMS: [&str; 4] = ["Fibonacci", "Queens", "Sort", "Strassen"];

/// Rows of the board that are spawned in both forms: the number of tasks at the paper's 13 queens is then nearest to its.
const SPAWNED_ROWS: u32 = 5;

/// A program on the apu with its 8 compute units: with the paper's input, or with a small one.
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

/// A run in which one wavefront is under way at a time: narrow channels, and the largest input for which nobody yields (of
/// Queens, the largest board of which two rows are spawned).
pub(super) fn one_by_one(name: &str) -> Run {
    let run = match name {
        "Fibonacci" => Run::work("fibonacci").with("n", 11u32),
        "Queens" => Run::work("queens").with("n", 9u32).with("serial", 7u32),
        "Sort" => Run::work("sort").with("count", 3_000u32),
        _ => Run::work("strassen").with("size", 64u32),
    };
    run.with("width", 64u32).chip("apu").set("sm.count", 1)
}

/// On so many compute units.
pub(super) fn on(run: Run, cus: u32) -> Run {
    if cus == 8 { run } else { run.set("sm.count", cus) }
}
