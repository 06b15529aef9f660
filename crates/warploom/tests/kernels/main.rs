//! Whole kernels on the functional machine, through the library, against results computed on the host.
//!
//! `corpus` runs every kernel of `kernels/` as every compiler wrote it; `inline` runs small PTX texts that each
//! look at one part of the machine; `faults` looks at how wrong kernels end. Everything runs on three chips: a SIMT
//! stack, independent threads, and wavefronts of 64 lanes.

mod corpus;
mod determinism;
mod faults;
mod inline;
mod support;
