//! The options of commands that look at a program: `check`, `asm`, `graph`; and of `cilk`.

use std::path::PathBuf;

use clap::Args;

use super::cuda::CudaOptions;
use super::machine::{ChipOptions, DeviceName};

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

/// Where `warploom cilk` runs a program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum CilkPlace {
    /// On the simulated chip
    #[default]
    Device,
    /// On this computer, as plain C
    Host,
}

/// `warploom cilk`.
#[derive(Args, Clone, Debug)]
pub(crate) struct CilkOptions {
    /// The source
    #[arg(value_name = "FILE.cilk")]
    pub file: PathBuf,
    /// The call to run: 'fib(24)'
    #[arg(value_name = "CALL")]
    pub call: Option<String>,
    /// Print the kernels that become of the program, and do not run it
    #[arg(long)]
    pub emit: bool,
    /// Where to run it
    #[arg(long, value_enum, default_value_t)]
    pub on: CilkPlace,
    /// `sim`, the simulated chip, or `cuda[:N]`, a real NVIDIA GPU
    #[arg(long, value_name = "DEVICE", default_value = "sim")]
    pub device: DeviceName,
    /// Elements of each channel, a power of two [default: 32768, or fewer if all levels would take too much memory]
    #[arg(long, value_name = "N")]
    pub width: Option<u32>,
    /// Levels of each recursion [default: as many as the call needs]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub levels: Option<u32>,
    /// Host threads that the timed model uses
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub threads: Option<u16>,
    /// A built-in chip (see `warploom chips`) or the path of a chip file
    #[arg(long, value_name = "NAME|FILE", default_value = "apu")]
    pub chip: String,
    /// Change a value of the chip: `--set sm.count=1`; repeat for more
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// The compiler of CUDA.
    #[command(flatten)]
    pub cuda: CudaOptions,
}

pub(super) const CILK_EXAMPLES: &str = "\
Examples:
  Fibonacci numbers on the apu, and what becomes of the program:
      warploom cilk examples/cilk/fib.cilk 'fib(20)'
      warploom cilk examples/cilk/fib.cilk --emit

The language is described in docs/channels.md.";

/// `warploom asm`.
#[derive(Args, Clone, Debug)]
pub(crate) struct AsmOptions {
    /// A listing to assemble, check and print in its canonical form; or CUDA to print as a listing
    #[arg(value_name = "FILE.{sass,cu}", required_unless_present = "from", conflicts_with = "from")]
    pub file: Option<PathBuf>,
    /// Print this PTX or CUDA as a listing
    #[arg(long, value_name = "KERNEL.{ptx,cu}")]
    pub from: Option<PathBuf>,
    /// Only this kernel, with the functions and variables of its module, named as for `warploom run`
    #[arg(long, value_name = "NAME")]
    pub entry: Option<String>,
    /// The compiler of CUDA.
    #[command(flatten)]
    pub cuda: CudaOptions,
    /// Write the listing to a file
    #[arg(short, long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

pub(super) const ASM_EXAMPLES: &str = "\
Examples:
  Take a kernel as the compiler left it, put lock bits where its atomics are, and run it:
      warploom asm --from kernels/histogram.ptx -o histogram.sass
      $EDITOR histogram.sass
      warploom run histogram.sass --grid 16 --block 256 …
  Check a listing and see how it is understood:
      warploom asm kernels/listings/counter.sass

The language of listings is described in docs/sass.md.";

/// `warploom check`.
#[derive(Args, Clone, Debug)]
pub(crate) struct CheckOptions {
    /// Files with kernels: CUDA, PTX or SASS listings
    #[arg(value_name = "KERNEL.{cu,ptx,sass}", required = true)]
    pub files: Vec<PathBuf>,
    /// Link the files and check them as one program
    #[arg(long)]
    pub link: bool,
    /// The chip.
    #[command(flatten)]
    pub chip: ChipOptions,
    /// The compiler of CUDA.
    #[command(flatten)]
    pub cuda: CudaOptions,
    /// Also print each kernel's linked code
    #[arg(long)]
    pub listing: bool,
    /// Print one JSON object on stdout and nothing else
    #[arg(long)]
    pub json: bool,
}
