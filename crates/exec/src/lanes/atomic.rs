//! Atomic operations on one memory location.

use warploom_isa::{AtomOp, FloatMode, MinMax, Round, Space, Ty};

use crate::lanes::exact::{Exact, rounded, rounded_f64};
use crate::lanes::float::min_max;
use crate::lanes::format::Format;
use crate::lanes::half::is_pair;

/// The unit that does an atomic operation; the two differ in their floating-point additions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtomicUnit {
    /// The SM's, for shared and local memory and for reductions over a warp.
    Sm,
    /// The L2's, for global memory: additions flush f32 subnormals and pass an f64 NaN on unchanged.
    L2,
}

impl AtomicUnit {
    /// The unit for a location in `space`.
    pub fn of(space: Space) -> AtomicUnit {
        if space == Space::Global { AtomicUnit::L2 } else { AtomicUnit::Sm }
    }
}

/// The value that replaces `old`. `b` is the operand. `Cas` compares it with `old`, bit by bit, and stores `c` if they
/// are equal. Bits above the type's width are ignored, and zero in the result.
///
/// Floating-point additions round to nearest; [`AtomicUnit`] says which of them flush.
#[inline]
pub fn atomic(unit: AtomicUnit, op: AtomOp, ty: Ty, [old, b, c]: [u64; 3]) -> u64 {
    let bits = ty.bits();
    let keep = u64::MAX >> (64 - bits);
    let (old, b, c) = (old & keep, b & keep, c & keep);
    let signed = |x: u64| (x << (64 - bits)) as i64 >> (64 - bits);
    let new = match op {
        AtomOp::Exch => b,
        AtomOp::Cas => {
            if old == b {
                c
            } else {
                old
            }
        }
        AtomOp::And => old & b,
        AtomOp::Or => old | b,
        AtomOp::Xor => old ^ b,
        AtomOp::Inc => {
            if old >= b {
                0
            } else {
                old + 1
            }
        }
        AtomOp::Dec => {
            if old == 0 || old > b {
                b
            } else {
                old - 1
            }
        }
        AtomOp::Add | AtomOp::Min | AtomOp::Max if ty.is_float() => floats(unit, op, ty, old, b),
        AtomOp::Add => old.wrapping_add(b),
        AtomOp::Min if ty.is_signed() => signed(old).min(signed(b)) as u64,
        AtomOp::Max if ty.is_signed() => signed(old).max(signed(b)) as u64,
        AtomOp::Min => old.min(b),
        AtomOp::Max => old.max(b),
    };
    new & keep
}

/// The 16 bytes that replace `old`: `Cas` compares the first operand with them and stores the second if they are
/// equal; `Exch` stores the first.
pub fn exchanged(op: AtomOp, old: u128, [b, c]: [u128; 2]) -> u128 {
    match op {
        AtomOp::Cas if old == b => c,
        AtomOp::Cas => old,
        _ => b,
    }
}

#[inline(never)]
fn floats(unit: AtomicUnit, op: AtomOp, ty: Ty, old: u64, b: u64) -> u64 {
    let format = Format::of(ty);
    let how = MinMax { nan: false, ftz: false, xorsign_abs: false };
    let ftz = unit == AtomicUnit::L2 && ty == Ty::F32;
    let mode = FloatMode { ftz, ..FloatMode::RN };
    let one = |x: u64, y: u64| match op {
        AtomOp::Min => min_max(false, format, how, x, y),
        AtomOp::Max => min_max(true, format, how, x, y),
        _ if ty == Ty::F64 => match [y, x].into_iter().find(|&bits| format.is_nan(bits)) {
            Some(nan) if unit == AtomicUnit::L2 => nan,
            _ => rounded_f64(Exact::Add, x, y, 0, Round::Rn),
        },
        _ => rounded(Exact::Add, format, mode, [x, y, 0]),
    };
    if is_pair(ty) { one(old & 0xffff, b & 0xffff) | one(old >> 16, b >> 16) << 16 } else { one(old, b) }
}
