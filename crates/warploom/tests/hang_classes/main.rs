//! Hangs by class on every chip, with the expected verdict, cause and lines; and kernels that are only slow.

#[path = "../hang_support/mod.rs"]
mod hang_support;

mod causes;
mod library;
mod lists;
mod livelocks;
mod slow;
mod suspicion;
