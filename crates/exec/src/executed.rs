//! What a warp executed since its earlier state, and whether what changed since then can take it anywhere else.
//!
//! A register that only counts does not keep a loop from repeating itself, unless its value reaches a branch, an
//! address, or memory. So the values in which the present state differs from the earlier one are followed through the
//! instructions that were executed in between, along the edges that were taken ([`Executed::judge`]). Where they decide
//! a branch, they are followed along the other edge, too, through code that was not executed yet.

use rustc_hash::FxHashMap;
use warploom_isa::{Dst, Guard, Inst, Kernel, LinkedCallee, Op, Operand, Pc, Special, Value};

use crate::warp::Warp;
use crate::warp::control::Activation;

/// What the difference between two states of a warp means for what it does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Judgement {
    /// Nothing: the same instructions, addresses and values come again.
    Repeats,
    /// Addresses or the number of iterations may differ, but every branch that the difference decides has gone both
    /// ways already, or leads back to code that was executed, as a longer pause does: there is no way out of the loop
    /// that it could open.
    Waits,
    /// A branch may leave the loop, or other values are written.
    Progress,
}

/// Instructions that a warp executed, by their place and the activation that executed them.
#[derive(Clone, Debug, Default)]
pub struct Executed {
    nodes: Vec<Node>,
    by_place: FxHashMap<(Pc, u32), u32>,
    reads_clock: bool,
    /// Edges and ranges of local memory known so far. If that has not changed, a judgement still holds.
    version: u64,
    /// A value that alone means progress, and the version that this was found for.
    progress: Option<(usize, u64)>,
}

#[derive(Clone, Debug)]
struct Node {
    pc: Pc,
    registers: u32,
    predicates: u32,
    taken: bool,
    fallen: bool,
    /// The words of local memory that it accessed, first and last.
    local: Option<(u32, u32)>,
    /// It was not executed, but may be.
    is_new: bool,
}

/// A set of values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Set(Vec<u64>);

impl Set {
    fn contains(&self, value: usize) -> bool {
        self.0.get(value / 64).is_some_and(|word| word >> (value % 64) & 1 == 1)
    }

    fn set(&mut self, value: usize, is_in: bool) {
        if let Some(word) = self.0.get_mut(value / 64) {
            *word = *word & !(1 << (value % 64)) | u64::from(is_in) << (value % 64);
        }
    }

    /// Whether that added any.
    fn add_all(&mut self, other: &Set) -> bool {
        let mut grew = false;
        for (word, more) in self.0.iter_mut().zip(&other.0) {
            grew |= *more & !*word != 0;
            *word |= more;
        }
        grew
    }
}

#[inline]
pub fn is_clock(op: Op) -> bool {
    use Special::{Clock, Clock64, ClockHi, GlobalTimer, GlobalTimerHi, GlobalTimerLo};
    matches!(op, Op::Special(Clock | ClockHi | Clock64 | GlobalTimer | GlobalTimerLo | GlobalTimerHi))
}

impl Executed {
    pub fn clear(&mut self) {
        self.nodes.clear();
        self.by_place.clear();
        (self.reads_clock, self.version, self.progress) = (false, 0, None);
    }

    fn node(&mut self, pc: Pc, activation: &Activation) -> usize {
        let Executed { nodes, by_place, version, .. } = self;
        *by_place.entry((pc, activation.registers)).or_insert_with(|| {
            *version += 1;
            let (registers, predicates) = (activation.registers, activation.predicates);
            let [taken, fallen, is_new] = [false; 3];
            nodes.push(Node { pc, registers, predicates, taken, fallen, local: None, is_new });
            nodes.len() as u32 - 1
        }) as usize
    }

    /// A branch also says whether lanes took it, and whether lanes did not.
    #[inline]
    pub fn note(&mut self, pc: Pc, activation: &Activation, op: Op, branch: Option<(bool, bool)>) {
        let at = self.node(pc, activation);
        self.reads_clock |= is_clock(op);
        if let Some((taken, fallen)) = branch {
            let node = &mut self.nodes[at];
            if taken && !node.taken || fallen && !node.fallen {
                (node.taken, node.fallen) = (node.taken | taken, node.fallen | fallen);
                self.version += 1;
            }
        }
    }

    /// An instruction accesses these words of local memory.
    pub fn note_local(&mut self, pc: Pc, activation: &Activation, (first, last): (u32, u32)) {
        let at = self.node(pc, activation);
        let local = &mut self.nodes[at].local;
        let (known_first, known_last) = local.unwrap_or((first, last));
        let now = Some((known_first.min(first), known_last.max(last)));
        if *local != now {
            *local = now;
            self.version += 1;
        }
    }

    /// What the difference between the earlier state and the present one means. Their control states are the same.
    pub fn judge<const N: usize>(&mut self, kernel: &Kernel, before: &Warp<N>, now: &Warp<N>) -> Judgement {
        if let Some((value, version)) = self.progress
            && version == self.version
            && now.differs(before, value)
        {
            return Judgement::Progress;
        }
        let differing = now.differing(before);
        if differing.is_empty() && !self.reads_clock {
            return Judgement::Repeats;
        }
        let starts: Vec<(Pc, u32)> =
            now.control.activated_paths().iter().map(|(group, at, _)| (group.pc, at.registers)).collect();
        let counts = now.counts(before);
        let follow = |differing: &[usize]| {
            Flow { executed: self, kernel, counts, new: Vec::new() }.follow(&starts, differing)
        };
        let judgement = follow(&differing);
        if judgement == Judgement::Progress {
            let alone = |&&value: &&usize| follow(&[value]) == Judgement::Progress;
            let culprit = differing.iter().take(8).find(alone).copied();
            self.progress = culprit.map(|value| (value, self.version));
        }
        judgement
    }
}

/// Follows values through executed instructions.
struct Flow<'a> {
    executed: &'a Executed,
    kernel: &'a Kernel,
    /// Registers, predicates and words of local memory. Values are numbered in this order.
    counts: [usize; 3],
    /// Instructions that were not executed, but may be. They are numbered after those that were.
    new: Vec<Node>,
}

/// With more code that was not executed, a way out of the loop is assumed.
const MOST_NEW: usize = 256;

impl Flow<'_> {
    fn follow(mut self, starts: &[(Pc, u32)], differing: &[usize]) -> Judgement {
        let mut first = Set(vec![0; self.counts.iter().sum::<usize>().div_ceil(64)]);
        differing.iter().for_each(|&value| first.set(value, true));
        let mut states: Vec<Option<Set>> = vec![None; self.executed.nodes.len()];
        let mut work: Vec<u32> = Vec::new();
        for place in starts {
            if let Some(&at) = self.executed.by_place.get(place) {
                states[at as usize] = Some(first.clone());
                work.push(at);
            }
        }
        let mut judgement = Judgement::Repeats;
        let mut next = Vec::new();
        while let Some(at) = work.pop() {
            let executed = self.executed.nodes.len();
            let node =
                self.executed.nodes.get(at as usize).unwrap_or_else(|| &self.new[at as usize - executed]);
            let node = node.clone();
            let Some(mut state) = states[at as usize].clone() else { continue };
            let meaning = self.step(&node, &mut state);
            judgement = judgement.max(meaning);
            next.clear();
            self.successors(&node, &mut next);
            self.new_successors(&node, meaning, &mut next);
            if judgement == Judgement::Progress || self.new.len() > MOST_NEW {
                return Judgement::Progress;
            }
            states.resize(executed + self.new.len(), None);
            for &then in &next {
                let grew = match &mut states[then as usize] {
                    Some(known) => known.add_all(&state),
                    unknown => {
                        *unknown = Some(state.clone());
                        true
                    }
                };
                if grew {
                    work.push(then);
                }
            }
        }
        judgement
    }

    /// Where an instruction may lead that was not executed.
    fn new_successors(&mut self, node: &Node, meaning: Judgement, out: &mut Vec<u32>) {
        let inst = self.inst(node);
        let decides = inst.op == Op::Bra && meaning == Judgement::Waits;
        if !node.is_new && !decides {
            return;
        }
        let is_certain = inst.op == Op::Bra && inst.guard == Guard::Always;
        let after = Some(Pc(node.pc.0 + 1)).filter(|_| !is_certain);
        for pc in [after, inst.branch_target()].into_iter().flatten() {
            out.push(self.reach(node, pc));
        }
    }

    /// The number of an instruction of the same activation, whether it was executed or not.
    fn reach(&mut self, from: &Node, pc: Pc) -> u32 {
        if let Some(&at) = self.executed.by_place.get(&(pc, from.registers)) {
            return at;
        }
        let at = self.new.iter().position(|node| (node.pc, node.registers) == (pc, from.registers));
        let at = at.unwrap_or_else(|| {
            let [taken, fallen, is_new] = [true; 3];
            self.new.push(Node { pc, taken, fallen, is_new, local: None, ..from.clone() });
            self.new.len() - 1
        });
        (self.executed.nodes.len() + at) as u32
    }

    fn inst(&self, node: &Node) -> &Inst {
        &self.kernel.code[node.pc.index()]
    }

    /// The numbers of a value that an instruction accesses.
    fn numbers(&self, node: &Node, value: Value) -> std::ops::Range<usize> {
        match value {
            Value::Reg(reg, width) => {
                let first = node.registers as usize + reg.index();
                first..first + width.words() as usize
            }
            Value::Pred(pred) => {
                let number = self.counts[0] + node.predicates as usize + pred.index();
                number..number + 1
            }
        }
    }

    fn local(&self, node: &Node) -> Option<std::ops::Range<usize>> {
        let (first, last) = node.local?;
        let start = self.counts[0] + self.counts[1];
        Some(start + first as usize..start + last as usize + 1)
    }

    /// What an instruction does to the set of values that differ when it executes, and what that means.
    fn step(&self, node: &Node, state: &mut Set) -> Judgement {
        let inst = self.inst(node);
        // Whatever else is executed may differ in all that it computes.
        let mut reads = node.is_new;
        inst.for_each_use(self.kernel, |value| {
            reads |= self.numbers(node, value).any(|number| state.contains(number));
        });
        let guarded = inst.guard != Guard::Always;
        if let (Op::St(access), Some(words)) = (inst.op, self.local(node)) {
            let moves = self.reads_address(node, inst, state);
            // A store to one place replaces what was there; one that moves about may leave some of it.
            let replaces = !guarded && access.bytes() as usize == 4 * words.len();
            if reads || replaces {
                words.for_each(|word| state.set(word, reads));
            }
            return if moves { Judgement::Waits } else { Judgement::Repeats };
        }
        let mut judgement = Judgement::Repeats;
        // Whether the result differs.
        let mut differs = reads | is_clock(inst.op);
        match inst.op {
            Op::Bra if reads && guarded => return Judgement::Waits,
            Op::Ld { .. } => {
                if reads {
                    // It may also reach an address that is not allocated.
                    judgement = Judgement::Waits;
                }
                if let Some(mut words) = self.local(node) {
                    differs |= words.any(|word| state.contains(word));
                }
            }
            // Other coordinates may be beyond the edges.
            Op::Tex(_) | Op::SurfaceLd(_) if reads => judgement = Judgement::Waits,
            Op::St(_)
            | Op::StUnlock(_)
            | Op::LdLock(_)
            | Op::Atom(..)
            | Op::CpAsync(_)
            | Op::Mbarrier(..)
            | Op::StAsync(..)
            | Op::RedAsync(..)
            | Op::SurfaceSt(_)
            | Op::SurfaceRed(..)
            | Op::Bar(_)
            | Op::ClusterBar(_)
            | Op::BarWarp
            | Op::Brx
            | Op::Exit
            | Op::Trap
            | Op::AssertFail
            | Op::Yield
                if reads =>
            {
                return Judgement::Progress;
            }
            // The top of the stack is no register, so nothing is claimed about it.
            Op::Stack(_) => return Judgement::Progress,
            Op::Call | Op::Ret => {
                let start = self.counts[0] + self.counts[1];
                let local = (start..start + self.counts[2]).any(|word| state.contains(word));
                if reads || local && self.copies_frames() {
                    return Judgement::Progress;
                }
            }
            // Lanes see each other's values.
            Op::Vote(_)
            | Op::Shfl(_)
            | Op::MatchAny(_)
            | Op::MatchAll(_)
            | Op::Redux(..)
            | Op::WaveBallot
            | Op::WaveShfl(_)
            | Op::Elect
            | Op::Printf
                if reads =>
            {
                judgement = Judgement::Waits;
            }
            _ => {}
        }
        if inst.dst != Dst::None || inst.dst2 != Dst::None {
            inst.for_each_def(self.kernel, |value| {
                for number in self.numbers(node, value) {
                    if differs || !guarded {
                        state.set(number, differs);
                    }
                }
            });
        }
        judgement
    }

    fn reads_address(&self, node: &Node, inst: &Inst, state: &Set) -> bool {
        let Operand::Reg(reg) = inst.src[0] else { return false };
        let first = node.registers as usize + reg.index();
        (first..first + 2).any(|number| state.contains(number))
    }

    /// Whether calls pass values through local memory.
    fn copies_frames(&self) -> bool {
        self.kernel.calls.iter().any(|call| !call.args.is_empty() || !call.returns.is_empty())
    }

    /// The executed instructions that may come next.
    fn successors(&self, node: &Node, out: &mut Vec<u32>) {
        let executed = self.executed;
        let find = |pc: Pc| executed.by_place.get(&(pc, node.registers)).copied();
        let anywhere = |pc: Pc| {
            let at = move |(at, other): (usize, &Node)| (other.pc == pc).then_some(at as u32);
            executed.nodes.iter().enumerate().filter_map(at)
        };
        let inst = self.inst(node);
        let next = Pc(node.pc.0 + 1);
        match inst.op {
            Op::Bra => {
                out.extend(inst.branch_target().filter(|_| node.taken).and_then(find));
                out.extend(Some(next).filter(|_| node.fallen).and_then(find));
            }
            Op::Brx => out.extend(0..executed.nodes.len() as u32),
            Op::Call => {
                out.extend(find(next));
                let callee = match inst.src[0] {
                    Operand::Imm(site) => Some(self.kernel.calls[site as usize].callee),
                    _ => None,
                };
                match callee {
                    Some(LinkedCallee::Direct(function)) => {
                        out.extend(anywhere(self.kernel.functions[function as usize].start));
                    }
                    _ => self.kernel.functions.iter().for_each(|f| out.extend(anywhere(f.start))),
                }
            }
            Op::Ret => {
                out.extend(find(next));
                for call in executed.nodes.iter().filter(|other| self.inst(other).op == Op::Call) {
                    out.extend(anywhere(Pc(call.pc.0 + 1)));
                }
            }
            Op::Exit if inst.guard == Guard::Always => {}
            _ => out.extend(find(next)),
        }
    }
}
