//! What every room above is built from: events by cycle, reusable records, small numbers with names.

pub mod bits;
pub mod counters;
pub mod divisor;
pub mod ids;
pub mod slab;
pub mod wheel;
