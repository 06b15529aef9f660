//! What can be wrong with a graph or its run.

/// Why a graph is refused, or its run ended early.
#[derive(Debug, thiserror::Error)]
pub enum FlowError {
    /// A channel that nobody reads.
    #[error(
        "channel `{channel}` has no consumer: what is put there would never be processed; connect a kernel with `reads`"
    )]
    NoConsumer {
        /// The channel.
        channel: String,
    },
    /// A channel that several kernels read.
    #[error(
        "channel `{channel}` has two consumers, `{first}` and `{second}`; all its elements go to one kernel"
    )]
    TwoConsumers {
        /// The channel.
        channel: String,
        /// One kernel.
        first: String,
        /// Another.
        second: String,
    },
    /// A kernel that reads nothing.
    #[error("kernel `{kernel}` reads no channel, so nothing ever starts it; connect one with `reads`")]
    NeverStarts {
        /// The kernel.
        kernel: String,
    },
    /// A channel that stays empty.
    #[error("nothing is ever put into channel `{channel}`: no kernel writes it and `put` gave it no element")]
    NeverFilled {
        /// The channel.
        channel: String,
    },
    /// Elements of another size.
    #[error(
        "kernel `{kernel}` {does} elements of {kernel_bytes} bytes, but those of channel `{channel}` have {channel_bytes}"
    )]
    SizesDiffer {
        /// The kernel.
        kernel: String,
        /// "reads" or "writes".
        does: &'static str,
        /// What the kernel takes them for.
        kernel_bytes: usize,
        /// The channel.
        channel: String,
        /// What they have.
        channel_bytes: usize,
    },
    /// A shape that no channel has.
    #[error("channel `{channel}`: {reason}")]
    BadShape {
        /// The channel.
        channel: String,
        /// What is wrong.
        reason: String,
    },
    /// A level that a stack has not.
    #[error(
        "kernel `{kernel}` reads `{from}`, which has {from_levels}, and writes the same levels of `{to}`, which has {to_levels}"
    )]
    LevelsDiffer {
        /// The kernel.
        kernel: String,
        /// What it reads.
        from: String,
        /// Levels of that.
        from_levels: u32,
        /// What it writes.
        to: String,
        /// Levels of that.
        to_levels: u32,
    },
    /// More elements than there is room for before the start.
    #[error("{given} elements are put into channel `{channel}`, which holds {width}")]
    TooManyAtStart {
        /// The channel.
        channel: String,
        /// Elements.
        given: usize,
        /// Its width.
        width: u32,
    },
    /// A kernel that cannot be started by the aggregator.
    #[error(
        "kernel `{kernel}` does not take `Work` first: its signature is {signature}; include kernels/flow/channel.cuh"
    )]
    NotAFlowKernel {
        /// The kernel.
        kernel: String,
        /// What it takes.
        signature: String,
    },
    /// A kernel has no function for the host.
    #[error("kernel `{kernel}` has no function for the host; give it one with `on_host`")]
    NotOnHost {
        /// The kernel.
        kernel: String,
    },
    /// Too large.
    #[error(
        "the channels of graph `{graph}` take {bytes} bytes, the device has {available}; take narrower channels or fewer levels"
    )]
    TooLarge {
        /// The graph.
        graph: String,
        /// What it needs.
        bytes: u64,
        /// What there is.
        available: u64,
    },
    /// A run on the host that cannot go on.
    #[error("graph `{graph}` cannot go on: {reason}")]
    Stuck {
        /// The graph.
        graph: String,
        /// Why.
        reason: String,
    },
    /// The device refused or failed.
    #[error(transparent)]
    Device(#[from] warploom::Error),
}

/// A result of this crate.
pub type Result<T> = std::result::Result<T, FlowError>;
