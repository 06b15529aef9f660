//! Figures 10 to 13: how the delay limit changes time, warps backed off and attempts; how BOWS changes instructions,
//! memory transactions and SIMD efficiency. All around GTO on Fermi.

use std::collections::BTreeSet;

use super::PAPER;
use super::kernels::{
    COUNTED, INSTRUCTIONS, LONGEST_FIRST, SYNCHRONIZED, backing_off, mean, ratio, synchronized, transactions,
    with_limit,
};
use crate::plot::Plot;
use crate::repro::{About, Experiment, Failed, Outcome, Results, Row, Run, Scale};

/// Delay limits of the figures, in cycles.
const LIMITS: [u32; 5] = [0, 500, 1_000, 3_000, 5_000];

/// The seven bars of a kernel.
const BARS: [&str; 7] = ["GTO", "0", "500", "1000", "3000", "5000", "adaptive"];

fn base(kernel: &str, scale: Scale) -> Run {
    synchronized(kernel, scale).sched("gto")
}

/// In the order of [`BARS`].
fn bars(kernel: &str, scale: Scale) -> Vec<Run> {
    let base = base(kernel, scale);
    let limited = LIMITS.map(|limit| with_limit(base.clone(), limit));
    [base.clone()].into_iter().chain(limited).chain([backing_off(base)]).collect()
}

fn all_bars(scale: Scale) -> Vec<Run> {
    LONGEST_FIRST.into_iter().flat_map(|kernel| bars(kernel, scale)).collect()
}

/// The values printed in Table II, under which the limit stays at 1000 cycles.
fn as_printed(run: Run) -> Run {
    let run = backing_off(run).set("issue.bows.max_limit_cycles", 1_000);
    run.set("issue.bows.frac1", 0.5).set("issue.bows.frac2", 0.8)
}

pub(crate) struct Time;

impl Experiment for Time {
    fn about(&self) -> About {
        About {
            id: "hpca18-fig10",
            paper: PAPER,
            title: "Time against the delay limit",
            quick_s: 20,
            full_s: 600,
        }
    }

    fn runs(&self, scale: Scale) -> Vec<Run> {
        let printed = SYNCHRONIZED.map(|kernel| as_printed(base(kernel, scale)));
        all_bars(scale).into_iter().chain(printed).collect()
    }

    fn evaluate(&self, results: &Results) -> Outcome {
        let scale = results.scale();
        let of_bars = |kernel: &str, what: &str| {
            let each = bars(kernel, scale).into_iter().map(|run| results.number(&run, what));
            each.collect::<Result<Vec<f64>, Failed>>()
        };
        let tsp = || {
            let cycles = of_bars("TSP", "cycles")?;
            let over_gto = |at: usize| format!("{:.2} with {}", cycles[at] / cycles[0], BARS[at]);
            let text = format!("over GTO's: {}, {}, {}", over_gto(3), over_gto(4), over_gto(5));
            Ok((cycles[3] < cycles[4] && cycles[4] < cycles[5], text))
        };
        // A delay has an effect once it saves a tenth of the instructions that a limit of 0 leaves.
        let threshold = || {
            let (mut each, mut seen) = (Vec::new(), BTreeSet::new());
            for kernel in SYNCHRONIZED {
                let insts = of_bars(kernel, "warp_insts")?;
                let at = (2..=5).find(|&at| insts[at] < 0.9 * insts[1]).map_or("more", |at| BARS[at]);
                each.push(format!("{kernel} {at}"));
                seen.insert(at);
            }
            Ok((seen.len() >= 3, each.join(", ")))
        };
        let mut outcome = Outcome::new()
            .row(Row::claim("TSP: time with a large limit", "rises with the limit from 1000 on", tsp()))
            .row(Row::claim("the first limit with an effect", "differs: three values or more", threshold()));
        let mut plot = Plot::bars("Time over GTO's, by delay limit", BARS).y("×");
        for kernel in SYNCHRONIZED {
            let over = |run: &Run| ratio(results, run, &base(kernel, scale), "cycles");
            let runs = bars(kernel, scale);
            plot = plot.group(kernel, runs.iter().map(|run| over(run).ok()).collect::<Vec<_>>());
            for (name, run) in BARS.iter().zip(&runs).skip(1) {
                outcome = outcome.row(
                    Row::new(format!("{kernel}: limit {name}, time over GTO's"), "×").measured(over(run)),
                );
            }
            let printed = over(&as_printed(base(kernel, scale)));
            outcome = outcome.row(
                Row::new(format!("{kernel}: Table II as printed, time over GTO's"), "×").measured(printed),
            );
        }
        outcome.plot(plot)
    }
}

pub(crate) struct Waiting;

impl Experiment for Waiting {
    fn about(&self) -> About {
        About {
            id: "hpca18-fig11",
            paper: PAPER,
            title: "Warps that are backed off, against the delay limit",
            quick_s: 20,
            full_s: 600,
        }
    }

    fn runs(&self, scale: Scale) -> Vec<Run> {
        all_bars(scale)
    }

    fn evaluate(&self, results: &Results) -> Outcome {
        let scale = results.scale();
        let share = |run: &Run| {
            let all = results.number(run, "warp_cycles")?;
            let back = results.of(run)?.number("back_off.warp_cycles").unwrap_or(0.0);
            Ok::<_, Failed>(100.0 * back / all)
        };
        let mut outcome = Outcome::new();
        let mut plot = Plot::bars("Warps backed off, of those resident", BARS).y("%");
        for kernel in SYNCHRONIZED {
            let runs = bars(kernel, scale);
            plot = plot.group(kernel, runs.iter().map(|run| share(run).ok()).collect::<Vec<_>>());
            let seen = || {
                let shares =
                    runs[1..=LIMITS.len()].iter().map(share).collect::<Result<Vec<f64>, Failed>>()?;
                let text = shares.iter().map(|share| format!("{share:.1} %")).collect::<Vec<_>>().join(", ");
                Ok((shares.windows(2).all(|pair| pair[0] < pair[1] + 1.0), text))
            };
            let name = format!("{kernel}: warps backed off, limits of 0 to 5000");
            let row = Row::claim(name, "more with each larger limit, or within a point", seen());
            outcome = outcome.row(row.because(
                "TSP's climbers come to its lock once each: how many meet there follows from the timing of \
                 everything before",
            ));
        }
        outcome.plot(plot)
    }
}

pub(crate) struct Attempts;

impl Experiment for Attempts {
    fn about(&self) -> About {
        About {
            id: "hpca18-fig12",
            paper: PAPER,
            title: "Attempts at locks and waits against the delay limit",
            quick_s: 20,
            full_s: 600,
        }
    }

    fn runs(&self, scale: Scale) -> Vec<Run> {
        all_bars(scale)
    }

    fn evaluate(&self, results: &Results) -> Outcome {
        let scale = results.scale();
        let failures = |run: &Run| {
            let each = ["failed_intra", "failed_inter", "wait_fail"]
                .map(|what| results.number(run, &format!("locks.{what}")));
            each.into_iter().sum::<Result<f64, Failed>>()
        };
        let ht = base("HT", scale);
        let fewer = failures(&ht).and_then(|base| Ok(base / failures(&backing_off(ht))?));
        let row = Row::new("HT: lock failures, GTO over BOWS", "×").paper(10.8).measured(fewer);
        let mut outcome = Outcome::new().row(match scale {
            Scale::Full => row.percent(40.0),
            Scale::Quick => {
                row.at_least(1.2).note("one key a thread, not eighty: fewer failures, but not by as much")
            }
        });
        let mut plot = Plot::bars("Failed attempts over GTO's, by delay limit", BARS).y("×");
        for kernel in SYNCHRONIZED {
            let runs = bars(kernel, scale);
            let over = |run: &Run| failures(run).and_then(|of| Ok(of / failures(&runs[0])?.max(1.0)));
            plot = plot.group(kernel, runs.iter().map(|run| over(run).ok()).collect::<Vec<_>>());
            for (name, run) in BARS.iter().zip(&runs) {
                let row = Row::new(format!("{kernel}, {name}: failed attempts"), "").measured(failures(run));
                outcome = outcome.row(row);
            }
        }
        outcome.plot(plot)
    }
}

pub(crate) struct Dynamic;

impl Experiment for Dynamic {
    fn about(&self) -> About {
        About {
            id: "hpca18-fig13",
            paper: PAPER,
            title: "Instructions, L1D transactions and SIMD efficiency with BOWS",
            quick_s: 10,
            full_s: 200,
        }
    }

    fn runs(&self, scale: Scale) -> Vec<Run> {
        let bases = LONGEST_FIRST.into_iter().map(|kernel| base(kernel, scale));
        bases.flat_map(|base| [base.clone(), backing_off(base)]).collect()
    }

    fn evaluate(&self, results: &Results) -> Outcome {
        let scale = results.scale();
        let pair = |kernel: &str| (base(kernel, scale), backing_off(base(kernel, scale)));
        let fewer = |kernel: &str, what: &str| {
            let (base, bows) = pair(kernel);
            ratio(results, &base, &bows, what)
        };
        let left = |kernel: &str| {
            let (base, bows) = pair(kernel);
            Ok(transactions(results, &bows)? / transactions(results, &base)?)
        };
        let lanes = |kernel: &str| {
            let (base, bows) = pair(kernel);
            ratio(results, &bows, &base, "simd_efficiency")
        };
        let insts = |what| mean(SYNCHRONIZED.map(|kernel| fewer(kernel, what)));
        let percent = |left: Result<f64, Failed>| left.map(|left| 100.0 * (1.0 - left));
        // Shares are averaged as they are: two of the kernels have almost nothing left, which a geometric mean of what
        // is left would show alone.
        let saved = || {
            let shares = SYNCHRONIZED.map(|kernel| percent(left(kernel)));
            let shares = shares.into_iter().collect::<Result<Vec<f64>, Failed>>()?;
            Ok(shares.iter().sum::<f64>() / shares.len() as f64)
        };
        let rows = [
            Row::new("instructions, GTO over BOWS", "×").paper(2.1).measured(insts(INSTRUCTIONS)),
            Row::new("L1D transactions saved", "%").paper(19.0).measured(saved()).because(
                "most of it is NW1's and NW2's, whose warps do nothing but poll while they wait (the rows below)",
            ),
            Row::new("HT: SIMD efficiency, BOWS over GTO", "×").paper(3.4).measured(lanes("HT")),
            Row::new("ATM: SIMD efficiency, BOWS over GTO", "×").paper(1.85).measured(lanes("ATM")),
        ];
        let note = "reduced inputs end before the detector has gained much: reported only";
        let mut outcome = Outcome::new().rows(rows.map(|row| match scale {
            Scale::Full => row.percent(30.0),
            Scale::Quick => row.note(note),
        }));
        for kernel in SYNCHRONIZED {
            let row = Row::new(format!("{kernel}: L1D transactions saved"), "%");
            outcome = outcome.row(row.measured(percent(left(kernel))));
        }
        let direction = || {
            let saved = insts(INSTRUCTIONS)?;
            Ok((saved > 1.0, format!("{saved:.2} times as many without")))
        };
        outcome = outcome.row(Row::claim("instructions", "fewer with BOWS", direction()));
        for kernel in SYNCHRONIZED {
            let row = Row::new(format!("{kernel}: instructions, GTO over BOWS"), "×");
            outcome = outcome.row(row.measured(fewer(kernel, INSTRUCTIONS)));
        }
        let warps = Row::new("instructions of warps, GTO over BOWS", "×").measured(insts("warp_insts"));
        outcome = outcome.row(warps);
        let mut plot =
            Plot::bars("BOWS over GTO", ["instructions", "L1D transactions", "SIMD efficiency"]).y("×");
        for kernel in SYNCHRONIZED {
            let insts = fewer(kernel, INSTRUCTIONS).ok().map(f64::recip);
            plot = plot.group(kernel, [insts, left(kernel).ok(), lanes(kernel).ok()]);
        }
        outcome.plot(plot).note(COUNTED)
    }
}
