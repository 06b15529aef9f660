//! A streaming multiprocessor's parts.

pub mod barrier;
pub mod execute;
pub mod lanes;
pub mod lsu;
pub mod mbarrier;
pub mod shared;
pub mod simt;
pub mod vote;
pub mod warp;
