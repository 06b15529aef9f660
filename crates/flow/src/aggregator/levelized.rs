//! The default scheduler, made for recursions: Sections 5.2 and 5.3 of the paper.
//!
//! Tasks run level by level, the shallowest first, which creates work quickly. When a wavefront waits for room,
//! the deepest run first, because they finish without creating more. A continuation after a sync waits until
//! everything deeper has ended.

use super::Flow;

/// Core cycles to sleep when nothing has happened.
const PAUSE_CYCLES: u64 = 32;

/// Runs a graph to its end.
pub(crate) async fn levelized(mut flow: Flow) {
    loop {
        // Ask before looking at the channels: then everything that the wavefronts produced, and every yield, is
        // seen below.
        let (all_yielded, none_left) = flow.all_yielded().await;
        flow.take_yields().await;
        if flow.expected() > 0 {
            flow.take_arrivals().await;
        }
        flow.poll().await;
        if std::mem::take(&mut flow.changed) || all_yielded {
            let restarted = flow.restart().await > 0;
            let started = flow.start_tasks() || flow.start_after_sync(all_yielded && !restarted);
            // Wavefronts start before room is made for what they will put.
            if flow.free() || restarted || started {
                continue;
            }
            if flow.is_finished() {
                return;
            }
            if none_left && flow.name_unfreed() {
                return;
            }
            if all_yielded && !flow.make_room().await && !flow.start_partial() {
                if flow.expected() > 0 {
                    flow.sleep_until_arrival().await;
                } else {
                    // Nothing can be started or freed. If that does not change, the machine reports who waits for what.
                    flow.agg.event().await;
                }
            }
        }
        flow.agg.sleep(PAUSE_CYCLES).await;
    }
}

impl Flow {
    /// Starts wavefronts on tasks as the channels' predicates decide. Returns whether it started any.
    fn start_tasks(&mut self) -> bool {
        // When a wavefront waits for room, the deepest come first.
        let mut ready: Vec<usize> = self.tasks.iter().map(|&(_, at)| at).collect();
        if self.blocked() > 0 {
            ready.reverse();
        }
        let mut started = false;
        for at in ready {
            let most = self.released(at, self.may_grow(at));
            started |= most > 0 && self.start(at, most) > 0;
        }
        started
    }

    /// Starts continuations after a sync: those of the deepest channel that has any, if everything deeper has ended.
    /// `all_yielded`: no wavefront was running when the channels were polled. Returns whether it started any.
    fn start_after_sync(&mut self, all_yielded: bool) -> bool {
        let ready: Vec<usize> = self.syncs.iter().rev().map(|&(_, at)| at).collect();
        for at in ready {
            self.charge_scan(1 + self.sides[at].feeders.len());
            let depth = self.depth(at);
            if self.busy[depth as usize + 1..].iter().any(|&busy| busy > 0) {
                return false;
            }
            let feeders_work = self.sides[at].feeders.iter().any(|&feeder| self.outstanding(feeder) > 0);
            // A wavefront that waits for room at this depth has put its tasks already, or has not begun. One
            // that waits for room in a deeper channel has not put them yet.
            let waits_deeper = |blocked: &super::Blocked| self.sides[blocked.on].depth > depth;
            if feeders_work && (self.blocked.iter().any(waits_deeper) || !all_yielded) {
                continue;
            }
            // Elements that the predicate holds back run when nothing else can.
            let most = match self.released(at, false) {
                0 if all_yielded => self.ready(at),
                most => most,
            };
            return self.start(at, most) > 0;
        }
        false
    }

    /// Whether no wavefront is on a compute unit or about to start on one, and whether none has yielded either.
    async fn all_yielded(&mut self) -> (bool, bool) {
        let (running, yielded) = (self.agg.running(), self.agg.yielded());
        let (running, yielded) = (running.await, yielded.await);
        (running == yielded, running == 0)
    }

    /// Fails if elements are in flight though every wavefront has ended, which `running` said before the channels were
    /// polled: nobody will ever free them.
    fn name_unfreed(&self) -> bool {
        let Some(&at) = self.working.first() else { return false };
        let (count, name) = (self.outstanding(at), self.name_of(at));
        let kernel = &self.names.kernels[self.sides[at].kernel];
        self.agg.fail(format!(
            "kernel `{kernel}` ended without freeing {count} elements of {name}: call `tfree` for every element, last"
        ));
        true
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
    fn start_partial(&mut self) -> bool {
        self.charge_scan(1);
        match self.tasks.last() {
            Some(&(_, at)) => self.start(at, self.ready(at)) > 0,
            None => false,
        }
    }
}
