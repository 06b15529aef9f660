//! The options of `warploom compare`.

use std::path::PathBuf;

use clap::Args;
use warploom::{DelayLimit, SibSource};

use super::cuda::CudaOptions;
use super::machine::{ChipOptions, parse_limit, parse_policy, parse_sib};
use super::run::LaunchOptions;

/// `warploom compare`.
#[derive(Args, Clone, Debug)]
pub(crate) struct CompareOptions {
    /// A file with a kernel: CUDA, PTX or a SASS listing; a plan of several launches; or the name of a built-in
    /// workload (`work --list`)
    #[arg(value_name = "KERNEL.{cu,ptx,sass}|PLAN.toml|WORKLOAD")]
    pub what: PathBuf,
    /// Parameters of a workload or plan; those not given have their defaults
    #[arg(value_name = "PARAM=VALUE")]
    pub params: Vec<String>,
    /// The launch of a kernel from a file.
    #[command(flatten)]
    pub launch: LaunchOptions,
    /// Warp schedulers to compare, with commas between; if not given, all. The first is what times are relative to
    #[arg(long, value_name = "NAME,…", value_delimiter = ',', value_parser = parse_policy)]
    pub policy: Vec<String>,
    /// The least time between two turns of a spin loop under BOWS: cycles, or `adaptive`; if not given, the chip's
    #[arg(long, value_name = "N|adaptive", value_parser = parse_limit)]
    pub bows_limit: Option<DelayLimit>,
    /// Who names the branches of loops that spin, under BOWS: `ddos`, `annotated` or `static`; if not given, the chip's
    #[arg(long, value_name = "SOURCE", value_parser = parse_sib)]
    pub sib: Option<SibSource>,
    /// The chip.
    #[command(flatten)]
    pub chip: ChipOptions,
    /// Runs that go at the same time, each on one host thread; if not given, one for each core
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub threads: Option<u16>,
    /// End a launch as hanging after so many cycles; if not given, one without BOWS after 20 times those of
    /// the longest run with it
    #[arg(long, value_name = "N")]
    pub max_cycles: Option<u64>,
    /// Report accesses that race, in each run (docs/races.md); finding any makes the exit code 1
    #[arg(long)]
    pub check_races: bool,
    /// Also write a page for a browser: the table, and of each run what `warploom run --report` shows (docs/reports.md)
    #[arg(long, value_name = "FILE.html")]
    pub report: Option<PathBuf>,
    /// The compiler of CUDA.
    #[command(flatten)]
    pub cuda: CudaOptions,
    /// Print one JSON object on stdout and nothing else
    #[arg(long)]
    pub json: bool,
}

pub(super) const COMPARE_EXAMPLES: &str = "\
Examples:
  A kernel of your own, launched as `warploom run` would (its --help explains --arg):
      warploom compare kernels/spinlock.ptx --entry spinlock_inc --grid 30 --block 128 --arg buf:u32:1=zero \\
               --arg buf:u32:1=zero --arg u32:1
  A built-in workload, two schedulers, a fixed delay limit:
      warploom compare hashtable keys=20_000 buckets=64 --policy lrr,gto --bows-limit 1000
  Cycles and energy for a script:
      warploom compare atm --json | jq -c '.rows[] | [.sched, .bows, .cycles, .energy_nj.total]'

A row for each scheduler without BOWS and with it (+bows): cycles, and as a multiple of the first row's and of \
the fewest;
warp instructions; lanes that did not get a lock because another warp had it (inter) or their own (intra), and looks at
something waited for that was not there yet (waits); SIMD efficiency; energy, and what of it is dynamic
(docs/energy.md); how it ended. A run that hangs or faults is a row that says so, with what it did until then, and its
explanation on stderr; the others still run.

With --json the object has `rows`, each with the keys of a launch (`warploom run --json`; a workload's are \
summed over its
launches), and `result` (ok, wrong, fault, hang), `check_message`, `relative_to_first`, `relative_to_best`, `error`.

Exit codes: 0 if a run ended and no result is wrong, 1 if one is wrong or has races; if none ended, 3 if all faulted,
else 4; 2 bad usage or input.";
