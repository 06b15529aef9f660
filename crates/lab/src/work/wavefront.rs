//! NW1 and NW2 of HPCA'18: Needleman-Wunsch in one launch. Each warp fills a strip of rows and waits at a flag for
//! the previous strip. NW1 goes from the upper left corner to the lower right, NW2 back. The paper gives no size.
//!
//! A warp waits only for warps of its own CTA or of CTAs with lower numbers, and chips start CTAs in the order of
//! their numbers. So every size ends, however few CTAs are resident.

use warploom::{Launch, Result, args};

use super::check::equal;
use super::{Bench, Check, Param, SEED, Values, Workload, ptx};
use crate::random::Random;

/// Range of the scores of two letters, as in usual substitution matrices.
const REFERENCE: std::ops::RangeInclusive<i32> = -4..=11;

/// Words between two rows of the kernel's tile.
const PITCH: u32 = 33;

const SIZE: Param = Param::new("size", "letters of a sequence, a row each", 1024).range(1, 16_384);
const COLUMNS: Param = Param::new("columns", "letters of the other one; 0: as many", 0).range(0, 16_384);
const PENALTY: Param = Param::new("penalty", "cost of a gap", 10).range(-1_000_000, 1_000_000);
// The kernel takes one barrier per warp, and a CTA has 16.
const WARPS: Param =
    Param::new("warps", "warps of a CTA, each with a strip of as many rows as lanes", 2).range(1, 8);

pub(super) const NW1: Workload = Workload {
    name: "nw1",
    about: "NW1: Needleman-Wunsch scores in one launch, a strip of rows a warp, waits for the strip above",
    params: &[SIZE, COLUMNS, PENALTY, WARPS, SEED],
    run: |bench, values| run(bench, values, Way::Forward),
};

pub(super) const NW2: Workload = Workload {
    name: "nw2",
    about: "NW2: the same from the lower right corner back, waits for the strip below",
    params: &[SIZE, COLUMNS, PENALTY, WARPS, SEED],
    run: |bench, values| run(bench, values, Way::Backward),
};

#[derive(Clone, Copy, PartialEq)]
enum Way {
    Forward,
    Backward,
}

fn run(bench: &mut Bench<'_>, values: &Values, way: Way) -> Result<Check> {
    let (size, penalty, warps): (u32, i32, u32) =
        (values.get(&SIZE), values.get(&PENALTY), values.get(&WARPS));
    let columns = match values.get(&COLUMNS) {
        0 => size,
        columns => columns,
    };
    let mut random = Random::new(values.get(&SEED));
    let (n, m) = (size as usize, columns as usize);
    let module = bench.load(ptx!("sync/wavefront"))?;
    let kernel = match way {
        Way::Forward => module.kernel("nw_forward")?,
        Way::Backward => module.kernel("nw_backward")?,
    };
    let lanes = bench.lanes(&kernel)?;
    let mut field: Vec<i32> = (0..n * m).map(|_| random.between(REFERENCE)).collect();
    let reference = bench.gpu.buffer_named("reference", &field)?;
    let mut expected = border(n, m, penalty);
    // Going back through a field is going forward through its mirror image.
    if way == Way::Backward {
        expected.reverse();
    }
    let scores = bench.gpu.buffer_named("scores", &expected)?;
    let strips = size.div_ceil(lanes);
    let done = bench.gpu.zeros_named::<u32>("done", strips as usize)?;
    let shared_bytes = 4 * warps * (lanes + 1) * PITCH;
    let launch = Launch::grid(strips.div_ceil(warps)).block(warps * lanes).shared_bytes(shared_bytes);
    bench.launch(&kernel, launch, args![&reference, &scores, size, columns, penalty, &done, lanes])?;

    if way == Way::Backward {
        expected.reverse();
        field.reverse();
    }
    align(&field, m, &mut expected, penalty);
    if way == Way::Backward {
        expected.reverse();
    }
    Ok(equal("scores", &scores.read(bench.gpu)?, &expected))
}

/// Scores of n+1 rows and m+1 columns, with the first row and column filled: i gaps cost i penalties.
fn border(n: usize, m: usize, penalty: i32) -> Vec<i32> {
    let side = m + 1;
    let mut scores = vec![0; (n + 1) * side];
    let gaps = |i: usize| penalty.wrapping_mul(-(i as i32));
    (1..side).for_each(|column| scores[column] = gaps(column));
    (1..=n).for_each(|row| scores[row * side] = gaps(row));
    scores
}

/// Fills the rest row by row. Integers wrap, as in the kernel.
fn align(field: &[i32], m: usize, scores: &mut [i32], penalty: i32) {
    let side = m + 1;
    for (row, gains) in field.chunks(m).enumerate() {
        for (column, gain) in gains.iter().enumerate() {
            let at = (row + 1) * side + column + 1;
            let pair = scores[at - side - 1].wrapping_add(*gain);
            let gap = scores[at - side].max(scores[at - 1]).wrapping_sub(penalty);
            scores[at] = pair.max(gap);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_alignments() {
        let mut scores = border(2, 2, 1);
        assert_eq!(scores, [0, -1, -2, -1, 0, 0, -2, 0, 0]);
        align(&[5, -4, -4, 5], 2, &mut scores, 1);
        assert_eq!(scores, [0, -1, -2, -1, 5, 4, -2, 4, 10]);
        let mut scores = border(1, 2, 1);
        align(&[-4, 5], 2, &mut scores, 1);
        assert_eq!(scores, [0, -1, -2, -1, -2, 4]);
    }
}
