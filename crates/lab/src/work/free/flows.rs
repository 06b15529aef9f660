//! Lava: forces between particles in boxes. CFD: the flux between the cells of a mesh.

use warploom::{Launch, Result, args};

use super::check::close;
use super::{Bench, Check, Param, SEED, Values, Workload, ptx};
use crate::random::Random;

const BOXES: Param = Param::new("boxes", "boxes of the cube's side", 2).range(1, 64);
const EACH: Param = Param::new("each", "particles of a box, one a thread", 64).range(1, 512);
const CELLS: Param = Param::new("cells", "cells of the mesh", 2048).range(1, 1 << 22);
const STEPS: Param = Param::new("steps", "steps of time, a launch each", 2).range(1, 1000);
const THREADS: Param = Param::new("threads", "threads of a CTA", 192).range(1, 512);

pub(super) const LAVA: Workload = Workload {
    name: "lava",
    about: "lava: forces between the particles of a box and of those around it, a box a CTA",
    params: &[BOXES, EACH, SEED],
    run: lava,
};

pub(super) const CFD: Workload = Workload {
    name: "cfd",
    about: "CFD: the flux between the cells of a mesh, a thread a cell",
    params: &[CELLS, STEPS, THREADS, SEED],
    run: cfd,
};

fn lava(bench: &mut Bench<'_>, values: &Values) -> Result<Check> {
    let (side, each): (usize, usize) = (values.get(&BOXES), values.get(&EACH));
    let mut random = Random::new(values.get(&SEED));
    let boxes = side.pow(3);
    let particle = |v: Vec<f32>| [v[0], v[1], v[2], v[3]];
    let particles: Vec<[f32; 4]> = (0..boxes * each).map(|_| particle(random.floats(4))).collect();
    const A2: f32 = 0.5;

    let module = bench.load(ptx!("free/flows"))?;
    let from = bench.gpu.buffer_named("particles", &particles)?;
    let to = bench.gpu.zeros_named::<[f32; 4]>("forces", boxes * each)?;
    let launch = Launch::grid(boxes as u32).block(each as u32).shared_bytes(16 * each as u32);
    bench.launch(&module.kernel("lava_forces")?, launch, args![&from, &to, side as u32, each as u32, A2])?;

    let mut expected = Vec::with_capacity(4 * boxes * each);
    for (at, me) in particles.iter().enumerate() {
        let place = |b: usize| [b % side, b / side % side, b / side / side];
        let mine = place(at / each);
        let near = |b: &usize| place(*b).iter().zip(mine).all(|(a, b)| a.abs_diff(b) <= 1);
        let mut sum = [0.0f64; 4];
        for other in (0..boxes).filter(near).flat_map(|b| &particles[b * each..(b + 1) * each]) {
            let way = [0, 1, 2].map(|axis| f64::from(other[axis] - me[axis]));
            let square: f64 = way.iter().map(|d| d * d).sum();
            let force = f64::from(other[3]) * (-f64::from(A2) * square).exp();
            (0..3).for_each(|axis| sum[axis] += force * way[axis]);
            sum[3] += force;
        }
        expected.extend(sum.map(|v| v as f32));
    }
    Ok(close("sums", &to.read(bench.gpu)?.concat(), &expected, 1e-3))
}

const FACES: usize = 4;
/// Density, momentum, energy.
type State = [f32; 5];

fn cfd(bench: &mut Bench<'_>, values: &Values) -> Result<Check> {
    let (n, steps, threads): (usize, u32, u32) =
        (values.get(&CELLS), values.get(&STEPS), values.get(&THREADS));
    let mut random = Random::new(values.get(&SEED));
    let mut cell = |_| {
        let v = random.floats(5);
        [1.0 + 0.1 * v[0], 0.1 * v[1], 0.1 * v[2], 0.1 * v[3], 2.5 + 0.1 * v[4]]
    };
    let mut states: Vec<State> = (0..n).map(&mut cell).collect();
    // One face in sixteen is a boundary without a cell behind it.
    let neighbours: Vec<u32> =
        (0..FACES * n).map(|_| if random.once_in(16) { u32::MAX } else { random.below(n) as u32 }).collect();
    let normals = random.floats(3 * FACES * n);
    const RATE: f32 = 0.01;

    let columns =
        |states: &[State]| -> Vec<f32> { (0..5).flat_map(|v| states.iter().map(move |s| s[v])).collect() };
    let module = bench.load(ptx!("free/flows"))?;
    let kernel = module.kernel("cfd_step")?;
    let mut from = bench.gpu.buffer_named("variables", &columns(&states))?;
    let mut to = bench.gpu.zeros_named::<f32>("updated", 5 * n)?;
    let neighbours_buffer = bench.gpu.buffer_named("neighbours", &neighbours)?;
    let normals_buffer = bench.gpu.buffer_named("normals", &normals)?;
    for _ in 0..steps {
        let launch = Launch::grid((n as u32).div_ceil(threads)).block(threads);
        bench.launch(
            &kernel,
            launch,
            args![&from, &neighbours_buffer, &normals_buffer, &to, n as u32, RATE],
        )?;
        std::mem::swap(&mut from, &mut to);
        let step = |i: usize| {
            let mut next = states[i];
            for face in 0..FACES {
                let behind = neighbours[face * n + i] as usize;
                let normal = [0, 1, 2].map(|axis| normals[(3 * face + axis) * n + i]);
                let flux = flux(&states[i], states.get(behind).unwrap_or(&states[i]), normal);
                next.iter_mut().zip(flux).for_each(|(v, flux)| *v -= RATE * flux);
            }
            next
        };
        states = (0..n).map(step).collect();
    }
    Ok(close("variables", &from.read(bench.gpu)?, &columns(&states), 1e-4))
}

/// Pressure and speed of sound.
fn gas(&[density, x, y, z, energy]: &State) -> (f32, f32) {
    let pressure = 0.4 * (energy - 0.5 * (x * x + y * y + z * z) / density);
    (pressure, (1.4 * pressure / density).sqrt())
}

/// The flux through a face: the mean of both sides, and a share of their difference.
fn flux(me: &State, it: &State, normal: [f32; 3]) -> State {
    let ((my_pressure, my_sound), (its_pressure, its_sound)) = (gas(me), gas(it));
    let through = |s: &State| (0..3).map(|axis| s[axis + 1] * normal[axis]).sum::<f32>() / s[0];
    let (mine, its) = (through(me), through(it));
    let drag = 0.25 * (my_sound + its_sound);
    let mut flux = [0.0; 5];
    for (v, flux) in flux.iter_mut().enumerate() {
        let push = match v {
            0 => 0.0,
            4 => mine * my_pressure + its * its_pressure,
            axis => normal[axis - 1] * (my_pressure + its_pressure),
        };
        *flux = 0.5 * (mine * me[v] + its * it[v] + push) + drag * (me[v] - it[v]);
    }
    flux
}
