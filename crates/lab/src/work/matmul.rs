//! The product of two square matrices in 16x16 tiles: shared memory and barriers.

use multiversion::multiversion;
use warploom::{Launch, Result, args};

use super::check::equal;
use super::{Bench, Check, Param, SEED, Values, Workload, ptx};
use crate::random::Random;

/// Rows and columns of the kernel's tile.
const TILE: u32 = 16;

const SIZE: Param = Param::new("size", "rows of a matrix", 256).range(16, 16_384).multiple_of(TILE as i64);

pub(super) const WORKLOAD: Workload = Workload {
    name: "matmul",
    about: "the product of two square matrices, a 16x16 tile a CTA",
    params: &[SIZE, SEED],
    run,
};

fn run(bench: &mut Bench<'_>, values: &Values) -> Result<Check> {
    let size: u32 = values.get(&SIZE);
    let n = size as usize;
    let mut random = Random::new(values.get(&SEED));
    let (xs, ys) = (random.floats(n * n), random.floats(n * n));

    let module = bench.load(ptx!("matmul"))?;
    let (a, b, c) = (bench.gpu.buffer(&xs)?, bench.gpu.buffer(&ys)?, bench.gpu.zeros::<f32>(n * n)?);
    let launch = Launch::grid([size / TILE, size / TILE]).block([TILE, TILE]);
    bench.launch(&module.kernel("matmul")?, launch, args![&a, &b, &c, size])?;

    Ok(equal("elements", &c.read(bench.gpu)?, &product(&xs, &ys, n)))
}

/// The product rounded as in the kernel: one fused multiply-add per step, in order of k. Without an instruction for it,
/// each is a call.
#[multiversion(targets("x86_64+avx2+fma"))]
pub(super) fn product(xs: &[f32], ys: &[f32], n: usize) -> Vec<f32> {
    let mut sums = vec![0.0f32; n * n];
    for (x_row, sum_row) in xs.chunks(n).zip(sums.chunks_mut(n)) {
        for (x, y_row) in x_row.iter().zip(ys.chunks(n)) {
            for (sum, y) in sum_row.iter_mut().zip(y_row) {
                *sum = x.mul_add(*y, *sum);
            }
        }
    }
    sums
}
