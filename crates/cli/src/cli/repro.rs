//! The options of `warploom repro`.

use std::path::PathBuf;

use clap::Args;

use super::sweep::PlaceOptions;

/// `warploom repro`.
#[derive(Args, Clone, Debug)]
pub(crate) struct ReproOptions {
    /// Experiments by their ids, or papers for all of theirs; if none is given, all. `--list` shows them
    #[arg(value_name = "ID|PAPER")]
    pub names: Vec<String>,
    /// List the experiments and what each takes
    #[arg(long, conflicts_with_all = ["quick", "fresh"])]
    pub list: bool,
    /// Run reduced inputs, in seconds
    #[arg(long)]
    pub quick: bool,
    /// The folder for the report and for finished runs
    #[arg(long, value_name = "DIR", default_value = "warploom-repro")]
    pub out: PathBuf,
    /// Run everything again, whatever has been kept
    #[arg(long)]
    pub fresh: bool,
    /// Runs beside each other; if not given, one for each core
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub jobs: Option<u16>,
    #[command(flatten)]
    pub place: PlaceOptions,
    /// Print one JSON object on stdout and nothing else
    #[arg(long)]
    pub json: bool,
}

/// The end of `--help`.
pub(super) const REPRO_EXAMPLES: &str = "\
Examples:
  What there is, and what each takes:
      warploom repro --list
  One experiment, in seconds; then all, into a folder of their own:
      warploom repro fidelity --quick
      warploom repro --out results
  Numbers for a script:
      warploom repro fidelity --json | jq '.experiments[].rows[] | select(.verdict == \"out\")'

DIR gets report.html (everything on one page), report.json, data.csv, plots/*.svg, and a file for each finished run, so
that an interrupted command goes on where it stopped. A kept run counts only for the very model, kernels, chip and
settings that made it. docs/repro.md says what the verdicts mean.

The exit code is 1 if a number lies outside its band or a run failed, 130 after Ctrl-C. With --json the object has
`experiments` [{id, quick, chip, wall_s, verdict, rows [{name, paper, measured, ratio, band, verdict}]}] and the numbers
of rows that are `in` and `out`.";
