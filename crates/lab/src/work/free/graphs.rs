//! Breadth-first search with one launch per level.

use warploom::{Launch, Result, args};

use super::check::equal;
use super::{Bench, Check, Param, SEED, Values, Workload, ptx};
use crate::random::Random;

const VERTICES: Param = Param::new("vertices", "vertices of the graph", 4096).range(1, 1 << 24);
const DEGREE: Param = Param::new("degree", "most edges from a vertex", 8).range(1, 64);
const THREADS: Param = Param::new("threads", "threads of a CTA", 256).range(1, 1024);

pub(super) const WORKLOAD: Workload = Workload {
    name: "bfs",
    about: "breadth-first search of a random graph, a thread a vertex, a launch a level",
    params: &[VERTICES, DEGREE, THREADS, SEED],
    run,
};

/// The level of a vertex that was not reached.
const FAR: u32 = u32::MAX;

fn run(bench: &mut Bench<'_>, values: &Values) -> Result<Check> {
    let (n, degree): (usize, usize) = (values.get(&VERTICES), values.get(&DEGREE));
    let threads: u32 = values.get(&THREADS);
    let mut random = Random::new(values.get(&SEED));
    let (mut rows, mut columns) = (vec![0u32], Vec::new());
    for _ in 0..n {
        let edges = random.below(degree + 1);
        columns.extend((0..edges).map(|_| random.below(n) as u32));
        rows.push(columns.len() as u32);
    }
    let mut levels = vec![FAR; n];
    levels[0] = 0;

    let module = bench.load(ptx!("bfs"))?;
    let kernel = module.kernel("bfs")?;
    let rows_buffer = bench.gpu.buffer_named("rows", &rows)?;
    // The graph may have no edges, but a buffer has at least one word.
    let edges: &[u32] = if columns.is_empty() { &[0] } else { &columns };
    let columns_buffer = bench.gpu.buffer_named("columns", edges)?;
    let levels_buffer = bench.gpu.buffer_named("levels", &levels)?;
    let changed = bench.gpu.zeros_named::<u32>("changed", 1)?;
    for depth in 0..n as u32 {
        changed.write(bench.gpu, &[0])?;
        let launch = Launch::grid((n as u32).div_ceil(threads)).block(threads);
        let args = args![&rows_buffer, &columns_buffer, &levels_buffer, depth, &changed, n as u32];
        bench.launch(&kernel, launch, args)?;
        if changed.read(bench.gpu)? == [0] {
            break;
        }
    }

    let mut frontier = vec![0usize];
    for depth in 1.. {
        let mut next = Vec::new();
        for vertex in frontier {
            for &to in &columns[rows[vertex] as usize..rows[vertex + 1] as usize] {
                if levels[to as usize] == FAR {
                    levels[to as usize] = depth;
                    next.push(to as usize);
                }
            }
        }
        if next.is_empty() {
            break;
        }
        frontier = next;
    }
    Ok(equal("levels", &levels_buffer.read(bench.gpu)?, &levels))
}
