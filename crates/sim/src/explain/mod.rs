//! What a launch did, in words and files: why it hangs, where its time goes, timelines, energy, samples, warnings.
//! Reads the machine, never changes it.

pub(crate) mod aggregator;
pub(crate) mod energy;
pub(crate) mod hang;
pub(crate) mod lock_warnings;
pub(crate) mod profile;
pub(crate) mod samples;
pub(crate) mod trace;
