//! Contexts. All are views of the one device: what is allocated in one is there in the others. Each thread has a stack
//! of them; the runtime uses the primary one.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ffi::{c_int, c_uint, c_void};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

use super::super::{device, put, put_pointer};
use super::{Handle, call, device_call, forward, show_printed};
use crate::core::error::{CudaError, Result};

/// Handles of contexts: the primary one, and those that programs create after it.
const PRIMARY: u64 = 1 << 57;
const STEP: u64 = 16;

static INITIALISED: AtomicBool = AtomicBool::new(false);
static PRIMARY_USERS: AtomicU32 = AtomicU32::new(0);
static PRIMARY_FLAGS: AtomicU32 = AtomicU32::new(0);
/// Contexts that programs have created and not destroyed, and how many there ever were.
static CREATED: Mutex<(BTreeSet<u64>, u64)> = Mutex::new((BTreeSet::new(), 0));

thread_local! {
    static STACK: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) };
}

pub(super) fn is_initialised() -> bool {
    INITIALISED.load(Ordering::Relaxed)
}

fn current() -> Option<u64> {
    STACK.with_borrow(|stack| stack.last().copied())
}

fn exists(context: u64) -> bool {
    context == PRIMARY || CREATED.lock().unwrap_or_else(PoisonError::into_inner).0.contains(&context)
}

/// Whether the thread has a context.
pub(super) fn check() -> Result {
    if !is_initialised() {
        return Err(CudaError::INITIALIZATION);
    }
    let current = current().filter(|&context| exists(context));
    current.map(|_| ()).ok_or(CudaError::INVALID_CONTEXT)
}

/// A thread that calls the runtime has the primary context.
pub(in crate::abi) fn enter_runtime() {
    INITIALISED.store(true, Ordering::Relaxed);
    STACK.with_borrow_mut(|stack| {
        if stack.is_empty() {
            stack.push(PRIMARY);
        }
    });
}

#[unsafe(no_mangle)]
extern "C" fn cuInit(flags: c_uint) -> i32 {
    if flags != 0 {
        return CudaError::INVALID_VALUE.0;
    }
    INITIALISED.store(true, Ordering::Relaxed);
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDevicePrimaryCtxRetain(place: *mut Handle, device: c_int) -> i32 {
    device_call(|process| {
        super::device::check(device)?;
        process.open()?;
        PRIMARY_USERS.fetch_add(1, Ordering::Relaxed);
        unsafe { put_pointer(place, PRIMARY) }
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuDevicePrimaryCtxRelease_v2(device: c_int) -> i32 {
    device_call(|process| {
        super::device::check(device)?;
        let less = |users: u32| users.checked_sub(1);
        let before = PRIMARY_USERS.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        match before {
            Ok(1) => process.reset(),
            Ok(_) => Ok(()),
            Err(_) => Err(CudaError::INVALID_CONTEXT),
        }
    })
}

/// Also after a kernel that failed: the device starts anew.
#[unsafe(no_mangle)]
extern "C" fn cuDevicePrimaryCtxReset_v2(device: c_int) -> i32 {
    device_call(|process| {
        super::device::check(device)?;
        show_printed(process);
        process.reset()
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuDevicePrimaryCtxSetFlags_v2(device: c_int, flags: c_uint) -> i32 {
    device_call(|_| {
        super::device::check(device)?;
        PRIMARY_FLAGS.store(flags, Ordering::Relaxed);
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDevicePrimaryCtxGetState(
    device: c_int,
    flags: *mut c_uint,
    active: *mut c_int,
) -> i32 {
    device_call(|_| {
        super::device::check(device)?;
        let is_active = PRIMARY_USERS.load(Ordering::Relaxed) > 0;
        unsafe {
            put(flags, PRIMARY_FLAGS.load(Ordering::Relaxed))?;
            put(active, c_int::from(is_active))
        }
    })
}

unsafe fn create(place: *mut Handle, device: c_int) -> i32 {
    device_call(|process| {
        super::device::check(device)?;
        process.open()?;
        let context = {
            let mut created = CREATED.lock().unwrap_or_else(PoisonError::into_inner);
            created.1 += 1;
            let context = PRIMARY + created.1 * STEP;
            created.0.insert(context);
            context
        };
        STACK.with_borrow_mut(|stack| stack.push(context));
        unsafe { put_pointer(place, context) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuCtxCreate_v2(place: *mut Handle, _flags: c_uint, device: c_int) -> i32 {
    unsafe { create(place, device) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuCtxCreate_v3(
    place: *mut Handle,
    _affinity: *const c_void,
    _count: c_int,
    _flags: c_uint,
    device: c_int,
) -> i32 {
    unsafe { create(place, device) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuCtxCreate_v4(
    place: *mut Handle,
    _parameters: *const c_void,
    _flags: c_uint,
    device: c_int,
) -> i32 {
    unsafe { create(place, device) }
}

/// The primary context is released, not destroyed. A device that a kernel has spoilt starts anew.
#[unsafe(no_mangle)]
extern "C" fn cuCtxDestroy_v2(context: Handle) -> i32 {
    device_call(|process| {
        let context = context as u64;
        let gone = CREATED.lock().unwrap_or_else(PoisonError::into_inner).0.remove(&context);
        if !gone {
            return Err(CudaError::INVALID_CONTEXT);
        }
        STACK.with_borrow_mut(|stack| {
            if stack.last() == Some(&context) {
                stack.pop();
            }
        });
        show_printed(process);
        if process.check().is_err() { process.reset() } else { Ok(()) }
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuCtxPushCurrent_v2(context: Handle) -> i32 {
    device_call(|_| {
        if !exists(context as u64) {
            return Err(CudaError::INVALID_CONTEXT);
        }
        STACK.with_borrow_mut(|stack| stack.push(context as u64));
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuCtxPopCurrent_v2(place: *mut Handle) -> i32 {
    device_call(|_| {
        let top = STACK.with_borrow_mut(Vec::pop).ok_or(CudaError::INVALID_CONTEXT)?;
        if place.is_null() { Ok(()) } else { unsafe { put_pointer(place, top) } }
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuCtxSetCurrent(context: Handle) -> i32 {
    device_call(|_| {
        let context = context as u64;
        if context != 0 && !exists(context) {
            return Err(CudaError::INVALID_CONTEXT);
        }
        STACK.with_borrow_mut(|stack| {
            stack.pop();
            if context != 0 {
                stack.push(context);
            }
        });
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuCtxGetCurrent(place: *mut Handle) -> i32 {
    device_call(|_| unsafe { put_pointer(place, current().unwrap_or(0)) })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn cuCtxGetDevice(place: *mut c_int) -> i32 {
    call(|_| unsafe { put(place, 0) })
}

/// Since CUDA 13 a context can be given to some functions; null stands for the current one.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuCtxGetDevice_v2(place: *mut c_int, context: Handle) -> i32 {
    device_call(|_| {
        if !context.is_null() && !exists(context as u64) {
            return Err(CudaError::INVALID_CONTEXT);
        }
        unsafe { put(place, 0) }
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuCtxSynchronize_v2(_context: Handle) -> i32 {
    unsafe { cuCtxSynchronize() }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuCtxGetFlags(place: *mut c_uint) -> i32 {
    call(|_| unsafe { put(place, PRIMARY_FLAGS.load(Ordering::Relaxed)) })
}

#[unsafe(no_mangle)]
extern "C" fn cuCtxSetFlags(flags: c_uint) -> i32 {
    call(|_| {
        PRIMARY_FLAGS.store(flags, Ordering::Relaxed);
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuCtxGetId(context: Handle, place: *mut u64) -> i32 {
    call(|_| {
        let asked = if context.is_null() { current().unwrap_or(PRIMARY) } else { context as u64 };
        if !exists(asked) {
            return Err(CudaError::INVALID_CONTEXT);
        }
        unsafe { put(place, (asked - PRIMARY) / STEP + 1) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuCtxGetApiVersion(_context: Handle, place: *mut c_uint) -> i32 {
    call(|_| unsafe { put(place, 3020) })
}

/// The context of a stream: all streams are in all contexts.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuStreamGetCtx(stream: Handle, place: *mut Handle) -> i32 {
    call(|process| {
        process.open()?.streams.find(stream as u64)?;
        unsafe { put_pointer(place, current().unwrap_or(PRIMARY)) }
    })
}

/// With a second place for a green context, of which there are none.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuStreamGetCtx_v2(stream: Handle, place: *mut Handle, green: *mut Handle) -> i32 {
    let code = unsafe { cuStreamGetCtx(stream, place) };
    if code == 0 && !green.is_null() {
        unsafe { green.write(std::ptr::null_mut()) };
    }
    code
}

/// Of a pointer that is known: the context that it counts as allocated in.
pub(super) fn of_pointer() -> u64 {
    current().unwrap_or(PRIMARY)
}

forward! {
    cuCtxSynchronize() = device::cudaDeviceSynchronize;
    cuCtxGetLimit(place: *mut usize, limit: c_int) = device::cudaDeviceGetLimit;
    cuCtxSetLimit(limit: c_int, value: usize) = device::cudaDeviceSetLimit;
    cuCtxGetCacheConfig(place: *mut c_int) = device::cudaDeviceGetCacheConfig;
    cuCtxSetCacheConfig(config: c_int) = device::cudaDeviceSetCacheConfig;
    cuCtxGetSharedMemConfig(place: *mut c_int) = device::cudaDeviceGetSharedMemConfig;
    cuCtxSetSharedMemConfig(config: c_int) = device::cudaDeviceSetSharedMemConfig;
    cuCtxGetStreamPriorityRange(least: *mut c_int, greatest: *mut c_int)
        = super::super::streams::cudaDeviceGetStreamPriorityRange;
    cuProfilerStart() = super::super::errors::cudaProfilerStart;
    cuProfilerStop() = super::super::errors::cudaProfilerStop;
}

/// There is one device, so that a context of another does not exist.
#[unsafe(no_mangle)]
extern "C" fn cuCtxEnablePeerAccess(peer: Handle, _flags: c_uint) -> i32 {
    call(|_| {
        let known = exists(peer as u64);
        Err(if known { CudaError::PEER_ACCESS_UNSUPPORTED } else { CudaError::INVALID_CONTEXT })
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuCtxDisablePeerAccess(_peer: Handle) -> i32 {
    call(|_| Err(CudaError::PEER_ACCESS_NOT_ENABLED))
}
