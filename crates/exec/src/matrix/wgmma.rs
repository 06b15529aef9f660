//! `wgmma`: products whose matrices are in shared memory, described by 64 bits each.
//!
//! | bits | of a descriptor |
//! |---|---|
//! | 0–13 | where the matrix begins, in 16 bytes |
//! | 16–29, 32–45 | the leading and the stride offset, in 16 bytes |
//! | 49–51 | where the pattern of the swizzle begins |
//! | 62–63 | the swizzle: none, 128, 64 or 32 bytes |
//!
//! A matrix is made of pieces of 16 bytes. Eight rows of a span (16 bytes, or those of the swizzle) lie together; the
//! offsets lead from there to the next eight rows and, where a span is not enough, to the next span.

use warploom_isa::{Dst, Inst, MatrixTy, Operand, Space, Wgmma};

use super::{Fragment, MOST, PTX_WARP, gather, scatter, sum, whole_warps};
use crate::bulk::map::Swizzle;
use crate::fault::{AccessKind, FaultKind};
use crate::kit::lane_mask::LaneMask;
use crate::lanes::Registers;
use crate::memory::reach::{Bad, past_end};
use crate::memory::shared::Shared;

/// Elements of D in a tile of 16 rows and 8 columns.
const TILE: usize = 16 * 8;

/// Warps that multiply together.
const TOGETHER: u32 = 4;

/// Tiles of the widest product.
const MOST_TILES: usize = 32;

/// Who multiplies, and the memory of its CTA.
pub(crate) struct Place<'a> {
    /// The warp's number in its CTA: four warps from a multiple of four on multiply together.
    pub warp: u32,
    /// Warps of the CTA.
    pub warps: u32,
    pub shared: &'a Shared,
}

/// A matrix in shared memory. Rows are those of A, or columns of B.
#[derive(Clone, Copy, Debug)]
struct Matrix {
    start: u32,
    leading: u32,
    stride: u32,
    swizzle: Swizzle,
    /// Rows, and not K, are neighbours in memory.
    transposed: bool,
    /// Bytes of an element.
    bytes: u32,
}

impl Matrix {
    fn new(descriptor: u64, transposed: bool, bytes: u32) -> Result<Matrix, String> {
        let field = |at: u32| (descriptor >> at & 0x3fff) as u32 * 16;
        let swizzle = match descriptor >> 62 {
            0 => Swizzle::None,
            1 => Swizzle::Within(128),
            2 => Swizzle::Within(64),
            _ => Swizzle::Within(32),
        };
        match descriptor >> 49 & 7 {
            0 => Ok(Matrix {
                start: field(0),
                leading: field(16),
                stride: field(32),
                swizzle,
                transposed,
                bytes,
            }),
            base => Err(format!(
                "the matrix descriptor {descriptor:#018x} has the base offset {base}; only 0 is modelled: align the \
                 matrix to the pattern of its swizzle"
            )),
        }
    }

    /// Where an element is.
    fn address(self, row: u32, k: u32) -> u32 {
        let (along, across) = if self.transposed { (row, k) } else { (k, row) };
        let (piece, inside) = (along * self.bytes / 16, along * self.bytes % 16);
        let rows = (across % 8, across / 8);
        let offset = match (self.swizzle, self.transposed) {
            (Swizzle::None, false) => rows.0 * 16 + rows.1 * self.stride + piece * self.leading,
            (Swizzle::None, true) => rows.0 * 16 + rows.1 * self.leading + piece * self.stride,
            (Swizzle::Within(span), transposed) => {
                let pieces = span / 16;
                // Along K a product stays in one span.
                let (piece, spans) = if transposed { (piece % pieces, piece / pieces) } else { (piece, 0) };
                rows.0 * span + rows.1 * self.stride + piece * 16 + spans * self.leading
            }
        };
        self.swizzle.apply(self.start.wrapping_add(offset)) + inside
    }

    fn read(self, shared: &Shared, row: u32, k: u32) -> Result<u64, FaultKind> {
        let at = self.address(row, k) as usize;
        let Some(bytes) = shared.bytes.get(at..at + self.bytes as usize) else {
            let (access, space, address) = (AccessKind::Load, Space::Shared, at as u64);
            let place = past_end(address, shared.bytes.len() as u64, "the CTA's shared memory");
            let place = format!("{place}; the descriptor leads there with row {row} and k {k}");
            return Err(FaultKind::OutOfBounds { access, space, address, bytes: self.bytes, place });
        };
        Ok(bytes.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte)))
    }
}

/// The element with the other sign, if so.
fn signed(ty: MatrixTy, negated: bool, bits: u64) -> u64 {
    if negated { bits ^ 1 << (ty.bits() - 1) } else { bits }
}

/// The warp's part of `d = a * b` or `d = a * b + d`.
pub(crate) fn multiply<const N: usize>(
    wgmma: Wgmma,
    (inst, lists, imms): (&Inst, &[Vec<Operand>], &[u64]),
    registers: &mut Registers<'_, N>,
    place: Place<'_>,
    mask: LaneMask,
) -> Result<(), Bad> {
    let lane = mask.lowest();
    let bad = |kind| Bad { lane, kind };
    let list = |operand: Operand| match operand {
        Operand::Vec(id) => lists[id.index()].as_slice(),
        _ => &[],
    };
    whole_warps::<N>(mask)?;
    let together = TOGETHER * PTX_WARP as u32 / N as u32;
    if place.warp / together * together + together > place.warps {
        let threads = place.warps % together * N as u32;
        let problem = format!("128 threads multiply together, here are only {threads}");
        return Err(bad(FaultKind::Matrix(problem)));
    }
    let mma = wgmma.tile();
    // Single bits are counted in words.
    let (k, bytes) = match wgmma.a {
        MatrixTy::B1 => (mma.k() / 32, 4),
        ty => (mma.k(), ty.bits() / 8),
    };
    let [a, _, c, d] = Fragment::of(mma);
    let matrix = |operand: Operand, transposed: bool, registers: &Registers<'_, N>| {
        let descriptor = registers.read64(operand, imms)[lane];
        Matrix::new(descriptor, transposed, bytes).map_err(|problem| bad(FaultKind::Matrix(problem)))
    };
    let other = matrix(inst.src[1], wgmma.b_transposed, registers)?;
    let adds = LaneMask(registers.read_pred(inst.src[2])).contains(lane);
    let Dst::Vec(to) = inst.dst else { return Ok(()) };
    let (sums, results) = (list(inst.src[3]), &lists[to.index()]);
    let per_tile = mma.registers()[3];
    let part = |tile: usize| tile * per_tile..(tile + 1) * per_tile;
    // Results may go to registers of sums that are still to be read.
    let mut totals = [[0u64; TILE]; MOST_TILES];
    for first in (0..N).step_by(PTX_WARP) {
        let mut left = [0u64; MOST];
        if wgmma.a_shared {
            let matrix = matrix(inst.src[0], wgmma.a_transposed, registers)?;
            let rows = 16 * (place.warp % 4) + if N > PTX_WARP { 16 * (first / PTX_WARP) as u32 } else { 0 };
            for (row, at) in (0..16).flat_map(|row| (0..k).map(move |at| (row, at))) {
                let bits = matrix.read(place.shared, rows + row as u32, at as u32).map_err(bad)?;
                left[row * k + at] = signed(wgmma.a, wgmma.a_negated, bits);
            }
        } else {
            gather(&a, (first, 0), registers, list(inst.src[0]), &mut left);
            left[..16 * k].iter_mut().for_each(|bits| *bits = signed(wgmma.a, wgmma.a_negated, *bits));
        }
        for tile in 0..usize::from(wgmma.eights) {
            let (mut right, mut total) = ([0u64; MOST], [0u64; MOST]);
            for (at, column) in (0..k).flat_map(|at| (0..8).map(move |column| (at, column))) {
                let bits = other.read(place.shared, (8 * tile + column) as u32, at as u32).map_err(bad)?;
                right[at * 8 + column] = signed(wgmma.b, wgmma.b_negated, bits);
            }
            if adds {
                gather(&c, (first, 0), registers, &sums[part(tile)], &mut total);
            }
            sum::products(mma, sum::By::Group, &left, &right, &mut total);
            totals[tile].copy_from_slice(&total[..TILE]);
        }
        for (tile, total) in totals.iter().enumerate().take(wgmma.eights.into()) {
            let mut whole = [0u64; MOST];
            whole[..TILE].copy_from_slice(total);
            scatter(&d, (first, 0), registers, &results[part(tile)], &whole, mask);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matrix(swizzle: u64, transposed: bool, leading: u64, stride: u64) -> Matrix {
        Matrix::new(swizzle << 62 | (stride / 16) << 32 | (leading / 16) << 16, transposed, 2).unwrap()
    }

    #[test]
    fn along_k_rows_follow_each_other_in_spans() {
        // 128-byte swizzle: row 3 begins 3 spans further, and its first piece is where the fourth was.
        assert_eq!(matrix(1, false, 0, 1024).address(3, 0), 3 * 128 + 3 * 16);
        assert_eq!(matrix(1, false, 0, 1024).address(11, 9), 1024 + 3 * 128 + (3 ^ 1) * 16 + 2);
        assert_eq!(
            matrix(2, false, 0, 512).address(9, 1),
            512 + 64 + 2,
            "a row of 128 bytes holds two spans"
        );
        assert_eq!(matrix(3, false, 0, 256).address(4, 0), 128 + 16);
        assert_eq!(matrix(0, false, 128, 256).address(9, 8), 256 + 16 + 128);
    }

    #[test]
    fn along_rows_k_follows() {
        assert_eq!(matrix(1, true, 2048, 1024).address(64, 0), 2048);
        assert_eq!(matrix(1, true, 2048, 1024).address(9, 1), 128 + 2, "the second piece comes first");
        assert_eq!(matrix(1, true, 2048, 1024).address(0, 8), 1024);
        assert_eq!(matrix(0, true, 128, 256).address(8, 9), 256 + 128 + 16);
    }

    #[test]
    fn a_base_offset_is_refused() {
        assert!(Matrix::new(1 << 49, false, 2).unwrap_err().contains("base offset 1"));
    }
}
