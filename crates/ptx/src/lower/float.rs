//! Floating-point arithmetic in all precisions.

use isa::{Approx, Clamp, FloatMode, Op, Round, TestKind, Ty, Width};
use warploom_isa as isa;

use super::address::extend;
use super::arith::{binary, ternary, unary};
use super::opcode::Opcode;
use super::{Builder, Result};

const FLOATS: &[Ty] = &[Ty::F16, Ty::F16x2, Ty::BF16, Ty::BF16x2, Ty::F32, Ty::F64];
const SINGLE: &[Ty] = &[Ty::F32];
const F32_F64: &[Ty] = &[Ty::F32, Ty::F64];
const ROUNDS: &[(&str, Round)] =
    &[("rn", Round::Rn), ("rz", Round::Rz), ("rm", Round::Rm), ("rp", Round::Rp)];
const NEAREST: &[(&str, Round)] = &[("rn", Round::Rn)];

/// The roundings that a type has.
fn rounds(ty: Option<Ty>) -> &'static [(&'static str, Round)] {
    match ty {
        Some(Ty::F32 | Ty::F64) | None => ROUNDS,
        _ => NEAREST,
    }
}

/// Takes `.ftz`, if the type has it. Chips before sm_20 always flush f32.
fn flush(b: &Builder<'_>, oc: &mut Opcode<'_>, types: &[Ty]) -> bool {
    match oc.peek_type() {
        Some(ty) if types.contains(&ty) => oc.has("ftz") || ty == Ty::F32 && b.flushes(),
        _ => false,
    }
}

impl Builder<'_> {
    /// Whether the target flushes all f32 subnormals.
    pub(super) fn flushes(&self) -> bool {
        (1..20).contains(&self.cx.target.sm)
    }

    /// Whether opcodes may omit `.approx` and rounding, as before PTX 1.5.
    fn lenient(&self) -> bool {
        self.cx.before(1, 5)
    }
}

/// Rounding (to nearest unless stated), flushing and saturation of a plain operation.
fn mode(b: &Builder<'_>, oc: &mut Opcode<'_>) -> FloatMode {
    let ty = oc.peek_type();
    let round = oc.pick(rounds(ty)).unwrap_or(Round::Rn);
    let ftz = flush(b, oc, &[Ty::F32, Ty::F16, Ty::F16x2]);
    let clamp = match ty {
        Some(Ty::F32 | Ty::F16 | Ty::F16x2) if oc.has("sat") => Clamp::Sat,
        _ => Clamp::None,
    };
    FloatMode { round, ftz, clamp }
}

pub(super) fn add(b: &mut Builder<'_>, oc: &mut Opcode<'_>) -> Result {
    if oc.has("f32x2") {
        return packed::<3>(b, oc, Op::FAdd);
    }
    let mode = mode(b, oc);
    let ty = oc.ty(FLOATS)?;
    if let Some(narrow) = narrow_inputs(oc, ty) {
        return mixed(b, oc, narrow, &[true, false], Op::FAdd(ty, mode));
    }
    binary(b, oc, ty, Op::FAdd(ty, mode))
}

/// The type of inputs narrower than the result: `add.f32.f16 d, a, c`.
fn narrow_inputs(oc: &mut Opcode<'_>, ty: Ty) -> Option<Ty> {
    if ty == Ty::F32 { oc.pick(&[("f16", Ty::F16), ("bf16", Ty::BF16)]) } else { None }
}

/// Widens the narrow inputs, which is exact, and computes in f32.
fn mixed(b: &mut Builder<'_>, oc: &Opcode<'_>, narrow: Ty, which: &[bool], op: Op) -> Result {
    let count = which.len() + 1;
    let operands = oc.operands_between(count, count)?;
    let d = b.dst(&operands[0], Ty::F32)?;
    let mut sources = Vec::with_capacity(which.len());
    for (operand, is_narrow) in operands[1..].iter().zip(which) {
        sources.push(if *is_narrow {
            let a = b.src(operand, narrow)?;
            b.value(Op::Cvt(extend(narrow, Ty::F32)), Width::One, &[a])
        } else {
            b.src(operand, Ty::F32)?
        });
    }
    b.emit(op, d, &sources);
    Ok(())
}

pub(super) fn sub(b: &mut Builder<'_>, oc: &mut Opcode<'_>) -> Result {
    if oc.has("f32x2") {
        return packed::<3>(b, oc, Op::FSub);
    }
    let mode = mode(b, oc);
    let ty = oc.ty(FLOATS)?;
    if let Some(narrow) = narrow_inputs(oc, ty) {
        return mixed(b, oc, narrow, &[true, false], Op::FSub(ty, mode));
    }
    binary(b, oc, ty, Op::FSub(ty, mode))
}

pub(super) fn mul(b: &mut Builder<'_>, oc: &mut Opcode<'_>) -> Result {
    if oc.has("f32x2") {
        return packed::<3>(b, oc, Op::FMul);
    }
    let mode = mode(b, oc);
    let ty = oc.ty(FLOATS)?;
    binary(b, oc, ty, Op::FMul(ty, mode))
}

pub(super) fn fma(b: &mut Builder<'_>, oc: &mut Opcode<'_>) -> Result {
    if oc.has("f32x2") {
        return packed::<4>(b, oc, Op::FFma);
    }
    let ty = oc.peek_type();
    let round = oc.need(rounds(ty))?;
    let mut mode = FloatMode { round, ..mode(b, oc) };
    if matches!(ty, Some(Ty::F16 | Ty::F16x2 | Ty::BF16 | Ty::BF16x2)) && oc.has("relu") {
        mode.clamp = Clamp::Relu;
    }
    let ty = oc.ty(FLOATS)?;
    if let Some(narrow) = narrow_inputs(oc, ty) {
        return mixed(b, oc, narrow, &[true, true, false], Op::FFma(ty, mode));
    }
    ternary(b, oc, ty, Op::FFma(ty, mode))
}

/// `mad.f32` has been `fma` since sm_20.
pub(super) fn mad(b: &mut Builder<'_>, oc: &mut Opcode<'_>) -> Result {
    let round = if b.cx.target.sm < 20 { oc.pick(ROUNDS).unwrap_or(Round::Rn) } else { oc.need(ROUNDS)? };
    let mode = FloatMode { round, ..mode(b, oc) };
    let ty = oc.ty(F32_F64)?;
    ternary(b, oc, ty, Op::FFma(ty, mode))
}

/// Two f32 in one 64-bit register, computed separately.
fn packed<const N: usize>(b: &mut Builder<'_>, oc: &mut Opcode<'_>, op: fn(Ty, FloatMode) -> Op) -> Result {
    let round = oc.pick(ROUNDS).unwrap_or(Round::Rn);
    let ftz = oc.has("ftz");
    let mode = FloatMode { round, ftz, clamp: Clamp::None };
    let operands: &[_; N] = oc.operands()?;
    let d = b.dst(&operands[0], Ty::B64)?;
    let sources = operands[1..].iter().map(|o| b.src(o, Ty::B64)).collect::<Result<Vec<_>>>()?;
    let halves = [0, 1].map(|half| {
        let parts: Vec<_> = sources.iter().map(|s| b.value(Op::Unpack64(half), Width::One, &[*s])).collect();
        b.value(op(Ty::F32, mode), Width::One, &parts)
    });
    b.emit(Op::Pack64, d, &halves);
    Ok(())
}

pub(super) fn div(b: &mut Builder<'_>, oc: &mut Opcode<'_>) -> Result {
    let ty = oc.peek_type();
    let ftz = flush(b, oc, SINGLE);
    if let Some(full) = oc.pick(&[("approx", false), ("full", true)]) {
        let ty = oc.ty(SINGLE)?;
        return binary(b, oc, ty, Op::FDivApprox { full, ftz });
    }
    let round = match oc.pick(ROUNDS) {
        Some(round) => round,
        None if b.lenient() && ty == Some(Ty::F32) => {
            oc.ty(SINGLE)?;
            return binary(b, oc, Ty::F32, Op::FDivApprox { full: false, ftz: true });
        }
        None if b.lenient() => Round::Rn,
        None => return Err(missing(oc, "`.approx`, `.full` or a rounding")),
    };
    let ty = oc.ty(F32_F64)?;
    binary(b, oc, ty, Op::FDiv(ty, FloatMode { round, ftz, clamp: Clamp::None }))
}

fn missing(oc: &Opcode<'_>, what: &str) -> crate::diag::Diagnostic {
    let error = oc.error(format!("`{}` needs {what}", oc.name()));
    error.help("only texts before PTX 1.5 may leave it out")
}

/// `rcp` and `sqrt`: approximate or correctly rounded.
fn rounded_or_approx(b: &mut Builder<'_>, oc: &mut Opcode<'_>, function: Approx, approx: &[Ty]) -> Result {
    let ty = oc.peek_type();
    let ftz = flush(b, oc, SINGLE);
    let approximate = oc.has("approx");
    let round = if approximate { None } else { oc.pick(ROUNDS) };
    match round {
        Some(round) => {
            let ty = oc.ty(F32_F64)?;
            unary(b, oc, ty, Op::FRounded(function, ty, FloatMode { round, ftz, clamp: Clamp::None }))
        }
        None if approximate => {
            let ty = oc.ty(approx)?;
            let ftz = if ty == Ty::F64 { oc.need(&[("ftz", true)])? } else { ftz };
            unary(b, oc, ty, Op::FApprox(function, ty, ftz))
        }
        None if b.lenient() && ty == Some(Ty::F64) => {
            oc.ty(F32_F64)?;
            unary(b, oc, Ty::F64, Op::FRounded(function, Ty::F64, FloatMode::RN))
        }
        None if b.lenient() => {
            let ty = oc.ty(SINGLE)?;
            unary(b, oc, ty, Op::FApprox(function, ty, true))
        }
        None => Err(missing(oc, "`.approx` or a rounding")),
    }
}

pub(super) fn rcp(b: &mut Builder<'_>, oc: &mut Opcode<'_>) -> Result {
    rounded_or_approx(b, oc, Approx::Rcp, F32_F64)
}

pub(super) fn sqrt(b: &mut Builder<'_>, oc: &mut Opcode<'_>) -> Result {
    rounded_or_approx(b, oc, Approx::Sqrt, SINGLE)
}

/// A function that exists only as an approximation.
fn approx(b: &mut Builder<'_>, oc: &mut Opcode<'_>, function: Approx, types: &[Ty]) -> Result {
    let stated = oc.has("approx");
    if !stated && !b.lenient() {
        return Err(missing(oc, "`.approx`"));
    }
    let ftz = match (function, oc.peek_type()) {
        (Approx::Tanh, _) | (_, Some(Ty::F16 | Ty::F16x2)) => false,
        (_, Some(Ty::BF16 | Ty::BF16x2)) => oc.need(&[("ftz", true)])?,
        (_, Some(Ty::F64)) => oc.has("ftz"),
        _ => flush(b, oc, SINGLE),
    };
    let ty = oc.ty(types)?;
    unary(b, oc, ty, Op::FApprox(function, ty, ftz || !stated))
}

pub(super) fn rsqrt(b: &mut Builder<'_>, oc: &mut Opcode<'_>) -> Result {
    approx(b, oc, Approx::Rsqrt, F32_F64)
}

pub(super) fn sin(b: &mut Builder<'_>, oc: &mut Opcode<'_>) -> Result {
    approx(b, oc, Approx::Sin, SINGLE)
}

pub(super) fn cos(b: &mut Builder<'_>, oc: &mut Opcode<'_>) -> Result {
    approx(b, oc, Approx::Cos, SINGLE)
}

pub(super) fn lg2(b: &mut Builder<'_>, oc: &mut Opcode<'_>) -> Result {
    approx(b, oc, Approx::Lg2, SINGLE)
}

pub(super) fn ex2(b: &mut Builder<'_>, oc: &mut Opcode<'_>) -> Result {
    approx(b, oc, Approx::Ex2, &[Ty::F32, Ty::F16, Ty::F16x2, Ty::BF16, Ty::BF16x2])
}

pub(super) fn tanh(b: &mut Builder<'_>, oc: &mut Opcode<'_>) -> Result {
    approx(b, oc, Approx::Tanh, &[Ty::F32, Ty::F16, Ty::F16x2, Ty::BF16, Ty::BF16x2])
}

pub(super) fn abs(b: &mut Builder<'_>, oc: &mut Opcode<'_>) -> Result {
    let ftz = flush(b, oc, &[Ty::F32, Ty::F16, Ty::F16x2]);
    let ty = oc.ty(FLOATS)?;
    unary(b, oc, ty, Op::FAbs(ty, ftz))
}

pub(super) fn neg(b: &mut Builder<'_>, oc: &mut Opcode<'_>) -> Result {
    let ftz = flush(b, oc, &[Ty::F32, Ty::F16, Ty::F16x2]);
    let ty = oc.ty(FLOATS)?;
    unary(b, oc, ty, Op::FNeg(ty, ftz))
}

pub(super) fn testp(b: &mut Builder<'_>, oc: &mut Opcode<'_>) -> Result {
    let kind = oc.need(&[
        ("finite", TestKind::Finite),
        ("infinite", TestKind::Infinite),
        ("number", TestKind::Number),
        ("notanumber", TestKind::NotANumber),
        ("normal", TestKind::Normal),
        ("subnormal", TestKind::Subnormal),
    ])?;
    let ty = oc.ty(F32_F64)?;
    let [p, a] = oc.operands()?;
    let (p, a) = (b.dst_pred(p)?, b.src(a, ty)?);
    b.emit(Op::Testp(kind, ty), p, &[a]);
    Ok(())
}

pub(super) fn copysign(b: &mut Builder<'_>, oc: &mut Opcode<'_>) -> Result {
    let ty = oc.ty(F32_F64)?;
    binary(b, oc, ty, Op::Copysign(ty))
}
