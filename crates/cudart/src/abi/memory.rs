//! Memory: what is allocated, shared and freed, and what a pointer points to.

use std::ffi::{c_int, c_void};

use super::copies::{PitchedPointer, Volume};
use super::{Handle, call, call_and_wait, put, put_pointer};
use crate::abi::host::SharedRange;
use crate::core::error::CudaError;
use crate::core::graphs::Work;
use crate::core::memory::Kind;

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn cudaMalloc(place: *mut Handle, bytes: usize) -> i32 {
    call(|process| {
        let address = process.open_busy()?.malloc(bytes as u64)?;
        unsafe { put_pointer(place, address) }
    })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn cudaMallocAsync(place: *mut Handle, bytes: usize, stream: Handle) -> i32 {
    call(|process| {
        if !process.graphs.is_captured(stream as u64) {
            let address = process.open_busy()?.malloc(bytes as u64)?;
            return unsafe { put_pointer(place, address) };
        }
        let address = process.open()?.malloc_for_graph(bytes as u64)?;
        process.graphs.record(stream as u64, Work::Malloc { address })?;
        unsafe { put_pointer(place, address) }
    })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn cudaMallocPitch(
    place: *mut Handle,
    pitch: *mut usize,
    width: usize,
    rows: usize,
) -> i32 {
    call(|process| {
        let (address, bytes) = process.open_busy()?.malloc_pitch(width as u64, rows as u64)?;
        unsafe { put(pitch, bytes as usize).and_then(|()| put_pointer(place, address)) }
    })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn cudaMalloc3D(place: *mut PitchedPointer, volume: Volume) -> i32 {
    call(|process| {
        let rows = (volume.rows as u64).saturating_mul(volume.planes as u64);
        let (address, pitch) = process.open_busy()?.malloc_pitch(volume.width as u64, rows)?;
        let pitched = PitchedPointer {
            pointer: address as Handle,
            pitch: pitch as usize,
            width: volume.width,
            rows: volume.rows,
        };
        unsafe { put(place, pitched) }
    })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn cudaMallocManaged(place: *mut Handle, bytes: usize, _flags: u32) -> i32 {
    call(|process| {
        if bytes == 0 {
            return Err(CudaError::INVALID_VALUE);
        }
        let address = process.open()?.malloc_shared(bytes as u64, Kind::Managed)?;
        unsafe { put_pointer(place, address) }
    })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn cudaHostAlloc(place: *mut Handle, bytes: usize, _flags: u32) -> i32 {
    call(|process| {
        let address = process.open()?.malloc_shared(bytes as u64, Kind::Host)?;
        unsafe { put_pointer(place, address) }
    })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn cudaMallocHost(place: *mut Handle, bytes: usize) -> i32 {
    unsafe { cudaHostAlloc(place, bytes, 0) }
}

/// The program promises that the memory stays until it is unregistered.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn cudaHostRegister(pointer: Handle, bytes: usize, _flags: u32) -> i32 {
    call(|process| {
        let open = process.open()?;
        if pointer.is_null() || bytes == 0 {
            return Err(CudaError::INVALID_VALUE);
        }
        if open.is_shared(pointer as u64, bytes as u64) {
            return Err(CudaError::ALREADY_REGISTERED);
        }
        open.share(unsafe { SharedRange::registered(pointer as u64, bytes) }).map(|_| ())
    })
}

#[unsafe(no_mangle)]
pub(super) extern "C" fn cudaHostUnregister(pointer: Handle) -> i32 {
    call(|process| process.open()?.unregister(pointer as u64))
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn cudaHostGetDevicePointer(
    place: *mut Handle,
    host: Handle,
    _flags: u32,
) -> i32 {
    call(|process| {
        if !process.open()?.is_shared(host as u64, 1) {
            return Err(CudaError::INVALID_VALUE);
        }
        unsafe { put_pointer(place, host as u64) }
    })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn cudaHostGetFlags(place: *mut u32, host: Handle) -> i32 {
    /// `cudaHostAllocMapped`: all is.
    const MAPPED: u32 = 2;
    call(|process| {
        if !process.open()?.is_shared(host as u64, 1) {
            return Err(CudaError::INVALID_VALUE);
        }
        unsafe { put(place, MAPPED) }
    })
}

#[unsafe(no_mangle)]
pub(super) extern "C" fn cudaFree(pointer: Handle) -> i32 {
    // It waits for the device, as programs know.
    call_and_wait(|process| {
        let open = process.open()?;
        open.streams.synchronize_all();
        open.free(pointer as u64)
    })
}

#[unsafe(no_mangle)]
pub(super) extern "C" fn cudaFreeAsync(pointer: Handle, stream: Handle) -> i32 {
    call(|process| {
        let address = pointer as u64;
        match process.captured(stream as u64, || Work::Free { address }) {
            Some(recorded) => recorded,
            None => process.open()?.free(address),
        }
    })
}

#[unsafe(no_mangle)]
pub(super) extern "C" fn cudaFreeHost(pointer: Handle) -> i32 {
    call(|process| process.open()?.free_host(pointer as u64))
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn cudaMemGetInfo(free: *mut usize, total: *mut usize) -> i32 {
    call(|process| {
        let open = process.open()?;
        let all = open.properties.global_bytes();
        unsafe { put(free, open.free_bytes() as usize).and_then(|()| put(total, all as usize)) }
    })
}

/// `cudaPointerAttributes` as all versions begin it.
#[repr(C)]
struct PointerAttributes {
    kind: c_int,
    device: c_int,
    device_pointer: u64,
    host_pointer: u64,
}

/// Words that the structure has after that, since CUDA 13.
const POINTER_ATTRIBUTES_MORE: usize = 8;

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaPointerGetAttributes(place: *mut PointerAttributes, pointer: *const c_void) -> i32 {
    call(|process| {
        let address = pointer as u64;
        let kind = process.open()?.kind(address);
        let on_device = matches!(kind, Kind::Device | Kind::Managed | Kind::Host);
        let on_host = matches!(kind, Kind::Managed | Kind::Host);
        let attributes = PointerAttributes {
            kind: kind as c_int,
            device: if kind == Kind::Unregistered { -2 } else { 0 },
            device_pointer: if on_device { address } else { 0 },
            host_pointer: if on_host || kind == Kind::Unregistered { address } else { 0 },
        };
        unsafe { put(place, attributes)? };
        if process.cuda_version >= 13 {
            unsafe { place.add(1).cast::<u64>().write_bytes(0, POINTER_ATTRIBUTES_MORE) };
        }
        Ok(())
    })
}

/// Hints about where managed memory should be: it is in both places. The same for all versions, whose parameters
/// differ, because none is read.
#[unsafe(no_mangle)]
pub(super) extern "C" fn cudaMemPrefetchAsync() -> i32 {
    call(|process| process.open().map(|_| ()))
}

#[unsafe(no_mangle)]
pub(super) extern "C" fn cudaMemAdvise() -> i32 {
    call(|process| process.open().map(|_| ()))
}

#[unsafe(no_mangle)]
pub(super) extern "C" fn cudaMemPrefetchAsync_v2() -> i32 {
    cudaMemPrefetchAsync()
}

#[unsafe(no_mangle)]
pub(super) extern "C" fn cudaMemAdvise_v2() -> i32 {
    cudaMemAdvise()
}
