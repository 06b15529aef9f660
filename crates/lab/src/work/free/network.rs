//! Back-propagation: one layer of a neural network forward, then the adjustment of its weights.

use warploom::{Launch, Result, args};

use super::check::close;
use super::{Bench, Check, Param, SEED, Values, Workload, ptx};
use crate::random::Random;

const INPUTS: Param = Param::new("inputs", "units of the first layer", 2048).range(1, 1 << 22);
const UNITS: Param = Param::new("units", "units of the second layer, a CTA each", 16).range(1, 4096);
const THREADS: Param =
    Param::new("threads", "threads of a CTA, rounded up to a power of two", 128).range(1, 1024);

pub(super) const WORKLOAD: Workload = Workload {
    name: "backprop",
    about: "back-propagation: a layer forward, then its weights after an error",
    params: &[INPUTS, UNITS, THREADS, SEED],
    run,
};

const RATE: f32 = 0.3;
const MOMENTUM: f32 = 0.3;
/// Threads of the second kernel's CTA per dimension.
const TILE: u32 = 16;

fn run(bench: &mut Bench<'_>, values: &Values) -> Result<Check> {
    let (inputs, units): (u32, u32) = (values.get(&INPUTS), values.get(&UNITS));
    let threads = values.get::<u32>(&THREADS).next_power_of_two();
    let (n, m) = (inputs as usize, units as usize);
    let mut random = Random::new(values.get(&SEED));
    let (input, targets) = (random.floats(n), random.floats(m));
    let weights: Vec<f32> = random.floats(n * m).into_iter().map(|w| w / (n as f32).sqrt()).collect();
    let changes: Vec<f32> = random.floats(n * m).into_iter().map(|w| 0.01 * w).collect();

    let module = bench.load(ptx!("free/matrices"))?;
    let in_buffer = bench.gpu.buffer_named("in", &input)?;
    let weights_buffer = bench.gpu.buffer_named("weights", &weights)?;
    let changes_buffer = bench.gpu.buffer_named("changes", &changes)?;
    let hidden = bench.gpu.zeros_named::<f32>("hidden", m)?;
    let launch = Launch::grid(units).block(threads).shared_bytes(4 * threads);
    let args = args![&in_buffer, &weights_buffer, &hidden, inputs, units];
    bench.launch(&module.kernel("backprop_forward")?, launch, args)?;

    let sum = |j: usize| (0..n).map(|i| f64::from(input[i]) * f64::from(weights[i * m + j])).sum::<f64>();
    let expected: Vec<f32> = (0..m).map(|j| (1.0 / (1.0 + (-sum(j)).exp())) as f32).collect();
    let outputs = hidden.read(bench.gpu)?;
    if let Err(wrong) = close("outputs", &outputs, &expected, 1e-4) {
        return Ok(Err(wrong));
    }
    let deltas: Vec<f32> = outputs.iter().zip(&targets).map(|(o, t)| o * (1.0 - o) * (t - o)).collect();
    let deltas_buffer = bench.gpu.buffer_named("deltas", &deltas)?;
    let launch = Launch::grid([units.div_ceil(TILE), inputs.div_ceil(TILE)]).block([TILE, TILE]);
    let args =
        args![&in_buffer, &deltas_buffer, &weights_buffer, &changes_buffer, inputs, units, RATE, MOMENTUM];
    bench.launch(&module.kernel("backprop_adjust")?, launch, args)?;

    let change = |at: usize| RATE * input[at / m] * deltas[at % m] + MOMENTUM * changes[at];
    let expected: Vec<f32> = (0..n * m).map(|at| weights[at] + change(at)).collect();
    Ok(close("weights", &weights_buffer.read(bench.gpu)?, &expected, 1e-5))
}
