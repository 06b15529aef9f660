//! Which word lanes would write if they went on: the code ahead of them is carried out on a copy of their registers.

use warploom_isa::{Guard, Kernel, Op, Operand, Pc, Space, Value};

use crate::exec::lanes;
use crate::exec::locks::holders::shared_offset;
use crate::exec::warp::Warp;
use crate::exec::warp::control::Activation;
use crate::explain::hang::code::{contains, last_of};
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

/// The instruction with which lanes at `pc` would write the word, if they came to it. Branches are not followed: all
/// code to the end of the function counts, then that of the loops around `pc` from their start. Registers that get
/// their values from memory are not known.
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
    let mut unknown: Vec<u32> = Vec::new();
    for pc in (pc.0..function.end.0).chain(again).take(MOST_INSTRUCTIONS).map(Pc) {
        let inst = &kernel.code[pc.index()];
        let mut reads_unknown = false;
        inst.for_each_use(kernel, |value| reads_unknown |= is_in(&unknown, value));
        let access = match inst.op {
            Op::St(access) | Op::StUnlock(access) | Op::Atom(_, access) => Some(access),
            _ => None,
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
            if known && !elsewhere && lanes.lanes().any(is_target) {
                return Some(pc);
            }
        }
        let computes = !reads_unknown && inst.guard == Guard::Always && {
            let mut registers = warp.registers(activation);
            lanes::execute(inst, &mut registers, &kernel.imms, lanes)
        };
        let is_special = matches!(inst.op, Op::Special(_));
        inst.for_each_def(kernel, |value| {
            for number in numbers(value) {
                unknown.retain(|&other| other != number);
                if !computes || is_special {
                    unknown.push(number);
                }
            }
        });
    }
    None
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
