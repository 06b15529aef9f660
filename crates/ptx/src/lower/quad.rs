//! Registers of 128 bits: pairs of 64-bit registers that `mov`, loads, stores, `atom.exch` and `atom.cas` use as one.

use isa::{Dst, Op, Operand, Reg, Ty};
use warploom_isa as isa;

use super::moves::piece_dst;
use super::opcode::Opcode;
use super::{Builder, Result, Slot};
use crate::resolved::{self, OperandKind};

/// `mov.b128 d, a`, where either side may be a list of two 64-bit or four 32-bit registers.
pub(super) fn mov(b: &mut Builder<'_>, oc: &mut Opcode<'_>) -> Result {
    let [d, a] = oc.operands()?;
    if let OperandKind::Vector(parts) = &d.kind {
        let (low, high) = b.quad(a)?;
        return unpack(b, d, parts, [low, high]);
    }
    let (low, high) = b.quad(d)?;
    let halves = b.quad_source(a)?;
    for (reg, half) in [low, high].into_iter().zip(halves) {
        b.emit(Op::Mov(Ty::B64), Dst::Reg(reg), &[half]);
    }
    Ok(())
}

fn unpack(
    b: &mut Builder<'_>,
    d: &resolved::Operand,
    parts: &[resolved::Operand],
    halves: [Reg; 2],
) -> Result {
    let ty = match parts.len() {
        2 => Ty::B64,
        4 => Ty::B32,
        count => return Err(b.at(d, format!("`{}` does not split into {count} pieces", b.name()))),
    };
    for (at, part) in parts.iter().enumerate() {
        let Some(reg) = piece_dst(b, part, ty)? else { continue };
        match ty {
            Ty::B64 => b.emit(Op::Mov(ty), Dst::Reg(reg), &[Operand::Reg(halves[at])]),
            _ => b.emit(Op::Unpack64((at % 2) as u8), Dst::Reg(reg), &[Operand::Reg(halves[at / 2])]),
        }
    }
    Ok(())
}

impl Builder<'_> {
    /// The halves of a `.b128` register, the low one first.
    pub(super) fn quad(&self, op: &resolved::Operand) -> Result<(Reg, Reg)> {
        if let OperandKind::Reg(r) = op.kind
            && let Slot::Quad(low, high) = self.slots[r.0 as usize]
        {
            return Ok((low, high));
        }
        Err(self.at(op, format!("`{}` takes a `.b128` register here", self.name())))
    }

    /// The halves of a 128-bit source: a register, an integer of 64 bits, or a list of registers.
    pub(super) fn quad_source(&mut self, op: &resolved::Operand) -> Result<[Operand; 2]> {
        match &op.kind {
            // An integer constant has 64 bits and a sign.
            OperandKind::Int(value) => {
                let above = ((*value as i64) >> 63) as u64;
                Ok([self.imm64(*value), self.imm64(above)])
            }
            OperandKind::Vector(parts) if parts.len() == 2 && self.inst.opcode[0].text == "mov" => {
                Ok([self.src(&parts[0], Ty::B64)?, self.src(&parts[1], Ty::B64)?])
            }
            OperandKind::Vector(parts) if parts.len() == 4 && self.inst.opcode[0].text == "mov" => {
                let mut halves = [Operand::None; 2];
                for (half, words) in halves.iter_mut().zip(parts.chunks(2)) {
                    let words = [self.src(&words[0], Ty::B32)?, self.src(&words[1], Ty::B32)?];
                    *half = self.value(Op::Pack64, isa::Width::Two, &words);
                }
                Ok(halves)
            }
            _ => {
                let (low, high) = self.quad(op)?;
                Ok([Operand::Reg(low), Operand::Reg(high)])
            }
        }
    }
}
