//! Small tools that every room above uses: ids as types, the event wheel, slabs, bit sets, counters, fast division.

pub(crate) mod bits;
pub(crate) mod counters;
pub(crate) mod cycle;
pub(crate) mod divisor;
pub(crate) mod ids;
pub(crate) mod lane_mask;
pub(crate) mod line;
pub(crate) mod slab;
pub(crate) mod wheel;
