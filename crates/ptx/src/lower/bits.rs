//! Logic, shifts and bit fields.

use isa::{Cmp, Combine, Dst, Logic, Op, Ty, Width};
use warploom_isa as isa;

use super::arith::{binary, ternary, unary};
use super::opcode::Opcode;
use super::{Builder, Result};

const BITS: &[Ty] = &[Ty::B16, Ty::B32, Ty::B64];
const WIDE_BITS: &[Ty] = &[Ty::B32, Ty::B64];
const FIELDS: &[Ty] = &[Ty::U32, Ty::U64, Ty::S32, Ty::S64];
const WORD: &[Ty] = &[Ty::B32];

fn logic(b: &mut Builder<'_>, oc: &mut Opcode<'_>, logic: Logic) -> Result {
    if oc.has("pred") {
        let [d, x, y] = oc.operands()?;
        let (d, x, y) = (b.dst_pred(d)?, b.pred(x)?, b.pred(y)?);
        b.emit(Op::LogicPred(logic), d, &[x, y]);
        return Ok(());
    }
    let ty = oc.ty(BITS)?;
    binary(b, oc, ty, Op::Logic(logic, ty))
}

pub(super) fn and(b: &mut Builder<'_>, oc: &mut Opcode<'_>) -> Result {
    logic(b, oc, Logic::And)
}

pub(super) fn or(b: &mut Builder<'_>, oc: &mut Opcode<'_>) -> Result {
    logic(b, oc, Logic::Or)
}

pub(super) fn xor(b: &mut Builder<'_>, oc: &mut Opcode<'_>) -> Result {
    logic(b, oc, Logic::Xor)
}

pub(super) fn not(b: &mut Builder<'_>, oc: &mut Opcode<'_>) -> Result {
    if oc.has("pred") {
        let [d, a] = oc.operands()?;
        let (d, a) = (b.dst_pred(d)?, b.pred(a)?);
        b.emit(Op::NotPred, d, &[a]);
        return Ok(());
    }
    let ty = oc.ty(BITS)?;
    unary(b, oc, ty, Op::Not(ty))
}

pub(super) fn cnot(b: &mut Builder<'_>, oc: &mut Opcode<'_>) -> Result {
    let ty = oc.ty(BITS)?;
    unary(b, oc, ty, Op::Cnot(ty))
}

/// `lop3.b32 d, a, b, c, lut` and `lop3.BoolOp.b32 d|p, a, b, c, lut, q`, where p = (d != 0) BoolOp q.
pub(super) fn lop3(b: &mut Builder<'_>, oc: &mut Opcode<'_>) -> Result {
    let combine = oc.pick(&[("or", Combine::Or), ("and", Combine::And)]);
    oc.ty(WORD)?;
    let count = if combine.is_some() { 6 } else { 5 };
    let operands = oc.operands_between(count, count)?;
    let (d, p) = b.pair(&operands[0]);
    let d = if p.is_some() { b.dst_or_sink(d, Ty::B32)? } else { b.dst(d, Ty::B32)? };
    let [x, y, z] = [&operands[1], &operands[2], &operands[3]].map(|o| b.src(o, Ty::B32));
    let (x, y, z) = (x?, y?, z?);
    let table = b.constant(&operands[4], 0, 255)? as u8;
    match (combine, p) {
        (None, None) => b.emit(Op::Lop3(table), d, &[x, y, z]),
        (Some(combine), Some(p)) => {
            let p = b.dst_pred(p)?;
            let q = b.pred(&operands[5])?;
            let reg = match d {
                Dst::Reg(reg) => reg,
                _ => b.fresh(Width::One),
            };
            b.emit(Op::Lop3(table), Dst::Reg(reg), &[x, y, z]);
            let test = Op::Setp { cmp: Cmp::Ne, combine, ty: Ty::B32, ftz: false };
            b.emit(test, p, &[isa::Operand::Reg(reg), isa::Operand::Imm(0), q]);
        }
        _ => {
            return Err(
                b.at(&operands[0], "`lop3` has a predicate result with `.or` and `.and`, and only then")
            );
        }
    }
    Ok(())
}

/// `d, a, b` where b is always 32 bits.
fn shift(b: &mut Builder<'_>, oc: &Opcode<'_>, ty: Ty, op: Op) -> Result {
    let [d, x, y] = oc.operands()?;
    let (d, x, y) = (b.dst(d, ty)?, b.src(x, ty)?, b.src(y, Ty::B32)?);
    b.emit(op, d, &[x, y]);
    Ok(())
}

pub(super) fn shl(b: &mut Builder<'_>, oc: &mut Opcode<'_>) -> Result {
    let ty = oc.ty(BITS)?;
    shift(b, oc, ty, Op::Shl(ty))
}

pub(super) fn shr(b: &mut Builder<'_>, oc: &mut Opcode<'_>) -> Result {
    let ty = oc.ty(&[Ty::B16, Ty::B32, Ty::B64, Ty::U16, Ty::U32, Ty::U64, Ty::S16, Ty::S32, Ty::S64])?;
    shift(b, oc, ty, Op::Shr(ty))
}

pub(super) fn shf(b: &mut Builder<'_>, oc: &mut Opcode<'_>) -> Result {
    let left = oc.need(&[("l", true), ("r", false)])?;
    let wrap = oc.need(&[("clamp", false), ("wrap", true)])?;
    oc.ty(WORD)?;
    ternary(b, oc, Ty::B32, Op::Shf { left, wrap })
}

/// `d, a` where d is a 32-bit count or position.
fn count(b: &mut Builder<'_>, oc: &Opcode<'_>, ty: Ty, op: Op) -> Result {
    let [d, a] = oc.operands()?;
    let (d, a) = (b.dst(d, Ty::B32)?, b.src(a, ty)?);
    b.emit(op, d, &[a]);
    Ok(())
}

pub(super) fn popc(b: &mut Builder<'_>, oc: &mut Opcode<'_>) -> Result {
    let ty = oc.ty(WIDE_BITS)?;
    count(b, oc, ty, Op::Popc(ty))
}

pub(super) fn clz(b: &mut Builder<'_>, oc: &mut Opcode<'_>) -> Result {
    let ty = oc.ty(WIDE_BITS)?;
    count(b, oc, ty, Op::Clz(ty))
}

pub(super) fn bfind(b: &mut Builder<'_>, oc: &mut Opcode<'_>) -> Result {
    let shift_amount = oc.has("shiftamt");
    let ty = oc.ty(FIELDS)?;
    count(b, oc, ty, Op::Bfind(ty, shift_amount))
}

pub(super) fn brev(b: &mut Builder<'_>, oc: &mut Opcode<'_>) -> Result {
    let ty = oc.ty(WIDE_BITS)?;
    unary(b, oc, ty, Op::Brev(ty))
}

pub(super) fn fns(b: &mut Builder<'_>, oc: &mut Opcode<'_>) -> Result {
    oc.ty(WORD)?;
    ternary(b, oc, Ty::B32, Op::Fns)
}

pub(super) fn bfe(b: &mut Builder<'_>, oc: &mut Opcode<'_>) -> Result {
    let ty = oc.ty(FIELDS)?;
    let [d, a, position, length] = oc.operands()?;
    let (d, a) = (b.dst(d, ty)?, b.src(a, ty)?);
    let (position, length) = (b.src(position, Ty::B32)?, b.src(length, Ty::B32)?);
    b.emit(Op::Bfe(ty), d, &[a, position, length]);
    Ok(())
}

pub(super) fn bfi(b: &mut Builder<'_>, oc: &mut Opcode<'_>) -> Result {
    let ty = oc.ty(WIDE_BITS)?;
    let [d, field, into, position, length] = oc.operands()?;
    let (d, field, into) = (b.dst(d, ty)?, b.src(field, ty)?, b.src(into, ty)?);
    let (position, length) = (b.src(position, Ty::B32)?, b.src(length, Ty::B32)?);
    b.emit(Op::Bfi(ty), d, &[field, into, position, length]);
    Ok(())
}

pub(super) fn bmsk(b: &mut Builder<'_>, oc: &mut Opcode<'_>) -> Result {
    let wrap = oc.need(&[("clamp", false), ("wrap", true)])?;
    oc.ty(WORD)?;
    binary(b, oc, Ty::B32, Op::Bmsk(wrap))
}

pub(super) fn szext(b: &mut Builder<'_>, oc: &mut Opcode<'_>) -> Result {
    let wrap = oc.need(&[("clamp", false), ("wrap", true)])?;
    let ty = oc.ty(&[Ty::U32, Ty::S32])?;
    let [d, x, y] = oc.operands()?;
    let (d, x, y) = (b.dst(d, ty)?, b.src(x, ty)?, b.src(y, Ty::B32)?);
    b.emit(Op::Szext(ty, wrap), d, &[x, y]);
    Ok(())
}
