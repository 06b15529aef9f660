//! Register banks, operand collectors, execution units and result ports: when an issued instruction gets its operands,
//! starts, and writes its result.
//!
//! Nothing here is stepped cycle by cycle: each resource is known by the cycle in which it is free again, and an
//! instruction's times follow when it issues. Start at [`ExecutionUnits::issue`].

use std::hint::select_unpredictable;

use crate::chip::Chip;
use crate::kit::cycle::Cycle;
use crate::kit::ids::{SlotSet, WarpSlot};
use crate::time::sm::front_end::decode::{Decoded, ExecUnit};

/// Cycles for which result ports are booked. The last [`GROUP`] may be in use for cycles that are over.
const BOOKED: usize = 2048;

/// Cycles whose bookings are cleared together.
const GROUP: usize = 8;

/// The way of instructions through one kind of unit: operand collectors, then the units.
#[derive(Clone, Debug)]
struct Pipe {
    collectors: Collectors,
    /// When each unit can start its next instruction.
    units: Vec<Cycle>,
}

impl Pipe {
    fn new(collectors: u32, units: u32) -> Pipe {
        Pipe { collectors: Collectors::new(collectors), units: vec![Cycle(0); units as usize] }
    }
}

/// When each operand collector of a kind of unit is free. All are alike, so only the order of these times matters: a
/// ring of them in ascending order from `first` on. Whoever takes the first one is mostly the last to give it back, so
/// its new time is in place already.
#[derive(Clone, Debug)]
struct Collectors {
    free_at: Vec<Cycle>,
    first: usize,
}

impl Collectors {
    fn new(count: u32) -> Collectors {
        Collectors { free_at: vec![Cycle(0); count as usize], first: 0 }
    }

    /// When the first collector is free.
    #[inline(always)]
    fn next_free(&self) -> Cycle {
        self.free_at[self.first]
    }

    /// Takes the collector that is free first, until `until`. Returns when the next one is free.
    #[inline(always)]
    fn take(&mut self, until: Cycle) -> Cycle {
        let place = self.first;
        self.first = if place + 1 == self.free_at.len() { 0 } else { place + 1 };
        self.put(place, until);
        self.next_free()
    }

    /// The time at a place becomes another one, no earlier than that of the first collector; those before it that are
    /// later move behind it.
    #[inline(always)]
    fn put(&mut self, mut place: usize, time: Cycle) {
        while place != self.first {
            let before = if place == 0 { self.free_at.len() - 1 } else { place - 1 };
            if self.free_at[before] <= time {
                break;
            }
            self.free_at[place] = self.free_at[before];
            place = before;
        }
        self.free_at[place] = time;
    }

    /// One of the collectors that are taken for good is free at `now`, when none is known to be free later.
    #[inline(always)]
    fn release(&mut self, now: Cycle) {
        let count = self.free_at.len();
        let last = if self.first == 0 { count - 1 } else { self.first - 1 };
        if self.free_at[last] == Cycle::NEVER {
            self.put(last, now);
        }
    }
}

/// The times of an issued instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Times {
    /// It has its operands and its unit.
    pub starts: Cycle,
    /// Its result is in the register file: an instruction that waits for it can issue in this cycle.
    pub written: Cycle,
}

/// How long a kind of unit could not accept an instruction.
#[derive(Clone, Copy, Debug, Default)]
struct Busy {
    /// Cycles before its last instruction.
    before: u64,
    /// The cycle after its last instruction.
    since: Cycle,
}

/// The execution units of an SM with what feeds and drains them. `free_at` comes first because every issue reads it.
#[derive(Clone, Debug)]
#[repr(C)]
pub(crate) struct ExecutionUnits {
    /// When each kind of unit can accept another instruction: when its first collector is free.
    pub free_at: [Cycle; ExecUnit::COUNT],
    busy: [Busy; ExecUnit::COUNT],
    /// When each register bank is free.
    banks: Vec<Cycle>,
    /// Result ports booked for the cycles from `booked_from` on, in groups, each at its number modulo the length.
    /// Small, because every cycle has its own entry, and those of fifteen SMs should stay in the host's cache.
    ports: Box<[[u8; GROUP]; BOOKED / GROUP]>,
    /// In groups.
    booked_from: u64,
    ports_per_cycle: u8,
    /// Each slot always uses the same unit.
    owned: bool,
    /// Cycles that operands waited for a bank.
    pub bank_conflicts: u64,
    pipes: [Pipe; ExecUnit::COUNT],
    pub lane_ports: LanePorts,
}

/// The way of lanes into the load/store unit, where each scheduler has its own, which is narrower than a warp.
#[derive(Clone, Debug)]
pub(crate) struct LanePorts {
    /// Cycles in which a warp's lanes go in.
    interval: u64,
    /// Warps of schedulers whose port is taken, as far as is known: [`LanePorts::look`] clears what is over.
    taken: SlotSet,
    /// By scheduler.
    ports: Vec<LanePort>,
}

#[derive(Clone, Debug)]
struct LanePort {
    warps: SlotSet,
    free_at: Cycle,
    busy: Busy,
}

impl LanePorts {
    fn new(chip: &Chip) -> LanePorts {
        let count = chip.issue.schedulers;
        let warps =
            |port: u32| (0..64).filter(|slot| u32::from(*slot) % count == port).map(WarpSlot).collect();
        let port = |port| LanePort { warps: warps(port), free_at: Cycle(0), busy: Busy::default() };
        let interval = u64::from(chip.units.access_interval_cycles);
        LanePorts { interval, taken: SlotSet::default(), ports: (0..count).map(port).collect() }
    }

    /// The warp in a slot sends its lanes in.
    #[inline]
    pub(crate) fn take(&mut self, now: Cycle, slot: usize) {
        if self.interval > 1 {
            let before = self.busy_cycles(slot, now);
            let count = self.ports.len();
            let port = &mut self.ports[slot % count];
            port.busy = Busy { before, since: now + 1 };
            port.free_at = now + self.interval;
            self.taken.0 |= port.warps.0;
        }
    }

    /// Warps whose port is taken at `now`.
    #[inline]
    pub(crate) fn look(&mut self, now: Cycle) {
        if !self.taken.is_empty() {
            let taken = self.ports.iter().filter(|port| port.free_at > now);
            self.taken = SlotSet(taken.fold(0, |taken, port| taken | port.warps.0));
        }
    }

    #[inline]
    pub(crate) fn taken(&self) -> SlotSet {
        self.taken
    }

    /// When the first port of some warps is free.
    #[cold]
    pub(crate) fn free_for(&self, warps: SlotSet) -> Cycle {
        let ports = self.ports.iter().filter(|port| !(port.warps & warps).is_empty());
        ports.map(|port| port.free_at).min().unwrap_or(Cycle::NEVER)
    }

    /// Cycles before `now` in which the port of a warp was taken.
    fn busy_cycles(&self, slot: usize, now: Cycle) -> u64 {
        let port = &self.ports[slot % self.ports.len()];
        port.busy.cycles(port.free_at, now)
    }
}

impl Busy {
    /// Cycles before `now`, if the unit is free at `free_at`.
    #[inline(always)]
    fn cycles(&self, free_at: Cycle, now: Cycle) -> u64 {
        self.before + free_at.min(now).saturating_sub(self.since)
    }
}

impl ExecutionUnits {
    pub(crate) fn new(chip: &Chip) -> ExecutionUnits {
        let (operands, units) = (&chip.operands, &chip.units);
        let pipe = |unit: ExecUnit| match unit {
            ExecUnit::Sp => Pipe::new(operands.sp_collectors, units.sp),
            ExecUnit::Sfu => Pipe::new(operands.sfu_collectors, units.sfu),
            ExecUnit::Dp => Pipe::new(operands.sfu_collectors, units.dp),
            ExecUnit::Memory => Pipe::new(operands.memory_collectors, 1),
            ExecUnit::Control => Pipe::new(0, 0),
        };
        ExecutionUnits {
            free_at: [Cycle(0); ExecUnit::COUNT],
            pipes: [ExecUnit::Sp, ExecUnit::Sfu, ExecUnit::Dp, ExecUnit::Memory, ExecUnit::Control].map(pipe),
            banks: vec![Cycle(0); operands.banks as usize],
            busy: [Busy::default(); ExecUnit::COUNT],
            ports: Box::new([[0; GROUP]; BOOKED / GROUP]),
            booked_from: 0,
            ports_per_cycle: operands.writeback_ports.min(u8::MAX.into()) as u8,
            owned: units.owned,
            bank_conflicts: 0,
            lane_ports: LanePorts::new(chip),
        }
    }

    /// The cycle in which all operands of an instruction that issues at `now` are collected.
    #[inline(always)]
    fn collect(&mut self, now: Cycle, slot: usize, registers: u32, inst: &Decoded) -> Cycle {
        let banks = &mut self.banks[..];
        let (first, soonest) = (registers as usize + slot, now + 1);
        let (mut ready, mut conflicts) = (soonest, 0);
        for &register in &inst.reads {
            let bank = (register as usize + first) & (banks.len() - 1);
            // When it is over.
            let turn = banks[bank].max(soonest) + 1;
            conflicts += turn.0;
            banks[bank] = turn;
            ready = ready.max(turn);
        }
        self.bank_conflicts += conflicts - inst.reads.len() as u64 * (soonest.0 + 1);
        ready
    }

    /// Books everything for an instruction of an arithmetic unit that issues at `now`. The unit must be free.
    #[inline(always)]
    pub(crate) fn issue(&mut self, now: Cycle, slot: usize, registers: u32, inst: &Decoded) -> Times {
        let ready = self.collect(now, slot, registers, inst);
        self.accept(inst.unit, now);
        let pipe = &mut self.pipes[inst.unit as usize];
        let unit = if self.owned { slot % pipe.units.len() } else { earliest(&pipe.units) };
        let starts = ready.max(pipe.units[unit]);
        pipe.units[unit] = starts + inst.initiation_cycles as u64;
        self.free_at[inst.unit as usize] = pipe.collectors.take(starts);
        let written = if inst.writes.is_empty() {
            starts + inst.latency_cycles as u64
        } else {
            self.book_port(now, starts + inst.latency_cycles as u64) + 1
        };
        Times { starts, written }
    }

    /// Collects the operands of a memory instruction. Its collector stays taken until
    /// [`ExecutionUnits::release_memory`]. Returns the cycle in which it has them.
    #[inline(always)]
    pub(crate) fn issue_memory(&mut self, now: Cycle, slot: usize, registers: u32, inst: &Decoded) -> Cycle {
        let ready = self.collect(now, slot, registers, inst);
        self.accept(ExecUnit::Memory, now);
        let collectors = &mut self.pipes[ExecUnit::Memory as usize].collectors;
        self.free_at[ExecUnit::Memory as usize] = collectors.take(Cycle::NEVER);
        self.lane_ports.take(now, slot);
        ready
    }

    /// The load/store unit has taken an instruction out of its collector.
    #[inline]
    pub(crate) fn release_memory(&mut self, now: Cycle) {
        let collectors = &mut self.pipes[ExecUnit::Memory as usize].collectors;
        collectors.release(now);
        self.free_at[ExecUnit::Memory as usize] = collectors.next_free();
    }

    /// A kind of unit, which is free, accepts an instruction.
    #[inline(always)]
    fn accept(&mut self, unit: ExecUnit, now: Cycle) {
        debug_assert!(self.free_at[unit as usize] <= now);
        let before = self.busy[unit as usize].cycles(self.free_at[unit as usize], now);
        self.busy[unit as usize] = Busy { before, since: now + 1 };
    }

    /// Cycles before `now` in which a kind of unit could not accept an instruction of the warp in a slot. Cycles count
    /// twice in which neither collectors nor its port were free.
    #[inline(always)]
    pub(crate) fn busy_cycles(&self, unit: ExecUnit, slot: usize, now: Cycle) -> u64 {
        let busy = self.busy[unit as usize].cycles(self.free_at[unit as usize], now);
        match unit == ExecUnit::Memory && self.lane_ports.interval > 1 {
            true => busy + self.lane_ports.busy_cycles(slot, now),
            false => busy,
        }
    }

    /// Books the first free result port from cycle `from` on, at cycle `now`. Returns its cycle.
    #[inline]
    pub(crate) fn book_port(&mut self, now: Cycle, from: Cycle) -> Cycle {
        if self.booked_from < now.0 / GROUP as u64 {
            self.forget_before(now);
        }
        let mut at = from;
        loop {
            debug_assert!(at < now + (BOOKED - GROUP) as u64, "a result for cycle {at}, at cycle {now}");
            let booked = &mut self.ports[at.0 as usize % BOOKED / GROUP][at.0 as usize % GROUP];
            if *booked < self.ports_per_cycle {
                *booked += 1;
                return at;
            }
            at += 1;
        }
    }

    /// Clears the bookings of cycles that are over, for later cycles.
    fn forget_before(&mut self, now: Cycle) {
        let now = now.0 / GROUP as u64;
        let over = (now - self.booked_from).min((BOOKED / GROUP) as u64);
        for group in self.booked_from..self.booked_from + over {
            self.ports[group as usize % (BOOKED / GROUP)] = [0; GROUP];
        }
        self.booked_from = now;
    }
}

fn earliest(times: &[Cycle]) -> usize {
    let (mut first, mut best) = (0, Cycle::NEVER);
    for (at, &time) in times.iter().enumerate() {
        let earlier = time < best;
        first = select_unpredictable(earlier, at, first);
        best = best.min(time);
    }
    first
}
