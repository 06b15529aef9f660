//! Points and centers: k-means, the gain of a new center in a stream of points, nearest neighbours.

use warploom::{Launch, Result, args};

use super::check::{close, equal};
use super::{Bench, Check, Param, SEED, Values, Workload, ptx};
use crate::random::Random;

const POINTS: Param = Param::new("points", "points", 4096).range(1, 1 << 22);
const FEATURES: Param = Param::new("features", "numbers of a point", 16).range(1, 64);
const CLUSTERS: Param = Param::new("clusters", "centers", 5).range(1, 256);
const ROUNDS: Param =
    Param::new("rounds", "assignments; the centers become the means between them", 2).range(1, 100);
const CANDIDATES: Param =
    Param::new("candidates", "points that are tried as a center, a launch each", 4).range(1, 1000);
const THREADS: Param = Param::new("threads", "threads of a CTA", 256).range(1, 1024);

pub(super) const KMEANS: Workload = Workload {
    name: "kmeans",
    about: "k-means: the nearest center of each point, a thread a point",
    params: &[POINTS, FEATURES, CLUSTERS, ROUNDS, THREADS, SEED],
    run: kmeans,
};

pub(super) const STREAMCLUSTER: Workload = Workload {
    name: "streamcluster",
    about: "stream cluster: what a new center saves each point, a thread a point",
    params: &[POINTS, FEATURES, CANDIDATES, THREADS, SEED],
    run: streamcluster,
};

pub(super) const NN: Workload = Workload {
    name: "nn",
    about: "nearest neighbours: the distance of each record from a place",
    params: &[POINTS.range(1, 1 << 26), THREADS, SEED],
    run: nn,
};

/// Integers below 256, whose squares have exact sums.
fn whole(random: &mut Random, count: usize) -> Vec<f32> {
    (0..count).map(|_| random.below(256) as f32).collect()
}

fn squared(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum()
}

fn kmeans(bench: &mut Bench<'_>, values: &Values) -> Result<Check> {
    let (n, features, clusters): (usize, usize, usize) =
        (values.get(&POINTS), values.get(&FEATURES), values.get(&CLUSTERS));
    let (rounds, threads): (u32, u32) = (values.get(&ROUNDS), values.get(&THREADS));
    let mut random = Random::new(values.get(&SEED));
    let points = whole(&mut random, n * features);
    let mut centers = whole(&mut random, clusters * features);

    let module = bench.load(ptx!("free/points"))?;
    let by_point = bench.gpu.buffer_named("points", &points)?;
    let by_feature = bench.gpu.zeros_named::<f32>("by_feature", n * features)?;
    let (count, each) = (n as u32, features as u32);
    let launch = || Launch::grid(count.div_ceil(threads)).block(threads);
    bench.launch(&module.kernel("kmeans_invert")?, launch(), args![&by_point, &by_feature, count, each])?;
    let assign = module.kernel("kmeans_assign")?;
    let nearest_buffer = bench.gpu.zeros_named::<u32>("nearest", n)?;
    let centers_buffer = bench.gpu.buffer_named("centers", &centers)?;

    let mut right = Ok(String::new());
    for _ in 0..rounds {
        centers_buffer.write(bench.gpu, &centers)?;
        let args = args![&by_feature, &centers_buffer, count, each, clusters as u32, &nearest_buffer];
        bench.launch(&assign, launch(), args)?;
        let expected: Vec<u32> = points.chunks(features).map(|p| nearest(p, &centers)).collect();
        right = equal("nearest centers", &nearest_buffer.read(bench.gpu)?, &expected);
        if right.is_err() {
            break;
        }
        means(&points, &expected, &mut centers, features);
    }
    Ok(right)
}

fn nearest(point: &[f32], centers: &[f32]) -> u32 {
    let (mut best, mut least) = (0, f32::MAX);
    for (number, center) in centers.chunks(point.len()).enumerate() {
        let distance = squared(point, center);
        if distance < least {
            (best, least) = (number as u32, distance);
        }
    }
    best
}

/// Moves each center to the mean of its points, rounded. A center without points stays.
fn means(points: &[f32], nearest: &[u32], centers: &mut [f32], features: usize) {
    for (number, center) in centers.chunks_mut(features).enumerate() {
        let of = |point: &&[f32], at: usize| f64::from(point[at]);
        let mine: Vec<&[f32]> = points
            .chunks(features)
            .zip(nearest)
            .filter(|(_, c)| **c == number as u32)
            .map(|(p, _)| p)
            .collect();
        if !mine.is_empty() {
            for (at, value) in center.iter_mut().enumerate() {
                *value = (mine.iter().map(|p| of(p, at)).sum::<f64>() / mine.len() as f64).round() as f32;
            }
        }
    }
}

fn streamcluster(bench: &mut Bench<'_>, values: &Values) -> Result<Check> {
    let (n, features): (usize, usize) = (values.get(&POINTS), values.get(&FEATURES));
    let (candidates, threads): (u32, u32) = (values.get(&CANDIDATES), values.get(&THREADS));
    let mut random = Random::new(values.get(&SEED));
    let by_feature = whole(&mut random, n * features);
    let point = |i: usize| -> Vec<f32> { (0..features).map(|f| by_feature[f * n + i]).collect() };
    // All points belong to the first point until a nearer candidate comes.
    let first = point(0);
    let mut costs: Vec<f32> = (0..n).map(|i| squared(&point(i), &first)).collect();

    let module = bench.load(ptx!("free/points"))?;
    let kernel = module.kernel("streamcluster_gain")?;
    let points_buffer = bench.gpu.buffer_named("by_feature", &by_feature)?;
    let costs_buffer = bench.gpu.buffer_named("costs", &costs)?;
    let saved = bench.gpu.zeros_named::<f32>("saved", n)?;
    let joins = bench.gpu.zeros_named::<u32>("joins", n)?;
    let (count, each) = (n as u32, features as u32);
    let mut right = Ok(String::new());
    for _ in 0..candidates {
        let candidate = random.below(n);
        let launch = Launch::grid(count.div_ceil(threads)).block(threads).shared_bytes(4 * each);
        costs_buffer.write(bench.gpu, &costs)?;
        let args = args![&points_buffer, &costs_buffer, count, each, candidate as u32, &saved, &joins];
        bench.launch(&kernel, launch, args)?;
        let center = point(candidate);
        let nearer: Vec<f32> = (0..n).map(|i| (costs[i] - squared(&point(i), &center)).max(0.0)).collect();
        let expected: Vec<u32> = nearer.iter().map(|&s| u32::from(s > 0.0)).collect();
        let (joins, saved) = (joins.read(bench.gpu)?, saved.read(bench.gpu)?);
        right = equal("points", &joins, &expected).and_then(|_| equal("savings", &saved, &nearer));
        if right.is_err() {
            break;
        }
        costs.iter_mut().zip(&nearer).for_each(|(cost, saved)| *cost -= saved);
    }
    Ok(right)
}

fn nn(bench: &mut Bench<'_>, values: &Values) -> Result<Check> {
    let (n, threads): (usize, u32) = (values.get(&POINTS), values.get(&THREADS));
    let mut random = Random::new(values.get(&SEED));
    let records: Vec<f32> = random.floats(2 * n).into_iter().map(|v| 90.0 * v).collect();
    let (x, y) = (30.0f32, 60.0f32);

    let module = bench.load(ptx!("free/points"))?;
    let records_buffer = bench.gpu.buffer_named("records", &records)?;
    let distances = bench.gpu.zeros_named::<f32>("distances", n)?;
    let launch = Launch::grid((n as u32).div_ceil(threads)).block(threads);
    bench.launch(
        &module.kernel("nn_distances")?,
        launch,
        args![&records_buffer, &distances, n as u32, x, y],
    )?;

    let expected: Vec<f32> = records.chunks(2).map(|r| (r[0] - x).hypot(r[1] - y)).collect();
    Ok(close("distances", &distances.read(bench.gpu)?, &expected, 1e-5))
}
