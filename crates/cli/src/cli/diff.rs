//! The options of `warploom diff`.

use std::path::PathBuf;

use clap::Args;

/// `warploom diff`.
#[derive(Args, Clone, Debug)]
pub(crate) struct DiffOptions {
    /// The run before: what `warploom run … --profile --json` printed, or the same with `work`
    #[arg(value_name = "A.json")]
    pub a: PathBuf,
    /// The run after
    #[arg(value_name = "B.json")]
    pub b: PathBuf,
    /// Lines and words that are shown, those that changed most
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub lines: u16,
    /// Also write it as a page for a browser
    #[arg(long, value_name = "FILE.html")]
    pub report: Option<PathBuf>,
    /// Print one JSON object on stdout and nothing else
    #[arg(long)]
    pub json: bool,
}

pub(super) const DIFF_EXAMPLES: &str = "\
Examples:
  What BOWS changes in a hash table, by line and by lock:
      warploom work hashtable keys=5_000 buckets=64 --profile --json > plain.json
      warploom work hashtable keys=5_000 buckets=64 --bows --profile --json > bows.json
      warploom diff plain.json bows.json --report diff.html

A line of both runs is one with the same text at the same place; or that moved inside its file; or whose text changed.
With --json the object has `numbers`, `categories`, `lines` and `words`, each with its values in `a` and `b`.";
