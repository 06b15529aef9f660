//! Values without a clock: what instructions do to warps, CTAs and memory. [`functional`] runs a whole grid this way;
//! the timed machine executes the same instructions when its pipeline issues them. Start reading at [`execute`].

pub(crate) mod execute;
pub(crate) mod fault;
pub(crate) mod functional;
pub(crate) mod inlining;
pub mod lanes;
pub(crate) mod launch;
pub(crate) mod locks;
pub(crate) mod memory;
pub(crate) mod occupancy;
pub(crate) mod output;
pub(crate) mod printf;
mod printing;
pub(crate) mod races;
pub(crate) mod repetition;
pub(crate) mod stop;
pub(crate) mod sync;
pub(crate) mod uninitialised;
pub(crate) mod warp;
