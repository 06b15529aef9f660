//! The primitives of `kernels/tinylock.cuh`, one at a time: is the result right, and what does an operation cost?

use warploom::{Error, Launch, Result, args};

use super::check::equal;
use super::{Bench, Check, Param, Values, Workload, ptx};

struct Primitive {
    kernel: &'static str,
    shape: Shape,
}

/// How a kernel is launched, what one operation is, and what the kernel leaves in its output.
#[derive(Clone, Copy)]
enum Shape {
    /// One warp, one lock per lane. An operation takes and releases the lock.
    Alone,
    /// Two warps. An operation is a handoff.
    Pair,
    /// One warp sends to all others and receives from them. An operation is an exchange.
    Fan,
    /// All threads of a CTA share one critical section. An operation is an entry.
    Section,
    /// All threads of a CTA. An operation is a barrier.
    Block,
    /// All CTAs. An operation is a barrier.
    Grid,
}

macro_rules! primitives {
    ($($kernel:ident: $shape:ident),* $(,)?) => {
        /// The primitives, by the names of their kernels.
        pub const PRIMITIVES: &[&str] = &[$(stringify!($kernel)),*];
        const ALL: &[Primitive] = &[$(Primitive { kernel: stringify!($kernel), shape: Shape::$shape }),*];
    };
}

primitives! {
    tiny_alone: Alone,
    spin_alone: Alone,
    tiny_pair: Pair,
    spin_pair: Pair,
    warp_spin_pair: Pair,
    vote_pair: Pair,
    barrier_pair: Pair,
    mbarrier_pair: Pair,
    tiny_shared_channel: Fan,
    tiny_private_channels: Fan,
    tiny_section: Section,
    spin_section: Section,
    block_barrier: Block,
    mbarrier_block: Block,
    grid_simple: Grid,
    grid_tree: Grid,
    grid_lock_free: Grid,
}

const PRIMITIVE: Param = Param::word("primitive", "which", PRIMITIVES);
/// 0 stands for [`DEFAULT_ROUNDS`].
const ROUNDS: Param =
    Param::new("rounds", "how often; 0: 64 times, or 8 times in spin_section", 0).range(0, 10_000);
const DEFAULT_ROUNDS: u32 = 64;

/// With lock bits, threads that wait for a spin lock hinder its release: on gtx570 more rounds can last for ever.
const SECTION_ROUNDS: u32 = 8;
const WARPS: Param =
    Param::new("warps", "warps of a CTA, where their number is free; channels have 8 at most", 4)
        .range(2, 32);
const CTAS: Param =
    Param::new("ctas", "CTAs of a grid's barrier, which must all be resident", 8).range(1, 512);

pub(super) const WORKLOAD: Workload = Workload {
    name: "primitives",
    about: "one way to synchronize, its result checked, and the cycles of an operation; tiny_* and vote_*: \
            --chip gtx570",
    params: &[PRIMITIVE, ROUNDS, WARPS, CTAS],
    run,
};

/// Words that the kernels use for a grid barrier and its check.
const GRID_WORDS: usize = 8192 + 1024;

fn run(bench: &mut Bench<'_>, values: &Values) -> Result<Check> {
    let Primitive { kernel, shape } = &ALL[values.get::<usize>(&PRIMITIVE)];
    let (rounds, warps, ctas): (u32, u32, u32) = (values.get(&ROUNDS), values.get(&WARPS), values.get(&CTAS));
    let rounds = match (rounds, *kernel) {
        (0, "spin_section") => SECTION_ROUNDS,
        (0, _) => DEFAULT_ROUNDS,
        (rounds, _) => rounds,
    };
    let (grid, threads) = match shape {
        Shape::Alone => (1, 32),
        Shape::Pair => (1, 64),
        Shape::Fan | Shape::Section | Shape::Block => (1, 32 * warps),
        Shape::Grid => (ctas, 32 * warps),
    };
    if matches!(shape, Shape::Fan) && warps > 8 {
        return Err(Error::Misuse(format!(
            "primitive={kernel}: warps={warps}, and there are channels for 8"
        )));
    }

    // Kernels with lock bits are in a separate module, which a real GPU would refuse, and an older one mbarriers.
    let module = match kernel.split('_').next() {
        Some("tiny" | "vote") => ptx!("tinylocks"),
        Some("mbarrier") => ptx!("sync/mbarrier"),
        _ => ptx!("primitives"),
    };
    let module = bench.load(module)?;
    // A grid barrier counts CTAs, the others count threads. Of a pair, the second warp's counts stay 0.
    let results = if matches!(shape, Shape::Grid) { grid } else { threads };
    let out = bench.gpu.zeros_named::<u32>("out", results as usize)?;
    let cycles = bench.gpu.zeros_named::<u32>("cycles", results as usize)?;
    let words = bench.gpu.zeros_named::<u32>("words", GRID_WORDS)?;
    let launch = Launch::grid(grid).block(threads);
    let kernel = module.kernel(kernel)?;
    match shape {
        Shape::Grid => bench.launch(&kernel, launch, args![&out, &cycles, rounds, &words])?,
        _ => bench.launch(&kernel, launch, args![&out, &cycles, rounds])?,
    }

    let slowest = cycles.read(bench.gpu)?.into_iter().max().unwrap_or(0);
    bench.figure("cycles_per_operation", slowest as f64 / operations(*shape, rounds, threads) as f64);
    Ok(equal("results", &out.read(bench.gpu)?, &expected(*shape, rounds, results)))
}

/// How many operations a launch performs one after the other.
fn operations(shape: Shape, rounds: u32, threads: u32) -> u64 {
    let rounds = rounds as u64;
    match shape {
        Shape::Alone | Shape::Fan | Shape::Block => rounds,
        Shape::Pair | Shape::Grid => 2 * rounds,
        Shape::Section => rounds * threads as u64,
    }
}

/// The expected output.
fn expected(shape: Shape, rounds: u32, results: u32) -> Vec<u32> {
    let all = |value: u32| vec![value; results as usize];
    match shape {
        Shape::Alone | Shape::Block | Shape::Grid => all(rounds),
        Shape::Pair => (0..results).map(|t| if t < 32 { 2 * rounds } else { 0 }).collect(),
        Shape::Section => all(rounds * results),
        Shape::Fan => {
            let sum = rounds * (rounds + 1) / 2;
            (0..results).map(|t| if t < 32 { sum * (results / 32 - 1) } else { sum }).collect()
        }
    }
}
