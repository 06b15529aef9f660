//! Micro-benchmarks of the timed model. Each expected number is derived by hand from the chip file, with its
//! formula beside it, so a mistake in a unit or between two units shows up as a wrong number.

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
