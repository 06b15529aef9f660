//! The experiments of *Fine-grain Task Aggregation and Coordination on GPUs* (ISCA'14): channels, Cilk, wavefront
//! yield.

pub(super) mod aggregator;
pub(super) mod channels;
pub(super) mod conventional;
mod programs;
pub(super) mod scaling;
pub(super) mod wavefronts;
pub(super) mod yielding;

const PAPER: &str = "isca14";
