//! Which word lanes would write if they went on: the code ahead of them is carried out on a copy of their registers.

use warploom_isa::{Guard, Kernel, Loop, Op, Operand, Pc, Space, Value};

use crate::exec::lanes;
use crate::exec::locks::holders::shared_offset;
use crate::exec::warp::Warp;
use crate::exec::warp::control::Activation;
use crate::explain::hang::code::{contains, innermost, last_of};
use crate::kit::lane_mask::LaneMask;

/// A word: whether it is in shared memory, its address or offset, and its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) shared: bool,
    pub(super) address: u64,
    pub(super) bytes: u32,
}

/// More code is not looked at.
const MOST_INSTRUCTIONS: usize = 4096;

/// The instruction with which lanes at `pc` would write the word, if they came to it. They go on to the end of the
/// function, then once more through the loops around `pc` from their start. A branch whose condition is known is
/// followed by the lanes that take it; of any other, both sides count. Registers that get their values from memory are
/// not known.
pub(super) fn writes<const N: usize>(
    kernel: &Kernel,
    (warp, activation): (&Warp<N>, &Activation),
    (pc, lanes): (Pc, LaneMask),
    target: Target,
) -> Option<Pc> {
    let function = kernel.function_at(pc);
    let around = kernel.loops.iter().filter(|l| contains(l, pc)).max_by_key(|l| last_of(l).0 - l.header.0);
    let again = around.map_or(pc.0..pc.0, |l| l.header.0..pc.0);
    let mut warp = warp.clone();
    let mut unknown = around.map_or(Vec::new(), |l| loaded(kernel, l));
    // Lanes that come to an instruction, from the function's start on.
    let mut come = vec![LaneMask::NONE; (function.end.0 - function.start.0) as usize];
    let index = |pc: Pc| pc.0.checked_sub(function.start.0).map(|at| at as usize);
    come[index(pc)?] = lanes;
    for pc in (pc.0..function.end.0).chain(again).take(MOST_INSTRUCTIONS).map(Pc) {
        let lanes = come[index(pc)?];
        if lanes.is_empty() {
            continue;
        }
        let inst = &kernel.code[pc.index()];
        let mut reads_unknown = false;
        inst.for_each_use(kernel, |value| reads_unknown |= is_in(&unknown, value));
        let access = match inst.op {
            Op::St(access) | Op::StUnlock(access) | Op::Atom(_, access) => Some(access),
            _ => None,
        };
        let predicate = match inst.guard {
            Guard::Always => None,
            Guard::If(pred) | Guard::Unless(pred) => Some(pred),
        };
        let guard_known = predicate.is_none_or(|pred| !is_in(&unknown, Value::Pred(pred)));
        let holds = predicate.map_or(lanes, |pred| LaneMask(warp.registers(activation).preds[pred.index()]));
        let acting = match inst.guard {
            Guard::Unless(_) if guard_known => lanes & !holds,
            Guard::If(_) if guard_known => lanes & holds,
            _ => lanes,
        };
        if let Some(access) = access {
            let known = !matches!(inst.src[0], Operand::Reg(reg) if is_in(&unknown, address(reg, access.wide_address)));
            let offset = match inst.src[1] {
                Operand::Imm(offset) => offset as i32 as i64 as u64,
                _ => 0,
            };
            let bases = warp.value(activation, inst.src[0], access.wide_address, &kernel.imms);
            let is_target = |lane: usize| {
                let at = bases[lane].wrapping_add(offset);
                let shared = match access.space {
                    Space::Shared => true,
                    Space::Generic => kernel.windows.space_of(at) == Space::Shared,
                    _ => false,
                };
                let at = if shared { shared_offset(at, kernel.windows.shared) } else { at };
                let (mine, theirs) = (u64::from(access.bytes()), u64::from(target.bytes));
                shared == target.shared && at < target.address + theirs && target.address < at + mine
            };
            let elsewhere = matches!(access.space, Space::Local | Space::Param | Space::Const);
            if known && !elsewhere && acting.lanes().any(is_target) {
                return Some(pc);
            }
        }
        let (targets, falls) = match inst.op {
            Op::Bra => {
                let falls = if guard_known { lanes & !acting } else { lanes };
                (inst.branch_target().into_iter().collect(), falls)
            }
            Op::Brx => (kernel.tables.iter().flatten().copied().collect(), lanes),
            Op::Exit | Op::Ret | Op::Trap if guard_known => (Vec::new(), lanes & !acting),
            _ => (Vec::new(), lanes),
        };
        for target in targets {
            if let Some(come) = index(target).and_then(|at| come.get_mut(at)) {
                *come |= acting;
            }
        }
        if let Some(come) = index(pc).and_then(|at| come.get_mut(at + 1)) {
            *come |= falls;
        }
        let computes = !reads_unknown && guard_known && {
            let mut registers = warp.registers(activation);
            lanes::execute(inst, &mut registers, &kernel.imms, acting)
        };
        let is_special = matches!(inst.op, Op::Special(_));
        inst.for_each_def(kernel, |value| {
            for number in numbers(value) {
                if computes && !is_special {
                    unknown.retain(|&other| other != number || acting != lanes);
                } else if !unknown.contains(&number) {
                    unknown.push(number);
                }
            }
        });
    }
    None
}

/// The registers and predicates of a loop whose values come from memory: they will be different when the loop ends.
fn loaded(kernel: &Kernel, around: &Loop) -> Vec<u32> {
    let loads = |op| matches!(op, Op::Ld { .. } | Op::Atom(..) | Op::LdLock(_) | Op::Mbarrier(..) | Op::Call);
    computed_from(kernel, around, |pc| loads(kernel.code[pc.index()].op), |_| true)
}

/// Whether a load in a loop reads where the value of its last iteration led it, as along a list: it waits for no word.
pub(super) fn follows_pointers(kernel: &Kernel, load: Pc) -> bool {
    let Some(around) = innermost(kernel, load) else { return false };
    // A value that only decides where to look next is polled.
    let own = computed_from(kernel, around, |pc| pc == load, |value| matches!(value, Value::Reg(..)));
    let mut follows = false;
    kernel.code[load.index()].for_each_use(kernel, |value| follows |= is_in(&own, value));
    follows
}

/// The registers and predicates of a loop whose values depend on what some of its instructions return, by way of the
/// values that `carries` lets pass.
fn computed_from(
    kernel: &Kernel,
    around: &Loop,
    is_source: impl Fn(Pc) -> bool,
    carries: impl Fn(&Value) -> bool,
) -> Vec<u32> {
    let mut found: Vec<u32> = Vec::new();
    let mut before = usize::MAX;
    while std::mem::replace(&mut before, found.len()) != found.len() {
        for pc in (around.header.0..=last_of(around).0).map(Pc) {
            let inst = &kernel.code[pc.index()];
            let mut depends = is_source(pc);
            inst.for_each_use(kernel, |value| depends |= is_in(&found, value));
            if depends {
                inst.for_each_def(kernel, |value| {
                    for number in numbers(value).filter(|_| carries(&value)) {
                        if !found.contains(&number) {
                            found.push(number);
                        }
                    }
                });
            }
        }
    }
    found
}

fn address(reg: warploom_isa::Reg, wide: bool) -> Value {
    Value::Reg(reg, warploom_isa::Width::wide(wide))
}

/// Registers and predicates as numbers.
fn numbers(value: Value) -> std::ops::Range<u32> {
    match value {
        Value::Reg(reg, width) => reg.0..reg.0 + width.words(),
        Value::Pred(pred) => (1 << 31) + pred.0..(1 << 31) + pred.0 + 1,
    }
}

fn is_in(set: &[u32], value: Value) -> bool {
    numbers(value).any(|number| set.contains(&number))
}
