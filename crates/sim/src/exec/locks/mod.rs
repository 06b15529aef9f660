//! Locks: the lock bits of shared memory ([`unit`]) with the loads and stores that use them ([`access`]), who holds
//! which lock ([`holders`]), and misuse noticed on the way ([`notes`]).

pub(crate) mod access;
pub(crate) mod holders;
pub(crate) mod notes;
pub(crate) mod unit;
