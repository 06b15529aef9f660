//! A real NVIDIA GPU, through the CUDA driver.
//!
//! The driver's library is looked for when a program asks for a GPU, so nothing of CUDA is needed to build, and a
//! machine without a GPU notices nothing. PTX goes to the driver as it is. [`devices`] lists the GPUs, [`Gpu`] is one of them:
//! memory, modules, launches with their time. What a host builds on top (types, checks of arguments) is not here.

mod driver;
mod gpu;
mod info;

pub use driver::CudaError;
pub use gpu::{CudaKernel, CudaModule, Gpu, LaunchOptions, LaunchTime};
pub use info::{DeviceInfo, devices};
