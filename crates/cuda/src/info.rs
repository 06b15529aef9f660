//! The GPUs of this computer and their properties.

use cudarc::driver::result::device;
use cudarc::driver::sys::{self, CUdevice_attribute as Attribute};

use serde::{Deserialize, Serialize};

use crate::driver::{CudaError, failed, start};

/// A GPU and its limits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceInfo {
    /// The driver's number: `cuda:0`.
    pub ordinal: usize,
    pub name: String,
    /// Compute capability: 9.0 is (9, 0).
    pub compute_capability: (u32, u32),
    /// The CUDA version that the driver supports: 13.0 is (13, 0).
    pub driver_version: (u32, u32),
    pub sms: u32,
    pub warp_lanes: u32,
    /// Peak clock of an SM.
    pub clock_mhz: u32,
    pub memory_bytes: u64,
    pub l2_bytes: u64,
    pub max_threads_per_cta: u32,
    pub max_threads_per_sm: u32,
    pub max_ctas_per_sm: u32,
    /// Shared memory of a CTA that opts in to more than the usual 48 kB.
    pub max_shared_bytes_per_cta: u32,
    pub shared_bytes_per_sm: u32,
    /// 32-bit registers per SM.
    pub registers_per_sm: u32,
    /// Whether cooperative launches are supported.
    pub cooperative: bool,
}

/// The GPUs that the driver reports.
pub fn devices() -> Result<Vec<DeviceInfo>, CudaError> {
    start()?;
    let count = device::get_count().map_err(failed("counting GPUs"))?;
    (0..count as usize).map(describe).collect()
}

fn describe(ordinal: usize) -> Result<DeviceInfo, CudaError> {
    let what = failed("asking for a GPU's properties");
    let handle = device::get(ordinal as i32).map_err(&what)?;
    // SAFETY: `handle` comes from `device::get`.
    let attribute = |which| unsafe { device::get_attribute(handle, which) }.map(|v| v as u32).map_err(&what);
    let mut version = 0;
    // SAFETY: writes one integer.
    unsafe { sys::cuDriverGetVersion(&mut version) }.result().map_err(&what)?;
    Ok(DeviceInfo {
        ordinal,
        name: device::get_name(handle).map_err(&what)?,
        compute_capability: (
            attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
            attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
        ),
        driver_version: (version as u32 / 1000, version as u32 % 1000 / 10),
        sms: attribute(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
        warp_lanes: attribute(Attribute::CU_DEVICE_ATTRIBUTE_WARP_SIZE)?,
        clock_mhz: attribute(Attribute::CU_DEVICE_ATTRIBUTE_CLOCK_RATE)? / 1000,
        // SAFETY: `handle` comes from `device::get`.
        memory_bytes: unsafe { device::total_mem(handle) }.map_err(&what)? as u64,
        l2_bytes: attribute(Attribute::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)? as u64,
        max_threads_per_cta: attribute(Attribute::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?,
        max_threads_per_sm: attribute(Attribute::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR)?,
        max_ctas_per_sm: attribute(Attribute::CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR)?,
        max_shared_bytes_per_cta: attribute(
            Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
        )?,
        shared_bytes_per_sm: attribute(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR)?,
        registers_per_sm: attribute(Attribute::CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR)?,
        cooperative: attribute(Attribute::CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH)? != 0,
    })
}
