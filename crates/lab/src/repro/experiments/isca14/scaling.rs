//! Figure 15: speedup on more compute units. Figure 16: where their accesses hit.

use super::PAPER;
use super::programs::{PROGRAMS, mean, on, perturbed, program};
use crate::plot::Plot;
use crate::repro::{About, Experiment, Failed, Outcome, Results, Row, Run, Scale};

const UNITS: [u32; 4] = [1, 2, 4, 8];

pub(crate) struct Scaling;

/// A program on so many compute units, as often as its time is measured. With one, the order of wavefronts hardly
/// matters: Strassen's time changes by less than 0.1 %.
fn measured(name: &str, units: u32, scale: Scale) -> Vec<Run> {
    let run = on(program(name, scale), units);
    if units == 8 { perturbed(&run) } else { vec![run] }
}

impl Experiment for Scaling {
    fn about(&self) -> About {
        About {
            id: "isca14-fig15",
            paper: PAPER,
            title: "Cilk on more compute units",
            quick_s: 6,
            full_s: 700,
        }
    }

    fn runs(&self, scale: Scale) -> Vec<Run> {
        let runs = PROGRAMS.map(|name| UNITS.map(|units| measured(name, units, scale)));
        runs.into_iter().flatten().flatten().collect()
    }

    fn evaluate(&self, results: &Results) -> Outcome {
        let scale = results.scale();
        let of = |name: &str, units: u32| on(program(name, scale), units);
        let speedup = |name: &str, units: u32| {
            let cycles = |units| mean(results, &measured(name, units, scale), "cycles");
            Ok::<_, Failed>(cycles(1)? / cycles(units)?)
        };
        let blocked = |name: &str, units: u32| {
            let run = of(name, units);
            Ok::<_, Failed>(
                100.0 * results.number(&run, "aggregator.gpu_stalled_cycles")?
                    / results.number(&run, "cycles")?,
            )
        };
        let row = |name: &str| {
            Row::new(format!("{name}: speedup on 8 compute units"), "×").measured(speedup(name, 8))
        };
        let small = "with a small input a level has few wavefronts: reported only";
        let banded = |row: Row, paper: f64| match scale {
            Scale::Full => row.paper(paper).percent(25.0),
            Scale::Quick => row.paper(paper).note(small),
        };
        let mut outcome = Outcome::new()
            .row(row("Fibonacci").at_most(2.0).because(
                "more compute units do not make reservations in one channel faster: each brings the line to another \
                 one",
            ))
            .row(banded(row("Sort"), 2.6).because(
                "eight compute units are bound by DRAM (85 % of its bandwidth): their 320 wavefronts sort 5 MB at \
                 once, and the L2 holds 1 MB, where one compute unit's 40 wavefronts fit it. How far the paper's \
                 base case goes over its numbers is not printed",
            ))
            .row(banded(row("Strassen"), 4.3));
        let between = || {
            let (sort, queens, strassen) =
                (speedup("Sort", 8)?, speedup("Queens", 8)?, speedup("Strassen", 8)?);
            Ok((sort <= queens && queens <= strassen, format!("{sort:.2}, {queens:.2}, {strassen:.2}")))
        };
        outcome = outcome.row(match scale {
            Scale::Full => Row::claim("Queens", "between Sort and Strassen", between()).because(
                "one compute unit mostly has a warp of Queens that can issue, and eight wait for memory: DRAM is \
                 busy for 19 and 73 % of the time. So its speedup follows from what its boards need of memory, and \
                 how the paper's program keeps them is not printed",
            ),
            Scale::Quick => row("Queens").note(small),
        });
        let mut plot = Plot::lines("Speedup").x("compute units").y("×");
        for name in PROGRAMS {
            let points =
                UNITS.into_iter().filter_map(|units| Some((f64::from(units), speedup(name, units).ok()?)));
            plot = plot.series(name, points.collect::<Vec<_>>());
            for units in UNITS {
                let row = Row::new(format!("{name}: blocked on the aggregator, {units} compute units"), "%");
                outcome = outcome.row(row.measured(blocked(name, units)));
            }
        }
        outcome.plot(plot)
    }
}

pub(crate) struct Hits;

const SMALL: &str = "with a small input the data of all tasks fit the L1s: reported only";

/// Lines missing in the L1 by where they were found: another L1, the L2, memory.
const ELSEWHERE: [&str; 3] = ["coherence.cache_to_cache", "coherence.l2_hits", "coherence.memory"];

impl Experiment for Hits {
    fn about(&self) -> About {
        About {
            id: "isca14-fig16",
            paper: PAPER,
            title: "Where the compute units' accesses hit",
            quick_s: 3,
            full_s: 180,
        }
    }

    fn runs(&self, scale: Scale) -> Vec<Run> {
        PROGRAMS.map(|name| program(name, scale)).to_vec()
    }

    fn evaluate(&self, results: &Results) -> Outcome {
        const REASON: &str = "\
            wavefronts that hardly compute read the same few lines again and again: the channel's descriptor, \
            its control entries, their elements' neighbours";
        let scale = results.scale();
        let shares = |name: &str| {
            let run = program(name, scale);
            let elsewhere = ELSEWHERE.map(|what| results.number(&run, what));
            let [others, l2, memory] = elsewhere;
            let counts = [results.number(&run, "l1.hits")?, others?, l2?, memory?];
            let all: f64 = counts.iter().sum();
            Ok::<_, Failed>(counts.map(|count| 100.0 * count / all))
        };
        let mut outcome = Outcome::new();
        let mut plot = Plot::bars("Where lines were", ["L1", "another L1", "L2", "memory"]).y("%");
        for name in PROGRAMS {
            let seen = || {
                let [l1, others, l2, memory] = shares(name)?;
                let text =
                    format!("L1 {l1:.0} %, another L1 {others:.0} %, L2 {l2:.0} %, memory {memory:.0} %");
                // Lines in the L2 or in another L1 need no access to memory.
                Ok((l1 < 50.0 && l2 + others > memory, text))
            };
            let claim = Row::claim(format!("{name}: accesses"), "few hit in the L1, many in the L2", seen());
            outcome = match scale {
                Scale::Full => outcome.row(claim.because(REASON)),
                Scale::Quick => {
                    let row = Row::new(format!("{name}: hits in the L1"), "%");
                    outcome.row(row.measured(shares(name).map(|[l1, ..]| l1)).note(SMALL))
                }
            };
            plot = plot.group(name, shares(name).map_or([None; 4], |shares| shares.map(Some)));
        }
        outcome.plot(plot)
    }
}
