//! The sections of a chip file that say how long things take: clocks, pipelines, caches, network, memory.
//!
//! Times are in core cycles unless a name says otherwise.

use serde::{Deserialize, Serialize};

use crate::chip::spinning::{BowsSpec, DdosSpec};

/// Names of the built-in warp scheduling policies.
pub const POLICY_NAMES: [&str; 3] = ["lrr", "gto", "cawa"];

/// A sector: the unit in which caches fetch and memory transfers.
pub const SECTOR_BYTES: u32 = 32;

/// Most requests that a DRAM controller can choose from: their places are numbered by a byte.
pub const MOST_QUEUED: u32 = 256;

/// Most banks of a DRAM channel: a set of them is a word.
pub const MOST_BANKS: u32 = 64;

/// Most bank groups; each has its own kinds of commands.
pub const MOST_BANK_GROUPS: u32 = 16;

/// Most MSHRs of a slice of the L2: they are numbered by two bytes.
pub const MOST_MSHRS: u32 = 65535;

/// Most slices of a memory partition: they are numbered by a byte.
pub const MOST_SLICES: u32 = 256;

/// Clock frequencies. The L2 runs at the core clock.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct ClockSpec {
    /// SMs and L2. One clock of it is one cycle of the machine.
    pub core_mhz: u32,
    /// A port moves one flit per clock.
    pub interconnect_mhz: u32,
    /// The DRAM's command clock.
    pub dram_mhz: u32,
}

/// Instruction fetch of an SM.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct FetchSpec {
    /// Decoded instructions that a warp's buffer holds.
    pub buffer_entries: u32,
    /// Warps that can fetch in one cycle.
    pub warps_per_cycle: u32,
    /// Instructions per fetch.
    pub width: u32,
    /// From a fetch that hits to an instruction that can issue.
    pub latency_cycles: u32,
    /// Lines after one that missed that are fetched with it.
    pub prefetch_lines: u32,
    /// Size of an instruction in the instruction cache.
    pub instruction_bytes: u32,
    /// A kernel finds its code in the instruction caches, as after an earlier launch.
    #[serde(default)]
    pub warm: bool,
    pub cache: CacheSpec,
    /// Several SMs share an instruction cache. Without this, each has its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared: Option<FetchSharing>,
}

/// An instruction cache that several SMs share.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct FetchSharing {
    /// SMs that share a cache: those with numbers from a multiple of this on.
    pub sms: u32,
    /// Fetches that the cache serves in a cycle, from all its SMs together.
    pub fetches_per_cycle: u32,
}

/// The shape of a cache.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct CacheSpec {
    pub sets: u32,
    /// Lines per set.
    pub ways: u32,
    pub line_bytes: u32,
}

impl CacheSpec {
    pub fn lines(&self) -> u64 {
        u64::from(self.sets) * u64::from(self.ways)
    }
}

/// Instruction issue of an SM.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct IssueSpec {
    /// Warp schedulers; warp slot `i` belongs to scheduler `i % schedulers`.
    pub schedulers: u32,
    /// Most instructions that a scheduler issues per cycle, all from the warp it picked.
    pub width: u32,
    /// The policy of launches that name none.
    pub policy: String,
    pub gto: GtoSpec,
    pub cawa: CawaSpec,
    /// Back-off of spinning warps, around any policy.
    pub bows: BowsSpec,
    pub ddos: DdosSpec,
}

/// Parameters of greedy-then-oldest scheduling.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct GtoSpec {
    /// After this many cycles a scheduler's oldest warp becomes its youngest; 0: never.
    pub rotation_cycles: u64,
}

/// Parameters of criticality-aware scheduling.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct CawaSpec {
    /// Whether criticality counts remaining instructions × CPI.
    pub instruction_term: bool,
    /// Whether criticality counts stall cycles.
    pub stall_term: bool,
    pub stalls: Stalls,
    /// A warp's criticality is recomputed when it is this old; 0 or 1: for every choice.
    pub update_cycles: u64,
    /// A scheduler stays with a warp until the warp stalls.
    pub greedy: bool,
}

/// How a stall adds to a warp's criticality.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Stalls {
    /// Every cycle of it counts as one.
    Cycles,
    /// Every cycle of it counts as long as the stall has lasted by then, so long stalls count more; modulo 2^32.
    Ages,
}

/// What lies between PTX and the machine.
#[derive(Clone, Debug, Default, Deserialize, Serialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct CompilerSpec {
    /// PTX is optimised as by the chip's own compiler: copies disappear, products and sums are fused, and loads are
    /// scheduled early. Otherwise it runs as it is written. Listings always do.
    pub optimise: bool,
}

/// Register banks and operand collectors.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct OperandSpec {
    /// Register banks; each reads one warp-wide register per cycle.
    pub banks: u32,
    /// Collectors for the SP units.
    pub sp_collectors: u32,
    /// Collectors for the SFUs and the double-precision units.
    pub sfu_collectors: u32,
    /// Collectors for the load/store unit.
    pub memory_collectors: u32,
    /// Results written to registers per cycle.
    pub writeback_ports: u32,
}

/// Execution units of an SM and their times. A time is a pair: latency and initiation interval, in cycles.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct UnitSpec {
    /// Of each kind, warp slot `i` can use only unit `i` modulo their number, as a wavefront is bound to its SIMD.
    /// Otherwise it uses any that is free.
    #[serde(default)]
    pub owned: bool,
    /// Units for integer and single-precision operations.
    pub sp: u32,
    /// Units for transcendental functions and divisions.
    pub sfu: u32,
    /// Units for double precision; 0: the SFUs do it.
    pub dp: u32,
    pub int: OperationTimes,
    /// Single and half precision.
    pub f32: OperationTimes,
    pub f64: OperationTimes,
    /// Approximate reciprocal, root, exponential, logarithm, sine.
    pub special: [u32; 2],
    /// Votes, shuffles and other communication between lanes.
    pub exchange: [u32; 2],
    /// Votes, if they differ.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vote: Option<[u32; 2]>,
    /// Conversions between integers and single precision on the special-function unit; else they are additions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub convert: Option<[u32; 2]>,
    /// Additions of 64-bit integers; else they are as those of 32 bits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub int_add_wide: Option<[u32; 2]>,
    /// Counting and reversing bits on the special-function unit; else they are additions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count_bits: Option<[u32; 2]>,
    /// The unit that multiplies matrices, if the chip has one. It shares its path with doubles.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub matrix: Option<MatrixSpec>,
    /// Cycles in which the lanes of a memory instruction go from a scheduler into the load/store unit.
    #[serde(default = "one")]
    pub access_interval_cycles: u32,
    /// From a branch to the fetch of its target.
    pub branch_latency_cycles: u32,
    /// From the last arrival at a barrier to the release of its warps.
    pub barrier_latency_cycles: u32,
    /// From one warp's arrival to the next that the SM can take note of.
    #[serde(default)]
    pub barrier_interval_cycles: u32,
    /// A warp arrives at a barrier only when its stores to shared memory are done.
    #[serde(default)]
    pub barrier_after_stores: bool,
    pub fence_waits_for: FenceScope,
    /// What a fence wider than a CTA takes if there is no access to wait for.
    pub fence_cycles: u32,
    /// What it takes after the last access, if it has to wait for one.
    pub fence_after_access_cycles: u32,
    /// What a fence for the CTA alone takes beyond an instruction.
    #[serde(default)]
    pub cta_fence_cycles: u32,
    /// The least that `nanosleep` takes.
    #[serde(default)]
    pub sleep_cycles: u32,
    /// How long a warp yields before a poll of a spin loop: a compiler puts a yield into each iteration of such a loop.
    /// Lanes on other paths of the warp run meanwhile.
    #[serde(default)]
    pub yield_cycles: u32,
    /// `nanosleep` ends at a multiple of its duration, rounded up to a power of two, not after its duration.
    #[serde(default)]
    pub sleep_ticks: bool,
}

/// Whose accesses a fence waits for.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum FenceScope {
    /// Those of its warp.
    Warp,
    /// Those of all warps of its SM.
    Sm,
}

/// Latency and initiation interval of each operation, in cycles.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct OperationTimes {
    pub add: [u32; 2],
    pub max: [u32; 2],
    pub mul: [u32; 2],
    pub mad: [u32; 2],
    pub div: [u32; 2],
}

/// Timing of shared memory.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct SharedSpec {
    pub latency_cycles: u32,
    /// Banks, each one 32-bit word wide.
    pub banks: u32,
    /// Extra cycles of an atomic for each further lane on the same word. On a chip with lock bits only atomics through
    /// generic addresses use this: the others are compiled to loops.
    pub atomic_cycles: u32,
    /// What a compare-and-swap takes longer than a load.
    #[serde(default)]
    pub cas_cycles: u32,
    /// Operations on an mbarrier, if they take longer than a load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mbarrier_latency_cycles: Option<u32>,
}

/// Lock bits beside shared memory.
#[derive(Clone, Debug, Default, Deserialize, Serialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct LockSpec {
    /// Lock bits per SM, a power of two; 0: none.
    #[serde(default)]
    pub bits: u32,
}

/// What an L1 data cache does with accesses to global memory.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum L1Policy {
    /// Loads are cached; stores go through and evict the line. Not coherent with other SMs.
    WriteEvict,
    /// Global accesses skip the cache.
    Bypass,
}

/// Whether the L1s are kept coherent, and how.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Coherence {
    #[default]
    None,
    /// A directory at the L2. An L1 owns the lines it writes until another cache asks for them.
    Moesi,
}

/// The L1 data cache.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct L1Spec {
    pub cache: CacheSpec,
    /// Accesses to global memory. Local memory is always cached and written back.
    pub global: L1Policy,
    #[serde(default)]
    pub coherence: Coherence,
    pub hit_latency_cycles: u32,
    /// Cycles between two lines of a load or store. If accesses of warps take turns, lines of others go between them.
    #[serde(default = "one")]
    pub line_cycles: u32,
    /// Lines that can be in flight.
    pub mshrs: u32,
    /// Accesses that can wait for one line in flight.
    pub mshr_merges: u32,
    /// Accesses that bypass the cache are split into requests of this size.
    pub bypass_bytes: u32,
}

/// Atomics on global memory: how they travel to their slice, and how its atomic unit performs them.
///
/// The unit works in passes. A pass changes words of one block of `pass_bytes` bytes, for one lane per word; lanes on
/// the same word need a pass each. Passes follow each other after `pass_cycles`, those on one word after `word_cycles`.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct AtomicSpec {
    /// Cycles in which an SM sends one request, if a result comes back.
    #[serde(default = "one")]
    pub sm_cycles: u32,
    /// Cycles between atomics of a warp without results. 0: no limit.
    #[serde(default)]
    pub silent_cycles: u32,
    /// Atomics without results that a warp can issue ahead.
    #[serde(default)]
    pub silent_queue: u32,
    /// Lanes of a warp that can share a request if they are on one block of `request_bytes` bytes: a power of two, at
    /// most a warp.
    pub request_lanes: u32,
    /// A power of two, from a sector to a line.
    pub request_bytes: u32,
    pub same_word: SameWord,
    pub carries: Carries,
    /// Cycles per request, in steps of 1/256, however few passes it has.
    pub request_cycles: f64,
    /// Lanes that a unit handles per cycle.
    pub lanes_per_cycle: u32,
    /// A power of two, from a word to a line.
    pub pass_bytes: u32,
    /// Cycles per pass, in steps of 1/256.
    pub pass_cycles: f64,
    /// Cycles from one change of a word to the next, in steps of 1/256: at least those of a pass.
    pub word_cycles: f64,
    /// Cycles per addition, if they are fewer than `request_cycles` and `word_cycles`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub add_cycles: Option<f64>,
    /// Passes for one pass of a compare-and-swap on several words, which has two operands per lane.
    pub cas_passes: u32,
}

/// What a request for an atomic, and its reply, carry.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Carries {
    /// The operands of its lanes, and their results, in whole sectors.
    Operands,
    /// The segment of one, two or four sectors that holds their words, each way.
    Segment,
}

/// How lanes of an atomic on the same word travel.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum SameWord {
    /// In one request.
    Together,
    /// In a request each.
    Apart,
}

/// The constant cache, which also serves kernel parameters.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct ConstantSpec {
    pub cache: CacheSpec,
    pub hit_latency_cycles: u32,
    /// A launch brings its parameters to the constant caches before its CTAs start.
    #[serde(default)]
    pub prefetch: bool,
}

/// The network between SMs and L2 slices: one crossbar for requests, one for replies.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct InterconnectSpec {
    /// One way, for the first flit of a packet, without contention. Also the length of the machine's windows.
    pub latency_cycles: u32,
    /// What a message takes longer from one end of the chip to the other, one way. SMs and slices lie between the ends
    /// in the order of their numbers. A request takes this time for itself and its answer.
    #[serde(default)]
    pub span_cycles: u32,
    /// The same for a message to the other half of the L2; 0: as long.
    #[serde(default)]
    pub far_span_cycles: u32,
    /// Bytes that a port moves per interconnect clock.
    pub flit_bytes: u32,
    /// Bytes of a packet in addition to its data.
    pub header_bytes: u32,
    /// Packets that can wait at a sender.
    pub queue_packets: u32,
    /// Atomics with a result that an SM has on their way to the pipelines of slices, or waiting in front of them; 0:
    /// any number. With a limit, the accesses of an SM that fit its queue take turns, piece by piece. Otherwise they
    /// are sent one after the other.
    #[serde(default)]
    pub atomic_window: u32,
    pub queueing: Queueing,
    /// Interconnect clocks in which a packet holds its two ports before its first flit moves: allocation of a virtual
    /// channel, where the next packet's cannot overlap with the last one's flits.
    pub allocation_cycles: u32,
    /// Present if SMs share their ports into the network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<PortSpec>,
}

/// A unit that multiplies matrices.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct MatrixSpec {
    pub latency_cycles: u32,
    /// Products of 16-bit elements that a unit adds up in a cycle. Of elements of other sizes, as many bits of them.
    pub halves_per_cycle: u32,
    /// The same in products of four warps together (`wgmma`), which reach the unit's full rate.
    pub group_halves_per_cycle: u32,
    /// Products of doubles.
    pub doubles_per_cycle: u32,
}

/// The texture units of an SM. They fetch lines through the L1.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct TextureSpec {
    /// From a fetch to its result, if its texel is in the L1. It takes at least as long as a load that hits.
    pub hit_latency_cycles: u32,
    /// What a linear filter adds.
    pub filter_cycles: u32,
    /// Lanes whose texels are fetched in a cycle, up to four texels each. Eight take twice as long.
    pub lanes_per_cycle: u32,
}

/// Clusters of CTAs, and the network between their SMs.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct ClusterSpec {
    /// CTAs of a cluster, at most; up to 16.
    pub max_ctas: u32,
    /// SMs of a GPC: those with neighbouring numbers. CTAs of a cluster run in one GPC. 0: on any SMs.
    pub gpc_sms: u32,
    /// From an SM to another, one way; in the model at least to the end of the window ([`InterconnectSpec`]).
    pub latency_cycles: u32,
    /// What an SM takes from the others in a cycle, and what it sends them.
    pub bytes_per_cycle: u32,
    /// From the last arrival at the cluster's barrier until those who wait go on.
    pub barrier_latency_cycles: u32,
    /// From one arrival of a warp to the next of the same SM.
    pub barrier_interval_cycles: u32,
}

/// The engine of an SM that makes bulk copies.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct CopyEngineSpec {
    /// From the instruction until the first bytes are asked for.
    pub latency_cycles: u32,
    /// What it asks for or sends in a cycle, at most.
    pub bytes_per_cycle: u32,
}

/// A port into the network that neighbouring SMs share.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct PortSpec {
    /// SMs at a port. CTAs of a grid start on one SM of each port first.
    pub sms: u32,
    /// Cycles that a request takes.
    pub request_cycles: f64,
    /// Further cycles for each sector but one that a load asks for. As a rule those of a request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_sector_cycles: Option<f64>,
    /// Further cycles for each sector that a request carries.
    pub sector_cycles: f64,
}

/// Which packets of a sender can leave.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Queueing {
    /// The first one for each receiver.
    VirtualOutput,
    /// The first one only; if its receiver is busy, those behind it wait as well.
    Fifo,
}

/// The L2 cache, split over the memory partitions.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct L2Spec {
    /// Memory partitions, each with its own DRAM channel.
    pub partitions: u32,
    /// Each slice has its own network port.
    pub slices_per_partition: u32,
    /// Chunks of this size lie in one slice.
    pub interleave_bytes: u32,
    pub placement: Placement,
    /// One slice.
    pub cache: CacheSpec,
    /// From the network to the cache: the raster operations pipeline in front of it.
    pub latency_cycles: u32,
    /// Bytes that a slice reads or writes at a time.
    pub port_bytes: u32,
    /// Cycles that it takes for them: more than one if the L2's clock is slower than that of the SMs.
    #[serde(default = "one_cycle")]
    pub port_cycles: f64,
    /// Cycles that a sector of which only a part is written takes at the port: it is read, changed and written.
    pub partial_write_cycles: u32,
    /// How long after a store its line can be read. The slice does nothing else while a read waits for it.
    pub read_after_write_cycles: u32,
    /// Lines that can be in flight from memory, per slice.
    pub mshrs: u32,
    /// Accesses that can wait for one line in flight.
    pub mshr_merges: u32,
    /// Requests that can wait in front of a slice.
    pub queue_requests: u32,
    /// If it is not 0, the L2 has two halves, each with every other partition and every other SM, and this is what a
    /// message between them takes longer, one way. Each slice has a twin in the other half. A request for a line of the
    /// other half goes through the twin of the line's slice. That one keeps copies for reads, until the line changes.
    pub far_cycles: u32,
    /// A store that misses fetches its whole line first; otherwise only the sectors that it writes in part.
    pub fetch_on_write: bool,
    /// What the host writes goes through the L2 and stays there: buffers, code and parameters.
    #[serde(default)]
    pub host_writes: bool,
}

impl L2Spec {
    /// Lines of all slices.
    pub fn lines(&self) -> u64 {
        let slices = u64::from(self.partitions) * u64::from(self.slices_per_partition);
        slices * self.cache.lines()
    }
}

fn one() -> u32 {
    1
}

fn one_cycle() -> f64 {
    1.0
}

/// Which slice a chunk goes to.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Placement {
    /// Consecutive chunks go to consecutive partitions.
    Interleaved,
    /// A hash of its address decides. Sixteen chunks are a page, which lies in eight slices of one half of the L2.
    Hashed,
}

/// A DRAM channel. Its timing parameters are in command clocks and have the names of the data sheets.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct DramSpec {
    /// From the L2 to the controller's queue, in core cycles.
    pub latency_cycles: u32,
    /// Requests that the controller chooses from (FR-FCFS).
    pub queue_requests: u32,
    /// Width of the data bus.
    pub bus_bytes: u32,
    /// Transfers per burst.
    pub burst: u32,
    /// Data transfers per command clock.
    pub transfers_per_clock: u32,
    pub banks: u32,
    pub bank_groups: u32,
    pub row_bytes: u32,
    /// Column command to column command.
    pub ccd: u32,
    /// Column command to column command, same bank group.
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

/// When a launch that makes no progress is examined.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct HangSpec {
    /// After this many cycles in which no value changed, the machine looks for a proof that none ever will.
    pub watch_cycles: u64,
    /// After this many such cycles the launch is ended on suspicion, if all warps wait or poll; 0: never.
    pub suspect_cycles: u64,
}
