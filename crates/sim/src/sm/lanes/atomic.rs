//! What an atomic operation does to one memory location.

use warploom_isa::{AtomOp, MinMax, Round, Ty};

use super::exact::{Exact, rounded, rounded_f64};
use super::float::min_max;
use super::format::Format;
use super::half::is_pair;

/// The value that replaces `old`. `b` is the operand; for `Cas` it is compared with `old`, bit by bit, and `c` is stored if
/// they are equal. Bits above the type's width are ignored, and zero in the result.
///
/// Floating-point additions round to nearest and keep subnormals. (PTX says so of shared memory and of
/// half precision; for f32 in global memory it lets subnormals be flushed.)
pub fn atomic(op: AtomOp, ty: Ty, old: u64, b: u64, c: u64) -> u64 {
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
        AtomOp::Add | AtomOp::Min | AtomOp::Max if ty.is_float() => floats(op, ty, old, b),
        AtomOp::Add => old.wrapping_add(b),
        AtomOp::Min if ty.is_signed() => signed(old).min(signed(b)) as u64,
        AtomOp::Max if ty.is_signed() => signed(old).max(signed(b)) as u64,
        AtomOp::Min => old.min(b),
        AtomOp::Max => old.max(b),
    };
    new & keep
}

fn floats(op: AtomOp, ty: Ty, old: u64, b: u64) -> u64 {
    let format = Format::of(ty);
    let how = MinMax { nan: false, ftz: false, xorsign_abs: false };
    let one = |x: u64, y: u64| match op {
        AtomOp::Min => min_max(false, format, how, x, y),
        AtomOp::Max => min_max(true, format, how, x, y),
        _ if ty == Ty::F64 => rounded_f64(Exact::Add, x, y, 0, Round::Rn),
        _ => rounded(Exact::Add, format, x, y, 0, Round::Rn),
    };
    if is_pair(ty) { one(old & 0xffff, b & 0xffff) | one(old >> 16, b >> 16) << 16 } else { one(old, b) }
}
