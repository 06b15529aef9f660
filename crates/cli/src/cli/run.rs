//! The options of `warploom run`, and those of a launch.

use std::path::PathBuf;

use clap::Args;
use warploom_lab::kernel::{ArgSpec, parse_dims};

use super::machine::MachineOptions;
use crate::arg::{DumpSpec, SaveSpec};

/// How a kernel of a file is launched, and with what.
#[derive(Args, Clone, Debug)]
pub(crate) struct LaunchOptions {
    /// The kernel to run, by its symbol or by its name in the source (`hist`, `ns::hist`); not needed if the file has
    /// only one
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
