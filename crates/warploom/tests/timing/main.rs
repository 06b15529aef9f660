//! Micro-benchmarks of the timed model. What they measure follows by hand from the chip's file, and the formula stands
//! beside each expected number; so a mistake in a unit, or between two, shows up as a wrong number.

mod accounting;
mod atomics;
mod barrier;
mod bench;
mod bows;
mod caches;
mod coherence;
mod determinism;
mod dram;
mod energy;
mod lock_queue;
mod pipeline;
mod shared;
