//! `ldmatrix` and `stmatrix`: lanes name rows of 8 x 8 matrices of 16-bit elements; all lanes get or give their parts.
//!
//! Lane `8 i + r` has the address of row `r` of matrix `i`, 16 bytes. Register `i` of lane `l` holds two neighbouring
//! elements of row `l / 4` of the matrix, or of its column, if it is transposed.

use warploom_isa::{Dst, Inst, Kernel, MatrixAccess, Op, Operand, Space};

use crate::fault::{AccessKind, FaultKind};
use crate::kit::lane_mask::LaneMask;
use crate::matrix::{transpose, whole_warps};
use crate::memory::access::{MemoryOp, WarpAccess};
use crate::memory::address::Addresses;
use crate::memory::reach::{Bad, Reach, Touch};
use crate::sync::vote::PTX_WARP;
use crate::warp::Warp;

/// Bytes of a row of a matrix.
const ROW_BYTES: u32 = 16;

/// The lanes whose addresses count.
fn rows<const N: usize>(matrix: MatrixAccess) -> LaneMask {
    let each = (1u64 << (8 * matrix.count)) - 1;
    (0..N).step_by(PTX_WARP).fold(LaneMask::NONE, |all, first| all | LaneMask(each << first))
}

impl<const N: usize> WarpAccess<N> {
    pub(super) fn begin_matrix(
        &mut self,
        reach: &mut Reach<'_>,
        warp: &mut Warp<N>,
        inst: &Inst,
        matrix: MatrixAccess,
    ) -> Result<(), Bad> {
        whole_warps::<N>(self.mask)?;
        let loads = matches!(inst.op, Op::LdMatrix(_));
        self.bytes = ROW_BYTES;
        self.addresses =
            Addresses::read(reach.kernel, warp, &self.activation, inst, matrix.wide_address, self.mask);
        let kind = if loads { AccessKind::Load } else { AccessKind::Store };
        self.kind = if loads { MemoryOp::Matrix } else { MemoryOp::Store };
        if !loads {
            self.collect_rows(reach.kernel, warp, inst, matrix);
        }
        let (all, WarpAccess { activation, addresses, mask, lanes, rows, .. }) = (rows::<N>(matrix), self);
        let touch = Touch { space: matrix.space, bytes: ROW_BYTES, kind };
        let mut elsewhere = None;
        reach.each_space(warp, activation, touch, addresses, *mask & all, |reach, warp, piece| {
            if piece.space != Space::Shared {
                elsewhere.get_or_insert((piece.mask.lowest(), piece.space));
            } else if loads {
                reach.gather(warp, piece, rows.data_mut(ROW_BYTES));
            } else {
                reach.scatter(warp, piece, rows.data(ROW_BYTES));
            }
            lanes.shared |= piece.mask;
        })?;
        if let Some((lane, space)) = elsewhere {
            let (address, bytes) = (addresses.at(lane), ROW_BYTES);
            let place = "matrices are loaded from shared memory and stored there".to_string();
            return Err(Bad {
                lane,
                kind: FaultKind::OutOfBounds { access: kind, space, address, bytes, place },
            });
        }
        Ok(())
    }

    /// The rows of matrices from the registers of all lanes.
    fn collect_rows(&mut self, kernel: &Kernel, warp: &mut Warp<N>, inst: &Inst, matrix: MatrixAccess) {
        let registers = warp.registers(&self.activation);
        let list = match inst.src[2] {
            Operand::Vec(id) => kernel.vectors[id.index()].as_slice(),
            _ => &inst.src[2..3],
        };
        let rows = self.rows.data_mut(ROW_BYTES);
        for (number, &operand) in list.iter().enumerate() {
            let held = registers.read32(operand);
            for first in (0..N).step_by(PTX_WARP) {
                let mut part: [u32; PTX_WARP] = std::array::from_fn(|lane| held[first + lane]);
                if matrix.transposed {
                    part = transpose(&part);
                }
                for (lane, word) in part.into_iter().enumerate() {
                    rows[lane % 4][first + 8 * number + lane / 4] = word;
                }
            }
        }
    }

    /// All lanes get their parts of the matrices.
    pub(super) fn finish_matrix(&self, kernel: &Kernel, warp: &mut Warp<N>, inst: &Inst) {
        let Op::LdMatrix(matrix) = inst.op else { unreachable!("called for matrices") };
        let rows = self.rows.data(ROW_BYTES);
        for number in 0..usize::from(matrix.count) {
            let mut values = [0; N];
            for first in (0..N).step_by(PTX_WARP) {
                let mut part: [u32; PTX_WARP] =
                    std::array::from_fn(|lane| rows[lane % 4][first + 8 * number + lane / 4]);
                if matrix.transposed {
                    part = transpose(&part);
                }
                values[first..first + PTX_WARP].copy_from_slice(&part);
            }
            let to = match inst.dst {
                Dst::Vec(id) => match kernel.vectors[id.index()][number] {
                    Operand::Reg(r) => Dst::Reg(r),
                    _ => Dst::None,
                },
                dst => dst,
            };
            warp.registers(&self.activation).write32(to, &values, self.mask);
        }
    }
}
