//! What every group of lanes does when a launch is ended, read from the machine's state. Start at [`Scene::nodes`].

use std::ops::Range;

use rustc_hash::FxHashMap;
use warploom_isa::{Kernel, Pc, SharedVar};

use crate::exec::execute::Cta;
use crate::exec::functional::Circle;
use crate::exec::launch::Launch;
use crate::exec::locks::holders::{LockTable, Share, SharedLocks, Taker, WarpName};
use crate::exec::locks::polled::Polled;
use crate::exec::locks::unit::LockUnit;
use crate::exec::locks::written::{WordPlace, Written};
use crate::exec::memory::store::Memory;
use crate::exec::warp::Warp;
use crate::exec::warp::control::{Activation, Group, Wait};
use crate::explain::hang::code::plain_name;
use crate::explain::hang::polls::Poll;
use crate::explain::hang::{Phase, Word};
use crate::kit::cycle::Cycle;
use crate::kit::ids::WarpSlot;
use crate::kit::lane_mask::LaneMask;
use crate::time::machine::LockPace;
use crate::time::sm::issue::slot::Slot;
use crate::time::sm::load_store::l1::L1;
use crate::time::sm::watch::Watch;

/// The machine at the end of a launch.
pub(super) struct Scene<'a, const N: usize> {
    pub(super) launch: &'a Launch<'a>,
    pub(super) memory: &'a Memory,
    /// Who took which lock in global memory.
    pub(super) locks: &'a LockTable,
    pub(super) ctas: Vec<Seen<'a, N>>,
    /// CTAs of the grid that have not started.
    pub(super) unstarted: u64,
    /// `None` in the functional model.
    pub(super) timed: Option<Timed<'a>>,
}

/// What only the timed machine knows.
pub(super) struct Timed<'a> {
    pub(super) now: Cycle,
    /// No value has changed lately.
    pub(super) is_quiet: bool,
    /// Attempts at locks in the last cycles.
    pub(super) pace: LockPace,
    pub(super) policy: &'a str,
    /// Whether spinning warps back off.
    pub(super) bows: bool,
}

/// A resident CTA.
pub(super) struct Seen<'a, const N: usize> {
    pub(super) cta: &'a Cta,
    pub(super) warps: &'a [Warp<N>],
    /// The lock bits of its SM, if the kernel uses them.
    pub(super) lock_unit: Option<&'a LockUnit>,
    /// Who took which lock in the shared memory of its SM.
    pub(super) locks: &'a SharedLocks,
    /// `None` in the functional model.
    pub(super) sm: Option<SeenSm<'a, N>>,
    /// In the functional model, if it repeats itself: what its warps do.
    pub(super) circle: Option<&'a Circle<N>>,
}

/// The SM of a resident CTA.
#[derive(Clone, Copy)]
pub(super) struct SeenSm<'a, const N: usize> {
    pub l1: &'a L1,
    pub(super) watch: Option<&'a Watch<N>>,
    /// All its warp slots.
    pub(super) slots: &'a [Slot],
    /// The slots of the CTA's warps.
    pub(super) cta: &'a [Option<WarpSlot>],
}

/// Lanes of a warp that do the same.
#[derive(Clone, Debug)]
pub(super) struct Node {
    /// Index of the CTA in the scene.
    pub(super) cta: usize,
    /// The warp's number in the CTA.
    pub(super) warp: usize,
    pub(super) lanes: LaneMask,
    pub(super) pc: Pc,
    pub(super) activation: Activation,
    pub(super) doing: Doing,
    /// The warp is watched for repetition, and its state still changes.
    pub(super) changes: bool,
}

impl Node {
    pub(super) fn poll(&self) -> Option<&Poll> {
        match &self.doing {
            Doing::Poll(poll) => Some(poll),
            _ => None,
        }
    }
}

/// All lanes that have not ended, as nodes.
pub(super) struct Nodes {
    /// Sorted by the scene's CTAs, then by warp.
    pub(super) all: Vec<Node>,
    /// The first node of each CTA, and the end.
    starts: Vec<usize>,
    /// Index of each CTA in the scene, by its number in the grid.
    numbers: FxHashMap<u64, usize>,
}

impl Nodes {
    /// The indices of a CTA's nodes.
    pub(super) fn of_cta(&self, cta: usize) -> Range<usize> {
        self.starts[cta]..self.starts[cta + 1]
    }

    /// The first node of a warp with one of the lanes.
    pub(super) fn with_lanes(&self, cta: usize, warp: usize, lanes: LaneMask) -> Option<usize> {
        self.of_cta(cta).find(|&at| self.all[at].warp == warp && !(self.all[at].lanes & lanes).is_empty())
    }

    /// Whether a node waits for lanes of `node`, which are of the same warp.
    pub(super) fn waits_for_lanes(&self, at: usize, node: &Node) -> bool {
        let other = &self.all[at];
        let lanes = match other.doing {
            Doing::Reconverge(lanes) | Doing::OtherPath { first: lanes, .. } => lanes,
            _ => return false,
        };
        (other.cta, other.warp) == (node.cta, node.warp) && !(lanes & node.lanes).is_empty()
    }

    /// The CTA of a thread that took a lock, if it is resident.
    pub(super) fn cta_of(&self, taker: Taker) -> Option<usize> {
        self.numbers.get(&taker.warp.cta).copied()
    }

    /// The node of a thread that took a lock, unless it has ended.
    pub(super) fn holder(&self, taker: Taker) -> Option<usize> {
        self.with_lanes(self.cta_of(taker)?, taker.warp.warp as usize, LaneMask::of(taker.lane as usize))
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Doing {
    /// Wait at a named barrier.
    Barrier(u32),
    /// Wait at the barrier of the cluster.
    ClusterBarrier,
    /// Wait at a reconvergence point for these lanes.
    Reconverge(LaneMask),
    /// Wait on the other side of a branch until the lanes `first` reach `reconverge`.
    OtherPath {
        first: LaneMask,
        reconverge: Pc,
    },
    /// Wait at an instruction that these lanes must execute too.
    Lanes(LaneMask),
    /// Poll a word.
    Poll(Poll),
    /// Poll an mbarrier.
    Mbarrier {
        pc: Pc,
        word: Word,
        phase: Phase,
    },
    /// Repeat a loop forever that waits for nothing known.
    Loop,
    Run,
}

impl<const N: usize> Scene<'_, N> {
    pub(super) fn kernel(&self) -> &Kernel {
        self.launch.kernel
    }

    /// Whether a node's warp sleeps in lock queues.
    pub(super) fn is_blocked(&self, node: &Node) -> bool {
        self.ctas[node.cta].slot(node.warp).is_some_and(|slot| slot.is_blocked())
    }

    /// All lanes that have not ended, grouped by what they do.
    pub(super) fn nodes(&self) -> Nodes {
        let mut nodes = Vec::new();
        let mut starts = Vec::new();
        let ways_out = self.kernel().ways_out();
        for (at, seen) in self.ctas.iter().enumerate() {
            starts.push(nodes.len());
            for (number, warp) in seen.warps.iter().enumerate().filter(|(_, w)| !w.is_done()) {
                let watched = seen.watched(number);
                for (group, activation, wait) in warp.control.activated_paths() {
                    let node = |lanes: LaneMask, doing: Doing| Node {
                        cta: at,
                        warp: number,
                        lanes,
                        pc: group.pc,
                        activation,
                        changes: wait.is_none() && watched.is_some_and(|(repeats, _)| !repeats),
                        doing,
                    };
                    let waits = |doing: Doing| vec![node(group.mask, doing)];
                    nodes.extend(match wait {
                        Some(Wait::Barrier) if seen.waits_for_cluster(warp.id, group.mask) => {
                            waits(Doing::ClusterBarrier)
                        }
                        Some(Wait::Barrier) => {
                            let id = seen.cta.barriers.waiting_at(warp.id, group.mask);
                            waits(Doing::Barrier(id.unwrap_or_default()))
                        }
                        Some(Wait::Reconverge(lanes)) => {
                            let polls = self.behind_atomic(seen, number, &activation, &group);
                            match polls {
                                Some(polls) => polls.into_iter().map(|(l, doing)| node(l, doing)).collect(),
                                None => waits(Doing::Reconverge(lanes)),
                            }
                        }
                        Some(Wait::OtherPath { first, reconverge }) => {
                            waits(Doing::OtherPath { first, reconverge })
                        }
                        Some(Wait::Lanes { members, anywhere }) => {
                            let same = Some(Wait::Lanes { members, anywhere });
                            let paths = warp.control.paths();
                            let arrived =
                                paths.iter().filter(|(g, w)| *w == same && (anywhere || g.pc == group.pc));
                            let arrived = arrived.fold(LaneMask::NONE, |mask, (g, _)| mask | g.mask);
                            waits(Doing::Lanes(members & warp.live & !arrived))
                        }
                        None => {
                            let polls = self.polls(seen, number, &activation, group.pc, group.mask);
                            let left = polls.iter().fold(group.mask, |left, (lanes, _)| left & !*lanes);
                            let mut nodes: Vec<Node> =
                                polls.into_iter().map(|(lanes, doing)| node(lanes, doing)).collect();
                            if watched.is_some_and(|(repeats, _)| repeats) {
                                let again = self.reads_again(seen, number, left, &ways_out, group.pc);
                                let left = again.iter().fold(left, |left, (lanes, _)| left & !*lanes);
                                nodes.extend(again.into_iter().map(|(lanes, doing)| node(lanes, doing)));
                                if !left.is_empty() {
                                    nodes.push(node(left, Doing::Loop));
                                }
                            } else if !left.is_empty() {
                                nodes.push(node(left, Doing::Run));
                            }
                            nodes
                        }
                    });
                }
            }
        }
        starts.push(nodes.len());
        let numbers = self.ctas.iter().enumerate().map(|(at, seen)| (seen.cta.number, at)).collect();
        Nodes { all: nodes, starts, numbers }
    }

    /// In each iteration of a spin, lanes whose atomic is done wait for the others of their warp after the atomic's own
    /// loop. They really wait for what the spin polls: this returns that.
    fn behind_atomic(
        &self,
        seen: &Seen<'_, N>,
        warp: usize,
        activation: &Activation,
        group: &Group,
    ) -> Option<Vec<(LaneMask, Doing)>> {
        self.kernel().atomic_at(Pc(group.pc.0.checked_sub(1)?))?;
        let polls = self.polls(seen, warp, activation, group.pc, group.mask);
        (polls.iter().fold(LaneMask::NONE, |all, (lanes, _)| all | *lanes) == group.mask).then_some(polls)
    }

    /// Who changed a word and has not changed it back, in the order in which they did.
    pub(super) fn shares(&self, (cta, address): WordPlace) -> &[Share] {
        match cta {
            None => self.locks.shares(address),
            Some(cta) => self.with_number(cta).map_or(&[], |seen| seen.locks.shares((cta, address))),
        }
    }

    /// Who wrote a word last, other than to take a lock, if nobody holds it.
    pub(super) fn last_writer(&self, (cta, address): WordPlace) -> Option<Taker> {
        match cta {
            None => self.locks.writer(address),
            Some(cta) => self.with_number(cta)?.locks.writer((cta, address)),
        }
    }

    fn with_number(&self, cta: u64) -> Option<&Seen<'_, N>> {
        self.ctas.iter().find(|seen| seen.cta.number == cta)
    }

    /// The coordinates of a CTA, by its number.
    pub(super) fn coordinates_of(&self, number: u64) -> [u32; 3] {
        self.launch.cta(number)
    }

    pub(super) fn word(&self, shared: bool, address: u64) -> Word {
        if shared {
            return shared_word(self.kernel(), address);
        }
        global_word(self.memory, address)
    }
}

/// A word of global memory, by the name of its buffer or variable.
pub(crate) fn global_word(memory: &Memory, address: u64) -> Word {
    let (name, offset) = memory.name(address).unwrap_or(("", address));
    Word { name: plain_name(name).to_string(), offset, shared: false }
}

/// A word of shared memory, by the name of its variable.
pub(crate) fn shared_word(kernel: &Kernel, address: u64) -> Word {
    let variables = || kernel.shared.iter();
    let holds = |v: &&SharedVar| address.wrapping_sub(v.offset as u64) < v.bytes.max(1) as u64;
    let dynamic = |v: &&SharedVar| v.bytes == 0 && address >= v.offset as u64;
    let variable = variables().find(holds).or_else(|| variables().find(dynamic));
    let (name, offset) = variable.map_or(("", address), |v| (v.name.as_str(), address - v.offset as u64));
    Word { name: plain_name(name).to_string(), offset, shared: true }
}

impl<'a, const N: usize> Seen<'a, N> {
    /// Whether lanes of a warp wait at the barrier of the cluster.
    fn waits_for_cluster(&self, warp: u32, lanes: LaneMask) -> bool {
        self.cta.cluster.as_ref().is_some_and(|member| member.barrier.is_waiting(warp, lanes))
    }

    /// The lanes of a warp that have arrived at the barrier of the cluster.
    pub(super) fn arrived_at_cluster(&self, warp: usize) -> LaneMask {
        self.cta.cluster.as_ref().map_or(LaneMask::NONE, |member| member.barrier.arrived_lanes(warp as u32))
    }

    /// The number of the CTA's cluster.
    pub(super) fn cluster(&self) -> Option<u64> {
        self.cta.cluster.as_ref().map(|member| member.cluster)
    }

    /// The pipeline state of a warp.
    pub(super) fn slot(&self, warp: usize) -> Option<&'a Slot> {
        self.sm.as_ref().and_then(|sm| Some(&sm.slots[sm.cta[warp]?.index()]))
    }

    /// The words that change for ever, in a launch that undoes its attempts.
    pub(super) fn written(&self) -> Option<&'a Written> {
        let watch = self.sm.as_ref().and_then(|sm| sm.watch);
        watch.and_then(|watch| watch.written()).or(self.circle.map(|circle| &circle.written))
    }

    /// If the warp is watched: whether it repeats itself, and what it polled. A sleeping warp does not poll.
    pub(super) fn watched(&self, warp: usize) -> Option<(bool, &'a [Polled<N>])> {
        if let Some(circle) = self.circle {
            let name = WarpName { cta: self.cta.number, warp: warp as u32 };
            return Some((true, circle.polled.get(&name).map_or(&[], |polled| polled)));
        }
        let sm = self.sm.as_ref().filter(|_| self.slot(warp).is_none_or(|slot| !slot.is_blocked()))?;
        let slot = sm.cta[warp]?;
        sm.watch.map(|watch| (watch.repeats(slot), watch.polls(slot)))
    }
}
