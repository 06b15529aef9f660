//! The options of `warploom conform`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::machine::DeviceName;

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

pub(super) const CONFORM_EXAMPLES: &str = "\
Examples:
  Does the machine give what a real GPU gave? (From the repository's root; no GPU needed.)
      warploom conform
  Record again on this computer's GPU, the instructions and 500 programs:
      warploom conform record --device cuda
      warploom conform fuzz --device cuda --record --count 500
  10,000 random programs on the simulator and the GPU:
      warploom conform fuzz --device cuda --count 10000";
