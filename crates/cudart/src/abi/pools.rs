//! Pools of memory. All take from the one device, and give back at once: pools differ only in what is set for them.

use std::collections::BTreeMap;
use std::ffi::{c_int, c_void};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::memory::cudaMallocAsync;
use super::{Handle, call, put, put_pointer};
use crate::core::error::{CudaError, Result};

/// Handles of pools: the default one, and those that programs create after it.
const DEFAULT: u64 = 1 << 58;
const STEP: u64 = 16;

struct Pools {
    /// What programs have set, by handle and number of the attribute.
    pools: BTreeMap<u64, BTreeMap<c_int, u64>>,
    created: u64,
    /// The pool that `cudaMallocAsync` takes from.
    current: u64,
}

static POOLS: Mutex<Pools> = Mutex::new(Pools { pools: BTreeMap::new(), created: 0, current: DEFAULT });

fn pools() -> MutexGuard<'static, Pools> {
    let mut pools = POOLS.lock().unwrap_or_else(PoisonError::into_inner);
    pools.pools.entry(DEFAULT).or_default();
    pools
}

fn check(pool: Handle) -> Result {
    let known = pools().pools.contains_key(&(pool as u64));
    known.then_some(()).ok_or(CudaError::INVALID_VALUE)
}

/// The device by its number, in a call about pools.
fn of_device(device: c_int) -> Result {
    if device == 0 { Ok(()) } else { Err(CudaError::INVALID_DEVICE) }
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn cudaDeviceGetDefaultMemPool(place: *mut Handle, device: c_int) -> i32 {
    call(|_| {
        of_device(device)?;
        unsafe { put_pointer(place, DEFAULT) }
    })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn cudaDeviceGetMemPool(place: *mut Handle, device: c_int) -> i32 {
    call(|_| {
        of_device(device)?;
        unsafe { put_pointer(place, pools().current) }
    })
}

#[unsafe(no_mangle)]
pub(super) extern "C" fn cudaDeviceSetMemPool(device: c_int, pool: Handle) -> i32 {
    call(|_| {
        of_device(device)?;
        check(pool)?;
        pools().current = pool as u64;
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn cudaMemPoolCreate(place: *mut Handle, properties: *const c_void) -> i32 {
    call(|_| {
        if properties.is_null() {
            return Err(CudaError::INVALID_VALUE);
        }
        let mut all = pools();
        all.created += 1;
        let pool = DEFAULT + all.created * STEP;
        all.pools.insert(pool, BTreeMap::new());
        unsafe { put_pointer(place, pool) }
    })
}

#[unsafe(no_mangle)]
pub(super) extern "C" fn cudaMemPoolDestroy(pool: Handle) -> i32 {
    call(|_| {
        check(pool)?;
        let mut all = pools();
        if pool as u64 == DEFAULT {
            return Err(CudaError::INVALID_VALUE);
        }
        all.pools.remove(&(pool as u64));
        if all.current == pool as u64 {
            all.current = DEFAULT;
        }
        Ok(())
    })
}

/// How programs want memory to be used again; all of it is.
const REUSE: std::ops::RangeInclusive<c_int> = 1..=3;
const THRESHOLD: c_int = 4;
const RESERVED: std::ops::RangeInclusive<c_int> = 5..=6;
const USED: std::ops::RangeInclusive<c_int> = 7..=8;

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn cudaMemPoolSetAttribute(
    pool: Handle,
    attribute: c_int,
    value: *const c_void,
) -> i32 {
    call(|_| {
        check(pool)?;
        if value.is_null() {
            return Err(CudaError::INVALID_VALUE);
        }
        let value = match attribute {
            _ if REUSE.contains(&attribute) => u64::from(unsafe { *value.cast::<u32>() }),
            // Zero resets the two highest values; others are refused.
            THRESHOLD | 6 | 8 => unsafe { *value.cast::<u64>() },
            _ => return Err(CudaError::INVALID_VALUE),
        };
        pools().pools.entry(pool as u64).or_default().insert(attribute, value);
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn cudaMemPoolGetAttribute(
    pool: Handle,
    attribute: c_int,
    place: *mut c_void,
) -> i32 {
    call(|process| {
        check(pool)?;
        let set = pools().pools.get(&(pool as u64)).and_then(|set| set.get(&attribute).copied());
        match attribute {
            _ if REUSE.contains(&attribute) => unsafe { put(place.cast::<u32>(), set.unwrap_or(1) as u32) },
            THRESHOLD => unsafe { put(place.cast::<u64>(), set.unwrap_or(0)) },
            _ if RESERVED.contains(&attribute) || USED.contains(&attribute) => {
                let used = process.open()?.used_bytes();
                unsafe { put(place.cast::<u64>(), used) }
            }
            _ => Err(CudaError::INVALID_VALUE),
        }
    })
}

#[unsafe(no_mangle)]
pub(super) extern "C" fn cudaMemPoolTrimTo(pool: Handle, _bytes: usize) -> i32 {
    call(|_| check(pool))
}

#[unsafe(no_mangle)]
pub(super) extern "C" fn cudaMemPoolSetAccess(pool: Handle, _access: *const c_void, _count: usize) -> i32 {
    call(|_| check(pool))
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn cudaMemPoolGetAccess(
    place: *mut c_int,
    pool: Handle,
    _location: *const c_void,
) -> i32 {
    const READ_AND_WRITE: c_int = 3;
    call(|_| {
        check(pool)?;
        unsafe { put(place, READ_AND_WRITE) }
    })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn cudaMallocFromPoolAsync(
    place: *mut Handle,
    bytes: usize,
    pool: Handle,
    stream: Handle,
) -> i32 {
    match call(|_| check(pool)) {
        0 => unsafe { cudaMallocAsync(place, bytes, stream) },
        code => code,
    }
}
