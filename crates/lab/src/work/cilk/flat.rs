//! Queens without tasks: the host places the first queens, and each thread counts the completions of one board.

use warploom::{Launch, Result, args};

use super::queens::{Board, N};
use crate::work::{Bench, Check, Param, Values, Workload, equal, ptx};

const PLACED: Param = Param::new("placed", "queens that the host places", 4).range(1, 8);

/// Threads per CTA, as in the kernel.
const THREADS: usize = 128;

pub(in crate::work) const WORKLOAD: Workload = Workload {
    name: "queens_flat",
    about: "placements of queens without tasks: the first rows by the host, a thread a board",
    params: &[N, PLACED],
    run,
};

fn run(bench: &mut Bench<'_>, values: &Values) -> Result<Check> {
    let (n, placed): (u32, u32) = (values.get(&N), values.get(&PLACED));
    let placed = placed.min(n - 1);
    let mut boards = vec![Board::default()];
    for _ in 0..placed {
        boards = boards.into_iter().flat_map(|board| board.next(n)).collect();
    }
    let words: Vec<[u32; 3]> = boards.iter().map(|b| [b.columns, b.left, b.right]).collect();
    let blocks = words.len().div_ceil(THREADS).max(1);
    let boards = bench.gpu.buffer_named("boards", &words)?;
    let results = bench.gpu.zeros_named::<u32>("results", blocks)?;
    let module = bench.load(ptx!("flow/queens_flat"))?;
    let launch = Launch::grid(blocks).block(THREADS);
    let kernel = module.kernel("queens_flat")?;
    bench.launch(&kernel, launch, args![&boards, words.len() as u32, n, n - placed, &results])?;
    let found: u32 = results.read(bench.gpu)?.iter().sum();
    Ok(equal("counts of placements", &[found], &[Board::default().solutions(n, n)]))
}
