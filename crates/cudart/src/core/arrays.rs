//! CUDA arrays, and the textures and surfaces made of them or of device memory.

use std::collections::HashMap;

use warploom::texture::{ChannelKind, Format, Image, Layout, Object, Sampler};

use crate::core::error::{CudaError, Result};
use crate::core::process::{Open, Process, complain};

/// Flags of an array.
const LAYERED: u32 = 1;
const CUBEMAP: u32 = 4;
const KNOWN_FLAGS: u32 = 0xf;

/// An array. Its handle is its address.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Array {
    pub(crate) image: Image,
    pub(crate) flags: u32,
}

/// Arrays, and what textures and surfaces were made of.
#[derive(Debug, Default)]
pub(crate) struct Arrays {
    arrays: HashMap<u64, Array>,
    /// The descriptions of a texture or surface, as the program gave them, by handle.
    described: HashMap<u64, (Vec<u8>, Vec<u8>)>,
}

/// A box inside an array: the first byte of a row, the row and the slice.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Corner {
    pub(crate) array: u64,
    pub(crate) x: u64,
    pub(crate) y: u64,
    pub(crate) z: u64,
}

/// Bits of four channels and their kind, as CUDA's descriptions have them.
pub(crate) fn format(bits: [i32; 4], kind: i32) -> Result<Format> {
    let channels = bits.iter().take_while(|&&each| each > 0).count();
    let same = bits[..channels].iter().all(|&each| each == bits[0]);
    let rest = bits[channels..].iter().all(|&each| each == 0);
    let kind = match kind {
        0 => ChannelKind::Signed,
        1 => ChannelKind::Unsigned,
        2 => ChannelKind::Float,
        _ => {
            complain(format!("a texture's format of kind {kind}, which is not modelled"));
            return Err(CudaError::NOT_SUPPORTED);
        }
    };
    let found = u8::try_from(bits[0]).ok().and_then(|bits| Format::new(channels as u8, bits, kind));
    found.filter(|_| same && rest).ok_or_else(|| {
        complain(format!("there is no texture format of {bits:?} bits"));
        CudaError::INVALID_CHANNEL_DESCRIPTOR
    })
}

impl Open {
    /// Makes an array; its extent is in elements.
    pub(crate) fn make_array(&mut self, format: Format, extent: [usize; 3], flags: u32) -> Result<u64> {
        if flags & !KNOWN_FLAGS != 0 {
            complain(format!("an array with flags {flags:#x}, of which not all are modelled"));
            return Err(CudaError::NOT_SUPPORTED);
        }
        let extent = extent.map(|each| u32::try_from(each).unwrap_or(u32::MAX));
        let cube = flags & CUBEMAP != 0;
        let layered = flags & LAYERED != 0 || cube;
        let [width, height, depth] = extent;
        let (extent, layers) =
            if layered { ([width, height, 0], depth) } else { ([width, height, depth], 0) };
        let mut image = Image { address: 0, format, extent, layers, cube, layout: Layout::Blocks };
        let problem = image.problem().or((layered && depth == 0).then_some("has no layers"));
        if let Some(problem) = problem {
            complain(format!("an array of {width} x {height} x {depth} elements {problem}"));
            return Err(CudaError::INVALID_VALUE);
        }
        image.address = self.malloc(image.bytes())?;
        self.arrays.arrays.insert(image.address, Array { image, flags });
        Ok(image.address)
    }

    pub(crate) fn free_array(&mut self, handle: u64) -> Result {
        if handle == 0 {
            return Ok(());
        }
        self.array(handle)?;
        self.arrays.arrays.remove(&handle);
        self.free(handle)
    }

    pub(crate) fn array(&self, handle: u64) -> Result<Array> {
        self.arrays.arrays.get(&handle).copied().ok_or_else(|| {
            complain(format!("{handle:#x} is no array"));
            CudaError::INVALID_RESOURCE_HANDLE
        })
    }

    /// Makes a texture or surface, of which the program may ask the descriptions later.
    pub(crate) fn make_texture(&mut self, object: Object, described: (Vec<u8>, Vec<u8>)) -> Result<u64> {
        let handle = self.gpu.create_texture(object).map_err(|error| {
            complain(error);
            CudaError::INVALID_VALUE
        })?;
        self.arrays.described.insert(handle, described);
        Ok(handle)
    }

    /// 0 stands for none, and is no error.
    pub(crate) fn destroy_texture(&mut self, handle: u64) -> Result {
        if handle == 0 {
            return Ok(());
        }
        self.arrays.described.remove(&handle);
        self.gpu.destroy_texture(handle).map_err(|error| {
            complain(error);
            CudaError::INVALID_VALUE
        })
    }

    /// The descriptions of the resource and of the texture.
    pub(crate) fn described(&self, handle: u64) -> Result<(&[u8], &[u8])> {
        let found = self.arrays.described.get(&handle).ok_or(CudaError::INVALID_VALUE)?;
        Ok((&found.0, &found.1))
    }
}

impl Process {
    /// Whether a box of `width` bytes, rows and slices lies in an array.
    fn check_box(&mut self, corner: Corner, [width, rows, slices]: [u64; 3]) -> Result<Image> {
        let Array { image, .. } = self.open()?.array(corner.array)?;
        let [columns, height, depth] = image.extent.map(u64::from);
        let most = [
            columns * u64::from(image.format.bytes()),
            height.max(1),
            if image.layers > 0 { image.layers.into() } else { depth.max(1) },
        ];
        let wanted = [(corner.x, width), (corner.y, rows), (corner.z, slices)];
        let inside = wanted
            .iter()
            .zip(most)
            .all(|(&(at, count), most)| at.checked_add(count).is_some_and(|end| end <= most));
        if !inside {
            complain(format!(
                "a copy of {width} bytes, {rows} rows and {slices} slices at byte {}, row {}, slice {} is not inside \
                 the array of {} bytes, {} rows and {} slices",
                corner.x, corner.y, corner.z, most[0], most[1], most[2]
            ));
            return Err(CudaError::INVALID_VALUE);
        }
        Ok(image)
    }

    /// Reads a box of an array, row after row.
    pub(crate) fn read_array(&mut self, corner: Corner, extent: [u64; 3]) -> Result<Vec<u8>> {
        let image = self.check_box(corner, extent)?;
        let all = self.read(image.address, image.bytes() as usize)?;
        let [width, rows, slices] = extent;
        let mut data = Vec::with_capacity((width * rows * slices) as usize);
        for slice in corner.z..corner.z + slices {
            for row in corner.y..corner.y + rows {
                data.extend((corner.x..corner.x + width).map(|x| all[image.offset(x, row, slice) as usize]));
            }
        }
        Ok(data)
    }

    /// Writes a box of an array, row after row.
    pub(crate) fn write_array(&mut self, corner: Corner, extent: [u64; 3], data: &[u8]) -> Result {
        let image = self.check_box(corner, extent)?;
        let mut all = self.read(image.address, image.bytes() as usize)?;
        let [width, rows, slices] = extent;
        let mut bytes = data.iter();
        for slice in corner.z..corner.z + slices {
            for row in corner.y..corner.y + rows {
                for (x, byte) in (corner.x..corner.x + width).zip(&mut bytes) {
                    all[image.offset(x, row, slice) as usize] = *byte;
                }
            }
        }
        self.write(image.address, &all)
    }

    /// Binds a texture reference of the program, or unbinds it.
    pub(crate) fn bind_reference(&mut self, host: u64, bound: Option<(Image, Sampler)>) -> Result {
        let address = self.symbol(host)?.address;
        let object = bound.map(|(image, sampler)| Object::Texture(image, sampler));
        self.open()?.gpu.bind_texture(address, object).map_err(|error| {
            complain(error);
            CudaError::INVALID_VALUE
        })
    }
}
