//! Old dialects: 32-bit addresses, `.reg` parameters, flushed subnormals.

use warploom::{Launch, args};

use super::parallel::{reduce_with, vectors};
use crate::support::{Outcome, Random, Run, same, same_f32};

/// Both texts flush subnormals: one says `.ftz`, and the other's target has no subnormals.
pub(super) fn vecadd(run: &mut Run) -> Outcome {
    let flush = |v: f32| if v.is_subnormal() { 0f32.copysign(v) } else { v };
    for (n, threads, ctas) in [(1usize, 1u32, 1u32), (500, 48, 11)] {
        let (xs, ys) = vectors(n, true);
        let (a, b, c) = (run.gpu.buffer(&xs)?, run.gpu.buffer(&ys)?, run.gpu.buffer(&vec![-7.0f32; n])?);
        run.launch(Launch::grid(ctas).block(threads), args![&a, &b, &c, n as u32])?;
        let expected: Vec<f32> = xs.iter().zip(&ys).map(|(x, y)| flush(flush(*x) + flush(*y))).collect();
        same_f32("c", &c.read(&run.gpu)?, &expected)?;
    }
    Ok(())
}

pub(super) fn reduce_of_128(run: &mut Run) -> Outcome {
    reduce_with(run, &[128])
}

pub(super) fn mix(run: &mut Run) -> Outcome {
    let n = 100usize;
    let values = Random::new(11).words_below(n, 200);
    let (input, out) = (run.gpu.buffer(&values)?, run.gpu.zeros::<u32>(2 * n)?);
    run.launch(Launch::grid(4).block(32), args![&input, &out, n as u32])?;
    let mix = |(&v, i): (&u32, u32)| [(v ^ i).wrapping_mul(33).wrapping_add(7), v.max(i)];
    same("out", &out.read(&run.gpu)?, &values.iter().zip(0..).flat_map(mix).collect::<Vec<_>>())
}

pub(super) fn syntax(run: &mut Run) -> Outcome {
    for threads in [1u32, 32] {
        let out = run.gpu.zeros::<i32>(17)?;
        run.launch(Launch::grid(1).block(threads), args![&out])?;
        let expected = [25, 42, -3, 4, 4, 19, 11, 29, 70, 2, 11, 22, 1280, 32, 1, 393, 0];
        same("out", &out.read(&run.gpu)?, &expected)?;
    }
    Ok(())
}
