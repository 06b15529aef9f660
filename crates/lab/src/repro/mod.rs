//! The experiments: every result of the three papers that is reproduced, and how.
//!
//! An [`Experiment`] names its [`Run`]s and turns their [`Results`] into plots and [`Row`]s. A row has the paper's
//! number, ours, and the band in which ours counts as reproduced. [`reproduce`] has the runs of many experiments
//! executed ([`runs`](crate::runs)) and returns a [`Reproduction`], which can be written as JSON, CSV and one HTML
//! page.
//!
//! ```
//! use warploom_lab::repro::{About, Experiment, Outcome, Results, Row, Run, Scale};
//!
//! struct Contention;
//!
//! impl Contention {
//!     fn run(&self, scale: Scale, buckets: u32) -> Run {
//!         Run::work("hashtable").with("keys", scale.pick(500, 80_000)).with("buckets", buckets)
//!     }
//! }
//!
//! impl Experiment for Contention {
//!     fn about(&self) -> About {
//!         About { id: "contention", paper: "example", title: "Fewer buckets cost time", quick_s: 1, full_s: 9 }
//!     }
//!
//!     fn runs(&self, scale: Scale) -> Vec<Run> {
//!         [16, 1024].map(|buckets| self.run(scale, buckets)).to_vec()
//!     }
//!
//!     fn evaluate(&self, results: &Results) -> Outcome {
//!         let cycles = |buckets| results.number(&self.run(results.scale(), buckets), "cycles");
//!         Outcome::new().row(Row::falling("cycles", &[("16 buckets", cycles(16)), ("1024", cycles(1024))]))
//!     }
//! }
//! ```
//!
//! Start reading at [`Experiment`], then `experiments/fidelity.rs`, a short one. `docs/repro.md` shows how to add one.

mod experiments;
mod export;
pub(crate) mod html;
mod report;
mod row;

pub use crate::numbers::figure;
pub use crate::plot::Plot;
use crate::runs::Metrics;
pub use crate::runs::Run;
pub use experiments::EXPERIMENTS;
pub use report::{Evaluated, Outcome, ReproError, Reproduction, Results, reproduce};
pub use row::{Failed, Row, Verdict};

/// The size of an experiment's inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Reduced input: seconds.
    Quick,
    /// The paper's input.
    Full,
}

impl Scale {
    /// One of two values by scale.
    pub fn pick<T>(self, quick: T, full: T) -> T {
        match self {
            Scale::Quick => quick,
            Scale::Full => full,
        }
    }
}

/// What is known of an experiment before it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct About {
    /// Such as `ics15-fig4`.
    pub id: &'static str,
    /// The paper, or `model` for experiments about the model itself.
    pub paper: &'static str,
    pub title: &'static str,
    /// Approximate seconds of the quick form on one core.
    pub quick_s: u32,
    /// Approximate seconds of the full form on one core.
    pub full_s: u32,
}

impl About {
    /// Authors and title of the paper, and where it appeared; `None` for experiments about the model itself.
    pub fn citation(&self) -> Option<&'static str> {
        match self.paper {
            "ics15" => Some(
                "A. Li, G.-J. van den Braak, H. Corporaal, A. Kumar: Fine-Grained Synchronizations and Dataflow \
                 Programming on GPUs. ICS 2015",
            ),
            "hpca18" => Some(
                "A. ElTantawy, T. M. Aamodt: Warp Scheduling for Fine-Grained Synchronization. HPCA 2018",
            ),
            "isca14" => Some(
                "M. S. Orr, B. M. Beckmann, S. K. Reinhardt, D. A. Wood: Fine-grain Task Aggregation and \
                 Coordination on GPUs. ISCA 2014",
            ),
            _ => None,
        }
    }
}

/// A result of a paper that can be run again.
pub trait Experiment: Sync {
    fn about(&self) -> About;

    /// The runs that [`evaluate`](Experiment::evaluate) looks up.
    fn runs(&self, scale: Scale) -> Vec<Run>;

    /// Judges the results. A failed run makes rows that report the failure; the other rows must still be there.
    fn evaluate(&self, results: &Results) -> Outcome;
}

/// The experiments with this id, or all of the paper with this name.
pub fn find(name: &str) -> Vec<&'static dyn Experiment> {
    let fits = |experiment: &&&dyn Experiment| {
        let about = experiment.about();
        about.id == name || about.paper == name
    };
    EXPERIMENTS.iter().filter(fits).copied().collect()
}

/// Every name that [`find`] accepts.
pub fn names() -> Vec<&'static str> {
    let mut names: Vec<_> = EXPERIMENTS.iter().map(|e| e.about().id).collect();
    for paper in EXPERIMENTS.iter().map(|e| e.about().paper) {
        if !names.contains(&paper) {
            names.push(paper);
        }
    }
    names
}
