//! What a launch did, as numbers.

use std::collections::BTreeMap;
use std::ops::AddAssign;

use serde::Serialize;
use warploom_sim::Occupancy;

/// Named counts of a unit.
pub type Counters = BTreeMap<&'static str, u64>;

/// How a launch is executed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Model {
    /// Cycle by cycle.
    #[default]
    Timing,
    /// Values only: warps run one after the other as fast as the host can.
    Functional,
    /// No model: a real GPU.
    Hardware,
}

impl Model {
    /// The model's name on the command line and in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Model::Timing => "timing",
            Model::Functional => "functional",
            Model::Hardware => "hardware",
        }
    }
}

/// What a launch did. Its JSON form has the same keys; what the model does not know is `null`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Report {
    /// The kernel.
    pub kernel: String,
    /// The chip it ran on.
    pub chip: String,
    /// The model that ran it.
    pub model: Model,
    /// The warp scheduler, in a timed model.
    pub sched: Option<String>,
    /// Whether BOWS was on, in a timed model.
    pub bows: Option<bool>,
    /// CTAs of the grid.
    pub grid: [u32; 3],
    /// Threads of a CTA.
    pub block: [u32; 3],
    /// 32-bit registers of a thread.
    pub registers: u32,
    /// Shared memory of a CTA, static and dynamic.
    pub shared_bytes: u32,
    /// Local memory of a thread: its variables and stack without recursion.
    pub local_bytes: u32,
    /// What fits on an SM.
    pub occupancy: Option<Occupancy>,
    /// Cycles from start to end. The functional model has no clock: it counts one cycle for each warp instruction. On a
    /// real GPU they follow from `gpu_s` and the peak clock.
    pub cycles: u64,
    /// CTAs that ran.
    pub ctas: u64,
    /// Warps that ran.
    pub warps: u64,
    /// Instructions executed by warps.
    pub warp_insts: u64,
    /// The same, each counted once for every active lane, guarded off or not.
    pub thread_insts: u64,
    /// Warp instructions a cycle, in a timed model.
    pub ipc: Option<f64>,
    /// Active lanes of an instruction, on average, as a share of the warp's lanes.
    pub simd_efficiency: f64,
    /// Seconds between the events around the kernel, on a real GPU.
    pub gpu_s: Option<f64>,
    /// Seconds it took on the host.
    pub wall_s: f64,
    /// Warp instructions a second on the host.
    pub warp_insts_per_s: f64,
    /// Seconds that the cycles take at the chip's clock, in a timed model.
    pub kernel_s: Option<f64>,
    /// Nanoseconds from the host's call to the first CTA, which are not in `cycles`, in a timed model.
    pub launch_overhead_ns: Option<u64>,
    /// Cycles of all warps while they were on an SM, in a timed model. `stalls` makes them up.
    pub warp_cycles: Option<u64>,
    /// What warps did in each of those cycles, in a timed model: `issued`, or why not.
    pub stalls: Option<Counters>,
    /// Warp instructions by class, in a timed model.
    pub classes: Option<Counters>,
    /// What happened at locks, in a timed model.
    pub locks: Option<Locks>,
    /// Spin-inducing branches, in a timed model.
    pub sib: Option<SpinBranches>,
    /// Warps that backed off, in a timed model with BOWS.
    pub back_off: Option<BackOff>,
    /// How well spin-inducing branches were detected, in a timed model with BOWS that looks for them itself.
    pub ddos: Option<Detection>,
    /// The L1 caches, in a timed model.
    pub l1: Option<Counters>,
    /// The L2 cache, in a timed model.
    pub l2: Option<Counters>,
    /// Device memory, in a timed model.
    pub dram: Option<Counters>,
    /// Bytes moved by DRAM as a share of what it could have moved in these cycles, in a timed model.
    pub dram_utilisation: Option<f64>,
    /// The network between SMs and L2, in a timed model.
    pub interconnect: Option<Counters>,
    /// The directory that keeps L1s coherent, where there is one.
    pub coherence: Option<Counters>,
    /// The control processor, where it ran firmware.
    pub aggregator: Option<Counters>,
    /// Each SM, in a timed model.
    pub sms: Option<Vec<SmReport>>,
    /// Energy in nanojoules, in a timed model: `total`, made up of `dynamic` (what events took) and `static` (what time took),
    /// and of what each component took.
    pub energy_nj: Option<BTreeMap<&'static str, f64>>,
    /// What the kernel printed.
    pub output: String,
    /// Reads of memory that nobody wrote, if the device looks for them; one entry an instruction.
    pub uninitialised: Vec<UninitialisedRead>,
    /// What looks wrong with the use of lock bits: taken too late, or left taken.
    pub lock_warnings: Vec<LockWarning>,
}

/// Something that looks wrong with the use of lock bits, in a launch that ended all the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LockWarning {
    /// The first occurrence, in words.
    pub message: String,
    /// How many lanes or bits it is about.
    pub count: u64,
}

/// What one SM did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SmReport {
    /// CTAs that ran on it.
    pub ctas: u64,
    /// Instructions executed by its warps.
    pub warp_insts: u64,
    /// The same, each counted once for every active lane.
    pub thread_insts: u64,
    /// Cycles of its warps. `stalls` makes them up.
    pub warp_cycles: u64,
    /// What they did in each of those cycles.
    pub stalls: Counters,
    /// Warp instructions by class.
    pub classes: Counters,
    /// Its L1, load/store unit and shared memory.
    pub l1: Counters,
    /// Cycles in which it had no warp, in a run of firmware.
    pub stalled_on_aggregator: u64,
}

impl AddAssign<&SmReport> for SmReport {
    /// The same SM in another launch.
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

/// What happened at locks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Locks {
    /// Acquired at once or in the end.
    pub acquired: u64,
    /// Attempts that failed because a thread of the same warp held the lock.
    pub failed_intra: u64,
    /// Attempts that failed because a thread of another warp held it.
    pub failed_inter: u64,
    /// Waits that found their condition true.
    pub wait_ok: u64,
    /// Waits that found it false.
    pub wait_fail: u64,
    /// Failed attempts that were entered in a queue, on a chip with blocking locks (`lock_queue.mode`).
    #[serde(skip_serializing_if = "is_zero")]
    pub queued: u64,
    /// Those that went on when a lock was given back.
    #[serde(skip_serializing_if = "is_zero")]
    pub granted: u64,
    /// Failed attempts that found no room for a queue.
    #[serde(skip_serializing_if = "is_zero")]
    pub not_queued: u64,
    /// Lock bits that `wl.ldslk` took, each counted once, on the SM that used the most.
    pub bits_explicit: u64,
    /// The same of those that atomics on shared memory took.
    pub bits_implicit: u64,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Spin-inducing branches.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SpinBranches {
    /// Suspected.
    pub detected: u64,
    /// Certain.
    pub confirmed: u64,
}

/// Warps that backed off after a turn of a spin loop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct BackOff {
    /// How often.
    pub count: u64,
    /// Cycles from the spin-inducing branch to the next instruction, of all warps.
    pub warp_cycles: u64,
    /// The greatest delay limit that was in force on an SM.
    pub longest_limit_cycles: u64,
}

/// How well spin-inducing branches were detected. A branch counts once for each SM on which it was taken; what is true of
/// it is what the kernel says (`.pragma "warploom.sib"`) or else what the analysis of its loops found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Detection {
    /// True spin detection rate: spin-inducing branches that were confirmed.
    pub tsdr: Option<f64>,
    /// False spin detection rate: other backward branches that were.
    pub fsdr: Option<f64>,
    /// Detection phase ratio of the right ones: time until confirmed, over the time from first to last encounter.
    pub dpr_true: Option<f64>,
    /// The same of the wrong ones.
    pub dpr_false: Option<f64>,
    /// Spin-inducing branches met.
    pub true_met: u64,
    /// Of those, confirmed.
    pub true_confirmed: u64,
    /// Other backward branches met.
    pub false_met: u64,
    /// Of those, confirmed.
    pub false_confirmed: u64,
}

/// A read of memory that was never written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct UninitialisedRead {
    /// The first occurrence, in words.
    pub message: String,
    /// How often a warp did it with that instruction.
    pub count: u64,
}
