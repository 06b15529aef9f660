//! The options of `warploom run`, and those of a launch.

use std::path::PathBuf;

use clap::Args;
use warploom_lab::kernel::{NamedArg, parse_dims};

use super::cuda::CudaOptions;
use super::machine::MachineOptions;
use crate::arg::{DumpSpec, SaveSpec};

/// How a kernel of a file is launched, and with what.
#[derive(Args, Clone, Debug)]
pub(crate) struct LaunchOptions {
    /// The kernel to run, by its symbol or by its name in the source, as far as that is needed (`hist`, `ns::hist`,
    /// `hit<5>`, `hist(unsigned int*)`); not needed if the file has only one
    #[arg(long, value_name = "NAME")]
    pub entry: Option<String>,
    /// CTAs of the grid
    #[arg(long, value_name = "X[,Y[,Z]]", value_parser = parse_dims, default_value = "1")]
    pub grid: [u32; 3],
    /// Threads of a CTA; if not given, what the kernel requires (.reqntid), or 1
    #[arg(long, value_name = "X[,Y[,Z]]", value_parser = parse_dims)]
    pub block: Option<[u32; 3]>,
    /// CTAs of a cluster; if not given, what the kernel requires (.reqnctapercluster), or no clusters
    #[arg(long, value_name = "X[,Y[,Z]]", value_parser = parse_dims)]
    pub cluster: Option<[u32; 3]>,
    /// Bytes of dynamic shared memory, for the kernel's `extern __shared__` array
    #[arg(long, value_name = "BYTES", default_value_t = 0)]
    pub shared: u32,
    /// An argument of the kernel, in the order of its parameters, or for the parameter NAME; see below
    #[arg(long = "arg", value_name = "[NAME=]ARG")]
    pub args: Vec<NamedArg>,
}

/// `warploom run`.
#[derive(Args, Clone, Debug)]
pub(crate) struct RunOptions {
    /// The file with the kernel: CUDA, PTX or a SASS listing; or a plan of several launches (docs/plans.md)
    #[arg(value_name = "KERNEL.{cu,ptx,sass}|PLAN.toml")]
    pub file: PathBuf,
    /// Further files, CUDA or PTX, whose functions and variables the kernel uses: they are linked; or parameters of a
    /// plan, of which those not given have the values of its file
    #[arg(value_name = "KERNEL.{cu,ptx}|PARAM=VALUE")]
    pub params: Vec<String>,
    /// The launch.
    #[command(flatten)]
    pub launch: LaunchOptions,
    /// After the launch, print the first N elements (or all) of a buffer on a line: that of argument I, from 0, or of
    /// the parameter or the plan's buffer NAME
    #[arg(long, value_name = "I|NAME[:N]")]
    pub dump: Vec<DumpSpec>,
    /// After the launch, write a buffer to a file as raw little-endian bytes
    #[arg(long, value_name = "I|NAME=FILE")]
    pub save: Vec<SaveSpec>,
    /// Launch all CTAs at once, so that they may wait for each other; refused if they do not fit
    #[arg(long)]
    pub cooperative: bool,
    /// The machine.
    #[command(flatten)]
    pub machine: MachineOptions,
    /// The compiler of CUDA.
    #[command(flatten)]
    pub cuda: CudaOptions,
    /// Print one JSON object on stdout and nothing else
    #[arg(long)]
    pub json: bool,
}

pub(super) const RUN_EXAMPLES: &str = "\
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
  NAME=…               any of these, for the parameter NAME: bins=buf:u32:256=zero. The others fill the parameters that
                       are left, in order. PTX has no names: they come from the .cu, compiled here, or found by the line
                       information or beside the PTX; without one they are param_0, param_1 …

Examples:
  Add two vectors and look at the first sums:
      warploom run kernels/vecadd.ptx --grid 4096 --block 256 --arg buf:f32:1048576=iota \\
               --arg buf:f32:1048576=iota --arg buf:f32:1048576=zero --arg u32:1048576 --dump 2:8
  The same from its source, which nvcc or else clang compiles, with names:
      warploom run kernels/vecadd.cu --grid 4 --block 256 --arg n=u32:1024 --arg a=buf:f32:1024=iota \\
               --arg b=buf:f32:1024=iota --arg c=buf:f32:1024=zero --dump c:8
  A kernel whose functions lie in another file:
      warploom run main.ptx functions.ptx --grid 4 --block 64 --arg buf:u32:256=zero --dump 0
  Several launches, from a file (docs/plans.md):
      warploom run examples/plans/bfs.toml --dump level
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
