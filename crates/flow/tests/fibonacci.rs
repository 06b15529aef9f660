//! Fibonacci on the device: the naive graph of Figure 6 and the Cilk program of Figure 8.

use warploom::{Chip, Device, Report, SimOptions};
use warploom_flow::{Graph, Layout, Level, Node, Waiting};

const PTX: &str = warploom_kernels::text!("flow/fibonacci.ptx");

fn apu(changes: &[&str]) -> Device {
    let changes: Vec<String> = changes.iter().map(|s| s.to_string()).collect();
    Device::sim_with(Chip::load("apu", &changes).unwrap(), SimOptions::default())
}

fn fib(n: u32) -> u32 {
    (0..n).fold((0, 1), |(a, b), _| (b, a + b)).0
}

/// The graph of Figure 7. Returns the Fibonacci number and the report.
fn naive(gpu: &mut Device, n: u32, width: u32, change: impl Fn(&mut Graph, Node)) -> (u32, Report) {
    let module = gpu.load_ptx(PTX).unwrap();
    let result = gpu.zeros::<u32>(1).unwrap();
    let mut graph = Graph::new("fibonacci");
    let tasks = graph.channel::<u32>("tasks", width);
    let kernel = graph.kernel("fib_naive");
    graph.reads::<u32>(kernel, tasks).writes::<u32>(kernel, tasks, Level::Same, 2);
    graph.constants(kernel, [tasks.into(), (&result).into()]).put(tasks, &n);
    change(&mut graph, tasks);
    let report = graph.execute(gpu, &module).unwrap().wait().unwrap();
    (result.read(gpu).unwrap()[0], report)
}

/// The graph of Figure 12.
fn cilk(gpu: &mut Device, n: u32, width: u32, change: impl Fn(&mut Graph, Node)) -> (u32, Report) {
    let module = gpu.load_ptx(PTX).unwrap();
    let result = gpu.zeros::<u32>(1).unwrap();
    let mut graph = Graph::new("fibonacci");
    let tasks = graph.stack::<[u32; 4]>("tasks", n, width);
    let sums = graph.stack::<[u32; 4]>("sums", n, width);
    let (spawn, sum) = (graph.kernel("fib"), graph.kernel("fib_sum"));
    graph.reads::<[u32; 4]>(spawn, tasks).constants(spawn, [sums.into()]);
    graph.writes::<[u32; 4]>(spawn, tasks, Level::Next, 2).writes::<[u32; 4]>(spawn, sums, Level::Same, 1);
    graph.reads::<[u32; 4]>(sum, sums).after_sync(sum);
    let address = result.address();
    graph.put(tasks, &[address as u32, (address >> 32) as u32, n, 0]);
    change(&mut graph, sums);
    let report = graph.execute(gpu, &module).unwrap().wait().unwrap();
    (result.read(gpu).unwrap()[0], report)
}

fn count(report: &Report, what: &str) -> u64 {
    report.aggregator.as_ref().unwrap()[what]
}

#[test]
fn the_naive_graph_counts_leaves() {
    let (result, report) = naive(&mut apu(&["sm.count=2"]), 14, 1024, |_, _| {});
    assert_eq!(result, fib(14));
    assert_eq!(count(&report, "yields"), 0);
}

#[test]
fn wrong_from_the_start_is_noticed() {
    let (result, _) = naive(&mut apu(&["sm.count=1"]), 3, 64, |_, _| {});
    assert_ne!(result, fib(4));
}

#[test]
fn the_cilk_program_adds_up() {
    for cus in ["sm.count=1", "sm.count=8"] {
        let (result, report) = cilk(&mut apu(&[cus]), 14, 1024, |_, _| {});
        assert_eq!(result, fib(14));
        // 753 tasks on 13 levels and 376 sums on 12, each level in as few wavefronts as possible.
        assert_eq!((report.warps, count(&report, "yields")), (34, 0), "{cus}");
    }
}

#[test]
fn narrow_channels_yield_and_go_on() {
    let (result, report) = cilk(&mut apu(&["sm.count=2"]), 15, 64, |_, _| {});
    assert_eq!(result, fib(15));
    assert!(count(&report, "yields") > 0);
    assert_eq!(count(&report, "yields"), count(&report, "restarts"));
}

#[test]
fn every_layout_and_group_and_way_to_reserve() {
    for width in [64, 512] {
        for layout in [Layout::Structures, Layout::Padded, Layout::Arrays] {
            let (result, _) = cilk(&mut apu(&["sm.count=2"]), 12, width, |graph, _| {
                graph.layout(layout);
            });
            assert_eq!(result, fib(12), "{layout:?}");
        }
        for group in [1, 16] {
            let (result, _) = cilk(&mut apu(&["sm.count=2"]), 12, width, |graph, _| {
                graph.group(group);
            });
            assert_eq!(result, fib(12), "groups of {group}");
        }
        let (result, _) = cilk(&mut apu(&["sm.count=2"]), 12, width, |graph, _| {
            graph.lane_by_lane(true);
        });
        assert_eq!(result, fib(12));
    }
}

#[test]
fn a_predicate_says_when_wavefronts_start() {
    let with = |predicate: Option<fn(Waiting) -> bool>| {
        naive(&mut apu(&["sm.count=2"]), 17, 4096, |graph, tasks| {
            if let Some(predicate) = predicate {
                graph.predicate(tasks, predicate);
            }
        })
    };
    let (number, usual) = with(None);
    let (eager_number, eager) = with(Some(|waiting| waiting.ready > 0));
    let (full_number, full) = with(Some(|waiting| waiting.ready >= 64 || !waiting.may_grow));
    assert_eq!([number, eager_number, full_number], [fib(17); 3]);
    // A predicate that never waits starts more wavefronts. One that waits for full wavefronts starts them one by one,
    // where the usual one starts whole levels.
    assert!(eager.warps > usual.warps, "{} {}", eager.warps, usual.warps);
    let starts = [&eager, &full, &usual].map(|report| count(report, "starts"));
    assert!(starts[0] >= starts[1] && starts[1] > starts[2], "{starts:?}");
    // Elements that are always held back start when nothing else can run.
    let (number, _) = with(Some(|_| false));
    assert_eq!(number, fib(17));
}

#[test]
fn a_predicate_of_what_follows_a_sync() {
    let with = |predicate: fn(Waiting) -> bool| {
        cilk(&mut apu(&["sm.count=2"]), 14, 1024, |graph, sums| {
            graph.predicate(sums, predicate);
        })
    };
    let (_, usual) = with(|_| true);
    let (held, late) = with(|_| false);
    assert_eq!(held, fib(14));
    assert!(late.cycles > usual.cycles, "{} {}", late.cycles, usual.cycles);
}
