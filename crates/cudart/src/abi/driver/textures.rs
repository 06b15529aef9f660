//! Arrays, textures and surfaces by the driver's API: other descriptions of the same things.

use std::ffi::{c_int, c_uint, c_void};

use super::super::textures::{self, ChannelDesc, ResourceDesc, TextureDesc};
use super::{Handle, call, forward, with_context};
use crate::core::arrays::format;
use crate::core::error::{CudaError, Result};

forward! {
    cuArrayDestroy(array: Handle) = textures::cudaFreeArray;
    cuTexObjectDestroy(handle: u64) = textures::cudaDestroyTextureObject;
    cuSurfObjectDestroy(handle: u64) = textures::cudaDestroySurfaceObject;
}

/// `CUarray_format` and a number of channels, as the runtime describes them.
fn channels(code: c_uint, count: c_uint) -> Result<ChannelDesc> {
    let (bits, kind) = match code {
        0x01 => (8, 1),
        0x02 => (16, 1),
        0x03 => (32, 1),
        0x08 => (8, 0),
        0x09 => (16, 0),
        0x0a => (32, 0),
        0x10 => (16, 2),
        0x20 => (32, 2),
        _ => return Err(CudaError::INVALID_VALUE),
    };
    let bits = std::array::from_fn(|at| if at < count as usize { bits } else { 0 });
    Ok(ChannelDesc { bits, kind })
}

/// `CUDA_ARRAY_DESCRIPTOR`.
#[repr(C)]
struct ArrayDesc {
    width: usize,
    height: usize,
    format: c_uint,
    channels: c_uint,
}

/// `CUDA_ARRAY3D_DESCRIPTOR`.
#[repr(C)]
struct Array3DDesc {
    width: usize,
    height: usize,
    depth: usize,
    format: c_uint,
    channels: c_uint,
    flags: c_uint,
}

unsafe fn make_array(place: *mut Handle, desc: &Array3DDesc) -> i32 {
    call(|process| {
        let channels = channels(desc.format, desc.channels)?;
        let format = format(channels.bits, channels.kind)?;
        let extent = [desc.width, desc.height, desc.depth];
        let handle = process.open()?.make_array(format, extent, desc.flags)?;
        unsafe { super::super::put_pointer(place, handle) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuArrayCreate_v2(place: *mut Handle, desc: *const ArrayDesc) -> i32 {
    let Some(desc) = (unsafe { desc.as_ref() }) else { return CudaError::INVALID_VALUE.0 };
    let ArrayDesc { width, height, format, channels } = *desc;
    unsafe { make_array(place, &Array3DDesc { width, height, depth: 0, format, channels, flags: 0 }) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuArray3DCreate_v2(place: *mut Handle, desc: *const Array3DDesc) -> i32 {
    let Some(desc) = (unsafe { desc.as_ref() }) else { return CudaError::INVALID_VALUE.0 };
    unsafe { make_array(place, desc) }
}

/// `CUDA_RESOURCE_DESC`, as far as it is used.
#[repr(C)]
struct DriverResource {
    kind: c_int,
    padding: c_int,
    pointer: u64,
    format: c_uint,
    channels: c_uint,
    sizes: [usize; 3],
}

impl DriverResource {
    fn of_runtime(&self) -> Result<ResourceDesc> {
        let is_memory = self.kind >= 2;
        let channels = match is_memory {
            true => channels(self.format, self.channels)?,
            false => ChannelDesc { bits: [0; 4], kind: 0 },
        };
        let sizes = if is_memory { self.sizes } else { [0; 3] };
        Ok(ResourceDesc::new(self.kind, self.pointer, channels, sizes))
    }
}

/// `CUDA_TEXTURE_DESC`, as far as it is used.
#[repr(C)]
struct DriverTexture {
    address: [c_int; 3],
    filter: c_int,
    flags: c_uint,
    anisotropy: c_uint,
    mipmaps: [u32; 4],
    border: [f32; 4],
}

const READ_AS_INTEGER: c_uint = 1;
const NORMALIZED_COORDINATES: c_uint = 2;
const SRGB: c_uint = 0x10;

impl DriverTexture {
    fn of_runtime(&self) -> TextureDesc {
        TextureDesc {
            address: self.address,
            filter: self.filter,
            read: c_int::from(self.flags & READ_AS_INTEGER == 0),
            srgb: c_int::from(self.flags & SRGB != 0),
            border: self.border,
            normalized: c_int::from(self.flags & NORMALIZED_COORDINATES != 0),
            anisotropy: self.anisotropy,
            mipmaps: self.mipmaps,
        }
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuTexObjectCreate(
    place: *mut u64,
    resource: *const DriverResource,
    texture: *const DriverTexture,
    view: *const c_void,
) -> i32 {
    let (Some(resource), Some(texture)) = (unsafe { (resource.as_ref(), texture.as_ref()) }) else {
        return CudaError::INVALID_VALUE.0;
    };
    let texture = texture.of_runtime();
    with_context(|| match resource.of_runtime() {
        Ok(resource) => unsafe { textures::cudaCreateTextureObject(place, &resource, &texture, view) },
        Err(error) => error.0,
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuSurfObjectCreate(place: *mut u64, resource: *const DriverResource) -> i32 {
    let Some(resource) = (unsafe { resource.as_ref() }) else { return CudaError::INVALID_VALUE.0 };
    with_context(|| match resource.of_runtime() {
        Ok(resource) => unsafe { textures::cudaCreateSurfaceObject(place, &resource) },
        Err(error) => error.0,
    })
}
