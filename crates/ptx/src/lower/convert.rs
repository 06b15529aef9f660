//! Conversions: of values (`cvt`) and of addresses (`cvta`, `isspacep`).

use isa::{Clamp, Cvt, Dst, Op, Operand, Round, Space, Ty};
use warploom_isa as isa;

use super::address::{self, Place, extend};
use super::narrow;
use super::opcode::Opcode;
use super::operand::{Fit, address_type};
use super::{Builder, Result, Slot};
use crate::resolved::{self, OperandKind};

const CONVERTIBLE: &[Ty] = &[
    Ty::U8,
    Ty::U16,
    Ty::U32,
    Ty::U64,
    Ty::S8,
    Ty::S16,
    Ty::S32,
    Ty::S64,
    Ty::F16,
    Ty::BF16,
    Ty::F32,
    Ty::F64,
];

/// Rounding to an integral value.
const INTEGRAL: &[(&str, Round)] =
    &[("rni", Round::Rn), ("rzi", Round::Rz), ("rmi", Round::Rm), ("rpi", Round::Rp)];
const ROUNDS: &[(&str, Round)] =
    &[("rn", Round::Rn), ("rz", Round::Rz), ("rm", Round::Rm), ("rp", Round::Rp)];

pub(super) fn cvt(b: &mut Builder<'_>, oc: &mut Opcode<'_>) -> Result {
    if oc.has("pack") {
        return cvt_pack(b, oc);
    }
    if narrow::concerns(oc) {
        return narrow::cvt(b, oc);
    }
    if oc.peek("f16x2") || oc.peek("bf16x2") {
        return cvt_pair(b, oc);
    }
    let integral = oc.pick(INTEGRAL);
    let round = oc.pick(ROUNDS);
    let to = oc.ty(CONVERTIBLE)?;
    let from = oc.ty(CONVERTIBLE)?;
    let touches_f32 = to == Ty::F32 || from == Ty::F32;
    let ftz = touches_f32 && (oc.has("ftz") || b.flushes());
    let clamp = match to {
        Ty::F16 | Ty::BF16 if from == Ty::F32 && oc.has("relu") => Clamp::Relu,
        _ if oc.has("sat") => Clamp::Sat,
        _ => Clamp::None,
    };
    let [d, a] = oc.operands()?;
    let same_size = to.bits() == from.bits();
    let round = match (from.is_float(), to.is_float()) {
        (false, false) => match integral.or(round) {
            None => Round::Rn,
            Some(_) => return Err(oc.error("a conversion between integers does not round")),
        },
        (true, false) => match (integral, round) {
            (Some(round), None) => round,
            _ => return Err(oc.error(format!("`{}` needs `.rni`, `.rzi`, `.rmi` or `.rpi`", oc.name()))),
        },
        (true, true) if same_size && to == from => match (integral, round) {
            (Some(round), None) => round,
            (None, None) => Round::Rn,
            _ => return Err(oc.error(format!("`{}` changes no precision: it has no rounding", oc.name()))),
        },
        (true, true) if to.bits() > from.bits() => match (integral, round) {
            (None, None) => Round::Rn,
            // Allowed, but without effect.
            (None, Some(round)) if from == Ty::BF16 => round,
            _ => return Err(oc.error(format!("`{}` is exact: it has no rounding", oc.name()))),
        },
        _ => match (integral, round) {
            (None, Some(round)) => round,
            // Between the two kinds of halves, and in PTX 1.x, rounding to nearest may be omitted.
            (None, None) if same_size && from.is_float() || b.cx.before(1, 5) => Round::Rn,
            _ => {
                return Err(
                    oc.error(format!("`{}` needs a rounding: `.rn`, `.rz`, `.rm` or `.rp`", oc.name()))
                );
            }
        },
    };
    let integral = integral.is_some() && from.is_float() && to.is_float();
    convert(b, d, a, Cvt { to, from, round, integral, ftz, clamp })
}

/// Emits a conversion. If the destination is wider than the type, the result is extended to its width.
fn convert(b: &mut Builder<'_>, d: &resolved::Operand, a: &resolved::Operand, cvt: Cvt) -> Result {
    let OperandKind::Reg(reg) = d.kind else {
        b.dst(d, cvt.to)?;
        return Ok(());
    };
    let (dst, declared) = b.register(d, reg, cvt.to, Fit::Wider)?;
    let a = b.src_or_wider(a, cvt.from)?;
    if declared.bits() <= cvt.to.bits() {
        b.emit(Op::Cvt(cvt), Dst::Reg(dst), &[a]);
        return Ok(());
    }
    let wide = integer(declared.bits(), cvt.to.is_signed());
    let truncates = !cvt.from.is_float() && cvt.clamp == Clamp::None;
    if truncates && cvt.from.bits() >= cvt.to.bits() {
        // Only the low bits count: one extension from the narrow type is enough.
        b.emit(Op::Cvt(extend(cvt.to, wide)), Dst::Reg(dst), &[a]);
    } else {
        let narrow = b.fresh_for(cvt.to);
        b.emit(Op::Cvt(cvt), Dst::Reg(narrow), &[a]);
        // The bits of a floating-point number are followed by zeros.
        let held = if cvt.to.is_float() { integer(cvt.to.bits(), false) } else { cvt.to };
        b.emit(Op::Cvt(extend(held, wide)), Dst::Reg(dst), &[Operand::Reg(narrow)]);
    }
    Ok(())
}

fn integer(bits: u32, signed: bool) -> Ty {
    match (bits, signed) {
        (64, true) => Ty::S64,
        (64, false) => Ty::U64,
        (32, true) => Ty::S32,
        (32, false) => Ty::U32,
        (_, true) => Ty::S16,
        (_, false) => Ty::U16,
    }
}

/// `cvt.rnd[.relu].f16x2.f32 d, a, b`
fn cvt_pair(b: &mut Builder<'_>, oc: &mut Opcode<'_>) -> Result {
    let round = oc.need(&[("rn", Round::Rn), ("rz", Round::Rz)])?;
    let clamp = if oc.has("relu") { Clamp::Relu } else { Clamp::None };
    let to = oc.ty(&[Ty::F16x2, Ty::BF16x2])?;
    let from = oc.ty(&[Ty::F32])?;
    let [d, high, low] = oc.operands()?;
    let (d, high, low) = (b.dst(d, to)?, b.src(high, from)?, b.src(low, from)?);
    b.emit(Op::CvtPair(Cvt { to, from, round, integral: false, ftz: false, clamp }), d, &[high, low]);
    Ok(())
}

/// `cvt.pack.sat.u16.s32 d, a, b` and `cvt.pack.sat.u8.s32.b32 d, a, b, c`
fn cvt_pack(b: &mut Builder<'_>, oc: &mut Opcode<'_>) -> Result {
    if let Some(word) = ["u4", "s4"].into_iter().find(|word| oc.peek(word)) {
        return Err(oc.not_modelled(format!("`.{word}` of `cvt` is not modelled")));
    }
    oc.need(&[("sat", ())])?;
    let to = oc.ty(&[Ty::U16, Ty::S16, Ty::U8, Ty::S8])?;
    oc.ty(&[Ty::S32])?;
    let with_c = oc.has("b32");
    if with_c != (to.bits() == 8) {
        return Err(oc.error(format!(
            "`cvt.pack` to `.{to}` {} a third source",
            if with_c { "has no" } else { "needs" }
        )));
    }
    let count = if with_c { 4 } else { 3 };
    let operands = oc.operands_between(count, count)?;
    let (d, x, y) =
        (b.dst(&operands[0], Ty::B32)?, b.src(&operands[1], Ty::S32)?, b.src(&operands[2], Ty::S32)?);
    let c = if with_c { b.src(&operands[3], Ty::B32)? } else { Operand::None };
    b.emit(Op::CvtPack(to), d, &[x, y, c]);
    Ok(())
}

/// The state space of an address instruction, which must be stated.
fn window(b: &Builder<'_>, oc: &mut Opcode<'_>) -> Result<Space> {
    match address::place(oc) {
        Some(place) => Ok(b.space_of(place)),
        None => {
            oc.leftover()?;
            Err(oc.error(format!("`{}` needs a state space", oc.name())))
        }
    }
}

/// `cvta.space.u64 d, a` and `cvta.to.space.u64 d, a`
pub(super) fn cvta(b: &mut Builder<'_>, oc: &mut Opcode<'_>) -> Result {
    let to = oc.has("to");
    let ty = oc.ty(&[Ty::U32, Ty::U64])?;
    let space = window(b, oc)?;
    let [d, a] = oc.operands()?;
    let dst = b.dst(d, ty)?;
    // A parameter of a device function, or of a call, is in the frame.
    let space = match a.kind {
        OperandKind::Frame(..) => Space::Local,
        _ => space,
    };
    let a = b.src(a, ty)?;
    b.emit(if to { Op::FromGeneric(space, ty) } else { Op::ToGeneric(space, ty) }, dst, &[a]);
    Ok(())
}

pub(super) fn isspacep(b: &mut Builder<'_>, oc: &mut Opcode<'_>) -> Result {
    let space = match address::place(oc) {
        Some(Place::FunctionParam) | None => {
            oc.leftover()?;
            return Err(oc.error(format!("`{}` needs a state space", oc.name())));
        }
        Some(Place::Cluster) => Space::Cluster,
        Some(place) => b.space_of(place),
    };
    let [p, a] = oc.operands()?;
    let bits = match a.kind {
        OperandKind::Reg(r) => match b.slots[r.0 as usize] {
            Slot::Reg(_, declared) => declared.bits(),
            _ => 64,
        },
        _ => u32::from(b.cx.module.address_bits),
    };
    let ty = address_type(bits);
    let (p, a) = (b.dst_pred(p)?, b.src(a, ty)?);
    b.emit(Op::IsSpace(space, ty), p, &[a]);
    Ok(())
}
