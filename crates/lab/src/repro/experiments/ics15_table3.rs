//! Table 3: Needleman-Wunsch in three versions, from one tile to 64 × 64.
//!
//! The paper's columns for the data-parallel and the tiny-lock version grow with the waves of the longest launch. The
//! column for atomic locks grows with the sum of all launches. So each version is read both ways, and the paper's
//! number stands beside the reading that it follows.

use super::ics15_nw::{longest_us, run, total_us};
use crate::plot::Plot;
use crate::repro::{About, Experiment, Outcome, Results, Row, Run, Scale};

pub(super) struct Table3;

/// Sizes, and the paper's microseconds: atomic locks, data-parallel, tiny-locks.
const TABLE: [(u32, f64, f64, f64); 7] = [
    (31, 175.0, 57.0, 49.0),
    (62, 466.0, 58.0, 49.0),
    (124, 1050.0, 58.0, 50.0),
    (248, 2285.0, 59.0, 51.0),
    (496, 5052.0, 72.0, 79.0),
    (992, 14757.0, 79.0, 109.0),
    (1984, 48808.0, 80.0, 165.0),
];

fn table(scale: Scale) -> &'static [(u32, f64, f64, f64)] {
    &TABLE[..scale.pick(3, TABLE.len())]
}

/// No size of the quick form has more tiles on an anti-diagonal than the chip has SMs, so a smaller chip stands in.
const FEW_SMS: u32 = 2;

fn on_few_sms(version: &'static str) -> Run {
    run(version, 124).set("sm.count", FEW_SMS)
}

impl Experiment for Table3 {
    fn about(&self) -> About {
        About {
            id: "ics15-table3",
            paper: "ics15",
            title: "Needleman-Wunsch with atomic locks, data-parallel and with tiny-locks",
            quick_s: 5,
            full_s: 1000,
        }
    }

    fn runs(&self, scale: Scale) -> Vec<Run> {
        // The longest run first, so that it does not start last and keep one core busy alone.
        let mut runs: Vec<Run> = table(scale)
            .iter()
            .rev()
            .flat_map(|&(size, ..)| ["atomic", "tiny", "data-parallel"].map(|version| run(version, size)))
            .collect();
        if scale == Scale::Quick {
            runs.extend(["tiny", "data-parallel"].map(on_few_sms));
        }
        runs
    }

    fn evaluate(&self, results: &Results) -> Outcome {
        let scale = results.scale();
        let longest = |version, size| longest_us(results, &run(version, size));
        let total = |version, size| total_us(results, &run(version, size));
        let over = |version| Ok(longest(version, 31)? / longest("tiny", 31)?);
        let mut outcome = Outcome::new()
            .row(Row::new("31: tiny over atomic", "×").paper(3.56).percent(20.0).measured(over("atomic")))
            .row(
                Row::new("31: tiny over data-parallel", "×")
                    .paper(1.15)
                    .percent(20.0)
                    .measured(over("data-parallel")),
            );

        for &(size, ..) in table(scale) {
            let seen = || {
                let (tiny, parallel) = (longest("tiny", size)?, longest("data-parallel", size)?);
                let ahead = tiny < parallel;
                Ok((ahead == (size <= 248), format!("{tiny:.1} µs against {parallel:.1} µs")))
            };
            let claim = if size <= 248 { "tiny-locks ahead" } else { "tiny-locks behind" };
            outcome = outcome.row(Row::claim(
                format!("{size}: longest launch, tiny and data-parallel"),
                claim,
                seen(),
            ));
        }
        if scale == Scale::Quick {
            let seen = || {
                let tiny = longest_us(results, &on_few_sms("tiny"))?;
                let parallel = longest_us(results, &on_few_sms("data-parallel"))?;
                Ok((tiny > parallel, format!("{tiny:.1} µs against {parallel:.1} µs")))
            };
            let name = format!("124 on {FEW_SMS} SMs: longest launch, tiny and data-parallel");
            outcome = outcome.row(Row::claim(name, "tiny-locks behind", seen()).note(
                "two tiles an SM, as 496 has on the whole chip: the second waits for the lock bits of the first",
            ));
        }

        for &(size, atomic, parallel, tiny) in table(scale) {
            let row = |what: &str, measured| Row::new(format!("{size}: {what}"), "µs").measured(measured);
            outcome = outcome.rows([
                row("atomic, all launches", total("atomic", size)).paper(atomic),
                row("data-parallel, longest launch", longest("data-parallel", size)).paper(parallel),
                row("tiny, longest launch", longest("tiny", size)).paper(tiny),
                row("atomic, longest launch", longest("atomic", size)),
                row("data-parallel, all launches", total("data-parallel", size)),
                row("tiny, all launches", total("tiny", size)),
            ]);
        }
        if scale == Scale::Full {
            let mixed = || Ok(total("atomic", 1984)? / longest("tiny", 1984)?);
            let alike = || Ok(total("atomic", 1984)? / total("tiny", 1984)?);
            outcome = outcome
                .row(
                    Row::new("1984: all atomic launches over the longest of tiny", "×")
                        .paper(296.0)
                        .measured(mixed()),
                )
                .row(Row::new("1984: all atomic launches over all of tiny", "×").measured(alike()));
        }

        let mut plot = Plot::lines("Needleman-Wunsch, longest launch").x("letters").y("µs").log_x().log_y();
        for version in ["atomic", "data-parallel", "tiny"] {
            let points =
                table(scale).iter().filter_map(|&(n, ..)| Some((f64::from(n), longest(version, n).ok()?)));
            plot = plot.series(version, points);
        }
        outcome
            .plot(plot)
            .note(
                "The paper's times have about 20 µs that do not depend on the work (its tiny-locks take 20 + \
                 29.5 µs a wave); ours are kernel cycles at 732 MHz alone, so they are smaller, and ratios \
                 compare better than times.",
            )
            .note(
                "Columns of the paper follow two readings: data-parallel and tiny-locks the longest launch, \
                 atomic locks the sum of all. \"296×\" compares one with the other.",
            )
    }
}
