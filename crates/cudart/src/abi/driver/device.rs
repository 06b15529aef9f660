//! The device by the driver's API.

use std::ffi::{c_char, c_int, c_uint};

use super::super::{device, put};
use super::{VERSION, device_call, without_context};
use crate::core::error::{CudaError, Result};

/// There is one device, number 0.
pub(super) fn check(device: c_int) -> Result {
    if device == 0 { Ok(()) } else { Err(CudaError::INVALID_DEVICE) }
}

/// May be called before `cuInit`.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuDriverGetVersion(place: *mut c_int) -> i32 {
    unsafe { put(place, VERSION) }.map_or_else(|error| error.0, |()| 0)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceGet(place: *mut c_int, ordinal: c_int) -> i32 {
    device_call(|_| {
        check(ordinal)?;
        unsafe { put(place, 0) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceGetCount(place: *mut c_int) -> i32 {
    device_call(|_| unsafe { put(place, 1) })
}

/// Copies as many bytes as there is room for, with a NUL at the end.
unsafe fn put_text(place: *mut c_char, room: c_int, text: &str) -> Result {
    let room = usize::try_from(room).ok().filter(|&room| room > 0).ok_or(CudaError::INVALID_VALUE)?;
    if place.is_null() {
        return Err(CudaError::INVALID_VALUE);
    }
    let count = text.len().min(room - 1);
    unsafe {
        place.copy_from_nonoverlapping(text.as_ptr().cast(), count);
        place.add(count).write(0);
    }
    Ok(())
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceGetName(place: *mut c_char, room: c_int, device: c_int) -> i32 {
    device_call(|process| {
        check(device)?;
        let name = process.open_busy()?.properties.name.clone();
        unsafe { put_text(place, room, &name) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceGetUuid_v2(place: *mut [u8; 16], device: c_int) -> i32 {
    device_call(|process| {
        check(device)?;
        let uuid = process.open_busy()?.properties.uuid();
        unsafe { put(place, uuid) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceGetUuid(place: *mut [u8; 16], device: c_int) -> i32 {
    unsafe { cuDeviceGetUuid_v2(place, device) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceTotalMem_v2(place: *mut usize, device: c_int) -> i32 {
    device_call(|process| {
        check(device)?;
        let bytes = process.open_busy()?.properties.global_bytes();
        unsafe { put(place, bytes as usize) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceGetAttribute(place: *mut c_int, attribute: c_int, device: c_int) -> i32 {
    device_call(|process| {
        check(device)?;
        let value = process.open_busy()?.properties.attribute(attribute).ok_or(CudaError::INVALID_VALUE)?;
        unsafe { put(place, value) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceComputeCapability(major: *mut c_int, minor: *mut c_int, device: c_int) -> i32 {
    device_call(|process| {
        check(device)?;
        let properties = &process.open_busy()?.properties;
        unsafe { put(major, properties.major).and_then(|()| put(minor, properties.minor)) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceCanAccessPeer(place: *mut c_int, device: c_int, peer: c_int) -> i32 {
    device_call(|_| {
        check(device)?;
        check(peer)?;
        unsafe { put(place, 0) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceGetPCIBusId(place: *mut c_char, room: c_int, device: c_int) -> i32 {
    without_context(|| unsafe { device::cudaDeviceGetPCIBusId(place, room, device) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceGetByPCIBusId(place: *mut c_int, id: *const c_char) -> i32 {
    without_context(|| unsafe { device::cudaDeviceGetByPCIBusId(place, id) })
}

/// No affinity to parts of the device.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceGetExecAffinitySupport(place: *mut c_int, _kind: c_uint, device: c_int) -> i32 {
    device_call(|_| {
        check(device)?;
        unsafe { put(place, 0) }
    })
}
