//! How threads of a CTA wait for each other and exchange values: barriers, mbarriers, votes and shuffles.

pub mod barrier;
pub mod mbarrier;
pub mod vote;
