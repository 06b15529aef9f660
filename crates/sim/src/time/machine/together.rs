//! Kernels of a plan on one machine: CTAs start in the order in which their kernels came, those of later ones where the
//! earlier leave room, and each kernel has its own counts.

use super::*;
use crate::time::dispatch::News;
use crate::time::machine::plan::{Move, MoveFrom, Plan};

impl<const N: usize, P: Probe> Machine<'_, N, P> {
    /// Carries the plan out up to cycle `now`: copies move their bytes, kernels arrive. Returns whether it pauses here.
    pub(super) fn carry_out_plan(&mut self, now: Cycle) -> bool {
        let Some(plan) = &mut self.plan else { return false };
        let moved = plan.settle(now);
        let is_paused = plan.is_paused();
        if !moved.is_empty() {
            self.move_bytes(moved);
            self.quiet_since = now;
        }
        is_paused
    }

    /// Starts CTAs of the kernels that are there.
    pub(super) fn dispatch_plan(&mut self, now: Cycle) {
        let Some(mut plan) = self.plan.take() else { return };
        self.start_ctas(&mut plan, now);
        self.plan = Some(plan);
    }

    fn start_ctas(&mut self, plan: &mut Plan, now: Cycle) {
        let until = now + self.window;
        let count = self.sms.len();
        let turns = self.starts.turns(count);
        let startable: Vec<u16> = plan.startable().collect();
        for kernel in startable {
            let mut without_room = 0;
            while without_room < turns && plan.kernels[usize::from(kernel)].unstarted() > 0 {
                let sm = self.starts.sm(count);
                if sm < count && plan.fits(kernel, sm) {
                    if !self.starts.take(now, until) {
                        return;
                    }
                    if plan.kernels[usize::from(kernel)].start.is_none() {
                        plan.kernels[usize::from(kernel)].before = Some(Box::new(self.counts_now()));
                    }
                    let number = plan.start_cta(kernel, sm, now);
                    let context = self.context;
                    self.sm(sm, now).start_cta_of(&context, kernel, number, now);
                    without_room = 0;
                } else {
                    without_room += 1;
                }
                self.starts.next_turn(count);
            }
        }
        self.starts.end_round();
    }

    /// Hears of the CTAs that ended in the last window.
    pub(super) fn hear_of_ends(&mut self) {
        let Some(mut plan) = self.plan.take() else { return };
        let mut over = Vec::new();
        for at in 0..self.sms.count() {
            let id = self.sms.number(at);
            for (end, news) in self.sms[id].dispatched.news.drain(..) {
                let News::Ended { kernel } = news else { continue };
                if plan.cta_ended(kernel, id, end) {
                    over.push(kernel);
                }
            }
        }
        for kernel in over {
            let stats = self.counts_of(&plan, kernel, self.exchanged);
            plan.kernels[usize::from(kernel)].stats = Some(Box::new(stats));
        }
        self.plan = Some(plan);
    }

    /// The host's copies go through the L2 where its writes do.
    fn move_bytes(&mut self, moves: Vec<Move>) {
        let mut memory = self.memory.write().expect(NO_PANIC);
        for Move { to, from } in moves {
            let data = match from {
                MoveFrom::Host(data) => data,
                MoveFrom::Device { address, bytes } => {
                    let data = memory.read(address, bytes as usize).map(<[u8]>::to_vec);
                    data.expect("both ends were looked at before the plan began")
                }
            };
            let written = memory.write(to, &data);
            debug_assert!(written, "both ends were looked at before the plan began");
            if self.context.launch.chip.l2.host_writes {
                let bytes = self.side.line_bytes;
                let first = LineAddress::of(to, bytes).0;
                for line in (first..to + data.len() as u64).step_by(bytes as usize).map(LineAddress) {
                    let (partition, slice) = self.side.routes.map.slice_of(line);
                    self.partitions[partition as usize].write_by_host(slice, line);
                }
            }
        }
    }

    /// The counters of the whole machine since the plan began.
    fn counts_now(&self) -> TimedStats {
        let mut counts = TimedStats::gather(&self.sms, &self.partitions, &self.locks);
        (counts.requests, counts.replies) = (self.requests.network.stats(), self.replies.network.stats());
        counts
    }

    /// What a kernel did by cycle `now`: the counts of its warps, and those of the memory system while it ran, which
    /// are of all kernels that ran then.
    pub(super) fn counts_of(&self, plan: &Plan, kernel: u16, now: Cycle) -> TimedStats {
        let there = &plan.kernels[usize::from(kernel)];
        let mut stats = self.counts_now();
        if let Some(before) = &there.before {
            stats.subtract(before);
        }
        stats.total = SmStats::default();
        for sm in self.sms.iter() {
            let own = sm.probe.of_kernel(kernel).cloned().unwrap_or_default();
            stats.total.add(&own);
            stats.sms[sm.id() as usize].0 = own;
        }
        stats.policy = self.options.policy.to_string();
        stats.cycles = there.span(now).map_or(0, |span| span.end - span.start);
        let others = plan.kernels.iter().filter(|other| other.ctas != there.ctas);
        stats.beside = Some(others.filter(|other| there.overlaps(other, now)).count() as u64);
        stats
    }
}
