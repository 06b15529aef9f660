//! The sections of a chip file for the aggregator (its control processor) and for wavefront yield.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::chip::timing::CacheSpec;

/// The aggregator: a core beside the SMs that runs firmware (`docs/aggregator.md`). `_clocks` are its own clocks.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct AggregatorSpec {
    /// The kind of core: a key of `cores`.
    pub core: String,
    pub clock_mhz: u32,
    /// The data cache. Used only if the L1s are coherent; otherwise every access goes to the L2.
    pub cache: CacheSpec,
    /// Latency of a load that hits in the data cache.
    pub hit_latency_clocks: u32,
    /// Lines that can be in flight.
    pub mshrs: u32,
    /// Instructions that firmware spends on a command to the dispatcher: start a task, or restart a wavefront.
    pub command_instructions: u32,
    /// Looks at its own data, each a load and seven instructions, that firmware takes to prepare a start: finding the
    /// kernel's descriptor, checking resources, filling the packet. Charged by the schedulers of `warploom-flow`.
    pub start_looks: u32,
    /// Core cycles that the dispatcher takes to process the packet of a start, before the first CTA: reading it and the
    /// kernel's arguments, and preparing the launch. One packet at a time.
    pub packet_cycles: u32,
    /// From such a command to the SM, in core cycles.
    pub command_latency_cycles: u32,
    /// The kinds of core to choose from.
    pub cores: BTreeMap<String, CoreSpec>,
}

impl AggregatorSpec {
    /// The core that `core` names.
    pub fn chosen(&self) -> &CoreSpec {
        &self.cores[&self.core]
    }
}

/// A kind of core.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct CoreSpec {
    /// Instructions started per clock.
    pub width: u32,
    /// Clocks from one instruction to the next; 1 in a pipelined core.
    pub instruction_clocks: u32,
    /// Entries of the reorder buffer: from the oldest unfinished instruction to the youngest started one. With 1, each
    /// instruction waits for the one before it, stores included.
    pub rob: u32,
    /// Instructions that can wait for their operands.
    pub issue_queue: u32,
    /// Physical registers.
    pub registers: u32,
    /// Physical registers that hold the program's own state, so that unfinished results cannot use them.
    pub architectural_registers: u32,
    /// Unfinished loads.
    pub loads: u32,
    /// Unfinished stores.
    pub stores: u32,
}

impl CoreSpec {
    /// Instructions that can be in flight.
    pub fn window(&self) -> u32 {
        self.rob.min(self.registers.saturating_sub(self.architectural_registers)).max(1)
    }
}

/// The context of a wavefront that yields, saved in memory.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct YieldSpec {
    /// Program counters, masks and identifiers: everything but the registers. Grows with the SIMT stack if it must.
    pub context_bytes: u32,
    /// Restart records that the channel in memory holds which firmware takes them from.
    pub restart_records: u32,
}
