//! Channels, channel-flow graphs and Cilk: fine-grained tasks that are gathered into full wavefronts.
//!
//! A [`Graph`] connects kernels by channels. On a chip with an aggregator it runs under firmware that starts a
//! wavefront wherever enough elements are ready ([`Graph::execute`]). The same graph also runs on the threads
//! of the host ([`Graph::run_on_host`]), and in a persistent kernel on GPUs without an aggregator
//! ([`Graph::execute_on_gpu`]). [`cilk::Cilk`] builds graphs from spawn and sync.
//!
//! Device kernels include `kernels/flow/channel.cuh`, which defines the same channels as [`Channel`] does here.
//! On the host, channels are lock-free for any number of threads.
//!
//! This crate does not model hardware: that is `warploom`. Start reading at [`Graph`], then [`Flow`], the
//! scheduler's view. `docs/channels.md` is the guide.

mod aggregator;
mod audit;
mod calls;
mod channel;
pub mod cilk;
mod device;
mod error;
mod graph;
mod host;
mod memory;
mod persistent;

pub use aggregator::Flow;
pub use calls::Drain;
pub use channel::{Channel, DESCRIPTOR_BYTES, Layout, Shape};
pub use device::{Execution, Limits};
pub use error::{FlowError, Result};
pub use graph::{Constant, Graph, KernelNode, Level, Node, Waiting};
pub use host::{HostReport, Lane};
pub use memory::{Arena, Word};
pub use persistent::{GpuExecution, GpuRun, Schedule};
