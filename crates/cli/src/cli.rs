//! The command line: commands, options and their parsers. Doc comments on options are their `--help` texts.

mod compare;
mod repro;

use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, Parser, Subcommand, ValueEnum};
use warploom::{DelayLimit, SibSource, SimModel};

use crate::arg::{ArgSpec, DumpSpec, SaveSpec, parse_dims};
pub(crate) use compare::CompareOptions;
pub(crate) use repro::ReproOptions;

/// A laboratory for fine-grained synchronization on GPUs: run PTX kernels and SASS listings on a model of a GPU.
#[derive(Debug, Parser)]
#[command(name = "warploom", version, max_term_width = 110, after_help = EXAMPLES, disable_help_subcommand = true)]
pub(crate) struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

const EXAMPLES: &str = "\
Examples:
  What is in a file, what each kernel needs, which loops may wait for somebody else:
      warploom check kernels/spinlock.ptx
  Add two vectors and look at the first sums:
      warploom run kernels/vecadd.ptx --grid 4096 --block 256 --arg buf:f32:1048576=iota \\
               --arg buf:f32:1048576=iota --arg buf:f32:1048576=zero --arg u32:1048576 --dump 2:8
  A built-in workload, with its own input and a check of its result:
      warploom work hashtable keys=5_000 buckets=64
  The chips, and every number of one of them:
      warploom chips
      warploom chips gtx480

Exit codes: 0 good; 1 a check failed; 2 bad usage or input; 3 the kernel faulted; 4 it hangs or reached a limit;
130 interrupted.

`warploom COMMAND --help` tells more about each command.";

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a kernel and show what it did
    #[command(after_help = RUN_EXAMPLES)]
    Run(Box<RunOptions>),
    /// Run a built-in workload, with its own input, and check its result
    #[command(after_help = WORK_EXAMPLES)]
    Work(Box<WorkOptions>),
    /// Run a kernel or a workload under every warp scheduler, with spinning warps backing off and without, and compare
    #[command(after_help = compare::COMPARE_EXAMPLES)]
    Compare(Box<CompareOptions>),
    /// Run the papers' experiments and hold the numbers beside theirs
    #[command(after_help = repro::REPRO_EXAMPLES)]
    Repro(ReproOptions),
    /// Tell what loads, what each kernel needs, and which loops may wait for another thread
    Check(CheckOptions),
    /// Assemble a SASS listing and print it, or print a PTX kernel as a listing, to be edited and run
    #[command(after_help = ASM_EXAMPLES)]
    Asm(AsmOptions),
    /// Show the channel-flow graph of a workload: its kernels, channels and their memory
    Graph(GraphOptions),
    /// List the chips that can be modelled, or show one
    Chips(ChipsOptions),
    /// List the real GPUs of this computer and their limits
    Devices(DevicesOptions),
    /// Compare the machine with results recorded on real GPUs, record them, or run random programs on both
    #[command(after_help = CONFORM_EXAMPLES)]
    Conform(ConformOptions),
    /// Measure what single operations cost in cycles: arithmetic, memory, atomics, barriers
    Anchors(AnchorsOptions),
    /// Hold the times of workloads on a real GPU beside those of its model: how true the model is
    #[command(after_help = CORRELATE_EXAMPLES)]
    Correlate(CorrelateOptions),
    /// Measure how many simulated warp instructions a second this computer runs
    Speed(SpeedOptions),
    /// Serve a real GPU on standard input and output, for the process that started this one
    #[command(hide = true)]
    ServeGpu,
    /// Print a completion script for a shell
    Completions {
        /// Which shell
        shell: clap_complete::Shell,
    },
}

impl Command {
    /// Whether the output is one JSON object.
    pub(crate) fn json(&self) -> bool {
        match self {
            Command::Run(options) => options.json,
            Command::Work(options) => options.json,
            Command::Compare(options) => options.json,
            Command::Repro(options) => options.json,
            Command::Check(options) => options.json,
            Command::Asm(_) | Command::Graph(_) => false,
            Command::Chips(options) => options.json,
            Command::Devices(options) => options.json,
            Command::Conform(options) => options.json,
            Command::Anchors(options) => options.json,
            Command::Correlate(options) => options.json,
            Command::Speed(options) => options.json,
            Command::ServeGpu | Command::Completions { .. } => false,
        }
    }
}

/// Which chip, and how it differs from its description.
#[derive(Args, Clone, Debug)]
pub(crate) struct ChipOptions {
    /// A built-in chip (see `warploom chips`) or the path of a chip file [default: gtx480, or what a workload needs]
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

/// Where and how kernels run, and what ends a launch early.
#[derive(Args, Clone, Debug)]
pub(crate) struct MachineOptions {
    /// Where to run: `sim`, the simulated chip, or `cuda[:N]`, a real NVIDIA GPU
    #[arg(long, value_name = "sim|cuda[:N]", default_value = "sim")]
    pub device: DeviceName,
    /// The chip.
    #[command(flatten)]
    pub chip: ChipOptions,
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
    /// Write a timeline for the Perfetto viewer (ui.perfetto.dev): what every warp of an SM does, cycle by
    /// cycle. Of several launches, the last one's
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
    /// SMs that the timeline shows
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_value = "0", requires = "trace")]
    pub trace_sm: Vec<u32>,
    /// Cycles that it shows, from the launch's start
    #[arg(long, value_name = "FROM..TO", value_parser = parse_cycles, requires = "trace")]
    pub trace_cycles: Option<std::ops::Range<u64>>,
    /// The timeline ends when its file has become so large
    #[arg(long, value_name = "MB", default_value_t = 64, requires = "trace")]
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
    /// Report reads of memory that nobody has written; finding any makes the exit code 1
    #[arg(long)]
    pub check_uninit: bool,
    /// Report accesses to shared and global memory that race: two to the same bytes, one of them a write, that no
    /// barrier, fence, atomic or program order puts in order (docs/races.md); finding any makes the exit code 1
    #[arg(long)]
    pub check_races: bool,
}

fn parse_policy(text: &str) -> Result<String, String> {
    let known = warploom::policies().iter().map(|&(name, _)| name).collect::<Vec<_>>();
    match known.contains(&text) {
        true => Ok(text.to_string()),
        false => Err(format!("there are {}", known.join(", "))),
    }
}

/// The longest delay limit accepted: longer than any kernel runs.
const LONGEST_DELAY: u64 = 1 << 32;

fn parse_limit(text: &str) -> Result<DelayLimit, String> {
    if text == "adaptive" {
        return Ok(DelayLimit::Adaptive);
    }
    match text.replace('_', "").parse() {
        Ok(cycles) if cycles <= LONGEST_DELAY => Ok(DelayLimit::Fixed(cycles)),
        Ok(_) => Err(format!("it can be at most {LONGEST_DELAY} cycles")),
        Err(_) => Err("it is a number of cycles, or `adaptive`".to_string()),
    }
}

fn parse_sib(text: &str) -> Result<SibSource, String> {
    let found = SibSource::ALL.iter().find(|(_, name)| *name == text).map(|&(source, _)| source);
    found.ok_or_else(|| format!("there are {}", SibSource::ALL.map(|(_, name)| name).join(", ")))
}

fn parse_cycles(text: &str) -> Result<std::ops::Range<u64>, String> {
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

/// `warploom conform`.
#[derive(Args, Clone, Debug)]
pub(crate) struct ConformOptions {
    /// What to do; without it, replay the recorded results
    #[command(subcommand)]
    pub action: Option<ConformAction>,
    /// Where to run: `sim` or `cuda[:N]`; recording needs a real GPU
    #[arg(long, value_name = "sim|cuda[:N]", default_value = "sim", global = true)]
    pub device: DeviceName,
    /// The simulated chip
    #[arg(long, value_name = "NAME|FILE", default_value = "h200", global = true)]
    pub chip: String,
    /// The folder with recorded results
    #[arg(long, value_name = "DIR", default_value = "crates/lab/vectors", global = true)]
    pub vectors: PathBuf,
    /// Print one JSON object on stdout and nothing else
    #[arg(long, global = true)]
    pub json: bool,
}

/// What `conform` can do besides replaying.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum ConformAction {
    /// Run every instruction of the catalogue on a real GPU and write what comes out
    Record,
    /// Run random programs on the simulated chip and on a real GPU (without one: with timing and without), and compare
    /// what they leave in memory
    Fuzz {
        /// How many programs
        #[arg(long, value_name = "N", default_value_t = 200)]
        count: u64,
        /// The first program's seed
        #[arg(long, value_name = "N", default_value_t = 0)]
        seed: u64,
        /// How much the driver's compiler optimises the programs, 0 to 4; what differs is tried at other levels too
        #[arg(long, value_name = "LEVEL", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=4))]
        jit_level: u32,
        /// Write the results of a real GPU to the folder instead, for later replays
        #[arg(long)]
        record: bool,
    },
    /// Write all generated PTX to a folder, for other tools to look at
    Export {
        /// Where to
        #[arg(value_name = "DIR")]
        dir: PathBuf,
        /// Random programs to write besides the catalogue
        #[arg(long, value_name = "N", default_value_t = 50)]
        programs: u64,
    },
}

const CONFORM_EXAMPLES: &str = "\
Examples:
  Does the machine give what a real GPU gave? (From the repository's root; no GPU needed.)
      warploom conform
  Record again on this computer's GPU, the instructions and 500 programs:
      warploom conform record --device cuda
      warploom conform fuzz --device cuda --record --count 500
  10,000 random programs on the simulator and the GPU:
      warploom conform fuzz --device cuda --count 10000";

/// `warploom anchors`.
#[derive(Args, Clone, Debug)]
pub(crate) struct AnchorsOptions {
    /// Where to run: `sim` or `cuda[:N]`
    #[arg(long, value_name = "sim|cuda[:N]", default_value = "sim")]
    pub device: DeviceName,
    /// The simulated chip
    #[command(flatten)]
    pub chip: ChipOptions,
    /// Runs of each anchor; the median counts
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    pub repeat: u32,
    /// Print one JSON object on stdout and nothing else
    #[arg(long)]
    pub json: bool,
}

/// `warploom correlate`.
#[derive(Args, Clone, Debug)]
pub(crate) struct CorrelateOptions {
    /// The chip whose model is held beside stored times of the real one
    #[arg(default_value = "h200")]
    pub chip: String,
    /// Change a value of the chip: `--set l2.latency_cycles=250`; repeat for more
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Only points whose name or class contains this
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub points: String,
    /// Measure the points on a real GPU and print their times, to be stored
    #[arg(long, value_name = "cuda[:N]")]
    pub device: Option<DeviceName>,
    /// Launches of each kernel that are timed; the median counts
    #[arg(long, value_name = "N", default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..))]
    pub repeat: u32,
    /// Print one JSON object on stdout and nothing else
    #[arg(long)]
    pub json: bool,
}

pub(crate) const CORRELATE_EXAMPLES: &str = "\
Examples:
  How far the h200 is from the real chip, the worst point first:
      warploom correlate h200
  Hash tables alone, on a changed chip:
      warploom correlate h200 --points hashtable --set atomic.pass_cycles=2.0
  Measure all points on the GPU of this computer:
      warploom correlate --device cuda > crates/lab/correlate/h200.json";

/// `warploom graph`.
#[derive(Debug, clap::Args)]
pub(crate) struct GraphOptions {
    /// The workload: fibonacci, queens, sort, strassen
    pub name: String,
    /// Parameters of the workload; those not given have their defaults
    #[arg(value_name = "NAME=VALUE")]
    pub params: Vec<String>,
    /// Print it in the language of Graphviz, to be drawn: warploom graph sort --dot | dot -Tsvg
    #[arg(long)]
    pub dot: bool,
}

/// `warploom devices`.
#[derive(Args, Clone, Debug)]
pub(crate) struct DevicesOptions {
    /// Print one JSON object on stdout and nothing else
    #[arg(long)]
    pub json: bool,
}

/// How a kernel of a file is launched, and with what.
#[derive(Args, Clone, Debug)]
pub(crate) struct LaunchOptions {
    /// The kernel to run; not needed if the file has only one
    #[arg(long, value_name = "NAME")]
    pub entry: Option<String>,
    /// CTAs of the grid
    #[arg(long, value_name = "X[,Y[,Z]]", value_parser = parse_dims, default_value = "1")]
    pub grid: [u32; 3],
    /// Threads of a CTA; if not given, what the kernel requires (.reqntid), or 1
    #[arg(long, value_name = "X[,Y[,Z]]", value_parser = parse_dims)]
    pub block: Option<[u32; 3]>,
    /// Bytes of dynamic shared memory, for the kernel's `extern __shared__` array
    #[arg(long, value_name = "BYTES", default_value_t = 0)]
    pub shared: u32,
    /// An argument of the kernel, in the order of its parameters; see below
    #[arg(long = "arg", value_name = "ARG")]
    pub args: Vec<ArgSpec>,
}

/// `warploom run`.
#[derive(Args, Clone, Debug)]
pub(crate) struct RunOptions {
    /// The file with the kernel: PTX text or a SASS listing
    #[arg(value_name = "KERNEL.ptx")]
    pub file: PathBuf,
    /// The launch.
    #[command(flatten)]
    pub launch: LaunchOptions,
    /// After the launch, print the first N elements (or all) of argument I's buffer on a line; I counts from 0
    #[arg(long, value_name = "I[:N]")]
    pub dump: Vec<DumpSpec>,
    /// After the launch, write argument I's buffer to a file as raw little-endian bytes
    #[arg(long, value_name = "I=FILE")]
    pub save: Vec<SaveSpec>,
    /// Launch all CTAs at once, so that they may wait for each other (real GPUs)
    #[arg(long)]
    pub cooperative: bool,
    /// The machine.
    #[command(flatten)]
    pub machine: MachineOptions,
    /// Print one JSON object on stdout and nothing else
    #[arg(long)]
    pub json: bool,
}

const RUN_EXAMPLES: &str = "\
Arguments (--arg):
  TYPE:VALUE           a number: s32:-5, u64:7, f32:1.5, b32:0xff; types are s8…s64, u8…u64, b8…b64, f16, bf16, f32, f64
  buf:TYPE:COUNT=FILL  a buffer in device memory; the kernel gets its address. FILL is
                         zero           zeros
                         iota           0, 1, 2 …
                         random[:SEED]  integers over their whole range, floats from 0 up to 1
                         value:V        V everywhere
                         list:V,V,…     these values
                         uninit         nothing (for --check-uninit)
                         @FILE          the file's bytes, little-endian, exactly COUNT elements
  bytes:HEX            a struct, byte by byte: bytes:0100000000000040
  null                 a null pointer; the same as u64:0

Examples:
  Add two vectors and look at the first sums:
      warploom run kernels/vecadd.ptx --grid 4096 --block 256 --arg buf:f32:1048576=iota \\
               --arg buf:f32:1048576=iota --arg buf:f32:1048576=zero --arg u32:1048576 --dump 2:8
  Multiply matrices from files, two-dimensional, on another chip:
      warploom run kernels/matmul.ptx --chip h200 --grid 8,8 --block 16,16 --arg buf:f32:16384=@a.bin \\
               --arg buf:f32:16384=@b.bin --arg buf:f32:16384=zero --arg u32:128 --save 2=c.bin
  Is this lock safe? If not, see who waits for whom:
      warploom run kernels/spinlock.ptx --entry naivelock --block 32 --arg buf:u32:1=zero \\
               --arg buf:u32:1=zero
  What every warp of SM 0 does, cycle by cycle, for the Perfetto viewer, and counters every 1,000 cycles:
      warploom run kernels/spinlock.ptx --entry spinlock_inc --grid 4 --block 64 --arg buf:u32:1=zero \\
               --arg buf:u32:1=zero --arg u32:1 --trace lock.pftrace --sample 1000:lock.csv
  Numbers for a script:
      warploom run kernels/reduce.ptx --grid 64 --block 256 --arg buf:u32:16384=random:1 \\
               --arg buf:u32:1=zero --arg u32:16384 --json | jq .warp_insts

With --json the object has the launch's numbers, what the kernel printed (`output`) and the `dumps`. If the launch
fails, it has `error` {kind, exit_code, message, help} and the numbers up to there. Only a command line that cannot be
understood prints no object.";

/// `warploom work`.
#[derive(Args, Clone, Debug)]
pub(crate) struct WorkOptions {
    /// The workload; `--list` shows them all
    #[arg(required_unless_present = "list")]
    pub name: Option<String>,
    /// Parameters of the workload; those not given have their defaults
    #[arg(value_name = "PARAM=VALUE")]
    pub params: Vec<String>,
    /// List the workloads and their parameters with the defaults
    #[arg(long, conflicts_with = "name")]
    pub list: bool,
    /// The alignment of two sequences, with workload `nw`.
    #[command(flatten)]
    pub fasta: FastaOptions,
    /// The machine.
    #[command(flatten)]
    pub machine: MachineOptions,
    /// Print one JSON object on stdout and nothing else
    #[arg(long)]
    pub json: bool,
}

/// What workload `nw` aligns instead of random input.
#[derive(Args, Clone, Debug)]
pub(crate) struct FastaOptions {
    /// Align the first sequences of two FASTA files, with workload `nw`
    #[arg(long, num_args = 2, value_names = ["A.fa", "B.fa"], requires = "name")]
    pub fasta: Vec<PathBuf>,
    /// What the letters are
    #[arg(long, value_enum, default_value_t, requires = "fasta")]
    pub alphabet: AlphabetName,
    /// What two equal nucleotides earn
    #[arg(
        long = "match",
        value_name = "N",
        default_value_t = 5,
        allow_negative_numbers = true,
        requires = "fasta"
    )]
    pub matching: i16,
    /// What two different nucleotides earn
    #[arg(long = "mismatch", value_name = "N", default_value_t = -4, allow_negative_numbers = true, requires = "fasta")]
    pub mismatching: i16,
}

/// An alphabet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum AlphabetName {
    /// Nucleotides if there is nothing but ACGTUN, else amino acids
    #[default]
    Auto,
    /// Amino acids, scored by BLOSUM62
    Protein,
    /// Nucleotides, scored by --match and --mismatch
    Nucleotide,
}

const WORK_EXAMPLES: &str = "\
Examples:
  What there is, and what can be chosen:
      warploom work --list
  A hash table under locks, with more contention than usual, on another chip:
      warploom work hashtable keys=5_000 buckets=64 --chip gtx1080ti
  The same kernels on this computer's GPU:
      warploom work nw size=1984 --device cuda
  The same as a dataflow of threads that wait for each other with lock bits, on a chip that has them:
      warploom work nw size=62 version=tiny
  Align two sequences; a gap costs 8:
      warploom work nw --fasta human.fa mouse.fa penalty=8
  Numbers for a script:
      warploom work matmul size=128 --json | jq .warp_insts

The exit code is 1 if the result is not the one that the host computes. With --json the object has the keys of a launch
(`warploom run --json`), summed over all launches, and `workload`, `params`, `check` (true or false), `check_message`,
`launches` (how many), `longest_launch_cycles`, `figures` (what the workload measured itself) and `per_launch` \
(each one's
kernel, shape, cycles and instructions).";

/// How a kernel is executed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ModelName {
    /// Cycle by cycle
    #[default]
    Timing,
    /// Values without timing, as fast as the host can
    Functional,
}

impl From<ModelName> for SimModel {
    fn from(name: ModelName) -> SimModel {
        match name {
            ModelName::Functional => SimModel::Functional,
            ModelName::Timing => SimModel::Timing,
        }
    }
}

/// `warploom asm`.
#[derive(Args, Clone, Debug)]
pub(crate) struct AsmOptions {
    /// A listing to assemble, check and print in its canonical form
    #[arg(value_name = "FILE.sass", required_unless_present = "from", conflicts_with = "from")]
    pub file: Option<PathBuf>,
    /// Print this PTX as a listing
    #[arg(long, value_name = "KERNEL.ptx")]
    pub from: Option<PathBuf>,
    /// Only this kernel, with the functions and variables of its module
    #[arg(long, value_name = "NAME")]
    pub entry: Option<String>,
    /// Write the listing to a file
    #[arg(short, long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

const ASM_EXAMPLES: &str = "\
Examples:
  Take a kernel as the compiler left it, put lock bits where its atomics are, and run it:
      warploom asm --from kernels/histogram.ptx --entry histogram_shared -o histogram.sass
      $EDITOR histogram.sass
      warploom run histogram.sass --grid 16 --block 256 …
  Check a listing and see how it is understood:
      warploom asm kernels/listings/counter.sass

The language of listings is described in docs/sass.md.";

/// `warploom check`.
#[derive(Args, Clone, Debug)]
pub(crate) struct CheckOptions {
    /// Files with kernels: PTX text or SASS listings
    #[arg(value_name = "KERNEL.{ptx,sass}", required = true)]
    pub files: Vec<PathBuf>,
    /// The chip.
    #[command(flatten)]
    pub chip: ChipOptions,
    /// Also print each kernel's linked code
    #[arg(long)]
    pub listing: bool,
    /// Print one JSON object on stdout and nothing else
    #[arg(long)]
    pub json: bool,
}

/// `warploom chips`.
#[derive(Args, Clone, Debug)]
pub(crate) struct ChipsOptions {
    /// Show this chip's file: every number with its source
    #[arg(value_name = "NAME|FILE")]
    pub name: Option<String>,
    /// Print one JSON object on stdout and nothing else
    #[arg(long)]
    pub json: bool,
}

/// `warploom speed`.
#[derive(Args, Clone, Debug)]
pub(crate) struct SpeedOptions {
    /// The chip.
    #[command(flatten)]
    pub chip: ChipOptions,
    /// How kernels are executed
    #[arg(long, value_enum, default_value_t)]
    pub model: ModelName,
    /// Runs of each kernel; the fastest counts
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    pub repeat: u32,
    /// Print one JSON object on stdout and nothing else
    #[arg(long)]
    pub json: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn definition_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn reads_a_whole_run() {
        let line = "warploom run k.ptx --entry e --chip apu --set sm.count=1 --set sm.max_ctas=2 --grid 2x3 \
                    --block 4,5,6 \
                    --shared 64 --arg s32:-5 --arg buf:u32:4=zero --dump 1:2 --save 1=o --max-cycles 9 --json";
        let Command::Run(run) = Cli::parse_from(line.split_whitespace()).command else { panic!() };
        assert_eq!((run.launch.grid, run.launch.block), ([2, 3, 1], Some([4, 5, 6])));
        assert_eq!(run.machine.chip.set, ["sm.count=1", "sm.max_ctas=2"]);
        assert_eq!((run.launch.args.len(), run.dump.len(), run.save.len()), (2, 1, 1));
        assert!(run.json && !run.machine.check_uninit);
    }

    #[test]
    fn reads_how_spinning_warps_back_off() {
        let read = |words: &str| {
            let line = format!("warploom work hashtable {words}");
            let cli = Cli::try_parse_from(line.split_whitespace()).map_err(|e| e.to_string())?;
            let Command::Work(work) = cli.command else { panic!() };
            Ok::<_, String>((work.machine.bows, work.machine.bows_limit, work.machine.sib))
        };
        assert_eq!(read(""), Ok((false, None, None)));
        assert_eq!(read("--bows --bows-limit adaptive"), Ok((true, Some(DelayLimit::Adaptive), None)));
        let limited = (false, Some(DelayLimit::Fixed(3000)), Some(SibSource::Annotated));
        assert_eq!(read("--bows-limit 3_000 --sib annotated"), Ok(limited));
        for (words, message) in [
            ("--bows-limit soon", "it is a number of cycles, or `adaptive`"),
            ("--bows-limit -1", "unexpected argument"),
            ("--bows-limit 5000000000", "it can be at most 4294967296 cycles"),
            ("--sib guessed", "there are ddos, annotated, static"),
        ] {
            let error = read(words).unwrap_err();
            assert!(error.contains(message), "{words}: {error}");
        }
    }

    #[test]
    fn reads_a_workload() {
        let line = "warploom work nw size=62 --device cuda:1 penalty=-3 --json --max-cycles 9";
        let Command::Work(work) = Cli::parse_from(line.split_whitespace()).command else { panic!() };
        assert_eq!(
            (work.name.as_deref(), work.params),
            (Some("nw"), vec!["size=62".into(), "penalty=-3".into()])
        );
        assert_eq!((work.machine.device, work.machine.max_cycles), (DeviceName::Cuda(1), Some(9)));
        for wrong in ["warploom work", "warploom work --list nw"] {
            assert!(Cli::try_parse_from(wrong.split_whitespace()).is_err(), "{wrong}");
        }
    }
}
