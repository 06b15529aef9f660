//! A machine whose plan pauses, taken out of the run that it was in: it borrows nothing, so the host can do other
//! things and go on later, with more pieces.

use super::*;
use crate::time::machine::noticed::Marks;

/// A machine between two runs of its plan. L2 and DRAM are back with the rest of the memory side.
pub(crate) struct Suspended<const N: usize, P: Probe> {
    pub(crate) plan: Box<Plan>,
    /// What kernels have printed since it was last suspended.
    pub(crate) output: Output,
    /// What looks wrong, by kernel, since then.
    pub(crate) notes: Vec<Notes>,
    sms: Dealt<Sm<N, (SmStats, P)>>,
    builder: Builder<P>,
    requests: Held<Requests>,
    replies: Held<Replies>,
    coherence: Option<Box<Coherence>>,
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
}

impl<const N: usize, P: Probe> Stopped<'_, N, P> {
    /// Takes the machine out of its run. Its plan pauses ([`Stopped::is_paused`]).
    pub(crate) fn suspend(self) -> Suspended<N, P> {
        let Machine { side, context, mut sms, plan, partitions, .. } = self.machine;
        let (mut output, mut notes) = (Output::default(), vec![Notes::default(); 1 + context.others.len()]);
        for at in 0..sms.count() {
            let id = sms.number(at);
            sms[id].take_notes(&mut output, &mut notes);
        }
        side.partitions =
            partitions.into_inner().into_things().into_iter().map(|(_, partition)| partition).collect();
        side.now = self.machine.exchanged;
        Suspended {
            plan: plan.expect("it pauses"),
            output,
            notes,
            sms,
            builder: self.machine.builder,
            requests: self.machine.requests,
            replies: self.machine.replies,
            coherence: self.machine.coherence,
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
    let mut sms = suspended.sms;
    // As the partitions are.
    sms.deal_to(1, &[]);
    let mut machine = Machine {
        context,
        options,
        sms,
        builder: suspended.builder,
        partitions: Held::new(Dealt::new(std::mem::take(&mut side.partitions), 1)),
        balance: Balance::default(),
        owners: FxHashMap::default(),
        pace: side.threads.pace(&context.launch.kernel.name, threads),
        windows: 0,
        memory,
        side,
        nodes: NodePorts::new(chip.sm.count as usize),
        requests: suspended.requests,
        replies: suspended.replies,
        aggregator: None,
        plan: Some(suspended.plan),
        commands: Vec::new(),
        save_areas: SaveAreas::default(),
        coherence: suspended.coherence,
        clusters: None,
        noticed: Noticed { room: true, ..Noticed::default() },
        served: Vec::new(),
        apart: false,
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
        cut_off: false,
        any_fault: false,
        faulty: 0,
    };
    if let Some(branches) = machine.builder.kernels_added(&context) {
        let units = machine.sms.iter_mut().filter_map(|sm| sm.spin_unit.as_mut());
        units.for_each(|unit| unit.encounters.add(branches.clone()));
    }
    // The host may have written to any of them.
    machine.requests.busy = Marks::all(chip.l2.partitions as usize);
    machine.replies.deliveries = Deliveries::new(1);
    machine.go_on()
}
