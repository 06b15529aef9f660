//! What a result was made by: the version, the model's sources, the kernels.

pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// A digest of the sources of the model, the workloads and the kernels. Results under different digests must not be
/// mixed.
pub(crate) const MODEL: &str = env!("WARPLOOM_MODEL");

/// Path and digest of every kernel of this crate.
pub(crate) const KERNELS: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/kernels.rs"));
