//! Table 5: how fast the aggregator's core must be.

use super::PAPER;
use super::programs::{PROGRAMS, swept};
use crate::plot::Plot;
use crate::repro::{About, Experiment, Failed, Outcome, Results, Row, Run, Scale};

pub(crate) struct Cores;

const CORES: [&str; 4] = ["simple", "2-way-light", "2-way", "4-way"];

/// The paper's percentages, by program and core.
const PAPERS: [[f64; 4]; 4] =
    [[41.5, 35.1, 30.1, 29.8], [2.9, 2.0, 1.6, 1.5], [8.9, 7.2, 5.8, 5.6], [3.4, 2.5, 1.8, 1.9]];

/// Firmware that executes this many times the instructions between its memory accesses.
const CLUMSY: u32 = 10;

const REASON: &str = "\
    with an out-of-order core, little is left of the firmware's own work: most of the time blocked are the packets of \
    the 47 starts, 4,400 cycles each as measured on AMD's APU of 2014, with every core. The paper's cores differ less, \
    so more of its time does not depend on the core. The work of a start is fitted to Fibonacci with the simple core";

fn on(run: Run, core: &'static str) -> Run {
    run.set("aggregator.core", core)
}

/// A cycle more or less changes the order in which wavefronts start, and Fibonacci's share of time blocked by up to two
/// points. So its share is the mean of runs with the commands' latency of the chip, 22 cycles, and with others close to
/// it.
const LATENCIES: std::ops::RangeInclusive<u32> = 23..=28;

/// A program on a core, as often as its share is measured.
fn measured(name: &str, core: &'static str, scale: Scale) -> Vec<Run> {
    let run = on(swept(name, scale), core);
    let others = |run: &Run| {
        let with = |cycles| run.clone().set("aggregator.command_latency_cycles", cycles);
        LATENCIES.map(with).collect::<Vec<_>>()
    };
    let others = if (name, scale) == ("Fibonacci", Scale::Full) { others(&run) } else { Vec::new() };
    std::iter::once(run).chain(others).collect()
}

impl Experiment for Cores {
    fn about(&self) -> About {
        About {
            id: "isca14-table5",
            paper: PAPER,
            title: "GPU time blocked on the aggregator, by its core",
            quick_s: 10,
            full_s: 900,
        }
    }

    fn runs(&self, scale: Scale) -> Vec<Run> {
        let of = |name| CORES.into_iter().flat_map(move |core| measured(name, core, scale));
        let clumsy = CORES.map(|core| on(swept("Fibonacci", scale).with("effort", CLUMSY), core));
        PROGRAMS.into_iter().flat_map(of).chain(clumsy).collect()
    }

    fn evaluate(&self, results: &Results) -> Outcome {
        let scale = results.scale();
        let blocked = |run: Run| {
            Ok::<_, Failed>(
                100.0 * results.number(&run, "aggregator.gpu_stalled_cycles")?
                    / results.number(&run, "cycles")?,
            )
        };
        let share = |name: &str, core: &'static str| {
            let runs = measured(name, core, scale);
            let count = runs.len() as f64;
            Ok::<_, Failed>(runs.into_iter().map(blocked).sum::<Result<f64, Failed>>()? / count)
        };
        let mut outcome = Outcome::new();
        let mut plot = Plot::bars("GPU time blocked on the aggregator", CORES).y("%");
        for (name, paper) in PROGRAMS.into_iter().zip(PAPERS) {
            for (core, paper) in CORES.into_iter().zip(paper) {
                let row = Row::new(format!("{name}, {core}"), "%").paper(paper).measured(share(name, core));
                outcome = outcome.row(match (name, scale) {
                    ("Fibonacci", Scale::Full) => row.points(10.0).because(REASON),
                    (_, Scale::Full) => row.at_most(15.0),
                    (_, Scale::Quick) => row.note("with a small input: reported only"),
                });
            }
            plot = plot.group(name, CORES.map(|core| share(name, core).ok()));
        }
        for name in PROGRAMS {
            let run = on(swept(name, scale), "2-way");
            let idle = || {
                let of_all = results.number(&run, "aggregator.sm_stalled_cycles")?;
                Ok(100.0 * of_all / 8.0 / results.number(&run, "cycles")?)
            };
            let row = Row::new(format!("{name}, 2-way: compute units without a wavefront, on average"), "%");
            outcome = outcome.row(row.measured(idle()));
        }
        for core in CORES {
            let run = on(swept("Fibonacci", scale).with("effort", CLUMSY), core);
            let row = Row::new(format!("Fibonacci, {core}, {CLUMSY} times the instructions"), "%");
            outcome = outcome.row(row.measured(blocked(run)));
        }
        for name in PROGRAMS {
            let values = ["simple", "2-way-light", "2-way"].map(|core| (core, share(name, core)));
            outcome = outcome.row(Row::falling(format!("{name}: blocked, by core"), &values));
        }
        let first = ["Queens", "Sort", "Strassen"].map(|name| share(name, "2-way"));
        let seen = || {
            let fibonacci = share("Fibonacci", "2-way")?;
            let others = first.into_iter().collect::<Result<Vec<f64>, Failed>>()?;
            let most = others.iter().all(|other| *other < fibonacci);
            Ok((most, format!("{fibonacci:.2} %, the others {others:.2?} %")))
        };
        outcome.row(Row::claim("Fibonacci, 2-way", "is blocked most", seen())).plot(plot)
    }
}
