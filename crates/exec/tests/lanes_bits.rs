//! Moves, logic, shifts and bit fields against bit-by-bit references.

mod lanes_support;

use lanes_support::*;
use warploom_isa::{Logic, Op, PrmtMode, Ty};

fn edges(ty: Ty) -> Vec<u64> {
    integer_edges(ty.bits())
}

const BITS: [Ty; 3] = [Ty::B16, Ty::B32, Ty::B64];

/// Shift counts and field positions around every width, and with bits above the low eight.
const COUNTS: [u64; 20] =
    [0, 1, 2, 7, 8, 15, 16, 17, 24, 31, 32, 33, 48, 63, 64, 65, 127, 255, 256 + 5, 0xffff_ffff];

/// Bit `i`, 0 beyond the top.
fn bit(x: u64, i: u64) -> bool {
    i < 64 && x >> i & 1 != 0
}

/// The number whose bit `i` is `f(i)`.
fn build(width: u64, f: impl Fn(u64) -> bool) -> u64 {
    (0..width).fold(0, |x, i| x | u64::from(f(i)) << i)
}

#[test]
fn moves() {
    let tuples = pairs(&edges(Ty::B64), &edges(Ty::B64), 500);
    check1(Op::Mov(Ty::B32), &[Word], Word, &tuples, |[x, ..]| x);
    check1(Op::Mov(Ty::F32), &[Word], Word, &tuples, |[x, ..]| x);
    check1(Op::Mov(Ty::U64), &[Wide], Wide, &tuples, |[x, ..]| x);
    check1(Op::Pack64, &[Word, Word], Wide, &tuples, |[x, y, ..]| (x & 0xffff_ffff) | y << 32);
    check1(Op::Pack32x16, &[Half, Half], Word, &tuples, |[x, y, ..]| (x & 0xffff) | (y & 0xffff) << 16);
    for part in 0..2 {
        check1(Op::Unpack64(part), &[Wide], Word, &tuples, |[x, ..]| (x >> (32 * part)) & 0xffff_ffff);
        check1(Op::Unpack32(part), &[Word], Word, &tuples, |[x, ..]| (x >> (16 * part)) & 0xffff);
    }
    for part in 0..4 {
        check1(Op::UnpackByte(part), &[Word], Word, &tuples, |[x, ..]| (x >> (8 * part)) & 0xff);
    }
}

#[test]
fn selections() {
    for ty in [Ty::B32, Ty::F32, Ty::B64] {
        let k = Kind::of(ty);
        let mut tuples = pairs(&edges(ty), &edges(ty), 500);
        for (i, tuple) in tuples.iter_mut().enumerate() {
            tuple[2] = (i as u64 / 5) & 1;
        }
        check1(Op::Selp(ty), &[k, k, Bit], k, &tuples, |[x, y, p, _]| if p != 0 { x } else { y });

        let mut controls = edges(Ty::S32);
        controls.extend(
            [1.0, -1.0, 0.0, -0.0, f32::NAN, -f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 1e-40, -1e-40]
                .map(|x: f32| u64::from(x.to_bits())),
        );
        let few: Vec<u64> = edges(ty).into_iter().step_by(4).collect();
        let tuples = triples(&few, &few, &controls, 500);
        for ftz in [false, true] {
            check1(Op::Slct { ty, float: false, ftz }, &[k, k, Word], k, &tuples, |[x, y, c, _]| {
                if c as i32 >= 0 { x } else { y }
            });
            check1(Op::Slct { ty, float: true, ftz }, &[k, k, Word], k, &tuples, |[x, y, c, _]| {
                let c = f32::from_bits(c as u32);
                let c = if ftz && c.is_subnormal() { 0.0 } else { c };
                if c >= 0.0 { x } else { y }
            });
        }
    }
}

#[test]
fn byte_permutations() {
    let mut controls: Vec<u64> =
        vec![0x3210, 0x7654, 0xfedc, 0xba98, 0x4567, 0x0001, 0x0002, 0x0003, 0xffff_3210];
    let mut random = Random(3);
    controls.extend((0..200).map(|_| random.next() & 0xffff_ffff));
    let mut tuples = Vec::new();
    for &c in &controls {
        for _ in 0..10 {
            tuples.push([random.next() & 0xffff_ffff, random.next() & 0xffff_ffff, c, 0]);
        }
    }
    let byte = |a: u64, b: u64, i: u64| ((a | b << 32) >> (8 * i)) & 0xff;
    check1(Op::Prmt(PrmtMode::Index), &[Word; 3], Word, &tuples, |[a, b, c, _]| {
        (0..4).fold(0, |d, k| {
            let selector = c >> (4 * k) & 15;
            let byte = byte(a, b, selector & 7);
            let byte = if selector < 8 { byte } else { (byte >> 7) * 0xff };
            d | byte << (8 * k)
        })
    });
    // The source byte of byte `k`, for control value `c`.
    type From = fn(i64, i64) -> i64;
    let modes: [(PrmtMode, From); 6] = [
        (PrmtMode::F4e, |c, k| c + k),
        (PrmtMode::B4e, |c, k| (c - k).rem_euclid(8)),
        (PrmtMode::Rc8, |c, _| c),
        (PrmtMode::Ecl, |c, k| k.max(c)),
        (PrmtMode::Ecr, |c, k| k.min(c)),
        (PrmtMode::Rc16, |c, k| 2 * (c & 1) + (k & 1)),
    ];
    for (mode, from) in modes {
        check1(Op::Prmt(mode), &[Word; 3], Word, &tuples, |[a, b, c, _]| {
            (0..4).fold(0, |d, k| d | byte(a, b, from((c & 3) as i64, k) as u64) << (8 * k))
        });
    }
}

#[test]
fn logic() {
    for ty in BITS {
        let k = Kind::of(ty);
        let keep = u64::MAX >> (64 - ty.bits());
        let tuples = pairs(&edges(ty), &edges(ty), 500);
        check1(Op::Logic(Logic::And, ty), &[k; 2], k, &tuples, |[x, y, ..]| x & y & keep);
        check1(Op::Logic(Logic::Or, ty), &[k; 2], k, &tuples, |[x, y, ..]| (x | y) & keep);
        check1(Op::Logic(Logic::Xor, ty), &[k; 2], k, &tuples, |[x, y, ..]| (x ^ y) & keep);
        check1(Op::Not(ty), &[k], k, &tuples, |[x, ..]| !x & keep);
        check1(Op::Cnot(ty), &[k], k, &tuples, |[x, ..]| u64::from(x & keep == 0));
    }
    let few: Vec<u64> = edges(Ty::B32).into_iter().step_by(3).collect();
    let tuples = triples(&few, &few, &few, 300);
    for table in 0..=255u8 {
        check1(Op::Lop3(table), &[Word; 3], Word, &tuples, |[x, y, z, _]| {
            build(32, |i| {
                let row = u8::from(bit(x, i)) * 4 + u8::from(bit(y, i)) * 2 + u8::from(bit(z, i));
                table >> row & 1 != 0
            })
        });
    }
}

#[test]
fn shifts() {
    for ty in [Ty::B16, Ty::B32, Ty::B64, Ty::U16, Ty::U32, Ty::U64, Ty::S16, Ty::S32, Ty::S64] {
        let (k, width) = (Kind::of(ty), u64::from(ty.bits()));
        let mut tuples = pairs(&edges(ty), &COUNTS, 0);
        tuples.extend(pairs(&edges(ty), &COUNTS, 800).split_off(edges(ty).len() * COUNTS.len()));
        let count = |n: u64| n & 0xffff_ffff;
        check1(Op::Shl(ty), &[k, Word], k, &tuples, |[x, n, ..]| {
            build(width, |i| i >= count(n) && bit(x, i - count(n)))
        });
        check1(Op::Shr(ty), &[k, Word], k, &tuples, |[x, n, ..]| {
            let sign = ty.is_signed() && bit(x, width - 1);
            build(width, |i| if i + count(n) < width { bit(x, i + count(n)) } else { sign })
        });
    }
    let tuples = triples(&edges(Ty::B32), &edges(Ty::B32), &COUNTS, 500);
    for wrap in [false, true] {
        let count = |n: u64| if wrap { n % 32 } else { (n & 0xffff_ffff).min(32) };
        let joined = |a: u64, b: u64| (a & 0xffff_ffff) | b << 32;
        check1(Op::Shf { left: true, wrap }, &[Word; 3], Word, &tuples, |[a, b, n, _]| {
            build(32, |i| bit(joined(a, b), 32 + i - count(n)))
        });
        check1(Op::Shf { left: false, wrap }, &[Word; 3], Word, &tuples, |[a, b, n, _]| {
            build(32, |i| bit(joined(a, b), i + count(n)))
        });
    }
}

#[test]
fn counts_and_searches() {
    for ty in [Ty::B32, Ty::B64, Ty::U32, Ty::S32, Ty::U64, Ty::S64] {
        let (k, width) = (Kind::of(ty), u64::from(ty.bits()));
        let mut values = edges(ty);
        values.extend((0..width).map(|i| 1 << i));
        values.extend((0..width).map(|i| !(1u64 << i)));
        let tuples = singles(&values, 500);
        check1(Op::Popc(ty), &[k], Word, &tuples, |[x, ..]| (0..width).filter(|&i| bit(x, i)).count() as u64);
        check1(Op::Clz(ty), &[k], Word, &tuples, |[x, ..]| {
            (0..width).rev().position(|i| bit(x, i)).map_or(width, |p| p as u64)
        });
        check1(Op::Brev(ty), &[k], k, &tuples, |[x, ..]| build(width, |i| bit(x, width - 1 - i)));
        for shift in [false, true] {
            check1(Op::Bfind(ty, shift), &[k], Word, &tuples, |[x, ..]| {
                let negative = ty.is_signed() && bit(x, width - 1);
                let found = (0..width).rev().find(|&i| bit(x, i) != negative);
                found.map_or(0xffff_ffff, |p| if shift { width - 1 - p } else { p })
            });
        }
    }
    let offsets: Vec<u64> = [0i32, 1, 2, 3, 5, 16, 32, 33, -1, -2, -3, -7, -32, i32::MIN, i32::MAX]
        .map(|x| u64::from(x as u32))
        .to_vec();
    let tuples = triples(&edges(Ty::B32), &[0, 1, 5, 16, 30, 31, 32, 0xffff_ffff], &offsets, 500);
    check1(Op::Fns, &[Word; 3], Word, &tuples, |[mask, base, offset, _]| {
        let (base, offset) = (i64::from(base as i32), i64::from(offset as i32));
        if !(0..32).contains(&base) {
            return 0xffff_ffff;
        }
        let set = |p: &i64| bit(mask, *p as u64);
        let found = match offset {
            0 => Some(base).filter(set),
            1.. => (base..32).filter(set).nth(offset as usize - 1),
            _ => (0..=base).rev().filter(set).nth((-offset) as usize - 1),
        };
        found.map_or(0xffff_ffff, |p| p as u64)
    });
}

#[test]
fn fields() {
    for ty in [Ty::U32, Ty::S32, Ty::U64, Ty::S64] {
        let (k, width) = (Kind::of(ty), u64::from(ty.bits()));
        let few: Vec<u64> = edges(ty).into_iter().step_by(3).collect();
        let tuples = triples(&few, &COUNTS, &COUNTS, 1500);
        check1(Op::Bfe(ty), &[k, Word, Word], k, &tuples, |[x, position, length, _]| {
            let (position, length) = (position & 0xff, length & 0xff);
            let sign = ty.is_signed() && length > 0 && bit(x, (position + length - 1).min(width - 1));
            build(width, |i| if i < length && position + i < width { bit(x, position + i) } else { sign })
        });
    }
    for ty in [Ty::B32, Ty::B64] {
        let (k, width) = (Kind::of(ty), u64::from(ty.bits()));
        let few: Vec<u64> = edges(ty).into_iter().step_by(5).collect();
        let mut tuples = Vec::new();
        for &length in &COUNTS {
            for mut tuple in triples(&few, &few, &COUNTS, 100) {
                tuple[3] = length;
                tuples.push(tuple);
            }
        }
        check1(Op::Bfi(ty), &[k, k, Word, Word], k, &tuples, |[x, y, position, length]| {
            let (position, length) = (position & 0xff, length & 0xff);
            build(width, |i| {
                if i >= position && i - position < length { bit(x, i - position) } else { bit(y, i) }
            })
        });
    }
    let tuples = pairs(&COUNTS, &COUNTS, 500);
    check1(Op::Bmsk(false), &[Word; 2], Word, &tuples, |[position, length, ..]| {
        let (position, length) = (position & 0xffff_ffff, length & 0xffff_ffff);
        build(32, |i| i >= position && i - position < length)
    });
    check1(Op::Bmsk(true), &[Word; 2], Word, &tuples, |[position, length, ..]| {
        build(32, |i| i >= position % 32 && i - position % 32 < length % 32)
    });
    let tuples = pairs(&edges(Ty::U32), &COUNTS, 800);
    for ty in [Ty::U32, Ty::S32] {
        for wrap in [false, true] {
            check1(Op::Szext(ty, wrap), &[Word; 2], Word, &tuples, |[x, length, ..]| {
                let length = if wrap { length % 32 } else { (length & 0xffff_ffff).min(32) };
                let sign = ty.is_signed() && length > 0 && bit(x, length - 1);
                build(32, |i| if i < length { bit(x, i) } else { sign })
            });
        }
    }
}

#[test]
fn other_instructions_are_left_alone() {
    use warploom_exec::kit::lane_mask::LaneMask;
    use warploom_exec::lanes::{Registers, execute};
    use warploom_isa::{Dst, Inst, Operand, ReduxOp, Reg, Special, VoteMode};
    let mut words = vec![[7u32; 32]; 4];
    let mut preds = vec![5u64; 2];
    for op in [
        Op::Nop,
        Op::Exit,
        Op::Special(Special::LaneId),
        Op::Vote(VoteMode::Any),
        Op::Redux(ReduxOp::Add, Ty::U32),
        Op::ActiveMask,
    ] {
        let inst = Inst::new(op, Dst::Reg(Reg(0)), &[Operand::Reg(Reg(1))]);
        let mut regs = Registers::<32> { words: &mut words, preds: &mut preds, frame: 0 };
        assert!(!execute::<32>(&inst, &mut regs, &[], LaneMask(u64::MAX)), "{op:?}");
    }
    // Without a destination nothing is written.
    let inst = Inst::new(Op::Not(Ty::B32), Dst::None, &[Operand::Reg(Reg(1))]);
    let mut regs = Registers::<32> { words: &mut words, preds: &mut preds, frame: 0 };
    assert!(execute::<32>(&inst, &mut regs, &[], LaneMask(u64::MAX)));
    assert_eq!((words, preds), (vec![[7; 32]; 4], vec![5; 2]));
}
