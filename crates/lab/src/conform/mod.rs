//! The machine held against real GPUs: recorded vectors of every instruction, and random programs.
//!
//! Start reading at [`catalogue`], which says what is compared, then [`record`] and [`replay`]; [`fuzz`] stands apart.

mod bound;
mod case;
pub mod catalogue;
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

pub use bound::Bound;
pub use case::{Case, Group, Slot};
pub use error::{Error, Result};
pub use export::export_ptx;
pub use fuzz::{record_fuzz, replay_fuzz};
pub use origin::Origin;
pub use record::{Summary, record};
pub use replay::{CaseDifference, ConformReport, GroupReport, Refusal, replay};

/// How far long work is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Progress {
    /// What is being done: a group of instructions, mostly.
    pub stage: String,
    /// Steps done, over all stages.
    pub done: usize,
    /// Steps in all.
    pub total: usize,
}

/// Where long work reports to.
pub type Report<'a> = &'a mut dyn FnMut(Progress);

#[cfg(test)]
mod tests;
