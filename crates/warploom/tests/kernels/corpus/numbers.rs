//! 64-bit and 16-bit floating point.

use half::f16;
use warploom::{Arg, Launch, args};

use crate::support::{Outcome, Random, Run, close, same, same_f32, same_f64};

pub(super) fn dpoly(run: &mut Run) -> Outcome {
    let n = 400usize;
    let mut random = Random::new(5);
    let mut xs: Vec<f64> =
        (0..n).map(|i| random.unit() * [3.0, 10.0, 1e-3, 1e6, 2e9, 1e-200][i % 6]).collect();
    let edges =
        [0.0, -0.0, 2.0, -2.0, 2.0f64.next_up(), -(2.0f64.next_up()), 1.0, 0.5, -2147483647.5, 2147483647.5];
    xs[..edges.len()].copy_from_slice(&edges);
    if run.exact {
        xs[20] = f64::NAN;
        xs[21] = f64::MIN_POSITIVE / 8.0;
    }
    let (x, y) = (run.gpu.buffer(&xs)?, run.gpu.zeros::<f64>(n)?);
    run.launch(Launch::grid(5).block(96), args![&x, &y, n as u32])?;
    let poly = |(i, &x): (usize, &f64)| {
        let p = 0.25f64.mul_add(x, -1.5).mul_add(x, 3.0).mul_add(x, -0.125);
        let q = p / x.mul_add(x, 1.0);
        let mut r = if q < 0.0 { -(-q).sqrt() } else { q.sqrt() };
        if x > 2.0 {
            r += f64::from(x.trunc() as i32);
        }
        if x < -2.0 {
            r += f64::from(q as f32);
        }
        if x.is_nan() {
            r = -1.0;
        }
        r + i as f64 * 0.5
    };
    let expected: Vec<f64> = xs.iter().enumerate().map(poly).collect();
    let got = y.read(&run.gpu)?;
    if run.exact { same_f64("y", &got, &expected) } else { close("y", &got, &expected, 1e-6) }
}

/// Rounds to the nearest half, ties to even.
fn to_half(value: f64) -> f16 {
    if value == 0.0 || !value.is_finite() {
        return f16::from_f64(value);
    }
    let exponent = ((value.to_bits() >> 52 & 0x7ff) as i32 - 1023).max(-14);
    let quantum = 2f64.powi(exponent - 10);
    let rounded = (value / quantum).round_ties_even() * quantum;
    f16::from_f64(if rounded.abs() > 65504.0 { f64::INFINITY.copysign(value) } else { rounded })
}

/// Arbitrary finite halves.
fn halves(random: &mut Random, n: usize) -> Vec<f16> {
    let any = |random: &mut Random| loop {
        let value = f16::from_bits(random.word() as u16);
        if value.is_finite() {
            break value;
        }
    };
    (0..n).map(|_| any(random)).collect()
}

/// Halves with magnitudes from 1/64 to 64.
fn moderate_halves(random: &mut Random, n: usize) -> Vec<f16> {
    let one = |random: &mut Random| {
        let exponent = 9 + random.below(12) as u16;
        f16::from_bits((random.word() as u16 & 0x83ff) | exponent << 10)
    };
    (0..n).map(|_| one(random)).collect()
}

/// Rounds once. The sum is exact in f64 if `a` has few digits, or if all halves are moderate.
fn fma(a: f16, x: f16, y: f16) -> f16 {
    to_half(a.to_f64() * x.to_f64() + y.to_f64())
}

fn bits(values: &[f16]) -> Vec<u16> {
    values.iter().map(|v| v.to_bits()).collect()
}

pub(super) fn halfaxpy(run: &mut Run) -> Outcome {
    for (at, a) in [1.0f32, -0.75, 3.0, 0.1, 1.2345].into_iter().enumerate() {
        let n = 300usize;
        let mut random = Random::new(at as u64);
        let make = if at < 3 { halves } else { moderate_halves };
        let (xs, ys) = (make(&mut random, n), make(&mut random, n));
        let (x, y) = (run.gpu.buffer(&xs)?, run.gpu.buffer(&ys)?);
        run.launch(Launch::grid(5).block(70), args![&x, &y, a, n as u32])?;
        let a = to_half(f64::from(a));
        let expected: Vec<f16> = xs.iter().zip(&ys).map(|(&x, &y)| fma(a, x, y)).collect();
        same("y", &bits(&y.read(&run.gpu)?), &bits(&expected))?;
    }
    Ok(())
}

pub(super) fn half2axpy(run: &mut Run) -> Outcome {
    let n = 100usize;
    let mut random = Random::new(9);
    let factors = [f16::from_f64(1.25), f16::from_f64(-0.5)];
    let (xs, ys) = (halves(&mut random, 2 * n), halves(&mut random, 2 * n));
    let (x, y) = (run.gpu.buffer(&xs)?, run.gpu.buffer(&ys)?);
    let pair = factors.map(f16::to_bits);
    let args = [Arg::from(&x), Arg::from(&y), Arg::of(&pair), Arg::from(n as u32)];
    run.launch(Launch::grid(2).block(64), args)?;
    let expected: Vec<f16> = (0..2 * n).map(|i| fma(factors[i % 2], xs[i], ys[i])).collect();
    same("y", &bits(&y.read(&run.gpu)?), &bits(&expected))
}

pub(super) fn halfwiden(run: &mut Run) -> Outcome {
    let n = 200usize;
    let xs = halves(&mut Random::new(10), n);
    let (x, y) = (run.gpu.buffer(&xs)?, run.gpu.zeros::<f32>(n)?);
    run.launch(Launch::grid(3).block(96), args![&x, &y, n as u32])?;
    let widen = |x: &f16| {
        let square = to_half(x.to_f64() * x.to_f64());
        0.5 * to_half(square.to_f64() + 1.0).to_f32()
    };
    same_f32("y", &y.read(&run.gpu)?, &xs.iter().map(widen).collect::<Vec<_>>())
}
