//! What made a result: the version, the model's sources, the kernels.

/// The version of this program.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// A digest of the model's sources, the workloads and the kernels. Results with another one are not comparable.
pub const MODEL: &str = env!("WARPLOOM_MODEL");

/// The kernels that come with this program, with a digest of each.
pub const KERNELS: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/kernels.rs"));
