//! The thread's stack: `alloca`, `stacksave`, `stackrestore`. Addresses are of local memory.

use isa::{Dst, Op, Operand, StackOp, Ty, Width};
use warploom_isa as isa;

use super::address::extend;
use super::opcode::Opcode;
use super::{Builder, Result};
use crate::resolved;

/// What the manual aligns to if nothing is stated.
const DEFAULT_ALIGN: u32 = 8;

/// `alloca.type d, bytes[, align]`
pub(super) fn alloca(b: &mut Builder<'_>, oc: &mut Opcode<'_>) -> Result {
    let ty = oc.ty(&[Ty::U32, Ty::U64])?;
    let operands = oc.operands_between(2, 3)?;
    let align = match operands.get(2) {
        Some(op) => b.constant(op, 1, 1 << 16)?,
        None => DEFAULT_ALIGN,
    };
    if !align.is_power_of_two() {
        return Err(b.at(&operands[2], format!("the alignment {align} is not a power of two")));
    }
    // A size beyond 32 bits is no smaller one.
    let mut bytes = b.src(&operands[1], ty)?;
    if ty == Ty::U64 {
        let low = b.value(Op::Unpack64(0), Width::One, &[bytes]);
        let high = b.value(Op::Unpack64(1), Width::One, &[bytes]);
        let p = b.fresh_pred();
        let op = Op::Setp { cmp: isa::Cmp::Ne, combine: isa::Combine::None, ty: Ty::B32, ftz: false };
        b.emit(op, Dst::Pred(p), &[high, Operand::Imm(0)]);
        let sources = [Operand::Imm(u32::MAX), low, Operand::Pred(p)];
        bytes = b.value(Op::Selp(Ty::B32), Width::One, &sources);
    }
    result(b, &operands[0], ty, StackOp::Alloca(align.trailing_zeros() as u8), &[bytes])
}

/// `stacksave.type d`
pub(super) fn stacksave(b: &mut Builder<'_>, oc: &mut Opcode<'_>) -> Result {
    let ty = oc.ty(&[Ty::U32, Ty::U64])?;
    let [d] = oc.operands()?;
    result(b, d, ty, StackOp::Save, &[])
}

/// `stackrestore.type a`
pub(super) fn stackrestore(b: &mut Builder<'_>, oc: &mut Opcode<'_>) -> Result {
    let ty = oc.ty(&[Ty::U32, Ty::U64])?;
    let [a] = oc.operands()?;
    let mut a = b.src(a, ty)?;
    if ty == Ty::U64 {
        a = b.value(Op::Unpack64(0), Width::One, &[a]);
    }
    b.emit(Op::Stack(StackOp::Restore), Dst::None, &[a]);
    Ok(())
}

/// An operation with an address as its result.
fn result(b: &mut Builder<'_>, d: &resolved::Operand, ty: Ty, op: StackOp, sources: &[Operand]) -> Result {
    let d = b.dst(d, ty)?;
    if ty == Ty::U32 {
        b.emit(Op::Stack(op), d, sources);
        return Ok(());
    }
    let address = b.value(Op::Stack(op), Width::One, sources);
    b.emit(Op::Cvt(extend(Ty::U32, Ty::U64)), d, &[address]);
    Ok(())
}
