//! Dominator and post-dominator trees, by Lengauer and Tarjan's algorithm with path compression: O(m log n) on any
//! graph, without recursion.

use crate::cfg::*;

/// A tree over blocks: each block's parent is its immediate (post-)dominator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DominatorTree {
    parent: Vec<Option<BlockId>>,
    /// Entry and exit time of a walk over the tree, for constant-time ancestor queries; (0, 0) outside it.
    times: Vec<(u32, u32)>,
    /// Blocks in the tree, each after its parent.
    order: Vec<BlockId>,
}

impl DominatorTree {
    /// The dominators of `cfg`. Blocks that cannot be reached from the entry are not in the tree.
    pub(crate) fn dominators(cfg: &Cfg) -> Self {
        let n = cfg.len();
        if n == 0 {
            return Self::from_parents(Vec::new(), &[]);
        }
        let mut solver = Solver::new(n);
        solver.solve(0, &|b, f| cfg.successors(BlockId(b)).iter().for_each(|s| f(s.0)), &|b, f| {
            cfg.predecessors(BlockId(b)).iter().for_each(|p| f(p.0))
        });
        Self::from_parents(solver.finish(), &[BlockId(0)])
    }

    /// The post-dominators of `cfg`. A block without a parent is post-dominated only by the virtual exit.
    ///
    /// Every block is in the tree. An endless loop has an edge to the virtual exit from where it closes. Blocks from
    /// which every path ends in a trap do not count for their predecessors, since no lane returns from them. Among
    /// themselves, traps count as exits.
    pub(crate) fn post_dominators(cfg: &Cfg) -> Self {
        let n = cfg.len();
        let exit = n as u32;
        let mut roots: Vec<BlockId> =
            cfg.ids().filter(|b| cfg.blocks[b.index()].leave == Leave::Exit).collect();
        let mut reaches = vec![Reach::Nothing; n];
        flood_back(cfg, &roots, Reach::Exit, &mut reaches);
        let traps = peel_traps(cfg, &mut reaches);
        for &b in post_order(cfg).iter() {
            // The first unmarked block in post-order is the deepest of its endless loop: where the loop closes.
            if reaches[b.index()] == Reach::Nothing {
                roots.push(b);
                flood_back(cfg, &[b], Reach::Exit, &mut reaches);
            }
        }

        let mut solver = Solver::new(n + 1);
        for (reach, roots) in [(Reach::Exit, &roots), (Reach::Trap, &traps)] {
            let mut is_root = vec![false; n];
            roots.iter().for_each(|b| is_root[b.index()] = true);
            solver.solve(
                exit,
                &|b, f| {
                    let inside = |b: &&BlockId| reaches[b.index()] == reach;
                    match b == exit {
                        true => roots.iter().filter(inside).for_each(|r| f(r.0)),
                        false => cfg.predecessors(BlockId(b)).iter().filter(inside).for_each(|p| f(p.0)),
                    }
                },
                &|b, f| {
                    if is_root[b as usize] {
                        f(exit);
                    }
                    let inside = |b: &&BlockId| reaches[b.index()] == reach;
                    cfg.successors(BlockId(b)).iter().filter(inside).for_each(|s| f(s.0));
                },
            );
        }
        let mut parents = solver.finish();
        parents.truncate(n);
        let children_of_exit: Vec<BlockId> =
            cfg.ids().filter(|b| parents[b.index()] == Some(BlockId(exit))).collect();
        for b in &children_of_exit {
            parents[b.index()] = None;
        }
        Self::from_parents(parents, &children_of_exit)
    }

    fn from_parents(parent: Vec<Option<BlockId>>, roots: &[BlockId]) -> Self {
        let n = parent.len();
        let edges = parent.iter().enumerate().filter_map(|(b, p)| p.map(|p| (p.0, BlockId(b as u32))));
        let children = Rows::from_pairs(n, edges);
        let mut times = vec![(0, 0); n];
        let mut order = Vec::with_capacity(n);
        let mut clock = 0;
        let mut stack: Vec<(BlockId, usize)> = Vec::new();
        for &root in roots {
            stack.push((root, 0));
            while let Some((block, next)) = stack.last_mut() {
                let block = *block;
                if *next == 0 {
                    clock += 1;
                    times[block.index()].0 = clock;
                    order.push(block);
                }
                if let Some(&child) = children.row(block.index()).get(*next) {
                    *next += 1;
                    stack.push((child, 0));
                } else {
                    times[block.index()].1 = clock;
                    stack.pop();
                }
            }
        }
        DominatorTree { parent, times, order }
    }

    /// The immediate (post-)dominator; `None` for a root, and for blocks outside the tree.
    pub(crate) fn parent(&self, block: BlockId) -> Option<BlockId> {
        self.parent[block.index()]
    }

    pub(crate) fn contains(&self, block: BlockId) -> bool {
        self.times[block.index()].0 != 0
    }

    /// Whether `a` (post-)dominates `b`. Every block in the tree dominates itself.
    pub(crate) fn dominates(&self, a: BlockId, b: BlockId) -> bool {
        let ((a_in, a_out), (b_in, _)) = (self.times[a.index()], self.times[b.index()]);
        a_in != 0 && a_in <= b_in && b_in <= a_out
    }

    /// The tree's blocks, each after its parent.
    pub(crate) fn order(&self) -> &[BlockId] {
        &self.order
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Reach {
    Nothing,
    Exit,
    Trap,
}

/// Marks every block from which `roots` can be reached through blocks that are not marked yet.
fn flood_back(cfg: &Cfg, roots: &[BlockId], mark: Reach, reaches: &mut [Reach]) {
    let mut stack: Vec<BlockId> = Vec::new();
    for &root in roots {
        if reaches[root.index()] == Reach::Nothing {
            reaches[root.index()] = mark;
            stack.push(root);
        }
    }
    while let Some(block) = stack.pop() {
        for &p in cfg.predecessors(block) {
            if reaches[p.index()] == Reach::Nothing {
                reaches[p.index()] = mark;
                stack.push(p);
            }
        }
    }
}

/// Marks the unmarked blocks from which every path ends in a trap, and returns those that trap themselves.
fn peel_traps(cfg: &Cfg, reaches: &mut [Reach]) -> Vec<BlockId> {
    let open = |b: &BlockId, reaches: &[Reach]| reaches[b.index()] == Reach::Nothing;
    let mut left: Vec<usize> = cfg.ids().map(|b| cfg.successors(b).len()).collect();
    let mut stack: Vec<BlockId> = cfg.ids().filter(|b| open(b, reaches) && left[b.index()] == 0).collect();
    while let Some(block) = stack.pop() {
        reaches[block.index()] = Reach::Trap;
        for &p in cfg.predecessors(block) {
            left[p.index()] -= 1;
            if left[p.index()] == 0 && open(&p, reaches) {
                stack.push(p);
            }
        }
    }
    let traps = |b: &BlockId| reaches[b.index()] == Reach::Trap && cfg.blocks[b.index()].leave == Leave::Trap;
    cfg.ids().filter(traps).collect()
}

/// Blocks in post-order of a depth-first walk from the entry, then from every block it did not reach.
pub(crate) fn post_order(cfg: &Cfg) -> Vec<BlockId> {
    let n = cfg.len();
    let mut order = Vec::with_capacity(n);
    let mut seen = vec![false; n];
    let mut stack: Vec<(BlockId, usize)> = Vec::new();
    for root in cfg.ids() {
        if std::mem::replace(&mut seen[root.index()], true) {
            continue;
        }
        stack.push((root, 0));
        while let Some((block, next)) = stack.last_mut() {
            if let Some(&s) = cfg.successors(*block).get(*next) {
                *next += 1;
                if !std::mem::replace(&mut seen[s.index()], true) {
                    stack.push((s, 0));
                }
            } else {
                order.push(*block);
                stack.pop();
            }
        }
    }
    order
}

/// Edges out of (or into) a node, handed to a callback.
type Edges<'a> = &'a dyn Fn(u32, &mut dyn FnMut(u32));

const NONE: u32 = u32::MAX;

/// The state of Lengauer and Tarjan's algorithm that is kept between calls of `solve`, indexed by node.
struct Solver {
    number: Vec<u32>,
    idom: Vec<Option<BlockId>>,
}

impl Solver {
    fn new(n: usize) -> Self {
        Solver { number: vec![NONE; n], idom: vec![None; n] }
    }

    fn finish(self) -> Vec<Option<BlockId>> {
        self.idom
    }

    /// Finds the dominators of all nodes reachable from `root`. May be called again with the same root for a part
    /// of the graph that has no edge into or out of the part solved before.
    fn solve(&mut self, root: u32, successors: Edges, predecessors: Edges) {
        // Depth-first preorder. Successors go on the stack together; a node's tree parent is the node that pushed
        // the entry that is popped first, which is what recursion over reversed lists would do.
        let number = &mut self.number;
        number[root as usize] = NONE;
        let mut vertex: Vec<u32> = Vec::new();
        let mut tree_parent: Vec<u32> = Vec::new();
        let mut stack = vec![(root, 0u32)];
        while let Some((node, parent)) = stack.pop() {
            if number[node as usize] != NONE {
                continue;
            }
            let at = vertex.len() as u32;
            number[node as usize] = at;
            vertex.push(node);
            tree_parent.push(parent);
            successors(node, &mut |s| {
                if number[s as usize] == NONE {
                    stack.push((s, at));
                }
            });
        }

        let n = vertex.len();
        let mut semi: Vec<u32> = (0..n as u32).collect();
        let mut label = semi.clone();
        let mut ancestor = vec![NONE; n];
        let mut dom = vec![0u32; n];
        // Buckets as linked lists: nodes whose semidominator is the index.
        let mut bucket_head = vec![NONE; n];
        let mut bucket_next = vec![NONE; n];
        let mut path = Vec::new();
        let mut eval = |v: u32, ancestor: &mut [u32], label: &mut [u32], semi: &[u32]| -> u32 {
            if ancestor[v as usize] == NONE {
                return v;
            }
            path.clear();
            let mut u = v;
            while ancestor[ancestor[u as usize] as usize] != NONE {
                path.push(u);
                u = ancestor[u as usize];
            }
            while let Some(w) = path.pop() {
                let a = ancestor[w as usize];
                if semi[label[a as usize] as usize] < semi[label[w as usize] as usize] {
                    label[w as usize] = label[a as usize];
                }
                ancestor[w as usize] = ancestor[a as usize];
            }
            label[v as usize]
        };
        for w in (1..n as u32).rev() {
            predecessors(vertex[w as usize], &mut |p| {
                let p = number[p as usize];
                if p != NONE {
                    let u = eval(p, &mut ancestor, &mut label, &semi);
                    semi[w as usize] = semi[w as usize].min(semi[u as usize]);
                }
            });
            let s = semi[w as usize] as usize;
            bucket_next[w as usize] = bucket_head[s];
            bucket_head[s] = w;
            let parent = tree_parent[w as usize];
            ancestor[w as usize] = parent;
            let mut v = std::mem::replace(&mut bucket_head[parent as usize], NONE);
            while v != NONE {
                let u = eval(v, &mut ancestor, &mut label, &semi);
                dom[v as usize] = if semi[u as usize] < semi[v as usize] { u } else { parent };
                v = bucket_next[v as usize];
            }
        }
        for w in 1..n {
            if dom[w] != semi[w] {
                dom[w] = dom[dom[w] as usize];
            }
            self.idom[vertex[w] as usize] = Some(BlockId(vertex[dom[w] as usize]));
        }
    }
}
