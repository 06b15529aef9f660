//! Small tools that every room above uses: the event wheel, slabs, typed indices, bit sets, counters, fast division.

pub(crate) mod bits;
pub(crate) mod counters;
pub(crate) mod divisor;
pub(crate) mod ids;
pub(crate) mod slab;
pub(crate) mod wheel;
