//! Cilk programs as graphs: the recipe of the paper's Section 5, as a builder.
//!
//! A function that spawns is cut at its syncs. What comes before is a kernel over a stack of tasks, one channel a level of the
//! recursion; what follows a sync is a kernel over a stack of its own. `spawn f(x)` puts an element into the next level of f's
//! stack, `sync` one into the same level of the continuation's, with room for what the spawned tasks return.
//! `docs/channels.md` shows it on an example.

use bytemuck::Pod;

use crate::graph::{Constant, Graph, KernelNode, Level, Node};
use crate::host::Lane;

/// A recursion of a program. Tasks of a later one are deeper than all of an earlier one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recursion(usize);

/// A part of a function: up to its first sync, or between two.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    /// Its elements.
    pub stack: Node,
    /// What processes them.
    pub kernel: KernelNode,
    recursion: Recursion,
}

/// A Cilk program on its way to a graph.
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
    /// Levels of each recursion, and a stack of it.
    recursions: Vec<(u32, Option<Node>)>,
}

impl Cilk {
    /// A program whose channels hold `width` elements each.
    pub fn new(name: &str, width: u32) -> Cilk {
        Cilk { graph: Graph::new(name), width, recursions: Vec::new() }
    }

    /// A recursion of up to so many levels.
    pub fn recursion(&mut self, levels: u32) -> Recursion {
        self.recursions.push((levels, None));
        Recursion(self.recursions.len() - 1)
    }

    /// A function up to its first sync. Its elements are its arguments, and where its result goes.
    pub fn task<T: Pod>(&mut self, recursion: Recursion, kernel: &str) -> Part {
        let levels = self.recursions[recursion.0].0;
        let stack = self.graph.stack::<T>(kernel, levels, self.width);
        if let Some(other) = recursion.0.checked_sub(1).and_then(|before| self.recursions[before].1) {
            self.graph.beneath(stack, other);
        }
        self.recursions[recursion.0].1 = Some(stack);
        let kernel = self.graph.kernel(kernel);
        self.graph.reads::<T>(kernel, stack);
        Part { stack, kernel, recursion }
    }

    /// What follows a sync. Its elements are what it still needs of the function's variables, and room for the results of what
    /// was spawned.
    pub fn after_sync<T: Pod>(&mut self, recursion: Recursion, kernel: &str) -> Part {
        let part = self.task::<T>(recursion, kernel);
        self.graph.after_sync(part.kernel);
        part
    }

    /// A part spawns up to `most` tasks of another: one level deeper, or, of a later recursion, in its first.
    pub fn spawns<T: Pod>(&mut self, from: Part, to: Part, most: u32) -> &mut Cilk {
        let level = if from.recursion == to.recursion { Level::Next } else { Level::First };
        self.graph.writes::<T>(from.kernel, to.stack, level, most);
        self
    }

    /// A part ends in a sync after which another goes on.
    pub fn syncs<T: Pod>(&mut self, from: Part, to: Part) -> &mut Cilk {
        self.graph.writes::<T>(from.kernel, to.stack, Level::Same, 1);
        self
    }

    /// What the kernel of a part gets besides its `Work`.
    pub fn constants(&mut self, part: Part, constants: impl IntoIterator<Item = Constant>) -> &mut Cilk {
        self.graph.constants(part.kernel, constants);
        self
    }

    /// What a part does on the host.
    pub fn on_host(&mut self, part: Part, run: impl Fn(&Lane<'_>) + Send + Sync + 'static) -> &mut Cilk {
        self.graph.on_host(part.kernel, run);
        self
    }

    /// The first task.
    pub fn start<T: Pod>(&mut self, part: Part, element: &T) -> &mut Cilk {
        self.graph.put(part.stack, element);
        self
    }

    /// The program as a graph.
    pub fn graph(&mut self) -> &mut Graph {
        &mut self.graph
    }
}
