//! The firmware that runs a graph on the aggregator.
//!
//! [`Flow`] is the aggregator's view of the channels: it polls them, starts wavefronts on ready elements, frees
//! groups in allocation order, and keeps the wavefronts that yielded. [`levelized`] is the default scheduler,
//! an `async` function over a `Flow`; users can write others.

mod levelized;

use warploom::{Agg, Params, Yielded};

pub(crate) use levelized::levelized;

use crate::channel::{Channel, WAVE};
use crate::graph::{Plan, Predicate, Waiting};

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
    /// Per yield: finding the channel that the wavefront waits for, and adding or removing its record.
    pub(super) const YIELD: u64 = 10;
}

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
    /// The first position of the oldest group that is not free, and how many of its elements are done.
    group: u32,
    done: u32,
    /// Never reserved elements in groups that were closed.
    skipped: u32,
    feeders: Vec<usize>,
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
    /// Channels of tasks, the shallowest first.
    tasks: Vec<usize>,
    /// Channels of continuations after a sync, the deepest first.
    syncs: Vec<usize>,
    effort: u64,
}

impl Flow {
    pub(crate) fn new(
        agg: Agg,
        plan: &Plan,
        channels: &[Channel],
        initial: &[u32],
        params: Vec<Params>,
        effort: u64,
    ) -> Flow {
        let side = |((cell, &channel), &ready): ((&crate::graph::Cell, &Channel), &u32)| Side {
            channel,
            kernel: cell.kernel,
            level: cell.level,
            next: 0,
            ready,
            group: 0,
            done: 0,
            skipped: 0,
            feeders: cell.feeders.clone(),
            depth: cell.depth,
            after_sync: cell.after_sync,
            most: cell.most,
            predicate: cell.predicate.clone(),
        };
        let sides: Vec<Side> = plan.cells.iter().zip(channels).zip(initial).map(side).collect();
        let (mut syncs, mut tasks): (Vec<usize>, Vec<usize>) =
            (0..sides.len()).partition(|&at| sides[at].after_sync);
        tasks.sort_by_key(|&at| sides[at].depth);
        syncs.sort_by_key(|&at| std::cmp::Reverse((sides[at].depth, at)));
        Flow { agg, sides, params, blocked: Vec::new(), tasks, syncs, effort }
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
        let goes =
            |ready: u32| ready > 0 && (side.predicate.0)(Waiting { ready, may_grow, level: side.level });
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

    /// Depth of a channel in the recursion.
    pub fn depth(&self, channel: usize) -> u32 {
        self.sides[channel].depth
    }

    /// Number of wavefronts that wait for room in a channel.
    pub fn blocked(&self) -> usize {
        self.blocked.len()
    }

    /// Whether nothing is ready and nothing is in flight.
    pub fn is_finished(&self) -> bool {
        self.charge_scan(self.sides.len());
        self.blocked.is_empty() && self.sides.iter().all(Side::is_idle)
    }

    /// Polls all channels that may have changed: frees groups that are done, and learns what is ready.
    pub async fn poll(&mut self) {
        let feeders: usize = self.sides.iter().map(|side| side.feeders.len()).sum();
        self.charge_scan(2 * self.sides.len() + feeders);
        let working: Vec<usize> = (0..self.sides.len()).filter(|&at| self.outstanding(at) > 0).collect();
        let fed = |side: &Side| side.feeders.iter().any(|&feeder| self.outstanding(feeder) > 0);
        let fed: Vec<usize> = (0..self.sides.len()).filter(|&at| fed(&self.sides[at])).collect();
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
            self.sides[at].done = count.await;
            while self.sides[at].done == self.sides[at].channel.shape.group {
                self.free_group(at).await;
            }
        }
        let ends: Vec<_> = fed
            .iter()
            .map(|&at| {
                self.charge(cost::POLL);
                self.agg.load32(self.sides[at].channel.ready())
            })
            .collect();
        for (&at, end) in fed.iter().zip(ends) {
            self.sides[at].ready = end.await;
        }
    }

    /// Frees the oldest group of a channel, all of which is done, and loads the next group's counter.
    async fn free_group(&mut self, at: usize) {
        self.charge(cost::FREE);
        let side = &mut self.sides[at];
        // The count must be 0 before anyone can reserve these elements again.
        self.agg.store32(side.channel.done(side.group), 0);
        side.group = side.group.wrapping_add(side.channel.shape.group);
        self.agg.store32(side.channel.head(), side.group);
        side.done = 0;
        if side.outstanding() > 0 {
            side.done = self.agg.load32(side.channel.done(side.group)).await;
        }
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
        self.free_group(at).await;
        true
    }

    /// Starts wavefronts on up to `most` ready elements of a channel, as many as fit on the chip at once.
    /// Returns the number of elements.
    pub async fn start(&mut self, at: usize, most: u32) -> u32 {
        let kernel = self.sides[at].kernel;
        let free = self.agg.free(kernel as u16).await;
        self.charge(cost::START);
        let side = &mut self.sides[at];
        let count = side.waiting().min(most).min(free.saturating_mul(WAVE));
        if count == 0 {
            return 0;
        }
        let params = &mut self.params[kernel];
        params.set(0, &side.channel.descriptor.to_le_bytes());
        params.set(8, &side.next.to_le_bytes());
        params.set(12, &count.to_le_bytes());
        params.set(16, &side.level.to_le_bytes());
        // No need to await the answer: there is room, and the command is in flight.
        drop(self.agg.start(params, count.div_ceil(WAVE)));
        side.next = side.next.wrapping_add(count);
        count
    }

    /// Takes over the records of wavefronts that have yielded. Returns how many.
    pub async fn take_yields(&mut self) -> usize {
        let mut taken = 0;
        while let Some(wavefront) = self.agg.next_yield().await {
            self.charge(cost::YIELD);
            let waits_for = |side: &Side| side.channel.descriptor == wavefront.resource;
            match self.sides.iter().position(waits_for) {
                Some(on) => self.blocked.push(Blocked { wavefront, on }),
                None => {
                    self.agg.fail(format!(
                        "a wavefront yielded for {:#x}, which is no channel of this graph",
                        wavefront.resource
                    ));
                    return taken;
                }
            }
            taken += 1;
        }
        taken
    }

    /// Restarts wavefronts that wait for a channel with room, as many as there is room for. Returns how many.
    pub async fn restart(&mut self) -> usize {
        let mut restarted = 0;
        let mut channels: Vec<usize> = self.blocked.iter().map(|blocked| blocked.on).collect();
        channels.sort_unstable();
        channels.dedup();
        for on in channels {
            let channel = self.sides[on].channel;
            let tail = self.agg.load32(channel.tail()).await;
            let side = &self.sides[on];
            let mut room = channel.shape.width.saturating_sub(tail.wrapping_sub(side.group));
            let most = side.most;
            while room >= most {
                self.charge(cost::YIELD);
                let Some(at) = self.blocked.iter().position(|blocked| blocked.on == on) else { break };
                let blocked = self.blocked.remove(at);
                drop(self.agg.restart(blocked.wavefront));
                restarted += 1;
                room = room.saturating_sub(most * WAVE);
            }
        }
        restarted
    }
}
