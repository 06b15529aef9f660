//! Sets the reconvergence point of every branch: the start of its block's immediate post-dominator.

use crate::cfg::*;
use crate::dominators::*;
use crate::inst::*;
use crate::module::*;

/// Sets the reconvergence operand of every `bra` and `brx`; [`Pc::RETURN`] where the paths meet only after the
/// function's end.
pub fn set_reconvergence(body: &mut Body, cfg: &Cfg, post_dominators: &DominatorTree) {
    for id in cfg.ids() {
        let inst = &mut body.insts[cfg.blocks[id.index()].last().index()];
        let slot = match inst.op {
            Op::Bra => 1,
            Op::Brx => 2,
            _ => continue,
        };
        let meet = post_dominators.parent(id).map_or(Pc::RETURN, |b| cfg.blocks[b.index()].start);
        inst.src[slot] = Operand::Imm(meet.0);
    }
}
