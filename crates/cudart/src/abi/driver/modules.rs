//! Modules, libraries and kernels by the driver's API. A library (`cuLibrary…`) is a module, and a kernel of it a
//! function: there is one context's worth of everything.

use std::ffi::{CString, c_char, c_int, c_uint, c_void};

use super::super::register::containers_at;
use super::super::{put, put_pointer, text};
use super::{Handle, call, device_call};
use crate::core::error::{CudaError, Result};
use crate::core::fatbin::{FatBinary, MAGIC};
use crate::core::linker::{for_chip, is_elf};
use crate::core::modules::image_of_ptx;
use crate::core::process::{Process, complain};

/// Reads an image by its address alone, as the driver does: PTX ends with a NUL, the others know their size.
pub(super) unsafe fn image(data: *const c_void) -> std::result::Result<Vec<FatBinary>, (CudaError, String)> {
    if data.is_null() {
        return Err((CudaError::INVALID_VALUE, String::new()));
    }
    // Sound: the smallest image has a head of four bytes; a text may be shorter, but then ends with a NUL.
    let mut head = [0u8; 4];
    for (at, byte) in head.iter_mut().enumerate() {
        *byte = unsafe { *data.cast::<u8>().add(at) };
        if *byte == 0 && at == 0 {
            return Err((CudaError::INVALID_KERNEL_IMAGE, "the image is empty".to_string()));
        }
        if *byte == 0 {
            break;
        }
    }
    if is_elf(&head) {
        // Sound: a file of machine code begins with a header of 64 bytes.
        let header = unsafe { std::slice::from_raw_parts(data.cast::<u8>(), 64) };
        let reason = format!(
            "the program loads machine code{} (a cubin), which the simulator does not run: have it load PTX",
            for_chip(header)
        );
        return Err((CudaError::NO_KERNEL_IMAGE, reason));
    }
    let word = u32::from_le_bytes(head);
    if word == MAGIC || word == super::super::register::WRAPPER_MAGIC {
        return Ok(unsafe { containers_at(data) });
    }
    Ok(vec![image_of_ptx(unsafe { text(data.cast()) })])
}

/// Options of the compiler, of which those for its log are used.
#[derive(Clone, Copy)]
pub(super) struct JitLogs {
    info: (*mut c_char, usize),
    error: (*mut c_char, usize),
    /// Where the sizes are stored that were used: the option's own value.
    info_used: *mut usize,
    error_used: *mut usize,
}

// Sound: the pointers are the caller's, who keeps them until the link is destroyed.
unsafe impl Send for JitLogs {}

const INFO_LOG: c_int = 3;
const INFO_LOG_BYTES: c_int = 4;
const ERROR_LOG: c_int = 5;
const ERROR_LOG_BYTES: c_int = 6;

impl JitLogs {
    pub(super) unsafe fn read(count: c_uint, options: *const c_int, values: *mut *mut c_void) -> JitLogs {
        let null = std::ptr::null_mut();
        let mut logs =
            JitLogs { info: (null, 0), error: (null, 0), info_used: null.cast(), error_used: null.cast() };
        if options.is_null() || values.is_null() {
            return logs;
        }
        for at in 0..count as usize {
            let (option, place) = unsafe { (*options.add(at), values.add(at)) };
            let value = unsafe { *place };
            match option {
                INFO_LOG => logs.info.0 = value.cast(),
                ERROR_LOG => logs.error.0 = value.cast(),
                INFO_LOG_BYTES => (logs.info.1, logs.info_used) = (value as u32 as usize, place.cast()),
                ERROR_LOG_BYTES => (logs.error.1, logs.error_used) = (value as u32 as usize, place.cast()),
                _ => {}
            }
        }
        logs
    }

    /// Writes what the compiler has to say; the log of information is empty.
    pub(super) unsafe fn write(&self, errors: &str) {
        for ((place, room), used, words) in
            [(self.info, self.info_used, ""), (self.error, self.error_used, errors)]
        {
            let count = words.len().min(room.saturating_sub(1));
            if !place.is_null() && room > 0 {
                unsafe {
                    place.copy_from_nonoverlapping(words.as_ptr().cast(), count);
                    place.add(count).write(0);
                }
            }
            if !used.is_null() {
                unsafe { used.write(count) };
            }
        }
    }
}

unsafe fn load(
    process: &mut Process,
    place: *mut Handle,
    data: *const c_void,
    logs: Option<&JitLogs>,
) -> Result {
    let loaded = unsafe { image(data) }.and_then(|image| process.load_module(image));
    match loaded {
        Ok(module) => unsafe { put_pointer(place, module) },
        Err((error, reason)) => {
            if !reason.is_empty() {
                complain(&reason);
            }
            if let Some(logs) = logs {
                unsafe { logs.write(&reason) };
            }
            Err(error)
        }
    }
}

unsafe fn load_file(process: &mut Process, place: *mut Handle, path: *const c_char) -> Result {
    let path = unsafe { text(path) };
    let mut bytes = std::fs::read(&path).map_err(|error| {
        complain(format!("`{path}`: {error}"));
        CudaError::FILE_NOT_FOUND
    })?;
    // For a text, and so that a short file is no short image.
    bytes.resize(bytes.len() + 64, 0);
    unsafe { load(process, place, bytes.as_ptr().cast(), None) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuModuleLoad(place: *mut Handle, path: *const c_char) -> i32 {
    call(|process| unsafe { load_file(process, place, path) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuModuleLoadData(place: *mut Handle, data: *const c_void) -> i32 {
    call(|process| unsafe { load(process, place, data, None) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuModuleLoadDataEx(
    place: *mut Handle,
    data: *const c_void,
    count: c_uint,
    options: *const c_int,
    values: *mut *mut c_void,
) -> i32 {
    call(|process| unsafe { load(process, place, data, Some(&JitLogs::read(count, options, values))) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuModuleLoadFatBinary(place: *mut Handle, data: *const c_void) -> i32 {
    call(|process| unsafe { load(process, place, data, None) })
}

#[unsafe(no_mangle)]
extern "C" fn cuModuleUnload(module: Handle) -> i32 {
    call(|process| process.unload_module(module as u64))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuModuleGetFunction(place: *mut Handle, module: Handle, name: *const c_char) -> i32 {
    call(|process| unsafe { find(process, place, module, name) })
}

unsafe fn find(process: &mut Process, place: *mut Handle, module: Handle, name: *const c_char) -> Result {
    let name = unsafe { text(name) };
    let function = process.module_function(module as u64, &name).inspect_err(|error| {
        if *error == CudaError::SYMBOL_NOT_FOUND {
            complain(format!("the module has no kernel `{name}`"));
        }
    })?;
    unsafe { put_pointer(place, function) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuModuleGetGlobal_v2(
    place: *mut Handle,
    bytes: *mut usize,
    module: Handle,
    name: *const c_char,
) -> i32 {
    call(|process| {
        let found = process.module_global(module as u64, &unsafe { text(name) })?;
        if !bytes.is_null() {
            unsafe { put(bytes, found.bytes as usize)? };
        }
        if place.is_null() { Ok(()) } else { unsafe { put_pointer(place, found.address) } }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuModuleGetFunctionCount(place: *mut c_uint, module: Handle) -> i32 {
    call(|process| {
        let count = process.kernel_names(module as u64)?.len();
        unsafe { put(place, count as c_uint) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuModuleEnumerateFunctions(places: *mut Handle, room: c_uint, module: Handle) -> i32 {
    call(|process| {
        let names = process.kernel_names(module as u64)?;
        for (at, name) in names.iter().take(room as usize).enumerate() {
            let function = process.module_function(module as u64, name)?;
            unsafe { put_pointer(places.add(at), function)? };
        }
        Ok(())
    })
}

/// Modules are loaded at once.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuModuleGetLoadingMode(place: *mut c_int) -> i32 {
    const EAGER: c_int = 1;
    device_call(|_| unsafe { put(place, EAGER) })
}

/// A library may be loaded without a context.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuLibraryLoadData(
    place: *mut Handle,
    data: *const c_void,
    options: *const c_int,
    values: *mut *mut c_void,
    count: c_uint,
    _library_options: *const c_int,
    _library_values: *mut *mut c_void,
    _library_count: c_uint,
) -> i32 {
    device_call(|process| {
        process.check()?;
        unsafe { load(process, place, data, Some(&JitLogs::read(count, options, values))) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuLibraryLoadFromFile(
    place: *mut Handle,
    path: *const c_char,
    _options: *const c_int,
    _values: *mut *mut c_void,
    _count: c_uint,
    _library_options: *const c_int,
    _library_values: *mut *mut c_void,
    _library_count: c_uint,
) -> i32 {
    device_call(|process| {
        process.check()?;
        unsafe { load_file(process, place, path) }
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuLibraryUnload(library: Handle) -> i32 {
    device_call(|process| process.unload_module(library as u64))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuLibraryGetKernel(place: *mut Handle, library: Handle, name: *const c_char) -> i32 {
    device_call(|process| {
        process.check()?;
        unsafe { find(process, place, library, name) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuLibraryGetKernelCount(place: *mut c_uint, library: Handle) -> i32 {
    unsafe { cuModuleGetFunctionCount(place, library) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuLibraryEnumerateKernels(places: *mut Handle, room: c_uint, library: Handle) -> i32 {
    unsafe { cuModuleEnumerateFunctions(places, room, library) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuLibraryGetModule(place: *mut Handle, library: Handle) -> i32 {
    call(|process| {
        process.kernel_names(library as u64)?;
        unsafe { put_pointer(place, library as u64) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuLibraryGetGlobal(
    place: *mut Handle,
    bytes: *mut usize,
    library: Handle,
    name: *const c_char,
) -> i32 {
    unsafe { cuModuleGetGlobal_v2(place, bytes, library, name) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuKernelGetFunction(place: *mut Handle, kernel: Handle) -> i32 {
    call(|process| {
        process.function(kernel as u64)?;
        unsafe { put_pointer(place, kernel as u64) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuKernelGetLibrary(place: *mut Handle, kernel: Handle) -> i32 {
    unsafe { cuFuncGetModule(place, kernel) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuFuncGetModule(place: *mut Handle, function: Handle) -> i32 {
    call(|process| {
        let module = process.module_of(function as u64)?;
        unsafe { put_pointer(place, module) }
    })
}

/// The name lives as long as the process: programs keep the pointer.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuFuncGetName(place: *mut *const c_char, function: Handle) -> i32 {
    call(|process| {
        let name = process.function(function as u64)?.name.clone();
        let name = CString::new(name).map_err(|_| CudaError::INVALID_RESOURCE_HANDLE)?;
        unsafe { put(place, name.into_raw().cast_const()) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuKernelGetName(place: *mut *const c_char, kernel: Handle) -> i32 {
    unsafe { cuFuncGetName(place, kernel) }
}
