//! Arrays, texture and surface objects, and the texture references of CUDA 11 and before.

use std::ffi::{c_char, c_int, c_uint, c_void};

use warploom::texture::{AddressMode, Image, Layout, Object, Sampler};

use super::copies::{Copy3D, DEFAULT_STREAM, Order, Volume, pass_time};
use super::{Handle, call, call_and_wait, process, put, put_pointer, register, text};
use crate::core::arrays::{Corner, format};
use crate::core::error::{CudaError, Result};
use crate::core::memory::{Extent, Place, Side, sides};
use crate::core::process::{Process, complain};

/// `cudaChannelFormatDesc`: bits of the channels, and their kind.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(super) struct ChannelDesc {
    pub(super) bits: [c_int; 4],
    pub(super) kind: c_int,
}

impl ChannelDesc {
    fn of(image: &Image) -> ChannelDesc {
        let bits = std::array::from_fn(|at| {
            if at < usize::from(image.format.channels) { c_int::from(image.format.bits) } else { 0 }
        });
        use warploom::texture::ChannelKind::{Float, Signed, Unsigned};
        let kind = match image.format.kind {
            Signed => 0,
            Unsigned => 1,
            Float => 2,
        };
        ChannelDesc { bits, kind }
    }
}

/// `cudaResourceDesc`, as far as it is used: the kind, and a union for memory and its extent.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct ResourceDesc {
    kind: c_int,
    padding: c_int,
    /// An array's handle, or an address.
    pointer: u64,
    channels: ChannelDesc,
    padding_after: c_int,
    /// Bytes of linear memory; else width, height and pitch of rows.
    sizes: [usize; 3],
}

impl ResourceDesc {
    pub(super) fn new(kind: c_int, pointer: u64, channels: ChannelDesc, sizes: [usize; 3]) -> ResourceDesc {
        ResourceDesc { kind, padding: 0, pointer, channels, padding_after: 0, sizes }
    }
}

/// `cudaTextureDesc`, as far as it is used.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct TextureDesc {
    pub(super) address: [c_int; 3],
    pub(super) filter: c_int,
    pub(super) read: c_int,
    pub(super) srgb: c_int,
    pub(super) border: [f32; 4],
    pub(super) normalized: c_int,
    pub(super) anisotropy: c_uint,
    pub(super) mipmaps: [u32; 4],
}

fn bytes_of<T: Copy>(value: &T) -> Vec<u8> {
    // Sound: both descriptions are plain data without gaps.
    unsafe { std::slice::from_raw_parts(std::ptr::from_ref(value).cast::<u8>(), size_of::<T>()) }.to_vec()
}

fn address_mode(mode: c_int) -> Result<AddressMode> {
    match mode {
        0 => Ok(AddressMode::Wrap),
        1 => Ok(AddressMode::Clamp),
        2 => Ok(AddressMode::Mirror),
        3 => Ok(AddressMode::Border),
        _ => Err(CudaError::INVALID_VALUE),
    }
}

fn sampler(desc: &TextureDesc) -> Result<Sampler> {
    if desc.srgb != 0 {
        complain("a texture with sRGB colors, which is not modelled");
        return Err(CudaError::NOT_SUPPORTED);
    }
    let [x, y, z] = desc.address;
    Ok(Sampler {
        address: [address_mode(x)?, address_mode(y)?, address_mode(z)?],
        linear: desc.filter == 1,
        normalized: desc.normalized != 0,
        normalized_read: desc.read == 1,
        border: desc.border,
    })
}

const ARRAY: c_int = 0;
const MIPMAPPED: c_int = 1;
const LINEAR: c_int = 2;
const ROWS: c_int = 3;

fn image(process: &mut Process, desc: &ResourceDesc) -> Result<Image> {
    let size = |at: usize| u32::try_from(desc.sizes[at]).map_err(|_| CudaError::INVALID_VALUE);
    let memory = |extent, pitch: u64| {
        let format = format(desc.channels.bits, desc.channels.kind)?;
        Ok(Image {
            address: desc.pointer,
            format,
            extent,
            layers: 0,
            cube: false,
            layout: Layout::Rows(pitch),
        })
    };
    match desc.kind {
        ARRAY => Ok(process.open()?.array(desc.pointer)?.image),
        LINEAR => {
            let mut image = memory([1, 0, 0], 0)?;
            let texels = desc.sizes[0] as u64 / u64::from(image.format.bytes());
            image.extent[0] = u32::try_from(texels).map_err(|_| CudaError::INVALID_VALUE)?;
            Ok(image)
        }
        ROWS => memory([size(0)?, size(1)?.max(1), 0], desc.sizes[2] as u64),
        kind => {
            let what = if kind == MIPMAPPED { "a mipmapped array" } else { "an unknown resource" };
            complain(format!("a texture of {what}, which is not modelled"));
            Err(CudaError::NOT_SUPPORTED)
        }
    }
}

#[unsafe(no_mangle)]
extern "C" fn cudaCreateChannelDesc(x: c_int, y: c_int, z: c_int, w: c_int, kind: c_int) -> ChannelDesc {
    ChannelDesc { bits: [x, y, z, w], kind }
}

unsafe fn make_array(
    process: &mut Process,
    place: *mut Handle,
    desc: *const ChannelDesc,
    extent: [usize; 3],
    flags: c_uint,
) -> Result {
    let desc = unsafe { desc.as_ref() }.ok_or(CudaError::INVALID_VALUE)?;
    let format = format(desc.bits, desc.kind)?;
    let handle = process.open()?.make_array(format, extent, flags)?;
    unsafe { put_pointer(place, handle) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaMallocArray(
    place: *mut Handle,
    desc: *const ChannelDesc,
    width: usize,
    height: usize,
    flags: c_uint,
) -> i32 {
    call(|process| unsafe { make_array(process, place, desc, [width, height, 0], flags) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaMalloc3DArray(
    place: *mut Handle,
    desc: *const ChannelDesc,
    volume: Volume,
    flags: c_uint,
) -> i32 {
    let extent = [volume.width, volume.rows, volume.planes];
    call(|process| unsafe { make_array(process, place, desc, extent, flags) })
}

#[unsafe(no_mangle)]
pub(super) extern "C" fn cudaFreeArray(array: Handle) -> i32 {
    call(|process| process.open()?.free_array(array as u64))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaGetChannelDesc(place: *mut ChannelDesc, array: Handle) -> i32 {
    call(|process| {
        let found = process.open()?.array(array as u64)?;
        unsafe { put(place, ChannelDesc::of(&found.image)) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaArrayGetInfo(
    desc: *mut ChannelDesc,
    volume: *mut Volume,
    flags: *mut c_uint,
    array: Handle,
) -> i32 {
    call(|process| {
        let found = process.open()?.array(array as u64)?;
        let [width, rows, depth] = found.image.extent.map(|each| each as usize);
        let planes = if found.image.layers > 0 { found.image.layers as usize } else { depth };
        // Each of the three may be left out.
        if let Some(desc) = unsafe { desc.as_mut() } {
            *desc = ChannelDesc::of(&found.image);
        }
        if let Some(volume) = unsafe { volume.as_mut() } {
            *volume = Volume { width, rows, planes };
        }
        if let Some(flags) = unsafe { flags.as_mut() } {
            *flags = found.flags;
        }
        Ok(())
    })
}

/// One side of a copy.
#[derive(Clone, Copy)]
pub(super) enum End {
    Memory(Place),
    Array(Corner),
}

/// A copy with an array on at least one side.
pub(super) unsafe fn copy_ends(
    process: &mut Process,
    to: End,
    from: End,
    extent: Extent,
    kind: c_int,
    order: Order,
) -> Result {
    let said = sides(kind)?;
    let [width, rows, planes] = extent;
    let Some(bytes) = width.checked_mul(rows).and_then(|bytes| bytes.checked_mul(planes)) else {
        return Err(CudaError::INVALID_VALUE);
    };
    if bytes == 0 {
        return Ok(());
    }
    // An array's bytes are not in one piece, so that graphs cannot have such copies.
    process.graphs.refuse_in_any_capture()?;
    let open = process.open()?;
    let side = |end: End, said: Option<Side>| match end {
        End::Memory(place) => open.side(place.address, said),
        End::Array(_) => Side::Device,
    };
    let to_side = side(to, said.map(|(to, _)| to));
    let from_side = side(from, said.map(|(_, from)| from));
    let data = match from {
        End::Array(corner) => process.read_array(corner, extent)?,
        End::Memory(place) => {
            let mut data = Vec::with_capacity(bytes as usize);
            for (plane, row) in (0..planes).flat_map(|plane| (0..rows).map(move |row| (plane, row))) {
                let at = place.row(row, plane);
                match from_side {
                    Side::Host if at == 0 => return Err(CudaError::INVALID_VALUE),
                    Side::Host => {
                        data.extend(unsafe { std::slice::from_raw_parts(at as *const u8, width as usize) });
                    }
                    Side::Device => data.extend(process.read(at, width as usize)?),
                }
            }
            data
        }
    };
    match to {
        End::Array(corner) => process.write_array(corner, extent, &data)?,
        End::Memory(place) => {
            let places = (0..planes).flat_map(|plane| (0..rows).map(move |row| (plane, row)));
            for ((plane, row), data) in places.zip(data.chunks(width as usize)) {
                let at = place.row(row, plane);
                match to_side {
                    Side::Host if at == 0 => return Err(CudaError::INVALID_VALUE),
                    Side::Host => unsafe { (at as *mut u8).copy_from(data.as_ptr(), data.len()) },
                    Side::Device => process.write(at, data)?,
                }
            }
        }
    }
    pass_time(process, to_side, from_side, bytes, order)
}

/// `cudaMemcpy3D` with an array: its positions, and then the width, too, count elements.
pub(super) unsafe fn copy_3d(process: &mut Process, copied: &Copy3D, order: Order) -> Result {
    let mut element = 1;
    for array in [copied.from_array, copied.to_array].into_iter().filter(|array| !array.is_null()) {
        element = u64::from(process.open()?.array(array as u64)?.image.format.bytes());
    }
    let end = |array: Handle, position: &super::copies::Position, memory: Place| match array.is_null() {
        true => End::Memory(memory),
        false => End::Array(Corner {
            array: array as u64,
            x: (position.x as u64).saturating_mul(element),
            y: position.y as u64,
            z: position.z as u64,
        }),
    };
    let to = end(copied.to_array, &copied.to_position, copied.to.place(copied.to_position));
    let from = end(copied.from_array, &copied.from_position, copied.from.place(copied.from_position));
    let Volume { width, rows, planes } = copied.volume;
    let extent = [(width as u64).saturating_mul(element), rows.max(1) as u64, planes.max(1) as u64];
    unsafe { copy_ends(process, to, from, extent, copied.kind, order) }
}

fn corner(array: Handle, x: usize, y: usize) -> End {
    End::Array(Corner { array: array as u64, x: x as u64, y: y as u64, z: 0 })
}

/// The two-dimensional copies, each with and without a stream.
macro_rules! copies {
    ($(
        $name:ident $with_stream:ident ($($parameter:ident: $ty:ty),*) = $to:expr, $from:expr, $extent:expr;
    )*) => {$(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name($($parameter: $ty,)* kind: c_int) -> i32 {
            call_and_wait(|process| unsafe { copy_ends(process, $to, $from, $extent, kind, Order::Waits) })
        }

        #[unsafe(no_mangle)]
        unsafe extern "C" fn $with_stream($($parameter: $ty,)* kind: c_int, stream: Handle) -> i32 {
            call(|process| unsafe { copy_ends(process, $to, $from, $extent, kind, Order::Stream(stream)) })
        }
    )*};
}

copies! {
    cudaMemcpy2DToArray cudaMemcpy2DToArrayAsync(
        to: Handle, x: usize, y: usize, from: *const c_void, pitch: usize, width: usize, rows: usize
    ) = corner(to, x, y), End::Memory(Place::rows(from as u64, pitch)), [width as u64, rows as u64, 1];
    cudaMemcpy2DFromArray cudaMemcpy2DFromArrayAsync(
        to: Handle, pitch: usize, from: Handle, x: usize, y: usize, width: usize, rows: usize
    ) = End::Memory(Place::rows(to as u64, pitch)), corner(from, x, y), [width as u64, rows as u64, 1];
}

/// The rows that `bytes` bytes fill from the start of a row on; the copies that give no rows are of whole ones.
fn whole_rows(process: &mut Process, array: Handle, x: usize, bytes: usize) -> Result<Extent> {
    let image = process.open()?.array(array as u64)?.image;
    let row = u64::from(image.extent[0]) * u64::from(image.format.bytes());
    let bytes = bytes as u64;
    match bytes {
        bytes if x as u64 + bytes <= row => Ok([bytes, 1, 1]),
        bytes if x == 0 && bytes.is_multiple_of(row) => Ok([row, bytes / row, 1]),
        _ => {
            complain(format!(
                "a copy of {bytes} bytes from byte {x} of a row of {row} bytes on: rows must be whole"
            ));
            Err(CudaError::NOT_SUPPORTED)
        }
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaMemcpyToArray(
    to: Handle,
    x: usize,
    y: usize,
    from: *const c_void,
    bytes: usize,
    kind: c_int,
) -> i32 {
    call_and_wait(|process| {
        let extent = whole_rows(process, to, x, bytes)?;
        let from = End::Memory(Place::rows(from as u64, extent[0] as usize));
        unsafe { copy_ends(process, corner(to, x, y), from, extent, kind, Order::Waits) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaMemcpyFromArray(
    to: Handle,
    from: Handle,
    x: usize,
    y: usize,
    bytes: usize,
    kind: c_int,
) -> i32 {
    call_and_wait(|process| {
        let extent = whole_rows(process, from, x, bytes)?;
        let to = End::Memory(Place::rows(to as u64, extent[0] as usize));
        unsafe { copy_ends(process, to, corner(from, x, y), extent, kind, Order::Waits) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaMemcpy2DArrayToArray(
    to: Handle,
    to_x: usize,
    to_y: usize,
    from: Handle,
    x: usize,
    y: usize,
    width: usize,
    rows: usize,
    kind: c_int,
) -> i32 {
    let extent = [width as u64, rows as u64, 1];
    let order = Order::Stream(DEFAULT_STREAM);
    call(|process| unsafe {
        copy_ends(process, corner(to, to_x, to_y), corner(from, x, y), extent, kind, order)
    })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn cudaCreateTextureObject(
    place: *mut u64,
    resource: *const ResourceDesc,
    texture: *const TextureDesc,
    view: *const c_void,
) -> i32 {
    call(|process| {
        let resource = unsafe { resource.as_ref() }.ok_or(CudaError::INVALID_VALUE)?;
        let texture = unsafe { texture.as_ref() }.ok_or(CudaError::INVALID_VALUE)?;
        if !view.is_null() {
            complain("cudaCreateTextureObject: views of resources are not modelled");
            return Err(CudaError::NOT_SUPPORTED);
        }
        let object = Object::Texture(image(process, resource)?, sampler(texture)?);
        let described = (bytes_of(resource), bytes_of(texture));
        let handle = process.open()?.make_texture(object, described)?;
        unsafe { put(place, handle) }
    })
}

/// Of CUDA 11: the description of the texture has one field more at its end.
#[unsafe(no_mangle)]
unsafe extern "C" fn cudaCreateTextureObject_v2(
    place: *mut u64,
    resource: *const ResourceDesc,
    texture: *const TextureDesc,
    view: *const c_void,
) -> i32 {
    unsafe { cudaCreateTextureObject(place, resource, texture, view) }
}

#[unsafe(no_mangle)]
pub(super) extern "C" fn cudaDestroyTextureObject(handle: u64) -> i32 {
    call(|process| process.open()?.destroy_texture(handle))
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn cudaCreateSurfaceObject(
    place: *mut u64,
    resource: *const ResourceDesc,
) -> i32 {
    call(|process| {
        let resource = unsafe { resource.as_ref() }.ok_or(CudaError::INVALID_VALUE)?;
        if resource.kind != ARRAY {
            complain("cudaCreateSurfaceObject: a surface is made of an array");
            return Err(CudaError::INVALID_VALUE);
        }
        let object = Object::Surface(image(process, resource)?);
        let handle = process.open()?.make_texture(object, (bytes_of(resource), Vec::new()))?;
        unsafe { put(place, handle) }
    })
}

#[unsafe(no_mangle)]
pub(super) extern "C" fn cudaDestroySurfaceObject(handle: u64) -> i32 {
    call(|process| process.open()?.destroy_texture(handle))
}

/// Copies a description to the program, as it gave it.
unsafe fn describe(process: &mut Process, place: *mut u8, handle: u64, texture: bool) -> Result {
    let (resource, sampler) = process.open()?.described(handle)?;
    let bytes = if texture { sampler } else { resource };
    if place.is_null() || bytes.is_empty() {
        return Err(CudaError::INVALID_VALUE);
    }
    unsafe { place.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
    Ok(())
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaGetTextureObjectResourceDesc(place: *mut u8, handle: u64) -> i32 {
    call(|process| unsafe { describe(process, place, handle, false) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaGetTextureObjectTextureDesc(place: *mut u8, handle: u64) -> i32 {
    call(|process| unsafe { describe(process, place, handle, true) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaGetSurfaceObjectResourceDesc(place: *mut u8, handle: u64) -> i32 {
    call(|process| unsafe { describe(process, place, handle, false) })
}

/// `textureReference`, as far as it is used. `normalized_read` is set when the program registers it.
#[repr(C)]
#[derive(Clone, Copy)]
struct Reference {
    normalized: c_int,
    filter: c_int,
    address: [c_int; 3],
    channels: ChannelDesc,
    srgb: c_int,
}

impl Reference {
    fn sampler(&self, normalized_read: bool) -> Result<Sampler> {
        sampler(&TextureDesc {
            address: self.address,
            filter: self.filter,
            read: c_int::from(normalized_read),
            srgb: self.srgb,
            border: [0.0; 4],
            normalized: self.normalized,
            anisotropy: 0,
            mipmaps: [0; 4],
        })
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn __cudaRegisterTexture(
    handle: *mut Handle,
    host: *const c_void,
    _device: *const *const c_void,
    name: *const c_char,
    _dimensions: c_int,
    normalized_read: c_int,
    _external: c_int,
) {
    let name = unsafe { text(name) };
    register::reference(handle, host as u64, name, normalized_read != 0);
}

/// Binds a reference to memory that a description tells of.
unsafe fn bind(process: &mut Process, host: *const Reference, resource: &ResourceDesc) -> Result {
    let reference = unsafe { host.as_ref() }.ok_or(CudaError::INVALID_TEXTURE)?;
    let sampler = reference.sampler(process.reads_normalized(host as u64)?)?;
    let image = image(process, resource)?;
    process.bind_reference(host as u64, Some((image, sampler)))
}

unsafe fn bind_memory(
    process: &mut Process,
    offset: *mut usize,
    host: *const Reference,
    memory: *const c_void,
    channels: *const ChannelDesc,
    (kind, sizes): (c_int, [usize; 3]),
) -> Result {
    let channels = *unsafe { channels.as_ref() }.ok_or(CudaError::INVALID_VALUE)?;
    // Any address will do, so that no offset remains.
    if let Some(offset) = unsafe { offset.as_mut() } {
        *offset = 0;
    }
    let pointer = memory as u64;
    unsafe { bind(process, host, &ResourceDesc::new(kind, pointer, channels, sizes)) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaBindTexture(
    offset: *mut usize,
    host: *const c_void,
    memory: *const c_void,
    channels: *const ChannelDesc,
    bytes: usize,
) -> i32 {
    // Programs may leave the size to be found out, as the largest number: it is the allocation's.
    let rest = |process: &mut Process| {
        let (start, bytes) = process.open().ok()?.allocation(memory as u64)?;
        Some((start + bytes - memory as u64) as usize)
    };
    let bytes = if bytes < u32::MAX as usize { bytes } else { rest(&mut process()).unwrap_or(bytes) };
    let sizes = (LINEAR, [bytes, 0, 0]);
    call(|process| unsafe { bind_memory(process, offset, host.cast(), memory, channels, sizes) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaBindTexture2D(
    offset: *mut usize,
    host: *const c_void,
    memory: *const c_void,
    channels: *const ChannelDesc,
    width: usize,
    height: usize,
    pitch: usize,
) -> i32 {
    let sizes = (ROWS, [width, height, pitch]);
    call(|process| unsafe { bind_memory(process, offset, host.cast(), memory, channels, sizes) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaBindTextureToArray(
    host: *const c_void,
    array: Handle,
    _channels: *const ChannelDesc,
) -> i32 {
    call(|process| {
        let channels = ChannelDesc { bits: [0; 4], kind: 0 };
        let pointer = array as u64;
        let resource = ResourceDesc::new(ARRAY, pointer, channels, [0; 3]);
        unsafe { bind(process, host.cast(), &resource) }
    })
}

#[unsafe(no_mangle)]
extern "C" fn cudaUnbindTexture(host: *const c_void) -> i32 {
    call(|process| process.bind_reference(host as u64, None))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaGetTextureReference(place: *mut Handle, symbol: *const c_void) -> i32 {
    call(|process| {
        process.reads_normalized(symbol as u64)?;
        unsafe { put_pointer(place, symbol as u64) }
    })
}
