//! The sum of two vectors: one addition per thread, so only memory matters.

use warploom::{Launch, Result, args};

use super::check::equal;
use super::{Bench, Check, Param, SEED, Values, Workload, ptx};
use crate::random::Random;

const SIZE: Param = Param::new("size", "floats of a vector", 1 << 20).range(1, 1 << 28);
const THREADS: Param = Param::new("threads", "threads of a CTA", 256).range(1, 1024);

pub(super) const WORKLOAD: Workload = Workload {
    name: "vecadd",
    about: "the sum of two vectors, an element a thread",
    params: &[SIZE, THREADS, SEED],
    run,
};

fn run(bench: &mut Bench<'_>, values: &Values) -> Result<Check> {
    let (n, threads): (u32, u32) = (values.get(&SIZE), values.get(&THREADS));
    let mut random = Random::new(values.get(&SEED));
    let (xs, ys) = (random.floats(n as usize), random.floats(n as usize));

    let module = bench.load(ptx!("vecadd"))?;
    let (a, b, c) = (bench.gpu.buffer(&xs)?, bench.gpu.buffer(&ys)?, bench.gpu.zeros::<f32>(n as usize)?);
    let launch = Launch::grid(n.div_ceil(threads)).block(threads);
    bench.launch(&module.kernel("vecadd")?, launch, args![&a, &b, &c, n])?;

    let sums: Vec<f32> = xs.iter().zip(&ys).map(|(x, y)| x + y).collect();
    Ok(equal("sums", &c.read(bench.gpu)?, &sums))
}
