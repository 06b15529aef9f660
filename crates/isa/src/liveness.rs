//! Where each register and predicate of a function is live.
//!
//! Liveness is found for one value at a time, walking backwards from its uses to its definitions, so the work and
//! the memory are proportional to the result and not to values times blocks.
//!
//! Positions are twice the instruction's index where operands are read, one more where results are written: a
//! result may take the register of an operand that dies in the same instruction. Machines therefore read the
//! operands of all lanes before they write any.

use crate::cfg::*;
use crate::inst::*;
use crate::module::*;
use crate::visit::*;

/// Positions `start..end` (two per instruction) at which a value is live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// First position.
    pub start: u32,
    /// One past the last.
    pub end: u32,
}

/// Live ranges of all values of a function: registers first, then predicates.
#[derive(Clone, Debug)]
pub struct Liveness {
    registers: usize,
    starts: Vec<u32>,
    segments: Vec<Segment>,
}

/// A read or a write of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mention {
    pub(crate) pc: Pc,
    pub(crate) kind: MentionKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MentionKind {
    Use,
    /// A write that leaves some lanes or words alone.
    PartialDef,
    /// A write after which nothing of the old value is left.
    Def,
}

/// The number of a value in [`Mentions`] and [`Liveness`].
pub(crate) fn value_number(value: Value, registers: usize) -> u32 {
    match value {
        Value::Reg(r, _) => r.0,
        Value::Pred(p) => registers as u32 + p.0,
    }
}

/// All mentions of each value, in the order of the code; in one instruction reads come before writes.
pub(crate) fn mentions(body: &Body) -> Rows<Mention> {
    let registers = body.registers.len();
    let values = registers + body.predicates as usize;
    let mut all: Vec<(u32, Mention)> = Vec::with_capacity(body.insts.len() * 4);
    for (pc, inst) in body.insts.iter().enumerate() {
        let pc = Pc(pc as u32);
        inst.for_each_use(body, |value| {
            all.push((value_number(value, registers), Mention { pc, kind: MentionKind::Use }));
        });
        inst.for_each_def(body, |value| {
            let partial = inst.guard != Guard::Always
                || matches!(value, Value::Reg(r, width) if width.words() < body.registers[r.index()].words());
            let kind = if partial { MentionKind::PartialDef } else { MentionKind::Def };
            all.push((value_number(value, registers), Mention { pc, kind }));
        });
    }
    Rows::from_pairs(values, all.iter().copied())
}

impl Liveness {
    /// Finds where every value of `body` is live.
    pub fn new(body: &Body, cfg: &Cfg) -> Self {
        let mentions = mentions(body);
        let mut walk = Walk::new(cfg);
        let mut starts = Vec::with_capacity(mentions.len() + 1);
        let mut segments = Vec::new();
        starts.push(0);
        for value in 0..mentions.len() {
            walk.value(cfg, mentions.row(value), &mut segments);
            starts.push(segments.len() as u32);
        }
        Liveness { registers: body.registers.len(), starts, segments }
    }

    /// Where a register is live: ordered, disjoint, not touching. A write that is never read is live where it happens.
    pub fn register(&self, reg: Reg) -> &[Segment] {
        self.value(reg.index())
    }

    /// Where a predicate is live.
    pub fn predicate(&self, pred: Pred) -> &[Segment] {
        self.value(self.registers + pred.index())
    }

    pub(crate) fn value(&self, value: usize) -> &[Segment] {
        &self.segments[self.starts[value] as usize..self.starts[value + 1] as usize]
    }

    /// The most words of registers live at one position: no allocation can do with fewer.
    pub fn max_live_words(&self, body: &Body) -> u32 {
        let words = body.registers.iter().map(|w| w.words());
        self.max_weight(words.enumerate(), body.insts.len())
    }

    /// The most predicates live at one position.
    pub fn max_live_predicates(&self, body: &Body) -> u32 {
        let predicates = (0..body.predicates as usize).map(|p| (self.registers + p, 1));
        self.max_weight(predicates, body.insts.len())
    }

    fn max_weight(&self, values: impl Iterator<Item = (usize, u32)>, insts: usize) -> u32 {
        let mut change = vec![0i64; 2 * insts + 2];
        for (value, weight) in values {
            for s in self.value(value) {
                change[s.start as usize] += i64::from(weight);
                change[s.end as usize] -= i64::from(weight);
            }
        }
        let mut live = 0;
        let peaks = change.iter().map(|c| {
            live += c;
            live
        });
        peaks.max().unwrap_or(0) as u32
    }
}

/// Scratch space of the walk: one mark per block, valid if it carries the running value's number.
struct Walk {
    turn: u32,
    live_out: Vec<u32>,
    live_in: Vec<u32>,
    kills: Vec<u32>,
    stack: Vec<BlockId>,
    through: Vec<BlockId>,
}

impl Walk {
    fn new(cfg: &Cfg) -> Self {
        let marks = vec![0; cfg.len()];
        Walk {
            turn: 0,
            live_out: marks.clone(),
            live_in: marks.clone(),
            kills: marks,
            stack: Vec::new(),
            through: Vec::new(),
        }
    }

    /// Appends the live segments of the value with these mentions.
    fn value(&mut self, cfg: &Cfg, mentions: &[Mention], out: &mut Vec<Segment>) {
        if mentions.is_empty() {
            return;
        }
        self.turn += 1;
        let turn = self.turn;
        let by_block = || mentions.chunk_by(|a, b| cfg.block_of(a.pc) == cfg.block_of(b.pc));

        // Blocks that need the value from before, and blocks that do not let an older one through.
        for chunk in by_block() {
            let block = cfg.block_of(chunk[0].pc);
            let mut killed = false;
            for mention in chunk {
                match mention.kind {
                    MentionKind::Use if !killed && self.live_in[block.index()] != turn => {
                        self.live_in[block.index()] = turn;
                        self.stack.push(block);
                    }
                    MentionKind::Def => killed = true,
                    _ => {}
                }
            }
            if killed {
                self.kills[block.index()] = turn;
            }
        }

        self.through.clear();
        while let Some(block) = self.stack.pop() {
            for &p in cfg.predecessors(block) {
                let at = p.index();
                if self.live_out[at] == turn {
                    continue;
                }
                self.live_out[at] = turn;
                self.through.push(p);
                if self.kills[at] != turn && self.live_in[at] != turn {
                    self.live_in[at] = turn;
                    self.stack.push(p);
                }
            }
        }

        let first = out.len();
        for chunk in by_block() {
            let id = cfg.block_of(chunk[0].pc);
            let block = cfg.blocks[id.index()];
            let mut end = (self.live_out[id.index()] == turn).then_some(2 * block.end.0);
            for mention in chunk.iter().rev() {
                let read = 2 * mention.pc.0;
                let write = read + 1;
                match mention.kind {
                    MentionKind::Use => end = end.or(Some(write)),
                    MentionKind::Def => {
                        out.push(Segment { start: write, end: end.take().unwrap_or(write + 1) });
                    }
                    MentionKind::PartialDef if end.is_none() => {
                        out.push(Segment { start: write, end: write + 1 });
                    }
                    MentionKind::PartialDef => {}
                }
            }
            if let Some(end) = end {
                out.push(Segment { start: 2 * block.start.0, end });
            }
        }
        // Blocks it only passes through. Those with mentions have been dealt with above.
        let mentioned = |id: BlockId| {
            let at = mentions.partition_point(|m| cfg.block_of(m.pc) < id);
            mentions.get(at).is_some_and(|m| cfg.block_of(m.pc) == id)
        };
        for &id in &self.through {
            if !mentioned(id) {
                let block = cfg.blocks[id.index()];
                out.push(Segment { start: 2 * block.start.0, end: 2 * block.end.0 });
            }
        }

        out[first..].sort_unstable_by_key(|s| s.start);
        let mut last = first;
        for i in first + 1..out.len() {
            if out[i].start <= out[last].end {
                out[last].end = out[last].end.max(out[i].end);
            } else {
                last += 1;
                out[last] = out[i];
            }
        }
        out.truncate(last + 1);
    }
}
