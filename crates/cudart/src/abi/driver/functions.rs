//! Kernels by the driver's API: launches, attributes, occupancy.

use std::ffi::{c_int, c_uint, c_void};

use super::super::functions::{self, LaunchAttribute, asked_for, launch, request};
use super::super::{Dim3, put};
use super::{Handle, call, forward, process};
use crate::core::error::{CudaError, Result};
use crate::core::launch::Request;
use crate::core::process::{Process, complain};

forward! {
    cuFuncSetAttribute(function: Handle, attribute: c_int, value: c_int) = functions::cudaFuncSetAttribute;
    cuFuncSetCacheConfig(function: Handle, config: c_int) = functions::cudaFuncSetCacheConfig;
    cuFuncSetSharedMemConfig(function: Handle, config: c_int) = functions::cudaFuncSetSharedMemConfig;
    cuOccupancyMaxActiveBlocksPerMultiprocessor(
        place: *mut c_int,
        function: Handle,
        threads: c_int,
        shared_bytes: usize
    ) = functions::cudaOccupancyMaxActiveBlocksPerMultiprocessor;
    cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
        place: *mut c_int,
        function: Handle,
        threads: c_int,
        shared_bytes: usize,
        flags: c_uint
    ) = functions::cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags;
    cuOccupancyAvailableDynamicSMemPerBlock(
        place: *mut usize,
        function: Handle,
        ctas: c_int,
        threads: c_int
    ) = functions::cudaOccupancyAvailableDynamicSMemPerBlock;
}

/// Arguments in one buffer, as pairs of what follows and a pointer to it.
unsafe fn from_buffer(
    process: &mut Process,
    function: Handle,
    extra: *mut *mut c_void,
) -> Result<Vec<Vec<u8>>> {
    const END: usize = 0;
    const BUFFER: usize = 1;
    const BYTES: usize = 2;
    let (mut buffer, mut bytes) = (std::ptr::null::<u8>(), 0);
    let mut at = extra;
    loop {
        let (what, value) = unsafe { (*at as usize, *at.add(1)) };
        match what {
            END => break,
            BUFFER => buffer = value.cast(),
            BYTES => bytes = unsafe { *value.cast::<usize>() },
            _ => return Err(CudaError::INVALID_VALUE),
        }
        at = unsafe { at.add(2) };
    }
    let kernel = process.kernel(function as u64)?;
    let all: &[u8] =
        if buffer.is_null() { &[] } else { unsafe { std::slice::from_raw_parts(buffer, bytes) } };
    let params = kernel.info().params.iter();
    let value = |offset: u32, bytes: u32| all.get(offset as usize..offset as usize + bytes as usize);
    let values = params.map(|param| value(param.offset, param.bytes).map(<[u8]>::to_vec));
    values.collect::<Option<_>>().ok_or_else(|| {
        complain(format!(
            "{}: {bytes} bytes of arguments for parameters of {}",
            kernel.name(),
            kernel.info().param_bytes
        ));
        CudaError::INVALID_VALUE
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuLaunchKernel(
    function: Handle,
    grid_x: c_uint,
    grid_y: c_uint,
    grid_z: c_uint,
    block_x: c_uint,
    block_y: c_uint,
    block_z: c_uint,
    shared_bytes: c_uint,
    stream: Handle,
    arguments: *mut *mut c_void,
    extra: *mut *mut c_void,
) -> i32 {
    let grid = Dim3 { x: grid_x, y: grid_y, z: grid_z };
    let block = Dim3 { x: block_x, y: block_y, z: block_z };
    let request = request(grid, block, shared_bytes as usize, stream, false);
    call(|process| unsafe {
        if arguments.is_null() && !extra.is_null() {
            let arguments = from_buffer(process, function, extra)?;
            return process.launch(function as u64, &request, &arguments);
        }
        launch(process, function, &request, arguments)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuLaunchCooperativeKernel(
    function: Handle,
    grid_x: c_uint,
    grid_y: c_uint,
    grid_z: c_uint,
    block_x: c_uint,
    block_y: c_uint,
    block_z: c_uint,
    shared_bytes: c_uint,
    stream: Handle,
    arguments: *mut *mut c_void,
) -> i32 {
    let grid = Dim3 { x: grid_x, y: grid_y, z: grid_z };
    let block = Dim3 { x: block_x, y: block_y, z: block_z };
    let request = request(grid, block, shared_bytes as usize, stream, true);
    call(|process| unsafe { launch(process, function, &request, arguments) })
}

/// `CUlaunchConfig`.
#[repr(C)]
struct LaunchConfig {
    grid: Dim3,
    block: Dim3,
    shared_bytes: c_uint,
    stream: Handle,
    attributes: *const LaunchAttribute,
    count: c_uint,
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuLaunchKernelEx(
    config: *const LaunchConfig,
    function: Handle,
    arguments: *mut *mut c_void,
    extra: *mut *mut c_void,
) -> i32 {
    call(|process| unsafe {
        let config = config.as_ref().ok_or(CudaError::INVALID_VALUE)?;
        let (cooperative, cluster) = asked_for(config.attributes, config.count);
        let shared_bytes = config.shared_bytes as usize;
        let request = request(config.grid, config.block, shared_bytes, config.stream, cooperative);
        let request = Request { cluster, ..request };
        if arguments.is_null() && !extra.is_null() {
            let arguments = from_buffer(process, function, extra)?;
            return process.launch(function as u64, &request, &arguments);
        }
        launch(process, function, &request, arguments)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuFuncGetAttribute(place: *mut c_int, attribute: c_int, function: Handle) -> i32 {
    call(|process| {
        let found = process.function_attributes(function as u64)?;
        let int = |value: u64| i32::try_from(value).unwrap_or(i32::MAX);
        let value = match attribute {
            0 => found.max_threads,
            1 => int(found.static_shared_bytes),
            // Constants are the module's, caching is the chip's, and there are no clusters.
            2 | 7 | 10..=15 => 0,
            3 => int(found.local_bytes),
            4 => found.registers,
            5 => found.ptx_target,
            6 => found.code_target,
            8 => found.max_dynamic_shared_bytes,
            9 => -1,
            _ => return Err(CudaError::INVALID_VALUE),
        };
        unsafe { put(place, value) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuKernelGetAttribute(
    place: *mut c_int,
    attribute: c_int,
    kernel: Handle,
    _device: c_int,
) -> i32 {
    unsafe { cuFuncGetAttribute(place, attribute, kernel) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuKernelSetAttribute(
    attribute: c_int,
    value: c_int,
    kernel: Handle,
    _device: c_int,
) -> i32 {
    unsafe { cuFuncSetAttribute(kernel, attribute, value) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuKernelSetCacheConfig(kernel: Handle, config: c_int, _device: c_int) -> i32 {
    unsafe { cuFuncSetCacheConfig(kernel, config) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuFuncGetParamInfo(
    function: Handle,
    index: usize,
    offset: *mut usize,
    bytes: *mut usize,
) -> i32 {
    call(|process| {
        let kernel = process.kernel(function as u64)?;
        let param = kernel.info().params.get(index).ok_or(CudaError::INVALID_VALUE)?;
        unsafe { put(offset, param.offset as usize)? };
        if bytes.is_null() { Ok(()) } else { unsafe { put(bytes, param.bytes as usize) } }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuKernelGetParamInfo(
    kernel: Handle,
    index: usize,
    offset: *mut usize,
    bytes: *mut usize,
) -> i32 {
    unsafe { cuFuncGetParamInfo(kernel, index, offset, bytes) }
}

/// Modules are loaded at once, and their kernels with them.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuFuncIsLoaded(place: *mut c_int, function: Handle) -> i32 {
    call(|process| {
        process.function(function as u64)?;
        unsafe { put(place, 1) }
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuFuncLoad(function: Handle) -> i32 {
    call(|process| process.function(function as u64).map(|_| ()))
}

type SharedBytesOfBlock = unsafe extern "C" fn(c_int) -> usize;

/// The block size with the most threads on an SM. The program's function is called without the lock.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuOccupancyMaxPotentialBlockSize(
    least_grid: *mut c_int,
    block: *mut c_int,
    function: Handle,
    shared_of: Option<SharedBytesOfBlock>,
    shared_bytes: usize,
    limit: c_int,
) -> i32 {
    super::with_context(|| {
        let found = process().function_attributes(function as u64);
        let Ok(attributes) = found else { return found.map_or_else(|error| error.0, |_| 0) };
        let most = if limit > 0 { attributes.max_threads.min(limit) } else { attributes.max_threads };
        let mut best = (0, 0, 0);
        let mut threads = most;
        while threads > 0 {
            let shared = shared_of.map_or(shared_bytes, |shared_of| unsafe { shared_of(threads) });
            let ctas = process().ctas_per_sm(function as u64, threads as u32, shared as u64).unwrap_or(0);
            if ctas * threads > best.0 {
                best = (ctas * threads, threads, ctas);
            }
            threads = (threads - 1) / 32 * 32;
        }
        let sms = process().open().map_or(0, |open| open.properties.sms);
        let stored = unsafe { put(block, best.1).and_then(|()| put(least_grid, best.2 * sms)) };
        stored.map_or_else(|error| error.0, |()| 0)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuOccupancyMaxPotentialBlockSizeWithFlags(
    least_grid: *mut c_int,
    block: *mut c_int,
    function: Handle,
    shared_of: Option<SharedBytesOfBlock>,
    shared_bytes: usize,
    limit: c_int,
    _flags: c_uint,
) -> i32 {
    unsafe { cuOccupancyMaxPotentialBlockSize(least_grid, block, function, shared_of, shared_bytes, limit) }
}
