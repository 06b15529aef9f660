//! The functional machine: executes a grid without timing.
//!
//! As many CTAs are resident as the chip holds, and their warps take turns, so that a warp that spins on what another
//! resident CTA does sees it done. CTAs that have nothing to do with each other run one by one (`independence`).

mod part;

use std::ops::Range;
use std::sync::atomic::Ordering;

use rustc_hash::FxHashMap;
use warploom_isa::{AtomicLoop, Kernel, Op, Pc};

use crate::bulk::Job;
use crate::execute::{Cta, Effects, Execution, Next, end_cluster_phase};
use crate::fault::{Fault, FaultKind, Place};
use crate::functional::part::Touches;
pub use crate::functional::part::{Part, Touch, run_part};
use crate::independence::are_independent;
use crate::kit::lane_mask::LaneMask;
use crate::launch::Launch;
use crate::locks::holders::{LockTable, SharedLocks, WarpName, is_exclusive, shared_offset};
use crate::locks::polled::Polled;
use crate::locks::unit::{LockUnit, LockUnits};
use crate::locks::written::Written;
use crate::memory::access::{MemoryOp, WarpAccess};
use crate::memory::reach::{Bad, local_extent};
use crate::memory::shared::Shared;
use crate::memory::store::{Global, Memory};
use crate::notes::Notes;
use crate::output::Output;
use crate::repetition::{Found, Now, Repetition};
use crate::stop::{HangReason, Stop};
use crate::straight::{self, Program, Reached};
use crate::sync::cluster::{Remote, remote_mbarrier};
use crate::uninitialised::UninitialisedReads;
use crate::warp::Warp;

/// Instructions that a warp executes before the next warp runs.
const TURN: u64 = 256;

/// Turns that differ from warp to warp and from round to round. Turns of one length can keep warps in step, so that
/// each always finds what another has not undone yet.
const UNEVEN_TURNS: [u64; 8] = [256, 37, 101, 5, 67, 19, 149, 11];

/// Turns that a CTA may take while no other is resident. Whoever takes more may never end.
const TURNS_ALONE: u64 = 2048;

/// If no CTA has started in this many turns, one without a way out ends the launch.
const ROUNDS_WITHOUT_END: u64 = 4096;

/// A CTA on an SM.
pub struct Resident<const N: usize> {
    pub cta: Cta,
    pub warps: Vec<Warp<N>>,
    pub slot: u32,
}

/// Runs a launch until it ends or has to be stopped.
pub fn run<'a, const N: usize>(launch: &'a Launch<'a>, memory: &'a mut Memory) -> Stopped<'a, N> {
    run_rest(launch, memory, 0)
}

/// Runs what is left of a launch whose first CTAs have ended.
pub fn run_rest<'a, const N: usize>(
    launch: &'a Launch<'a>,
    memory: &'a mut Memory,
    first: u64,
) -> Stopped<'a, N> {
    let mut machine = Machine::new(launch, memory, first);
    let end = machine.run();
    Stopped { machine, end }
}

/// A machine whose launch has ended or was stopped early, as it was after its last instruction.
pub struct Stopped<'a, const N: usize> {
    machine: Machine<'a, N>,
    pub end: Result<(), Stop>,
}

/// What a launch leaves behind.
pub struct Finished {
    pub end: Result<(), Stop>,
    pub warp_instructions: u64,
    pub thread_instructions: u64,
    /// CTAs that ever ran, and their warps.
    pub ctas: u64,
    pub warps: u64,
    pub output: Output,
    pub uninitialised: UninitialisedReads,
    pub notes: Notes,
}

impl<const N: usize> Stopped<'_, N> {
    pub fn launch(&self) -> &Launch<'_> {
        self.machine.launch
    }

    pub fn memory(&self) -> &Memory {
        &self.machine.execution.memory
    }

    /// The CTAs that have not ended, with their warps and the lock bits of their SM.
    pub fn ctas(&self) -> impl Iterator<Item = (&Cta, &[Warp<N>], Option<&LockUnit>)> {
        let units = &self.machine.execution.effects.lock_units;
        self.machine.residents.iter().map(|r| (&r.cta, &r.warps[..], units.of(r.cta.sm)))
    }

    /// Who took which lock in global memory.
    pub fn locks(&self) -> &LockTable {
        &self.machine.waits.locks
    }

    pub fn shared_locks(&self) -> &SharedLocks {
        &self.machine.waits.shared_locks
    }

    /// What warps do again and again, if the launch repeats itself.
    pub fn circle(&self) -> Option<&Circle<N>> {
        self.machine.waits.circle.as_ref()
    }

    pub fn unstarted_ctas(&self) -> u64 {
        self.machine.total - self.machine.next_cta
    }

    /// The model's clock: warp instructions executed.
    pub fn clock(&self) -> u64 {
        self.machine.execution.clock
    }

    pub fn finish(self) -> Finished {
        let Stopped { machine, end } = self;
        let begun = machine.next_cta - machine.first;
        let effects = *machine.execution.effects;
        Finished {
            end,
            warp_instructions: machine.execution.clock,
            thread_instructions: machine.thread_instructions,
            ctas: begun,
            warps: begun * machine.launch.occupancy.warps_per_cta as u64,
            output: effects.output,
            uninitialised: machine.uninitialised,
            notes: effects.notes,
        }
    }
}

/// What warps read in spin loops, and write, while the launch seems to hang.
#[derive(Default)]
pub struct Circle<const N: usize> {
    pub polled: FxHashMap<WarpName, Vec<Polled<N>>>,
    pub written: Written,
}

struct Machine<'a, const N: usize> {
    launch: &'a Launch<'a>,
    execution: Execution<'a>,
    /// For straight runs.
    program: Program<N>,
    residents: Vec<Resident<N>>,
    /// CTAs that have started elsewhere.
    first: u64,
    next_cta: u64,
    total: u64,
    /// Instructions times lanes that were active, whatever the guard says.
    thread_instructions: u64,
    uninitialised: UninitialisedReads,
    /// The access of the current instruction, reused.
    access: WarpAccess<N>,
    /// By pc: the branch repeats a loop that waits for other threads.
    repeats_wait: Vec<bool>,
    waits: Waits<N>,
    repetition: Repetition<N>,
    /// In which every warp had its turn.
    rounds: u64,
    /// By resident and warp, the instructions that are left to execute. A turn is [`TURN`] where there are none.
    turns: Vec<Vec<u64>>,
    /// Turns are [`UNEVEN_TURNS`]: with those of one length, attempts were undone for ever.
    uneven: bool,
    /// The last instruction of the turn that ended last.
    last_pc: Pc,
    /// Accesses, if they are noted.
    touches: Option<Touches>,
}

/// What is known about waits, for the explanation of a hang.
struct Waits<const N: usize> {
    /// By pc: a loop that waits for other threads polls with the instruction. Empty if none does.
    polls: Vec<bool>,
    locks: LockTable,
    shared_locks: SharedLocks,
    /// Once the machine is back in an earlier state: what happens until it is again.
    circle: Option<Circle<N>>,
}

impl<const N: usize> Waits<N> {
    fn new(kernel: &Kernel) -> Self {
        let waits = kernel.may_wait();
        Waits {
            polls: polls(kernel),
            locks: LockTable::new(waits),
            shared_locks: SharedLocks::new(waits),
            circle: None,
        }
    }

    /// A warp has executed the instruction of an access.
    #[inline]
    fn note(&mut self, kernel: &Kernel, who: WarpName, access: &WarpAccess<N>) {
        let polls = self.polls.get(access.pc.index()).copied().unwrap_or(false);
        if let Some(circle) = &mut self.circle {
            circle.written.note(who, access, kernel.windows.shared);
            if polls
                || Polled::<N>::may_wait(&kernel.code[access.pc.index()]) && access.lanes.local.is_empty()
            {
                Polled::note(circle.polled.entry(who).or_default(), access);
            }
        }
        if self.polls.is_empty() {
            return;
        }
        let (name, addresses, lanes) = ((who, access.pc), &access.addresses, access.lanes);
        let change = |lane: usize| access.change(lane);
        let global = |address: u64| address;
        let shared = |address: u64| (who.cta, shared_offset(address, kernel.windows.shared));
        // The atomics that a loop on lock bits is made of poll with its load, and take with its store.
        let polls_bit = |atomic: &AtomicLoop| self.polls[atomic.load.index()];
        match access.kind {
            MemoryOp::Atomic { op, .. } if polls => {
                let who = (who, access.pc, is_exclusive(op));
                let tried = |lanes: LaneMask| (lanes, access.changed_in_sm(lanes));
                self.locks.tried(who, addresses, tried(lanes.global), change, global);
                self.shared_locks.tried(who, addresses, tried(lanes.shared), change, shared);
            }
            MemoryOp::Atomic { .. } => {
                self.locks.changed(name, addresses, lanes.global, change, global);
                self.shared_locks.changed(name, addresses, lanes.shared, change, shared);
            }
            MemoryOp::Unlock { changed, of: Some((op, _)) } => {
                if kernel.atomic_at(access.pc).is_some_and(polls_bit) {
                    let who = (who, access.pc, is_exclusive(op));
                    self.shared_locks.tried(who, addresses, (lanes.shared, changed), change, shared);
                } else {
                    self.shared_locks.changed(name, addresses, changed, change, shared);
                }
            }
            MemoryOp::Store | MemoryOp::Unlock { .. } => {
                self.locks.stored(name, addresses, lanes.global, global);
                self.shared_locks.stored(name, addresses, lanes.shared, shared);
            }
            MemoryOp::Load
            | MemoryOp::Lock { .. }
            | MemoryOp::Copy
            | MemoryOp::Matrix
            | MemoryOp::Texture => {}
        }
    }
}

/// A table of the branches after which independent threads let other paths of their warp run.
fn repeats_wait(kernel: &Kernel) -> Vec<bool> {
    let mut table = vec![false; kernel.code.len()];
    let waits = kernel.loops.iter().filter(|l| l.spins_on.is_some() && !l.of_atomic);
    waits.flat_map(|l| &l.latches).for_each(|latch| table[latch.index()] = true);
    table
}

/// A table of the instructions with which loops poll; empty if none does.
fn polls(kernel: &Kernel) -> Vec<bool> {
    let mut table = Vec::new();
    for pc in kernel.loops.iter().filter(|l| !l.of_atomic).filter_map(|l| l.spins_on) {
        table.resize(kernel.code.len(), false);
        table[pc.index()] = true;
    }
    table
}

impl<'a, const N: usize> Machine<'a, N> {
    /// Without residents. CTAs before `first` have started elsewhere.
    fn new(launch: &'a Launch<'a>, memory: &'a mut Memory, first: u64) -> Machine<'a, N> {
        let execution = Execution {
            launch,
            memory: Global::Now(memory),
            clock: 0,
            uninitialised: None,
            effects: Box::new(Effects {
                lock_units: LockUnits::new(launch.lock_bits(), 0, launch.chip.sm.count),
                ..Effects::default()
            }),
        };
        let total = launch.shape.ctas();
        let (waits, repeats_wait) = (Waits::new(launch.kernel), repeats_wait(launch.kernel));
        Machine {
            launch,
            execution,
            program: Program::new(launch, !waits.polls.is_empty(), &repeats_wait),
            residents: Vec::new(),
            first,
            next_cta: first,
            total,
            thread_instructions: 0,
            uninitialised: UninitialisedReads::default(),
            access: WarpAccess::default(),
            repeats_wait,
            waits,
            repetition: Repetition::new(launch.kernel, launch.chip.hang.suspect_cycles),
            rounds: 0,
            turns: Vec::new(),
            uneven: false,
            last_pc: Pc(0),
            touches: None,
        }
    }

    fn run(&mut self) -> Result<(), Stop> {
        let sms = self.launch.chip.sm.count as u64;
        // CTAs of a cluster begin and leave together: all of them are residents next to each other.
        let size = self.launch.shape.cluster_ctas() as usize;
        let slots = self.launch.wave().min(self.total - self.first);
        let slots = slots / size as u64 * size as u64;
        if are_independent(self.launch) {
            self.run_one_by_one(slots)?;
        }
        let taken = self.residents.first().map(|resident| (resident.cta.sm, resident.slot));
        for slot in (0..slots).map(|slot| slot_of(slot, sms)).filter(|slot| Some(*slot) != taken) {
            let Some(cta) = self.dispatch(slot) else { break };
            self.residents.push(cta);
        }
        let mut dispatched = self.next_cta;
        while !self.residents.is_empty() {
            let before = self.execution.clock;
            let mut at = 0;
            while at < self.residents.len() {
                self.turn(at)?;
                let cluster = at / size * size..at / size * size + size;
                if self.residents[cluster.clone()].iter().any(|resident| resident.cta.live_warps > 0) {
                    at += 1;
                    continue;
                }
                at = cluster.start;
                self.replace(cluster, None);
            }
            if self.execution.clock == before && !self.residents.is_empty() {
                return Err(Stop::Hang(HangReason::Blocked));
            }
            self.rounds += 1;
            if self.rounds.is_multiple_of(ROUNDS_WITHOUT_END)
                && std::mem::replace(&mut dispatched, self.next_cta) == self.next_cta
                && self.has_no_way_out()
            {
                return Err(Stop::Hang(HangReason::NoWayOut));
            }
            // What comes next follows from the state only at the same place among the turns.
            if self.uneven && !self.rounds.is_multiple_of(UNEVEN_TURNS.len() as u64) {
                continue;
            }
            let ctas = self.residents.iter().map(|resident| (&resident.cta, &resident.warps[..]));
            let Execution { effects, memory, clock, .. } = &self.execution;
            let (kernel, locks) = (self.launch.kernel, &effects.lock_units);
            match self.repetition.look(Now { kernel, ctas, locks, memory, clock: *clock }) {
                Found::Nothing => {}
                Found::Something => drop(self.waits.circle.get_or_insert_default()),
                Found::Hang(HangReason::Repeats) if !self.uneven && self.undoes() => {
                    self.uneven = true;
                    self.waits.circle = None;
                    self.repetition =
                        Repetition::new(self.launch.kernel, self.launch.chip.hang.suspect_cycles);
                }
                Found::Hang(reason) => return Err(Stop::Hang(reason)),
            }
        }
        Ok(())
    }

    /// Runs CTAs each to its end, in the slots that they would have together with others. Stops if one does not end.
    fn run_one_by_one(&mut self, slots: u64) -> Result<(), Stop> {
        let sms = self.launch.chip.sm.count as u64;
        let first = self.dispatch(slot_of(0, sms));
        self.residents.extend(first);
        let mut turns = 0;
        while !self.residents.is_empty() && turns < TURNS_ALONE {
            let before = self.execution.clock;
            self.turn(0)?;
            turns += 1;
            if self.residents[0].cta.live_warps == 0 {
                let next = (self.next_cta - self.first) % slots;
                self.replace(0..1, Some(slot_of(next, sms)));
                turns = 0;
            } else if self.execution.clock == before {
                break;
            }
        }
        Ok(())
    }

    /// Whether memory changes on the way back to the earlier state.
    fn undoes(&self) -> bool {
        self.waits.circle.as_ref().is_some_and(|circle| circle.written.changing().next().is_some())
    }

    /// The CTAs of a cluster have ended: those of the next one take their places, if there is one, in the same slots or
    /// in another one.
    fn replace(&mut self, cluster: Range<usize>, other: Option<(u32, u32)>) {
        for at in cluster.clone() {
            let Resident { cta, slot, .. } = &self.residents[at];
            let sm = cta.sm;
            let (next_sm, next_slot) = other.unwrap_or((sm, *slot));
            if let Some(unit) = self.execution.effects.lock_units.of(sm) {
                self.execution.effects.notes.locks.cta_ended(unit, cta.number);
            }
            // The grid has whole clusters.
            let Some(number) = self.next_number() else { return drop(self.residents.drain(cluster)) };
            let Resident { cta, warps, slot } = &mut self.residents[at];
            *slot = next_slot;
            *cta = Cta::new(self.launch, number, next_sm, next_slot);
            let Launch { kernel, shape, .. } = self.launch;
            warps.iter_mut().for_each(|warp| warp.restart(shape.block, kernel));
        }
    }

    /// Whether threads are where no branch leads to the kernel's end.
    fn has_no_way_out(&self) -> bool {
        let out = self.launch.kernel.ways_out();
        let warps = self.residents.iter().flat_map(|resident| &resident.warps);
        warps.flat_map(|warp| warp.control.paths()).any(|(path, _)| !out[path.pc.index()])
    }

    /// The number of the next CTA of the grid, if any.
    fn next_number(&mut self) -> Option<u64> {
        let turn = (self.next_cta < self.total).then_some(self.next_cta)?;
        self.next_cta += 1;
        Some(self.launch.shape.starting(turn))
    }

    /// The next CTA of the grid, if any, for a CTA slot of an SM.
    fn dispatch(&mut self, (sm, slot): (u32, u32)) -> Option<Resident<N>> {
        let number = self.next_number()?;
        let Launch { chip, kernel, shape, occupancy, .. } = self.launch;
        let warps = (0..occupancy.warps_per_cta)
            .map(|warp| Warp::new(warp, shape.block, kernel, chip.sm.divergence))
            .map(|warp| warp.track_local(self.launch.check_uninitialised))
            .collect();
        let cta = Cta::new(self.launch, number, sm, slot);
        Some(Resident { cta, warps, slot })
    }

    /// Runs every warp of a CTA for a while.
    fn turn(&mut self, at: usize) -> Result<(), Stop> {
        for warp in 0..self.residents[at].warps.len() {
            let before = self.execution.clock;
            if self.turn_of(at, warp)? == Next::Remote {
                self.carry_out(at, warp)?;
            }
            if let Some(turns) = self.turns.get_mut(at) {
                turns[warp] -= self.execution.clock - before;
            }
        }
        if let Some(progress) = &self.launch.limits.progress {
            progress.instructions.store(self.execution.clock, Ordering::Relaxed);
            progress.ctas_done.store(self.next_cta - self.residents.len() as u64, Ordering::Relaxed);
            progress.ctas_started.store(self.next_cta, Ordering::Relaxed);
            progress.ctas.store(self.total, Ordering::Relaxed);
        }
        match &self.launch.limits.interrupt {
            Some(stop) if stop.load(Ordering::Relaxed) => Err(Stop::Interrupted),
            _ => Ok(()),
        }
    }

    /// Runs a warp for a while. Its turn is over when it waits, and after an instruction that concerns other CTAs.
    fn turn_of(&mut self, at: usize, warp: usize) -> Result<Next, Stop> {
        let Resident { cta, warps, .. } = &mut self.residents[at];
        let length = match self.uneven {
            true => UNEVEN_TURNS[(self.rounds as usize + 3 * at + warp) % UNEVEN_TURNS.len()],
            false => self.turns.get(at).map_or(TURN, |turns| turns[warp]),
        };
        let mut end = self.execution.clock + length;
        if let Some(limit) = self.launch.limits.max_cycles {
            if self.execution.clock >= limit {
                return Err(Stop::Hang(HangReason::CycleLimit(limit)));
            }
            end = end.min(limit);
        }
        // Nobody wants to know of each instruction.
        let noted = self.repetition.notes() || self.waits.circle.is_some() || self.touches.is_some();
        let runs = !noted && self.launch.races.is_none();
        while self.execution.clock < end {
            if runs
                && let Some(stretch) = warps[warp].control.straight()
                && self.program.begins(stretch.path.pc)
                && let Global::Now(memory) = &mut self.execution.memory
            {
                let launch = self.launch;
                let activation = warps[warp].control.activation();
                let extent = local_extent(launch.kernel, &warps[warp], &activation);
                let (registers, local, tid, control) = warps[warp].parts(&activation);
                let mut reached = Reached {
                    launch,
                    registers,
                    local: (local, extent),
                    memory,
                    shared: &mut cta.shared.bytes,
                    tid,
                    ctaid: cta.id,
                };
                let most = end - self.execution.clock;
                let ran = straight::run(&mut self.program, &mut reached, control, &activation, most);
                self.execution.clock += ran.instructions;
                self.thread_instructions += ran.thread_instructions;
                if self.execution.clock == end {
                    break;
                }
            }
            let Some(path) = warps[warp].control.current() else { break };
            // The model's clock: one tick a warp instruction.
            self.execution.clock += 1;
            self.thread_instructions += path.mask.count() as u64;
            if self.repetition.notes() {
                let (op, control) = (self.launch.kernel.code[path.pc.index()].op, &warps[warp].control);
                self.repetition.note((at, cta.number), warp, (path.pc, op), &control.activation());
            }
            match self.execution.step(cta, warps, warp, path, Some(&mut self.access)) {
                Ok(Next::Go) => {}
                Ok(next) => {
                    self.last_pc = path.pc;
                    return Ok(next);
                }
                Err(bad) => {
                    return Err(Stop::Fault(fault(self.launch.kernel, cta, &warps[warp], path.pc, bad)));
                }
            }
            if self.access.pc == path.pc && accesses_memory(self.launch.kernel.code[path.pc.index()].op) {
                let who = WarpName { cta: cta.number, warp: warp as u32 };
                self.waits.note(self.launch.kernel, who, &self.access);
                if let Some(touches) = &mut self.touches {
                    touches.note(&self.access);
                }
                if self.repetition.notes() && !self.access.lanes.local.is_empty() {
                    let window = self.launch.kernel.windows.local;
                    self.repetition.note_local((at, cta.number), warp, &self.access, window);
                }
            }
            let control = &mut warps[warp].control;
            if control.is_parted()
                && self.repeats_wait[path.pc.index()]
                && control.current().is_some_and(|now| now.pc <= path.pc)
            {
                control.yield_path();
            }
            if let Some(read) = self.execution.uninitialised.take() {
                let read = (read.0, read.1.name(), read.2, read.3);
                self.uninitialised.note(self.launch.kernel, cta, &warps[warp], path.pc, read);
            }
        }
        Ok(Next::Yield)
    }

    /// Carries out what a warp's last instruction does to other CTAs of its cluster.
    #[cold]
    fn carry_out(&mut self, at: usize, warp: usize) -> Result<(), Stop> {
        let kernel = self.launch.kernel;
        let size = self.launch.shape.cluster_ctas() as usize;
        let cluster = at / size * size;
        for remote in std::mem::take(&mut self.execution.effects.remote) {
            let done = match remote {
                Remote::Arrived => {
                    self.end_phase(cluster..cluster + size);
                    Ok(())
                }
                Remote::Access => self.access_cluster(at, cluster, warp),
                Remote::Bulk(job) => self.copy_in_bulk(at, cluster, *job),
                Remote::Bytes { rank, bytes, lane } => {
                    let shared = self.shared_of(cluster, rank, "store to");
                    shared.and_then(|shared| bytes.arrive(shared)).map_err(|kind| Bad { lane, kind })
                }
                Remote::Mbarrier { rank, address, op, value, lane } => {
                    let shared = self.shared_of(cluster, rank, "mbarrier in");
                    shared
                        .and_then(|shared| remote_mbarrier(shared, (op, address, value)))
                        .map_err(|kind| Bad { lane, kind })
                }
            };
            if let Err(bad) = done {
                let Resident { cta, warps, .. } = &self.residents[at];
                return Err(Stop::Fault(fault(kernel, cta, &warps[warp], self.last_pc, bad)));
            }
        }
        Ok(())
    }

    /// Makes a bulk copy at once.
    fn copy_in_bulk(&mut self, at: usize, cluster: usize, mut job: Job) -> Result<(), Bad> {
        let lane = job.request.lane;
        while !job.is_done() {
            job.give(&mut self.access, &self.residents[at].cta.shared, self.last_pc);
            if let Global::Now(memory) = &mut self.execution.memory {
                Job::serve(&mut self.access, memory);
            }
            for rank in job.ranks().filter(|_| job.delivers()) {
                let cta = &mut self.residents[cluster + rank as usize].cta;
                let what = || FaultKind::LeftCluster { what: "bulk copy to".to_string(), rank };
                let there = (cta.live_warps > 0).then_some(&mut cta.shared).ok_or_else(what);
                there
                    .and_then(|shared| Job::deliver(job.delivery(), &self.access, shared))
                    .map_err(|kind| Bad { lane, kind })?;
            }
        }
        Ok(())
    }

    /// The shared memory of the CTA of a rank, unless that has ended.
    fn shared_of(&mut self, cluster: usize, rank: u32, what: &str) -> Result<&mut Shared, FaultKind> {
        let cta = &mut self.residents[cluster + rank as usize].cta;
        match cta.live_warps {
            0 => Err(FaultKind::LeftCluster { what: what.to_string(), rank }),
            _ => Ok(&mut cta.shared),
        }
    }

    /// Ends the phase of a cluster's barrier if all its CTAs have arrived; one that has ended has.
    fn end_phase(&mut self, cluster: Range<usize>) {
        let members = &mut self.residents[cluster];
        let arrived = |cta: &Cta| cta.cluster.as_ref().is_some_and(|member| member.barrier.has_arrived());
        if members.iter().all(|resident| resident.cta.live_warps == 0 || arrived(&resident.cta)) {
            members.iter_mut().for_each(|Resident { cta, warps, .. }| drop(end_cluster_phase(cta, warps)));
        }
    }

    /// Lanes of the access that has just begun are in the shared memory of other CTAs. Finishes it.
    fn access_cluster(&mut self, at: usize, cluster: usize, warp: usize) -> Result<(), Bad> {
        let kernel = self.launch.kernel;
        let parts: Vec<_> = self.access.remote_parts(kernel.windows).collect();
        for (rank, lanes) in parts {
            let target = &mut self.residents[cluster + rank as usize].cta;
            if target.live_warps == 0 {
                let what = format!("access of {} bytes to", self.access.bytes);
                return Err(Bad { lane: lanes.lowest(), kind: FaultKind::LeftCluster { what, rank } });
            }
            self.access.serve_remote(kernel.windows, rank, lanes, &mut target.shared);
        }
        let Resident { cta, warps, .. } = &mut self.residents[at];
        let inst = &kernel.code[self.access.pc.index()];
        self.access.finish(kernel, &mut warps[warp], &mut cta.shared, inst);
        warps[warp].control.advance();
        let who = WarpName { cta: cta.number, warp: warp as u32 };
        self.waits.note(kernel, who, &self.access);
        Ok(())
    }
}

/// The slot of the chip in which the CTA comes that is the `number`-th to start: SMs get CTAs in turn.
fn slot_of(number: u64, sms: u64) -> (u32, u32) {
    ((number % sms) as u32, (number / sms) as u32)
}

fn accesses_memory(op: Op) -> bool {
    matches!(op, Op::Ld { .. } | Op::St(_) | Op::Atom(..) | Op::LdLock(_) | Op::StUnlock(_))
}

fn fault<const N: usize>(kernel: &Kernel, cta: &Cta, warp: &Warp<N>, pc: Pc, bad: Bad) -> Box<Fault> {
    Box::new(Fault {
        kind: bad.kind,
        kernel: kernel.name.clone(),
        cta: cta.id,
        thread: warp.thread(bad.lane),
        place: Place::of(kernel, pc),
    })
}
