//! Why a graph is refused, or why its run ended early.

/// Why a graph is refused, or why its run ended early.
#[derive(Debug, thiserror::Error)]
pub enum FlowError {
    #[error(
        "channel `{channel}` has no consumer: what is put there would never be processed; connect a kernel with `reads`"
    )]
    NoConsumer { channel: String },
    #[error(
        "channel `{channel}` has two consumers, `{first}` and `{second}`; all its elements go to one kernel"
    )]
    TwoConsumers { channel: String, first: String, second: String },
    #[error("kernel `{kernel}` reads no channel, so nothing ever starts it; connect one with `reads`")]
    NeverStarts { kernel: String },
    #[error("nothing is ever put into channel `{channel}`: no kernel writes it and `put` gave it no element")]
    NeverFilled { channel: String },
    /// Kernel and channel disagree about the size of an element.
    #[error(
        "kernel `{kernel}` {does} elements of {kernel_bytes} bytes, but those of channel `{channel}` have \
         {channel_bytes}"
    )]
    SizesDiffer {
        kernel: String,
        /// "reads" or "writes".
        does: &'static str,
        kernel_bytes: usize,
        channel: String,
        channel_bytes: usize,
    },
    #[error("channel `{channel}`: {reason}")]
    BadShape { channel: String, reason: String },
    /// A kernel writes a level that the other stack does not have.
    #[error(
        "kernel `{kernel}` reads `{from}`, which has {from_levels}, and writes the same levels of `{to}`, \
         which has {to_levels}"
    )]
    LevelsDiffer { kernel: String, from: String, from_levels: u32, to: String, to_levels: u32 },
    #[error("{given} elements are put into channel `{channel}`, which holds {width}")]
    TooManyAtStart { channel: String, given: usize, width: u32 },
    /// A kernel that does not take what the aggregator passes.
    #[error(
        "kernel `{kernel}` does not take `Work` first: its signature is {signature}; include kernels/flow/channel.cuh"
    )]
    NotAFlowKernel { kernel: String, signature: String },
    /// A module for GPUs without an aggregator that lacks a kernel of the graph.
    #[error("kernel `{kernel}` is not among those of the module's FLOW_MAIN: {listed}")]
    NotListed { kernel: String, listed: String },
    #[error(
        "kernel `{kernel}` takes {expected} arguments after `Work`, and the graph gives it {given}; see `constants`"
    )]
    WrongConstants { kernel: String, given: usize, expected: usize },
    #[error("kernel `{kernel}` has no function for the host; give it one with `on_host`")]
    NotOnHost { kernel: String },
    #[error(
        "the channels of graph `{graph}` take {bytes} bytes, the device has {available}; take narrower \
         channels or fewer levels"
    )]
    TooLarge { graph: String, bytes: u64, available: u64 },
    /// Elements that no scheduler knew of.
    #[error(
        "{count} elements of {channel} were never processed: {suspects} does not declare it; add `writes` or `spawns` \
         to the graph"
    )]
    LeftBehind { channel: String, count: u32, suspects: String },
    #[error(
        "{put} elements were put into {channel}, where {kernels} may put {most} in all as declared: raise the bound of \
         `writes` or `spawns`"
    )]
    MoreThanDeclared { kernels: String, channel: String, put: u64, most: u64 },
    /// A run on the host that can make no progress.
    #[error("graph `{graph}` cannot go on: {reason}")]
    Stuck { graph: String, reason: String },
    /// A kernel on the host that does something else than its graph declares.
    #[error("graph `{graph}`: {reason}")]
    Misuse { graph: String, reason: String },
    /// The device refused or failed.
    #[error(transparent)]
    Device(#[from] warploom::Error),
}

/// A kernel that puts more at once than its graph declares.
pub(crate) fn too_many_at_once(kernels: &str, channel: &str, most: u32) -> String {
    format!(
        "kernel `{kernels}` puts more elements at once into {channel} than the {most} declared: raise the bound of \
         `writes` or `spawns`"
    )
}

/// A kernel that puts where its graph does not say so.
pub(crate) fn undeclared(kernel: &str, channel: &str) -> String {
    format!(
        "kernel `{kernel}` puts elements into {channel} and does not declare it; add `writes` or `spawns` to the graph"
    )
}

/// The result of this crate's functions.
pub type Result<T> = std::result::Result<T, FlowError>;
