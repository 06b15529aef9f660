//! Synchronization within a CTA: named barriers, mbarriers, and communication between the lanes of a warp.

pub mod barrier;
pub mod mbarrier;
pub mod vote;
