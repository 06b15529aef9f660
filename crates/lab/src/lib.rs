//! What Warploom's machines are used for: workloads, the papers' experiments, and comparison with real GPUs.
//!
//! - [`work`]: workloads, which are kernels with an input, their launches, and a check of the result.
//! - [`kernel`]: kernels of a user's own files, with arguments as text.
//! - [`plan`]: several launches of such kernels, with loops and checks, from a file.
//! - [`runs`]: runs as values: described, executed in parallel by one or many processes, and kept on disk.
//! - [`repro`]: the experiments of the three papers, run, judged against the papers' numbers, and reported.
//! - [`sweep`]: thousands of runs from one file, and their results as tables and plots.
//! - [`align`]: alignment of two FASTA files, on the kernels of workload `nw`.
//! - [`conform`]: conformance with real GPUs, by recorded vectors and by random programs.
//! - [`anchors`]: micro-benchmarks of single operations.
//! - [`calibrate`]: a chip file for a GPU, from its anchors.
//! - [`correlate`]: times of workloads on a real GPU beside those of its model.
//!
//! No model code is here: everything is written against [`warploom::Device`], so it runs on a simulated chip and on a
//! real GPU alike. Nothing here prints; long work reports progress through a callback. Start reading at [`work`],
//! then [`runs`] and [`repro`].

pub mod align;
pub mod anchors;
pub mod calibrate;
pub mod conform;
pub mod correlate;
mod csv;
pub mod kernel;
mod numbers;
pub mod plan;
mod plot;
mod random;
pub mod repro;
pub mod runs;
pub mod sweep;
pub mod work;
