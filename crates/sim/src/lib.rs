//! The machine: executes a [`warploom_isa::Kernel`] on a chip described by data.
//!
//! [`gpu::Gpu`] is what a host sees: memory, modules, launches. [`functional`] runs a grid without timing. Inside,
//! each unit of the chip has a file of its own: [`sm`] (warps, reconvergence, lane arithmetic, load/store unit,
//! barriers) and [`mem`]. Start reading at [`functional`], then [`sm::execute`].

pub mod chip;
pub mod fault;
pub mod functional;
pub mod gpu;
pub mod hang;
pub mod mem;
pub mod occupancy;
pub mod printf;
pub mod sm;

pub use chip::{Chip, ChipError, Divergence};
pub use fault::{Fault, FaultKind};
pub use gpu::{
    Gpu, LaunchError, Limits, LoadedKernel, LoadedModule, ModuleError, Progress, Shape, Stats,
    UninitialisedRead,
};
pub use hang::{Hang, HangReason};
pub use occupancy::{Limiter, Occupancy, Unlaunchable};
