//! TSP of HPCA'18: the travelling salesman by hill climbing from many random tours. One global lock protects the best
//! tour; the lanes of a warp take it one after another, as in Figure 6b. The paper's 76 cities and 3000 climbers are
//! `climbers=3000`.

use warploom::{Launch, Result, args, grouped};

use super::check::equal;
use super::{Bench, Check, Param, SEED, Values, Workload, ptx};
use crate::random::Random;

// The distance table is in shared memory, which is 48 KiB on most chips.
const CITIES: Param = Param::new("cities", "cities of the tour", 76).range(3, 150);
const CLIMBERS: Param = Param::new("climbers", "tours to improve, one a thread", 96).range(1, 1 << 22);
const STEPS: Param = Param::new("steps", "most moves of a climber", 1000).range(0, 1 << 20);
const THREADS: Param = Param::new("threads", "threads of a CTA", 64).range(1, 1024);

pub(super) const WORKLOAD: Workload = Workload {
    name: "tsp",
    about: "TSP: travelling salesman by hill climbing, one global lock for the best tour",
    params: &[CITIES, CLIMBERS, STEPS, THREADS, SEED],
    run,
};

/// The cities lie in a square of this side.
const SIDE: f64 = 10_000.0;

fn run(bench: &mut Bench<'_>, values: &Values) -> Result<Check> {
    let (cities, climbers): (usize, usize) = (values.get(&CITIES), values.get(&CLIMBERS));
    let (steps, threads): (u32, u32) = (values.get(&STEPS), values.get(&THREADS));
    let mut random = Random::new(values.get(&SEED));
    let distances = distances(&mut random, cities);
    let tours: Vec<Vec<u8>> = (0..climbers).map(|_| shuffled(&mut random, cities)).collect();
    // In the kernel's layout the cities at one position of all tours are adjacent.
    let columns: Vec<u8> = (0..cities).flat_map(|at| tours.iter().map(move |tour| tour[at])).collect();

    let module = bench.load(ptx!("sync/tsp"))?;
    let kernel = module.kernel("tsp_climb")?;
    let lanes = bench.lanes(&kernel)?;
    let distances_buffer = bench.gpu.buffer_named("distances", &distances)?;
    let tours_buffer = bench.gpu.buffer_named("tours", &columns)?;
    let lengths = bench.gpu.zeros_named::<u32>("lengths", climbers)?;
    let best = bench.gpu.buffer_named("best", &[0, u32::MAX, u32::MAX])?;
    let (n, all) = (cities as u32, climbers as u32);
    let launch = Launch::grid(all.div_ceil(threads)).block(threads).shared_bytes(2 * n * n);
    let args = args![&distances_buffer, n, &tours_buffer, all, steps, &lengths, &best, lanes];
    bench.launch(&kernel, launch, args)?;

    let expected: Vec<u32> = tours.into_iter().map(|tour| climb(&distances, tour, steps)).collect();
    Ok(check(&lengths.read(bench.gpu)?, &expected, &best.read(bench.gpu)?))
}

/// Integers, so that sums do not depend on their order.
fn distances(random: &mut Random, cities: usize) -> Vec<u16> {
    let mut place = || random.below(SIDE as usize) as f64;
    let places: Vec<(f64, f64)> = (0..cities).map(|_| (place(), place())).collect();
    let distance = |a: (f64, f64), b: (f64, f64)| ((a.0 - b.0).powi(2) + (a.1 - b.1).powi(2)).sqrt() as u16;
    places.iter().flat_map(|&a| places.iter().map(move |&b| distance(a, b))).collect()
}

/// A random tour of all cities.
fn shuffled(random: &mut Random, cities: usize) -> Vec<u8> {
    let mut tour: Vec<u8> = (0..cities as u8).collect();
    for last in (1..cities).rev() {
        tour.swap(last, random.below(last + 1));
    }
    tour
}

/// The length of a tour after the moves that the kernel makes.
fn climb(distances: &[u16], mut tour: Vec<u8>, steps: u32) -> u32 {
    let n = tour.len();
    let distance = |a: u8, b: u8| i32::from(distances[a as usize * n + b as usize]);
    for _ in 0..steps {
        let mut best = (0, 0, 0);
        for i in 0..n - 2 {
            let (a, b) = (tour[i], tour[i + 1]);
            for j in i + 2..n {
                let (c, d) = (tour[j], tour[(j + 1) % n]);
                let saves = distance(a, b) + distance(c, d) - distance(a, c) - distance(b, d);
                if saves > best.0 {
                    best = (saves, i + 1, j);
                }
            }
        }
        let (saves, from, to) = best;
        if saves == 0 {
            break;
        }
        tour[from..=to].reverse();
    }
    (0..n).map(|at| distance(tour[at], tour[(at + 1) % n]) as u32).sum()
}

/// All lengths must be right, the best one the smallest, and its climber one that has it.
fn check(lengths: &[u32], expected: &[u32], best: &[u32]) -> Check {
    let right = equal("tours", lengths, expected)?;
    let &[lock, length, climber] = best else { return Err("no best tour".to_string()) };
    let shortest = expected.iter().min().copied();
    if lock != 0 {
        return Err("the lock is still taken".to_string());
    }
    if Some(length) != shortest || expected.get(climber as usize).copied() != shortest {
        let shortest = shortest.unwrap_or_default();
        return Err(format!("the best tour is {length} of climber {climber}, the host's is {shortest}"));
    }
    Ok(format!("{right}, the best is {}", grouped(length.into())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crossings_are_undone() {
        // The corners of a square visited in the order of an hourglass.
        let side = 10;
        let distances: Vec<u16> =
            [[0, 10, 14, 10], [10, 0, 10, 14], [14, 10, 0, 10], [10, 14, 10, 0]].concat();
        assert_eq!(climb(&distances, vec![0, 2, 1, 3], 0), 48);
        assert_eq!(climb(&distances, vec![0, 2, 1, 3], 9), 4 * side);
    }

    #[test]
    fn the_best_is_checked() {
        assert!(check(&[7, 5, 5], &[7, 5, 5], &[0, 5, 2]).is_ok());
        assert!(check(&[7, 5, 5], &[7, 5, 5], &[0, 5, 0]).is_err());
        assert!(check(&[7, 5, 5], &[7, 5, 5], &[0, 7, 0]).is_err());
        assert!(check(&[7, 5, 5], &[7, 5, 5], &[1, 5, 1]).is_err());
        assert!(check(&[7, 5, 6], &[7, 5, 5], &[0, 5, 1]).is_err());
    }
}
