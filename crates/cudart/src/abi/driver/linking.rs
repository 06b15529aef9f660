//! The driver's linker, and nvJitLink's in its place: PTX in, PTX out (`core::linker`).
//!
//! Compilers such as Numba's call nvJitLink for machine code. It is loaded under nvJitLink's name, so that they get PTX
//! instead, which the driver here loads. Intermediate code for link-time optimisation goes to NVIDIA's own nvJitLink,
//! which can make PTX of it.

use std::collections::BTreeMap;
use std::ffi::{c_char, c_int, c_uint, c_void};
use std::sync::Mutex;

use super::super::{put, text};
use super::modules::JitLogs;
use super::{Handle, call, process};
use crate::core::error::{CudaError, Result};
use crate::core::linker::{InputKind, Linker};
use crate::core::process::{Process, complain};

/// Logs of links, which the program asks for when it begins one.
static LOGS: Mutex<BTreeMap<u64, JitLogs>> = Mutex::new(BTreeMap::new());

fn kind_of_driver(kind: c_int) -> Result<InputKind> {
    Ok(match kind {
        0 => InputKind::MachineCode,
        1 => InputKind::Ptx,
        2 => InputKind::FatBinary,
        3 => InputKind::Object,
        4 => InputKind::Library,
        5 => InputKind::Ir,
        _ => return Err(CudaError::INVALID_VALUE),
    })
}

/// Runs a step of a link and fills the program's log.
fn step(process: &mut Process, state: Handle, work: impl FnOnce(&mut Linker) -> Result) -> Result {
    let linker = process.linker(state as u64)?;
    let result = work(linker);
    if result.is_err() {
        complain(format!("link: {}", linker.errors.trim_end()));
    }
    if let Some(logs) = LOGS.lock().ok().and_then(|logs| logs.get(&(state as u64)).copied()) {
        unsafe { logs.write(&linker.errors) };
    }
    result
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuLinkCreate_v2(
    count: c_uint,
    options: *const c_int,
    values: *mut *mut c_void,
    place: *mut Handle,
) -> i32 {
    call(|process| {
        let handle = process.new_linker();
        if let Ok(mut logs) = LOGS.lock() {
            logs.insert(handle, unsafe { JitLogs::read(count, options, values) });
        }
        unsafe { put(place, handle as Handle) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuLinkAddData_v2(
    state: Handle,
    kind: c_int,
    data: *const c_void,
    bytes: usize,
    name: *const c_char,
    _count: c_uint,
    _options: *const c_int,
    _values: *mut *mut c_void,
) -> i32 {
    call(|process| {
        if data.is_null() {
            return Err(CudaError::INVALID_VALUE);
        }
        let data = unsafe { std::slice::from_raw_parts(data.cast::<u8>(), bytes) };
        let name = unsafe { text(name) };
        step(process, state, |linker| linker.add(kind_of_driver(kind)?, &name, data))
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuLinkAddFile_v2(
    state: Handle,
    kind: c_int,
    path: *const c_char,
    _count: c_uint,
    _options: *const c_int,
    _values: *mut *mut c_void,
) -> i32 {
    call(|process| {
        let path = unsafe { text(path) };
        let data = std::fs::read(&path).map_err(|error| {
            complain(format!("`{path}`: {error}"));
            CudaError::FILE_NOT_FOUND
        })?;
        step(process, state, |linker| linker.add(kind_of_driver(kind)?, &path, &data))
    })
}

/// The result belongs to the link, and lives until it is destroyed.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuLinkComplete(state: Handle, place: *mut *const u8, bytes: *mut usize) -> i32 {
    call(|process| {
        step(process, state, |linker| {
            let linked = linker.complete()?;
            if !bytes.is_null() {
                unsafe { put(bytes, linked.len())? };
            }
            unsafe { put(place, linked.as_ptr()) }
        })
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuLinkDestroy(state: Handle) -> i32 {
    call(|process| {
        if let Ok(mut logs) = LOGS.lock() {
            logs.remove(&(state as u64));
        }
        process.destroy_linker(state as u64)
    })
}

/// nvJitLink's own results.
const SUCCESS: c_int = 0;
const INVALID_INPUT: c_int = 3;
const UNRECOGNISED_OPTION: c_int = 1;
const INTERNAL: c_int = 6;

/// What is told as the version: that of the driver.
const VERSION: (c_uint, c_uint) = (13, 0);

fn kind_of_nvjitlink(kind: c_int) -> Option<InputKind> {
    Some(match kind {
        1 => InputKind::MachineCode,
        2 => InputKind::Ptx,
        3 => InputKind::Ir,
        4 => InputKind::FatBinary,
        5 => InputKind::Object,
        6 => InputKind::Library,
        10 => InputKind::Any,
        _ => return None,
    })
}

/// A function of nvJitLink under its plain name and under those that its header gives it.
macro_rules! jit_link {
    ($($plain:ident [$cuda12:ident $cuda13:ident] ($($arg:ident: $ty:ty),*) $body:block)*) => {$(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $plain($($arg: $ty),*) -> c_int $body

        #[unsafe(no_mangle)]
        unsafe extern "C" fn $cuda12($($arg: $ty),*) -> c_int {
            unsafe { $plain($($arg),*) }
        }

        #[unsafe(no_mangle)]
        unsafe extern "C" fn $cuda13($($arg: $ty),*) -> c_int {
            unsafe { $plain($($arg),*) }
        }
    )*};
}

/// A link by its handle, or that there is none.
fn linked(handle: Handle, work: impl FnOnce(&mut Linker) -> c_int) -> c_int {
    process().linker(handle as u64).map_or(INVALID_INPUT, work)
}

/// Stores the bytes of a result or of a log, or their number.
unsafe fn put_bytes(place: *mut u8, bytes: &[u8]) -> c_int {
    if place.is_null() {
        return INVALID_INPUT;
    }
    unsafe { place.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
    SUCCESS
}

unsafe fn put_size(place: *mut usize, bytes: usize) -> c_int {
    unsafe { put(place, bytes) }.map_or(INVALID_INPUT, |()| SUCCESS)
}

fn log(linker: &Linker) -> Vec<u8> {
    let mut bytes = linker.errors.clone().into_bytes();
    bytes.push(0);
    bytes
}

jit_link! {
    nvJitLinkCreate [__nvJitLinkCreate_12_0 __nvJitLinkCreate_13_0](
        place: *mut Handle, count: u32, options: *const *const c_char
    ) {
        let options: Vec<String> =
            (0..count as usize).map(|at| unsafe { text(*options.add(at)) }).collect();
        if let Some(unknown) = options.iter().find(|option| !option.starts_with('-')) {
            complain(format!("nvJitLink: `{unknown}` is no option"));
            return UNRECOGNISED_OPTION;
        }
        let mut process = process();
        let handle = process.new_linker();
        if let Ok(linker) = process.linker(handle) {
            linker.options = options;
        }
        unsafe { put(place, handle as Handle) }.map_or(INVALID_INPUT, |()| SUCCESS)
    }

    nvJitLinkDestroy [__nvJitLinkDestroy_12_0 __nvJitLinkDestroy_13_0](place: *mut Handle) {
        let Some(handle) = (unsafe { place.as_mut() }) else { return INVALID_INPUT };
        let destroyed = process().destroy_linker(*handle as u64);
        *handle = std::ptr::null_mut();
        destroyed.map_or(INVALID_INPUT, |()| SUCCESS)
    }

    nvJitLinkAddData [__nvJitLinkAddData_12_0 __nvJitLinkAddData_13_0](
        handle: Handle, kind: c_int, data: *const c_void, bytes: usize, name: *const c_char
    ) {
        let Some(kind) = kind_of_nvjitlink(kind).filter(|_| !data.is_null()) else { return INVALID_INPUT };
        let data = unsafe { std::slice::from_raw_parts(data.cast::<u8>(), bytes) };
        let name = unsafe { text(name) };
        linked(handle, |linker| linker.add(kind, &name, data).map_or(INVALID_INPUT, |()| SUCCESS))
    }

    nvJitLinkAddFile [__nvJitLinkAddFile_12_0 __nvJitLinkAddFile_13_0](
        handle: Handle, kind: c_int, path: *const c_char
    ) {
        let Some(kind) = kind_of_nvjitlink(kind) else { return INVALID_INPUT };
        let path = unsafe { text(path) };
        linked(handle, |linker| match std::fs::read(&path) {
            Ok(data) => linker.add(kind, &path, &data).map_or(INVALID_INPUT, |()| SUCCESS),
            Err(error) => {
                linker.errors.push_str(&format!("{path}: {error}\n"));
                INVALID_INPUT
            }
        })
    }

    nvJitLinkComplete [__nvJitLinkComplete_12_0 __nvJitLinkComplete_13_0](handle: Handle) {
        linked(handle, |linker| {
            if let Err(reason) = super::nvidia_linker::make_ptx(linker) {
                linker.errors.push_str(&reason);
                linker.errors.push('\n');
                return INTERNAL;
            }
            linker.complete().map_or(INTERNAL, |_| SUCCESS)
        })
    }

    nvJitLinkGetLinkedCubinSize [__nvJitLinkGetLinkedCubinSize_12_0 __nvJitLinkGetLinkedCubinSize_13_0](
        handle: Handle, place: *mut usize
    ) {
        linked(handle, |linker| match &linker.linked {
            Some(bytes) => unsafe { put_size(place, bytes.len()) },
            None => INTERNAL,
        })
    }

    nvJitLinkGetLinkedCubin [__nvJitLinkGetLinkedCubin_12_0 __nvJitLinkGetLinkedCubin_13_0](
        handle: Handle, place: *mut u8
    ) {
        linked(handle, |linker| match &linker.linked {
            Some(bytes) => unsafe { put_bytes(place, bytes) },
            None => INTERNAL,
        })
    }

    nvJitLinkGetLinkedPtxSize [__nvJitLinkGetLinkedPtxSize_12_0 __nvJitLinkGetLinkedPtxSize_13_0](
        handle: Handle, place: *mut usize
    ) {
        unsafe { nvJitLinkGetLinkedCubinSize(handle, place) }
    }

    nvJitLinkGetLinkedPtx [__nvJitLinkGetLinkedPtx_12_0 __nvJitLinkGetLinkedPtx_13_0](
        handle: Handle, place: *mut u8
    ) {
        unsafe { nvJitLinkGetLinkedCubin(handle, place) }
    }

    nvJitLinkGetErrorLogSize [__nvJitLinkGetErrorLogSize_12_0 __nvJitLinkGetErrorLogSize_13_0](
        handle: Handle, place: *mut usize
    ) {
        linked(handle, |linker| unsafe { put_size(place, log(linker).len()) })
    }

    nvJitLinkGetErrorLog [__nvJitLinkGetErrorLog_12_0 __nvJitLinkGetErrorLog_13_0](
        handle: Handle, place: *mut u8
    ) {
        linked(handle, |linker| unsafe { put_bytes(place, &log(linker)) })
    }

    nvJitLinkGetInfoLogSize [__nvJitLinkGetInfoLogSize_12_0 __nvJitLinkGetInfoLogSize_13_0](
        _handle: Handle, place: *mut usize
    ) {
        unsafe { put_size(place, 1) }
    }

    nvJitLinkGetInfoLog [__nvJitLinkGetInfoLog_12_0 __nvJitLinkGetInfoLog_13_0](
        _handle: Handle, place: *mut u8
    ) {
        unsafe { put_bytes(place, b"\0") }
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvJitLinkVersion(major: *mut c_uint, minor: *mut c_uint) -> c_int {
    let stored = unsafe { put(major, VERSION.0).and_then(|()| put(minor, VERSION.1)) };
    stored.map_or(INVALID_INPUT, |()| SUCCESS)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn __nvJitLinkVersion(major: *mut c_uint, minor: *mut c_uint) -> c_int {
    unsafe { nvJitLinkVersion(major, minor) }
}
