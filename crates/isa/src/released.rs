//! Whether the lane that takes a lock in a spin loop surely releases it before it waits for the others.
//!
//! On a SIMT stack, lanes that part at a branch wait for each other where their paths meet, at its immediate
//! post-dominator. A lane that waits there with a lock that the others want deadlocks. So the answer is yes only if all
//! of this is seen in the code:
//!
//! - The poll takes the lock: a compare-and-swap or an exchange with constants, or a load that takes a lock bit.
//! - Its block ends with a branch that sends those that took it one way, and the others another way, or it does not
//!   branch before the release.
//! - The two ways meet inside the loop, and neither closes the loop before: otherwise lanes without the lock may run
//!   round and round while the one with it waits for its turn.
//! - Every path from taking the lock to where they meet writes the free value to the word, unguarded, and nothing else
//!   to it; and none ends the thread before.
//! - Lanes meet at post-dominators: the function does not state other points (`SSY`), as listings can.
//! - The loop has no barrier, no call and no other wait, at which lanes could be kept.

use std::cell::OnceCell;

use crate::cfg::*;
use crate::dominators::*;
use crate::ends::Places;
use crate::inst::*;
use crate::kernel::*;
use crate::liveness::*;
use crate::module::*;
use crate::types::*;
use crate::visit::*;

/// How a poll takes its lock.
#[derive(Clone, Copy)]
enum Take {
    /// It took the lock if it found this value, which a release writes back; it wrote the second one.
    Word { free: u32, taken: u32 },
    /// The same, but the comparison after it says which value is free.
    Exchange { taken: u32 },
    /// It took a lock bit if its second result says so.
    Bit,
}

/// A function's code, and what was found out about it.
pub(crate) struct Code<'a> {
    pub body: &'a Body,
    pub cfg: &'a Cfg,
    pub post_dominators: &'a DominatorTree,
    pub places: &'a Places<'a>,
    pub loops: &'a [Loop],
    /// Of `body`; found when a loop needs it.
    pub liveness: OnceCell<Liveness>,
}

impl Code<'_> {
    /// The release, if every lane that takes the lock of this loop executes one before it waits for the others.
    /// `blocks` are the loop's, and `writes` its writes of the polled word besides the poll.
    pub(crate) fn released(&self, poll: Pc, blocks: &[BlockId], writes: &[Pc]) -> Option<Pc> {
        let inst = &self.body.insts[poll.index()];
        let take = self.take(inst)?;
        let stated = self.body.insts.iter().any(|inst| inst.op == Op::Ssy);
        if stated || inst.guard != Guard::Always || self.may_keep_lanes(poll, blocks) {
            return None;
        }
        let block = self.cfg.block_of(poll);
        let last = self.cfg.blocks[block.index()].last();
        // Without a branch: the release is guarded by the success itself.
        let guarded = writes.iter().copied().find(|&pc| {
            let write = &self.body.insts[pc.index()];
            let guard = self.success(write.guard, poll, take);
            pc > poll && pc <= last && guard.is_some_and(|(yes, free)| yes && self.frees(write, take, free))
        });
        if let (Some(pc), 1) = (guarded, writes.len()) {
            return Some(pc);
        }

        let branch = &self.body.insts[last.index()];
        let (Op::Bra, Some(target)) = (branch.op, branch.branch_target()) else { return None };
        let (taken_by_holder, free) = self.success(branch.guard, poll, take)?;
        let next = Pc(last.0 + 1);
        let (holder, others) = if taken_by_holder { (target, next) } else { (next, target) };
        let meet = self.post_dominators.parent(block).filter(|meet| blocks.contains(meet))?;
        let (holder, others) = (self.cfg.block_of(holder), self.cfg.block_of(others));
        let before_meeting = |from: BlockId| self.reach(from, meet, &[]).blocks;
        if before_meeting(holder).contains(&block) || before_meeting(others).contains(&block) {
            return None;
        }
        let region = before_meeting(holder);
        let (inside, outside): (Vec<Pc>, Vec<Pc>) =
            writes.iter().partition(|&&pc| region.contains(&self.cfg.block_of(pc)));
        let frees = |&pc: &Pc| {
            let write = &self.body.insts[pc.index()];
            write.guard == Guard::Always && self.frees(write, take, free)
        };
        if !outside.is_empty() || !inside.iter().all(frees) {
            return None;
        }
        let releases: Vec<BlockId> = inside.iter().map(|&pc| self.cfg.block_of(pc)).collect();
        let without = self.reach(holder, meet, &releases);
        (!without.meets && !without.ends).then(|| inside.first().copied()).flatten()
    }

    fn take(&self, inst: &Inst) -> Option<Take> {
        match inst.op {
            Op::Atom(AtomOp::Cas, _) => {
                let (free, taken) = (self.constant(inst.src[2])?, self.constant(inst.src[3])?);
                (free != taken).then_some(Take::Word { free, taken })
            }
            Op::Atom(AtomOp::Exch, _) => Some(Take::Exchange { taken: self.constant(inst.src[2])? }),
            Op::LdLock(_) => Some(Take::Bit),
            _ => None,
        }
    }

    /// Whether lanes could be kept in the loop by anything but this lock.
    fn may_keep_lanes(&self, poll: Pc, blocks: &[BlockId]) -> bool {
        let inside = |pc: Pc| blocks.contains(&self.cfg.block_of(pc));
        let waits = self.loops.iter().any(|l| l.spins_on.is_some_and(|pc| pc != poll && inside(pc)));
        let instructions = blocks.iter().flat_map(|block| {
            let Block { start, end, .. } = self.cfg.blocks[block.index()];
            &self.body.insts[start.index()..end.index()]
        });
        let keeps = |op: Op| {
            matches!(
                op,
                Op::Call
                    | Op::Bar(_)
                    | Op::BarWarp
                    | Op::ClusterBar(_)
                    | Op::Mbarrier(..)
                    | Op::Brx
                    | Op::Vote(_)
                    | Op::Shfl(_)
            )
        };
        waits || instructions.into_iter().any(|inst| keeps(inst.op))
    }

    /// Whether an instruction writes the value that means "free".
    fn frees(&self, write: &Inst, take: Take, free: u32) -> bool {
        match (write.op, take) {
            (Op::StUnlock(_), Take::Bit) => true,
            (Op::St(access), Take::Word { .. } | Take::Exchange { .. }) => {
                access.bytes() <= 4 && self.constant(write.src[2]) == Some(free)
            }
            (Op::Atom(AtomOp::Exch, _), Take::Word { .. } | Take::Exchange { .. }) => {
                self.constant(write.src[2]) == Some(free)
            }
            (Op::Atom(AtomOp::Cas, _), Take::Word { taken, .. } | Take::Exchange { taken }) => {
                self.constant(write.src[2]) == Some(taken) && self.constant(write.src[3]) == Some(free)
            }
            _ => false,
        }
    }

    /// Whether a guard lets those that took the lock pass (true) or the others (false), and which value was free.
    fn success(&self, guard: Guard, poll: Pc, take: Take) -> Option<(bool, u32)> {
        let (pred, positive) = match guard {
            Guard::If(pred) => (pred, true),
            Guard::Unless(pred) => (pred, false),
            Guard::Always => return None,
        };
        let (yes, free) = self.meaning(pred, poll, take, 4)?;
        Some((yes == positive, free))
    }

    /// Whether a predicate is true for those that took the lock, or for the others; and which value was free.
    fn meaning(&self, pred: Pred, poll: Pc, take: Take, steps: u32) -> Option<(bool, u32)> {
        let pc = self.definition(Value::Pred(pred)).filter(|_| steps > 0)?;
        let def = &self.body.insts[pc.index()];
        if pc == poll {
            return (matches!(take, Take::Bit) && def.dst2 == Dst::Pred(pred)).then_some((true, 0));
        }
        let Op::Setp { cmp: cmp @ (Cmp::Eq | Cmp::Ne), combine: Combine::None, .. } = def.op else {
            return None;
        };
        let [Operand::Reg(reg), with, ..] = def.src else { return None };
        let (with, equal) = (self.constant(with)?, cmp == Cmp::Eq);
        let from = self.definition(Value::Reg(reg, Width::One))?;
        let value = &self.body.insts[from.index()];
        match (value.op, value.src, take) {
            _ if from == poll => match take {
                Take::Word { free, .. } => (free == with).then_some((equal, free)),
                Take::Exchange { taken } => (with != taken).then_some((equal, with)),
                Take::Bit => None,
            },
            (Op::Selp(_), [a, b, Operand::Pred(inner), _], _) => {
                let holds = |operand| Some((self.constant(operand)? == with) == equal);
                let (if_true, if_false) = (holds(a)?, holds(b)?);
                let (yes, free) = self.meaning(inner, poll, take, steps - 1)?;
                (if_true != if_false).then_some((if_true == yes, free))
            }
            _ => None,
        }
    }

    fn constant(&self, operand: Operand) -> Option<u32> {
        match operand {
            Operand::Imm(value) => Some(value),
            Operand::Reg(reg) => {
                let def = &self.body.insts[self.definition(Value::Reg(reg, Width::One))?.index()];
                match (def.op, def.src[0]) {
                    (Op::Mov(_), Operand::Imm(value)) => Some(value),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// The only instruction that writes a value, if it writes it whole.
    fn definition(&self, value: Value) -> Option<Pc> {
        self.places.only_definition(value)
    }

    /// Where control can come from a block before it passes `meet`, without the blocks in `but`.
    fn reach(&self, from: BlockId, meet: BlockId, but: &[BlockId]) -> Reached {
        let mut reached = Reached::default();
        let mut stack = vec![from];
        while let Some(block) = stack.pop() {
            if block == meet {
                reached.meets = true;
            } else if !but.contains(&block) && !reached.blocks.contains(&block) {
                reached.ends |= self.cfg.blocks[block.index()].leave == Leave::Exit;
                reached.blocks.push(block);
                stack.extend(self.cfg.successors(block));
            }
        }
        reached
    }
}

#[derive(Default)]
struct Reached {
    blocks: Vec<BlockId>,
    /// It comes to where the paths meet.
    meets: bool,
    /// It can end the thread or return.
    ends: bool,
}
