//! The control processor of the chip, and what a wavefront leaves behind when it yields.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::chip::timing::CacheSpec;

/// The aggregator: a core beside the SMs that runs firmware (`docs/aggregator.md`). Times are in its own clocks.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct AggregatorSpec {
    /// Which of `cores` it is.
    pub core: String,
    /// Its clock.
    pub clock_mhz: u32,
    /// Its data cache, which has an effect where L1s are coherent; elsewhere it goes to the L2.
    pub cache: CacheSpec,
    /// From a load to its value, if the data cache has it.
    pub hit_latency_clocks: u32,
    /// Lines that can be on their way.
    pub mshrs: u32,
    /// Instructions that tell the dispatcher about a task, or a wavefront to be restarted.
    pub command_instructions: u32,
    /// From such a command to the SM.
    pub command_latency_cycles: u32,
    /// The kinds of core it can be.
    pub cores: BTreeMap<String, CoreSpec>,
}

impl AggregatorSpec {
    /// The core that it is.
    pub fn chosen(&self) -> &CoreSpec {
        &self.cores[&self.core]
    }
}

/// A kind of core.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct CoreSpec {
    /// Instructions that begin in a clock.
    pub width: u32,
    /// Clocks from one instruction to the next; 1 in a pipeline.
    pub instruction_clocks: u32,
    /// Reorder buffer: instructions between the oldest that is not done and the youngest that has begun. With 1, each
    /// instruction waits for the one before it, stores included.
    pub rob: u32,
    /// Issue queue: instructions that can wait for their operands.
    pub issue_queue: u32,
    /// Physical registers.
    pub registers: u32,
    /// Registers of the program: what of the physical ones results of unfinished instructions cannot have.
    pub architectural_registers: u32,
    /// Loads that can be unfinished.
    pub loads: u32,
    /// Stores that can be.
    pub stores: u32,
}

impl CoreSpec {
    /// Instructions that can be under way.
    pub fn window(&self) -> u32 {
        self.rob.min(self.registers.saturating_sub(self.architectural_registers)).max(1)
    }
}

/// What a wavefront that yields leaves in memory.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct YieldSpec {
    /// Bytes besides its registers: program counters, masks, identifiers. More if its stack needs more.
    pub context_bytes: u32,
}
