//! The clocked machine. [`machine`] moves SMs ([`sm`]), the crossbars ([`network`]), L2 slices ([`l2`]) and DRAM
//! ([`dram`]) forward together.

pub(crate) mod aggregator;
pub(crate) mod cache;
pub(crate) mod directory;
pub(crate) mod dispatch;
pub(crate) mod dram;
pub(crate) mod l2;
pub(crate) mod machine;
pub(crate) mod map;
pub(crate) mod network;
pub(crate) mod room;
pub(crate) mod sched;
pub(crate) mod sm;
