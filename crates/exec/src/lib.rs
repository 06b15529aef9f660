//! Values without a clock: what instructions do to warps, CTAs and memory. [`functional`] runs a whole grid this way;
//! the timed machine (`warploom_sim`) executes the same instructions when its pipeline issues them. Start reading at
//! [`execute`].
//!
//! [`chip`] is the specification of a chip, read from TOML and checked; it knows only [`kit`], which has typed indices,
//! the event wheel, slabs and counters, and knows nothing.
//!
//! A part of the simulator, public for `warploom_sim` alone: what users may rely on is what the crate `warploom`
//! re-exports.

pub mod bulk;
pub mod chip;
pub mod execute;
pub mod executed;
pub mod fault;
pub mod functional;
mod independence;
pub mod inlining;
pub mod kit;
pub mod lanes;
pub mod launch;
pub mod locks;
mod matrix;
pub mod memory;
pub mod notes;
pub mod occupancy;
pub mod output;
pub mod outside;
pub mod printf;
mod printing;
pub mod races;
pub mod repetition;
pub mod stop;
mod straight;
pub mod sync;
pub mod texture;
pub mod uninitialised;
pub mod warp;
