//! A streaming multiprocessor, by pipeline stage.
//!
//! [`core`] has the clock; then come the front end, issue, the execution units, and the load/store unit with the L1.

pub mod core;
pub mod dispatched;
pub mod front_end;
pub mod issue;
pub mod load_store;
mod observe;
pub mod stats;
pub mod units;
pub mod watch;
mod yielding;
