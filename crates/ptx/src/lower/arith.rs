//! Integer arithmetic, and the entry points of `add`, `sub`, `mul`, `mad`, `div`, `abs` and `neg` for all types.

use isa::{Clamp, Dst, Op, Operand, Part, Ty};
use warploom_isa as isa;

use super::opcode::Opcode;
use super::{Builder, Result, float};

pub(super) const INTS: &[Ty] = &[Ty::U16, Ty::U32, Ty::U64, Ty::S16, Ty::S32, Ty::S64];
const INTS_AND_PAIRS: &[Ty] = &[Ty::U16, Ty::U32, Ty::U64, Ty::S16, Ty::S32, Ty::S64, Ty::U16x2, Ty::S16x2];
const CARRY_INTS: &[Ty] = &[Ty::U32, Ty::S32, Ty::U64, Ty::S64];
const WORDS: &[Ty] = &[Ty::U32, Ty::S32];
const SIGNED: &[Ty] = &[Ty::S16, Ty::S32, Ty::S64];

const PARTS: &[(&str, Part)] = &[("lo", Part::Lo), ("hi", Part::Hi), ("wide", Part::Wide)];
const HALVES: &[(&str, Part)] = &[("lo", Part::Lo), ("hi", Part::Hi)];

/// Whether the opcode's type is floating-point, including `f32x2`.
fn is_float(oc: &mut Opcode<'_>) -> bool {
    oc.peek_type().map_or_else(|| oc.peek("f32x2"), Ty::is_float)
}

/// Takes `.sat`, if the type allows it.
fn saturation(oc: &mut Opcode<'_>, allowed: &[Ty]) -> Clamp {
    match oc.peek_type() {
        Some(ty) if allowed.contains(&ty) && oc.has("sat") => Clamp::Sat,
        _ => Clamp::None,
    }
}

/// `d, a` of one type.
pub(super) fn unary(b: &mut Builder<'_>, oc: &Opcode<'_>, ty: Ty, op: Op) -> Result {
    let [d, a] = oc.operands()?;
    let (d, a) = (b.dst(d, ty)?, b.src(a, ty)?);
    b.emit(op, d, &[a]);
    Ok(())
}

/// `d, a, b` of one type.
pub(super) fn binary(b: &mut Builder<'_>, oc: &Opcode<'_>, ty: Ty, op: Op) -> Result {
    let [d, x, y] = oc.operands()?;
    let (d, x, y) = (b.dst(d, ty)?, b.src(x, ty)?, b.src(y, ty)?);
    b.emit(op, d, &[x, y]);
    Ok(())
}

/// `d, a, b, c` of one type.
pub(super) fn ternary(b: &mut Builder<'_>, oc: &Opcode<'_>, ty: Ty, op: Op) -> Result {
    let [d, x, y, z] = oc.operands()?;
    let (d, x, y, z) = (b.dst(d, ty)?, b.src(x, ty)?, b.src(y, ty)?, b.src(z, ty)?);
    b.emit(op, d, &[x, y, z]);
    Ok(())
}

pub(super) fn add(b: &mut Builder<'_>, oc: &mut Opcode<'_>) -> Result {
    if is_float(oc) {
        return float::add(b, oc);
    }
    if oc.has("cc") {
        return carry_chain(b, oc, Op::AddCarry, false, true);
    }
    let clamp = saturation(oc, &[Ty::S32, Ty::U16x2, Ty::S16x2]);
    let ty = oc.ty(INTS_AND_PAIRS)?;
    binary(b, oc, ty, Op::IAdd(ty, clamp))
}

pub(super) fn sub(b: &mut Builder<'_>, oc: &mut Opcode<'_>) -> Result {
    if is_float(oc) {
        return float::sub(b, oc);
    }
    if oc.has("cc") {
        return carry_chain(b, oc, Op::SubBorrow, false, true);
    }
    let clamp = saturation(oc, &[Ty::S32]);
    let ty = oc.ty(INTS)?;
    binary(b, oc, ty, Op::ISub(ty, clamp))
}

pub(super) fn addc(b: &mut Builder<'_>, oc: &mut Opcode<'_>) -> Result {
    let out = oc.has("cc");
    carry_chain(b, oc, Op::AddCarry, true, out)
}

pub(super) fn subc(b: &mut Builder<'_>, oc: &mut Opcode<'_>) -> Result {
    let out = oc.has("cc");
    carry_chain(b, oc, Op::SubBorrow, true, out)
}

/// The unsigned type of the same width: a carry does not depend on signedness.
fn unsigned(ty: Ty) -> Ty {
    if ty.is_wide() { Ty::U64 } else { Ty::U32 }
}

fn carry_operands(b: &mut Builder<'_>, carry_in: bool, carry_out: bool) -> (Operand, Dst) {
    let carry = b.carry();
    (
        if carry_in { Operand::Pred(carry) } else { Operand::None },
        if carry_out { Dst::Pred(carry) } else { Dst::None },
    )
}

fn carry_chain(
    b: &mut Builder<'_>,
    oc: &mut Opcode<'_>,
    op: fn(Ty) -> Op,
    carry_in: bool,
    carry_out: bool,
) -> Result {
    let ty = oc.ty(CARRY_INTS)?;
    let [d, x, y] = oc.operands()?;
    let (d, x, y) = (b.dst(d, ty)?, b.src(x, ty)?, b.src(y, ty)?);
    let (carry, out) = carry_operands(b, carry_in, carry_out);
    b.emit2(op(unsigned(ty)), d, out, &[x, y, carry]);
    Ok(())
}

/// The result type of `.wide`: twice the width.
fn doubled(oc: &Opcode<'_>, ty: Ty) -> Result<Ty> {
    match ty {
        Ty::U16 => Ok(Ty::U32),
        Ty::S16 => Ok(Ty::S32),
        Ty::U32 => Ok(Ty::U64),
        Ty::S32 => Ok(Ty::S64),
        _ => Err(oc.error(format!("`{}` would be 128 bits wide: `.wide` takes 16 and 32 bits", oc.name()))),
    }
}

pub(super) fn mul(b: &mut Builder<'_>, oc: &mut Opcode<'_>) -> Result {
    if is_float(oc) {
        return float::mul(b, oc);
    }
    let part = oc.need(PARTS)?;
    let ty = oc.ty(INTS)?;
    let result = if part == Part::Wide { doubled(oc, ty)? } else { ty };
    let [d, x, y] = oc.operands()?;
    let (d, x, y) = (b.dst(d, result)?, b.src(x, ty)?, b.src(y, ty)?);
    b.emit(Op::IMul(ty, part), d, &[x, y]);
    Ok(())
}

pub(super) fn mad(b: &mut Builder<'_>, oc: &mut Opcode<'_>) -> Result {
    if is_float(oc) {
        return float::mad(b, oc);
    }
    if oc.has("cc") {
        return mad_carry(b, oc, false, true);
    }
    let part = oc.need(PARTS)?;
    let clamp = if part == Part::Hi { saturation(oc, &[Ty::S32]) } else { Clamp::None };
    let ty = oc.ty(INTS)?;
    let result = if part == Part::Wide { doubled(oc, ty)? } else { ty };
    let [d, x, y, z] = oc.operands()?;
    let (d, x, y, z) = (b.dst(d, result)?, b.src(x, ty)?, b.src(y, ty)?, b.src(z, result)?);
    b.emit(Op::IMad(ty, part, clamp), d, &[x, y, z]);
    Ok(())
}

pub(super) fn madc(b: &mut Builder<'_>, oc: &mut Opcode<'_>) -> Result {
    let out = oc.has("cc");
    mad_carry(b, oc, true, out)
}

fn mad_carry(b: &mut Builder<'_>, oc: &mut Opcode<'_>, carry_in: bool, carry_out: bool) -> Result {
    let part = oc.need(HALVES)?;
    let ty = oc.ty(CARRY_INTS)?;
    let [d, x, y, z] = oc.operands()?;
    let (d, x, y, z) = (b.dst(d, ty)?, b.src(x, ty)?, b.src(y, ty)?, b.src(z, ty)?);
    let (carry, out) = carry_operands(b, carry_in, carry_out);
    b.emit2(Op::MadCarry(ty, part), d, out, &[x, y, z, carry]);
    Ok(())
}

pub(super) fn mul24(b: &mut Builder<'_>, oc: &mut Opcode<'_>) -> Result {
    let part = oc.need(HALVES)?;
    let ty = oc.ty(WORDS)?;
    binary(b, oc, ty, Op::Mul24(ty, part))
}

pub(super) fn mad24(b: &mut Builder<'_>, oc: &mut Opcode<'_>) -> Result {
    let part = oc.need(HALVES)?;
    let clamp = if part == Part::Hi { saturation(oc, &[Ty::S32]) } else { Clamp::None };
    let ty = oc.ty(WORDS)?;
    ternary(b, oc, ty, Op::Mad24(ty, part, clamp))
}

pub(super) fn sad(b: &mut Builder<'_>, oc: &mut Opcode<'_>) -> Result {
    let ty = oc.ty(INTS)?;
    ternary(b, oc, ty, Op::Sad(ty))
}

pub(super) fn div(b: &mut Builder<'_>, oc: &mut Opcode<'_>) -> Result {
    if is_float(oc) {
        return float::div(b, oc);
    }
    let ty = oc.ty(INTS)?;
    binary(b, oc, ty, Op::IDiv(ty))
}

pub(super) fn rem(b: &mut Builder<'_>, oc: &mut Opcode<'_>) -> Result {
    let ty = oc.ty(INTS)?;
    binary(b, oc, ty, Op::IRem(ty))
}

pub(super) fn abs(b: &mut Builder<'_>, oc: &mut Opcode<'_>) -> Result {
    if is_float(oc) {
        return float::abs(b, oc);
    }
    let ty = oc.ty(SIGNED)?;
    unary(b, oc, ty, Op::IAbs(ty))
}

pub(super) fn neg(b: &mut Builder<'_>, oc: &mut Opcode<'_>) -> Result {
    if is_float(oc) {
        return float::neg(b, oc);
    }
    let ty = oc.ty(SIGNED)?;
    unary(b, oc, ty, Op::INeg(ty))
}

/// `dp4a.atype.btype d, a, b, c`
pub(super) fn dp4a(b: &mut Builder<'_>, oc: &mut Opcode<'_>) -> Result {
    let (x, y) = (oc.ty(WORDS)?, oc.ty(WORDS)?);
    ternary(b, oc, Ty::B32, Op::Dp4a(x.is_signed(), y.is_signed()))
}

/// `dp2a.mode.atype.btype d, a, b, c`
pub(super) fn dp2a(b: &mut Builder<'_>, oc: &mut Opcode<'_>) -> Result {
    let part = oc.need(HALVES)?;
    let (x, y) = (oc.ty(WORDS)?, oc.ty(WORDS)?);
    ternary(b, oc, Ty::B32, Op::Dp2a(x.is_signed(), y.is_signed(), part == Part::Hi))
}
