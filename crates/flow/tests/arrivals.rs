//! Elements that the host puts while the graph runs.

use warploom::{Chip, Device, Report, SimOptions};
use warploom_flow::{Arena, FlowError, Graph, Level, Result};

const PTX: &str = warploom_kernels::text!("flow/fibonacci.ptx");

fn apu(changes: &[&str]) -> Device {
    let changes: Vec<String> =
        ["sm.count=2"].iter().chain(changes).map(|change| change.to_string()).collect();
    Device::sim_with(Chip::load("apu", &changes).unwrap(), SimOptions::default())
}

fn fib(n: u32) -> u32 {
    (0..n).fold((0, 1), |(a, b), _| (b, a + b)).0
}

/// Adds up the Fibonacci numbers of the elements at `result`.
fn graph(width: u32, result: u64, arrivals: &[(u64, u32)]) -> Graph {
    let mut graph = Graph::new("requests");
    let tasks = graph.channel::<u32>("tasks", width);
    let kernel = graph.kernel("fib_naive");
    graph.reads::<u32>(kernel, tasks).writes::<u32>(kernel, tasks, Level::Same, 2);
    graph.constants(kernel, [tasks.into(), result.into()]);
    graph.on_host(kernel, move |lane| {
        match lane.read::<u32>() {
            0..=2 => lane.memory().add(result, 1),
            n => lane.put(tasks, 0, &[n - 1, n - 2]),
        };
    });
    for (cycle, n) in arrivals {
        graph.put_at(tasks, *cycle, n);
    }
    graph
}

fn run_on(gpu: &mut Device, width: u32, arrivals: &[(u64, u32)]) -> Result<(u32, Report)> {
    let module = gpu.load_ptx(PTX)?;
    let result = gpu.zeros::<u32>(1)?;
    let report = graph(width, result.address(), arrivals).execute(gpu, &module)?.wait()?;
    Ok((result.read(gpu)?[0], report))
}

fn run(width: u32, arrivals: &[(u64, u32)]) -> Result<(u32, Report)> {
    run_on(&mut apu(&[]), width, arrivals)
}

fn expected(arrivals: &[(u64, u32)]) -> u32 {
    arrivals.iter().map(|&(_, n)| fib(n)).sum()
}

#[test]
fn a_stream_of_requests() {
    // Out of order, some together, some while the last are being processed.
    let arrivals: Vec<(u64, u32)> = (0..40).map(|i| (u64::from(i * 7 % 40) / 3 * 2_000, 3 + i % 9)).collect();
    let (result, report) = run(1024, &arrivals).unwrap();
    assert_eq!(result, expected(&arrivals));
    let last = arrivals.iter().map(|&(cycle, _)| cycle).max().unwrap();
    assert!(report.cycles >= last, "{}", report.cycles);
}

#[test]
fn nobody_waits_for_the_last_request() {
    // They come further apart than the GPU takes for one.
    let arrivals: Vec<(u64, u32)> = (0..8).map(|i| (100_000 * i, 2)).collect();
    let (result, report) = run(1024, &arrivals).unwrap();
    assert_eq!((result, report.aggregator.unwrap()["starts"]), (8, 8));
}

#[test]
fn the_host_agrees() {
    let arrivals: Vec<(u64, u32)> = (0..200).map(|i| (1_000 * u64::from(i), 1 + i % 12)).collect();
    let mut memory = Arena::new(0x1000, 0);
    let result = memory.buffer(&[0]);
    graph(1024, result, &arrivals).run_on_host(&mut memory).unwrap();
    assert_eq!(memory.read(result, 1), [expected(&arrivals)]);
}

#[test]
fn more_at_once_than_there_is_room_for() {
    let arrivals = vec![(100, 2); 300];
    let (result, _) = run(64, &arrivals).unwrap();
    assert_eq!(result, 300);
}

#[test]
fn a_silence_is_a_hang_only_as_long_as_the_chip_file_says() {
    let arrivals = [(0, 5), (5_000_000, 6)];
    let error = run(64, &arrivals).unwrap_err().to_string();
    assert!(error.contains("seems to hang") && error.contains("hang.suspect_cycles=N"), "{error}");
    let mut gpu = apu(&["hang.suspect_cycles=0"]);
    let (result, report) = run_on(&mut gpu, 64, &arrivals).unwrap();
    assert_eq!(result, fib(5) + fib(6));
    assert!(report.cycles >= 5_000_000);
}

#[test]
fn elements_of_another_size_are_refused() {
    let mut graph = graph(64, 0x1000, &[]);
    let other = graph.channel::<u64>("other", 64);
    let kernel = graph.kernel("relay");
    graph.reads::<u64>(kernel, other).put_at(other, 10, &7u32);
    let error = graph.check().unwrap_err().to_string();
    // The channel of the tasks is never filled, but comes second.
    assert!(matches!(graph.check(), Err(FlowError::BadShape { .. })), "{error}");
    assert_eq!(error, "channel `other`: an element of 4 bytes is put where elements have 8");
}

#[test]
fn a_gpu_without_an_aggregator_refuses_them() {
    let mut gpu = Device::sim("h200").unwrap();
    let module = gpu.load_ptx(warploom_kernels::text!("flow/gpu/fibonacci.ptx")).unwrap();
    let result = gpu.zeros::<u32>(1).unwrap();
    let graph = graph(64, result.address(), &[(5, 3)]);
    let error = graph.execute_on_gpu(&mut gpu, &module).unwrap_err().to_string();
    assert!(
        error.contains("channel `tasks` come while it runs (`put_at`), which takes an aggregator"),
        "{error}"
    );
}
