//! `mov` in all its forms (registers, special registers, packing and unpacking), and `prmt`.

use isa::{Dst, Op, Operand, PrmtMode, Reg, Ty, Width};
use warploom_isa as isa;

use super::arith::ternary;
use super::opcode::Opcode;
use super::quad;
use super::special;
use super::{Builder, Result};
use crate::resolved::{self, OperandKind};

const MOVABLE: &[Ty] = &[
    Ty::B8,
    Ty::B16,
    Ty::B32,
    Ty::B64,
    Ty::U16,
    Ty::U32,
    Ty::U64,
    Ty::S16,
    Ty::S32,
    Ty::S64,
    Ty::F32,
    Ty::F64,
];

pub(super) fn mov(b: &mut Builder<'_>, oc: &mut Opcode<'_>) -> Result {
    if oc.has("pred") {
        let [d, a] = oc.operands()?;
        let (d, a) = (b.dst_pred(d)?, pred_source(b, a)?);
        b.emit(Op::MovPred, d, &[a]);
        return Ok(());
    }
    let vector = oc.pick(&[("v4", 4), ("v2", 2)]);
    if vector.is_none() && oc.has("b128") {
        return quad::mov(b, oc);
    }
    let ty = oc.ty(MOVABLE)?;
    let [d, a] = oc.operands()?;
    if let Some(count) = vector {
        return mov_vector(b, d, a, ty, count);
    }
    match (&d.kind, &a.kind) {
        (OperandKind::Vector(parts), _) => unpack(b, d, parts, a, ty),
        (_, OperandKind::Vector(parts)) => pack(b, d, a, parts, ty),
        _ => mov_scalar(b, d, a, ty),
    }
}

/// A predicate or a constant. `mov` takes constants directly; other instructions copy them to a predicate first.
fn pred_source(b: &mut Builder<'_>, a: &resolved::Operand) -> Result<Operand> {
    match a.kind {
        OperandKind::Int(value) => Ok(Operand::Imm(u32::from(value != 0))),
        OperandKind::Special(ref name) if name == special::EXPLICIT_CLUSTER => Ok(b.explicit_cluster()),
        _ => b.pred(a),
    }
}

fn width_of(ty: Ty) -> Ty {
    if ty.is_wide() { Ty::B64 } else { Ty::B32 }
}

fn mov_scalar(b: &mut Builder<'_>, d: &resolved::Operand, a: &resolved::Operand, ty: Ty) -> Result {
    let dst = b.dst(d, ty)?;
    match &a.kind {
        OperandKind::Special(name) if !ty.is_float() => {
            let special = b.special_register(a, name)?;
            b.read_special(special, dst, ty);
        }
        OperandKind::Frame(id, offset) if !ty.is_float() && ty.bits() >= 32 && !b.is_variadic(*id) => {
            let at = b.displaced(a, b.frame[id.0 as usize], *offset)?;
            if at == 0 {
                b.emit(Op::Mov(width_of(ty)), dst, &[Operand::Frame]);
            } else {
                let offset = if ty.is_wide() { b.imm64(at as u64) } else { Operand::Imm(at as u32) };
                let ty = if ty.is_wide() { Ty::U64 } else { Ty::U32 };
                b.emit(Op::IAdd(ty, isa::Clamp::None), dst, &[Operand::Frame, offset]);
            }
        }
        _ => {
            let a = b.src(a, ty)?;
            b.emit(Op::Mov(width_of(ty)), dst, &[a]);
        }
    }
    Ok(())
}

/// `mov.v4.u32 {…}, %tid` and moves from one list of registers to another.
fn mov_vector(
    b: &mut Builder<'_>,
    d: &resolved::Operand,
    a: &resolved::Operand,
    ty: Ty,
    count: usize,
) -> Result {
    let OperandKind::Vector(parts) = &d.kind else {
        return Err(b.at(d, format!("`{}` takes a list of {count} registers here", b.name())));
    };
    if parts.len() != count {
        return Err(b.at(d, format!("`{}` takes a list of {count} registers here", b.name())));
    }
    match &a.kind {
        OperandKind::Special(name) => {
            let Some(components) = special::vector(name) else {
                return Err(b.at(a, format!("`{name}` is not a vector")));
            };
            for (part, component) in parts.iter().zip(components) {
                if let Dst::Reg(_) = b.dst_or_sink(part, ty)? {
                    let dst = b.dst(part, ty)?;
                    b.read_special(component, dst, ty);
                }
            }
        }
        OperandKind::Vector(sources) if sources.len() == count => {
            // Copy all sources before the first result is written: the lists may share registers.
            let sources = sources.iter().map(|s| b.src(s, ty)).collect::<Result<Vec<_>>>()?;
            let width = Width::of(ty);
            let copies: Vec<_> =
                sources.iter().map(|s| b.value(Op::Mov(width_of(ty)), width, &[*s])).collect();
            for (part, copy) in parts.iter().zip(copies) {
                let dst = b.dst_or_sink(part, ty)?;
                if dst != Dst::None {
                    b.emit(Op::Mov(width_of(ty)), dst, &[copy]);
                }
            }
        }
        _ => return Err(b.at(a, format!("`{}` takes a vector here", b.name()))),
    }
    Ok(())
}

/// The type of one of `count` equal parts of a value.
fn piece(b: &Builder<'_>, op: &resolved::Operand, ty: Ty, count: usize) -> Result<Ty> {
    // Only plain bits have pieces.
    let bits = match count {
        2 | 4 if matches!(ty, Ty::B16 | Ty::B32 | Ty::B64) => ty.bits() / count as u32,
        _ => 0,
    };
    match bits {
        8 => Ok(Ty::B8),
        16 => Ok(Ty::B16),
        32 => Ok(Ty::B32),
        _ => Err(b.at(op, format!("`{}` does not split into {count} pieces", b.name()))),
    }
}

/// The register of a part. An 8-bit part may be in a wider register.
pub(super) fn piece_dst(b: &mut Builder<'_>, op: &resolved::Operand, ty: Ty) -> Result<Option<Reg>> {
    match op.kind {
        OperandKind::Reg(r) if ty == Ty::B8 => Ok(Some(b.register(op, r, ty, super::operand::Fit::Wider)?.0)),
        _ => match b.dst_or_sink(op, ty)? {
            Dst::Reg(reg) => Ok(Some(reg)),
            _ => Ok(None),
        },
    }
}

/// `mov.b64 {a, b}, c`
fn unpack(
    b: &mut Builder<'_>,
    d: &resolved::Operand,
    parts: &[resolved::Operand],
    a: &resolved::Operand,
    ty: Ty,
) -> Result {
    let each = piece(b, d, ty, parts.len())?;
    let whole = b.src(a, ty)?;
    let per_word = if ty.is_wide() { parts.len() / 2 } else { parts.len() };
    for (word, parts) in parts.chunks(per_word).enumerate() {
        // Parts are narrower than the whole, so writing one cannot overwrite the source of the others.
        let mut source = if ty.is_wide() { None } else { Some(whole) };
        for (within, part) in parts.iter().enumerate() {
            let Some(reg) = piece_dst(b, part, each)? else { continue };
            if each == Ty::B32 {
                b.emit(Op::Unpack64(word as u8), Dst::Reg(reg), &[whole]);
                continue;
            }
            let from = match source {
                Some(from) => from,
                None => b.value(Op::Unpack64(word as u8), Width::One, &[whole]),
            };
            source = Some(from);
            let op = if each == Ty::B16 { Op::Unpack32(within as u8) } else { Op::UnpackByte(within as u8) };
            b.emit(op, Dst::Reg(reg), &[from]);
        }
    }
    Ok(())
}

/// `mov.b64 d, {a, b}`
fn pack(
    b: &mut Builder<'_>,
    d: &resolved::Operand,
    a: &resolved::Operand,
    parts: &[resolved::Operand],
    ty: Ty,
) -> Result {
    let each = piece(b, a, ty, parts.len())?;
    let dst = b.dst(d, ty)?;
    let mut values = Vec::with_capacity(parts.len());
    for part in parts {
        let value = if each == Ty::B8 { b.src_or_wider(part, each)? } else { b.src(part, each)? };
        values.push(value);
    }
    match (ty.bits(), each) {
        (64, Ty::B32) => b.emit(Op::Pack64, dst, &values),
        (64, _) => {
            let low = b.value(Op::Pack32x16, Width::One, &values[..2]);
            let high = b.value(Op::Pack32x16, Width::One, &values[2..]);
            b.emit(Op::Pack64, dst, &[low, high]);
        }
        (32, Ty::B16) => b.emit(Op::Pack32x16, dst, &values),
        (32, _) => {
            let low = b.value(Op::Prmt(PrmtMode::Index), Width::One, &[values[0], values[1], LOW_BYTES]);
            let high = b.value(Op::Prmt(PrmtMode::Index), Width::One, &[values[2], values[3], LOW_BYTES]);
            b.emit(Op::Pack32x16, dst, &[low, high]);
        }
        _ => b.emit(Op::Prmt(PrmtMode::Index), dst, &[values[0], values[1], LOW_BYTES]),
    }
    Ok(())
}

/// Byte 0 of the first word, byte 0 of the second.
const LOW_BYTES: Operand = Operand::Imm(0x0040);

pub(super) fn prmt(b: &mut Builder<'_>, oc: &mut Opcode<'_>) -> Result {
    let mode = oc
        .pick(&[
            ("f4e", PrmtMode::F4e),
            ("b4e", PrmtMode::B4e),
            ("rc8", PrmtMode::Rc8),
            ("ecl", PrmtMode::Ecl),
            ("ecr", PrmtMode::Ecr),
            ("rc16", PrmtMode::Rc16),
        ])
        .unwrap_or(PrmtMode::Index);
    oc.ty(&[Ty::B32])?;
    ternary(b, oc, Ty::B32, Op::Prmt(mode))
}
