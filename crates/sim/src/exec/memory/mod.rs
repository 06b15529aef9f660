//! Memory accesses of a warp: addresses, checks, and the bytes they move.

pub mod access;
pub mod address;
pub mod bytes;
pub mod shared;
pub mod store;
