//! Moves values between a warp's registers and the rows of an access.

use warploom_isa::{Access, AtomOp, Dst, Inst, Kernel, Op, Operand};

use crate::kit::lane_mask::LaneMask;
use crate::memory::bytes::extend;
use crate::memory::rows::Rows;
use crate::memory::texture::surface_words;
use crate::warp::Warp;
use crate::warp::control::Activation;

/// Writes what a load found to its registers. `rows` are as many as the access has.
#[inline(always)]
pub fn write_data<const N: usize>(
    kernel: &Kernel,
    warp: &mut Warp<N>,
    activation: &Activation,
    inst: &Inst,
    mask: LaneMask,
    rows: &[[u32; N]],
) {
    let (access, wide) = match inst.op {
        Op::Ld { access, wide } => (access, wide),
        Op::LdLock(access) => (access, access.ty.is_wide()),
        Op::SurfaceLd(access) => (surface_words(access), access.ty.is_wide()),
        _ => unreachable!("called for loads"),
    };
    let mut registers = warp.registers(activation);
    let mut put = |dst: Dst, element: usize| {
        let (low, high) = extend(rows, access.ty, element);
        if wide {
            let mut both = [0u64; N];
            for lane in 0..N {
                both[lane] = low[lane] as u64 | (high[lane] as u64) << 32;
            }
            registers.write64(dst, &both, mask);
        } else {
            registers.write32(dst, &low, mask);
        }
    };
    match inst.dst {
        Dst::Vec(id) => {
            for (element, operand) in kernel.vectors[id.index()].iter().enumerate() {
                if let Operand::Reg(reg) = operand {
                    put(Dst::Reg(*reg), element);
                }
            }
        }
        dst if rows.len() == 1 && access.ty.bytes() == 4 && !wide => {
            registers.write32(dst, &rows[0], mask);
        }
        dst => put(dst, 0),
    }
}

/// Reads what a store writes from its registers. `rows` are as many as the access has.
#[inline(always)]
pub fn read_data<const N: usize>(
    kernel: &Kernel,
    warp: &mut Warp<N>,
    activation: &Activation,
    (inst, access): (&Inst, Access),
    rows: &mut [[u32; N]],
) {
    if access.ty.bytes() < 4 {
        // Several elements share a row.
        rows.fill([0; N]);
    }
    let registers = warp.registers(activation);
    let mut take = |operand: Operand, element: usize| match access.ty.bytes() {
        8 => {
            let value = registers.read64(operand, &kernel.imms);
            for lane in 0..N {
                rows[2 * element][lane] = value[lane] as u32;
                rows[2 * element + 1][lane] = (value[lane] >> 32) as u32;
            }
        }
        4 => rows[element] = registers.read32(operand),
        bytes => {
            let value = registers.read32(operand);
            let bit = element * bytes as usize * 8;
            let field = (1u32 << (8 * bytes)) - 1;
            for lane in 0..N {
                rows[bit / 32][lane] |= (value[lane] & field) << (bit % 32);
            }
        }
    };
    match inst.src[2] {
        Operand::Vec(id) => {
            for (element, operand) in kernel.vectors[id.index()].iter().enumerate() {
                take(*operand, element);
            }
        }
        operand => take(operand, 0),
    }
}

/// Reads the operands of an atomic. Those that locks are made of are of 32 bits, and need no high words.
#[inline]
pub fn read_operands<const N: usize>(
    kernel: &Kernel,
    warp: &mut Warp<N>,
    activation: &Activation,
    (inst, op, access): (&Inst, AtomOp, Access),
    rows: &mut Rows<N>,
) {
    let registers = warp.registers(activation);
    let operands = if op == AtomOp::Cas { 2 } else { 1 };
    for number in 0..operands {
        let source = inst.src[2 + number];
        if let Operand::Vec(id) = source {
            let halves = [0, 1].map(|half| registers.read64(kernel.vectors[id.index()][half], &kernel.imms));
            rows.set_quad_operand(number, [&halves[0], &halves[1]]);
        } else if access.ty.bytes() == 8 {
            rows.set_wide_operand(number, &registers.read64(source, &kernel.imms));
        } else {
            rows.set_operand(number, &registers.read32(source));
        }
    }
}

/// Writes what an atomic on `bytes` bytes found to its register.
#[inline]
pub fn write_found<const N: usize>(
    kernel: &Kernel,
    warp: &mut Warp<N>,
    activation: &Activation,
    dst: Dst,
    mask: LaneMask,
    (rows, bytes): (&Rows<N>, u32),
) {
    let mut registers = warp.registers(activation);
    if let Dst::Vec(id) = dst {
        for (half, operand) in kernel.vectors[id.index()].iter().enumerate() {
            if let Operand::Reg(reg) = operand {
                let found = std::array::from_fn(|lane| (rows.quads(lane)[0] >> (64 * half)) as u64);
                registers.write64(Dst::Reg(*reg), &found, mask);
            }
        }
        return;
    }
    let [low, high] = rows.found_rows();
    if bytes == 8 {
        let both = std::array::from_fn(|lane| low[lane] as u64 | (high[lane] as u64) << 32);
        registers.write64(dst, &both, mask);
    } else {
        registers.write32(dst, low, mask);
    }
}
