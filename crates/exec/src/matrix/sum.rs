//! Sums of products, in the order and width of the hardware.
//!
//! Floating point of up to 32 bits: the products of a block of K and the accumulator are added at once. Each is cut off
//! [`EXTRA_BITS`] below the last bit of a single-precision number with the largest exponent of them; the sum is cut off
//! to single precision, or rounded to half. So Hopper does it according to published tests (Fasi et al., 2021, for
//! earlier chips); PTX leaves it open. Doubles are a chain of fused multiply-adds in the order of K. Integers are
//! exact.

use warploom_isa::{BitProduct, MatrixTy, Mma};

use super::MOST;
use crate::matrix::number::{Number, to_f16, to_f32};

/// Bits that the adder keeps below single precision.
const EXTRA_BITS: i32 = 2;

/// Bytes of K whose products are added at once, of types of 16 bits and more; 8-bit floats become halves first.
const BLOCK_BYTES: usize = 32;

const CANONICAL_NAN: u32 = 0x7fff_ffff;
const CANONICAL_HALF_NAN: u32 = 0x7fff;

/// Adds the products of rows of `a` and columns of `b` to `sums`.
pub(super) fn products(mma: Mma, a: &[u64; MOST], b: &[u64; MOST], sums: &mut [u64; MOST]) {
    let rows = mma.rows();
    let k = if mma.a == MatrixTy::B1 { mma.k() / 32 } else { mma.k() };
    for (row, column) in (0..rows).flat_map(|row| (0..8).map(move |column| (row, column))) {
        let pairs = (0..k).map(|at| (a[row * k + at], b[at * 8 + column]));
        let sum = &mut sums[row * 8 + column];
        *sum = match mma.a {
            MatrixTy::F64 => doubles(pairs, *sum),
            MatrixTy::F16 | MatrixTy::Bf16 | MatrixTy::Tf32 | MatrixTy::E4m3 | MatrixTy::E5m2 => {
                floats(mma, pairs, *sum)
            }
            _ => integers(mma, pairs, *sum),
        };
    }
}

fn doubles(pairs: impl Iterator<Item = (u64, u64)>, sum: u64) -> u64 {
    let add = |sum: f64, (a, b)| f64::mul_add(f64::from_bits(a), f64::from_bits(b), sum);
    let sum = pairs.fold(f64::from_bits(sum), add);
    if sum.is_nan() { 0xfff8_0000_0000_0000 } else { sum.to_bits() }
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

fn floats(mma: Mma, pairs: impl Iterator<Item = (u64, u64)>, sum: u64) -> u64 {
    let bytes = if mma.a == MatrixTy::Tf32 { 4 } else { 2 };
    let block = BLOCK_BYTES / bytes;
    let (mut ty, mut sum) = (mma.c, sum);
    let mut terms = smallvec::SmallVec::<[Number; 32]>::new();
    let mut left = mma.k();
    for (a, b) in pairs {
        terms.push(Number::of(mma.a, a).times(Number::of(mma.b, b)));
        left -= 1;
        if terms.len() == block || left == 0 {
            terms.push(Number::of(ty, sum));
            // Between blocks the sum has the width of the result.
            (ty, sum) = (mma.d, add(&terms, mma.d));
            terms.clear();
        }
    }
    sum
}

/// The sum of all terms, in the type of the result.
fn add(terms: &[Number], to: MatrixTy) -> u64 {
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
    let unit = largest - 23 - EXTRA_BITS;
    let sum = terms.iter().map(|&term| units(term, unit)).sum::<i64>();
    match to {
        MatrixTy::F16 => u64::from(to_f16(sum, unit)),
        _ => u64::from(to_f32(sum, unit)),
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
