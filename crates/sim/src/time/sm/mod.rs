//! A streaming multiprocessor, by pipeline stage.
//!
//! Start reading at [`cycle`]: what happens in one cycle, and when the next one is worth running. The stages are
//! `front_end`, `issue`, `execution_units`, `load_store` and `write_back`; `residents` is where CTAs come and go.

pub(crate) mod by_kernel;
pub(crate) mod cluster;
mod copy_engine;
mod cycle;
pub(crate) mod dispatched;
pub(crate) mod execution_units;
mod fences;
pub(crate) mod front_end;
pub(crate) mod issue;
pub(crate) mod leap;
pub(crate) mod load_store;
pub(crate) mod notes_of_kernels;
mod observe;
pub(crate) mod probe;
mod residents;
pub(crate) mod stats;
pub(crate) mod watch;
mod write_back;
mod yielding;

use smallvec::SmallVec;

use crate::chip::Chip;
use crate::exec::execute::{Cta, Effects};
use crate::exec::fault::Fault;
use crate::exec::lanes::frequent::ConstantRow;
use crate::exec::launch::Launch;
use crate::exec::locks::holders::{SharedLocks, WarpName};
use crate::exec::notes::Notes;
use crate::exec::output::Output;
use crate::exec::uninitialised::UninitialisedReads;
use crate::exec::warp::Warp;
use crate::kit::cycle::Cycle;
use crate::kit::ids::WarpSlot;
use crate::kit::lane_mask::LaneMask;
use crate::kit::line::LineAddress;
use crate::kit::wheel::Wheel;
use crate::time::cache::Tags;
use crate::time::sched::Policy;
use crate::time::sm::cluster::ClusterPort;
use crate::time::sm::copy_engine::CopyEngine;
use crate::time::sm::cycle::Event;
use crate::time::sm::dispatched::Dispatched;
use crate::time::sm::execution_units::ExecutionUnits;
use crate::time::sm::fences::Fences;
use crate::time::sm::front_end::decode::{Code, Decoded, ExecUnit};
use crate::time::sm::front_end::fetch::Fetch;
use crate::time::sm::issue::SilentAtomics;
use crate::time::sm::issue::schedule::{ReadyWarps, Scheduler};
use crate::time::sm::issue::slot::Slot;
use crate::time::sm::issue::spin_unit::SpinUnit;
use crate::time::sm::load_store::MemoryUnit;
use crate::time::sm::load_store::inbox::Inbox;
use crate::time::sm::load_store::l1::L1;
use crate::time::sm::load_store::stats::L1Stats;
use crate::time::sm::notes_of_kernels::NotesOfKernels;
use crate::time::sm::probe::Probe;
use crate::time::sm::watch::Watch;

/// What does not change while a kernel runs.
#[derive(Clone, Copy)]
pub(crate) struct Context<'a> {
    pub launch: &'a Launch<'a>,
    pub code: &'a [Decoded],
    /// What its lane operations have as immediates.
    pub constants: &'a [ConstantRow],
    /// Where the code begins, in instructions, so that kernels do not share lines of the instruction cache.
    pub code_start: u32,
    /// Kernels that run besides this one, which is number 0: firmware can start them, or they run together.
    pub others: &'a [Context<'a>],
}

impl<'a> Context<'a> {
    /// The context of a kernel without others.
    pub(crate) fn new(launch: &'a Launch<'a>, code: &'a Code, code_start: u32) -> Context<'a> {
        let Code { instructions, constants } = code;
        Context { launch, code: instructions, constants: constants.rows(), code_start, others: &[] }
    }

    /// The context of kernel number `kernel`. That of another kernel has no `others` and returns itself.
    #[inline(always)]
    pub(crate) fn of(&self, kernel: u16) -> &Context<'a> {
        if kernel == 0 { self } else { self.others.get(kernel as usize - 1).unwrap_or(self) }
    }
}

/// A CTA on the SM.
#[derive(Debug)]
pub(crate) struct Resident<const N: usize> {
    pub cta: Cta,
    pub warps: Vec<Warp<N>>,
    /// By warp.
    pub slots: WarpSlots,
    /// The number of its kernel.
    pub kernel: u16,
}

/// The slots of a CTA's warps. A warp that has yielded has none.
pub(crate) type WarpSlots = SmallVec<[Option<WarpSlot>; 8]>;

/// A place for every slot that an SM can have, so that none has to be looked for.
pub(crate) type Slots = Box<[Slot; WarpSlot::COUNT]>;

/// What every cycle looks at, even one in which nothing happens: what is due, and which warps are ready.
#[repr(C)]
pub(crate) struct Agenda {
    /// The next cycle to run.
    pub(crate) now: Cycle,
    /// When the SM does something next unless a message arrives first, or [`Cycle::NEVER`].
    pub(crate) wake: Cycle,
    pub(crate) ready: ReadyWarps,
    pub(crate) inbox: Inbox,
    pub(crate) events: Wheel<Event>,
    /// A policy let ready warps wait in the last cycle.
    pub(crate) held_back: bool,
}

/// One SM. The agenda comes first so that a cycle touches few cache lines of the host: fifteen SMs do not fit its
/// cache.
#[repr(C, align(64))]
pub(crate) struct Sm<const N: usize, P> {
    pub(crate) agenda: Agenda,

    pub(crate) slots: Slots,
    /// How many of them the SM has.
    pub(crate) slot_count: usize,
    pub(crate) residents: Vec<Option<Resident<N>>>,
    /// How many more CTAs fit.
    pub(crate) vacant: usize,
    pub(crate) warps_started: u64,
    /// CTAs that ended in this window, with their kernels: they may have left lock bits taken.
    ended_ctas: Vec<(u64, u16)>,
    /// When the last CTA ended.
    pub last_end: Cycle,

    pub(crate) fetch: Fetch,
    /// Lines of code that the network had no room to ask for.
    refused_lines: Vec<LineAddress>,
    branch_latency: u64,
    /// How long a warp yields before a poll of a spin loop.
    yield_cycles: u64,
    silent: SilentAtomics,
    /// Warps arrive at barriers when their stores to shared memory are done.
    barrier_after_stores: bool,

    pub(crate) schedulers: Vec<Scheduler>,
    /// Instructions that a scheduler issues per cycle.
    width: u32,
    /// By unit, the scheduler that is preferred the next time several of them want it; after the last comes the first.
    turns: [usize; ExecUnit::COUNT],
    /// Finds spinning warps and makes them back off, if BOWS is on.
    pub spin_unit: Option<Box<SpinUnit>>,
    /// Ready warps whose unit was busy, times cycles.
    pub unit_busy: u64,

    pub(crate) units: ExecutionUnits,
    /// Present if fences wait for accesses of other warps.
    fences: Option<Box<Fences>>,
    /// When the next arrival at a barrier can count.
    next_arrival: Cycle,
    pub memory: MemoryUnit<N>,

    pub(crate) id: u32,
    /// Something has changed since the machine last asked, other than the state of a warp.
    pub changed: bool,
    /// Changes beyond the warp that issued. Moved into the `Execution` while a window runs.
    effects: Option<Box<Effects>>,
    /// The first fault of a thread, with its cycle.
    pub fault: Option<(Cycle, Box<Fault>)>,
    /// Firmware's CTAs, and those of kernels that run together.
    pub dispatched: Dispatched,
    pub(crate) notes: NotesOfKernels,
    /// The number of the kernel of which a thread was the first to fault.
    pub faulty: u16,
    /// Lanes that ended in this window, on a chip with lock queues to remove them from.
    pub lanes_ended: Option<Vec<(WarpSlot, LaneMask)>>,

    pub probe: P,
    /// The search for warps that repeat themselves, while there is one.
    pub watch: Option<Watch<N>>,
    /// Lanes that polled with a load, and lanes that found they must poll again.
    pub polls: [u64; 2],
    /// By slot and lane, the address of the last wait that the kernel names. Empty before the first.
    pub(crate) waited_at: Vec<[u64; N]>,
    /// Warps that iterate in a spin loop.
    pub spinning_warps: u32,
    pub unwritten: UninitialisedReads,
    /// Holders of locks in shared memory.
    pub locks: SharedLocks,
    /// To other SMs, if the kernel uses clusters.
    pub cluster: Option<Box<ClusterPort<N>>>,
    /// Made with its first copy.
    engine: Option<Box<CopyEngine>>,
}

/// The large parts of an SM, which the next launch uses again.
#[derive(Debug)]
pub(crate) struct Parts {
    l1: L1,
    constant: Tags,
    code: Tags,
    slots: Slots,
}

impl Parts {
    pub(crate) fn new(chip: &Chip) -> Parts {
        Parts {
            l1: L1::new(&chip.l1),
            constant: Tags::new(&chip.constant.cache),
            code: Tags::new(&chip.fetch.cache),
            slots: Box::new(std::array::from_fn(|_| Slot::empty())),
        }
    }
}

const BETWEEN_WINDOWS: &str = "effects are asked for between windows";

impl<const N: usize, P: Probe> Sm<N, P> {
    /// An empty SM with room for `ctas`.
    pub(crate) fn new(
        chip: &Chip,
        id: u32,
        ctas: u32,
        make_policy: &dyn Fn() -> Box<dyn Policy>,
        probe: P,
        Parts { l1, constant, code, slots }: Parts,
        now: Cycle,
    ) -> Self {
        let schedulers = chip.issue.schedulers;
        Sm {
            agenda: Agenda {
                now,
                wake: Cycle::NEVER,
                ready: ReadyWarps::default(),
                inbox: Inbox::new(),
                events: Wheel::new(),
                held_back: false,
            },
            slots,
            slot_count: chip.sm.max_warps as usize,
            residents: (0..ctas).map(|_| None).collect(),
            vacant: ctas as usize,
            warps_started: 0,
            ended_ctas: Vec::new(),
            last_end: now,
            fetch: Fetch::new(&chip.fetch, (id, chip.sm.count), code),
            refused_lines: Vec::new(),
            branch_latency: chip.units.branch_latency_cycles as u64,
            yield_cycles: u64::from(chip.units.yield_cycles),
            silent: SilentAtomics::new(chip),
            barrier_after_stores: chip.units.barrier_after_stores,
            schedulers: (0..schedulers).map(|s| Scheduler::new(s, schedulers, make_policy())).collect(),
            width: chip.issue.width,
            turns: [0; ExecUnit::COUNT],
            spin_unit: None,
            fences: (chip.units.fence_waits_for == crate::chip::timing::FenceScope::Sm).then(Box::default),
            next_arrival: Cycle::default(),
            unit_busy: 0,
            units: ExecutionUnits::new(chip),
            memory: MemoryUnit::new(chip, id as u16, P::WATCHES_MEMORY, l1, constant),
            id,
            changed: false,
            effects: Some(Box::default()),
            fault: None,
            notes: NotesOfKernels::default(),
            faulty: 0,
            dispatched: Dispatched::default(),
            lanes_ended: None,
            probe,
            watch: None,
            polls: [0; 2],
            waited_at: Vec::new(),
            spinning_warps: 0,
            unwritten: UninitialisedReads::default(),
            locks: SharedLocks::new(false),
            cluster: None,
            engine: None,
        }
    }

    /// Adds what its warps have printed, and what looks wrong by kernel, to those of other SMs.
    pub(crate) fn take_notes(&mut self, output: &mut Output, notes: &mut [Notes]) {
        let effects = self.effects_mut();
        output.merge(std::mem::take(&mut effects.output));
        let current = std::mem::take(&mut effects.notes);
        let of_kernels = std::mem::take(&mut self.notes).into_all(current);
        notes.iter_mut().zip(of_kernels).for_each(|(all, more)| all.merge(more));
    }

    /// What is left when the launch is over: parts for the next one, reads of unwritten memory, and the observer.
    pub(crate) fn take_apart(self) -> (Option<Parts>, UninitialisedReads, P) {
        let Sm { mut slots, fetch, memory, probe, unwritten, .. } = self;
        let parts = memory.into_caches().map(|(l1, constant)| {
            slots.fill(Slot::empty());
            Parts { l1, constant, code: fetch.into_tags(), slots }
        });
        (parts, unwritten, probe)
    }

    /// The kernel's code is in the instruction cache, and its parameters in the constant cache, if the chip has them
    /// there when a kernel begins.
    pub(crate) fn warm_up(&mut self, context: &Context<'_>, kernel: u16) {
        let Launch { chip, params, .. } = context.launch;
        if chip.fetch.warm {
            self.fetch.warm_up(context.code_start, context.code.len());
        }
        if chip.constant.prefetch {
            self.memory.prefetch_parameters(kernel, params.len() as u64);
        }
    }

    pub(crate) fn id(&self) -> u32 {
        self.id
    }

    /// The next cycle to run.
    pub(crate) fn now(&self) -> Cycle {
        self.agenda.now
    }

    /// Whether another CTA fits.
    pub(crate) fn has_room(&self) -> bool {
        self.vacant > 0
    }

    /// Whether no CTA is resident.
    pub(crate) fn is_empty(&self) -> bool {
        self.vacant == self.residents.len()
    }

    pub(crate) fn residents(&self) -> impl Iterator<Item = &Resident<N>> {
        self.residents.iter().flatten()
    }

    /// The warp in a slot.
    pub(crate) fn who(&self, slot: WarpSlot) -> WarpName {
        let occupant = &self.slots[slot.index()].occupant;
        let cta = self.residents[occupant.resident()].as_ref().map_or(0, |r| r.cta.number);
        WarpName { cta, warp: occupant.warp() as u32 }
    }

    /// The number of the kernel of the warp in a slot.
    pub(crate) fn kernel_of(&self, slot: WarpSlot) -> u16 {
        self.slots[slot.index()].occupant.kernel
    }

    /// Must not be called while a window runs.
    pub(crate) fn effects(&self) -> &Effects {
        self.effects.as_ref().expect(BETWEEN_WINDOWS)
    }

    /// Must not be called while a window runs.
    pub(crate) fn effects_mut(&mut self) -> &mut Effects {
        self.effects.as_mut().expect(BETWEEN_WINDOWS)
    }

    /// Counters of the memories beside the pipeline.
    pub(crate) fn l1_stats(&self) -> L1Stats {
        L1Stats {
            fetch_hits: self.fetch.hits,
            fetch_misses: self.fetch.misses,
            register_conflicts: self.units.bank_conflicts,
            ..self.memory.stats.clone()
        }
    }
}
