//! Runs one lane operation on many operands, on warps of 32 and 64 lanes, and compares all registers with a scalar
//! reference: lanes of the mask must have the result, and everything else must be unchanged.
#![allow(dead_code, clippy::needless_range_loop)]

pub(crate) mod exact;

use warploom_exec::kit::lane_mask::LaneMask;
use warploom_exec::lanes::{Registers, execute};
use warploom_isa::{Dst, ImmId, Inst, Op, Operand, Pred, Reg, Ty};

/// A random generator (SplitMix64) with a fixed seed.
pub(crate) struct Random(pub u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }
}

/// The shape of an operand or result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// The low half of a word; the upper half of a source is random.
    Half,
    /// 32 bits.
    Word,
    /// 64 bits.
    Wide,
    /// A predicate: 0 or 1.
    Bit,
    Absent,
}

pub(crate) use Kind::*;

impl Kind {
    pub(crate) fn of(ty: Ty) -> Kind {
        match ty.bits() {
            64 => Wide,
            32 => Word,
            _ => Half,
        }
    }
}

/// An operation and the shapes of its operands.
pub(crate) struct Form<'a> {
    pub op: Op,
    pub src: &'a [Kind],
    pub dst: Kind,
    /// Whether there is a second, predicate result.
    pub second: bool,
}

pub(crate) const FIRST_DST: u32 = 8;

/// Checks `form` on every tuple of operands. `reference` returns the result, as the whole register, and the second
/// result.
pub(crate) fn check(form: &Form<'_>, tuples: &[[u64; 4]], reference: impl Fn([u64; 4]) -> (u64, bool)) {
    let mut random = Random(tuples.len() as u64 ^ 0x5eed);
    check_lanes::<32>(form, tuples, &reference, &mut random);
    check_lanes::<64>(form, tuples, &reference, &mut random);
}

fn check_lanes<const N: usize>(
    form: &Form<'_>,
    tuples: &[[u64; 4]],
    reference: &impl Fn([u64; 4]) -> (u64, bool),
    random: &mut Random,
) {
    for (batch, lanes) in tuples.chunks(N).enumerate() {
        // 0: separate registers; 1 to 3: the destination is source 0, 1 or 2; 4 to 6: source 0, 1 or 2 is an immediate.
        let variant = batch % 7;
        let full = if N == 64 { u64::MAX } else { (1 << N) - 1 };
        let mask = if batch % 3 == 0 { u64::MAX } else { random.next() };

        let mut words: Vec<[u32; N]> = (0..12).map(|_| [0; N].map(|_: u32| random.next() as u32)).collect();
        let mut preds: Vec<u64> = (0..8).map(|_| random.next()).collect();
        let mut imms = vec![random.next()];
        let mut values = [[0u64; 4]; N];
        for (lane, value) in values.iter_mut().enumerate() {
            *value = lanes[lane % lanes.len()];
        }
        let mut inst = Inst::new(form.op, Dst::None, &[]);
        for (k, kind) in form.src.iter().enumerate() {
            let r = 2 * k;
            let immediate = variant >= 4 && variant - 4 == k && *kind != Absent;
            if immediate {
                let uniform = values[0][k];
                values.iter_mut().for_each(|value| value[k] = uniform);
            }
            inst.src[k] = match kind {
                Absent => Operand::None,
                Bit if immediate => Operand::Imm(values[0][k] as u32),
                Bit => {
                    let inverted = batch % 2 == 1;
                    preds[k] = 0;
                    for lane in 0..N {
                        preds[k] |= ((values[lane][k] & 1) ^ u64::from(inverted)) << lane;
                    }
                    let pred = Pred(k as u32);
                    if inverted { Operand::NotPred(pred) } else { Operand::Pred(pred) }
                }
                Wide if immediate && values[0][k] >> 32 == 0 => Operand::Imm(values[0][k] as u32),
                Wide if immediate => {
                    imms.push(values[0][k]);
                    Operand::Imm64(ImmId(1))
                }
                Word | Half if immediate => Operand::Imm(values[0][k] as u32),
                _ => {
                    for lane in 0..N {
                        let value = values[lane][k];
                        words[r][lane] = match kind {
                            Half => (value as u32 & 0xffff) | (random.next() as u32) << 16,
                            _ => value as u32,
                        };
                        if *kind == Wide {
                            words[r + 1][lane] = (value >> 32) as u32;
                        }
                    }
                    Operand::Reg(Reg(r as u32))
                }
            };
        }
        let over = (1..=3).contains(&variant).then(|| variant - 1).filter(|&k| k < form.src.len());
        let dst = over.map_or(FIRST_DST, |k| 2 * k as u32);
        inst.dst = match form.dst {
            Absent => Dst::None,
            Bit => Dst::Pred(Pred(6)),
            _ => Dst::Reg(Reg(dst)),
        };
        if form.second {
            inst.dst2 = Dst::Pred(Pred(7));
        }

        let (mut want_words, mut want_preds) = (words.clone(), preds.clone());
        for lane in (0..N).filter(|lane| mask >> lane & 1 != 0) {
            let (result, second) = reference(values[lane]);
            let set = |pred: &mut u64, value: bool| *pred = *pred & !(1 << lane) | u64::from(value) << lane;
            match form.dst {
                Bit => set(&mut want_preds[6], result != 0),
                Absent => {}
                kind => {
                    want_words[dst as usize][lane] = result as u32;
                    if kind == Wide {
                        want_words[dst as usize + 1][lane] = (result >> 32) as u32;
                    }
                }
            }
            if form.second {
                set(&mut want_preds[7], second);
            }
        }

        let mut regs = Registers::<N> { words: &mut words, preds: &mut preds, frame: 0 };
        assert!(execute::<N>(&inst, &mut regs, &imms, LaneMask(mask)), "{:?} is not executed", form.op);
        for lane in 0..N {
            for r in 0..words.len() {
                assert!(
                    words[r][lane] == want_words[r][lane],
                    "{:?}, {N} lanes, lane {lane} of mask {:#x}, register {r}: got {:#010x}, want {:#010x}; \
                     operands {:#x?}, inst {inst:?}",
                    form.op,
                    mask & full,
                    words[r][lane],
                    want_words[r][lane],
                    values[lane],
                );
            }
            for p in 0..preds.len() {
                assert!(
                    preds[p] >> lane & 1 == want_preds[p] >> lane & 1,
                    "{:?}, {N} lanes, lane {lane} of mask {:#x}, predicate {p}: got {}, operands {:#x?}",
                    form.op,
                    mask & full,
                    preds[p] >> lane & 1,
                    values[lane],
                );
            }
        }
    }
}

/// As [`check`], for an operation without a second result.
pub(crate) fn check1(
    op: Op,
    src: &[Kind],
    dst: Kind,
    tuples: &[[u64; 4]],
    reference: impl Fn([u64; 4]) -> u64,
) {
    check(&Form { op, src, dst, second: false }, tuples, |t| (reference(t), false));
}

/// All pairs of edge values, then random ones.
pub(crate) fn pairs(a: &[u64], b: &[u64], random: usize) -> Vec<[u64; 4]> {
    let mut out = Vec::new();
    for &x in a {
        for &y in b {
            out.push([x, y, 0, 0]);
        }
    }
    sprinkle(&mut out, random, &[a, b]);
    out
}

pub(crate) fn triples(a: &[u64], b: &[u64], c: &[u64], random: usize) -> Vec<[u64; 4]> {
    let mut out = Vec::new();
    for &x in a {
        for &y in b {
            for &z in c {
                out.push([x, y, z, 0]);
            }
        }
    }
    sprinkle(&mut out, random, &[a, b, c]);
    out
}

pub(crate) fn singles(a: &[u64], random: usize) -> Vec<[u64; 4]> {
    let mut out: Vec<_> = a.iter().map(|&x| [x, 0, 0, 0]).collect();
    sprinkle(&mut out, random, &[a]);
    out
}

/// Adds random tuples: each operand is random, an edge value, or an edge value with a few bits changed.
fn sprinkle(out: &mut Vec<[u64; 4]>, count: usize, edges: &[&[u64]]) {
    let mut random = Random(count as u64 + 17);
    for _ in 0..count {
        let mut tuple = [0; 4];
        for (value, edges) in tuple.iter_mut().zip(edges) {
            let edge = edges[random.next() as usize % edges.len()];
            *value = match random.next() % 4 {
                0 => edge,
                1 => edge ^ (1 << (random.next() % 64)) ^ (random.next() & 3),
                _ => random.next() >> (random.next() % 33),
            };
        }
        out.push(tuple);
    }
}

/// Integers of `bits` bits at the edges of ranges.
pub(crate) fn integer_edges(bits: u32) -> Vec<u64> {
    let keep = u64::MAX >> (64 - bits);
    let mut edges: Vec<u64> = vec![
        0,
        1,
        2,
        3,
        7,
        10,
        0x7f,
        0x80,
        0xff,
        0x100,
        0x7fff,
        0x8000,
        0x7fff_8000,
        0x8000_7fff,
        0x00ff_ffff,
        0x0100_0000,
        0x5555_5555_5555_5555,
        0xaaaa_aaaa_aaaa_aaaa,
        0x8000_0000,
        0x7fff_ffff,
        0xffff_ffff,
        0x1_0000_0000,
        1 << (bits - 1),
        (1 << (bits - 1)) - 1,
        (1 << (bits - 1)) + 1,
        u64::MAX,
        u64::MAX - 1,
        u64::MAX - 9,
    ];
    edges.iter_mut().for_each(|edge| *edge &= keep);
    edges.sort_unstable();
    edges.dedup();
    edges
}

/// The number in the low bits of a register.
pub(crate) fn value(ty: Ty, bits: u64) -> i128 {
    let width = match ty {
        Ty::U16x2 | Ty::S16x2 => 16,
        _ => ty.bits(),
    };
    let unsigned = i128::from(bits) & ((1 << width) - 1);
    if ty.is_signed() && unsigned >> (width - 1) != 0 { unsigned - (1 << width) } else { unsigned }
}

/// A number truncated to the width of a type.
pub(crate) fn cut(ty: Ty, value: i128) -> u64 {
    let width = match ty {
        Ty::U16x2 | Ty::S16x2 => 16,
        _ => ty.bits(),
    };
    (value & ((1 << width) - 1)) as u64
}

/// The smallest and the largest number of a type.
pub(crate) fn range(ty: Ty) -> (i128, i128) {
    let width = match ty {
        Ty::U16x2 | Ty::S16x2 => 16,
        _ => ty.bits(),
    };
    if ty.is_signed() { (-(1 << (width - 1)), (1 << (width - 1)) - 1) } else { (0, (1 << width) - 1) }
}
