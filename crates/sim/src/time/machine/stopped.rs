//! A machine that has stopped, at the end of its launch or before: what can be read of it, and its results.

use std::sync::RwLockReadGuard;

use super::*;
use crate::time::machine::plan::PlannedKernel;

/// A machine whose launch has ended or was stopped early, in the state of its last cycle. [`Stopped::finish`] takes it
/// apart.
pub(crate) struct Stopped<'a, const N: usize, P: Probe> {
    pub(super) machine: Machine<'a, N, P>,
    pub(super) end: Result<(), Stop>,
}

/// The results of a launch.
pub(crate) struct Finished<P> {
    pub end: Result<(), Stop>,
    pub timed: TimedStats,
    /// The rate of CTAs, if the machine ran until it had settled, and what is left of the grid.
    pub settled: Option<Settled>,
    /// What was leaped over.
    pub leapt: Option<Leapt>,
    pub warp_instructions: u64,
    pub thread_instructions: u64,
    /// CTAs that ever ran, and their warps.
    pub ctas: u64,
    pub warps: u64,
    pub output: Output,
    pub uninitialised: UninitialisedReads,
    /// By kernel.
    pub notes: Vec<Notes>,
    /// The plan, if there was one.
    pub plan: Option<Box<Plan>>,
    /// The number of the kernel that has faulted, if one has.
    pub faulty: u16,
    /// The observer of each SM.
    pub probes: Vec<P>,
}

impl<'a, const N: usize, P: Probe> Stopped<'a, N, P> {
    /// Whether its plan pauses: it can go on.
    pub(crate) fn is_paused(&self) -> bool {
        self.end.is_ok() && self.plan().is_some_and(Plan::is_paused)
    }

    /// Why it was stopped, if it did not end by itself.
    pub(crate) fn stop(&self) -> Option<&Stop> {
        self.end.as_ref().err()
    }

    pub(crate) fn context(&self) -> &Context<'a> {
        &self.machine.context
    }

    pub(crate) fn policy(&self) -> &str {
        self.machine.options.policy
    }

    pub(crate) fn sms(&self) -> impl Iterator<Item = &Sm<N, (SmStats, P)>> {
        self.machine.sms.iter()
    }

    pub(crate) fn memory(&self) -> RwLockReadGuard<'_, &'a mut Memory> {
        self.machine.memory.read().expect(NO_PANIC)
    }

    /// The holders of locks in global memory.
    pub(crate) fn locks(&self) -> &LockTable {
        &self.machine.locks
    }

    pub(crate) fn aggregator(&self) -> Option<&Unit<'a>> {
        self.machine.aggregator.as_ref()
    }

    pub(crate) fn plan(&self) -> Option<&Plan> {
        self.machine.plan.as_deref()
    }

    /// CTAs of the grid that have not started.
    pub(crate) fn unstarted_ctas(&self) -> u64 {
        let left = self.machine.settled().map_or(0, |settled| settled.left);
        self.machine.total - self.machine.next_cta + left
    }

    /// Whether no value has changed lately: for as long as the search for hangs waits, or most of the launch.
    pub(crate) fn is_quiet(&self) -> bool {
        let quiet = self.now().saturating_sub(self.machine.quiet_since);
        quiet >= self.machine.context.launch.chip.hang.watch_cycles || 2 * quiet >= self.cycles()
    }

    /// How attempts at locks went before it stopped.
    pub(crate) fn lock_pace(&self) -> LockPace {
        self.machine.pace(self.now())
    }

    /// The cycle in which the launch ended or was stopped.
    pub(crate) fn now(&self) -> Cycle {
        let machine = &self.machine;
        let last = machine.sms.iter().map(|sm| if self.end.is_ok() { sm.last_end } else { sm.now() }).max();
        // Those that have had no CTA are as far as the last window.
        let idle = self.end.is_err() && machine.sms.count() < machine.sms.len();
        let idle = if idle { machine.exchanged } else { machine.start };
        last.unwrap_or(idle).max(idle).max(machine.firmware_cycle())
    }

    /// Cycles since the launch began.
    pub(crate) fn cycles(&self) -> u64 {
        self.now().saturating_sub(self.machine.start)
    }

    /// Accounts for the last states of warps, lets accesses in flight reach memory, and returns the results.
    pub(crate) fn finish(self) -> Finished<P> {
        let now = self.now();
        let Stopped { mut machine, end } = self;
        machine.sms.iter_mut().for_each(|sm| sm.cut_off(now));
        let mut timed = TimedStats::gather(&machine.sms, &machine.partitions, &machine.locks);
        timed.since(&machine.before);
        timed.cycles = now.saturating_sub(machine.start);
        timed.policy = machine.options.policy.to_string();
        timed.requests = machine.requests.network.stats();
        timed.replies = machine.replies.network.stats();
        timed.samples = machine.all_samples(&timed);
        timed.aggregator = machine.firmware_stats(now);
        for sm in machine.sms.iter() {
            timed.sms[sm.id() as usize].0.stalled_on_aggregator = sm.dispatched.empty_cycles;
            timed.total.stalled_on_aggregator += sm.dispatched.empty_cycles;
        }
        if let Some(mut plan) = machine.plan.take() {
            for kernel in 0..plan.kernels.len() as u16 {
                let stopped = |kernel: &PlannedKernel| kernel.start.is_some() && !kernel.is_over;
                if stopped(&plan.kernels[usize::from(kernel)]) {
                    let stats = machine.counts_of(&plan, kernel, now);
                    plan.kernels[usize::from(kernel)].stats = Some(Box::new(stats));
                }
            }
            machine.plan = Some(plan);
        }
        let (ctas, warps) = machine.started();
        let settled = machine.settled();
        timed.coherence = machine.coherence.as_ref().map(|coherence| coherence.stats());
        if end.is_err() {
            machine.drain();
            machine.show_host();
        }
        machine.save_areas.free(&mut machine.memory.write().expect(NO_PANIC));
        machine.side.network = Some(Network {
            senders: machine.sms.len() + usize::from(machine.aggregator.is_some()),
            requests: machine.requests.into_inner().network,
            replies: machine.replies.into_inner().network,
        });
        machine.side.partitions = machine
            .partitions
            .into_inner()
            .into_things()
            .into_iter()
            .map(|(_, partition)| partition)
            .collect();
        let mut finished = Finished {
            end,
            warp_instructions: timed.total.warp_instructions(),
            thread_instructions: timed.total.thread_instructions,
            timed,
            settled,
            leapt: machine.sampling.and_then(|sampling| sampling.leaps.finish()),
            ctas,
            warps,
            output: Output::default(),
            uninitialised: UninitialisedReads::default(),
            notes: vec![Notes::default(); 1 + machine.context.others.len()],
            plan: machine.plan,
            faulty: machine.faulty,
            probes: Vec::new(),
        };
        let mut probes: Vec<_> = machine.builder.into_probes().collect();
        for (id, mut sm) in machine.sms.into_things() {
            sm.take_notes(&mut finished.output, &mut finished.notes);
            let (parts, unwritten, (_, probe)) = sm.take_apart();
            finished.uninitialised.merge(unwritten);
            probes[id] = Some(probe);
            machine.side.parts.extend(parts);
        }
        finished.probes.extend(probes.into_iter().flatten());
        finished
    }
}
