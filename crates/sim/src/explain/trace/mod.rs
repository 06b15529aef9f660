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
//!     warp spins, `spins on` and the word it polls. Inside that, for every cycle, `issuing` or the reason why not,
//!     with the instruction;
//!   - `locks held`: below a slot, the locks that threads of its warp hold, as far as the atomics of spin loops show.

use std::fmt;
use std::ops::Range;

pub mod perfetto;
mod timeline;
mod write;

pub(crate) use crate::explain::trace::timeline::Timeline;
pub use crate::explain::trace::timeline::{Counter, RATE_CYCLES};
pub(crate) use crate::explain::trace::write::{Recording, write};

/// What to trace of a launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceOptions {
    /// SMs, by number.
    pub sms: Vec<u32>,
    /// Counted from the launch's start.
    pub cycles: Range<u64>,
    /// Limit on the trace's size; later cycles are cut. Recording takes about as much memory again.
    pub max_bytes: u64,
}

/// SM 0, all cycles, at most 64 MiB.
impl Default for TraceOptions {
    fn default() -> Self {
        TraceOptions { sms: vec![0], cycles: 0..u64::MAX, max_bytes: 64 << 20 }
    }
}

/// A launch's timeline.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Trace {
    /// A Perfetto trace: the content of a file for the viewer.
    pub bytes: Vec<u8>,
    /// The cycle from which on the trace was cut because of [`TraceOptions::max_bytes`].
    pub cut: Option<u64>,
}

impl fmt::Debug for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Trace").field("bytes", &self.bytes.len()).field("cut", &self.cut).finish()
    }
}
