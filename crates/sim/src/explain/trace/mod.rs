//! The timeline of a launch, for the Perfetto viewer (<https://ui.perfetto.dev>).
//!
//! [`Timeline`] is an [`Observer`](crate::time::sm::probe::Observer) that records what the warps of one SM do; `write`
//! makes a [`Trace`] of a launch's timelines.
//!
//! What the viewer shows, with one nanosecond of its time per core cycle:
//!
//! - `launch`: the kernel, with chip, policy, grid and block; a mark where the trace was cut.
//! - `SM 0`: a process per traced SM, with these tracks:
//!   - `issue rate`: warp instructions issued in every [`RATE_CYCLES`] cycles;
//!   - `outstanding misses`: lines that the L1 waits for;
//!   - `spinning warps`: warps in a spin loop;
//!   - `resident warps`: warps whose CTA is on the SM;
//!   - `slot 3`: the warps in this slot, one after the other, as slices named `CTA (1,0,0) warp 2`. Inside, while the
//!     warp spins, `spins on` and the word it polls. Inside that, for every cycle, `issued` or the reason why not, in
//!     the words of a launch's summary, with the instruction;
//!   - `locks held`: below a slot, the locks that threads of its warp hold, as far as the atomics of spin loops show.
//!     An arrow leads from a lock that is released to the thread that takes it next, if that one waited.
//! - `aggregator`, in a run of firmware: `firmware` with what firmware names, `dispatcher` with its commands and the
//!   notices of yields. Warps are named `fib CTA 3 warp 0`, in the order of their starts.

use std::fmt;
use std::ops::Range;

mod hand_offs;
pub mod perfetto;
mod spans;
mod timeline;
mod write;

pub use crate::explain::trace::spans::{
    HandOff, HandOffEnd, SlotSpans, SmSpans, Spans, StateSpan, WarpSpan, WordSpan,
};
pub(crate) use crate::explain::trace::timeline::Timeline;
pub use crate::explain::trace::timeline::{Counter, RATE_CYCLES};
pub(crate) use crate::explain::trace::write::{Recording, write};

/// What to trace of a launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceOptions {
    pub sms: Sms,
    /// Counted from the launch's start.
    pub cycles: Range<u64>,
    /// Limit on the trace's size; later cycles are cut. Recording takes about as much memory again.
    pub max_bytes: u64,
    /// Whether [`Trace::bytes`] are made.
    pub perfetto: bool,
    /// Whether [`Trace::spans`] are made.
    pub spans: bool,
}

/// SMs of a chip.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sms {
    All,
    /// By number.
    Only(Vec<u32>),
}

impl Sms {
    pub(crate) fn contains(&self, sm: u32) -> bool {
        match self {
            Sms::All => true,
            Sms::Only(sms) => sms.contains(&sm),
        }
    }

    /// How many they are on a chip with `count` SMs.
    pub(crate) fn count(&self, count: u32) -> u32 {
        match self {
            Sms::All => count,
            Sms::Only(sms) => sms.len() as u32,
        }
    }

    /// One that a chip with `count` SMs does not have.
    pub(crate) fn unknown(&self, count: u32) -> Option<u32> {
        match self {
            Sms::All => None,
            Sms::Only(sms) => sms.iter().copied().find(|&sm| sm >= count),
        }
    }
}

/// SM 0, all cycles, at most 64 MiB, for the Perfetto viewer.
impl Default for TraceOptions {
    fn default() -> Self {
        TraceOptions {
            sms: Sms::Only(vec![0]),
            cycles: 0..u64::MAX,
            max_bytes: 64 << 20,
            perfetto: true,
            spans: false,
        }
    }
}

/// A launch's timeline.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Trace {
    /// A Perfetto trace: the content of a file for the viewer.
    pub bytes: Vec<u8>,
    /// The same as lists.
    pub spans: Option<Spans>,
    /// The cycle from which on the trace was cut because of [`TraceOptions::max_bytes`].
    pub cut: Option<u64>,
}

impl fmt::Debug for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Trace")
            .field("bytes", &self.bytes.len())
            .field("cut", &self.cut)
            .finish_non_exhaustive()
    }
}
