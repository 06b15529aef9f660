//! Branches, exits, traps, and instructions without effect in the model.

use isa::{Dst, Op, Operand, Pc, Ty};
use warploom_isa as isa;

use super::opcode::Opcode;
use super::{Builder, Result};
use crate::resolved::OperandKind;

/// Linking sets the reconvergence point later.
const RECONVERGENCE_UNKNOWN: Operand = Operand::Imm(Pc::RETURN.0);

pub(super) fn bra(b: &mut Builder<'_>, oc: &mut Opcode<'_>) -> Result {
    oc.has("uni");
    let [target] = oc.operands()?;
    let OperandKind::Label(label) = target.kind else {
        return Err(b.at(target, format!("`{}` takes a label", b.name())));
    };
    let here = b.here();
    b.branches.push(here);
    b.emit(Op::Bra, Dst::None, &[Operand::Imm(label.0), RECONVERGENCE_UNKNOWN]);
    Ok(())
}

/// `brx.idx[.uni] index, table`
pub(super) fn brx(b: &mut Builder<'_>, oc: &mut Opcode<'_>) -> Result {
    oc.need(&[("idx", ())])?;
    oc.has("uni");
    let [index, table] = oc.operands()?;
    let index = b.src(index, Ty::U32)?;
    let OperandKind::Table(table) = table.kind else {
        return Err(b.at(table, format!("`{}` takes a list of branch targets", b.name())));
    };
    b.emit(Op::Brx, Dst::None, &[index, Operand::Imm(table.0), RECONVERGENCE_UNKNOWN]);
    Ok(())
}

pub(super) fn ret(b: &mut Builder<'_>, oc: &mut Opcode<'_>) -> Result {
    oc.has("uni");
    let [] = oc.operands()?;
    b.epilogue();
    b.emit(Op::Ret, Dst::None, &[]);
    Ok(())
}

fn bare(b: &mut Builder<'_>, oc: &Opcode<'_>, op: Op) -> Result {
    let [] = oc.operands()?;
    b.emit(op, Dst::None, &[]);
    Ok(())
}

pub(super) fn exit(b: &mut Builder<'_>, oc: &mut Opcode<'_>) -> Result {
    bare(b, oc, Op::Exit)
}

/// `trap`, and `brkpt`, which traps without a debugger.
pub(super) fn trap(b: &mut Builder<'_>, oc: &mut Opcode<'_>) -> Result {
    bare(b, oc, Op::Trap)
}

pub(super) fn pmevent(b: &mut Builder<'_>, oc: &mut Opcode<'_>) -> Result {
    let most = if oc.has("mask") { 0xffff } else { 15 };
    let [event] = oc.operands()?;
    b.constant(event, 0, most)?;
    b.emit(Op::Nop, Dst::None, &[]);
    Ok(())
}

/// No effect: launches run one at a time, so dependents wait for the whole grid anyway.
pub(super) fn griddepcontrol(b: &mut Builder<'_>, oc: &mut Opcode<'_>) -> Result {
    oc.need(&[("launch_dependents", ()), ("wait", ())])?;
    bare(b, oc, Op::Nop)
}

/// No effect: registers are allocated at launch for good.
pub(super) fn setmaxnreg(b: &mut Builder<'_>, oc: &mut Opcode<'_>) -> Result {
    oc.need(&[("inc", ()), ("dec", ())])?;
    oc.need(&[("sync", ())])?;
    oc.need(&[("aligned", ())])?;
    oc.ty(&[Ty::U32])?;
    let [count] = oc.operands()?;
    if !b.constant(count, 24, 256)?.is_multiple_of(8) {
        return Err(b.at(count, "registers are given and taken in multiples of 8"));
    }
    b.emit(Op::Nop, Dst::None, &[]);
    Ok(())
}
