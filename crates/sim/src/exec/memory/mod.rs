//! Memory accesses of a warp. Start at [`access`]: what an access is, how it begins and how it ends.

pub(crate) mod access;
pub(crate) mod address;
pub(crate) mod bytes;
pub(crate) mod reach;
pub(crate) mod registers;
pub(crate) mod rows;
mod serve;
pub(crate) mod shared;
pub(crate) mod store;
