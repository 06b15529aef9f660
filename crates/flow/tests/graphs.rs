//! Graphs that cannot work are refused with a reason; custom schedulers; hangs that are explained.

use warploom::{Chip, Device, Error, SimOptions};
use warploom_flow::{Arena, Flow, FlowError, Graph, Level};

const PTX: &str = warploom_kernels::text!("flow/fibonacci.ptx");

fn apu(cus: u32) -> Device {
    let chip = Chip::load("apu", &[format!("sm.count={cus}")]).unwrap();
    Device::sim_with(chip, SimOptions::default())
}

/// One channel and one kernel that both reads and writes it.
fn one(width: u32) -> Graph {
    let mut graph = Graph::new("one");
    let tasks = graph.channel::<u32>("tasks", width);
    let kernel = graph.kernel("fib_naive");
    graph.reads::<u32>(kernel, tasks).writes::<u32>(kernel, tasks, Level::Same, 2);
    graph.put(tasks, &9u32);
    graph
}

fn refusal(graph: &Graph) -> String {
    graph.check().unwrap_err().to_string()
}

#[test]
fn widths() {
    assert!(one(64).check().is_ok());
    assert_eq!(
        refusal(&one(0)),
        "channel `tasks`: a width of 0 is less than the 64 elements that a wavefront takes"
    );
    assert_eq!(
        refusal(&one(32)),
        "channel `tasks`: a width of 32 is less than the 64 elements that a wavefront takes"
    );
    assert!(refusal(&one(100)).contains("a power of two"));
    assert!(refusal(one(64).group(128)).contains("no more than the width"));
    let mut full = one(64);
    let tasks = full.channel::<u32>("more", 64);
    (0..65).for_each(|i| {
        full.put(tasks, &i);
    });
    assert_eq!(refusal(&full), "65 elements are put into channel `more`, which holds 64");
}

#[test]
fn connections() {
    let mut graph = one(64);
    graph.channel::<u32>("lonely", 64);
    assert!(refusal(&graph).starts_with("channel `lonely` has no consumer"));

    let mut graph = one(64);
    let other = graph.channel::<u32>("other", 64);
    let kernel = graph.kernel("second");
    graph.reads::<u32>(kernel, other);
    assert!(refusal(&graph).starts_with("nothing is ever put into channel `other`"));

    let mut graph = one(64);
    graph.kernel("idle");
    assert!(refusal(&graph).starts_with("kernel `idle` reads no channel"));

    let mut graph = Graph::new("two");
    let tasks = graph.channel::<u32>("tasks", 64);
    let (a, b) = (graph.kernel("a"), graph.kernel("b"));
    graph.reads::<u32>(a, tasks).reads::<u32>(b, tasks).put(tasks, &1u32);
    assert!(refusal(&graph).starts_with("channel `tasks` has two consumers, `a` and `b`"));
}

#[test]
fn sizes() {
    let mut graph = Graph::new("sizes");
    let tasks = graph.channel::<u32>("tasks", 64);
    let kernel = graph.kernel("k");
    graph.reads::<[u32; 2]>(kernel, tasks).put(tasks, &1u32);
    assert_eq!(refusal(&graph), "kernel `k` reads elements of 8 bytes, but those of channel `tasks` have 4");
    graph.reads::<u32>(kernel, tasks);
    assert!(refusal(&graph).contains("reads another channel, too"));

    let mut graph = one(64);
    let first = graph.stack::<u64>("sums", 3, 64);
    let sum = graph.kernel("sum");
    graph.reads::<u64>(sum, first);
    let more = graph.kernel("more");
    let tasks = graph.stack::<u32>("levels", 4, 64);
    graph.reads::<u32>(more, tasks).writes::<u64>(more, first, Level::Same, 1).put(tasks, &1u32);
    assert_eq!(
        refusal(&graph),
        "kernel `more` reads `levels`, which has 4, and writes the same levels of `sums`, which has 3"
    );
}

#[test]
fn kernels_with_wrong_parameters() {
    let mut gpu = apu(1);
    let module = gpu.load_ptx(PTX).unwrap();
    // `fib_naive` takes a channel and a pointer after its `Work`.
    let error = one(64).execute(&mut gpu, &module).unwrap_err();
    assert!(matches!(error, FlowError::Device(Error::Args(_))), "{error}");
    let plain = gpu.load_ptx(warploom_kernels::text!("vecadd.ptx")).unwrap();
    let mut graph = Graph::new("plain");
    let tasks = graph.channel::<u32>("tasks", 64);
    let kernel = graph.kernel("vecadd");
    graph.reads::<u32>(kernel, tasks).put(tasks, &1u32);
    let error = graph.execute(&mut gpu, &plain).unwrap_err();
    assert!(error.to_string().starts_with("kernel `vecadd` does not take `Work` first"), "{error}");
}

#[test]
fn more_than_the_memory() {
    let mut gpu = apu(1);
    let module = gpu.load_ptx(PTX).unwrap();
    let mut graph = Graph::new("huge");
    let tasks = graph.stack::<[u32; 4]>("tasks", 100, 1 << 28);
    let kernel = graph.kernel("fib_sum");
    graph.reads::<[u32; 4]>(kernel, tasks).put(tasks, &[0u32; 4]);
    let error = graph.execute(&mut gpu, &module).unwrap_err().to_string();
    assert!(error.contains("take narrower channels or fewer levels"), "{error}");
}

/// An endless recursion fills its channel with tasks that all wait for room in it.
#[test]
fn a_cycle_that_cannot_end_is_explained() {
    let mut gpu = apu(1);
    let module = gpu.load_ptx(PTX).unwrap();
    let result = gpu.zeros::<u32>(1).unwrap();
    let mut graph = Graph::new("endless");
    let tasks = graph.channel::<u32>("tasks", 64);
    let kernel = graph.kernel("fib_naive");
    graph.reads::<u32>(kernel, tasks).writes::<u32>(kernel, tasks, Level::Same, 2);
    graph.constants(kernel, [tasks.into(), (&result).into()]).put(tasks, &4_000_000_000u32);
    let error = graph.execute(&mut gpu, &module).unwrap().wait().unwrap_err();
    let FlowError::Device(Error::Hang { message, .. }) = error else { panic!("{error}") };
    assert!(message.contains("yielded"), "{message}");
}

/// Wavefronts that cannot yield stay resident and wait for room that only other wavefronts can make.
#[test]
fn without_yield_a_full_channel_blocks() {
    let chip = Chip::load("apu", &["sm.count=1".to_string()]).unwrap();
    let mut gpu = Device::sim_with(Chip { wavefront_yield: None, ..chip }, SimOptions::default());
    let module = gpu.load_ptx(PTX).unwrap();
    let result = gpu.zeros::<u32>(1).unwrap();
    let mut graph = Graph::new("full");
    let tasks = graph.channel::<u32>("tasks", 64);
    let kernel = graph.kernel("fib_naive");
    graph.reads::<u32>(kernel, tasks).writes::<u32>(kernel, tasks, Level::Same, 2);
    graph.constants(kernel, [tasks.into(), (&result).into()]).put(tasks, &20u32);
    let error = graph.execute(&mut gpu, &module).unwrap().wait().unwrap_err();
    let FlowError::Device(Error::Hang { message, .. }) = error else { panic!("{error}") };
    assert!(message.contains("wavefronts of `apu` cannot yield"), "{message}");
}

/// A custom scheduler: one wavefront at a time, from any channel that has elements.
async fn one_at_a_time(mut flow: Flow) {
    while !flow.is_finished() {
        flow.poll().await;
        let busy = (0..flow.channels()).any(|at| flow.outstanding(at) > 0);
        let ready = (0..flow.channels()).find(|&at| flow.ready(at) > 0);
        match ready.filter(|_| !busy) {
            Some(at) => {
                flow.start(at, 64);
            }
            None => flow.agg().sleep(50).await,
        }
        flow.free();
    }
}

#[test]
fn another_scheduler() {
    let mut gpu = apu(4);
    let module = gpu.load_ptx(PTX).unwrap();
    let result = gpu.zeros::<u32>(1).unwrap();
    let mut graph = Graph::new("fibonacci");
    let tasks = graph.channel::<u32>("tasks", 1024);
    let kernel = graph.kernel("fib_naive");
    graph.reads::<u32>(kernel, tasks).writes::<u32>(kernel, tasks, Level::Same, 2);
    graph.constants(kernel, [tasks.into(), (&result).into()]).put(tasks, &12u32);
    let report = graph.execute(&mut gpu, &module).unwrap().wait_with(one_at_a_time).unwrap();
    assert_eq!(result.read(&gpu).unwrap(), [144]);
    assert!(report.warps > 5);
}

#[test]
fn the_host_needs_functions() {
    let mut memory = Arena::new(0, 0);
    let error = one(64).run_on_host(&mut memory).unwrap_err();
    assert_eq!(
        error.to_string(),
        "kernel `fib_naive` has no function for the host; give it one with `on_host`"
    );
}

#[test]
fn drawings() {
    insta::assert_snapshot!(one(64).dot());
}
