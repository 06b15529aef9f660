//! The report of a launch: everything that it did, as numbers. [`Report`] serializes to the JSON that the
//! command prints.

use std::collections::BTreeMap;
use std::ops::AddAssign;
use std::sync::Arc;

use serde::{Serialize, Serializer};
use warploom_sim::Occupancy;
use warploom_sim::profile::Profile;

use crate::estimate::Estimate;

/// Counters of a unit by name.
pub type Counters = BTreeMap<&'static str, u64>;

/// Which model executed a launch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Model {
    #[default]
    Timing,
    /// Values only; see [`SimModel::Functional`](crate::SimModel::Functional).
    Functional,
    /// Samples of the timed model, the rest estimated; see [`SimModel::Fast`](crate::SimModel::Fast).
    Fast,
    /// A real GPU.
    Hardware,
}

impl Model {
    /// The name on the command line and in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Model::Timing => "timing",
            Model::Functional => "functional",
            Model::Fast => "fast",
            Model::Hardware => "hardware",
        }
    }

    /// Whether its cycles are those of a simulated clock, if only estimated.
    pub const fn is_timed(self) -> bool {
        matches!(self, Model::Timing | Model::Fast)
    }
}

/// What a launch did. The JSON form has the same keys.
///
/// `None` (JSON `null`) means that the model does not know. The functional model has no timing, and a real GPU
/// reports little more than its time.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Report {
    pub kernel: String,
    pub chip: String,
    pub model: Model,
    /// Warp scheduling policy. Timed model only.
    pub sched: Option<String>,
    /// Whether BOWS was on. Timed model only.
    pub bows: Option<bool>,
    pub grid: [u32; 3],
    pub block: [u32; 3],
    /// 32-bit registers per thread.
    pub registers: u32,
    /// Shared memory per CTA, static and dynamic.
    pub shared_bytes: u32,
    /// Local memory per thread: variables and stack, without recursion.
    pub local_bytes: u32,
    pub occupancy: Option<Occupancy>,
    /// Warps that fit on an SM, as a share of its warp slots.
    pub theoretical_occupancy: Option<f64>,
    /// Warps that were resident on an SM, on average over `cycles` and over the SMs that had any, as a share of its
    /// warp slots. Timed model only.
    pub achieved_occupancy: Option<f64>,
    /// Cycles from start to end. The functional model has no clock and counts one cycle per warp instruction.
    /// On a real GPU this is `gpu_s` at the peak clock.
    pub cycles: u64,
    pub ctas: u64,
    pub warps: u64,
    /// Instructions executed by warps.
    pub warp_insts: u64,
    /// Warp instructions, each counted once per active lane, whether its guard was true or not.
    pub thread_insts: u64,
    /// Warp instructions per cycle. Timed model only.
    pub ipc: Option<f64>,
    /// Active lanes per warp instruction, on average, as a share of the warp's lanes.
    pub simd_efficiency: f64,
    /// Active lanes per warp instruction, on average.
    pub active_threads_per_warp: f64,
    /// Seconds between the events around the kernel; of several launches, the median. Real GPU only.
    pub gpu_s: Option<f64>,
    /// The least of several launches. Real GPU only.
    pub gpu_least_s: Option<f64>,
    /// Seconds on the host.
    pub wall_s: f64,
    /// Warp instructions per second on the host.
    pub warp_insts_per_s: f64,
    /// Timed model: `cycles` in seconds at the chip's clock. Real GPU: `gpu_s` without the time that an empty kernel
    /// takes.
    pub kernel_s: Option<f64>,
    /// Nanoseconds that are not the kernel's. Timed model: from the host's call to the first CTA, not counted in
    /// `cycles`. Real GPU: between the events around an empty kernel.
    pub launch_overhead_ns: Option<u64>,
    /// Cycles that warps spent resident on an SM, summed over all warps. Equals the sum of `stalls`. Timed model only.
    pub warp_cycles: Option<u64>,
    /// How warps spent their cycles: `issued`, or the reason for the stall. Timed model only.
    pub stalls: Option<Counters>,
    /// Warp instructions by class. Timed model only.
    pub classes: Option<Counters>,
    /// Lock and wait operations. Timed model only.
    pub locks: Option<Locks>,
    /// Spin-inducing branches found. Timed model only.
    pub sib: Option<SpinBranches>,
    /// Warps that backed off. Timed model with BOWS only.
    pub back_off: Option<BackOff>,
    /// How well spin-inducing branches were detected. Timed model with BOWS and DDOS only.
    pub ddos: Option<Detection>,
    /// All L1 caches. Timed model only.
    pub l1: Option<Counters>,
    /// All L2 slices. Timed model only.
    pub l2: Option<Counters>,
    /// All DRAM channels. Timed model only.
    pub dram: Option<Counters>,
    /// Bytes moved by DRAM as a share of its peak over `cycles`. Timed model only.
    pub dram_utilisation: Option<f64>,
    /// The network between SMs and L2. Timed model only.
    pub interconnect: Option<Counters>,
    /// The directory, on chips with coherent L1s.
    pub coherence: Option<Counters>,
    /// The control processor, if it ran firmware.
    pub aggregator: Option<Counters>,
    /// By SM; those that had nothing to do share one. Timed model only.
    #[serde(serialize_with = "each_sm")]
    pub sms: Option<Vec<Arc<SmReport>>>,
    /// Energy in nanojoules: `total`, which is `dynamic` (per event) plus `static` (per time), and the share of
    /// each component. Timed model only.
    pub energy_nj: Option<BTreeMap<&'static str, f64>>,
    /// Of a kernel that ran in a plan ([`Device::run_plan`](crate::Device::run_plan)): how many others ran at the same
    /// time. What L1s, L2, DRAM and network did, locks, and back-offs are then counted for all of them, from this
    /// kernel's start to its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub beside: Option<u64>,
    /// Which part was timed, and how far off the cycles may be. Fast model only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub estimate: Option<Estimate>,
    /// What the kernel printed with `printf`.
    pub output: String,
    /// Reads of memory that was never written, one entry per instruction, if the device checks for them.
    pub uninitialised: Vec<UninitialisedRead>,
    /// Accesses that race, one entry per pair of instructions, if the device checks for them.
    pub races: Vec<Race>,
    /// Suspicious use of lock bits: taken too late, or never released.
    pub lock_warnings: Vec<LockWarning>,
    /// Loads outside of all allocations that read zeros, one entry per instruction, if the device lets them pass
    /// ([`SimOptions::outside_loads`](crate::SimOptions::outside_loads)).
    pub outside_loads: Vec<OutsideLoad>,
    /// Where the time went, by line, lock and barrier (`docs/profile.md`), if the device profiles
    /// ([`Timing::profile`](crate::Timing::profile)).
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "inner")]
    pub profile: Option<Arc<Profile>>,
}

/// Serialises what an `Arc` holds.
fn inner<S: serde::Serializer>(shared: &Option<Arc<Profile>>, serializer: S) -> Result<S::Ok, S::Error> {
    shared.as_deref().serialize(serializer)
}

/// The share of an SM's warp slots that CTAs of a launch can fill.
pub(crate) fn theoretical_occupancy(occupancy: &Occupancy) -> f64 {
    let warps = occupancy.ctas_per_sm * occupancy.warps_per_cta;
    f64::from(warps) / f64::from(occupancy.max_warps_per_sm.max(1))
}

fn each_sm<S: Serializer>(sms: &Option<Vec<Arc<SmReport>>>, serializer: S) -> Result<S::Ok, S::Error> {
    let sms: Option<Vec<&SmReport>> = sms.as_ref().map(|sms| sms.iter().map(|sm| &**sm).collect());
    sms.serialize(serializer)
}

/// Suspicious use of lock bits in a launch that ended all the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LockWarning {
    /// The first occurrence, in words.
    pub message: String,
    /// How many lanes or lock bits are affected.
    pub count: u64,
}

/// One SM's part of a launch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SmReport {
    pub ctas: u64,
    pub warp_insts: u64,
    /// Warp instructions, each counted once per active lane.
    pub thread_insts: u64,
    /// Equals the sum of `stalls`.
    pub warp_cycles: u64,
    /// How its warps spent their cycles.
    pub stalls: Counters,
    /// Warp instructions by class.
    pub classes: Counters,
    /// L1, load/store unit and shared memory.
    pub l1: Counters,
    /// Cycles without a warp, in a run of firmware.
    pub stalled_on_aggregator: u64,
}

impl SmReport {
    /// Whether the SM had nothing to do, so that all its counts are 0.
    pub fn is_idle(&self) -> bool {
        self.ctas == 0 && self.warp_cycles == 0 && self.stalled_on_aggregator == 0
    }
}

impl AddAssign<&SmReport> for SmReport {
    /// Adds the counts of the same SM in another launch.
    fn add_assign(&mut self, other: &SmReport) {
        self.ctas += other.ctas;
        self.warp_insts += other.warp_insts;
        self.thread_insts += other.thread_insts;
        self.warp_cycles += other.warp_cycles;
        self.stalled_on_aggregator += other.stalled_on_aggregator;
        let counters = [
            (&mut self.stalls, &other.stalls),
            (&mut self.classes, &other.classes),
            (&mut self.l1, &other.l1),
        ];
        for (sums, more) in counters {
            for (name, count) in more {
                *sums.entry(name).or_default() += count;
            }
        }
    }
}

/// Lock and wait operations of a launch, counted per thread.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Locks {
    /// Attempts that succeeded.
    pub acquired: u64,
    /// Attempts that failed because a thread of the same warp held the lock.
    pub failed_intra: u64,
    /// Attempts that failed because a thread of another warp held the lock.
    pub failed_inter: u64,
    /// Waits that found their condition true.
    pub wait_ok: u64,
    /// Waits that found their condition false.
    pub wait_fail: u64,
    /// Failed attempts that were queued, on a chip with blocking locks (`lock_queue.mode`).
    #[serde(skip_serializing_if = "is_zero")]
    pub queued: u64,
    /// Queued attempts that got their lock when it was released.
    #[serde(skip_serializing_if = "is_zero")]
    pub granted: u64,
    /// Failed attempts that found no room in a queue.
    #[serde(skip_serializing_if = "is_zero")]
    pub not_queued: u64,
    /// Lock bits taken by `wl.ldslk`, each counted once, on the SM that used the most.
    pub bits_explicit: u64,
    /// Lock bits taken by atomics on shared memory, counted likewise.
    pub bits_implicit: u64,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Spin-inducing branches that the hardware found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SpinBranches {
    pub detected: u64,
    pub confirmed: u64,
}

/// Warps that backed off after an iteration of a spin loop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct BackOff {
    pub count: u64,
    /// Cycles from a spin-inducing branch to the warp's next instruction, summed over all warps.
    pub warp_cycles: u64,
    /// The greatest delay limit in force on any SM.
    pub longest_limit_cycles: u64,
}

/// How well spin-inducing branches were detected. A branch counts once per SM that took it. The truth is what
/// the kernel declares (`.pragma "warploom.sib"`), or else what the analysis of its loops found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Detection {
    /// True spin detection rate: the share of spin-inducing branches that were confirmed.
    pub tsdr: Option<f64>,
    /// False spin detection rate: the share of other backward branches that were confirmed.
    pub fsdr: Option<f64>,
    /// Detection phase ratio of spin-inducing branches: time until confirmed, over the time from first to last
    /// encounter.
    pub dpr_true: Option<f64>,
    /// Detection phase ratio of other branches.
    pub dpr_false: Option<f64>,
    /// Spin-inducing branches encountered.
    pub true_met: u64,
    pub true_confirmed: u64,
    /// Other backward branches encountered.
    pub false_met: u64,
    pub false_confirmed: u64,
}

/// A read of memory that was never written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct UninitialisedRead {
    /// The first occurrence, in words.
    pub message: String,
    /// How often a warp did so with this instruction.
    pub count: u64,
}

/// A load of bytes that no allocation holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OutsideLoad {
    /// The load by the first thread of the grid that did so, in words.
    pub message: String,
    /// Where the instruction is.
    pub place: String,
    /// How many times a thread did so; an asynchronous copy counts once per byte.
    pub count: u64,
}

/// Two accesses to the same bytes, at least one of them a write, that nothing orders (`docs/races.md`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Race {
    /// All of it in words.
    pub message: String,
    /// The memory: a buffer, a variable, or shared memory.
    pub memory: String,
    /// The first byte that both access, from the start of `memory`.
    pub offset: u64,
    /// How many bytes of one word both access.
    pub bytes: u32,
    /// The two accesses, in the order in which the simulator executed them.
    pub accesses: [RaceAccess; 2],
    /// How often the two instructions raced, counted per lane and word.
    pub count: u64,
}

/// One of the two accesses of a [`Race`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RaceAccess {
    /// `read`, `write`, `volatile read`, `volatile write` or `atomic`.
    pub kind: &'static str,
    /// The CTA's coordinates in the grid.
    pub cta: [u32; 3],
    /// The thread's coordinates in its CTA.
    pub thread: [u32; 3],
    /// The line of the source, or else of the PTX file or listing: `vecadd.cu:7`.
    pub line: String,
}
