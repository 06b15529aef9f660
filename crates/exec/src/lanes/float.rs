//! Correctly rounded floating-point arithmetic, sign operations, `min` and `max`.

use warploom_isa::{Approx, Clamp, FloatMode, MinMax, Op, Round, Ty};

use crate::lanes::exact::{Exact, rounded, rounded_f64};
use crate::lanes::format::{F32_NAN, F64_QUIET, Format, f64_nan};
use crate::lanes::half;
use crate::lanes::vector::{
    Filled, Inputs, Source, blend, halves2, lanes, map1, map2, map3, ones, ones64, wide, word,
};

const F32_SIGN: u32 = 0x8000_0000;
const F32_INFINITY: u32 = 0x7f80_0000;
/// The smallest normal number.
const F32_SMALLEST: u32 = 0x0080_0000;
const F64_SIGN: u64 = 1 << 63;

#[inline(always)]
pub(super) fn compute<const N: usize>(inputs: Inputs<'_, N>) -> Filled<N> {
    let Inputs { inst, regs, a, b, c } = inputs;
    let again = || Inputs { inst, regs, a, b, c };
    match inst.op {
        Op::FAdd(ty, mode) => arithmetic(Exact::Add, ty, mode, again()),
        Op::FSub(ty, mode) => arithmetic(Exact::Sub, ty, mode, again()),
        Op::FMul(ty, mode) => arithmetic(Exact::Mul, ty, mode, again()),
        Op::FFma(ty, mode) => arithmetic(Exact::Fma, ty, mode, again()),
        Op::FDiv(ty, mode) => arithmetic(Exact::Div, ty, mode, again()),
        Op::FAbs(ty, ftz) => sign_bits(ty, ftz, a, |bits, sign| bits & !sign),
        Op::FNeg(ty, ftz) => sign_bits(ty, ftz, a, |bits, sign| bits ^ sign),
        Op::Copysign(ty) => match ty {
            Ty::F64 => Filled::Wide(*b.lo, lanes(|i| blend(F32_SIGN, a.hi[i], b.hi[i]))),
            Ty::F32 => map2(a.lo, b.lo, |x, y| blend(F32_SIGN, x, y)),
            Ty::F16 | Ty::BF16 => map2(a.lo, b.lo, |x, y| blend(0x8000, x, y) & 0xffff),
            _ => map2(a.lo, b.lo, |x, y| blend(0x8000_8000, x, y)),
        },
        Op::FMin(ty, how) => match ty {
            Ty::F32 if how == MINNUM => map2(a.lo, b.lo, |x, y| least32(x, y, false, true)),
            _ => min_max_rare(false, ty, how, again()),
        },
        Op::FMax(ty, how) => match ty {
            Ty::F32 if how == MINNUM => map2(a.lo, b.lo, |x, y| least32(x, y, true, true)),
            _ => min_max_rare(true, ty, how, again()),
        },
        _ => Filled::Nothing,
    }
}

/// Sums, differences, products and quotients.
#[inline(always)]
pub(super) fn arithmetic<const N: usize>(
    op: Exact,
    ty: Ty,
    mode: FloatMode,
    inputs: Inputs<'_, N>,
) -> Filled<N> {
    let Inputs { inst, regs, a, b, c } = inputs;
    let again = || Inputs { inst, regs, a, b, c };
    match (ty, op) {
        _ if !plain(mode) => arithmetic_rare(op, ty, mode, again()),
        (Ty::F32, Exact::Add) => float32(op, mode, inputs, |x, y, _| x + y),
        (Ty::F32, Exact::Sub) => float32(op, mode, inputs, |x, y, _| x - y),
        (Ty::F32, Exact::Mul) => float32(op, mode, inputs, |x, y, _| x * y),
        (Ty::F32, Exact::Fma) => float32(op, mode, inputs, f32::mul_add),
        (Ty::F32, Exact::Div) => float32(op, mode, inputs, |x, y, _| x / y),
        (Ty::F64, Exact::Add) => float64(a, b, b, |x, y, _| x + y),
        (Ty::F64, Exact::Sub) => float64(a, b, b, |x, y, _| x - y),
        (Ty::F64, Exact::Mul) => float64(a, b, b, |x, y, _| x * y),
        (Ty::F64, Exact::Fma) => float64(a, b, c, f64::mul_add),
        // The other way round, for the dividend to be the preferred NaN.
        (Ty::F64, Exact::Div) => float64(b, a, a, |y, x, _| x / y),
        _ => arithmetic_rare(op, ty, mode, again()),
    }
}

/// `min` and `max` with no modifiers.
const MINNUM: MinMax = MinMax { nan: false, ftz: false, xorsign_abs: false };

/// Whether the host's arithmetic can be used, apart from flushing.
#[inline(always)]
fn plain(mode: FloatMode) -> bool {
    mode.round == Round::Rn && mode.clamp == Clamp::None
}

/// Subnormals become zero of the same sign.
#[inline(always)]
pub(super) fn flush32(bits: u32) -> u32 {
    bits & (ones(bits & F32_INFINITY != 0) | F32_SIGN)
}

/// Any NaN becomes the canonical one.
#[inline(always)]
pub(super) fn canonical32(bits: u32) -> u32 {
    let k = ones(bits & !F32_SIGN > F32_INFINITY);
    blend(k, F32_NAN, bits)
}

/// f32, rounded to nearest by the host.
#[inline(always)]
fn float32<const N: usize>(
    op: Exact,
    mode: FloatMode,
    inputs: Inputs<'_, N>,
    f: impl Fn(f32, f32, f32) -> f32,
) -> Filled<N> {
    let Inputs { inst, regs, a, b, c } = inputs;
    if !mode.ftz {
        return word(|i| {
            let [x, y, z] = [a.lo[i], b.lo[i], c.lo[i]].map(f32::from_bits);
            let result = f(x, y, z);
            // As `canonical32`, with one vector instruction in place of three.
            blend(ones(result.is_nan()), F32_NAN, result.to_bits())
        });
    }
    // The host may have rounded a subnormal result up to the smallest normal number; that is rare. Sums of normal
    // numbers are exact in that range, and roots are never that small.
    let may_round_up = matches!(op, Exact::Mul | Exact::Fma | Exact::Div);
    let mut rounded_up = 0;
    let mut out = [0; N];
    for i in 0..N {
        let [x, y, z] = [a.lo[i], b.lo[i], c.lo[i]].map(|bits| f32::from_bits(flush32(bits)));
        let bits = f(x, y, z).to_bits();
        rounded_up |= ones(bits & !F32_SIGN == F32_SMALLEST);
        out[i] = flush32(canonical32(bits));
    }
    if may_round_up && rounded_up != 0 {
        return arithmetic_rare(op, Ty::F32, mode, Inputs { inst, regs, a, b, c });
    }
    Filled::Word(out)
}

/// f64, rounded to nearest by the host. For two operands `c` is `b` again. Hosts differ in which NaN operand they
/// return, so NaN results, which are rare, are corrected afterwards: `b` is preferred, then `c`, then `a`.
#[inline(always)]
fn float64<const N: usize>(
    a: Source<'_, N>,
    b: Source<'_, N>,
    c: Source<'_, N>,
    f: impl Fn(f64, f64, f64) -> f64,
) -> Filled<N> {
    let (mut lo, mut hi) = ([0; N], [0; N]);
    let mut nan = 0u64;
    for i in 0..N {
        let [x, y, z] = [a, b, c].map(|source| f64::from_bits(source.wide(i)));
        let bits = f(x, y, z).to_bits();
        nan |= ones64(bits & !F64_SIGN > 0x7ff0 << 48);
        lo[i] = bits as u32;
        hi[i] = (bits >> 32) as u32;
    }
    if nan == 0 { Filled::Wide(lo, hi) } else { settle_nans(a, b, c, Source { lo: &lo, hi: &hi }) }
}

#[inline(never)]
fn settle_nans<const N: usize>(
    a: Source<'_, N>,
    b: Source<'_, N>,
    c: Source<'_, N>,
    result: Source<'_, N>,
) -> Filled<N> {
    wide(|i| {
        let bits = result.wide(i);
        if f64::from_bits(bits).is_nan() { f64_nan([b.wide(i), c.wide(i), a.wide(i)]) } else { bits }
    })
}

/// Directed rounding, clamps, half precision.
#[inline(never)]
fn arithmetic_rare<const N: usize>(op: Exact, ty: Ty, mode: FloatMode, inputs: Inputs<'_, N>) -> Filled<N> {
    let Inputs { a, b, c, .. } = inputs;
    match ty {
        Ty::F64 => wide(|i| {
            let bits = rounded_f64(op, a.wide(i), b.wide(i), c.wide(i), mode.round);
            Format::F64.clamp(bits, mode.clamp)
        }),
        Ty::F32 => {
            map3(a.lo, b.lo, c.lo, |x, y, z| rounded(op, Format::F32, mode, [x, y, z].map(u64::from)) as u32)
        }
        _ => half::arithmetic(op, ty, mode, inputs),
    }
}

/// `rcp` and `sqrt` with a rounding mode.
#[inline(never)]
pub(super) fn rounded_rare<const N: usize>(inputs: Inputs<'_, N>) -> Filled<N> {
    let Op::FRounded(function, ty, mode) = inputs.inst.op else { return Filled::Nothing };
    let a = inputs.a;
    match (function, ty) {
        (Approx::Rcp, Ty::F64) => arithmetic_rare(
            Exact::Div,
            ty,
            mode,
            Inputs { a: Source { lo: &[0; N], hi: &[0x3ff0_0000; N] }, b: a, ..inputs },
        ),
        (Approx::Rcp, _) => arithmetic_rare(
            Exact::Div,
            ty,
            mode,
            Inputs { a: Source { lo: &[0x3f80_0000; N], hi: &[0; N] }, b: a, ..inputs },
        ),
        (Approx::Sqrt, Ty::F64) if plain(mode) => float64(a, a, a, |x, _, _| x.sqrt()),
        (Approx::Sqrt, Ty::F32) if plain(mode) => float32(Exact::Sqrt, mode, inputs, |x, _, _| x.sqrt()),
        (Approx::Sqrt, _) => arithmetic_rare(Exact::Sqrt, ty, mode, inputs),
        _ => Filled::Nothing,
    }
}

/// `abs` and `neg`: the sign bit of numbers, after flushing if asked.
#[inline(always)]
pub(super) fn sign_bits<const N: usize>(
    ty: Ty,
    ftz: bool,
    a: Source<'_, N>,
    f: impl Fn(u32, u32) -> u32,
) -> Filled<N> {
    match ty {
        Ty::F64 => {
            const INFINITY: u32 = 0x7ff0_0000;
            let high = lanes(|i| {
                let magnitude = a.hi[i] & !F32_SIGN;
                let nan = (magnitude > INFINITY) | ((magnitude == INFINITY) & (a.lo[i] != 0));
                blend(ones(nan), a.hi[i] | (F64_QUIET >> 32) as u32, f(a.hi[i], F32_SIGN))
            });
            Filled::Wide(*a.lo, high)
        }
        Ty::F32 if ftz => map1(a.lo, |x| canonical32(f(flush32(x), F32_SIGN))),
        Ty::F32 => map1(a.lo, |x| canonical32(f(x, F32_SIGN))),
        _ => {
            // One half is the low part of a word whose upper part is cleared.
            let keep = if half::is_pair(ty) { u32::MAX } else { 0xffff };
            let infinity = if matches!(ty, Ty::F16 | Ty::F16x2) { 0x7c00 } else { 0x7f80 };
            let one = |x: u32| {
                let flushed = x & (ones(!ftz || x & infinity != 0) | 0x8000);
                blend(ones(x & 0x7fff > infinity), 0x7fff, f(flushed, 0x8000))
            };
            map1(a.lo, |x| halves2(x, 0, |half, _| one(half)) & keep)
        }
    }
}

/// A number's bits as an integer in the same order (-0 below +0).
#[inline(always)]
fn order32(bits: u32) -> i32 {
    (bits ^ ((bits as i32 >> 31) as u32 >> 1)) as i32
}

/// The smaller (or, with `most`, the larger) of two numbers; a NaN loses, or else wins; two give the canonical one.
#[inline(always)]
pub(super) fn least32(x: u32, y: u32, most: bool, nan_loses: bool) -> u32 {
    let x_nan = x & !F32_SIGN > F32_INFINITY;
    let y_nan = y & !F32_SIGN > F32_INFINITY;
    let less = if most { order32(x) > order32(y) } else { order32(x) < order32(y) };
    let number = blend((ones(less) & !ones(x_nan)) | ones(y_nan), x, y);
    let nan = if nan_loses { ones(x_nan) & ones(y_nan) } else { ones(x_nan) | ones(y_nan) };
    blend(nan, F32_NAN, number)
}

#[inline(never)]
fn min_max_rare<const N: usize>(most: bool, ty: Ty, how: MinMax, inputs: Inputs<'_, N>) -> Filled<N> {
    let Inputs { a, b, .. } = inputs;
    match ty {
        Ty::F64 => wide(|i| min_max(most, Format::F64, how, a.wide(i), b.wide(i))),
        Ty::F32 => map2(a.lo, b.lo, |x, y| min_max(most, Format::F32, how, x.into(), y.into()) as u32),
        _ => {
            let format = Format::of(ty);
            half::each(ty, inputs, |x, y, _| min_max(most, format, how, x, y))
        }
    }
}

/// `min` or `max` in any format, with any modifier.
pub(super) fn min_max(most: bool, format: Format, how: MinMax, x: u64, y: u64) -> u64 {
    let sign = format.sign_bit();
    let flush = |bits: u64| if how.ftz { format.flush(bits) } else { bits };
    let (mut x, mut y) = (flush(x), flush(y));
    let xor = (x ^ y) & sign;
    if how.xorsign_abs {
        (x, y) = (x & !sign, y & !sign);
    }
    let number = match (format.is_nan(x), format.is_nan(y)) {
        (true, true) if format == Format::F64 => return f64_nan([y, x, x]),
        (true, true) => return format.nan(),
        (true, false) | (false, true) if how.nan => return format.nan(),
        (true, false) => y,
        (false, true) => x,
        (false, false) => {
            // Negative numbers in reverse, below the others.
            let order = |bits: u64| {
                let magnitude = (bits & !sign) as i64;
                if bits & sign != 0 { !magnitude } else { magnitude }
            };
            if (order(x) < order(y)) != most { x } else { y }
        }
    };
    if how.xorsign_abs { number | xor } else { number }
}
