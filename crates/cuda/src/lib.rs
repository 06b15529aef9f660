//! A real NVIDIA GPU, through the CUDA driver.
//!
//! The driver's library is loaded when a program first asks for a GPU. So building needs nothing of CUDA, and a
//! computer without a GPU is not affected. PTX is passed to the driver unchanged. [`devices`] lists the GPUs; a
//! [`Driver`] is one of them: memory, modules, and launches with their time. Types and checks of arguments are
//! not here but in `warploom`.
//!
//! After a kernel that faults, CUDA gives its process no further context. [`Gpu`] is a GPU in this process;
//! [`ChildGpu`] is one in a child process, which is replaced after a fault. Start reading at [`Driver`]. This
//! crate has `unsafe` code, because every call of the driver is.

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

/// PTX that the driver has compiled and loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CudaModule {
    id: u32,
}

/// A kernel of a loaded module.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CudaKernel {
    id: u32,
    name: String,
    /// 32-bit registers per thread, as allocated by the driver's compiler.
    pub registers: u32,
    /// Shared memory per CTA that the kernel declares.
    pub static_shared_bytes: u32,
    /// Local memory per thread.
    pub local_bytes: u32,
}

/// The shape of a launch and its time limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaunchOptions {
    pub grid: [u32; 3],
    pub block: [u32; 3],
    /// Shared memory per CTA in addition to what the kernel declares. A total above 48 kB is allowed if the GPU has it.
    pub dynamic_shared_bytes: u32,
    /// CTAs of a cluster, if the launch names them.
    #[serde(default)]
    pub cluster: Option<[u32; 3]>,
    /// All CTAs are resident at once, or the launch fails.
    pub cooperative: bool,
    /// The launch is given up after this time, and the context with it.
    pub time_limit: Option<Duration>,
    /// Another kernel keeps the GPU busy until the launch has been submitted, so that what the host takes for that is
    /// not in the time.
    pub behind_busy: bool,
}

/// How long a launch took.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LaunchTime {
    /// Seconds between two events around the kernel.
    pub seconds: f64,
}

/// What a GPU does for a host. Every call blocks until it is done.
pub trait Driver: Debug + Send {
    fn info(&self) -> &DeviceInfo;

    /// Whether a kernel faulted or hung. Every later call then fails.
    fn is_lost(&self) -> bool;

    /// Whether all memory and modules were lost since the last call. The GPU itself goes on, empty.
    fn is_renewed(&mut self) -> bool {
        false
    }

    fn allocate(&mut self, bytes: u64) -> Result<u64, CudaError>;

    fn free(&mut self, address: u64) -> Result<(), CudaError>;

    fn clear(&mut self, address: u64, bytes: u64) -> Result<(), CudaError>;

    fn read(&mut self, address: u64, into: &mut [u8]) -> Result<(), CudaError>;

    fn write(&mut self, address: u64, data: &[u8]) -> Result<(), CudaError>;

    /// Compiles PTX with the driver's compiler. Messages call it `name`.
    fn load(&mut self, name: &str, ptx: &str) -> Result<CudaModule, CudaError>;

    /// A kernel of a module, or `None` if it has none of that name.
    fn kernel(&mut self, module: CudaModule, name: &str) -> Result<Option<CudaKernel>, CudaError>;

    /// Address and size in bytes of a global variable, if the module has one of that name.
    fn global(&mut self, module: CudaModule, name: &str) -> Option<(u64, u64)>;

    /// How many CTAs of `threads` threads fit on an SM.
    fn ctas_per_sm(
        &mut self,
        kernel: &CudaKernel,
        threads: u32,
        dynamic_shared: u32,
    ) -> Result<u32, CudaError>;

    /// Runs a kernel to its end. `params` is its parameter buffer.
    fn launch(
        &mut self,
        kernel: &CudaKernel,
        options: &LaunchOptions,
        params: &[u8],
    ) -> Result<LaunchTime, CudaError>;
}
