//! A real NVIDIA GPU, through the CUDA driver.
//!
//! The driver's library is looked for when a program asks for a GPU, so nothing of CUDA is needed to build, and a
//! machine without a GPU notices nothing. PTX goes to the driver as it is. [`devices`] lists the GPUs, a [`Driver`] is one of
//! them: memory, modules, launches with their time. What a host builds on top (types, checks of arguments) is not here.
//!
//! A kernel that faults takes its process's GPU with it. [`Gpu`] is a GPU of this process, [`ChildGpu`] one of a child
//! process, which is followed by another one after a fault.

mod child;
mod driver;
mod gpu;
mod info;
mod serve;

use std::fmt::Debug;
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use child::ChildGpu;
pub use driver::CudaError;
pub use gpu::Gpu;
pub use info::{DeviceInfo, devices};
pub use serve::serve;

/// PTX that the driver compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CudaModule {
    id: u32,
}

/// A kernel of a module.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CudaKernel {
    id: u32,
    name: String,
    /// 32-bit registers of a thread, as the driver's compiler allocated them.
    pub registers: u32,
    /// Shared memory it declares.
    pub static_shared_bytes: u32,
    /// Local memory of a thread.
    pub local_bytes: u32,
    /// The largest CTA it can be launched with.
    pub max_threads_per_cta: u32,
}

/// A launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaunchOptions {
    /// CTAs.
    pub grid: [u32; 3],
    /// Threads of a CTA.
    pub block: [u32; 3],
    /// Shared memory besides what the kernel declares; more than 48 kB in all is asked for as the driver wants it.
    pub dynamic_shared_bytes: u32,
    /// All CTAs are resident at once, or the launch fails.
    pub cooperative: bool,
    /// Give up after this time.
    pub time_limit: Option<Duration>,
}

/// How long a launch took.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LaunchTime {
    /// Between two events around the kernel.
    pub seconds: f64,
}

/// What a GPU does for a host.
pub trait Driver: Debug + Send {
    /// The GPU and its limits.
    fn info(&self) -> &DeviceInfo;

    /// Whether a kernel faulted or did not end, after which this cannot be used.
    fn is_lost(&self) -> bool;

    /// Whether memory and modules were lost since this was last asked, and it goes on without them.
    fn is_renewed(&mut self) -> bool {
        false
    }

    /// Takes memory.
    fn allocate(&mut self, bytes: u64) -> Result<u64, CudaError>;

    /// Gives memory back.
    fn free(&mut self, address: u64) -> Result<(), CudaError>;

    /// Fills memory with zeros.
    fn clear(&mut self, address: u64, bytes: u64) -> Result<(), CudaError>;

    /// Copies to the host.
    fn read(&mut self, address: u64, into: &mut [u8]) -> Result<(), CudaError>;

    /// Copies from the host.
    fn write(&mut self, address: u64, data: &[u8]) -> Result<(), CudaError>;

    /// Hands PTX text to the driver's compiler.
    fn load(&mut self, name: &str, ptx: &str) -> Result<CudaModule, CudaError>;

    /// A kernel of a module, or `None` if it has none of that name.
    fn kernel(&mut self, module: CudaModule, name: &str) -> Result<Option<CudaKernel>, CudaError>;

    /// Address and size of a global variable of a module, if it has one of that name.
    fn global(&mut self, module: CudaModule, name: &str) -> Option<(u64, u64)>;

    /// CTAs of a kernel that fit on an SM.
    fn ctas_per_sm(
        &mut self,
        kernel: &CudaKernel,
        threads: u32,
        dynamic_shared: u32,
    ) -> Result<u32, CudaError>;

    /// Runs a kernel to its end. `params` are the bytes of its parameter buffer.
    fn launch(
        &mut self,
        kernel: &CudaKernel,
        options: &LaunchOptions,
        params: &[u8],
    ) -> Result<LaunchTime, CudaError>;
}
