//! Finds the loops that may be waiting for another thread. Start at [`spinning_latches`].
//!
//! A loop spins if its exit depends on a value that it loads, or gets from an atomic, at an address that is the same in
//! every iteration: only another thread's write (or a lock becoming free) can end it. The conditions of the loop's
//! exits are sliced backwards, along data and control dependences inside the loop, to the memory accesses they depend
//! on. Accesses that let the loop make progress by itself do not count:
//!
//! - comparisons with a value that the loop counts up or down (`i < *n`),
//! - memory that no other thread writes: parameters, constants, the read-only path, the thread's own stack,
//! - weak loads of a place that the loop itself stores to (an iteration's own flag),
//! - fetch-and-add of a constant that is not undone in the loop (handing out work items).
//!
//! Variables on the stack, as unoptimised code keeps them, are followed from their loads to their stores.

use std::collections::BTreeSet;

use crate::cfg::*;
use crate::dominators::*;
use crate::inst::*;
use crate::liveness::*;
use crate::loops::*;
use crate::module::*;
use crate::types::*;
use crate::visit::*;

/// Loops nested deeper are skipped. This bounds how often a block is visited.
const MAX_DEPTH: u32 = 32;

/// Loops with more backward edges are analysed as a whole.
const MAX_LATCHES: usize = 16;

/// For each latch of each loop, the load or atomic that the loop may be spinning on when it takes that latch: the first
/// atomic if there is one, else the first load.
///
/// Each backward edge is analysed separately, as the loop of the blocks that lead to it. Compilers merge the header
/// of a loop with that of a spin loop at its start, and a spin may be written as `continue`. The exits of the rest of
/// the loop would otherwise hide the spin.
pub(crate) fn spinning_latches(
    body: &Body,
    cfg: &Cfg,
    post_dominators: &DominatorTree,
    forest: &LoopForest,
) -> Vec<Vec<Option<Pc>>> {
    if forest.loops.is_empty() {
        return Vec::new();
    }
    let mut slicer = Slicer {
        body,
        cfg,
        mentions: mentions(body),
        controls: control_dependences(cfg, post_dominators),
        epoch: 0,
        in_loop: vec![0; cfg.len()],
        stores: Vec::new(),
        varies: Marks::new(body.insts.len()),
        counts: Marks::new(body.insts.len()),
        sliced: vec![0; body.insts.len()],
        walked: vec![0; cfg.len()],
        walk: 0,
    };
    let bodies = forest.bodies();
    let spins = |(id, l): (u32, &NaturalLoop)| {
        let mut verdicts = vec![None; l.latches.len()];
        if l.depth > MAX_DEPTH {
            return verdicts;
        }
        if (2..=MAX_LATCHES).contains(&l.latches.len()) {
            for (verdict, &latch) in verdicts.iter_mut().zip(&l.latches) {
                *verdict = slicer.spins_on(&blocks_to(cfg, l.header, latch));
            }
        }
        if verdicts.iter().all(Option::is_none) {
            verdicts.fill(slicer.spins_on(bodies.blocks(LoopId(id))));
        }
        verdicts
    };
    (0..).zip(&forest.loops).map(spins).collect()
}

/// The natural loop of one backward edge.
pub(crate) fn blocks_to(cfg: &Cfg, header: BlockId, latch: BlockId) -> Vec<BlockId> {
    let mut blocks = vec![header];
    let mut seen = BTreeSet::from([header]);
    let mut stack = vec![latch];
    while let Some(block) = stack.pop() {
        if seen.insert(block) {
            blocks.push(block);
            stack.extend(cfg.predecessors(block));
        }
    }
    blocks
}

/// For each block, the blocks whose branch decides whether it executes.
fn control_dependences(cfg: &Cfg, post_dominators: &DominatorTree) -> Rows<BlockId> {
    // Real code has a few per block; a pathological graph could have a number quadratic in its size.
    let limit = 16 * cfg.len() + (1 << 20);
    let mut pairs = Vec::new();
    for branch in cfg.ids() {
        let leaves = usize::from(cfg.blocks[branch.index()].leave != Leave::No);
        if cfg.successors(branch).len() + leaves < 2 || pairs.len() > limit {
            continue;
        }
        let meet = post_dominators.parent(branch);
        for &successor in cfg.successors(branch) {
            let mut at = Some(successor);
            while let Some(block) = at
                && at != meet
            {
                pairs.push((block.0, branch));
                at = post_dominators.parent(block);
            }
        }
    }
    Rows::from_pairs(cfg.len(), pairs.iter().copied())
}

/// Where a memory operand points, as far as the code shows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// This offset of the running function's frame.
    Frame(i64),
    /// Somewhere in the thread's own memory.
    Stack,
    /// Anywhere else.
    Elsewhere,
}

/// What a depth-first search has found about each instruction. A mark is valid only for the epoch it carries.
struct Marks {
    marks: Vec<(u32, State)>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Open,
    No,
    Yes,
}

impl Marks {
    fn new(n: usize) -> Self {
        Marks { marks: vec![(0, State::No); n] }
    }

    fn get(&self, pc: Pc, epoch: u32) -> Option<State> {
        let (at, state) = self.marks[pc.index()];
        (at == epoch).then_some(state)
    }

    fn set(&mut self, pc: Pc, epoch: u32, state: State) {
        self.marks[pc.index()] = (epoch, state);
    }
}

/// Which dependences a search for cycles follows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Through {
    /// All: a cycle means that the value changes between iterations.
    Memory,
    /// Registers and stack variables only: a cycle means that the loop counts.
    Registers,
}

struct Slicer<'a> {
    body: &'a Body,
    cfg: &'a Cfg,
    mentions: Rows<Mention>,
    controls: Rows<BlockId>,
    /// Number of the loop being analysed; marks with another number are stale.
    epoch: u32,
    in_loop: Vec<u32>,
    /// Stores and other writes of memory in the loop, and where they go.
    stores: Vec<(Pc, Place)>,
    varies: Marks,
    counts: Marks,
    sliced: Vec<u32>,
    walked: Vec<u32>,
    walk: u32,
}

impl Slicer<'_> {
    fn inst(&self, pc: Pc) -> &Inst {
        &self.body.insts[pc.index()]
    }

    fn inside(&self, block: BlockId) -> bool {
        self.in_loop[block.index()] == self.epoch
    }

    fn spins_on(&mut self, blocks: &[BlockId]) -> Option<Pc> {
        self.epoch += 1;
        self.stores.clear();
        for &block in blocks {
            self.in_loop[block.index()] = self.epoch;
            let Block { start, end, .. } = self.cfg.blocks[block.index()];
            for pc in (start.0..end.0).map(Pc) {
                let inst = self.inst(pc);
                if matches!(inst.op, Op::St(_) | Op::StUnlock(_) | Op::Atom(..) | Op::Call) {
                    let place = self.place(inst);
                    self.stores.push((pc, place));
                }
            }
        }

        let mut work: Vec<Pc> = Vec::new();
        for &block in blocks {
            let traps = |s: BlockId| self.cfg.blocks[s.index()].leave == Leave::Trap;
            let leaves = |&s: &BlockId| !self.inside(s) && !traps(s);
            if self.cfg.blocks[block.index()].leave == Leave::Exit
                || self.cfg.successors(block).iter().any(leaves)
            {
                work.push(self.cfg.blocks[block.index()].last());
            }
        }

        let mut found: Option<Pc> = None;
        let mut defs = Vec::new();
        while let Some(pc) = work.pop() {
            if std::mem::replace(&mut self.sliced[pc.index()], self.epoch) == self.epoch {
                continue;
            }
            for &branch in self.controls.row(self.cfg.block_of(pc).index()) {
                if self.inside(branch) {
                    work.push(self.cfg.blocks[branch.index()].last());
                }
            }
            let inst = *self.inst(pc);
            if self.reads_memory(&inst) && !matches!(self.place(&inst), Place::Frame(_)) {
                if self.is_candidate(pc) {
                    let rank = |pc: Pc| (matches!(self.inst(pc).op, Op::Ld { .. }), pc);
                    found = Some(found.map_or(pc, |old| if rank(pc) < rank(old) { pc } else { old }));
                }
                // The address is not followed: only the value in memory decides.
                if let Some(guard) = inst.guard.pred() {
                    self.reaching(pc, Value::Pred(guard), &mut work);
                }
                continue;
            }
            if matches!(inst.op, Op::Setp { .. } | Op::Set { .. }) {
                defs.clear();
                self.dependences(pc, &mut defs);
                if defs.iter().any(|&def| self.cyclic(def, Through::Registers)) {
                    continue;
                }
            }
            self.dependences(pc, &mut work);
        }
        found
    }

    /// Whether the instruction's result comes from memory.
    fn reads_memory(&self, inst: &Inst) -> bool {
        use MbarrierOp::{TestWait, TestWaitParity};
        matches!(
            inst.op,
            Op::Ld { .. } | Op::LdLock(_) | Op::Atom(..) | Op::Mbarrier(TestWait | TestWaitParity, _)
        )
    }

    /// Whether the loop may be waiting for this access to return another value.
    fn is_candidate(&mut self, pc: Pc) -> bool {
        let inst = *self.inst(pc);
        if self.place(&inst) != Place::Elsewhere {
            return false;
        }
        let same_place = |&(other, _): &(Pc, Place)| {
            let store = self.inst(other);
            other != pc && store.op != Op::Call && store.src[..2] == inst.src[..2]
        };
        let touched_again = self.stores.iter().any(same_place);
        match inst.op {
            Op::Ld { access, .. } => {
                if matches!(access.space, Space::Const | Space::Param | Space::Local)
                    || access.cache == Cache::Nc
                {
                    return false;
                }
                if access.order == Order::Weak && touched_again {
                    return false;
                }
            }
            // Adding zero is an atomic read.
            Op::Atom(AtomOp::Add, _) if self.is_zero(inst.src[2]) => {}
            Op::Atom(AtomOp::Add | AtomOp::Inc | AtomOp::Dec, _) if !touched_again => return false,
            _ => {}
        }
        let mut defs = Vec::new();
        if let Operand::Reg(r) = inst.src[0] {
            self.reaching(pc, Value::Reg(r, Width::One), &mut defs);
        }
        !defs.into_iter().any(|def| self.cyclic(def, Through::Memory))
    }

    /// Whether an operand is a literal zero, perhaps through a register.
    fn is_zero(&self, operand: Operand) -> bool {
        match operand {
            Operand::Imm(value) => value == 0,
            Operand::Reg(reg) => {
                let mut defs = self.mentions.row(reg.index()).iter().filter(|m| m.kind != MentionKind::Use);
                let (def, more) = (defs.next(), defs.next());
                let zero = |pc: Pc| {
                    matches!((self.inst(pc).op, self.inst(pc).src[0]), (Op::Mov(_), Operand::Imm(0)))
                };
                more.is_none() && def.is_some_and(|def| zero(def.pc))
            }
            _ => false,
        }
    }

    /// Whether the value computed at `pc` depends on its own value in an earlier iteration.
    fn cyclic(&mut self, pc: Pc, through: Through) -> bool {
        let epoch = self.epoch;
        let mut marks = match through {
            Through::Memory => std::mem::replace(&mut self.varies, Marks::new(0)),
            Through::Registers => std::mem::replace(&mut self.counts, Marks::new(0)),
        };
        let mut stack: Vec<(Pc, Vec<Pc>)> = Vec::new();
        let open = |slicer: &mut Self, marks: &mut Marks, stack: &mut Vec<(Pc, Vec<Pc>)>, pc: Pc| {
            marks.set(pc, epoch, State::Open);
            let mut next = Vec::new();
            let inst = *slicer.inst(pc);
            let opaque = slicer.reads_memory(&inst) && !matches!(slicer.place(&inst), Place::Frame(_));
            if through == Through::Memory || !opaque {
                slicer.dependences(pc, &mut next);
            }
            stack.push((pc, next));
        };
        if marks.get(pc, epoch).is_none() {
            open(self, &mut marks, &mut stack, pc);
        }
        // An instruction that depends on an open one is on a cycle or leads to one.
        while let Some((at, next)) = stack.last_mut() {
            let at = *at;
            let verdict = match next.pop() {
                None => Some(State::No),
                Some(dep) => match marks.get(dep, epoch) {
                    None => {
                        next.push(dep);
                        open(self, &mut marks, &mut stack, dep);
                        None
                    }
                    Some(State::No) => None,
                    Some(State::Open | State::Yes) => Some(State::Yes),
                },
            };
            if let Some(state) = verdict {
                marks.set(at, epoch, state);
                stack.pop();
            }
        }
        let cyclic = marks.get(pc, epoch) == Some(State::Yes);
        match through {
            Through::Memory => self.varies = marks,
            Through::Registers => self.counts = marks,
        }
        cyclic
    }

    /// Appends the instructions of the loop that compute what `pc` reads.
    fn dependences(&mut self, pc: Pc, out: &mut Vec<Pc>) {
        let body = self.body;
        let inst = &body.insts[pc.index()];
        if let Op::Ld { access, .. } = inst.op
            && let Place::Frame(offset) = self.place(inst)
        {
            let writes = |&&(pc, place): &&(Pc, Place)| self.writes_frame(pc, place, offset, access.bytes());
            out.extend(self.stores.iter().filter(writes).map(|&(pc, _)| pc));
            if let Some(guard) = inst.guard.pred() {
                self.reaching(pc, Value::Pred(guard), out);
            }
            return;
        }
        let mut values = Vec::new();
        inst.for_each_use(body, |value| values.push(value));
        for value in values {
            self.reaching(pc, value, out);
        }
    }

    /// Whether the instruction at `pc`, which stores to `place`, writes some of these bytes of the frame.
    fn writes_frame(&self, pc: Pc, place: Place, offset: i64, bytes: u32) -> bool {
        let inst = self.inst(pc);
        let overlaps = |at: i64, n: u32| at < offset + i64::from(bytes) && offset < at + i64::from(n);
        match (inst.op, inst.src[0]) {
            (Op::St(access) | Op::StUnlock(access) | Op::Atom(_, access), _) => {
                matches!(place, Place::Frame(at) if overlaps(at, access.bytes()))
            }
            (Op::Call, Operand::Imm(site)) => {
                let returns = &self.body.calls[site as usize].returns;
                returns.iter().any(|r| overlaps(i64::from(r.caller), r.bytes))
            }
            _ => false,
        }
    }

    /// Appends the definitions of `value` in the loop that reach its use at `pc`.
    fn reaching(&mut self, pc: Pc, value: Value, out: &mut Vec<Pc>) {
        let mentions = self.mentions.row(value_number(value, self.body.registers.len()) as usize);
        let mut defs =
            mentions.iter().filter(|m| m.kind != MentionKind::Use && self.inside(self.cfg.block_of(m.pc)));
        match (defs.next(), defs.next()) {
            (None, _) => return,
            (Some(only), None) => return out.push(only.pc),
            _ => {}
        }
        // Several definitions: walk back from the use. Only the part of the block below `before` is searched.
        self.walk += 1;
        let mut stack = vec![(self.cfg.block_of(pc), pc)];
        while let Some((block, before)) = stack.pop() {
            let start = self.cfg.blocks[block.index()].start;
            let from = mentions.partition_point(|m| m.pc < start);
            let to = mentions.partition_point(|m| m.pc < before);
            let mut killed = false;
            for mention in mentions[from..to].iter().rev() {
                match mention.kind {
                    MentionKind::Use => {}
                    MentionKind::PartialDef => out.push(mention.pc),
                    MentionKind::Def => {
                        out.push(mention.pc);
                        killed = true;
                        break;
                    }
                }
            }
            if killed {
                continue;
            }
            for &p in self.cfg.predecessors(block) {
                if self.inside(p) && std::mem::replace(&mut self.walked[p.index()], self.walk) != self.walk {
                    stack.push((p, self.cfg.blocks[p.index()].end));
                }
            }
        }
    }

    /// Where a memory instruction's address points.
    fn place(&self, inst: &Inst) -> Place {
        let (space, offset) = match (inst.op, inst.src[1]) {
            (
                Op::Ld { access, .. }
                | Op::St(access)
                | Op::LdLock(access)
                | Op::StUnlock(access)
                | Op::Atom(_, access),
                Operand::Imm(offset),
            ) => (access.space, i64::from(offset as i32)),
            _ => return Place::Elsewhere,
        };
        match (space, self.base(inst.src[0], 8)) {
            (Space::Local | Space::Generic, Place::Frame(at)) => Place::Frame(at + offset),
            (Space::Generic, place) => place,
            (Space::Local, _) => Place::Stack,
            _ => Place::Elsewhere,
        }
    }

    /// Follows an address through registers with one definition to the frame, if it comes from there.
    fn base(&self, operand: Operand, steps: u32) -> Place {
        let reg = match operand {
            Operand::Frame => return Place::Frame(0),
            Operand::Reg(reg) if steps > 0 => reg,
            _ => return Place::Elsewhere,
        };
        let mut defs = self.mentions.row(reg.index()).iter().filter(|m| m.kind != MentionKind::Use);
        let (Some(def), None) = (defs.next(), defs.next()) else { return Place::Elsewhere };
        let inst = self.inst(def.pc);
        let [a, b, ..] = inst.src;
        match inst.op {
            Op::Mov(_) | Op::ToGeneric(Space::Local, _) | Op::FromGeneric(Space::Local, _) => {
                match self.base(a, steps - 1) {
                    Place::Elsewhere if !matches!(inst.op, Op::Mov(_)) => Place::Stack,
                    place => place,
                }
            }
            Op::IAdd(ty, _) => {
                let (base, other) = match (self.base(a, steps - 1), self.base(b, steps - 1)) {
                    (Place::Elsewhere, place) => (place, a),
                    (place, _) => (place, b),
                };
                match (base, other) {
                    (Place::Frame(at), Operand::Imm(by)) if ty.is_wide() => Place::Frame(at + i64::from(by)),
                    (Place::Frame(at), Operand::Imm(by)) => Place::Frame(at + i64::from(by as i32)),
                    (Place::Frame(_), _) => Place::Stack,
                    (place, _) => place,
                }
            }
            _ => Place::Elsewhere,
        }
    }
}
