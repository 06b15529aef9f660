//! The machine: executes a [`warploom_isa::Kernel`] on a chip described by data.
//!
//! [`gpu::Gpu`] is what a host sees: memory, modules, launches. [`functional`] runs a grid without timing. Inside,
//! each unit of the chip has a file of its own: [`sm`] (warps, reconvergence, lane arithmetic, load/store unit,
//! barriers) and [`mem`]. Start reading at [`functional`], then [`sm::execute`].

pub mod aggregator;
pub mod chip;
mod crew;
mod divisor;
pub mod energy;
pub mod fault;
pub mod functional;
pub mod gpu;
pub mod hang;
pub mod lock_queue;
pub mod lock_warnings;
pub mod locks;
pub mod machine;
pub mod mem;
pub mod occupancy;
pub mod printf;
pub mod probe;
pub mod report;
pub mod sched;
pub mod slab;
pub mod sm;
pub mod stats;
pub mod trace;
pub mod wheel;

pub use chip::spinning::{Bows, DelayLimit, SibSource};
pub use chip::{Chip, ChipError, Divergence};
pub use energy::{Component, Energy};
pub use fault::{Fault, FaultKind};
pub use gpu::{
    Gpu, LaunchError, Limits, LoadedKernel, LoadedModule, Model, ModuleError, Progress, Shape, Stats,
    UninitialisedRead,
};
pub use hang::{Hang, HangKind, HangReason};
pub use machine::Timing;
pub use occupancy::{Limiter, Occupancy, Unlaunchable};
pub use report::{Sample, TimedStats, samples_csv};
pub use sched::cost::StorageBits;
pub use trace::{Trace, TraceOptions};
