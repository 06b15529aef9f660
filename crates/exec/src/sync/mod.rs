//! Synchronization: named barriers, mbarriers, communication between the lanes of a warp, and clusters of CTAs.

pub mod barrier;
pub mod cluster;
pub mod mbarrier;
pub mod vote;
