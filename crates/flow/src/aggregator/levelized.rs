//! The default scheduler, made for recursions: Sections 5.2 and 5.3 of the paper.
//!
//! Tasks run level by level, the shallowest first, which creates work quickly. When a wavefront waits for room,
//! the deepest run first, because they finish without creating more. A continuation after a sync waits until
//! everything deeper has ended.

use super::Flow;
use crate::channel::WAVE;

/// Core cycles to sleep when nothing has happened.
const PAUSE_CYCLES: u64 = 32;

/// Runs a graph to its end.
pub(crate) async fn levelized(mut flow: Flow) {
    loop {
        // Ask before looking at the channels: then everything that the wavefronts produced, and every yield, is
        // seen below.
        let all_yielded = flow.all_yielded().await;
        flow.take_yields().await;
        flow.poll().await;
        let restarted = flow.restart().await > 0;
        let started = flow.start_tasks().await || flow.start_after_sync(all_yielded && !restarted).await;
        if restarted || started {
            continue;
        }
        if flow.is_finished() {
            return;
        }
        if all_yielded && !flow.make_room().await && !flow.start_partial().await {
            // Nothing can be started or freed. If that does not change, the machine reports who waits for what.
            flow.agg.event().await;
        }
        flow.agg.sleep(PAUSE_CYCLES).await;
    }
}

impl Flow {
    /// Starts wavefronts on tasks as the channels' predicates decide. Returns whether it started any.
    async fn start_tasks(&mut self) -> bool {
        let mut started = false;
        self.charge_scan(self.tasks.len());
        for i in 0..self.tasks.len() {
            // When a wavefront waits for room, the deepest come first.
            let i = if self.blocked() > 0 { self.tasks.len() - 1 - i } else { i };
            let at = self.tasks[i];
            if self.ready(at) == 0 {
                continue;
            }
            let most = self.released(at, self.may_grow(at));
            started |= most > 0 && self.start(at, most).await > 0;
        }
        started
    }

    /// Whether more elements may arrive in a channel before its ready ones are processed: a kernel that writes
    /// it is running or will run. Continuations after a sync will not run while anything deeper is left.
    fn may_grow(&self, at: usize) -> bool {
        let mut seen = vec![false; self.channels()];
        seen[at] = true;
        let mut to_visit = self.sides[at].feeders.clone();
        while let Some(feeder) = to_visit.pop() {
            self.charge_scan(1);
            if self.outstanding(feeder) > 0 {
                return true;
            }
            if std::mem::replace(&mut seen[feeder], true) || self.after_sync(feeder) {
                continue;
            }
            if self.ready(feeder) > 0 {
                return true;
            }
            to_visit.extend_from_slice(&self.sides[feeder].feeders);
        }
        false
    }

    /// Starts continuations after a sync: those of the deepest channel that has any, if everything deeper has ended.
    /// `all_yielded`: no wavefront was running when the channels were polled. Returns whether it started any.
    async fn start_after_sync(&mut self, all_yielded: bool) -> bool {
        self.charge_scan(self.syncs.len());
        for i in 0..self.syncs.len() {
            let at = self.syncs[i];
            if self.ready(at) == 0 {
                continue;
            }
            if !self.deeper_has_ended(at) {
                return false;
            }
            let feeders_work = self.sides[at].feeders.iter().any(|&feeder| self.outstanding(feeder) > 0);
            // A wavefront that waits for room at this depth has put its tasks already, or has not begun. One
            // that waits for room in a deeper channel has not put them yet.
            let depth = self.depth(at);
            let waits_deeper = |blocked: &super::Blocked| self.sides[blocked.on].depth > depth;
            if feeders_work && (self.blocked.iter().any(waits_deeper) || !all_yielded) {
                continue;
            }
            // Elements that the predicate holds back run when nothing else can.
            let most = match self.released(at, false) {
                0 if all_yielded => self.ready(at),
                most => most,
            };
            return self.start(at, most).await > 0;
        }
        false
    }

    fn deeper_has_ended(&self, at: usize) -> bool {
        self.charge_scan(self.sides.len());
        let depth = self.depth(at);
        self.sides.iter().all(|side| side.depth <= depth || side.is_idle())
    }

    /// Whether no wavefront is on a compute unit or about to start on one.
    async fn all_yielded(&mut self) -> bool {
        let (running, yielded) = (self.agg.running(), self.agg.yielded());
        running.await == yielded.await
    }

    /// Closes groups of the channels that wavefronts wait for. Returns whether that freed any element.
    async fn make_room(&mut self) -> bool {
        let channels: Vec<usize> = self.blocked.iter().map(|blocked| blocked.on).collect();
        let mut made = false;
        for at in channels {
            made |= self.close_group(at).await;
        }
        made
    }

    /// Starts the deepest tasks even if their wavefront is partial, because nothing that could fill it is
    /// running. Returns whether it started any.
    async fn start_partial(&mut self) -> bool {
        self.charge_scan(self.tasks.len());
        match self.tasks.iter().rev().copied().find(|&at| self.ready(at) > 0) {
            Some(at) => self.start(at, WAVE).await > 0,
            None => false,
        }
    }
}
