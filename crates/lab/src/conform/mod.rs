//! Comparison of the simulator with real GPUs: recorded vectors of every instruction, and random programs.
//!
//! Vectors are the results of every instruction that is a function of its operands. They are recorded once on a GPU
//! and replayed on simulated chips. Random programs leave the same bytes in memory on every correct machine, so two
//! machines can be compared without a recording. Start reading at `catalogue/`, which lists what is compared, then
//! [`record`] and [`replay`]; [`fuzz`] has the random programs.

mod bound;
mod case;
mod catalogue;
mod error;
mod export;
pub mod fuzz;
mod operands;
mod origin;
mod record;
mod replay;
mod run;
mod show;
mod vectors;

pub use case::Group;
pub use catalogue::GROUPS;
pub use error::{Error, Result};
pub use export::export_ptx;
pub use fuzz::stored::{record_fuzz, replay_fuzz};
pub use origin::Origin;
pub(crate) use origin::today;
pub use record::{Summary, record};
pub use replay::{CaseDifference, ConformReport, GroupReport, Refusal, replay};

/// Progress of long work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Progress {
    /// What is being done, usually the name of a group of instructions.
    pub stage: String,
    /// Steps done, over all stages.
    pub done: usize,
    pub total: usize,
}

/// Callback for progress.
pub type OnProgress<'a> = &'a mut dyn FnMut(Progress);

#[cfg(test)]
mod tests;
