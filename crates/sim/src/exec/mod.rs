//! Values without a clock: what instructions do to warps, CTAs and memory. [`functional`] runs a grid this way; the timed
//! machine executes the same instructions when its pipeline says so. Start reading at [`execute`].

pub mod execute;
pub mod fault;
pub mod functional;
pub mod lanes;
pub mod launch;
pub mod locks;
pub mod memory;
pub mod occupancy;
pub mod output;
pub mod printf;
pub mod stop;
pub mod sync;
pub mod uninitialised;
pub mod warp;
