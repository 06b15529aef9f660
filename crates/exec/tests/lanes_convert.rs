//! Conversions against exact arithmetic, and atomics against plain arithmetic.

mod lanes_support;

use lanes_support::exact::{self, BF16, F16, F32, F64, Fmt, Num};
use lanes_support::*;
use num_bigint::BigUint;
use warploom_exec::lanes::{AtomicUnit, atomic};
use warploom_isa::{AtomOp, Clamp, Cvt, Op, Round, Ty};

const INTEGERS: [Ty; 8] = [Ty::U8, Ty::S8, Ty::U16, Ty::S16, Ty::U32, Ty::S32, Ty::U64, Ty::S64];
const FLOATS: [Ty; 4] = [Ty::F16, Ty::BF16, Ty::F32, Ty::F64];
const ROUNDS: [Round; 4] = [Round::Rn, Round::Rz, Round::Rm, Round::Rp];

fn fmt(ty: Ty) -> Fmt {
    match ty {
        Ty::F16 => F16,
        Ty::BF16 => BF16,
        Ty::F32 => F32,
        _ => F64,
    }
}

/// The register of a destination: one word or two.
fn register(ty: Ty) -> Kind {
    if ty.is_wide() { Wide } else { Word }
}

/// An integer result as the register holds it: extended to the word by its own signedness.
fn held(ty: Ty, number: i128) -> u64 {
    let number = value(ty, number as u64);
    if ty.is_wide() { number as u64 } else { number as u64 & 0xffff_ffff }
}

fn cvt(to: Ty, from: Ty) -> Cvt {
    Cvt { to, from, round: Round::Rn, integral: false, ftz: false, clamp: Clamp::None }
}

/// Floats at and near integers, halves and the limits of every integer type, and random ones with exponents in range.
fn float_cases(f: Fmt) -> Vec<[u64; 4]> {
    let mut values: Vec<u64> = Vec::new();
    let numbers = [
        0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.5, 3.5, 126.5, 127.5, 128.5, 254.5, 255.5, 1e-30, 1e-40, 1e30,
        0.999,
    ];
    let powers = [7, 8, 15, 16, 31, 32, 63, 64].map(|n| (n as f64).exp2());
    for x in
        numbers.into_iter().chain(powers.into_iter().flat_map(|p| [p, p - 1.0, p + 1.0, p - 0.5, p * 1.5]))
    {
        let near = f.encode(&F64.decode(x.to_bits()), false, Round::Rn, 0);
        values.extend([near, near + 1, near.saturating_sub(1)]);
    }
    let i = f.inf();
    values.extend([
        0,
        1,
        (1 << f.fraction) - 1,
        1 << f.fraction,
        i,
        i - 1,
        i + 1,
        i + (1 << (f.fraction - 1)),
        f.sign() - 1,
    ]);
    let mut random = Random(99);
    for _ in 0..3000 {
        let bits = random.next() & (f.sign() - 1);
        let exponent = ((1u64 << (f.exponent - 1)) - 3 + random.next() % 70).min((1 << f.exponent) - 1);
        values.push(match random.next() % 3 {
            0 => bits,
            1 => (bits & !f.inf()) | exponent << f.fraction,
            // Ties: a short fraction.
            _ => (bits & !f.inf() & !0 << (f.fraction - 4).min(f.fraction / 2)) | exponent << f.fraction,
        });
    }
    values.iter().flat_map(|&x| [[x, 0, 0, 0], [x | f.sign(), 0, 0, 0]]).collect()
}

fn clamped(f: Fmt, clamp: Clamp, bits: u64) -> u64 {
    let one = ((1 << (f.exponent - 1)) - 1) << f.fraction;
    match clamp {
        Clamp::None => bits,
        Clamp::Sat if f.is_nan(bits) || bits & f.sign() != 0 => 0,
        Clamp::Sat => bits.min(one),
        Clamp::Relu if f.is_nan(bits) => f.sign() - 1,
        Clamp::Relu => {
            if bits & f.sign() != 0 {
                0
            } else {
                bits
            }
        }
    }
}

#[test]
fn integer_to_integer() {
    for from in INTEGERS {
        for to in INTEGERS {
            let tuples = singles(&integer_edges(from.bits()), 500);
            for clamp in [Clamp::None, Clamp::Sat] {
                let (min, max) = range(to);
                let op = Op::Cvt(Cvt { clamp, ..cvt(to, from) });
                check1(op, &[Kind::of(from)], register(to), &tuples, |[x, ..]| {
                    let number = value(from, x);
                    held(to, if clamp == Clamp::Sat { number.clamp(min, max) } else { number })
                });
            }
        }
    }
}

#[test]
fn integer_to_float() {
    for from in INTEGERS {
        let mut edges = integer_edges(from.bits());
        // Halfway between two floats of each format, and next to it.
        for fraction in [7, 10, 23, 52] {
            for top in (fraction + 1)..from.bits().max(fraction + 1) {
                let tie = (1u64 << top) | (1u64 << (top - fraction - 1));
                edges.extend([tie, tie + 1, tie - 1, tie + (1u64 << (top - fraction))]);
            }
        }
        let tuples = singles(&edges, 800);
        for to in FLOATS {
            for round in ROUNDS {
                for clamp in [Clamp::None, Clamp::Sat] {
                    let f = fmt(to);
                    let op = Op::Cvt(Cvt { round, clamp, ..cvt(to, from) });
                    check1(op, &[Kind::of(from)], register(to), &tuples, |[x, ..]| {
                        let number = value(from, x);
                        let exact = Num::Fin(number < 0, BigUint::from(number.unsigned_abs()), 0);
                        clamped(f, clamp, f.encode(&exact, false, round, 0))
                    });
                }
            }
        }
    }
}

/// An exact number rounded to an integer: sign and magnitude.
fn to_integral(number: &Num, round: Round) -> (bool, BigUint) {
    let Num::Fin(negative, mantissa, exponent) = number else { unreachable!() };
    if *exponent >= 0 {
        return (*negative, mantissa << *exponent as usize);
    }
    let shift = (-*exponent) as usize;
    let below = mantissa >> shift;
    let rest = mantissa - (&below << shift);
    let half = BigUint::from(1u32) << (shift - 1);
    let up = match round {
        Round::Rn => rest > half || (rest == half && below.bit(0)),
        Round::Rna => rest >= half,
        Round::Rz => false,
        Round::Rm => *negative && rest.bits() != 0,
        Round::Rp => !*negative && rest.bits() != 0,
    };
    (*negative, if up { below + 1u32 } else { below })
}

#[test]
fn float_to_integer() {
    for from in FLOATS {
        let f = fmt(from);
        let keep = u64::MAX >> (64 - from.bits());
        let tuples = float_cases(f);
        for to in INTEGERS {
            let (min, max) = range(to);
            for round in ROUNDS {
                for ftz in [false, true] {
                    let op = Op::Cvt(Cvt { round, integral: true, ftz, ..cvt(to, from) });
                    check1(op, &[Kind::of(from)], register(to), &tuples, |[x, ..]| {
                        let x = x & keep;
                        let x = if ftz && from == Ty::F32 { f.flush(x) } else { x };
                        let number = match f.decode(x) {
                            Num::Nan if from == Ty::F64 || to.is_wide() => 1 << (to.bits() - 1),
                            Num::Nan => 0,
                            Num::Inf(true) => min,
                            Num::Inf(false) => max,
                            finite => {
                                let (negative, magnitude) = to_integral(&finite, round);
                                let magnitude = i128::try_from(magnitude).unwrap_or(i128::MAX);
                                (if negative { -magnitude } else { magnitude }).clamp(min, max)
                            }
                        };
                        held(to, number)
                    });
                }
            }
        }
    }
}

/// To or from f64, a NaN keeps its sign and as much of its payload as fits, and becomes quiet. A move changes nothing.
/// `.ftz` first makes an f32 canonical. All others give the canonical NaN.
fn nan(cvt: Cvt, x: u64) -> u64 {
    let (from, to) = (fmt(cvt.from), fmt(cvt.to));
    let x = if from == F32 && cvt.ftz { from.sign() - 1 } else { x };
    let wide = from.fraction.max(to.fraction);
    let fraction = (x & ((1 << from.fraction) - 1)) << (wide - from.fraction) >> (wide - to.fraction);
    let kept = if x & from.sign() != 0 { to.sign() } else { 0 } | to.inf() | fraction;
    let same = cvt.from == cvt.to && from.fraction > 10 && !cvt.integral;
    match (cvt.from, cvt.to) {
        _ if same => x,
        (Ty::BF16, Ty::F32) if !cvt.ftz => kept,
        (Ty::F64, _) | (_, Ty::F64) => kept | 1 << (to.fraction - 1),
        _ => to.sign() - 1,
    }
}

#[test]
fn float_to_float() {
    for from in FLOATS {
        let (f, keep) = (fmt(from), u64::MAX >> (64 - from.bits()));
        let tuples = float_cases(f);
        for to in FLOATS {
            let t = fmt(to);
            for round in ROUNDS {
                for (ftz, clamp, integral) in [
                    (false, Clamp::None, false),
                    (true, Clamp::None, false),
                    (false, Clamp::Sat, false),
                    (true, Clamp::Sat, false),
                    (false, Clamp::Relu, false),
                    (false, Clamp::None, true),
                    (true, Clamp::None, true),
                    (false, Clamp::Sat, true),
                ] {
                    if integral && from != to || clamp == Clamp::Relu && t.fraction > 10 {
                        continue;
                    }
                    let cvt = Cvt { round, ftz, clamp, integral, ..cvt(to, from) };
                    check1(Op::Cvt(cvt), &[Kind::of(from)], register(to), &tuples, |[x, ..]| {
                        let x = x & keep;
                        let x = if ftz && from == Ty::F32 && to != Ty::F16 { f.flush(x) } else { x };
                        let mut number = f.decode(x);
                        if integral && matches!(number, Num::Fin(..)) {
                            let (negative, magnitude) = to_integral(&number, round);
                            number = Num::Fin(negative, magnitude, 0);
                        }
                        let flushes = ftz && to == Ty::F32;
                        let encode = if flushes { Fmt::encode_flushed } else { Fmt::encode };
                        clamped(t, clamp, encode(t, &number, false, round, nan(cvt, x)))
                    });
                }
            }
        }
    }
}

#[test]
fn pairs_and_packs() {
    let mut cases = float_cases(F32);
    let count = cases.len();
    for i in 0..count {
        cases[i][1] = cases[(i + count / 2 + 1) % count][0];
    }
    for (to, half) in [(Ty::F16x2, F16), (Ty::BF16x2, BF16)] {
        for round in [Round::Rn, Round::Rz] {
            for clamp in [Clamp::None, Clamp::Relu] {
                let op = Op::CvtPair(Cvt { round, clamp, ..cvt(to, Ty::F32) });
                check1(op, &[Word, Word], Word, &cases, |[x, y, ..]| {
                    let one = |x: u64| {
                        let number = F32.decode(x & 0xffff_ffff);
                        clamped(half, clamp, half.encode(&number, false, round, half.sign() - 1))
                    };
                    one(x) << 16 | one(y)
                });
            }
        }
    }
    for ty in [Ty::U16, Ty::S16, Ty::U8, Ty::S8] {
        let edges = integer_edges(32);
        let bits = ty.bits();
        let (min, max) = range(ty);
        let third = if bits == 8 { Word } else { Absent };
        let tuples = triples(&edges, &edges, &edges[..3], 500);
        check1(Op::CvtPack(ty), &[Word, Word, third], Word, &tuples, |[x, y, z, _]| {
            let one = |x: u64| cut(ty, value(Ty::S32, x).clamp(min, max));
            one(x) << bits | one(y) | if bits == 8 { (z & 0xffff) << 16 } else { 0 }
        });
    }
}

#[test]
fn integer_atomics() {
    for ty in [Ty::U32, Ty::S32, Ty::B32, Ty::U64, Ty::S64, Ty::B64, Ty::B16] {
        for [old, b, c, _] in triples(&integer_edges(ty.bits()), &integer_edges(ty.bits()), &[5, 77], 500) {
            let keep = u64::MAX >> (64 - ty.bits());
            let (o, v) = (value(ty, old), value(ty, b));
            let expect = |op, want: i128| {
                for unit in [AtomicUnit::Sm, AtomicUnit::L2] {
                    let new = atomic(unit, op, ty, [old, b, c]);
                    assert_eq!(new, cut(ty, want), "{unit:?} {op:?} {ty} {old:#x} {b:#x} {c:#x}");
                }
            };
            expect(AtomOp::Add, o + v);
            expect(AtomOp::Min, o.min(v));
            expect(AtomOp::Max, o.max(v));
            expect(AtomOp::And, (old & b).into());
            expect(AtomOp::Or, (old | b).into());
            expect(AtomOp::Xor, (old ^ b).into());
            expect(AtomOp::Exch, b.into());
            expect(AtomOp::Cas, if (old ^ b) & keep == 0 { c } else { old }.into());
            if !ty.is_signed() {
                expect(AtomOp::Inc, if o >= v { 0 } else { o + 1 });
                expect(AtomOp::Dec, if o == 0 || o > v { v } else { o - 1 });
            }
        }
    }
}

#[test]
fn float_atomics() {
    for (unit, ty) in [AtomicUnit::Sm, AtomicUnit::L2].into_iter().flat_map(|u| FLOATS.map(|ty| (u, ty))) {
        let f = fmt(ty);
        let l2 = unit == AtomicUnit::L2;
        let flush = |x: u64| if l2 && ty == Ty::F32 { f.flush(x) } else { x };
        let cases = float_cases(f);
        let keep = u64::MAX >> (64 - ty.bits());
        let add = |ty, old, b| atomic(unit, AtomOp::Add, ty, [old, b, 0]);
        for (i, case) in cases.iter().enumerate() {
            let (x, y) = (case[0] & keep, cases[(i * 7 + 13) % cases.len()][0] & keep);
            let nan = match (f.is_nan(x), f.is_nan(y)) {
                _ if f != F64 => f.sign() - 1,
                (_, true) if l2 => y,
                (true, _) if l2 => x,
                (_, true) => y | 1 << 51,
                (true, _) => x | 1 << 51,
                _ => 0xfff8 << 48,
            };
            let sum = exact::add(&f.decode(flush(x)), &f.decode(flush(y)), Round::Rn);
            let want = flush(f.encode(&sum, false, Round::Rn, nan));
            assert_eq!(add(ty, x, y), want, "{unit:?} {ty} {x:#x} {y:#x}");
            if ty.bits() == 16 {
                let pair = if ty == Ty::F16 { Ty::F16x2 } else { Ty::BF16x2 };
                let one = 0x1234u64;
                assert_eq!(add(pair, x | one << 16, y | one << 16), want | add(ty, one, one) << 16);
            }
        }
    }
}
