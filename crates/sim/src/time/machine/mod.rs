//! The timed machine: SMs, the network, L2 slices and DRAM, and the loop that moves them forward together.
//!
//! Time advances in windows no longer than the network's latency. Inside a window SMs and memory partitions do not
//! affect each other, so they run in any order or in parallel; between windows their messages are exchanged in a fixed
//! order, and the requests that slices served read and change memory (`exchange`). The result is the same on any number
//! of host threads.
//!
//! Start with [`run`] and `Machine::run`.

mod build;
mod clusters;
mod coherence;
mod crew;
mod deliveries;
mod errands;
mod exchange;
pub(crate) mod firmware;
mod hangs;
mod leap;
mod lock_queues;
mod noticed;
pub(crate) mod plan;
mod replies;
mod requests;
mod routes;
mod sampling;
mod starts;
mod stopped;
mod suspended;
mod together;
pub(crate) mod totals;

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::Ordering;
use std::sync::{Arc, RwLock};
use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;

use crate::chip::Chip;
use crate::chip::spinning::{Bows, QueueMode};
use crate::exec::fault::Fault;
use crate::exec::launch::Launch;
use crate::exec::locks::holders::{LockTable, SharedLocks};
use crate::exec::locks::unit::LockUnits;
use crate::exec::memory::store::Memory;
use crate::exec::notes::Notes;
use crate::exec::output::Output;
use crate::exec::stop::{HangReason, Stop};
use crate::exec::uninitialised::UninitialisedReads;
use crate::kit::cycle::Cycle;
use crate::kit::ids::Ticket;
use crate::kit::line::LineAddress;
use crate::time::aggregator::Unit;
use crate::time::l2::Partition;
use crate::time::l2::lock_queue::LockQueues;
use crate::time::machine::build::Builder;
use crate::time::machine::clusters::Clusters;
use crate::time::machine::coherence::Coherence;
use crate::time::machine::crew::{Balance, Crew, Dealt, Held, Lent, Pace, Threads};
use crate::time::machine::deliveries::{Deliveries, Delivery};
use crate::time::machine::errands::Errand;
use crate::time::machine::firmware::SaveAreas;
use crate::time::machine::hangs::LivelockSearch;
pub(crate) use crate::time::machine::hangs::LockPace;
pub(crate) use crate::time::machine::leap::Leapt;
use crate::time::machine::noticed::Noticed;
use crate::time::machine::plan::Plan;
use crate::time::machine::replies::Replies;
use crate::time::machine::requests::Requests;
use crate::time::machine::routes::Routes;
use crate::time::machine::sampling::Sampling;
pub(crate) use crate::time::machine::sampling::Settled;
use crate::time::machine::starts::Starts;
pub(crate) use crate::time::machine::stopped::{Finished, Stopped};
pub(crate) use crate::time::machine::suspended::{Suspended, resume};
use crate::time::machine::totals::{PartitionCounts, Sample, TimedStats};
use crate::time::network::Crossbar;
use crate::time::network::message::{Reply, Request};
use crate::time::network::node::{Node, NodePorts};
use crate::time::sched::Policy;
use crate::time::sched::accuracy::Branches;
use crate::time::sm::issue::spin_unit::SpinUnit;
use crate::time::sm::load_store::messages::Purpose;
use crate::time::sm::probe::Probe;
use crate::time::sm::stats::SmStats;
use crate::time::sm::{Context, Parts, Sm};

/// L2 and DRAM, which keep their state from launch to launch.
#[derive(Debug)]
pub(crate) struct MemorySide {
    // A launch deals the boxes out to its threads; a partition is large.
    #[allow(clippy::vec_box)]
    partitions: Vec<Box<Partition>>,
    routes: Arc<Routes>,
    line_bytes: u64,
    /// The cycle after the last launch.
    now: Cycle,
    /// Parts of SMs of earlier launches, as good as new.
    parts: Vec<Parts>,
    /// The network of the last launch.
    network: Option<Network>,
    threads: Threads,
}

/// Crossbars for a number of senders.
#[derive(Debug)]
struct Network {
    senders: usize,
    requests: Crossbar<Request>,
    replies: Crossbar<Reply>,
}

impl MemorySide {
    /// Empty caches, closed rows.
    pub(crate) fn new(chip: &Chip) -> MemorySide {
        let make = |_| {
            let mut partition = Partition::new(&chip.l2, &chip.atomic, &chip.dram, &chip.clock);
            if chip.interconnect.atomic_window > 0 {
                partition.tell_entries();
            }
            Box::new(partition)
        };
        MemorySide {
            partitions: (0..chip.l2.partitions).map(make).collect(),
            routes: Arc::new(Routes::new(chip)),
            line_bytes: u64::from(chip.l2.cache.line_bytes),
            now: Cycle(0),
            parts: Vec::new(),
            network: None,
            threads: Threads::default(),
        }
    }

    /// A network without packets. What the last launch used is as good as a new one, which on a large chip costs more
    /// than a small launch.
    fn network(&mut self, chip: &Chip, senders: usize) -> Network {
        if let Some(mut last) = self.network.take().filter(|network| network.senders == senders)
            && last.requests.renew()
            && last.replies.renew()
        {
            return last;
        }
        let ports = self.partitions.len() * self.routes.slices as usize;
        Network {
            senders,
            requests: Crossbar::new(senders, ports, &chip.interconnect, &chip.clock),
            replies: Crossbar::new(ports, senders, &coherence::reply_network(chip), &chip.clock),
        }
    }

    /// The cycle in which the next launch begins.
    pub(crate) fn now(&self) -> Cycle {
        self.now
    }

    /// The host has written bytes of memory, which went through the L2.
    pub(crate) fn write_by_host(&mut self, address: u64, bytes: u64) {
        let first = LineAddress::of(address, self.line_bytes).0;
        for line in (first..address + bytes).step_by(self.line_bytes as usize).map(LineAddress) {
            let (partition, slice) = self.routes.map.slice_of(line);
            self.partitions[partition as usize].write_by_host(slice, line);
        }
    }
}

/// How the machine runs a launch.
pub(crate) struct Options<'a> {
    /// The warp scheduling policy's name, for reports.
    pub policy: &'a str,
    /// Makes the policy of one scheduler. BOWS is wrapped around it if it is on.
    pub make_policy: &'a (dyn Fn() -> Box<dyn Policy> + Sync),
    pub bows: Bows,
    /// Host threads; 0 is one for each core.
    pub threads: usize,
    /// The period of the samples of counters, if they are wanted.
    pub sample_cycles: Option<u64>,
    /// Of a grid, only as many CTAs run as it takes until their rate has settled.
    pub until_settled: bool,
}

/// Who decides which CTAs run.
pub(crate) enum Dispatch<'a> {
    /// The grid of the context's kernel.
    Grid,
    /// Firmware that starts CTAs of the context's kernels.
    Firmware(Box<Unit<'a>>),
    /// A plan, of which the context's kernels are pieces.
    Plan(Box<Plan>),
}

/// Runs a launch, firmware or a plan until it ends or has to be stopped.
/// `make_probe` makes the observer of an SM, in a launch that begins at a cycle. Inside a window all threads read
/// `memory`; it is written between windows only.
pub(crate) fn run<'a, const N: usize, P: Probe>(
    context: Context<'a>,
    dispatch: Dispatch<'a>,
    options: &'a Options<'a>,
    memory: &'a RwLock<&'a mut Memory>,
    side: &'a mut MemorySide,
    make_probe: impl Fn(u32, Cycle) -> P,
) -> Stopped<'a, N, P> {
    let launch = context.launch;
    let chip = launch.chip;
    let start = side.now;
    let (aggregator, plan) = match dispatch {
        Dispatch::Grid => (None, None),
        Dispatch::Firmware(unit) => (Some(*unit), None),
        Dispatch::Plan(plan) => (None, Some(plan)),
    };
    let several = (aggregator.is_some(), plan.is_some());
    let builder = Builder::new(&context, options, several, start, make_probe);
    let waits = builder.waits();
    let sms = chip.sm.count as usize;
    let ports = side.partitions.len() * side.routes.slices as usize;
    let sampling = options.until_settled.then(|| Sampling::new(launch, side));
    let before: Vec<_> =
        side.partitions.iter().map(|p| (p.stats().clone(), p.dram_stats().clone())).collect();
    let threads = host_threads(options, sms);
    let nodes = NodePorts::new(sms);
    let senders = sms + aggregator.is_some() as usize;
    let total = launch.shape.grid.iter().map(|&d| d as u64).product();
    let Network { requests, replies, .. } = side.network(chip, senders);
    let requests = Requests::new(requests, chip, &side.routes);
    let replies = Replies::new(replies, nodes, side.routes.far_cycles);
    let mut machine = Machine::<N, P> {
        context,
        options,
        requests: Held::new(requests),
        replies: Held::new(replies),
        coherence: Coherence::new(chip, nodes, senders, ports),
        clusters: Clusters::new(launch),
        nodes,
        noticed: Noticed { room: true, ..Noticed::default() },
        served: Vec::new(),
        apart: false,
        sms: Dealt::none_of(sms, 1),
        builder,
        partitions: Held::new(Dealt::new(std::mem::take(&mut side.partitions), 1)),
        balance: Balance::default(),
        owners: FxHashMap::default(),
        pace: side.threads.pace(&launch.kernel.name, threads),
        windows: 0,
        memory,
        side,
        start,
        window: chip.interconnect.latency_cycles as u64,
        starts: Starts::new(chip, start),
        sampling,
        next_cta: 0,
        total: if aggregator.is_some() || plan.is_some() { 0 } else { total },
        aggregator,
        plan,
        commands: Vec::new(),
        save_areas: SaveAreas::default(),
        locks: LockTable::new(waits),
        lock_queues: LockQueues::new(chip),
        tries: VecDeque::from([(start, [0; 2])]),
        quiet_since: start,
        watching: false,
        livelock: LivelockSearch::new(start),
        samples: Vec::new(),
        next_sample: options.sample_cycles.map(|cycles| start + cycles.max(1)),
        before,
        exchanged: start,
        cut_off: false,
        any_fault: false,
        faulty: 0,
    };
    if machine.aggregator.is_some() {
        // Firmware can start a CTA anywhere at any time.
        (0..sms).for_each(|id| _ = machine.sm(id, start));
    }
    machine.go_on()
}

/// The number of host threads for so many SMs: more than those would have nothing to do.
fn host_threads(options: &Options<'_>, sms: usize) -> usize {
    let threads = match options.threads {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        threads => threads,
    };
    threads.min(sms)
}

/// How far a machine has run.
enum Progress {
    /// To the end of the launch, or to where the plan pauses.
    Ended,
    /// To where another number of threads works.
    Paced,
}

/// The part of a window that one thread runs, or of an exchange.
struct Share<const N: usize, P: Probe> {
    errand: Option<Errand>,
    sms: Lent<Sm<N, (SmStats, P)>>,
    partitions: Lent<Partition>,
    window: Range<Cycle>,
    /// What arrives at its SMs.
    arrivals: Vec<Delivery>,
    noticed: Noticed,
    /// How long that took.
    took: Duration,
}

impl<const N: usize, P: Probe> Default for Share<N, P> {
    fn default() -> Self {
        Share {
            errand: None,
            sms: None,
            partitions: None,
            window: Cycle(0)..Cycle(0),
            arrivals: Vec::new(),
            noticed: Noticed::default(),
            took: Duration::ZERO,
        }
    }
}

impl<const N: usize, P: Probe> Share<N, P> {
    fn run(&mut self, context: &Context<'_>, memory: &RwLock<&mut Memory>) {
        match &mut self.errand {
            Some(errand) => errand.run(self.window.end),
            None => self.run_window(context, &memory.read().expect(NO_PANIC)),
        }
    }

    fn run_window(&mut self, context: &Context<'_>, memory: &Memory) {
        let start = Instant::now();
        let (Some(sms), Some(partitions)) = (&mut self.sms, &mut self.partitions) else { return };
        for (sm, arrival, reply) in self.arrivals.drain(..) {
            if let Ok(place) = sms.binary_search_by_key(&sm, |(number, _)| *number) {
                sms[place].1.receive(arrival, reply);
            }
        }
        let sms = sms.iter_mut().map(|(_, sm)| &mut **sm);
        let partitions = partitions.iter_mut().map(|(number, partition)| (*number, &mut **partition));
        self.noticed.clear();
        run_window(sms, partitions, (context, memory), &self.window, &mut self.noticed);
        self.took = start.elapsed();
    }
}

/// Runs SMs and partitions through a window.
fn run_window<'a, const N: usize, P: Probe + 'a>(
    sms: impl Iterator<Item = &'a mut Sm<N, (SmStats, P)>>,
    partitions: impl Iterator<Item = (usize, &'a mut Partition)>,
    (context, memory): (&Context<'_>, &Memory),
    window: &Range<Cycle>,
    noticed: &mut Noticed,
) {
    sms.for_each(|sm| {
        sm.run(context, memory, window.start, window.end);
        noticed.look(sm);
    });
    noticed
        .partitions
        .extend(partitions.filter_map(|(at, partition)| partition.run(window.end).then_some(at)));
}

const NO_PANIC: &str = "nobody panics with memory in hand";

struct Machine<'a, const N: usize, P: Probe> {
    context: Context<'a>,
    options: &'a Options<'a>,
    /// Those that have had a CTA.
    sms: Dealt<Sm<N, (SmStats, P)>>,
    builder: Builder<P>,
    partitions: Held<Dealt<Partition>>,
    balance: Balance,
    /// By number of threads, which of them had which SM the last time.
    owners: FxHashMap<usize, Vec<u32>>,
    pace: Pace,
    /// How many it has run.
    windows: u64,
    /// Read by all threads inside a window, changed only between windows.
    memory: &'a RwLock<&'a mut Memory>,
    side: &'a mut MemorySide,
    nodes: NodePorts,
    requests: Held<Requests>,
    replies: Held<Replies>,
    /// The control processor, if it runs firmware.
    aggregator: Option<Unit<'a>>,
    /// If kernels run together.
    plan: Option<Box<Plan>>,
    /// The control processor's commands to SMs, with the cycle of arrival.
    commands: Vec<(Cycle, u32, crate::time::dispatch::Command)>,
    save_areas: SaveAreas,
    /// On chips whose L1s are coherent.
    coherence: Option<Box<Coherence>>,
    /// If the kernel uses clusters.
    clusters: Option<Box<Clusters>>,
    /// What was noticed of all SMs at the end of the last window.
    noticed: Noticed,
    /// Requests that slices have served in the last window: when, whose, and which.
    served: Vec<(Cycle, Node, Ticket)>,
    /// Several threads have run the last window.
    apart: bool,
    start: Cycle,
    /// In cycles.
    window: u64,
    starts: Starts,
    /// If CTAs start only until their rate has settled.
    sampling: Option<Sampling>,
    next_cta: u64,
    /// CTAs that start here.
    total: u64,
    locks: LockTable,
    /// On chips whose threads sleep while they wait for locks.
    lock_queues: Option<Box<LockQueues>>,
    /// Locks taken and attempts failed by a cycle, counted every `hang.watch_cycles`.
    tries: VecDeque<(Cycle, [u64; 2])>,
    /// No value has changed since this cycle.
    quiet_since: Cycle,
    /// Warps are watched for repetition.
    watching: bool,
    livelock: LivelockSearch,
    samples: Vec<Sample>,
    next_sample: Option<Cycle>,
    /// The counters of the memory partitions before the launch.
    before: Vec<PartitionCounts>,
    /// When messages were last exchanged.
    exchanged: Cycle,
    /// The launch was stopped: SMs are no longer observed.
    cut_off: bool,
    /// Some SM may have faulted.
    any_fault: bool,
    /// The number of the kernel that has faulted, if one has.
    faulty: u16,
}

/// Windows between reports of progress and looks at the interrupt flag.
const WINDOWS_PER_LOOK: u64 = 64;

impl<'a, const N: usize, P: Probe> Machine<'a, N, P> {
    /// Runs until the launch ends, the plan pauses, or it has to be stopped.
    fn go_on(mut self) -> Stopped<'a, N, P> {
        let (context, memory) = (self.context, self.memory);
        let work = |share: &mut Share<N, P>| share.run(&context, memory);
        // They are the machine's own while it runs: a crew of them has a part of the machine.
        let mut threads = std::mem::take(&mut self.side.threads);
        self.pace.begin(Instant::now());
        let end = loop {
            let end = match self.pace.size() {
                1 => self.run(&Crew::ALONE),
                size => {
                    self.pace.made(threads.make(self.pace.most()));
                    Crew::with(&threads, size, work, |crew| self.run(crew))
                }
            };
            if !matches!(end, Ok(Progress::Paced)) {
                break end;
            }
        };
        self.pace.end(Instant::now());
        threads.keep(&context.launch.kernel.name, self.pace.clone());
        self.side.threads = threads;
        let end = end.map(|_| ());
        self.deliver_all();
        // The host sees what coherent L1s hold and memory does not.
        self.show_host();
        Stopped { machine: self, end }
    }

    /// Runs with a crew, until another one is wanted.
    fn run(&mut self, crew: &Crew<Share<N, P>>) -> Result<Progress, Stop> {
        let mut now = self.exchanged;
        loop {
            if self.carry_out_plan(now) {
                break;
            }
            self.dispatch(now);
            if let Some(instructions) = self.look_for_rate(now) {
                now = self.leap(instructions)?;
            }
            let done = self.is_done();
            now = match self.next_event(now) {
                Some(next) => next,
                // All messages have arrived: the next launch finds an empty network.
                None if done => break,
                None if self.wake_sleeper(now) => continue,
                None => return Err(Stop::Hang(HangReason::Blocked)),
            };
            if !done {
                // All warps may sleep until long after it.
                self.check_limit(now)?;
            }
            let until = now + self.window;
            self.advance(now..until, crew);
            self.exchange(until, crew);
            self.hear_of_ends();
            now = until;
            if let Some((kernel, fault)) = self.first_fault() {
                self.faulty = kernel;
                return Err(Stop::Fault(fault));
            }
            if let Some(failure) = self.aggregator.as_mut().and_then(|a| a.failure.take()) {
                return Err(Stop::Firmware(failure));
            }
            if !done {
                self.look_for_hang(now)?;
            }
            self.take_sample(now);
            self.windows += 1;
            if self.windows.is_multiple_of(WINDOWS_PER_LOOK) {
                self.look_outside()?;
            }
            if self.pace.ends_window(Instant::now) {
                return Ok(Progress::Paced);
            }
        }
        self.side.now = now;
        Ok(Progress::Ended)
    }

    /// Whether all CTAs have ended, and firmware or the plan, if there is any. Messages may still be in flight.
    fn is_done(&self) -> bool {
        let all_ended = || self.sms.iter().all(|sm| sm.is_empty());
        let plan_is_done = self.plan.as_ref().is_none_or(|plan| plan.is_done());
        self.next_cta == self.total && plan_is_done && all_ended() && self.firmware_is_done()
    }

    /// The next cycle, from `now` on, in which anything happens.
    fn next_event(&self, now: Cycle) -> Option<Cycle> {
        // Mostly some SM has something to do now; then nothing else matters.
        let deliveries = self.replies.deliveries.first;
        if self.noticed.wake.min(deliveries) <= now {
            return Some(now);
        }
        let wakes = self.sms.iter().map(|sm| sm.wakes_at()).chain([deliveries]);
        let first = wakes.min().filter(|&at| at != Cycle::NEVER);
        if first.is_some_and(|at| at <= now) {
            return Some(now);
        }
        let outside = self.outside_events().chain(self.firmware_event()).chain(self.next_start());
        first.into_iter().chain(outside).min().map(|at| at.max(now))
    }

    /// The next events outside of the SMs.
    fn outside_events(&self) -> impl Iterator<Item = Cycle> {
        let partitions = self.partitions.iter().filter_map(|partition| partition.next_event());
        let coherence = self.coherence.as_ref().and_then(|coherence| coherence.next_event());
        partitions.chain(
            [self.requests.network.next_event(), self.replies.network.next_event(), coherence]
                .into_iter()
                .flatten(),
        )
    }

    /// Runs everything through a window: each thread its share, or one alone all of it.
    fn advance(&mut self, window: Range<Cycle>, crew: &Crew<Share<N, P>>) {
        self.noticed.clear();
        let threads = 1 + crew.others();
        self.apart = threads > 1;
        if self.apart {
            if self.sms.hands() != threads {
                self.deliver_all();
                // Who has what was found out over many windows, and will be as good again.
                self.owners.insert(self.sms.hands(), self.sms.owners().collect());
                self.sms.deal_to(threads, self.owners.get(&threads).map_or(&[], Vec::as_slice));
                self.partitions.deal_to(threads, &[]);
                (self.balance, self.replies.deliveries) = (Balance::default(), Deliveries::new(threads));
            }
            return self.advance_together(window, crew);
        }
        self.deliver_all();
        let memory = self.memory.read().expect(NO_PANIC);
        let (sms, partitions) = (self.sms.iter_mut(), self.partitions.numbered());
        run_window(sms, partitions, (&self.context, &memory), &window, &mut self.noticed);
        if let Some(aggregator) = &mut self.aggregator {
            aggregator.run(&memory, window.end);
        }
    }

    /// Takes all replies that have crossed the network to their SMs.
    fn deliver_all(&mut self) {
        self.replies.deliveries.drain().for_each(|(sm, arrival, reply)| self.sms[sm].receive(arrival, reply));
    }

    fn advance_together(&mut self, window: Range<Cycle>, crew: &Crew<Share<N, P>>) {
        let others = self.sms.hands() - 1;
        for other in 0..others {
            crew.give(other, |share| {
                share.window = window.clone();
                self.replies.deliveries.swap(other, &mut share.arrivals);
                share.sms = Some(self.sms.lend(other));
                share.partitions = Some(self.partitions.lend(other));
            });
        }
        // What is left is for the SMs that this thread has kept.
        self.deliver_all();
        let memory = self.memory.read().expect(NO_PANIC);
        // The last hand may hold less than the others: it is the leader's, who has more to do.
        let mine = others;
        let start = Instant::now();
        let sms = self.sms.of_hand(mine).iter_mut().map(|(_, sm)| &mut **sm);
        let partitions = self.partitions.of_hand(mine).iter_mut();
        let partitions = partitions.map(|(number, partition)| (*number, &mut **partition));
        run_window(sms, partitions, (&self.context, &memory), &window, &mut self.noticed);
        if let Some(aggregator) = &mut self.aggregator {
            aggregator.run(&memory, window.end);
        }
        self.balance.worked(mine, start.elapsed());
        for other in 0..others {
            crew.take_back(other, |share, done| {
                if !done {
                    share.run_window(&self.context, &memory);
                }
                self.sms.take_back(other, share.sms.take());
                self.partitions.take_back(other, share.partitions.take());
                self.noticed.add(&share.noticed);
                self.balance.worked(other, share.took);
            });
        }
        self.balance.settle(&mut self.sms);
    }

    /// After a launch was stopped early: accesses that warps have issued still reach memory, and the next launch finds
    /// an empty network.
    fn drain(&mut self) {
        (self.cut_off, self.apart) = (true, false);
        self.run_out(
            |sm| sm.drains_at().unwrap_or(Cycle::NEVER),
            |sm, window| sm.drain(window.start, window.end),
        );
        self.side.now = self.exchanged;
    }

    /// Runs SMs in a way of their own, and everything else, as long as they have something to do (`next`) or a message
    /// is in flight.
    fn run_out(
        &mut self,
        next: impl Fn(&Sm<N, (SmStats, P)>) -> Cycle,
        run: impl Fn(&mut Sm<N, (SmStats, P)>, Range<Cycle>),
    ) {
        loop {
            let sms = self.sms.iter().map(&next).filter(|&at| at != Cycle::NEVER);
            let Some(first) = sms.chain(self.outside_events()).min() else { break };
            let now = first.max(self.exchanged);
            let until = now + self.window;
            self.noticed.clear();
            for sm in self.sms.iter_mut() {
                run(sm, now..until);
                self.noticed.look(sm);
            }
            let ran = self.partitions.numbered();
            self.noticed
                .partitions
                .extend(ran.filter_map(|(at, partition)| partition.run(until).then_some(at)));
            self.exchange(until, &Crew::ALONE);
        }
    }

    /// The fault that came first, and the number of its kernel.
    fn first_fault(&mut self) -> Option<(u16, Box<Fault>)> {
        if !std::mem::take(&mut self.any_fault) {
            return None;
        }
        let faults = self.sms.iter_mut().filter(|sm| sm.fault.is_some());
        let first = faults.min_by_key(|sm| (sm.fault.as_ref().map(|(at, _)| *at), sm.id()))?;
        first.fault.take().map(|(_, fault)| (first.faulty, fault))
    }

    fn look_outside(&self) -> Result<(), Stop> {
        let limits = self.context.launch.limits;
        if let Some(progress) = &limits.progress {
            let instructions = self.sms.iter().map(|sm| sm.probe.0.warp_instructions()).sum();
            progress.instructions.store(instructions, Ordering::Relaxed);
            let resident = self.sms.iter().map(|sm| sm.residents().count() as u64).sum::<u64>();
            let started = self.started().0;
            progress.ctas_done.store(started.saturating_sub(resident), Ordering::Relaxed);
            progress.ctas_started.store(started, Ordering::Relaxed);
            progress.ctas.store(self.total.max(started), Ordering::Relaxed);
        }
        match &limits.interrupt {
            Some(stop) if stop.load(Ordering::Relaxed) => Err(Stop::Interrupted),
            _ => Ok(()),
        }
    }

    fn take_sample(&mut self, now: Cycle) {
        let (Some(at), Some(every)) = (self.next_sample, self.options.sample_cycles) else { return };
        if now >= at {
            let mut totals = TimedStats::gather(&self.sms, &self.partitions, &self.locks);
            totals.since(&self.before);
            self.samples.push(Sample::new(now - self.start, &self.sms, &totals));
            let every = every.max(1);
            self.next_sample = Some(at + every * ((now - at) / every + 1));
        }
    }

    /// The samples, and one at the end, so that the last one has the launch's totals.
    fn all_samples(&mut self, totals: &TimedStats) -> Vec<Sample> {
        let mut samples = std::mem::take(&mut self.samples);
        if self.options.sample_cycles.is_some() {
            // Replies to the last stores may have been in flight when the last CTA ended.
            samples.retain(|sample| sample.cycle < totals.cycles);
            samples.push(Sample::new(totals.cycles, &self.sms, totals));
        }
        samples
    }
}
