//! Floating-point arithmetic, order, signs and comparison against exact arithmetic on big integers.

mod lanes_support;

use lanes_support::exact::{self, BF16, F16, F32, F64, Fmt, Num};
use lanes_support::*;
use warploom_isa::{Approx, Clamp, Cmp, Combine, FloatMode, MinMax, Op, Round, TestKind, Ty};

const FLOATS: [Ty; 6] = [Ty::F16, Ty::F16x2, Ty::BF16, Ty::BF16x2, Ty::F32, Ty::F64];
const ROUNDS: [Round; 4] = [Round::Rn, Round::Rz, Round::Rm, Round::Rp];

fn fmt(ty: Ty) -> Fmt {
    match ty {
        Ty::F16 | Ty::F16x2 => F16,
        Ty::BF16 | Ty::BF16x2 => BF16,
        Ty::F32 => F32,
        _ => F64,
    }
}

fn is_pair(ty: Ty) -> bool {
    matches!(ty, Ty::F16x2 | Ty::BF16x2)
}

/// Zeros, ones, the limits of every range, halfway cases, infinities, quiet and signalling NaNs, both signs.
fn edges(fmt: Fmt) -> Vec<u64> {
    let f = fmt.fraction;
    let one = ((1 << (fmt.exponent - 1)) - 1) << f;
    let mut out = vec![
        0,
        1,
        2,
        (1 << f) - 1,
        1 << f,
        (1 << f) + 1,
        1 << (f - 1),
        one - 1,
        one,
        one + 1,
        one + (1 << (f - 1)),
        one + (1 << f),
        one + (3 << (f - 1)),
        one - (1 << f),
        // About half an ulp of one, and neighbours.
        one - (u64::from(f + 1) << f),
        one - (u64::from(f + 1) << f) + 1,
        one - (u64::from(f + 2) << f),
        one + (u64::from(f) << f),
        // Squares of these are at the ends of the range.
        one / 2,
        one / 2 + 1,
        one + one / 2,
        one + one / 2 - 1,
        fmt.inf() - 1,
        fmt.inf() - 2,
        fmt.inf() - (1 << f),
        fmt.inf(),
        fmt.inf() + 1,
        fmt.inf() + (1 << (f - 1)),
        fmt.inf() + (1 << f) - 1,
    ];
    out.extend(out.clone().iter().map(|x| x | fmt.sign()));
    out
}

/// Tuples of `count` operands: all combinations of edges, then random numbers. Many of those have exponents close to
/// each other, so that sums cancel and round.
fn operands(fmt: Fmt, count: usize, random_cases: usize) -> Vec<[u64; 4]> {
    let edges = edges(fmt);
    let mut tuples = match count {
        1 => singles(&edges, 0),
        2 => pairs(&edges, &edges, 0),
        _ => {
            let few: Vec<u64> = edges.iter().copied().step_by(3).collect();
            triples(&few, &few, &edges, 0)
        }
    };
    let mut random = Random(random_cases as u64 * 7 + count as u64);
    let all = fmt.sign() | (fmt.sign() - 1);
    for case in 0..random_cases {
        let base = random.next() & fmt.inf();
        let tuple = [0; 4].map(|_: u64| {
            let bits = random.next() & all;
            let near = base.saturating_add_signed(((random.next() % 7) as i64 - 3) << fmt.fraction);
            match case % 4 {
                0 => bits,
                1 => (bits & !fmt.inf()) | (near & fmt.inf()),
                // Few significant bits: exact results and ties.
                2 => (bits & !(fmt.inf() | ((1 << (fmt.fraction - 3)) - 1))) | (near & fmt.inf()),
                // Around one.
                _ => {
                    let one = ((1u64 << (fmt.exponent - 1)) - 1) << fmt.fraction;
                    (bits & !fmt.inf())
                        | one.saturating_add_signed(((random.next() % 9) as i64 - 4) << fmt.fraction)
                }
            }
        });
        tuples.push(tuple);
    }
    tuples
}

/// Two elements in each word.
fn paired(tuples: &[[u64; 4]]) -> Vec<[u64; 4]> {
    let shift = tuples.len() / 3 + 1;
    let partner = |i: usize| tuples[(i + shift) % tuples.len()];
    (0..tuples.len())
        .map(|i| std::array::from_fn(|k| (tuples[i][k] & 0xffff) | (partner(i)[k] & 0xffff) << 16))
        .collect()
}

/// Checks an operation on every element of a type. The reference sees and gives single elements.
fn elements(op: Op, ty: Ty, count: usize, tuples: &[[u64; 4]], f: impl Fn([u64; 4]) -> u64) {
    let k = Kind::of(ty);
    let src = vec![k; count];
    if is_pair(ty) {
        check1(op, &src, k, &paired(tuples), |t| {
            f(t.map(|x| x & 0xffff)) | f(t.map(|x| x >> 16 & 0xffff)) << 16
        });
    } else {
        let keep = u64::MAX >> (64 - ty.bits());
        check1(op, &src, k, tuples, |t| f(t.map(|x| x & keep)));
    }
}

/// The canonical NaN of the narrow formats; for f64 a NaN operand, made quiet: the second, the third or the first.
fn nan(fmt: Fmt, operands: &[u64]) -> u64 {
    if fmt != F64 {
        return fmt.sign() - 1;
    }
    let preferred = operands.iter().skip(1).chain(operands.first()).find(|&&x| fmt.is_nan(x));
    preferred.map_or(0xfff8_0000_0000_0000, |x| x | 1 << 51)
}

fn clamped(fmt: Fmt, clamp: Clamp, bits: u64) -> u64 {
    let one = ((1 << (fmt.exponent - 1)) - 1) << fmt.fraction;
    let negative = bits & fmt.sign() != 0;
    match clamp {
        Clamp::None => bits,
        Clamp::Sat if fmt.is_nan(bits) || negative => 0,
        Clamp::Sat if bits > one => one,
        Clamp::Sat => bits,
        Clamp::Relu if fmt.is_nan(bits) => nan(fmt, &[]),
        Clamp::Relu => {
            if negative {
                0
            } else {
                bits
            }
        }
    }
}

/// The result of an exact operation under a mode.
fn under(fmt: Fmt, mode: FloatMode, operands: &[u64], f: impl Fn(&[Num]) -> (Num, bool)) -> u64 {
    let flush = |x: u64| if mode.ftz { fmt.flush(x) } else { x };
    let flushed: Vec<u64> = operands.iter().map(|&x| flush(x)).collect();
    let numbers: Vec<Num> = flushed.iter().map(|&x| fmt.decode(x)).collect();
    let (exact, sticky) = f(&numbers);
    let encode = if mode.ftz { Fmt::encode_flushed } else { Fmt::encode };
    clamped(fmt, mode.clamp, encode(fmt, &exact, sticky, mode.round, nan(fmt, &flushed)))
}

fn modes(ty: Ty) -> Vec<FloatMode> {
    let mut out = Vec::new();
    for round in ROUNDS {
        for ftz in [false, true] {
            for clamp in [Clamp::None, Clamp::Sat, Clamp::Relu] {
                let half = fmt(ty).fraction < 23;
                // The modes of PTX: f64 neither flushes nor clamps, halves round to nearest, and relu is for halves.
                if (ty == Ty::F64 && (ftz || clamp != Clamp::None))
                    || (half && round != Round::Rn)
                    || (!half && clamp == Clamp::Relu)
                {
                    continue;
                }
                out.push(FloatMode { round, ftz, clamp });
            }
        }
    }
    out
}

#[test]
fn sums_products_quotients() {
    for ty in FLOATS {
        let tuples = operands(fmt(ty), 2, 3000);
        for mode in modes(ty) {
            let round = mode.round;
            elements(Op::FAdd(ty, mode), ty, 2, &tuples, |[x, y, ..]| {
                under(fmt(ty), mode, &[x, y], |n| (exact::add(&n[0], &n[1], round), false))
            });
            elements(Op::FSub(ty, mode), ty, 2, &tuples, |[x, y, ..]| {
                under(fmt(ty), mode, &[x, y], |n| (exact::add(&n[0], &exact::negate(&n[1]), round), false))
            });
            elements(Op::FMul(ty, mode), ty, 2, &tuples, |[x, y, ..]| {
                under(fmt(ty), mode, &[x, y], |n| (exact::mul(&n[0], &n[1]), false))
            });
            if matches!(ty, Ty::F32 | Ty::F64) {
                // A NaN dividend is preferred.
                elements(Op::FDiv(ty, mode), ty, 2, &tuples, |[x, y, ..]| {
                    under(fmt(ty), mode, &[y, x], |n| exact::div(&n[1], &n[0]))
                });
            }
        }
    }
}

#[test]
fn fused_multiply_add() {
    for ty in FLOATS {
        let tuples = operands(fmt(ty), 3, 3000);
        for mode in modes(ty) {
            elements(Op::FFma(ty, mode), ty, 3, &tuples, |[x, y, z, _]| {
                under(fmt(ty), mode, &[x, y, z], |n| {
                    (exact::add(&exact::mul(&n[0], &n[1]), &n[2], mode.round), false)
                })
            });
        }
    }
}

/// Results from a real GPU: a result that is subnormal at full precision is flushed, even if rounding to a subnormal's
/// precision gives the smallest normal number.
#[test]
fn subnormal_results_are_flushed_after_rounding() {
    const SMALLEST: u64 = 0x0080_0000;
    let minus = |x: u64| x | 0x8000_0000;
    let (below_one, above_one) = (0x3f7f_ffff, 0x3f80_0001);
    let ftz = |round| FloatMode { round, ftz: true, clamp: Clamp::None };
    for (op, operands, want) in [
        (Op::FMul(Ty::F32, ftz(Round::Rn)), [minus(below_one), SMALLEST, 0], minus(0)),
        (Op::FMul(Ty::F32, ftz(Round::Rm)), [minus(below_one), SMALLEST, 0], minus(0)),
        (Op::FFma(Ty::F32, ftz(Round::Rm)), [SMALLEST, minus(below_one), minus(2)], minus(0)),
        (Op::FFma(Ty::F32, ftz(Round::Rn)), [minus(SMALLEST); 3], minus(SMALLEST)),
        (Op::FFma(Ty::F32, ftz(Round::Rz)), [minus(SMALLEST); 3], minus(0)),
        (Op::FDiv(Ty::F32, ftz(Round::Rn)), [minus(below_one), 0x7e80_0000, 0], minus(0)),
        (Op::FDiv(Ty::F32, ftz(Round::Rm)), [SMALLEST, minus(above_one), 0], minus(0)),
        (Op::FMul(Ty::F16, ftz(Round::Rn)), [0x8400, 0xbbff, 0], 0),
        (Op::FFma(Ty::F16, ftz(Round::Rn)), [0x8400; 3], 0x8400),
    ] {
        let [x, y, z] = operands;
        check1(op, &[Word; 3], Word, &[[x, y, z, 0]], |_| want);
    }
}

/// Results from a real GPU.
#[test]
fn the_preferred_nan() {
    let rn = FloatMode::RN;
    let (a, b, c) = (0x7ffa_0000_0000_0001, 0xfff8_0000_0000_0000, 0xfff0_0000_0000_0001);
    let quiet = c | 1 << 51;
    for (op, operands, want) in [
        (Op::FAdd(Ty::F64, rn), [a, b, 0], b),
        (Op::FAdd(Ty::F64, rn), [a, 0, 0], a),
        (Op::FSub(Ty::F64, rn), [b, c, 0], quiet),
        (Op::FMul(Ty::F64, FloatMode { round: Round::Rp, ..rn }), [c, a, 0], a),
        (Op::FDiv(Ty::F64, rn), [a, c, 0], a),
        (Op::FFma(Ty::F64, rn), [a, c, 0], quiet),
        (Op::FFma(Ty::F64, rn), [a, 0, b], b),
        (Op::FFma(Ty::F64, rn), [0, a, b], a),
    ] {
        let [x, y, z] = operands;
        check1(op, &[Wide; 3], Wide, &[[x, y, z, 0]], |_| want);
    }
}

#[test]
fn reciprocals_and_roots() {
    for ty in [Ty::F32, Ty::F64] {
        let one = fmt(ty).decode(((1 << (fmt(ty).exponent - 1)) - 1) << fmt(ty).fraction);
        let tuples = operands(fmt(ty), 1, 6000);
        for mode in modes(ty) {
            elements(Op::FRounded(Approx::Rcp, ty, mode), ty, 1, &tuples, |[x, ..]| {
                under(fmt(ty), mode, &[x], |n| exact::div(&one, &n[0]))
            });
            elements(Op::FRounded(Approx::Sqrt, ty, mode), ty, 1, &tuples, |[x, ..]| {
                under(fmt(ty), mode, &[x], |n| exact::sqrt(&n[0]))
            });
        }
    }
}

#[test]
fn signs() {
    for ty in FLOATS {
        let f = fmt(ty);
        let tuples = operands(f, 2, 1000);
        for ftz in [false, true] {
            if ftz && ty == Ty::F64 {
                continue;
            }
            let flush = |x: u64| if ftz { f.flush(x) } else { x };
            let number = |x: u64, bits: u64| if f.is_nan(x) { nan(f, &[x]) } else { bits };
            elements(Op::FAbs(ty, ftz), ty, 1, &tuples, |[x, ..]| number(x, flush(x) & !f.sign()));
            elements(Op::FNeg(ty, ftz), ty, 1, &tuples, |[x, ..]| number(x, flush(x) ^ f.sign()));
        }
        elements(Op::Copysign(ty), ty, 2, &tuples, |[x, y, ..]| (y & !f.sign()) | (x & f.sign()));
    }
}

/// -1, 0 or 1. With `zeros`, -0 is below +0.
fn order(f: Fmt, x: u64, y: u64, zeros: bool) -> i32 {
    let exact = |bits: u64| {
        let magnitude = i128::from(bits & (f.sign() - 1)) * 2;
        match bits & f.sign() != 0 {
            true if magnitude == 0 => -i128::from(zeros),
            true => -magnitude,
            false => magnitude,
        }
    };
    exact(x).cmp(&exact(y)) as i32
}

#[test]
fn minimum_and_maximum() {
    for ty in FLOATS {
        let f = fmt(ty);
        let tuples = operands(f, 2, 1500);
        for bits in 0..8 {
            let how = MinMax { nan: bits & 1 != 0, ftz: bits & 2 != 0, xorsign_abs: bits & 4 != 0 };
            if ty == Ty::F64 && bits != 0 {
                continue;
            }
            for most in [false, true] {
                let op = if most { Op::FMax(ty, how) } else { Op::FMin(ty, how) };
                elements(op, ty, 2, &tuples, |[x, y, ..]| {
                    let (mut x, mut y) = if how.ftz { (f.flush(x), f.flush(y)) } else { (x, y) };
                    let sign = (x ^ y) & f.sign();
                    if how.xorsign_abs {
                        (x, y) = (x & !f.sign(), y & !f.sign());
                    }
                    let chosen = match (f.is_nan(x), f.is_nan(y)) {
                        (true, true) => return nan(f, &[x, y]),
                        (true, false) | (false, true) if how.nan => return nan(f, &[]),
                        (true, false) => y,
                        (false, true) => x,
                        _ if (order(f, x, y, true) > 0) == most => x,
                        _ => y,
                    };
                    if how.xorsign_abs { chosen | sign } else { chosen }
                });
            }
        }
    }
}

fn answer(f: Fmt, cmp: Cmp, ftz: bool, x: u64, y: u64) -> bool {
    let (x, y) = if ftz { (f.flush(x), f.flush(y)) } else { (x, y) };
    let unordered = f.is_nan(x) || f.is_nan(y);
    let order = order(f, x, y, false);
    match cmp {
        Cmp::Eq => !unordered && order == 0,
        Cmp::Ne => !unordered && order != 0,
        Cmp::Lt => !unordered && order < 0,
        Cmp::Le => !unordered && order <= 0,
        Cmp::Gt => !unordered && order > 0,
        Cmp::Ge => !unordered && order >= 0,
        Cmp::Equ => unordered || order == 0,
        Cmp::Neu => unordered || order != 0,
        Cmp::Ltu => unordered || order < 0,
        Cmp::Leu => unordered || order <= 0,
        Cmp::Gtu => unordered || order > 0,
        Cmp::Geu => unordered || order >= 0,
        Cmp::Num => !unordered,
        Cmp::Nan => unordered,
    }
}

#[test]
fn float_comparisons() {
    use Cmp::*;
    for ty in FLOATS {
        let f = fmt(ty);
        let k = Kind::of(ty);
        let mut tuples = operands(f, 2, 1000);
        if is_pair(ty) {
            tuples = paired(&tuples);
        }
        for (i, tuple) in tuples.iter_mut().enumerate() {
            tuple[2] = (i as u64 / 3) & 1;
        }
        for cmp in [Eq, Ne, Lt, Le, Gt, Ge, Equ, Neu, Ltu, Leu, Gtu, Geu, Num, Nan] {
            for ftz in [false, true] {
                if ftz && ty == Ty::F64 {
                    continue;
                }
                let p = |x: u64, y: u64| answer(f, cmp, ftz, x, y);
                let low = |x: u64, y: u64| {
                    if ty.bits() == 32 && f != F32 || ty.bits() == 16 {
                        p(x & 0xffff, y & 0xffff)
                    } else {
                        p(x, y)
                    }
                };
                let high = |x: u64, y: u64| p(x >> 16 & 0xffff, y >> 16 & 0xffff);
                for combine in [Combine::None, Combine::And, Combine::Or, Combine::Xor] {
                    let joined = |p: bool, c: u64| match combine {
                        Combine::None => p,
                        Combine::And => p && c != 0,
                        Combine::Or => p || c != 0,
                        Combine::Xor => p != (c != 0),
                    };
                    let src = [k, k, if combine == Combine::None { Absent } else { Bit }];
                    let op = Op::Setp { cmp, combine, ty, ftz };
                    check(&Form { op, src: &src, dst: Bit, second: true }, &tuples, |[x, y, c, _]| {
                        let second = if is_pair(ty) { high(x, y) } else { !low(x, y) };
                        (joined(low(x, y), c).into(), joined(second, c))
                    });
                    let results: &[(Ty, u64)] = match is_pair(ty) {
                        true => {
                            &[(Ty::F16x2, 0x3c00_3c00), (Ty::BF16x2, 0x3f80_3f80), (Ty::U16x2, 0xffff_ffff)]
                        }
                        false => &[
                            (Ty::U32, 0xffff_ffff),
                            (Ty::F32, 0x3f80_0000),
                            (Ty::F16, 0x3c00),
                            (Ty::BF16, 0x3f80),
                        ],
                    };
                    for &(dst, yes) in results {
                        let op = Op::Set { cmp, combine, src: ty, dst, ftz };
                        check1(op, &src, Word, &tuples[..300], |[x, y, c, _]| {
                            let mut k = if joined(low(x, y), c) { u64::MAX } else { 0 };
                            if is_pair(ty) {
                                k &= 0xffff;
                                k |= if joined(high(x, y), c) { 0xffff_0000 } else { 0 };
                            }
                            k & yes
                        });
                    }
                }
            }
        }
    }
}

#[test]
fn kinds_of_numbers() {
    for ty in [Ty::F16, Ty::BF16, Ty::F32, Ty::F64] {
        let f = fmt(ty);
        let keep = u64::MAX >> (64 - ty.bits());
        let tuples = operands(f, 1, 1000);
        let test = |kind: TestKind, g: &dyn Fn(u64) -> bool| {
            check1(Op::Testp(kind, ty), &[Kind::of(ty)], Bit, &tuples, |[x, ..]| g(x & keep).into());
        };
        let magnitude = |x: u64| x & (f.sign() - 1);
        test(TestKind::Finite, &|x| magnitude(x) < f.inf());
        test(TestKind::Infinite, &|x| magnitude(x) == f.inf());
        test(TestKind::Number, &|x| magnitude(x) <= f.inf());
        test(TestKind::NotANumber, &|x| magnitude(x) > f.inf());
        test(TestKind::Normal, &|x| magnitude(x) < f.inf() && !f.is_subnormal(x));
        test(TestKind::Subnormal, &|x| f.is_subnormal(x));
    }
}
