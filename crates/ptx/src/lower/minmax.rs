//! `min` and `max` of all types, with two or three inputs.

use isa::{Clamp, MinMax, Op, Ty};
use warploom_isa as isa;

use super::opcode::Opcode;
use super::{Builder, Result};

const TYPES: &[Ty] = &[
    Ty::U16,
    Ty::U32,
    Ty::U64,
    Ty::S16,
    Ty::S32,
    Ty::S64,
    Ty::U16x2,
    Ty::S16x2,
    Ty::F16,
    Ty::F16x2,
    Ty::BF16,
    Ty::BF16x2,
    Ty::F32,
    Ty::F64,
];

pub(super) fn min(b: &mut Builder<'_>, oc: &mut Opcode<'_>) -> Result {
    min_max(b, oc, Op::IMin, Op::FMin)
}

pub(super) fn max(b: &mut Builder<'_>, oc: &mut Opcode<'_>) -> Result {
    min_max(b, oc, Op::IMax, Op::FMax)
}

fn min_max(
    b: &mut Builder<'_>,
    oc: &mut Opcode<'_>,
    int: fn(Ty, Clamp) -> Op,
    float: fn(Ty, MinMax) -> Op,
) -> Result {
    let ty = oc.ty(TYPES)?;
    let op = if ty.is_float() {
        let flushes = ty == Ty::F32 && b.flushes();
        let mode = MinMax {
            ftz: matches!(ty, Ty::F32 | Ty::F16 | Ty::F16x2) && oc.has("ftz") || flushes,
            nan: ty != Ty::F64 && oc.has("NaN"),
            xorsign_abs: ty != Ty::F64 && oc.has("xorsign") && oc.has("abs"),
        };
        float(ty, mode)
    } else {
        let relu = matches!(ty, Ty::S32 | Ty::S16x2) && oc.has("relu");
        int(ty, if relu { Clamp::Relu } else { Clamp::None })
    };
    let operands = oc.operands_between(3, if ty == Ty::F32 { 4 } else { 3 })?;
    let (d, x, y) = (b.dst(&operands[0], ty)?, b.src(&operands[1], ty)?, b.src(&operands[2], ty)?);
    match operands.get(3) {
        None => b.emit(op, d, &[x, y]),
        Some(third) => {
            let z = b.src(third, ty)?;
            let reg = b.fresh_for(ty);
            b.emit(op, isa::Dst::Reg(reg), &[x, y]);
            b.emit(op, d, &[isa::Operand::Reg(reg), z]);
        }
    }
    Ok(())
}
