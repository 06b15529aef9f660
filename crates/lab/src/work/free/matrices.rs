//! Matrices: LU decomposition in blocks, Gaussian elimination.

use warploom::{Launch, Result, args};

use super::check::close;
use super::{Bench, Check, Param, SEED, Values, Workload, ptx};
use crate::random::Random;

/// Rows of a block of the decomposition.
const BLOCK: u32 = 16;

const ROWS: Param = Param::new("size", "rows of the matrix", 64).range(16, 4096).multiple_of(BLOCK as i64);
const EQUATIONS: Param = Param::new("size", "equations", 32).range(2, 4096);

pub(super) const LUD: Workload = Workload {
    name: "lud",
    about: "LU decomposition in 16x16 blocks: diagonal, perimeter, the rest",
    params: &[ROWS, SEED],
    run: lud,
};

pub(super) const GAUSSIAN: Workload = Workload {
    name: "gaussian",
    about: "Gaussian elimination: two launches a row",
    params: &[EQUATIONS, SEED],
    run: gaussian,
};

/// Diagonally dominant, so that no pivoting is needed.
fn matrix(random: &mut Random, n: usize) -> Vec<f32> {
    let mut a = random.floats(n * n);
    (0..n).for_each(|i| a[i * n + i] += n as f32);
    a
}

fn lud(bench: &mut Bench<'_>, values: &Values) -> Result<Check> {
    let size: u32 = values.get(&ROWS);
    let n = size as usize;
    let mut a = matrix(&mut Random::new(values.get(&SEED)), n);

    let module = bench.load(ptx!("free/matrices"))?;
    let [diagonal, perimeter, internal] =
        [module.kernel("lud_diagonal")?, module.kernel("lud_perimeter")?, module.kernel("lud_internal")?];
    let buffer = bench.gpu.buffer_named("matrix", &a)?;
    for at in (0..size).step_by(BLOCK as usize) {
        bench.launch(&diagonal, Launch::grid(1).block(BLOCK), args![&buffer, size, at])?;
        let rest = (size - at) / BLOCK - 1;
        if rest > 0 {
            bench.launch(&perimeter, Launch::grid(2 * rest).block(BLOCK), args![&buffer, size, at])?;
            let launch = Launch::grid([rest, rest]).block([BLOCK, BLOCK]);
            bench.launch(&internal, launch, args![&buffer, size, at])?;
        }
    }

    for k in 0..n {
        let (above, below) = a.split_at_mut((k + 1) * n);
        let pivot = &above[k * n..];
        for row in below.chunks_mut(n) {
            row[k] /= pivot[k];
            let factor = row[k];
            row[k + 1..].iter_mut().zip(&pivot[k + 1..]).for_each(|(v, p)| *v -= factor * p);
        }
    }
    Ok(close("elements", &buffer.read(bench.gpu)?, &a, 1e-4))
}

fn gaussian(bench: &mut Bench<'_>, values: &Values) -> Result<Check> {
    let size: u32 = values.get(&EQUATIONS);
    let n = size as usize;
    let mut random = Random::new(values.get(&SEED));
    let a = matrix(&mut random, n);
    let solution = random.floats(n);
    let right: Vec<f32> =
        a.chunks(n).map(|row| row.iter().zip(&solution).map(|(a, x)| a * x).sum()).collect();

    let module = bench.load(ptx!("free/matrices"))?;
    let (factors_of, eliminate) = (module.kernel("gaussian_factors")?, module.kernel("gaussian_eliminate")?);
    let a_buffer = bench.gpu.buffer_named("matrix", &a)?;
    let right_buffer = bench.gpu.buffer_named("right", &right)?;
    let factors = bench.gpu.zeros_named::<f32>("factors", n)?;
    for k in 0..size - 1 {
        let rows = size - 1 - k;
        let launch = Launch::grid(rows.div_ceil(256)).block(256);
        bench.launch(&factors_of, launch, args![&a_buffer, &factors, size, k])?;
        let launch = Launch::grid([(rows + 1).div_ceil(BLOCK), rows.div_ceil(BLOCK)]).block([BLOCK, BLOCK]);
        bench.launch(&eliminate, launch, args![&a_buffer, &right_buffer, &factors, size, k])?;
    }

    // An upper triangle remains; substitute backwards.
    let (a, mut x) = (a_buffer.read(bench.gpu)?, right_buffer.read(bench.gpu)?);
    for i in (0..n).rev() {
        let known: f32 = (i + 1..n).map(|j| a[i * n + j] * x[j]).sum();
        x[i] = (x[i] - known) / a[i * n + i];
    }
    Ok(close("unknowns", &x, &solution, 1e-3))
}
