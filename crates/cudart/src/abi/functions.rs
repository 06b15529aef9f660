//! Kernels: launches, attributes, occupancy.

use std::ffi::{c_char, c_int, c_void};

use super::{Dim3, Handle, call, process, put, put_pointer};
use crate::core::error::{CudaError, Result};
use crate::core::graphs::Work;
use crate::core::launch::Request;
use crate::core::process::{Process, complain};

/// Copies a kernel's arguments, whose sizes its parameters give.
pub(super) unsafe fn copied_arguments(
    process: &mut Process,
    function: *const c_void,
    arguments: *mut *mut c_void,
) -> Result<Vec<Vec<u8>>> {
    let kernel = process.kernel(function as u64)?;
    let plain = process.function(function as u64)?.plain.clone();
    let params = &kernel.info().params;
    let refuse = |what: String| {
        complain(format!("{plain}: {what}"));
        Err(CudaError::INVALID_VALUE)
    };
    if arguments.is_null() && !params.is_empty() {
        return refuse(format!("no arguments for its {} parameters", params.len()));
    }
    let mut copies = Vec::with_capacity(params.len());
    for (at, param) in params.iter().enumerate() {
        // Sound: the caller passes one pointer for each parameter, to a value of its size.
        let value = unsafe { *arguments.add(at) }.cast::<u8>();
        if value.is_null() {
            return refuse(format!("a null pointer as argument {at}, of {} bytes", param.bytes));
        }
        copies.push(unsafe { std::slice::from_raw_parts(value, param.bytes as usize) }.to_vec());
    }
    Ok(copies)
}

/// Launches a kernel with copies of its arguments.
pub(super) unsafe fn launch(
    process: &mut Process,
    function: *const c_void,
    request: &Request,
    arguments: *mut *mut c_void,
) -> Result {
    let arguments = unsafe { copied_arguments(process, function, arguments)? };
    process.launch(function as u64, request, &arguments)
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn cudaLaunchKernel(
    function: *const c_void,
    grid: Dim3,
    block: Dim3,
    arguments: *mut *mut c_void,
    shared_bytes: usize,
    stream: Handle,
) -> i32 {
    let request = request(grid, block, shared_bytes, stream, false);
    call(|process| unsafe { launch(process, function, &request, arguments) })
}

/// What stubs call that newer compilers make. A kernel's handle is the address of its stub.
#[unsafe(no_mangle)]
unsafe extern "C" fn __cudaLaunchKernel(
    function: *const c_void,
    grid: Dim3,
    block: Dim3,
    arguments: *mut *mut c_void,
    shared_bytes: usize,
    stream: Handle,
) -> i32 {
    unsafe { cudaLaunchKernel(function, grid, block, arguments, shared_bytes, stream) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn __cudaGetKernel(place: *mut Handle, function: *const c_void) -> i32 {
    unsafe { cudaGetKernel(place, function) }
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn cudaGetKernel(place: *mut Handle, function: *const c_void) -> i32 {
    call(|process| {
        process.function(function as u64)?;
        unsafe { put_pointer(place, function as u64) }
    })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn cudaLaunchCooperativeKernel(
    function: *const c_void,
    grid: Dim3,
    block: Dim3,
    arguments: *mut *mut c_void,
    shared_bytes: usize,
    stream: Handle,
) -> i32 {
    let request = request(grid, block, shared_bytes, stream, true);
    call(|process| unsafe { launch(process, function, &request, arguments) })
}

/// `cudaLaunchConfig_t`.
#[repr(C)]
struct LaunchConfig {
    grid: Dim3,
    block: Dim3,
    shared_bytes: usize,
    stream: Handle,
    attributes: *const LaunchAttribute,
    count: u32,
}

/// `cudaLaunchAttribute`: what it is, and a union of which the first word is used here.
#[repr(C)]
pub(super) struct LaunchAttribute {
    id: u32,
    padding: u32,
    value: [u32; 16],
}

const COOPERATIVE: u32 = 2;
const CLUSTER_DIMENSION: u32 = 4;

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaLaunchKernelExC(
    config: *const LaunchConfig,
    function: *const c_void,
    arguments: *mut *mut c_void,
) -> i32 {
    call(|process| {
        let request = unsafe { configured(config)? };
        unsafe { launch(process, function, &request, arguments) }
    })
}

/// What a launch's attributes ask for: whether it is cooperative, and the CTAs of its clusters. Hints are not looked
/// at.
pub(super) unsafe fn asked_for(attributes: *const LaunchAttribute, count: u32) -> (bool, Option<[u32; 3]>) {
    let attributes = match count {
        0 => &[],
        count => unsafe { std::slice::from_raw_parts(attributes, count as usize) },
    };
    let value = |id| attributes.iter().find(|attribute| attribute.id == id).map(|a| a.value);
    // A chip without clusters has those of one CTA.
    let cluster =
        value(CLUSTER_DIMENSION).map(|[x, y, z, ..]| [x, y, z]).filter(|&cluster| cluster != [1; 3]);
    (value(COOPERATIVE).is_some_and(|[value, ..]| value != 0), cluster)
}

pub(super) fn request(
    grid: Dim3,
    block: Dim3,
    shared_bytes: usize,
    stream: Handle,
    cooperative: bool,
) -> Request {
    Request {
        grid: grid.extents(),
        block: block.extents(),
        dynamic_shared_bytes: shared_bytes as u64,
        stream: stream as u64,
        cooperative,
        cluster: None,
    }
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn cudaFuncGetAttributes(place: *mut u8, function: *const c_void) -> i32 {
    call(|process| {
        let found = process.function_attributes(function as u64)?;
        if place.is_null() {
            return Err(CudaError::INVALID_VALUE);
        }
        let mut bytes = Vec::new();
        for size in [found.static_shared_bytes, 0, found.local_bytes] {
            bytes.extend(size.to_le_bytes());
        }
        let (ptx, code) = (found.ptx_target, found.code_target);
        let shared = found.max_dynamic_shared_bytes;
        for value in [found.max_threads, found.registers, ptx, code, 0, shared, -1] {
            bytes.extend(value.to_le_bytes());
        }
        // Clusters, and reserve, since CUDA 12.
        bytes.resize(if process.cuda_version >= 12 { 144 } else { 56 }, 0);
        unsafe { place.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
        Ok(())
    })
}

const MAX_DYNAMIC_SHARED: c_int = 8;
const CARVEOUT: c_int = 9;
const NON_PORTABLE_CLUSTER: c_int = 14;
const CLUSTER_SCHEDULING: c_int = 15;

#[unsafe(no_mangle)]
pub(super) extern "C" fn cudaFuncSetAttribute(
    function: *const c_void,
    attribute: c_int,
    value: c_int,
) -> i32 {
    call(|process| match attribute {
        MAX_DYNAMIC_SHARED => process.allow_dynamic_shared(function as u64, value),
        NON_PORTABLE_CLUSTER => {
            process.function(function as u64)?.any_cluster = value != 0;
            Ok(())
        }
        // Hints.
        CARVEOUT | CLUSTER_SCHEDULING => process.function(function as u64).map(|_| ()),
        _ => {
            complain(format!("cudaFuncSetAttribute: attribute {attribute} is not modelled"));
            Err(CudaError::NOT_SUPPORTED)
        }
    })
}

#[unsafe(no_mangle)]
pub(super) extern "C" fn cudaFuncSetCacheConfig(function: *const c_void, _config: c_int) -> i32 {
    call(|process| process.function(function as u64).map(|_| ()))
}

#[unsafe(no_mangle)]
pub(super) extern "C" fn cudaFuncSetSharedMemConfig(function: *const c_void, _config: c_int) -> i32 {
    call(|process| process.function(function as u64).map(|_| ()))
}

/// The name lives as long as the process: programs keep the pointer.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn cudaFuncGetName(place: *mut *const c_char, function: *const c_void) -> i32 {
    call(|process| {
        let name = process.function(function as u64)?.name.clone();
        let name = std::ffi::CString::new(name).map_err(|_| CudaError::INVALID_DEVICE_FUNCTION)?;
        unsafe { put(place, name.into_raw().cast_const()) }
    })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn cudaOccupancyMaxActiveBlocksPerMultiprocessor(
    place: *mut c_int,
    function: *const c_void,
    threads: c_int,
    shared_bytes: usize,
) -> i32 {
    call(|process| {
        let threads = u32::try_from(threads).map_err(|_| CudaError::INVALID_VALUE)?;
        let ctas = process.ctas_per_sm(function as u64, threads, shared_bytes as u64)?;
        unsafe { put(place, ctas) }
    })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    place: *mut c_int,
    function: *const c_void,
    threads: c_int,
    shared_bytes: usize,
    _flags: u32,
) -> i32 {
    unsafe { cudaOccupancyMaxActiveBlocksPerMultiprocessor(place, function, threads, shared_bytes) }
}

/// The dynamic shared memory with which so many CTAs still fit on an SM.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn cudaOccupancyAvailableDynamicSMemPerBlock(
    place: *mut usize,
    function: *const c_void,
    ctas: c_int,
    threads: c_int,
) -> i32 {
    call(|process| {
        let threads = u32::try_from(threads).map_err(|_| CudaError::INVALID_VALUE)?;
        let most = process.open_busy()?.properties.shared_bytes_per_cta_optin;
        let mut fits = |bytes| Ok(process.ctas_per_sm(function as u64, threads, bytes)? >= ctas);
        if ctas <= 0 || !fits(0)? {
            return Err(CudaError::INVALID_VALUE);
        }
        let (mut enough, mut too_much) = (0, most + 1);
        while too_much - enough > 1 {
            let middle = (enough + too_much) / 2;
            if fits(middle)? {
                enough = middle;
            } else {
                too_much = middle;
            }
        }
        unsafe { put(place, enough as usize) }
    })
}

/// The launch that a configuration describes.
unsafe fn configured(config: *const LaunchConfig) -> Result<Request> {
    let config = unsafe { config.as_ref() }.ok_or(CudaError::INVALID_VALUE)?;
    let (cooperative, cluster) = unsafe { asked_for(config.attributes, config.count) };
    let request = request(config.grid, config.block, config.shared_bytes, config.stream, cooperative);
    Ok(Request { cluster, ..request })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaOccupancyMaxActiveClusters(
    place: *mut c_int,
    function: *const c_void,
    config: *const LaunchConfig,
) -> i32 {
    call(|process| {
        let clusters = process.clusters(function as u64, &unsafe { configured(config)? })?;
        unsafe { put(place, clusters) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaOccupancyMaxPotentialClusterSize(
    place: *mut c_int,
    function: *const c_void,
    config: *const LaunchConfig,
) -> i32 {
    call(|process| {
        let ctas = process.largest_cluster(function as u64, &unsafe { configured(config)? })?;
        unsafe { put(place, ctas) }
    })
}

pub(super) type HostFunction = unsafe extern "C" fn(*mut c_void);
pub(super) type StreamCallback = unsafe extern "C" fn(Handle, c_int, *mut c_void);

/// All earlier work of the stream is done when this is called, so the function runs at once.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn cudaLaunchHostFunc(
    stream: Handle,
    function: Option<HostFunction>,
    data: *mut c_void,
) -> i32 {
    let mut is_captured = false;
    let checked = call(|process| {
        process.open()?.streams.find(stream as u64)?;
        let address = function.map_or(0, |function| function as usize);
        let work = || Work::Host { function: address, data: data as usize };
        let recorded = process.captured(stream as u64, work);
        is_captured = recorded.is_some();
        recorded.unwrap_or(Ok(()))
    });
    match function {
        Some(_) if is_captured => return checked,
        Some(function) if checked == 0 => unsafe { function(data) },
        Some(_) => return checked,
        None => return CudaError::INVALID_VALUE.0,
    }
    0
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn cudaStreamAddCallback(
    stream: Handle,
    callback: Option<StreamCallback>,
    data: *mut c_void,
    _flags: u32,
) -> i32 {
    let settled = {
        let mut process = process();
        process.check().and_then(|()| process.settle())
    };
    let status = settled.err().map_or(0, |error| error.0);
    let Some(callback) = callback else { return CudaError::INVALID_VALUE.0 };
    unsafe { callback(stream, status, data) };
    status
}
