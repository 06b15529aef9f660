//! How a launch is timed: the choices a user makes.

use crate::chip::spinning::Bows;
use crate::explain::trace::TraceOptions;

/// How a launch is timed.
#[derive(Clone, Debug, Default)]
pub struct Timing {
    /// The warp scheduling policy; the chip's own if not given.
    pub policy: Option<String>,
    /// Back-off of spinning warps.
    pub bows: Bows,
    /// Host threads; 0 is one for each core.
    pub threads: usize,
    /// Counters are sampled after every so many cycles ([`TimedStats::samples`](crate::TimedStats::samples)).
    pub sample_cycles: Option<u64>,
    /// What the warps do is recorded ([`Stats::trace`](crate::Stats::trace)).
    pub trace: Option<TraceOptions>,
}
