//! Integer arithmetic.

use warploom_isa::{Clamp, Op, Operand, Part, Ty};

use crate::lanes::vector::{
    Filled, Inputs, Source, blend64, gather, halves2, lanes, map1, map2, map3, ones, ones64, sext16, spread,
    wide,
};

/// The frequent operations.
#[inline(always)]
pub(super) fn compute<const N: usize>(inputs: Inputs<'_, N>) -> Filled<N> {
    let Inputs { inst, regs, a, b, c } = inputs;
    match inst.op {
        Op::IAdd(ty, clamp) => add(ty, clamp, a, b),
        Op::ISub(ty, clamp) => subtract(ty, clamp, a, b),
        Op::IMul(ty, part) => multiply(ty, part, a, b),
        Op::IMad(ty, part, clamp) => multiply_add(ty, part, clamp, [a, b, c]),
        Op::AddCarry(ty) => {
            let carry = regs.read_pred(inst.src[2]);
            if ty.is_wide() {
                let (lo, hi, carries) = add64(a, b, carry);
                return Filled::WideCarry(lo, hi, carries);
            }
            let k = spread::<N>(carry);
            let sum = lanes(|i| a.lo[i].wrapping_add(b.lo[i]).wrapping_sub(k[i]));
            // With a carry in, a sum equal to `a` has wrapped around.
            let carries = gather::<N>(|i| (sum[i] < a.lo[i]) | ((k[i] != 0) & (sum[i] == a.lo[i])));
            Filled::WordCarry(sum, carries)
        }
        Op::SubBorrow(ty) => {
            // The carry flag of a difference is the inverted borrow.
            let borrow = match inst.src[2] {
                Operand::None => 0,
                carry => !regs.read_pred(carry),
            };
            if ty.is_wide() {
                let (lo, hi, borrows) = sub64(a, b, borrow);
                return Filled::WideCarry(lo, hi, !borrows);
            }
            let k = spread::<N>(borrow);
            let difference = lanes(|i| a.lo[i].wrapping_sub(b.lo[i]).wrapping_add(k[i]));
            let borrows = gather::<N>(|i| (a.lo[i] < b.lo[i]) | ((k[i] != 0) & (a.lo[i] == b.lo[i])));
            Filled::WordCarry(difference, !borrows)
        }
        Op::IAbs(ty) => match ty {
            Ty::S64 | Ty::U64 => wide(|i| (a.wide(i) as i64).wrapping_abs() as u64),
            Ty::S16 | Ty::U16 => map1(a.lo, |x| sext16(x).unsigned_abs() & 0xffff),
            Ty::S16x2 | Ty::U16x2 => map1(a.lo, |x| halves2(x, 0, |half, _| sext16(half).unsigned_abs())),
            _ => map1(a.lo, |x| (x as i32).wrapping_abs() as u32),
        },
        Op::INeg(ty) => match ty {
            Ty::S64 | Ty::U64 => wide(|i| a.wide(i).wrapping_neg()),
            Ty::S16 | Ty::U16 => map1(a.lo, |x| x.wrapping_neg() & 0xffff),
            Ty::S16x2 | Ty::U16x2 => map1(a.lo, |x| halves2(x, 0, |half, _| half.wrapping_neg())),
            _ => map1(a.lo, u32::wrapping_neg),
        },
        Op::IMin(_, Clamp::Relu) | Op::IMax(_, Clamp::Relu) => relu(inst.op, a, b),
        Op::IMin(ty, _) => least(ty, a, b),
        Op::IMax(ty, _) => most(ty, a, b),
        _ => Filled::Nothing,
    }
}

#[inline(always)]
pub(super) fn add<const N: usize>(ty: Ty, clamp: Clamp, a: Source<'_, N>, b: Source<'_, N>) -> Filled<N> {
    match ty {
        Ty::U64 | Ty::S64 | Ty::B64 if clamp == Clamp::None => {
            let (lo, hi, _) = add64(a, b, 0);
            Filled::Wide(lo, hi)
        }
        _ if clamp == Clamp::Sat => saturating(Op::IAdd(ty, clamp), a, b),
        Ty::U16x2 | Ty::S16x2 => map2(a.lo, b.lo, |x, y| halves2(x, y, u32::wrapping_add)),
        Ty::U16 | Ty::S16 | Ty::B16 => map2(a.lo, b.lo, |x, y| x.wrapping_add(y) & 0xffff),
        _ => map2(a.lo, b.lo, u32::wrapping_add),
    }
}

#[inline(always)]
pub(super) fn subtract<const N: usize>(
    ty: Ty,
    clamp: Clamp,
    a: Source<'_, N>,
    b: Source<'_, N>,
) -> Filled<N> {
    match ty {
        Ty::U64 | Ty::S64 | Ty::B64 if clamp == Clamp::None => {
            let (lo, hi, _) = sub64(a, b, 0);
            Filled::Wide(lo, hi)
        }
        _ if clamp == Clamp::Sat => saturating(Op::ISub(ty, clamp), a, b),
        Ty::U16x2 | Ty::S16x2 => map2(a.lo, b.lo, |x, y| halves2(x, y, u32::wrapping_sub)),
        Ty::U16 | Ty::S16 | Ty::B16 => map2(a.lo, b.lo, |x, y| x.wrapping_sub(y) & 0xffff),
        _ => map2(a.lo, b.lo, u32::wrapping_sub),
    }
}

#[inline(always)]
pub(super) fn multiply<const N: usize>(ty: Ty, part: Part, a: Source<'_, N>, b: Source<'_, N>) -> Filled<N> {
    match (ty, part) {
        (Ty::U32 | Ty::S32 | Ty::B32, Part::Lo) => map2(a.lo, b.lo, u32::wrapping_mul),
        (Ty::U32, Part::Wide) => wide(|i| u64::from(a.lo[i]) * u64::from(b.lo[i])),
        (Ty::S32, Part::Wide) => wide(|i| signed_product(a.lo[i], b.lo[i]) as u64),
        (Ty::U32, Part::Hi) => map2(a.lo, b.lo, |x, y| ((u64::from(x) * u64::from(y)) >> 32) as u32),
        (Ty::S32, Part::Hi) => map2(a.lo, b.lo, |x, y| (signed_product(x, y) >> 32) as u32),
        (Ty::U64 | Ty::S64 | Ty::B64, Part::Lo) => wide(|i| a.wide(i).wrapping_mul(b.wide(i))),
        _ => multiply_rare(ty, part, a, b),
    }
}

/// Of the three sources, the product of the first two is added to the third.
#[inline(always)]
pub(super) fn multiply_add<const N: usize>(
    ty: Ty,
    part: Part,
    clamp: Clamp,
    [a, b, c]: [Source<'_, N>; 3],
) -> Filled<N> {
    match (ty, part) {
        _ if clamp == Clamp::Sat => mad_hi_sat(a, b, c),
        (Ty::U32 | Ty::S32 | Ty::B32, Part::Lo) => {
            map3(a.lo, b.lo, c.lo, |x, y, z| x.wrapping_mul(y).wrapping_add(z))
        }
        (Ty::U32, Part::Wide) => wide(|i| (u64::from(a.lo[i]) * u64::from(b.lo[i])).wrapping_add(c.wide(i))),
        (Ty::S32, Part::Wide) => wide(|i| (signed_product(a.lo[i], b.lo[i]) as u64).wrapping_add(c.wide(i))),
        (Ty::U64 | Ty::S64 | Ty::B64, Part::Lo) => {
            wide(|i| a.wide(i).wrapping_mul(b.wide(i)).wrapping_add(c.wide(i)))
        }
        _ => add_to_product(ty, part, multiply_rare(ty, part, a, b), c),
    }
}

#[inline(always)]
pub(super) fn least<const N: usize>(ty: Ty, a: Source<'_, N>, b: Source<'_, N>) -> Filled<N> {
    match ty {
        Ty::U32 => map2(a.lo, b.lo, u32::min),
        Ty::S32 => map2(a.lo, b.lo, |x, y| (x as i32).min(y as i32) as u32),
        Ty::U64 => wide(|i| pick_less(a.wide(i), b.wide(i), a.wide(i) < b.wide(i))),
        Ty::S64 => wide(|i| pick_less(a.wide(i), b.wide(i), (a.wide(i) as i64) < b.wide(i) as i64)),
        Ty::U16 => map2(a.lo, b.lo, |x, y| (x & 0xffff).min(y & 0xffff)),
        Ty::U16x2 => map2(a.lo, b.lo, |x, y| halves2(x, y, u32::min)),
        Ty::S16x2 => map2(a.lo, b.lo, |x, y| halves2(x, y, |x, y| sext16(x).min(sext16(y)) as u32)),
        _ => map2(a.lo, b.lo, |x, y| sext16(x).min(sext16(y)) as u32 & 0xffff),
    }
}

#[inline(always)]
pub(super) fn most<const N: usize>(ty: Ty, a: Source<'_, N>, b: Source<'_, N>) -> Filled<N> {
    match ty {
        Ty::U32 => map2(a.lo, b.lo, u32::max),
        Ty::S32 => map2(a.lo, b.lo, |x, y| (x as i32).max(y as i32) as u32),
        Ty::U64 => wide(|i| pick_less(b.wide(i), a.wide(i), a.wide(i) < b.wide(i))),
        Ty::S64 => wide(|i| pick_less(b.wide(i), a.wide(i), (a.wide(i) as i64) < b.wide(i) as i64)),
        Ty::U16 => map2(a.lo, b.lo, |x, y| (x & 0xffff).max(y & 0xffff)),
        Ty::U16x2 => map2(a.lo, b.lo, |x, y| halves2(x, y, u32::max)),
        Ty::S16x2 => map2(a.lo, b.lo, |x, y| halves2(x, y, |x, y| sext16(x).max(sext16(y)) as u32)),
        _ => map2(a.lo, b.lo, |x, y| sext16(x).max(sext16(y)) as u32 & 0xffff),
    }
}

#[inline(always)]
fn pick_less(a: u64, b: u64, a_is_less: bool) -> u64 {
    blend64(ones64(a_is_less), a, b)
}

#[inline(always)]
fn signed_product(x: u32, y: u32) -> i64 {
    i64::from(x as i32) * i64::from(y as i32)
}

/// 64-bit sums, word by word: cheaper than joining the words and splitting them again. Returns the low words, the high
/// words and the carries.
#[inline(always)]
fn add64<const N: usize>(a: Source<'_, N>, b: Source<'_, N>, carry: u64) -> ([u32; N], [u32; N], u64) {
    let k = spread::<N>(carry);
    let lo = lanes(|i| a.lo[i].wrapping_add(b.lo[i]).wrapping_sub(k[i]));
    let middle = lanes::<N>(|i| ones(lo[i] < a.lo[i]) | (k[i] & ones(lo[i] == a.lo[i])));
    let hi = lanes(|i| a.hi[i].wrapping_add(b.hi[i]).wrapping_sub(middle[i]));
    let carries = gather::<N>(|i| (hi[i] < a.hi[i]) | ((middle[i] != 0) & (hi[i] == a.hi[i])));
    (lo, hi, carries)
}

/// 64-bit differences. Returns the low words, the high words and the borrows.
#[inline(always)]
fn sub64<const N: usize>(a: Source<'_, N>, b: Source<'_, N>, borrow: u64) -> ([u32; N], [u32; N], u64) {
    let k = spread::<N>(borrow);
    let lo = lanes(|i| a.lo[i].wrapping_sub(b.lo[i]).wrapping_add(k[i]));
    let middle = lanes::<N>(|i| ones(a.lo[i] < b.lo[i]) | (k[i] & ones(a.lo[i] == b.lo[i])));
    let hi = lanes(|i| a.hi[i].wrapping_sub(b.hi[i]).wrapping_add(middle[i]));
    let borrows = gather::<N>(|i| (a.hi[i] < b.hi[i]) | ((middle[i] != 0) & (a.hi[i] == b.hi[i])));
    (lo, hi, borrows)
}

/// `min.relu` and `max.relu` of signed types: negative results become zero.
#[inline(never)]
fn relu<const N: usize>(op: Op, a: Source<'_, N>, b: Source<'_, N>) -> Filled<N> {
    let (ty, result) = match op {
        Op::IMin(ty, _) => (ty, least(ty, a, b)),
        Op::IMax(ty, _) => (ty, most(ty, a, b)),
        _ => return Filled::Nothing,
    };
    match (ty, result) {
        (Ty::S64, Filled::Wide(lo, hi)) => {
            let keep = hi.map(|high| ones(high as i32 >= 0));
            Filled::Wide(lanes(|i| lo[i] & keep[i]), lanes(|i| hi[i] & keep[i]))
        }
        (Ty::S32, Filled::Word(lo)) => map1(&lo, |x| (x as i32).max(0) as u32),
        (Ty::S16, Filled::Word(lo)) => map1(&lo, |x| sext16(x).max(0) as u32),
        (Ty::S16x2, Filled::Word(lo)) => map1(&lo, |x| halves2(x, 0, |half, _| sext16(half).max(0) as u32)),
        (_, result) => result,
    }
}

/// Sums and differences clamped to the type's range.
#[inline(never)]
fn saturating<const N: usize>(op: Op, a: Source<'_, N>, b: Source<'_, N>) -> Filled<N> {
    let (ty, subtract) = match op {
        Op::IAdd(ty, _) => (ty, false),
        Op::ISub(ty, _) => (ty, true),
        _ => return Filled::Nothing,
    };
    let bits = if matches!(ty, Ty::U16x2 | Ty::S16x2) { 16 } else { ty.bits() };
    let signed = ty.is_signed();
    let (min, max) =
        if signed { (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1) } else { (0, (1i128 << bits) - 1) };
    let extend = |x: u64| {
        let unsigned = i128::from(x) & ((1 << bits) - 1);
        if signed && unsigned > max { unsigned - (1 << bits) } else { unsigned }
    };
    let one = |x: u64, y: u64| {
        let exact = if subtract { extend(x) - extend(y) } else { extend(x) + extend(y) };
        exact.clamp(min, max) as u64
    };
    match ty {
        Ty::U64 | Ty::S64 => wide(|i| one(a.wide(i), b.wide(i))),
        Ty::U16x2 | Ty::S16x2 => {
            map2(a.lo, b.lo, |x, y| halves2(x, y, |x, y| one(x.into(), y.into()) as u32))
        }
        _ => {
            let keep = if bits == 32 { u32::MAX } else { (1 << bits) - 1 };
            map2(a.lo, b.lo, |x, y| one(x.into(), y.into()) as u32 & keep)
        }
    }
}

/// `mad.hi.sat.s32`.
#[inline(never)]
fn mad_hi_sat<const N: usize>(a: Source<'_, N>, b: Source<'_, N>, c: Source<'_, N>) -> Filled<N> {
    map3(a.lo, b.lo, c.lo, |x, y, z| ((signed_product(x, y) >> 32) as i32).saturating_add(z as i32) as u32)
}

/// The products that [`compute`] does not do itself, and those of `mad.cc`.
#[inline(never)]
fn multiply_rare<const N: usize>(ty: Ty, part: Part, a: Source<'_, N>, b: Source<'_, N>) -> Filled<N> {
    match (ty, part) {
        (Ty::U16, Part::Wide) => map2(a.lo, b.lo, |x, y| (x & 0xffff) * (y & 0xffff)),
        (Ty::S16, Part::Wide) => map2(a.lo, b.lo, |x, y| (sext16(x) * sext16(y)) as u32),
        (Ty::U16, Part::Hi) => map2(a.lo, b.lo, |x, y| ((x & 0xffff) * (y & 0xffff)) >> 16),
        (Ty::S16, Part::Hi) => map2(a.lo, b.lo, |x, y| (sext16(x) * sext16(y)) as u32 >> 16),
        (Ty::U16 | Ty::S16, Part::Lo) => map2(a.lo, b.lo, |x, y| x.wrapping_mul(y) & 0xffff),
        (Ty::U32, Part::Hi) => map2(a.lo, b.lo, |x, y| ((u64::from(x) * u64::from(y)) >> 32) as u32),
        (Ty::S32, Part::Hi) => map2(a.lo, b.lo, |x, y| (signed_product(x, y) >> 32) as u32),
        (Ty::U64, Part::Hi) => wide(|i| ((u128::from(a.wide(i)) * u128::from(b.wide(i))) >> 64) as u64),
        (Ty::S64, Part::Hi) => {
            wide(|i| ((i128::from(a.wide(i) as i64) * i128::from(b.wide(i) as i64)) >> 64) as u64)
        }
        (Ty::U64 | Ty::S64, Part::Lo) => wide(|i| a.wide(i).wrapping_mul(b.wide(i))),
        (_, _) => map2(a.lo, b.lo, u32::wrapping_mul),
    }
}

/// Adds `c` to a product of [`multiply_rare`].
#[inline(never)]
fn add_to_product<const N: usize>(ty: Ty, part: Part, product: Filled<N>, c: Source<'_, N>) -> Filled<N> {
    match product {
        Filled::Wide(lo, hi) => {
            let product = Source { lo: &lo, hi: &hi };
            wide(|i| product.wide(i).wrapping_add(c.wide(i)))
        }
        Filled::Word(lo) if ty.bits() == 16 && part != Part::Wide => {
            map2(&lo, c.lo, |x, y| x.wrapping_add(y) & 0xffff)
        }
        Filled::Word(lo) => map2(&lo, c.lo, u32::wrapping_add),
        other => other,
    }
}

/// The operations that are rare, or slow in any case.
#[inline(never)]
pub(super) fn compute_rare<const N: usize>(inputs: Inputs<'_, N>) -> Filled<N> {
    let Inputs { inst, regs, a, b, c } = inputs;
    match inst.op {
        Op::Mul24(ty, part) => map2(a.lo, b.lo, |x, y| product24(ty, part, x, y)),
        Op::Mad24(ty, part, clamp) => map3(a.lo, b.lo, c.lo, |x, y, z| {
            let product = product24(ty, part, x, y);
            if clamp == Clamp::Sat {
                (product as i32).saturating_add(z as i32) as u32
            } else {
                product.wrapping_add(z)
            }
        }),
        Op::MadCarry(ty, part) => {
            let carry = regs.read_pred(inst.src[3]);
            let carry_in = |i: usize| carry >> i & 1;
            match multiply_rare(ty, part, a, b) {
                Filled::Wide(lo, hi) => {
                    let product = Source { lo: &lo, hi: &hi };
                    let sum = |i: usize| {
                        u128::from(product.wide(i)) + u128::from(c.wide(i)) + u128::from(carry_in(i))
                    };
                    let carries = gather::<N>(|i| sum(i) >> 64 != 0);
                    Filled::WideCarry(lanes(|i| sum(i) as u32), lanes(|i| (sum(i) >> 32) as u32), carries)
                }
                Filled::Word(lo) => {
                    let sum = |i: usize| u64::from(lo[i]) + u64::from(c.lo[i]) + carry_in(i);
                    let carries = gather::<N>(|i| sum(i) >> 32 != 0);
                    Filled::WordCarry(lanes(|i| sum(i) as u32), carries)
                }
                other => other,
            }
        }
        Op::IDiv(ty) => match ty {
            Ty::U64 => wide(|i| a.wide(i).checked_div(b.wide(i)).unwrap_or(u64::MAX)),
            Ty::S64 => wide(|i| divide(a.wide(i) as i64, b.wide(i) as i64) as u64),
            Ty::U32 => map2(a.lo, b.lo, |x, y| x.checked_div(y).unwrap_or(u32::MAX)),
            Ty::S32 => map2(a.lo, b.lo, |x, y| divide(i64::from(x as i32), i64::from(y as i32)) as u32),
            Ty::U16 => map2(a.lo, b.lo, |x, y| (x & 0xffff).checked_div(y & 0xffff).unwrap_or(0xffff)),
            _ => map2(a.lo, b.lo, |x, y| divide(sext16(x).into(), sext16(y).into()) as u32 & 0xffff),
        },
        Op::IRem(ty) => match ty {
            Ty::U64 => wide(|i| a.wide(i).checked_rem(b.wide(i)).unwrap_or(u64::MAX)),
            Ty::S64 => wide(|i| remainder(a.wide(i) as i64, b.wide(i) as i64) as u64),
            Ty::U32 => map2(a.lo, b.lo, |x, y| x.checked_rem(y).unwrap_or(u32::MAX)),
            Ty::S32 => map2(a.lo, b.lo, |x, y| remainder(i64::from(x as i32), i64::from(y as i32)) as u32),
            Ty::U16 => map2(a.lo, b.lo, |x, y| (x & 0xffff).checked_rem(y & 0xffff).unwrap_or(0xffff)),
            _ => map2(a.lo, b.lo, |x, y| remainder(sext16(x).into(), sext16(y).into()) as u32 & 0xffff),
        },
        Op::Sad(ty) => match ty {
            Ty::U64 => wide(|i| a.wide(i).abs_diff(b.wide(i)).wrapping_add(c.wide(i))),
            Ty::S64 => wide(|i| (a.wide(i) as i64).abs_diff(b.wide(i) as i64).wrapping_add(c.wide(i))),
            Ty::U32 => map3(a.lo, b.lo, c.lo, |x, y, z| x.abs_diff(y).wrapping_add(z)),
            Ty::S32 => map3(a.lo, b.lo, c.lo, |x, y, z| (x as i32).abs_diff(y as i32).wrapping_add(z)),
            Ty::U16 => {
                map3(a.lo, b.lo, c.lo, |x, y, z| (x & 0xffff).abs_diff(y & 0xffff).wrapping_add(z) & 0xffff)
            }
            _ => map3(a.lo, b.lo, c.lo, |x, y, z| sext16(x).abs_diff(sext16(y)).wrapping_add(z) & 0xffff),
        },
        Op::Dp4a(a_signed, b_signed) => map3(a.lo, b.lo, c.lo, |x, y, z| {
            (0..4).fold(z, |sum, k| {
                sum.wrapping_add(byte(x, k, a_signed).wrapping_mul(byte(y, k, b_signed)) as u32)
            })
        }),
        Op::Dp2a(a_signed, b_signed, high) => map3(a.lo, b.lo, c.lo, |x, y, z| {
            let first = if high { 2 } else { 0 };
            (0..2).fold(z, |sum, k| {
                let half = x >> (16 * k) & 0xffff;
                let half = if a_signed { sext16(half) } else { half as i32 };
                sum.wrapping_add(half.wrapping_mul(byte(y, first + k, b_signed)) as u32)
            })
        }),
        _ => Filled::Nothing,
    }
}

/// Division by zero gives -1 (all ones); `MIN / -1` wraps to `MIN` in every width.
#[inline(always)]
fn divide(x: i64, y: i64) -> i64 {
    if y == 0 { -1 } else { x.wrapping_div(y) }
}

/// The remainder has the dividend's sign; division by zero gives -1 (all ones), as for the quotient.
#[inline(always)]
fn remainder(x: i64, y: i64) -> i64 {
    if y == 0 { -1 } else { x.wrapping_rem(y) }
}

/// The product of the low 24 bits: its bits 0–31 or 16–47.
#[inline(always)]
fn product24(ty: Ty, part: Part, x: u32, y: u32) -> u32 {
    let extend =
        |v: u32| if ty.is_signed() { i64::from((v << 8) as i32 >> 8) } else { i64::from(v & 0xff_ffff) };
    let product = extend(x) * extend(y);
    if part == Part::Hi { (product >> 16) as u32 } else { product as u32 }
}

/// Byte `k`, sign- or zero-extended.
#[inline(always)]
fn byte(x: u32, k: u32, signed: bool) -> i32 {
    let byte = (x >> (8 * k)) as u8;
    if signed { i32::from(byte as i8) } else { i32::from(byte) }
}
