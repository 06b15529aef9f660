//! DS of HPCA'18: the distance solver of a cloth. Each link moves its two particles under one spin lock per particle,
//! nested as in Figure 6a. The size of the paper's shirt is not known; `width=128 height=128` fills a gtx480 several
//! times.

use warploom::{Launch, Result, args, grouped};

use super::{Bench, Check, Param, SEED, Values, Workload, ptx};
use crate::random::Random;

const WIDTH: Param = Param::new("width", "particles of a row of the cloth", 32).range(2, 2048);
const HEIGHT: Param = Param::new("height", "rows of particles", 32).range(2, 2048);
const ROUNDS: Param = Param::new("rounds", "launches, each of which solves all links once", 1).range(1, 1000);
const THREADS: Param = Param::new("threads", "threads of a CTA, one a link", 256).range(1, 1024);

pub(super) const WORKLOAD: Workload = Workload {
    name: "cloth",
    about: "DS: distance solver of a cloth, two nested spin locks a link",
    params: &[WIDTH, HEIGHT, ROUNDS, THREADS, SEED],
    run,
};

/// Two particles and the bits of their distance at rest.
type Link = [u32; 3];

/// A position and, as bits, the number of moves.
type Particle = [f32; 4];

/// The share of a link's error that one move closes.
const STIFFNESS: f32 = 0.5;

fn run(bench: &mut Bench<'_>, values: &Values) -> Result<Check> {
    let (width, height): (usize, usize) = (values.get(&WIDTH), values.get(&HEIGHT));
    let (rounds, threads): (u32, u32) = (values.get(&ROUNDS), values.get(&THREADS));
    let mut random = Random::new(values.get(&SEED));
    let links = links(&mut random, width, height);
    let particles = particles(&mut random, width, height);

    let module = bench.load(ptx!("sync/cloth"))?;
    let kernel = module.kernel("cloth_solve")?;
    let count = links.len() as u32;
    let links_buffer = bench.gpu.buffer_named("links", &links)?;
    let moved = bench.gpu.buffer_named("particles", &particles)?;
    let locks = bench.gpu.zeros_named::<u32>("locks", particles.len())?;
    for _ in 0..rounds {
        let launch = Launch::grid(count.div_ceil(threads)).block(threads);
        bench.launch(&kernel, launch, args![&links_buffer, count, &moved, &locks, STIFFNESS])?;
    }

    let (moved, locks) = (moved.read(bench.gpu)?, locks.read(bench.gpu)?);
    if let Some(particle) = locks.iter().position(|&lock| lock != 0) {
        return Ok(Err(format!("the lock of particle {particle} is still taken")));
    }
    Ok(check(&links, &particles, &moved, rounds))
}

/// Links between neighbours in rows, columns and diagonals, and between next neighbours, which keep the cloth from
/// folding; shuffled.
fn links(random: &mut Random, width: usize, height: usize) -> Vec<Link> {
    let mut links = Vec::new();
    for (row, column) in (0..height).flat_map(|row| (0..width).map(move |column| (row, column))) {
        for (down, right) in [(0, 1), (1, 0), (1, 1), (1, -1), (0, 2), (2, 0)] {
            let (to_row, to_column) = (row + down as usize, column as i64 + right);
            if to_row < height && (0..width as i64).contains(&to_column) {
                let (from, to) = (row * width + column, to_row * width + to_column as usize);
                let length = (((down * down) as i64 + right * right) as f32).sqrt();
                links.push([from as u32, to as u32, length.to_bits()]);
            }
        }
    }
    for last in (1..links.len()).rev() {
        links.swap(last, random.below(last + 1));
    }
    links
}

/// A plane at rest, slightly crumpled.
fn particles(random: &mut Random, width: usize, height: usize) -> Vec<Particle> {
    let mut particles = Vec::with_capacity(width * height);
    for (row, column) in (0..height).flat_map(|row| (0..width).map(move |column| (row, column))) {
        let shift = random.floats(3);
        particles.push([column as f32 + 0.4 * shift[0], row as f32 + 0.4 * shift[1], 0.4 * shift[2], 0.0]);
    }
    particles
}

/// The final positions depend on the order of the links. Three things do not: each particle is moved once per link and
/// round, the centre of mass stays, and the mean error of the links exceeds the host's by at most a tenth of the
/// initial error.
fn check(links: &[Link], before: &[Particle], after: &[Particle], rounds: u32) -> Check {
    let mut moves = vec![0u32; before.len()];
    for &[a, b, _] in links {
        moves[a as usize] += rounds;
        moves[b as usize] += rounds;
    }
    for (at, (particle, expected)) in after.iter().zip(&moves).enumerate() {
        let got = particle[3].to_bits();
        if got != *expected {
            return Err(format!("particle {at} was moved {got} times, not {expected}"));
        }
    }
    let (was, is) = (middle(before), middle(after));
    let reach = before.iter().flatten().fold(1.0f64, |most, &v| most.max(f64::from(v).abs()));
    if !was.iter().zip(is).all(|(was, is)| (was - is).abs() <= 1e-5 * reach) {
        return Err(format!("the middle of the cloth went from {was:?} to {is:?}"));
    }
    let mut solved = before.to_vec();
    (0..rounds).for_each(|_| links.iter().for_each(|link| solve(&mut solved, link)));
    let (start, host, error) = (error(links, before), error(links, &solved), error(links, after));
    if error.is_nan() || error > host + 0.1 * start {
        return Err(format!(
            "links are off by {error:.4} on average; {start:.4} before, the host's {host:.4}"
        ));
    }
    let count = grouped(links.len() as u64 * u64::from(rounds));
    Ok(format!("{count} moves of {} particles, links are off by {error:.4}, {start:.4} before", before.len()))
}

fn middle(particles: &[Particle]) -> [f64; 3] {
    let sum = |axis: usize| particles.iter().map(|p| f64::from(p[axis])).sum::<f64>();
    [0, 1, 2].map(|axis| sum(axis) / particles.len() as f64)
}

fn distance(particles: &[Particle], a: u32, b: u32) -> ([f32; 3], f32) {
    let (p, q) = (particles[a as usize], particles[b as usize]);
    let way = [0, 1, 2].map(|axis| q[axis] - p[axis]);
    (way, (way.iter().map(|d| d * d).sum::<f32>() + 1e-12).sqrt())
}

fn solve(particles: &mut [Particle], &[a, b, length]: &Link) {
    let (way, is) = distance(particles, a, b);
    let share = 0.5 * STIFFNESS * (1.0 - f32::from_bits(length) / is);
    for axis in 0..3 {
        particles[a as usize][axis] += share * way[axis];
        particles[b as usize][axis] -= share * way[axis];
    }
}

/// Mean deviation of the links from their lengths.
fn error(links: &[Link], particles: &[Particle]) -> f64 {
    let off =
        |&[a, b, length]: &Link| f64::from((distance(particles, a, b).1 - f32::from_bits(length)).abs());
    links.iter().map(off).sum::<f64>() / links.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lost_moves_are_seen() {
        let mut random = Random::new(1);
        let (links, before) = (links(&mut random, 4, 3), particles(&mut random, 4, 3));
        assert_eq!(links.len(), 9 + 8 + 6 + 6 + 6 + 4);
        let mut after = before.clone();
        links.iter().for_each(|link| solve(&mut after, link));
        for &[a, b, _] in &links {
            for p in [a, b] {
                after[p as usize][3] = f32::from_bits(after[p as usize][3].to_bits() + 1);
            }
        }
        assert!(check(&links, &before, &after, 1).is_ok());
        assert!(check(&links, &before, &before, 1).is_err());
        let mut torn = after.clone();
        torn[5][0] += 1.0;
        assert!(check(&links, &before, &torn, 1).unwrap_err().starts_with("the middle"));
    }
}
