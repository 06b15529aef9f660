//! Conversions (`cvt`).
//!
//! Integers: a source is extended by its own signedness, and a result narrower than a word is extended to the word by
//! its own signedness. Floats to integers always clamp to the destination's range. NaN becomes 0 or, if either side
//! is 64 bits wide, the destination's top bit alone (the PTX manual's rule).

use warploom_isa::{Clamp, Cvt, Round, Ty};

use crate::lanes::float::{canonical32, flush32};
use crate::lanes::format::{F32_NAN, F64_QUIET, Format, f16_to_f32};
use crate::lanes::vector::{
    Filled, Inputs, Source, blend, blend64, lanes, map1, map2, map3, ones, ones64, wide, word,
};

/// The frequent conversions; the others are in [`convert_rare`].
#[inline(always)]
pub(super) fn compute<const N: usize>(cvt: Cvt, a: Source<'_, N>) -> Filled<N> {
    let plain = cvt.clamp == Clamp::None;
    match (cvt.from, cvt.to) {
        (from, to) if plain && !from.is_float() && !to.is_float() => integers(from, to, a),
        (Ty::S32, Ty::F32) if plain && cvt.round == Round::Rn => map1(a.lo, |x| (x as i32 as f32).to_bits()),
        (Ty::U32, Ty::F32) if plain && cvt.round == Round::Rn => map1(a.lo, |x| (x as f32).to_bits()),
        (Ty::S32, Ty::F64) if plain => wide(|i| f64::from(a.lo[i] as i32).to_bits()),
        (Ty::U32, Ty::F64) if plain => wide(|i| f64::from(a.lo[i]).to_bits()),
        (Ty::F32, Ty::S32) if !cvt.ftz => to_word(cvt, a, |x| x as i32 as u32),
        (Ty::F32, Ty::U32) if !cvt.ftz => to_word(cvt, a, |x| x as u32),
        (Ty::F32, Ty::F64) if plain && !cvt.ftz => wide(|i| f32_to_f64(a.lo[i])),
        (Ty::F64, Ty::F32) if plain && !cvt.ftz && cvt.round == Round::Rn => word(|i| f64_to_f32(a.wide(i))),
        (Ty::F16, Ty::F32) if plain => map1(a.lo, |x| canonical32(f16_to_f32(x))),
        (Ty::BF16, Ty::F32) if plain && !cvt.ftz => map1(a.lo, |x| x << 16),
        (Ty::F32, Ty::F32) if plain && !cvt.integral => {
            if cvt.ftz {
                map1(a.lo, |x| flush32(canonical32(x)))
            } else {
                Filled::Word(*a.lo)
            }
        }
        (Ty::F64, Ty::F64) if plain && !cvt.integral => Filled::Wide(*a.lo, *a.hi),
        _ => convert_rare(cvt, a),
    }
}

/// f32 to s32 or u32. `cast` truncates, clamps and makes NaN 0, as Rust's casts do.
#[inline(always)]
fn to_word<const N: usize>(cvt: Cvt, a: Source<'_, N>, cast: impl Fn(f32) -> u32) -> Filled<N> {
    match cvt.round {
        Round::Rz => map1(a.lo, |x| cast(f32::from_bits(x))),
        Round::Rn => map1(a.lo, |x| cast(f32::from_bits(x).round_ties_even())),
        Round::Rm => map1(a.lo, |x| cast(f32::from_bits(x).floor())),
        Round::Rp => map1(a.lo, |x| cast(f32::from_bits(x).ceil())),
        Round::Rna => convert_rare(cvt, a),
    }
}

/// f32 to f64. A NaN keeps its sign and payload and becomes quiet, whatever the host does.
#[inline(always)]
fn f32_to_f64(bits: u32) -> u64 {
    let number = f64::from(f32::from_bits(bits)).to_bits();
    let sign_and_exponent = u64::from(bits >> 31) << 63 | 0x7ff8 << 48;
    let nan = sign_and_exponent | u64::from(bits & 0x007f_ffff) << 29;
    let k = ones64(bits & 0x7fff_ffff > 0x7f80_0000);
    blend64(k, nan, number)
}

/// f64 to f32, rounded to nearest. A NaN keeps its sign and upper payload and becomes quiet, whatever the host does.
#[inline(always)]
fn f64_to_f32(bits: u64) -> u32 {
    let number = (f64::from_bits(bits) as f32).to_bits();
    let sign_and_exponent = ((bits >> 63) as u32) << 31 | 0x7fc0_0000;
    let nan = sign_and_exponent | ((bits >> 29) as u32 & 0x007f_ffff);
    let k = ones(bits & (u64::MAX >> 1) > 0x7ff0 << 48);
    blend(k, nan, number)
}

/// The low `32 - spare` bits of a word, extended to the whole word; `signed` is all ones or zero.
#[inline(always)]
fn extend(x: u32, spare: u32, signed: u32) -> u32 {
    let moved = x << spare;
    blend(signed, (moved as i32 >> spare) as u32, moved >> spare)
}

/// Integer to integer without saturation.
#[inline(always)]
pub(super) fn integers<const N: usize>(from: Ty, to: Ty, a: Source<'_, N>) -> Filled<N> {
    // A narrower destination takes only its own bits of the source.
    let kept = if to.bits() < from.bits() { to } else { from };
    let (spare, signed) = (32 - kept.bits().min(32), ones(kept.is_signed()));
    match (from.is_wide(), to.is_wide()) {
        (true, true) => Filled::Wide(*a.lo, *a.hi),
        (false, true) => {
            let lo = lanes(|i| extend(a.lo[i], spare, signed));
            Filled::Wide(lo, lanes(|i| (lo[i] as i32 >> 31) as u32 & signed))
        }
        (_, false) if spare == 0 => Filled::Word(*a.lo),
        (_, false) => {
            // A signed source may fill more bits than an unsigned destination has.
            let (cut, cut_signed) = (32 - to.bits(), ones(to.is_signed()));
            map1(a.lo, |x| extend(extend(x, spare, signed), cut, cut_signed))
        }
    }
}

/// Any conversion, lane by lane.
#[inline(never)]
fn convert_rare<const N: usize>(cvt: Cvt, a: Source<'_, N>) -> Filled<N> {
    let one = |i: usize| convert(cvt, if cvt.from.is_wide() { a.wide(i) } else { a.lo[i].into() });
    if cvt.to.is_wide() { wide(one) } else { word(|i| one(i) as u32) }
}

/// Converts one value. Bits above the source type's width are ignored.
fn convert(cvt: Cvt, bits: u64) -> u64 {
    match (cvt.from.is_float(), cvt.to.is_float()) {
        (false, false) => integer_bits(cvt.to, cvt.clamp, integer_value(cvt.from, bits)),
        (false, true) => {
            let value = integer_value(cvt.from, bits);
            let format = Format::of(cvt.to);
            let rounded = format.round(value < 0, value.unsigned_abs() as u64, 0, cvt.round);
            format.clamp(rounded, cvt.clamp)
        }
        (true, false) => float_to_integer(cvt, bits),
        (true, true) => float_to_float(cvt, bits),
    }
}

fn integer_value(ty: Ty, bits: u64) -> i128 {
    let spare = 64 - ty.bits();
    let moved = bits << spare;
    if ty.is_signed() { i128::from(moved as i64 >> spare) } else { i128::from(moved >> spare) }
}

/// An integer as a register of its type holds it: clamped or truncated, then extended by the type's signedness.
fn integer_bits(ty: Ty, clamp: Clamp, value: i128) -> u64 {
    let (min, max) = range(ty);
    let value = if clamp == Clamp::Sat { value.clamp(min, max) } else { value };
    integer_value(ty, value as u64) as u64
}

fn range(ty: Ty) -> (i128, i128) {
    let bits = ty.bits();
    if ty.is_signed() { (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) } else { (0, (1 << bits) - 1) }
}

/// The source's bits without those above its width; an f32 is flushed with `.ftz`. Hopper ignores `.ftz` in conversions
/// to f16, where subnormal f32 give at most the smallest subnormal anyway.
fn float_source(cvt: Cvt, bits: u64) -> u64 {
    match cvt.from {
        Ty::F64 => bits,
        Ty::F32 if cvt.ftz && cvt.to != Ty::F16 => Format::F32.flush(bits & 0xffff_ffff),
        Ty::F32 => bits & 0xffff_ffff,
        _ => bits & 0xffff,
    }
}

fn to_integral(value: f64, round: Round) -> f64 {
    match round {
        Round::Rn => value.round_ties_even(),
        Round::Rna => value.round(),
        Round::Rz => value.trunc(),
        Round::Rm => value.floor(),
        Round::Rp => value.ceil(),
    }
}

fn float_to_integer(cvt: Cvt, bits: u64) -> u64 {
    let value = Format::of(cvt.from).widen(float_source(cvt, bits));
    if value.is_nan() {
        let wide = cvt.from == Ty::F64 || cvt.to.is_wide();
        return if wide { integer_bits(cvt.to, Clamp::None, 1 << (cvt.to.bits() - 1)) } else { 0 };
    }
    // The cast itself clamps, to a range that contains every destination's.
    integer_bits(cvt.to, Clamp::Sat, to_integral(value, cvt.round) as i128)
}

fn float_to_float(cvt: Cvt, bits: u64) -> u64 {
    let (from, to) = (Format::of(cvt.from), Format::of(cvt.to));
    let source = float_source(cvt, bits);
    let value = from.widen(source);
    let converted = if value.is_nan() {
        nan_to_nan(cvt, source)
    } else if cvt.integral {
        to.narrow(to_integral(value, cvt.round), Round::Rn)
    } else if cvt.ftz && cvt.to == Ty::F32 {
        to.narrow_flushed(value, cvt.round)
    } else {
        to.narrow(value, cvt.round)
    };
    to.clamp(converted, cvt.clamp)
}

/// What a NaN becomes; the rules are in [`format`](super::format).
fn nan_to_nan(cvt: Cvt, source: u64) -> u64 {
    let to = Format::of(cvt.to);
    match (cvt.from, cvt.to) {
        (Ty::F64, Ty::F64) if cvt.integral => source | F64_QUIET,
        (Ty::F64, Ty::F64) => source,
        (Ty::F32, Ty::F32) if !cvt.integral && !cvt.ftz => source,
        (Ty::F64, _) => to.narrow_nan(source),
        (Ty::F32, Ty::F64) if cvt.ftz => f32_to_f64(F32_NAN),
        (Ty::F32, Ty::F64) => f32_to_f64(source as u32),
        (_, Ty::F64) => f32_to_f64(crate::lanes::half::widened(cvt.from, source as u32, false)),
        (Ty::BF16, Ty::F32) if !cvt.ftz => source << 16,
        _ => to.nan(),
    }
}

/// Two f32 to a pair of halves; `a` becomes the upper one.
#[inline(never)]
pub(super) fn pair_rare<const N: usize>(cvt: Cvt, a: Source<'_, N>, b: Source<'_, N>) -> Filled<N> {
    let half = Cvt { to: if cvt.to == Ty::F16x2 { Ty::F16 } else { Ty::BF16 }, ..cvt };
    map2(a.lo, b.lo, |x, y| (convert(half, x.into()) << 16 | convert(half, y.into())) as u32)
}

/// `cvt.pack.sat`: two s32 clamped to 16 or 8 bits; with 8, the low half of `c` goes above them.
#[inline(never)]
pub(super) fn pack_rare<const N: usize>(ty: Ty, inputs: Inputs<'_, N>) -> Filled<N> {
    let Inputs { a, b, c, .. } = inputs;
    let bits = ty.bits();
    let one = |x: u32| integer_bits(ty, Clamp::Sat, i128::from(x as i32)) as u32 & ((1 << bits) - 1);
    map3(a.lo, b.lo, c.lo, |x, y, z| {
        let packed = one(x) << bits | one(y);
        if bits == 8 { packed | z << 16 } else { packed }
    })
}
