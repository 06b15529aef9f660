//! Channel-flow graphs: kernels connected by channels. Start at [`Graph`].

mod check;
mod dot;
mod plan;

use std::fmt;
use std::sync::Arc;

use bytemuck::Pod;
use warploom::Buffer;

use crate::channel::{Layout, Shape, WAVE};
use crate::host::Lane;

pub(crate) use plan::{Cell, Names, Plan};

/// A channel of a graph, or a stack of channels with one per level of a recursion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node(pub(crate) usize);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelNode(pub(crate) usize);

/// Which level of a stack a kernel writes, relative to the level of the element it processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    Same,
    /// One deeper: a spawn.
    Next,
    /// The first level, independent of its own.
    First,
    /// Whichever level the element itself says.
    Any,
}

/// An argument of a kernel that is the same for all its elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Constant {
    /// The descriptor's address of a channel, or of a stack's first channel.
    Channel(Node),
    Word(u32),
    Address(u64),
}

impl From<Node> for Constant {
    fn from(node: Node) -> Constant {
        Constant::Channel(node)
    }
}

impl From<u32> for Constant {
    fn from(word: u32) -> Constant {
        Constant::Word(word)
    }
}

impl From<u64> for Constant {
    fn from(address: u64) -> Constant {
        Constant::Address(address)
    }
}

impl<T: Pod> From<&Buffer<T>> for Constant {
    fn from(buffer: &Buffer<T>) -> Constant {
        Constant::Address(buffer.address())
    }
}

/// What a channel's predicate decides about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// Number of ready elements.
    pub ready: u32,
    /// More elements may arrive before these are processed.
    pub may_grow: bool,
    /// Level of the channel in its stack.
    pub level: u32,
    /// Elements that the channel can hold.
    pub width: u32,
}

/// Decides whether to start wavefronts on the ready elements of a channel.
#[derive(Clone)]
pub(crate) struct Predicate(pub Arc<dyn Fn(Waiting) -> bool + Send + Sync>);

impl Default for Predicate {
    /// Whole levels: everything when no more elements can arrive. If half of the channel is ready before that, its full
    /// wavefronts, so that producers find room while these run.
    fn default() -> Predicate {
        Predicate(Arc::new(|waiting| !waiting.may_grow || waiting.ready >= (waiting.width / 2).max(WAVE)))
    }
}

impl fmt::Debug for Predicate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Predicate")
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Stack {
    pub name: String,
    pub levels: u32,
    pub bytes: usize,
    pub shape: Shape,
    /// The stack above this one: all levels of this one are deeper.
    pub beneath: Option<Node>,
    /// Initial elements of the first level.
    pub initial: Vec<Vec<u32>>,
    /// Elements that the host puts into the first level while the graph runs, with their cycles.
    pub arrivals: Vec<(u64, Vec<u32>)>,
    pub predicate: Predicate,
}

#[derive(Clone, Debug)]
pub(crate) struct Writes {
    pub node: Node,
    pub level: Level,
    pub most: u32,
    pub bytes: usize,
}

/// What a kernel does with one element on the host.
pub(crate) type HostKernel = Arc<dyn Fn(&Lane<'_>) + Send + Sync>;

#[derive(Clone)]
pub(crate) struct Kernel {
    pub name: String,
    pub reads: Option<(Node, usize)>,
    pub writes: Vec<Writes>,
    pub constants: Vec<Constant>,
    /// Follows a sync, so it waits for everything deeper.
    pub after_sync: bool,
    pub host: Option<HostKernel>,
}

impl fmt::Debug for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kernel").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Kernels connected by channels. Every channel has exactly one kernel that reads it.
///
/// ```
/// use warploom_flow::{Graph, Level};
///
/// let mut graph = Graph::new("fibonacci");
/// let tasks = graph.channel::<u32>("tasks", 32_768);
/// let fib = graph.kernel("fib_naive");
/// graph.reads::<u32>(fib, tasks);
/// graph.writes::<u32>(fib, tasks, Level::Same, 2);
/// graph.constants(fib, [tasks.into()]);
/// graph.put(tasks, &24u32);
/// graph.check()?;
/// assert!(graph.dot().starts_with("digraph \"fibonacci\" {"));
/// # Ok::<(), warploom_flow::FlowError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Graph {
    pub(crate) name: String,
    pub(crate) stacks: Vec<Stack>,
    pub(crate) kernels: Vec<Kernel>,
    pub(crate) conflicts: Vec<(Node, String)>,
}

impl Graph {
    /// An empty graph.
    pub fn new(name: impl Into<String>) -> Graph {
        Graph { name: name.into(), stacks: Vec::new(), kernels: Vec::new(), conflicts: Vec::new() }
    }

    /// Adds a channel of `width` elements of type `T`.
    pub fn channel<T: Pod>(&mut self, name: &str, width: u32) -> Node {
        self.stack::<T>(name, 1, width)
    }

    /// Adds a stack of channels, one per level of a recursion, each with `width` elements of type `T`.
    pub fn stack<T: Pod>(&mut self, name: &str, levels: u32, width: u32) -> Node {
        self.stack_of(name, levels, width, size_of::<T>())
    }

    /// Like [`stack`](Graph::stack), for elements of so many bytes.
    pub fn stack_of(&mut self, name: &str, levels: u32, width: u32, bytes: usize) -> Node {
        self.stacks.push(Stack {
            name: name.to_string(),
            levels,
            bytes,
            shape: Shape::new(width, bytes.div_ceil(4) as u32),
            beneath: None,
            initial: Vec::new(),
            arrivals: Vec::new(),
            predicate: Predicate::default(),
        });
        Node(self.stacks.len() - 1)
    }

    /// Makes everything in `node` deeper than everything in `other`: continuations in `other` wait for it.
    pub(crate) fn beneath(&mut self, node: Node, other: Node) -> &mut Graph {
        self.stacks[node.0].beneath = Some(other);
        self
    }

    /// Sets when wavefronts are started on a channel: whenever `predicate` returns true for its ready elements.
    /// It is asked about all ready elements, then about those left over from full wavefronts. After a sync it
    /// is asked only when everything deeper has ended. Elements that it holds back are started when nothing
    /// else can run. The default: everything when no more elements can arrive, and full wavefronts when half of the
    /// channel is ready. `|waiting| waiting.ready >= 64 || !waiting.may_grow` starts every full wavefront at once,
    /// which takes many more starts.
    pub fn predicate(
        &mut self,
        node: Node,
        predicate: impl Fn(Waiting) -> bool + Send + Sync + 'static,
    ) -> &mut Graph {
        self.stacks[node.0].predicate = Predicate(Arc::new(predicate));
        self
    }

    /// Sets the memory layout of the elements of all channels.
    pub fn layout(&mut self, layout: Layout) -> &mut Graph {
        self.reshape(|shape| shape.layout = layout)
    }

    /// Sets how many elements share a `done` counter, in all channels.
    pub fn group(&mut self, group: u32) -> &mut Graph {
        self.reshape(|shape| shape.group = group)
    }

    /// Sets whether lanes reserve elements one by one instead of once per wavefront, in all channels.
    pub fn lane_by_lane(&mut self, lane_by_lane: bool) -> &mut Graph {
        self.reshape(|shape| shape.lane_by_lane = lane_by_lane)
    }

    fn reshape(&mut self, change: impl Fn(&mut Shape)) -> &mut Graph {
        self.stacks.iter_mut().for_each(|stack| change(&mut stack.shape));
        self
    }

    /// Adds an initial element, to the first level of a stack.
    pub fn put<T: Pod>(&mut self, node: Node, element: &T) -> &mut Graph {
        self.put_words(node, words(element))
    }

    /// Like [`put`](Graph::put), for an element given as its words. There must be as many as an element has.
    pub fn put_words(&mut self, node: Node, words: Vec<u32>) -> &mut Graph {
        self.stacks[node.0].initial.push(words);
        self
    }

    /// Makes the host put an element into a channel, or the first level of a stack, while the graph runs: in this cycle
    /// of the run, or as soon as there is room after it. The run lasts until all have come. Where there is no clock,
    /// on the host's own threads, each comes when everything before it is done.
    ///
    /// ```
    /// # use warploom_flow::{Graph, Level};
    /// # let mut graph = Graph::new("stream");
    /// # let requests = graph.channel::<u32>("requests", 1024);
    /// for n in 0..100u32 {
    ///     graph.put_at(requests, 1_000 * u64::from(n), &n);
    /// }
    /// ```
    pub fn put_at<T: Pod>(&mut self, node: Node, cycle: u64, element: &T) -> &mut Graph {
        self.stacks[node.0].arrivals.push((cycle, words(element)));
        self
    }

    /// The elements that arrive while the graph runs, with the stacks they go to, in the order of their cycles.
    pub(crate) fn arrivals(&self) -> Vec<(u64, Node, Vec<u32>)> {
        let of = |(at, stack): (usize, &Stack)| {
            let arrival = move |(cycle, words): (u64, Vec<u32>)| (cycle, Node(at), words);
            stack.arrivals.clone().into_iter().map(arrival)
        };
        let mut all: Vec<_> = self.stacks.iter().enumerate().flat_map(of).collect();
        all.sort_by_key(|&(cycle, ..)| cycle);
        all
    }

    /// Adds a kernel, given by its name in the module.
    pub fn kernel(&mut self, name: &str) -> KernelNode {
        self.kernels.push(Kernel {
            name: name.to_string(),
            reads: None,
            writes: Vec::new(),
            constants: Vec::new(),
            after_sync: false,
            host: None,
        });
        KernelNode(self.kernels.len() - 1)
    }

    /// Makes the kernel process all elements of a channel or stack, as values of type `T`.
    pub fn reads<T: Pod>(&mut self, kernel: KernelNode, node: Node) -> &mut Graph {
        self.reads_of(kernel, node, size_of::<T>())
    }

    /// Like [`reads`](Graph::reads), for elements of so many bytes.
    pub fn reads_of(&mut self, kernel: KernelNode, node: Node, bytes: usize) -> &mut Graph {
        if let Some((old, _)) = self.kernels[kernel.0].reads.replace((node, bytes)) {
            self.conflicts.push((old, self.kernels[kernel.0].name.clone()));
        }
        self
    }

    /// Declares that the kernel puts up to `most` elements of type `T` into a channel, or a level of a stack,
    /// per element that it processes. The scheduler relies on `most` being an upper bound.
    pub fn writes<T: Pod>(&mut self, kernel: KernelNode, node: Node, level: Level, most: u32) -> &mut Graph {
        self.writes_of(kernel, node, level, most, size_of::<T>())
    }

    /// Like [`writes`](Graph::writes), for elements of so many bytes.
    pub fn writes_of(
        &mut self,
        kernel: KernelNode,
        node: Node,
        level: Level,
        most: u32,
        bytes: usize,
    ) -> &mut Graph {
        let writes = Writes { node, level, most, bytes };
        self.kernels[kernel.0].writes.push(writes);
        self
    }

    /// Marks the kernel as the continuation after a sync: its elements wait for everything deeper than their level.
    pub fn after_sync(&mut self, kernel: KernelNode) -> &mut Graph {
        self.kernels[kernel.0].after_sync = true;
        self
    }

    /// Sets the kernel's arguments after its `Work`.
    pub fn constants(
        &mut self,
        kernel: KernelNode,
        constants: impl IntoIterator<Item = Constant>,
    ) -> &mut Graph {
        self.kernels[kernel.0].constants = constants.into_iter().collect();
        self
    }

    /// Sets the function that stands for the kernel on the host. It is called once per element.
    pub fn on_host(
        &mut self,
        kernel: KernelNode,
        run: impl Fn(&Lane<'_>) + Send + Sync + 'static,
    ) -> &mut Graph {
        self.kernels[kernel.0].host = Some(Arc::new(run));
        self
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn kernel_count(&self) -> usize {
        self.kernels.len()
    }
}

/// The words of a plain value, the last one padded with zeros.
pub(crate) fn words<T: Pod>(value: &T) -> Vec<u32> {
    let bytes = bytemuck::bytes_of(value);
    let word = |piece: &[u8]| {
        let mut word = [0; 4];
        word[..piece.len()].copy_from_slice(piece);
        u32::from_le_bytes(word)
    };
    bytes.chunks(4).map(word).collect()
}
