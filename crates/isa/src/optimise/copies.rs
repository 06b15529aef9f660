//! Copies of registers. Machine code has few: values are renamed, and a generic address of global memory is the address
//! itself.

use crate::cfg::*;
use crate::inst::*;
use crate::liveness::*;
use crate::module::*;
use crate::optimise::{definitions, rename};
use crate::types::*;
use crate::visit::*;

/// The registers of an unguarded copy: to and from.
fn copy(body: &Body, inst: &Inst) -> Option<(Reg, Reg)> {
    let copies = matches!(
        inst.op,
        Op::Mov(_) | Op::ToGeneric(Space::Global, Ty::U64) | Op::FromGeneric(Space::Global, Ty::U64)
    );
    let (Dst::Reg(to), Operand::Reg(from)) = (inst.dst, inst.src[0]) else { return None };
    let width = inst.op.shape().dst;
    let whole = [to, from].iter().all(|reg| body.registers[reg.index()] == width);
    (copies && whole && inst.guard == Guard::Always).then_some((to, from))
}

/// A register that is only ever a copy of another, which is written once, becomes that other one. Returns the copies.
pub(super) fn forward(body: &mut Body) -> Vec<bool> {
    let written = definitions(body);
    let mut source: Vec<Option<Reg>> = vec![None; body.registers.len()];
    let gone = body.insts.iter().map(|inst| match copy(body, inst) {
        Some((to, from)) if written[to.index()] == 1 && written[from.index()] == 1 && to != from => {
            source[to.index()] = Some(from);
            true
        }
        _ => false,
    });
    let gone: Vec<bool> = gone.collect();
    let origin = |reg: Reg| {
        let mut at = reg;
        // A cycle of copies holds no value; any name will do.
        for _ in 0..source.len() {
            match source[at.index()] {
                Some(from) => at = from,
                None => break,
            }
        }
        at
    };
    rename(body, origin);
    gone
}

/// The two registers of a copy become one where they are never live at the same time. Returns the copies.
pub(super) fn coalesce(body: &mut Body) -> Vec<bool> {
    let liveness = Liveness::new(body, &Cfg::new(body));
    let mut live: Vec<Vec<Segment>> = (0..body.registers.len())
        .map(|reg| liveness.segments(Value::Reg(Reg(reg as u32), Width::One)).to_vec())
        .collect();
    let mut names: Vec<Reg> = (0..body.registers.len() as u32).map(Reg).collect();
    for at in 0..body.insts.len() {
        let Some((to, from)) = copy(body, &body.insts[at]) else { continue };
        let (to, from) = (find(&names, to), find(&names, from));
        if to != from && disjoint(&live[to.index()], &live[from.index()]) {
            names[to.index()] = from;
            let more = std::mem::take(&mut live[to.index()]);
            live[from.index()].extend(more);
            live[from.index()].sort_unstable_by_key(|segment| segment.start);
        }
    }
    rename(body, |reg| find(&names, reg));
    body.insts.iter().map(|inst| copy(body, inst).is_some_and(|(to, from)| to == from)).collect()
}

fn find(names: &[Reg], mut reg: Reg) -> Reg {
    while names[reg.index()] != reg {
        reg = names[reg.index()];
    }
    reg
}

/// Whether two ordered lists of segments have no position in common.
fn disjoint(a: &[Segment], b: &[Segment]) -> bool {
    let (mut a, mut b) = (a.iter().peekable(), b.iter().peekable());
    while let (Some(x), Some(y)) = (a.peek(), b.peek()) {
        if x.end <= y.start {
            a.next();
        } else if y.end <= x.start {
            b.next();
        } else {
            return false;
        }
    }
    true
}
