//! Register banks, operand collectors, execution units and result ports: when an issued instruction gets its operands,
//! starts, and writes its result.
//!
//! Nothing here is stepped cycle by cycle: each resource is known by the cycle in which it is free again, and an
//! instruction's times follow when it issues.

use std::hint::select_unpredictable;

use crate::chip::Chip;
use crate::time::sm::front_end::decode::{Decoded, Unit};

/// Cycles ahead for which result ports can be booked, nearly.
const BOOKED: usize = 2048;

/// Cycles whose places are made free together.
const GROUP: usize = 8;

/// Instructions for one kind of unit, from their collectors to the unit.
#[derive(Clone, Debug)]
struct Lane {
    /// When each collector is free.
    collectors: Vec<u64>,
    /// The one that is free first.
    first: usize,
    /// When each unit takes its next instruction.
    units: Vec<u64>,
}

impl Lane {
    fn new(collectors: u32, units: u32) -> Lane {
        let (collectors, units) = (vec![0; collectors as usize], vec![0; units as usize]);
        Lane { collectors, first: 0, units }
    }
}

/// The times of an issued instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// It has its operands and its unit.
    pub starts: u64,
    /// Its result is in the register file: who waits for it can issue in this cycle.
    pub written: u64,
}

/// How long a kind of unit could take no instruction.
#[derive(Clone, Copy, Debug, Default)]
struct Taken {
    /// Cycles before its last instruction.
    before: u64,
    /// The cycle after its last instruction.
    since: u64,
}

/// An SM's arithmetic back end.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Backend {
    /// When each kind of unit can take another instruction: when its first collector is free.
    pub free_at: [u64; Unit::COUNT],
    /// How long each kind of unit was taken.
    taken: [Taken; Unit::COUNT],
    banks: Vec<u64>,
    /// Result ports booked for the cycles from `booked_from` on, in groups, each at its number modulo the length. Small,
    /// because every cycle has another place, and fifteen SMs' are to stay in the host's cache.
    ports: Box<[[u8; GROUP]; BOOKED / GROUP]>,
    /// In groups.
    booked_from: u64,
    ports_per_cycle: u8,
    /// Each slot has its unit.
    owned: bool,
    /// Cycles that operands waited for a bank.
    pub bank_conflicts: u64,
    lanes: [Lane; Unit::COUNT],
}

impl Backend {
    /// All free.
    pub fn new(chip: &Chip) -> Backend {
        let (operands, units) = (&chip.operands, &chip.units);
        let lane = |unit: Unit| match unit {
            Unit::Sp => Lane::new(operands.sp_collectors, units.sp),
            Unit::Sfu => Lane::new(operands.sfu_collectors, units.sfu),
            Unit::Dp => Lane::new(operands.sfu_collectors, units.dp),
            Unit::Memory => Lane::new(operands.memory_collectors, 1),
            Unit::Control => Lane::new(0, 0),
        };
        Backend {
            free_at: [0; Unit::COUNT],
            lanes: [Unit::Sp, Unit::Sfu, Unit::Dp, Unit::Memory, Unit::Control].map(lane),
            banks: vec![0; operands.banks as usize],
            taken: [Taken::default(); Unit::COUNT],
            ports: Box::new([[0; GROUP]; BOOKED / GROUP]),
            booked_from: 0,
            ports_per_cycle: operands.writeback_ports.min(u8::MAX.into()) as u8,
            owned: units.owned,
            bank_conflicts: 0,
        }
    }

    /// The cycle after which all operands of an instruction that issues at `now` are collected.
    fn collect(&mut self, now: u64, slot: usize, registers: u32, inst: &Decoded) -> u64 {
        let mut ready = now + 1;
        for &register in &inst.reads {
            let bank = (register as usize + registers as usize + slot) & (self.banks.len() - 1);
            let at = self.banks[bank].max(now + 1);
            self.bank_conflicts += at - (now + 1);
            self.banks[bank] = at + 1;
            ready = ready.max(at + 1);
        }
        ready
    }

    /// Books everything for an instruction of an arithmetic unit that issues at `now`. The unit must be free.
    pub fn issue(&mut self, now: u64, slot: usize, registers: u32, inst: &Decoded) -> Times {
        let ready = self.collect(now, slot, registers, inst);
        self.takes(inst.unit, now);
        let lane = &mut self.lanes[inst.unit as usize];
        let unit = if self.owned { slot % lane.units.len() } else { earliest(&lane.units) };
        let starts = ready.max(lane.units[unit]);
        lane.units[unit] = starts + inst.initiation_cycles as u64;
        self.free_at[inst.unit as usize] = lane.occupy(starts);
        let written = if inst.writes.is_empty() {
            starts + inst.latency_cycles as u64
        } else {
            self.book_port(now, starts + inst.latency_cycles as u64) + 1
        };
        Times { starts, written }
    }

    /// Collects the operands of a memory instruction. Its collector stays taken until [`Backend::release_memory`].
    pub fn issue_memory(&mut self, now: u64, slot: usize, registers: u32, inst: &Decoded) -> u64 {
        let ready = self.collect(now, slot, registers, inst);
        self.takes(Unit::Memory, now);
        self.free_at[Unit::Memory as usize] = self.lanes[Unit::Memory as usize].occupy(u64::MAX);
        ready
    }

    /// The load/store unit has taken an instruction out of its collector.
    pub fn release_memory(&mut self, now: u64) {
        let lane = &mut self.lanes[Unit::Memory as usize];
        if let Some(taken) = lane.collectors.iter_mut().find(|free| **free == u64::MAX) {
            *taken = now;
        }
        self.free_at[Unit::Memory as usize] = lane.find_first();
    }

    /// A kind of unit, which is free, takes an instruction.
    #[inline(always)]
    fn takes(&mut self, unit: Unit, now: u64) {
        debug_assert!(self.free_at[unit as usize] <= now);
        self.taken[unit as usize] = Taken { before: self.busy_cycles(unit, now), since: now + 1 };
    }

    /// Cycles before `now` in which a kind of unit could take no instruction.
    #[inline(always)]
    pub fn busy_cycles(&self, unit: Unit, now: u64) -> u64 {
        let Taken { before, since } = self.taken[unit as usize];
        before + self.free_at[unit as usize].min(now).saturating_sub(since)
    }

    /// The first cycle from `from` on in which a result port is free; it is taken, at `now`.
    #[inline]
    pub fn book_port(&mut self, now: u64, from: u64) -> u64 {
        if self.booked_from < now / GROUP as u64 {
            self.forget_before(now);
        }
        let mut at = from;
        loop {
            debug_assert!(at < now + (BOOKED - GROUP) as u64, "a result for cycle {at}, at cycle {now}");
            let booked = &mut self.ports[at as usize % BOOKED / GROUP][at as usize % GROUP];
            if *booked < self.ports_per_cycle {
                *booked += 1;
                return at;
            }
            at += 1;
        }
    }

    /// The places of cycles that are over are for later ones.
    fn forget_before(&mut self, now: u64) {
        let now = now / GROUP as u64;
        let over = (now - self.booked_from).min((BOOKED / GROUP) as u64);
        for group in self.booked_from..self.booked_from + over {
            self.ports[group as usize % (BOOKED / GROUP)] = [0; GROUP];
        }
        self.booked_from = now;
    }
}

impl Lane {
    /// Takes the collector that is free first, until `until`. Returns when the next one is free.
    fn occupy(&mut self, until: u64) -> u64 {
        self.collectors[self.first] = until;
        self.find_first()
    }

    fn find_first(&mut self) -> u64 {
        self.first = earliest(&self.collectors);
        self.collectors[self.first]
    }
}

fn earliest(times: &[u64]) -> usize {
    let (mut first, mut best) = (0, u64::MAX);
    for (at, &time) in times.iter().enumerate() {
        let earlier = time < best;
        first = select_unpredictable(earlier, at, first);
        best = best.min(time);
    }
    first
}
