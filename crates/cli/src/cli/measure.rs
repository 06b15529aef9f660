//! The options of commands that measure: `anchors`, `calibrate`, `correlate`, `speed`, `devices`.

use clap::Args;

use super::machine::{ChipOptions, DeviceName, ModelName};

/// `warploom anchors`.
#[derive(Args, Clone, Debug)]
pub(crate) struct AnchorsOptions {
    /// Where to run: `sim` or `cuda[:N]`
    #[arg(long, value_name = "sim|cuda[:N]", default_value = "sim")]
    pub device: DeviceName,
    /// The simulated chip
    #[command(flatten)]
    pub chip: ChipOptions,
    /// Only anchors whose name contains this
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub only: String,
    /// Runs of each anchor on a real GPU; the median counts
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
    /// Also write a page with a plot and all points
    #[arg(long, value_name = "FILE", conflicts_with = "device")]
    pub html: Option<std::path::PathBuf>,
    /// Print one JSON object on stdout and nothing else
    #[arg(long)]
    pub json: bool,
}

/// `warploom calibrate`.
#[derive(Args, Clone, Debug)]
pub(crate) struct CalibrateOptions {
    /// The GPU to measure
    #[arg(long, value_name = "cuda[:N]")]
    pub device: Option<DeviceName>,
    /// Its anchors, if they have been measured: the output of `warploom anchors --device cuda --json`
    #[arg(long, value_name = "FILE", conflicts_with = "device")]
    pub anchors: Option<std::path::PathBuf>,
    /// The built-in chip whose other values the new one has
    #[arg(long, value_name = "NAME", default_value = "h200")]
    pub base: String,
    /// The new chip's name
    #[arg(long, value_name = "NAME", default_value = "mygpu")]
    pub name: String,
    /// Runs of each anchor on the GPU; the median counts
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    pub repeat: u32,
}

pub(super) const CALIBRATE_EXAMPLES: &str = "\
Examples:
  A chip file for the GPU of this computer, and what it makes of a kernel:
      warploom calibrate --device cuda > mygpu.toml
      warploom work hashtable --chip mygpu.toml
  From anchors that were measured elsewhere:
      warploom calibrate --anchors crates/lab/anchors/h200.json --name again

Each value that an anchor shows is moved until the model takes as long as the GPU. The file says of each where it is
from; the rest comes from the base, not measured. It takes some minutes.";

pub(super) const CORRELATE_EXAMPLES: &str = "\
Examples:
  How far the h200 is from the real chip, the worst point first:
      warploom correlate h200
  The same as a page with a plot:
      warploom correlate h200 --html correlation.html
  Hash tables alone, on a changed chip:
      warploom correlate h200 --points hashtable --set atomic.pass_cycles=2.0
  Measure all points on the GPU of this computer:
      warploom correlate --device cuda > crates/lab/correlate/h200.json";

/// `warploom devices`.
#[derive(Args, Clone, Debug)]
pub(crate) struct DevicesOptions {
    /// Print one JSON object on stdout and nothing else
    #[arg(long)]
    pub json: bool,
}

/// `warploom speed`.
#[derive(Args, Clone, Debug)]
pub(crate) struct SpeedOptions {
    /// Only these kernels of the set
    #[arg(long = "kernel", value_name = "NAME,…", value_delimiter = ',')]
    pub kernels: Vec<String>,
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
