//! Integer arithmetic, bits, moves and integer comparison against arithmetic on i128.

mod lanes_support;

use lanes_support::*;
use warploom_isa::{Clamp, Cmp, Combine, Logic, Op, Part, Ty};

const SIGNED: [Ty; 3] = [Ty::S16, Ty::S32, Ty::S64];
const INTEGERS: [Ty; 6] = [Ty::U16, Ty::S16, Ty::U32, Ty::S32, Ty::U64, Ty::S64];
const PAIRS: [Ty; 2] = [Ty::U16x2, Ty::S16x2];

fn edges(ty: Ty) -> Vec<u64> {
    integer_edges(ty.bits())
}

/// Checks an operation on two operands of one type. `f` is exact; its result is truncated to the type.
fn binary(op: Op, ty: Ty, f: impl Fn(i128, i128) -> i128) {
    let k = Kind::of(ty);
    let one = |x: u64, y: u64| cut(ty, f(value(ty, x), value(ty, y)));
    check1(op, &[k, k], k, &pairs(&edges(ty), &edges(ty), 600), |[x, y, ..]| {
        if PAIRS.contains(&ty) { one(x, y) | one(x >> 16, y >> 16) << 16 } else { one(x, y) }
    });
}

fn unary(op: Op, ty: Ty, f: impl Fn(i128) -> i128) {
    let k = Kind::of(ty);
    check1(op, &[k], k, &singles(&edges(ty), 400), |[x, ..]| cut(ty, f(value(ty, x))));
}

#[test]
fn sums_and_differences() {
    for ty in INTEGERS.into_iter().chain(PAIRS) {
        binary(Op::IAdd(ty, Clamp::None), ty, |x, y| x + y);
        binary(Op::ISub(ty, Clamp::None), ty, |x, y| x - y);
    }
    for ty in [Ty::S32, Ty::S16x2, Ty::U16x2, Ty::S64, Ty::U32] {
        let (min, max) = range(ty);
        binary(Op::IAdd(ty, Clamp::Sat), ty, |x, y| (x + y).clamp(min, max));
        binary(Op::ISub(ty, Clamp::Sat), ty, |x, y| (x - y).clamp(min, max));
    }
}

#[test]
fn quotients_and_remainders() {
    for ty in INTEGERS {
        binary(Op::IDiv(ty), ty, |x, y| if y == 0 { -1 } else { x / y });
        binary(Op::IRem(ty), ty, |x, y| if y == 0 { -1 } else { x % y });
    }
}

#[test]
fn order_and_sign() {
    for ty in INTEGERS.into_iter().chain(PAIRS) {
        binary(Op::IMin(ty, Clamp::None), ty, i128::min);
        binary(Op::IMax(ty, Clamp::None), ty, i128::max);
    }
    for ty in [Ty::S16, Ty::S32, Ty::S64, Ty::S16x2] {
        binary(Op::IMin(ty, Clamp::Relu), ty, |x, y| x.min(y).max(0));
        binary(Op::IMax(ty, Clamp::Relu), ty, |x, y| x.max(y).max(0));
    }
    for ty in SIGNED {
        unary(Op::IAbs(ty), ty, i128::abs);
        unary(Op::INeg(ty), ty, |x| -x);
    }
}

fn part(ty: Ty, part: Part, product: i128) -> i128 {
    match part {
        Part::Hi => product >> ty.bits(),
        _ => product,
    }
}

/// Part of a product. An unsigned 64-bit product does not always fit an i128.
fn product(ty: Ty, which: Part, x: u64, y: u64) -> i128 {
    if ty == Ty::U64 && which == Part::Hi {
        ((u128::from(x) * u128::from(y)) >> 64) as i128
    } else {
        part(ty, which, value(ty, x).wrapping_mul(value(ty, y)))
    }
}

fn doubled(ty: Ty) -> Ty {
    match ty {
        Ty::U16 => Ty::U32,
        Ty::S16 => Ty::S32,
        Ty::U32 => Ty::U64,
        _ => Ty::S64,
    }
}

#[test]
fn products() {
    for ty in INTEGERS {
        for which in [Part::Lo, Part::Hi, Part::Wide] {
            if which == Part::Wide && ty.is_wide() {
                continue;
            }
            let result = if which == Part::Wide { doubled(ty) } else { ty };
            let (k, r) = (Kind::of(ty), Kind::of(result));
            let two = pairs(&edges(ty), &edges(ty), 600);
            check1(Op::IMul(ty, which), &[k, k], r, &two, |[x, y, ..]| cut(result, product(ty, which, x, y)));
            let few: Vec<u64> = edges(ty).into_iter().step_by(2).collect();
            let three = triples(&few, &few, &edges(result), 600);
            check1(Op::IMad(ty, which, Clamp::None), &[k, k, r], r, &three, |[x, y, z, _]| {
                cut(result, product(ty, which, x, y).wrapping_add(value(result, z)))
            });
        }
    }
    let three = triples(&edges(Ty::S32), &edges(Ty::S32), &edges(Ty::S32), 600);
    check1(Op::IMad(Ty::S32, Part::Hi, Clamp::Sat), &[Word; 3], Word, &three, |[x, y, z, _]| {
        let exact = product(Ty::S32, Part::Hi, x, y) + value(Ty::S32, z);
        cut(Ty::S32, exact.clamp(i32::MIN.into(), i32::MAX.into()))
    });
}

#[test]
fn products_of_24_bits() {
    for ty in [Ty::U32, Ty::S32] {
        let low = move |x: u64| {
            let low = i128::from(x & 0xff_ffff);
            if ty.is_signed() && low >> 23 != 0 { low - (1 << 24) } else { low }
        };
        for which in [Part::Lo, Part::Hi] {
            let product =
                move |x, y| if which == Part::Hi { (low(x) * low(y)) >> 16 } else { low(x) * low(y) };
            let three = triples(&edges(ty), &edges(ty), &edges(ty), 600);
            check1(Op::Mul24(ty, which), &[Word; 2], Word, &three, |[x, y, ..]| cut(ty, product(x, y)));
            check1(Op::Mad24(ty, which, Clamp::None), &[Word; 3], Word, &three, |[x, y, z, _]| {
                cut(ty, product(x, y) + value(ty, z))
            });
        }
    }
    let three = triples(&edges(Ty::S32), &edges(Ty::S32), &edges(Ty::S32), 600);
    check1(Op::Mad24(Ty::S32, Part::Hi, Clamp::Sat), &[Word; 3], Word, &three, |[x, y, z, _]| {
        let low = |x: u64| ((x as i32) << 8 >> 8) as i128;
        cut(Ty::S32, (((low(x) * low(y)) >> 16) + value(Ty::S32, z)).clamp(i32::MIN.into(), i32::MAX.into()))
    });
}

#[test]
fn carries() {
    for ty in [Ty::U32, Ty::U64] {
        let k = Kind::of(ty);
        for third in [Bit, Absent] {
            let carry_in: &[u64] = if third == Bit { &[0, 1] } else { &[0] };
            let mut tuples = triples(&edges(ty), &edges(ty), carry_in, 800);
            tuples.iter_mut().for_each(|t| t[2] &= carry_in[carry_in.len() - 1]);
            let src = [k, k, third];
            check(
                &Form { op: Op::AddCarry(ty), src: &src, dst: k, second: true },
                &tuples,
                |[x, y, c, _]| {
                    let sum = value(ty, x) + value(ty, y) + i128::from(c);
                    (cut(ty, sum), sum >> ty.bits() != 0)
                },
            );
            check(
                &Form { op: Op::SubBorrow(ty), src: &src, dst: k, second: true },
                &tuples,
                |[x, y, c, _]| {
                    // The carry is the inverted borrow; an absent one borrows nothing.
                    let borrow = third == Bit && c == 0;
                    let difference = value(ty, x) - value(ty, y) - i128::from(borrow);
                    (cut(ty, difference), difference >= 0)
                },
            );
            for which in [Part::Lo, Part::Hi] {
                let src = [k, k, k, third];
                let few: Vec<u64> = edges(ty).into_iter().step_by(2).collect();
                let mut tuples = triples(&few, &few, &edges(ty), 800);
                for (i, tuple) in tuples.iter_mut().enumerate() {
                    tuple[3] = (i as u64 & 1) * u64::from(third == Bit);
                }
                let op = Op::MadCarry(ty, which);
                check(&Form { op, src: &src, dst: k, second: true }, &tuples, |[x, y, z, c]| {
                    let product = i128::from(cut(ty, product(ty, which, x, y)));
                    let sum = product + value(ty, z) + i128::from(c);
                    (cut(ty, sum), sum >> ty.bits() != 0)
                });
            }
        }
    }
}

#[test]
fn absolute_differences_and_dot_products() {
    for ty in INTEGERS {
        let k = Kind::of(ty);
        let few: Vec<u64> = edges(ty).into_iter().step_by(2).collect();
        check1(Op::Sad(ty), &[k; 3], k, &triples(&few, &edges(ty), &few, 600), |[x, y, z, _]| {
            cut(ty, (value(ty, x) - value(ty, y)).abs() + value(ty, z))
        });
    }
    let byte = |x: u64, k: u32, signed: bool| value(if signed { Ty::S8 } else { Ty::U8 }, x >> (8 * k));
    let half = |x: u64, k: u32, signed: bool| value(if signed { Ty::S16 } else { Ty::U16 }, x >> (16 * k));
    let few: Vec<u64> = edges(Ty::U32).into_iter().step_by(2).collect();
    let tuples = triples(&edges(Ty::U32), &edges(Ty::U32), &few, 2000);
    for (s, t) in [(false, false), (false, true), (true, false), (true, true)] {
        check1(Op::Dp4a(s, t), &[Word; 3], Word, &tuples, |[x, y, z, _]| {
            cut(Ty::U32, value(Ty::U32, z) + (0..4).map(|k| byte(x, k, s) * byte(y, k, t)).sum::<i128>())
        });
        for high in [false, true] {
            let first = if high { 2 } else { 0 };
            check1(Op::Dp2a(s, t, high), &[Word; 3], Word, &tuples, |[x, y, z, _]| {
                let sum = half(x, 0, s) * byte(y, first, t) + half(x, 1, s) * byte(y, first + 1, t);
                cut(Ty::U32, value(Ty::U32, z) + sum)
            });
        }
    }
}

#[test]
fn integer_comparisons() {
    use std::cmp::Ordering::*;
    let types = INTEGERS.into_iter().chain([Ty::B16, Ty::B32, Ty::B64, Ty::U8, Ty::S8]);
    for ty in types {
        let k = Kind::of(ty);
        let mut tuples = pairs(&edges(ty), &edges(ty), 600);
        for (i, tuple) in tuples.iter_mut().enumerate() {
            tuple[2] = (i as u64 / 3) & 1;
        }
        for cmp in [Cmp::Eq, Cmp::Ne, Cmp::Lt, Cmp::Le, Cmp::Gt, Cmp::Ge] {
            let answer = |x: u64, y: u64| {
                let order = value(ty, x).cmp(&value(ty, y));
                match cmp {
                    Cmp::Eq => order == Equal,
                    Cmp::Ne => order != Equal,
                    Cmp::Lt => order == Less,
                    Cmp::Le => order != Greater,
                    Cmp::Gt => order == Greater,
                    _ => order != Less,
                }
            };
            for combine in [Combine::None, Combine::And, Combine::Or, Combine::Xor] {
                let joined = |p: bool, c: u64| match combine {
                    Combine::None => p,
                    Combine::And => p && c != 0,
                    Combine::Or => p || c != 0,
                    Combine::Xor => p != (c != 0),
                };
                let src = [k, k, if combine == Combine::None { Absent } else { Bit }];
                let op = Op::Setp { cmp, combine, ty, ftz: false };
                check(&Form { op, src: &src, dst: Bit, second: true }, &tuples, |[x, y, c, _]| {
                    let p = answer(x, y);
                    (joined(p, c).into(), joined(!p, c))
                });
                for (dst, yes) in [
                    (Ty::U32, 0xffff_ffff),
                    (Ty::S32, 0xffff_ffff),
                    (Ty::F32, 0x3f80_0000),
                    (Ty::U16, 0xffff),
                    (Ty::F16, 0x3c00),
                    (Ty::BF16, 0x3f80),
                ] {
                    let op = Op::Set { cmp, combine, src: ty, dst, ftz: false };
                    check1(
                        op,
                        &src,
                        Word,
                        &tuples[..200],
                        |[x, y, c, _]| {
                            if joined(answer(x, y), c) { yes } else { 0 }
                        },
                    );
                }
            }
        }
    }
}

#[test]
fn predicates() {
    let mut tuples = Vec::new();
    for i in 0..200u64 {
        tuples.push([i & 1, i >> 1 & 1, i >> 2 & 1, 0]);
    }
    check1(Op::MovPred, &[Bit], Bit, &tuples, |[x, ..]| x);
    check1(Op::NotPred, &[Bit], Bit, &tuples, |[x, ..]| 1 - x);
    check1(Op::LogicPred(Logic::And), &[Bit; 2], Bit, &tuples, |[x, y, ..]| x & y);
    check1(Op::LogicPred(Logic::Or), &[Bit; 2], Bit, &tuples, |[x, y, ..]| x | y);
    check1(Op::LogicPred(Logic::Xor), &[Bit; 2], Bit, &tuples, |[x, y, ..]| x ^ y);
    for (cmp, same) in [(Cmp::Eq, true), (Cmp::Ne, false)] {
        let op = Op::SetpPred(cmp, Combine::And);
        check(&Form { op, src: &[Bit; 3], dst: Bit, second: true }, &tuples, |[x, y, z, _]| {
            let p = (x == y) == same;
            ((p && z != 0).into(), !p && z != 0)
        });
        check1(Op::SetpPred(cmp, Combine::None), &[Bit; 2], Bit, &tuples, |[x, y, ..]| {
            ((x == y) == same).into()
        });
    }
}
