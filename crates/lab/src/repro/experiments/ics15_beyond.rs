//! Beyond the paper: are lock bits what keeps tiny-locks from winning on large problems, as section 6 says?

use super::ics15_nw::{longest_us, run, total_us, total_with_overhead_us};
use crate::repro::{About, Experiment, Outcome, Results, Row, Run, Scale};

pub(super) struct Beyond;

/// Letters, and the number of SMs if fewer than the chip's. So the quick form, too, has five tiles per SM.
fn shape(scale: Scale) -> (u32, Option<u32>) {
    scale.pick((155, Some(1)), (1984, None))
}

fn of(scale: Scale, version: &'static str) -> Run {
    let (size, sms) = shape(scale);
    let run = run(version, size);
    match sms {
        Some(sms) => run.set("sm.count", sms),
        None => run,
    }
}

/// Tiny-locks on a chip with more lock bits, and with the threads and registers that the tiles then need. An SM of
/// the model has at most 64 warps.
fn with_bits(scale: Scale, bits: u32) -> Run {
    let run = of(scale, "tiny").set("lock.bits", bits);
    match bits {
        1024 => run,
        _ => run.set("sm.max_threads", 2048).set("sm.max_warps", 64).set("sm.registers", 65536),
    }
}

const BITS: [u32; 3] = [1024, 2048, 4096];

/// A run with its name in the rows.
type Named = (String, Run);

fn named(scale: Scale) -> Vec<Named> {
    let mut runs = vec![("data-parallel".to_string(), of(scale, "data-parallel"))];
    runs.extend(BITS.map(|bits| (format!("tiny, {bits} bits"), with_bits(scale, bits))));
    // A tile with 15 cells per side takes a quarter of the bits, so four fit the unchanged chip at once.
    runs.push(("tiny, tiles of 15".to_string(), of(scale, "tiny").with("tile", "15")));
    runs.push(("tiny, tiles of 15, 4096 bits".to_string(), with_bits(scale, 4096).with("tile", "15")));
    runs.push(("multi".to_string(), of(scale, "multi")));
    runs.push(("multi, 8 cells a thread".to_string(), of(scale, "multi").with("cells", "8")));
    runs.push(("grid, one launch".to_string(), of(scale, "grid")));
    runs
}

impl Experiment for Beyond {
    fn about(&self) -> About {
        About {
            id: "ics15-beyond",
            paper: "ics15",
            title: "Needleman-Wunsch with fewer lock bits a tile, with more bits, and in one launch",
            quick_s: 4,
            full_s: 800,
        }
    }

    fn runs(&self, scale: Scale) -> Vec<Run> {
        named(scale).into_iter().map(|(_, run)| run).collect()
    }

    fn evaluate(&self, results: &Results) -> Outcome {
        let scale = results.scale();
        let longest = |version| longest_us(results, &of(scale, version));
        let total = |version| total_us(results, &of(scale, version));
        let against = |ours: f64, theirs: f64| format!("{ours:.1} µs against {theirs:.1} µs");
        let multi = || {
            let (multi, parallel) = (longest("multi")?, longest("data-parallel")?);
            Ok((multi < parallel, against(multi, parallel)))
        };
        let grid = || {
            let (grid, parallel) = (total("grid")?, total("data-parallel")?);
            Ok((grid < parallel, against(grid, parallel)))
        };
        let (size, sms) = shape(scale);
        let mut outcome = Outcome::new()
            .row(Row::claim("longest launch, multi and data-parallel", "multi ahead", multi()))
            .row(Row::claim("all launches, grid and data-parallel", "grid ahead", grid()));
        for (name, run) in named(scale) {
            let row = |what: &str, measured| Row::new(format!("{name}: {what}"), "µs").measured(measured);
            outcome = outcome.rows([
                row("longest launch", longest_us(results, &run)),
                row("all launches", total_us(results, &run)),
                row("all, with what launching takes", total_with_overhead_us(results, &run)),
            ]);
        }
        let chip = sms.map_or("gtx570".to_string(), |sms| format!("gtx570 with {sms} SM"));
        outcome
            .note(format!("{size} × {size} letters on {chip}. Claims are this project's own: the paper has none."))
            .note(
                "With 2048 bits and room for 2048 threads two tiles of 1024 threads are on an SM at once, and \
                 take nearly as long as one after the other: waiting threads spin, and it is the issue slots \
                 that they compete for. 4096 bits change nothing more, as an SM of the model has 64 warps. \
                 `multi` has a lock bit for every 16 cells and lets the lanes of a warp run in step instead of \
                 one after the other, so it executes a seventh of the instructions.",
            )
    }
}
