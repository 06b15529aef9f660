//! Locks: the lock bits of shared memory ([`mod@unit`]) with the loads and stores that use them ([`access`]), who holds
//! which lock ([`holders`]), what warps that wait poll ([`polled`]) and write ([`written`]), and misuse noticed on the
//! way ([`notes`]).

pub mod access;
pub mod holders;
pub mod notes;
pub mod polled;
pub mod unit;
pub mod written;
