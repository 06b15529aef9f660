//! Needleman-Wunsch, data-parallel: one launch an anti-diagonal of tiles, first growing, then shrinking.

use warploom::{Launch, Result, args};

use super::check::equal;
use super::{Bench, Check, Param, SEED, Values, Workload, ptx};
use crate::random::Random;

/// Rows and columns of the kernel's tile, and the threads that fill one.
const TILE: u32 = 31;
const THREADS: u32 = TILE + 1;

/// Scores of two letters lie between these, as in the usual substitution matrices.
const REFERENCE: std::ops::RangeInclusive<i32> = -4..=11;

const SIZE: Param = Param::new("size", "letters of a sequence", 496).range(1, 16_384);
const PENALTY: Param = Param::new("penalty", "cost of a gap", 10).range(-1_000_000, 1_000_000);

pub(super) const WORKLOAD: Workload = Workload {
    name: "nw",
    about: "Needleman-Wunsch scores of two sequences, a 31x31 tile a CTA, a launch an anti-diagonal",
    params: &[SIZE, PENALTY, SEED],
    run,
};

fn run(bench: &mut Bench<'_>, values: &Values) -> Result<Check> {
    let (size, penalty): (u32, i32) = (values.get(&SIZE), values.get(&PENALTY));
    let mut random = Random::new(values.get(&SEED));
    let n = size as usize;
    let field: Vec<i32> = (0..n * n).map(|_| random.between(REFERENCE)).collect();
    let first = border(n, penalty);

    let module = bench.load(ptx!("nw"))?;
    let (grow, shrink) = (module.kernel("nw_grow")?, module.kernel("nw_shrink")?);
    let reference = bench.gpu.buffer_named("reference", &field)?;
    let scores = bench.gpu.buffer_named("scores", &first)?;
    let tiles = size.div_ceil(TILE);
    let diagonals = (1..=tiles).map(|d| (&grow, d)).chain((1..tiles).rev().map(|d| (&shrink, d)));
    for (kernel, ctas) in diagonals {
        let launch = Launch::grid(ctas).block(THREADS);
        bench.launch(kernel, launch, args![&reference, &scores, size, penalty])?;
    }

    Ok(equal("scores", &scores.read(bench.gpu)?, &align(&field, first, penalty)))
}

/// Scores of n+1 rows and columns, of which the first are filled: i gaps cost i penalties.
fn border(n: usize, penalty: i32) -> Vec<i32> {
    let side = n + 1;
    let mut scores = vec![0; side * side];
    for i in 1..side {
        scores[i] = penalty.wrapping_mul(-(i as i32));
        scores[i * side] = scores[i];
    }
    scores
}

/// Fills the rest, row by row. Like the kernel's, its integers wrap.
fn align(field: &[i32], mut scores: Vec<i32>, penalty: i32) -> Vec<i32> {
    let n = field.len().isqrt();
    let side = n + 1;
    for row in 1..side {
        for column in 1..side {
            let at = row * side + column;
            let pair = scores[at - side - 1].wrapping_add(field[(row - 1) * n + column - 1]);
            let gap = scores[at - side].max(scores[at - 1]).wrapping_sub(penalty);
            scores[at] = pair.max(gap);
        }
    }
    scores
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_textbook_alignment() {
        // GAT against GT: a match is 1, a mismatch -1, a gap -1; padded to a square with a letter that matches nothing.
        let score = |a: u8, b: u8| if a == b { 1 } else { -1 };
        let field: Vec<i32> = b"GAT".iter().flat_map(|&a| b"GT.".map(|b| score(a, b))).collect();
        let scores = align(&field, border(3, 1), 1);
        #[rustfmt::skip]
        assert_eq!(scores, [
             0, -1, -2, -3,
            -1,  1,  0, -1,
            -2,  0,  0, -1,
            -3, -1,  1,  0,
        ]);
    }
}
