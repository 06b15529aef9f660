//! Grids: heat (hot spot), speckle (SRAD), cheapest paths (path finder).

use warploom::{Launch, Result, args};

use super::check::{close, equal};
use super::{Bench, Check, Param, SEED, Values, Workload, ptx};
use crate::random::Random;

/// Threads of a CTA per dimension.
const TILE: u32 = 16;
/// Threads of a path finder CTA, one per column.
const SPAN: u32 = 256;

const SIZE: Param = Param::new("size", "rows of the grid", 64).range(1, 16_384);
const STEPS: Param = Param::new("steps", "steps of time", 2).range(1, 10_000);
const COLUMNS: Param = Param::new("columns", "columns of the field", 4096).range(1, 1 << 22);
const ROWS: Param = Param::new("rows", "rows of the field", 24).range(2, 4096);
const AT_ONCE: Param = Param::new("at_once", "rows a launch", 8).range(1, 100);

pub(super) const HOTSPOT: Workload = Workload {
    name: "hotspot",
    about: "hot spot: heat of a chip's floor plan, a 16x16 tile a CTA, a launch a step",
    params: &[SIZE, STEPS, SEED],
    run: hotspot,
};

pub(super) const SRAD: Workload = Workload {
    name: "srad",
    about: "SRAD: speckle taken out of an image, two launches a step",
    params: &[SIZE, STEPS, SEED],
    run: srad,
};

pub(super) const PATHFINDER: Workload = Workload {
    name: "pathfinder",
    about: "path finder: cheapest ways down a field, some rows a launch",
    params: &[COLUMNS, ROWS, AT_ONCE, SEED],
    run: pathfinder,
};

/// A square grid. A neighbour beyond the edge is the edge cell itself.
struct Grid<'a>(&'a [f32], usize);

impl Grid<'_> {
    /// The cell, and its neighbours in the west, east, north and south.
    fn around(&self, x: usize, y: usize) -> (f32, [f32; 4]) {
        let Grid(cells, n) = *self;
        let (right, down) = ((x + 1).min(n - 1), (y + 1).min(n - 1));
        let at = |x: usize, y: usize| cells[y * n + x];
        (at(x, y), [at(x.saturating_sub(1), y), at(right, y), at(x, y.saturating_sub(1)), at(x, down)])
    }

    fn map(&self, f: impl Fn(usize, usize) -> f32) -> Vec<f32> {
        (0..self.1 * self.1).map(|at| f(at % self.1, at / self.1)).collect()
    }
}

fn tiles(n: usize) -> Launch {
    let tiles = (n as u32).div_ceil(TILE);
    Launch::grid([tiles, tiles]).block([TILE, TILE])
}

fn hotspot(bench: &mut Bench<'_>, values: &Values) -> Result<Check> {
    let (n, steps): (usize, u32) = (values.get(&SIZE), values.get(&STEPS));
    let mut random = Random::new(values.get(&SEED));
    let mut heat: Vec<f32> = random.floats(n * n).into_iter().map(|v| 60.0 + 20.0 * v).collect();
    let power: Vec<f32> = random.floats(n * n).into_iter().map(|v| 0.1 * (1.0 + v)).collect();
    const RATE: f32 = 0.125;

    let module = bench.load(ptx!("free/grids"))?;
    let kernel = module.kernel("hotspot_step")?;
    let mut from = bench.gpu.buffer_named("heat", &heat)?;
    let mut to = bench.gpu.zeros_named::<f32>("next", n * n)?;
    let power_buffer = bench.gpu.buffer_named("power", &power)?;
    for _ in 0..steps {
        bench.launch(&kernel, tiles(n), args![&from, &power_buffer, &to, n as u32, RATE])?;
        std::mem::swap(&mut from, &mut to);
        let grid = Grid(&heat, n);
        heat = grid.map(|x, y| {
            let (here, around) = grid.around(x, y);
            here + RATE * (around.iter().sum::<f32>() - 4.0 * here) + power[y * n + x]
        });
    }
    Ok(close("cells", &from.read(bench.gpu)?, &heat, 1e-4))
}

fn srad(bench: &mut Bench<'_>, values: &Values) -> Result<Check> {
    let (n, steps): (usize, u32) = (values.get(&SIZE), values.get(&STEPS));
    let mut image: Vec<f32> =
        Random::new(values.get(&SEED)).floats(n * n).into_iter().map(|v| (0.3 * v).exp()).collect();
    const RATE: f32 = 0.5;
    const NOISE: f32 = 0.05;

    let module = bench.load(ptx!("free/grids"))?;
    let (first, second) = (module.kernel("srad_coefficients")?, module.kernel("srad_update")?);
    let mut from = bench.gpu.buffer_named("image", &image)?;
    let mut to = bench.gpu.zeros_named::<f32>("next", n * n)?;
    let spread_buffer = bench.gpu.zeros_named::<f32>("spread", n * n)?;
    for _ in 0..steps {
        bench.launch(&first, tiles(n), args![&from, &spread_buffer, n as u32, NOISE])?;
        bench.launch(&second, tiles(n), args![&from, &spread_buffer, &to, n as u32, RATE])?;
        std::mem::swap(&mut from, &mut to);
        let grid = Grid(&image, n);
        let spread = grid.map(|x, y| {
            let (here, around) = grid.around(x, y);
            let gradient = around.iter().map(|v| (v - here).powi(2)).sum::<f32>() / (here * here);
            let laplace = around.iter().map(|v| v - here).sum::<f32>() / here;
            let q = (0.5 * gradient - 0.0625 * laplace * laplace) / (1.0 + 0.25 * laplace).powi(2);
            (1.0 / (1.0 + (q - NOISE) / (NOISE * (1.0 + NOISE)))).clamp(0.0, 1.0)
        });
        let coefficients = Grid(&spread, n);
        image = grid.map(|x, y| {
            let (here, [west, east, north, south]) = grid.around(x, y);
            let (c, [_, c_east, _, c_south]) = coefficients.around(x, y);
            let sum = c * (west - here + north - here) + c_east * (east - here) + c_south * (south - here);
            here + 0.25 * RATE * sum
        });
    }
    Ok(close("pixels", &from.read(bench.gpu)?, &image, 1e-3))
}

fn pathfinder(bench: &mut Bench<'_>, values: &Values) -> Result<Check> {
    let (columns, rows): (usize, usize) = (values.get(&COLUMNS), values.get(&ROWS));
    let at_once: u32 = values.get(&AT_ONCE);
    let mut random = Random::new(values.get(&SEED));
    let weights: Vec<u32> = (0..columns * rows).map(|_| random.below(10) as u32).collect();

    let module = bench.load(ptx!("free/grids"))?;
    let kernel = module.kernel("pathfinder_rows")?;
    let weights_buffer = bench.gpu.buffer_named("weights", &weights)?;
    let mut from = bench.gpu.buffer_named("costs", &weights[..columns])?;
    let mut to = bench.gpu.zeros_named::<u32>("next", columns)?;
    let (mut row, width) = (1, columns as u32);
    while row < rows as u32 {
        let more = at_once.min(rows as u32 - row);
        let launch = Launch::grid(width.div_ceil(SPAN - 2 * more)).block(SPAN);
        bench.launch(&kernel, launch, args![&weights_buffer, &from, &to, width, row, more])?;
        std::mem::swap(&mut from, &mut to);
        row += more;
    }

    let mut costs = weights[..columns].to_vec();
    for row in weights.chunks(columns).skip(1) {
        let best =
            |c: usize| costs[c.saturating_sub(1)..(c + 2).min(columns)].iter().min().copied().unwrap_or(0);
        costs = row.iter().enumerate().map(|(c, weight)| weight + best(c)).collect();
    }
    Ok(equal("costs", &from.read(bench.gpu)?, &costs))
}
