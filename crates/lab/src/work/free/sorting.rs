//! Merge sort: tiles in shared memory, then merges of ever longer sequences. Its loop counters grow by powers of two.

use warploom::{Launch, Result, args};

use super::check::equal;
use super::{Bench, Check, Param, SEED, Values, Workload, ptx};
use crate::random::Random;

/// Keys of the kernel's tile.
const TILE: u32 = 1024;

const KEYS: Param = Param::new("keys", "keys to sort", 16_384).range(1, 1 << 26);
const CTAS: Param =
    Param::new("ctas", "CTAs of a merge; a power of two makes loops grow by powers of two", 4);
const THREADS: Param = Param::new("threads", "threads of a CTA", 256).range(1, 1024);

pub(super) const WORKLOAD: Workload = Workload {
    name: "mergesort",
    about: "merge sort: tiles in shared memory, then merges of pairs of runs",
    params: &[KEYS, CTAS, THREADS, SEED],
    run,
};

fn run(bench: &mut Bench<'_>, values: &Values) -> Result<Check> {
    let (count, ctas, threads): (u32, u32, u32) =
        (values.get(&KEYS), values.get(&CTAS), values.get(&THREADS));
    let mut keys = Random::new(values.get(&SEED)).words(count as usize);

    let module = bench.load(ptx!("free/mergesort"))?;
    let mut from = bench.gpu.buffer_named("keys", &keys)?;
    let mut to = bench.gpu.zeros_named::<u32>("merged", count as usize)?;
    let bounds = bench.gpu.buffer_named("bounds", &[u32::MAX, 0])?;
    let launch = || Launch::grid(ctas).block(threads);
    bench.launch(&module.kernel("mergesort_bounds")?, launch(), args![&from, count, &bounds])?;
    let tiles = Launch::grid(count.div_ceil(TILE)).block(threads);
    bench.launch(&module.kernel("mergesort_tiles")?, tiles, args![&from, count])?;
    let merge = module.kernel("mergesort_merge")?;
    let mut width = TILE;
    while width < count {
        bench.launch(&merge, launch(), args![&from, &to, count, width])?;
        std::mem::swap(&mut from, &mut to);
        width *= 2;
    }

    keys.sort_unstable();
    let ends = [keys[0], keys[keys.len() - 1]];
    let right = equal("bounds", &bounds.read(bench.gpu)?, &ends);
    Ok(match right {
        Ok(_) => equal("keys", &from.read(bench.gpu)?, &keys),
        wrong => wrong,
    })
}
