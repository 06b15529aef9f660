//! Results of atomics that nobody reads. Machine code does not name a register for them, so nothing waits for them.

use crate::inst::*;
use crate::module::*;
use crate::optimise::definitions;
use crate::visit::*;

/// An atomic whose result is never read has none.
pub(super) fn results(body: &mut Body) {
    let written = definitions(body);
    let mut is_read = vec![false; body.registers.len()];
    for inst in &body.insts {
        inst.for_each_use(body, |value| {
            if let Value::Reg(reg, _) = value {
                is_read[reg.index()] = true;
            }
        });
    }
    for inst in &mut body.insts {
        if let (Op::Atom(..), Dst::Reg(reg)) = (inst.op, inst.dst)
            && !is_read[reg.index()]
            && written[reg.index()] == 1
        {
            inst.dst = Dst::None;
        }
    }
}
