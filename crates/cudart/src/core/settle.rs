//! Pending work is done: together, if kernels of several streams can overlap, or else one after the other.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use warploom::{Arg, Error, Move, MoveFrom, Plan, Report};

use crate::core::error::{CudaError, Result};
use crate::core::launch::{Ran, failure, within};
use crate::core::pending::{Moment, Node, Order, Pending, PendingLaunch};
use crate::core::process::{Open, Process, complain};
use crate::core::timeline::{Picoseconds, StreamId};

impl Process {
    /// Does all that is pending. A kernel that fails gives its error to this call and all later ones.
    pub(crate) fn settle(&mut self) -> Result {
        let Some(open) = self.opened().filter(|open| !open.pending.is_empty()) else { return Ok(()) };
        let pending = std::mem::take(&mut open.pending);
        let order = open.streams.order(&pending);
        let is_launch = |item: usize| matches!(pending[item].1, Pending::Launch(_));
        let together = order.overlaps(is_launch) && self.run_together(&pending, &order)?;
        if together { Ok(()) } else { self.run_in_turn(pending) }
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

    fn run_in_turn(&mut self, pending: Vec<(StreamId, Pending)>) -> Result {
        let mut all = Ok(());
        for (stream, what) in pending {
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

    /// Runs all of it on one machine. Returns false if that cannot be done, and nothing was.
    fn run_together(&mut self, pending: &[(StreamId, Pending)], order: &Order) -> Result<bool> {
        let (limit, max_cycles) = (self.settings.time_limit, self.settings.max_cycles);
        let Some(open) = self.opened() else { return Err(CudaError::INITIALIZATION) };
        let base = open.streams.now();
        let cycle_ps = open.cycle_ps();
        let cycles = |time: Picoseconds| (time as f64 / cycle_ps).ceil() as u64;
        let mut plan = Plan::new(open.properties.most_kernels);
        let mut launches: Vec<&PendingLaunch> = Vec::new();
        for node in &order.nodes {
            let not_before = cycles(node.not_before.saturating_sub(base));
            match &pending[node.item].1 {
                Pending::Launch(launch) => {
                    let arguments: Vec<_> = launch.arguments.iter().map(|bytes| Arg::bytes(bytes)).collect();
                    let shape = &launch.launch;
                    if plan.kernel(&node.after, not_before, &launch.kernel, shape, &arguments).is_err() {
                        return Ok(false);
                    }
                    launches.push(launch);
                }
                Pending::Copy(copy) => {
                    plan.copy(&node.after, not_before, cycles(copy.duration), copy.moves.clone());
                }
                Pending::Record { .. } | Pending::Wait { .. } => {}
            }
        }
        plan.max_cycles = max_cycles;
        open.memory.bring_to_device(&mut open.gpu)?;
        let limit = limit.map(|limit| limit * launches.len() as u32);
        let run = |interrupt: Option<Arc<AtomicBool>>| {
            plan.interrupt = interrupt;
            open.gpu.run_plan(plan)
        };
        let (run, out_of_time) = within(limit, run);
        let Ok(run) = run else { return Ok(false) };
        open.memory.bring_to_host(&open.gpu)?;
        let moment = |cycle: u64| base + (cycle as f64 * cycle_ps) as u64;
        let times: Vec<_> =
            run.times.iter().map(|time| time.map(|(start, end)| (moment(start), moment(end)))).collect();
        open.tell_times(pending, order, &times);
        let numbers = order.nodes.iter().enumerate().filter_map(|(node, Node { item, stream, .. })| {
            matches!(pending[*item].1, Pending::Launch(_)).then_some((node, *stream))
        });
        let mut ran: Vec<_> = numbers.zip(launches.iter().zip(&run.kernels)).collect();
        // Lines are written as launches end.
        ran.sort_by_key(|((node, _), (launch, _))| {
            (times[*node].map_or(u64::MAX, |(_, end)| end), launch.number)
        });
        let mut failed = None;
        for ((node, stream), (launch, result)) in ran {
            let report = match result {
                Ok(report) => Some(report),
                Err(error) => error.report(),
            };
            if let Some(report) = report {
                let start = times[node].map_or(base, |(start, _)| start);
                let ran = launch.ran(stream, report, result.as_ref().err());
                open.note_at(&ran, start);
                open.tell(&ran);
            }
            match result {
                Ok(_) | Err(Error::Beside { .. }) => {}
                Err(error) => {
                    let reason = if out_of_time { " (WARPLOOM_TIME_LIMIT)" } else { "" };
                    complain(format!("{}, launch {}: {error}{reason}", launch.plain, launch.number));
                    failed = Some(failure(error));
                }
            }
        }
        self.sticky = self.sticky.or(failed);
        self.check().map(|()| true)
    }
}

impl PendingLaunch {
    fn ran<'a>(&'a self, stream: StreamId, report: &'a Report, error: Option<&'a Error>) -> Ran<'a> {
        Ran { plain: &self.plain, number: self.number, stream, report, error }
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
        !self.pending.is_empty()
    }

    /// Puts off work of a stream.
    pub(crate) fn put_off(&mut self, stream: StreamId, what: Pending) {
        self.pending.push((stream, what));
    }

    /// Bytes move now. Memory that is shared is the host's between launches.
    fn carry_out(&mut self, moved: &Move) -> Result {
        let data = match &moved.from {
            MoveFrom::Host(data) => data.clone(),
            &MoveFrom::Device { address, bytes } => self.read_either(address, bytes as usize)?,
        };
        self.write_either(moved.to, &data)
    }

    /// Tells the streams when their work began and ended, as far as it has.
    fn tell_times(
        &mut self,
        pending: &[(StreamId, Pending)],
        order: &Order,
        times: &[Option<(Picoseconds, Picoseconds)>],
    ) {
        for (node, time) in order.nodes.iter().zip(times) {
            let &Some((start, end)) = time else { continue };
            if let Pending::Copy(copy) = &pending[node.item].1 {
                self.streams.ran(node.stream, copy.direction.into(), start, end);
            }
        }
        let end_of = |moment: &Moment| {
            let ends = moment.nodes.iter().filter_map(|&node| times[node]).map(|(_, end)| end);
            ends.max().unwrap_or(0).max(moment.not_before)
        };
        for (event, moment) in &order.events {
            self.streams.happened(*event, end_of(moment));
        }
        for (stream, moment) in &order.ends {
            self.streams.ends(*stream, end_of(moment));
        }
    }
}
