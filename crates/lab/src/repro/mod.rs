//! The experiments: every result of the three papers that is reproduced, and how.
//!
//! An [`Experiment`] names its [`Run`]s and turns their [`Results`] into [`Row`]s, each with the paper's number, ours, and
//! the band in which ours counts as reproduced, and into plots. [`reproduce`] executes the runs of many experiments, each
//! once, over all cores, keeps them on disk, and returns a [`Reproduction`], which can be had as JSON, CSV and one HTML page.
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
//! Start reading at [`Experiment`], then `experiments/fidelity.rs`, which is one. `docs/repro.md` shows how to add another.

mod digest;
mod execute;
pub mod experiments;
mod export;
mod html;
mod keep;
mod maker;
mod metrics;

mod report;
mod row;
mod run;
mod task;
pub mod tasks;
#[cfg(test)]
mod testing;

pub use crate::numbers::{figure, with_unit};
pub use execute::{Plan, Step};
pub use experiments::EXPERIMENTS;
pub use maker::{KERNELS, MODEL, VERSION};
pub use metrics::Metrics;
pub use report::{Evaluated, Outcome, ReproError, Reproduction, Results, RunLine, reproduce};
pub use row::{Band, Failed, Row, Verdict};
pub use run::{Key, Run, Setting};
pub use task::{Choice, RunContext, RunError, Task};

/// How much is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Reduced input, in seconds.
    Quick,
    /// The paper's input.
    Full,
}

impl Scale {
    /// One of two values.
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
    /// Its name: `ics15-fig4`.
    pub id: &'static str,
    /// The paper it is of, or `model` for those about the model itself.
    pub paper: &'static str,
    /// What it shows, in a line.
    pub title: &'static str,
    /// Seconds that the quick form takes on one core, roughly.
    pub quick_s: u32,
    /// Seconds that the full form takes on one core, roughly.
    pub full_s: u32,
}

/// A result of a paper, as something that can be run.
pub trait Experiment: Sync {
    /// What it is.
    fn about(&self) -> About;

    /// The runs it needs.
    fn runs(&self, scale: Scale) -> Vec<Run>;

    /// What their results say. A run without a result makes rows that say so; it is no reason to have none.
    fn evaluate(&self, results: &Results) -> Outcome;
}

/// The experiments that a name stands for: an id, or a paper with all of its experiments.
pub fn find(name: &str) -> Vec<&'static dyn Experiment> {
    let fits = |experiment: &&&dyn Experiment| {
        let about = experiment.about();
        about.id == name || about.paper == name
    };
    EXPERIMENTS.iter().filter(fits).copied().collect()
}

/// Every name that [`find`] knows.
pub fn names() -> Vec<&'static str> {
    let mut names: Vec<_> = EXPERIMENTS.iter().map(|e| e.about().id).collect();
    for paper in EXPERIMENTS.iter().map(|e| e.about().paper) {
        if !names.contains(&paper) {
            names.push(paper);
        }
    }
    names
}
