//! Runs as values: described, executed in parallel by one process or many, and kept on disk.
//!
//! A [`Run`] says everything that decides what a simulation computes. [`execute_all`] executes many, each once, and
//! keeps every result under the run's [`Key`], with a checksum, as soon as the run ends. So an interrupted command goes
//! on where it stopped, and several processes can work in one folder, also those of a cluster ([`slurm`]). Experiments
//! ([`repro`](crate::repro)) and sweeps ([`sweep`](crate::sweep)) are built on this.
//!
//! Start reading at [`execute_all`]; `claim.rs` says how processes share a folder, `keep.rs` what is on disk.

mod claim;
mod digest;
mod execute;
mod keep;
mod metrics;
mod procedure;
pub(crate) mod procedures;
pub(crate) mod provenance;
mod run;
mod serve;
pub mod slurm;
#[cfg(test)]
pub(crate) mod testing;

pub(crate) use digest::Digest;
pub use execute::{Ended, Executed, Place, Plan, Step, execute_all};
pub(crate) use execute::{Execute, execute_all_with};
pub use keep::{Finished, Kept, write_whole};
pub use metrics::Metrics;
pub use procedure::Status;
pub(crate) use procedure::{Choice, Procedure, RunError, execute};
pub use run::{Key, Run, Setting};
pub use serve::{Limits, alone, serve};

/// Runs in a folder that a process executes now.
pub fn in_flight(folder: &std::path::Path) -> usize {
    claim::in_flight(folder)
}
