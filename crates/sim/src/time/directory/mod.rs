//! The directory beside the L2 slices: who has a copy of which line, where L1s are coherent (MOESI).
//!
//! An L1 has a line in one of five states: modified, owned (modified, and others have copies), exclusive, shared, invalid. The
//! directory knows the owner (of a line that is modified, owned or exclusive: it cannot tell) and the sharers; clean
//! lines are dropped without a word, so it may know more holders than there are.
//!
//! It does one thing at a time for each line; what comes meanwhile waits in order. A request that needs a copy from the
//! owner, or copies to be given up, sends probes and waits for the responses. The slice reads the line at the same time
//! if no L1 can have it otherwise. Answers and probes for an L1 leave by the same port in the order in which they are made
//! here, so an L1 has always got the line before it is asked for it.
//!
//! Only decisions are made here: the machine carries out the [`Action`]s.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use crate::time::cache::{LineBytes, LineWritten};
use crate::time::network::message::{Asks, Request, RequestKind};

#[cfg(test)]
mod tests;

/// What an L1 is asked to do with a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probe {
    /// The line.
    pub line: u64,
    /// It has to give its copy up; otherwise it keeps one to read.
    pub takes: bool,
}

/// A line as its owner has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Given {
    /// Its bytes.
    pub bytes: LineBytes,
    /// Which of them were ever written.
    pub written: LineWritten,
    /// Memory has something else.
    pub dirty: bool,
}

/// What an L1 gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grant {
    /// To read; others may have it too.
    Shared,
    /// To read, and to write without asking.
    Exclusive,
    /// To write.
    Modified,
}

/// Where a line came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// From another L1.
    Cache,
    /// From the slice, or the memory behind it.
    Slice,
    /// The asker had it.
    Asker,
}

/// What has to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// The slice does what a request wants of it.
    Forward {
        /// From this cycle on.
        at: u64,
        /// The request.
        request: Request,
    },
    /// An L1 is asked.
    Probe {
        /// In this cycle.
        at: u64,
        /// Whose.
        node: u16,
        /// What.
        probe: Probe,
    },
    /// What an L1 gave up is newer than memory, and goes there.
    Write {
        /// The line.
        line: u64,
        /// Its bytes.
        given: Box<Given>,
    },
    /// What the asker of a request gave back goes to memory.
    Keep {
        /// The request.
        request: Request,
    },
    /// A request is answered.
    Answer {
        /// In this cycle.
        at: u64,
        /// The request.
        request: Request,
        /// What its L1 may do with the line, if it keeps it.
        grant: Option<Grant>,
        /// The line, if it does not come from memory.
        given: Option<Box<Given>>,
        /// Where it comes from.
        source: Source,
    },
}

/// How far the slice is with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Slice {
    /// It has nothing to do with it.
    Unneeded,
    /// It does it when the probes are answered, unless one of them brings the line.
    Later,
    /// It is at it.
    Asked,
    /// It is done.
    Served,
}

/// A request under way.
#[derive(Clone, Debug)]
struct Busy {
    request: Request,
    /// The cycle of what happened last.
    at: u64,
    probes: u32,
    slice: Slice,
    given: Option<Box<Given>>,
    /// For [`Asks::GiveBack`]: the asker still owned the line.
    counts: bool,
    /// The asker keeps its copy.
    keeps: bool,
}

/// What is known of a line.
#[derive(Clone, Debug, Default)]
struct Line {
    owner: Option<u16>,
    sharers: u64,
    busy: Option<Busy>,
    waiting: VecDeque<(u64, Request)>,
}

impl Line {
    /// Who may have it.
    fn holders(&self) -> u64 {
        self.sharers | self.owner.map_or(0, bit)
    }
}

fn bit(node: u16) -> u64 {
    1 << node
}

/// The nodes of a set.
fn each(mut nodes: u64) -> impl Iterator<Item = u16> {
    std::iter::from_fn(move || {
        let node = (nodes != 0).then(|| nodes.trailing_zeros() as u16)?;
        nodes &= nodes - 1;
        Some(node)
    })
}

crate::kit::counters::counters! {
    /// What the directory did.
    DirectoryStats {
        /// Lines that came from another L1.
        cache_to_cache,
        /// Lines that came from an L2 slice.
        l2_hits,
        /// Lines that the slice had to fetch.
        memory,
        /// Copies that became writable without a transfer.
        upgrades,
        /// Copies that L1s were told to give up.
        invalidations,
        /// Lines given back because their place was needed.
        given_back,
        /// Requests that waited for another to the same line.
        blocked,
    }
}

/// The directory of all slices.
#[derive(Debug, Default)]
pub struct Directory {
    lines: FxHashMap<u64, Line>,
    latency: u64,
    /// Nodes from this number on are no SMs: their requests are not counted.
    sms: u16,
    /// To be done, in order.
    pub actions: Vec<Action>,
    /// What it did for SMs.
    pub stats: DirectoryStats,
}

impl Directory {
    /// Nobody has anything. A look-up takes `latency` cycles; nodes below `sms` are SMs.
    pub fn new(latency: u64, sms: u16) -> Directory {
        Directory { latency, sms, ..Directory::default() }
    }

    /// A request arrives.
    pub fn accept(&mut self, at: u64, request: Request) {
        let line = self.lines.entry(request.line).or_default();
        if line.busy.is_some() {
            line.waiting.push_back((at, request));
            self.stats.blocked += 1;
            return;
        }
        self.begin(at, request);
    }

    fn begin(&mut self, at: u64, request: Request) {
        let line = self.lines.entry(request.line).or_default();
        let asker = bit(request.sm);
        let owned_by_other = line.owner.is_some_and(|owner| owner != request.sm);
        let (mut probed, mut takes) = (0, false);
        let (mut keeps, mut counts) = (false, false);
        let slice = match (request.asks, request.kind) {
            (Asks::Share, _) if owned_by_other => {
                probed = line.owner.map_or(0, bit);
                Slice::Later
            }
            (Asks::Share, _) => {
                // Its own copy is gone without a word.
                (line.owner, line.sharers) = (None, line.sharers & !asker);
                Slice::Asked
            }
            (Asks::Own { has_copy }, _) => {
                keeps = has_copy && line.holders() & asker != 0;
                (probed, takes) = (line.holders() & !asker, true);
                match () {
                    () if keeps => Slice::Unneeded,
                    () if owned_by_other => Slice::Later,
                    () => Slice::Asked,
                }
            }
            (Asks::GiveBack, _) => {
                counts = line.owner == Some(request.sm);
                if counts { Slice::Asked } else { Slice::Unneeded }
            }
            (Asks::Nothing, RequestKind::Read) => {
                probed = line.owner.map_or(0, bit);
                if probed != 0 { Slice::Later } else { Slice::Asked }
            }
            (Asks::Nothing, RequestKind::Write | RequestKind::Atomic { .. }) => {
                (probed, takes) = (line.holders(), true);
                if probed != 0 { Slice::Later } else { Slice::Asked }
            }
        };
        let probes = probed.count_ones();
        let looked_up = at + self.latency;
        // The slice's own pipeline takes as long as the look-up.
        let since = if slice == Slice::Asked { at } else { looked_up };
        line.busy = Some(Busy { request, at: since, probes, slice, given: None, counts, keeps });
        for node in each(probed) {
            self.stats.invalidations += takes as u64;
            let probe = Probe { line: request.line, takes };
            self.actions.push(Action::Probe { at: looked_up, node, probe });
        }
        if slice == Slice::Asked {
            self.actions.push(Action::Forward { at, request });
        }
        self.go_on(request.line);
    }

    /// An L1 has done what a probe wanted.
    pub fn respond(&mut self, at: u64, line: u64, given: Option<Box<Given>>) {
        let Some(busy) = self.lines.get_mut(&line).and_then(|line| line.busy.as_mut()) else { return };
        busy.probes -= 1;
        busy.at = busy.at.max(at);
        if given.is_some() {
            busy.given = given;
        }
        self.go_on(line);
    }

    /// The slice has served what was forwarded to it.
    pub fn served(&mut self, at: u64, request: &Request) {
        let Some(busy) = self.lines.get_mut(&request.line).and_then(|line| line.busy.as_mut()) else {
            return;
        };
        busy.slice = Slice::Served;
        busy.at = busy.at.max(at);
        busy.request.missed = request.missed;
        self.go_on(request.line);
    }

    /// Takes the next step for a line, if nothing is waited for.
    fn go_on(&mut self, number: u64) {
        let Some(line) = self.lines.get_mut(&number) else { return };
        let Some(busy) = &mut line.busy else { return };
        if busy.probes > 0 || busy.slice == Slice::Asked {
            return;
        }
        if busy.slice == Slice::Later {
            let changes = busy.request.asks == Asks::Nothing && busy.request.kind != RequestKind::Read;
            match &busy.given {
                Some(given) if changes && given.dirty => {
                    let given = given.clone();
                    self.actions.push(Action::Write { line: number, given });
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
        self.end(number);
    }

    /// A request has all that it needs.
    fn end(&mut self, number: u64) {
        let Some(line) = self.lines.get_mut(&number) else { return };
        let Some(Busy { request, at, given, counts, keeps, .. }) = line.busy.take() else { return };
        let asker = bit(request.sm);
        let is_dirty = given.as_ref().is_some_and(|given| given.dirty);
        let source = match (&given, keeps) {
            (_, true) => Source::Asker,
            (Some(_), _) => Source::Cache,
            (None, _) => Source::Slice,
        };
        let is_read = request.kind == RequestKind::Read;
        let grant = match request.asks {
            Asks::Share | Asks::Nothing if is_read => {
                let before = line.owner.filter(|&owner| owner != request.sm);
                match (before, &given) {
                    // It owns what memory does not have.
                    (Some(_), Some(_)) if is_dirty => {}
                    (Some(owner), Some(_)) => (line.owner, line.sharers) = (None, line.sharers | bit(owner)),
                    // It has dropped the line without a word.
                    (Some(_), None) => line.owner = None,
                    (None, _) => {}
                }
                match request.asks {
                    Asks::Share if line.holders() & !asker == 0 => {
                        (line.owner, line.sharers) = (Some(request.sm), 0);
                        Some(Grant::Exclusive)
                    }
                    Asks::Share => {
                        line.sharers |= asker;
                        Some(Grant::Shared)
                    }
                    _ => None,
                }
            }
            Asks::Own { .. } => {
                (line.owner, line.sharers) = (Some(request.sm), 0);
                Some(Grant::Modified)
            }
            Asks::GiveBack => {
                if counts {
                    line.owner = None;
                    self.actions.push(Action::Keep { request });
                }
                None
            }
            Asks::Share | Asks::Nothing => {
                (line.owner, line.sharers) = (None, 0);
                None
            }
        };
        if request.sm < self.sms {
            let stats = &mut self.stats;
            match (request.asks, source) {
                (Asks::GiveBack, _) => stats.given_back += 1,
                (_, Source::Asker) => stats.upgrades += 1,
                (_, Source::Cache) => stats.cache_to_cache += 1,
                (_, Source::Slice) if request.missed => stats.memory += 1,
                (_, Source::Slice) => stats.l2_hits += 1,
            }
        }
        // What has gone into memory comes back from there.
        let given = given.filter(|_| is_read && !keeps);
        let next = line.waiting.pop_front();
        let is_free = line.holders() == 0 && next.is_none();
        self.actions.push(Action::Answer { at, request, grant, given, source });
        match next {
            Some((arrival, request)) => self.begin(arrival.max(at), request),
            None if is_free => drop(self.lines.remove(&number)),
            None => {}
        }
    }

    /// Whether no request is in flight.
    #[cfg(test)]
    pub fn is_idle(&self) -> bool {
        self.lines.values().all(|line| line.busy.is_none())
    }
}
