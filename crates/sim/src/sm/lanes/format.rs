//! Floating-point formats: exact rounding into them, and the one place that says what a NaN looks like.
//!
//! NaN results. f32, f16 and bf16 operations give the canonical NaN (sign clear, all other bits set), whatever
//! NaN went in. f64 operations propagate the first operand that is a NaN, made quiet; an invalid operation on
//! numbers gives [`F64_NAN`]. `abs`, `neg` and `copysign` only touch the sign bit, also of a NaN; `min` and `max` give
//! the canonical NaN of their type.

use warploom_isa::{Clamp, Round, Ty};

/// The canonical f32 NaN.
pub(super) const F32_NAN: u32 = 0x7fff_ffff;
/// The f64 NaN of an invalid operation.
pub(super) const F64_NAN: u64 = 0xfff8_0000_0000_0000;
/// The bit that makes an f64 NaN quiet.
const F64_QUIET: u64 = 1 << 51;

/// The result of an f64 operation that gave a NaN: the first NaN among the operands, or [`F64_NAN`].
pub(super) fn f64_nan(operands: [u64; 3]) -> u64 {
    operands.into_iter().find(|&x| f64::from_bits(x).is_nan()).map_or(F64_NAN, |x| x | F64_QUIET)
}

/// A binary interchange format: `1 + exponent + fraction` bits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Format {
    exponent: u32,
    fraction: u32,
}

impl Format {
    pub const F16: Format = Format { exponent: 5, fraction: 10 };
    pub const BF16: Format = Format { exponent: 8, fraction: 7 };
    pub const F32: Format = Format { exponent: 8, fraction: 23 };
    pub const F64: Format = Format { exponent: 11, fraction: 52 };

    /// The format of a type (of one half, for a pair).
    pub const fn of(ty: Ty) -> Format {
        match ty {
            Ty::F16 | Ty::F16x2 => Format::F16,
            Ty::BF16 | Ty::BF16x2 => Format::BF16,
            Ty::F64 => Format::F64,
            _ => Format::F32,
        }
    }

    pub const fn sign_bit(self) -> u64 {
        1 << (self.exponent + self.fraction)
    }

    const fn infinity(self) -> u64 {
        ((1 << self.exponent) - 1) << self.fraction
    }

    /// 1.0.
    const fn one(self) -> u64 {
        ((1 << (self.exponent - 1)) - 1) << self.fraction
    }

    /// The canonical NaN: sign clear, all other bits set; for f64, [`F64_NAN`].
    pub const fn nan(self) -> u64 {
        if self.fraction == 52 { F64_NAN } else { self.sign_bit() - 1 }
    }

    pub const fn is_nan(self, bits: u64) -> bool {
        bits & (self.sign_bit() - 1) > self.infinity()
    }

    /// Subnormals become zero of the same sign.
    pub const fn flush(self, bits: u64) -> u64 {
        if bits & self.infinity() == 0 { bits & self.sign_bit() } else { bits }
    }

    /// `.sat` and `.relu`.
    pub fn clamp(self, bits: u64, clamp: Clamp) -> u64 {
        let negative = bits & self.sign_bit() != 0;
        match clamp {
            Clamp::None => bits,
            Clamp::Sat if negative || self.is_nan(bits) => 0,
            Clamp::Sat => bits.min(self.one()),
            Clamp::Relu if self.is_nan(bits) => self.nan(),
            Clamp::Relu if negative => 0,
            Clamp::Relu => bits,
        }
    }

    /// The number `±significand * 2^exponent`, rounded once.
    pub fn round(self, negative: bool, significand: u64, exponent: i32, round: Round) -> u64 {
        let sign = if negative { self.sign_bit() } else { 0 };
        if significand == 0 {
            return sign;
        }
        // The weight of the result's last bit: by the number's size, but no less than the smallest subnormal.
        let least = 2 - (1 << (self.exponent - 1)) - self.fraction as i32;
        let top = exponent + significand.ilog2() as i32;
        let last = (top - self.fraction as i32).max(least);
        let (mut kept, rest, half) = match last - exponent {
            shift @ ..=0 => (significand << -shift, 0, 1),
            shift @ 1..=63 => (significand >> shift, significand & ((1 << shift) - 1), 1 << (shift - 1)),
            64 => (0, significand, 1 << 63),
            _ => (0, 1, 2),
        };
        let up = match round {
            Round::Rn => rest > half || (rest == half && kept & 1 != 0),
            Round::Rna => rest >= half,
            Round::Rz => false,
            Round::Rm => negative && rest != 0,
            Round::Rp => !negative && rest != 0,
        };
        kept += u64::from(up);
        // The leading one of `kept` adds itself to the exponent field, as does a carry out of the rounding.
        let bits = (((last - least) as u64) << self.fraction) + kept;
        if bits < self.infinity() {
            return sign | bits;
        }
        let to_infinity = match round {
            Round::Rn | Round::Rna => true,
            Round::Rz => false,
            Round::Rm => negative,
            Round::Rp => !negative,
        };
        sign | if to_infinity { self.infinity() } else { self.infinity() - 1 }
    }

    /// `value` rounded into this format, NaN made canonical. If `value` was itself rounded to odd, the result is
    /// as if rounded once.
    pub fn narrow(self, value: f64, round: Round) -> u64 {
        let bits = value.to_bits();
        let fraction = bits & ((1 << 52) - 1);
        match (bits >> 52 & 0x7ff) as i32 {
            0x7ff if fraction != 0 => self.nan(),
            0x7ff => self.infinity() | if bits >> 63 != 0 { self.sign_bit() } else { 0 },
            0 => self.round(bits >> 63 != 0, fraction, -1074, round),
            exponent => self.round(bits >> 63 != 0, fraction | 1 << 52, exponent - 1075, round),
        }
    }

    /// A number of this format as f64, exactly. (Not for signalling: a NaN becomes some NaN.)
    pub fn widen(self, bits: u64) -> f64 {
        match self.fraction {
            52 => f64::from_bits(bits),
            23 => f64::from(f32::from_bits(bits as u32)),
            7 => f64::from(f32::from_bits((bits as u32) << 16)),
            _ => f64::from(f32::from_bits(f16_to_f32(bits as u32))),
        }
    }
}

/// The f16 in the low half of a word as f32 bits, exactly; a NaN keeps sign and payload. Branch-free.
#[inline(always)]
pub(super) fn f16_to_f32(x: u32) -> u32 {
    let magnitude = (x & 0x7fff) << 13;
    // The exponent is off by 112; multiplying puts it right, for subnormals too.
    let scaled = (f32::from_bits(magnitude) * f32::from_bits((127 + 112) << 23)).to_bits();
    let special = u32::from(magnitude >= 0x7c00 << 13).wrapping_neg();
    // Scaled infinities and NaNs have exponent 143; the payload is in place.
    ((x & 0x8000) << 16) | (scaled & !special) | ((magnitude | 0x7f80_0000) & special)
}
