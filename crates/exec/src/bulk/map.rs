//! Tensor maps: 128 bytes that say where a tensor lies and which boxes of it are copied.
//!
//! The encoding of the hardware is secret, and programs do not look into it. Ours keeps every field at a place of its
//! own, so that `tensormap.replace` is a store. Replacing the address sets the mark as well: a kernel may make a map
//! out of zeros, field by field. Numbers are little-endian.
//!
//! | bytes | field |
//! |---|---|
//! | 0–7 | address |
//! | 8–11 | a mark, so that other bytes are not taken for a map |
//! | 12, 13, 14, 15, 16 | element type, dimensions − 1, interleaving, swizzle, fill |
//! | 20–39 | elements in each dimension |
//! | 40–71 | bytes from one element to the next, in each dimension but the first |
//! | 72–91 | box: elements in each dimension |
//! | 92–111 | steps through the box in each dimension |

use warploom_isa::TENSOR_MAP_MARK as MARK;

/// Bytes of a tensor map, which are also its alignment at least.
pub const MAP_BYTES: usize = 128;

const MARK_AT: usize = 8;

/// A field of a tensor map that `tensormap.replace` changes: its place, and the bytes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    Address,
    ElementType,
    Rank,
    Interleave,
    Swizzle,
    Fill,
    Size,
    Stride,
    BoxSize,
    Step,
}

impl Field {
    /// Where the field is and how many bytes it has; `nth` of those that each dimension has.
    pub const fn place(self, nth: u32) -> (u32, u32) {
        match self {
            Field::Address => (0, 8),
            Field::ElementType => (12, 1),
            Field::Rank => (13, 1),
            Field::Interleave => (14, 1),
            Field::Swizzle => (15, 1),
            Field::Fill => (16, 1),
            Field::Size => (20 + 4 * nth, 4),
            Field::Stride => (40 + 8 * nth, 8),
            Field::BoxSize => (72 + 4 * nth, 4),
            Field::Step => (92 + 4 * nth, 4),
        }
    }
}

/// Bytes of an element by the number of its type, as `cuTensorMapEncodeTiled` numbers them.
const ELEMENT_BYTES: [u32; 13] = [1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4];

/// Which 16-byte pieces of shared memory change places.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Swizzle {
    #[default]
    None,
    /// Within spans of this many bytes: 32, 64 or 128.
    Within(u32),
}

impl Swizzle {
    fn from_number(number: u8) -> Option<Swizzle> {
        match number {
            0 => Some(Swizzle::None),
            1..=3 => Some(Swizzle::Within(16 << number)),
            _ => None,
        }
    }

    fn number(self) -> u8 {
        match self {
            Swizzle::None => 0,
            Swizzle::Within(bytes) => (bytes / 16).trailing_zeros() as u8,
        }
    }

    /// Where the byte of an address is found. The number of a row of 128 bytes is added, without carry, to that of the
    /// piece in its span.
    pub const fn apply(self, address: u32) -> u32 {
        match self {
            Swizzle::None => address,
            Swizzle::Within(bytes) => address ^ ((address >> 7) & (bytes / 16 - 1)) << 4,
        }
    }
}

/// A tensor map. Only the first `rank` entries of each array count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TensorMap {
    pub address: u64,
    /// As `CUtensorMapDataType` numbers them.
    pub element_type: u8,
    pub rank: u32,
    pub sizes: [u32; 5],
    /// In bytes; that of the first dimension is the size of an element and is not stated.
    pub strides: [u64; 4],
    pub box_sizes: [u32; 5],
    pub steps: [u32; 5],
    pub swizzle: Swizzle,
    /// Elements outside of the tensor are NaN instead of zero.
    pub fills_nan: bool,
}

impl TensorMap {
    pub fn element_bytes(&self) -> u32 {
        ELEMENT_BYTES.get(usize::from(self.element_type)).copied().unwrap_or(1)
    }

    /// What a box out of the tensor has: the NaN of the element type, as its bytes repeat.
    pub(crate) fn fill(&self) -> u64 {
        match self.element_type {
            _ if !self.fills_nan => 0,
            6 => 0x7fff_7fff_7fff_7fff,
            9 => 0x7fff_7fff_7fff_7fff,
            8 => 0x7fff_ffff_ffff_ffff,
            _ => 0x7fff_ffff_7fff_ffff,
        }
    }

    /// Elements that a box has in a dimension.
    pub fn count(&self, dimension: usize) -> u32 {
        self.box_sizes[dimension].div_ceil(self.steps[dimension].max(1))
    }

    /// Bytes of a box in shared memory.
    pub fn box_bytes(&self) -> u64 {
        let elements = (0..self.rank as usize).map(|d| u64::from(self.count(d))).product::<u64>();
        elements * u64::from(self.element_bytes())
    }

    /// What is wrong with it, in the words of `cuTensorMapEncodeTiled`'s rules.
    pub fn check(&self) -> Result<(), String> {
        let element = u64::from(self.element_bytes());
        if usize::from(self.element_type) >= ELEMENT_BYTES.len() {
            return Err(format!("element type {} does not exist or is not modelled", self.element_type));
        }
        if !(1..=5).contains(&self.rank) {
            return Err(format!("a tensor has 1 to 5 dimensions, not {}", self.rank));
        }
        if !self.address.is_multiple_of(16) {
            return Err(format!("the address {:#x} is not a multiple of 16", self.address));
        }
        let dims = 0..self.rank as usize;
        if let Some(d) = dims.clone().find(|&d| self.sizes[d] == 0) {
            return Err(format!("dimension {d} has no elements"));
        }
        if let Some(d) = dims.clone().find(|&d| !(1..=256).contains(&self.box_sizes[d])) {
            return Err(format!("the box has {} elements in dimension {d}, not 1 to 256", self.box_sizes[d]));
        }
        if let Some(d) = dims.clone().find(|&d| !(1..=8).contains(&self.steps[d])) {
            return Err(format!("the step in dimension {d} is {}, not 1 to 8", self.steps[d]));
        }
        if self.steps[0] != 1 {
            return Err("the step in dimension 0 must be 1".to_string());
        }
        for (d, &stride) in self.strides.iter().enumerate().take(self.rank as usize - 1) {
            if !stride.is_multiple_of(16) || stride >= 1 << 40 {
                return Err(format!(
                    "the stride of dimension {} is {stride}, not a multiple of 16 below 2^40",
                    d + 1
                ));
            }
        }
        let inner = u64::from(self.box_sizes[0]) * element;
        if !inner.is_multiple_of(16) {
            return Err(format!("the box has {inner} bytes in dimension 0, not a multiple of 16"));
        }
        match self.swizzle {
            Swizzle::Within(span) if inner > u64::from(span) => {
                Err(format!("the box has {inner} bytes in dimension 0, more than the {span} of its swizzle"))
            }
            _ if self.fills_nan && !matches!(self.element_type, 6..=12) => {
                Err("only floating-point elements can be filled with NaN".to_string())
            }
            _ => Ok(()),
        }
    }

    pub fn encode(&self) -> [u8; MAP_BYTES] {
        let mut bytes = [0; MAP_BYTES];
        let mut put = |field: Field, nth: usize, value: u64| {
            let (at, count) = field.place(nth as u32);
            bytes[at as usize..(at + count) as usize].copy_from_slice(&value.to_le_bytes()[..count as usize]);
        };
        put(Field::Address, 0, self.address);
        put(Field::ElementType, 0, self.element_type.into());
        put(Field::Rank, 0, u64::from(self.rank.wrapping_sub(1)));
        put(Field::Swizzle, 0, self.swizzle.number().into());
        put(Field::Fill, 0, self.fills_nan.into());
        for d in 0..5 {
            put(Field::Size, d, self.sizes[d].into());
            put(Field::BoxSize, d, self.box_sizes[d].into());
            put(Field::Step, d, self.steps[d].into());
        }
        self.strides.iter().enumerate().for_each(|(d, &stride)| put(Field::Stride, d, stride));
        bytes[MARK_AT..MARK_AT + 4].copy_from_slice(&MARK.to_le_bytes());
        bytes
    }

    /// Reads a map back, and checks it.
    pub fn decode(bytes: &[u8; MAP_BYTES]) -> Result<TensorMap, String> {
        let get = |field: Field, nth: usize| {
            let (at, count) = field.place(nth as u32);
            let mut word = [0; 8];
            word[..count as usize].copy_from_slice(&bytes[at as usize..(at + count) as usize]);
            u64::from_le_bytes(word)
        };
        if bytes[MARK_AT..MARK_AT + 4] != MARK.to_le_bytes() {
            return Err("these bytes are no tensor map: make one with cuTensorMapEncodeTiled".to_string());
        }
        if get(Field::Interleave, 0) != 0 {
            return Err("interleaved tensors are not modelled".to_string());
        }
        let number = get(Field::Swizzle, 0);
        let swizzle =
            Swizzle::from_number(number as u8).ok_or(format!("swizzle {number} is not modelled"))?;
        let map = TensorMap {
            address: get(Field::Address, 0),
            element_type: get(Field::ElementType, 0) as u8,
            rank: get(Field::Rank, 0) as u32 + 1,
            sizes: std::array::from_fn(|d| get(Field::Size, d) as u32),
            strides: std::array::from_fn(|d| get(Field::Stride, d)),
            box_sizes: std::array::from_fn(|d| get(Field::BoxSize, d) as u32),
            steps: std::array::from_fn(|d| get(Field::Step, d) as u32),
            swizzle,
            fills_nan: get(Field::Fill, 0) != 0,
        };
        map.check()?;
        Ok(map)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map() -> TensorMap {
        TensorMap {
            address: 0x1000,
            element_type: 6,
            rank: 2,
            sizes: [100, 60, 0, 0, 0],
            strides: [208, 0, 0, 0],
            box_sizes: [64, 8, 0, 0, 0],
            steps: [1, 1, 0, 0, 0],
            swizzle: Swizzle::Within(128),
            fills_nan: true,
        }
    }

    #[test]
    fn what_is_encoded_is_decoded() {
        assert_eq!(TensorMap::decode(&map().encode()), Ok(map()));
        assert!(TensorMap::decode(&[0; MAP_BYTES]).unwrap_err().contains("no tensor map"));
    }

    #[test]
    fn rules() {
        let wrong = |change: fn(&mut TensorMap), what: &str| {
            let mut map = map();
            change(&mut map);
            let said = map.check().unwrap_err();
            assert!(said.contains(what), "{said}");
        };
        wrong(|map| map.address = 8, "multiple of 16");
        wrong(|map| map.strides[0] = 100, "stride of dimension 1");
        wrong(|map| map.box_sizes[0] = 65, "130 bytes");
        wrong(|map| map.box_sizes[0] = 72, "more than the 128");
        wrong(|map| map.box_sizes[1] = 257, "257 elements");
        wrong(|map| map.steps[1] = 9, "step");
        wrong(|map| map.rank = 6, "1 to 5");
        wrong(|map| map.element_type = 0, "NaN");
    }

    #[test]
    fn swizzles_permute_the_pieces_of_a_span() {
        for span in [32, 64, 128] {
            let swizzle = Swizzle::Within(span);
            let mut found: Vec<u32> = (0..64).map(|piece| swizzle.apply(16 * piece)).collect();
            assert!(found.iter().zip(0..).all(|(at, piece): (&u32, u32)| at / span == 16 * piece / span));
            found.sort_unstable();
            assert_eq!(found, (0..64).map(|piece| 16 * piece).collect::<Vec<u32>>());
        }
        assert_eq!(Swizzle::Within(128).apply(128 * 3 + 16 * 5 + 7), 128 * 3 + 16 * 6 + 7);
    }
}
