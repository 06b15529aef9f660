//! Whole kernels on the simulator, through the library, against results computed on the host.
//!
//! `corpus` runs every kernel of `kernels/` as every compiler wrote it; `inline` runs small PTX texts that each
//! look at one part of the machine; `faults` looks at how wrong kernels end. Everything runs without timing on a SIMT
//! stack, on independent threads and on wavefronts of 64 lanes, and with timing on every chip: the results are the same.

mod corpus;
mod determinism;
mod faults;
mod inline;
mod support;
