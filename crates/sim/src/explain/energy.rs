//! Energy of a launch: the count of each event times its energy in the chip file, and its duration times idle power.
//!
//! Every event is counted anyway, so this only reads the counters after the launch. Meant to compare launches on one
//! chip, as GPUWattch is; `docs/energy.md` says where the numbers come from.

use crate::chip::Chip;
use crate::chip::energy::EnergySpec;
use crate::chip::timing::{Coherence, L1Policy};
use crate::time::dram::DramStats;
use crate::time::l2::PartitionStats;
use crate::time::machine::totals::TimedStats;
use crate::time::sm::front_end::operation::Operation;
use crate::time::sm::load_store::stats::L1Stats;
use crate::time::sm::stats::SmStats;

/// A part of the chip that uses energy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Component {
    /// Instruction caches, decoders and buffers.
    FetchDecode,
    /// Warp schedulers, scoreboards, reconvergence.
    Scheduler,
    RegisterFile,
    /// Operand collectors, latches and buses.
    Pipeline,
    Integer,
    /// Single precision.
    Float,
    /// Double precision.
    Double,
    /// Special functions, and single-precision divisions.
    Special,
    /// Votes and shuffles.
    Exchange,
    /// Addresses and coalescing.
    MemoryUnit,
    Shared,
    /// L1 data caches.
    L1,
    Constant,
    Interconnect,
    /// The L2 and its atomic units.
    L2,
    Dram,
    /// Clocks and other logic that runs even when idle.
    Idle,
    Leakage,
}

impl Component {
    const COUNT: usize = 18;

    /// In the order of [`Energy::parts`].
    const ALL: [Component; Component::COUNT] = [
        Component::FetchDecode,
        Component::Scheduler,
        Component::RegisterFile,
        Component::Pipeline,
        Component::Integer,
        Component::Float,
        Component::Double,
        Component::Special,
        Component::Exchange,
        Component::MemoryUnit,
        Component::Shared,
        Component::L1,
        Component::Constant,
        Component::Interconnect,
        Component::L2,
        Component::Dram,
        Component::Idle,
        Component::Leakage,
    ];

    /// The key in reports.
    const fn name(self) -> &'static str {
        match self {
            Component::FetchDecode => "fetch_decode",
            Component::Scheduler => "scheduler",
            Component::RegisterFile => "register_file",
            Component::Pipeline => "pipeline",
            Component::Integer => "integer",
            Component::Float => "float",
            Component::Double => "double",
            Component::Special => "special",
            Component::Exchange => "exchange",
            Component::MemoryUnit => "memory_unit",
            Component::Shared => "shared",
            Component::L1 => "l1",
            Component::Constant => "constant",
            Component::Interconnect => "interconnect",
            Component::L2 => "l2",
            Component::Dram => "dram",
            Component::Idle => "idle",
            Component::Leakage => "leakage",
        }
    }

    /// Whether it uses energy per unit of time, not per event.
    const fn is_static(self) -> bool {
        matches!(self, Component::Idle | Component::Leakage)
    }
}

/// The energy of a launch by component, in nanojoules.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Energy {
    parts: [f64; Component::COUNT],
}

impl Energy {
    /// The energy of a launch on `chip` with the counters `stats`.
    pub fn of(chip: &Chip, stats: &TimedStats) -> Energy {
        let each = &chip.energy;
        let mut energy = Energy::default();
        energy.add_supply(each, &stats.total, &stats.l1);
        energy.add_units(each, &stats.total);
        energy.add_near_memory(chip, &stats.l1);
        energy.add(Component::Interconnect, stats.requests.flits + stats.replies.flits, each.flit_pj);
        energy.add_l2(each, &stats.l2);
        energy.add_dram(each, &stats.dram);
        // Watts times nanoseconds are nanojoules.
        let ns = stats.cycles as f64 * 1e3 / f64::from(chip.clock.core_mhz);
        let sms = f64::from(chip.sm.count);
        energy.parts[Component::Idle as usize] = ns * (sms * each.idle_sm_w + each.idle_chip_w);
        energy.parts[Component::Leakage as usize] = ns * (sms * each.leakage_sm_w + each.leakage_chip_w);
        energy
    }

    fn part(&self, component: Component) -> f64 {
        self.parts[component as usize]
    }

    fn dynamic(&self) -> f64 {
        self.sum(|component| !component.is_static())
    }

    fn static_part(&self) -> f64 {
        self.sum(Component::is_static)
    }

    fn total(&self) -> f64 {
        self.dynamic() + self.static_part()
    }

    /// Name and value, in nanojoules, of each component and of the sums `dynamic`, `static` and `total`.
    pub fn named(&self) -> impl Iterator<Item = (&'static str, f64)> {
        let sums = [("dynamic", self.dynamic()), ("static", self.static_part()), ("total", self.total())];
        Component::ALL.iter().map(|&component| (component.name(), self.part(component))).chain(sums)
    }

    fn sum(&self, which: impl Fn(Component) -> bool) -> f64 {
        Component::ALL.into_iter().filter(|&component| which(component)).map(|c| self.part(c)).sum()
    }

    fn add(&mut self, component: Component, events: u64, pj: f64) {
        self.parts[component as usize] += events as f64 * pj / 1e3;
    }

    /// What every warp instruction costs, however few lanes are active.
    fn add_supply(&mut self, each: &EnergySpec, warps: &SmStats, beside: &L1Stats) {
        self.add(Component::FetchDecode, beside.fetch_hits + beside.fetch_misses, each.fetch_pj);
        self.add(Component::FetchDecode, warps.warp_instructions(), each.decode_pj);
        self.add(Component::Scheduler, warps.warp_instructions(), each.schedule_pj);
    }

    /// What each active lane of an instruction costs.
    fn add_units(&mut self, each: &EnergySpec, warps: &SmStats) {
        let lanes = |operation: Operation| warps.lanes[operation as usize];
        self.add(Component::RegisterFile, warps.register_reads, each.register_read_pj);
        self.add(Component::RegisterFile, warps.register_writes, each.register_write_pj);
        let all: u64 = warps.lanes.iter().sum();
        self.add(Component::Pipeline, all - lanes(Operation::Nothing), each.pipeline_pj);
        for (component, operation, pj) in [
            (Component::Integer, Operation::IntAdd, each.int_add_pj),
            (Component::Integer, Operation::IntMul, each.int_mul_pj),
            (Component::Integer, Operation::IntDiv, each.int_div_pj),
            (Component::Float, Operation::FloatAdd, each.float_add_pj),
            (Component::Float, Operation::FloatMul, each.float_mul_pj),
            (Component::Float, Operation::FloatFma, each.float_fma_pj),
            (Component::Special, Operation::FloatDiv, each.float_div_pj),
            (Component::Double, Operation::DoubleAdd, each.double_add_pj),
            (Component::Double, Operation::DoubleMul, each.double_mul_pj),
            (Component::Double, Operation::DoubleFma, each.double_fma_pj),
            (Component::Double, Operation::DoubleDiv, each.double_div_pj),
            (Component::Special, Operation::Special, each.special_pj),
            (Component::Exchange, Operation::Exchange, each.exchange_pj),
            (Component::MemoryUnit, Operation::Address, each.address_pj),
        ] {
            self.add(component, lanes(operation), pj);
        }
    }

    /// Shared memory, L1 and constant cache.
    fn add_near_memory(&mut self, chip: &Chip, l1: &L1Stats) {
        let each = &chip.energy;
        self.add(Component::Shared, l1.shared_accesses + l1.bank_conflicts, each.shared_turn_pj);
        // An atomic reads its word and writes it.
        self.add(Component::Shared, l1.shared_words + l1.shared_atomics, each.shared_word_pj);
        self.add(Component::Constant, l1.constant_hits + l1.constant_misses, each.constant_pj);
        let local = l1.local_hits + l1.local_misses;
        let loads = l1.hits + l1.misses + l1.merges;
        // Accesses that bypass an L1 that caches global memory still look up its tags. Nothing bypasses a coherent
        // L1: atomics are done in it.
        let past = match (chip.l1.coherence, chip.l1.global) {
            (Coherence::Moesi, _) => {
                self.add(Component::L1, l1.atomic_lanes, each.l2_atomic_pj);
                0
            }
            (Coherence::None, L1Policy::WriteEvict) => l1.stores + l1.bypasses + l1.atomics,
            (Coherence::None, L1Policy::Bypass) => 0,
        };
        self.add(Component::L1, local + loads + past, each.l1_tag_pj);
        // Each access reads or writes its line; a line that is filled or written back is accessed once more.
        let moved = l1.misses + l1.local_misses + l1.write_backs;
        self.add(Component::L1, local + loads + moved, each.l1_line_pj);
    }

    fn add_l2(&mut self, each: &EnergySpec, l2: &PartitionStats) {
        self.add(Component::L2, l2.reads + l2.writes + l2.atomics, each.l2_tag_pj);
        self.add(Component::L2, l2.port_busy_cycles, each.l2_port_pj);
        self.add(Component::L2, l2.atomic_lanes, each.l2_atomic_pj);
    }

    fn add_dram(&mut self, each: &EnergySpec, dram: &DramStats) {
        self.add(Component::Dram, dram.row_misses, each.dram_activate_pj);
        self.add(Component::Dram, dram.reads, each.dram_read_pj);
        self.add(Component::Dram, dram.writes, each.dram_write_pj);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chip(overrides: &[&str]) -> Chip {
        Chip::load("gtx480", &overrides.iter().map(|s| s.to_string()).collect::<Vec<_>>()).unwrap()
    }

    /// A launch in which every event happened, each a different number of times.
    fn everything() -> TimedStats {
        let mut stats = TimedStats::default();
        stats.cycles = 7_000;
        stats.total.issued = std::array::from_fn(|i| 100 + i as u64);
        stats.total.lanes = std::array::from_fn(|i| 1_000 + i as u64);
        (stats.total.register_reads, stats.total.register_writes) = (5_000, 3_000);
        stats.l1 = L1Stats {
            hits: 11,
            misses: 12,
            merges: 13,
            bypasses: 14,
            stores: 15,
            atomics: 16,
            local_hits: 17,
            local_misses: 18,
            write_backs: 19,
            shared_accesses: 20,
            bank_conflicts: 21,
            shared_words: 22,
            shared_atomics: 23,
            constant_hits: 24,
            constant_misses: 25,
            fetch_hits: 26,
            fetch_misses: 27,
            ..L1Stats::default()
        };
        stats.requests.flits = 31;
        stats.replies.flits = 32;
        (stats.l2.reads, stats.l2.writes, stats.l2.atomics) = (33, 34, 35);
        (stats.l2.port_busy_cycles, stats.l2.atomic_lanes) = (36, 37);
        (stats.dram.row_misses, stats.dram.reads, stats.dram.writes) = (38, 39, 40);
        stats
    }

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() <= 1e-9 * a.abs().max(b.abs())
    }

    #[test]
    fn components_make_up_the_whole() {
        let energy = Energy::of(&chip(&[]), &everything());
        let named: std::collections::BTreeMap<_, _> = energy.named().collect();
        assert_eq!(named.len(), Component::COUNT + 3);
        let parts: f64 = Component::ALL.iter().map(|c| named[c.name()]).sum();
        assert!(close(named["total"], parts), "{named:?}");
        assert!(close(named["total"], named["dynamic"] + named["static"]));
        assert!(close(named["static"], named["idle"] + named["leakage"]));
        assert!(named.values().all(|&nj| nj > 0.0), "{named:?}");
    }

    #[test]
    fn components_by_hand() {
        let energy = Energy::of(&chip(&[]), &everything());
        let warp_instructions: u64 = (100..111).sum();
        for (component, pj) in [
            (Component::FetchDecode, 53.0 * 25.0 + warp_instructions as f64 * 39.0),
            (Component::Scheduler, warp_instructions as f64 * 78.0),
            (Component::RegisterFile, 5_000.0 * 4.9 + 3_000.0 * 5.8),
            (Component::Pipeline, (1_000..1_014).sum::<u64>() as f64 * 60.0),
            (Component::Integer, 1_000.0 * 0.1 + 1_001.0 * 3.1 + 1_002.0 * 1_900.0),
            (Component::Float, 1_003.0 * 0.9 + 1_004.0 * 3.7 + 1_005.0 * 4.6),
            (Component::Special, 1_006.0 * 770.0 + 1_011.0 * 10.0),
            (Component::Double, 1_007.0 * 10.0 + 1_008.0 * 40.0 + 1_009.0 * 50.0 + 1_010.0 * 3_000.0),
            (Component::Exchange, 1_012.0 * 2.4),
            (Component::MemoryUnit, 1_013.0),
            (Component::Shared, 41.0 * 32.0 + 45.0 * 5.4),
            (Component::L1, 116.0 * 12.5 + 120.0 * 173.0),
            (Component::Constant, 49.0 * 15.0),
            (Component::Interconnect, 63.0 * 390.0),
            (Component::L2, 102.0 * 25.0 + 36.0 * 110.0 + 37.0 * 28.0),
            (Component::Dram, 38.0 * 5_700.0 + 79.0 * 5_630.0),
            // 10 microseconds.
            (Component::Idle, 1e7 * (15.0 * 1.59 + 20.0)),
            (Component::Leakage, 1e7 * (15.0 * 2.0 + 10.0)),
        ] {
            assert!(close(energy.part(component), pj / 1e3), "{component:?}: {}", energy.part(component));
        }
    }

    #[test]
    fn each_key_scales_its_own_component_alone() {
        let plain = Energy::of(&chip(&[]), &everything());
        for (key, value) in chip(&[]).energy.named() {
            let none = Energy::of(&chip(&[&format!("{key}=0")]), &everything());
            let double = Energy::of(&chip(&[&format!("{key}={}", 2.0 * value)]), &everything());
            let changed: Vec<_> =
                Component::ALL.into_iter().filter(|&c| none.part(c) != plain.part(c)).collect();
            let [component] = changed[..] else { panic!("{key} changes {changed:?}") };
            let (less, more) = (plain.part(component) - none.part(component), double.part(component));
            assert!(less > 0.0 && close(more - plain.part(component), less), "{key}");
            assert!(close(double.total() - plain.total(), less), "{key}");
        }
    }

    #[test]
    fn an_l1_that_global_accesses_skip_is_not_asked() {
        let mut stats = TimedStats::default();
        stats.l1 = L1Stats { bypasses: 10, stores: 10, atomics: 10, ..L1Stats::default() };
        assert!(Energy::of(&chip(&[]), &stats).part(Component::L1) > 0.0);
        assert_eq!(Energy::of(&chip(&["l1.global=bypass"]), &stats).part(Component::L1), 0.0);
    }

    #[test]
    fn nothing_in_no_time_takes_nothing() {
        assert_eq!(Energy::of(&chip(&[]), &TimedStats::default()).total(), 0.0);
    }
}
