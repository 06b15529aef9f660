//! The versions of the computation, and how each is launched.

use warploom::{Buffer, Error, Kernel, Launch, Module, Result, args};

use super::lock_room::{self, Cta};
use super::problem::Problem;
use crate::work::{Bench, ptx};

/// In the order of [`Version`].
pub(super) const NAMES: &[&str] = &["data-parallel", "atomic", "tiny", "private", "multi", "grid"];

/// How the threads of a tile compute its scores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Version {
    /// One warp per tile, with a barrier after each anti-diagonal.
    DataParallel,
    /// One thread per cell. Threads wait with atomic spin locks.
    Atomic,
    /// One thread per cell. Threads wait with lock bits, and consumers share a channel. Tiles have `tile` cells per
    /// side.
    Tiny { tile: u32 },
    /// As [`Tiny`](Version::Tiny), with one channel and one lock bit per consumer.
    Private { tile: u32 },
    /// One thread per `cells` cells of a row, in step with its neighbours in the warp, and one lock bit for the next
    /// warp.
    Multi { cells: u32 },
    /// As [`Multi`](Version::Multi), with all tiles in one launch, in which they wait for each other.
    Grid { cells: u32 },
}

/// What is launched for a version.
struct Plan {
    module: (&'static str, &'static str),
    /// Base name of the kernels, without the suffix `_grow` or `_shrink`.
    kernel: String,
    tile: u32,
    block: (u32, u32),
    /// Lock bits per tile.
    lock_words: u32,
}

impl Version {
    fn plan(self) -> Plan {
        let plan = |module, kernel: &str, tile, block, lock_words| Plan {
            module,
            kernel: kernel.to_string(),
            tile,
            block,
            lock_words,
        };
        let small = |tile| if tile == 15 { "15" } else { "" };
        match self {
            Version::DataParallel => plan(ptx!("nw"), "nw", 31, (32, 1), 0),
            Version::Atomic => plan(ptx!("nw_atomic"), "nw_atomic", 31, (32, 32), 0),
            Version::Tiny { tile } => {
                let side = tile + 1;
                plan(ptx!("nw_tiny"), &format!("nw_tiny{}", small(tile)), tile, (side, side), side * side)
            }
            Version::Private { tile } => {
                let (side, name) = (tile + 1, format!("nw_private{}", small(tile)));
                plan(ptx!("nw_tiny"), &name, tile, (side, side), 3 * side * side)
            }
            Version::Multi { cells } => {
                plan(ptx!("nw_pipe"), &format!("nw_pipe{cells}"), 31, (32, 32 / cells), 1024 / cells)
            }
            Version::Grid { cells } => {
                plan(ptx!("nw_pipe"), &format!("nw_grid{cells}"), 31, (32, 32 / cells), 1024 / cells)
            }
        }
    }

    pub(super) fn needs_lock_bits(self) -> bool {
        self.plan().lock_words > 0
    }
}

/// Computes the scores of a problem.
pub(crate) fn solve(bench: &mut Bench<'_>, problem: &Problem, version: Version) -> Result<Vec<i32>> {
    let plan = version.plan();
    if plan.lock_words > 0 && bench.gpu.is_real() {
        let device = bench.gpu.name();
        let message =
            format!("`{}` waits with lock bits, which only simulated chips have, not {device}", plan.kernel);
        return Err(Error::Link(message));
    }
    let gains = bench.gpu.buffer_named("gains", &problem.gains)?;
    let scores = bench.gpu.buffer_named("scores", &problem.border())?;
    let module = bench.load(plan.module)?;
    let tiles =
        Tiles { rows: problem.rows.div_ceil(plan.tile), columns: problem.columns.div_ceil(plan.tile) };
    match version {
        Version::Grid { .. } => at_once(bench, problem, &plan, &module, &tiles, (&gains, &scores))?,
        _ => by_diagonals(bench, problem, &plan, &module, &tiles, (&gains, &scores))?,
    }
    scores.read(bench.gpu)
}

/// The grid of tiles of a problem.
struct Tiles {
    rows: u32,
    columns: u32,
}

impl Tiles {
    /// The anti-diagonals from upper left to lower right: row and column of the lowest tile, and the number of tiles
    /// from there upwards.
    fn diagonals(&self) -> impl Iterator<Item = (u32, u32, u32)> {
        let (rows, columns) = (self.rows, self.columns);
        let grow = (0..rows).map(move |row| (row, 0, columns.min(row + 1)));
        grow.chain((1..columns).map(move |column| (rows - 1, column, rows.min(columns - column))))
    }
}

/// Gains and scores.
type Buffers<'a> = (&'a Buffer<i32>, &'a Buffer<i32>);

/// One launch per anti-diagonal of tiles: first those that start in the first column, then those that start in the
/// last row.
fn by_diagonals(
    bench: &mut Bench<'_>,
    problem: &Problem,
    plan: &Plan,
    module: &Module,
    tiles: &Tiles,
    (gains, scores): Buffers<'_>,
) -> Result<()> {
    let (grow, shrink) = (
        module.kernel(&format!("{}_grow", plan.kernel))?,
        module.kernel(&format!("{}_shrink", plan.kernel))?,
    );
    let padding = padding(bench, plan, &grow)?;
    for (row, column, count) in tiles.diagonals() {
        let (kernel, first) = if column == 0 { (&grow, row) } else { (&shrink, column) };
        let launch = Launch::grid(count).block(plan.block).shared_bytes(padding);
        let Problem { rows, columns, penalty, .. } = problem;
        bench.launch(kernel, launch, args![gains, scores, *rows, *columns, *penalty, first])?;
    }
    Ok(())
}

/// One launch with as many CTAs as are resident together. Each takes tiles until none is left.
fn at_once(
    bench: &mut Bench<'_>,
    problem: &Problem,
    plan: &Plan,
    module: &Module,
    tiles: &Tiles,
    (gains, scores): Buffers<'_>,
) -> Result<()> {
    let kernel = module.kernel(&plan.kernel)?;
    let mut order = Vec::new();
    for (row, column, count) in tiles.diagonals() {
        order.extend((0..count).map(|up| (row - up) << 16 | (column + up)));
    }
    let count = order.len() as u32;
    let order = bench.gpu.buffer_named("order", &order)?;
    let next = bench.gpu.zeros_named::<u32>("next", 1)?;
    let finished = bench.gpu.zeros_named::<u32>("finished", count as usize)?;

    let launch = Launch::grid(1).block(plan.block).shared_bytes(padding(bench, plan, &kernel)?);
    let sms = bench.gpu.chip().map_or(1, |chip| chip.sm.count);
    let resident = bench.gpu.occupancy(&kernel, &launch)?.ctas_per_sm * sms;
    let launch = Launch { grid: [resident.clamp(1, count), 1, 1], ..launch };
    let Problem { rows, columns, penalty, .. } = problem;
    bench.launch(
        &kernel,
        launch,
        args![gains, scores, *rows, *columns, *penalty, &order, count, &next, &finished],
    )
}

/// See [`lock_room`].
fn padding(bench: &Bench<'_>, plan: &Plan, kernel: &Kernel) -> Result<u32> {
    match bench.gpu.chip() {
        Some(chip) if plan.lock_words > 0 => {
            let cta = Cta {
                kernel: kernel.name(),
                shared_bytes: kernel.info().static_shared_bytes,
                threads: plan.block.0 * plan.block.1,
                lock_words: plan.lock_words,
            };
            lock_room::padding(chip, cta)
        }
        _ => Ok(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn diagonals_have_every_tile_once() {
        for (rows, columns) in [(1, 1), (3, 3), (2, 5), (5, 2), (1, 4), (4, 1)] {
            let mut seen: Vec<_> = Tiles { rows, columns }
                .diagonals()
                .flat_map(|(row, column, count)| (0..count).map(move |up| (row - up, column + up)))
                .collect();
            seen.sort();
            let all: Vec<_> =
                (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column))).collect();
            assert_eq!(seen, all, "{rows} x {columns}");
        }
    }
}
