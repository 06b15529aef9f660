//! The counters of a timed launch, gathered from all units.

use crate::exec::locks::holders::{LockStats, LockTable};
use crate::time::aggregator::AggregatorStats;
use crate::time::directory::DirectoryStats;
use crate::time::dram::DramStats;
use crate::time::l2::{Partition, PartitionStats};
use crate::time::machine::crew::Dealt;
use crate::time::network::NetworkStats;
use crate::time::sched::accuracy::Detection;
use crate::time::sched::bows::BackOffs;
use crate::time::sm::Sm;
use crate::time::sm::load_store::stats::L1Stats;
use crate::time::sm::probe::Probe;
use crate::time::sm::stats::SmStats;

/// The counters of a partition.
pub(crate) type PartitionCounts = (PartitionStats, DramStats);

/// Counters of a timed launch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TimedStats {
    /// From the first CTA's start to the last one's end.
    pub cycles: u64,
    /// The warp scheduling policy.
    pub policy: String,
    /// All SMs together.
    pub total: SmStats,
    /// By SM: its warps, and its load/store unit with the L1.
    pub sms: Vec<(SmStats, L1Stats)>,
    /// The load/store units and L1s of all SMs.
    pub l1: L1Stats,
    /// All L2 slices.
    pub l2: PartitionStats,
    /// All DRAM channels.
    pub dram: DramStats,
    /// The network from the SMs to the L2.
    pub requests: NetworkStats,
    /// The network from the L2 to the SMs.
    pub replies: NetworkStats,
    pub locks: LockStats,
    /// Different lock bits taken by the program's own locks, and by its atomics, of the SM with the most.
    pub lock_bits: [u64; 2],
    /// If BOWS was on.
    pub bows: Option<BowsStats>,
    /// Counters over time, if [`Timing::sample_cycles`](crate::Timing::sample_cycles) was set.
    pub samples: Vec<Sample>,
    /// Where L1s are coherent.
    pub coherence: Option<DirectoryStats>,
    /// If the aggregator ran firmware.
    pub aggregator: Option<AggregatorStats>,
    /// Of a kernel of a plan: how many others ran at the same time. The counts of the memory system, of locks and of
    /// BOWS are then those of all of them, while this one ran.
    pub beside: Option<u64>,
    partitions: Vec<PartitionCounts>,
}

/// Counters of BOWS.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BowsStats {
    /// Whether the hardware detected spin-inducing branches itself (DDOS).
    pub by_ddos: bool,
    pub back_offs: BackOffs,
    /// Which branches were detected, and how accurately.
    pub detection: Detection,
}

impl TimedStats {
    /// Adds up the counters as they are.
    pub(crate) fn gather<const N: usize, P: Probe>(
        sms: &Dealt<Sm<N, (SmStats, P)>>,
        partitions: &Dealt<Partition>,
        locks: &LockTable,
    ) -> TimedStats {
        let mut stats = TimedStats { locks: locks.stats.clone(), ..TimedStats::default() };
        stats.sms = vec![Default::default(); sms.len()];
        for sm in sms.iter() {
            let mut of_sm = sm.probe.0.clone();
            of_sm.unit_busy = sm.unit_busy;
            let l1 = sm.l1_stats();
            stats.total.add(&of_sm);
            stats.l1.add(&l1);
            stats.sms[sm.id() as usize] = (of_sm, l1);
            stats.locks.add(&sm.locks.stats);
            if let Some(unit) = sm.effects().lock_units.of(sm.id()) {
                stats.locks.add(&unit.stats);
                let used = unit.used();
                stats.lock_bits = [0, 1].map(|by| stats.lock_bits[by].max(used[by]));
                let [tries, failed] = unit.tries;
                (stats.l1.lock_tries, stats.l1.lock_failures) =
                    (stats.l1.lock_tries + tries, stats.l1.lock_failures + failed);
            }
            stats.locks.wait_ok += sm.polls[0].saturating_sub(sm.polls[1]);
            stats.locks.wait_fail += sm.polls[1];
        }
        let units: Vec<_> = sms.iter().filter_map(|sm| sm.spin_unit.as_deref()).collect();
        if let Some(first) = units.first() {
            let mut bows = BowsStats { by_ddos: first.detects(), ..BowsStats::default() };
            units.iter().for_each(|unit| bows.back_offs.add(&unit.back_off.stats));
            bows.detection = Detection::of(units.iter().map(|unit| &unit.encounters));
            stats.bows = Some(bows);
        }
        stats.partitions = partitions.iter().map(|p| (p.stats().clone(), p.dram_stats().clone())).collect();
        for (l2, dram) in &stats.partitions {
            stats.l2.add(l2);
            stats.dram.add(dram);
        }
        stats
    }

    /// Subtracts an earlier state of the same machine, from all but the counters of warps.
    pub(crate) fn subtract(&mut self, before: &TimedStats) {
        self.l1.subtract(&before.l1);
        self.l2.subtract(&before.l2);
        self.dram.subtract(&before.dram);
        self.requests.subtract(&before.requests);
        self.replies.subtract(&before.replies);
        // A wait counts as over until its poll is known to have failed.
        self.locks.wait_ok = self.locks.wait_ok.max(before.locks.wait_ok);
        self.locks.subtract(&before.locks);
        for ((_, l1), (_, before)) in self.sms.iter_mut().zip(&before.sms) {
            l1.subtract(before);
        }
        if let (Some(bows), Some(before)) = (&mut self.bows, &before.bows) {
            bows.back_offs.count -= before.back_offs.count;
            bows.back_offs.warp_cycles -= before.back_offs.warp_cycles;
        }
    }

    /// Subtracts the counters that the memory partitions had before the launch.
    pub(crate) fn since(&mut self, before: &[PartitionCounts]) {
        for (l2, dram) in before {
            self.l2.subtract(l2);
            self.dram.subtract(dram);
        }
    }
}

/// Counters at one moment; those that count events do so from the launch's start.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sample {
    /// Since the launch began.
    pub cycle: u64,
    pub resident_warps: u64,
    /// Warps that iterate in spin loops.
    pub spinning_warps: u64,
    /// Lines in flight to L1s.
    pub outstanding_misses: u64,
    pub warp_instructions: u64,
    pub l1_hits: u64,
    pub l1_misses: u64,
    pub l2_hits: u64,
    pub l2_misses: u64,
    pub dram_bytes: u64,
    pub locks_acquired: u64,
    /// Attempts at locks that failed.
    pub locks_failed: u64,
}

impl Sample {
    pub(crate) fn new<const N: usize, P: Probe>(
        cycle: u64,
        sms: &Dealt<Sm<N, (SmStats, P)>>,
        totals: &TimedStats,
    ) -> Sample {
        Sample {
            cycle,
            resident_warps: sms.iter().flat_map(|sm| sm.residents()).map(|r| r.warps.len() as u64).sum(),
            spinning_warps: sms.iter().map(|sm| sm.spinning_warps as u64).sum(),
            outstanding_misses: sms.iter().map(|sm| sm.memory.l1.outstanding() as u64).sum(),
            warp_instructions: totals.total.warp_instructions(),
            l1_hits: totals.l1.hits,
            l1_misses: totals.l1.misses,
            l2_hits: totals.l2.hits,
            l2_misses: totals.l2.misses,
            dram_bytes: totals.dram.bytes,
            locks_acquired: totals.locks.acquired,
            locks_failed: totals.locks.failed_intra + totals.locks.failed_inter,
        }
    }
}
