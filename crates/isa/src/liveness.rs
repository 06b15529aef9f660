//! Where each register and predicate of a function is live.
//!
//! Liveness is found for one value at a time, walking backwards from its uses to its definitions, so the work and
//! the memory are proportional to the result and not to values times blocks.
//!
//! A register that is written several times may hold unrelated values one after the other. Each such life is a *web*:
//! two places belong to the same web only if a value can flow from one to the other, or from both to a third. The
//! allocator gives each web its own register.
//!
//! An instruction has two positions: twice its index where operands are read, one more where results are written. So a
//! result may take the register of an operand that dies in the same instruction. Machines must therefore read the
//! operands of all lanes before they write any.

use crate::cfg::*;
use crate::inst::*;
use crate::module::*;
use crate::visit::*;

/// Positions `start..end` (two per instruction) at which a value is live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    pub start: u32,
    pub end: u32,
}

index_type!(
    /// One life of a register or predicate. Webs of registers come before webs of predicates.
    pub(crate) WebId
);

/// Live ranges of all values of a function: registers first, then predicates.
#[derive(Clone, Debug)]
pub(crate) struct Liveness {
    registers: usize,
    /// Where each value's segments begin.
    starts: Vec<u32>,
    segments: Vec<Segment>,
    /// The web of each segment.
    webs: Vec<WebId>,
    /// The first web of each value; a value's webs are numbered one after the other.
    first_webs: Vec<WebId>,
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
    /// A write that replaces the whole old value.
    Def,
}

/// The number of a value in [`mentions`] and [`Liveness`].
pub(crate) fn value_number(value: Value, registers: usize) -> u32 {
    match value {
        Value::Reg(r, _) => r.0,
        Value::Pred(p) => registers as u32 + p.0,
    }
}

/// All mentions of each value in code order. Within one instruction, reads come before writes.
pub(crate) fn mentions(body: &Body) -> Rows<Mention> {
    let registers = body.registers.len();
    let values = registers + body.predicates as usize;
    let mut all: Vec<(u32, Mention)> = Vec::with_capacity(body.insts.len() * 4);
    for (pc, inst) in body.insts.iter().enumerate() {
        let pc = Pc(pc as u32);
        // In allocated code a wide value is two registers.
        let second = |value: Value| match value {
            Value::Reg(r, Width::Two) if body.allocated => Some(Value::Reg(Reg(r.0 + 1), Width::One)),
            _ => None,
        };
        let words = |value: Value| std::iter::once(value).chain(second(value));
        inst.for_each_use(body, |value| {
            let uses =
                words(value).map(|v| (value_number(v, registers), Mention { pc, kind: MentionKind::Use }));
            all.extend(uses);
        });
        inst.for_each_def(body, |value| {
            let partial = inst.guard != Guard::Always
                || matches!(value, Value::Reg(r, width) if width.words() < body.registers[r.index()].words());
            let kind = if partial { MentionKind::PartialDef } else { MentionKind::Def };
            all.extend(words(value).map(|v| (value_number(v, registers), Mention { pc, kind })));
        });
    }
    Rows::from_pairs(values, all.iter().copied())
}

impl Liveness {
    pub(crate) fn new(body: &Body, cfg: &Cfg) -> Self {
        let mentions = mentions(body);
        let mut walk = Walk::new(cfg);
        let mut live = Liveness {
            registers: body.registers.len(),
            starts: vec![0],
            segments: Vec::new(),
            webs: Vec::new(),
            first_webs: vec![WebId(0)],
        };
        for value in 0..mentions.len() {
            let first = live.first_webs[value];
            let webs = walk.value(cfg, mentions.row(value));
            for (segment, web) in walk.pieces.drain(..) {
                live.segments.push(segment);
                live.webs.push(WebId(first.0 + web));
            }
            live.starts.push(live.segments.len() as u32);
            live.first_webs.push(WebId(first.0 + webs));
        }
        live
    }

    /// Where a value is live: ordered and disjoint. Adjacent segments belong to different webs. A write that is never
    /// read is live at its own position only.
    pub(crate) fn segments(&self, value: Value) -> &[Segment] {
        self.numbered(value_number(value, self.registers) as usize)
    }

    /// The web that a register belongs to at a position where it is live.
    pub(crate) fn register_web(&self, reg: Reg, position: u32) -> Option<WebId> {
        self.web(reg.index(), position)
    }

    /// The web that a predicate belongs to at a position where it is live.
    pub(crate) fn predicate_web(&self, pred: Pred, position: u32) -> Option<WebId> {
        self.web(self.registers + pred.index(), position)
    }

    /// Number of webs of registers and of predicates.
    pub(crate) fn web_counts(&self) -> (usize, usize) {
        let registers = self.first_webs[self.registers].index();
        let all = self.first_webs[self.first_webs.len() - 1].index();
        (registers, all - registers)
    }

    /// The width of each web of registers.
    pub(crate) fn web_widths(&self, body: &Body) -> Vec<Width> {
        let count = |v: usize| (self.first_webs[v + 1].0 - self.first_webs[v].0) as usize;
        body.registers
            .iter()
            .enumerate()
            .flat_map(|(v, &width)| std::iter::repeat_n(width, count(v)))
            .collect()
    }

    /// The live segments of every web.
    pub(crate) fn web_segments(&self) -> Rows<Segment> {
        let (registers, predicates) = self.web_counts();
        let pairs = self.webs.iter().zip(&self.segments).map(|(web, &segment)| (web.0, segment));
        Rows::from_pairs(registers + predicates, pairs)
    }

    fn numbered(&self, value: usize) -> &[Segment] {
        &self.segments[self.starts[value] as usize..self.starts[value + 1] as usize]
    }

    fn web(&self, value: usize, position: u32) -> Option<WebId> {
        let segments = self.numbered(value);
        let at = segments.partition_point(|s| s.end <= position);
        let segment = segments.get(at).filter(|s| s.start <= position);
        segment.map(|_| self.webs[self.starts[value] as usize + at])
    }
}

/// Scratch space of the walk. Marks are per block and valid only if they equal `epoch`, which is new for each value.
struct Walk {
    epoch: u32,
    live_out: Vec<u32>,
    live_in: Vec<u32>,
    kills: Vec<u32>,
    /// Blocks at whose start the value is live.
    entered: Vec<BlockId>,
    stack: Vec<BlockId>,
    through: Vec<BlockId>,
    /// By block: the piece that begins at its start, and the one that lasts to its end.
    first_piece: Vec<u32>,
    last_piece: Vec<u32>,
    /// The result: segments, and each one's web.
    pieces: Vec<(Segment, u32)>,
    /// Union-find over pieces.
    joined: Vec<u32>,
}

impl Walk {
    fn new(cfg: &Cfg) -> Self {
        let marks = vec![0; cfg.len()];
        Walk {
            epoch: 0,
            live_out: marks.clone(),
            live_in: marks.clone(),
            kills: marks.clone(),
            entered: Vec::new(),
            stack: Vec::new(),
            through: Vec::new(),
            first_piece: marks.clone(),
            last_piece: marks,
            pieces: Vec::new(),
            joined: Vec::new(),
        }
    }

    /// Leaves the live segments of the value with these mentions in `pieces` and returns the number of its webs.
    fn value(&mut self, cfg: &Cfg, mentions: &[Mention]) -> u32 {
        self.pieces.clear();
        if mentions.is_empty() {
            return 0;
        }
        self.epoch += 1;
        self.flow(cfg, mentions);
        self.cut(cfg, mentions);
        // With at most one full definition there is one web: partial definitions continue the old value.
        let several = mentions.iter().filter(|m| m.kind == MentionKind::Def).nth(1).is_some();
        let webs = if several { self.join(cfg) } else { 1 };
        self.pieces.sort_unstable_by_key(|(segment, _)| segment.start);
        self.pieces.dedup_by(|(next, next_web), (segment, web)| {
            let continues = next_web == web && next.start <= segment.end;
            if continues {
                segment.end = segment.end.max(next.end);
            }
            continues
        });
        webs
    }

    /// Finds the blocks at whose start and end the value is live.
    fn flow(&mut self, cfg: &Cfg, mentions: &[Mention]) {
        let epoch = self.epoch;
        self.entered.clear();
        for chunk in by_block(cfg, mentions) {
            let block = cfg.block_of(chunk[0].pc);
            let mut killed = false;
            for mention in chunk {
                match mention.kind {
                    MentionKind::Use if !killed && self.live_in[block.index()] != epoch => {
                        self.live_in[block.index()] = epoch;
                        self.entered.push(block);
                    }
                    MentionKind::Def => killed = true,
                    _ => {}
                }
            }
            if killed {
                self.kills[block.index()] = epoch;
            }
        }
        self.through.clear();
        self.stack.clone_from(&self.entered);
        while let Some(block) = self.stack.pop() {
            for &p in cfg.predecessors(block) {
                let at = p.index();
                if self.live_out[at] == epoch {
                    continue;
                }
                self.live_out[at] = epoch;
                self.through.push(p);
                if self.kills[at] != epoch && self.live_in[at] != epoch {
                    self.live_in[at] = epoch;
                    self.entered.push(p);
                    self.stack.push(p);
                }
            }
        }
    }

    /// Cuts the live range into pieces that lie in one block and hold one value.
    fn cut(&mut self, cfg: &Cfg, mentions: &[Mention]) {
        let epoch = self.epoch;
        for chunk in by_block(cfg, mentions) {
            let id = cfg.block_of(chunk[0].pc);
            let block = cfg.blocks[id.index()];
            let mut end = (self.live_out[id.index()] == epoch).then_some(2 * block.end.0);
            self.last_piece[id.index()] = self.pieces.len() as u32;
            for mention in chunk.iter().rev() {
                let read = 2 * mention.pc.0;
                let write = read + 1;
                match mention.kind {
                    MentionKind::Use => end = end.or(Some(write)),
                    MentionKind::Def => self.piece(write, end.take().unwrap_or(write + 1)),
                    MentionKind::PartialDef if end.is_none() => self.piece(write, write + 1),
                    MentionKind::PartialDef => {}
                }
            }
            if let Some(end) = end {
                self.first_piece[id.index()] = self.pieces.len() as u32;
                self.piece(2 * block.start.0, end);
            }
        }
        // Blocks that the value only passes through.
        let mentioned = |id: BlockId| {
            let at = mentions.partition_point(|m| cfg.block_of(m.pc) < id);
            mentions.get(at).is_some_and(|m| cfg.block_of(m.pc) == id)
        };
        for i in 0..self.through.len() {
            let id = self.through[i];
            if !mentioned(id) {
                let block = cfg.blocks[id.index()];
                let piece = self.pieces.len() as u32;
                (self.first_piece[id.index()], self.last_piece[id.index()]) = (piece, piece);
                self.piece(2 * block.start.0, 2 * block.end.0);
            }
        }
    }

    fn piece(&mut self, start: u32, end: u32) {
        self.pieces.push((Segment { start, end }, 0));
    }

    /// Joins pieces between which a value flows, and numbers the webs in the order of their first piece.
    fn join(&mut self, cfg: &Cfg) -> u32 {
        self.joined.clear();
        self.joined.extend(0..self.pieces.len() as u32);
        for &block in &self.entered {
            for &p in cfg.predecessors(block) {
                let a = find(&mut self.joined, self.first_piece[block.index()]);
                let b = find(&mut self.joined, self.last_piece[p.index()]);
                self.joined[a.max(b) as usize] = a.min(b);
            }
        }
        let mut order: Vec<u32> = (0..self.pieces.len() as u32).collect();
        order.sort_unstable_by_key(|&piece| self.pieces[piece as usize].0.start);
        let mut numbers = vec![u32::MAX; self.pieces.len()];
        let mut webs = 0;
        for piece in order {
            let root = find(&mut self.joined, piece) as usize;
            if numbers[root] == u32::MAX {
                numbers[root] = webs;
                webs += 1;
            }
            self.pieces[piece as usize].1 = numbers[root];
        }
        webs
    }
}

/// Splits mentions at block boundaries.
fn by_block<'a>(cfg: &'a Cfg, mentions: &'a [Mention]) -> impl Iterator<Item = &'a [Mention]> {
    mentions.chunk_by(|a, b| cfg.block_of(a.pc) == cfg.block_of(b.pc))
}

fn find(joined: &mut [u32], mut piece: u32) -> u32 {
    while joined[piece as usize] != piece {
        let up = joined[joined[piece as usize] as usize];
        joined[piece as usize] = up;
        piece = up;
    }
    piece
}
