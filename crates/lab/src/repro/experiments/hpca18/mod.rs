//! The experiments of *Warp Scheduling for Fine-Grained Synchronization* (HPCA'18): BOWS and DDOS.

pub(super) mod contention;
pub(super) mod detection;
mod kernels;
pub(super) mod limits;
pub(super) mod overheads;
pub(super) mod policies;
pub(super) mod storage;

const PAPER: &str = "hpca18";
