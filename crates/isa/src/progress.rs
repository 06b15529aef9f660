//! Whether a loop that polls memory surely waits for nobody: it retries a lock-free compare-and-swap, or gives its
//! place away while it waits.
//!
//! A compare-and-swap whose expected value was read from the same word in the same iteration, or by the one before it,
//! fails only if the word has changed since: another thread made progress. A lock's expects a constant and fails for
//! as long as someone holds the lock. `wl.yield` takes the wavefront off its compute unit, so that it keeps nobody
//! waiting.
//!
//! The loop is walked over its blocks and what is known there of predicates and equal registers, because compilers
//! keep the outcome of an iteration in predicates (`done = true`) and test them at a common end. Paths on which such a
//! swap fails, or the wavefront yields, are cut. The loop waits if what remains can run through its header for ever
//! and reads memory on the way. A swap that succeeded is not cut: a loop that then goes on is a lock made of a swap.
//!
//! A lane may swap for its whole warp: `if (lane == lowest(active mask)) …`, then a vote. If all branches of a loop
//! are such elections and votes, its lanes stay together, and the elected one's path decides.

use std::collections::{BTreeMap, HashMap};

use crate::cfg::*;
use crate::inst::*;
use crate::kernel::*;
use crate::liveness::*;
use crate::module::*;
use crate::released::Code;
use crate::spin::blocks_to;
use crate::types::*;
use crate::visit::*;

/// Walks with more states give up: the loop then counts as waiting.
const MAX_STATES: usize = 4096;

/// What is known of a value on a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Known {
    /// A predicate's value, or a number.
    Is(u32),
    NonZero,
}

/// What is known at the start of a block.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
struct Facts {
    /// Values of predicates.
    predicates: BTreeMap<u32, bool>,
    /// Pairs of registers, and whether they are equal.
    equal: BTreeMap<(Reg, Reg), bool>,
}

/// Which ways of an election a walk follows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Elections {
    Both,
    /// The elected lane's. Fails at branches where lanes may part.
    Elected,
}

/// A way through a block: what is known behind it, whether it read memory, and whether it was cut.
#[derive(Clone, Default)]
struct Path {
    values: HashMap<u32, Known>,
    /// As in [`Facts`].
    equal: BTreeMap<(Reg, Reg), bool>,
    /// Predicates that say whether two registers are equal, and their value if these are.
    tests: HashMap<Pred, ((Reg, Reg), bool)>,
    polls: bool,
    cut: bool,
}

struct Walk<'a> {
    code: &'a Code<'a>,
    liveness: &'a Liveness,
    blocks: &'a [BlockId],
    header: BlockId,
    /// Compare-and-swaps that fail only if another one succeeded.
    swaps: &'a [Pc],
    elections: Elections,
    /// States found so far, and their edges with whether memory is read on the way.
    states: HashMap<(BlockId, Facts), usize>,
    nodes: Vec<(BlockId, Facts)>,
    edges: Vec<Vec<(usize, bool)>>,
    cut_at: Option<Pc>,
    yields_at: Option<Pc>,
}

impl Code<'_> {
    /// What keeps this loop from waiting for others, if all its endless runs have it.
    pub(crate) fn progress(&self, l: &Loop) -> Option<WaitEnds> {
        let header = self.cfg.block_of(l.header);
        // Branches that wait for different words are loops of their own here, but one run may take them all.
        let latches =
            self.loops.iter().filter(|other| other.header == l.header).flat_map(|other| &other.latches);
        let mut blocks: Vec<BlockId> =
            latches.flat_map(|&latch| blocks_to(self.cfg, header, self.cfg.block_of(latch))).collect();
        blocks.sort_unstable();
        blocks.dedup();
        let instructions = || {
            let of = |&block: &BlockId| self.cfg.blocks[block.index()];
            blocks.iter().map(of).flat_map(|block| (block.start.0..block.end.0).map(Pc))
        };
        let op = |pc: Pc| self.body.insts[pc.index()].op;
        let first_swap = instructions().find(|&pc| matches!(op(pc), Op::Atom(AtomOp::Cas, _)));
        if first_swap.is_none() && !instructions().any(|pc| op(pc) == Op::Yield) {
            return None;
        }
        let swaps: Vec<Pc> = instructions().filter(|&pc| self.is_lock_free(pc, header, &blocks)).collect();
        let liveness = self.liveness.get_or_init(|| Liveness::new(self.body, self.cfg));
        [Elections::Both, Elections::Elected].into_iter().find_map(|elections| {
            let mut walk = Walk {
                code: self,
                liveness,
                blocks: &blocks,
                header,
                swaps: &swaps,
                elections,
                states: HashMap::new(),
                nodes: Vec::new(),
                edges: Vec::new(),
                cut_at: None,
                yields_at: None,
            };
            walk.run().filter(|&waits| !waits)?;
            match (walk.yields_at, walk.cut_at) {
                (Some(pc), _) => Some(WaitEnds::Yields(pc)),
                // Without a cut, whoever fails leaves.
                (None, cut_at) => cut_at.or(first_swap).map(WaitEnds::LockFree),
            }
        })
    }

    /// Whether this is a compare-and-swap that expects what was last read from its own word in the loop.
    fn is_lock_free(&self, pc: Pc, header: BlockId, blocks: &[BlockId]) -> bool {
        let swap = &self.body.insts[pc.index()];
        let (Op::Atom(AtomOp::Cas, access), Operand::Reg(expected)) = (swap.op, swap.src[2]) else {
            return false;
        };
        let Some(word) = self.places.address(swap) else { return false };
        let reads = |at: Pc| {
            let Some(at) = self.copied_from(at) else { return false };
            if at == pc {
                return true;
            }
            let read = &self.body.insts[at.index()];
            let same = match read.op {
                Op::Ld { access: from, .. } | Op::Atom(_, from) => from.bytes() == access.bytes(),
                _ => false,
            };
            same && read.guard == Guard::Always
                && self.places.address(read) == Some(word)
                && self.always_before(at, pc, header, blocks)
        };
        let mut definitions = self.places.definitions(Value::Reg(expected, Width::One));
        let inside = definitions.clone().any(|at| blocks.contains(&self.cfg.block_of(at)));
        inside && definitions.all(|at| !blocks.contains(&self.cfg.block_of(at)) || reads(at))
    }

    /// Follows moves between registers back to where their value comes from.
    fn copied_from(&self, mut pc: Pc) -> Option<Pc> {
        for _ in 0..8 {
            let inst = &self.body.insts[pc.index()];
            match (inst.op, inst.src[0]) {
                (Op::Mov(_), Operand::Reg(from)) if inst.guard == Guard::Always => {
                    pc = self.places.only_definition(Value::Reg(from, Width::One))?;
                }
                _ => return Some(pc),
            }
        }
        None
    }

    /// Whether every way from the loop's header to `pc` passes `before`.
    fn always_before(&self, before: Pc, pc: Pc, header: BlockId, blocks: &[BlockId]) -> bool {
        let (avoided, target) = (self.cfg.block_of(before), self.cfg.block_of(pc));
        if avoided == target {
            return before < pc;
        }
        let mut seen = vec![avoided];
        let mut stack = vec![header];
        while let Some(block) = stack.pop() {
            if seen.contains(&block) || !blocks.contains(&block) {
                continue;
            }
            if block == target {
                return false;
            }
            seen.push(block);
            stack.extend(self.cfg.successors(block));
        }
        true
    }

    /// Whether a branch on this predicate sends all active lanes one way.
    fn is_vote(&self, pred: Pred) -> bool {
        let Some(def) = self.only(Value::Pred(pred)) else { return false };
        match (def.op, def.src) {
            (Op::Vote(VoteMode::All | VoteMode::Any | VoteMode::Uni), _) => true,
            (Op::Setp { combine: Combine::None, .. }, [Operand::Reg(word), Operand::Imm(_), ..]) => {
                let word = self.only(Value::Reg(word, Width::One));
                word.is_some_and(|def| matches!(def.op, Op::WaveBallot | Op::Vote(VoteMode::Ballot)))
            }
            _ => false,
        }
    }

    /// The value of a predicate in the lane that was chosen by the active mask, if it tells that one from the others.
    fn elects(&self, pred: Pred) -> Option<bool> {
        let def = self.only(Value::Pred(pred))?;
        if def.op == Op::Elect {
            return (def.dst2 == Dst::Pred(pred)).then_some(true);
        }
        let Op::Setp { cmp: cmp @ (Cmp::Eq | Cmp::Ne), combine: Combine::None, .. } = def.op else {
            return None;
        };
        let is_lane = |operand: Operand| {
            let Operand::Reg(reg) = operand else { return false };
            let def = self.only(Value::Reg(reg, Width::One));
            def.is_some_and(|def| matches!(def.op, Op::Special(Special::LaneId | Special::WaveLaneId)))
        };
        let [a, b, ..] = def.src;
        let chosen = (is_lane(a) && self.of_active_mask(b, 8)) || (is_lane(b) && self.of_active_mask(a, 8));
        chosen.then_some(cmp == Cmp::Eq)
    }

    /// Whether a value is computed from the mask of active lanes and nothing else.
    fn of_active_mask(&self, operand: Operand, steps: u32) -> bool {
        let Operand::Reg(reg) = operand else { return false };
        let Some(def) = self.only(Value::Reg(reg, Width::One)).filter(|_| steps > 0) else { return false };
        let bits = matches!(
            def.op,
            Op::Mov(_)
                | Op::Popc(_)
                | Op::Clz(_)
                | Op::Brev(_)
                | Op::Bfind(..)
                | Op::Not(_)
                | Op::Logic(..)
                | Op::IAdd(..)
                | Op::ISub(..)
        );
        let from = |operand: Operand| match operand {
            Operand::None | Operand::Imm(_) | Operand::Imm64(_) => true,
            operand => self.of_active_mask(operand, steps - 1),
        };
        match def.op {
            Op::ActiveMask | Op::WaveActive => true,
            _ => bits && matches!(def.src[0], Operand::Reg(_)) && def.src.into_iter().all(from),
        }
    }

    fn only(&self, value: Value) -> Option<&Inst> {
        Some(&self.body.insts[self.places.only_definition(value)?.index()])
    }
}

impl Walk<'_> {
    /// Whether the loop may wait for others; none if that cannot be said.
    fn run(&mut self) -> Option<bool> {
        self.state(self.header, Facts::default());
        let mut next = 0;
        while next < self.nodes.len() {
            if self.nodes.len() > MAX_STATES {
                return None;
            }
            let (block, facts) = self.nodes[next].clone();
            for path in self.through(block, &facts) {
                if !path.cut {
                    self.follow(next, block, &path)?;
                }
            }
            next += 1;
        }
        let reached = components(&self.edges);
        let headers: Vec<usize> =
            (0..self.nodes.len()).filter(|&n| self.nodes[n].0 == self.header).map(|n| reached[n]).collect();
        let waits = |(from, edges): (usize, &Vec<(usize, bool)>)| {
            let polls = |&(to, polls): &(usize, bool)| polls && reached[from] == reached[to];
            headers.contains(&reached[from]) && edges.iter().any(polls)
        };
        Some(self.edges.iter().enumerate().any(waits))
    }

    fn state(&mut self, block: BlockId, facts: Facts) -> usize {
        let nodes = &mut self.nodes;
        let edges = &mut self.edges;
        *self.states.entry((block, facts)).or_insert_with_key(|key| {
            nodes.push(key.clone());
            edges.push(Vec::new());
            nodes.len() - 1
        })
    }

    /// Adds the edges behind the last instruction of a block.
    fn follow(&mut self, from: usize, block: BlockId, path: &Path) -> Option<()> {
        let last = self.code.cfg.blocks[block.index()].last();
        let branch = &self.code.body.insts[last.index()];
        let ways: Vec<(BlockId, Option<(Pred, bool)>)> =
            match (branch.op, branch.branch_target(), branch.guard) {
                (Op::Bra, Some(target), Guard::If(pred) | Guard::Unless(pred)) => {
                    let when = matches!(branch.guard, Guard::If(_));
                    let known = match (self.pred(path, pred), self.code.elects(pred), self.elections) {
                        (Some(value), ..) => Some(value),
                        (None, Some(elected), Elections::Elected) => Some(elected),
                        (None, None, Elections::Elected) if !self.code.is_vote(pred) => return None,
                        _ => None,
                    };
                    let taken = (target, Some((pred, when)));
                    let not_taken = (Pc(last.0 + 1), Some((pred, !when)));
                    let ways = [taken, not_taken].into_iter();
                    let ways = ways.filter(|(_, fact)| {
                        known.is_none_or(|value| fact.is_some_and(|(_, is)| is == value))
                    });
                    let inside = |pc: Pc| {
                        (pc.index() < self.code.body.insts.len()).then(|| self.code.cfg.block_of(pc))
                    };
                    ways.filter_map(|(pc, fact)| Some((inside(pc)?, fact))).collect()
                }
                (Op::Brx, ..) if self.elections == Elections::Elected => return None,
                _ => self.code.cfg.successors(block).iter().map(|&to| (to, None)).collect(),
            };
        for (to, fact) in ways {
            if !self.blocks.contains(&to) {
                continue;
            }
            let facts = self.facts(path, fact, self.code.cfg.blocks[to.index()].start);
            let to = self.state(to, facts);
            self.edges[from].push((to, path.polls));
        }
        Some(())
    }

    /// What is known at `start` behind a path, of values that are still needed there.
    fn facts(&self, path: &Path, fact: Option<(Pred, bool)>, start: Pc) -> Facts {
        let registers = self.code.body.registers.len() as u32;
        let lives = |value: Value| {
            let segments = self.liveness.segments(value);
            segments.iter().any(|s| s.start <= 2 * start.0 && 2 * start.0 < s.end)
        };
        let known = path.values.iter().filter_map(|(&number, &known)| match known {
            Known::Is(value) if number >= registers => Some((number - registers, value != 0)),
            _ => None,
        });
        let known = known.chain(fact.map(|(pred, value)| (pred.0, value)));
        let tested = fact.and_then(|(pred, value)| {
            let &(pair, if_equal) = path.tests.get(&pred)?;
            Some((pair, value == if_equal))
        });
        let equal = path.equal.iter().map(|(&pair, &equal)| (pair, equal)).chain(tested);
        let both = |&((a, b), _): &((Reg, Reg), bool)| {
            [a, b].into_iter().all(|reg| lives(Value::Reg(reg, Width::One)))
        };
        Facts {
            predicates: known.filter(|&(pred, _)| lives(Value::Pred(Pred(pred)))).collect(),
            equal: equal.filter(both).collect(),
        }
    }

    /// The ways through a block: one, or two where a compare-and-swap or a yield may not be executed.
    fn through(&mut self, block: BlockId, facts: &Facts) -> Vec<Path> {
        let registers = self.code.body.registers.len() as u32;
        let value = |(&pred, &value): (&u32, &bool)| (registers + pred, Known::Is(u32::from(value)));
        let values = facts.predicates.iter().map(value).collect();
        let mut paths = vec![Path { values, equal: facts.equal.clone(), ..Path::default() }];
        let Block { start, end, .. } = self.code.cfg.blocks[block.index()];
        for pc in (start.0..end.0).map(Pc) {
            let inst = self.code.body.insts[pc.index()];
            let acts = inst.op == Op::Yield || self.swaps.contains(&pc);
            let mut skipping = Vec::new();
            for path in paths.iter_mut().filter(|path| !path.cut) {
                let executes = match inst.guard {
                    _ if inst.op == Op::Bra => continue,
                    Guard::Always => Some(true),
                    Guard::If(pred) => self.pred(path, pred),
                    Guard::Unless(pred) => self.pred(path, pred).map(|value| !value),
                };
                match executes {
                    Some(false) => continue,
                    None if acts => skipping.push(self.assuming(path, inst.guard, false)),
                    _ => {}
                }
                if acts && executes.is_none() {
                    *path = self.assuming(path, inst.guard, true);
                }
                self.execute(path, pc, &inst, executes.is_some() || acts);
            }
            paths.extend(skipping);
        }
        paths
    }

    /// The path on which a guard lets an instruction execute, or not.
    fn assuming(&self, path: &Path, guard: Guard, executes: bool) -> Path {
        let mut path = path.clone();
        let fact = match guard {
            Guard::If(pred) => Some((pred, executes)),
            Guard::Unless(pred) => Some((pred, !executes)),
            Guard::Always => None,
        };
        if let Some((pred, value)) = fact {
            path.values.insert(self.number(Value::Pred(pred)), Known::Is(u32::from(value)));
        }
        path
    }

    fn execute(&mut self, path: &mut Path, pc: Pc, inst: &Inst, surely: bool) {
        if inst.op == Op::Yield {
            self.yields_at.get_or_insert(pc);
            path.cut = true;
            return;
        }
        let result = surely.then(|| self.result(path, inst)).flatten();
        inst.for_each_def(self.code.body, |value| {
            path.values.remove(&self.number(value));
            match value {
                Value::Reg(reg, _) => {
                    path.equal.retain(|&(a, b), _| a != reg && b != reg);
                    path.tests.retain(|_, &mut ((a, b), _)| a != reg && b != reg);
                }
                Value::Pred(pred) => {
                    path.tests.remove(&pred);
                }
            }
        });
        if let (Some(known), Some(value)) = (result, written(inst.dst)) {
            path.values.insert(self.number(value), known);
        }
        match (inst.op, inst.dst, inst.src) {
            (Op::Atom(..), Dst::Reg(result), [_, _, Operand::Reg(expected), _])
                if self.swaps.contains(&pc) =>
            {
                // Failure is cut, only success goes on.
                self.cut_at.get_or_insert(pc);
                if result != expected {
                    path.equal.insert(pair(result, expected), true);
                }
            }
            (Op::Setp { cmp, .. }, Dst::Pred(pred), [Operand::Reg(a), Operand::Reg(b), ..])
                if surely && is_equality(inst.op) =>
            {
                path.tests.insert(pred, (pair(a, b), cmp == Cmp::Eq));
            }
            _ => {}
        }
        path.polls |= may_poll(inst);
    }

    /// What an instruction writes into its first result, as far as it is known.
    fn result(&self, path: &Path, inst: &Inst) -> Option<Known> {
        let [a, b, c, _] = inst.src;
        let bit = |value: bool| Some(Known::Is(u32::from(value)));
        let holds = |operand: Operand| match self.known(path, operand)? {
            Known::Is(value) => Some(value != 0),
            Known::NonZero => Some(true),
        };
        match inst.op {
            Op::Mov(_) | Op::MovPred => self.known(path, a),
            Op::NotPred => bit(!holds(a)?),
            Op::LogicPred(logic) => match (logic, holds(a), holds(b)) {
                (Logic::And, Some(false), _) | (Logic::And, _, Some(false)) => bit(false),
                (Logic::Or, Some(true), _) | (Logic::Or, _, Some(true)) => bit(true),
                (Logic::And, Some(a), Some(b)) => bit(a && b),
                (Logic::Or, Some(a), Some(b)) => bit(a || b),
                (Logic::Xor, Some(a), Some(b)) => bit(a != b),
                _ => None,
            },
            Op::Selp(_) => match holds(c) {
                Some(true) => self.known(path, a),
                Some(false) => self.known(path, b),
                None => None,
            },
            // This lane is among those that vote.
            Op::WaveBallot | Op::Vote(VoteMode::Ballot) => holds(a)?.then_some(Known::NonZero),
            Op::Vote(VoteMode::Any) => holds(a).filter(|&is| is).and_then(bit),
            Op::Vote(VoteMode::All) => holds(a).filter(|&is| !is).and_then(bit),
            Op::Setp { cmp, .. } if is_equality(inst.op) => {
                let compared = match (a, b) {
                    (Operand::Reg(a), Operand::Reg(b)) => path.equal.get(&pair(a, b)).copied(),
                    _ => None,
                };
                let equal = match compared {
                    Some(equal) => equal,
                    None => match (self.known(path, a)?, self.known(path, b)?) {
                        (Known::Is(a), Known::Is(b)) => a == b,
                        (Known::NonZero, Known::Is(0)) | (Known::Is(0), Known::NonZero) => false,
                        _ => return None,
                    },
                };
                bit(equal == (cmp == Cmp::Eq))
            }
            _ => None,
        }
    }

    fn known(&self, path: &Path, operand: Operand) -> Option<Known> {
        match operand {
            Operand::Imm(value) => Some(Known::Is(value)),
            Operand::Reg(reg) => path.values.get(&self.number(Value::Reg(reg, Width::One))).copied(),
            Operand::Pred(pred) => self.pred(path, pred).map(|value| Known::Is(u32::from(value))),
            Operand::NotPred(pred) => self.pred(path, pred).map(|value| Known::Is(u32::from(!value))),
            _ => None,
        }
    }

    fn pred(&self, path: &Path, pred: Pred) -> Option<bool> {
        if let Some(&known) = path.values.get(&self.number(Value::Pred(pred))) {
            return Some(known != Known::Is(0));
        }
        let def = self.code.only(Value::Pred(pred))?;
        match (def.op, def.src[0]) {
            (Op::MovPred, Operand::Imm(value)) => Some(value != 0),
            _ => None,
        }
    }

    fn number(&self, value: Value) -> u32 {
        value_number(value, self.code.body.registers.len())
    }
}

/// Two registers in order: equality has none.
fn pair(a: Reg, b: Reg) -> (Reg, Reg) {
    if a.0 <= b.0 { (a, b) } else { (b, a) }
}

/// Whether an operation compares two integers for equality, and nothing else.
fn is_equality(op: Op) -> bool {
    match op {
        Op::Setp { cmp: Cmp::Eq | Cmp::Ne, combine: Combine::None, ty, .. } => !ty.is_float(),
        _ => false,
    }
}

fn written(dst: Dst) -> Option<Value> {
    match dst {
        Dst::Reg(reg) => Some(Value::Reg(reg, Width::One)),
        Dst::Pred(pred) => Some(Value::Pred(pred)),
        _ => None,
    }
}

/// Whether an instruction may wait for another thread, or read what one writes.
fn may_poll(inst: &Inst) -> bool {
    match inst.op {
        Op::Ld { access, .. } => {
            !matches!(access.space, Space::Const | Space::Param | Space::Local) && access.cache != Cache::Nc
        }
        Op::LdLock(_) | Op::Atom(..) | Op::Mbarrier(..) | Op::Call => true,
        Op::Bar(_) | Op::BarWarp | Op::ClusterBar(_) => true,
        _ => false,
    }
}

/// The strongly connected component of each node (Tarjan's algorithm, without recursion).
fn components(edges: &[Vec<(usize, bool)>]) -> Vec<usize> {
    const UNSEEN: usize = usize::MAX;
    let n = edges.len();
    let (mut index, mut low, mut component) = (vec![UNSEEN; n], vec![0; n], vec![UNSEEN; n]);
    let (mut count, mut open) = (0, Vec::new());
    for root in 0..n {
        let mut stack = vec![(root, 0)];
        while let Some((at, next)) = stack.pop() {
            if next == 0 {
                if index[at] != UNSEEN {
                    continue;
                }
                (index[at], low[at]) = (count, count);
                count += 1;
                open.push(at);
            }
            match edges[at].get(next) {
                Some(&(to, _)) => {
                    stack.push((at, next + 1));
                    if index[to] == UNSEEN {
                        stack.push((to, 0));
                    }
                }
                None => {
                    for &(to, _) in &edges[at] {
                        if component[to] == UNSEEN {
                            low[at] = low[at].min(low[to]).min(index[to]);
                        }
                    }
                    if low[at] == index[at] {
                        while let Some(of) = open.pop() {
                            component[of] = at;
                            if of == at {
                                break;
                            }
                        }
                    }
                }
            }
        }
    }
    component
}
