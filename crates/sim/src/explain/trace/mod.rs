//! The timeline of a launch, for the Perfetto viewer (<https://ui.perfetto.dev>).
//!
//! [`Timeline`] is a [`Probe`](crate::time::probe::Probe) that keeps what the warps of one SM do; the writer makes a [`Trace`] of the
//! timelines of a launch. A launch that is not traced runs a machine without this probe.
//!
//! What the viewer shows, one nanosecond of its time for one core cycle:
//!
//! | track | what is on it |
//! |---|---|
//! | `launch` | the kernel, with chip, policy, grid and block; a mark where the trace was cut |
//! | `SM 0` | a process for each chosen SM, with the tracks below in it |
//! | `issue rate` | warp instructions issued in every [`RATE_CYCLES`] cycles |
//! | `outstanding misses` | lines that the L1 waits for |
//! | `spinning warps` | warps that go round in a spin loop |
//! | `resident warps` | warps whose CTA is on the SM |
//! | `slot 3` | the warps that had this slot, one after the other: `CTA (1,0,0) warp 2`; in it, while the warp spins, `spins on` the word it polls; in that what it does, every cycle: `issuing`, or why not, with the instruction |
//! | `locks held` | below a slot, the locks that threads of its warp hold, as far as the atomics of spin loops tell |

use std::fmt;
use std::ops::Range;

pub mod perfetto;
mod timeline;
mod write;

pub use crate::explain::trace::timeline::{Counter, RATE_CYCLES, Timeline};
pub(crate) use crate::explain::trace::write::{Recording, write};

/// What of a launch is traced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceOptions {
    /// Which SMs.
    pub sms: Vec<u32>,
    /// Which cycles, counted from the launch's start.
    pub cycles: Range<u64>,
    /// The trace takes no more bytes. What the machine remembers meanwhile takes about as many again.
    pub max_bytes: u64,
}

/// SM 0, from start to end, in 64 MiB.
impl Default for TraceOptions {
    fn default() -> Self {
        TraceOptions { sms: vec![0], cycles: 0..u64::MAX, max_bytes: 64 << 20 }
    }
}

/// A launch's timeline.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Trace {
    /// A Perfetto trace.
    pub bytes: Vec<u8>,
    /// The cycle at which [`TraceOptions::max_bytes`] ended it, if it did.
    pub cut: Option<u64>,
}

impl fmt::Debug for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Trace").field("bytes", &self.bytes.len()).field("cut", &self.cut).finish()
    }
}
