//! Channel-flow graphs: kernels joined by channels.

mod check;
mod dot;
mod plan;

use std::fmt;
use std::sync::Arc;

use bytemuck::Pod;
use warploom::Buffer;

use crate::channel::{Layout, Shape, WAVE};
use crate::host::Lane;

pub(crate) use plan::{Cell, Plan};

/// A channel of a graph, or a stack of channels: one for each level of a recursion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node(pub(crate) usize);

/// A kernel of a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelNode(pub(crate) usize);

/// Which level of a stack a kernel writes, by the level of its own element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// The same.
    Same,
    /// The next: a spawn.
    Next,
    /// The first, whatever its own is.
    First,
}

/// A constant argument of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Constant {
    /// The address of a channel's descriptor, of a stack's first.
    Channel(Node),
    /// A word.
    Word(u32),
    /// A double word: an address.
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

/// What a channel's predicate is asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// Elements that are ready.
    pub ready: u32,
    /// More may come before they are processed.
    pub may_grow: bool,
    /// The channel's level in its stack.
    pub level: u32,
}

/// Whether wavefronts are to be started on what waits in a channel.
#[derive(Clone)]
pub(crate) struct Predicate(pub Arc<dyn Fn(Waiting) -> bool + Send + Sync>);

impl Default for Predicate {
    /// When there are enough for a wavefront, or no more can come.
    fn default() -> Predicate {
        Predicate(Arc::new(|waiting| waiting.ready >= WAVE || !waiting.may_grow))
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
    /// Its levels are deeper than those of this one.
    pub beneath: Option<Node>,
    /// Elements before the start, of its first level.
    pub initial: Vec<Vec<u32>>,
    pub predicate: Predicate,
}

#[derive(Clone, Debug)]
pub(crate) struct Writes {
    pub node: Node,
    pub level: Level,
    pub most: u32,
    pub bytes: usize,
}

/// What a kernel does on the host, for one element.
pub type HostKernel = Arc<dyn Fn(&Lane<'_>) + Send + Sync>;

#[derive(Clone)]
pub(crate) struct Kernel {
    pub name: String,
    pub reads: Option<(Node, usize)>,
    pub writes: Vec<Writes>,
    pub constants: Vec<Constant>,
    /// It follows a sync: it waits for everything deeper.
    pub after_sync: bool,
    pub host: Option<HostKernel>,
}

impl fmt::Debug for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kernel").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Kernels joined by channels.
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
    /// No kernel and no channel.
    pub fn new(name: impl Into<String>) -> Graph {
        Graph { name: name.into(), stacks: Vec::new(), kernels: Vec::new(), conflicts: Vec::new() }
    }

    /// A channel of `width` elements of type `T`.
    pub fn channel<T: Pod>(&mut self, name: &str, width: u32) -> Node {
        self.stack::<T>(name, 1, width)
    }

    /// A stack of channels, one for each level of a recursion.
    pub fn stack<T: Pod>(&mut self, name: &str, levels: u32, width: u32) -> Node {
        self.stacks.push(Stack {
            name: name.to_string(),
            levels,
            bytes: size_of::<T>(),
            shape: Shape::new(width, size_of::<T>().div_ceil(4) as u32),
            beneath: None,
            initial: Vec::new(),
            predicate: Predicate::default(),
        });
        Node(self.stacks.len() - 1)
    }

    /// Everything in `node` counts as deeper than everything in `other`: what follows a sync waits for it.
    pub fn beneath(&mut self, node: Node, other: Node) -> &mut Graph {
        self.stacks[node.0].beneath = Some(other);
        self
    }

    /// When wavefronts are started on a channel: whenever `predicate` says so of what waits there. It is asked about all that is
    /// ready, and again about what is left when wavefronts are full; of what follows a sync, when everything deeper has
    /// ended. What it holds back is started when nothing else can be. Without one: when there are enough for a wavefront,
    /// or no more can come.
    pub fn predicate(
        &mut self,
        node: Node,
        predicate: impl Fn(Waiting) -> bool + Send + Sync + 'static,
    ) -> &mut Graph {
        self.stacks[node.0].predicate = Predicate(Arc::new(predicate));
        self
    }

    /// Where the words of all channels' elements lie.
    pub fn layout(&mut self, layout: Layout) -> &mut Graph {
        self.reshape(|shape| shape.layout = layout)
    }

    /// How many elements of all channels share a count of the freed.
    pub fn group(&mut self, group: u32) -> &mut Graph {
        self.reshape(|shape| shape.group = group)
    }

    /// Whether lanes reserve elements of all channels one by one.
    pub fn lane_by_lane(&mut self, lane_by_lane: bool) -> &mut Graph {
        self.reshape(|shape| shape.lane_by_lane = lane_by_lane)
    }

    fn reshape(&mut self, change: impl Fn(&mut Shape)) -> &mut Graph {
        self.stacks.iter_mut().for_each(|stack| change(&mut stack.shape));
        self
    }

    /// An element that is ready before the start, in the first level.
    pub fn put<T: Pod>(&mut self, node: Node, element: &T) -> &mut Graph {
        self.stacks[node.0].initial.push(words(element));
        self
    }

    /// A kernel by its name in the module.
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

    /// The kernel processes all elements of a channel or of a stack, which it takes for `T`s.
    pub fn reads<T: Pod>(&mut self, kernel: KernelNode, node: Node) -> &mut Graph {
        if let Some((old, _)) = self.kernels[kernel.0].reads.replace((node, size_of::<T>())) {
            self.conflicts.push((old, self.kernels[kernel.0].name.clone()));
        }
        self
    }

    /// The kernel puts up to `most` elements into a channel, or a level of a stack, for each of its own. It takes them for `T`s.
    pub fn writes<T: Pod>(&mut self, kernel: KernelNode, node: Node, level: Level, most: u32) -> &mut Graph {
        let writes = Writes { node, level, most, bytes: size_of::<T>() };
        self.kernels[kernel.0].writes.push(writes);
        self
    }

    /// The kernel is what follows a sync: its elements wait for everything deeper than their level.
    pub fn after_sync(&mut self, kernel: KernelNode) -> &mut Graph {
        self.kernels[kernel.0].after_sync = true;
        self
    }

    /// What the kernel gets besides its `Work`.
    pub fn constants(
        &mut self,
        kernel: KernelNode,
        constants: impl IntoIterator<Item = Constant>,
    ) -> &mut Graph {
        self.kernels[kernel.0].constants = constants.into_iter().collect();
        self
    }

    /// What the kernel does on the host.
    pub fn on_host(
        &mut self,
        kernel: KernelNode,
        run: impl Fn(&Lane<'_>) + Send + Sync + 'static,
    ) -> &mut Graph {
        self.kernels[kernel.0].host = Some(Arc::new(run));
        self
    }

    /// What it is called.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Kernels in it.
    pub fn kernel_count(&self) -> usize {
        self.kernels.len()
    }
}

/// The words of a plain value.
pub(crate) fn words<T: Pod>(value: &T) -> Vec<u32> {
    let bytes = bytemuck::bytes_of(value);
    let word = |piece: &[u8]| {
        let mut word = [0; 4];
        word[..piece.len()].copy_from_slice(piece);
        u32::from_le_bytes(word)
    };
    bytes.chunks(4).map(word).collect()
}
