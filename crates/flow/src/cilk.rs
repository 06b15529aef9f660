//! Cilk programs as graphs: the recipe of the paper's Section 5, as a builder.
//!
//! A function that spawns is cut at its syncs. The part before the first sync becomes a kernel over a stack of tasks,
//! with one channel per level of the recursion. Each continuation after a sync becomes a kernel with its own stack.
//! `spawn f(x)` puts an element into the next level of f's stack. `sync` puts one into the same level of the
//! continuation's stack, with room for the results of the spawned tasks. `docs/channels.md` shows an example.

use bytemuck::Pod;

use crate::graph::{Constant, Graph, KernelNode, Level, Node};
use crate::host::Lane;

/// A recursion of a program. All tasks of a later recursion are deeper than those of an earlier one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recursion(usize);

/// A part of a function: up to its first sync, or from one sync to the next.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    /// The stack that holds its elements.
    pub stack: Node,
    /// The kernel that processes them.
    pub kernel: KernelNode,
    recursion: Recursion,
    /// Its tasks are in one channel, whatever their level.
    in_main_channel: bool,
    bytes: usize,
}

/// Builds the graph of a Cilk program.
///
/// ```
/// use warploom_flow::cilk::Cilk;
///
/// // int fib(n) { if (n <= 2) return 1; x = spawn fib(n - 1); y = spawn fib(n - 2); sync; return x + y; }
/// let mut program = Cilk::new("fibonacci", 1024);
/// let recursion = program.recursion(12);
/// let fib = program.task::<[u32; 4]>(recursion, "fib");
/// let sum = program.after_sync::<[u32; 4]>(recursion, "fib_sum");
/// program.spawns::<[u32; 4]>(fib, fib, 2).syncs::<[u32; 4]>(fib, sum);
/// program.constants(fib, [sum.stack.into()]);
/// program.start(fib, &[0x1000u32, 0, 12, 0]);
/// program.graph().check()?;
/// # Ok::<(), warploom_flow::FlowError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Cilk {
    graph: Graph,
    width: u32,
    /// Number of levels of each recursion, and one of its stacks.
    recursions: Vec<(u32, Option<Node>)>,
}

impl Cilk {
    /// A program whose channels hold `width` elements each.
    pub fn new(name: &str, width: u32) -> Cilk {
        Cilk { graph: Graph::new(name), width, recursions: Vec::new() }
    }

    /// Adds a recursion of at most so many levels.
    pub fn recursion(&mut self, levels: u32) -> Recursion {
        self.recursions.push((levels, None));
        Recursion(self.recursions.len() - 1)
    }

    /// Adds a function up to its first sync. An element holds the arguments and where the result goes.
    pub fn task<T: Pod>(&mut self, recursion: Recursion, kernel: &str) -> Part {
        self.task_of(recursion, kernel, size_of::<T>())
    }

    /// Like [`task`](Cilk::task), with elements of so many bytes.
    pub fn task_of(&mut self, recursion: Recursion, kernel: &str, bytes: usize) -> Part {
        let levels = self.recursions[recursion.0].0;
        let stack = self.graph.stack_of(kernel, levels, self.width, bytes);
        if let Some(other) = recursion.0.checked_sub(1).and_then(|before| self.recursions[before].1) {
            self.graph.beneath(stack, other);
        }
        self.recursions[recursion.0].1 = Some(stack);
        let kernel = self.graph.kernel(kernel);
        self.graph.reads_of(kernel, stack, bytes);
        Part { stack, kernel, recursion, in_main_channel: false, bytes }
    }

    /// Adds a function up to its first sync whose tasks are all in one channel, as in the paper's Figures 10 and 11. An
    /// element also says on which level it is, for its continuation. Its tasks count as deeper than all parts so far,
    /// so add the continuations first. The channel must hold all tasks that exist at once: only a channel for each
    /// level, which [`task`](Cilk::task) makes, bounds memory.
    pub fn main_channel<T: Pod>(&mut self, kernel: &str) -> Part {
        let recursion = self.recursion(1);
        Part { in_main_channel: true, ..self.task::<T>(recursion, kernel) }
    }

    /// Adds the continuation after a sync. An element holds the variables that it still needs, and room for the
    /// results of the spawned tasks.
    pub fn after_sync<T: Pod>(&mut self, recursion: Recursion, kernel: &str) -> Part {
        self.after_sync_of(recursion, kernel, size_of::<T>())
    }

    /// Like [`after_sync`](Cilk::after_sync), with elements of so many bytes.
    pub fn after_sync_of(&mut self, recursion: Recursion, kernel: &str, bytes: usize) -> Part {
        let part = self.task_of(recursion, kernel, bytes);
        self.graph.after_sync(part.kernel);
        part
    }

    /// Declares that a part spawns up to `most` tasks of another part: one level deeper, or in the first level
    /// of a later recursion.
    pub fn spawns<T: Pod>(&mut self, from: Part, to: Part, most: u32) -> &mut Cilk {
        let level = spawn_level(from, to);
        self.graph.writes::<T>(from.kernel, to.stack, level, most);
        self
    }

    /// Like [`spawns`](Cilk::spawns), with elements as large as the other part's.
    pub fn spawns_of(&mut self, from: Part, to: Part, most: u32) -> &mut Cilk {
        let level = spawn_level(from, to);
        self.graph.writes_of(from.kernel, to.stack, level, most, to.bytes);
        self
    }

    /// Declares that a part ends in a sync, after which `to` continues.
    pub fn syncs<T: Pod>(&mut self, from: Part, to: Part) -> &mut Cilk {
        self.graph.writes::<T>(from.kernel, to.stack, sync_level(from), 1);
        self
    }

    /// Like [`syncs`](Cilk::syncs), with elements as large as the other part's.
    pub fn syncs_of(&mut self, from: Part, to: Part) -> &mut Cilk {
        self.graph.writes_of(from.kernel, to.stack, sync_level(from), 1, to.bytes);
        self
    }

    /// Sets the arguments of the part's kernel after its `Work`.
    pub fn constants(&mut self, part: Part, constants: impl IntoIterator<Item = Constant>) -> &mut Cilk {
        self.graph.constants(part.kernel, constants);
        self
    }

    /// Sets the function that stands for the part on the host.
    pub fn on_host(&mut self, part: Part, run: impl Fn(&Lane<'_>) + Send + Sync + 'static) -> &mut Cilk {
        self.graph.on_host(part.kernel, run);
        self
    }

    /// Puts the first task.
    pub fn start<T: Pod>(&mut self, part: Part, element: &T) -> &mut Cilk {
        self.graph.put(part.stack, element);
        self
    }

    /// The graph built so far.
    pub fn graph(&mut self) -> &mut Graph {
        &mut self.graph
    }
}

fn spawn_level(from: Part, to: Part) -> Level {
    match from.recursion == to.recursion {
        true if to.in_main_channel => Level::Same,
        true => Level::Next,
        false => Level::First,
    }
}

fn sync_level(from: Part) -> Level {
    if from.in_main_channel { Level::Any } else { Level::Same }
}
