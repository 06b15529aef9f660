//! The values that a warp's access moves, as rows of words: a row holds one word of every lane.

use warploom_isa::AtomOp;

use crate::kit::lane_mask::LaneMask;

/// Rows of the largest access, 32 bytes per lane.
pub const MAX_ROWS: usize = 8;

/// The first row of each of an atomic's two operands, and of what it found.
const OPERANDS: [usize; 2] = [0, 2];
const FOUND: usize = 4;

/// The first row of each operand of an atomic on 16 bytes. Once it has happened, what it found and what it left are
/// there.
const QUADS: [usize; 2] = [0, 4];

/// The rows of a copy's shared addresses and byte counts, behind its data of up to 16 bytes.
const COPY_DESTINATION: usize = 4;
const COPY_BYTES: usize = 5;

/// The rows of an access. What they hold depends on its kind:
///
/// | rows | load, store | atomic | asynchronous copy |
/// |------|-------------|--------|-------------------|
/// | 0, 1 | data | first operand | data |
/// | 2, 3 | data | second operand (compare-and-swap) | data |
/// | 4, 5 | data | value found | shared address, bytes to copy |
/// | 6, 7 | data | | |
///
/// An atomic on 16 bytes has its operands in rows 0 to 3 and 4 to 7. What it found and what it left replace them.
///
/// The store that ends an atomic's loop on lock bits has its data in rows 0 and 1, and what was there in 4 and 5.
///
/// Values of 64 bits have their low words in the first of two rows. Rows are reused without being cleared: an access
/// writes those that it reads, in the lanes that take part.
///
/// Aligned so that a row does not straddle lines of the host's cache.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub struct Rows<const N: usize>([[u32; N]; MAX_ROWS]);

impl<const N: usize> Rows<N> {
    pub(crate) fn new() -> Self {
        Rows([[0; N]; MAX_ROWS])
    }

    /// What a load brings, a store takes or a copy moves, with `bytes` per lane: a row for every four bytes. Narrower
    /// accesses use the low bits of one row.
    #[inline(always)]
    pub fn data(&self, bytes: u32) -> &[[u32; N]] {
        &self.0[..(bytes as usize).div_ceil(4)]
    }

    #[inline(always)]
    pub fn data_mut(&mut self, bytes: u32) -> &mut [[u32; N]] {
        &mut self.0[..(bytes as usize).div_ceil(4)]
    }

    /// A byte of a lane's data.
    pub fn data_byte(&self, byte: u32, lane: usize) -> u8 {
        (self.0[byte as usize / 4][lane] >> (8 * (byte % 4))) as u8
    }

    pub fn set_data_byte(&mut self, byte: u32, lane: usize, value: u8) {
        let (word, shift) = (&mut self.0[byte as usize / 4][lane], 8 * (byte % 4));
        *word = *word & !(0xff << shift) | (value as u32) << shift;
    }

    /// The low 64 bits of a lane's data.
    pub fn first_data(&self, bytes: u32, lane: usize) -> u64 {
        self.value(0, bytes, lane)
    }

    /// The operands of an atomic on `bytes` bytes. Only a comparison has a second one.
    #[inline(always)]
    pub fn operands(&self, op: AtomOp, bytes: u32, lane: usize) -> [u64; 2] {
        let second = if op == AtomOp::Cas { self.value(OPERANDS[1], bytes, lane) } else { 0 };
        [self.value(OPERANDS[0], bytes, lane), second]
    }

    /// The operands of an atomic on 16 bytes or, afterwards, what a lane found and what it left.
    pub fn quads(&self, lane: usize) -> [u128; 2] {
        let word = |row: usize| u128::from(self.value(row, 8, lane));
        QUADS.map(|row| word(row) | word(row + 2) << 64)
    }

    /// What a lane of an atomic on 16 bytes found and what it left.
    pub fn set_quads(&mut self, lane: usize, values: [u128; 2]) {
        for (first, value) in QUADS.into_iter().zip(values) {
            (0..4).for_each(|row| self.0[first + row][lane] = (value >> (32 * row)) as u32);
        }
    }

    /// As [`Rows::set_wide_operand`] with 16 bytes, the low 8 first.
    pub fn set_quad_operand(&mut self, number: usize, halves: [&[u64; N]; 2]) {
        for (row, half) in [0, 2].into_iter().zip(halves) {
            let row = QUADS[number] + row;
            self.0[row] = half.map(|value| value as u32);
            self.0[row + 1] = half.map(|value| (value >> 32) as u32);
        }
    }

    /// The first (0) or second (1) operand, of up to 32 bits.
    #[inline(always)]
    pub fn set_operand(&mut self, number: usize, values: &[u32; N]) {
        self.0[OPERANDS[number]] = *values;
    }

    /// As [`Rows::set_operand`] with 64 bits.
    #[inline(always)]
    pub fn set_wide_operand(&mut self, number: usize, values: &[u64; N]) {
        self.0[OPERANDS[number]] = values.map(|value| value as u32);
        self.0[OPERANDS[number] + 1] = values.map(|value| (value >> 32) as u32);
    }

    /// What a lane of an atomic found.
    #[inline(always)]
    pub fn found(&self, bytes: u32, lane: usize) -> u64 {
        self.value(if bytes == 16 { QUADS[0] } else { FOUND }, bytes, lane)
    }

    #[inline(always)]
    pub fn set_found(&mut self, bytes: u32, lane: usize, value: u64) {
        self.0[FOUND][lane] = value as u32;
        if bytes >= 8 {
            self.0[FOUND + 1][lane] = (value >> 32) as u32;
        }
    }

    /// The rows of what an atomic found.
    #[inline(always)]
    pub fn found_rows(&self) -> &[[u32; N]; 2] {
        (&self.0[FOUND..FOUND + 2]).try_into().expect("two rows")
    }

    pub fn found_mut(&mut self, bytes: u32) -> &mut [[u32; N]] {
        &mut self.0[FOUND..FOUND + (bytes as usize).div_ceil(4)]
    }

    /// Where in shared memory a copy's lanes put their bytes.
    pub fn copy_destination(&self) -> &[u32; N] {
        &self.0[COPY_DESTINATION]
    }

    /// How many bytes a copy's lanes take at most; the rest is filled with zeros.
    pub fn copy_bytes(&self) -> &[u32; N] {
        &self.0[COPY_BYTES]
    }

    pub fn set_copy(&mut self, destination: [u32; N], bytes: [u32; N]) {
        (self.0[COPY_DESTINATION], self.0[COPY_BYTES]) = (destination, bytes);
    }

    /// Copies some lanes of all rows.
    pub(crate) fn copy_lanes(&mut self, from: &Rows<N>, lanes: LaneMask) {
        for (row, values) in self.0.iter_mut().zip(&from.0) {
            lanes.lanes().for_each(|lane| row[lane] = values[lane]);
        }
    }

    /// Rows are far from each other, so the high words are looked at only where there are any.
    #[inline(always)]
    fn value(&self, row: usize, bytes: u32, lane: usize) -> u64 {
        let high = if bytes >= 8 { self.0[row + 1][lane] } else { 0 };
        self.0[row][lane] as u64 | (high as u64) << 32
    }
}
