//! Adds two vectors on a simulated GTX 480: `cargo run --release -p warploom --example vecadd`.

use warploom::{Device, Error, Launch, args};

fn main() -> Result<(), Error> {
    let n = 1 << 20;
    let xs: Vec<f32> = (0..n).map(|i| i as f32).collect();
    let ys: Vec<f32> = (0..n).map(|i| 0.5 * i as f32).collect();

    let mut gpu = Device::sim("gtx480")?;
    let module = gpu.load_ptx(warploom_kernels::text!("vecadd.ptx"))?;
    let (a, b, c) = (gpu.buffer(&xs)?, gpu.buffer(&ys)?, gpu.zeros::<f32>(n)?);

    let launch = Launch::grid(n / 256).block(256);
    let report = gpu.launch(module.kernel("vecadd")?, launch, args![&a, &b, &c, n as u32])?;

    let sums = c.read(&gpu)?;
    assert!((0..n).all(|i| sums[i] == xs[i] + ys[i]));
    println!("{n} sums, the last one {}", sums[n - 1]);
    println!(
        "{} warp instructions on {} in {:.3} s, {} registers per thread, {:.0}% of the lanes busy",
        report.warp_insts,
        report.chip,
        report.wall_s,
        report.registers,
        100.0 * report.simd_efficiency
    );
    Ok(())
}
