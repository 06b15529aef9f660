//! Kernels compiled by Numba, Triton and rustc.

use bytemuck::Pod;
use warploom::{Arg, Buffer, Launch, args};

use super::parallel::{bytes_and_bins, vectors};
use crate::support::{Outcome, Random, Run, close, same, same_f32, widened};

/// A row-major Numba array: a struct passed with one parameter per field.
fn array<T: Pod>(buffer: &Buffer<T>, shape: &[usize]) -> Vec<Arg<'static>> {
    let element = size_of::<T>();
    let mut fields = [0, 0, buffer.len(), element, buffer.address() as usize].to_vec();
    fields.extend(shape);
    fields.extend((0..shape.len()).map(|d| element * shape[d + 1..].iter().product::<usize>()));
    fields.into_iter().map(|field| Arg::from(field as u64)).collect()
}

pub(super) fn numba_vecadd(run: &mut Run) -> Outcome {
    for (n, threads, ctas) in [(1usize, 1u32, 1u32), (1000, 96, 11), (65, 64, 2)] {
        let (xs, ys) = vectors(n, true);
        let (a, b, c) = (run.gpu.buffer(&xs)?, run.gpu.buffer(&ys)?, run.gpu.zeros::<f32>(n)?);
        let args = [array(&a, &[n]), array(&b, &[n]), array(&c, &[n]), args![n as u32].to_vec()].concat();
        run.launch(Launch::grid(ctas).block(threads), args)?;
        same_f32("c", &c.read(&run.gpu)?, &xs.iter().zip(&ys).map(|(x, y)| x + y).collect::<Vec<_>>())?;
    }
    Ok(())
}

pub(super) fn numba_reduce(run: &mut Run) -> Outcome {
    for (n, ctas) in [(1usize, 1u32), (1000, 1), (5000, 10)] {
        let values = Random::new(n as u64).words(n);
        let (input, out) = (run.gpu.buffer(&values)?, run.gpu.buffer(&[3u32])?);
        let args = [array(&input, &[n]), array(&out, &[1]), args![n as u32].to_vec()].concat();
        run.launch(Launch::grid(ctas).block(256), args)?;
        same("out", &out.read(&run.gpu)?, &[values.iter().fold(3u32, |sum, v| sum.wrapping_add(*v))])?;
    }
    Ok(())
}

pub(super) fn numba_histogram(run: &mut Run) -> Outcome {
    for (n, threads, ctas) in [(1usize, 1u32, 1u32), (2000, 100, 9)] {
        let (bytes, expected) = bytes_and_bins(n);
        let (input, bins) = (run.gpu.buffer(&bytes)?, run.gpu.zeros::<u32>(256)?);
        let args = [array(&input, &[n]), array(&bins, &[256]), args![n as u32].to_vec()].concat();
        run.launch(Launch::grid(ctas).block(threads), args)?;
        same("bins", &bins.read(&run.gpu)?, &expected)?;
    }
    Ok(())
}

pub(super) fn numba_mandelbrot(run: &mut Run) -> Outcome {
    let (width, height, limit) = (37u32, 21u32, 60u32);
    let (columns, rows) = (width as usize, height as usize);
    let counts = run.gpu.zeros::<u32>(columns * rows)?;
    let args = [array(&counts, &[rows, columns]), args![width, height, limit].to_vec()].concat();
    run.launch(Launch::grid((5, 4)).block((8, 6)), args)?;
    let escape = |at: usize| {
        let (x, y) = ((at % columns) as f64, (at / columns) as f64);
        let cr = (x / f64::from(width)).mul_add(3.0, -2.0);
        let ci = (y / f64::from(height)).mul_add(2.0, -1.0);
        let (mut zr, mut zi, mut k) = (0.0f64, 0.0f64, 0);
        while k < limit && zr.mul_add(zr, zi * zi) <= 4.0 {
            (zr, zi, k) = (cr + (zr * zr - zi * zi), zi.mul_add(zr + zr, ci), k + 1);
        }
        k
    };
    same("counts", &counts.read(&run.gpu)?, &(0..columns * rows).map(escape).collect::<Vec<_>>())
}

pub(super) fn numba_localsort(run: &mut Run) -> Outcome {
    let n = 70usize;
    let mut values = Random::new(6).floats(8 * n, 50.0);
    let (input, out) = (run.gpu.buffer(&values)?, run.gpu.zeros::<f32>(8 * n)?);
    let args = [array(&input, &[n, 8]), array(&out, &[n, 8]), args![n as u32].to_vec()].concat();
    run.launch(Launch::grid(3).block(30), args)?;
    values.chunks_mut(8).for_each(|row| row.sort_by(f32::total_cmp));
    same_f32("out", &out.read(&run.gpu)?, &values)
}

/// Two scratch pointers that Triton adds to every kernel.
const NO_SCRATCH: [u64; 2] = [0, 0];

pub(super) fn triton_vecadd(run: &mut Run) -> Outcome {
    for n in [1usize, 256, 3001] {
        let (xs, ys) = vectors(n, true);
        let (a, b, c) = (run.gpu.buffer(&xs)?, run.gpu.buffer(&ys)?, run.gpu.zeros::<f32>(n)?);
        let [global, profile] = NO_SCRATCH;
        run.launch(Launch::grid(n.div_ceil(256)).block(128), args![&a, &b, &c, n as i32, global, profile])?;
        same_f32("c", &c.read(&run.gpu)?, &xs.iter().zip(&ys).map(|(x, y)| x + y).collect::<Vec<_>>())?;
    }
    Ok(())
}

fn triton_rows(run: &mut Run, columns: usize, out: usize, expect: impl Fn(&[f64]) -> Vec<f64>) -> Outcome {
    let rows = 10usize;
    let xs = Random::new(columns as u64).floats(rows * columns, 4.0);
    let (x, y) = (run.gpu.buffer(&xs)?, run.gpu.zeros::<f32>(rows * out)?);
    let [global, profile] = NO_SCRATCH;
    // The block comes from the kernel's `.reqntid`.
    run.launch(Launch::grid(rows).shared_bytes(16), args![&x, &y, columns as i32, global, profile])?;
    let expected: Vec<f64> = widened(&xs).chunks(columns).flat_map(expect).collect();
    close(&format!("{columns} columns: y"), &widened(&y.read(&run.gpu)?), &expected, 1e-5)
}

pub(super) fn triton_softmax(run: &mut Run) -> Outcome {
    for columns in [1usize, 100, 256] {
        triton_rows(run, columns, columns, |row| {
            let top = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let powers: Vec<f64> = row.iter().map(|v| (v - top).exp()).collect();
            let sum: f64 = powers.iter().sum();
            powers.iter().map(|p| p / sum).collect()
        })?;
    }
    Ok(())
}

pub(super) fn triton_rowsum(run: &mut Run) -> Outcome {
    for columns in [1usize, 128, 1000] {
        triton_rows(run, columns, 1, |row| vec![row.iter().sum()])?;
    }
    Ok(())
}

pub(super) fn triton_collatz(run: &mut Run) -> Outcome {
    let n = 300usize;
    let mut random = Random::new(8);
    let mut xs: Vec<u32> =
        (0..n).map(|i| if i % 4 == 0 { random.word() } else { random.below(1000) }).collect();
    xs[..4].copy_from_slice(&[0, 1, 2, u32::MAX]);
    let before: Vec<i32> = (0..n).map(|_| random.below(80) as i32 - 10).collect();
    let (x, y) = (run.gpu.buffer(&xs)?, run.gpu.buffer(&before)?);
    let [global, profile] = NO_SCRATCH;
    run.launch(Launch::grid(n.div_ceil(128)).block(128), args![&x, &y, n as i32, global, profile])?;
    let steps = |mut v: u32| {
        let mut steps = 0;
        while v > 1 && steps < 64 {
            v = if v % 2 == 1 { v.wrapping_mul(3).wrapping_add(1) } else { v / 2 };
            steps += 1;
        }
        steps
    };
    let expected: Vec<i32> = xs.iter().zip(&before).map(|(&v, &old)| old.max(steps(v))).collect();
    same("y", &y.read(&run.gpu)?, &expected)
}

pub(super) fn rust_saxpy(run: &mut Run) -> Outcome {
    let (n, a) = (500usize, 1.7f32);
    let (xs, ys) = vectors(n, true);
    let (x, y) = (run.gpu.buffer(&xs)?, run.gpu.buffer(&ys)?);
    run.launch(Launch::grid(6).block(96), args![&x, &y, a, n as u32])?;
    same_f32("y", &y.read(&run.gpu)?, &xs.iter().zip(&ys).map(|(x, y)| a * x + y).collect::<Vec<_>>())
}

pub(super) fn rust_modpow(run: &mut Run) -> Outcome {
    for modulus in [1_000_003u64, 0xffff_fffb, 1, 0] {
        let n = 100usize;
        let mut random = Random::new(modulus);
        let bases: Vec<u64> = (0..n).map(|_| random.next() >> 32).collect();
        let exponents: Vec<u64> = (0..n).map(|i| random.next() >> (i % 64)).collect();
        let (base, exponent) = (run.gpu.buffer(&bases)?, run.gpu.buffer(&exponents)?);
        let out = run.gpu.buffer(&vec![77u64; n])?;
        run.launch(Launch::grid(4).block(32), args![&base, &exponent, &out, modulus, n as u32])?;
        let power = |(&base, &exponent): (&u64, &u64)| {
            let (mut base, mut exponent, mut result) = (base % modulus, exponent, 1 % modulus);
            while exponent > 0 {
                if exponent % 2 == 1 {
                    result = result * base % modulus;
                }
                base = base * base % modulus;
                exponent /= 2;
            }
            result
        };
        let expected: Vec<u64> =
            if modulus == 0 { vec![77; n] } else { bases.iter().zip(&exponents).map(power).collect() };
        same(&format!("modulus {modulus}: out"), &out.read(&run.gpu)?, &expected)?;
    }
    Ok(())
}

pub(super) fn rust_fnv1a(run: &mut Run) -> Outcome {
    for length in [0usize, 1, 13] {
        let n = 70usize;
        let mut random = Random::new(length as u64);
        let text: Vec<u8> = (0..n * length).map(|_| random.word() as u8).collect();
        let (bytes, out) = (run.gpu.buffer(&text)?, run.gpu.zeros::<u64>(n)?);
        run.launch(Launch::grid(3).block(32), args![&bytes, length as u32, &out, n as u32])?;
        let hash = |i: usize| {
            let bytes = &text[i * length..][..length];
            bytes
                .iter()
                .fold(0xcbf2_9ce4_8422_2325u64, |h, &b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3))
        };
        same(&format!("length {length}: out"), &out.read(&run.gpu)?, &(0..n).map(hash).collect::<Vec<_>>())?;
    }
    Ok(())
}
