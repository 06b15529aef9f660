//! Rewrites a function so that every register and predicate has only one live range (web). Value analyses are simplest
//! on this form, and it is the same for virtual and allocated registers.

use crate::inst::*;
use crate::liveness::*;
use crate::module::*;
use crate::regalloc::Allocation;
use crate::visit::*;

/// A copy of `body` with a new virtual register for each web. In allocated code, where a 64-bit value is two registers,
/// their webs are joined if they are used together.
pub(crate) fn separate(body: &Body, liveness: &Liveness) -> Body {
    let (registers, predicates) = liveness.web_counts();
    let mut classes = Classes::new(registers);
    let mut widths = liveness.web_widths(body);
    if body.allocated {
        for (pc, inst) in body.insts.iter().enumerate() {
            let read = 2 * pc as u32;
            let mut join = |value: Value, at: u32| {
                let Value::Reg(low, Width::Two) = value else { return };
                let high = Reg(low.0 + 1);
                if let (Some(low), Some(high)) =
                    (liveness.register_web(low, at), liveness.register_web(high, at))
                {
                    classes.join(low.index(), high.index());
                    widths[low.index()] = Width::Two;
                }
            };
            inst.for_each_use(body, |value| join(value, read));
            inst.for_each_def(body, |value| join(value, read + 1));
        }
    }
    // A class takes the number of its first web; the numbers of its other webs stay unused.
    let mut places: Vec<u32> = (0..registers).map(|web| classes.find(web) as u32).collect();
    let mut class_widths = vec![Width::One; registers];
    for (web, &width) in widths.iter().enumerate() {
        if width == Width::Two {
            class_widths[places[web] as usize] = Width::Two;
        }
    }
    places.extend(0..predicates as u32);

    let mut copy = body.clone();
    let allocation = Allocation::of_webs(places, registers as u32, predicates as u32);
    allocation.apply(&mut copy, liveness);
    // An operand without a web is given register 0, which must exist.
    class_widths.resize(registers.max(1), Width::One);
    copy.predicates = copy.predicates.max(1);
    copy.registers = class_widths;
    copy.allocated = false;
    copy
}

/// Union-find over webs.
struct Classes(Vec<usize>);

impl Classes {
    fn new(n: usize) -> Self {
        Classes((0..n).collect())
    }

    fn find(&mut self, mut at: usize) -> usize {
        while self.0[at] != at {
            self.0[at] = self.0[self.0[at]];
            at = self.0[at];
        }
        at
    }

    fn join(&mut self, a: usize, b: usize) {
        let (a, b) = (self.find(a), self.find(b));
        self.0[a.max(b)] = a.min(b);
    }
}
