//! The functional machine: executes a grid without timing.
//!
//! As many CTAs are resident as the chip holds, and their warps take turns, so that a warp that spins on what another
//! resident CTA does sees it done.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::atomic::Ordering;

use warploom_isa::{Kernel, Op, Pc};

use crate::chip::Chip;
use crate::fault::{Fault, Place, coordinates};
use crate::gpu::{LaunchError, Limits, Shape, Stats, UninitialisedRead};
use crate::hang::{self, Hang, HangReason, Scene, Seen};
use crate::mem::store::{Global, Memory};
use crate::occupancy::Occupancy;
use crate::sm::execute::{Cta, Effects, Execution, Next};
use crate::sm::lock_unit::LockUnits;
use crate::sm::lsu::Bad;
use crate::sm::warp::Warp;

/// Instructions of a warp's turn.
const TURN: u64 = 256;

/// Bytes of kernel output that are kept.
const MAX_OUTPUT: usize = 64 << 20;

/// A launch: everything that does not change while it runs.
pub struct Launch<'a> {
    /// The chip.
    pub chip: &'a Chip,
    /// The kernel.
    pub kernel: &'a Kernel,
    /// The module's constants.
    pub constants: &'a [u8],
    /// The kernel's parameters.
    pub params: &'a [u8],
    /// Grid and block.
    pub shape: Shape,
    /// What fits on an SM.
    pub occupancy: Occupancy,
    /// What ends it from outside.
    pub limits: &'a Limits,
    /// Whether reads of never-written memory are reported.
    pub check_uninitialised: bool,
    /// `%gridid`.
    pub grid_id: u64,
}

impl Launch<'_> {
    /// Lock bits of an SM, if the kernel uses any; otherwise 0.
    pub fn lock_bits(&self) -> u32 {
        if self.kernel.first_lock().is_some() { self.chip.lock.bits } else { 0 }
    }
}

/// What the kernel prints, to be shown in the order of CTAs and threads.
#[derive(Debug, Default)]
pub struct Output {
    lines: Vec<(u64, u32, String)>,
    bytes: usize,
    cut: bool,
}

impl Output {
    /// A thread prints.
    pub fn print(&mut self, cta: u64, thread: u32, text: String) {
        if self.bytes + text.len() > MAX_OUTPUT {
            self.cut = true;
            return;
        }
        self.bytes += text.len();
        self.lines.push((cta, thread, text));
    }

    /// Adds what another printed.
    pub fn merge(&mut self, other: Output) {
        self.cut |= other.cut;
        for (cta, thread, text) in other.lines {
            self.print(cta, thread, text);
        }
    }

    /// All of it.
    pub fn into_text(mut self) -> String {
        self.lines.sort_by_key(|&(cta, thread, _)| (cta, thread));
        let mut text: String = self.lines.into_iter().map(|(_, _, text)| text).collect();
        if self.cut {
            text.push_str(&format!("[output beyond {} MB is not kept]\n", MAX_OUTPUT >> 20));
        }
        text
    }
}

/// A CTA on an SM.
struct Resident<const N: usize> {
    cta: Cta,
    warps: Vec<Warp<N>>,
    /// Its place on the SM.
    slot: u32,
}

/// Runs the launch to its end.
pub fn run<const N: usize>(launch: &Launch<'_>, memory: &mut Memory) -> Result<Stats, LaunchError> {
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
    };
    let end = machine.run();
    let stats = machine.into_stats();
    match end {
        Ok(()) => Ok(stats),
        Err(End::Fault(fault)) => Err(LaunchError::Fault { fault, stats: Box::new(stats) }),
        Err(End::Hang(hang)) => Err(LaunchError::Hang { hang, stats: Box::new(stats) }),
        Err(End::Interrupted) => Err(LaunchError::Interrupted { stats: Box::new(stats) }),
    }
}

/// Why the machine stops early.
enum End {
    Fault(Box<Fault>),
    Hang(Box<Hang>),
    Interrupted,
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
}

impl<const N: usize> Machine<'_, N> {
    fn run(&mut self) -> Result<(), End> {
        let sms = self.launch.chip.sm.count as u64;
        let slots = (sms * self.launch.occupancy.ctas_per_sm as u64).min(self.total);
        for slot in 0..slots {
            let place = ((slot % sms) as u32, (slot / sms) as u32);
            let cta = self.dispatch(place).expect("there are at least as many CTAs as slots");
            self.residents.push(cta);
        }
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
                return Err(End::Hang(Box::new(self.hang(HangReason::Blocked))));
            }
        }
        Ok(())
    }

    /// The next CTA of the grid, if there is one, for a place on an SM.
    fn dispatch(&mut self, (sm, slot): (u32, u32)) -> Option<Resident<N>> {
        let number = (self.next_cta < self.total).then_some(self.next_cta)?;
        self.next_cta += 1;
        let Launch { chip, kernel, shape, occupancy, .. } = self.launch;
        let warps = (0..occupancy.warps_per_cta)
            .map(|warp| Warp::new(warp, shape.block, kernel, chip.sm.divergence))
            .collect();
        let cta = Cta::new(self.launch, number, sm, slot);
        Some(Resident { cta, warps, slot })
    }

    /// Every warp of a CTA has its turn.
    fn turn(&mut self, at: usize) -> Result<(), End> {
        let Resident { cta, warps, .. } = &mut self.residents[at];
        for warp in 0..warps.len() {
            let mut end = self.execution.clock + TURN;
            if let Some(limit) = self.launch.limits.max_cycles {
                if self.execution.clock >= limit {
                    return Err(End::Hang(Box::new(self.hang(HangReason::CycleLimit(limit)))));
                }
                end = end.min(limit);
            }
            while self.execution.clock < end {
                let Some(path) = warps[warp].control.current() else { break };
                // The model's clock: one tick a warp instruction.
                self.execution.clock += 1;
                self.thread_instructions += path.mask.count_ones() as u64;
                match self.execution.step(cta, warps, warp, path) {
                    Ok(Next::Go) => {}
                    Ok(Next::Yield) => break,
                    Err(bad) => {
                        return Err(End::Fault(fault(self.launch.kernel, cta, &warps[warp], path.pc, bad)));
                    }
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
            Some(stop) if stop.load(Ordering::Relaxed) => Err(End::Interrupted),
            _ => Ok(()),
        }
    }

    fn hang(&self, reason: HangReason) -> Hang {
        let scene = Scene {
            launch: self.launch,
            memory: &self.execution.memory,
            locks: None,
            ctas: self
                .residents
                .iter()
                .map(|r| {
                    let lock_unit = self.execution.effects.lock_units.of(r.cta.sm);
                    Seen { cta: &r.cta, warps: &r.warps, lock_unit, sm: None }
                })
                .collect(),
            unstarted: self.total - self.next_cta,
            timed: None,
        };
        hang::explain(&scene, reason, self.execution.clock)
    }

    fn into_stats(self) -> Stats {
        let begun = self.next_cta;
        Stats {
            warp_instructions: self.execution.clock,
            thread_instructions: self.thread_instructions,
            ctas: begun,
            warps: begun * self.launch.occupancy.warps_per_cta as u64,
            output: self.execution.effects.output.into_text(),
            uninitialised: self.uninitialised.into_vec(),
            lock_warnings: self.execution.effects.lock_notes.told(self.launch.kernel, &self.launch.shape),
            timed: None,
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

/// Reads of memory that nobody wrote, by instruction.
#[derive(Clone, Debug, Default)]
pub struct UninitialisedReads(BTreeMap<Pc, UninitialisedRead>);

impl UninitialisedReads {
    /// A warp reads so, with a lane: (lane, space, address, bytes).
    pub fn note<const N: usize>(
        &mut self,
        kernel: &Kernel,
        cta: &Cta,
        warp: &Warp<N>,
        pc: Pc,
        (lane, space, address, bytes): (usize, &str, u64, u32),
    ) {
        let note = self.0.entry(pc).or_insert_with(|| UninitialisedRead {
            message: format!(
                "{} {bytes} {} of {space} memory at {address:#x}, which nobody wrote, by thread {} of CTA {}\n      at {}",
                if matches!(kernel.code[pc.index()].op, Op::Atom(..)) || kernel.atomic_at(pc).is_some() {
                    "atomic on"
                } else {
                    "load of"
                },
                if bytes == 1 { "byte" } else { "bytes" },
                coordinates(warp.thread(lane)),
                coordinates(cta.id),
                Place::of(kernel, pc)
            ),
            count: 0,
        });
        note.count += 1;
    }

    /// Adds those of another; of the same instruction, the first message stays.
    pub fn merge(&mut self, other: UninitialisedReads) {
        for (pc, read) in other.0 {
            match self.0.entry(pc) {
                Entry::Occupied(mut known) => known.get_mut().count += read.count,
                Entry::Vacant(place) => drop(place.insert(read)),
            }
        }
    }

    /// In the order of the program.
    pub fn into_vec(self) -> Vec<UninitialisedRead> {
        self.0.into_values().collect()
    }
}
