//! The command line: commands, options and their parsers. Doc comments on options are their `--help` texts.

mod compare;
mod conform;
mod cuda;
mod diff;
mod exec;
mod machine;
mod measure;
mod program;
mod repro;
mod run;
mod sweep;
mod work;

use clap::{Args, Parser, Subcommand};

pub(crate) use compare::CompareOptions;
pub(crate) use conform::{ConformAction, ConformOptions};
pub(crate) use cuda::CudaOptions;
pub(crate) use diff::DiffOptions;
pub(crate) use exec::ExecOptions;
pub(crate) use machine::{ChipOptions, DeviceName, MachineOptions, ModelName};
pub(crate) use measure::{AnchorsOptions, CalibrateOptions, CorrelateOptions, DevicesOptions, SpeedOptions};
pub(crate) use program::{AsmOptions, CheckOptions, CilkOptions, CilkPlace, GraphOptions};
pub(crate) use repro::ReproOptions;
pub(crate) use run::{LaunchOptions, RunOptions};
pub(crate) use sweep::{
    ExecuteRunsOptions, PlaceName, PlaceOptions, SweepAction, SweepOptions, SweepResultsOptions,
    SweepRunOptions, SweepStatusOptions,
};
pub(crate) use work::{AlphabetName, FastaOptions, WorkOptions};

/// A laboratory for fine-grained synchronization on GPUs: run CUDA, PTX and SASS listings on a model of a GPU.
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
    /// Run a kernel, or a plan of several launches, and show what it did
    #[command(after_help = run::RUN_EXAMPLES)]
    Run(Box<RunOptions>),
    /// Run a built-in workload, with its own input, and check its result
    #[command(after_help = work::WORK_EXAMPLES)]
    Work(Box<WorkOptions>),
    /// Run a CUDA program that nvcc has built, unmodified, on a simulated chip
    #[command(after_help = exec::EXEC_EXAMPLES)]
    Exec(Box<ExecOptions>),
    /// Run a kernel or a workload under every warp scheduler, with spinning warps backing off and without, and compare
    #[command(after_help = compare::COMPARE_EXAMPLES)]
    Compare(Box<CompareOptions>),
    /// Show what changed between two runs, by line and by lock, from the JSON that they wrote
    #[command(after_help = diff::DIFF_EXAMPLES)]
    Diff(DiffOptions),
    /// Run the papers' experiments and hold the numbers beside theirs
    #[command(after_help = repro::REPRO_EXAMPLES)]
    Repro(ReproOptions),
    /// Run thousands of variants from one file, resumable, and get their results as tables and plots
    #[command(after_help = sweep::SWEEP_EXAMPLES)]
    Sweep(SweepOptions),
    /// Tell what loads, what each kernel needs, and which loops may wait for another thread
    Check(CheckOptions),
    /// Assemble a SASS listing and print it, or print a PTX kernel as a listing, to be edited and run
    #[command(after_help = program::ASM_EXAMPLES)]
    Asm(AsmOptions),
    /// Show the channel-flow graph of a workload: its kernels, channels and their memory
    Graph(GraphOptions),
    /// Run a Cilk-C source: cut at its syncs, compiled, and compared with the same program in C
    #[command(after_help = program::CILK_EXAMPLES)]
    Cilk(CilkOptions),
    /// List the chips that can be modelled, or show one
    Chips(ChipsOptions),
    /// List the real GPUs of this computer and their limits
    Devices(DevicesOptions),
    /// Compare the machine with results recorded on real GPUs, record them, or run random programs on both
    #[command(after_help = conform::CONFORM_EXAMPLES)]
    Conform(ConformOptions),
    /// Measure what single operations cost in cycles: arithmetic, memory, atomics, barriers
    Anchors(AnchorsOptions),
    /// Make a chip file for the GPU of this computer, from what the anchors measure on it
    #[command(after_help = measure::CALIBRATE_EXAMPLES)]
    Calibrate(CalibrateOptions),
    /// Hold the times of workloads on a real GPU beside those of its model: how true the model is
    #[command(after_help = measure::CORRELATE_EXAMPLES)]
    Correlate(CorrelateOptions),
    /// Measure how fast this computer simulates: kernels, chips, host threads, launches, memory
    #[command(after_help = measure::SPEED_EXAMPLES)]
    Speed(SpeedOptions),
    /// Serve a real GPU on standard input and output, for the process that started this one
    #[command(hide = true)]
    ServeGpu,
    /// Execute runs that come on standard input, for the process that started this one
    #[command(hide = true)]
    ServeRuns,
    /// Execute a chunk of a list of runs, as a task of Slurm
    #[command(hide = true)]
    ExecuteRuns(ExecuteRunsOptions),
    /// Print the JSON schema of what `--json` prints
    Schema,
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
            Command::Diff(options) => options.json,
            Command::Repro(options) => options.json,
            Command::Sweep(options) => options.action.json(),
            Command::Check(options) => options.json,
            Command::Asm(_) | Command::Graph(_) | Command::Cilk(_) | Command::Exec(_) => false,
            Command::Chips(options) => options.json,
            Command::Devices(options) => options.json,
            Command::Conform(options) => options.json,
            Command::Anchors(options) => options.json,
            Command::Correlate(options) => options.json,
            Command::Speed(options) => options.json,
            Command::Calibrate(_)
            | Command::ServeGpu
            | Command::ServeRuns
            | Command::ExecuteRuns(_)
            | Command::Schema
            | Command::Completions { .. } => false,
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;
    use warploom::{DelayLimit, SibSource};

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
            Ok::<_, String>((work.machine.sim.bows, work.machine.sim.bows_limit, work.machine.sim.sib))
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
