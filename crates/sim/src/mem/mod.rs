//! Memory: the bytes of the device ([`store`]), and the units that move them: caches, the network, L2 slices, DRAM.

pub mod cache;
pub mod directory;
pub mod dram;
pub mod interconnect;
pub mod l1;
pub mod l2;
pub mod map;
pub mod message;
pub mod store;
