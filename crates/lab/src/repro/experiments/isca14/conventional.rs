//! Table 4: channels against conventional kernels.

use super::PAPER;
use super::programs::program;
use crate::repro::{About, Experiment, Failed, Outcome, Results, Row, Run, Scale};

pub(crate) struct Conventional;

/// Rows that the host fills: all but ten of 13, as the version distributed with GPGPU-Sim has it.
const FLAT_ROWS: u32 = 3;

fn flat(scale: Scale) -> Run {
    let n: u32 = scale.pick(8, 13);
    Run::work("queens_flat").with("n", n).with("placed", FLAT_ROWS).chip("apu")
}

fn tiled(scale: Scale) -> Run {
    Run::work("matmul").with("size", scale.pick(64u32, 512)).chip("apu")
}

/// Counts lines that are neither blank nor only a comment, on both sides. The header with the channel calls, which
/// the programs share, is not counted.
fn lines(source: &str) -> f64 {
    let counts = |line: &&str| {
        let line = line.trim();
        !line.is_empty() && !line.starts_with("//") && !line.starts_with("FLOW_MAIN")
    };
    source.lines().filter(counts).count() as f64
}

const STRASSEN: &str = warploom_kernels::text!("flow/strassen.cu");
const MATMUL: &str = warploom_kernels::text!("matmul.cu");
const QUEENS: &str = warploom_kernels::text!("flow/queens.cu");
const FLAT: &str = warploom_kernels::text!("flow/queens_flat.cu");

impl Experiment for Conventional {
    fn about(&self) -> About {
        About {
            id: "isca14-table4",
            paper: PAPER,
            title: "Channels against conventional kernels",
            quick_s: 3,
            full_s: 200,
        }
    }

    fn runs(&self, scale: Scale) -> Vec<Run> {
        vec![program("Strassen", scale), tiled(scale), program("Queens", scale), flat(scale)]
    }

    fn evaluate(&self, results: &Results) -> Outcome {
        let scale = results.scale();
        let pairs = [
            ("Strassen", tiled(scale), 1.06, 13.0, -42.0, (STRASSEN, MATMUL)),
            ("Queens", flat(scale), 0.98, 12.5, -36.0, (QUEENS, FLAT)),
        ];
        let mut outcome = Outcome::new();
        for (name, other, speedup, dispatches, fewer, (ours, theirs)) in pairs {
            let run = program(name, scale);
            let ratio =
                |what: &str| Ok::<_, Failed>(results.number(&other, what)? / results.number(&run, what)?);
            let row = Row::new(format!("{name}: speedup over the conventional kernel"), "×").paper(speedup);
            let row = row.measured(ratio("cycles"));
            outcome = outcome.row(match scale {
                Scale::Full if name == "Strassen" => row.note(NOT_JUDGED),
                Scale::Full => row.percent(30.0).because(REASON),
                Scale::Quick => row.note("with a small input: reported only"),
            });
            let starts =
                || Ok(results.number(&run, "aggregator.starts")? / results.number(&other, "launches")?);
            outcome = outcome
                .row(
                    Row::new(format!("{name}: dispatches over the conventional kernel's"), "×")
                        .paper(dispatches)
                        .measured(starts()),
                )
                .row(
                    Row::new(format!("{name}: wavefronts over the conventional kernel's"), "×")
                        .measured(ratio("warps").map(f64::recip)),
                )
                .row(
                    Row::new(format!("{name}: lines of code, against the conventional kernel"), "%")
                        .paper(fewer)
                        .measured(Ok(100.0 * (lines(ours) / lines(theirs) - 1.0)))
                        .note("lines of the kernels' sources that are neither blank nor only a comment"),
                );
        }
        outcome
    }
}

const REASON: &str = "the flattened queens need no task for the first three rows, which the host places";

const NOT_JUDGED: &str = "\
    not judged: the tiled product here shares its tiles in shared memory, where a lane of the recursion reads its \
    own tile number by number and adds every element atomically. The paper does not say which of the SDK's \
    products it ran; with tiles read four numbers at a time the recursion takes a third of the time, and is still \
    behind";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_blanks_are_no_lines() {
        assert_eq!(lines("// a\n\n  int x; // b\n    // c\n}\n"), 2.0);
    }
}
