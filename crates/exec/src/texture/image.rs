//! Device memory as an image: where each texel lies.

use warploom_isa::Geometry;

use crate::texture::format::Format;

/// How texels lie in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// One after the other; rows begin every so many bytes.
    Rows(u64),
    /// In blocks of 64 bytes and 8 rows, as arrays are: neighbours in both directions share lines of the cache.
    Blocks,
}

/// Bytes and rows of a block.
const BLOCK_WIDTH: u64 = 64;
const BLOCK_ROWS: u64 = 8;
const BLOCK_BYTES: u64 = BLOCK_WIDTH * BLOCK_ROWS;

/// Memory that holds texels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Image {
    pub address: u64,
    pub format: Format,
    /// Width, height and depth in texels. The height is 0 if it has one dimension, the depth if it has two.
    pub extent: [u32; 3],
    /// Layers, 0 if it is not layered. Six per cube.
    pub layers: u32,
    pub cube: bool,
    pub layout: Layout,
}

impl Image {
    /// Height and slices (depth or layers), at least one of each.
    fn rows_and_slices(&self) -> (u64, u64) {
        let slices = if self.layers > 0 { self.layers } else { self.extent[2] };
        (u64::from(self.extent[1].max(1)), u64::from(slices.max(1)))
    }

    /// Bytes from a row, or a row of blocks, to the next.
    fn pitch(&self) -> u64 {
        let width = u64::from(self.extent[0]) * u64::from(self.format.bytes());
        match self.layout {
            Layout::Rows(pitch) => pitch,
            Layout::Blocks => width.div_ceil(BLOCK_WIDTH) * BLOCK_BYTES,
        }
    }

    /// Bytes from a slice to the next.
    fn slice_bytes(&self) -> u64 {
        let (rows, _) = self.rows_and_slices();
        match self.layout {
            Layout::Rows(pitch) => pitch * rows,
            Layout::Blocks => self.pitch() * rows.div_ceil(BLOCK_ROWS),
        }
    }

    /// What is wrong with its extent, its pitch or its address, if anything is.
    pub fn problem(&self) -> Option<&'static str> {
        let [width, height, depth] = self.extent;
        let most = [1 << 28, 1 << 17, 1 << 14];
        let size = u64::from(self.format.bytes());
        let row = u64::from(width) * size;
        if width == 0 {
            Some("has no texels")
        } else if self.extent.iter().zip(most).any(|(&extent, most)| extent > most) || self.layers > 1 << 16 {
            Some("is larger than any")
        } else if depth > 0 && (height == 0 || self.layers > 0) {
            Some("has a depth that does not go with its other dimensions")
        } else if self.cube && (width != height || self.layers == 0 || !self.layers.is_multiple_of(6)) {
            Some("is no cube: six square faces")
        } else if !self.address.is_multiple_of(size) {
            Some("begins at an address that is not a multiple of a texel")
        } else if let Layout::Rows(pitch) = self.layout
            && (pitch < row && height > 0 || !pitch.is_multiple_of(size) || pitch > 1 << 32)
        {
            Some("has rows that are too close, or not at multiples of a texel")
        } else {
            None
        }
    }

    /// Bytes that it takes in memory.
    pub fn bytes(&self) -> u64 {
        let (rows, slices) = self.rows_and_slices();
        let width = u64::from(self.extent[0]) * u64::from(self.format.bytes());
        match self.layout {
            Layout::Rows(pitch) => self.slice_bytes() * (slices - 1) + pitch * (rows - 1) + width,
            Layout::Blocks => self.slice_bytes() * slices,
        }
    }

    /// The offset of byte `x` of a row. Accesses of up to 16 bytes at multiples of their size do not straddle.
    pub fn offset(&self, x: u64, y: u64, slice: u64) -> u64 {
        let start = self.slice_bytes() * slice;
        match self.layout {
            Layout::Rows(pitch) => start + pitch * y + x,
            Layout::Blocks => {
                let block = y / BLOCK_ROWS * self.pitch() + x / BLOCK_WIDTH * BLOCK_BYTES;
                // Sectors are 16 bytes of two rows; a line of 128 bytes is 32 bytes of four rows.
                let (bx, by) = (x % BLOCK_WIDTH, y % BLOCK_ROWS);
                let inside = bx / 32 * 256 + by / 2 * 64 + bx / 16 % 2 * 32 + by % 2 * 16 + bx % 16;
                start + block + inside
            }
        }
    }

    /// Where texel `x`, `y` of a slice lies.
    pub fn texel(&self, x: u32, y: u32, slice: u32) -> u64 {
        let x = u64::from(x) * u64::from(self.format.bytes());
        self.address + self.offset(x, u64::from(y), u64::from(slice))
    }

    /// The geometry with which instructions must name it.
    pub fn geometry(&self) -> Geometry {
        match (self.extent[1], self.extent[2], self.layers) {
            (_, _, 6) if self.cube => Geometry::Cube,
            _ if self.cube => Geometry::ACube,
            (0, _, 0) => Geometry::D1,
            (0, ..) => Geometry::A1,
            (_, 0, 0) => Geometry::D2,
            (_, 0, _) => Geometry::A2,
            _ => Geometry::D3,
        }
    }

    /// Whether an instruction of this geometry can name it. Faces of cubes are layers, too, and a cube is an array of
    /// one.
    pub fn is(&self, geometry: Geometry) -> bool {
        let own = self.geometry();
        own == geometry || self.cube && matches!(geometry, Geometry::A2 | Geometry::ACube)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::texture::format::ChannelKind;

    fn image(extent: [u32; 3], layout: Layout) -> Image {
        let format = Format::new(1, 32, ChannelKind::Float).unwrap();
        Image { address: 4096, format, extent, layers: 0, cube: false, layout }
    }

    #[test]
    fn every_texel_has_bytes_of_its_own() {
        for extent in [[21, 13, 3], [16, 8, 0], [5, 0, 0], [1, 1, 1]] {
            for layout in [Layout::Blocks, Layout::Rows(128)] {
                let image = image(extent, layout);
                let mut seen = HashSet::new();
                for z in 0..extent[2].max(1) {
                    for y in 0..extent[1].max(1) {
                        for x in 0..extent[0] {
                            let at = image.texel(x, y, z);
                            assert!(
                                at + 4 <= 4096 + image.bytes() && seen.insert(at),
                                "{image:?} {x} {y} {z}"
                            );
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn a_line_holds_neighbours_of_both_directions() {
        let image = image([64, 64, 0], Layout::Blocks);
        let lines = |x: std::ops::Range<u32>, y: std::ops::Range<u32>| {
            let places = y.flat_map(|y| x.clone().map(move |x| (x, y)));
            places.map(|(x, y)| image.texel(x, y, 0) / 128).collect::<HashSet<_>>().len()
        };
        assert_eq!(lines(0..8, 0..4), 1, "32 bytes of four rows");
        assert_eq!(lines(0..32, 0..1), 4);
    }
}
