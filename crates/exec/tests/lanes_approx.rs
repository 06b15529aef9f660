//! Approximations: the PTX manual's error bounds over many values, and its tables of special values.

mod lanes_support;

use lanes_support::exact::{self, Num};
use lanes_support::*;
use num_bigint::BigUint;
use warploom_exec::kit::lane_mask::LaneMask;
use warploom_exec::lanes::{Registers, execute};
use warploom_isa::{Approx, Dst, Inst, Op, Operand, Reg, Ty};

/// One operation on one pair of operands, in all lanes.
fn run(op: Op, a: u64, b: u64) -> u64 {
    let mut words: Vec<[u32; 32]> = [a as u32, (a >> 32) as u32, b as u32, 0, 0, 0].map(|x| [x; 32]).to_vec();
    let inst = Inst::new(op, Dst::Reg(Reg(4)), &[Operand::Reg(Reg(0)), Operand::Reg(Reg(2))]);
    let mut regs = Registers::<32> { words: &mut words, preds: &mut [], frame: 0 };
    assert!(execute::<32>(&inst, &mut regs, &[], LaneMask(u64::MAX)));
    assert!(words[4].iter().all(|&x| x == words[4][0]));
    u64::from(words[4][7]) | u64::from(words[5][7]) << 32
}

fn f32_of(op: Op, x: f32) -> f32 {
    f32::from_bits(run(op, x.to_bits().into(), 0) as u32)
}

fn same(got: f32, want: f32, what: &str) {
    let equal = got.to_bits() == want.to_bits();
    assert!(equal || (want.is_nan() && got.to_bits() == 0x7fff_ffff), "{what}: got {got:?}, want {want:?}");
}

const TINY: f32 = 1e-40;
const INF: f32 = f32::INFINITY;

#[test]
fn special_values() {
    use Approx::*;
    let nan = f32::NAN;
    // Function, flush, argument, result.
    let table = [
        (Rcp, true, -INF, -0.0),
        (Rcp, true, -TINY, -INF),
        (Rcp, true, -0.0, -INF),
        (Rcp, true, 0.0, INF),
        (Rcp, true, TINY, INF),
        (Rcp, true, INF, 0.0),
        (Rcp, true, f32::MAX, 0.0),
        (Rcp, true, nan, nan),
        (Rcp, false, f32::MAX, 1.0 / f32::MAX),
        (Rcp, false, -0.0, -INF),
        (Sqrt, true, -INF, nan),
        (Sqrt, true, -1.0, nan),
        (Sqrt, true, -TINY, -0.0),
        (Sqrt, false, -TINY, nan),
        (Sqrt, true, -0.0, -0.0),
        (Sqrt, true, 0.0, 0.0),
        (Sqrt, true, TINY, 0.0),
        (Sqrt, true, INF, INF),
        (Sqrt, true, nan, nan),
        (Rsqrt, true, -INF, nan),
        (Rsqrt, true, -1.0, nan),
        (Rsqrt, true, -TINY, -INF),
        (Rsqrt, true, -0.0, -INF),
        (Rsqrt, true, 0.0, INF),
        (Rsqrt, true, TINY, INF),
        (Rsqrt, true, INF, 0.0),
        (Rsqrt, true, nan, nan),
        (Sin, true, -INF, nan),
        (Sin, true, INF, nan),
        (Sin, true, -TINY, -0.0),
        (Sin, true, -0.0, -0.0),
        (Sin, true, 0.0, 0.0),
        (Sin, true, TINY, 0.0),
        (Sin, false, TINY, TINY),
        (Sin, true, nan, nan),
        (Cos, true, -INF, nan),
        (Cos, true, INF, nan),
        (Cos, true, -TINY, 1.0),
        (Cos, true, -0.0, 1.0),
        (Cos, true, 0.0, 1.0),
        (Cos, true, nan, nan),
        (Lg2, true, -INF, nan),
        (Lg2, true, -1.0, nan),
        (Lg2, true, -TINY, -INF),
        (Lg2, false, -TINY, nan),
        (Lg2, true, -0.0, -INF),
        (Lg2, true, 0.0, -INF),
        (Lg2, true, TINY, -INF),
        (Lg2, true, INF, INF),
        (Lg2, true, nan, nan),
        (Ex2, true, -INF, 0.0),
        (Ex2, true, -TINY, 1.0),
        (Ex2, true, -0.0, 1.0),
        (Ex2, true, 0.0, 1.0),
        (Ex2, true, INF, INF),
        (Ex2, true, 128.0, INF),
        (Ex2, true, -127.0, 0.0),
        (Ex2, false, -127.0, f32::MIN_POSITIVE / 2.0),
        (Ex2, true, nan, nan),
        (Tanh, false, -INF, -1.0),
        (Tanh, false, INF, 1.0),
        (Tanh, false, -0.0, -0.0),
        (Tanh, false, 0.0, 0.0),
        (Tanh, false, nan, nan),
    ];
    for (function, ftz, x, want) in table {
        same(
            f32_of(Op::FApprox(function, Ty::F32, ftz), x),
            want,
            &format!("{function:?} ftz {ftz} of {x:?}"),
        );
    }
}

/// Random arguments of both signs, with every exponent from `least` to `most`.
fn arguments(least: i32, most: i32) -> Vec<f32> {
    let mut random = Random(5);
    let mut out = Vec::new();
    for exponent in least..=most {
        for _ in 0..40 {
            let bits = (random.next() as u32 & 0x807f_ffff) | ((exponent + 127) as u32) << 23;
            out.push(f32::from_bits(bits));
        }
    }
    out
}

#[test]
fn error_bounds() {
    use Approx::*;
    let relative = |function, x: f32, want: f64, bound: f64| {
        let got = f64::from(f32_of(Op::FApprox(function, Ty::F32, false), x));
        let error = ((got - want) / want).abs();
        assert!(
            error <= bound,
            "{function:?} of {x:?}: got {got:?}, want {want:?}, relative error {error:e}"
        );
    };
    let absolute = |function, x: f32, want: f64, bound: f64| {
        let got = f64::from(f32_of(Op::FApprox(function, Ty::F32, false), x));
        assert!((got - want).abs() <= bound, "{function:?} of {x:?}: got {got:?}, want {want:?}");
    };
    let p = |n: f64| n.exp2();
    for x in arguments(-126, 126) {
        relative(Rcp, x, 1.0 / f64::from(x), p(-23.0));
        let y = f64::from(x.abs());
        relative(Sqrt, x.abs(), y.sqrt(), p(-23.0));
        relative(Rsqrt, x.abs(), 1.0 / y.sqrt(), p(-22.9));
        if !(0.5..=2.0).contains(&y) {
            relative(Lg2, x.abs(), y.log2(), p(-22.0));
        } else {
            absolute(Lg2, x.abs(), y.log2(), p(-22.0));
        }
    }
    for x in arguments(-40, 2) {
        let y = f64::from(x);
        if y.abs() < std::f64::consts::TAU {
            absolute(Sin, x, y.sin(), p(-20.5));
            absolute(Cos, x, y.cos(), p(-20.5));
        }
    }
    for x in arguments(-30, 6) {
        relative(Ex2, x, f64::from(x).exp2(), p(-22.0));
        relative(Tanh, x, f64::from(x).tanh(), p(-11.0));
    }
}

#[test]
fn approximate_division() {
    let approx = |x: f32, y: f32, full: bool, ftz: bool| {
        f32::from_bits(run(Op::FDivApprox { full, ftz }, x.to_bits().into(), y.to_bits().into()) as u32)
    };
    let huge = f32::from_bits(0x7e80_0001);
    for (x, y, full, ftz, want) in [
        (1.0, huge, false, false, 0.0),
        (-1.0, huge, false, false, -0.0),
        (1.0, -f32::MAX, false, false, -0.0),
        (INF, huge, false, false, f32::NAN),
        (INF, huge, true, false, INF),
        (f32::MAX, f32::MAX, true, false, 1.0),
        (1.0, 0.0, false, false, INF),
        (-1.0, 0.0, true, false, -INF),
        (0.0, 0.0, true, false, f32::NAN),
        (INF, INF, true, false, f32::NAN),
        (1.0, INF, false, false, 0.0),
        (f32::NAN, 1.0, false, false, f32::NAN),
        (1.0, TINY, true, true, INF),
        (TINY, 1.0, true, true, 0.0),
        (-TINY, 1.0, false, true, -0.0),
        (6.0, 3.0, false, false, 2.0),
    ] {
        same(approx(x, y, full, ftz), want, &format!("{x:?} / {y:?}, full {full}, ftz {ftz}"));
    }
    let values = arguments(-60, 60);
    for (x, y) in values.iter().zip(values.iter().rev()) {
        let want = f64::from(*x) / f64::from(*y);
        for full in [false, true] {
            let got = f64::from(approx(*x, *y, full, false));
            assert!(((got - want) / want).abs() <= 2.0 * (-23f64).exp2(), "{x:?} / {y:?}: {got:?}, {want:?}");
        }
    }
}

#[test]
fn gross_f64() {
    use Approx::*;
    let of = |function, x: f64| f64::from_bits(run(Op::FApprox(function, Ty::F64, true), x.to_bits(), 0));
    for x in [1.0, 1.5, -3.0, 1e300, 1e-300, 0.1, 12345.678] {
        let got = of(Rcp, x);
        assert!((got * x - 1.0).abs() < (-19f64).exp2() && got.to_bits() as u32 == 0, "{x:?}: {got:?}");
        let got = of(Rsqrt, x.abs());
        assert!(
            (got * got * x.abs() - 1.0).abs() < (-18f64).exp2() && got.to_bits() as u32 == 0,
            "{x:?}: {got:?}"
        );
    }
    for (function, x, want) in [
        (Rcp, -0.0, f64::NEG_INFINITY),
        (Rcp, 1e-310, f64::INFINITY),
        (Rcp, f64::INFINITY, 0.0),
        (Rcp, f64::NEG_INFINITY, -0.0),
        (Rsqrt, 0.0, f64::INFINITY),
        (Rsqrt, -0.0, f64::NEG_INFINITY),
        (Rsqrt, f64::INFINITY, 0.0),
    ] {
        assert_eq!(of(function, x).to_bits(), want.to_bits(), "{function:?} of {x:?}");
    }
    // Results from a real GPU: the NaN is the f32 one in the upper word, and a payload in the lower word is ignored.
    for (function, x, want) in [
        (Rsqrt, (-1f64).to_bits(), 0x7fff_ffff << 32),
        (Rcp, 0xfff8_0000_0000_0000, 0x7fff_ffff << 32),
        (Rcp, 0x7ff0_0000_0000_0001, 0),
        (Rcp, 0xfff0_0000_0000_0001, 1 << 63),
        (Rsqrt, 0x7ff0_0000_0000_0001, 0),
        (Rsqrt, 0xfff0_0000_0000_0001, 0x7fff_ffff << 32),
    ] {
        assert_eq!(of(function, f64::from_bits(x)).to_bits(), want, "{function:?} of {x:#x}");
    }
}

/// Results from a real GPU, and the nearest result for random arguments.
#[test]
fn reciprocal_root_of_f64() {
    let of = |x: u64| run(Op::FApprox(Approx::Rsqrt, Ty::F64, false), x, 0);
    for (x, want) in [
        (0x0000_0000_0000_0000, 0x7ff0_0000_0000_0000),
        (0x8000_0000_0000_0000, 0xfff0_0000_0000_0000),
        (0x0000_0000_0000_0001, 0x6180_0000_0000_0000),
        (0x8000_0000_0000_0001, 0xfff8_0000_0000_0000),
        (0x0000_0000_0000_0002, 0x6176_a09e_667f_3bcd),
        (0x0010_0000_0000_0001, 0x5fdf_ffff_ffff_ffff),
        (0x3ff8_0000_0000_0000, 0x3fea_20bd_700c_2c3e),
        (0x7ff0_0000_0000_0000, 0x0000_0000_0000_0000),
        (0x7ff0_0000_0000_0001, 0x7ff8_0000_0000_0001),
        (0xfffa_0000_0000_0001, 0xfffa_0000_0000_0001),
    ] {
        assert_eq!(of(x), want, "{x:#x}");
    }
    let mut random = Random(3);
    for _ in 0..2000 {
        let x = (random.next() >> 1).min(f64::MAX.to_bits());
        let y = of(x);
        let Num::Fin(false, digits, unit) = exact::F64.decode(y) else { panic!("{x:#x}: {y:#x}") };
        // Whether the square of a number between y and its neighbour, times x, is below one.
        let below = |between: BigUint| {
            let between = Num::Fin(false, between, unit - 1);
            let product = exact::mul(&exact::mul(&between, &between), &exact::F64.decode(x));
            matches!(product, Num::Fin(_, m, e) if m.bits() as i64 <= -e)
        };
        let twice = digits * 2u32;
        assert!(below(&twice - 1u32) && !below(&twice + 1u32), "{x:#x}: {y:#x}");
    }
}

#[test]
fn half_precision() {
    let of = |function, ty, x: u64| run(Op::FApprox(function, ty, false), x, 0);
    for bits in 0..0x1_0000u64 {
        let x = half::f16::from_bits(bits as u16);
        let got = half::f16::from_bits(of(Approx::Tanh, Ty::F16, bits) as u16);
        let want = x.to_f64().tanh();
        if x.is_nan() {
            assert_eq!(got.to_bits(), 0x7fff);
        } else {
            assert!((got.to_f64() - want).abs() <= (-10.987f64).exp2(), "tanh of {x:?}: {got:?}");
        }
        let got = half::f16::from_bits(of(Approx::Ex2, Ty::F16, bits) as u16).to_f64();
        let want = x.to_f64().exp2();
        if want >= 65520.0 {
            assert_eq!(got, f64::INFINITY);
        } else if !x.is_nan() {
            let bound = want * (-9.9f64).exp2() + (-24f64).exp2();
            assert!((got - want).abs() <= bound, "ex2 of {x:?}: {got:?}");
        }
    }
    // Results from a real GPU: truncated, apart from the last few digits of the f32 approximation.
    for (function, ty, x, want) in [
        (Approx::Ex2, Ty::F16, 0xcd60, 0x0005),
        (Approx::Ex2, Ty::F16, 0x3801, 0x3da8),
        (Approx::Ex2, Ty::F16, 0x8001, 0x3c00),
        (Approx::Ex2, Ty::F16, 0x8002, 0x3bff),
        (Approx::Ex2, Ty::F16, 0x4c04, 0x7c00),
        (Approx::Ex2, Ty::F16x2, 0xce01_27f9, 0x0000_3c16),
    ] {
        assert_eq!(of(function, ty, x), want, "{function:?} {ty} of {x:#x}");
    }
    // Both halves of a pair; the upper one is 1.0 in bf16.
    assert_eq!(of(Approx::Ex2, Ty::BF16x2, 0x3f80_0000), 0x4000_3f80);
    assert_eq!(of(Approx::Tanh, Ty::F16x2, 0xfc00_7c00), 0xbc00_3c00);
}
