//! Figures 9 and 15: time and energy of the synchronized kernels under three policies, with and without BOWS; and Figure 2:
//! how their attempts end.

use super::PAPER;
use super::kernels::{
    INPUTS, LOCKED, LONGEST_FIRST, POLICIES, SYNCHRONIZED, backing_off, mean, ratio, synchronized, under,
};
use crate::plot::Plot;
use crate::repro::{About, Experiment, Failed, Outcome, Results, Row, Run, Scale};

/// Time and energy on a chip.
pub struct Savings {
    id: &'static str,
    chip: &'static str,
    title: &'static str,
    /// How much less time BOWS takes than each policy.
    speedups: [f64; 3],
    /// How much less energy, where the paper tells.
    energies: [Option<f64>; 3],
    seconds: [u32; 2],
}

/// Figure 9.
pub const FERMI: Savings = Savings {
    id: "hpca18-fig9",
    chip: "gtx480",
    title: "Time and energy of three policies with and without BOWS, Fermi",
    speedups: [2.2, 1.4, 1.5],
    energies: [Some(2.3), Some(1.7), Some(1.6)],
    seconds: [20, 2400],
};

/// Figure 15.
pub const PASCAL: Savings = Savings {
    id: "hpca18-fig15",
    chip: "gtx1080ti",
    title: "The same on Pascal",
    speedups: [1.9, 1.7, 1.5],
    energies: [None; 3],
    seconds: [25, 3000],
};

/// Kernels that BOWS leaves as fast as they were.
const UNCHANGED: [&str; 3] = ["TB", "ST", "TSP"];

const TIME: &str = "here these kernels wait for latency, not for issue slots: an SM issues an instruction in every third cycle, and the chain \
                    of critical sections at a lock is what takes the time. Backing off saves instructions and energy, and time where \
                    failed attempts fill the memory system (hpca18-fig16), but a lock that is given back is also taken later";

impl Savings {
    fn run(&self, kernel: &str, policy: &'static str, scale: Scale) -> Run {
        under(synchronized(kernel, scale), policy).chip(self.chip)
    }

    /// How much less of something a kernel takes with BOWS.
    fn saves(
        &self,
        results: &Results,
        kernel: &str,
        policy: &'static str,
        what: &str,
    ) -> Result<f64, Failed> {
        let base = self.run(kernel, policy, results.scale());
        ratio(results, &base, &backing_off(base.clone()), what)
    }
}

impl Experiment for Savings {
    fn about(&self) -> About {
        let [quick_s, full_s] = self.seconds;
        About { id: self.id, paper: PAPER, title: self.title, quick_s, full_s }
    }

    fn runs(&self, scale: Scale) -> Vec<Run> {
        let bases = LONGEST_FIRST
            .into_iter()
            .flat_map(|kernel| POLICIES.map(|policy| self.run(kernel, policy, scale)));
        bases.flat_map(|base| [base.clone(), backing_off(base)]).collect()
    }

    fn evaluate(&self, results: &Results) -> Outcome {
        let quick = results.scale() == Scale::Quick;
        let mut outcome = Outcome::new();
        for ((policy, speedup), energy) in POLICIES.into_iter().zip(self.speedups).zip(self.energies) {
            let all = |what| mean(SYNCHRONIZED.map(|kernel| self.saves(results, kernel, policy, what)));
            let name = policy.to_uppercase();
            let time =
                Row::new(format!("BOWS over {name}, time"), "×").paper(speedup).measured(all("cycles"));
            let whole =
                Row::new(format!("BOWS over {name}, all energy"), "×").measured(all("energy_nj.total"));
            let energy_row =
                Row::new(format!("BOWS over {name}, dynamic energy"), "×").measured(all("energy_nj.dynamic"));
            let energy_row = energy.map_or(energy_row.clone(), |paper| energy_row.paper(paper));
            outcome = if quick {
                // A warp spins for too short a time to be found and to gain by it.
                let note = "reduced inputs end before the detector has gained much: reported only";
                outcome.row(time.note(note)).row(energy_row.note(note)).row(whole)
            } else {
                let banded =
                    |row: Row| if row.paper.is_some() { row.percent(25.0).because(TIME) } else { row };
                outcome.row(banded(time)).row(banded(energy_row)).row(whole)
            };
        }
        for kernel in UNCHANGED {
            for policy in POLICIES {
                let row = Row::new(format!("{kernel}: BOWS over {}, time", policy.to_uppercase()), "×");
                let row = row.paper(1.0).measured(self.saves(results, kernel, policy, "cycles"));
                outcome = outcome.row(if quick { row } else { row.percent(25.0).because(TIME) });
            }
        }
        let fewer = || {
            let saved = mean(SYNCHRONIZED.map(|kernel| self.saves(results, kernel, "gto", "warp_insts")))?;
            Ok((saved > 1.0, format!("{saved:.2} times as many without")))
        };
        outcome = outcome.row(Row::claim("instructions, BOWS and GTO", "fewer with BOWS", fewer()));
        for (what, title) in [("cycles", "time"), ("energy_nj.dynamic", "dynamic energy")] {
            let series =
                POLICIES.into_iter().flat_map(|p| [p.to_uppercase(), format!("{} + BOWS", p.to_uppercase())]);
            let mut plot = Plot::bars(format!("{}: {title} over LRR's", self.chip), series).y("×");
            for kernel in SYNCHRONIZED {
                let lrr = self.run(kernel, "lrr", results.scale());
                let over = |run: &Run| ratio(results, run, &lrr, what).ok();
                let bars = POLICIES.into_iter().flat_map(|policy| {
                    let base = self.run(kernel, policy, results.scale());
                    [over(&base), over(&backing_off(base))]
                });
                plot = plot.group(kernel, bars.collect::<Vec<_>>());
            }
            outcome = outcome.plot(plot);
        }
        outcome.note(INPUTS).note("Means are geometric.").note(
            "The paper's energy is read as dynamic energy, as its conclusion has it. Idling and leakage take the larger part of all \
             energy here (docs/energy.md), and follow the time.",
        )
    }
}

/// Figure 2: attempts by outcome.
pub struct Attempts;

const OUTCOMES: [&str; 5] = ["acquired", "failed_intra", "failed_inter", "wait_ok", "wait_fail"];

impl Experiment for Attempts {
    fn about(&self) -> About {
        About {
            id: "hpca18-fig2",
            paper: PAPER,
            title: "Attempts at locks and waits by outcome, under three policies",
            quick_s: 10,
            full_s: 1500,
        }
    }

    fn runs(&self, scale: Scale) -> Vec<Run> {
        FERMI.runs(scale).into_iter().step_by(2).collect()
    }

    fn evaluate(&self, results: &Results) -> Outcome {
        let count = |kernel: &str, policy, what: &str| {
            results.number(&FERMI.run(kernel, policy, results.scale()), &format!("locks.{what}"))
        };
        let mut outcome = Outcome::new();
        for kernel in LOCKED {
            let seen = || {
                let mut shares = Vec::new();
                for policy in POLICIES {
                    let [intra, inter] =
                        ["failed_intra", "failed_inter"].map(|what| count(kernel, policy, what));
                    let (intra, inter) = (intra?, inter?);
                    shares.push(100.0 * inter / (intra + inter).max(1.0));
                }
                let text = shares.iter().map(|share| format!("{share:.1} %")).collect::<Vec<_>>().join(", ");
                Ok((shares.iter().all(|&share| share > 50.0), text))
            };
            let name = format!("{kernel}: failures on a lock of another warp");
            outcome = outcome.row(Row::claim(name, "most of them", seen()));
        }
        let policy_matters = || {
            let mut most = (0.0f64, "");
            for kernel in LOCKED {
                let failures = POLICIES.map(|policy| count(kernel, policy, "failed_inter"));
                let failures = failures.into_iter().collect::<Result<Vec<f64>, Failed>>()?;
                let (low, high) = (
                    failures.iter().copied().fold(f64::MAX, f64::min),
                    failures.iter().copied().fold(0.0, f64::max),
                );
                if high / low.max(1.0) > most.0 {
                    most = (high / low.max(1.0), kernel);
                }
            }
            Ok((
                most.0 > 1.2,
                format!("{:.2} times as many under one policy as under another, {}", most.0, most.1),
            ))
        };
        outcome = outcome.row(Row::claim("failures between warps", "the policy matters", policy_matters()));
        let mut plot = Plot::bars("Outcomes of attempts (LRR, GTO, CAWA)", OUTCOMES).y("%");
        for (kernel, policy) in SYNCHRONIZED.into_iter().flat_map(|k| POLICIES.map(|p| (k, p))) {
            let counts = OUTCOMES.map(|what| count(kernel, policy, what).ok());
            let all: f64 = counts.iter().flatten().sum();
            plot =
                plot.group(format!("{kernel} {policy}"), counts.map(|c| c.map(|c| 100.0 * c / all.max(1.0))));
            for (what, count) in
                OUTCOMES.into_iter().zip(counts).filter(|(_, count)| count.is_some_and(|c| c > 0.0))
            {
                let name = format!("{kernel}, {}: {what}", policy.to_uppercase());
                outcome = outcome.row(Row::new(name, "").measured(Ok(count.unwrap_or_default())));
            }
        }
        outcome.plot(plot).note(INPUTS)
    }
}
