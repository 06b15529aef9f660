//! `cvt` to and from formats of 8 bits and fewer and `.tf32`, and with `.satfinite`.

use isa::{CvtNarrow, NarrowFloat, Op, Operand, Round, Ty};
use warploom_isa as isa;

use super::opcode::Opcode;
use super::{Builder, Result};

/// Narrow types of two numbers each, and the type of their register.
const PAIRS: &[(&str, (NarrowFloat, Ty))] = &[
    ("e4m3x2", (NarrowFloat::E4m3, Ty::B16)),
    ("e5m2x2", (NarrowFloat::E5m2, Ty::B16)),
    ("e2m3x2", (NarrowFloat::E2m3, Ty::B16)),
    ("e3m2x2", (NarrowFloat::E3m2, Ty::B16)),
    ("e2m1x2", (NarrowFloat::E2m1, Ty::B8)),
    ("ue8m0x2", (NarrowFloat::Ue8m0, Ty::B16)),
];

const HALVES: &[Ty] = &[Ty::F16, Ty::BF16, Ty::F16x2, Ty::BF16x2];

/// Whether a `cvt` belongs here. One with a word that is not modelled does not.
pub(super) fn concerns(oc: &Opcode<'_>) -> bool {
    let narrow = oc.peek("tf32") || PAIRS.iter().any(|(word, _)| oc.peek(word));
    let halves = HALVES.iter().any(|ty| oc.peek(ty.name()));
    !oc.peek("rs") && !oc.peek("scaled") && (narrow || oc.peek("satfinite") && halves)
}

/// The types of a conversion, and what else depends on them.
struct Form {
    format: NarrowFloat,
    narrows: bool,
    other: Ty,
    pair: bool,
    /// Types of the operands' registers.
    to: Ty,
    from: Ty,
    rounds: &'static [(&'static str, Round)],
    /// `.satfinite` must be there.
    needs_finite: bool,
    may_relu: bool,
}

const RN: &[(&str, Round)] = &[("rn", Round::Rn)];
const RN_RZ: &[(&str, Round)] = &[("rn", Round::Rn), ("rz", Round::Rz)];
const TF32: &[(&str, Round)] = &[("rna", Round::Rna), ("rn", Round::Rn), ("rz", Round::Rz)];
const POWERS: &[(&str, Round)] = &[("rz", Round::Rz), ("rp", Round::Rp)];

fn form(oc: &mut Opcode<'_>) -> Result<Form> {
    let narrowing = |format, pair, to, rounds| Form {
        format,
        narrows: true,
        other: Ty::F32,
        pair,
        to,
        from: Ty::F32,
        rounds,
        needs_finite: true,
        may_relu: true,
    };
    if oc.peek("tf32") {
        let form = Form { needs_finite: false, ..narrowing(NarrowFloat::Tf32, false, Ty::B32, TF32) };
        let order = oc.is_before("tf32", "f32");
        oc.has("tf32");
        oc.ty(&[Ty::F32])?;
        return if order { Ok(form) } else { Err(oc.error(format!("PTX has no `{}`", oc.name()))) };
    }
    let Some((word, (format, register))) = PAIRS.iter().find(|(word, _)| oc.has(word)) else {
        let to = oc.ty(HALVES)?;
        oc.ty(&[Ty::F32])?;
        let format = if matches!(to, Ty::F16 | Ty::F16x2) { NarrowFloat::F16 } else { NarrowFloat::Bf16 };
        let pair = matches!(to, Ty::F16x2 | Ty::BF16x2);
        return Ok(narrowing(format, pair, if pair { Ty::B32 } else { Ty::B16 }, RN_RZ));
    };
    let (format, register) = (*format, *register);
    let powers = format == NarrowFloat::Ue8m0;
    let other = oc.ty(&[Ty::F32, if powers { Ty::BF16x2 } else { Ty::F16x2 }])?;
    if !oc.is_before(word, other.name()) {
        if other == Ty::F32 {
            return Err(
                oc.error(format!("PTX has no `{}`: only pairs of halves come from `.{word}`", oc.name()))
            );
        }
        let form = narrowing(format, true, Ty::B32, RN);
        return Ok(Form {
            narrows: false,
            other,
            from: register,
            needs_finite: false,
            may_relu: !powers,
            ..form
        });
    }
    // 6- and 4-bit types come from single precision only.
    if other == Ty::F16x2 && !matches!(format, NarrowFloat::E4m3 | NarrowFloat::E5m2) {
        return Err(oc.error(format!("PTX has no `{}`: `.{word}` comes from `.f32`", oc.name())));
    }
    let form = narrowing(format, true, register, if powers { POWERS } else { RN });
    let from = if other == Ty::F32 { Ty::F32 } else { Ty::B32 };
    Ok(Form { other, from, needs_finite: !powers, may_relu: !powers, ..form })
}

/// `cvt.rnd[.satfinite][.relu].to.from d, a[, b]`
pub(super) fn cvt(b: &mut Builder<'_>, oc: &mut Opcode<'_>) -> Result {
    let form = form(oc)?;
    let round = oc.need(form.rounds)?;
    let finite = form.narrows && oc.has("satfinite");
    if form.needs_finite && !finite {
        return Err(oc.error(format!("`{}` needs `.satfinite`", oc.name())));
    }
    if form.format == NarrowFloat::Tf32 && round != Round::Rna {
        let (version, chip) = if finite { ((8, 6), "sm_100") } else { ((7, 8), "sm_90") };
        b.since(&format!("`{}`", oc.name()), version, chip)?;
    }
    // Rounding to nearest, ties away from zero, has no `.relu`.
    let relu = form.may_relu && round != Round::Rna && oc.has("relu");
    let Form { format, narrows, other, pair, to, from, .. } = form;
    let op = Op::CvtNarrow(CvtNarrow { format, narrows, other, pair, round, finite, relu });
    let count = if pair && other == Ty::F32 { 3 } else { 2 };
    let operands = oc.operands_between(count, count)?;
    let d = b.dst(&operands[0], to)?;
    let first = b.src(&operands[1], from)?;
    let second = match operands.get(2) {
        Some(second) => b.src(second, from)?,
        None => Operand::None,
    };
    b.emit(op, d, &[first, second]);
    Ok(())
}
