//! Sweeps: thousands of runs from one file, executed on all cores, resumable, and their results as tables and plots.
//!
//! A [`Sweep`] is read from a TOML file and names its runs. A [`Folder`] has their results. They are executed by
//! [`runs::execute_all`](crate::runs::execute_all), as the experiments are. [`tables`] makes tables of the results, one
//! row per run, and [`Chart`] plots of them. `docs/sweeps.md` is the guide.
//!
//! ```
//! use std::path::Path;
//! use warploom_lab::sweep::Sweep;
//!
//! let text = "work = 'hashtable'\nsched = ['lrr', 'gto']\nseeds = 3\n\n[params]\nbuckets = [16, 64]\n";
//! let sweep = Sweep::parse(text, "contention", Path::new(""))?;
//! assert_eq!(sweep.shape(), "hashtable × 2 sched × 2 buckets × 3 seed");
//! assert_eq!(sweep.runs()?.len(), 12);
//! # Ok::<(), warploom_lab::sweep::SweepError>(())
//! ```

mod chart;
mod estimate;
mod file;
mod folder;
mod parquet;
mod table;

pub use chart::Chart;
pub use estimate::{Estimate, sample};
pub use file::{Cell, Planned, Sweep};
pub use folder::Folder;
pub use table::{Filter, Table, tables};

use std::path::Path;

/// What is wrong with a sweep, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct SweepError {
    pub message: String,
    pub help: Option<String>,
}

impl SweepError {
    fn new(message: impl Into<String>) -> SweepError {
        SweepError { message: message.into(), help: None }
    }

    fn help(self, help: impl Into<String>) -> SweepError {
        SweepError { help: Some(help.into()), ..self }
    }

    fn within(self, path: &Path) -> SweepError {
        SweepError { message: format!("{}: {}", path.display(), self.message), ..self }
    }
}
