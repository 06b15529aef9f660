//! Memory accesses of a warp. Start at [`access`]: what an access is, how it begins and how it ends.

pub mod access;
pub mod address;
pub mod bytes;
mod matrix;
pub mod reach;
pub mod registers;
mod remote;
pub mod rows;
mod serve;
pub mod shared;
pub mod store;
mod texture;
pub mod word;
