//! The simulated GPU: executes a [`warploom_isa::Kernel`] on a chip described by data, with or without timing.
//!
//! It reads no PTX or SASS (`warploom_ptx` and `warploom_sass` do) and prints nothing. Users of the library want the
//! crate `warploom`, which re-exports what is public here.
//!
//! Three rooms, each of which knows only those below it:
//!
//! - `gpu`: the chip as a host sees it: memory, modules, launches. It asks `explain` why a launch ended early.
//! - `explain`: what a launch did, in words and files: hangs, timelines, energy. Reads the machine, never changes it.
//! - `time`: the clocked machine: SMs, network, L2, DRAM, the aggregator.
//!
//! Below them is the crate [`warploom_exec`], here `exec`: what instructions do, without a clock; chips; small tools.
//!
//! Start reading at `time/sm/` for when an instruction does what `exec` says; `docs/architecture.md` has the map.

mod explain;
mod gpu;
mod time;

// `crate::exec`, `crate::chip` and `crate::kit`, for the rooms here.
pub use warploom_exec::chip;
use warploom_exec::{self as exec, kit};

pub use crate::chip::spinning::{Bows, DelayLimit, SibSource};
pub use crate::chip::{Chip, ChipError, Divergence};
pub use crate::exec::bulk::map::{Swizzle, TensorMap};
pub use crate::exec::fault::{Fault, FaultKind, Place};
pub use crate::exec::launch::{Limits, Progress, Shape};
pub use crate::exec::occupancy::{Limiter, Occupancy, Unlaunchable};
pub use crate::exec::outside::{OutsideLoad, OutsideLoads};
pub use crate::exec::races::{Race, RaceAccess};
pub use crate::exec::stop::HangReason;
pub use crate::exec::uninitialised::UninitialisedRead;
pub use crate::explain::energy::Energy;
pub use crate::explain::hang::{Hang, HangKind};
pub use crate::explain::lock_warnings::LockWarning;
pub use crate::explain::samples::samples_csv;
pub use crate::explain::trace::{Sms, Trace, TraceOptions};
pub use crate::gpu::outcome::{LaunchError, Stats};
pub use crate::gpu::{
    Checks, Estimate, Gpu, LoadedKernel, LoadedModule, MakeObserver, Model, ModuleError, Timing,
};
pub use crate::time::machine::totals::{Sample, TimedStats};

/// Kernels and copies of several streams, which run together ([`Gpu::run_plan`]).
pub mod plan {
    pub use crate::gpu::{Piece, PlanRun, PlannedKernel, Work};
    pub use crate::time::machine::plan::{Move, MoveFrom};
}

pub use crate::time::sched::cost::StorageBits;
pub use crate::time::sm::load_store::stats::L1Stats;
pub use crate::time::sm::stats::SmStats;

/// Textures, surfaces and samplers.
pub mod texture {
    pub use crate::exec::texture::{
        AddressMode, ChannelKind, Format, Image, Layout, Object, Sampler, Textures,
    };
}

/// Parts of a [`Hang`], and the words of its message.
pub mod hang {
    pub use crate::explain::hang::{Until, Waits, grouped, lane_ranges};
}

/// Where the time of launches goes, by line, lock and barrier.
pub mod profile {
    pub use crate::explain::profile::{
        Barrier, Counts, Finding, Instruction, Line, Name, OverTime, Profile, Span, ThreadName, Time, Wait,
        WordProfile,
    };
}

/// Timelines of launches, for the Perfetto viewer and for pages.
pub mod trace {
    pub use crate::explain::trace::{
        Counter, HandOff, HandOffEnd, RATE_CYCLES, SlotSpans, SmSpans, Spans, StateSpan, WarpSpan, WordSpan,
        perfetto,
    };
}

/// The aggregator (the chip's control processor) as firmware sees it.
pub mod aggregator {
    pub use crate::time::aggregator::{Aggregator, Answer, MakeFirmware, Span};
    pub use crate::time::dispatch::Yielded;
}

/// Warp scheduling policies: the interface, and the built-in ones.
pub mod sched {
    pub use crate::kit::cycle::Cycle;
    pub use crate::kit::ids::{SlotSet, WarpSlot};
    pub use crate::kit::lane_mask::LaneMask;
    pub use crate::time::sched::{BranchOutcome, Issue, MakePolicy, NamedPolicy, POLICIES, Policy};
}

/// Observers of an SM: the interface and its events.
pub mod observe {
    pub use crate::kit::cycle::Cycle;
    pub use crate::kit::lane_mask::LaneMask;
    pub use crate::time::sm::probe::{CtaEvent, Observer, State, WarpEvent, Word};
}

/// Single units of the machine, for this crate's benchmarks and tests.
#[doc(hidden)]
pub mod internals {
    pub use crate::kit::cycle::Cycle;
    pub use crate::kit::ids::Ticket;
    pub use crate::kit::line::LineAddress;
    pub use crate::kit::wheel::Wheel;
    pub use crate::time::l2::Partition;
    pub use crate::time::network::Crossbar;
    pub use crate::time::network::message::{Asks, Request, RequestKind};
    pub use crate::time::network::node::Node;
    pub use crate::time::sm::issue::scoreboard::{RegSet, Scoreboard};
}
