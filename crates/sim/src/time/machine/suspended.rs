//! A machine whose plan pauses, taken out of the run that it was in: it borrows nothing, so the host can do other
//! things and go on later, with more pieces.

use super::*;

/// A machine between two runs of its plan. L2 and DRAM are back with the rest of the memory side.
pub(crate) struct Suspended<const N: usize, P: Probe> {
    pub(crate) plan: Box<Plan>,
    /// What kernels have printed since it was last suspended.
    pub(crate) output: Output,
    /// What looks wrong, by kernel, since then.
    pub(crate) notes: Vec<Notes>,
    sms: Dealt<Sm<N, (SmStats, P)>>,
    builder: Builder<P>,
    requests: Crossbar<Request>,
    shared_ports: Option<SharedPorts>,
    replies: Crossbar<Reply>,
    coherence: Option<Box<Coherence>>,
    told_room: Vec<Option<Room>>,
    start: Cycle,
    starts: Starts,
    locks: LockTable,
    lock_queues: Option<Box<LockQueues>>,
    tries: VecDeque<(Cycle, [u64; 2])>,
    quiet_since: Cycle,
    watching: bool,
    livelock: LivelockSearch,
    before: Vec<PartitionCounts>,
    exchanged: Cycle,
    atomics: Vec<u32>,
}

impl<const N: usize, P: Probe> Stopped<'_, N, P> {
    /// Takes the machine out of its run. Its plan pauses ([`Stopped::is_paused`]).
    pub(crate) fn suspend(self) -> Suspended<N, P> {
        let Machine { side, context, mut sms, plan, partitions, .. } = self.machine;
        let (mut output, mut notes) = (Output::default(), vec![Notes::default(); 1 + context.others.len()]);
        sms.iter_mut().for_each(|sm| sm.take_notes(&mut output, &mut notes));
        side.partitions = partitions.into_things().map(|(_, partition)| partition).collect();
        side.now = self.machine.exchanged;
        Suspended {
            plan: plan.expect("it pauses"),
            output,
            notes,
            sms,
            builder: self.machine.builder,
            requests: self.machine.requests,
            shared_ports: self.machine.shared_ports,
            replies: self.machine.replies,
            coherence: self.machine.coherence,
            told_room: self.machine.told_room,
            start: self.machine.start,
            starts: self.machine.starts,
            locks: self.machine.locks,
            lock_queues: self.machine.lock_queues,
            tries: self.machine.tries,
            quiet_since: self.machine.quiet_since,
            watching: self.machine.watching,
            livelock: self.machine.livelock,
            before: self.machine.before,
            exchanged: self.machine.exchanged,
            atomics: self.machine.atomics,
        }
    }
}

/// Runs a suspended machine further. The context has the kernels that it had, and those that were added to its plan.
pub(crate) fn resume<'a, const N: usize, P: Probe>(
    suspended: Suspended<N, P>,
    context: Context<'a>,
    options: &'a Options<'a>,
    memory: &'a RwLock<&'a mut Memory>,
    side: &'a mut MemorySide,
) -> Stopped<'a, N, P> {
    let chip = context.launch.chip;
    let threads = host_threads(options, chip.sm.count as usize);
    let mut machine = Machine {
        context,
        options,
        sms: suspended.sms,
        builder: suspended.builder,
        partitions: Dealt::new(std::mem::take(&mut side.partitions), threads),
        balance: Balance::default(),
        pace: Pace::new(threads),
        memory,
        side,
        nodes: NodePorts::new(chip.sm.count as usize),
        requests: suspended.requests,
        shared_ports: suspended.shared_ports,
        replies: suspended.replies,
        aggregator: None,
        plan: Some(suspended.plan),
        commands: Vec::new(),
        save_areas: SaveAreas::default(),
        coherence: suspended.coherence,
        clusters: None,
        told_room: suspended.told_room,
        noticed: Noticed { room: true, ..Noticed::default() },
        busy: Marks::all(chip.l2.partitions as usize),
        apart: false,
        post: Post::new(threads),
        start: suspended.start,
        window: u64::from(chip.interconnect.latency_cycles),
        starts: suspended.starts,
        sampling: None,
        next_cta: 0,
        total: 0,
        locks: suspended.locks,
        lock_queues: suspended.lock_queues,
        tries: suspended.tries,
        quiet_since: suspended.quiet_since,
        watching: suspended.watching,
        livelock: suspended.livelock,
        samples: Vec::new(),
        next_sample: None,
        before: suspended.before,
        exchanged: suspended.exchanged,
        atomic_window: chip.interconnect.atomic_window,
        atomics: suspended.atomics,
        cut_off: false,
        any_fault: false,
        faulty: 0,
    };
    if let Some(branches) = machine.builder.kernels_added(&context) {
        let units = machine.sms.iter_mut().filter_map(|sm| sm.spin_unit.as_mut());
        units.for_each(|unit| unit.encounters.add(branches.clone()));
    }
    machine.go_on(threads)
}
