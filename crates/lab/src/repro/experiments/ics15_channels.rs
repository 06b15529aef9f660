//! Section 6's two ways to connect cells: one channel for all consumers, or one for each, which takes three times the
//! lock bits.

use super::ics15_nw::{longest_us, run, total_us};
use crate::repro::{About, Experiment, Outcome, Results, Row, Run, Scale};

pub(super) struct Channels;

/// Cells per side of a tile, lock bits of the chip, and letters.
const CASES: [(&str, u32, u32); 4] =
    [("31", 4096, 31), ("15", 1024, 15), ("31", 4096, 124), ("15", 1024, 124)];

fn of(version: &'static str, (tile, bits, size): (&'static str, u32, u32)) -> Run {
    run(version, size).with("tile", tile).set("lock.bits", bits)
}

impl Experiment for Channels {
    fn about(&self) -> About {
        About {
            id: "ics15-channels",
            paper: "ics15",
            title: "Needleman-Wunsch with shared and with private channels",
            quick_s: 2,
            full_s: 2,
        }
    }

    fn runs(&self, _: Scale) -> Vec<Run> {
        CASES.into_iter().flat_map(|case| ["tiny", "private"].map(|version| of(version, case))).collect()
    }

    fn evaluate(&self, results: &Results) -> Outcome {
        let mut outcome = Outcome::new();
        for case in CASES {
            let (tile, bits, size) = case;
            let side: u32 = tile.parse().unwrap_or(31) + 1;
            let name = |what: &str| format!("{size}, tiles of {tile}, {bits} bits: {what}");
            let time = |version| total_us(results, &of(version, case));
            let bits_of = |channels: u32| format!("{} lock bits a tile", channels * side * side);
            let faster = || Ok(time("tiny")? / time("private")?);
            outcome = outcome.rows([
                Row::new(name("shared channels"), "µs").measured(time("tiny")).note(bits_of(1)),
                Row::new(name("private channels"), "µs").measured(time("private")).note(bits_of(3)),
                Row::new(name("private over shared"), "×").measured(faster()),
            ]);
            if size == 124 {
                let longest = |version| longest_us(results, &of(version, case));
                let ratio = || Ok(longest("tiny")? / longest("private")?);
                outcome =
                    outcome.row(Row::new(name("private over shared, longest launch"), "×").measured(ratio()));
            }
        }
        outcome
            .note(
                "The paper describes private channels and does not measure them: they need three times the \
                   lock bits.",
            )
            .note(
                "A tile of 31 cells a side takes 3072 bits then, so it is measured on a chip with 4096. 1024 \
                 bits do for tiles of 15, one a time on an SM with private channels, four with shared ones.",
            )
    }
}
