//! What is done with Warploom's machines: here they are held against real GPUs.
//!
//! [`conform`] has both comparisons. Conformance vectors: every instruction that is a function of its operands, on
//! fixed operands, recorded once on a GPU and replayed on the simulated chips. Differential programs: random kernels
//! whose result is the same on any correct machine. Everything is written against [`warploom::Device`], so the same code
//! records and replays. Nothing here prints; long work reports through a callback.

pub mod anchors;
pub mod conform;
