//! Words for what the machine did: why a launch does not end, timelines, energy, samples. Reads the machine, never changes it.

pub mod aggregator;
pub mod energy;
pub mod hang;
pub mod lock_warnings;
pub mod samples;
pub mod trace;
