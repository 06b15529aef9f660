//! Graphs: work that is described first, node by node or by capturing streams, and run later as a whole.
//!
//! A graph's nodes run in the order in which they were added, which is one that its dependencies allow; branches that
//! could run side by side run one after the other.

use std::collections::BTreeMap;

use crate::core::error::{CudaError, Result};
use crate::core::launch::Request;
use crate::core::memory::{Extent, Place};
use crate::core::process::Process;

/// What a node does.
#[derive(Clone, Debug)]
pub(crate) enum Work {
    Kernel {
        function: u64,
        request: Request,
        arguments: Vec<Vec<u8>>,
    },
    Copy {
        to: Place,
        from: Place,
        extent: Extent,
        kind: i32,
    },
    Fill {
        to: Place,
        pattern: Vec<u8>,
        extent: Extent,
    },
    /// A function of the host, with its argument.
    Host {
        function: usize,
        data: usize,
    },
    Record {
        event: u64,
    },
    Wait {
        event: u64,
    },
    Child {
        nodes: Vec<Node>,
    },
    /// Memory that has had its address since the node was made.
    Malloc {
        address: u64,
    },
    Free {
        address: u64,
    },
    Empty,
}

impl Work {
    /// CUDA's number for the kind of a node.
    pub(crate) fn kind(&self) -> i32 {
        match self {
            Work::Kernel { .. } => 0,
            Work::Copy { .. } => 1,
            Work::Fill { .. } => 2,
            Work::Host { .. } => 3,
            Work::Child { .. } => 4,
            Work::Empty => 5,
            Work::Wait { .. } => 6,
            Work::Record { .. } => 7,
            Work::Malloc { .. } => 10,
            Work::Free { .. } => 11,
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) handle: u64,
    pub(crate) work: Work,
    /// Handles of the nodes that run before it.
    after: Vec<u64>,
}

#[derive(Clone, Debug, Default)]
struct Graph {
    nodes: Vec<Node>,
}

impl Graph {
    /// The nodes in an order in which each follows those it depends on. `None`: they depend on each other in a circle.
    fn ordered(&self) -> Option<Vec<Node>> {
        let mut left: Vec<&Node> = self.nodes.iter().collect();
        let mut ordered: Vec<Node> = Vec::with_capacity(left.len());
        while !left.is_empty() {
            let is_ready = |node: &&Node| !left.iter().any(|other| node.after.contains(&other.handle));
            let next = left.iter().position(is_ready)?;
            ordered.push(left.remove(next).clone());
        }
        Some(ordered)
    }
}

/// Streams whose work goes into a graph.
#[derive(Debug)]
struct Capture {
    id: u64,
    /// The graph's handle, which exists from the start.
    handle: u64,
    /// The stream that it began with, and must end with.
    origin: u64,
    graph: Graph,
    /// The last nodes of each stream of the capture.
    last: BTreeMap<u64, Vec<u64>>,
    is_invalid: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Graphs {
    graphs: BTreeMap<u64, Graph>,
    /// Graphs that can be launched: their nodes in order.
    executables: BTreeMap<u64, Vec<Node>>,
    captures: Vec<Capture>,
    /// Events recorded in a stream that is captured: the capture, and what came before.
    marks: BTreeMap<u64, (u64, Vec<u64>)>,
    handles: u64,
}

/// Handles of graphs, nodes and executables.
const FIRST_HANDLE: u64 = 1 << 59;
const HANDLE_STEP: u64 = 16;

/// Whether a stream is captured: CUDA's numbers.
pub(crate) const NOT_CAPTURED: i32 = 0;
const CAPTURED: i32 = 1;
const INVALIDATED: i32 = 2;

impl Graphs {
    fn new_handle(&mut self) -> u64 {
        self.handles += 1;
        FIRST_HANDLE + self.handles * HANDLE_STEP
    }

    fn capture_of(&mut self, stream: u64) -> Option<&mut Capture> {
        self.captures.iter_mut().find(|capture| capture.last.contains_key(&stream))
    }

    /// Whether a stream's work goes into a graph.
    pub(crate) fn is_captured(&self, stream: u64) -> bool {
        self.captures.iter().any(|capture| capture.last.contains_key(&stream))
    }

    /// State of a stream, and the number of its capture.
    pub(crate) fn status(&self, stream: u64) -> (i32, u64) {
        let capture = self.captures.iter().find(|capture| capture.last.contains_key(&stream));
        capture.map_or((NOT_CAPTURED, 0), |capture| {
            (if capture.is_invalid { INVALIDATED } else { CAPTURED }, capture.id)
        })
    }

    /// The graph that a stream is captured into.
    pub(crate) fn captured_into(&self, stream: u64) -> Option<u64> {
        let capture = self.captures.iter().find(|capture| capture.last.contains_key(&stream));
        capture.map(|capture| capture.handle)
    }

    /// A call that no capture allows, such as waiting for a stream that is captured.
    pub(crate) fn refuse_in_capture(&mut self, stream: u64) -> Result {
        match self.capture_of(stream) {
            None => Ok(()),
            Some(capture) => {
                capture.is_invalid = true;
                Err(CudaError::CAPTURE_UNSUPPORTED)
            }
        }
    }

    /// A call that waits for the whole device.
    pub(crate) fn refuse_in_any_capture(&mut self) -> Result {
        for capture in &mut self.captures {
            capture.is_invalid = true;
        }
        if self.captures.is_empty() { Ok(()) } else { Err(CudaError::CAPTURE_UNSUPPORTED) }
    }

    pub(crate) fn begin(&mut self, stream: u64) -> Result {
        if self.is_captured(stream) {
            return Err(CudaError::ILLEGAL_STATE);
        }
        let handle = self.new_handle();
        let id = handle / HANDLE_STEP;
        let (graph, last) = (Graph::default(), BTreeMap::from([(stream, Vec::new())]));
        self.captures.push(Capture { id, handle, origin: stream, graph, last, is_invalid: false });
        Ok(())
    }

    /// Ends a capture; returns the graph.
    pub(crate) fn end(&mut self, stream: u64) -> Result<u64> {
        let found = self.captures.iter().position(|capture| capture.last.contains_key(&stream));
        let capture = self.captures.remove(found.ok_or(CudaError::ILLEGAL_STATE)?);
        self.marks.retain(|_, (id, _)| *id != capture.id);
        if capture.origin != stream {
            return Err(CudaError::CAPTURE_UNMATCHED);
        }
        if capture.is_invalid {
            return Err(CudaError::CAPTURE_INVALIDATED);
        }
        // Other streams must have been waited for.
        let before: Vec<u64> = capture.graph.nodes.iter().flat_map(|node| node.after.clone()).collect();
        let ends = &capture.last[&stream];
        let mut others =
            capture.last.iter().filter(|(other, _)| **other != stream).flat_map(|(_, last)| last);
        if others.any(|node| !before.contains(node) && !ends.contains(node)) {
            return Err(CudaError::CAPTURE_UNJOINED);
        }
        self.graphs.insert(capture.handle, capture.graph);
        Ok(capture.handle)
    }

    /// Adds work of a stream that is captured.
    pub(crate) fn record(&mut self, stream: u64, work: Work) -> Result {
        let handle = self.new_handle();
        let capture = self.capture_of(stream).ok_or(CudaError::ILLEGAL_STATE)?;
        if capture.is_invalid {
            return Err(CudaError::CAPTURE_INVALIDATED);
        }
        let after = capture.last.insert(stream, vec![handle]).unwrap_or_default();
        capture.graph.nodes.push(Node { handle, work, after });
        Ok(())
    }

    /// An event in a stream that is captured stands for what came before it. Returns whether it is so.
    pub(crate) fn mark(&mut self, event: u64, stream: u64) -> bool {
        let mark = self.capture_of(stream).map(|capture| (capture.id, capture.last[&stream].clone()));
        match mark {
            Some(mark) => {
                self.marks.insert(event, mark);
                true
            }
            None => {
                self.marks.remove(&event);
                false
            }
        }
    }

    /// A stream waits for an event of a capture, and is captured from then on. Returns whether it is so.
    pub(crate) fn join(&mut self, stream: u64, event: u64) -> Result<bool> {
        let Some((id, nodes)) = self.marks.get(&event).cloned() else {
            return match self.capture_of(stream) {
                // Of an event outside of the capture nothing can be known.
                Some(capture) => {
                    capture.is_invalid = true;
                    Err(CudaError::CAPTURE_ISOLATION)
                }
                None => Ok(false),
            };
        };
        let other =
            self.captures.iter().any(|capture| capture.id != id && capture.last.contains_key(&stream));
        if other {
            return Err(CudaError::CAPTURE_MERGE);
        }
        if let Some(capture) = self.captures.iter_mut().find(|capture| capture.id == id) {
            let last = capture.last.entry(stream).or_default();
            last.extend(nodes.into_iter().filter(|node| !last.contains(node)).collect::<Vec<_>>());
        }
        Ok(true)
    }

    pub(crate) fn create(&mut self) -> u64 {
        let handle = self.new_handle();
        self.graphs.insert(handle, Graph::default());
        handle
    }

    fn graph(&mut self, handle: u64) -> Result<&mut Graph> {
        self.graphs.get_mut(&handle).ok_or(CudaError::INVALID_VALUE)
    }

    pub(crate) fn destroy(&mut self, handle: u64) -> Result {
        self.graphs.remove(&handle).map(|_| ()).ok_or(CudaError::INVALID_VALUE)
    }

    /// Nodes keep their handles in a copy, which CUDA's do not; programs ask for the copy's.
    pub(crate) fn copy(&mut self, handle: u64) -> Result<u64> {
        let copy = self.graph(handle)?.clone();
        let handle = self.new_handle();
        self.graphs.insert(handle, copy);
        Ok(handle)
    }

    /// Adds a node after others; returns its handle.
    pub(crate) fn add(&mut self, graph: u64, after: Vec<u64>, work: Work) -> Result<u64> {
        let handle = self.new_handle();
        let graph = self.graph(graph)?;
        let known = |node: &u64| graph.nodes.iter().any(|other| other.handle == *node);
        if !after.iter().all(known) {
            return Err(CudaError::INVALID_VALUE);
        }
        graph.nodes.push(Node { handle, work, after });
        Ok(handle)
    }

    pub(crate) fn add_dependency(&mut self, graph: u64, from: u64, to: u64) -> Result {
        let graph = self.graph(graph)?;
        let known = graph.nodes.iter().any(|node| node.handle == from);
        let node = graph.nodes.iter_mut().find(|node| node.handle == to && known);
        node.ok_or(CudaError::INVALID_VALUE)?.after.push(from);
        Ok(())
    }

    /// A graph's nodes, in the order in which they were added; only those that wait for none if `roots`.
    pub(crate) fn nodes(&mut self, graph: u64, roots: bool) -> Result<Vec<u64>> {
        let nodes = self.graph(graph)?.nodes.iter();
        Ok(nodes.filter(|node| !roots || node.after.is_empty()).map(|node| node.handle).collect())
    }

    /// The nodes of a graph as one node of another.
    pub(crate) fn as_child(&mut self, graph: u64) -> Result<Work> {
        let nodes = self.graph(graph)?.ordered().ok_or(CudaError::INVALID_VALUE)?;
        Ok(Work::Child { nodes })
    }

    pub(crate) fn kind(&self, node: u64) -> Result<i32> {
        self.work(node).map(Work::kind)
    }

    /// What a node of a graph does.
    pub(crate) fn work(&self, node: u64) -> Result<&Work> {
        let mut nodes = self.graphs.values().flat_map(|graph| &graph.nodes);
        nodes.find(|other| other.handle == node).map(|node| &node.work).ok_or(CudaError::INVALID_VALUE)
    }

    /// Replaces what a node of a graph does by something of the same kind.
    pub(crate) fn change(&mut self, node: u64, work: Work) -> Result {
        let mut nodes = self.graphs.values_mut().flat_map(|graph| &mut graph.nodes);
        replace(nodes.find(|other| other.handle == node), work)
    }

    /// The same in a graph that can be launched.
    pub(crate) fn change_in(&mut self, executable: u64, node: u64, work: Work) -> Result {
        let nodes = self.executables.get_mut(&executable).ok_or(CudaError::INVALID_VALUE)?;
        replace(nodes.iter_mut().find(|other| other.handle == node), work)
    }

    pub(crate) fn instantiate(&mut self, graph: u64) -> Result<u64> {
        let nodes = self.graph(graph)?.ordered().ok_or(CudaError::INVALID_VALUE)?;
        let handle = self.new_handle();
        self.executables.insert(handle, nodes);
        Ok(handle)
    }

    pub(crate) fn destroy_executable(&mut self, handle: u64) -> Result {
        self.executables.remove(&handle).map(|_| ()).ok_or(CudaError::INVALID_VALUE)
    }

    pub(crate) fn executable(&self, handle: u64) -> Result<Vec<Node>> {
        self.executables.get(&handle).cloned().ok_or(CudaError::INVALID_VALUE)
    }

    /// Takes over what the nodes of a graph of the same shape do.
    pub(crate) fn update(&mut self, executable: u64, graph: u64) -> Result {
        let new = self.graph(graph)?.ordered().ok_or(CudaError::INVALID_VALUE)?;
        let old = self.executables.get_mut(&executable).ok_or(CudaError::INVALID_VALUE)?;
        let same = old.len() == new.len()
            && old
                .iter()
                .zip(&new)
                .all(|(old, new)| old.work.kind() == new.work.kind() && old.after.len() == new.after.len());
        if !same {
            return Err(CudaError::GRAPH_UPDATE_FAILURE);
        }
        for (old, new) in old.iter_mut().zip(new) {
            old.work = new.work;
        }
        Ok(())
    }
}

fn replace(node: Option<&mut Node>, work: Work) -> Result {
    let node = node.filter(|node| node.work.kind() == work.kind()).ok_or(CudaError::INVALID_VALUE)?;
    node.work = work;
    Ok(())
}

impl Process {
    /// Adds work to a graph if its stream is captured. `None`: it is to be done now.
    pub(crate) fn captured(&mut self, stream: u64, work: impl FnOnce() -> Work) -> Option<Result> {
        if self.graphs.is_captured(stream) {
            return Some(self.graphs.record(stream, work()));
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_capture_of_two_streams() {
        let mut graphs = Graphs::default();
        let (a, b, fork, join) = (100, 101, 1, 2);
        graphs.begin(a).unwrap();
        assert_eq!(graphs.begin(a), Err(CudaError::ILLEGAL_STATE));
        graphs.record(a, Work::Empty).unwrap();
        assert!(graphs.mark(fork, a));
        assert_eq!(graphs.join(b, fork), Ok(true));
        graphs.record(b, Work::Record { event: 9 }).unwrap();
        graphs.record(a, Work::Empty).unwrap();
        assert!(graphs.mark(join, b));
        graphs.join(a, join).unwrap();
        graphs.record(a, Work::Wait { event: 9 }).unwrap();
        assert_eq!((graphs.status(b).0, graphs.status(55).0), (CAPTURED, NOT_CAPTURED));
        let graph = graphs.end(a).unwrap();
        assert_eq!(graphs.nodes(graph, false).unwrap().len(), 4);
        assert_eq!(graphs.nodes(graph, true).unwrap().len(), 1);
        let executable = graphs.instantiate(graph).unwrap();
        let kinds: Vec<_> =
            graphs.executable(executable).unwrap().iter().map(|node| node.work.kind()).collect();
        assert_eq!(kinds, [5, 7, 5, 6]);
        graphs.destroy(graph).unwrap();
        assert!(graphs.executable(executable).is_ok() && graphs.instantiate(graph).is_err());
    }

    #[test]
    fn captures_that_go_wrong() {
        let mut graphs = Graphs::default();
        graphs.begin(1).unwrap();
        graphs.mark(7, 1);
        graphs.join(2, 7).unwrap();
        graphs.record(2, Work::Empty).unwrap();
        assert_eq!(graphs.end(1), Err(CudaError::CAPTURE_UNJOINED));
        graphs.begin(1).unwrap();
        assert_eq!(graphs.refuse_in_capture(1), Err(CudaError::CAPTURE_UNSUPPORTED));
        assert_eq!(graphs.record(1, Work::Empty), Err(CudaError::CAPTURE_INVALIDATED));
        assert_eq!(graphs.end(1), Err(CudaError::CAPTURE_INVALIDATED));
        assert_eq!(graphs.end(1), Err(CudaError::ILLEGAL_STATE));
    }

    #[test]
    fn nodes_in_order_of_their_dependencies() {
        let mut graphs = Graphs::default();
        let graph = graphs.create();
        let first = graphs.add(graph, vec![], Work::Empty).unwrap();
        let second = graphs.add(graph, vec![], Work::Record { event: 1 }).unwrap();
        graphs.add_dependency(graph, second, first).unwrap();
        let executable = graphs.instantiate(graph).unwrap();
        let handles: Vec<_> = graphs.executable(executable).unwrap().iter().map(|node| node.handle).collect();
        assert_eq!(handles, [second, first]);
        assert!(graphs.change_in(executable, first, Work::Empty).is_ok());
        assert!(graphs.change_in(executable, first, Work::Wait { event: 1 }).is_err());
        assert!(graphs.update(executable, graph).is_ok());
        graphs.add_dependency(graph, first, second).unwrap();
        assert_eq!(graphs.instantiate(graph), Err(CudaError::INVALID_VALUE));
        let _ = graphs.add(graph, vec![], Work::Empty).unwrap();
        assert!(graphs.update(executable, graph).is_err());
    }
}
