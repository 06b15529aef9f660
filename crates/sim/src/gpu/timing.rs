//! Options of the timed model.

use crate::chip::spinning::Bows;
use crate::explain::trace::TraceOptions;

/// Options of a timed launch.
#[derive(Clone, Debug, Default)]
pub struct Timing {
    /// The warp scheduling policy, by name; `None`: the chip's (`issue.policy`).
    pub policy: Option<String>,
    /// Back-off of spinning warps.
    pub bows: Bows,
    /// Host threads; 0: one per core. Results do not depend on it.
    pub threads: usize,
    /// Counters are sampled every this many cycles ([`TimedStats::samples`](crate::TimedStats::samples)).
    pub sample_cycles: Option<u64>,
    /// Records where the time goes ([`Stats::profile`](crate::Stats::profile)). Not in runs of firmware.
    pub profile: bool,
    /// With `profile`: also records how it goes over time ([`Profile::over_time`](crate::profile::Profile::over_time)).
    pub over_time: bool,
    /// Records a timeline ([`Stats::trace`](crate::Stats::trace)).
    pub trace: Option<TraceOptions>,
}
