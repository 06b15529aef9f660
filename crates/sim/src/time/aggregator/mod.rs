//! The aggregator: the chip's control processor, a core with its own caches that runs firmware.
//!
//! Firmware is an `async` function of the machine's user. It talks to an [`Aggregator`]: a call begins an instruction,
//! `.await` is where its value is used, and both take simulated time. `docs/aggregator.md` has the guide and the model.
//!
//! `handle` is what firmware sees; `unit` polls it and moves time forward (start there); `pipeline` says when an
//! instruction can begin; `port` has its accesses to memory; `dispatcher` places CTAs and knows what SMs have free;
//! `restarts` is the channel of wavefronts that yielded; `events` are for the timeline.

mod clock;
pub(crate) mod dispatcher;
pub(crate) mod events;
pub(crate) mod handle;
mod pipeline;
mod port;
pub(crate) mod restarts;
pub(crate) mod unit;

use std::future::Future;
use std::pin::Pin;

pub use crate::time::aggregator::handle::{Aggregator, Answer, Span};
pub(crate) use crate::time::aggregator::unit::Unit;

/// Firmware that has begun.
pub(crate) type Running<'f> = Pin<Box<dyn Future<Output = ()> + Send + 'f>>;

/// Makes firmware, which gets its handle.
pub type MakeFirmware<'f> = Box<dyn FnOnce(Aggregator) -> Running<'f> + Send + 'f>;

crate::kit::counters::counters! {
    /// Counters of the aggregator.
    AggregatorStats {
        instructions,
        loads,
        stores,
        atomics,
        /// Loads and stores that found their line in the data cache.
        hits,
        /// Lines requested by the data cache.
        misses,
        /// Calls that start CTAs.
        starts,
        /// CTAs placed on SMs.
        dispatched,
        /// CTAs that ended.
        ended,
        yields,
        restarts,
        /// Core cycles in which no SM had a wavefront.
        gpu_stalled_cycles,
        /// Core cycles in which an SM had no wavefront, summed over all SMs.
        sm_stalled_cycles,
        /// Core cycles in which firmware slept or waited for an event.
        idle_cycles,
    }
}
