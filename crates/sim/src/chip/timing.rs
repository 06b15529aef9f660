//! The part of a chip's configuration that gives it a clock: pipelines, caches, network, memory.
//!
//! Times are in core cycles unless a name says otherwise.

use serde::{Deserialize, Serialize};

use crate::chip::spinning::{BowsSpec, DdosSpec};

/// Names of the machine's own warp scheduling policies.
pub const POLICY_NAMES: [&str; 3] = ["lrr", "gto", "cawa"];

/// Bytes that caches fetch and the network carries at once.
pub const SECTOR_BYTES: u32 = 32;

/// Frequencies. The L2 runs at the core's clock.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct ClockSpec {
    /// SMs and L2: one machine cycle.
    pub core_mhz: u32,
    /// The interconnect: flits move at this rate.
    pub interconnect_mhz: u32,
    /// The memory's command clock.
    pub dram_mhz: u32,
}

/// Instruction supply of an SM.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct FetchSpec {
    /// Decoded instructions a warp can hold.
    pub buffer_entries: u32,
    /// Warps that fetch in a cycle.
    pub warps_per_cycle: u32,
    /// Instructions of one fetch.
    pub width: u32,
    /// From the fetch to an instruction that can issue, on a hit.
    pub latency_cycles: u32,
    /// Bytes of an instruction, for the cache.
    pub instruction_bytes: u32,
    /// The instruction cache.
    pub cache: CacheSpec,
}

/// The shape of a cache.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct CacheSpec {
    /// Sets.
    pub sets: u32,
    /// Lines of a set.
    pub ways: u32,
    /// Bytes of a line.
    pub line_bytes: u32,
}

impl CacheSpec {
    /// All its bytes.
    pub fn bytes(&self) -> u64 {
        self.sets as u64 * self.ways as u64 * self.line_bytes as u64
    }
}

/// Instruction issue of an SM.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct IssueSpec {
    /// Warp schedulers; warp slot `i` belongs to scheduler `i % schedulers`.
    pub schedulers: u32,
    /// Instructions that a scheduler issues from the warp it picked, at most, in a cycle.
    pub width: u32,
    /// The policy, if the command names none.
    pub policy: String,
    /// Greedy-then-oldest.
    pub gto: GtoSpec,
    /// Criticality-aware.
    pub cawa: CawaSpec,
    /// Back-off of spinning warps, around any policy.
    pub bows: BowsSpec,
    /// Detection of spinning warps.
    pub ddos: DdosSpec,
}

/// Parameters of greedy-then-oldest scheduling.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct GtoSpec {
    /// After so many cycles a scheduler's oldest warp becomes its youngest; 0 is never.
    pub rotation_cycles: u64,
}

/// Parameters of criticality-aware scheduling.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct CawaSpec {
    /// Whether remaining instructions × CPI count.
    pub instruction_term: bool,
    /// Whether stall cycles count.
    pub stall_term: bool,
    /// Criticality is computed anew for a choice if it is so many cycles old; 0 or 1 is always.
    pub update_cycles: u64,
    /// A scheduler stays with a warp until it stalls, then chooses.
    pub greedy: bool,
}

/// Register banks and operand collectors.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct OperandSpec {
    /// Register banks; each gives one warp-wide register a cycle.
    pub banks: u32,
    /// Collectors of instructions for the SP units.
    pub sp_collectors: u32,
    /// Collectors for the special-function and double units.
    pub sfu_collectors: u32,
    /// Collectors for the load/store unit.
    pub memory_collectors: u32,
    /// Results written to registers in a cycle.
    pub writeback_ports: u32,
}

/// Execution units and what they take.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct UnitSpec {
    /// Warp slot `i` has only unit `i` modulo their number of each kind, as a wavefront has its SIMD; otherwise any that is free.
    #[serde(default)]
    pub owned: bool,
    /// Units for integer and single precision.
    pub sp: u32,
    /// Units for transcendental functions and divisions.
    pub sfu: u32,
    /// Units for double precision; 0: the special-function units do it.
    pub dp: u32,
    /// Times by operation.
    pub int: OperationTimes,
    /// Single precision (and half).
    pub f32: OperationTimes,
    /// Double precision.
    pub f64: OperationTimes,
    /// Approximations of reciprocal, root, exponential, logarithm, sine.
    pub special: [u32; 2],
    /// Votes, shuffles and other exchanges between lanes.
    pub exchange: [u32; 2],
    /// From a branch to the fetch of its target.
    pub branch_latency_cycles: u32,
    /// From the last arrival at a barrier to the release of its warps.
    pub barrier_latency_cycles: u32,
}

/// Latency and initiation interval of each kind of operation, in cycles.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct OperationTimes {
    pub add: [u32; 2],
    pub max: [u32; 2],
    pub mul: [u32; 2],
    pub mad: [u32; 2],
    pub div: [u32; 2],
}

/// Shared memory's timing.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct SharedSpec {
    /// From the access to the value.
    pub latency_cycles: u32,
    /// Banks, each one word wide.
    pub banks: u32,
    /// Cycles an atomic adds for every further lane on the same word. With lock bits, only for atomics through generic
    /// addresses: the others are loops of instructions then.
    pub atomic_cycles: u32,
}

/// The lock unit beside shared memory.
#[derive(Clone, Debug, Default, Deserialize, Serialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct LockSpec {
    /// Lock bits of an SM, a power of two; 0: it has none.
    #[serde(default)]
    pub bits: u32,
}

/// What an L1 data cache does with global memory.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum L1Policy {
    /// Loads are cached; stores go through and evict the line. Not coherent with other SMs.
    WriteEvict,
    /// Global accesses skip the cache.
    Bypass,
}

/// How L1s hear of what others write.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Coherence {
    /// Not at all.
    #[default]
    None,
    /// By a directory beside the L2: they own what they write, and keep it until somebody else wants it.
    Moesi,
}

/// The L1 data cache.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct L1Spec {
    /// Its shape.
    pub cache: CacheSpec,
    /// What it does with global memory. Local memory is cached and written back.
    pub global: L1Policy,
    /// How it hears of what others write.
    #[serde(default)]
    pub coherence: Coherence,
    /// From the access to the value.
    pub hit_latency_cycles: u32,
    /// Lines that can be on their way.
    pub mshrs: u32,
    /// Accesses that can wait for one such line.
    pub mshr_merges: u32,
    /// Accesses that skip the cache are made of pieces of so many bytes.
    pub bypass_bytes: u32,
}

/// The constant cache, which also serves kernel parameters.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct ConstantSpec {
    /// Its shape.
    pub cache: CacheSpec,
    /// From the access to the value.
    pub hit_latency_cycles: u32,
}

/// The network between SMs and L2 slices: a crossbar for requests, another for replies.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct InterconnectSpec {
    /// One way, for the first flit of a packet without contention. Also the length of the machine's windows.
    pub latency_cycles: u32,
    /// Bytes that a port moves in an interconnect cycle.
    pub flit_bytes: u32,
    /// Bytes of a packet besides its data.
    pub header_bytes: u32,
    /// Packets that wait at a sender.
    pub queue_packets: u32,
}

/// The L2 cache and its memory partitions.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct L2Spec {
    /// Memory partitions, each with its own DRAM channel.
    pub partitions: u32,
    /// Slices of a partition, each with its own port of the network.
    pub slices_per_partition: u32,
    /// Addresses go to the next partition after so many bytes.
    pub interleave_bytes: u32,
    /// The shape of one slice.
    pub cache: CacheSpec,
    /// From the network to the cache: the raster unit's pipeline in front of it.
    pub latency_cycles: u32,
    /// Bytes that a slice reads or writes in a cycle.
    pub port_bytes: u32,
    /// Lines that can be on their way from memory, a slice.
    pub mshrs: u32,
    /// Accesses that can wait for one such line.
    pub mshr_merges: u32,
    /// Requests that can wait in front of a slice.
    pub queue_requests: u32,
    /// A store that misses fetches its line from memory first (else only what it does not cover whole).
    pub fetch_on_write: bool,
    /// Lanes of an atomic on different words that a slice handles in a cycle; lanes on the same word take one each.
    pub atomic_lanes_per_cycle: u32,
}

/// A DRAM channel. Its timing is in command clocks, with the names that data sheets use.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct DramSpec {
    /// From the L2 to the controller's queue, in core cycles.
    pub latency_cycles: u32,
    /// Requests the controller chooses from (first ready, first come).
    pub queue_requests: u32,
    /// Bytes of the data bus.
    pub bus_bytes: u32,
    /// Transfers of a burst.
    pub burst: u32,
    /// Transfers in a command clock.
    pub transfers_per_clock: u32,
    /// Banks.
    pub banks: u32,
    /// Groups of banks.
    pub bank_groups: u32,
    /// Bytes of a row.
    pub row_bytes: u32,
    /// Column command to column command.
    pub ccd: u32,
    /// The same within a bank group.
    pub ccdl: u32,
    /// Activate to activate, different banks.
    pub rrd: u32,
    /// Activate to column command.
    pub rcd: u32,
    /// Activate to precharge.
    pub ras: u32,
    /// Precharge to activate.
    pub rp: u32,
    /// Activate to activate, same bank.
    pub rc: u32,
    /// Read to its first data.
    pub cl: u32,
    /// Write to its first data.
    pub wl: u32,
    /// End of write data to a read.
    pub cdlr: u32,
    /// End of write data to precharge.
    pub wr: u32,
    /// Read to precharge.
    pub rtpl: u32,
}

/// When a launch that changes nothing any more is looked at.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct HangSpec {
    /// After so many cycles in which no value changed, the machine looks for a proof that none ever will.
    pub watch_cycles: u64,
    /// After so many, it ends the launch on suspicion, if all warps wait or poll; 0 is never.
    pub suspect_cycles: u64,
}
