//! Expands atomics on shared memory for a machine with lock bits: each becomes the loop that Fermi's assembler emits.
//! Start at [`expand`].
//!
//! ```text
//! again: LDSLK old|taken, [a];      load the word, take its lock bit
//!        new = old op b;            (several instructions for inc, dec and cas)
//!   @taken STSUL [a], new;          store, free the lock bit
//!   @!taken BRA again;              lanes that did not get the bit retry
//! ```
//!
//! Lanes that leave the loop wait right after the branch, at its post-dominator, and go on together. In the ICS'15
//! paper's listings the operation is guarded like the store. We omit the guard: what a lane without the bit computes
//! is never used, the result needs no register before the loop, and there are no more instructions than in the paper.

use crate::inst::*;
use crate::kernel::AtomicLoop;
use crate::module::*;
use crate::types::*;

/// The new positions of a body's instructions, and the loops that atomics became.
#[derive(Clone, Debug)]
pub(crate) struct Expanded {
    /// In code order.
    pub atomics: Vec<AtomicLoop>,
    /// For each old instruction, the first of its new ones; then the end.
    starts: Vec<Pc>,
}

impl Expanded {
    /// The first of the instructions that replace `old`.
    pub(crate) fn start(&self, old: Pc) -> Pc {
        self.starts[old.index()]
    }

    /// The instruction that now reads memory for `old`: for an atomic, the load of its loop.
    pub(crate) fn access(&self, old: Pc) -> Pc {
        let (start, end) = (self.starts[old.index()], self.starts[old.index() + 1]);
        let made = self.atomics.iter().find(|made| start <= made.load && made.load < end);
        made.map_or(start, |made| made.load)
    }

    /// The last of the instructions that replace `old`.
    pub(crate) fn last(&self, old: Pc) -> Pc {
        Pc(self.starts[old.index() + 1].0 - 1)
    }
}

/// Whether an instruction becomes a loop. An atomic on a generic address stays: its space is not known before it runs.
/// One on 16 bytes, which no machine with lock bits has, stays as well.
fn expands(inst: &Inst) -> bool {
    matches!(inst.op, Op::Atom(_, access) if access.space == Space::Shared && access.count == 1)
}

/// Replaces the atomics on shared memory; `None` if the body has none.
pub(crate) fn expand(body: &mut Body) -> Option<Expanded> {
    if !body.insts.iter().any(expands) {
        return None;
    }
    let old = std::mem::take(&mut body.insts);
    let mut origins = std::mem::take(&mut body.origins);
    origins.resize(old.len(), Origin::default());
    let mut made = Expanded { atomics: Vec::new(), starts: Vec::with_capacity(old.len() + 1) };
    // Positions of the instructions that were copied. Only their branch targets are old ones.
    let mut moved = Vec::with_capacity(old.len());
    for (inst, origin) in old.iter().zip(origins) {
        made.starts.push(Pc(body.insts.len() as u32));
        match inst.op {
            Op::Atom(op, access) if expands(inst) => {
                let atomic = Builder { body, op, access, atom: inst }.build();
                made.atomics.push(atomic);
            }
            _ => {
                moved.push(body.insts.len());
                body.insts.push(*inst);
            }
        }
        body.origins.resize(body.insts.len(), origin);
    }
    made.starts.push(Pc(body.insts.len() as u32));
    for at in moved {
        body.insts[at].redirect(&made.starts);
    }
    body.tables.iter_mut().flatten().for_each(|pc| *pc = made.starts[pc.index()]);
    body.labels.iter_mut().for_each(|(pc, _)| *pc = made.starts[pc.index()]);
    let notes = std::mem::take(&mut body.lock_notes);
    body.lock_notes = notes.into_iter().map(|(pc, note)| (made.access(pc), note)).collect();
    body.sibs.iter_mut().for_each(|pc| *pc = made.start(*pc));
    Some(made)
}

struct Builder<'a> {
    body: &'a mut Body,
    op: AtomOp,
    access: Access,
    atom: &'a Inst,
}

impl Builder<'_> {
    fn here(&self) -> Pc {
        Pc(self.body.insts.len() as u32)
    }

    fn register(&mut self) -> Reg {
        let registers = &mut self.body.registers;
        let width = Width::of(self.access.ty);
        if !self.body.allocated {
            registers.push(width);
            return Reg(registers.len() as u32 - 1);
        }
        // Beyond the registers that the listing names; a pair begins at an even one.
        let first = (registers.len() as u32).next_multiple_of(width.words());
        registers.resize((first + width.words()) as usize, Width::One);
        Reg(first)
    }

    fn predicate(&mut self) -> Pred {
        self.body.predicates += 1;
        Pred(self.body.predicates - 1)
    }

    fn emit(&mut self, op: Op, dst: Dst, sources: &[Operand]) {
        self.body.insts.push(Inst::new(op, dst, sources));
    }

    fn emit_if(&mut self, guard: Guard, op: Op, sources: &[Operand]) {
        self.body.insts.push(Inst { guard, ..Inst::new(op, Dst::None, sources) });
    }

    fn build(mut self) -> AtomicLoop {
        let [base, offset, b, c] = self.atom.src;
        let skip = match self.atom.guard {
            Guard::Always => None,
            Guard::If(p) => Some(Guard::Unless(p)),
            Guard::Unless(p) => Some(Guard::If(p)),
        };
        let branch_around = skip.map(|guard| {
            self.emit_if(guard, Op::Bra, &[Operand::Imm(0)]);
            self.here().index() - 1
        });
        // A failed attempt loads, too: a result that is also an operand must not be written before the loop ends.
        let (old, copy_to) = match self.atom.dst {
            Dst::Reg(d) if ![base, b, c].contains(&Operand::Reg(d)) => (d, None),
            Dst::Reg(d) => (self.register(), Some(d)),
            _ => (self.register(), None),
        };
        let taken = self.predicate();
        let load = self.here();
        let (acquires, releases) = match self.access.order {
            Order::Acquire => (Order::Acquire, Order::Relaxed),
            Order::Release => (Order::Relaxed, Order::Release),
            Order::AcqRel | Order::SeqCst => (Order::Acquire, Order::Release),
            order => (order, order),
        };
        let access = Access { order: acquires, ..self.access };
        self.emit(Op::LdLock(access), Dst::Reg(old), &[base, offset]);
        self.body.insts[load.index()].dst2 = Dst::Pred(taken);
        let new = self.operation(Operand::Reg(old), b, c);
        let store = self.here();
        let access = Access { order: releases, ..self.access };
        self.emit_if(Guard::If(taken), Op::StUnlock(access), &[base, offset, Operand::Reg(new)]);
        let branch = self.here();
        self.emit_if(Guard::Unless(taken), Op::Bra, &[Operand::Imm(load.0)]);
        if let Some(d) = copy_to {
            self.emit(Op::Mov(self.access.ty), Dst::Reg(d), &[Operand::Reg(old)]);
        }
        if let Some(at) = branch_around {
            self.body.insts[at].src[0] = Operand::Imm(self.here().0);
        }
        AtomicLoop { load, store, branch, op: self.op }
    }

    /// Computes the new value from the old one and the atomic's operands.
    fn operation(&mut self, old: Operand, b: Operand, c: Operand) -> Reg {
        let ty = self.access.ty;
        let new = self.register();
        let d = Dst::Reg(new);
        match self.op {
            AtomOp::Add if ty.is_float() => self.emit(Op::FAdd(ty, FloatMode::RN), d, &[old, b]),
            AtomOp::Add => self.emit(Op::IAdd(ty, Clamp::None), d, &[old, b]),
            AtomOp::Min | AtomOp::Max if ty.is_float() => {
                let how = MinMax { nan: false, ftz: false, xorsign_abs: false };
                let op = if self.op == AtomOp::Min { Op::FMin(ty, how) } else { Op::FMax(ty, how) };
                self.emit(op, d, &[old, b]);
            }
            AtomOp::Min => self.emit(Op::IMin(ty, Clamp::None), d, &[old, b]),
            AtomOp::Max => self.emit(Op::IMax(ty, Clamp::None), d, &[old, b]),
            AtomOp::And => self.emit(Op::Logic(Logic::And, ty), d, &[old, b]),
            AtomOp::Or => self.emit(Op::Logic(Logic::Or, ty), d, &[old, b]),
            AtomOp::Xor => self.emit(Op::Logic(Logic::Xor, ty), d, &[old, b]),
            AtomOp::Exch => self.emit(Op::Mov(ty), d, &[b]),
            // old >= b ? 0 : old + 1
            AtomOp::Inc => {
                let wraps = self.compare(Cmp::Ge, old, b);
                self.emit(Op::IAdd(ty, Clamp::None), d, &[old, Operand::Imm(1)]);
                self.emit(Op::Selp(ty), d, &[Operand::Imm(0), Operand::Reg(new), Operand::Pred(wraps)]);
            }
            // old == 0 || old > b ? b : old - 1. One comparison is enough: 0 - 1 is the largest value.
            AtomOp::Dec => {
                self.emit(Op::IAdd(ty, Clamp::None), d, &[old, Operand::Imm(u32::MAX)]);
                let wraps = self.compare(Cmp::Ge, Operand::Reg(new), b);
                self.emit(Op::Selp(ty), d, &[b, Operand::Reg(new), Operand::Pred(wraps)]);
            }
            AtomOp::Cas => {
                let equal = self.compare(Cmp::Eq, old, b);
                self.emit(Op::Selp(ty), d, &[c, old, Operand::Pred(equal)]);
            }
        }
        new
    }

    fn compare(&mut self, cmp: Cmp, a: Operand, b: Operand) -> Pred {
        let ty = match self.access.ty.bytes() {
            2 => Ty::U16,
            4 => Ty::U32,
            _ => Ty::U64,
        };
        let p = self.predicate();
        self.emit(Op::Setp { cmp, combine: Combine::None, ty, ftz: false }, Dst::Pred(p), &[a, b]);
        p
    }
}
