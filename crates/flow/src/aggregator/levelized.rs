//! The scheduler for recursions: Section 5.2 and 5.3 of the paper.
//!
//! Tasks before a sync go level by level, the shallowest first, which makes work quickly; when somebody waits for room,
//! the deepest go first, because the deepest end without making more. What follows a sync waits until everything deeper
//! has ended.

use super::Flow;
use crate::channel::WAVE;

/// Core cycles between two looks at channels in which nothing has happened.
const PAUSE_CYCLES: u64 = 32;

/// Runs a graph to its end.
pub async fn levelized(mut flow: Flow) {
    loop {
        // Asked before anything is looked at: what the wavefronts made is seen then, and all that yielded are known.
        let all_wait = flow.everybody_waits().await;
        flow.take_yields().await;
        flow.poll().await;
        let restarted = flow.restart().await > 0;
        let started = flow.start_tasks().await || flow.start_after_sync(all_wait && !restarted).await;
        if restarted || started {
            continue;
        }
        if flow.is_finished() {
            return;
        }
        if all_wait && !flow.make_room().await && !flow.start_a_rest().await {
            // Nothing can be started or freed. If this does not change, the machine tells who waits for what.
            flow.agg.event().await;
        }
        flow.agg.sleep(PAUSE_CYCLES).await;
    }
}

impl Flow {
    /// Starts wavefronts on tasks, as their channels' predicates say. Returns whether it did.
    async fn start_tasks(&mut self) -> bool {
        let mut started = false;
        self.look(self.tasks.len());
        for turn in 0..self.tasks.len() {
            // When somebody waits for room, the deepest come first.
            let turn = if self.blocked() > 0 { self.tasks.len() - 1 - turn } else { turn };
            let at = self.tasks[turn];
            if self.ready(at) == 0 {
                continue;
            }
            let most = self.released(at, self.may_grow(at));
            started |= most > 0 && self.start(at, most).await > 0;
        }
        started
    }

    /// Whether more elements may come to a channel before its own are processed: a kernel that writes it is at work, or will
    /// be. Those that follow a sync will not, as long as anything deeper is there.
    fn may_grow(&self, at: usize) -> bool {
        let mut seen = vec![false; self.channels()];
        seen[at] = true;
        let mut look_at = self.sides[at].feeders.clone();
        while let Some(feeder) = look_at.pop() {
            self.look(1);
            if self.outstanding(feeder) > 0 {
                return true;
            }
            if std::mem::replace(&mut seen[feeder], true) || self.after_sync(feeder) {
                continue;
            }
            if self.ready(feeder) > 0 {
                return true;
            }
            look_at.extend_from_slice(&self.sides[feeder].feeders);
        }
        false
    }

    /// Starts what follows a sync, of the deepest channel that has any, if everything deeper has ended. `all_wait`: no
    /// wavefront was at work when the channels were looked at. Returns whether it did.
    async fn start_after_sync(&mut self, all_wait: bool) -> bool {
        self.look(self.syncs.len());
        for turn in 0..self.syncs.len() {
            let at = self.syncs[turn];
            if self.ready(at) == 0 {
                continue;
            }
            if !self.deeper_has_ended(at) {
                return false;
            }
            let feeders_work = self.sides[at].feeders.iter().any(|&feeder| self.outstanding(feeder) > 0);
            // Who waits for room here has given its tasks away, or has not begun; who waits for deeper room has not.
            let depth = self.depth(at);
            let waits_deeper = |blocked: &super::Blocked| self.sides[blocked.on].depth > depth;
            if feeders_work && (self.blocked.iter().any(waits_deeper) || !all_wait) {
                continue;
            }
            // What the predicate holds back goes when nothing else can.
            let most = match self.released(at, false) {
                0 if all_wait => self.ready(at),
                most => most,
            };
            return self.start(at, most).await > 0;
        }
        false
    }

    fn deeper_has_ended(&self, at: usize) -> bool {
        self.look(self.sides.len());
        let depth = self.depth(at);
        self.sides.iter().all(|side| side.depth <= depth || side.is_idle())
    }

    /// Whether no wavefront is on a compute unit or on its way there.
    async fn everybody_waits(&mut self) -> bool {
        let (running, yielded) = (self.agg.running(), self.agg.yielded());
        running.await == yielded.await
    }

    /// Frees what can be of channels that somebody waits for. Returns whether that was anything.
    async fn make_room(&mut self) -> bool {
        let channels: Vec<usize> = self.blocked.iter().map(|blocked| blocked.on).collect();
        let mut made = false;
        for at in channels {
            made |= self.close_group(at).await;
        }
        made
    }

    /// Starts the deepest tasks, although more may come to their channel: nobody makes any. Returns whether it did.
    async fn start_a_rest(&mut self) -> bool {
        self.look(self.tasks.len());
        match self.tasks.iter().rev().copied().find(|&at| self.ready(at) > 0) {
            Some(at) => self.start(at, WAVE).await > 0,
            None => false,
        }
    }
}
