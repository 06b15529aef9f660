//! Conversions to and from 8-, 6- and 4-bit floating point and tf32, and those that saturate to finite numbers.
//!
//! A NaN becomes the canonical one of the format, or its largest number if the format has no NaN. Zero keeps its sign.

use half::{bf16, f16};
use warploom_isa::{CvtNarrow, NarrowFloat, Round, Ty};

use crate::lanes::vector::{Filled, Source, word};

/// The largest finite magnitude, as bits.
fn largest(format: NarrowFloat) -> u64 {
    let (exponent, fraction) = format.fields();
    let all = (1 << (exponent + fraction)) - 1;
    match format {
        // All codes but one are numbers.
        NarrowFloat::E4m3 | NarrowFloat::Ue8m0 => all - 1,
        NarrowFloat::E2m3 | NarrowFloat::E3m2 | NarrowFloat::E2m1 => all,
        _ => all - (1 << fraction),
    }
}

fn nan(format: NarrowFloat) -> u64 {
    match format {
        NarrowFloat::E2m3 | NarrowFloat::E3m2 | NarrowFloat::E2m1 => largest(format),
        NarrowFloat::E4m3 | NarrowFloat::E5m2 => 0x7f,
        NarrowFloat::Ue8m0 => 0xff,
        NarrowFloat::F16 | NarrowFloat::Bf16 => 0x7fff,
        NarrowFloat::Tf32 => 0x3ffff,
    }
}

/// The magnitude that one more than the largest finite one stands for.
fn beyond(format: NarrowFloat, finite: bool) -> u64 {
    match format {
        NarrowFloat::Ue8m0 if finite => largest(format),
        NarrowFloat::Ue8m0 => nan(format),
        _ if finite => largest(format),
        _ => largest(format) + 1,
    }
}

/// A number of at most single precision in a narrow format.
fn encode(cvt: CvtNarrow, value: f64) -> u64 {
    let (exponent, fraction) = cvt.format.fields();
    // A tf32 is the upper part of its word.
    let unused = if cvt.format == NarrowFloat::Tf32 { 13 } else { 0 };
    if value.is_nan() {
        return nan(cvt.format) << unused;
    }
    if cvt.relu && value.is_sign_negative() {
        return 0;
    }
    let magnitude = match value.abs() {
        infinite if infinite.is_infinite() => beyond(cvt.format, cvt.finite),
        number if cvt.format == NarrowFloat::Ue8m0 => power_of_two(number, cvt),
        number => {
            // The exponent of the last bit that the format has at this magnitude.
            let least = 2 - (1 << (exponent - 1));
            let top = if number == 0.0 { least } else { exponent_of(number).max(least) };
            let units = round(number * f64::exp2(f64::from(fraction as i32 - top)), cvt.round);
            // The hidden bit of a normal number counts the exponent up by one.
            let bits = (((top - least) as u64) << fraction) + units as u64;
            if bits > largest(cvt.format) { beyond(cvt.format, cvt.finite) } else { bits }
        }
    };
    let signed = cvt.format != NarrowFloat::Ue8m0 && value.is_sign_negative();
    (magnitude | u64::from(signed) << (exponent + fraction)) << unused
}

/// `cvt.rna.tf32`, an operation on integers: half a unit is added and the rest cut off, also of a NaN. Then what has no
/// finite exponent is one unit less, if it should.
fn nearest_tf32(bits: u32, finite: bool) -> u32 {
    let rounded = bits.wrapping_add(0x1000) & !0x1fff;
    if finite && rounded & 0x7f80_0000 == 0x7f80_0000 { rounded - 0x2000 } else { rounded }
}

/// The exponent of a positive number that is normal in double precision.
fn exponent_of(number: f64) -> i32 {
    (number.to_bits() >> 52) as i32 - 1023
}

fn round(units: f64, round: Round) -> f64 {
    match round {
        Round::Rn => units.round_ties_even(),
        Round::Rna => units.round(),
        Round::Rz | Round::Rm => units.trunc(),
        Round::Rp => units.ceil(),
    }
}

/// The exponent of a magnitude, with the bias of the format. Zero is below the smallest power of two.
fn power_of_two(number: f64, cvt: CvtNarrow) -> u64 {
    if number == 0.0 {
        return 0;
    }
    let exponent = exponent_of(number);
    let up = cvt.round == Round::Rp && number != f64::exp2(f64::from(exponent));
    let biased = (exponent + i32::from(up) + 127).max(0) as u64;
    if biased > largest(cvt.format) { beyond(cvt.format, cvt.finite) } else { biased }
}

/// The number that a code of a narrow format stands for; exact.
fn decode(format: NarrowFloat, bits: u64) -> f64 {
    let (exponent, fraction) = format.fields();
    if format == NarrowFloat::Ue8m0 {
        return if bits == 0xff { f64::NAN } else { f64::exp2(bits as f64 - 127.0) };
    }
    let sign = if bits >> (exponent + fraction) & 1 == 1 { -1.0 } else { 1.0 };
    let magnitude = bits & ((1 << (exponent + fraction)) - 1);
    if magnitude > largest(format) {
        let infinite = format == NarrowFloat::E5m2 && magnitude == largest(format) + 1;
        return if infinite { sign * f64::INFINITY } else { f64::NAN };
    }
    let field = (magnitude >> fraction) as i32;
    let hidden = u64::from(field > 0) << fraction;
    let units = (magnitude & ((1 << fraction) - 1) | hidden) as f64;
    let last = field.max(1) + 1 - (1 << (exponent - 1)) - fraction as i32;
    sign * units * f64::exp2(f64::from(last))
}

/// A number that the wider format holds exactly; NaN is canonical.
fn widen(cvt: CvtNarrow, bits: u64) -> u32 {
    let number = decode(cvt.format, bits);
    match cvt.other {
        _ if number.is_nan() => 0x7fff,
        _ if cvt.relu && number.is_sign_negative() => 0,
        Ty::BF16x2 => bf16::from_f64(number).to_bits().into(),
        _ => f16::from_f64(number).to_bits().into(),
    }
}

/// Any of these conversions, lane by lane.
#[inline(never)]
pub(super) fn convert_rare<const N: usize>(cvt: CvtNarrow, a: Source<'_, N>, b: Source<'_, N>) -> Filled<N> {
    let step = cvt.format.pair_bits();
    let half = |bits: u32| match cvt.other {
        Ty::BF16x2 => f64::from(bf16::from_bits(bits as u16)),
        _ => f64::from(f16::from_bits(bits as u16)),
    };
    let single = |bits: u32| match (cvt.format, cvt.round) {
        (NarrowFloat::Tf32, Round::Rna) => nearest_tf32(bits, cvt.finite),
        _ => encode(cvt, f64::from(f32::from_bits(bits))) as u32,
    };
    word(|i| match cvt.other {
        Ty::F32 if cvt.pair => single(a.lo[i]) << step | single(b.lo[i]),
        Ty::F32 => single(a.lo[i]),
        _ if cvt.narrows => {
            encode(cvt, half(a.lo[i] & 0xffff)) as u32 | (encode(cvt, half(a.lo[i] >> 16)) as u32) << step
        }
        _ => {
            let code = |at: u32| u64::from(a.lo[i] >> at & ((1 << step) - 1));
            widen(cvt, code(0)) | widen(cvt, code(step)) << 16
        }
    })
}
