//! What a profile knows of a kernel's code: its spin loops, and the names of its instructions. The same for all
//! launches of a kernel.

use std::sync::{Arc, OnceLock};

use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use warploom_isa::{Guard, Kernel, Loop, Op, Operand, Pc};

use crate::exec::fault::Place;

/// What is known of a kernel before it runs.
#[derive(Debug)]
pub(crate) struct Code {
    /// By spin loop and instruction: whether it belongs to the loop.
    loops: Vec<Vec<bool>>,
    pub(super) instructions: Vec<KnownOf>,
    /// Names of all instructions, once a profile needs them.
    names: OnceLock<Vec<Named>>,
}

/// What is known of an instruction before it runs.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct KnownOf {
    /// 1 + the index of the innermost spin loop around it, or 0.
    pub(super) in_loop: u16,
    /// It waits for earlier accesses before it issues.
    pub(super) fences: bool,
}

impl Code {
    pub(crate) fn new(kernel: &Kernel) -> Code {
        let before = predecessors(kernel);
        let spins = kernel.loops.iter().filter(|l| l.spins_on.is_some() && !l.of_atomic);
        let mut loops: Vec<Vec<bool>> = spins.map(|l| body(l, &before)).collect();
        // Inner loops come later and overwrite the outer ones.
        loops.sort_by_key(|body| std::cmp::Reverse(body.iter().filter(|is_in| **is_in).count()));
        loops.truncate(usize::from(u16::MAX) - 1);
        let mut loop_of = vec![0; kernel.code.len()];
        for (number, body) in (1..).zip(&loops) {
            loop_of.iter_mut().zip(body).filter(|(_, is_in)| **is_in).for_each(|(of, _)| *of = number);
        }
        let instructions = kernel.code.iter().zip(loop_of).map(|(inst, in_loop)| KnownOf {
            in_loop,
            fences: matches!(inst.op, Op::Fence(..) | Op::CpAsyncWait),
        });
        let instructions = instructions.collect();
        Code { loops, instructions, names: OnceLock::new() }
    }

    /// Whether an instruction belongs to the spin loop with this number, counted from 1.
    pub(super) fn is_in(&self, number: u16, pc: Pc) -> bool {
        let body = usize::from(number).checked_sub(1).map(|at| &self.loops[at]);
        body.is_some_and(|body| body.get(pc.index()) == Some(&true))
    }

    /// Names of the instructions of `kernel`, which this is the code of.
    pub(super) fn names(&self, kernel: &Kernel) -> &[Named] {
        self.names.get_or_init(|| {
            let mut lines: FxHashMap<String, Name> = FxHashMap::default();
            let mut once =
                |line: String| lines.entry(line).or_insert_with_key(|line| line.as_str().into()).clone();
            let named = Place::all(kernel).map(|place| Named {
                line: once(place.short()),
                at: once(format!("{}:{}", place.file, place.line)),
                text: place.instruction.into(),
                inlined: place.inlined.into(),
            });
            named.collect()
        })
    }
}

/// A text that many rows of a profile share.
pub type Name = Arc<str>;

/// An instruction's place, in words.
#[derive(Clone, Debug)]
pub(super) struct Named {
    /// The user's line.
    pub(super) line: Name,
    /// Its line of the PTX file or listing.
    pub(super) at: Name,
    pub(super) text: Name,
    pub(super) inlined: Arc<[String]>,
}

/// By instruction, those that can come right before it in the same function.
fn predecessors(kernel: &Kernel) -> Vec<SmallVec<[u32; 2]>> {
    let mut before = vec![SmallVec::new(); kernel.code.len()];
    for (at, inst) in kernel.code.iter().enumerate() {
        let ends = matches!(inst.op, Op::Bra | Op::Brx | Op::Exit | Op::Ret | Op::Trap);
        let next = (!ends || inst.guard != Guard::Always).then_some(at + 1);
        let target = match (inst.op, inst.src[0]) {
            (Op::Bra, Operand::Imm(target)) => Some(target as usize),
            _ => None,
        };
        for to in [next, target].into_iter().flatten() {
            if let Some(before) = before.get_mut(to) {
                before.push(at as u32);
            }
        }
    }
    before
}

/// The instructions of a loop: those from which a latch is reached without passing the header.
fn body(of: &Loop, before: &[SmallVec<[u32; 2]>]) -> Vec<bool> {
    let mut body = vec![false; before.len()];
    body[of.header.index()] = true;
    let mut left: Vec<u32> = of.latches.iter().map(|pc| pc.0).collect();
    while let Some(pc) = left.pop() {
        if !std::mem::replace(&mut body[pc as usize], true) {
            left.extend(&before[pc as usize]);
        }
    }
    body
}
