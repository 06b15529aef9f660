//! Errors, versions, and calls about the process.

use std::ffi::{c_char, c_int};

use super::{LAST_ERROR, call, process, put};
use crate::core::error;

/// The thread's last error. One of a kernel that failed stays; others are forgotten if `forget`.
fn last_error(forget: bool) -> i32 {
    if let Some(sticky) = process().check().err() {
        return sticky.0;
    }
    let last = LAST_ERROR.get();
    if forget {
        LAST_ERROR.set(0);
    }
    last
}

#[unsafe(no_mangle)]
pub(super) extern "C" fn cudaGetLastError() -> i32 {
    last_error(true)
}

#[unsafe(no_mangle)]
pub(super) extern "C" fn cudaPeekAtLastError() -> i32 {
    last_error(false)
}

#[unsafe(no_mangle)]
pub(super) extern "C" fn cudaGetErrorName(code: i32) -> *const c_char {
    error::name(code).as_ptr().cast()
}

#[unsafe(no_mangle)]
pub(super) extern "C" fn cudaGetErrorString(code: i32) -> *const c_char {
    error::text(code).as_ptr().cast()
}

/// As CUDA numbers versions: 12040 for 12.4.
pub(super) fn version() -> i32 {
    process().version_number() as i32
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn cudaRuntimeGetVersion(place: *mut c_int) -> i32 {
    let version = version();
    call(|_| unsafe { put(place, version) })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn cudaDriverGetVersion(place: *mut c_int) -> i32 {
    let version = version();
    call(|_| unsafe { put(place, version) })
}

#[unsafe(no_mangle)]
pub(super) extern "C" fn cudaProfilerStart() -> i32 {
    call(|_| Ok(()))
}

#[unsafe(no_mangle)]
pub(super) extern "C" fn cudaProfilerStop() -> i32 {
    call(|_| Ok(()))
}
