//! The options of `exec`: a CUDA program on the simulated chip.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

use super::machine::{ChipOptions, ModelOptions};

pub(super) const EXEC_EXAMPLES: &str = "\
Examples:
  A program as nvcc has built it, on the chip of its PTX's generation:
      warploom exec -- ./app 1000
  Under another scheduler, with spinning warps backing off, and a line of JSON for each launch:
      warploom exec --sched gto --bows --json launches.jsonl -- ./app 1000
  Where the time of its kernels goes, as text and as a page for a browser:
      warploom exec --profile --report app.html -- ./app 1000
  The whole program under every warp scheduler, without BOWS and with it:
      warploom exec --compare -- ./app 1000
  A program of many launches: the first of each kernel is timed, the rest only executed:
      warploom exec --timed first:1 -- ./app

The program must have PTX in it (nvcc -gencode arch=compute_75,code=compute_75, or -arch=compute_75). The command
exits with the program's exit code; a table of its kernels comes at its end, on stderr.";

/// `warploom exec`.
#[derive(Args, Clone, Debug)]
pub(crate) struct ExecOptions {
    /// The chip.
    #[command(flatten)]
    pub chip: ChipOptions,
    /// How the chip is simulated.
    #[command(flatten)]
    pub sim: ModelOptions,
    /// Which launches are timed; the others are executed functionally: `all`, `first:N` (of each kernel), `every:N` (of
    /// each kernel), `kernel=NAME`, or `range:A..B` (by their number in the program, from 0)
    #[arg(long, value_name = "WHICH", default_value = "all")]
    pub timed: String,
    /// Write a line of JSON for each launch as it ends
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// End a launch as hanging after so many seconds
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    pub time_limit: Option<u64>,
    /// End a launch as hanging after so many cycles; the functional model counts one a warp instruction
    #[arg(long, value_name = "N")]
    pub max_cycles: Option<u64>,
    /// Bandwidth of copies between host and device, in 1e9 bytes per second [default: 12]
    #[arg(long, value_name = "GB/S")]
    pub link_gbps: Option<f64>,
    /// What accesses outside of allocations do. `warn`: a load near one reads zeros, with a warning for each line;
    /// `fault`: every access faults; `rounded`: as `warn`, and allocations end at multiples of 512 bytes, as on a GPU
    /// [default: warn]
    #[arg(long, value_name = "WHAT", value_parser = ["warn", "fault", "rounded"])]
    pub bounds: Option<String>,
    /// Show where the time of each kernel goes, over all of its timed launches, when the program has ended: so many of
    /// the hottest lines, locks and flags, who waits for whom, what stands out (docs/profile.md)
    #[arg(long, value_name = "LINES", num_args = 0..=1, require_equals = true, default_missing_value = "10")]
    pub profile: Option<u16>,
    /// Write a page for a browser: all kernels, and of each what `warploom run --report` shows, without a timeline
    #[arg(long, value_name = "FILE.html")]
    pub report: Option<PathBuf>,
    /// Write a timeline of the last timed launch for the Perfetto viewer (ui.perfetto.dev); --timed chooses another
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
    /// The SM that the timeline shows, by its number, or `all`; if not given, SM 0
    #[arg(long, value_name = "N|all", requires = "trace", value_parser = parse_sm)]
    pub trace_sm: Option<String>,
    /// Run the program under every warp scheduler, with spinning warps backing off (BOWS) and without, one after the
    /// other, and compare its timed launches. What the program prints is shown of the first run only
    #[arg(long, conflicts_with_all = ["profile", "report", "trace", "json", "sched", "bows", "bows_limit", "sib"])]
    pub compare: bool,
    /// No table of kernels at the end
    #[arg(long)]
    pub quiet: bool,
    /// The program and its arguments
    #[arg(value_name = "PROGRAM", required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    pub program: Vec<OsString>,
}

fn parse_sm(text: &str) -> Result<String, String> {
    match text == "all" || text.parse::<u32>().is_ok() {
        true => Ok(text.to_string()),
        false => Err(format!("`{text}` is no SM's number, nor `all`")),
    }
}
