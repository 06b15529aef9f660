//! What firmware on the aggregator does with the channels of a graph.
//!
//! [`Flow`] is the aggregator's view: it polls, starts wavefronts on what is ready, frees in the order of allocation, and keeps
//! those that yielded. [`levelized`] is the scheduler that a graph runs under unless it is given another: an `async` function
//! over a `Flow`, of which anybody can write another.

mod levelized;

use warploom::{Agg, Params, Yielded};

pub use levelized::levelized;

use crate::channel::{Channel, WAVE};
use crate::graph::{Plan, Predicate, Waiting};

/// Instructions of the firmware besides its accesses to channels, for each thing it does. Together they are as many as the
/// functions below take when they are compiled for x86-64, without what stands for the aggregator itself (docs/channels.md).
mod cost {
    /// To look at one channel among all: what is done with its state after it is loaded.
    pub const LOOK: u64 = 7;
    /// To take note of a word of a channel that came.
    pub const POLL: u64 = 4;
    /// To fill in a start.
    pub const START: u64 = 8;
    /// To free a group.
    pub const FREE: u64 = 4;
    /// To find the channel that a wavefront waits for, and to keep or drop its record.
    pub const YIELD: u64 = 10;
}

/// The aggregator's side of one channel.
#[derive(Clone, Debug)]
struct Side {
    channel: Channel,
    kernel: usize,
    level: u32,
    /// The first entry that was not handed out.
    next: u32,
    /// The end of what was ready when it last looked.
    ready: u32,
    /// The first position of the oldest group that is not free, and how many of that group are done.
    group: u32,
    done: u32,
    /// Elements of groups that were closed before they were full.
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

    /// Elements that were handed out and are not known to be done.
    fn outstanding(&self) -> u32 {
        self.next.wrapping_add(self.skipped).wrapping_sub(self.group).wrapping_sub(self.done)
    }

    fn is_idle(&self) -> bool {
        self.waiting() == 0 && self.outstanding() == 0
    }
}

/// A wavefront that waits for room in a channel.
#[derive(Clone, Copy, Debug)]
struct Blocked {
    wavefront: Yielded,
    on: usize,
}

/// The channels of a graph, as firmware sees them.
#[derive(Debug)]
pub struct Flow {
    agg: Agg,
    sides: Vec<Side>,
    params: Vec<Params>,
    blocked: Vec<Blocked>,
    /// Channels of tasks, the shallowest first.
    tasks: Vec<usize>,
    /// Channels of what follows a sync, the deepest first.
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

    /// The core it runs on.
    pub fn agg(&self) -> &Agg {
        &self.agg
    }

    /// Instructions that touch no memory, as many times over as the run says.
    fn work(&self, instructions: u64) {
        self.agg.compute(instructions * self.effort);
    }

    /// A look at so many channels: at what the firmware itself knows of them.
    fn look(&self, channels: usize) {
        self.agg.scan(channels as u64 * self.effort, cost::LOOK);
    }

    /// How many channels there are, each level of a stack counted.
    pub fn channels(&self) -> usize {
        self.sides.len()
    }

    /// Elements of a channel that are ready and were not handed out.
    pub fn ready(&self, channel: usize) -> u32 {
        self.sides[channel].waiting()
    }

    /// Elements of a channel that its predicate lets go: full wavefronts, and what is left if it says so of that. `may_grow`:
    /// more may come.
    pub fn released(&self, channel: usize, may_grow: bool) -> u32 {
        let side = &self.sides[channel];
        let goes =
            |ready: u32| ready > 0 && (side.predicate.0)(Waiting { ready, may_grow, level: side.level });
        let ready = side.waiting();
        let rest = ready % WAVE;
        let full = if ready > rest && goes(ready) { ready - rest } else { 0 };
        full + if goes(rest) { rest } else { 0 }
    }

    /// Elements of a channel that were handed out and are not known to be done.
    pub fn outstanding(&self, channel: usize) -> u32 {
        self.sides[channel].outstanding()
    }

    /// Whether a channel's kernel follows a sync.
    pub fn after_sync(&self, channel: usize) -> bool {
        self.sides[channel].after_sync
    }

    /// How deep in the recursion a channel is.
    pub fn depth(&self, channel: usize) -> u32 {
        self.sides[channel].depth
    }

    /// Wavefronts that wait for room in some channel.
    pub fn blocked(&self) -> usize {
        self.blocked.len()
    }

    /// Whether nothing is ready and nothing is under way.
    pub fn is_finished(&self) -> bool {
        self.look(self.sides.len());
        self.blocked.is_empty() && self.sides.iter().all(Side::is_idle)
    }

    /// Looks at all channels in which something may have happened: frees what is done, and learns what is ready.
    pub async fn poll(&mut self) {
        let feeders: usize = self.sides.iter().map(|side| side.feeders.len()).sum();
        self.look(2 * self.sides.len() + feeders);
        let working: Vec<usize> = (0..self.sides.len()).filter(|&at| self.outstanding(at) > 0).collect();
        let fed = |side: &Side| side.feeders.iter().any(|&feeder| self.outstanding(feeder) > 0);
        let fed: Vec<usize> = (0..self.sides.len()).filter(|&at| fed(&self.sides[at])).collect();
        // Counts of the done come first: what an element made was ready before it was done, so that who finds a channel
        // without work under way has seen all that came of it.
        let counts: Vec<_> = working
            .iter()
            .map(|&at| {
                self.work(cost::POLL);
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
                self.work(cost::POLL);
                self.agg.load32(self.sides[at].channel.ready())
            })
            .collect();
        for (&at, end) in fed.iter().zip(ends) {
            self.sides[at].ready = end.await;
        }
    }

    /// Frees the oldest group of a channel, which is done, and looks at the next one.
    async fn free_group(&mut self, at: usize) {
        self.work(cost::FREE);
        let side = &mut self.sides[at];
        // The count is 0 before anybody can reserve these elements again.
        self.agg.store32(side.channel.done(side.group), 0);
        side.group = side.group.wrapping_add(side.channel.shape.group);
        self.agg.store32(side.channel.head(), side.group);
        side.done = 0;
        if side.outstanding() > 0 {
            side.done = self.agg.load32(side.channel.done(side.group)).await;
        }
    }

    /// If only a part of a channel's oldest group was ever reserved and that part is done, takes the rest of it and frees it
    /// all: a group that nobody fills would never be free.
    async fn close_group(&mut self, at: usize) -> bool {
        let (channel, group) = (self.sides[at].channel, self.sides[at].group);
        // First the count, then the tail: what is done was reserved before.
        let done = self.agg.load32(channel.done(group)).await;
        let tail = self.agg.load32(channel.tail()).await;
        self.work(cost::FREE);
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

    /// Starts wavefronts on up to `most` ready elements of a channel, as many as have a place at once. Returns on how many
    /// elements.
    pub async fn start(&mut self, at: usize, most: u32) -> u32 {
        let kernel = self.sides[at].kernel;
        let free = self.agg.free(kernel as u16).await;
        self.work(cost::START);
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
        // The answer is not waited for: there is a place, and the command is on its way.
        drop(self.agg.start(params, count.div_ceil(WAVE)));
        side.next = side.next.wrapping_add(count);
        count
    }

    /// Takes the records of wavefronts that have yielded. Returns how many.
    pub async fn take_yields(&mut self) -> usize {
        let mut taken = 0;
        while let Some(wavefront) = self.agg.next_yield().await {
            self.work(cost::YIELD);
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

    /// Restarts wavefronts that wait for channels in which there is room, as many as the room is enough for. Returns how many.
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
                self.work(cost::YIELD);
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
