//! Comparison and selection.

use isa::{Cmp, Combine, Dst, Op, Operand, Ty};
use warploom_isa as isa;

use super::opcode::Opcode;
use super::{Builder, Result};
use crate::resolved;

/// PTX's names of comparisons, and whether the name is for unsigned integers.
const COMPARISONS: &[(&str, (Cmp, bool))] = &[
    ("eq", (Cmp::Eq, false)),
    ("ne", (Cmp::Ne, false)),
    ("lt", (Cmp::Lt, false)),
    ("le", (Cmp::Le, false)),
    ("gt", (Cmp::Gt, false)),
    ("ge", (Cmp::Ge, false)),
    ("lo", (Cmp::Lt, true)),
    ("ls", (Cmp::Le, true)),
    ("hi", (Cmp::Gt, true)),
    ("hs", (Cmp::Ge, true)),
    ("equ", (Cmp::Equ, false)),
    ("neu", (Cmp::Neu, false)),
    ("ltu", (Cmp::Ltu, false)),
    ("leu", (Cmp::Leu, false)),
    ("gtu", (Cmp::Gtu, false)),
    ("geu", (Cmp::Geu, false)),
    ("num", (Cmp::Num, false)),
    ("nan", (Cmp::Nan, false)),
];

const COMBINES: &[(&str, Combine)] = &[("and", Combine::And), ("or", Combine::Or), ("xor", Combine::Xor)];

const COMPARABLE: &[Ty] = &[
    Ty::B16,
    Ty::B32,
    Ty::B64,
    Ty::U16,
    Ty::U32,
    Ty::U64,
    Ty::S16,
    Ty::S32,
    Ty::S64,
    Ty::F16,
    Ty::F16x2,
    Ty::BF16,
    Ty::BF16x2,
    Ty::F32,
    Ty::F64,
];

/// The comparison, after checking that the source type has it.
fn comparison(oc: &Opcode<'_>, (cmp, unsigned): (Cmp, bool), ty: Ty) -> Result<Cmp> {
    let ordering = matches!(cmp, Cmp::Lt | Cmp::Le | Cmp::Gt | Cmp::Ge);
    let with_nan = !ordering && !matches!(cmp, Cmp::Eq | Cmp::Ne);
    let is_bits = matches!(ty, Ty::B16 | Ty::B32 | Ty::B64);
    let wrong =
        if ty.is_float() { unsigned } else { with_nan || is_bits && ordering || unsigned && ty.is_signed() };
    if wrong {
        return Err(oc.error(format!("`{}`: that comparison does not exist for `.{ty}`", oc.name())));
    }
    Ok(cmp)
}

fn flush(b: &Builder<'_>, oc: &mut Opcode<'_>, ty: Ty) -> bool {
    matches!(ty, Ty::F32 | Ty::F16 | Ty::F16x2) && oc.has("ftz") || ty == Ty::F32 && b.flushes()
}

/// The sources of a comparison: a, b and, with a combination, c.
fn sources(
    b: &mut Builder<'_>,
    operands: &[resolved::Operand],
    ty: Ty,
    combine: Combine,
) -> Result<[Operand; 3]> {
    let (x, y) = (b.src(&operands[1], ty)?, b.src(&operands[2], ty)?);
    let c = if combine == Combine::None { Operand::None } else { b.pred(&operands[3])? };
    Ok([x, y, c])
}

/// `setp.cmp[.bool][.ftz].type p[|q], a, b[, {!}c]`
pub(super) fn setp(b: &mut Builder<'_>, oc: &mut Opcode<'_>) -> Result {
    let cmp = oc.need(COMPARISONS)?;
    let combine = oc.pick(COMBINES).unwrap_or(Combine::None);
    let ty = oc.ty(COMPARABLE)?;
    let cmp = comparison(oc, cmp, ty)?;
    let ftz = flush(b, oc, ty);
    let count = if combine == Combine::None { 3 } else { 4 };
    let operands = oc.operands_between(count, count)?;
    let (p, q) = b.pair(&operands[0]);
    let p = b.dst_pred(p)?;
    let q = match q {
        Some(q) => b.dst_pred(q)?,
        None => Dst::None,
    };
    let sources = sources(b, operands, ty, combine)?;
    b.emit2(Op::Setp { cmp, combine, ty, ftz }, p, q, &sources);
    Ok(())
}

/// `set.cmp[.bool][.ftz].dtype.stype d, a, b[, {!}c]`
pub(super) fn set(b: &mut Builder<'_>, oc: &mut Opcode<'_>) -> Result {
    let cmp = oc.need(COMPARISONS)?;
    let combine = oc.pick(COMBINES).unwrap_or(Combine::None);
    let to =
        oc.ty(&[Ty::U32, Ty::S32, Ty::F32, Ty::U16, Ty::S16, Ty::F16, Ty::BF16, Ty::F16x2, Ty::BF16x2])?;
    let src = oc.ty(COMPARABLE)?;
    let cmp = comparison(oc, cmp, src)?;
    let ftz = flush(b, oc, src);
    let pairs = matches!(src, Ty::F16x2 | Ty::BF16x2);
    let halves = matches!(src, Ty::F16 | Ty::BF16);
    let odd = match to {
        Ty::U16 | Ty::S16 => !halves,
        Ty::F32 => halves,
        Ty::F16 => src == Ty::BF16,
        _ => false,
    };
    let dst = match to {
        Ty::U32 | Ty::S32 if pairs => Ty::U16x2,
        Ty::F16x2 | Ty::BF16x2 if pairs => to,
        _ if odd || pairs || matches!(to, Ty::F16x2 | Ty::BF16x2) => {
            return Err(oc.error(format!("`set` does not compare `.{src}` into `.{to}`")));
        }
        _ => to,
    };
    let count = if combine == Combine::None { 3 } else { 4 };
    let operands = oc.operands_between(count, count)?;
    let d = b.dst(&operands[0], to)?;
    let sources = sources(b, operands, src, combine)?;
    b.emit(Op::Set { cmp, combine, src, dst, ftz }, d, &sources);
    Ok(())
}

const SELECTABLE: &[Ty] =
    &[Ty::B16, Ty::B32, Ty::B64, Ty::U16, Ty::U32, Ty::U64, Ty::S16, Ty::S32, Ty::S64, Ty::F32, Ty::F64];

pub(super) fn selp(b: &mut Builder<'_>, oc: &mut Opcode<'_>) -> Result {
    let ty = oc.ty(SELECTABLE)?;
    let [d, x, y, c] = oc.operands()?;
    let (d, x, y, c) = (b.dst(d, ty)?, b.src(x, ty)?, b.src(y, ty)?, b.pred(c)?);
    b.emit(Op::Selp(ty), d, &[x, y, c]);
    Ok(())
}

/// `slct.dtype.s32` and `slct[.ftz].dtype.f32`
pub(super) fn slct(b: &mut Builder<'_>, oc: &mut Opcode<'_>) -> Result {
    let ty = oc.ty(SELECTABLE)?;
    let by = oc.ty(&[Ty::S32, Ty::F32])?;
    let ftz = flush(b, oc, by);
    let [d, x, y, c] = oc.operands()?;
    let (d, x, y, c) = (b.dst(d, ty)?, b.src(x, ty)?, b.src(y, ty)?, b.src(c, by)?);
    b.emit(Op::Slct { ty, float: by == Ty::F32, ftz }, d, &[x, y, c]);
    Ok(())
}
