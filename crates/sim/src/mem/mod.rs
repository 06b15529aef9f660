//! Memory: the bytes of the device ([`store`]).

pub mod store;
