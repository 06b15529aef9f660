//! Additions that a compiler makes once for a whole warp.
//!
//! If all lanes add to one word, ptxas lets the warp sum up its operands by shuffles and one lane add the sum; other
//! lanes compute what the word held for them. It does so where it knows that the address is the same in all lanes.

use crate::inst::*;
use crate::module::*;
use crate::optimise::definitions;
use crate::types::*;

/// Atomic additions of integers whose address is known to be the same in all lanes.
pub(crate) fn uniform_additions(body: &Body) -> Vec<Pc> {
    let is_addition = |inst: &Inst| match inst.op {
        Op::Atom(AtomOp::Add, access) => matches!(access.ty, Ty::U32 | Ty::S32 | Ty::U64),
        _ => false,
    };
    if !body.insts.iter().any(is_addition) {
        return Vec::new();
    }
    let uniform = uniform_registers(body);
    let at_one_word = |inst: &Inst| inst.src[..2].iter().all(|operand| is_uniform(operand, &uniform));
    let pcs = (0..).map(Pc).zip(&body.insts);
    pcs.filter(|(_, inst)| is_addition(inst) && at_one_word(inst)).map(|(pc, _)| pc).collect()
}

/// Registers that hold the same in all lanes: computed once, from parameters, constants and the CTA's number.
fn uniform_registers(body: &Body) -> Vec<bool> {
    let written = definitions(body);
    let mut uniform = vec![false; body.registers.len()];
    loop {
        let mut changed = false;
        for inst in &body.insts {
            if let Dst::Reg(reg) = inst.dst
                && !uniform[reg.index()]
                && written[reg.index()] == 1
                && inst.guard == Guard::Always
                && keeps_uniform(inst)
                && inst.src.iter().all(|operand| is_uniform(operand, &uniform))
            {
                (uniform[reg.index()], changed) = (true, true);
            }
        }
        if !changed {
            return uniform;
        }
    }
}

fn is_uniform(operand: &Operand, uniform: &[bool]) -> bool {
    match operand {
        Operand::None | Operand::Imm(_) | Operand::Imm64(_) | Operand::Symbol(_) => true,
        Operand::Reg(reg) => uniform[reg.index()],
        Operand::Pred(_) | Operand::NotPred(_) | Operand::Vec(_) | Operand::Frame => false,
    }
}

/// Whether an instruction computes the same in all lanes from operands that are the same.
fn keeps_uniform(inst: &Inst) -> bool {
    match inst.op {
        Op::Ld { access, .. } => matches!(access.space, Space::Param | Space::Const),
        Op::Special(special) => matches!(
            special,
            Special::NtidX
                | Special::NtidY
                | Special::NtidZ
                | Special::CtaidX
                | Special::CtaidY
                | Special::CtaidZ
                | Special::NctaidX
                | Special::NctaidY
                | Special::NctaidZ
        ),
        Op::Mov(_)
        | Op::IAdd(..)
        | Op::ISub(..)
        | Op::IMul(..)
        | Op::IMad(..)
        | Op::Shl(_)
        | Op::Shr(_)
        | Op::Logic(..)
        | Op::Cvt(_)
        | Op::ToGeneric(..)
        | Op::FromGeneric(..) => true,
        _ => false,
    }
}
