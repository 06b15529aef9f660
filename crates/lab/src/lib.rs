//! What is done with Warploom's machines: workloads run on them, and they are held against real GPUs.
//!
//! [`work`] has the workloads: kernels with an input, as many launches as they need, and a check of the result.
//! [`align`] aligns two FASTA files with one of them. [`conform`] has both comparisons. Conformance vectors: every instruction that is a function of its operands, on
//! fixed operands, recorded once on a GPU and replayed on the simulated chips. Differential programs: random kernels
//! whose result is the same on any correct machine. [`anchors`] measures what single operations cost. Everything is
//! written against [`warploom::Device`], so the same code runs on a chip and on a GPU. Nothing here prints; long work
//! reports through a callback.

pub mod align;
pub mod anchors;
pub mod conform;
mod numbers;
pub mod plot;
mod random;
pub mod repro;
pub mod work;
