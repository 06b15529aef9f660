//! Natural loops of a function and their nesting. Start at [`LoopForest::new`].

use crate::cfg::*;
use crate::dominators::*;

index_type!(
    /// A loop of a function.
    pub(crate) LoopId
);

/// A natural loop: the blocks from which a backward edge to the header can be reached without passing the header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NaturalLoop {
    /// The loop's entry, which dominates its other blocks.
    pub header: BlockId,
    /// Blocks with an edge back to the header.
    pub latches: Vec<BlockId>,
    /// The next enclosing loop.
    pub parent: Option<LoopId>,
    /// 1 for an outermost loop.
    pub depth: u32,
}

/// All natural loops of a function, ordered by header.
#[derive(Clone, Debug)]
pub(crate) struct LoopForest {
    pub loops: Vec<NaturalLoop>,
    innermost: Vec<Option<LoopId>>,
}

impl LoopForest {
    pub(crate) fn new(cfg: &Cfg, dominators: &DominatorTree) -> Self {
        let mut innermost: Vec<Option<LoopId>> = vec![None; cfg.len()];
        let mut loops: Vec<NaturalLoop> = Vec::new();
        let mut outermost: Vec<LoopId> = Vec::new();
        let mut stack: Vec<BlockId> = Vec::new();
        // Inner headers first: a loop is complete before any loop around it is begun.
        for &header in dominators.order().iter().rev() {
            let latches: Vec<BlockId> = cfg
                .predecessors(header)
                .iter()
                .copied()
                .filter(|&p| dominators.dominates(header, p))
                .collect();
            if latches.is_empty() {
                continue;
            }
            let id = LoopId(loops.len() as u32);
            outermost.push(id);
            stack.extend(&latches);
            while let Some(block) = stack.pop() {
                match innermost[block.index()] {
                    None => {
                        innermost[block.index()] = Some(id);
                        if block != header {
                            stack.extend(cfg.predecessors(block).iter().filter(|&&p| dominators.contains(p)));
                        }
                    }
                    Some(inner) => {
                        let inner = find(&mut outermost, inner);
                        if inner != id {
                            outermost[inner.index()] = id;
                            loops[inner.index()].parent = Some(id);
                            let header = loops[inner.index()].header;
                            stack
                                .extend(cfg.predecessors(header).iter().filter(|&&p| dominators.contains(p)));
                        }
                    }
                }
            }
            innermost[header.index()] = innermost[header.index()].or(Some(id));
            loops.push(NaturalLoop { header, latches, parent: None, depth: 1 });
        }

        // Outer loops come later in this order, so depths are set from the back.
        for i in (0..loops.len()).rev() {
            if let Some(parent) = loops[i].parent {
                loops[i].depth = loops[parent.index()].depth + 1;
            }
        }
        let mut by_header: Vec<u32> = (0..loops.len() as u32).collect();
        by_header.sort_unstable_by_key(|&l| loops[l as usize].header);
        let mut rename = vec![LoopId(0); loops.len()];
        by_header.iter().enumerate().for_each(|(new, &old)| rename[old as usize] = LoopId(new as u32));
        let mut sorted: Vec<NaturalLoop> = by_header.iter().map(|&l| loops[l as usize].clone()).collect();
        sorted.iter_mut().for_each(|l| l.parent = l.parent.map(|p| rename[p.index()]));
        innermost.iter_mut().for_each(|l| *l = l.map(|l| rename[l.index()]));
        LoopForest { loops: sorted, innermost }
    }

    /// The blocks of every loop, including those of nested loops.
    pub(crate) fn bodies(&self) -> LoopBodies {
        // Number the loops in preorder of the forest: nested loops, and their blocks, come right after their parent.
        let n = self.loops.len();
        let parents = self.loops.iter().enumerate();
        let children =
            Rows::from_pairs(n, parents.filter_map(|(i, l)| Some((l.parent?.0, LoopId(i as u32)))));
        let mut number = vec![0u32; n];
        let mut size = vec![1u32; n];
        let mut preorder: Vec<LoopId> = Vec::with_capacity(n);
        let mut stack: Vec<LoopId> =
            (0..n as u32).rev().map(LoopId).filter(|l| self.loops[l.index()].parent.is_none()).collect();
        while let Some(l) = stack.pop() {
            number[l.index()] = preorder.len() as u32;
            preorder.push(l);
            stack.extend(children.row(l.index()).iter().rev());
        }
        for l in preorder.iter().rev() {
            if let Some(parent) = self.loops[l.index()].parent {
                size[parent.index()] += size[l.index()];
            }
        }
        let mut blocks: Vec<(u32, BlockId)> = Vec::new();
        for (b, innermost) in self.innermost.iter().enumerate() {
            blocks.extend(innermost.map(|l| (number[l.index()], BlockId(b as u32))));
        }
        blocks.sort_unstable();
        let first = |number: u32| blocks.partition_point(|&(l, _)| l < number);
        let range = |l: usize| first(number[l])..first(number[l] + size[l]);
        LoopBodies { ranges: (0..n).map(range).collect(), blocks: blocks.iter().map(|&(_, b)| b).collect() }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct LoopBodies {
    blocks: Vec<BlockId>,
    ranges: Vec<std::ops::Range<usize>>,
}

impl LoopBodies {
    /// The blocks of one loop, the header first.
    pub(crate) fn blocks(&self, id: LoopId) -> &[BlockId] {
        &self.blocks[self.ranges[id.index()].clone()]
    }
}

fn find(outermost: &mut [LoopId], mut id: LoopId) -> LoopId {
    while outermost[id.index()] != id {
        let up = outermost[outermost[id.index()].index()];
        outermost[id.index()] = up;
        id = up;
    }
    id
}
