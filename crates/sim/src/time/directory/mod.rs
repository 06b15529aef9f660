//! The directory beside the L2 slices: which L1s have a copy of which line, where L1s are coherent (MOESI).
//!
//! An L1 has a line in one of five states: modified, owned (modified, and others have copies), exclusive, shared,
//! invalid. The directory knows the owner (of a line that is modified, owned or exclusive: it cannot tell which) and
//! the sharers. L1s also say when they evict a clean line, so it knows the copies that there are.
//!
//! It serves one request at a time for each line; further requests wait in order. A request that needs a copy from the
//! owner, or copies to be invalidated, sends probes and waits for the responses. The slice reads the line at the same
//! time if no L1 can have newer bytes. Answers and probes for an L1 leave by the same port in the order in which they
//! are made here, so an L1 always has the line before it is probed for it.
//!
//! Only decisions are made here: `machine/coherence.rs` carries out the [`Action`]s. Start with [`Directory::accept`].

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use crate::kit::bits::lanes as bits;
use crate::kit::cycle::Cycle;
use crate::kit::line::LineAddress;
use crate::time::cache::{LineBytes, LineWritten};
use crate::time::network::message::{Asks, Request, RequestKind};
use crate::time::network::node::{Node, NodePorts};

#[cfg(test)]
mod tests;

/// What an L1 is asked to do with a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Probe {
    pub line: LineAddress,
    /// It has to invalidate its copy; otherwise it keeps one to read.
    pub takes: bool,
}

/// A line as its owner has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Given {
    pub bytes: LineBytes,
    /// Which of the bytes were ever written.
    pub written: LineWritten,
    /// Memory has older bytes.
    pub dirty: bool,
}

/// What an L1 may do with a line it gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Grant {
    /// Read it; others may have copies too.
    Shared,
    /// Read it, and write it without asking.
    Exclusive,
    /// Write it.
    Modified,
}

/// Where a line comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// From another L1.
    Cache,
    /// From the slice, or the memory behind it.
    Slice,
    /// The sender of the request has it already.
    Asker,
}

/// What the machine has to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// The slice serves the request, from cycle `at` on.
    Forward { at: Cycle, request: Request },
    /// A probe leaves for the L1 of a node.
    Probe { at: Cycle, node: Node, probe: Probe },
    /// Bytes that an L1 gave up are newer than memory's, and go there.
    Write { line: LineAddress, given: Box<Given> },
    /// The line that a request gives back goes to memory.
    Keep { request: Request },
    /// A request is answered.
    Answer {
        at: Cycle,
        request: Request,
        /// What the L1 may do with the line, if it keeps it.
        grant: Option<Grant>,
        /// The line, if it does not come from memory.
        given: Option<Box<Given>>,
        source: Source,
    },
}

/// How far the slice is with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Slice {
    /// It has no part in the request.
    Unneeded,
    /// It gets the request when the probes are answered, unless one of them brings the line.
    Later,
    /// It has the request.
    Asked,
    /// It has served the request.
    Served,
}

/// The request that a line is busy with.
#[derive(Clone, Debug)]
struct Busy {
    request: Request,
    /// The cycle of the last event.
    at: Cycle,
    /// Responses to probes that have not arrived.
    probes: u32,
    slice: Slice,
    given: Option<Box<Given>>,
    /// For [`Asks::GiveBack`]: the sender still owned the line.
    counts: bool,
    /// The sender keeps its copy.
    keeps: bool,
}

/// What is known of a line.
#[derive(Clone, Debug, Default)]
struct Entry {
    owner: Option<Node>,
    sharers: u64,
    busy: Option<Busy>,
    waiting: VecDeque<(Cycle, Request)>,
}

impl Entry {
    /// The nodes that may have it.
    fn holders(&self, nodes: NodePorts) -> u64 {
        self.sharers | bit_if(nodes, self.owner)
    }
}

/// A set of nodes has a bit for each node's port.
fn bit(nodes: NodePorts, node: Node) -> u64 {
    1 << nodes.port(node)
}

fn bit_if(nodes: NodePorts, node: Option<Node>) -> u64 {
    node.map_or(0, |node| bit(nodes, node))
}

crate::kit::counters::counters! {
    /// Counters of the directory. Answers to the aggregator are not counted.
    DirectoryStats {
        /// Lines that came from another L1.
        cache_to_cache,
        /// Lines that came from an L2 slice.
        l2_hits,
        /// Lines that the slice had to fetch.
        memory,
        /// Copies that became writable without a transfer.
        upgrades,
        /// Copies that L1s had to invalidate.
        invalidations,
        /// Dirty lines that L1s evicted.
        given_back,
        /// Clean lines that L1s evicted.
        dropped,
        /// Requests that waited for another one to the same line.
        blocked,
    }
}

/// The directory of all slices.
#[derive(Debug, Default)]
pub(crate) struct Directory {
    lines: FxHashMap<LineAddress, Entry>,
    latency_cycles: u64,
    nodes: NodePorts,
    /// To be done, in order.
    pub actions: Vec<Action>,
    pub stats: DirectoryStats,
}

impl Directory {
    /// No L1 has any line. A lookup takes `latency_cycles`.
    pub(crate) fn new(latency_cycles: u64, nodes: NodePorts) -> Directory {
        Directory { latency_cycles, nodes, ..Directory::default() }
    }

    /// A request arrives.
    pub(crate) fn accept(&mut self, at: Cycle, request: Request) {
        let entry = self.lines.entry(request.line).or_default();
        if entry.busy.is_some() {
            entry.waiting.push_back((at, request));
            self.stats.blocked += 1;
            return;
        }
        self.begin(at, request);
    }

    /// An L1 has evicted a clean line.
    pub(crate) fn dropped(&mut self, line: LineAddress, from: Node) {
        let nodes = self.nodes;
        let Some(entry) = self.lines.get_mut(&line) else { return };
        entry.owner = entry.owner.filter(|&owner| owner != from);
        entry.sharers &= !bit(nodes, from);
        self.stats.dropped += u64::from(matches!(from, Node::Sm(_)));
        if entry.holders(nodes) == 0 && entry.busy.is_none() {
            self.lines.remove(&line);
        }
    }

    fn begin(&mut self, at: Cycle, request: Request) {
        let nodes = self.nodes;
        let entry = self.lines.entry(request.line).or_default();
        let asker = bit(nodes, request.from);
        let owned_by_other = entry.owner.is_some_and(|owner| owner != request.from);
        let (mut probed, mut takes) = (0, false);
        let (mut keeps, mut counts) = (false, false);
        let slice = match (request.asks, request.kind) {
            (Asks::Share, _) if owned_by_other => {
                probed = bit_if(nodes, entry.owner);
                Slice::Later
            }
            (Asks::Share, _) => {
                debug_assert!(
                    entry.holders(nodes) & asker == 0,
                    "it has evicted its copy, and said so before"
                );
                Slice::Asked
            }
            (Asks::Own { has_copy }, _) => {
                keeps = has_copy && entry.holders(nodes) & asker != 0;
                (probed, takes) = (entry.holders(nodes) & !asker, true);
                match () {
                    () if keeps => Slice::Unneeded,
                    () if owned_by_other => Slice::Later,
                    () => Slice::Asked,
                }
            }
            (Asks::GiveBack, _) => {
                counts = entry.owner == Some(request.from);
                if counts { Slice::Asked } else { Slice::Unneeded }
            }
            (Asks::Nothing, RequestKind::Read | RequestKind::Fence) => {
                probed = bit_if(nodes, entry.owner);
                if probed != 0 { Slice::Later } else { Slice::Asked }
            }
            (Asks::Nothing, RequestKind::Write | RequestKind::Atomic { .. }) => {
                (probed, takes) = (entry.holders(nodes), true);
                if probed != 0 { Slice::Later } else { Slice::Asked }
            }
        };
        let probes = probed.count_ones();
        let looked_up = at + self.latency_cycles;
        // The slice's own pipeline takes as long as the lookup.
        let since = if slice == Slice::Asked { at } else { looked_up };
        entry.busy = Some(Busy { request, at: since, probes, slice, given: None, counts, keeps });
        for port in bits(probed) {
            self.stats.invalidations += takes as u64;
            let probe = Probe { line: request.line, takes };
            self.actions.push(Action::Probe { at: looked_up, node: nodes.node(port), probe });
        }
        if slice == Slice::Asked {
            self.actions.push(Action::Forward { at, request });
        }
        self.go_on(request.line);
    }

    /// The response of an L1 to a probe arrives, with the line if the L1 owned it.
    pub(crate) fn respond(&mut self, at: Cycle, line: LineAddress, given: Option<Box<Given>>) {
        let Some(busy) = self.lines.get_mut(&line).and_then(|entry| entry.busy.as_mut()) else { return };
        busy.probes -= 1;
        busy.at = busy.at.max(at);
        if given.is_some() {
            busy.given = given;
        }
        self.go_on(line);
    }

    /// The slice has served a forwarded request.
    pub(crate) fn served(&mut self, at: Cycle, request: &Request) {
        let Some(busy) = self.lines.get_mut(&request.line).and_then(|entry| entry.busy.as_mut()) else {
            return;
        };
        busy.slice = Slice::Served;
        busy.at = busy.at.max(at);
        busy.request.missed = request.missed;
        self.go_on(request.line);
    }

    /// Takes the next step for a line, if it waits for no response and not for the slice.
    fn go_on(&mut self, line: LineAddress) {
        let Some(entry) = self.lines.get_mut(&line) else { return };
        let Some(busy) = &mut entry.busy else { return };
        if busy.probes > 0 || busy.slice == Slice::Asked {
            return;
        }
        if busy.slice == Slice::Later {
            let changes = busy.request.asks == Asks::Nothing && busy.request.kind != RequestKind::Read;
            match &busy.given {
                Some(given) if changes && given.dirty => {
                    let given = given.clone();
                    self.actions.push(Action::Write { line, given });
                }
                Some(_) if !changes => busy.slice = Slice::Unneeded,
                _ => {}
            }
            if busy.slice == Slice::Later {
                busy.slice = Slice::Asked;
                self.actions.push(Action::Forward { at: busy.at, request: busy.request });
                return;
            }
        }
        self.end(line);
    }

    /// A request has all that it needs: it is answered, and the next one for the line begins.
    fn end(&mut self, line: LineAddress) {
        let nodes = self.nodes;
        let Some(entry) = self.lines.get_mut(&line) else { return };
        let Some(Busy { request, at, given, counts, keeps, .. }) = entry.busy.take() else { return };
        let asker = bit(nodes, request.from);
        let is_dirty = given.as_ref().is_some_and(|given| given.dirty);
        let source = match (&given, keeps) {
            (_, true) => Source::Asker,
            (Some(_), _) => Source::Cache,
            (None, _) => Source::Slice,
        };
        let is_read = request.kind == RequestKind::Read;
        let grant = match request.asks {
            Asks::Share | Asks::Nothing if is_read => {
                let before = entry.owner.filter(|&owner| owner != request.from);
                match (before, &given) {
                    // It stays the owner of the dirty line.
                    (Some(_), Some(_)) if is_dirty => {}
                    (Some(owner), Some(_)) => {
                        (entry.owner, entry.sharers) = (None, entry.sharers | bit(nodes, owner));
                    }
                    // It has evicted the line.
                    (Some(_), None) => entry.owner = None,
                    (None, _) => {}
                }
                match request.asks {
                    // A line that the L2 had counts as shared with it.
                    Asks::Share if entry.holders(nodes) & !asker == 0 && request.missed => {
                        (entry.owner, entry.sharers) = (Some(request.from), 0);
                        Some(Grant::Exclusive)
                    }
                    Asks::Share => {
                        entry.sharers |= asker;
                        Some(Grant::Shared)
                    }
                    _ => None,
                }
            }
            Asks::Own { .. } => {
                (entry.owner, entry.sharers) = (Some(request.from), 0);
                Some(Grant::Modified)
            }
            Asks::GiveBack => {
                if counts {
                    entry.owner = None;
                    self.actions.push(Action::Keep { request });
                }
                None
            }
            Asks::Share | Asks::Nothing => {
                (entry.owner, entry.sharers) = (None, 0);
                None
            }
        };
        if matches!(request.from, Node::Sm(_)) {
            let stats = &mut self.stats;
            match (request.asks, source) {
                (Asks::GiveBack, _) => stats.given_back += 1,
                (_, Source::Asker) => stats.upgrades += 1,
                (_, Source::Cache) => stats.cache_to_cache += 1,
                (_, Source::Slice) if request.missed => stats.memory += 1,
                (_, Source::Slice) => stats.l2_hits += 1,
            }
        }
        // Bytes that were written to memory come back from there.
        let given = given.filter(|_| is_read && !keeps);
        let next = entry.waiting.pop_front();
        let is_free = entry.holders(nodes) == 0 && next.is_none();
        self.actions.push(Action::Answer { at, request, grant, given, source });
        match next {
            Some((arrival, request)) => self.begin(arrival.max(at), request),
            None if is_free => drop(self.lines.remove(&line)),
            None => {}
        }
    }

    /// Whether no request is in flight.
    #[cfg(test)]
    pub(crate) fn is_idle(&self) -> bool {
        self.lines.values().all(|entry| entry.busy.is_none())
    }
}
