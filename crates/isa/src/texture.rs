//! Textures and surfaces as instructions name them.

use crate::types::Ty;

/// The shape of a texture or surface, and how many coordinates name a texel of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Geometry {
    D1,
    D2,
    D3,
    /// An array of one-dimensional layers. The layer's number comes before the coordinate.
    A1,
    /// An array of two-dimensional layers.
    A2,
    /// Six faces, named by a direction.
    Cube,
    /// An array of cubes.
    ACube,
}

impl Geometry {
    pub const ALL: [Geometry; 7] = [
        Geometry::D1,
        Geometry::D2,
        Geometry::D3,
        Geometry::A1,
        Geometry::A2,
        Geometry::Cube,
        Geometry::ACube,
    ];

    /// The name in an opcode.
    pub const fn name(self) -> &'static str {
        match self {
            Geometry::D1 => "1d",
            Geometry::D2 => "2d",
            Geometry::D3 => "3d",
            Geometry::A1 => "a1d",
            Geometry::A2 => "a2d",
            Geometry::Cube => "cube",
            Geometry::ACube => "acube",
        }
    }

    /// Whether a layer's number comes first.
    pub const fn is_layered(self) -> bool {
        matches!(self, Geometry::A1 | Geometry::A2 | Geometry::ACube)
    }

    pub const fn is_cube(self) -> bool {
        matches!(self, Geometry::Cube | Geometry::ACube)
    }

    /// Coordinates besides the layer.
    pub const fn axes(self) -> usize {
        match self {
            Geometry::D1 | Geometry::A1 => 1,
            Geometry::D2 | Geometry::A2 => 2,
            Geometry::D3 | Geometry::Cube | Geometry::ACube => 3,
        }
    }
}

/// What follows the coordinates of a fetch, and what it returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FetchMode {
    /// One filtered texel, from the level that the hardware chooses: without derivatives the first.
    Plain,
    /// From the level that the last operand names.
    Level,
    /// From the level that two vectors of derivatives give.
    Grad,
    /// `tld4`: one channel of the four texels that a linear filter would read.
    Gather(u8),
}

/// `tex` and `tld4` without their operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Fetch {
    pub geometry: Geometry,
    /// Of the result's four elements: U32, S32, F32, or F16x2 (then there are two).
    pub ty: Ty,
    /// Coordinates are integers: texels are not filtered, and coordinates not normalized.
    pub integer: bool,
    pub mode: FetchMode,
}

/// What `txq` and `suq` ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Query {
    Width,
    Height,
    Depth,
    ArraySize,
    Levels,
    Samples,
    /// `CL_` codes of the channels' type and order.
    ChannelType,
    ChannelOrder,
    NormalizedCoords,
    ForceUnnormalizedCoords,
    FilterMode,
    /// By axis.
    AddressMode(u8),
    /// Of a surface: whether it is linear memory (0) or an array (1).
    MemoryLayout,
}

/// What an access of a surface does beyond its edges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Beyond {
    /// The launch ends with an error.
    Trap,
    /// The nearest element is accessed.
    Clamp,
    /// Loads return zero; stores are dropped.
    Zero,
}

/// `suld`, `sust` and `sured` without their operands. The first axis counts bytes, unless the access is formatted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SurfaceAccess {
    pub geometry: Geometry,
    /// Type of one element.
    pub ty: Ty,
    /// Number of elements: 1, 2 or 4.
    pub count: u8,
    pub beyond: Beyond,
    /// `.p`: of a store, the first axis counts texels, and elements become channels of their format. Of a reduction,
    /// the first axis counts elements, which are signed if the texels' channels are.
    pub formatted: bool,
}

/// What lies beyond the edges of a texture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum AddressMode {
    /// The texture again. Only of normalized coordinates; others are clamped.
    Wrap,
    /// The texels of the edge.
    #[default]
    Clamp,
    /// The texture mirrored. Only of normalized coordinates; others are clamped.
    Mirror,
    /// The border's color.
    Border,
}

/// The state that a `.samplerref` is declared with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SamplerState {
    /// By axis.
    pub address: [AddressMode; 3],
    pub linear: bool,
    /// Coordinates go from 0 to 1, unless `force_unnormalized_coords` is set.
    pub unnormalized: bool,
}

/// A variable that only texture and surface instructions use. Its address is a handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Opaque {
    Texture,
    Sampler(SamplerState),
    Surface,
}
