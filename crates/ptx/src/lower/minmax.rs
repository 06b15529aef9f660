//! `min` and `max` of all types, with two or three inputs.

use isa::{Clamp, MinMax, Op, Ty, Width};
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
    let mut most = if ty == Ty::F32 { 4 } else { 3 };
    let op = if ty.is_float() {
        let flushes = ty == Ty::F32 && b.flushes();
        let mode = MinMax {
            ftz: matches!(ty, Ty::F32 | Ty::F16 | Ty::F16x2) && oc.has("ftz") || flushes,
            nan: ty != Ty::F64 && oc.has("NaN"),
            xorsign_abs: ty != Ty::F64 && oc.has("xorsign") && oc.has("abs"),
        };
        if mode.xorsign_abs {
            most = 3;
        }
        float(ty, mode)
    } else {
        let relu = matches!(ty, Ty::S32 | Ty::S16x2) && oc.has("relu");
        int(ty, if relu { Clamp::Relu } else { Clamp::None })
    };
    // With three inputs, `.abs` goes without `.xorsign`.
    let magnitudes = ty == Ty::F32 && oc.has("abs");
    let operands = oc.operands_between(if magnitudes { 4 } else { 3 }, most)?;
    if operands.len() == 4 {
        b.since(&format!("`{}` with three inputs", oc.name()), (8, 8), "sm_100")?;
    }
    let d = b.dst(&operands[0], ty)?;
    let mut inputs = Vec::with_capacity(3);
    for input in &operands[1..] {
        let input = b.src(input, ty)?;
        inputs.push(match op {
            Op::FMin(_, mode) | Op::FMax(_, mode) if magnitudes => {
                b.value(Op::FAbs(ty, mode.ftz), Width::One, &[input])
            }
            _ => input,
        });
    }
    if let [x, y, z] = inputs[..] {
        let first = b.value(op, Width::One, &[x, y]);
        inputs = vec![first, z];
    }
    b.emit(op, d, &inputs);
    Ok(())
}
