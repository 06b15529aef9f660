//! Channels, channel-flow graphs and Cilk: fine-grained tasks that are gathered into full wavefronts.
//!
//! A [`Graph`] joins kernels by channels. On a chip with an aggregator it runs under firmware that starts a wavefront
//! wherever enough elements are ready ([`Graph::execute`]); on the host the same graph runs on all threads
//! ([`Graph::run_on_host`]). Kernels for the device include `kernels/flow/channel.cuh`; [`Channel`] is the other half of that
//! contract, and its calls for the host are lock-free for any number of threads.
//!
//! Nothing here knows how a chip works: that is `warploom`. Start reading at [`Graph`], then [`aggregator`]. `docs/channels.md`
//! is the guide.

pub mod aggregator;
pub mod calls;
mod channel;
pub mod cilk;
mod device;
mod error;
mod graph;
mod host;
mod memory;

pub use channel::{Channel, DESCRIPTOR_BYTES, GROUP, Layout, Shape, WAVE};
pub use device::{Execution, Limits};
pub use error::{FlowError, Result};
pub use graph::{Constant, Graph, HostKernel, KernelNode, Level, Node, Waiting};
pub use host::{HostReport, Lane};
pub use memory::{Arena, Word};
