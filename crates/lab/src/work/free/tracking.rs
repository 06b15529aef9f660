//! Heart wall: points tracked from frame to frame. Its loops over pixels advance by the threads of a CTA.

use warploom::{Launch, Result, args};

use super::check::equal;
use super::{Bench, Check, Param, SEED, Values, Workload, ptx};
use crate::random::Random;

const POINTS: Param = Param::new("points", "points to track, one a CTA", 20).range(1, 1 << 16);
const FRAMES: Param = Param::new("frames", "frames, a launch each", 2).range(1, 1000);
const SIDE: Param = Param::new("side", "pixels of a frame's side", 160).range(96, 8192);
const RADIUS: Param =
    Param::new("radius", "pixels from the middle of a template to its side", 4).range(1, 16);
const REACH: Param = Param::new("reach", "pixels a point can move in a frame", 12).range(1, 24);
const THREADS: Param = Param::new(
    "threads",
    "threads of a CTA, a power of two; 256 and more make loops grow beyond 8 bits",
    256,
)
.range(32, 1024);

pub(super) const WORKLOAD: Workload = Workload {
    name: "heartwall",
    about: "heart wall: points tracked from frame to frame by their templates, a point a CTA",
    params: &[POINTS, FRAMES, SIDE, RADIUS, REACH, THREADS, SEED],
    run,
};

fn run(bench: &mut Bench<'_>, values: &Values) -> Result<Check> {
    let (points, side): (usize, usize) = (values.get(&POINTS), values.get(&SIDE));
    let (radius, reach): (usize, usize) = (values.get(&RADIUS), values.get(&REACH));
    let (frames, threads): (usize, u32) =
        (values.get(&FRAMES), values.get::<u32>(&THREADS).next_power_of_two());
    let mut random = Random::new(values.get(&SEED));
    let (margin, patch) = (radius + reach, 2 * radius + 1);
    let first = frame(&mut random, side);
    let mut place = || (margin + random.below(side - 2 * margin)) as u32;
    let mut places: Vec<u32> = (0..2 * points).map(|_| place()).collect();
    let templates: Vec<u8> = places.chunks(2).flat_map(|at| cut(&first, side, at, radius)).collect();

    let module = bench.load(ptx!("free/heartwall"))?;
    let kernel = module.kernel("heartwall_track")?;
    let frame_buffer = bench.gpu.buffer_named("frame", &first)?;
    let templates_buffer = bench.gpu.buffer_named("templates", &templates)?;
    let places_buffer = bench.gpu.buffer_named("places", &places)?;
    let window = patch + 2 * reach;
    let words = (window * window) as u32 + 2 * threads;
    let (mut shown, n) = (first, side as u32);
    for _ in 0..frames {
        shown = shifted(&mut random, &shown, side, reach / 2);
        frame_buffer.write(bench.gpu, &shown)?;
        let launch = Launch::grid(points as u32).block(threads).shared_bytes(4 * words);
        let args = args![&frame_buffer, n, n, &templates_buffer, &places_buffer, radius as u32, reach as u32];
        bench.launch(&kernel, launch, args)?;
        for (at, template) in places.chunks_mut(2).zip(templates.chunks(patch * patch)) {
            track(&shown, side, template, at, radius, reach);
        }
    }
    Ok(equal("coordinates", &places_buffer.read(bench.gpu)?, &places))
}

/// Random pixels.
fn frame(random: &mut Random, side: usize) -> Vec<u8> {
    (0..side * side).map(|_| random.below(256) as u8).collect()
}

/// The frame moved by a random distance.
fn shifted(random: &mut Random, frame: &[u8], side: usize, most: usize) -> Vec<u8> {
    let (dx, dy) = (random.below(most + 1), random.below(most + 1));
    let pixel = |x: usize, y: usize| frame[(y + dy) % side * side + (x + dx) % side];
    (0..side * side).map(|at| pixel(at % side, at / side)).collect()
}

/// The square patch around a position.
fn cut(frame: &[u8], side: usize, at: &[u32], radius: usize) -> Vec<u8> {
    let (x, y) = (at[0] as usize - radius, at[1] as usize - radius);
    let patch = 2 * radius + 1;
    (0..patch * patch).map(|e| frame[(y + e / patch) * side + x + e % patch]).collect()
}

/// Moves a position to where the template fits best.
fn track(frame: &[u8], side: usize, template: &[u8], at: &mut [u32], radius: usize, reach: usize) {
    let moves = 2 * reach + 1;
    let [x, y] = [at[0] as usize - reach, at[1] as usize - reach];
    let difference = |m: usize| -> u32 {
        let there = cut(frame, side, &[(x + m % moves) as u32, (y + m / moves) as u32], radius);
        there.iter().zip(template).map(|(a, b)| u32::from(a.abs_diff(*b)).pow(2)).sum()
    };
    let Some(best) = (0..moves * moves).min_by_key(|&m| difference(m)) else { return };
    let margin = radius + reach;
    at[0] = (x + best % moves).clamp(margin, side - 1 - margin) as u32;
    at[1] = (y + best / moves).clamp(margin, side - 1 - margin) as u32;
}
