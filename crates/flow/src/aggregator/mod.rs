//! The firmware that runs a graph on the aggregator.
//!
//! [`Flow`] is the aggregator's view of the channels: it polls them, starts wavefronts on ready elements, frees
//! groups in allocation order, and keeps the wavefronts that yielded. [`levelized`] is the default scheduler,
//! an `async` function over a `Flow`; users can write others.

mod arrivals;
mod levelized;

use std::collections::{BTreeSet, VecDeque};
use std::sync::OnceLock;

use warploom::{Agg, Params, Yielded};

use arrivals::Arrival;
pub(crate) use levelized::levelized;

use crate::channel::{Channel, WAVE};
use crate::device::Placement;
use crate::error::{too_many_at_once, undeclared};
use crate::graph::{Names, Plan, Predicate, Waiting};

/// Instructions that the firmware executes besides its accesses to channels. In total they match the compiled x86-64
/// code of the functions below, without the code that stands for the aggregator itself (`docs/channels.md`).
mod cost {
    /// Per channel looked at: what is done with its state once loaded.
    pub(super) const LOOK: u64 = 7;
    /// Per channel word polled.
    pub(super) const POLL: u64 = 4;
    /// Per start of wavefronts.
    pub(super) const START: u64 = 8;
    /// Per group freed.
    pub(super) const FREE: u64 = 4;
    /// Per element that the host puts: its slot, its entry and their comparisons.
    pub(super) const ARRIVAL: u64 = 12;
    /// Per yield: finding the channel that the wavefront waits for, and adding or removing its record.
    pub(super) const YIELD: u64 = 10;
}

/// Added to a channel's address in what wavefronts wait for that put more than they may (`excess_of` of `channel.cuh`).
const EXCESS: u64 = 1;

/// What the aggregator knows of one channel.
#[derive(Clone, Debug)]
struct Side {
    channel: Channel,
    kernel: usize,
    level: u32,
    /// The first entry that was not yet dispatched.
    next: u32,
    /// The end of the ready entries when last polled.
    ready: u32,
    /// The first position of the oldest group that is not free.
    free: u32,
    /// The first position of the oldest group that is not known to be done, and how many of its elements are done.
    group: u32,
    done: u32,
    /// Never reserved elements in groups that were closed.
    skipped: u32,
    feeders: Vec<usize>,
    /// Channels that its kernel writes.
    feeds: Vec<usize>,
    /// Channels that its elements can add to, before any continuation after a sync runs: a bit for each, found out when
    /// first asked for.
    grows: OnceLock<Box<[u64]>>,
    /// Whether it is counted as busy: elements are ready or in flight.
    busy: bool,
    depth: u32,
    after_sync: bool,
    most: u32,
    predicate: Predicate,
}

impl Side {
    fn waiting(&self) -> u32 {
        self.ready.wrapping_sub(self.next)
    }

    /// Elements that were dispatched and are not known to be done.
    fn outstanding(&self) -> u32 {
        self.next.wrapping_add(self.skipped).wrapping_sub(self.group).wrapping_sub(self.done)
    }

    fn is_idle(&self) -> bool {
        self.waiting() == 0 && self.outstanding() == 0
    }
}

/// A wavefront that yielded because a channel has no room.
#[derive(Clone, Copy, Debug)]
struct Blocked {
    wavefront: Yielded,
    on: usize,
}

/// The channels of a graph as firmware sees them: what a scheduler works with. Channels are numbered from 0,
/// each level of a stack counted.
#[derive(Debug)]
pub struct Flow {
    agg: Agg,
    sides: Vec<Side>,
    params: Vec<Params>,
    blocked: Vec<Blocked>,
    /// What the host will put, in the order of time.
    arrivals: VecDeque<Arrival>,
    /// Channels with elements in flight: only these, and those that they feed, can change.
    working: BTreeSet<usize>,
    /// Channels with ready tasks, the shallowest first.
    tasks: BTreeSet<(u32, usize)>,
    /// Channels with ready continuations after a sync, the shallowest first.
    syncs: BTreeSet<(u32, usize)>,
    /// Busy channels, by depth, and in all.
    busy: Vec<u32>,
    all_busy: u32,
    /// Channels with groups that are done and not yet free.
    unfreed: BTreeSet<usize>,
    /// Channels that may have got room since wavefronts were last restarted.
    roomier: BTreeSet<usize>,
    /// Whether anything has changed since the scheduler last looked.
    changed: bool,
    names: Names,
    /// Descriptors that stand behind the last level of each stack.
    ends: Vec<u64>,
    /// Looks that a start takes besides the scheduler's own.
    start_looks: u64,
    effort: u64,
}

impl Flow {
    pub(crate) fn new(
        agg: Agg,
        plan: &Plan,
        placement: &Placement,
        initial: &[u32],
        params: Vec<Params>,
        (start_looks, effort): (u32, u64),
    ) -> Flow {
        let side = |((cell, &channel), &ready): ((&crate::graph::Cell, &Channel), &u32)| Side {
            channel,
            kernel: cell.kernel,
            level: cell.level,
            next: 0,
            ready,
            free: 0,
            group: 0,
            done: 0,
            skipped: 0,
            feeders: cell.feeders.clone(),
            feeds: cell.feeds.iter().map(|&(to, _)| to).collect(),
            grows: OnceLock::new(),
            busy: false,
            depth: cell.depth,
            after_sync: cell.after_sync,
            most: cell.most,
            predicate: cell.predicate.clone(),
        };
        let sides: Vec<Side> = plan.cells.iter().zip(&placement.channels).zip(initial).map(side).collect();
        let depths = sides.iter().map(|side| side.depth as usize + 1).max().unwrap_or(0);
        let mut flow = Flow {
            agg,
            params,
            blocked: Vec::new(),
            arrivals: VecDeque::new(),
            working: BTreeSet::new(),
            tasks: BTreeSet::new(),
            syncs: BTreeSet::new(),
            busy: vec![0; depths],
            all_busy: 0,
            unfreed: BTreeSet::new(),
            roomier: BTreeSet::new(),
            changed: true,
            names: plan.names.clone(),
            ends: placement.ends.clone(),
            start_looks: start_looks.into(),
            effort,
            sides,
        };
        (0..flow.sides.len()).for_each(|at| flow.note(at));
        flow
    }

    /// The core that the firmware runs on.
    pub fn agg(&self) -> &Agg {
        &self.agg
    }

    /// Charges instructions that access no memory, times the run's `effort`.
    fn charge(&self, instructions: u64) {
        self.agg.compute(instructions * self.effort);
    }

    /// Charges a look at the state that the firmware keeps of so many channels.
    fn charge_scan(&self, channels: usize) {
        self.agg.scan(channels as u64 * self.effort, cost::LOOK);
    }

    /// Number of channels, each level of a stack counted.
    pub fn channels(&self) -> usize {
        self.sides.len()
    }

    /// Elements of a channel that are ready and not yet dispatched.
    pub fn ready(&self, channel: usize) -> u32 {
        self.sides[channel].waiting()
    }

    /// How many ready elements the channel's predicate releases: full wavefronts, and the rest if it releases
    /// that too. `may_grow`: more may arrive before these are processed.
    pub fn released(&self, channel: usize, may_grow: bool) -> u32 {
        let side = &self.sides[channel];
        let width = side.channel.shape.width;
        let goes = |ready: u32| {
            ready > 0 && (side.predicate.0)(Waiting { ready, may_grow, level: side.level, width })
        };
        let ready = side.waiting();
        let rest = ready % WAVE;
        let full = if ready > rest && goes(ready) { ready - rest } else { 0 };
        full + if goes(rest) { rest } else { 0 }
    }

    /// Elements of a channel that were dispatched and are not known to be done.
    pub fn outstanding(&self, channel: usize) -> u32 {
        self.sides[channel].outstanding()
    }

    /// Whether a channel's kernel is a continuation after a sync.
    pub fn after_sync(&self, channel: usize) -> bool {
        self.sides[channel].after_sync
    }

    /// What a channel is called: "channel `tasks`", or "level 2 of channel `tasks`".
    pub fn name_of(&self, channel: usize) -> &str {
        &self.names.channels[channel]
    }

    /// Depth of a channel in the recursion.
    pub fn depth(&self, channel: usize) -> u32 {
        self.sides[channel].depth
    }

    /// Number of wavefronts that wait for room in a channel.
    pub fn blocked(&self) -> usize {
        self.blocked.len()
    }

    /// Whether nothing is ready, nothing is in flight, and the host puts nothing more.
    pub fn is_finished(&self) -> bool {
        self.charge_scan(1);
        self.blocked.is_empty() && self.all_busy == 0 && self.arrivals.is_empty()
    }

    /// Keeps the lists of channels up to date after a change to one.
    fn note(&mut self, at: usize) {
        let side = &mut self.sides[at];
        let busy = !side.is_idle();
        if busy != std::mem::replace(&mut side.busy, busy) {
            let count = &mut self.busy[side.depth as usize];
            *count = if busy { *count + 1 } else { *count - 1 };
            self.all_busy = if busy { self.all_busy + 1 } else { self.all_busy - 1 };
        }
        let key = (side.depth, at);
        let ready = if side.after_sync { &mut self.syncs } else { &mut self.tasks };
        if side.waiting() > 0 {
            ready.insert(key)
        } else {
            ready.remove(&key)
        };
        if side.outstanding() > 0 {
            self.working.insert(at)
        } else {
            self.working.remove(&at)
        };
        self.changed = true;
    }

    /// Polls all channels that may have changed, those with elements in flight and those that they feed: learns what
    /// is done, and what is ready.
    pub async fn poll(&mut self) {
        let _span = self.agg.span(|| "poll".to_string());
        let working: Vec<usize> = self.working.iter().copied().collect();
        let mut fed: Vec<usize> = working.iter().flat_map(|&at| &self.sides[at].feeds).copied().collect();
        fed.sort_unstable();
        fed.dedup();
        self.charge_scan(working.len() + fed.len());
        // Read `done` before `ready`. An element's products were ready before it was done, so a channel without
        // outstanding elements has then shown everything that came of them.
        let counts: Vec<_> = working
            .iter()
            .map(|&at| {
                self.charge(cost::POLL);
                let side = &self.sides[at];
                self.agg.load32(side.channel.done(side.group))
            })
            .collect();
        for (&at, count) in working.iter().zip(counts) {
            let count = count.await;
            if count == self.sides[at].done {
                continue;
            }
            self.sides[at].done = count;
            while self.sides[at].done == self.sides[at].channel.shape.group {
                self.leave_group(at).await;
            }
            self.note(at);
        }
        let ends: Vec<_> = fed
            .iter()
            .map(|&at| {
                self.charge(cost::POLL);
                self.agg.load32(self.sides[at].channel.ready())
            })
            .collect();
        for (&at, end) in fed.iter().zip(ends) {
            let end = end.await;
            if end != self.sides[at].ready {
                self.sides[at].ready = end;
                self.note(at);
            }
        }
    }

    /// Whether more elements may arrive in a channel before its ready ones are processed: the host will put some, or a
    /// kernel that writes it is running or will run. Continuations after a sync will not run while anything deeper is
    /// left.
    pub fn may_grow(&self, at: usize) -> bool {
        let adds = |from: usize| {
            self.charge_scan(1);
            let side = &self.sides[from];
            let runs = side.outstanding() > 0 || (from != at && !side.after_sync && side.waiting() > 0);
            runs && self.grows(from, at)
        };
        let comes = |arrival: &Arrival| arrival.at == at || self.grows(arrival.at, at);
        if self.arrivals.iter().any(comes) {
            return true;
        }
        self.working.iter().any(|&from| adds(from)) || self.tasks.iter().any(|&(_, from)| adds(from))
    }

    /// Whether elements of a channel can add to another one before any continuation after a sync runs.
    fn grows(&self, from: usize, to: usize) -> bool {
        let reached = self.sides[from].grows.get_or_init(|| growing(&self.sides, from));
        reached[to / 64] >> (to % 64) & 1 != 0
    }

    /// Goes on from a channel's oldest group, all of which is done, to the next one, and loads its count.
    async fn leave_group(&mut self, at: usize) {
        self.unfreed.insert(at);
        let side = &mut self.sides[at];
        side.group = side.group.wrapping_add(side.channel.shape.group);
        side.done = 0;
        if side.outstanding() > 0 {
            let count = side.channel.done(side.group);
            self.charge(cost::POLL);
            self.sides[at].done = self.agg.load32(count).await;
        }
    }

    /// Frees the groups that are done, in allocation order. Returns whether there were any. A scheduler calls this
    /// after it has started what can start: nothing that runs waits for it unless a channel is full.
    pub fn free(&mut self) -> bool {
        if self.unfreed.is_empty() {
            return false;
        }
        let _span = self.agg.span(|| "free".to_string());
        for at in std::mem::take(&mut self.unfreed) {
            while self.sides[at].free != self.sides[at].group {
                self.charge(cost::FREE);
                self.agg.note(|| format!("free a group of {}", self.names.channels[at]));
                let side = &mut self.sides[at];
                // The count must be 0 before anyone can reserve these elements again.
                self.agg.store32(side.channel.done(side.free), 0);
                side.free = side.free.wrapping_add(side.channel.shape.group);
                self.agg.store32(side.channel.head(), side.free);
            }
            self.roomier.insert(at);
        }
        self.changed = true;
        true
    }

    /// Closes a channel's oldest group if only a part of it was ever reserved and all of that part is done:
    /// reserves the rest and frees the whole group. Otherwise a group that nobody fills would never be freed.
    async fn close_group(&mut self, at: usize) -> bool {
        let (channel, group) = (self.sides[at].channel, self.sides[at].group);
        // Read `done` before `tail`: elements that are done were reserved before.
        let done = self.agg.load32(channel.done(group)).await;
        let tail = self.agg.load32(channel.tail()).await;
        self.charge(cost::FREE);
        self.sides[at].done = done;
        let size = channel.shape.group;
        if done == 0 || done == size || tail != group.wrapping_add(done) {
            return false;
        }
        if self.agg.cas32(channel.tail(), tail, group.wrapping_add(size)).await != tail {
            return false;
        }
        self.sides[at].skipped = self.sides[at].skipped.wrapping_add(size - done);
        self.leave_group(at).await;
        self.note(at);
        self.free()
    }

    /// Starts wavefronts on up to `most` ready elements of a channel, with one command. Those for which no compute
    /// unit has room wait in the dispatcher. Returns the number of elements.
    pub fn start(&mut self, at: usize, most: u32) -> u32 {
        let kernel = self.sides[at].kernel;
        self.charge(cost::START);
        let side = &mut self.sides[at];
        let count = side.waiting().min(most);
        if count == 0 {
            return 0;
        }
        self.agg.note(|| {
            let (kernel, elements) =
                (&self.names.kernels[kernel], if count == 1 { "element" } else { "elements" });
            format!("start `{kernel}` on {count} {elements} of {}", self.names.channels[at])
        });
        self.agg.scan(self.start_looks, cost::LOOK);
        let params = &mut self.params[kernel];
        params.set(0, &side.channel.descriptor.to_le_bytes());
        params.set(8, &side.next.to_le_bytes());
        params.set(12, &count.to_le_bytes());
        params.set(16, &side.level.to_le_bytes());
        // No need to await the answer: wavefronts are told apart by what they have done.
        drop(self.agg.start(params, count.div_ceil(WAVE)));
        side.next = side.next.wrapping_add(count);
        self.note(at);
        count
    }

    /// Takes over the records of wavefronts that have yielded. Returns how many.
    pub async fn take_yields(&mut self) -> usize {
        let mut taken = 0;
        while let Some(wavefront) = self.agg.next_yield().await {
            self.charge(cost::YIELD);
            let waits_for = |side: &Side| side.channel.descriptor == wavefront.resource;
            match self.sides.iter().position(waits_for) {
                Some(on) => {
                    self.agg.note(|| {
                        let kernel = &self.names.kernels[wavefront.kernel as usize];
                        format!("`{kernel}` waits for room in {}", self.names.channels[on])
                    });
                    self.blocked.push(Blocked { wavefront, on });
                    self.roomier.insert(on);
                    self.changed = true;
                }
                None => {
                    self.agg.fail(self.no_channel(&wavefront));
                    return taken;
                }
            }
            taken += 1;
        }
        taken
    }

    /// Why a wavefront cannot wait for what it yielded for.
    fn no_channel(&self, wavefront: &Yielded) -> String {
        let kernel = &self.names.kernels[wavefront.kernel as usize];
        let descriptor = wavefront.resource & !EXCESS;
        if let Some(at) = self.sides.iter().position(|side| side.channel.descriptor == descriptor) {
            let (side, name) = (&self.sides[at], &self.names.channels[at]);
            let writes = |&from: &usize| self.sides[from].kernel == wavefront.kernel as usize;
            return if side.feeders.iter().any(writes) {
                too_many_at_once(kernel, name, side.most)
            } else {
                undeclared(kernel, name)
            };
        }
        match self.ends.iter().position(|&end| end == descriptor) {
            Some(stack) => {
                let (name, levels) = &self.names.stacks[stack];
                format!(
                    "kernel `{kernel}` puts elements behind the last level of channel `{name}`, which has {levels}: \
                     give its recursion as many levels as this input needs"
                )
            }
            None => format!(
                "kernel `{kernel}` waits for room at {:#x}, which is no channel of this graph: pass it the channel \
                 with `constants`",
                wavefront.resource
            ),
        }
    }

    /// Restarts wavefronts that wait for a channel with room, as many as there is room for. Returns how many.
    pub async fn restart(&mut self) -> usize {
        let mut restarted = 0;
        for on in std::mem::take(&mut self.roomier) {
            if !self.blocked.iter().any(|blocked| blocked.on == on) {
                continue;
            }
            let channel = self.sides[on].channel;
            let tail = self.agg.load32(channel.tail()).await;
            let side = &self.sides[on];
            let mut room = channel.shape.width.saturating_sub(tail.wrapping_sub(side.free));
            let most = side.most;
            while room >= most {
                self.charge(cost::YIELD);
                let Some(at) = self.blocked.iter().position(|blocked| blocked.on == on) else { break };
                let blocked = self.blocked.remove(at);
                self.agg.note(|| {
                    let kernel = &self.names.kernels[blocked.wavefront.kernel as usize];
                    format!("restart `{kernel}`: room in {}", self.names.channels[on])
                });
                drop(self.agg.restart(blocked.wavefront));
                restarted += 1;
                room = room.saturating_sub(most * WAVE);
            }
        }
        restarted
    }
}

/// The channels that elements of a channel can add to before any continuation after a sync runs, a bit for each.
fn growing(sides: &[Side], from: usize) -> Box<[u64]> {
    let mut reached = vec![0; sides.len().div_ceil(64)];
    let mut to_visit = sides[from].feeds.clone();
    while let Some(at) = to_visit.pop() {
        let (word, bit) = (&mut reached[at / 64], 1 << (at % 64));
        if *word & bit == 0 && !sides[at].after_sync {
            to_visit.extend_from_slice(&sides[at].feeds);
        }
        *word |= bit;
    }
    reached.into()
}
