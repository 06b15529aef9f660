//! Which write ends the wait of a spin loop: one inside the loop, or one elsewhere in its function. Only writes whose
//! address is visibly the polled one are found. Whether a lane that took a lock surely comes to a write inside the loop
//! is for [`Code::released`] to say, and whether the loop waits for anyone at all for [`Code::progress`].
//!
//! It matters because a lock that is released only after the loop that takes it deadlocks on a SIMT stack when two
//! lanes of one warp want it.

use crate::cfg::*;
use crate::inst::*;
use crate::kernel::*;
use crate::liveness::*;
use crate::module::*;
use crate::released::Code;
use crate::spin::blocks_to;
use crate::visit::*;

/// The base of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Root {
    Reg(Reg),
    Symbol(Symbol),
    Number,
}

/// Finds the addresses that a body's instructions access, where its code shows them.
pub(crate) struct Places<'a> {
    body: &'a Body,
    mentions: Rows<Mention>,
}

impl<'a> Places<'a> {
    pub(crate) fn new(body: &'a Body) -> Self {
        Places { body, mentions: mentions(body) }
    }

    /// Follows an operand through registers that are written once. Windows of spaces are not added, so that a word
    /// has the same root whether its address is generic or not.
    fn root(&self, mut operand: Operand) -> Option<(Root, i64)> {
        let mut offset = 0i64;
        for _ in 0..16 {
            let reg = match operand {
                Operand::Imm(value) => return Some((Root::Number, offset + i64::from(value))),
                Operand::Symbol(id) => {
                    let used = self.body.symbols[id.index()];
                    return Some((Root::Symbol(used.symbol), offset + used.offset));
                }
                Operand::Reg(reg) => reg,
                _ => return None,
            };
            let mut defs = self.mentions.row(reg.index()).iter().filter(|m| m.kind != MentionKind::Use);
            let only = match (defs.next(), defs.next()) {
                (Some(def), None) if def.kind == MentionKind::Def => &self.body.insts[def.pc.index()],
                _ => return Some((Root::Reg(reg), offset)),
            };
            operand = match (only.op, only.src) {
                (Op::Mov(_) | Op::ToGeneric(..) | Op::FromGeneric(..), [from, ..]) => from,
                (Op::IAdd(ty, _), [from, Operand::Imm(by), ..]) => {
                    offset += if ty.is_wide() { i64::from(by) } else { i64::from(by as i32) };
                    from
                }
                _ => return Some((Root::Reg(reg), offset)),
            };
            if !matches!(operand, Operand::Reg(_) | Operand::Imm(_) | Operand::Symbol(_)) {
                return Some((Root::Reg(reg), offset));
            }
        }
        None
    }

    pub(crate) fn address(&self, inst: &Inst) -> Option<(Root, i64)> {
        let (root, at) = self.root(inst.src[0])?;
        let Operand::Imm(offset) = inst.src[1] else { return None };
        Some((root, at + i64::from(offset as i32)))
    }

    /// The only instruction that writes a value, if it writes it whole.
    pub(crate) fn only_definition(&self, value: Value) -> Option<Pc> {
        let number = value_number(value, self.body.registers.len()) as usize;
        let mut defs = self.mentions.row(number).iter().filter(|m| m.kind != MentionKind::Use);
        match (defs.next(), defs.next()) {
            (Some(def), None) if def.kind == MentionKind::Def => Some(def.pc),
            _ => None,
        }
    }

    /// All instructions that write a value.
    pub(crate) fn definitions(&self, value: Value) -> impl Iterator<Item = Pc> + Clone + '_ {
        let number = value_number(value, self.body.registers.len()) as usize;
        self.mentions.row(number).iter().filter(|m| m.kind != MentionKind::Use).map(|m| m.pc)
    }

    /// Where the wait of a loop ends. Only blocks that lead to the loop's own backward branches count as inside.
    pub(crate) fn wait_ends(&self, code: &Code<'_>, l: &Loop) -> WaitEnds {
        let cfg = code.cfg;
        let Some(poll) = l.spins_on else { return WaitEnds::Elsewhere };
        if let Some(ends) = code.progress(l) {
            return ends;
        }
        let Some(polled) = self.address(&self.body.insts[poll.index()]) else { return WaitEnds::Elsewhere };
        let end = l.latches.iter().copied().max().unwrap_or(l.header);
        let writes = |(at, inst): (usize, &Inst)| {
            let writes = matches!(inst.op, Op::St(_) | Op::StUnlock(_) | Op::Atom(..));
            (writes && at != poll.index() && self.address(inst) == Some(polled)).then_some(Pc(at as u32))
        };
        let writes: Vec<Pc> = self.body.insts.iter().enumerate().filter_map(writes).collect();
        let header = cfg.block_of(l.header);
        let blocks: Vec<BlockId> =
            l.latches.iter().flat_map(|&latch| blocks_to(cfg, header, cfg.block_of(latch))).collect();
        let inside = |&&pc: &&Pc| blocks.contains(&cfg.block_of(pc));
        let inside: Vec<Pc> = writes.iter().filter(inside).copied().collect();
        match (inside.first(), writes.iter().find(|&&pc| pc > end).or(writes.first())) {
            (Some(&pc), _) => match code.released(poll, &blocks, &inside) {
                Some(release) => WaitEnds::Released(release),
                None => WaitEnds::Inside(pc),
            },
            (None, Some(&pc)) => WaitEnds::Outside(pc),
            (None, None) => WaitEnds::Elsewhere,
        }
    }

    /// Loads that take the lock bit of a statically known word of a variable, and that word.
    pub(crate) fn lock_words(&self) -> Vec<(Pc, SymbolUse)> {
        let known = |(at, inst): (usize, &Inst)| {
            let Op::LdLock(_) = inst.op else { return None };
            let (Root::Symbol(symbol), offset) = self.address(inst)? else { return None };
            Some((Pc(at as u32), SymbolUse { symbol, offset, generic: false }))
        };
        self.body.insts.iter().enumerate().filter_map(known).collect()
    }
}
