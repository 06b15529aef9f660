//! f16 and bf16, single and in pairs.

use warploom_isa::{FloatMode, Ty};

use crate::lanes::exact::{Exact, rounded};
use crate::lanes::format::{Format, f16_to_f32};
use crate::lanes::vector::{Filled, Inputs, map3};

/// An f16, bf16 or f32 as f32 bits, exactly. With `ftz`, subnormals of its own type become zero.
#[inline(always)]
pub(super) fn widened(ty: Ty, x: u32, ftz: bool) -> u32 {
    let flush =
        |bits: u32, exponent: u32| if ftz && bits & exponent == 0 { bits & 0x8000_0000 } else { bits };
    match ty {
        Ty::F16 => f16_to_f32(if ftz && x & 0x7c00 == 0 { x & 0x8000 } else { x }),
        Ty::BF16 => flush(x << 16, 0x7f80_0000) & 0xffff_0000,
        _ => flush(x, 0x7f80_0000),
    }
}

/// Whether the type holds two numbers in a word.
pub(super) const fn is_pair(ty: Ty) -> bool {
    matches!(ty, Ty::F16x2 | Ty::BF16x2)
}

/// Applies `f` to the number, or both numbers, of each lane.
#[inline(always)]
pub(super) fn each<const N: usize>(
    ty: Ty,
    inputs: Inputs<'_, N>,
    f: impl Fn(u64, u64, u64) -> u64,
) -> Filled<N> {
    let Inputs { a, b, c, .. } = inputs;
    let one = |x: u32, y: u32, z: u32| f(x.into(), y.into(), z.into()) as u32;
    if is_pair(ty) {
        map3(a.lo, b.lo, c.lo, |x, y, z| {
            one(x & 0xffff, y & 0xffff, z & 0xffff) | one(x >> 16, y >> 16, z >> 16) << 16
        })
    } else {
        map3(a.lo, b.lo, c.lo, |x, y, z| one(x & 0xffff, y & 0xffff, z & 0xffff))
    }
}

#[inline(never)]
pub(super) fn arithmetic<const N: usize>(
    op: Exact,
    ty: Ty,
    mode: FloatMode,
    inputs: Inputs<'_, N>,
) -> Filled<N> {
    let format = Format::of(ty);
    each(ty, inputs, |x, y, z| rounded(op, format, mode, [x, y, z]))
}
