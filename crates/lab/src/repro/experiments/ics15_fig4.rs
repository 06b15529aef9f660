//! Figure 4 of ICS'15: cycles of the chain's reduction phase under five schemes.

use crate::plot::Plot;
use crate::repro::{About, Experiment, Failed, Outcome, Results, Row, Run, Scale};

pub(super) struct Figure4;

/// The paper's chain: 16 warps, 16 steps, each 32 words after the previous one.
pub(super) fn run(scheme: &'static str, rounds: u32) -> Run {
    Run::work("chain").with("scheme", scheme).with("rounds", rounds).chip("gtx570")
}

/// Schemes from fastest to slowest, with their speedup over atom_lock in Table 2.
const SCHEMES: [(&str, f64); 5] =
    [("tiny_lock", 4.0), ("warp_barr", 2.6), ("warp_vote", 2.0), ("atom_lock", 1.0), ("shrd_lock", 0.8)];

/// What the barrier's time depends on.
const BARRIER: &str = "\
    a barrier lets go units.barrier_latency_cycles = 8 after the last arrival, which with issue is what the generation \
    before Fermi takes; none was found for Fermi. A warp arrives when its stores to shared memory are done, as PTX \
    promises of bar.arrive. Were it to arrive at once, barriers would be 4.5 times as fast as atom_lock \
    (--set units.barrier_after_stores=false)";

/// What the time of one mutex per warp depends on, found with other policies.
const MUTEXES: &str = "\
    fifteen warps poll the mutexes of those before them, and who gets the load/store unit next decides how \
    long the one whose turn it is takes: 1.23× under LRR, 1.01× under CAWA (--sched); 0.89× in the first \
    round, when all begin together";

impl Figure4 {
    /// Rounds differ by the order in which waiting warps poll. The mean needs many of them.
    fn rounds(scale: Scale) -> u32 {
        scale.pick(50, 500)
    }

    fn cycles(results: &Results, scheme: &'static str) -> Result<f64, Failed> {
        results.number(&run(scheme, Self::rounds(results.scale())), "figures.phase_cycles")
    }
}

impl Experiment for Figure4 {
    fn about(&self) -> About {
        About {
            id: "ics15-fig4",
            paper: "ics15",
            title: "Cycles of the reduction phase, five schemes",
            quick_s: 2,
            full_s: 15,
        }
    }

    fn runs(&self, scale: Scale) -> Vec<Run> {
        SCHEMES.into_iter().map(|(scheme, _)| run(scheme, Self::rounds(scale))).collect()
    }

    fn evaluate(&self, results: &Results) -> Outcome {
        let cycles = |scheme| Self::cycles(results, scheme);
        let over = |faster, slower| Ok(cycles(slower)? / cycles(faster)?);
        let mut outcome = Outcome::new();
        for (scheme, paper) in SCHEMES.into_iter().filter(|(scheme, _)| *scheme != "atom_lock") {
            let row = Row::new(format!("{scheme} over atom_lock"), "×").paper(paper);
            let row = row.measured(over(scheme, "atom_lock")).percent(20.0);
            outcome = outcome.row(match scheme {
                "warp_barr" => row.because(BARRIER),
                "shrd_lock" => row.because(MUTEXES),
                _ => row,
            });
        }
        let tiny =
            Row::new("tiny_lock over warp_barr", "×").paper(1.5).measured(over("tiny_lock", "warp_barr"));
        let order = SCHEMES.map(|(scheme, _)| (scheme, over(scheme, "atom_lock")));
        outcome = outcome
            .row(tiny.percent(20.0).because(BARRIER))
            .row(Row::falling("from the fastest to the slowest", &order).because(MUTEXES));
        for (scheme, _) in SCHEMES {
            outcome =
                outcome.row(Row::new(format!("{scheme}: the phase"), "cycles").measured(cycles(scheme)));
        }
        let mut plot = Plot::bars("Cycles of the reduction phase", ["Warploom"]).y("cycles");
        for (scheme, _) in SCHEMES {
            plot = plot.group(scheme, [cycles(scheme).ok()]);
        }
        outcome.compared("Speed relative to atom_lock", "ICS'15", "×").plot(plot).note(
            "From the first warp's clock after the barrier to the last one's after its step; the mean of \
                   the rounds after the first, which fetches its instructions.",
        )
    }
}
