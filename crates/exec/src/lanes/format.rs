//! Floating-point formats: rounding into them, and the rules for NaNs.
//!
//! What a NaN becomes, as measured on Hopper:
//! - f32, f16 and bf16 operations, `abs` and `neg` included, give the canonical NaN: sign clear, all other bits set.
//! - f64 operations return an operand that is a NaN, made quiet: the second before the third, the third before the
//!   first. Division, which is a sequence of instructions, prefers the dividend. `min` and `max` return a NaN operand
//!   only if both are NaN. `abs` and `neg` keep a NaN's sign. An invalid operation on numbers gives [`F64_NAN`].
//! - `copysign` changes only the sign bit, also of a NaN; a `cvt` of f32 or f64 to itself without modifiers is a move.
//! - A `cvt` from f64 to a narrower type keeps sign and upper payload, made quiet ([`Format::narrow_nan`]). One to
//!   f64 keeps sign and payload. bf16 to f32 is a shift. All others give the canonical NaN; with `.ftz`, f32 to f64
//!   and bf16 to f32 make it canonical first.
//! - The f64 approximations that only see the upper word give [`GROSS_NAN`].
//! - Additions at the L2 ([`AtomicUnit::L2`](super::AtomicUnit::L2)) do not make an f64 NaN quiet.
//!
//! `.ftz` flushes operands, and results that are subnormal *after* rounding to the format's precision
//! ([`Format::narrow_flushed`]).

use warploom_isa::{Clamp, Round, Ty};

/// The canonical f32 NaN.
pub(super) const F32_NAN: u32 = 0x7fff_ffff;
/// The f64 NaN of an invalid operation.
pub(super) const F64_NAN: u64 = 0xfff8_0000_0000_0000;
/// The bit that makes an f64 NaN quiet.
pub(super) const F64_QUIET: u64 = 1 << 51;
/// The NaN of the f64 approximations that only compute an upper word.
pub(super) const GROSS_NAN: u64 = 0x7fff_ffff << 32;

/// The NaN result of an f64 operation: the first NaN among the operands, which are given in the order of preference, or
/// [`F64_NAN`].
pub(crate) fn f64_nan(operands: [u64; 3]) -> u64 {
    operands.into_iter().find(|&x| f64::from_bits(x).is_nan()).map_or(F64_NAN, |x| x | F64_QUIET)
}

/// A binary interchange format: `1 + exponent + fraction` bits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Format {
    exponent: u32,
    fraction: u32,
}

impl Format {
    pub(super) const F16: Format = Format { exponent: 5, fraction: 10 };
    pub(super) const BF16: Format = Format { exponent: 8, fraction: 7 };
    pub(super) const F32: Format = Format { exponent: 8, fraction: 23 };
    pub(super) const F64: Format = Format { exponent: 11, fraction: 52 };

    /// The format of a type; for a pair, of one half.
    pub(super) const fn of(ty: Ty) -> Format {
        match ty {
            Ty::F16 | Ty::F16x2 => Format::F16,
            Ty::BF16 | Ty::BF16x2 => Format::BF16,
            Ty::F64 => Format::F64,
            _ => Format::F32,
        }
    }

    pub(super) const fn sign_bit(self) -> u64 {
        1 << (self.exponent + self.fraction)
    }

    const fn infinity(self) -> u64 {
        ((1 << self.exponent) - 1) << self.fraction
    }

    /// The number 1.0.
    const fn one(self) -> u64 {
        ((1 << (self.exponent - 1)) - 1) << self.fraction
    }

    /// The canonical NaN: sign clear, all other bits set; for f64, [`F64_NAN`].
    pub(super) const fn nan(self) -> u64 {
        if self.fraction == 52 { F64_NAN } else { self.sign_bit() - 1 }
    }

    pub(super) const fn is_nan(self, bits: u64) -> bool {
        bits & (self.sign_bit() - 1) > self.infinity()
    }

    /// Subnormals become zero of the same sign.
    pub(super) const fn flush(self, bits: u64) -> u64 {
        if bits & self.infinity() == 0 { bits & self.sign_bit() } else { bits }
    }

    /// `.sat` and `.relu`.
    pub(super) fn clamp(self, bits: u64, clamp: Clamp) -> u64 {
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
    #[inline]
    pub(super) fn round(self, negative: bool, significand: u64, exponent: i32, round: Round) -> u64 {
        let sign = if negative { self.sign_bit() } else { 0 };
        if significand == 0 {
            return sign;
        }
        // Exponent of the result's last bit: from the number's magnitude, but at least that of the smallest subnormal.
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
        // The leading one of `kept` increments the exponent field, as does a carry from the rounding.
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

    /// `value` rounded to this format, NaN made canonical. If `value` was rounded to odd before, the result is as if
    /// rounded only once.
    #[inline]
    pub(super) fn narrow(self, value: f64, round: Round) -> u64 {
        let bits = value.to_bits();
        let fraction = bits & ((1 << 52) - 1);
        match (bits >> 52 & 0x7ff) as i32 {
            0x7ff if fraction != 0 => self.nan(),
            0x7ff => self.infinity() | if bits >> 63 != 0 { self.sign_bit() } else { 0 },
            0 => self.round(bits >> 63 != 0, fraction, -1074, round),
            exponent => self.round(bits >> 63 != 0, fraction | 1 << 52, exponent - 1075, round),
        }
    }

    /// As [`Format::narrow`], then flushed. A result is zero if it is subnormal when rounded to the precision of normal
    /// numbers: rounding to the lower precision of subnormals could round it up to the smallest normal number.
    #[inline]
    pub(super) fn narrow_flushed(self, value: f64, round: Round) -> u64 {
        let smallest_normal = 1 << self.fraction;
        let bits = self.narrow(value, round);
        let magnitude = bits & !self.sign_bit();
        if magnitude < smallest_normal || (magnitude == smallest_normal && self.is_tiny(value, round)) {
            bits & self.sign_bit()
        } else {
            bits
        }
    }

    /// Whether a number that rounded to the smallest normal one is below it at full precision.
    #[cold]
    fn is_tiny(self, value: f64, round: Round) -> bool {
        // Twice the number has the same digits and is normal, so it is rounded at full precision.
        self.narrow(2.0 * value, round) & !self.sign_bit() < 2 << self.fraction
    }

    /// An f64 NaN in this format: sign and upper payload kept, made quiet.
    pub(super) fn narrow_nan(self, bits: u64) -> u64 {
        let sign = if bits >> 63 != 0 { self.sign_bit() } else { 0 };
        let payload = (bits & ((1 << 52) - 1)) >> (52 - self.fraction);
        sign | self.infinity() | 1 << (self.fraction - 1) | payload
    }

    /// A number of this format as f64, exactly. A NaN becomes an unspecified NaN.
    pub(super) fn widen(self, bits: u64) -> f64 {
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
    // The exponent is too small by 112; the multiplication corrects it, for subnormals too.
    let scaled = (f32::from_bits(magnitude) * f32::from_bits((127 + 112) << 23)).to_bits();
    let special = u32::from(magnitude >= 0x7c00 << 13).wrapping_neg();
    // Scaled infinities and NaNs have exponent 143; the payload is in place.
    ((x & 0x8000) << 16) | (scaled & !special) | ((magnitude | 0x7f80_0000) & special)
}
