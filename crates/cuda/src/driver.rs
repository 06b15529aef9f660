//! Finding the driver, and what it answers in words.

use cudarc::driver::result::{self, DriverError};
use cudarc::driver::sys;
use serde::{Deserialize, Serialize};

/// Why a GPU cannot do what was asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum CudaError {
    /// No driver on this computer.
    #[error("no NVIDIA driver on this computer (libcuda is not there)")]
    NoDriver,
    /// The driver is there but does not start.
    #[error("the NVIDIA driver does not start: {0}")]
    BadDriver(String),
    /// No such GPU.
    #[error("no GPU {ordinal}: the driver shows {count}")]
    NoDevice {
        /// Asked for.
        ordinal: usize,
        /// There are.
        count: usize,
    },
    /// The driver's compiler refuses the PTX.
    #[error("the driver refuses `{name}`: {reason}{log}", log = indented(log))]
    Jit {
        /// The module.
        name: String,
        /// The driver's error.
        reason: String,
        /// The compiler's log.
        log: String,
    },
    /// Not enough memory.
    #[error("out of device memory: {asked} bytes asked for, {free} of {total} bytes free")]
    OutOfMemory {
        /// Bytes asked for.
        asked: u64,
        /// Bytes free.
        free: u64,
        /// Bytes in all.
        total: u64,
    },
    /// The kernel did something wrong.
    #[error("kernel `{kernel}` faults on the GPU: {reason}")]
    Fault {
        /// The kernel.
        kernel: String,
        /// The driver's error.
        reason: String,
    },
    /// The kernel ran longer than it may.
    #[error("kernel `{kernel}` did not end within {seconds} s on the GPU")]
    TimeLimit {
        /// The kernel.
        kernel: String,
        /// The limit.
        seconds: u64,
    },
    /// A kernel faulted or did not end. CUDA gives a process no new context after that, whatever it does with the
    /// old one: every later call, `cuCtxCreate` too, answers with the same error. (A [`ChildGpu`](crate::ChildGpu) has
    /// another process for the next context.)
    #[error("this process lost the GPU when kernel `{kernel}` {how}; start the program again to use it")]
    Lost {
        /// The kernel.
        kernel: String,
        /// What it did.
        how: String,
    },
    /// Anything else the driver says.
    #[error("{what}: {reason}")]
    Driver {
        /// What was tried.
        what: String,
        /// The driver's error.
        reason: String,
    },
}

fn indented(log: &str) -> String {
    log.trim().lines().map(|line| format!("\n  {line}")).collect()
}

/// The driver's error in its own words: `CUDA_ERROR_ILLEGAL_ADDRESS (an illegal memory access was encountered)`.
pub(crate) fn words(error: DriverError) -> String {
    let text = |r: Result<&std::ffi::CStr, DriverError>| {
        r.map(|s| s.to_string_lossy().into_owned()).unwrap_or_default()
    };
    format!("{} ({})", text(error.error_name()), text(error.error_string()))
}

/// For `map_err`: the error of a call that does `what`.
pub(crate) fn failed(what: &'static str) -> impl Fn(DriverError) -> CudaError {
    move |error| CudaError::Driver { what: what.to_string(), reason: words(error) }
}

/// Starts the driver, or says why it cannot be had.
pub(crate) fn start() -> Result<(), CudaError> {
    // SAFETY: looks for a shared library and loads it; libcuda has no other effect on being loaded.
    if !unsafe { sys::is_culib_present() } {
        return Err(CudaError::NoDriver);
    }
    result::init().map_err(|error| CudaError::BadDriver(words(error)))
}
