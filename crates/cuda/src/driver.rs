//! Loads the driver and translates its errors.

use cudarc::driver::result::{self, DriverError};
use cudarc::driver::sys;
use serde::{Deserialize, Serialize};

/// Why a GPU cannot do what was asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum CudaError {
    #[error("no NVIDIA driver on this computer (libcuda is not there)")]
    NoDriver,
    /// `warploom exec` runs this process, and the driver that it finds is Warploom's own.
    #[error(
        "the driver that this process finds is Warploom's own (`warploom exec`), and no real GPU is behind it"
    )]
    Simulated,
    #[error("the NVIDIA driver does not start: {0}")]
    BadDriver(String),
    #[error("no GPU {ordinal}: the driver shows {count}")]
    NoDevice { ordinal: usize, count: usize },
    /// The driver's compiler refuses the PTX.
    #[error("the driver refuses `{name}`: {reason}{log}", log = indented(log))]
    Jit {
        name: String,
        /// The driver's error.
        reason: String,
        /// What the compiler printed.
        log: String,
    },
    #[error("out of device memory: {asked} bytes asked for, {free} of {total} bytes free")]
    OutOfMemory {
        /// Bytes.
        asked: u64,
        /// Bytes.
        free: u64,
        /// Bytes.
        total: u64,
    },
    #[error("kernel `{kernel}` faults on the GPU: {reason}")]
    Fault {
        kernel: String,
        /// The driver's error.
        reason: String,
    },
    #[error("kernel `{kernel}` did not end within {seconds} s on the GPU")]
    TimeLimit { kernel: String, seconds: u64 },
    /// A kernel faulted or hung earlier. CUDA gives a process no new context after that, whatever it does with
    /// the old one: every later call, even `cuCtxCreate`, returns the same error.
    /// ([`ChildGpu`](crate::ChildGpu) starts a new process instead.)
    #[error("this process lost the GPU when kernel `{kernel}` {how}; start the program again to use it")]
    Lost {
        kernel: String,
        /// What the kernel did: "faulted", "did not end".
        how: String,
    },
    /// Any other error of the driver.
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

/// The driver's error name and text: `CUDA_ERROR_ILLEGAL_ADDRESS (an illegal memory access was encountered)`.
pub(crate) fn words(error: DriverError) -> String {
    let text = |r: Result<&std::ffi::CStr, DriverError>| {
        r.map(|s| s.to_string_lossy().into_owned()).unwrap_or_default()
    };
    format!("{} ({})", text(error.error_name()), text(error.error_string()))
}

/// For `map_err`: the error of a call that was doing `what`.
pub(crate) fn failed(what: &'static str) -> impl Fn(DriverError) -> CudaError {
    move |error| CudaError::Driver { what: what.to_string(), reason: words(error) }
}

/// Loads and initializes the driver.
pub(crate) fn start() -> Result<(), CudaError> {
    // SAFETY: finds a shared library and loads it; loading libcuda has no other effect.
    if !unsafe { sys::is_culib_present() } {
        return Err(CudaError::NoDriver);
    }
    if is_simulated() {
        return Err(CudaError::Simulated);
    }
    result::init().map_err(|error| CudaError::BadDriver(words(error)))
}

/// Whether the driver is that of `crates/cudart`, which has this function besides.
fn is_simulated() -> bool {
    // SAFETY: the driver is loaded by the same names a moment before; the symbol is looked for and not called.
    ["libcuda.so", "libcuda.so.1"].iter().any(|name| unsafe {
        let library = libloading::Library::new(*name);
        library.is_ok_and(|library| library.get::<fn()>(b"warploom_simulated_driver\0").is_ok())
    })
}
