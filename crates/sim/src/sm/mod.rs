//! A streaming multiprocessor's parts.

pub mod barrier;
pub mod execute;
pub mod independent;
pub mod lanes;
pub mod lsu;
pub mod mbarrier;
pub mod shared;
pub mod simt;
pub mod stack;
pub mod vote;
pub mod warp;
