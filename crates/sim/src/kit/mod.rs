//! What every room above is built from: events by cycle, reusable records, and ids that are types.

pub mod bits;
pub mod counters;
pub mod cycle;
pub mod divisor;
pub mod ids;
pub mod lane_mask;
pub mod line;
pub mod slab;
pub mod wheel;
