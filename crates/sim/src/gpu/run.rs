//! Runs one launch on the functional or the timed machine and turns its end into a result.

use std::sync::{Arc, RwLock};

use crate::exec::functional;
use crate::exec::launch::{Launch, Limits};
use crate::exec::memory::store::Memory;
use crate::exec::occupancy::Unlaunchable;
use crate::exec::stop::{HangReason, Stop};
use crate::explain::hang::{Hang, explain_functional, explain_timed};
use crate::explain::lock_warnings::lock_warnings;
use crate::explain::profile::{Code, Profiler};
use crate::explain::trace::{self, Recording, Timeline};
use crate::gpu::fast::Estimate;
use crate::gpu::observers::{MakeObserver, Observers};
use crate::gpu::outcome::{LaunchError, Stats};
use crate::gpu::timing::Timing;
use crate::kit::cycle::Cycle;
use crate::time::aggregator::Aggregator;
use crate::time::machine::{self, Dispatch, Finished, Leapt, MemorySide, Options, Settled, Suspended};
use crate::time::sched::Policies;
use crate::time::sm::Context;
use crate::time::sm::front_end::decode::decode;
use crate::time::sm::front_end::fetch::CODE_BASE;
use crate::time::sm::load_store::CONSTANT_BASE;
use crate::time::sm::probe::Probe;

pub(super) fn run_functional(launch: &Launch<'_>, memory: &mut Memory) -> Result<Stats, LaunchError> {
    match launch.chip.sm.warp_lanes {
        32 => run_functional_with::<32>(launch, memory),
        _ => run_functional_with::<64>(launch, memory),
    }
}

fn run_functional_with<const N: usize>(
    launch: &Launch<'_>,
    memory: &mut Memory,
) -> Result<Stats, LaunchError> {
    let stopped = functional::run::<N>(launch, memory);
    let hang = hang_of(&stopped);
    let finished = stopped.finish();
    let stats = Stats {
        warp_instructions: finished.warp_instructions,
        thread_instructions: finished.thread_instructions,
        ctas: finished.ctas,
        warps: finished.warps,
        output: finished.output.into_text(),
        uninitialised: finished.uninitialised.into_vec(),
        races: Vec::new(),
        lock_warnings: lock_warnings(&finished.notes.locks, launch),
        outside_loads: finished.notes.outside.explain(launch),
        timed: None,
        estimate: None,
        trace: None,
        profile: None,
    };
    outcome(finished.end, hang, stats)
}

/// Runs the CTAs functionally that the timed machine has left out, and estimates how long they would have taken.
fn run_rest<const N: usize>(
    launch: &Launch<'_>,
    memory: &mut Memory,
    finished: &mut Finished<impl Probe>,
    settled: Settled,
) -> (Estimate, Option<Hang>) {
    let total = launch.shape.ctas();
    // The limit in cycles, as instructions at the rate of the timed part.
    let cycles_left = launch.limits.max_cycles.map(|limit| limit.saturating_sub(finished.timed.cycles));
    let max_cycles = cycles_left.map(|cycles| (cycles as f64 / settled.cycles_per_instruction) as u64);
    let limits = Limits { max_cycles, ..launch.limits.clone() };
    let rest = Launch { limits: &limits, ..*launch };
    let mut stopped = functional::run_rest::<N>(&rest, memory, total - settled.left);
    if let (Err(Stop::Hang(HangReason::CycleLimit(limit))), Some(cycles)) =
        (&mut stopped.end, launch.limits.max_cycles)
    {
        *limit = cycles;
    }
    let hang = hang_of(&stopped);
    let rest = stopped.finish();
    let estimate = Estimate::of_rest(finished, settled, rest.warp_instructions);
    finished.ctas += rest.ctas;
    finished.warps += rest.warps;
    finished.end = add_functional(finished, rest);
    (estimate, hang)
}

/// Adds to a launch what it has done in leaps, and says how long it would have taken with that.
fn add_leapt(finished: &mut Finished<impl Probe>, leapt: Leapt) -> Estimate {
    let estimate = Estimate::with_leaps(finished, &leapt);
    leapt.parts.into_iter().for_each(|part| _ = add_functional(finished, part));
    estimate
}

/// Adds to a launch what a part of it has done on the functional machine. Returns how that ended.
fn add_functional(finished: &mut Finished<impl Probe>, part: functional::Finished) -> Result<(), Stop> {
    finished.thread_instructions += part.thread_instructions;
    finished.warp_instructions += part.warp_instructions;
    finished.output.merge(part.output);
    finished.uninitialised.merge(part.uninitialised);
    if let Some(notes) = finished.notes.first_mut() {
        notes.merge(part.notes);
    }
    part.end
}

/// What warps did in a functional launch that was stopped.
fn hang_of<const N: usize>(stopped: &functional::Stopped<'_, N>) -> Option<Hang> {
    match &stopped.end {
        Err(Stop::Hang(reason)) => Some(explain_functional(stopped, reason.clone())),
        Err(Stop::Interrupted) => Some(explain_functional(stopped, HangReason::Interrupted)),
        _ => None,
    }
}

/// The number of a kernel that hangs, and why it does.
pub(super) type HangOf = (u16, Hang);

/// How a run of the timed machine begins.
pub(super) enum Begin<'a, const N: usize, P: Probe, F> {
    /// With a new machine. The function makes the observer of an SM.
    New(Dispatch<'a>, F),
    /// With one whose plan paused.
    Suspended(Box<Suspended<N, P>>),
}

/// How a run of the timed machine ended.
pub(super) enum End<const N: usize, P: Probe> {
    Paused(Box<Suspended<N, P>>),
    Over(Box<Finished<P>>, Option<Box<HangOf>>),
}

/// A launch of a grid, and how it is timed.
pub(super) struct TimedGrid<'a> {
    pub(super) launch: &'a Launch<'a>,
    pub(super) timing: &'a Timing,
    /// The kernel's code, if the launch is profiled.
    pub(super) profiled: Option<Arc<Code>>,
    pub(super) policies: &'a Policies,
    pub(super) observers: &'a [MakeObserver],
}

impl TimedGrid<'_> {
    /// Runs it; only until the rate of its CTAs has settled, and the others functionally, if that is asked for.
    pub(super) fn run(
        &self,
        memory: &mut Memory,
        side: &mut MemorySide,
        until_settled: bool,
    ) -> Result<Stats, LaunchError> {
        let Launch { chip, kernel, params, constants, .. } = *self.launch;
        let code = decode(kernel, chip);
        if chip.l2.host_writes {
            let bytes = code.instructions.len() as u64 * u64::from(chip.fetch.instruction_bytes);
            side.write_by_host(CODE_BASE, bytes);
            side.write_by_host(CONSTANT_BASE, params.len().max(constants.len()) as u64);
        }
        let context = Context::new(self.launch, &code, 0);
        let run = TimedRun {
            context,
            timing: self.timing,
            profiled: self.profiled.clone(),
            policies: self.policies,
            observers: self.observers,
            aggregator: None,
            until_settled,
        };
        run.start(Dispatch::Grid, memory, side)
    }
}

/// A launch, a firmware run or a plan on the timed machine.
pub(super) struct TimedRun<'a> {
    pub(super) context: Context<'a>,
    pub(super) timing: &'a Timing,
    /// The kernel's code, if the launch is profiled.
    pub(super) profiled: Option<Arc<Code>>,
    pub(super) policies: &'a Policies,
    pub(super) observers: &'a [MakeObserver],
    /// Of a run of firmware.
    pub(super) aggregator: Option<Aggregator>,
    /// CTAs are timed until their rate has settled; the others run functionally.
    pub(super) until_settled: bool,
}

impl TimedRun<'_> {
    /// Runs it. The machine is compiled with and without observers, so that a launch without them pays nothing.
    pub(super) fn start(
        &self,
        dispatch: Dispatch<'_>,
        memory: &mut Memory,
        side: &mut MemorySide,
    ) -> Result<Stats, LaunchError> {
        let observed = self.timing.trace.is_some() || self.timing.profile || !self.observers.is_empty();
        match (self.context.launch.chip.sm.warp_lanes, observed) {
            (32, false) => self.run::<32, ()>(dispatch, memory, side, |_, _| ()).0,
            (_, false) => self.run::<64, ()>(dispatch, memory, side, |_, _| ()).0,
            (32, true) => self.run_observed::<32>(dispatch, memory, side),
            (_, true) => self.run_observed::<64>(dispatch, memory, side),
        }
    }

    fn run<const N: usize, P: Probe>(
        &self,
        dispatch: Dispatch<'_>,
        memory: &mut Memory,
        side: &mut MemorySide,
        make_probe: impl Fn(u32, Cycle) -> P,
    ) -> (Result<Stats, LaunchError>, Vec<P>) {
        let begin = Begin::New(dispatch, make_probe);
        let (mut finished, mut hang) = match self.run_machine::<N, P>(begin, memory, side) {
            Ok(End::Over(finished, hang)) => (*finished, hang.map(|hang| hang.1)),
            Ok(End::Paused(_)) => unreachable!("only plans pause"),
            Err(error) => return (Err(error.into()), Vec::new()),
        };
        let mut estimate = None;
        if let Some(settled) = finished.settled.filter(|_| finished.end.is_ok()) {
            let (of_rest, hang_of_rest) = run_rest::<N>(self.context.launch, memory, &mut finished, settled);
            (estimate, hang) = (Some(of_rest), hang_of_rest);
        } else if let Some(leapt) = finished.leapt.take() {
            estimate = Some(add_leapt(&mut finished, leapt));
        }
        let launches = || std::iter::once(&self.context).chain(self.context.others).map(|c| c.launch);
        let notes = || launches().zip(&finished.notes);
        let stats = Stats {
            warp_instructions: finished.warp_instructions,
            thread_instructions: finished.thread_instructions,
            ctas: finished.ctas,
            warps: finished.warps,
            races: Vec::new(),
            lock_warnings: notes().flat_map(|(launch, notes)| lock_warnings(&notes.locks, launch)).collect(),
            outside_loads: notes().flat_map(|(launch, notes)| notes.outside.explain(launch)).collect(),
            output: finished.output.into_text(),
            uninitialised: finished.uninitialised.into_vec(),
            timed: Some(Box::new(finished.timed)),
            estimate,
            trace: None,
            profile: None,
        };
        (outcome(finished.end, hang, stats), finished.probes)
    }

    /// Runs the machine to its end, or to where its plan pauses. If it hangs, says which kernel does, and why.
    pub(super) fn run_machine<const N: usize, P: Probe>(
        &self,
        begin: Begin<'_, N, P, impl Fn(u32, Cycle) -> P>,
        memory: &mut Memory,
        side: &mut MemorySide,
    ) -> Result<End<N, P>, Unlaunchable> {
        let launch = self.context.launch;
        let policy = self.timing.policy.as_deref().unwrap_or(&launch.chip.issue.policy);
        let Some(make) = self.policies.find(policy) else {
            let known = self.policies.names().map(str::to_string).collect();
            return Err(Unlaunchable::Policy { name: policy.to_string(), known });
        };
        let options = Options {
            policy,
            make_policy: &|| make(launch.chip),
            bows: self.timing.bows.clone(),
            // With one host thread the accesses come in the same order each time.
            threads: if launch.races.is_some() { 1 } else { self.timing.threads },
            sample_cycles: self.timing.sample_cycles,
            until_settled: self.until_settled,
        };
        let memory = RwLock::new(memory);
        let stopped = match begin {
            Begin::New(dispatch, make_probe) => {
                machine::run::<N, P>(self.context, dispatch, &options, &memory, side, make_probe)
            }
            Begin::Suspended(suspended) => machine::resume(*suspended, self.context, &options, &memory, side),
        };
        if stopped.is_paused() {
            return Ok(End::Paused(Box::new(stopped.suspend())));
        }
        let hang = match stopped.stop() {
            Some(Stop::Hang(reason)) => Some(explain_timed(&stopped, reason.clone())),
            Some(Stop::Interrupted) => Some(explain_timed(&stopped, HangReason::Interrupted)),
            _ => None,
        };
        Ok(End::Over(Box::new(stopped.finish()), hang.map(Box::new)))
    }

    fn run_observed<const N: usize>(
        &self,
        dispatch: Dispatch<'_>,
        memory: &mut Memory,
        side: &mut MemorySide,
    ) -> Result<Stats, LaunchError> {
        let launch = self.context.launch;
        let profiled = self.profiled.clone();
        let profiler = profiled.map(|code| Profiler::new(code, self.timing.over_time));
        let make_probe = |sm, start: Cycle| {
            let timeline = self.timing.trace.as_ref().map(|options| {
                let room = options.max_bytes / u64::from(options.sms.count(launch.chip.sm.count).max(1));
                Timeline::new(sm, launch.chip.sm.max_warps, start, options, room)
            });
            let recorder =
                profiler.as_ref().map(|profiler| profiler.recorder(launch.chip.sm.max_warps, start));
            Observers::new(timeline, recorder, self.observers.iter().map(|make| make(sm)).collect())
        };
        let (mut result, observers) = self.run::<N, Observers>(dispatch, memory, side, make_probe);
        let Some(stats) = stats_of(&mut result) else { return result };
        let Some(timed) = stats.timed.as_deref() else { return result };
        let (timelines, recorders): (Vec<_>, Vec<_>) =
            observers.into_iter().map(Observers::into_parts).unzip();
        if let Some(options) = &self.timing.trace {
            let others = self.context.others.iter().map(|context| context.launch.kernel);
            let recording = Recording {
                launch,
                kernels: std::iter::once(launch.kernel).chain(others).collect(),
                events: self.aggregator.as_ref().and_then(Aggregator::take_events),
                memory,
                cycles: timed.cycles,
                policy: &timed.policy,
            };
            let timelines = timelines.into_iter().flatten().collect();
            stats.trace = Some(trace::write(&recording, options, timelines));
        }
        if let Some(profiler) = profiler {
            let recorders = recorders.into_iter().flatten().collect();
            stats.profile = Some(Arc::new(profiler.finish(launch, memory, timed.cycles, recorders)));
        }
        result
    }
}

pub(super) fn outcome(end: Result<(), Stop>, hang: Option<Hang>, stats: Stats) -> Result<Stats, LaunchError> {
    let Err(stop) = end else { return Ok(stats) };
    let stats = Box::new(stats);
    Err(match (stop, hang.map(Box::new)) {
        (Stop::Fault(fault), _) => LaunchError::Fault { fault, stats },
        (Stop::Firmware(message), _) => LaunchError::Firmware { message, stats },
        (Stop::Interrupted, Some(state)) => LaunchError::Interrupted { state, stats },
        (_, Some(hang)) => LaunchError::Hang { hang, stats },
        (Stop::Hang(_) | Stop::Interrupted, None) => unreachable!("what was running is explained"),
    })
}

/// The stats of a launch, whether it succeeded or not; `None` if it never ran.
pub(super) fn stats_of(result: &mut Result<Stats, LaunchError>) -> Option<&mut Stats> {
    match result {
        Ok(stats) => Some(stats),
        Err(LaunchError::Unlaunchable(_)) => None,
        Err(
            LaunchError::Fault { stats, .. }
            | LaunchError::Hang { stats, .. }
            | LaunchError::Firmware { stats, .. }
            | LaunchError::Beside { stats, .. }
            | LaunchError::Interrupted { stats, .. },
        ) => Some(stats),
    }
}
