//! The clocked machine. [`machine`] moves SMs ([`sm`]), the crossbars ([`network`]), L2 slices ([`l2`]) and DRAM
//! ([`dram`]) forward together.

pub mod aggregator;
pub mod cache;
pub mod directory;
pub mod dispatch;
pub mod dram;
pub mod l2;
pub mod machine;
pub mod map;
pub mod network;
pub mod probe;
pub mod sched;
pub mod sm;
