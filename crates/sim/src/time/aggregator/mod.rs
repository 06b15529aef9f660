//! The aggregator: the chip's control processor, a core with caches of its own that runs firmware.
//!
//! Firmware is an `async` function of whoever runs the machine. It talks to an [`Aggregator`]: a call begins an
//! instruction, `.await` is where its value is used, and both take simulated time. `docs/aggregator.md` has the guide and
//! the model.
//!
//! `handle` is what firmware sees; `unit` polls it and moves time forward; `pipeline` says when an instruction can
//! begin; `port` has its accesses to memory; `dispatcher` places CTAs and keeps the books of the SMs' resources.

mod clock;
pub mod dispatcher;
pub mod handle;
mod pipeline;
mod port;
pub mod unit;

use std::future::Future;
use std::pin::Pin;

pub use crate::time::aggregator::handle::{Aggregator, Answer};
pub use crate::time::aggregator::unit::Unit;

/// Firmware that runs.
pub type Running<'f> = Pin<Box<dyn Future<Output = ()> + Send + 'f>>;

/// What makes firmware.
pub type MakeFirmware<'f> = Box<dyn FnOnce(Aggregator) -> Running<'f> + Send + 'f>;

crate::kit::counters::counters! {
    /// What the aggregator did. Clocks are its own.
    AggregatorStats {
        /// Instructions.
        instructions,
        /// Loads among them.
        loads,
        /// Stores.
        stores,
        /// Atomics.
        atomics,
        /// Loads and stores that found their line in the data cache.
        hits,
        /// Lines asked for.
        misses,
        /// Starts called for, each of one CTA or more.
        starts,
        /// CTAs started.
        dispatched,
        /// CTAs that ended.
        ended,
        /// Wavefronts that yielded.
        yields,
        /// Wavefronts restarted.
        restarts,
        /// Core cycles in which no SM had a wavefront.
        gpu_stalled_cycles,
        /// Core cycles in which an SM had no wavefront, of all SMs together.
        sm_stalled_cycles,
        /// Core cycles in which firmware slept or waited for an event.
        idle_cycles,
    }
}
