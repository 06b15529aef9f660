//! The functional machine: executes a grid without timing.
//!
//! As many CTAs are resident as the chip holds, and their warps take turns, so that a warp that spins on what another
//! resident CTA does sees it done.

use std::sync::atomic::Ordering;

use warploom_isa::{Kernel, Pc};

use crate::execute::{Cta, Effects, Execution, Next};
use crate::fault::{Fault, Place};
use crate::launch::Launch;
use crate::locks::notes::LockNotes;
use crate::locks::unit::{LockUnit, LockUnits};
use crate::memory::access::WarpAccess;
use crate::memory::reach::Bad;
use crate::memory::store::{Global, Memory};
use crate::output::Output;
use crate::repetition::Repetition;
use crate::stop::{HangReason, Stop};
use crate::uninitialised::UninitialisedReads;
use crate::warp::Warp;

/// Instructions that a warp executes before the next warp runs.
const TURN: u64 = 256;

/// A CTA on an SM.
struct Resident<const N: usize> {
    cta: Cta,
    warps: Vec<Warp<N>>,
    slot: u32,
}

/// Runs a launch until it ends or has to be stopped.
pub fn run<'a, const N: usize>(launch: &'a Launch<'a>, memory: &'a mut Memory) -> Stopped<'a, N> {
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
    let total = launch.shape.grid.iter().map(|&d| d as u64).product::<u64>();
    let mut machine = Machine::<N> {
        launch,
        execution,
        residents: Vec::new(),
        next_cta: 0,
        total,
        thread_instructions: 0,
        uninitialised: UninitialisedReads::default(),
        access: WarpAccess::default(),
        repeats_wait: repeats_wait(launch.kernel),
    };
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
    pub lock_notes: LockNotes,
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

    pub fn unstarted_ctas(&self) -> u64 {
        self.machine.total - self.machine.next_cta
    }

    /// The model's clock: warp instructions executed.
    pub fn clock(&self) -> u64 {
        self.machine.execution.clock
    }

    pub fn finish(self) -> Finished {
        let Stopped { machine, end } = self;
        let begun = machine.next_cta;
        let effects = *machine.execution.effects;
        Finished {
            end,
            warp_instructions: machine.execution.clock,
            thread_instructions: machine.thread_instructions,
            ctas: begun,
            warps: begun * machine.launch.occupancy.warps_per_cta as u64,
            output: effects.output,
            uninitialised: machine.uninitialised,
            lock_notes: effects.lock_notes,
        }
    }
}

struct Machine<'a, const N: usize> {
    launch: &'a Launch<'a>,
    execution: Execution<'a>,
    residents: Vec<Resident<N>>,
    next_cta: u64,
    total: u64,
    /// Instructions times lanes that were active, whatever the guard says.
    thread_instructions: u64,
    uninitialised: UninitialisedReads,
    /// The access of the current instruction, reused.
    access: WarpAccess<N>,
    /// By pc: the branch repeats a loop that waits for other threads.
    repeats_wait: Vec<bool>,
}

/// A table of the branches after which independent threads let other paths of their warp run.
fn repeats_wait(kernel: &Kernel) -> Vec<bool> {
    let mut table = vec![false; kernel.code.len()];
    let waits = kernel.loops.iter().filter(|l| l.spins_on.is_some() && !l.of_atomic);
    waits.flat_map(|l| &l.latches).for_each(|latch| table[latch.index()] = true);
    table
}

impl<const N: usize> Machine<'_, N> {
    fn run(&mut self) -> Result<(), Stop> {
        let sms = self.launch.chip.sm.count as u64;
        let slots = (sms * self.launch.occupancy.ctas_per_sm as u64).min(self.total);
        for slot in 0..slots {
            let place = ((slot % sms) as u32, (slot / sms) as u32);
            let cta = self.dispatch(place).expect("there are at least as many CTAs as slots");
            self.residents.push(cta);
        }
        let mut repetition = Repetition::new(self.launch.kernel);
        while !self.residents.is_empty() {
            let before = self.execution.clock;
            let mut at = 0;
            while at < self.residents.len() {
                self.turn(at)?;
                if self.residents[at].cta.live_warps > 0 {
                    at += 1;
                    continue;
                }
                let Resident { cta, slot, .. } = &self.residents[at];
                let (sm, slot) = (cta.sm, *slot);
                if let Some(unit) = self.execution.effects.lock_units.of(sm) {
                    self.execution.effects.lock_notes.cta_ended(unit, cta.number);
                }
                match self.dispatch((sm, slot)) {
                    Some(next) => self.residents[at] = next,
                    None => drop(self.residents.remove(at)),
                }
            }
            if self.execution.clock == before && !self.residents.is_empty() {
                return Err(Stop::Hang(HangReason::Blocked));
            }
            let ctas = self.residents.iter().map(|resident| (&resident.cta, &resident.warps[..]));
            if repetition.found(ctas, &self.execution.effects.lock_units, &self.execution.memory) {
                return Err(Stop::Hang(HangReason::Repeats));
            }
        }
        Ok(())
    }

    /// The next CTA of the grid, if any, for a CTA slot of an SM.
    fn dispatch(&mut self, (sm, slot): (u32, u32)) -> Option<Resident<N>> {
        let number = (self.next_cta < self.total).then_some(self.next_cta)?;
        self.next_cta += 1;
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
        let Resident { cta, warps, .. } = &mut self.residents[at];
        for warp in 0..warps.len() {
            let mut end = self.execution.clock + TURN;
            if let Some(limit) = self.launch.limits.max_cycles {
                if self.execution.clock >= limit {
                    return Err(Stop::Hang(HangReason::CycleLimit(limit)));
                }
                end = end.min(limit);
            }
            while self.execution.clock < end {
                let Some(path) = warps[warp].control.current() else { break };
                // The model's clock: one tick a warp instruction.
                self.execution.clock += 1;
                self.thread_instructions += path.mask.count() as u64;
                match self.execution.step(cta, warps, warp, path, Some(&mut self.access)) {
                    Ok(Next::Go) => {}
                    Ok(Next::Yield) => break,
                    Err(bad) => {
                        return Err(Stop::Fault(fault(self.launch.kernel, cta, &warps[warp], path.pc, bad)));
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
        }
        if let Some(progress) = &self.launch.limits.progress {
            progress.instructions.store(self.execution.clock, Ordering::Relaxed);
            progress.ctas_done.store(self.next_cta - self.residents.len() as u64, Ordering::Relaxed);
            progress.ctas.store(self.total, Ordering::Relaxed);
        }
        match &self.launch.limits.interrupt {
            Some(stop) if stop.load(Ordering::Relaxed) => Err(Stop::Interrupted),
            _ => Ok(()),
        }
    }
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
