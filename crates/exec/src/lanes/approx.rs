//! The approximations of the special-function unit.
//!
//! Each is computed in f64 and rounded to the nearest f32, which is well inside the error that the PTX manual allows.
//! The functions come from `libm`, not from the host, so that results have the same bits everywhere. Powers of two,
//! which are frequent, come from a polynomial, for all lanes at once and with the bits of `libm`. Division and half
//! precision follow Hopper's sequence of steps, with an exact function in place of its approximation.

use warploom_isa::{Approx, Op, Round, Ty};

use crate::lanes::float::canonical32;
use crate::lanes::format::{F64_NAN, Format, GROSS_NAN, f64_nan};
use crate::lanes::half;
use crate::lanes::vector::{Filled, Inputs, Source, blend, map1, map2, ones, wide};

/// `div.approx`, `div.full` and the one-input functions.
#[inline(never)]
pub(super) fn compute_rare<const N: usize>(inputs: Inputs<'_, N>) -> Filled<N> {
    let Inputs { a, b, .. } = inputs;
    match inputs.inst.op {
        Op::FDivApprox { full, ftz } => map2(a.lo, b.lo, |x, y| divide(x, y, full, ftz)),
        Op::FApprox(Approx::Rsqrt, Ty::F64, false) => wide(|i| rsqrt_f64(a.wide(i))),
        Op::FApprox(Approx::Rcp, Ty::F32, false) => reciprocal32(a),
        Op::FApprox(Approx::Rsqrt, Ty::F32, false) => reciprocal_root32(a),
        Op::FApprox(Approx::Ex2, Ty::F32, ftz) => power_of_two32(a, ftz),
        Op::FApprox(function, Ty::F64, _) => wide(|i| gross(function, a.wide(i))),
        Op::FApprox(function, Ty::F32, ftz) => map1(a.lo, |x| {
            let value = of_number(function, Format::F32, ftz, x.into());
            round(Format::F32, ftz, value) as u32
        }),
        Op::FApprox(function, ty, ftz) => {
            let format = Format::of(ty);
            half::each(ty, inputs, |x, _, _| truncate(format, ftz, of_number(function, format, ftz, x)))
        }
        _ => Filled::Nothing,
    }
}

/// The reciprocal of an f32 number. The host rounds as [`Format::narrow`] does, and all lanes at once.
#[inline(always)]
pub(super) fn reciprocal32<const N: usize>(a: Source<'_, N>) -> Filled<N> {
    map1(a.lo, |x| canonical32(((1.0 / f64::from(f32::from_bits(x))) as f32).to_bits()))
}

/// As [`reciprocal32`], of the root.
#[inline(always)]
pub(super) fn reciprocal_root32<const N: usize>(a: Source<'_, N>) -> Filled<N> {
    map1(a.lo, |x| canonical32(((1.0 / f64::from(f32::from_bits(x)).sqrt()) as f32).to_bits()))
}

/// 2 to the power of an f32 number.
#[inline(always)]
pub(super) fn power_of_two32<const N: usize>(a: Source<'_, N>, ftz: bool) -> Filled<N> {
    map1(a.lo, |x| {
        let x = f32::from_bits(x);
        let power = canonical32((power_of_two(f64::from(x)) as f32).to_bits());
        // The largest number below -126 has a power that does not round to the smallest normal one.
        blend(ones(ftz && x < -126.0), 0, power)
    })
}

/// 2 to a power within half a unit of 2^-52 or little more. Below -160, as at -160, and above 130, as at 130: an f32
/// number holds neither.
#[inline(always)]
fn power_of_two(x: f64) -> f64 {
    // Added to a number that is not large, it leaves no place for a fraction.
    const WHOLE: f64 = 3.0 * (1u64 << 51) as f64;
    // Of the fraction, from -0.5 to 0.5, by Taylor: the next coefficient would add less than 2^-56.
    const COEFFICIENTS: [f64; 14] = {
        let mut all = [1.0; 14];
        let mut power = 1;
        while power < all.len() {
            all[power] = all[power - 1] * std::f64::consts::LN_2 / power as f64;
            power += 1;
        }
        all
    };
    let x = x.clamp(-160.0, 130.0);
    let whole = x + WHOLE;
    let fraction = x - (whole - WHOLE);
    let of_fraction = COEFFICIENTS.iter().rev().fold(0.0, |sum, coefficient| sum * fraction + coefficient);
    // The whole part is the lowest bits of the sum; as an exponent, those that do not fit are shifted out.
    of_fraction * f64::from_bits((whole.to_bits().wrapping_add(1023)) << 52)
}

fn round(format: Format, ftz: bool, value: f64) -> u64 {
    if ftz { format.narrow_flushed(value, Round::Rn) } else { format.narrow(value, Round::Rn) }
}

/// f32 division within 2 ulp: a product with the reciprocal. For divisors whose reciprocal is out of range, both
/// operands are scaled. With `div.approx`, the reciprocal of a divisor above 2^126 is zero.
fn divide(x: u32, y: u32, full: bool, ftz: bool) -> u32 {
    const LARGE: f64 = (1u128 << 126) as f64;
    let [x, y] = [x, y].map(|bits| {
        let bits = u64::from(bits);
        Format::F32.widen(if ftz { Format::F32.flush(bits) } else { bits })
    });
    let is_large = y.is_finite() && y.abs() > LARGE;
    let scale = match y.abs() {
        _ if is_large => 0.25,
        magnitude if magnitude < 1.0 / LARGE => (1 << 24) as f64,
        _ => 1.0,
    };
    let reciprocal = if is_large && !full {
        0f64.copysign(y)
    } else {
        Format::F32.widen(Format::F32.narrow(1.0 / (y * scale), Round::Rn))
    };
    round(Format::F32, ftz, x * scale * reciprocal) as u32
}

/// A one-input function of an f32, f16 or bf16 number.
fn of_number(function: Approx, format: Format, ftz: bool, x: u64) -> f64 {
    let x = format.widen(if ftz { format.flush(x) } else { x });
    match function {
        Approx::Rcp => 1.0 / x,
        Approx::Sqrt => x.sqrt(),
        // The root of -0 is -0 and its reciprocal minus infinity, as in the PTX manual's table.
        Approx::Rsqrt => 1.0 / x.sqrt(),
        Approx::Sin => libm::sin(x),
        Approx::Cos => libm::cos(x),
        Approx::Lg2 => libm::log2(x),
        Approx::Ex2 => libm::exp2(x),
        Approx::Tanh => libm::tanh(x),
    }
}

/// Correct fraction bits of an f32 approximation: the PTX manual bounds the error of `ex2.approx.f32` by 2^-22.
const GOOD_DIGITS: u32 = 22;

/// Half precision truncates the f32 approximation after rounding it to its correct digits, so that a value just below a
/// half-precision number becomes that number.
fn truncate(format: Format, ftz: bool, value: f64) -> u64 {
    let nearest = format.narrow(value, Round::Rn);
    if !format.widen(nearest).is_finite() {
        return nearest;
    }
    let unit = 1u64 << (52 - GOOD_DIGITS);
    let good = f64::from_bits((value.to_bits() + unit / 2) & !(unit - 1));
    if ftz { format.narrow_flushed(good, Round::Rz) } else { format.narrow(good, Round::Rz) }
}

/// `rsqrt.approx.f64`, correctly rounded: Hopper's sequence of instructions nearly always is.
fn rsqrt_f64(bits: u64) -> u64 {
    let x = f64::from_bits(bits);
    if x.is_nan() {
        return f64_nan([bits; 3]);
    }
    if x == 0.0 {
        return (1.0 / x).to_bits();
    }
    if x < 0.0 {
        return F64_NAN;
    }
    if x.is_infinite() {
        return 0;
    }
    let (fraction, exponent) = libm::frexp(x);
    let odd = exponent & 1;
    let x = fraction * f64::from(1 + odd);
    let y = 1.0 / x.sqrt();
    // 1 - x * y * y, including the part of x * y that was rounded off.
    let product = x * y;
    let residual = (-product).mul_add(y, 1.0) - x.mul_add(y, -product) * y;
    let nearest = (0.5 * residual).mul_add(y, y);
    libm::scalbn(nearest, (odd - exponent) / 2).to_bits()
}

/// `rcp.approx.ftz.f64` and `rsqrt.approx.ftz.f64`: only the upper word is read and written, and subnormals are zero. A
/// NaN whose payload is in the lower word only is read as infinity.
fn gross(function: Approx, x: u64) -> u64 {
    const UPPER: u64 = 0xffff_ffff << 32;
    let x = f64::from_bits(Format::F64.flush(x & UPPER));
    let value = match function {
        Approx::Rsqrt => 1.0 / x.sqrt(),
        _ => 1.0 / x,
    };
    if value.is_nan() { GROSS_NAN } else { Format::F64.flush(value.to_bits() & UPPER) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// They are so for every f32 number; here, for one in 4,093.
    #[test]
    fn powers_of_two_are_those_of_libm() {
        let numbers = (0..=u32::MAX).step_by(4093).map(f32::from_bits).filter(|x| !x.is_nan());
        let edges =
            [-126.0, -149.0, -150.0, 127.99999, 128.0, 1e-40, 0.0, -0.0, f32::INFINITY, f32::NEG_INFINITY];
        for x in numbers.chain(edges).chain(edges.map(f32::next_down)) {
            let expected = libm::exp2(f64::from(x));
            assert_eq!((power_of_two(f64::from(x)) as f32).to_bits(), (expected as f32).to_bits(), "{x:e}");
            let bits = [x.to_bits(); 32];
            for ftz in [false, true] {
                let Filled::Word(found) = power_of_two32(Source { lo: &bits, hi: &bits }, ftz) else {
                    panic!()
                };
                assert_eq!(u64::from(found[5]), round(Format::F32, ftz, expected), "{x:e} {ftz}");
            }
        }
    }
}
