//! The special-function unit: approximations.
//!
//! Each is computed in f64 and rounded to the nearest result, which is well inside the error that the PTX
//! manual allows; the functions come from `libm`, not from the host, so that results are the same bits everywhere.

use warploom_isa::{Approx, Op, Round, Ty};

use super::format::{F64_NAN, Format};
use super::half;
use super::vector::{Filled, Inputs, map1, map2, wide};

/// `div.approx`, `div.full` and the one-input functions.
#[inline(never)]
pub(super) fn compute_rare<const N: usize>(inputs: Inputs<'_, N>) -> Filled<N> {
    let Inputs { a, b, .. } = inputs;
    match inputs.inst.op {
        Op::FDivApprox { full, ftz } => map2(a.lo, b.lo, |x, y| divide(x, y, full, ftz)),
        Op::FApprox(function, Ty::F64, _) => wide(|i| gross(function, a.wide(i))),
        Op::FApprox(function, Ty::F32, ftz) => {
            map1(a.lo, |x| approximate(function, Format::F32, ftz, x.into()) as u32)
        }
        Op::FApprox(function, ty, ftz) => {
            let format = Format::of(ty);
            half::each(ty, inputs, |x, _, _| approximate(function, format, ftz, x))
        }
        _ => Filled::Nothing,
    }
}

/// f32 division within 2 ulp. `div.approx` multiplies by a reciprocal, which for a divisor above 2^126 is zero.
fn divide(x: u32, y: u32, full: bool, ftz: bool) -> u32 {
    let flush = |bits: u32| if ftz { Format::F32.flush(bits.into()) as u32 } else { bits };
    let (x, y) = (f32::from_bits(flush(x)), f32::from_bits(flush(y)));
    let quotient = if !full && y.is_finite() && y.abs() > f32::from_bits((126 + 127) << 23) {
        f64::from(x) * f64::from(0.0f32.copysign(y))
    } else {
        f64::from(x) / f64::from(y)
    };
    flush(Format::F32.narrow(quotient, Round::Rn) as u32)
}

/// A one-input function in f32 or half precision.
fn approximate(function: Approx, format: Format, ftz: bool, x: u64) -> u64 {
    let flush = |bits: u64| if ftz { format.flush(bits) } else { bits };
    let x = format.widen(flush(x));
    let value = match function {
        Approx::Rcp => 1.0 / x,
        Approx::Sqrt => x.sqrt(),
        // The root of -0 is -0, and its reciprocal minus infinity, as the manual's table says.
        Approx::Rsqrt => 1.0 / x.sqrt(),
        Approx::Sin => libm::sin(x),
        Approx::Cos => libm::cos(x),
        Approx::Lg2 => libm::log2(x),
        Approx::Ex2 => libm::exp2(x),
        Approx::Tanh => libm::tanh(x),
    };
    flush(format.narrow(value, Round::Rn))
}

/// `rcp.approx.ftz.f64` and `rsqrt.approx.ftz.f64`: only the upper word is read and written; subnormals are zero.
fn gross(function: Approx, x: u64) -> u64 {
    const UPPER: u64 = 0xffff_ffff << 32;
    // A NaN whose payload is in the lower word must not turn into infinity.
    if f64::from_bits(x).is_nan() {
        return F64_NAN;
    }
    let x = f64::from_bits(Format::F64.flush(x & UPPER));
    let value = match function {
        Approx::Rsqrt => 1.0 / x.sqrt(),
        _ => 1.0 / x,
    };
    if value.is_nan() { F64_NAN } else { Format::F64.flush(value.to_bits() & UPPER) }
}
