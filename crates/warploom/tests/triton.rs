//! Kernels that Triton compiled (`kernels/triton`), on both models of the h200, against results computed here.

use half::f16;
use warploom::{Arg, Chip, Device, Launch, SimModel, SimOptions, args};

/// Reads a file of `kernels/triton`.
fn source(name: &str) -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../kernels/triton/");
    std::fs::read_to_string(format!("{path}{name}.ptx")).unwrap()
}

/// The number before some words in a kernel's first lines.
fn stated(ptx: &str, words: &str) -> u32 {
    let before = ptx[..ptx.find(words).unwrap()].trim_end();
    before.rsplit(' ').next().unwrap().parse().unwrap()
}

struct Gpu {
    device: Device,
    ptx: String,
    entry: String,
}

impl Gpu {
    /// Launches the kernel with the two pointers that Triton adds.
    fn launch(&mut self, grid: (u32, u32), mut arguments: Vec<Arg<'_>>) {
        let kernel = self.device.load_ptx(&self.ptx).unwrap().kernel(&self.entry).unwrap();
        let (threads, shared) = (stated(&self.ptx, "threads"), stated(&self.ptx, "bytes of dynamic"));
        let scratch = match self.ptx.contains("of scratch") {
            true => stated(&self.ptx, "bytes of scratch") * grid.0 * grid.1,
            false => 0,
        };
        // The driver's allocations are aligned to more than the 128 bytes of a tensor map.
        let scratch = self.device.zeros::<u8>(scratch as usize + 256).unwrap();
        arguments.extend([Arg::from(scratch.address().next_multiple_of(128)), Arg::from(0u64)]);
        let launch = Launch::grid(grid).block(threads).shared_bytes(shared);
        self.device.launch(&kernel, launch, arguments).unwrap();
    }
}

/// Runs a check of `entry` for each target and on both models.
fn each(entry: &str, targets: &[u32], check: impl Fn(&mut Gpu)) {
    for target in targets {
        for model in [SimModel::Functional, SimModel::Timing] {
            let chip = Chip::load("h200", &["sm.count=4".into()]).unwrap();
            let device = Device::sim_with(chip, SimOptions { model, ..SimOptions::default() });
            let ptx = source(&format!("{entry}_sm{target}"));
            check(&mut Gpu { device, ptx, entry: entry.to_string() });
        }
    }
}

/// Numbers between -1 and 1.
fn numbers(seed: u64, count: usize) -> Vec<f32> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 40) as f32 / (1 << 23) as f32 - 1.0
    };
    (0..count).map(|_| next()).collect()
}

fn halves(seed: u64, count: usize) -> Vec<f16> {
    numbers(seed, count).into_iter().map(f16::from_f32).collect()
}

/// Compares with numbers of about 1, within an error.
fn close(found: &[f32], wanted: &[f64], error: f64) {
    assert_eq!(found.len(), wanted.len());
    for (at, (&found, &wanted)) in found.iter().zip(wanted).enumerate() {
        assert!((f64::from(found) - wanted).abs() <= error, "[{at}] is {found}, not {wanted}");
    }
}

#[test]
fn softmax() {
    let (rows, columns) = (3, 200);
    let x = numbers(1, rows * columns);
    each("softmax", &[80, 90], |gpu| {
        let (input, out) = (gpu.device.buffer(&x).unwrap(), gpu.device.zeros::<f32>(x.len()).unwrap());
        gpu.launch((rows as u32, 1), args![&input, &out, columns as i32].to_vec());
        let wanted = x.chunks(columns).flat_map(|row| {
            let sum: f64 = row.iter().map(|&v| f64::from(v).exp()).sum();
            row.iter().map(move |&v| f64::from(v).exp() / sum)
        });
        close(&out.read(&gpu.device).unwrap(), &wanted.collect::<Vec<_>>(), 1e-6);
    });
}

#[test]
fn layernorm() {
    let (rows, columns) = (3, 300);
    let (x, weight, bias) = (numbers(2, rows * columns), numbers(3, columns), numbers(4, columns));
    each("layernorm", &[80, 90], |gpu| {
        let device = &mut gpu.device;
        let (input, out) = (device.buffer(&x).unwrap(), device.zeros::<f32>(x.len()).unwrap());
        let (w, b) = (device.buffer(&weight).unwrap(), device.buffer(&bias).unwrap());
        gpu.launch((rows as u32, 1), args![&input, &out, &w, &b, columns as i32, 1e-5f32].to_vec());
        let wanted = x.chunks(columns).flat_map(|row| {
            let mean = row.iter().map(|&v| f64::from(v)).sum::<f64>() / columns as f64;
            let spread = row.iter().map(|&v| (f64::from(v) - mean).powi(2)).sum::<f64>() / columns as f64;
            let scale = 1.0 / (spread + 1e-5).sqrt();
            let scaled = row.iter().zip(&weight).zip(&bias);
            scaled.map(move |((&v, &w), &b)| (f64::from(v) - mean) * scale * f64::from(w) + f64::from(b))
        });
        close(&out.read(&gpu.device).unwrap(), &wanted.collect::<Vec<_>>(), 1e-5);
    });
}

fn check_product(entry: &str, targets: &[u32], (m, n, k): (usize, usize, usize)) {
    let (a, b) = (halves(5, m * k), halves(6, k * n));
    let wanted: Vec<f64> = (0..m * n)
        .map(|at| (0..k).map(|i| a[at / n * k + i].to_f64() * b[i * n + at % n].to_f64()).sum())
        .collect();
    each(entry, targets, |gpu| {
        let device = &mut gpu.device;
        let (x, y) = (device.buffer(&a).unwrap(), device.buffer(&b).unwrap());
        let out = device.zeros::<f32>(m * n).unwrap();
        let grid = (m.div_ceil(64) as u32, n.div_ceil(64) as u32);
        gpu.launch(grid, args![&x, &y, &out, m as i32, n as i32, k as i32].to_vec());
        close(&out.read(&gpu.device).unwrap(), &wanted, 1e-4);
    });
}

#[test]
fn matmul() {
    // Not multiples of the blocks.
    check_product("matmul", &[80, 90], (80, 112, 144));
}

#[test]
fn matmul_with_tensor_maps() {
    check_product("matmul_tma", &[90], (128, 80, 208));
}

#[test]
fn flash_attention() {
    let (heads, length, d) = (2, 100, 64);
    let [q, k, v] = [7, 8, 9].map(|seed| halves(seed, heads * length * d));
    let mut wanted = Vec::new();
    for head in 0..heads {
        let row = |of: &[f16], at: usize| {
            of[(head * length + at) * d..][..d].iter().map(|x| x.to_f64()).collect::<Vec<_>>()
        };
        for m in 0..length {
            let query = row(&q, m);
            let dot = |key: Vec<f64>| query.iter().zip(key).map(|(x, y)| x * y).sum::<f64>();
            let weights: Vec<f64> = (0..=m).map(|n| (dot(row(&k, n)) / (d as f64).sqrt()).exp()).collect();
            let whole: f64 = weights.iter().sum();
            let mut sum = vec![0.0; d];
            for (n, weight) in weights.iter().enumerate() {
                sum.iter_mut().zip(row(&v, n)).for_each(|(sum, v)| *sum += weight / whole * v);
            }
            wanted.extend(sum);
        }
    }
    let scale = std::f32::consts::LOG2_E / (d as f32).sqrt();
    each("attention", &[80, 90], |gpu| {
        let device = &mut gpu.device;
        let [q, k, v] = [&q, &k, &v].map(|values| device.buffer(values).unwrap());
        let out = device.zeros::<f16>(wanted.len()).unwrap();
        let grid = (length.div_ceil(64) as u32, heads as u32);
        gpu.launch(grid, args![&q, &k, &v, &out, scale, length as i32].to_vec());
        let found = out.read(&gpu.device).unwrap();
        let found: Vec<f32> = found.into_iter().map(f16::to_f32).collect();
        close(&found, &wanted, 2e-3);
    });
}
