//! Small tools that every room above uses: ids as types, the event wheel, slabs, bit sets, counters, fast division.

pub mod bits;
pub mod counters;
pub mod cycle;
pub mod divisor;
pub mod ids;
pub mod lane_mask;
pub mod line;
pub mod slab;
pub mod wheel;
