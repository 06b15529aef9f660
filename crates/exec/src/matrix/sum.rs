//! Sums of products, in the order and width of the hardware. PTX leaves both open; these are those of an H200, bit by
//! bit (`warploom conform`).
//!
//! - Floating point of 16 bits and more: the products of a block of K and the accumulator are added at once. Each is
//!   cut off [`EXTRA_BITS`] below the last bit of a single-precision number with the largest exponent of them; the sum
//!   is cut off to single precision, or rounded to half.
//! - 8-bit floats, `wgmma`: the same for all of K, with sums of [`SHORT_FRACTION`] bits.
//! - 8-bit floats, `mma`: Hopper has no such unit. They become halves, which are multiplied in two steps: first the
//!   even pairs of K, then the odd ones. The accumulator is added last, by an ordinary addition.
//! - `m8n8k4` of halves, for which no chip since Volta has a unit: a chain of multiply-adds, and then the accumulator.
//! - Doubles: a chain of fused multiply-adds in the order of K.
//! - Integers are exact.

use half::f16;
use smallvec::SmallVec;
use warploom_isa::{BitProduct, MatrixTy, Mma};

use super::MOST;
use super::finite::{self, Elements};
use crate::lanes::format::f64_nan;
use crate::matrix::number::{Number, to_f16, to_f32};

/// Bits that the adder keeps below single precision.
const EXTRA_BITS: i32 = 2;

/// Fraction bits of single precision.
const FRACTION: i32 = 23;

/// Fraction bits of the sums that `wgmma` makes of products of 8-bit floats.
const SHORT_FRACTION: i32 = 13;

/// Bytes of K whose products are added at once, of types of 16 bits and more.
const BLOCK_BYTES: usize = 32;

const CANONICAL_NAN: u32 = 0x7fff_ffff;
const CANONICAL_HALF_NAN: u32 = 0x7fff;

/// Who multiplies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum By {
    /// One warp, with `mma`.
    Warp,
    /// Four warps, with `wgmma`.
    Group,
}

/// Adds the products of rows of `a` and columns of `b` to `sums`.
pub(super) fn products(mma: Mma, by: By, a: &[u64; MOST], b: &[u64; MOST], sums: &mut [u64; MOST]) {
    let rows = mma.rows();
    let k = if mma.a == MatrixTy::B1 { mma.k() / 32 } else { mma.k() };
    let places = (0..rows).flat_map(|row| (0..8).map(move |column| (row, column)));
    if matches!(mma.a, MatrixTy::F16 | MatrixTy::Bf16 | MatrixTy::Tf32 | MatrixTy::E4m3 | MatrixTy::E5m2) {
        let left = Elements::new(mma.a, a, (rows, k), |row, at, k| row * k + at);
        let right = Elements::new(mma.b, b, (8, k), |column, at, _| at * 8 + column);
        for (row, column) in places {
            let sum = &mut sums[row * 8 + column];
            *sum = match width(mma, by).filter(|_| left.is_finite(row) && right.is_finite(column)) {
                Some(width) => blocks(mma, width, (&left, row), (&right, column), *sum),
                None => {
                    let number =
                        |at| Number::of(mma.a, a[row * k + at]).times(Number::of(mma.b, b[at * 8 + column]));
                    floats(mma, by, (0..k).map(number).collect(), *sum)
                }
            };
        }
        return;
    }
    for (row, column) in places {
        let pairs = (0..k).map(|at| (a[row * k + at], b[at * 8 + column]));
        let sum = &mut sums[row * 8 + column];
        *sum = if mma.a == MatrixTy::F64 { doubles(pairs, *sum) } else { integers(mma, pairs, *sum) };
    }
}

fn doubles(pairs: impl Iterator<Item = (u64, u64)>, sum: u64) -> u64 {
    pairs.fold(sum, |sum, (a, b)| {
        let total = f64::mul_add(f64::from_bits(a), f64::from_bits(b), f64::from_bits(sum));
        if total.is_nan() { f64_nan([b, sum, a]) } else { total.to_bits() }
    })
}

fn integers(mma: Mma, pairs: impl Iterator<Item = (u64, u64)>, sum: u64) -> u64 {
    let signed = |ty: MatrixTy, bits: u64| {
        let unused = 64 - ty.bits();
        if ty.is_signed() { ((bits << unused) as i64) >> unused } else { bits as i64 }
    };
    let product = |(a, b): (u64, u64)| match mma.bits {
        Some(BitProduct::And) => i64::from((a & b).count_ones()),
        Some(BitProduct::Xor) => i64::from((a ^ b).count_ones()),
        None => signed(mma.a, a) * signed(mma.b, b),
    };
    let exact = pairs.map(product).sum::<i64>() + i64::from(sum as u32 as i32);
    let sum = if mma.saturate { exact.clamp(i32::MIN.into(), i32::MAX.into()) } else { exact };
    u64::from(sum as u32)
}

fn floats(mma: Mma, by: By, products: SmallVec<[Number; 33]>, sum: u64) -> u64 {
    if mma.is_quad_pairs() {
        return chain(mma, &products, sum);
    }
    let Some(width) = width(mma, by) else {
        let step = |odd: usize, sum: u64| {
            let pairs = products.chunks(2).skip(odd).step_by(2).flatten();
            let mut terms: SmallVec<[Number; 33]> = pairs.copied().collect();
            terms.push(Number::of(mma.d, sum));
            add(&terms, mma.d, Width::SINGLE)
        };
        return plus(mma, step(1, step(0, 0)), sum);
    };
    let (mut ty, mut sum) = (mma.c, sum);
    for block in products.chunks(block(mma)) {
        let mut terms: SmallVec<[Number; 33]> = SmallVec::from_slice(block);
        terms.push(Number::of(ty, sum));
        // Between blocks the sum has the width of the result.
        (ty, sum) = (mma.d, add(&terms, mma.d, width));
    }
    sum
}

/// [`floats`] of finite products.
fn blocks(
    mma: Mma,
    width: Width,
    (a, row): (&Elements, usize),
    (b, column): (&Elements, usize),
    sum: u64,
) -> u64 {
    let (k, types) = (mma.k(), [mma.a, mma.b]);
    let (mut ty, mut sum) = (mma.c, sum);
    for first in (0..k).step_by(block(mma)) {
        let count = block(mma).min(k - first);
        let accumulator = Number::of(ty, sum);
        sum = match accumulator {
            Number::Finite { .. } => {
                let terms = finite::Block { a, b, row, column, k, first, count, types };
                finite::sum(terms, accumulator, width.kept)
                    .map_or(0, |(sum, unit)| rounded(sum, unit, mma.d, width))
            }
            _ => add(&[accumulator], mma.d, width),
        };
        ty = mma.d;
    }
    sum
}

/// Products that are added at once.
fn block(mma: Mma) -> usize {
    match mma.a {
        MatrixTy::E4m3 | MatrixTy::E5m2 => mma.k(),
        MatrixTy::Tf32 => BLOCK_BYTES / 4,
        _ => BLOCK_BYTES / 2,
    }
}

/// How exactly all products of a block are added, if they are added at once.
fn width(mma: Mma, by: By) -> Option<Width> {
    match mma.a {
        _ if mma.is_quad_pairs() => None,
        MatrixTy::E4m3 | MatrixTy::E5m2 if by == By::Warp => None,
        MatrixTy::E4m3 | MatrixTy::E5m2 => Some(Width::SHORT),
        _ => Some(Width::SINGLE),
    }
}

/// Multiply-adds in single precision from zero on, which are exact before they are rounded, and then the accumulator.
fn chain(mma: Mma, products: &[Number], sum: u64) -> u64 {
    // A product of halves is exact in single precision, so that a multiply-add is an addition.
    let total = products.iter().fold(0.0f32, |total, product| total + product.to_f32());
    let c = single(mma.c, sum);
    result(mma.d, c + total)
}

/// A sum in the type of the result plus the accumulator.
fn plus(mma: Mma, total: u64, sum: u64) -> u64 {
    result(mma.d, single(mma.d, total) + single(mma.c, sum))
}

fn single(ty: MatrixTy, bits: u64) -> f32 {
    if ty == MatrixTy::F16 { f16::from_bits(bits as u16).to_f32() } else { f32::from_bits(bits as u32) }
}

/// The bits of a result. The sum of two halves in single precision may be rounded to half as if it was exact.
fn result(ty: MatrixTy, value: f32) -> u64 {
    match ty {
        MatrixTy::F16 if value.is_nan() => CANONICAL_HALF_NAN.into(),
        MatrixTy::F16 => f16::from_f32(value).to_bits().into(),
        _ if value.is_nan() => CANONICAL_NAN.into(),
        _ => value.to_bits().into(),
    }
}

/// How exactly terms are added.
#[derive(Clone, Copy, Debug)]
struct Width {
    /// Terms are cut off this many bits below the largest exponent.
    kept: i32,
    /// Fraction bits of a single-precision sum.
    fraction: i32,
}

impl Width {
    const SINGLE: Width = Width { kept: FRACTION + EXTRA_BITS, fraction: FRACTION };
    const SHORT: Width = Width { kept: SHORT_FRACTION, fraction: SHORT_FRACTION };
}

/// The sum of all terms, in the type of the result.
fn add(terms: &[Number], to: MatrixTy, width: Width) -> u64 {
    let nan = u64::from(if to == MatrixTy::F16 { CANONICAL_HALF_NAN } else { CANONICAL_NAN });
    let mut infinite: Option<bool> = None;
    let mut largest = i32::MIN;
    for &term in terms {
        match term {
            Number::Nan => return nan,
            Number::Infinite { negative } if infinite.is_some_and(|known| known != negative) => return nan,
            Number::Infinite { negative } => infinite = Some(negative),
            Number::Finite { significand: 0, .. } => {}
            Number::Finite { exponent, .. } => largest = largest.max(exponent),
        }
    }
    if let Some(negative) = infinite {
        return match to {
            MatrixTy::F16 => u64::from(negative) << 15 | 0x7c00,
            _ => u64::from(negative) << 31 | 0x7f80_0000,
        };
    }
    if largest == i32::MIN {
        return 0;
    }
    let unit = largest - width.kept;
    rounded(terms.iter().map(|&term| units(term, unit)).sum(), unit, to, width)
}

/// `sum * 2^unit` in the type of the result.
fn rounded(sum: i64, unit: i32, to: MatrixTy, width: Width) -> u64 {
    match to {
        MatrixTy::F16 => u64::from(to_f16(sum, unit)),
        _ => u64::from(to_f32(sum, unit, width.fraction)),
    }
}

/// A finite term in whole units of `2^unit`, cut off.
fn units(term: Number, unit: i32) -> i64 {
    let Number::Finite { negative, significand, exponent, fraction } = term else { return 0 };
    let shift = exponent - fraction - unit;
    let magnitude = match shift {
        // A zero may have any exponent.
        _ if significand == 0 => 0,
        0.. => significand << shift,
        -63..0 => significand >> -shift,
        _ => 0,
    } as i64;
    if negative { -magnitude } else { magnitude }
}
