//! The control-flow graph of a function: basic blocks and the edges between them. Start at [`Cfg::new`].

use crate::inst::*;
use crate::module::*;

index_type!(
    /// A basic block, numbered in the order of the code.
    pub(crate) BlockId
);

/// A list of items per row, all in one allocation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rows<T> {
    starts: Vec<u32>,
    items: Vec<T>,
}

impl<T: Copy> Rows<T> {
    /// Builds `rows` lists out of (row, item) pairs; each list keeps the pairs' order.
    pub(crate) fn from_pairs(rows: usize, pairs: impl Iterator<Item = (u32, T)> + Clone) -> Self {
        let mut starts = vec![0u32; rows + 1];
        let mut first = None;
        for (row, item) in pairs.clone() {
            starts[row as usize + 1] += 1;
            first.get_or_insert(item);
        }
        for i in 0..rows {
            starts[i + 1] += starts[i];
        }
        let Some(first) = first else { return Rows { starts, items: Vec::new() } };
        let mut items = vec![first; starts[rows] as usize];
        let mut cursor = starts.clone();
        for (row, item) in pairs {
            items[cursor[row as usize] as usize] = item;
            cursor[row as usize] += 1;
        }
        Rows { starts, items }
    }

    pub(crate) fn len(&self) -> usize {
        self.starts.len().saturating_sub(1)
    }

    #[inline]
    pub(crate) fn row(&self, row: usize) -> &[T] {
        &self.items[self.starts[row] as usize..self.starts[row + 1] as usize]
    }
}

/// How control can leave a function at the end of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leave {
    /// It cannot: control goes on to a successor.
    No,
    /// The thread returns or ends. If only some lanes do, the block has successors as well.
    Exit,
    /// The launch ends with an error.
    Trap,
}

/// Instructions `start..end` of a function: entered only at the first, left only at the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    pub start: Pc,
    /// One past the last instruction.
    pub end: Pc,
    pub leave: Leave,
}

impl Block {
    pub(crate) fn last(&self) -> Pc {
        Pc(self.end.0 - 1)
    }
}

/// The control-flow graph of a function. Block 0 is the entry. Calls do not end a block.
#[derive(Clone, Debug)]
pub(crate) struct Cfg {
    pub blocks: Vec<Block>,
    successors: Rows<BlockId>,
    predecessors: Rows<BlockId>,
    block_of: Vec<BlockId>,
}

impl Cfg {
    /// Finds the blocks of `body`. A branch target outside the body counts as leaving the function.
    pub(crate) fn new(body: &Body) -> Self {
        let n = body.insts.len();
        let mut leader = vec![false; n + 1];
        let mut lead = |pc: u32| {
            if let Some(slot) = leader.get_mut(pc as usize) {
                *slot = true;
            }
        };
        lead(0);
        for (pc, inst) in body.insts.iter().enumerate() {
            match inst.op {
                Op::Bra => inst.branch_target().into_iter().for_each(|t| lead(t.0)),
                Op::Brx => table(body, inst).iter().for_each(|t| lead(t.0)),
                Op::Ret | Op::Exit | Op::Trap | Op::AssertFail => {}
                _ => continue,
            }
            lead(pc as u32 + 1);
        }

        let mut blocks: Vec<Block> = Vec::new();
        let mut block_of = Vec::with_capacity(n);
        for (pc, &leads) in leader[..n].iter().enumerate() {
            let pc = pc as u32;
            if leads {
                blocks.push(Block { start: Pc(pc), end: Pc(pc + 1), leave: Leave::No });
            } else if let Some(block) = blocks.last_mut() {
                block.end = Pc(pc + 1);
            }
            block_of.push(BlockId(blocks.len() as u32 - 1));
        }

        let mut edges: Vec<(u32, BlockId)> = Vec::new();
        let mut targets: Vec<BlockId> = Vec::new();
        for (id, block) in blocks.iter_mut().enumerate() {
            let inst = &body.insts[block.last().index()];
            targets.clear();
            let mut go = |pc: Pc, leave: &mut Leave| match block_of.get(pc.index()) {
                Some(&target) => targets.push(target),
                None => *leave = Leave::Exit,
            };
            match inst.op {
                Op::Bra => inst.branch_target().into_iter().for_each(|t| go(t, &mut block.leave)),
                Op::Brx => table(body, inst).iter().for_each(|&t| go(t, &mut block.leave)),
                Op::Ret | Op::Exit => block.leave = Leave::Exit,
                Op::Trap | Op::AssertFail => block.leave = Leave::Trap,
                _ => {}
            }
            if !inst.ends_flow() {
                go(block.end, &mut block.leave);
            }
            targets.sort_unstable();
            targets.dedup();
            edges.extend(targets.iter().map(|&t| (id as u32, t)));
        }
        let successors = Rows::from_pairs(blocks.len(), edges.iter().copied());
        let predecessors =
            Rows::from_pairs(blocks.len(), edges.iter().map(|&(from, to)| (to.0, BlockId(from))));
        Cfg { blocks, successors, predecessors, block_of }
    }

    pub(crate) fn len(&self) -> usize {
        self.blocks.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// Blocks that can follow `block`, each once, in order.
    pub(crate) fn successors(&self, block: BlockId) -> &[BlockId] {
        self.successors.row(block.index())
    }

    /// Blocks that can precede `block`, each once, in order.
    pub(crate) fn predecessors(&self, block: BlockId) -> &[BlockId] {
        self.predecessors.row(block.index())
    }

    pub(crate) fn block_of(&self, pc: Pc) -> BlockId {
        self.block_of[pc.index()]
    }

    pub(crate) fn ids(&self) -> impl Iterator<Item = BlockId> + use<> {
        (0..self.blocks.len() as u32).map(BlockId)
    }
}

/// The targets of a `brx`.
pub(crate) fn table<'a>(body: &'a Body, inst: &Inst) -> &'a [Pc] {
    match inst.src[1] {
        Operand::Imm(table) => &body.tables[table as usize],
        _ => &[],
    }
}
