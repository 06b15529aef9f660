//! All tasks of a recursion in one channel, and stacks for continuations only: the paper's Figures 10 and 11.

use warploom::{Chip, Device, Report, SimOptions};
use warploom_flow::cilk::Cilk;
use warploom_flow::{Graph, Limits, Result};

const PTX: &str = warploom_kernels::text!("flow/fibonacci_main.ptx");

fn fib(n: u32) -> u32 {
    (0..n).fold((0, 1), |(a, b), _| (b, a + b)).0
}

fn graph(n: u32, levels: u32, width: u32, result: u64) -> Graph {
    let mut program = Cilk::new("fibonacci", width);
    let recursion = program.recursion(levels);
    let sum = program.after_sync::<[u32; 4]>(recursion, "fib_sum");
    let task = program.main_channel::<[u32; 4]>("fib_main");
    program.spawns::<[u32; 4]>(task, task, 2).syncs::<[u32; 4]>(task, sum);
    program.constants(task, [sum.stack.into()]);
    program.start(task, &[result as u32, (result >> 32) as u32, n, 0]);
    program.graph().clone()
}

fn run(n: u32, levels: u32, width: u32) -> Result<(u32, Report)> {
    let chip = Chip::load("apu", &["sm.count=2".to_string()]).unwrap();
    let mut gpu = Device::sim_with(chip, SimOptions::default());
    let module = gpu.load_ptx(PTX)?;
    let result = gpu.zeros::<u32>(1)?;
    let limits = Limits { max_cycles: Some(20_000_000), ..Limits::default() };
    let report =
        graph(n, levels, width, result.address()).execute(&mut gpu, &module)?.limits(limits).wait()?;
    Ok((result.read(&gpu)?[0], report))
}

#[test]
fn sums_wait_for_all_tasks() {
    for n in [1, 2, 3, 9, 15] {
        let (result, report) = run(n, n, 2048).unwrap();
        assert_eq!(result, fib(n), "{n}");
        assert_eq!(report.aggregator.unwrap()["yields"], 0);
    }
}

#[test]
fn wavefronts_of_several_levels() {
    // Tasks of different levels start together.
    let chip = Chip::load("apu", &["sm.count=2".to_string()]).unwrap();
    let mut gpu = Device::sim_with(chip, SimOptions::default());
    let module = gpu.load_ptx(PTX).unwrap();
    let numbers = [14, 11, 8, 3];
    let results = gpu.zeros::<u32>(numbers.len()).unwrap();
    let mut program = Cilk::new("fibonacci", 2048);
    let recursion = program.recursion(14);
    let sum = program.after_sync::<[u32; 4]>(recursion, "fib_sum");
    let task = program.main_channel::<[u32; 4]>("fib_main");
    program.spawns::<[u32; 4]>(task, task, 2).syncs::<[u32; 4]>(task, sum);
    program.constants(task, [sum.stack.into()]);
    for (at, n) in (0u64..).zip(numbers) {
        let address = results.address() + 4 * at;
        program.start(task, &[address as u32, (address >> 32) as u32, n, 14 - n]);
    }
    program.graph().predicate(task.stack, |waiting| waiting.ready > 0);
    let graph = program.graph().clone();
    graph.execute(&mut gpu, &module).unwrap().wait().unwrap();
    assert_eq!(results.read(&gpu).unwrap(), numbers.map(fib));
}

#[test]
fn too_few_levels_are_named() {
    let error = run(9, 4, 2048).unwrap_err().to_string();
    assert!(error.contains("behind the last level of channel `fib_sum`, which has 4"), "{error}");
}

#[test]
fn a_main_channel_that_is_too_narrow_hangs_and_is_named() {
    let error = run(15, 15, 64).unwrap_err().to_string();
    assert!(error.contains("hangs") && error.contains("channel `fib_main`"), "{error}");
}
