//! Dominators, reconvergence and loops.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::asm::*;
use crate::cfg::*;
use crate::dominators::*;
use crate::loops::*;
use crate::*;

/// How a generated block ends. Numbers are blocks, modulo their count.
#[derive(Clone, Debug)]
enum End {
    Return,
    GuardedExit,
    Fall,
    Jump(usize),
    Branch(usize),
    Table(Vec<usize>),
}

fn end() -> impl Strategy<Value = End> {
    prop_oneof![
        1 => Just(End::Return),
        1 => Just(End::GuardedExit),
        3 => Just(End::Fall),
        2 => any::<usize>().prop_map(End::Jump),
        6 => any::<usize>().prop_map(End::Branch),
        1 => prop::collection::vec(any::<usize>(), 1..5).prop_map(End::Table),
    ]
}

/// Two instructions per block, then a return.
fn graph(ends: &[End]) -> Body {
    let n = ends.len() + 1;
    let at = |block: usize| 2 * (block % n) as u32;
    let mut tables = Vec::new();
    let mut insts = Vec::new();
    for e in ends {
        insts.push(op(Op::Nop));
        insts.push(match e {
            End::Return => ret(),
            End::GuardedExit => op(Op::Exit).when(0),
            End::Fall => op(Op::Nop),
            End::Jump(b) => bra(at(*b)),
            End::Branch(b) => bra(at(*b)).when(0),
            End::Table(targets) => {
                tables.push(targets.iter().map(|&b| Pc(at(b))).collect());
                Inst::new(Op::Brx, Dst::None, &[r(0), imm(tables.len() as u32 - 1)])
            }
        });
    }
    insts.push(op(Op::Nop));
    insts.push(ret());
    Body { tables, ..body(1, &[], 1, insts) }
}

/// Dominator sets, by iterating the definition to its greatest fixed point. `None`: not reachable.
fn naive(n: usize, roots: &[usize], preds: &dyn Fn(usize) -> Vec<usize>) -> Vec<Option<BTreeSet<usize>>> {
    let mut sets: Vec<Option<BTreeSet<usize>>> = vec![None; n];
    loop {
        let mut changed = false;
        for b in 0..n {
            let known: Vec<_> = preds(b).into_iter().filter_map(|p| sets[p].clone()).collect();
            let mut set = if roots.contains(&b) {
                BTreeSet::new()
            } else {
                let Some(first) = known.first().cloned() else { continue };
                known[1..].iter().fold(first, |a, b| a.intersection(b).copied().collect())
            };
            set.insert(b);
            if sets[b].as_ref() != Some(&set) {
                sets[b] = Some(set);
                changed = true;
            }
        }
        if !changed {
            return sets;
        }
    }
}

/// The member of a block's strict dominators that all others dominate.
fn immediate(sets: &[Option<BTreeSet<usize>>], b: usize) -> Option<usize> {
    let strict = |b: usize| sets[b].iter().flatten().copied().filter(move |&d| d != b);
    strict(b).max_by_key(|&d| strict(d).count())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn dominators_match_their_definition(ends in prop::collection::vec(end(), 0..24)) {
        let body = graph(&ends);
        let cfg = Cfg::new(&body);
        let n = cfg.len();
        let list = |ids: &[BlockId]| ids.iter().map(|b| b.index()).collect::<Vec<_>>();

        let tree = DominatorTree::dominators(&cfg);
        let sets = naive(n, &[0], &|b| list(cfg.predecessors(BlockId(b as u32))));
        for b in 0..n {
            let id = BlockId(b as u32);
            prop_assert_eq!(tree.contains(id), sets[b].is_some());
            prop_assert_eq!(tree.parent(id).map(|p| p.index()), immediate(&sets, b));
            for a in 0..n {
                let dominates = sets[b].as_ref().is_some_and(|s| s.contains(&a));
                prop_assert_eq!(tree.dominates(BlockId(a as u32), id), dominates);
            }
        }

        // The virtual exit is node n. Endless loops follow a different rule, so only graphs without any are compared.
        let tree = DominatorTree::post_dominators(&cfg);
        let exits: Vec<usize> = (0..n).filter(|&b| cfg.blocks[b].leave == Leave::Exit).collect();
        let sets = naive(n + 1, &[n], &|b| {
            let mut next = if b < n { list(cfg.successors(BlockId(b as u32))) } else { Vec::new() };
            next.extend(exits.contains(&b).then_some(n));
            next
        });
        if sets.iter().all(|s| s.is_some()) {
            for b in 0..n {
                let expected = immediate(&sets, b).filter(|&p| p != n);
                prop_assert_eq!(tree.parent(BlockId(b as u32)).map(|p| p.index()), expected);
            }
        } else {
            prop_assert!(cfg.ids().all(|b| tree.contains(b)));
        }
    }

    #[test]
    fn loops_match_their_definition(ends in prop::collection::vec(end(), 0..24)) {
        let body = graph(&ends);
        let cfg = Cfg::new(&body);
        let tree = DominatorTree::dominators(&cfg);
        let forest = LoopForest::new(&cfg, &tree);
        let bodies = forest.bodies();
        let mut headers = Vec::new();
        for header in cfg.ids() {
            let latches: Vec<BlockId> =
                cfg.predecessors(header).iter().copied().filter(|&p| tree.dominates(header, p)).collect();
            if latches.is_empty() {
                continue;
            }
            let mut members = BTreeSet::from([header]);
            let mut stack = latches.clone();
            while let Some(b) = stack.pop() {
                if members.insert(b) {
                    stack.extend(cfg.predecessors(b).iter().filter(|&&p| tree.contains(p)));
                }
            }
            headers.push((header, latches, members));
        }
        prop_assert_eq!(headers.len(), forest.loops.len());
        for (i, (header, latches, members)) in headers.iter().enumerate() {
            let l = &forest.loops[i];
            prop_assert_eq!(l.header, *header);
            prop_assert_eq!(&l.latches, latches);
            prop_assert_eq!(bodies.blocks(LoopId(i as u32)).iter().copied().collect::<BTreeSet<_>>(), members.clone());
            let around = headers.iter().filter(|(_, _, other)| members.is_subset(other)).count();
            prop_assert_eq!(l.depth as usize, around);
        }
    }
}

/// The reconvergence point of the instruction at `pc`.
fn meets(insts: Vec<Inst>, pc: usize) -> Pc {
    link::prepare(&body(4, &[], 4, insts), link::Passes::default()).body.insts[pc]
        .reconvergence()
        .expect("a branch")
}

#[test]
fn branches_meet_at_the_immediate_post_dominator() {
    let diamond = vec![bra(3).when(0), op(Op::Nop), bra(4), op(Op::Nop), ret()];
    assert_eq!(meets(diamond.clone(), 0), Pc(4));
    assert_eq!(meets(diamond, 2), Pc(4));
    // Both sides return.
    assert_eq!(meets(vec![bra(2).when(0), ret(), ret()], 0), Pc::RETURN);
    // The lanes that leave a loop meet after its latch.
    assert_eq!(meets(vec![op(Op::Nop), bra(0).when(0), op(Op::Nop), ret()], 1), Pc(2));
    // A branch table.
    let table = vec![Inst::new(Op::Brx, Dst::None, &[r(0), imm(0)]), bra(3), bra(3), ret()];
    let switch = Body { tables: vec![vec![Pc(1), Pc(2)]], ..body(1, &[], 0, table) };
    assert_eq!(link::prepare(&switch, link::Passes::default()).body.insts[0].reconvergence(), Some(Pc(3)));
}

#[test]
fn traps_do_not_count() {
    let assertion = |end| vec![bra(3).when(0), op(Op::Nop), bra(4), op(end), op(Op::Nop), ret()];
    assert_eq!(meets(assertion(Op::Trap), 0), Pc(1));
    assert_eq!(meets(assertion(Op::AssertFail), 0), Pc(1));
    assert_eq!(meets(assertion(Op::Exit), 0), Pc::RETURN);
    // A branch between two traps.
    assert_eq!(meets(vec![bra(3).when(0), op(Op::Nop), bra(4), op(Op::Nop), op(Op::Trap)], 0), Pc(4));
}

#[test]
fn endless_loops_keep_their_joins() {
    // while (true) { if (p) a; else b; }
    let server = vec![bra(3).when(0), op(Op::Nop), bra(4), op(Op::Nop), op(Op::Nop), bra(0)];
    assert_eq!(meets(server, 0), Pc(4));
    // The same with an assertion in it.
    let server = vec![bra(6).when(1), bra(4).when(0), op(Op::Nop), bra(5), op(Op::Nop), bra(0), op(Op::Trap)];
    assert_eq!(meets(server.clone(), 1), Pc(5));
    assert_eq!(meets(server, 0), Pc(1));
}

#[test]
fn blocks_end_where_control_may_leave() {
    let insts = vec![
        op(Op::Exit).when(0),
        op(Op::Call),
        op(Op::Nop),
        op(Op::Trap).unless(0),
        ret(),
        op(Op::Nop),
        ret(),
    ];
    let body = Body {
        calls: vec![CallSite { callee: Callee::Direct(FuncId(0)), args: Vec::new(), returns: Vec::new() }],
        ..body(0, &[], 1, insts)
    };
    let cfg = Cfg::new(&body);
    let ends: Vec<(u32, Leave)> = cfg.blocks.iter().map(|b| (b.end.0, b.leave)).collect();
    assert_eq!(ends, [(1, Leave::Exit), (4, Leave::Trap), (5, Leave::Exit), (7, Leave::Exit)]);
    assert_eq!(cfg.successors(BlockId(0)), [BlockId(1)]);
    assert_eq!(cfg.successors(BlockId(1)), [BlockId(2)]);
    assert!(cfg.successors(BlockId(2)).is_empty() && cfg.predecessors(BlockId(3)).is_empty());
}

#[test]
fn large_graphs() {
    // A chain in which every block may leave: quadratic for algorithms that intersect along the tree.
    let n = 100_000u32;
    let mut insts: Vec<Inst> = (0..n).map(|_| bra(n).when(0)).collect();
    insts.push(ret());
    let cfg = Cfg::new(&body(0, &[], 1, insts));
    let dominators = DominatorTree::dominators(&cfg);
    let post = DominatorTree::post_dominators(&cfg);
    assert_eq!(dominators.parent(BlockId(n)), Some(BlockId(0)));
    assert_eq!(post.parent(BlockId(n / 2)), Some(BlockId(n)));

    // Loops nested 20,000 deep.
    let depth = 20_000u32;
    let mut insts: Vec<Inst> = (0..depth).map(|_| op(Op::Nop)).collect();
    insts.extend((0..depth).map(|i| bra(depth - 1 - i).when(0)));
    insts.push(ret());
    let cfg = Cfg::new(&body(0, &[], 1, insts));
    let forest = LoopForest::new(&cfg, &DominatorTree::dominators(&cfg));
    assert_eq!(forest.loops.len() as u32, depth);
    assert_eq!(forest.loops.last().map(|l| l.depth), Some(depth));
}
