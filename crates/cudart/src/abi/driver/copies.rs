//! Memory, copies and fills by the driver's API.

use std::ffi::{c_int, c_uint, c_void};

use super::super::copies::{DEFAULT_STREAM, Order, copy, fill};
use super::super::textures::{End, copy_ends};
use super::super::{memory, put, put_pointer};
use super::{Handle, call, context, forward};
use crate::core::arrays::Corner;
use crate::core::error::{CudaError, Result};
use crate::core::graphs::Work;
use crate::core::memory::{Kind, Place};
use crate::core::process::{Process, complain};

forward! {
    cuMemAlloc_v2(place: *mut Handle, bytes: usize) = malloc;
    cuMemAllocAsync(place: *mut Handle, bytes: usize, stream: Handle) = memory::cudaMallocAsync;
    cuMemAllocManaged(place: *mut Handle, bytes: usize, flags: c_uint) = memory::cudaMallocManaged;
    cuMemAllocHost_v2(place: *mut Handle, bytes: usize) = memory::cudaMallocHost;
    cuMemHostAlloc(place: *mut Handle, bytes: usize, flags: c_uint) = memory::cudaHostAlloc;
    cuMemHostRegister_v2(pointer: Handle, bytes: usize, flags: c_uint) = memory::cudaHostRegister;
    cuMemHostUnregister(pointer: Handle) = memory::cudaHostUnregister;
    cuMemHostGetDevicePointer_v2(place: *mut Handle, host: Handle, flags: c_uint) = memory::cudaHostGetDevicePointer;
    cuMemHostGetFlags(place: *mut c_uint, host: Handle) = memory::cudaHostGetFlags;
    cuMemFree_v2(pointer: Handle) = memory::cudaFree;
    cuMemFreeAsync(pointer: Handle, stream: Handle) = memory::cudaFreeAsync;
    cuMemFreeHost(pointer: Handle) = memory::cudaFreeHost;
    cuMemGetInfo_v2(free: *mut usize, total: *mut usize) = memory::cudaMemGetInfo;
    cuMemPrefetchAsync() = memory::cudaMemPrefetchAsync;
    cuMemPrefetchAsync_v2() = memory::cudaMemPrefetchAsync;
    cuMemAdvise() = memory::cudaMemAdvise;
    cuMemAdvise_v2() = memory::cudaMemAdvise;
}

/// The driver refuses an empty allocation; the runtime does not.
unsafe fn malloc(place: *mut Handle, bytes: usize) -> i32 {
    if bytes == 0 {
        return CudaError::INVALID_VALUE.0;
    }
    unsafe { memory::cudaMalloc(place, bytes) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemAllocPitch_v2(
    place: *mut Handle,
    pitch: *mut usize,
    width: usize,
    rows: usize,
    _element_bytes: c_uint,
) -> i32 {
    super::with_context(|| unsafe { memory::cudaMallocPitch(place, pitch, width, rows) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemGetAddressRange_v2(start: *mut Handle, bytes: *mut usize, pointer: Handle) -> i32 {
    call(|process| {
        let found = process.open()?.allocation(pointer as u64).ok_or(CudaError::SYMBOL_NOT_FOUND)?;
        if !start.is_null() {
            unsafe { put_pointer(start, found.0)? };
        }
        if bytes.is_null() { Ok(()) } else { unsafe { put(bytes, found.1 as usize) } }
    })
}

/// A pointer's attributes by number. `None`: the pointer has none of this number.
fn pointer_attribute(process: &mut Process, attribute: c_int, address: u64) -> Result<Option<u64>> {
    let open = process.open()?;
    let kind = open.kind(address);
    if kind == Kind::Unregistered {
        return Ok(None);
    }
    let allocation = open.allocation(address);
    Ok(Some(match attribute {
        1 => context::of_pointer(),
        // Managed memory counts as the device's.
        2 => {
            if kind == Kind::Host {
                1
            } else {
                2
            }
        }
        3 => address,
        4 if kind != Kind::Device => address,
        6 => 1,
        7 => allocation.map_or(0, |(start, _)| start),
        8 => u64::from(kind == Kind::Managed),
        9 => 0,
        10 => 0,
        11 => allocation.ok_or(CudaError::INVALID_VALUE)?.0,
        12 => allocation.ok_or(CudaError::INVALID_VALUE)?.1,
        13 => 1,
        14..=21 => 0,
        _ => return Ok(None),
    }))
}

/// Bytes of an attribute: pointers and sizes have eight, flags one, the rest four.
unsafe fn put_attribute(place: *mut c_void, attribute: c_int, value: u64) {
    unsafe {
        match attribute {
            1 | 3 | 4 | 7 | 11 | 12 | 14 | 17 | 19 | 20 => place.cast::<u64>().write_unaligned(value),
            6 | 8 | 10 | 13 | 18 => place.cast::<u8>().write(value as u8),
            _ => place.cast::<u32>().write_unaligned(value as u32),
        }
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuPointerGetAttribute(place: *mut c_void, attribute: c_int, pointer: Handle) -> i32 {
    call(|process| {
        let value = pointer_attribute(process, attribute, pointer as u64)?;
        let value = value.filter(|_| !place.is_null()).ok_or(CudaError::INVALID_VALUE)?;
        unsafe { put_attribute(place, attribute, value) };
        Ok(())
    })
}

/// Attributes that a pointer does not have are zero.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuPointerGetAttributes(
    count: c_uint,
    attributes: *const c_int,
    places: *const *mut c_void,
    pointer: Handle,
) -> i32 {
    call(|process| {
        if attributes.is_null() || places.is_null() {
            return Err(CudaError::INVALID_VALUE);
        }
        for at in 0..count as usize {
            let (attribute, place) = unsafe { (*attributes.add(at), *places.add(at)) };
            let missing = if attribute == 9 { u64::from(u32::MAX - 1) } else { 0 };
            let value = pointer_attribute(process, attribute, pointer as u64)?.unwrap_or(missing);
            unsafe { put_attribute(place, attribute, value) };
        }
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuPointerSetAttribute(_value: *const c_void, _attribute: c_int, pointer: Handle) -> i32 {
    call(|process| {
        let known = process.open()?.kind(pointer as u64) != Kind::Unregistered;
        known.then_some(()).ok_or(CudaError::INVALID_VALUE)
    })
}

/// Directions as the runtime numbers them.
const TO_DEVICE: c_int = 1;
const TO_HOST: c_int = 2;
const ON_DEVICE: c_int = 3;
const FOUND_OUT: c_int = 4;

unsafe fn line(to: Handle, from: *const c_void, bytes: usize, kind: c_int, order: Order) -> i32 {
    let code = call(|process| {
        let (to, from) = (Place::line(to as u64), Place::line(from as u64));
        unsafe { copy(process, to, from, [bytes as u64, 1, 1], kind, order) }
    });
    if matches!(order, Order::Waits) {
        super::show_printed(&mut super::process());
    }
    code
}

/// Copies of a direction: with and without a stream.
macro_rules! copies {
    ($($sync:ident, $stream:ident: $kind:expr;)*) => {$(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $sync(to: Handle, from: *const c_void, bytes: usize) -> i32 {
            unsafe { line(to, from, bytes, $kind, Order::Waits) }
        }

        #[unsafe(no_mangle)]
        unsafe extern "C" fn $stream(to: Handle, from: *const c_void, bytes: usize, stream: Handle) -> i32 {
            unsafe { line(to, from, bytes, $kind, Order::Stream(stream)) }
        }
    )*};
}

copies! {
    cuMemcpy, cuMemcpyAsync: FOUND_OUT;
    cuMemcpyHtoD_v2, cuMemcpyHtoDAsync_v2: TO_DEVICE;
    cuMemcpyDtoH_v2, cuMemcpyDtoHAsync_v2: TO_HOST;
    cuMemcpyDtoD_v2, cuMemcpyDtoDAsync_v2: ON_DEVICE;
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemcpyPeer(
    to: Handle,
    _to_context: Handle,
    from: *const c_void,
    _from_context: Handle,
    bytes: usize,
) -> i32 {
    unsafe { line(to, from, bytes, ON_DEVICE, Order::Waits) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemcpyPeerAsync(
    to: Handle,
    _to_context: Handle,
    from: *const c_void,
    _from_context: Handle,
    bytes: usize,
    stream: Handle,
) -> i32 {
    unsafe { line(to, from, bytes, ON_DEVICE, Order::Stream(stream)) }
}

/// One side of `CUDA_MEMCPY2D`.
#[repr(C)]
struct Side2D {
    x_bytes: usize,
    y: usize,
    kind: c_uint,
    host: Handle,
    device: Handle,
    array: Handle,
    pitch: usize,
}

#[repr(C)]
struct Copy2D {
    from: Side2D,
    to: Side2D,
    width: usize,
    rows: usize,
}

/// One side of `CUDA_MEMCPY3D`.
#[repr(C)]
pub(super) struct Side3D {
    x_bytes: usize,
    y: usize,
    z: usize,
    lod: usize,
    kind: c_uint,
    host: Handle,
    device: Handle,
    array: Handle,
    reserved: Handle,
    pitch: usize,
    rows: usize,
}

#[repr(C)]
pub(super) struct Copy3D {
    from: Side3D,
    to: Side3D,
    width: usize,
    rows: usize,
    planes: usize,
}

const HOST: c_uint = 1;
const DEVICE: c_uint = 2;
const ARRAY: c_uint = 3;
const UNIFIED: c_uint = 4;

impl Side3D {
    fn of_2d(side: &Side2D) -> Side3D {
        let Side2D { x_bytes, y, kind, host, device, array, pitch } = *side;
        let (z, lod, reserved, rows) = (0, 0, std::ptr::null_mut(), 0);
        Side3D { x_bytes, y, z, lod, kind, host, device, array, reserved, pitch, rows }
    }

    /// One side of a copy of which the other is an array.
    fn end(&self, [width, rows, _]: [usize; 3]) -> Result<End> {
        if self.kind == ARRAY {
            let [x, y, z] = [self.x_bytes, self.y, self.z].map(|at| at as u64);
            return Ok(End::Array(Corner { array: self.array as u64, x, y, z }));
        }
        Ok(End::Memory(self.packed(width, rows)?))
    }

    /// Its place. A pitch or height of zero stands for rows that follow each other.
    fn packed(&self, width: usize, rows: usize) -> Result<Place> {
        let place = self.place()?;
        let pitch = if self.pitch == 0 { width as u64 } else { place.pitch };
        let slice = if self.rows == 0 { pitch * rows as u64 } else { place.slice };
        Ok(Place { pitch, slice, ..place })
    }

    fn place(&self) -> Result<Place> {
        let address = match self.kind {
            HOST => self.host as u64,
            DEVICE | UNIFIED => self.device as u64,
            ARRAY => {
                complain("a copy of an array as a node of a graph, which is not there");
                return Err(CudaError::NOT_SUPPORTED);
            }
            _ => return Err(CudaError::INVALID_VALUE),
        };
        let (pitch, slice) = (self.pitch as u64, (self.pitch * self.rows) as u64);
        let start = Place { address, pitch, slice };
        Ok(Place { address: start.row(self.y as u64, self.z as u64) + self.x_bytes as u64, ..start })
    }
}

/// The two places of a copy, and its kind as the runtime numbers them.
fn places(from: &Side3D, to: &Side3D, extent: [usize; 3]) -> Result<(Place, Place, c_int)> {
    let kind = match (from.kind, to.kind) {
        (HOST, HOST) => 0,
        (HOST, DEVICE) => TO_DEVICE,
        (DEVICE, HOST) => TO_HOST,
        (DEVICE, DEVICE) => ON_DEVICE,
        _ => FOUND_OUT,
    };
    let [width, rows, _] = extent;
    let short = |side: &Side3D| side.pitch != 0 && side.pitch < width;
    if short(from) || short(to) {
        return Err(CudaError::INVALID_VALUE);
    }
    Ok((to.packed(width, rows)?, from.packed(width, rows)?, kind))
}

/// The copy that `CUDA_MEMCPY3D` describes, as a node of a graph.
pub(super) unsafe fn copy_work(parameters: *const Copy3D) -> Result<Work> {
    let all = unsafe { parameters.as_ref() }.ok_or(CudaError::INVALID_VALUE)?;
    let extent = [all.width, all.rows, all.planes];
    let (to, from, kind) = places(&all.from, &all.to, extent)?;
    Ok(Work::Copy { to, from, extent: extent.map(|n| n as u64), kind })
}

unsafe fn copy_box(
    process: &mut Process,
    from: &Side3D,
    to: &Side3D,
    extent: [usize; 3],
    order: Order,
) -> Result {
    if [from.kind, to.kind].contains(&ARRAY) {
        let ends = (to.end(extent)?, from.end(extent)?);
        return unsafe { copy_ends(process, ends.0, ends.1, extent.map(|n| n as u64), FOUND_OUT, order) };
    }
    let (to, from, kind) = places(from, to, extent)?;
    unsafe { copy(process, to, from, extent.map(|n| n as u64), kind, order) }
}

unsafe fn copy_2d(parameters: *const Copy2D, order: Order) -> i32 {
    call(|process| {
        let all = unsafe { parameters.as_ref() }.ok_or(CudaError::INVALID_VALUE)?;
        let (from, to) = (Side3D::of_2d(&all.from), Side3D::of_2d(&all.to));
        unsafe { copy_box(process, &from, &to, [all.width, all.rows, 1], order) }
    })
}

unsafe fn copy_3d(parameters: *const Copy3D, order: Order) -> i32 {
    call(|process| {
        let all = unsafe { parameters.as_ref() }.ok_or(CudaError::INVALID_VALUE)?;
        unsafe { copy_box(process, &all.from, &all.to, [all.width, all.rows, all.planes], order) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemcpy2D_v2(parameters: *const Copy2D) -> i32 {
    unsafe { copy_2d(parameters, Order::Waits) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemcpy2DUnaligned_v2(parameters: *const Copy2D) -> i32 {
    unsafe { copy_2d(parameters, Order::Waits) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemcpy2DAsync_v2(parameters: *const Copy2D, stream: Handle) -> i32 {
    unsafe { copy_2d(parameters, Order::Stream(stream)) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemcpy3D_v2(parameters: *const Copy3D) -> i32 {
    unsafe { copy_3d(parameters, Order::Waits) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemcpy3DAsync_v2(parameters: *const Copy3D, stream: Handle) -> i32 {
    unsafe { copy_3d(parameters, Order::Stream(stream)) }
}

/// Fills of elements of a size: in lines and in rows, with and without a stream.
macro_rules! fills {
    ($($line:ident, $line_stream:ident, $rows:ident, $rows_stream:ident: $element:ty;)*) => {$(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $line(to: Handle, value: $element, count: usize) -> i32 {
            unsafe { $line_stream(to, value, count, DEFAULT_STREAM) }
        }

        #[unsafe(no_mangle)]
        unsafe extern "C" fn $line_stream(to: Handle, value: $element, count: usize, stream: Handle) -> i32 {
            unsafe { $rows_stream(to, 0, value, count, 1, stream) }
        }

        #[unsafe(no_mangle)]
        unsafe extern "C" fn $rows(to: Handle, pitch: usize, value: $element, width: usize, rows: usize) -> i32 {
            unsafe { $rows_stream(to, pitch, value, width, rows, DEFAULT_STREAM) }
        }

        #[unsafe(no_mangle)]
        unsafe extern "C" fn $rows_stream(
            to: Handle,
            pitch: usize,
            value: $element,
            width: usize,
            rows: usize,
            stream: Handle,
        ) -> i32 {
            let pattern = value.to_le_bytes();
            let width = (width as u64).saturating_mul(pattern.len() as u64);
            call(|process| {
                if !(to as usize).is_multiple_of(pattern.len()) {
                    return Err(CudaError::INVALID_VALUE);
                }
                let place = Place::rows(to as u64, pitch);
                unsafe { fill(process, place, &pattern, [width, rows as u64, 1], Order::Stream(stream)) }
            })
        }
    )*};
}

fills! {
    cuMemsetD8_v2, cuMemsetD8Async, cuMemsetD2D8_v2, cuMemsetD2D8Async: u8;
    cuMemsetD16_v2, cuMemsetD16Async, cuMemsetD2D16_v2, cuMemsetD2D16Async: u16;
    cuMemsetD32_v2, cuMemsetD32Async, cuMemsetD2D32_v2, cuMemsetD2D32Async: u32;
}
