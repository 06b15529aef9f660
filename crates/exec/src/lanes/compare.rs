//! Comparisons: `setp`, `set`, `testp`.
//!
//! A comparison combines at most two of four basic ones (equal, less, less or equal, unordered). Each of those gives a
//! mask for all lanes at once; the rest is logic on masks.

use warploom_isa::{Cmp, Combine, Op, TestKind, Ty};

use crate::lanes::half;
use crate::lanes::vector::{Filled, Inputs, Source, gather, spread, word};

#[inline(always)]
pub(super) fn compute<const N: usize>(inputs: Inputs<'_, N>) -> Filled<N> {
    let Inputs { inst, regs, a, b, .. } = inputs;
    match inst.op {
        Op::Setp { cmp, combine, ty, ftz } => {
            let third = regs.read_pred(inst.src[2]);
            if is_pair(ty) {
                let (low, high) = compare_pair(cmp, ty, ftz, a, b);
                Filled::Preds(combined(combine, low, third), combined(combine, high, third))
            } else {
                both(compare(cmp, ty, ftz, a, b), combine, third)
            }
        }
        Op::SetpPred(cmp, combine) => {
            let (x, y) = (regs.read_pred(inst.src[0]), regs.read_pred(inst.src[1]));
            let third = regs.read_pred(inst.src[2]);
            let answer = match cmp {
                Cmp::Eq | Cmp::Equ => !(x ^ y),
                Cmp::Lt | Cmp::Ltu => !x & y,
                Cmp::Le | Cmp::Leu => !x | y,
                Cmp::Gt | Cmp::Gtu => x & !y,
                Cmp::Ge | Cmp::Geu => x | !y,
                _ => x ^ y,
            };
            both(answer, combine, third)
        }
        Op::Set { cmp, combine, src, dst, ftz } => {
            let third = regs.read_pred(inst.src[2]);
            let yes = match dst {
                Ty::F32 => 0x3f80_0000,
                Ty::F16 => 0x3c00,
                Ty::BF16 => 0x3f80,
                Ty::U16 | Ty::S16 | Ty::B16 => 0xffff,
                Ty::F16x2 => 0x3c00_3c00,
                Ty::BF16x2 => 0x3f80_3f80,
                _ => u32::MAX,
            };
            if is_pair(src) {
                let (low, high) = compare_pair(cmp, src, ftz, a, b);
                let low = spread::<N>(combined(combine, low, third));
                let high = spread::<N>(combined(combine, high, third));
                return word(|i| ((low[i] & 0xffff) | (high[i] & 0xffff_0000)) & yes);
            }
            let k = spread::<N>(combined(combine, compare(cmp, src, ftz, a, b), third));
            word(|i| k[i] & yes)
        }
        _ => Filled::Nothing,
    }
}

/// The two results of a comparison.
#[inline(always)]
pub(super) fn both<const N: usize>(answer: u64, combine: Combine, third: u64) -> Filled<N> {
    Filled::Preds(combined(combine, answer, third), combined(combine, !answer, third))
}

#[inline(always)]
fn is_pair(ty: Ty) -> bool {
    matches!(ty, Ty::F16x2 | Ty::BF16x2 | Ty::U16x2 | Ty::S16x2)
}

#[inline(always)]
fn combined(combine: Combine, answer: u64, third: u64) -> u64 {
    match combine {
        Combine::None => answer,
        Combine::And => answer & third,
        Combine::Or => answer | third,
        Combine::Xor => answer ^ third,
    }
}

/// The results of all lanes. Bits beyond the last lane are unspecified.
#[inline(always)]
pub(super) fn compare<const N: usize>(
    cmp: Cmp,
    ty: Ty,
    ftz: bool,
    a: Source<'_, N>,
    b: Source<'_, N>,
) -> u64 {
    match ty {
        Ty::F32 if !ftz => compare_f32(cmp, a.lo, b.lo),
        Ty::F32 | Ty::F16 | Ty::BF16 => compare_small_float(cmp, ty, ftz, a.lo, b.lo),
        Ty::F64 => compare_f64(cmp, a, b),
        // Functions and not closures, which the compiler may leave out of line, and then without vectors.
        Ty::U64 | Ty::B64 => integers(cmp, less_unsigned64, equal64, a, b),
        Ty::S64 => integers(cmp, less_signed64, equal64, a, b),
        Ty::S32 => integers(cmp, less_signed, equal, a, b),
        Ty::U8 | Ty::B8 | Ty::S8 | Ty::U16 | Ty::B16 | Ty::S16 => compare_narrow(cmp, ty, a, b),
        _ => integers(cmp, less_unsigned, equal, a, b),
    }
}

/// Any integer comparison, from "less" and "equal".
#[inline(always)]
fn integers<'a, const N: usize>(
    cmp: Cmp,
    less: impl Fn(Source<'a, N>, Source<'a, N>) -> u64,
    equal: impl Fn(Source<'a, N>, Source<'a, N>) -> u64,
    a: Source<'a, N>,
    b: Source<'a, N>,
) -> u64 {
    let (negate, swap) = match cmp {
        Cmp::Eq | Cmp::Equ => return equal(a, b),
        Cmp::Ne | Cmp::Neu => return !equal(a, b),
        Cmp::Num => return u64::MAX,
        Cmp::Nan => return 0,
        Cmp::Lt | Cmp::Ltu => (0, false),
        Cmp::Ge | Cmp::Geu => (u64::MAX, false),
        Cmp::Gt | Cmp::Gtu => (0, true),
        Cmp::Le | Cmp::Leu => (u64::MAX, true),
    };
    let (x, y) = if swap { (b, a) } else { (a, b) };
    less(x, y) ^ negate
}

#[inline(always)]
fn equal<const N: usize>(a: Source<'_, N>, b: Source<'_, N>) -> u64 {
    gather::<N>(|i| a.lo[i] == b.lo[i])
}

#[inline(always)]
fn equal64<const N: usize>(a: Source<'_, N>, b: Source<'_, N>) -> u64 {
    gather::<N>(|i| (a.lo[i] ^ b.lo[i]) | (a.hi[i] ^ b.hi[i]) == 0)
}

#[inline(always)]
fn less_signed<const N: usize>(a: Source<'_, N>, b: Source<'_, N>) -> u64 {
    gather::<N>(|i| (a.lo[i] as i32) < b.lo[i] as i32)
}

#[inline(always)]
fn less_unsigned<const N: usize>(a: Source<'_, N>, b: Source<'_, N>) -> u64 {
    gather::<N>(|i| a.lo[i] < b.lo[i])
}

#[inline(always)]
fn less_signed64<const N: usize>(a: Source<'_, N>, b: Source<'_, N>) -> u64 {
    gather::<N>(|i| (a.wide(i) as i64) < b.wide(i) as i64)
}

#[inline(always)]
fn less_unsigned64<const N: usize>(a: Source<'_, N>, b: Source<'_, N>) -> u64 {
    gather::<N>(|i| a.wide(i) < b.wide(i))
}

/// 8 and 16 bits: shifted to the top of the word, so that the bits above them are gone.
#[inline(never)]
fn compare_narrow<const N: usize>(cmp: Cmp, ty: Ty, a: Source<'_, N>, b: Source<'_, N>) -> u64 {
    let shift = 32 - ty.bits();
    let (a, b) = (a.lo.map(|x| x << shift), b.lo.map(|x| x << shift));
    let (a, b) = (Source { lo: &a, hi: &a }, Source { lo: &b, hi: &b });
    if ty.is_signed() {
        integers(cmp, less_signed, equal, a, b)
    } else {
        integers(cmp, less_unsigned, equal, a, b)
    }
}

/// Any floating-point comparison, from its basic ones; `true` asks for swapped operands, for "greater".
#[inline(always)]
fn floats(
    cmp: Cmp,
    equal: impl Fn() -> u64,
    less: impl Fn(bool) -> u64,
    less_equal: impl Fn(bool) -> u64,
    unordered: impl Fn() -> u64,
) -> u64 {
    match cmp {
        Cmp::Eq => equal(),
        Cmp::Ne => !equal() & !unordered(),
        Cmp::Lt => less(false),
        Cmp::Gt => less(true),
        Cmp::Le => less_equal(false),
        Cmp::Ge => less_equal(true),
        Cmp::Equ => equal() | unordered(),
        Cmp::Neu => !equal(),
        Cmp::Ltu => !less_equal(true),
        Cmp::Gtu => !less_equal(false),
        Cmp::Leu => !less(true),
        Cmp::Geu => !less(false),
        Cmp::Num => !unordered(),
        Cmp::Nan => unordered(),
    }
}

#[inline(always)]
fn compare_f32<const N: usize>(cmp: Cmp, a: &[u32; N], b: &[u32; N]) -> u64 {
    let order = |swap: bool| if swap { (b, a) } else { (a, b) };
    floats(
        cmp,
        || gather::<N>(|i| f32::from_bits(a[i]) == f32::from_bits(b[i])),
        |swap| {
            let (x, y) = order(swap);
            gather::<N>(|i| f32::from_bits(x[i]) < f32::from_bits(y[i]))
        },
        |swap| {
            let (x, y) = order(swap);
            gather::<N>(|i| f32::from_bits(x[i]) <= f32::from_bits(y[i]))
        },
        || gather::<N>(|i| f32::from_bits(a[i]).is_nan() | f32::from_bits(b[i]).is_nan()),
    )
}

#[inline(never)]
fn compare_f64<const N: usize>(cmp: Cmp, a: Source<'_, N>, b: Source<'_, N>) -> u64 {
    let order = |swap: bool| if swap { (b, a) } else { (a, b) };
    floats(
        cmp,
        || gather::<N>(|i| f64::from_bits(a.wide(i)) == f64::from_bits(b.wide(i))),
        |swap| {
            let (x, y) = order(swap);
            gather::<N>(|i| f64::from_bits(x.wide(i)) < f64::from_bits(y.wide(i)))
        },
        |swap| {
            let (x, y) = order(swap);
            gather::<N>(|i| f64::from_bits(x.wide(i)) <= f64::from_bits(y.wide(i)))
        },
        || gather::<N>(|i| f64::from_bits(a.wide(i)).is_nan() | f64::from_bits(b.wide(i)).is_nan()),
    )
}

/// Half precision, widened to f32, and f32 with subnormals flushed.
#[inline(never)]
fn compare_small_float<const N: usize>(cmp: Cmp, ty: Ty, ftz: bool, a: &[u32; N], b: &[u32; N]) -> u64 {
    compare_f32(cmp, &a.map(|x| half::widened(ty, x, ftz)), &b.map(|x| half::widened(ty, x, ftz)))
}

/// The results for the low halves and for the high halves.
#[inline(never)]
fn compare_pair<const N: usize>(
    cmp: Cmp,
    ty: Ty,
    ftz: bool,
    a: Source<'_, N>,
    b: Source<'_, N>,
) -> (u64, u64) {
    let half = match ty {
        Ty::F16x2 => Ty::F16,
        Ty::BF16x2 => Ty::BF16,
        Ty::S16x2 => Ty::S16,
        _ => Ty::U16,
    };
    let answer = |x: &[u32; N], y: &[u32; N]| {
        let (x, y) = (Source { lo: x, hi: x }, Source { lo: y, hi: y });
        if half.is_float() {
            compare_small_float(cmp, half, ftz, x.lo, y.lo)
        } else {
            compare_narrow(cmp, half, x, y)
        }
    };
    (answer(a.lo, b.lo), answer(&a.lo.map(|x| x >> 16), &b.lo.map(|x| x >> 16)))
}

/// `testp`. Zero counts as normal.
#[inline(never)]
pub(super) fn testp<const N: usize>(kind: TestKind, ty: Ty, a: Source<'_, N>) -> Filled<N> {
    Filled::Pred(gather::<N>(|i| {
        // Widening makes subnormals normal, so they are tested for before.
        let (value, subnormal) = match ty {
            Ty::F64 => (f64::from_bits(a.wide(i)), f64::from_bits(a.wide(i)).is_subnormal()),
            _ => {
                let value = f32::from_bits(half::widened(ty, a.lo[i], false));
                let flushed = f32::from_bits(half::widened(ty, a.lo[i], true));
                (f64::from(value), value != 0.0 && flushed == 0.0)
            }
        };
        match kind {
            TestKind::Finite => value.is_finite(),
            TestKind::Infinite => value.is_infinite(),
            TestKind::Number => !value.is_nan(),
            TestKind::NotANumber => value.is_nan(),
            TestKind::Normal => value.is_finite() && !subnormal,
            TestKind::Subnormal => subnormal,
        }
    }))
}
