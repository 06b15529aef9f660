//! Logic, shifts, bit fields and bit counts.

use warploom_isa::{Logic, Op, Ty};

use crate::lanes::vector::{
    Filled, Inputs, Source, blend, blend64, lanes, map1, map2, map3, ones, ones64, wide, word,
};

/// The frequent operations.
#[inline(always)]
pub(super) fn compute<const N: usize>(inputs: Inputs<'_, N>) -> Filled<N> {
    let Inputs { inst, regs, a, b, c } = inputs;
    match inst.op {
        Op::Logic(logic, ty) => combine(logic, ty, a, b),
        Op::Not(ty) => bitwise(ty, a, a, |x, _| !x),
        Op::Cnot(ty) => match ty.bits() {
            64 => wide(|i| u64::from(a.lo[i] | a.hi[i] == 0)),
            16 => map1(a.lo, |x| u32::from(x & 0xffff == 0)),
            _ => map1(a.lo, |x| u32::from(x == 0)),
        },
        Op::LogicPred(logic) => {
            let (x, y) = (regs.read_pred(inst.src[0]), regs.read_pred(inst.src[1]));
            Filled::Pred(match logic {
                Logic::And => x & y,
                Logic::Or => x | y,
                Logic::Xor => x ^ y,
            })
        }
        Op::NotPred => Filled::Pred(!regs.read_pred(inst.src[0])),
        Op::Lop3(table) => {
            // Three levels of selection, by c, then b, then a. The table's bit for `a`, `b`, `c` is number `abc`, in
            // binary.
            let row = |r: u32| ones(table >> r & 1 != 0);
            let pairs = [0, 2, 4, 6].map(|r| (row(r), row(r) ^ row(r + 1)));
            map3(a.lo, b.lo, c.lo, |x, y, z| {
                let by_c = pairs.map(|(even, difference)| even ^ (difference & z));
                let by_b = [blend(y, by_c[1], by_c[0]), blend(y, by_c[3], by_c[2])];
                blend(x, by_b[1], by_b[0])
            })
        }
        Op::Shl(ty) => shift_left(ty, a, b),
        Op::Shr(ty) => shift_right(ty, a, b),
        Op::Shf { left, wrap } => {
            let count = |n: u32| if wrap { n & 31 } else { n.min(32) };
            let joined = |i: usize| u64::from(a.lo[i]) | u64::from(b.lo[i]) << 32;
            if left {
                word(|i| ((joined(i) << count(c.lo[i])) >> 32) as u32)
            } else {
                word(|i| (joined(i) >> count(c.lo[i])) as u32)
            }
        }
        Op::Popc(ty) => match ty.bits() {
            64 => word(|i| a.lo[i].count_ones() + a.hi[i].count_ones()),
            _ => map1(a.lo, u32::count_ones),
        },
        Op::Clz(ty) => match ty.bits() {
            64 => word(|i| a.wide(i).leading_zeros()),
            _ => map1(a.lo, u32::leading_zeros),
        },
        Op::Bfe(ty) => match ty {
            Ty::U64 | Ty::B64 => wide(|i| field64(a.wide(i), b.lo[i], c.lo[i], false)),
            Ty::S64 => wide(|i| field64(a.wide(i), b.lo[i], c.lo[i], true)),
            Ty::S32 => map3(a.lo, b.lo, c.lo, |x, p, n| field(x, p, n, true)),
            _ => map3(a.lo, b.lo, c.lo, |x, p, n| field(x, p, n, false)),
        },
        Op::Bfi(ty) => {
            let length = regs.read32(inst.src[3]);
            match ty.bits() {
                64 => wide(|i| {
                    let (position, length) = (c.lo[i] & 0xff, length[i] & 0xff);
                    let k = (low_ones64(length) << (position & 63)) & ones64(position < 64);
                    blend64(k, a.wide(i) << (position & 63), b.wide(i))
                }),
                _ => word(|i| {
                    let (position, length) = (c.lo[i] & 0xff, length[i] & 0xff);
                    let k = (low_ones(length) << (position & 31)) & ones(position < 32);
                    blend(k, a.lo[i] << (position & 31), b.lo[i])
                }),
            }
        }
        _ => Filled::Nothing,
    }
}

#[inline(always)]
pub(super) fn combine<const N: usize>(logic: Logic, ty: Ty, a: Source<'_, N>, b: Source<'_, N>) -> Filled<N> {
    match logic {
        Logic::And => bitwise(ty, a, b, |x, y| x & y),
        Logic::Or => bitwise(ty, a, b, |x, y| x | y),
        Logic::Xor => bitwise(ty, a, b, |x, y| x ^ y),
    }
}

#[inline(always)]
pub(super) fn shift_left<const N: usize>(ty: Ty, a: Source<'_, N>, b: Source<'_, N>) -> Filled<N> {
    match ty.bits() {
        64 => wide(|i| (a.wide(i) << (b.lo[i] & 63)) & ones64(b.lo[i] < 64)),
        16 => map2(a.lo, b.lo, |x, n| (x << (n & 15)) & ones(n < 16) & 0xffff),
        _ => map2(a.lo, b.lo, |x, n| (x << (n & 31)) & ones(n < 32)),
    }
}

#[inline(always)]
pub(super) fn shift_right<const N: usize>(ty: Ty, a: Source<'_, N>, b: Source<'_, N>) -> Filled<N> {
    match ty {
        Ty::S64 => wide(|i| (a.wide(i) as i64 >> b.lo[i].min(63)) as u64),
        Ty::U64 | Ty::B64 => wide(|i| (a.wide(i) >> (b.lo[i] & 63)) & ones64(b.lo[i] < 64)),
        Ty::S32 => map2(a.lo, b.lo, |x, n| (x as i32 >> n.min(31)) as u32),
        Ty::S16 => map2(a.lo, b.lo, |x, n| ((x << 16) as i32 >> (n.min(15) + 16)) as u32 & 0xffff),
        Ty::U16 | Ty::B16 => map2(a.lo, b.lo, |x, n| ((x & 0xffff) >> (n & 15)) & ones(n < 16)),
        _ => map2(a.lo, b.lo, |x, n| (x >> (n & 31)) & ones(n < 32)),
    }
}

/// A bitwise operation on 16, 32 or 64 bits.
#[inline(always)]
pub(super) fn bitwise<const N: usize>(
    ty: Ty,
    a: Source<'_, N>,
    b: Source<'_, N>,
    f: impl Fn(u32, u32) -> u32,
) -> Filled<N> {
    if ty.is_wide() {
        return Filled::Wide(lanes(|i| f(a.lo[i], b.lo[i])), lanes(|i| f(a.hi[i], b.hi[i])));
    }
    let keep = if ty.bits() == 16 { 0xffff } else { u32::MAX };
    word(|i| f(a.lo[i], b.lo[i]) & keep)
}

/// The low `count` bits set; all of them for 32 and more.
#[inline(always)]
fn low_ones(count: u32) -> u32 {
    !(u32::MAX << (count & 31)) | ones(count >= 32)
}

#[inline(always)]
fn low_ones64(count: u32) -> u64 {
    !(u64::MAX << (count & 63)) | ones64(count >= 64)
}

/// `bfe`: bits beyond the top of `x`, and beyond the field, are copies of the field's highest bit if `signed`, else
/// zero.
#[inline(always)]
fn field(x: u32, position: u32, length: u32, signed: bool) -> u32 {
    let (position, length) = (position & 0xff, length & 0xff);
    let shifted = (x >> (position & 31)) & ones(position < 32);
    let sign = if signed {
        let top = (position + length).wrapping_sub(1).min(31);
        ones(x >> top & 1 != 0 && length != 0)
    } else {
        0
    };
    let inside = low_ones(length) & low_ones(32 - position.min(32));
    blend(inside, shifted, sign)
}

#[inline(always)]
fn field64(x: u64, position: u32, length: u32, signed: bool) -> u64 {
    let (position, length) = (position & 0xff, length & 0xff);
    let shifted = (x >> (position & 63)) & ones64(position < 64);
    let sign = if signed {
        let top = (position + length).wrapping_sub(1).min(63);
        ones64(x >> top & 1 != 0 && length != 0)
    } else {
        0
    };
    let inside = low_ones64(length) & low_ones64(64 - position.min(64));
    blend64(inside, shifted, sign)
}

/// The rare operations.
#[inline(never)]
pub(super) fn compute_rare<const N: usize>(inputs: Inputs<'_, N>) -> Filled<N> {
    let Inputs { inst, a, b, c, .. } = inputs;
    match inst.op {
        Op::Brev(ty) => match ty.bits() {
            64 => wide(|i| a.wide(i).reverse_bits()),
            _ => map1(a.lo, u32::reverse_bits),
        },
        Op::Bfind(ty, shift) => match ty.bits() {
            64 => word(|i| {
                let x = a.wide(i);
                let x = if ty.is_signed() { x ^ (x as i64 >> 63) as u64 } else { x };
                highest(x.leading_zeros(), 64, shift)
            }),
            _ => map1(a.lo, |x| {
                let x = if ty.is_signed() { x ^ (x as i32 >> 31) as u32 } else { x };
                highest(x.leading_zeros(), 32, shift)
            }),
        },
        Op::Fns => map3(a.lo, b.lo, c.lo, nth_set),
        Op::Bmsk(wrap) => map2(a.lo, b.lo, |position, count| {
            let start = if !wrap && position >= 32 { 0 } else { u32::MAX << (position & 31) };
            let end = (position & 31) + (count & 31);
            let beyond =
                if end >= 32 || (!wrap && (position >= 32 || count >= 32)) { 0 } else { u32::MAX << end };
            start & !beyond
        }),
        Op::Szext(ty, wrap) => map2(a.lo, b.lo, |x, count| {
            if !wrap && count >= 32 {
                return x;
            }
            let count = count & 31;
            let above = u32::MAX << count;
            let negative = ty.is_signed() && count != 0 && x >> (count - 1) & 1 != 0;
            if negative { x | above } else { x & !above }
        }),
        _ => Filled::Nothing,
    }
}

/// The result of `bfind` from the number of leading zeros.
#[inline(always)]
fn highest(zeros: u32, bits: u32, shift: bool) -> u32 {
    if zeros == bits {
        u32::MAX
    } else if shift {
        zeros
    } else {
        bits - 1 - zeros
    }
}

/// `fns`: the position of the `offset`-th set bit of `mask` from `base` on, upwards if positive, downwards if negative.
/// With 0 only bit `base` itself is tested.
fn nth_set(mask: u32, base: u32, offset: u32) -> u32 {
    let offset = offset as i32;
    let mut position = i64::from(base as i32);
    let mut left = offset.unsigned_abs().max(1);
    let step = match offset.signum() {
        0 => 64,
        sign => i64::from(sign),
    };
    while (0..32).contains(&position) {
        if mask >> position & 1 != 0 {
            left -= 1;
            if left == 0 {
                return position as u32;
            }
        }
        position += step;
    }
    u32::MAX
}
