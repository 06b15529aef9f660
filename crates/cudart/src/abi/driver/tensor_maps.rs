//! Tensor maps for bulk copies. Programs give them to kernels as 128 opaque bytes.

use std::ffi::{c_int, c_uint, c_void};

use warploom::{Swizzle, TensorMap};

use crate::core::error::CudaError;
use crate::core::process::complain;

/// `CUtensorMap`.
type Bytes = [u8; 128];

fn refuse(problem: &str) -> i32 {
    complain(format!("cuTensorMapEncodeTiled: {problem}"));
    CudaError::INVALID_VALUE.0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuTensorMapEncodeTiled(
    place: *mut Bytes,
    element_type: c_int,
    rank: c_uint,
    address: *mut c_void,
    sizes: *const u64,
    strides: *const u64,
    box_sizes: *const u32,
    steps: *const u32,
    interleave: c_int,
    swizzle: c_int,
    _promotion: c_int,
    fill: c_int,
) -> i32 {
    if !(1..=5).contains(&rank) {
        return refuse(&format!("a tensor has 1 to 5 dimensions, not {rank}"));
    }
    let missing = sizes.is_null() || box_sizes.is_null() || steps.is_null() || strides.is_null() && rank > 1;
    if place.is_null() || missing {
        return refuse("a pointer is null");
    }
    if interleave != 0 {
        return refuse("interleaved tensors are not modelled");
    }
    let swizzle = match swizzle {
        0 => Swizzle::None,
        1..=3 => Swizzle::Within(16 << swizzle),
        _ => return refuse(&format!("swizzle {swizzle} is not modelled")),
    };
    let rank = rank as usize;
    let (sizes, strides, box_sizes, steps) = unsafe {
        let strides = if rank > 1 { std::slice::from_raw_parts(strides, rank - 1) } else { &[] };
        (
            std::slice::from_raw_parts(sizes, rank),
            strides,
            std::slice::from_raw_parts(box_sizes, rank),
            std::slice::from_raw_parts(steps, rank),
        )
    };
    if let Some(size) = sizes.iter().find(|&&size| size == 0 || size > 1 << 32) {
        return refuse(&format!("a dimension has {size} elements, not 1 to 2^32"));
    }
    let first = |list: &[u32], at: usize| list.get(at).copied().unwrap_or_default();
    let map = TensorMap {
        address: address as u64,
        element_type: u8::try_from(element_type).unwrap_or(u8::MAX),
        rank: rank as u32,
        sizes: std::array::from_fn(|d| sizes.get(d).map_or(0, |&size| size.min(u32::MAX.into()) as u32)),
        strides: std::array::from_fn(|d| strides.get(d).copied().unwrap_or_default()),
        box_sizes: std::array::from_fn(|d| first(box_sizes, d)),
        // That of the first dimension does not count.
        steps: std::array::from_fn(|d| if d == 0 { 1 } else { first(steps, d) }),
        swizzle,
        fills_nan: fill == 1,
    };
    if let Err(problem) = map.check() {
        return refuse(&problem);
    }
    unsafe { place.write_unaligned(map.encode()) };
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuTensorMapReplaceAddress(place: *mut Bytes, address: *mut c_void) -> i32 {
    if place.is_null() {
        return refuse("a pointer is null");
    }
    let map = TensorMap::decode(&unsafe { place.read_unaligned() });
    let changed = map.map(|map| TensorMap { address: address as u64, ..map });
    match changed.and_then(|map| map.check().map(|()| map)) {
        Ok(map) => {
            unsafe { place.write_unaligned(map.encode()) };
            0
        }
        Err(problem) => refuse(&problem),
    }
}
