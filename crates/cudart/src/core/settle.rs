//! Pending work is done: together, if kernels of several streams can overlap, or else one after the other.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use warploom::{Arg, Error, Move, MoveFrom, Plan, PlanRun, Report};

use crate::core::error::{CudaError, Result};
use crate::core::launch::{Ran, failure, told, within};
use crate::core::pending::{Awaited, Outstanding, Pending, PendingLaunch};
use crate::core::process::{Open, Process, complain};
use crate::core::timeline::{Picoseconds, StreamId};

impl Process {
    /// Does all that is pending. A kernel that fails gives its error to this call and all later ones.
    pub(crate) fn settle(&mut self) -> Result {
        self.settle_until(Awaited::Everything)
    }

    /// Does what is pending of the work that the host waits for. Kernels of other streams that run beside it go on with
    /// the next call.
    pub(crate) fn settle_until(&mut self, awaited: Awaited) -> Result {
        let Some(open) = self.opened().filter(|open| open.is_pending()) else { return Ok(()) };
        open.tell_moments();
        let awaited = open.streams.awaited(&open.pending, awaited);
        if awaited.as_ref().is_some_and(Vec::is_empty) {
            return Ok(());
        }
        if open.pending.runs_together() && self.run_together(awaited)? {
            return Ok(());
        }
        self.run_in_turn()
    }

    /// The same in a call that does not wait: the error of a kernel that fails is given by later calls.
    pub(crate) fn settle_as_launch(&mut self) -> Result {
        let result = self.settle();
        if self.sticky.is_some() { Ok(()) } else { result }
    }

    /// An event marks what its stream has come to.
    pub(crate) fn record_event(&mut self, event: u64, stream: u64) -> Result {
        let open = self.open_busy()?;
        let stream = open.streams.find(stream)?;
        open.streams.find_event(event)?;
        if !open.is_pending() {
            return open.streams.record(event, stream);
        }
        open.put_off(stream, Pending::Record { event });
        Ok(())
    }

    /// Later work of a stream waits for an event.
    pub(crate) fn wait_event(&mut self, stream: u64, event: u64) -> Result {
        let open = self.open_busy()?;
        let stream = open.streams.find(stream)?;
        open.streams.find_event(event)?;
        if !open.is_pending() {
            return open.streams.wait_event(stream, event);
        }
        open.put_off(stream, Pending::Wait { event });
        Ok(())
    }

    /// Does all that the machine does not have yet, one after the other.
    fn run_in_turn(&mut self) -> Result {
        let Some(open) = self.opened() else { return Err(CudaError::INITIALIZATION) };
        let Outstanding { items, given: (given, _), .. } = std::mem::take(&mut open.pending);
        let mut all = Ok(());
        for (stream, what) in items.into_iter().skip(given) {
            // After a kernel that failed nothing runs.
            self.check()?;
            let Some(open) = self.opened() else { return Err(CudaError::INITIALIZATION) };
            all = all.and(match what {
                Pending::Launch(launch) => self.run_now(stream, &launch),
                Pending::Copy(copy) => {
                    let moved = copy.moves.iter().try_for_each(|moved| open.carry_out(moved));
                    open.streams.enqueue(stream, copy.direction.into(), 0, copy.duration);
                    moved
                }
                Pending::Record { event } => open.streams.record(event, stream),
                Pending::Wait { event } => open.streams.wait_event(stream, event),
            });
        }
        self.check().and(all)
    }

    /// Runs pending work on one machine until the awaited nodes have ended, or all of it. Returns false if what was put
    /// off last cannot run together with the rest, which then has ended.
    fn run_together(&mut self, awaited: Option<Vec<usize>>) -> Result<bool> {
        let Some(open) = self.opened() else { return Err(CudaError::INITIALIZATION) };
        let Some(mut plan) = open.plan() else { return self.finish_plan() };
        let can_pause = open.gpu.chip().is_some_and(|chip| !chip.has_coherent_l1s());
        plan.until = awaited.filter(|_| can_pause).unwrap_or_default();
        open.memory.bring_to_device(&mut open.gpu)?;
        if self.carry_out(plan)?.is_ok() { Ok(true) } else { self.finish_plan() }
    }

    /// Lets the plan run to its end, if there is one, without what was put off last. Returns false.
    fn finish_plan(&mut self) -> Result<bool> {
        let Some(open) = self.opened() else { return Err(CudaError::INITIALIZATION) };
        let (items, nodes) = open.pending.given;
        if nodes > 0 {
            open.memory.bring_to_device(&mut open.gpu)?;
            // Those that the machine does not have wait in the meantime.
            let others = open.pending.items.split_off(items);
            open.pending.order.nodes.truncate(nodes);
            let carried_out = self.carry_out(Plan::more(nodes));
            let Some(open) = self.opened() else { return Err(CudaError::INITIALIZATION) };
            open.pending = Outstanding { items: others, ..Outstanding::default() };
            carried_out?.map_err(|error| {
                complain(format!("kernels that run together: {error}"));
                CudaError::LAUNCH_FAILURE
            })?;
        }
        Ok(false)
    }

    /// Carries a plan out, and tells what became of it. The inner error is that of a plan of which nothing was carried
    /// out.
    fn carry_out(&mut self, mut plan: Plan) -> Result<std::result::Result<(), Error>> {
        let (limit, max_cycles) = (self.settings.time_limit, self.settings.max_cycles);
        let Some(open) = self.opened() else { return Err(CudaError::INITIALIZATION) };
        plan.max_cycles = max_cycles;
        let limit = limit.map(|limit| limit * open.pending.launches().count() as u32);
        let run = |interrupt: Option<Arc<AtomicBool>>| {
            plan.interrupt = interrupt;
            open.gpu.run_plan(plan)
        };
        let (run, out_of_time) = within(limit, run);
        let run = match run {
            Ok(run) => run,
            Err(error) => return Ok(Err(error)),
        };
        open.memory.bring_to_host(&open.gpu)?;
        let mut failed = None;
        for (node, result) in open.ran(&run) {
            let Some(launch) = open.pending.launch(&open.pending.order.nodes[node]).cloned() else {
                continue;
            };
            let stream = open.pending.order.nodes[node].stream;
            let report = match result {
                Ok(report) => Some(report),
                Err(error) => error.report(),
            };
            if let Some(report) = report {
                let start = open.pending.times[node].map_or(open.pending.base, |(start, _)| start);
                let ran = launch.ran(stream, report, result.as_ref().err());
                open.note_at(&ran, start);
                open.tell(&ran);
            }
            match result {
                Ok(_) | Err(Error::Beside { .. }) => {}
                Err(error) => {
                    let error_text = told(error, limit.filter(|_| out_of_time));
                    complain(format!("{}, launch {}: {error_text}", launch.plain, launch.number));
                    failed = Some(failure(error));
                }
            }
        }
        open.tell_moments();
        if run.is_over {
            open.pending = Outstanding::default();
        }
        self.sticky = self.sticky.or(failed);
        self.check().map(Ok)
    }
}

impl PendingLaunch {
    fn ran<'a>(&'a self, stream: StreamId, report: &'a Report, error: Option<&'a Error>) -> Ran<'a> {
        Ran { kernel: &self.kernel, plain: &self.plain, number: self.number, stream, report, error }
    }

    /// The same for the launch that has run alone.
    pub(crate) fn finish(&self, open: &mut Open, stream: StreamId, report: &Report, error: Option<&Error>) {
        let ran = self.ran(stream, report, error);
        open.note(&ran);
        open.tell(&ran);
    }
}

impl Open {
    /// How long a cycle takes.
    fn cycle_ps(&self) -> f64 {
        1e6 / self.gpu.chip().map_or(1000.0, |chip| f64::from(chip.clock.core_mhz))
    }

    /// Whether work is put off.
    pub(crate) fn is_pending(&self) -> bool {
        !self.pending.items.is_empty()
    }

    /// Puts off work of a stream.
    pub(crate) fn put_off(&mut self, stream: StreamId, what: Pending) {
        self.streams.put_off(&mut self.pending, stream, what);
    }

    /// A plan of the work that the machine does not have, or more of the one that pauses; `None` if there cannot be.
    fn plan(&mut self) -> Option<Plan> {
        let cycle_ps = self.cycle_ps();
        let Outstanding { items, order, given, base, .. } = &mut self.pending;
        let mut plan = match given.1 {
            0 => {
                // Nothing begins sooner.
                *base = order.nodes.iter().map(|node| node.not_before).min().unwrap_or(0);
                Plan::new(self.properties.most_kernels)
            }
            nodes => Plan::more(nodes),
        };
        let cycles = |time: Picoseconds| (time as f64 / cycle_ps).ceil() as u64;
        for node in &order.nodes[given.1..] {
            let not_before = cycles(node.not_before.saturating_sub(*base));
            match &items[node.item].1 {
                Pending::Launch(launch) => {
                    let arguments: Vec<_> = launch.arguments.iter().map(|bytes| Arg::bytes(bytes)).collect();
                    plan.kernel(&node.after, not_before, &launch.kernel, &launch.launch, &arguments).ok()?;
                }
                Pending::Copy(copy) => {
                    plan.copy(&node.after, not_before, cycles(copy.duration), copy.moves.clone());
                }
                Pending::Record { .. } | Pending::Wait { .. } => {}
            }
        }
        Some(plan)
    }

    /// Notes what the machine has by now, and the times of nodes that have ended since. Returns what became of launches
    /// in the order of their ends, in which they are told.
    fn ran<'r>(&mut self, run: &'r PlanRun) -> Vec<(usize, &'r std::result::Result<Report, Error>)> {
        let cycle_ps = self.cycle_ps();
        let Outstanding { items, order, given, base, times } = &mut self.pending;
        *given = (items.len(), order.nodes.len());
        let moment = |cycle: u64| *base + (cycle as f64 * cycle_ps) as u64;
        let before: Vec<bool> =
            (0..run.times.len()).map(|node| times.get(node).is_some_and(Option::is_some)).collect();
        *times = run.times.iter().map(|time| time.map(|(start, end)| (moment(start), moment(end)))).collect();
        for (node, _) in before.iter().enumerate().filter(|(_, ended)| !**ended) {
            let (Some((start, end)), Pending::Copy(copy)) = (times[node], &items[order.nodes[node].item].1)
            else {
                continue;
            };
            self.streams.ran(order.nodes[node].stream, copy.direction.into(), start, end);
        }
        let mut results: Vec<_> = run.kernels.iter().map(|(node, result)| (*node, result)).collect();
        results.sort_by_key(|(node, _)| (times[*node].map_or(u64::MAX, |(_, end)| end), *node));
        results
    }

    /// Tells the streams when events happened and their work ended, as far as that is known.
    fn tell_moments(&mut self) {
        for (event, moment) in &self.pending.order.events {
            if let Some(moment) = self.pending.known(moment) {
                self.streams.happened(*event, moment);
            }
        }
        for (stream, moment) in &self.pending.order.ends {
            if let Some(end) = self.pending.known(moment) {
                self.streams.ends(*stream, end);
            }
        }
    }

    /// Bytes move now. Memory that is shared is the host's between launches.
    fn carry_out(&mut self, moved: &Move) -> Result {
        let data = match &moved.from {
            MoveFrom::Host(data) => data.clone(),
            &MoveFrom::Device { address, bytes } => self.read_either(address, bytes as usize)?,
        };
        self.write_either(moved.to, &data)
    }
}
