//! Arithmetic with the roundings that the host does not have: directed rounding, and a single rounding to half
//! precision. An operation is done in f64 and *rounded to odd*. Rounding that again, to a format at least two bits
//! narrower, gives the same as rounding the exact result once.

use rustc_apfloat::{Float, Round as ApRound, ieee::Double};
use warploom_isa::{FloatMode, Round};

use crate::lanes::format::{F64_NAN, Format, f64_nan};

/// Rounds an exact result to odd. `rounded` is the nearest f64; the exact result is above it (`error > 0`), below it or
/// equal.
fn to_odd(rounded: f64, error: f64) -> f64 {
    let bits = rounded.to_bits();
    if error == 0.0 || bits & 1 != 0 || !rounded.is_finite() {
        rounded
    } else if (error > 0.0) == (rounded > 0.0) {
        f64::from_bits(bits + 1)
    } else {
        f64::from_bits(bits - 1)
    }
}

/// `a + b` rounded to odd. The magnitudes must be far from f64's limits, as those of narrower formats are.
fn add_odd(a: f64, b: f64) -> f64 {
    let sum = a + b;
    if !sum.is_finite() {
        return sum;
    }
    let b_part = sum - a;
    to_odd(sum, (a - (sum - b_part)) + (b - b_part))
}

/// An operation that can be rounded in any direction.
#[derive(Clone, Copy)]
pub(super) enum Exact {
    Add,
    Sub,
    Mul,
    Fma,
    Div,
    Sqrt,
}

/// The result of `op` on numbers of `format` (not f64). As `mode` says, operands are flushed, and the result is rounded
/// once, flushed and clamped. A NaN is canonical.
#[inline]
pub(super) fn rounded(op: Exact, format: Format, mode: FloatMode, operands: [u64; 3]) -> u64 {
    let round = mode.round;
    let operand = |i: usize| {
        let bits: u64 = operands[i];
        format.widen(if mode.ftz { format.flush(bits) } else { bits })
    };
    let (x, y) = (operand(0), operand(1));
    let sum = |x: f64, y: f64| {
        let sum = add_odd(x, y);
        // A zero sum is -0 when rounding down, unless both terms are +0.
        let both_plus = x.is_sign_positive() && y.is_sign_positive();
        if sum == 0.0 && round == Round::Rm && !both_plus { -0.0 } else { sum }
    };
    let wide = match op {
        Exact::Add => sum(x, y),
        Exact::Sub => sum(x, -y),
        // Exact: twice 24 bits fit in 53, and the exponents in f64's.
        Exact::Mul => x * y,
        Exact::Fma => sum(x * y, operand(2)),
        Exact::Div => {
            let quotient = x / y;
            if quotient.is_finite() && y.is_finite() && y != 0.0 {
                let remainder = (-quotient).mul_add(y, x);
                to_odd(quotient, if y < 0.0 { -remainder } else { remainder })
            } else {
                quotient
            }
        }
        Exact::Sqrt => {
            let root = x.sqrt();
            if root.is_finite() { to_odd(root, (-root).mul_add(root, x)) } else { root }
        }
    };
    let bits = if mode.ftz { format.narrow_flushed(wide, round) } else { format.narrow(wide, round) };
    format.clamp(bits, mode.clamp)
}

fn ap_round(round: Round) -> ApRound {
    match round {
        Round::Rn => ApRound::NearestTiesToEven,
        Round::Rna => ApRound::NearestTiesToAway,
        Round::Rz => ApRound::TowardZero,
        Round::Rm => ApRound::TowardNegative,
        Round::Rp => ApRound::TowardPositive,
    }
}

/// The f64 result of `op`.
pub(super) fn rounded_f64(op: Exact, a: u64, b: u64, c: u64, round: Round) -> u64 {
    let operands = match op {
        Exact::Fma => [b, c, a],
        Exact::Sqrt => [a, a, a],
        Exact::Div => [a, b, b],
        Exact::Add | Exact::Sub | Exact::Mul => [b, a, a],
    };
    if operands.iter().any(|&x| f64::from_bits(x).is_nan()) {
        return f64_nan(operands);
    }
    let [x, y, z] = [a, b, c].map(|bits| Double::from_bits(bits.into()));
    let mode = ap_round(round);
    let value = match op {
        Exact::Add => x.add_r(y, mode).value,
        Exact::Sub => x.sub_r(y, mode).value,
        Exact::Mul => x.mul_r(y, mode).value,
        Exact::Fma => x.mul_add_r(y, z, mode).value,
        Exact::Div => x.div_r(y, mode).value,
        Exact::Sqrt => return sqrt_f64(a, round),
    };
    if value.is_nan() { F64_NAN } else { value.to_bits() as u64 }
}

/// The square root of a number or infinity, in integer arithmetic.
fn sqrt_f64(a: u64, round: Round) -> u64 {
    let value = f64::from_bits(a);
    if value == 0.0 || value == f64::INFINITY {
        return a;
    }
    if value < 0.0 {
        return F64_NAN;
    }
    let biased = (a >> 52) as i32;
    let fraction = a & ((1 << 52) - 1);
    let (significand, exponent) =
        if biased == 0 { (fraction, -1074) } else { (fraction | 1 << 52, biased - 1075) };
    // The exponent must be even, and the integer root must have more bits than the result.
    let mut shift = 122 - significand.ilog2() as i32;
    shift += (exponent - shift) & 1;
    let square = u128::from(significand) << shift;
    let root = square.isqrt();
    let inexact = u64::from(root * root != square);
    Format::F64.round(false, (root as u64) << 1 | inexact, (exponent - shift) / 2 - 1, round)
}
