//! Matrix instructions: what the tensor cores of an SM compute. Start at [`multiply`].
//!
//! The elements of a matrix are spread over the registers of a warp's 32 lanes as the PTX manual says ([`layout`]). On
//! a chip with wavefronts of 64 lanes each half is a warp of its own.

mod finite;
mod layout;
mod number;
mod sum;
pub(crate) mod wgmma;

use warploom_isa::{Dst, Inst, MatrixTy, Mma, Operand};

use crate::fault::FaultKind;
use crate::kit::lane_mask::LaneMask;
use crate::lanes::Registers;
use crate::matrix::layout::{Fragment, Place};
use crate::memory::reach::Bad;
use crate::sync::vote::PTX_WARP;

/// The largest matrices: 16 x 16 elements of A, where those of 8 bits and fewer are counted in words of K.
const MOST: usize = 16 * 64;

/// `d = a * b + c`, in the lanes of `mask`. `lists` has the registers of vector operands.
pub(crate) fn multiply<const N: usize>(
    mma: Mma,
    inst: &Inst,
    registers: &mut Registers<'_, N>,
    lists: &[Vec<Operand>],
    mask: LaneMask,
) -> Result<(), Bad> {
    whole_warps::<N>(mask)?;
    let list = |operand: Operand| match operand {
        Operand::Vec(id) => lists[id.index()].as_slice(),
        _ => &[],
    };
    let [a, b, c, d] = Fragment::of(mma);
    let Dst::Vec(to) = inst.dst else { return Ok(()) };
    let results = &lists[to.index()];
    for first in (0..N).step_by(PTX_WARP) {
        for group in 0..mma.groups() {
            let (mut left, mut right, mut sums) = ([0u64; MOST], [0u64; MOST], [0u64; MOST]);
            gather(&a, (first, group), registers, list(inst.src[0]), &mut left);
            gather(&b, (first, group), registers, list(inst.src[1]), &mut right);
            gather(&c, (first, group), registers, list(inst.src[2]), &mut sums);
            sum::products(mma, sum::By::Warp, &left, &right, &mut sums);
            scatter(&d, (first, group), registers, results, &sums, mask);
        }
    }
    Ok(())
}

/// Refuses a matrix instruction that only some lanes of a warp execute.
pub(crate) fn whole_warps<const N: usize>(mask: LaneMask) -> Result<(), Bad> {
    const WARP: u64 = u64::MAX >> (64 - PTX_WARP);
    let is_whole = |first: usize| [0, WARP].contains(&(mask.0 >> first & WARP));
    if (0..N).step_by(PTX_WARP).all(is_whole) {
        return Ok(());
    }
    let problem = format!("all lanes of a warp execute it together, here only {} do", mask.count());
    Err(Bad { lane: mask.lowest(), kind: FaultKind::Matrix(problem) })
}

/// Reads a matrix: element (row, column) comes to `row * columns + column`.
fn gather<const N: usize>(
    fragment: &Fragment,
    (first, group): (usize, usize),
    registers: &Registers<'_, N>,
    list: &[Operand],
    into: &mut [u64; MOST],
) {
    for lane in 0..PTX_WARP {
        for (at, &operand) in list.iter().enumerate() {
            let word = match operand {
                Operand::Reg(r) if fragment.ty == MatrixTy::F64 => {
                    let [low, high] = [0, 1].map(|word| registers.words[r.index() + word][first + lane]);
                    u64::from(low) | u64::from(high) << 32
                }
                Operand::Reg(r) => u64::from(registers.words[r.index()][first + lane]),
                Operand::Imm(value) => u64::from(value),
                _ => 0,
            };
            for element in 0..fragment.per_register {
                if let Some(Place { row, column }) = fragment.place(lane, at, element, group) {
                    into[row * fragment.columns + column] = fragment.extract(word, element);
                }
            }
        }
    }
}

fn scatter<const N: usize>(
    fragment: &Fragment,
    (first, group): (usize, usize),
    registers: &mut Registers<'_, N>,
    list: &[Operand],
    from: &[u64; MOST],
    mask: LaneMask,
) {
    for lane in (0..PTX_WARP).filter(|lane| mask.contains(first + lane)) {
        for (at, &operand) in list.iter().enumerate() {
            let Operand::Reg(r) = operand else { continue };
            let (mut word, mut mine) = (0u64, false);
            for element in 0..fragment.per_register {
                if let Some(Place { row, column }) = fragment.place(lane, at, element, group) {
                    mine = true;
                    word |= fragment.insert(from[row * fragment.columns + column], element);
                }
            }
            if !mine {
                continue;
            }
            registers.words[r.index()][first + lane] = word as u32;
            if fragment.ty == MatrixTy::F64 {
                registers.words[r.index() + 1][first + lane] = (word >> 32) as u32;
            }
        }
    }
}

/// The rows of an 8 x 8 matrix of 16-bit elements as lanes hold them in one register each: lane `l` has two elements of
/// row `l / 4`. Returns the transposed matrix.
pub(crate) fn transpose(register: &[u32]) -> [u32; PTX_WARP] {
    let element = |row: usize, column: usize| register[4 * row + column / 2] >> (16 * (column % 2)) & 0xffff;
    std::array::from_fn(|lane| {
        let (row, column) = (lane / 4, 2 * (lane % 4));
        element(column, row) | element(column + 1, row) << 16
    })
}

/// `movmatrix`: transposes the matrix of each warp of 32 lanes.
pub(crate) fn move_transposed<const N: usize>(
    inst: &Inst,
    registers: &mut Registers<'_, N>,
    mask: LaneMask,
) -> Result<(), Bad> {
    whole_warps::<N>(mask)?;
    let held = registers.read32(inst.src[0]);
    let mut moved = [0; N];
    for first in (0..N).step_by(PTX_WARP) {
        moved[first..first + PTX_WARP].copy_from_slice(&transpose(&held[first..first + PTX_WARP]));
    }
    registers.write32(inst.dst, &moved, mask);
    Ok(())
}

#[cfg(test)]
mod tests;
