//! The functions of the CUDA runtime as C programs call them, and what else touches memory that is not Rust's.
//!
//! Every function here trusts its caller as CUDA does: pointers are null where CUDA allows that, and otherwise valid
//! for what the function's documentation says. That is the reason for each `unsafe` below; where there is another, it
//! stands beside it.

mod copies;
mod device;
mod driver;
mod errors;
mod functions;
mod graphs;
pub(crate) mod host;
mod memory;
mod missing;
mod per_thread;
mod pools;
mod redirect;
mod register;
mod start;
mod streams;
mod textures;

use std::cell::Cell;
use std::ffi::{CStr, c_char, c_void};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use crate::core::error::{self, CudaError, Result};
use crate::core::process::{Process, complain, complain_once, complaints};
use crate::core::settings::Settings;

/// `dim3`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dim3 {
    x: u32,
    y: u32,
    z: u32,
}

impl Dim3 {
    fn new([x, y, z]: [u32; 3]) -> Dim3 {
        Dim3 { x, y, z }
    }

    fn extents(self) -> [u32; 3] {
        [self.x, self.y, self.z]
    }
}

/// Handles and pointers are passed on as numbers.
type Handle = *mut c_void;

static PROCESS: LazyLock<Mutex<Process>> = LazyLock::new(|| {
    let settings = Settings::read(|name| std::env::var(name).ok()).unwrap_or_else(|error| {
        complain(error);
        std::process::exit(2);
    });
    start::at_exit();
    Mutex::new(Process::new(settings, redirect::cuda_version()))
});

thread_local! {
    /// The thread's last error, for `cudaGetLastError`.
    static LAST_ERROR: Cell<i32> = const { Cell::new(0) };
}

fn process() -> MutexGuard<'static, Process> {
    PROCESS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A call that needs a device in good health. Returns CUDA's code, and remembers it as the thread's last error.
fn call(work: impl FnOnce(&mut Process) -> Result) -> i32 {
    driver::enter_runtime();
    let mut process = process();
    code(told(&mut process, work))
}

/// Does a call's work. An error is told, unless the work has told why, or an earlier kernel has failed.
fn told<F: FnOnce(&mut Process) -> Result>(process: &mut Process, work: F) -> Result {
    process.check()?;
    let before = complaints();
    let result = work(process);
    if let Err(error) = result
        && error != CudaError::NOT_READY
        && complaints() == before
    {
        let (name, text) = (error::name(error.0), error::text(error.0));
        let plain = |text: &str| text.trim_end_matches('\0').to_string();
        complain_once(format!("{} gives {}: {}", caller::<F>(), plain(name), plain(text)));
    }
    result
}

/// The function of CUDA's whose closure this is.
fn caller<F>() -> &'static str {
    let mut parts = std::any::type_name::<F>().rsplit("::");
    parts.find(|part| part.trim_start_matches('_').starts_with("cu")).unwrap_or("a call")
}

/// A call that waits for the device: what kernels have printed appears now.
fn call_and_wait(work: impl FnOnce(&mut Process) -> Result) -> i32 {
    driver::enter_runtime();
    let mut process = process();
    let result = told(&mut process, work);
    show_printed(&mut process);
    code(result)
}

fn code(result: Result) -> i32 {
    match result {
        Ok(()) => 0,
        // It says that work goes on, and is not an error.
        Err(CudaError::NOT_READY) => CudaError::NOT_READY.0,
        Err(error) => {
            LAST_ERROR.set(error.0);
            error.0
        }
    }
}

/// Writes what kernels have printed to C's `stdout`, so that it is in order with what the program prints.
fn show_printed(process: &mut Process) {
    let Some(text) = process.opened().map(|open| open.take_printed()).filter(|text| !text.is_empty()) else {
        return;
    };
    unsafe extern "C" {
        static stdout: *mut libc::FILE;
    }
    // Sound: `stdout` is C's own stream, and the bytes live until the call ends.
    unsafe {
        libc::fwrite(text.as_ptr().cast(), 1, text.len(), stdout);
    }
}

/// Stores a result where the caller wants it.
unsafe fn put<T>(place: *mut T, value: T) -> Result {
    if place.is_null() {
        return Err(CudaError::INVALID_VALUE);
    }
    unsafe { place.write(value) };
    Ok(())
}

/// Stores an address.
unsafe fn put_pointer(place: *mut Handle, address: u64) -> Result {
    unsafe { put(place, address as Handle) }
}

/// The caller's text.
unsafe fn text(pointer: *const c_char) -> String {
    if pointer.is_null() {
        return String::new();
    }
    unsafe { CStr::from_ptr(pointer) }.to_string_lossy().into_owned()
}
