//! Pools of memory by the driver's API.

use std::ffi::{c_int, c_void};

use super::super::pools;
use super::{Handle, forward};

forward! {
    cuDeviceGetDefaultMemPool(place: *mut Handle, device: c_int) = pools::cudaDeviceGetDefaultMemPool;
    cuDeviceGetMemPool(place: *mut Handle, device: c_int) = pools::cudaDeviceGetMemPool;
    cuDeviceSetMemPool(device: c_int, pool: Handle) = pools::cudaDeviceSetMemPool;
    cuMemPoolCreate(place: *mut Handle, properties: *const c_void) = pools::cudaMemPoolCreate;
    cuMemPoolDestroy(pool: Handle) = pools::cudaMemPoolDestroy;
    cuMemPoolSetAttribute(pool: Handle, attribute: c_int, value: *const c_void) = pools::cudaMemPoolSetAttribute;
    cuMemPoolGetAttribute(pool: Handle, attribute: c_int, place: *mut c_void) = pools::cudaMemPoolGetAttribute;
    cuMemPoolTrimTo(pool: Handle, bytes: usize) = pools::cudaMemPoolTrimTo;
    cuMemPoolSetAccess(pool: Handle, access: *const c_void, count: usize) = pools::cudaMemPoolSetAccess;
    cuMemPoolGetAccess(place: *mut c_int, pool: Handle, location: *const c_void) = pools::cudaMemPoolGetAccess;
    cuMemAllocFromPoolAsync(place: *mut Handle, bytes: usize, pool: Handle, stream: Handle)
        = pools::cudaMallocFromPoolAsync;
}
