//! Error codes of the driver's API. Most are those of the runtime under other names.

use std::ffi::c_char;

use crate::core::error::{self, CudaError};

/// The driver's code for one of the runtime's.
pub(super) fn of_driver(code: i32) -> i32 {
    match CudaError(code) {
        CudaError::INVALID_CONFIGURATION
        | CudaError::INVALID_PITCH
        | CudaError::INVALID_MEMCPY_DIRECTION
        | CudaError::MISSING_CONFIGURATION => CudaError::INVALID_VALUE.0,
        CudaError::INVALID_SYMBOL => CudaError::SYMBOL_NOT_FOUND.0,
        CudaError::INVALID_DEVICE_FUNCTION => CudaError::INVALID_RESOURCE_HANDLE.0,
        _ => code,
    }
}

/// Names by code, each with a NUL at its end.
const NAMES: &[(i32, &str)] = &[
    (0, "CUDA_SUCCESS\0"),
    (1, "CUDA_ERROR_INVALID_VALUE\0"),
    (2, "CUDA_ERROR_OUT_OF_MEMORY\0"),
    (3, "CUDA_ERROR_NOT_INITIALIZED\0"),
    (4, "CUDA_ERROR_DEINITIALIZED\0"),
    (100, "CUDA_ERROR_NO_DEVICE\0"),
    (101, "CUDA_ERROR_INVALID_DEVICE\0"),
    (200, "CUDA_ERROR_INVALID_IMAGE\0"),
    (201, "CUDA_ERROR_INVALID_CONTEXT\0"),
    (209, "CUDA_ERROR_NO_BINARY_FOR_GPU\0"),
    (215, "CUDA_ERROR_UNSUPPORTED_LIMIT\0"),
    (217, "CUDA_ERROR_PEER_ACCESS_UNSUPPORTED\0"),
    (218, "CUDA_ERROR_INVALID_PTX\0"),
    (301, "CUDA_ERROR_FILE_NOT_FOUND\0"),
    (400, "CUDA_ERROR_INVALID_HANDLE\0"),
    (401, "CUDA_ERROR_ILLEGAL_STATE\0"),
    (500, "CUDA_ERROR_NOT_FOUND\0"),
    (600, "CUDA_ERROR_NOT_READY\0"),
    (700, "CUDA_ERROR_ILLEGAL_ADDRESS\0"),
    (701, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES\0"),
    (702, "CUDA_ERROR_LAUNCH_TIMEOUT\0"),
    (704, "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED\0"),
    (705, "CUDA_ERROR_PEER_ACCESS_NOT_ENABLED\0"),
    (710, "CUDA_ERROR_ASSERT\0"),
    (712, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED\0"),
    (713, "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED\0"),
    (714, "CUDA_ERROR_HARDWARE_STACK_ERROR\0"),
    (715, "CUDA_ERROR_ILLEGAL_INSTRUCTION\0"),
    (716, "CUDA_ERROR_MISALIGNED_ADDRESS\0"),
    (718, "CUDA_ERROR_INVALID_PC\0"),
    (719, "CUDA_ERROR_LAUNCH_FAILED\0"),
    (720, "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE\0"),
    (801, "CUDA_ERROR_NOT_SUPPORTED\0"),
    (900, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED\0"),
    (901, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED\0"),
    (902, "CUDA_ERROR_STREAM_CAPTURE_MERGE\0"),
    (903, "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED\0"),
    (904, "CUDA_ERROR_STREAM_CAPTURE_UNJOINED\0"),
    (905, "CUDA_ERROR_STREAM_CAPTURE_ISOLATION\0"),
    (906, "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT\0"),
    (910, "CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE\0"),
    (912, "CUDA_ERROR_INVALID_CLUSTER_SIZE\0"),
    (999, "CUDA_ERROR_UNKNOWN\0"),
];

unsafe fn put_text(place: *mut *const c_char, text: Option<&'static str>) -> i32 {
    if place.is_null() {
        return CudaError::INVALID_VALUE.0;
    }
    let pointer = text.map_or(std::ptr::null(), |text| text.as_ptr().cast());
    unsafe { place.write(pointer) };
    if text.is_some() { 0 } else { CudaError::INVALID_VALUE.0 }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuGetErrorName(code: i32, place: *mut *const c_char) -> i32 {
    let found = NAMES.iter().find(|(known, _)| *known == code).map(|(_, name)| *name);
    unsafe { put_text(place, found) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuGetErrorString(code: i32, place: *mut *const c_char) -> i32 {
    let is_known = NAMES.iter().any(|(known, _)| *known == code);
    unsafe { put_text(place, is_known.then(|| error::text(code))) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_and_names() {
        assert_eq!(of_driver(CudaError::INVALID_CONFIGURATION.0), 1);
        assert_eq!(of_driver(CudaError::ILLEGAL_ADDRESS.0), 700);
        assert!(NAMES.is_sorted_by_key(|(code, _)| *code));
        let texts: Vec<_> = NAMES.iter().filter(|(code, _)| error::text(*code).contains("unrecog")).collect();
        assert!(texts.is_empty(), "{texts:?}");
    }
}
