//! Sets the reconvergence point of every branch: the one that the program states with `SSY`, or else the start of the
//! immediate post-dominator of the branch's block.

use crate::cfg::*;
use crate::dominators::*;
use crate::inst::*;
use crate::module::*;

/// Sets the reconvergence operand of every `bra` and `brx`; [`Pc::RETURN`] where the paths meet only after the
/// function's end. Points that an allocated body states are kept.
pub(crate) fn set_reconvergence(body: &mut Body, cfg: &Cfg, post_dominators: &DominatorTree) {
    let announced = announced(body, cfg);
    for id in cfg.ids() {
        let inst = &mut body.insts[cfg.blocks[id.index()].last().index()];
        let slot = match inst.op {
            Op::Bra => 1,
            Op::Brx => 2,
            _ => continue,
        };
        if body.allocated && inst.src[slot] != Operand::None {
            continue;
        }
        let post_dominator =
            || post_dominators.parent(id).map_or(Pc::RETURN, |b| cfg.blocks[b.index()].start);
        let meet = announced.get(id.index()).copied().flatten().unwrap_or_else(post_dominator);
        inst.src[slot] = Operand::Imm(meet.0);
    }
}

/// For each block, the `SSY` point in force at its end; an empty list if the body has no `SSY`.
///
/// A point is in force from its `SSY` until control reaches it. Points nest. Where paths with different points join,
/// the outer points that they have in common stay in force.
fn announced(body: &Body, cfg: &Cfg) -> Vec<Option<Pc>> {
    if cfg.is_empty() || !body.insts.iter().any(|i| i.op == Op::Ssy) {
        return Vec::new();
    }
    let mut at_start: Vec<Option<Vec<Pc>>> = vec![None; cfg.len()];
    let mut at_end = vec![None; cfg.len()];
    at_start[0] = Some(Vec::new());
    let mut work = vec![BlockId(0)];
    // Terminates: a block is visited again only if its list became shorter.
    while let Some(id) = work.pop() {
        let mut points = at_start[id.index()].clone().unwrap_or_default();
        let Block { start, end, .. } = cfg.blocks[id.index()];
        for pc in (start.0..end.0).map(Pc) {
            reach(&mut points, pc);
            let inst = &body.insts[pc.index()];
            if let (Op::Ssy, Operand::Imm(target)) = (inst.op, inst.src[0]) {
                // A loop announces the same point in every iteration.
                reach(&mut points, Pc(target));
                points.push(Pc(target));
            }
        }
        at_end[id.index()] = points.last().copied();
        for &next in cfg.successors(id) {
            let mut points = points.clone();
            reach(&mut points, cfg.blocks[next.index()].start);
            match &mut at_start[next.index()] {
                Some(known) => {
                    let common = known.iter().zip(&points).take_while(|(a, b)| a == b).count();
                    if common == known.len() {
                        continue;
                    }
                    known.truncate(common);
                }
                unknown => *unknown = Some(points),
            }
            work.push(next);
        }
    }
    at_end
}

/// Drops a point that is reached, and the points announced inside it.
fn reach(points: &mut Vec<Pc>, pc: Pc) {
    if let Some(at) = points.iter().position(|&p| p == pc) {
        points.truncate(at);
    }
}
