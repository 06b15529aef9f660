//! Functions by name: `cuGetProcAddress`, by which programs find the driver's functions in the form of their version of
//! CUDA, and the functions of the runtime for the same.

use std::ffi::{c_char, c_int, c_void};

use super::super::errors::version;
use super::super::redirect::{function, this_library};
use super::super::text;
use super::missing::MISSING;
use crate::core::error::CudaError;

/// Functions whose form has changed since version 2 of a name: the name, and since which version of CUDA it stands for
/// which function. What is not here is the function of the name with `_v2` if there is one, or else of the name itself.
const CHANGED: &[(&str, &[(c_int, &str)])] = &[
    ("cuCtxCreate", &[(0, "cuCtxCreate_v2"), (11040, "cuCtxCreate_v3"), (12050, "cuCtxCreate_v4")]),
    ("cuCtxGetDevice", &[(0, "cuCtxGetDevice"), (13000, "cuCtxGetDevice_v2")]),
    ("cuCtxSynchronize", &[(0, "cuCtxSynchronize"), (13000, "cuCtxSynchronize_v2")]),
    ("cuGraphInstantiate", &[(0, "cuGraphInstantiateWithFlags")]),
    ("cuGetProcAddress", &[(0, "cuGetProcAddress"), (12000, "cuGetProcAddress_v2")]),
    (
        "cuStreamGetCaptureInfo",
        &[
            (0, "cuStreamGetCaptureInfo"),
            (11030, "cuStreamGetCaptureInfo_v2"),
            (12030, "cuStreamGetCaptureInfo_v3"),
        ],
    ),
    ("cuStreamGetCtx", &[(0, "cuStreamGetCtx"), (12050, "cuStreamGetCtx_v2")]),
];

/// Results of a search.
const FOUND: c_int = 0;
const NOT_FOUND: c_int = 1;

/// The function of a name for a version of CUDA, such as 12000.
fn find(name: &str, version: c_int) -> Option<u64> {
    // One default stream for all threads: functions for one per thread are the same.
    let name = name.trim_end_matches("_ptsz").trim_end_matches("_ptds");
    let changed = CHANGED.iter().find(|(known, _)| *known == name);
    let exact = changed.and_then(|(_, forms)| forms.iter().rfind(|(since, _)| *since <= version));
    let candidates = match exact {
        Some((_, form)) => vec![form.to_string()],
        None => vec![format!("{name}_v2"), name.to_string()],
    };
    let library = this_library()?;
    let is_there = |name: &&String| !MISSING.contains(&name.as_str()) && name.starts_with("cu");
    candidates.iter().filter(is_there).find_map(|name| function(library, name))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuGetProcAddress_v2(
    name: *const c_char,
    place: *mut *mut c_void,
    version: c_int,
    _flags: u64,
    status: *mut c_int,
) -> i32 {
    if name.is_null() || place.is_null() {
        return CudaError::INVALID_VALUE.0;
    }
    let found = find(&unsafe { text(name) }, version);
    unsafe { place.write(found.unwrap_or(0) as *mut c_void) };
    if !status.is_null() {
        unsafe { status.write(if found.is_some() { FOUND } else { NOT_FOUND }) };
    }
    if found.is_some() { 0 } else { CudaError::SYMBOL_NOT_FOUND.0 }
}

/// Its form before CUDA 12.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuGetProcAddress(
    name: *const c_char,
    place: *mut *mut c_void,
    version: c_int,
    flags: u64,
) -> i32 {
    unsafe { cuGetProcAddress_v2(name, place, version, flags, std::ptr::null_mut()) }
}

/// The runtime's way to a function of the driver. That there is none is told by the status alone.
#[unsafe(no_mangle)]
unsafe extern "C" fn cudaGetDriverEntryPointByVersion(
    name: *const c_char,
    place: *mut *mut c_void,
    version: c_int,
    flags: u64,
    status: *mut c_int,
) -> i32 {
    match unsafe { cuGetProcAddress_v2(name, place, version, flags, status) } {
        code if code == CudaError::SYMBOL_NOT_FOUND.0 => 0,
        code => code,
    }
}

/// Its form before CUDA 12.5: the function of the version that the program was built for.
#[unsafe(no_mangle)]
unsafe extern "C" fn cudaGetDriverEntryPoint(
    name: *const c_char,
    place: *mut *mut c_void,
    flags: u64,
    status: *mut c_int,
) -> i32 {
    unsafe { cudaGetDriverEntryPointByVersion(name, place, version(), flags, status) }
}
