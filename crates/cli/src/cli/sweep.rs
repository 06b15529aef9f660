//! The options of `warploom sweep`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use warploom_lab::sweep::Filter;

/// `warploom sweep`.
#[derive(Args, Clone, Debug)]
pub(crate) struct SweepOptions {
    #[command(subcommand)]
    pub action: SweepAction,
}

#[derive(Subcommand, Clone, Debug)]
pub(crate) enum SweepAction {
    /// Execute the runs of a sweep that are missing
    Run(SweepRunOptions),
    /// Tell how many runs have ended, how, and what the rest will take
    Status(SweepStatusOptions),
    /// Write the results as tables, or plot them
    Results(SweepResultsOptions),
}

impl SweepAction {
    pub(crate) fn json(&self) -> bool {
        match self {
            SweepAction::Run(options) => options.json,
            SweepAction::Status(options) => options.json,
            SweepAction::Results(options) => options.json,
        }
    }
}

/// `warploom sweep run`.
#[derive(Args, Clone, Debug)]
pub(crate) struct SweepRunOptions {
    /// The sweep file
    #[arg(value_name = "SWEEP.toml")]
    pub file: PathBuf,
    /// The folder for results [default: the file's name with .sweep, in the current folder]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Runs beside each other, each in a process of its own; if not given, one for each core
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub jobs: Option<u16>,
    #[command(flatten)]
    pub place: PlaceOptions,
    /// Execute again the runs that ended for want of time or memory, or because Warploom failed
    #[arg(long)]
    pub retry: bool,
    /// Show how many runs there are, and execute none
    #[arg(long)]
    pub dry_run: bool,
    /// Execute more than a million runs without asking
    #[arg(long)]
    pub yes: bool,
    /// Print one JSON object on stdout and nothing else
    #[arg(long)]
    pub json: bool,
}

/// Where runs are executed.
#[derive(Args, Clone, Debug)]
pub(crate) struct PlaceOptions {
    /// Where to execute runs: on this computer, or by job arrays of Slurm, with the folder on a file system that its
    /// nodes see
    #[arg(long, value_enum, default_value_t)]
    pub on: PlaceName,
    /// Slurm's partition
    #[arg(long, value_name = "NAME")]
    pub partition: Option<String>,
    /// Slurm's account
    #[arg(long, value_name = "NAME")]
    pub account: Option<String>,
    /// Any other option of sbatch, such as --sbatch=--qos=long; repeat for more
    #[arg(long, value_name = "OPTION", allow_hyphen_values = true)]
    pub sbatch: Vec<String>,
    /// Runs per task of Slurm; if not given, as many as take two minutes
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub chunk: Option<u32>,
}

impl PlaceOptions {
    /// Options of `sbatch`.
    pub(crate) fn sbatch_options(&self) -> Vec<String> {
        let partition = self.partition.iter().map(|name| format!("--partition={name}"));
        let account = self.account.iter().map(|name| format!("--account={name}"));
        partition.chain(account).chain(self.sbatch.iter().cloned()).collect()
    }

    /// An option that only Slurm understands, without Slurm.
    pub(crate) fn stray(&self) -> Option<&'static str> {
        let given = [
            (self.partition.is_some(), "--partition"),
            (self.account.is_some(), "--account"),
            (!self.sbatch.is_empty(), "--sbatch"),
            (self.chunk.is_some(), "--chunk"),
        ];
        let stray = given.into_iter().find(|(given, _)| *given).map(|(_, option)| option);
        stray.filter(|_| self.on == PlaceName::Local)
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum PlaceName {
    /// This computer
    #[default]
    Local,
    /// A cluster
    Slurm,
}

/// What a task of Slurm executes.
#[derive(Args, Clone, Debug)]
pub(crate) struct ExecuteRunsOptions {
    /// The folder of finished runs
    pub runs: PathBuf,
    /// The list of runs
    pub list: PathBuf,
    /// Runs per task
    pub chunk: usize,
    /// The task's number
    pub task: usize,
    #[arg(long)]
    pub time_s: Option<f64>,
    #[arg(long)]
    pub memory_mb: Option<u64>,
}

/// `warploom sweep status`.
#[derive(Args, Clone, Debug)]
pub(crate) struct SweepStatusOptions {
    /// The sweep file, or the folder with its results
    #[arg(value_name = "SWEEP.toml|DIR")]
    pub sweep: PathBuf,
    /// The folder with the results, if a file is given [default: as for `run`]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Print one JSON object on stdout and nothing else
    #[arg(long)]
    pub json: bool,
}

/// `warploom sweep results`.
#[derive(Args, Clone, Debug)]
pub(crate) struct SweepResultsOptions {
    /// The sweep file, or the folder with its results
    #[arg(value_name = "SWEEP.toml|DIR")]
    pub sweep: PathBuf,
    /// The folder with the results, if a file is given [default: as for `run`]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Write the table of runs as CSV to a file, and the others beside it (FILE-launches.csv); `-` for stdout, only
    /// that of runs
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Write the tables as Parquet, likewise (FILE-launches.parquet)
    #[arg(long, value_name = "FILE")]
    pub parquet: Option<PathBuf>,
    /// Print all tables as one JSON object on stdout and nothing else
    #[arg(long)]
    pub json: bool,
    /// Plot a figure against a setting: x=COLUMN y=COLUMN [color=COLUMN] [facet=COLUMN] [log=x,y]
    #[arg(long, value_name = "KEY=VALUE", num_args = 1..)]
    pub plot: Vec<String>,
    /// The file of the plot: .svg, or .html for a page with the numbers
    #[arg(long, value_name = "FILE", default_value = "plot.svg", requires = "plot")]
    pub to: PathBuf,
    /// Only runs of which a column has this value; repeat for more
    #[arg(long = "where", value_name = "COLUMN=VALUE")]
    pub filters: Vec<Filter>,
    /// Add what each run took of the host, which differs from time to time: host_s and host_peak_bytes
    #[arg(long)]
    pub host: bool,
}

/// The end of `--help`.
pub(super) const SWEEP_EXAMPLES: &str = "\
A sweep file:
  work = \"hashtable\"
  sched = [\"lrr\", \"gto\"]
  bows = [\"off\", \"adaptive\", 1000]
  seeds = 5

  [params]
  keys = 2_000
  buckets = { from = 16, to = 1024, times = 2 }

Examples:
  Execute it on all cores; after Ctrl-C or a crash the same command goes on:
      warploom sweep run contention.toml
  On a cluster; the same command, later, submits again what was cancelled or lost:
      warploom sweep run contention.toml --on slurm --partition cpu --sbatch=--qos=long
  How far is it?
      warploom sweep status contention.toml
  One row per run, for any tool; and a plot with error bars over seeds:
      warploom sweep results contention.toml --csv contention.csv --parquet contention.parquet
      warploom sweep results contention.toml --plot x=buckets y=cycles color=sched facet=bows log=x,y

docs/sweeps.md explains the file and the tables. The exit code of `run` is 0 when all runs have ended, however they did:
a hang or a fault is a result. It is 2 if results could not be kept, and 130 after Ctrl-C.";
