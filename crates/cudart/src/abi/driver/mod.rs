//! The driver's API (`libcuda.so.1`), on the same core as the runtime's. Programs load one library under both names.
//!
//! Most functions are a function of the runtime with another name: they are one table (`forward!`), and differ in that
//! a context must be current and in a few error codes.

mod context;
mod copies;
mod device;
mod errors;
mod functions;
mod graphs;
mod linking;
mod missing;
mod modules;
mod names;
mod nvidia_linker;
mod pools;
mod streams;
mod tensor_maps;

pub(super) use context::enter_runtime;

use super::{Handle, LAST_ERROR, process, show_printed};
use crate::core::error::{CudaError, Result};
use crate::core::process::Process;

/// The version that the driver tells: 13.0. A driver also runs the programs of older versions.
const VERSION: i32 = 13000;

/// For `Device::cuda` and others that must know whether this is NVIDIA's driver.
#[unsafe(no_mangle)]
extern "C" fn warploom_simulated_driver() -> i32 {
    1
}

/// A call that needs a context.
fn with_context(work: impl FnOnce() -> i32) -> i32 {
    if let Err(error) = context::check() {
        return error.0;
    }
    without_context(work)
}

/// A call of the runtime that is none for `cudaGetLastError`.
fn without_context(work: impl FnOnce() -> i32) -> i32 {
    let last = LAST_ERROR.get();
    let code = work();
    LAST_ERROR.set(last);
    errors::of_driver(code)
}

/// A call that needs a context and a device in good health.
fn call(work: impl FnOnce(&mut Process) -> Result) -> i32 {
    with_context(|| {
        let mut process = process();
        let result = process.check().and_then(|()| work(&mut process));
        result.map_or_else(|error| error.0, |()| 0)
    })
}

/// A call about the device, for which no context is needed.
fn device_call(work: impl FnOnce(&mut Process) -> Result) -> i32 {
    if !context::is_initialised() {
        return CudaError::INITIALIZATION.0;
    }
    errors::of_driver(work(&mut process()).map_or_else(|error| error.0, |()| 0))
}

/// Functions that do what one of the runtime does.
macro_rules! forward {
    ($($name:ident($($arg:ident: $ty:ty),*) = $runtime:path;)*) => {$(
        #[unsafe(no_mangle)]
        pub(super) unsafe extern "C" fn $name($($arg: $ty),*) -> i32 {
            #[allow(unused_unsafe, reason = "some of the runtime's functions take no pointer that they follow")]
            crate::abi::driver::with_context(|| unsafe { $runtime($($arg),*) })
        }
    )*};
}
use forward;
