//! An unbalanced tree whose nodes have children or none by a hash: a search that nobody can divide in advance.

use warploom::Result;
use warploom_flow::{Graph, Level};

use super::{CTAS, EFFORT, GROUP, LAYOUT, ON, RESERVE, SCHEDULE, Target, flow_ptx, halves, whole, width};
use crate::random::Random;
use crate::work::{Bench, Check, Param, SEED, Values, Workload, equal};

const ROOTS: Param = Param::new("roots", "nodes at the top", 64).range(1, 1 << 20);
const CHILDREN: Param = Param::new("children", "children of a node that has any", 8).range(1, 32);
const INNER: Param = Param::new("inner", "nodes with children, of a million", 100_000).range(0, 1_000_000);
const WIDTH: Param = width(32_768);

pub(in crate::work) const WORKLOAD: Workload = Workload {
    name: "tree",
    about: "channels: a search of an unbalanced tree that grows from a hash",
    params: &[ROOTS, CHILDREN, INNER, WIDTH, GROUP, LAYOUT, RESERVE, EFFORT, ON, SCHEDULE, CTAS, SEED],
    run,
};

/// A hash as two words.
type Node = [u32; 2];

/// A tree, or several with their roots side by side.
struct Tree {
    roots: Vec<u64>,
    children: u32,
    /// Nodes whose upper half is below this have children.
    inner: u32,
}

impl Tree {
    fn new(values: &Values) -> Tree {
        let mut random = Random::new(values.get(&SEED));
        let words = random.words(2 * values.get::<usize>(&ROOTS));
        let roots = words.chunks_exact(2).map(|node| whole([node[0], node[1]])).collect();
        let inner = values.get::<u64>(&INNER) * u64::from(u32::MAX) / 1_000_000;
        Tree { roots, children: values.get(&CHILDREN), inner: inner as u32 }
    }

    fn children(node: u64, inner: u32, children: u32) -> impl Iterator<Item = u64> {
        let count = if ((node >> 32) as u32) < inner { children } else { 0 };
        (0..count).map(move |number| {
            let hash = node.wrapping_add((u64::from(number) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
            let hash = (hash ^ hash >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let hash = (hash ^ hash >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
            hash ^ hash >> 31
        })
    }

    /// The number of nodes.
    fn nodes(&self) -> u32 {
        let mut waiting = self.roots.clone();
        let mut visited = 0;
        while let Some(node) = waiting.pop() {
            visited += 1;
            waiting.extend(Tree::children(node, self.inner, self.children));
        }
        visited
    }

    fn graph(&self, width: u32, visited: u64) -> Graph {
        let (children, inner) = (self.children, self.inner);
        let mut graph = Graph::new("tree");
        let nodes = graph.channel::<Node>("nodes", width);
        let visit = graph.kernel("visit");
        graph.reads::<Node>(visit, nodes).writes::<Node>(visit, nodes, Level::Same, children);
        graph.constants(visit, [nodes.into(), visited.into(), children.into(), inner.into()]);
        graph.on_host(visit, move |lane| {
            let node = whole(lane.read::<Node>());
            lane.memory().add(visited, 1);
            let below: Vec<Node> = Tree::children(node, inner, children).map(halves).collect();
            if !below.is_empty() {
                lane.put(nodes, 0, &below);
            }
        });
        for &root in &self.roots {
            graph.put(nodes, &halves(root));
        }
        graph
    }
}

pub(super) fn graph_of(values: &Values) -> Graph {
    Tree::new(values).graph(values.get(&WIDTH), 0)
}

fn run(bench: &mut Bench<'_>, values: &Values) -> Result<Check> {
    let tree = Tree::new(values);
    let mut target = Target::new(bench, values, flow_ptx!("tree"))?;
    let visited = target.words("visited", &[0])?;
    target.run(values, &mut tree.graph(values.get(&WIDTH), visited.address()))?;
    Ok(equal("numbers of nodes", &target.read(&visited)?, &[tree.nodes()]))
}
