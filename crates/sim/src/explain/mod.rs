//! Words for what the machine did: why a launch does not end, timelines, energy, samples. Reads the machine, never changes it.

pub(crate) mod aggregator;
pub(crate) mod energy;
pub(crate) mod hang;
pub(crate) mod lock_warnings;
pub(crate) mod samples;
pub(crate) mod trace;
