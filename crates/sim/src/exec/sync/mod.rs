//! Synchronization within a CTA: named barriers, mbarriers, and communication between the lanes of a warp.

pub(crate) mod barrier;
pub(crate) mod mbarrier;
pub(crate) mod vote;
