//! The timed machine: SMs, the network, L2 slices and DRAM, and the loop that moves them forward together.
//!
//! Time goes in windows no longer than the network's latency. Inside a window SMs and memory partitions know nothing of
//! each other, so they run in any order or in parallel; between windows their messages are exchanged in a fixed order,
//! and what slices served is done to memory. The result is the same on any number of host threads.

mod coherence;
mod firmware;
mod hangs;

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::Ordering;
use std::sync::{Arc, RwLock};
use std::time::{Duration, Instant};

use crate::aggregator::{Running, Unit};
use crate::chip::Chip;
use crate::chip::spinning::{Bows, BowsSpec, QueueMode};
use crate::crew::{Balance, Crew, Dealt, Lent, Pace};
use crate::fault::Fault;
use crate::functional::{Launch, Output, UninitialisedReads};
use crate::gpu::{LaunchError, Stats};
use crate::hang::HangReason;
use crate::lock_queue::LockQueues;
use crate::lock_warnings::LockWarnings;
use crate::locks::LockTable;
use crate::mem::interconnect::Crossbar;
use crate::mem::l2::Partition;
use crate::mem::map::AddressMap;
use crate::mem::message::Request;
use crate::mem::store::Memory;
use crate::probe::Probe;
use crate::report::{PartitionCounts, Sample, TimedStats};
use crate::sched;
use crate::sched::accuracy::Branches;
use crate::sm::core::{Context, Sm};
use crate::sm::decode::{Decoded, decode};
use crate::sm::lock_unit::LockUnits;
use crate::sm::memory_unit::Purpose;
use crate::sm::spin_unit::SpinUnit;
use crate::stats::SmStats;
use crate::trace::TraceOptions;

/// How a launch is timed.
#[derive(Clone, Debug, Default)]
pub struct Timing {
    /// The warp scheduling policy; the chip's own if not given.
    pub policy: Option<String>,
    /// Back-off of spinning warps.
    pub bows: Bows,
    /// Host threads; 0 is one for each core.
    pub threads: usize,
    /// Counters are sampled after every so many cycles ([`TimedStats::samples`]).
    pub sample_cycles: Option<u64>,
    /// What the warps do is recorded ([`TimedStats::trace`]).
    pub trace: Option<TraceOptions>,
}

/// L2 and DRAM, which keep their state from launch to launch.
#[derive(Debug)]
pub struct MemorySide {
    partitions: Vec<Partition>,
    map: AddressMap,
    slices: u32,
    /// The cycle after the last launch.
    now: u64,
}

impl MemorySide {
    /// Empty caches, closed rows.
    pub fn new(chip: &Chip) -> MemorySide {
        let make = |_| Partition::new(&chip.l2, &chip.dram, &chip.clock);
        MemorySide {
            partitions: (0..chip.l2.partitions).map(make).collect(),
            map: AddressMap::new(&chip.l2, &chip.dram),
            slices: chip.l2.slices_per_partition,
            now: 0,
        }
    }

    fn port(&self, line: u64) -> usize {
        let (partition, slice) = self.map.slice_of(line);
        (partition * self.slices + slice) as usize
    }
}

/// Why the machine stops early.
enum End {
    Fault(Box<Fault>),
    Hang(HangReason),
    Firmware(String),
    Interrupted,
}

use coherence::{Coherence, Reply};
use firmware::SaveAreas;
pub use firmware::{MakeFirmware, run_firmware};

/// Runs the launch to its end. `make_probe` gives each SM its observers, in a launch that begins at a cycle.
pub fn run<const N: usize, P: Probe>(
    launch: &Launch<'_>,
    timing: &Timing,
    memory: &mut Memory,
    side: &mut MemorySide,
    make_probe: impl Fn(u32, u64) -> (SmStats, P),
) -> (Result<Stats, LaunchError>, Vec<P>) {
    let code = decode(launch.kernel, launch.chip);
    let context = Context { launch, code: &code, code_start: 0, others: &[] };
    run_in::<N, P>(context, None, timing, memory, side, make_probe)
}

/// Runs a launch, or firmware that starts CTAs of the context's kernels.
fn run_in<'a, const N: usize, P: Probe>(
    context: Context<'a>,
    aggregator: Option<Unit<'a>>,
    timing: &Timing,
    memory: &mut Memory,
    side: &mut MemorySide,
    make_probe: impl Fn(u32, u64) -> (SmStats, P),
) -> (Result<Stats, LaunchError>, Vec<P>) {
    let launch = context.launch;
    let chip = launch.chip;
    let policy = timing.policy.as_deref().unwrap_or(&chip.issue.policy);
    let bows = timing.bows.on_chip(chip);
    let make_policy =
        || sched::make_with(policy, chip, bows.as_ref()).expect("the policy's name was checked");
    let branches = bows.as_ref().map(|spec| Arc::new(Branches::new(launch.kernel, spec.sib)));
    let start = side.now;
    let sms: Vec<_> = (0..chip.sm.count)
        .map(|id| {
            let (ctas, probe) = (launch.occupancy.ctas_per_sm, make_probe(id, start));
            let mut sm = Sm::<N, _>::new(chip, id, ctas, &make_policy, probe, start);
            sm.dispatched.empty_since = start;
            sm.dispatched.can_yield = aggregator.is_some() && chip.wavefront_yield.is_some();
            sm.effects_mut().lock_units = LockUnits::new(launch.lock_bits(), id, 1);
            sm.lanes_ended = (chip.lock_queue.mode != QueueMode::Off).then(Vec::new);
            if let (Some(spec), Some(branches)) = (&bows, &branches) {
                sm.spin_unit = Some(Box::new(SpinUnit::new(chip, spec, branches, start)));
            }
            sm
        })
        .collect();
    let ports = side.partitions.len() * side.slices as usize;
    let before: Vec<_> =
        side.partitions.iter().map(|p| (p.stats().clone(), p.dram_stats().clone())).collect();
    let threads = match timing.threads {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        threads => threads,
    };
    // More threads than SMs would have nothing to do.
    let threads = threads.min(sms.len());
    let memory = RwLock::new(memory);
    let nodes = sms.len() + aggregator.is_some() as usize;
    let total = launch.shape.grid.iter().map(|&d| d as u64).product();
    let mut machine = Machine::<N, P> {
        context,
        timing,
        requests: Crossbar::new(nodes, ports, &chip.interconnect, &chip.clock),
        replies: Crossbar::new(ports, nodes, &coherence::reply_network(chip), &chip.clock),
        coherence: Coherence::new(chip, nodes, ports),
        told_room: vec![None; sms.len()],
        sms: Dealt::new(sms, threads),
        partitions: Dealt::new(std::mem::take(&mut side.partitions), threads),
        balance: Balance::default(),
        pace: Pace::new(),
        memory: &memory,
        side,
        start,
        window: chip.interconnect.latency_cycles as u64,
        next_cta: 0,
        total: if aggregator.is_some() { 0 } else { total },
        aggregator,
        commands: Vec::new(),
        save_areas: SaveAreas::default(),
        locks: LockTable::default(),
        lock_queues: LockQueues::new(chip),
        tries: VecDeque::from([(start, [0; 2])]),
        quiet_since: start,
        watching: false,
        samples: Vec::new(),
        next_sample: timing.sample_cycles.map(|cycles| start + cycles.max(1)),
        before,
        exchanged: start,
        cut_off: false,
        longest_delay: bows.as_ref().map_or(0, BowsSpec::longest_cycles),
    };
    let work = |share: &mut Share<N, P>| share.run(&context, &memory.read().expect(NO_PANIC));
    let end = Crew::with(threads, work, |crew| machine.run(crew));
    machine.finish(end, policy)
}

/// What one thread runs through a window.
struct Share<const N: usize, P: Probe> {
    sms: Lent<Sm<N, (SmStats, P)>>,
    partitions: Lent<Partition>,
    window: Range<u64>,
    /// How long that took.
    took: Duration,
}

impl<const N: usize, P: Probe> Default for Share<N, P> {
    fn default() -> Self {
        Share { sms: Vec::new(), partitions: Vec::new(), window: 0..0, took: Duration::ZERO }
    }
}

impl<const N: usize, P: Probe> Share<N, P> {
    fn run(&mut self, context: &Context<'_>, memory: &Memory) {
        let start = Instant::now();
        let sms = self.sms.iter_mut().map(|(_, sm)| &mut **sm);
        let partitions = self.partitions.iter_mut().map(|(_, partition)| &mut **partition);
        run_window(sms, partitions, context, memory, &self.window);
        self.took = start.elapsed();
    }
}

/// Runs SMs and partitions through a window.
fn run_window<'a, const N: usize, P: Probe + 'a>(
    sms: impl Iterator<Item = &'a mut Sm<N, (SmStats, P)>>,
    partitions: impl Iterator<Item = &'a mut Partition>,
    context: &Context<'_>,
    memory: &Memory,
    window: &Range<u64>,
) {
    sms.for_each(|sm| sm.run(context, memory, window.start, window.end));
    partitions.for_each(|partition| partition.run(window.end));
}

const NO_PANIC: &str = "nobody panics with memory in hand";

struct Machine<'a, const N: usize, P: Probe> {
    context: Context<'a>,
    timing: &'a Timing,
    sms: Dealt<Sm<N, (SmStats, P)>>,
    partitions: Dealt<Partition>,
    balance: Balance,
    pace: Pace,
    /// Read by all inside a window, changed only between windows.
    memory: &'a RwLock<&'a mut Memory>,
    side: &'a mut MemorySide,
    requests: Crossbar<Request>,
    replies: Crossbar<Reply>,
    /// The control processor, if it runs firmware.
    aggregator: Option<Unit<'a>>,
    /// What it wants of the SMs, with the cycle of arrival.
    commands: Vec<(u64, u32, crate::aggregator::Command)>,
    /// Memory for warps that yield.
    save_areas: SaveAreas,
    /// What keeps L1s coherent, on chips where they are.
    coherence: Option<Box<Coherence>>,
    /// What each SM knows of the room for its requests. SMs that another thread runs are far from this one's cache.
    told_room: Vec<Option<u32>>,
    start: u64,
    window: u64,
    next_cta: u64,
    total: u64,
    locks: LockTable,
    /// Where threads wait for locks, if the chip lets them sleep.
    lock_queues: Option<Box<LockQueues>>,
    /// Locks taken and tries failed, by the cycle: the last few times that somebody looked.
    tries: VecDeque<(u64, [u64; 2])>,
    /// No value has changed since this cycle.
    quiet_since: u64,
    /// Warps are watched for repetition.
    watching: bool,
    samples: Vec<Sample>,
    next_sample: Option<u64>,
    /// What memory partitions had counted before the launch.
    before: Vec<PartitionCounts>,
    /// When messages were last exchanged.
    exchanged: u64,
    /// Nobody observes the SMs any more.
    cut_off: bool,
    /// So long may a warp wait before it polls again.
    longest_delay: u64,
}

/// Windows between looks at the clock on the wall and at who wants to stop.
const WINDOWS_PER_LOOK: u64 = 64;

impl<const N: usize, P: Probe> Machine<'_, N, P> {
    fn run(&mut self, crew: &Crew<Share<N, P>>) -> Result<(), End> {
        let mut windows = 0u64;
        let mut now = self.start;
        loop {
            self.dispatch(now);
            let done = self.next_cta == self.total
                && self.sms.iter().all(|sm| sm.is_empty())
                && self.firmware_is_done();
            now = match self.next_event(now) {
                Some(next) => next,
                // What is still on its way has arrived: the next launch finds an empty network.
                None if done => break,
                None => return Err(End::Hang(HangReason::Blocked)),
            };
            let until = now + self.window;
            self.advance(now..until, crew);
            self.exchange(until);
            now = until;
            if let Some((_, fault)) = self.first_fault() {
                return Err(End::Fault(fault));
            }
            if let Some(failure) = self.aggregator.as_mut().and_then(|a| a.failure.take()) {
                return Err(End::Firmware(failure));
            }
            if !done {
                self.look_for_hang(now)?;
            }
            self.take_sample(now);
            windows += 1;
            if windows.is_multiple_of(WINDOWS_PER_LOOK) {
                self.look_outside()?;
            }
        }
        self.side.now = now;
        Ok(())
    }

    /// Gives waiting CTAs to SMs that have room, one to each in turn.
    fn dispatch(&mut self, now: u64) {
        self.obey(now);
        let mut placed = true;
        while placed && self.next_cta < self.total {
            placed = false;
            for id in 0..self.sms.len() {
                let sm = &mut self.sms[id];
                if self.next_cta < self.total && sm.has_room() {
                    sm.start_cta(&self.context, self.next_cta, now);
                    self.next_cta += 1;
                    placed = true;
                }
            }
        }
    }

    /// The next cycle, from `now` on, in which anything happens.
    fn next_event(&self, now: u64) -> Option<u64> {
        let first = self.sms.iter().map(|sm| sm.wakes_at()).min().filter(|&at| at != u64::MAX);
        // Mostly some SM is at work, and then it does not matter what else happens.
        if first.is_some_and(|at| at <= now) {
            return Some(now);
        }
        let outside = self.outside_events().chain(self.firmware_event());
        first.into_iter().chain(outside).min().map(|at| at.max(now))
    }

    /// When anything happens outside of the SMs.
    fn outside_events(&self) -> impl Iterator<Item = u64> {
        let partitions = self.partitions.iter().filter_map(|partition| partition.next_event());
        let coherence = self.coherence.as_ref().and_then(|coherence| coherence.next_event());
        partitions
            .chain([self.requests.next_event(), self.replies.next_event(), coherence].into_iter().flatten())
    }

    /// Runs everything through a window: each thread its share, or one alone all of it.
    fn advance(&mut self, window: Range<u64>, crew: &Crew<Share<N, P>>) {
        if crew.others() > 0 && self.pace.next_window(Instant::now) {
            return self.advance_together(window, crew);
        }
        let memory = self.memory.read().expect(NO_PANIC);
        run_window(self.sms.iter_mut(), self.partitions.iter_mut(), &self.context, &memory, &window);
        if let Some(aggregator) = &mut self.aggregator {
            aggregator.run(&memory, window.end);
        }
    }

    fn advance_together(&mut self, window: Range<u64>, crew: &Crew<Share<N, P>>) {
        for other in 0..crew.others() {
            crew.give(other, |share| {
                share.window = window.clone();
                self.sms.lend(other, &mut share.sms);
                self.partitions.lend(other, &mut share.partitions);
            });
        }
        let memory = self.memory.read().expect(NO_PANIC);
        // The last hand may hold less than the others; the leader has more to do besides.
        let mine = crew.others();
        let start = Instant::now();
        let (sms, partitions) = (self.sms.of_hand(mine), self.partitions.of_hand(mine));
        run_window(sms, partitions, &self.context, &memory, &window);
        if let Some(aggregator) = &mut self.aggregator {
            aggregator.run(&memory, window.end);
        }
        self.balance.worked(mine, start.elapsed());
        for other in 0..crew.others() {
            crew.take_back(other, |share, done| {
                if !done {
                    share.run(&self.context, &memory);
                }
                self.sms.take_back(&mut share.sms);
                self.partitions.take_back(&mut share.partitions);
                self.balance.worked(other, share.took);
            });
        }
        self.balance.settle(&mut self.sms);
    }

    /// After a launch was cut off: what its warps have issued still reaches memory, and the next launch finds an empty
    /// network.
    fn drain(&mut self) {
        self.cut_off = true;
        loop {
            let sms = self.sms.iter().filter_map(|sm| sm.drains_at());
            let Some(next) = sms.chain(self.outside_events()).min() else { break };
            let now = next.max(self.exchanged);
            let until = now + self.window;
            self.sms.iter_mut().for_each(|sm| sm.drain(now, until));
            self.partitions.iter_mut().for_each(|partition| partition.run(until));
            self.exchange(until);
        }
        self.side.now = self.exchanged;
    }

    /// Does to memory what was served, and moves the messages of a window that ended at `until`.
    fn exchange(&mut self, until: u64) {
        self.exchanged = until;
        let slices = self.side.slices;
        let mut memory = self.memory.write().expect(NO_PANIC);
        let mut changed = false;
        if self.coherence.is_some() {
            changed |= self.serve_coherent(&mut memory, until);
        }
        for partition in 0..self.partitions.len() {
            for served in self.partitions[partition].served.drain(..) {
                let request = served.request;
                if request.sm as usize == self.sms.len() {
                    let aggregator = self.aggregator.as_mut().expect("nobody else has this number");
                    changed |= aggregator.serve(request.ticket, &mut memory);
                    let port = partition * slices as usize + served.slice as usize;
                    let node = self.sms.len();
                    self.replies.inject(port, served.cycle, node, request.reply_bytes(), request.ticket);
                    continue;
                }
                let sm = &mut self.sms[request.sm as usize];
                let lanes = serve(sm, &mut memory, &mut self.locks, request.ticket, !changed);
                changed |= lanes != 0;
                if P::WATCHES_MEMORY && !self.cut_off {
                    sm.show_served(&self.context, request.ticket, lanes, served.cycle);
                }
                if let Some(queues) = self.lock_queues.as_deref_mut().filter(|_| !self.cut_off) {
                    let arrival = until.max(served.cycle + self.window);
                    let what = (request.ticket, lanes);
                    let granted = queues.served(sm, &self.context, &memory, what, (until, arrival));
                    granted.for_each(|lane| self.sms[lane.sm as usize].grant(arrival, lane.slot, lane.lane));
                }
                let port = partition * slices as usize + served.slice as usize;
                let (node, bytes) = (request.sm as usize, request.reply_bytes());
                self.replies.inject(port, served.cycle, node, bytes, request.ticket);
            }
        }
        self.leave_lock_queues(until, &memory);
        for id in 0..self.sms.len() {
            let sm = &mut self.sms[id];
            // What it sent has taken up the room that it was told of.
            if !sm.memory.outbox.is_empty() {
                self.told_room[id] = None;
            }
            for (at, request) in &sm.memory.outbox {
                let port = self.side.port(request.line);
                self.requests.inject(id, *at, port, request.request_bytes(), *request);
            }
            sm.memory.outbox.clear();
            changed |= std::mem::take(&mut sm.changed);
        }
        changed |= self.exchange_with_firmware(&mut memory);
        if self.coherence.is_some() {
            changed |= self.exchange_coherent(&mut memory, until);
        } else {
            self.advance_requests(until);
        }
        let (sms, aggregator, coherence) = (&mut self.sms, &mut self.aggregator, &mut self.coherence);
        self.replies.advance(
            until,
            |_| u32::MAX,
            |node, arrival, &reply| Self::deliver(sms, aggregator, coherence, (node, arrival), reply),
        );
        if let Some(aggregator) = &mut self.aggregator {
            aggregator.set_room(self.requests.room(self.sms.len()), until);
        }
        for id in 0..self.sms.len() {
            let room = self.requests.room(id);
            if self.told_room[id] != Some(room) {
                self.told_room[id] = Some(room);
                self.sms[id].set_room(room);
            }
        }
        for partition in 0..self.partitions.len() {
            for slice in 0..slices {
                let port = partition * slices as usize + slice as usize;
                let room = self.reply_room(port);
                self.partitions[partition].set_reply_room(slice, until, room);
            }
        }
        if changed {
            self.quiet_since = until;
        }
    }

    /// Moves requests through the network to the slices.
    fn advance_requests(&mut self, until: u64) {
        let partitions = std::cell::RefCell::new(&mut self.partitions);
        // Slices of a partition are a power of two.
        let (shift, low) = (self.side.slices.trailing_zeros(), self.side.slices - 1);
        let place = |port: usize| (port >> shift, port as u32 & low);
        self.requests.advance(
            until,
            |port| {
                let (partition, slice) = place(port);
                partitions.borrow()[partition].room(slice)
            },
            |port, arrival, request| {
                let (partition, slice) = place(port);
                partitions.borrow_mut()[partition].accept(slice, arrival, request);
            },
        );
    }

    /// Lanes that ended in the window before `until` no longer wait for locks.
    fn leave_lock_queues(&mut self, until: u64, memory: &Memory) {
        let Some(queues) = self.lock_queues.as_deref_mut().filter(|_| !self.cut_off) else { return };
        for id in 0..self.sms.len() {
            let mut ended = self.sms[id].lanes_ended.take().unwrap_or_default();
            for (slot, lanes) in ended.drain(..) {
                let arrival = until + self.window;
                let granted = queues.ended(memory, (id as u32, slot), lanes, arrival);
                granted.for_each(|lane| self.sms[lane.sm as usize].grant(arrival, lane.slot, lane.lane));
            }
            self.sms[id].lanes_ended = Some(ended);
        }
        self.locks.stats.add(&std::mem::take(&mut queues.stats));
    }

    fn first_fault(&mut self) -> Option<(u64, Box<Fault>)> {
        let faults = self.sms.iter_mut().filter(|sm| sm.fault.is_some());
        faults.min_by_key(|sm| (sm.fault.as_ref().map(|(at, _)| *at), sm.id())).and_then(|sm| sm.fault.take())
    }

    fn look_outside(&self) -> Result<(), End> {
        let limits = self.context.launch.limits;
        if let Some(progress) = &limits.progress {
            let instructions = self.sms.iter().map(|sm| sm.probe.0.warp_instructions()).sum();
            progress.instructions.store(instructions, Ordering::Relaxed);
            let resident = self.sms.iter().map(|sm| sm.residents().count() as u64).sum::<u64>();
            let started = self.started().0;
            progress.ctas_done.store(started.saturating_sub(resident), Ordering::Relaxed);
            progress.ctas.store(self.total.max(started), Ordering::Relaxed);
        }
        match &limits.interrupt {
            Some(stop) if stop.load(Ordering::Relaxed) => Err(End::Interrupted),
            _ => Ok(()),
        }
    }

    fn take_sample(&mut self, now: u64) {
        let (Some(at), Some(every)) = (self.next_sample, self.timing.sample_cycles) else { return };
        if now >= at {
            let mut totals = TimedStats::gather(&self.sms, &self.partitions, &self.locks);
            totals.since(&self.before);
            self.samples.push(Sample::new(now - self.start, &self.sms, &totals));
            let every = every.max(1);
            self.next_sample = Some(at + every * ((now - at) / every + 1));
        }
    }

    /// The samples, and one of the end: what they count adds up to the launch's totals.
    fn all_samples(&mut self, totals: &TimedStats) -> Vec<Sample> {
        let mut samples = std::mem::take(&mut self.samples);
        if self.timing.sample_cycles.is_some() {
            // Replies to the last stores may have been on their way when the last CTA had ended.
            samples.retain(|sample| sample.cycle < totals.cycles);
            samples.push(Sample::new(totals.cycles, &self.sms, totals));
        }
        samples
    }

    fn finish(mut self, end: Result<(), End>, policy: &str) -> (Result<Stats, LaunchError>, Vec<P>) {
        let launch = self.context.launch;
        let last = self.sms.iter().map(|sm| if end.is_ok() { sm.last_end } else { sm.now }).max();
        let last = last.unwrap_or(self.start).max(self.firmware_cycle());
        self.show_host();
        let hang = match &end {
            Err(End::Hang(reason)) => Some(self.explain(reason.clone(), last, policy)),
            _ => None,
        };
        self.sms.iter_mut().for_each(|sm| sm.cut_off(last));
        let mut timed = TimedStats::gather(&self.sms, &self.partitions, &self.locks);
        timed.since(&self.before);
        timed.cycles = last.saturating_sub(self.start);
        timed.policy = policy.to_string();
        timed.requests = self.requests.stats();
        timed.replies = self.replies.stats();
        timed.samples = self.all_samples(&timed);
        timed.aggregator = self.firmware_stats(last);
        for (of_sm, sm) in timed.sms.iter_mut().zip(self.sms.iter()) {
            of_sm.0.stalled_on_aggregator = sm.dispatched.empty_cycles;
            timed.total.stalled_on_aggregator += sm.dispatched.empty_cycles;
        }
        let (ctas, warps) = self.started();
        timed.coherence = self.coherence.as_ref().map(|coherence| coherence.stats());
        if end.is_err() {
            self.drain();
            self.show_host();
        }
        self.save_areas.free(&mut self.memory.write().expect(NO_PANIC));
        let mut output = Output::default();
        let mut unwritten = UninitialisedReads::default();
        let mut lock_notes = LockWarnings::default();
        let mut probes = Vec::new();
        self.side.partitions = self.partitions.into_vec();
        for mut sm in self.sms.into_vec() {
            let effects = std::mem::take(sm.effects_mut());
            output.merge(effects.output);
            unwritten.merge(sm.unwritten);
            lock_notes.merge(effects.lock_notes);
            probes.push(sm.probe.1);
        }
        let stats = Stats {
            warp_instructions: timed.total.warp_instructions(),
            thread_instructions: timed.total.thread_instructions,
            ctas,
            warps,
            output: output.into_text(),
            uninitialised: unwritten.into_vec(),
            lock_warnings: lock_notes.told(launch.kernel, &launch.shape),
            timed: Some(Box::new(timed)),
        };
        let result = match end {
            Ok(()) => Ok(stats),
            Err(End::Fault(fault)) => Err(LaunchError::Fault { fault, stats: Box::new(stats) }),
            Err(End::Hang(_)) => Err(LaunchError::Hang {
                hang: Box::new(hang.expect("explained above")),
                stats: Box::new(stats),
            }),
            Err(End::Interrupted) => Err(LaunchError::Interrupted { stats: Box::new(stats) }),
            Err(End::Firmware(message)) => Err(LaunchError::Firmware { message, stats: Box::new(stats) }),
        };
        (result, probes)
    }
}

/// A slice serves a message of an SM: bytes move. Returns the lanes that changed memory (of a store, whether any did).
fn serve<const N: usize, P: Probe>(
    sm: &mut Sm<N, P>,
    memory: &mut Memory,
    locks: &mut LockTable,
    ticket: u32,
    notice: bool,
) -> u64 {
    let changed = sm.memory.serve(ticket, memory, notice);
    let flight = &sm.memory.flights[ticket];
    if flight.purpose == Purpose::Atomic {
        let (id, lanes) = flight.waiting[0];
        let transfer = &sm.memory.transfers[id];
        if transfer.polls {
            let who = (transfer.who, transfer.pc);
            locks.tried(who, &transfer.addresses, (lanes, changed), |address| address);
        }
    }
    changed
}
