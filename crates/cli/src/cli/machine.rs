//! Where and how kernels run: options that several commands share.

use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, ValueEnum};
use warploom::{DelayLimit, SibSource, SimModel, Sms};

/// Which chip, and how it differs from its description.
#[derive(Args, Clone, Debug)]
pub(crate) struct ChipOptions {
    /// A built-in chip (see `warploom chips`) or the path of a chip file [default: by the target of the PTX: gtx480
    /// before sm_60, gtx1080ti before sm_70, h200 from there; or what a workload needs, or gtx480]
    #[arg(long, value_name = "NAME|FILE")]
    pub chip: Option<String>,
    /// Change a value of the chip: `--set sm.count=1`; repeat for more
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
}

impl ChipOptions {
    /// The chip's name.
    pub(crate) fn name(&self) -> &str {
        self.chip.as_deref().unwrap_or("gtx480")
    }
}

/// How a chip is simulated: the model, the scheduler, the host.
#[derive(Args, Clone, Debug)]
pub(crate) struct ModelOptions {
    /// How kernels are executed
    #[arg(long, value_enum, default_value_t)]
    pub model: ModelName,
    /// The warp scheduler: lrr, gto or cawa; if not given, the chip's (`issue.policy`)
    #[arg(long, value_name = "NAME", value_parser = parse_policy)]
    pub sched: Option<String>,
    /// Let warps that spin back off (BOWS), around whatever scheduler
    #[arg(long)]
    pub bows: bool,
    /// The least time between two turns of a spin loop: cycles, or `adaptive`; if not given, the chip's (`issue.bows`).
    /// Switches --bows on
    #[arg(long, value_name = "N|adaptive", value_parser = parse_limit)]
    pub bows_limit: Option<DelayLimit>,
    /// Who names the branches of loops that spin: `ddos` (found by the hardware), `annotated` (by the kernel) or
    /// `static` (by analysis). Switches --bows on
    #[arg(long, value_name = "SOURCE", value_parser = parse_sib)]
    pub sib: Option<SibSource>,
    /// Host threads that the timed model uses; if not given, one for each core. Results do not depend on it
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub threads: Option<u16>,
}

/// Where and how kernels run, and what ends a launch early.
#[derive(Args, Clone, Debug)]
#[command(group = clap::ArgGroup::new("timeline").args(["trace", "report"]).multiple(true))]
pub(crate) struct MachineOptions {
    /// Where to run: `sim`, the simulated chip, or `cuda[:N]`, a real NVIDIA GPU
    #[arg(long, value_name = "sim|cuda[:N]", default_value = "sim")]
    pub device: DeviceName,
    /// The chip.
    #[command(flatten)]
    pub chip: ChipOptions,
    /// How the chip is simulated.
    #[command(flatten)]
    pub sim: ModelOptions,
    /// Show where the time goes: the hottest lines (so many), locks and flags, who waits for whom, barriers, and what
    /// stands out (docs/profile.md). Of several launches, all together
    #[arg(long, value_name = "LINES", num_args = 0..=1, require_equals = true, default_missing_value = "10")]
    pub profile: Option<u16>,
    /// Write who waits for whom as a graph (DOT)
    #[arg(long, value_name = "FILE", requires = "profile")]
    pub profile_graph: Option<PathBuf>,
    /// Write a page for a browser, with nothing outside of it: the summary, warp time over time, the hottest lines in
    /// their source, locks and flags, who waits for whom, and a timeline (docs/reports.md). Of several launches, all
    /// together; the timeline is the last one's
    #[arg(long, value_name = "FILE.html")]
    pub report: Option<PathBuf>,
    /// Write a timeline for the Perfetto viewer (ui.perfetto.dev): what every warp of an SM does, cycle by
    /// cycle. Of several launches, the last one's
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
    /// SMs that the timeline shows: their numbers, or `all`; if not given, SM 0, in a report all
    #[arg(long, value_name = "N,…|all", value_parser = parse_sms, requires = "timeline")]
    pub trace_sm: Option<Sms>,
    /// Cycles that it shows, from the launch's start
    #[arg(long, value_name = "FROM..TO", value_parser = parse_cycles, requires = "timeline")]
    pub trace_cycles: Option<std::ops::Range<u64>>,
    /// The timeline ends when its file has become so large (a page is at least ten times smaller)
    #[arg(long, value_name = "MB", default_value_t = 64, requires = "timeline")]
    pub trace_mb: u32,
    /// Write counters over time, a row after every so many cycles, to a CSV file (samples.csv if none is
    /// named). Of several launches, the last one's
    #[arg(long, value_name = "CYCLES[:FILE]")]
    pub sample: Option<SampleSpec>,
    /// End a launch as hanging after so many cycles; the functional model counts one a warp instruction
    #[arg(long, value_name = "N")]
    pub max_cycles: Option<u64>,
    /// End a launch as hanging after so many seconds (real GPUs)
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    pub time_limit: Option<u64>,
    /// Time so many launches of each kernel, after one to warm up; buffers are restored before each (real GPUs)
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub repeat: u32,
    /// Report reads of memory that nobody has written; finding any makes the exit code 1. Buffers then lie farther
    /// apart, so that an index far past one is a fault
    #[arg(long)]
    pub check_uninit: bool,
    /// Report accesses to shared and global memory that race: two to the same bytes, one of them a write, that no
    /// barrier, fence, atomic or program order puts in order (docs/races.md); finding any makes the exit code 1
    #[arg(long)]
    pub check_races: bool,
}

pub(super) fn parse_policy(text: &str) -> Result<String, String> {
    let known = warploom::policies().iter().map(|&(name, _)| name).collect::<Vec<_>>();
    match known.contains(&text) {
        true => Ok(text.to_string()),
        false => Err(format!("there are {}", known.join(", "))),
    }
}

/// The longest delay limit accepted: longer than any kernel runs.
const LONGEST_DELAY: u64 = 1 << 32;

pub(super) fn parse_limit(text: &str) -> Result<DelayLimit, String> {
    if text == "adaptive" {
        return Ok(DelayLimit::Adaptive);
    }
    match text.replace('_', "").parse() {
        Ok(cycles) if cycles <= LONGEST_DELAY => Ok(DelayLimit::Fixed(cycles)),
        Ok(_) => Err(format!("it can be at most {LONGEST_DELAY} cycles")),
        Err(_) => Err("it is a number of cycles, or `adaptive`".to_string()),
    }
}

pub(super) fn parse_sib(text: &str) -> Result<SibSource, String> {
    let found = SibSource::ALL.iter().find(|(_, name)| *name == text).map(|&(source, _)| source);
    found.ok_or_else(|| format!("there are {}", SibSource::ALL.map(|(_, name)| name).join(", ")))
}

pub(super) fn parse_sms(text: &str) -> Result<Sms, String> {
    if text == "all" {
        return Ok(Sms::All);
    }
    let sms = text.split(',').map(|number| number.trim().parse().map_err(|_| number));
    sms.collect::<Result<_, _>>()
        .map(Sms::Only)
        .map_err(|number| format!("`{number}` is no SM's number, nor `all`"))
}

pub(super) fn parse_cycles(text: &str) -> Result<std::ops::Range<u64>, String> {
    let parse = |text: &str, missing| match text.replace('_', "").trim() {
        "" => Ok(missing),
        number => number.parse::<u64>().map_err(|_| format!("`{number}` is no number of cycles")),
    };
    let (from, to) = text.split_once("..").ok_or("write it as FROM..TO, such as 1000..5000")?;
    let range = parse(from, 0)?..parse(to, u64::MAX)?;
    if range.is_empty() { Err("it ends before it begins".to_string()) } else { Ok(range) }
}

/// `--sample CYCLES[:FILE]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SampleSpec {
    /// Cycles between two rows.
    pub cycles: u64,
    pub file: PathBuf,
}

impl FromStr for SampleSpec {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (cycles, file) = text.split_once(':').unwrap_or((text, "samples.csv"));
        match (cycles.replace('_', "").parse(), file) {
            (Ok(0) | Err(_), _) => Err(format!("`{cycles}` is no number of cycles")),
            (_, "") => Err("the file's name is missing".to_string()),
            (Ok(cycles), file) => Ok(SampleSpec { cycles, file: file.into() }),
        }
    }
}

/// Where kernels run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum DeviceName {
    #[default]
    Sim,
    /// On the real GPU with this number.
    Cuda(usize),
}

impl FromStr for DeviceName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            None if text == "sim" => Ok(DeviceName::Sim),
            None if text == "cuda" => Ok(DeviceName::Cuda(0)),
            Some(("cuda", number)) => {
                number.parse().map(DeviceName::Cuda).map_err(|_| format!("`{number}` is no GPU's number"))
            }
            _ => Err("it is `sim`, `cuda`, or `cuda:N` for GPU N".to_string()),
        }
    }
}

/// How a kernel is executed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ModelName {
    /// Cycle by cycle
    #[default]
    Timing,
    /// Values without timing, as fast as the host can
    Functional,
    /// Samples of CTAs and launches cycle by cycle, estimates for the rest: for large programs. The output says how
    /// much was timed and how far off the cycles may be (docs/fast.md)
    Fast,
}

impl ModelName {
    /// As it is written.
    pub(crate) fn name(self) -> &'static str {
        match self {
            ModelName::Timing => "timing",
            ModelName::Functional => "functional",
            ModelName::Fast => "fast",
        }
    }
}

impl From<ModelName> for SimModel {
    fn from(name: ModelName) -> SimModel {
        match name {
            ModelName::Functional => SimModel::Functional,
            ModelName::Timing => SimModel::Timing,
            ModelName::Fast => SimModel::Fast,
        }
    }
}
