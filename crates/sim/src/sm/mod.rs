//! A streaming multiprocessor's parts.
//!
//! [`core`] has the clock and the pipeline; [`execute`] is what instructions do, in every model.

pub mod address;
pub mod barrier;
mod bytes;
pub mod coherent;
pub mod core;
pub mod decode;
pub mod dispatched;
pub mod execute;
pub mod fetch;
mod inbox;
pub mod independent;
mod issue;
pub mod lanes;
pub mod lock_unit;
mod locking;
pub mod lsu;
pub mod mbarrier;
pub mod memory_unit;
mod observe;
pub mod operands;
pub mod operation;
pub mod scoreboard;
pub mod shared;
pub mod simt;
pub mod slot;
pub mod spin_unit;
pub mod stack;
pub mod switch;
pub mod transfer;
pub mod vote;
pub mod warp;
pub mod watch;
mod yielding;
