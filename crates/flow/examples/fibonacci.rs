//! The example of the channels paper (its Figure 6): Fibonacci by a graph of one kernel and one channel.
//!
//!     cargo run --release -p warploom-flow --example fibonacci -- 20

use warploom::Device;
use warploom_flow::{Graph, Level};

const LEN: u32 = 32_768;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let n: u32 = std::env::args().nth(1).map_or(Ok(16), |n| n.parse())?;
    let mut gpu = Device::sim("apu")?;
    let module = gpu.load_ptx(warploom_kernels::text!("flow/fibonacci.ptx"))?;
    let result = gpu.zeros::<u32>(1)?;

    let mut graph = Graph::new("fibonacci");
    let tasks = graph.channel::<u32>("tasks", LEN);
    let fib = graph.kernel("fib_naive");
    graph.reads::<u32>(fib, tasks).writes::<u32>(fib, tasks, Level::Same, 2);
    graph.constants(fib, [tasks.into(), (&result).into()]);
    graph.put(tasks, &n);

    let report = graph.execute(&mut gpu, &module)?.wait()?;
    println!("fib({n}) = {}, {} wavefronts in {} cycles", result.read(&gpu)?[0], report.warps, report.cycles);
    Ok(())
}
