//! A streaming multiprocessor's parts.

pub mod address;
pub mod barrier;
mod bytes;
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
