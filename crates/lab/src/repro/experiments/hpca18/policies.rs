//! Figures 9 and 15: time and energy of the synchronized kernels under three policies, with and without BOWS.
//! Figure 2: outcomes of their attempts.

use warploom::{Chip, ChipError};

use super::PAPER;
use super::kernels::{
    INPUTS, LOCKED, LONGEST_FIRST, POLICIES, SYNCHRONIZED, backing_off, mean, ratio, synchronized,
};
use crate::plot::Plot;
use crate::repro::{About, Experiment, Failed, Outcome, Results, Row, Run, Scale};

pub(crate) struct Savings {
    id: &'static str,
    chip: &'static str,
    /// The card that the paper's machine models, as it is modelled here.
    card: &'static str,
    title: &'static str,
    /// The paper's speedup of BOWS over each policy.
    speedups: [f64; 3],
    /// The paper's energy savings, where it gives them.
    energies: [Option<f64>; 3],
    /// Why times differ from the paper's.
    why: &'static str,
    /// On one core: quick and full.
    seconds: [u32; 2],
}

pub(crate) const FERMI: Savings = Savings {
    id: "hpca18-fig9",
    chip: super::kernels::FERMI,
    card: "gtx480",
    title: "Time and energy of three policies with and without BOWS, Fermi",
    speedups: [2.2, 1.4, 1.5],
    energies: [Some(2.3), Some(1.7), Some(1.6)],
    why: "the simulator that the paper's authors released gains as little on these kernels: with the quick form's \
          inputs, LRR over BOWS is 0.99 there and here, on average over seven kernels (docs/bows.md). The paper's \
          kernels and most of its inputs were not released with it",
    seconds: [20, 980],
};

pub(crate) const PASCAL: Savings = Savings {
    id: "hpca18-fig15",
    chip: super::kernels::PASCAL,
    card: "gtx1080ti",
    title: "The same on Pascal",
    speedups: [1.9, 1.7, 1.5],
    energies: [None; 3],
    why: "the simulator that the paper's authors released, as Pascal, gains as little on these kernels: with the \
          quick form's inputs, BOWS over LRR is 1.00 there and 1.02 here, over GTO 0.97 and 1.00, on average over \
          seven kernels (docs/bows.md). The paper's kernels and most of its inputs were not released with it",
    seconds: [25, 820],
};

/// Kernels whose time BOWS does not change in the paper.
const UNCHANGED: [&str; 3] = ["TB", "ST", "TSP"];

impl Savings {
    fn run(&self, kernel: &str, policy: &'static str, scale: Scale) -> Run {
        synchronized(kernel, scale).sched(policy).chip(self.chip)
    }

    /// The kernels on the card that it models. ATM under CAWA does not end there within 12 M cycles.
    fn kernels_on_card(policy: &str) -> impl Iterator<Item = &'static str> {
        LONGEST_FIRST.into_iter().filter(move |kernel| (*kernel, policy) != ("ATM", "cawa"))
    }

    /// On the card, with the paper's GTO.
    fn on_card(&self, kernel: &str, policy: &'static str) -> Run {
        let run = self.run(kernel, policy, Scale::Full).chip(self.card);
        if policy == "gto" { run.set("issue.gto.rotation_cycles", 50_000) } else { run }
    }

    /// The runs without BOWS.
    fn bases(&self, scale: Scale) -> Vec<Run> {
        let of = |kernel| POLICIES.map(|policy| self.run(kernel, policy, scale));
        LONGEST_FIRST.into_iter().flat_map(of).collect()
    }

    /// How many times as much of a figure the kernel has without BOWS.
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

    /// Share of the issue slots that were used, in percent.
    fn slots_used(&self, results: &Results, kernel: &str, policy: &'static str) -> Result<f64, Failed> {
        let run = self.run(kernel, policy, results.scale());
        let failed = |error: ChipError| Failed { run: run.to_string(), message: error.to_string() };
        let chip = Chip::load(self.chip, &[]).map_err(failed)?;
        let slots = f64::from(chip.sm.count * chip.issue.schedulers * chip.issue.width);
        Ok(100.0 * results.number(&run, "warp_insts")? / (slots * results.number(&run, "cycles")?))
    }
}

impl Experiment for Savings {
    fn about(&self) -> About {
        let [quick_s, full_s] = self.seconds;
        About { id: self.id, paper: PAPER, title: self.title, quick_s, full_s }
    }

    fn runs(&self, scale: Scale) -> Vec<Run> {
        let mut bases = self.bases(scale);
        if scale == Scale::Full {
            let of = |policy| Self::kernels_on_card(policy).map(move |kernel| self.on_card(kernel, policy));
            bases.extend(POLICIES.into_iter().flat_map(of));
        }
        bases.into_iter().flat_map(|base| [base.clone(), backing_off(base)]).collect()
    }

    fn evaluate(&self, results: &Results) -> Outcome {
        let mut outcome = Outcome::new();
        for ((policy, speedup), energy) in POLICIES.into_iter().zip(self.speedups).zip(self.energies) {
            let all = |what| mean(SYNCHRONIZED.map(|kernel| self.saves(results, kernel, policy, what)));
            let name = policy.to_uppercase();
            let time = Row::new(format!("BOWS over {name}, time"), "×").paper(speedup).headline();
            outcome = outcome.row(time.measured(all("cycles")).percent(25.0).because(self.why));
            let row =
                Row::new(format!("BOWS over {name}, dynamic energy"), "×").measured(all("energy_nj.dynamic"));
            outcome = outcome.row(match energy {
                Some(paper) => row.paper(paper).percent(25.0).because(self.why),
                None => row,
            });
            let row = Row::new(format!("BOWS over {name}, all energy"), "×");
            outcome = outcome.row(row.measured(all("energy_nj.total")));
        }
        for (kernel, policy) in SYNCHRONIZED.into_iter().flat_map(|k| POLICIES.map(|p| (k, p))) {
            let row = Row::new(format!("{kernel}: BOWS over {}, time", policy.to_uppercase()), "×");
            let row = row.measured(self.saves(results, kernel, policy, "cycles"));
            outcome = outcome.row(match UNCHANGED.contains(&kernel) {
                true => row.paper(1.0).percent(25.0).because(self.why),
                false => row,
            });
        }
        if results.scale() == Scale::Full {
            for policy in POLICIES {
                let saves = |kernel| {
                    let base = self.on_card(kernel, policy);
                    ratio(results, &base, &backing_off(base.clone()), "cycles")
                };
                let row =
                    Row::new(format!("on the {}: BOWS over {}, time", self.card, policy.to_uppercase()), "×");
                outcome = outcome.row(row.measured(mean(Self::kernels_on_card(policy).map(saves))));
            }
        }
        let fewer = || {
            let saved = mean(SYNCHRONIZED.map(|kernel| self.saves(results, kernel, "gto", "warp_insts")))?;
            Ok((saved > 1.0, format!("{saved:.2} times as many without")))
        };
        outcome = outcome.row(Row::claim("instructions, BOWS and GTO", "fewer with BOWS", fewer()));
        for policy in POLICIES {
            let used = SYNCHRONIZED.map(|kernel| self.slots_used(results, kernel, policy));
            let row = Row::new(format!("issue slots used, {}", policy.to_uppercase()), "%");
            outcome = outcome.row(row.measured(mean(used)));
        }
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
            "The paper's energy is read as dynamic energy, as its conclusion has it. Idling and leakage take \
             the larger part of all energy here (docs/energy.md), and follow the time.",
        )
    }
}

pub(crate) struct Attempts;

const OUTCOMES: [&str; 5] = ["acquired", "failed_intra", "failed_inter", "wait_ok", "wait_fail"];

impl Experiment for Attempts {
    fn about(&self) -> About {
        About {
            id: "hpca18-fig2",
            paper: PAPER,
            title: "Attempts at locks and waits by outcome, under three policies",
            quick_s: 10,
            full_s: 510,
        }
    }

    fn runs(&self, scale: Scale) -> Vec<Run> {
        FERMI.bases(scale)
    }

    fn evaluate(&self, results: &Results) -> Outcome {
        let count = |kernel: &str, policy, what: &str| {
            results.number(&FERMI.run(kernel, policy, results.scale()), &format!("locks.{what}"))
        };
        let mut outcome = Outcome::new();
        for kernel in LOCKED {
            let seen = || {
                // A run that does not end has its own row.
                let mut shares = Vec::new();
                for policy in POLICIES {
                    let [intra, inter] =
                        ["failed_intra", "failed_inter"].map(|what| count(kernel, policy, what));
                    if let (Ok(intra), Ok(inter)) = (intra, inter) {
                        shares.push(100.0 * inter / (intra + inter).max(1.0));
                    }
                }
                let text = shares.iter().map(|share| format!("{share:.1} %")).collect::<Vec<_>>().join(", ");
                Ok((!shares.is_empty() && shares.iter().all(|&share| share > 50.0), text))
            };
            let name = format!("{kernel}: failures on a lock of another warp");
            outcome = outcome.row(Row::claim(name, "most of them", seen()));
        }
        let policy_matters = || {
            let mut most = (0.0f64, "");
            for kernel in LOCKED {
                let failures = POLICIES.map(|policy| count(kernel, policy, "failed_inter"));
                let failures: Vec<f64> = failures.into_iter().flatten().collect();
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
        let names = ["taken", "failed intra-warp", "failed inter-warp", "wait over", "wait not over"];
        let title = "Outcomes of attempts; of each kernel LRR, GTO and CAWA, from left to right";
        let mut plot = Plot::stacked(title, names).y("%");
        for (kernel, policy) in SYNCHRONIZED.into_iter().flat_map(|k| POLICIES.map(|p| (k, p))) {
            let counts = OUTCOMES.map(|what| count(kernel, policy, what).ok());
            let all: f64 = counts.iter().flatten().sum();
            // The name stands below the middle one of three.
            let label = if policy == POLICIES[1] { kernel } else { "" };
            plot = plot.group(label, counts.map(|c| c.map(|c| 100.0 * c / all.max(1.0))));
            for (what, count) in
                names.into_iter().zip(counts).filter(|(_, count)| count.is_some_and(|c| c > 0.0))
            {
                let name = format!("{kernel}, {}: {what}", policy.to_uppercase());
                outcome = outcome.row(Row::new(name, "").measured(Ok(count.unwrap_or_default())));
            }
        }
        outcome.plot(plot).note(INPUTS)
    }
}
