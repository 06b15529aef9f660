//! Whole kernels on the simulator, through the library, against results computed on the host.
//!
//! `corpus` runs every kernel of `kernels/` in the PTX of every compiler; `inline` runs small PTX texts that
//! each test one part of the machine; `faults` tests how faulty kernels end. Everything runs without timing on
//! a SIMT stack, on independent threads and on wavefronts of 64 lanes, and with timing on every chip: the
//! results must be the same.

mod corpus;
mod determinism;
mod faults;
mod inline;
mod support;
