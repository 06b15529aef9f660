//! Data-parallel kernels: sums, products, sorts, searches.

use warploom::{Launch, args};

use crate::support::{Outcome, Random, Run, close, same, same_f32, widened};

/// (elements, threads per CTA, CTAs).
const LINES: [(usize, u32, u32); 6] =
    [(1, 1, 1), (100, 32, 4), (1000, 96, 11), (1025, 512, 3), (333, 7, 48), (40, 64, 2)];

/// Floats with interesting rounding and signs, then plain ones.
pub(super) fn vectors(n: usize, subnormals: bool) -> (Vec<f32>, Vec<f32>) {
    let mut random = Random::new(n as u64);
    let (mut a, mut b) = (random.floats(n, 100.0), random.floats(n, 1e-3));
    let tiny = if subnormals { 1e-40 } else { 1e-30 };
    let special = [
        (0.0, -0.0),
        (-0.0, -0.0),
        (f32::INFINITY, 1.0),
        (f32::MAX, f32::MAX),
        (tiny, tiny),
        (f32::MIN_POSITIVE, -0.75 * f32::MIN_POSITIVE),
        (1.0, f32::EPSILON / 2.0),
        (1.0 + f32::EPSILON, f32::EPSILON / 2.0),
    ];
    if n >= 40 {
        let fitting = special.iter().take(if subnormals { special.len() } else { 4 });
        for (at, &(x, y)) in fitting.enumerate() {
            (a[at], b[at]) = (x, y);
        }
    }
    (a, b)
}

pub(super) fn vecadd(run: &mut Run) -> Outcome {
    for (n, threads, ctas) in LINES {
        let (xs, ys) = vectors(n, run.exact);
        let (a, b) = (run.gpu.buffer(&xs)?, run.gpu.buffer(&ys)?);
        // Threads with an index beyond n must write nothing.
        let c = run.gpu.buffer(&vec![-7.0f32; n + 8])?;
        run.launch(Launch::grid(ctas).block(threads), args![&a, &b, &c, n as u32])?;
        let mut expected: Vec<f32> = xs.iter().zip(&ys).map(|(x, y)| x + y).collect();
        expected.extend([-7.0; 8]);
        same_f32("c", &c.read(&run.gpu)?, &expected)?;
    }
    Ok(())
}

pub(super) fn matmul(run: &mut Run) -> Outcome {
    for n in [16usize, 64] {
        let mut random = Random::new(n as u64);
        let (xs, ys) = (random.floats(n * n, 2.0), random.floats(n * n, 2.0));
        let (a, b, c) = (run.gpu.buffer(&xs)?, run.gpu.buffer(&ys)?, run.gpu.buffer(&vec![9.0f32; n * n])?);
        run.launch(Launch::grid((n / 16, n / 16)).block((16, 16)), args![&a, &b, &c, n as u32])?;
        let product = |at: usize| {
            let (row, column) = (at / n, at % n);
            (0..n).fold(0.0f32, |sum, k| xs[row * n + k].mul_add(ys[k * n + column], sum))
        };
        let expected: Vec<f32> = (0..n * n).map(product).collect();
        let got = c.read(&run.gpu)?;
        if run.exact {
            same_f32("c", &got, &expected)?;
        } else {
            close("c", &widened(&got), &widened(&expected), 1e-5)?;
        }
    }
    Ok(())
}

/// Checks any sum kernel with these numbers of threads per CTA.
pub(super) fn reduce_with(run: &mut Run, threads: &[u32]) -> Outcome {
    for &threads in threads {
        for (n, ctas) in [(1usize, 1u32), (1000, 1), (777, 5), (5000, 20)] {
            let values = Random::new(n as u64).words(n);
            let (input, out) = (run.gpu.buffer(&values)?, run.gpu.buffer(&[5u32])?);
            run.launch(Launch::grid(ctas).block(threads), args![&input, &out, n as u32])?;
            let expected = values.iter().fold(5u32, |sum, v| sum.wrapping_add(*v));
            same(&format!("T = {threads}, G = {ctas}, n = {n}: out"), &out.read(&run.gpu)?, &[expected])?;
        }
    }
    Ok(())
}

pub(super) fn reduce(run: &mut Run) -> Outcome {
    reduce_with(run, &[32, 96, 256])
}

pub(super) fn scan(run: &mut Run) -> Outcome {
    for n in [1usize, 256, 1000, 3000] {
        let values = Random::new(n as u64).words(n);
        let ctas = n.div_ceil(256);
        let input = run.gpu.buffer(&values)?;
        let (out, sums) = (run.gpu.buffer(&vec![1u32; n])?, run.gpu.buffer(&vec![1u32; ctas])?);
        run.launch(Launch::grid(ctas).block(256), args![&input, &out, &sums, n as u32])?;
        let running = |block: &[u32]| -> Vec<u32> {
            let add = |sum: &mut u32, v: &u32| {
                *sum = sum.wrapping_add(*v);
                Some(*sum)
            };
            block.iter().scan(0, add).collect()
        };
        let expected: Vec<Vec<u32>> = values.chunks(256).map(running).collect();
        same("out", &out.read(&run.gpu)?, &expected.concat())?;
        let totals: Vec<u32> = expected.iter().map(|block| block[block.len() - 1]).collect();
        same("block_sums", &sums.read(&run.gpu)?, &totals)?;
    }
    Ok(())
}

/// Bytes, many of them equal, and how often each value occurs.
pub(super) fn bytes_and_bins(n: usize) -> (Vec<u8>, Vec<u32>) {
    let mut random = Random::new(n as u64);
    let bytes: Vec<u8> =
        (0..n).map(|_| if random.below(3) == 0 { 42 } else { random.word() as u8 }).collect();
    let mut bins = vec![0; 256];
    bytes.iter().for_each(|&v| bins[v as usize] += 1);
    (bytes, bins)
}

pub(super) fn histogram(run: &mut Run) -> Outcome {
    for (n, threads, ctas) in [(1usize, 1u32, 1u32), (1000, 37, 3), (4000, 256, 12), (100, 512, 2)] {
        let (bytes, expected) = bytes_and_bins(n);
        let (input, bins) = (run.gpu.buffer(&bytes)?, run.gpu.zeros::<u32>(256)?);
        run.launch(Launch::grid(ctas).block(threads), args![&input, &bins, n as u32])?;
        same("bins", &bins.read(&run.gpu)?, &expected)?;
    }
    Ok(())
}

pub(super) fn bitonic(run: &mut Run) -> Outcome {
    for (segment, ctas) in [(2usize, 20u32), (16, 3), (128, 9), (2048, 1)] {
        let values = Random::new(segment as u64).words(segment * ctas as usize);
        let data = run.gpu.buffer(&values)?;
        let launch = Launch::grid(ctas).block(segment / 2).shared_bytes(4 * segment as u32);
        run.launch(launch, args![&data, segment as u32])?;
        let mut expected = values;
        expected.chunks_mut(segment).for_each(|part| part.sort_unstable());
        same("data", &data.read(&run.gpu)?, &expected)?;
    }
    Ok(())
}

pub(super) fn nbody(run: &mut Run) -> Outcome {
    let eps2 = 0.01f32;
    for (n, threads) in [(1usize, 1u32), (100, 33), (130, 64), (300, 256)] {
        let mut random = Random::new(n as u64);
        let bodies: Vec<[f32; 4]> = (0..n)
            .map(|_| {
                std::array::from_fn(|k| {
                    if k == 3 { 0.5 + random.unit().abs() as f32 } else { random.unit() as f32 }
                })
            })
            .collect();
        let (positions, accelerations) = (run.gpu.buffer(&bodies)?, run.gpu.buffer(&vec![[9.0f32; 4]; n])?);
        let ctas = n.div_ceil(threads as usize);
        run.launch(Launch::grid(ctas).block(threads), args![&positions, &accelerations, n as u32, eps2])?;
        let pull = |me: &[f32; 4]| {
            let mut sum = [0.0f64; 4];
            for other in &bodies {
                let d: [f64; 3] = std::array::from_fn(|k| f64::from(other[k]) - f64::from(me[k]));
                let r2 = d.iter().map(|c| c * c).sum::<f64>() + f64::from(eps2);
                (0..3).for_each(|k| sum[k] += f64::from(other[3]) * d[k] / r2.powf(1.5));
            }
            sum
        };
        let expected: Vec<f64> = bodies.iter().flat_map(pull).collect();
        // Terms of both signs cancel: each is at most 1.5 * 0.4 / eps2.
        close("acc", &widened(&accelerations.read(&run.gpu)?.concat()), &expected, 2e-4)?;
    }
    Ok(())
}

pub(super) fn bfs(run: &mut Run) -> Outcome {
    const UNSEEN: u32 = u32::MAX;
    let n = 300usize;
    let mut random = Random::new(7);
    let (mut row, mut col) = (vec![0u32], Vec::new());
    for vertex in 0..n as u32 {
        // The last vertices have no incoming edges, so some stay unvisited.
        let degree = random.below(4) + u32::from(vertex % 50 == 0) * 40;
        col.extend((0..degree).map(|_| random.below(n as u32 - 10)));
        row.push(col.len() as u32);
    }
    let mut level = vec![UNSEEN; n];
    level[0] = 0;
    let (rows, cols, levels) = (run.gpu.buffer(&row)?, run.gpu.buffer(&col)?, run.gpu.buffer(&level)?);
    let changed = run.gpu.zeros::<u32>(1)?;
    for depth in 0.. {
        changed.write(&mut run.gpu, &[0])?;
        let launch = Launch::grid(n.div_ceil(48)).block(48);
        run.launch(launch, args![&rows, &cols, &levels, depth, &changed, n as u32])?;
        let mut any = 0;
        for v in (0..n).filter(|&v| level[v] == depth).collect::<Vec<_>>() {
            for &w in &col[row[v] as usize..row[v + 1] as usize] {
                if level[w as usize] == UNSEEN {
                    level[w as usize] = depth + 1;
                    any = 1;
                }
            }
        }
        same("level", &levels.read(&run.gpu)?, &level)?;
        same("changed", &changed.read(&run.gpu)?, &[any])?;
        if any == 0 {
            break;
        }
    }
    Ok(())
}

/// (size, penalty): one cell, whole tiles of 31, and sizes with a partial tile at the end.
const ALIGNMENTS: [(u32, i32); 5] = [(1, 3), (31, 10), (62, 0), (75, 7), (130, -2)];

/// A reference matrix and its scores. First row and column are multiples of the penalty.
fn alignment(n: usize, penalty: i32) -> (Vec<i32>, Vec<i32>) {
    let mut random = Random::new(n as u64);
    let reference: Vec<i32> = (0..n * n).map(|_| random.below(21) as i32 - 10).collect();
    let side = n + 1;
    let mut scores = vec![0; side * side];
    for at in 1..side * side {
        let (row, column) = (at / side, at % side);
        scores[at] = if row == 0 || column == 0 {
            -penalty * (row + column) as i32
        } else {
            let pair = scores[at - side - 1] + reference[(row - 1) * n + column - 1];
            pair.max(scores[at - side] - penalty).max(scores[at - 1] - penalty)
        };
    }
    (reference, scores)
}

/// Launches over some diagonals of tiles: each with a number of CTAs and the number of its first tile. `known`
/// says whether the tiles of a diagonal are given, `filled` whether they must be right in the end. All others
/// must not be touched.
fn nw(
    run: &mut Run,
    diagonals: impl Fn(u32) -> Vec<(u32, u32)>,
    known: impl Fn(u32, u32) -> bool,
    filled: impl Fn(u32, u32) -> bool,
) -> Outcome {
    for (n, penalty) in ALIGNMENTS {
        let (field, scores) = alignment(n as usize, penalty);
        let (side, tiles) = (n + 1, n.div_ceil(31));
        let only = |shown: &dyn Fn(u32, u32) -> bool| -> Vec<i32> {
            let cells = scores.iter().zip(0..);
            let shown = cells.map(|(&score, at): (&i32, u32)| {
                let (row, column) = (at / side, at % side);
                let given = row == 0 || column == 0;
                if given || shown(tiles, (row - 1) / 31 + (column - 1) / 31) { score } else { 12345 }
            });
            shown.collect()
        };
        let (reference, out) = (run.gpu.buffer(&field)?, run.gpu.buffer(&only(&known))?);
        for (ctas, first) in diagonals(tiles) {
            run.launch(Launch::grid(ctas).block(32), args![&reference, &out, n, n, penalty, first])?;
        }
        same(&format!("n = {n}: scores"), &out.read(&run.gpu)?, &only(&filled))?;
    }
    Ok(())
}

pub(super) fn nw_grow(run: &mut Run) -> Outcome {
    let from_left = |tiles: u32| (0..tiles).map(|row| (row + 1, row)).collect();
    nw(run, from_left, |_, _| false, |tiles, diagonal| diagonal < tiles)
}

pub(super) fn nw_shrink(run: &mut Run) -> Outcome {
    let from_below = |tiles: u32| (1..tiles).map(|column| (tiles - column, column)).collect();
    nw(run, from_below, |tiles, diagonal| diagonal < tiles, |_, _| true)
}
