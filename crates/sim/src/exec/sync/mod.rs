//! How threads of a CTA wait for each other and exchange values: barriers, mbarriers, votes and shuffles.

pub(crate) mod barrier;
pub(crate) mod mbarrier;
pub(crate) mod vote;
