//! A laboratory for fine-grained synchronization on GPUs: load PTX or a SASS listing, fill buffers, launch
//! kernels, read reports.
//!
//! ```
//! use warploom::{Device, Launch, args};
//!
//! # fn main() -> Result<(), warploom::Error> {
//! let n = 1024;
//! let xs = vec![1.0f32; n];
//! let ys = vec![2.0f32; n];
//!
//! let mut gpu = Device::sim("gtx480")?;
//! # let text = warploom_kernels::text!("vecadd.ptx");
//! # macro_rules! include_str { ($file:literal) => { text } }
//! let module = gpu.load_ptx(include_str!("vecadd.ptx"))?;
//! let (a, b, c) = (gpu.buffer(&xs)?, gpu.buffer(&ys)?, gpu.zeros::<f32>(n)?);
//! let report = gpu.launch(module.kernel("vecadd")?, Launch::grid(n / 256).block(256), args![&a, &b, &c, n as u32])?;
//! println!("{} cycles, first sum {}", report.cycles, c.read(&gpu)?[0]);
//! # assert_eq!(c.read(&gpu)?, vec![3.0f32; n]);
//! # assert!(report.ipc.is_some_and(|ipc| ipc > 0.0));
//! # Ok(())
//! # }
//! ```
//!
//! [`Device`] is the entry point: [`Device::sim`] simulates a chip cycle by cycle, [`Device::cuda`] runs the
//! same kernels on a real NVIDIA GPU. A [`Module`] holds kernels, a [`Buffer`] is typed device memory, a
//! [`Launch`] gives the grid and its limits, and every launch returns a [`Report`].
//!
//! This crate is the host's side only. How an instruction executes and what it costs is in `warploom_sim`; how a text
//! becomes a program is in [`ptx`], [`sass`] and [`isa`], which are re-exported here. Start reading at [`Device`].

mod args;
mod backend;
mod buffer;
#[cfg(feature = "cuda")]
mod cuda;
mod device;
mod error;
mod estimate;
mod firmware;
mod kernel;
mod launch;
mod plan;
mod report;
mod sim;

pub use args::{Arg, ArgError};
pub use buffer::Buffer;
pub use device::Device;
pub use error::{Error, Result};
pub use estimate::Estimate;
pub use firmware::{Agg, Firmware, Params, Task};
pub use kernel::{Kernel, KernelInfo, Module, declared};
pub use launch::{Dim, Launch};
pub use plan::{Plan, PlanRun};
pub use report::{
    BackOff, Counters, Detection, LockWarning, Locks, Model, OutsideLoad, Race, RaceAccess, Report, SmReport,
    SpinBranches, UninitialisedRead,
};
pub use sim::{SimModel, SimOptions, policies};

#[cfg(feature = "cuda")]
pub use warploom_cuda::{CudaError, DeviceInfo, devices as cuda_devices, serve as serve_cuda};
pub use warploom_isa as isa;
pub use warploom_ptx as ptx;
pub use warploom_sass as sass;
pub use warploom_sim::aggregator::{self, Answer, Yielded};
pub use warploom_sim::hang;
pub use warploom_sim::hang::grouped;
pub use warploom_sim::observe;
pub use warploom_sim::plan::{Move, MoveFrom};
pub use warploom_sim::profile;
pub use warploom_sim::sched;
pub use warploom_sim::texture;
pub use warploom_sim::trace;
pub use warploom_sim::{
    Bows, Chip, ChipError, DelayLimit, Divergence, Fault, FaultKind, Hang, HangKind, HangReason, Limiter,
    Occupancy, Progress, Sample, Shape, SibSource, Sms, StorageBits, Timing, Trace, TraceOptions, chip,
    samples_csv,
};
pub use warploom_sim::{OutsideLoads, Place};
pub use warploom_sim::{Swizzle, TensorMap};
