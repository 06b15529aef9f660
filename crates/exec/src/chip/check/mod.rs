//! Refuses chip values that no machine can be built with.

mod footprint;
mod spinning;

use std::fmt::Display;
use std::ops::RangeInclusive;

use warploom_isa::MAX_CLUSTER_CTAS;

use crate::chip::timing::{
    CacheSpec, Coherence, MOST_BANK_GROUPS, MOST_BANKS, MOST_MSHRS, MOST_QUEUED, MOST_SLICES, OperationTimes,
};
use crate::chip::{Chip, ChipError, Divergence};

type Checked = Result<(), ChipError>;

/// Limit on counts, which become array lengths, and on latencies in cycles; no real chip comes near it.
const MOST: u32 = 65536;

/// Limit on the CTAs of a grid: they are counted in 64 bits.
const MOST_CTAS: u128 = 1 << 63;

/// Lines that one miss of the instruction cache can bring along.
const MOST_PREFETCHED: u32 = 256;

/// Limit on latencies, in cycles: result ports are reserved that far ahead.
const LONGEST_OPERATION: u32 = 1024;

/// Limit on the latency of an access that stays in the SM, and on what an atomic of all lanes on one word adds to it:
/// these results reserve their port as well.
const LONGEST_ACCESS: u32 = 512;
const LONGEST_ATOMIC: u32 = 1024;

/// Limit on energies and powers: far above any event's or chip's.
const MOST_ENERGY: f64 = 1e9;

const SECTOR: u32 = super::timing::SECTOR_BYTES;

impl Chip {
    pub(super) fn check(&self) -> Checked {
        self.check_sm()?;
        self.check_launch()?;
        self.check_caches()?;
        self.check_supply()?;
        self.check_spinning()?;
        self.check_units()?;
        self.check_paths()?;
        self.check_atomic()?;
        self.check_dram()?;
        self.check_matrix()?;
        self.check_cluster()?;
        self.check_copy_engine()?;
        self.check_texture()?;
        self.check_aggregator()?;
        self.check_energy()?;
        self.check_hang()?;
        self.check_footprint()
    }

    fn require(&self, ok: bool, key: &str, value: impl Display, rule: impl Display) -> Checked {
        if ok {
            return Ok(());
        }
        Err(ChipError::Impossible {
            name: self.name.clone(),
            key: key.to_string(),
            value: value.to_string(),
            rule: rule.to_string(),
        })
    }

    fn positive(&self, key: &str, value: impl Into<u64>) -> Checked {
        let value = value.into();
        self.require(value > 0, key, value, "it must be at least 1")
    }

    fn within(&self, key: &str, value: u32, range: RangeInclusive<u32>) -> Checked {
        let rule = format_args!("it must be from {} to {}", range.start(), range.end());
        self.require(range.contains(&value), key, value, rule)
    }

    /// A number of things or of cycles: at least one, and not more than an array should hold.
    fn count(&self, key: &str, value: u32) -> Checked {
        self.within(key, value, 1..=MOST)
    }

    fn not_too_large(&self, key: &str, value: u32) -> Checked {
        self.within(key, value, 0..=MOST)
    }

    fn power_of_two(&self, key: &str, value: u32) -> Checked {
        self.require(value.is_power_of_two(), key, value, "it must be a power of two")
    }

    fn check_sm(&self) -> Checked {
        let sm = &self.sm;
        let lanes = sm.warp_lanes;
        self.require(lanes == 32 || lanes == 64, "sm.warp_lanes", lanes, "a warp has 32 or 64 lanes")?;
        self.within("sm.count", sm.count, 1..=u16::MAX.into())?;
        self.count("sm.max_ctas", sm.max_ctas)?;
        self.positive("sm.register_unit", sm.register_unit)?;
        self.positive("sm.shared_unit_bytes", sm.shared_unit_bytes)?;
        self.positive("sm.max_registers_per_thread", sm.max_registers_per_thread)?;
        let fits = "it must be at least one warp's worth";
        self.require(sm.max_threads >= lanes, "sm.max_threads", sm.max_threads, fits)?;
        self.require(sm.max_warps >= 1, "sm.max_warps", sm.max_warps, fits)?;
        self.require(sm.max_warps <= 64, "sm.max_warps", sm.max_warps, "an SM has at most 64 warp slots")?;
        let barriers = sm.barriers_per_cta;
        let named = "a CTA has 1 to 16 named barriers";
        self.require((1..=16).contains(&barriers), "sm.barriers_per_cta", barriers, named)
    }

    fn check_launch(&self) -> Checked {
        let (sm, launch, memory) = (&self.sm, &self.launch, &self.memory);
        self.positive("launch.max_threads_per_cta", launch.max_threads_per_cta)?;
        let dims = launch.max_grid_dims;
        let ctas = dims.iter().map(|&d| u128::from(d)).product::<u128>();
        let rule = format_args!("together that is {ctas} CTAs; a grid can have at most {MOST_CTAS}");
        self.require(ctas <= MOST_CTAS, "launch.max_grid_dims", format_args!("{dims:?}"), rule)?;
        let cycles = launch.cta_cycles;
        let some = "it must be from 0 to 1024";
        self.require((0.0..=1024.0).contains(&cycles), "launch.cta_cycles", cycles, some)?;
        self.positive("memory.global_bytes", memory.global_bytes)?;
        let window = warploom_isa::Windows::default().bytes;
        for (key, value) in [
            ("sm.shared_bytes", sm.shared_bytes),
            ("launch.max_shared_bytes_per_cta", launch.max_shared_bytes_per_cta),
            ("memory.constant_bytes", memory.constant_bytes),
            ("memory.local_bytes_per_thread", memory.local_bytes_per_thread),
            ("launch.max_param_bytes", launch.max_param_bytes),
        ] {
            let inside = "it must fit the 16 MB address window of its space";
            self.require(u64::from(value) <= window, key, value, inside)?;
        }
        self.require(
            launch.max_threads_per_cta <= sm.max_threads,
            "launch.max_threads_per_cta",
            launch.max_threads_per_cta,
            "an SM holds fewer threads (sm.max_threads)",
        )?;
        self.require(
            launch.max_shared_bytes_per_cta <= sm.shared_bytes,
            "launch.max_shared_bytes_per_cta",
            launch.max_shared_bytes_per_cta,
            "an SM has less shared memory (sm.shared_bytes)",
        )
    }

    /// Clocks, fetch and issue.
    fn check_supply(&self) -> Checked {
        let (clock, fetch, issue) = (&self.clock, &self.fetch, &self.issue);
        for (key, mhz) in [
            ("clock.core_mhz", clock.core_mhz),
            ("clock.interconnect_mhz", clock.interconnect_mhz),
            ("clock.dram_mhz", clock.dram_mhz),
        ] {
            self.count(key, mhz)?;
        }
        self.count("fetch.buffer_entries", fetch.buffer_entries)?;
        self.count("fetch.warps_per_cycle", fetch.warps_per_cycle)?;
        self.count("fetch.width", fetch.width)?;
        self.count("fetch.latency_cycles", fetch.latency_cycles)?;
        if let Some(shared) = &fetch.shared {
            self.count("fetch.shared.sms", shared.sms)?;
            self.count("fetch.shared.fetches_per_cycle", shared.fetches_per_cycle)?;
        }
        self.power_of_two("fetch.instruction_bytes", fetch.instruction_bytes)?;
        self.require(
            fetch.instruction_bytes <= fetch.cache.line_bytes,
            "fetch.instruction_bytes",
            fetch.instruction_bytes,
            "a line of the instruction cache is shorter (fetch.cache.line_bytes)",
        )?;
        self.positive("issue.schedulers", issue.schedulers)?;
        self.require(
            issue.schedulers <= self.sm.max_warps,
            "issue.schedulers",
            issue.schedulers,
            "an SM has fewer warp slots (sm.max_warps)",
        )?;
        self.count("issue.width", issue.width)?;
        let policies = super::timing::POLICY_NAMES;
        self.require(
            policies.contains(&issue.policy.as_str()),
            "issue.policy",
            format_args!("`{}`", issue.policy),
            format_args!("there is no such policy; there are {}", policies.join(", ")),
        )
    }

    /// Operand collectors and execution units.
    fn check_units(&self) -> Checked {
        let (operands, units) = (&self.operands, &self.units);
        for (key, value) in [
            ("operands.banks", operands.banks),
            ("operands.sp_collectors", operands.sp_collectors),
            ("operands.sfu_collectors", operands.sfu_collectors),
            ("operands.memory_collectors", operands.memory_collectors),
            ("operands.writeback_ports", operands.writeback_ports),
            ("units.sp", units.sp),
            ("units.sfu", units.sfu),
        ] {
            self.count(key, value)?;
        }
        self.power_of_two("operands.banks", operands.banks)?;
        self.not_too_large("units.dp", units.dp)?;
        self.check_times("units.int", &units.int)?;
        self.check_times("units.f32", &units.f32)?;
        self.check_times("units.f64", &units.f64)?;
        self.check_time("units.special", units.special)?;
        self.check_time("units.exchange", units.exchange)?;
        for (key, time) in [
            ("vote", units.vote),
            ("convert", units.convert),
            ("int_add_wide", units.int_add_wide),
            ("count_bits", units.count_bits),
        ] {
            time.map_or(Ok(()), |time| self.check_time(&format!("units.{key}"), time))?;
        }
        self.within("units.access_interval_cycles", units.access_interval_cycles, 1..=LONGEST_ACCESS)?;
        self.count("units.branch_latency_cycles", units.branch_latency_cycles)?;
        self.count("units.barrier_latency_cycles", units.barrier_latency_cycles)?;
        self.not_too_large("units.barrier_interval_cycles", units.barrier_interval_cycles)
    }

    fn check_times(&self, section: &str, times: &OperationTimes) -> Checked {
        for (operation, time) in [
            ("add", times.add),
            ("max", times.max),
            ("mul", times.mul),
            ("mad", times.mad),
            ("div", times.div),
        ] {
            self.check_time(&format!("{section}.{operation}"), time)?;
        }
        Ok(())
    }

    fn check_time(&self, key: &str, time: [u32; 2]) -> Checked {
        let [latency, interval] = time;
        self.require(
            (1..=LONGEST_OPERATION).contains(&latency) && (1..=LONGEST_OPERATION).contains(&interval),
            key,
            format_args!("[{latency}, {interval}]"),
            format_args!("latency and initiation interval are 1 to {LONGEST_OPERATION} cycles each"),
        )
    }

    /// Cache shapes, and how the caches fit together.
    fn check_caches(&self) -> Checked {
        self.check_cache("fetch.cache", &self.fetch.cache)?;
        self.check_cache("l1.cache", &self.l1.cache)?;
        self.check_cache("constant.cache", &self.constant.cache)?;
        self.check_cache("l2.cache", &self.l2.cache)?;
        let line = self.l2.cache.line_bytes;
        for (key, bytes) in [
            ("fetch.cache.line_bytes", self.fetch.cache.line_bytes),
            ("l1.cache.line_bytes", self.l1.cache.line_bytes),
            ("constant.cache.line_bytes", self.constant.cache.line_bytes),
        ] {
            let same = format_args!("it must be as l2.cache.line_bytes, which is {line}");
            self.require(bytes == line, key, bytes, same)?;
        }
        let l1 = &self.l1;
        let nodes = self.sm.count + self.aggregator.is_some() as u32;
        self.require(
            l1.coherence == Coherence::None || nodes <= 64,
            "sm.count",
            self.sm.count,
            "a directory (l1.coherence) knows at most 64 caches",
        )?;
        self.within("l1.hit_latency_cycles", l1.hit_latency_cycles, 1..=LONGEST_ACCESS)?;
        self.within("l1.line_cycles", l1.line_cycles, 1..=LONGEST_ACCESS)?;
        self.count("l1.mshrs", l1.mshrs)?;
        self.count("l1.mshr_merges", l1.mshr_merges)?;
        self.power_of_two("l1.bypass_bytes", l1.bypass_bytes)?;
        self.require(
            (SECTOR..=line).contains(&l1.bypass_bytes),
            "l1.bypass_bytes",
            l1.bypass_bytes,
            format_args!("it must be at least a sector ({SECTOR}) and at most a line ({line})"),
        )?;
        self.within("constant.hit_latency_cycles", self.constant.hit_latency_cycles, 1..=LONGEST_ACCESS)?;
        self.within("shared.latency_cycles", self.shared.latency_cycles, 1..=LONGEST_ACCESS)?;
        if let Some(latency) = self.shared.mbarrier_latency_cycles {
            self.within("shared.mbarrier_latency_cycles", latency, 1..=LONGEST_ACCESS)?;
        }
        let (atomic, lanes) = (self.shared.atomic_cycles, self.sm.warp_lanes);
        let most = LONGEST_ATOMIC / (lanes - 1);
        let rule = format_args!("it must be from 0 to {most} in warps of {lanes} lanes (sm.warp_lanes)");
        self.require(atomic <= most, "shared.atomic_cycles", atomic, rule)?;
        self.count("shared.banks", self.shared.banks)?;
        self.power_of_two("shared.banks", self.shared.banks)?;
        let bits = self.lock.bits;
        let rule = "it must be 0 (no lock bits) or a power of two";
        self.require(bits == 0 || bits.is_power_of_two(), "lock.bits", bits, rule)?;
        self.not_too_large("lock.bits", bits)
    }

    fn check_cache(&self, section: &str, cache: &CacheSpec) -> Checked {
        let (sets, ways) = (format!("{section}.sets"), format!("{section}.ways"));
        self.count(&sets, cache.sets)?;
        self.power_of_two(&sets, cache.sets)?;
        self.count(&ways, cache.ways)?;
        let most = 1 << 20;
        let lines = cache.lines();
        self.require(
            lines <= most,
            &ways,
            cache.ways,
            format_args!("a cache can have at most {most} lines"),
        )?;
        let bytes = cache.line_bytes;
        self.require(
            matches!(bytes, 32 | 64 | 128),
            &format!("{section}.line_bytes"),
            bytes,
            "a line has 32, 64 or 128 bytes: one, two or four sectors",
        )
    }

    /// The network and the L2 behind it.
    fn check_paths(&self) -> Checked {
        let (network, l2) = (&self.interconnect, &self.l2);
        for (key, value) in [
            ("interconnect.latency_cycles", network.latency_cycles),
            ("interconnect.flit_bytes", network.flit_bytes),
            ("interconnect.queue_packets", network.queue_packets),
            ("l2.partitions", l2.partitions),
            ("l2.port_bytes", l2.port_bytes),
            ("l2.partial_write_cycles", l2.partial_write_cycles),
            ("l2.mshr_merges", l2.mshr_merges),
            ("l2.queue_requests", l2.queue_requests),
        ] {
            self.count(key, value)?;
        }
        self.require(
            (1.0..=1024.0).contains(&l2.port_cycles),
            "l2.port_cycles",
            l2.port_cycles,
            "it must be from 1 to 1024",
        )?;
        self.within("l2.slices_per_partition", l2.slices_per_partition, 1..=MOST_SLICES)?;
        self.require(
            u64::from(l2.partitions) * u64::from(l2.slices_per_partition) <= u64::from(MOST),
            "l2.slices_per_partition",
            l2.slices_per_partition,
            format_args!("all partitions (l2.partitions) together can have at most {MOST}"),
        )?;
        self.within("l2.mshrs", l2.mshrs, 1..=MOST_MSHRS)?;
        self.not_too_large("interconnect.header_bytes", network.header_bytes)?;
        self.not_too_large("interconnect.allocation_cycles", network.allocation_cycles)?;
        self.not_too_large("interconnect.atomic_window", network.atomic_window)?;
        self.require(
            network.atomic_window == 0 || self.l1.coherence == Coherence::None,
            "interconnect.atomic_window",
            network.atomic_window,
            "a network with a directory (l1.coherence) has no windows",
        )?;
        if let Some(port) = &network.port {
            self.within("interconnect.port.sms", port.sms, 1..=64)?;
            let some = "it must be from 0 to 1024";
            for (key, cycles) in [
                ("interconnect.port.request_cycles", port.request_cycles),
                ("interconnect.port.next_sector_cycles", port.next_sector_cycles.unwrap_or(0.0)),
                ("interconnect.port.sector_cycles", port.sector_cycles),
            ] {
                self.require((0.0..=1024.0).contains(&cycles), key, cycles, some)?;
            }
        }
        self.not_too_large("interconnect.span_cycles", network.span_cycles)?;
        self.not_too_large("interconnect.far_span_cycles", network.far_span_cycles)?;
        self.require(
            network.far_span_cycles == 0 || network.far_span_cycles >= network.span_cycles,
            "interconnect.far_span_cycles",
            network.far_span_cycles,
            "the other half is not nearer (interconnect.span_cycles); 0: it is as far",
        )?;
        self.require(
            network.span_cycles == 0 || self.l1.coherence == Coherence::None,
            "interconnect.span_cycles",
            network.span_cycles,
            "in a network with a directory (l1.coherence) all are as far apart",
        )?;
        self.not_too_large("l2.far_cycles", l2.far_cycles)?;
        self.require(
            l2.far_cycles == 0 || l2.partitions.is_multiple_of(2),
            "l2.far_cycles",
            l2.far_cycles,
            "halves of the L2 need an even number of partitions (l2.partitions)",
        )?;
        self.require(
            l2.far_cycles == 0 || self.l1.coherence == Coherence::None,
            "l2.far_cycles",
            l2.far_cycles,
            "an L2 with a directory (l1.coherence) has no halves",
        )?;
        self.not_too_large("l2.read_after_write_cycles", l2.read_after_write_cycles)?;
        self.not_too_large("units.fence_cycles", self.units.fence_cycles)?;
        self.not_too_large("units.fence_after_access_cycles", self.units.fence_after_access_cycles)?;
        self.not_too_large("units.cta_fence_cycles", self.units.cta_fence_cycles)?;
        self.not_too_large("units.sleep_cycles", self.units.sleep_cycles)?;
        self.not_too_large("units.yield_cycles", self.units.yield_cycles)?;
        self.within("shared.cas_cycles", self.shared.cas_cycles, 0..=LONGEST_ACCESS)?;
        self.within("fetch.prefetch_lines", self.fetch.prefetch_lines, 0..=MOST_PREFETCHED)?;
        self.count("l2.latency_cycles", l2.latency_cycles)?;
        self.power_of_two("l2.slices_per_partition", l2.slices_per_partition)?;
        self.power_of_two("l2.interleave_bytes", l2.interleave_bytes)?;
        self.require(
            l2.interleave_bytes >= l2.cache.line_bytes,
            "l2.interleave_bytes",
            l2.interleave_bytes,
            "a line would lie in two partitions (l2.cache.line_bytes)",
        )
    }

    fn check_atomic(&self) -> Checked {
        let (atomic, lanes) = (&self.atomic, self.sm.warp_lanes);
        self.power_of_two("atomic.request_lanes", atomic.request_lanes)?;
        let in_warp = format_args!("a warp has {lanes} lanes (sm.warp_lanes)");
        self.require(atomic.request_lanes <= lanes, "atomic.request_lanes", atomic.request_lanes, in_warp)?;
        self.count("atomic.lanes_per_cycle", atomic.lanes_per_cycle)?;
        self.within("atomic.sm_cycles", atomic.sm_cycles, 1..=LONGEST_ACCESS)?;
        self.within("atomic.silent_cycles", atomic.silent_cycles, 0..=LONGEST_ACCESS)?;
        self.not_too_large("atomic.silent_queue", atomic.silent_queue)?;
        self.power_of_two("atomic.request_bytes", atomic.request_bytes)?;
        let (bytes, line) = (atomic.request_bytes, self.l2.cache.line_bytes);
        let in_line = format_args!("it must be from {SECTOR} to {line}, a line (l2.cache.line_bytes)");
        self.require((SECTOR..=line).contains(&bytes), "atomic.request_bytes", bytes, in_line)?;
        self.power_of_two("atomic.pass_bytes", atomic.pass_bytes)?;
        let (bytes, line) = (atomic.pass_bytes, self.l2.cache.line_bytes);
        let in_line = format_args!("it must be from 4 to {line}, a line (l2.cache.line_bytes)");
        self.require((4..=line).contains(&bytes), "atomic.pass_bytes", bytes, in_line)?;
        let (pass, word) = (atomic.pass_cycles, atomic.word_cycles);
        let some = "it must be from 1/256 to 1024";
        let request = atomic.request_cycles;
        self.require((1.0 / 256.0..=1024.0).contains(&request), "atomic.request_cycles", request, some)?;
        self.require((1.0 / 256.0..=1024.0).contains(&pass), "atomic.pass_cycles", pass, some)?;
        let longer = format_args!("it must be from {pass} (atomic.pass_cycles) to 1024");
        self.require((pass..=1024.0).contains(&word), "atomic.word_cycles", word, longer)?;
        if let Some(add) = atomic.add_cycles {
            self.require((1.0 / 256.0..=1024.0).contains(&add), "atomic.add_cycles", add, some)?;
        }
        let passes = atomic.cas_passes;
        self.require((1..=8).contains(&passes), "atomic.cas_passes", passes, "it must be from 1 to 8")
    }

    fn check_matrix(&self) -> Checked {
        let Some(matrix) = &self.units.matrix else { return Ok(()) };
        self.within("units.matrix.latency_cycles", matrix.latency_cycles, 1..=LONGEST_OPERATION)?;
        self.within("units.matrix.halves_per_cycle", matrix.halves_per_cycle, 2..=MOST)?;
        let rate = matrix.group_halves_per_cycle;
        self.within("units.matrix.group_halves_per_cycle", rate, 2..=MOST)?;
        self.within("units.matrix.doubles_per_cycle", matrix.doubles_per_cycle, 1..=MOST)
    }

    fn check_copy_engine(&self) -> Checked {
        let Some(engine) = &self.copy_engine else { return Ok(()) };
        self.within("copy_engine.latency_cycles", engine.latency_cycles, 1..=LONGEST_OPERATION)?;
        self.count("copy_engine.bytes_per_cycle", engine.bytes_per_cycle)
    }

    fn check_texture(&self) -> Checked {
        let Some(texture) = &self.texture else { return Ok(()) };
        self.within("texture.hit_latency_cycles", texture.hit_latency_cycles, 1..=LONGEST_OPERATION)?;
        self.within("texture.filter_cycles", texture.filter_cycles, 0..=LONGEST_OPERATION)?;
        self.within("texture.lanes_per_cycle", texture.lanes_per_cycle, 1..=self.sm.warp_lanes)
    }

    fn check_cluster(&self) -> Checked {
        let Some(cluster) = &self.cluster else { return Ok(()) };
        self.within("cluster.max_ctas", cluster.max_ctas, 1..=MAX_CLUSTER_CTAS)?;
        self.not_too_large("cluster.gpc_sms", cluster.gpc_sms)?;
        self.count("cluster.bytes_per_cycle", cluster.bytes_per_cycle)?;
        self.not_too_large("cluster.barrier_interval_cycles", cluster.barrier_interval_cycles)?;
        self.count("cluster.latency_cycles", cluster.latency_cycles)?;
        self.count("cluster.barrier_latency_cycles", cluster.barrier_latency_cycles)
    }

    fn check_dram(&self) -> Checked {
        let dram = &self.dram;
        self.count("dram.latency_cycles", dram.latency_cycles)?;
        for (key, value) in [
            ("dram.bus_bytes", dram.bus_bytes),
            ("dram.burst", dram.burst),
            ("dram.transfers_per_clock", dram.transfers_per_clock),
        ] {
            self.count(key, value)?;
        }
        self.within("dram.queue_requests", dram.queue_requests, 1..=MOST_QUEUED)?;
        self.within("dram.banks", dram.banks, 1..=MOST_BANKS)?;
        self.within("dram.bank_groups", dram.bank_groups, 1..=MOST_BANK_GROUPS)?;
        for (key, value) in [
            ("dram.bus_bytes", dram.bus_bytes),
            ("dram.burst", dram.burst),
            ("dram.banks", dram.banks),
            ("dram.bank_groups", dram.bank_groups),
            ("dram.row_bytes", dram.row_bytes),
        ] {
            self.power_of_two(key, value)?;
        }
        let line = self.l2.cache.line_bytes;
        let burst_bytes = u64::from(dram.bus_bytes) * u64::from(dram.burst);
        self.require(
            burst_bytes <= u64::from(line),
            "dram.burst",
            dram.burst,
            format_args!(
                "with dram.bus_bytes it makes {burst_bytes} bytes, more than a line of the L2 ({line})"
            ),
        )?;
        self.require(
            dram.burst.is_multiple_of(dram.transfers_per_clock),
            "dram.transfers_per_clock",
            dram.transfers_per_clock,
            format_args!(
                "a burst of {} transfers (dram.burst) must take a whole number of clocks",
                dram.burst
            ),
        )?;
        let row = format_args!("a line of the L2 ({line} bytes) must lie in one row");
        self.require(dram.row_bytes >= line, "dram.row_bytes", dram.row_bytes, row)?;
        let groups = "there are not so many banks (dram.banks)";
        self.require(dram.bank_groups <= dram.banks, "dram.bank_groups", dram.bank_groups, groups)?;
        let clocks = dram.burst / dram.transfers_per_clock;
        let bus =
            format_args!("a burst keeps the bus for {clocks} clocks (dram.burst, dram.transfers_per_clock)");
        self.require(dram.ccd >= clocks, "dram.ccd", dram.ccd, bus)?;
        let within = "it must be at least dram.ccd";
        self.require(dram.ccdl >= dram.ccd, "dram.ccdl", dram.ccdl, within)?;
        for (key, clocks) in [
            ("dram.ccd", dram.ccd),
            ("dram.ccdl", dram.ccdl),
            ("dram.rrd", dram.rrd),
            ("dram.rcd", dram.rcd),
            ("dram.ras", dram.ras),
            ("dram.rp", dram.rp),
            ("dram.cl", dram.cl),
            ("dram.wl", dram.wl),
            ("dram.cdlr", dram.cdlr),
            ("dram.wr", dram.wr),
            ("dram.rtpl", dram.rtpl),
            ("dram.rc", dram.rc),
        ] {
            self.not_too_large(key, clocks)?;
        }
        self.require(
            dram.ras >= dram.rcd,
            "dram.ras",
            dram.ras,
            "a row must stay open until it can be read (dram.rcd)",
        )?;
        self.require(
            dram.rc >= dram.ras + dram.rp,
            "dram.rc",
            dram.rc,
            "it must be at least dram.ras and dram.rp together",
        )
    }

    /// The control processor and wavefront yield.
    fn check_aggregator(&self) -> Checked {
        if let Some(yielded) = &self.wavefront_yield {
            let stack = self.sm.divergence == Divergence::SimtStack;
            let value = yielded.context_bytes;
            let rule = "only a SIMT stack can be saved (sm.divergence)";
            self.require(stack, "yield.context_bytes", value, rule)?;
            self.not_too_large("yield.context_bytes", value)?;
            self.count("yield.restart_records", yielded.restart_records)?;
        }
        let Some(aggregator) = &self.aggregator else { return Ok(()) };
        let known = aggregator.cores.keys().cloned().collect::<Vec<_>>().join(", ");
        self.require(
            aggregator.cores.contains_key(&aggregator.core),
            "aggregator.core",
            format_args!("`{}`", aggregator.core),
            format_args!("there is no such core in aggregator.cores; there are {known}"),
        )?;
        self.count("aggregator.clock_mhz", aggregator.clock_mhz)?;
        self.check_cache("aggregator.cache", &aggregator.cache)?;
        let line = self.l2.cache.line_bytes;
        self.require(
            aggregator.cache.line_bytes == line,
            "aggregator.cache.line_bytes",
            aggregator.cache.line_bytes,
            format_args!("it must be as l2.cache.line_bytes, which is {line}"),
        )?;
        self.count("aggregator.hit_latency_clocks", aggregator.hit_latency_clocks)?;
        self.count("aggregator.mshrs", aggregator.mshrs)?;
        self.count("aggregator.command_instructions", aggregator.command_instructions)?;
        self.not_too_large("aggregator.start_looks", aggregator.start_looks)?;
        self.not_too_large("aggregator.packet_cycles", aggregator.packet_cycles)?;
        let latency = aggregator.command_latency_cycles;
        self.not_too_large("aggregator.command_latency_cycles", latency)?;
        self.require(
            latency >= self.interconnect.latency_cycles,
            "aggregator.command_latency_cycles",
            latency,
            "a window is longer (interconnect.latency_cycles)",
        )?;
        let packets = self.interconnect.queue_packets;
        self.require(
            packets >= 2,
            "interconnect.queue_packets",
            packets,
            "the aggregator sends two at once",
        )?;
        for (name, core) in &aggregator.cores {
            for (key, value) in [
                ("width", core.width),
                ("instruction_clocks", core.instruction_clocks),
                ("rob", core.rob),
                ("issue_queue", core.issue_queue),
                ("registers", core.registers),
                ("loads", core.loads),
                ("stores", core.stores),
            ] {
                self.count(&format!("aggregator.cores.{name}.{key}"), value)?;
            }
        }
        Ok(())
    }

    fn check_energy(&self) -> Checked {
        for (key, value) in self.energy.named() {
            let rule = format_args!("an energy or a power is a number from 0 to {MOST_ENERGY}");
            self.require((0.0..=MOST_ENERGY).contains(&value), key, value, rule)?;
        }
        Ok(())
    }

    fn check_hang(&self) -> Checked {
        let hang = &self.hang;
        self.positive("hang.watch_cycles", hang.watch_cycles)?;
        self.require(
            hang.suspect_cycles == 0 || hang.suspect_cycles >= hang.watch_cycles,
            "hang.suspect_cycles",
            hang.suspect_cycles,
            "it must be 0 (never) or at least hang.watch_cycles",
        )
    }
}
