//! Products and sums that machine code computes in one instruction.

use crate::cfg::*;
use crate::inst::*;
use crate::module::*;
use crate::optimise::definitions;
use crate::types::*;
use crate::visit::*;

/// A product, or a shift to the left, whose only use is a sum in the same block, becomes a multiply-add. Returns the
/// products.
pub(super) fn products(body: &mut Body) -> Vec<bool> {
    let mut gone = vec![false; body.insts.len()];
    let (written, read) = (definitions(body), uses(body));
    let cfg = Cfg::new(body);
    // The product that a register holds, and where it was computed.
    let mut product: Vec<Option<u32>> = vec![None; body.registers.len()];
    for block in &cfg.blocks {
        for at in block.start.0..block.end.0 {
            let inst = body.insts[at as usize];
            if let Some((factor_at, sum)) = sum_of_product(body, &inst, &product, block.start.0) {
                let factors = body.insts[factor_at as usize];
                let moved = |operand: &Operand| match operand {
                    Operand::Reg(reg) => !changes(body, *reg, factor_at + 1, at),
                    _ => true,
                };
                if factors.src[..2].iter().all(moved)
                    && let Some(fused) = fused(&factors, sum, &inst)
                {
                    body.insts[at as usize] = fused;
                    gone[factor_at as usize] = true;
                }
            }
            if let Dst::Reg(reg) = inst.dst
                && is_product(&inst)
                && written[reg.index()] == 1
                && read[reg.index()] == 1
            {
                product[reg.index()] = Some(at);
            }
        }
    }
    gone
}

fn uses(body: &Body) -> Vec<u32> {
    let mut counts = vec![0; body.registers.len()];
    for inst in &body.insts {
        inst.for_each_use(body, |value| {
            if let Value::Reg(reg, _) = value {
                counts[reg.index()] += 1;
            }
        });
    }
    counts
}

fn is_product(inst: &Inst) -> bool {
    let shift = matches!((inst.op, inst.src[1]), (Op::Shl(Ty::B32), Operand::Imm(0..=31)));
    let product = matches!(inst.op, Op::IMul(Ty::U32 | Ty::S32, Part::Wide | Part::Lo));
    inst.guard == Guard::Always && (shift || product)
}

/// The position of the product in a sum, and the sum's other operand.
fn sum_of_product(body: &Body, inst: &Inst, product: &[Option<u32>], start: u32) -> Option<(u32, Operand)> {
    let Op::IAdd(ty @ (Ty::U32 | Ty::S32 | Ty::U64 | Ty::S64), Clamp::None) = inst.op else { return None };
    if inst.guard != Guard::Always {
        return None;
    }
    [(0, 1), (1, 0)].into_iter().find_map(|(factor, other)| {
        let Operand::Reg(reg) = inst.src[factor] else { return None };
        let at = product[reg.index()].filter(|&at| at >= start)?;
        let wide = body.insts[at as usize].op.shape().dst == Width::Two;
        let fits = matches!(inst.src[other], Operand::Reg(_)) || !wide;
        (fits && wide == ty.is_wide() && inst.src[other] != inst.src[factor]).then_some((at, inst.src[other]))
    })
}

/// Whether a register is written from one position up to another.
fn changes(body: &Body, reg: Reg, from: u32, to: u32) -> bool {
    let mut changes = false;
    for inst in &body.insts[from as usize..to as usize] {
        inst.for_each_def(body, |value| changes |= matches!(value, Value::Reg(other, _) if other == reg));
    }
    changes
}

fn fused(product: &Inst, other: Operand, sum: &Inst) -> Option<Inst> {
    let (op, b) = match (product.op, product.src[1]) {
        (Op::IMul(ty, part), b) => (Op::IMad(ty, part, Clamp::None), b),
        (Op::Shl(Ty::B32), Operand::Imm(by @ 0..=31)) => {
            (Op::IMad(Ty::U32, Part::Lo, Clamp::None), Operand::Imm(1 << by))
        }
        _ => return None,
    };
    Some(Inst::new(op, sum.dst, &[product.src[0], b, other]))
}
