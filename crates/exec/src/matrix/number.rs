//! Elements of matrices as exact numbers.

use half::f16;
use warploom_isa::MatrixTy;

/// A floating-point number: `significand * 2^(exponent - fraction)`, where `fraction` is the number of fraction bits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Number {
    Finite { negative: bool, significand: u64, exponent: i32, fraction: i32 },
    Infinite { negative: bool },
    Nan,
}

/// Exponent bits, fraction bits, and whether all exponent bits mean infinity or NaN.
fn format(ty: MatrixTy) -> (u32, u32, bool) {
    match ty {
        MatrixTy::F16 => (5, 10, true),
        MatrixTy::Bf16 => (8, 7, true),
        MatrixTy::E4m3 => (4, 3, false),
        MatrixTy::E5m2 => (5, 2, true),
        // Of a `.tf32` only the upper bits count.
        _ => (8, 23, true),
    }
}

impl Number {
    pub(super) fn of(ty: MatrixTy, bits: u64) -> Number {
        let bits = if ty == MatrixTy::Tf32 { bits & !0x1fff } else { bits };
        let (exponent_bits, fraction_bits, has_infinity) = format(ty);
        let field = (bits >> fraction_bits) & ((1 << exponent_bits) - 1);
        let fraction = bits & ((1 << fraction_bits) - 1);
        let negative = bits >> (exponent_bits + fraction_bits) & 1 == 1;
        let last = (1u64 << exponent_bits) - 1;
        if has_infinity && field == last {
            return if fraction == 0 { Number::Infinite { negative } } else { Number::Nan };
        }
        if ty == MatrixTy::E4m3 && field == last && fraction == 7 {
            return Number::Nan;
        }
        let bias = (1 << (exponent_bits - 1)) - 1;
        let hidden = u64::from(field > 0) << fraction_bits;
        Number::Finite {
            negative,
            significand: fraction | hidden,
            exponent: field.max(1) as i32 - bias,
            fraction: fraction_bits as i32,
        }
    }

    /// The exact product.
    pub(super) fn times(self, other: Number) -> Number {
        use Number::{Finite, Infinite, Nan};
        let is_zero = |n: Number| matches!(n, Finite { significand: 0, .. });
        match (self, other) {
            (Nan, _) | (_, Nan) => Nan,
            (Infinite { negative }, n) | (n, Infinite { negative }) => match n {
                n if is_zero(n) => Nan,
                Infinite { negative: other } | Finite { negative: other, .. } => {
                    Infinite { negative: negative != other }
                }
                Nan => Nan,
            },
            (
                Finite { negative: a, significand: m, exponent: e, fraction: f },
                Finite { negative: b, significand: n, exponent: g, fraction: h },
            ) => Finite { negative: a != b, significand: m * n, exponent: e + g, fraction: f + h },
        }
    }
}

impl Number {
    /// The same number in single precision, which holds all products of halves.
    pub(super) fn to_f32(self) -> f32 {
        match self {
            Number::Nan => f32::NAN,
            Number::Infinite { negative } => {
                if negative {
                    f32::NEG_INFINITY
                } else {
                    f32::INFINITY
                }
            }
            Number::Finite { negative, significand, exponent, fraction } => {
                let magnitude = significand as f32 * 2f32.powi(exponent - fraction);
                if negative { -magnitude } else { magnitude }
            }
        }
    }
}

/// `sum * 2^unit` as the bits of an f32 with that many fraction bits, rounded toward zero. Zero has no sign.
pub(super) fn to_f32(sum: i64, unit: i32, fraction: i32) -> u32 {
    let sign = u32::from(sum < 0) << 31;
    let magnitude = sum.unsigned_abs();
    if magnitude == 0 {
        return 0;
    }
    let exponent = unit + 63 - magnitude.leading_zeros() as i32;
    if exponent > 127 {
        return sign | 0x7f80_0000;
    }
    let shift = exponent.max(-126) - fraction - unit;
    let significand = match shift {
        0..64 => magnitude >> shift,
        64.. => 0,
        _ => magnitude << -shift,
    } as u32;
    if significand == 0 {
        return 0;
    }
    let significand = significand << (23 - fraction);
    // The hidden bit of a normal number counts the exponent up by one.
    let exponent = if exponent < -126 { 0 } else { exponent + 126 };
    sign | ((exponent as u32) << 23).wrapping_add(significand)
}

/// `sum * 2^unit` as the bits of an f16, rounded to nearest even. Zero has no sign.
pub(super) fn to_f16(sum: i64, unit: i32) -> u16 {
    // Sums have fewer bits than an f64 holds.
    let rounded = f16::from_f64(sum as f64 * 2f64.powi(unit));
    if rounded == f16::ZERO { 0 } else { rounded.to_bits() }
}
