//! The device: how many there are, what it is, its limits.

use std::ffi::{c_char, c_int};

use super::{call, call_and_wait, put};
use crate::core::error::{CudaError, Result};
use crate::core::process::Process;

/// There is one device, number 0.
fn check(device: c_int) -> Result {
    if device == 0 { Ok(()) } else { Err(CudaError::INVALID_DEVICE) }
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn cudaGetDeviceCount(place: *mut c_int) -> i32 {
    call(|_| unsafe { put(place, 1) })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn cudaGetDevice(place: *mut c_int) -> i32 {
    call(|_| unsafe { put(place, 0) })
}

#[unsafe(no_mangle)]
pub(super) extern "C" fn cudaSetDevice(device: c_int) -> i32 {
    call(|_| check(device))
}

#[unsafe(no_mangle)]
pub(super) extern "C" fn cudaInitDevice(device: c_int, _device_flags: u32, _flags: u32) -> i32 {
    call(|process| {
        check(device)?;
        process.open().map(|_| ())
    })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn cudaChooseDevice(place: *mut c_int, _wanted: *const u8) -> i32 {
    call(|_| unsafe { put(place, 0) })
}

#[unsafe(no_mangle)]
pub(super) extern "C" fn cudaSetDeviceFlags(_flags: u32) -> i32 {
    call(|_| Ok(()))
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn cudaGetDeviceFlags(place: *mut u32) -> i32 {
    /// `cudaDeviceMapHost`.
    const MAP_HOST: u32 = 8;
    call(|_| unsafe { put(place, MAP_HOST) })
}

#[unsafe(no_mangle)]
pub(super) extern "C" fn cudaDeviceSynchronize() -> i32 {
    call_and_wait(|process| {
        process.graphs.refuse_in_any_capture()?;
        process.open()?.streams.synchronize_all();
        Ok(())
    })
}

/// The same under the name of before CUDA 4, which CUDA 11 and 12 still have.
#[unsafe(no_mangle)]
pub(super) extern "C" fn cudaThreadSynchronize() -> i32 {
    cudaDeviceSynchronize()
}

/// Also after a kernel that failed: the device starts anew.
#[unsafe(no_mangle)]
pub(super) extern "C" fn cudaDeviceReset() -> i32 {
    let mut process = super::process();
    super::show_printed(&mut process);
    super::code(process.reset())
}

#[unsafe(no_mangle)]
pub(super) extern "C" fn cudaThreadExit() -> i32 {
    cudaDeviceReset()
}

unsafe fn properties(process: &mut Process, place: *mut u8, device: c_int, version: u32) -> Result {
    check(device)?;
    let bytes = process.open_busy()?.properties.structure(version);
    if place.is_null() {
        return Err(CudaError::INVALID_VALUE);
    }
    // Sound: the structure has this size in the program's version of CUDA.
    unsafe { place.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
    Ok(())
}

/// The structure of CUDA 11 or 13; programs of CUDA 12 call the other one.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn cudaGetDeviceProperties(place: *mut u8, device: c_int) -> i32 {
    call(|process| unsafe { properties(process, place, device, process.cuda_version) })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn cudaGetDeviceProperties_v2(place: *mut u8, device: c_int) -> i32 {
    call(|process| unsafe { properties(process, place, device, 12) })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn cudaDeviceGetAttribute(
    place: *mut c_int,
    attribute: c_int,
    device: c_int,
) -> i32 {
    call(|process| {
        check(device)?;
        let value = process.open_busy()?.properties.attribute(attribute).ok_or(CudaError::INVALID_VALUE)?;
        unsafe { put(place, value) }
    })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn cudaDeviceGetPCIBusId(
    place: *mut c_char,
    bytes: c_int,
    device: c_int,
) -> i32 {
    const ID: &[u8] = b"0000:00:00.0\0";
    call(|_| {
        check(device)?;
        if place.is_null() || (bytes as usize) < ID.len() {
            return Err(CudaError::INVALID_VALUE);
        }
        unsafe { place.copy_from_nonoverlapping(ID.as_ptr().cast(), ID.len()) };
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn cudaDeviceGetByPCIBusId(place: *mut c_int, _id: *const c_char) -> i32 {
    call(|_| unsafe { put(place, 0) })
}

/// Limits by number: stack, printf buffer, heap. The first two grow as needed.
const LIMITS: [usize; 2] = [1 << 10, 1 << 20];
const HEAP: c_int = 2;

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn cudaDeviceGetLimit(place: *mut usize, limit: c_int) -> i32 {
    call(|process| {
        let value = match limit {
            0 | 1 => LIMITS[limit as usize],
            HEAP => process.heap_bytes as usize,
            _ => return Err(CudaError::UNSUPPORTED_LIMIT),
        };
        unsafe { put(place, value) }
    })
}

/// The heap's size counts for modules that are loaded later, as it does in CUDA for those whose kernels ran.
#[unsafe(no_mangle)]
pub(super) extern "C" fn cudaDeviceSetLimit(limit: c_int, value: usize) -> i32 {
    call(|process| match limit {
        HEAP => {
            process.heap_bytes = value as u64;
            Ok(())
        }
        0 | 1 => Ok(()),
        _ => Err(CudaError::UNSUPPORTED_LIMIT),
    })
}

/// Preferences of L1 over shared memory: the chip file decides.
#[unsafe(no_mangle)]
pub(super) extern "C" fn cudaDeviceSetCacheConfig(_config: c_int) -> i32 {
    call(|_| Ok(()))
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn cudaDeviceGetCacheConfig(place: *mut c_int) -> i32 {
    call(|_| unsafe { put(place, 0) })
}

#[unsafe(no_mangle)]
pub(super) extern "C" fn cudaDeviceSetSharedMemConfig(_config: c_int) -> i32 {
    call(|_| Ok(()))
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn cudaDeviceGetSharedMemConfig(place: *mut c_int) -> i32 {
    call(|_| unsafe { put(place, 1) })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn cudaDeviceCanAccessPeer(
    place: *mut c_int,
    device: c_int,
    peer: c_int,
) -> i32 {
    call(|_| {
        check(device)?;
        check(peer)?;
        unsafe { put(place, 0) }
    })
}

#[unsafe(no_mangle)]
pub(super) extern "C" fn cudaDeviceEnablePeerAccess(_peer: c_int, _flags: u32) -> i32 {
    call(|_| Err(CudaError::PEER_ACCESS_UNSUPPORTED))
}
