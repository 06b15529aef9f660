//! A graph as the aggregator sees it: single channels, which ones feed which, and how deep each is.

use super::{Graph, Level, Node, Predicate};

/// One channel: a level of a stack.
#[derive(Clone, Debug)]
pub(crate) struct Cell {
    pub node: Node,
    pub level: u32,
    /// The kernel that reads it.
    pub kernel: usize,
    /// Depth in the recursion. A continuation after a sync waits for everything deeper.
    pub depth: u32,
    pub after_sync: bool,
    /// Channels whose kernels write this one.
    pub feeders: Vec<usize>,
    /// The most elements that a lane reserves here at once.
    pub most: u32,
    /// Channels that this one's kernel writes, each with its upper bound per element.
    pub feeds: Vec<(usize, u32)>,
    pub predicate: Predicate,
}

/// What kernels and channels are called in messages.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    pub kernels: Vec<String>,
    /// By channel: "channel `tasks`", or "level 2 of channel `tasks`".
    pub channels: Vec<String>,
    /// By stack, with the number of levels.
    pub stacks: Vec<(String, u32)>,
}

/// All channels, those of a stack side by side.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub cells: Vec<Cell>,
    /// Index of each stack's first channel.
    pub first: Vec<usize>,
    pub names: Names,
}

impl Plan {
    /// The graph must have passed [`Graph::check`].
    pub(crate) fn new(graph: &Graph) -> Plan {
        let mut first = Vec::new();
        let mut cells = Vec::new();
        for (at, stack) in graph.stacks.iter().enumerate() {
            first.push(cells.len());
            let reader = graph.kernels.iter().position(|k| k.reads.is_some_and(|(node, _)| node == Node(at)));
            let kernel = reader.unwrap_or(0);
            let above = depth_above(graph, Node(at));
            cells.extend((0..stack.levels).map(|level| Cell {
                node: Node(at),
                level,
                kernel,
                depth: above + level,
                after_sync: graph.kernels[kernel].after_sync,
                feeders: Vec::new(),
                most: 1,
                feeds: Vec::new(),
                predicate: stack.predicate.clone(),
            }));
        }
        for from in 0..cells.len() {
            for writes in &graph.kernels[cells[from].kernel].writes {
                let levels = graph.stacks[writes.node.0].levels;
                let own = cells[from].level;
                let to_levels = match writes.level {
                    Level::Same if levels == 1 => 0..1,
                    Level::Same => own..own + 1,
                    Level::Next => own + 1..own + 2,
                    Level::First => 0..1,
                    Level::Any => 0..levels,
                };
                // The last level of a recursion spawns nothing.
                for level in to_levels.filter(|&level| level < levels) {
                    let to = first[writes.node.0] + level as usize;
                    cells[to].feeders.push(from);
                    cells[to].most = cells[to].most.max(writes.most);
                    cells[from].feeds.push((to, writes.most));
                }
            }
        }
        let name = |cell: &Cell| match &graph.stacks[cell.node.0] {
            stack if stack.levels == 1 => format!("channel `{}`", stack.name),
            stack => format!("level {} of channel `{}`", cell.level, stack.name),
        };
        let names = Names {
            kernels: graph.kernels.iter().map(|kernel| kernel.name.clone()).collect(),
            channels: cells.iter().map(name).collect(),
            stacks: graph.stacks.iter().map(|stack| (stack.name.clone(), stack.levels)).collect(),
        };
        Plan { cells, first, names }
    }
}

/// Number of levels in all stacks above a node.
fn depth_above(graph: &Graph, node: Node) -> u32 {
    let mut depth = 0;
    let mut at = node;
    // The bound on the loop makes the depth finite even if a node is beneath itself.
    for _ in 0..graph.stacks.len() {
        let Some(other) = graph.stacks[at.0].beneath else { break };
        depth += graph.stacks[other.0].levels;
        at = other;
    }
    depth
}
