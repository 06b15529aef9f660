//! The reasons that `repro isca14` prints for rows outside their bands: what they say is seen in runs that are small
//! enough for a test.

use warploom::{Chip, Device, Report, SimOptions};
use warploom_lab::work::Workload;

fn run(name: &str, values: &[&str], changes: &[&str]) -> Report {
    let workload = Workload::find(name).unwrap();
    let values = workload.values(values).unwrap();
    let changes: Vec<String> = changes.iter().map(|change| change.to_string()).collect();
    let mut gpu = Device::sim_with(Chip::load("apu", &changes).unwrap(), SimOptions::default());
    let outcome = workload.run(&mut gpu, &values, &|launch| launch).unwrap();
    assert!(outcome.check.is_ok(), "{name} {values}: {:?}", outcome.check);
    outcome.total
}

/// Cycles in which no compute unit had a wavefront.
fn stalled(report: &Report) -> f64 {
    report.aggregator.as_ref().unwrap()["gpu_stalled_cycles"] as f64
}

/// Figure 15: the tasks of all compute units together do not fit the L2, those of one do. Everything is smaller here,
/// and in proportion: compute units and their wavefronts, what a task sorts, caches, and DRAM's bandwidth.
#[test]
fn sort_scales_where_the_l2_holds_what_is_sorted_at_once() {
    let small = |l2_sets: u32, dram_mhz: u32, units: u32| {
        let changes = [
            format!("l2.cache.sets={l2_sets}"),
            format!("clock.dram_mhz={dram_mhz}"),
            format!("sm.count={units}"),
        ];
        let mut changes: Vec<&str> = changes.iter().map(String::as_str).collect();
        changes.extend(["sm.max_warps=4", "l1.cache.sets=2"]);
        // Few wavefronts: their starts would count more than in the paper's sort.
        changes.extend(["aggregator.packet_cycles=0", "aggregator.start_looks=0"]);
        run("sort", &["count=8192", "base=16"], &changes)
    };
    let lines = |report: &Report| report.coherence.as_ref().unwrap()["memory"] as f64;
    let (one, four) = (small(4, 250, 1), small(4, 250, 4));
    assert!(lines(&four) > 1.5 * lines(&one), "{} lines from memory, {}", lines(&four), lines(&one));
    assert!(four.dram_utilisation > Some(0.6), "{:?}", four.dram_utilisation);
    let speedup = |one: &Report, four: &Report| one.cycles as f64 / four.cycles as f64;
    let bound = speedup(&one, &four);
    let with_room = speedup(&small(32, 250, 1), &small(32, 250, 4));
    let fast = speedup(&small(4, 2000, 1), &small(4, 2000, 4));
    assert!(with_room > 1.5 * bound, "{with_room:.2} with a larger L2, {bound:.2}");
    assert!(fast > 1.5 * bound, "{fast:.2} with faster DRAM, {bound:.2}");
}

/// Figure 15: one compute unit mostly has a warp of Queens to issue, and eight wait for memory.
#[test]
fn queens_waits_for_memory_on_eight_compute_units() {
    let on = |units: &str| run("queens", &["n=11", "serial=6"], &[units]);
    let (one, eight) = (on("sm.count=1"), on("sm.count=8"));
    let waits = |report: &Report| {
        let stalls = report.stalls.as_ref().unwrap();
        (stalls["long_scoreboard"], stalls["not_selected"])
    };
    let ((memory, other), (memory_of_eight, other_of_eight)) = (waits(&one), waits(&eight));
    assert!(memory < other, "one waits {memory} warp cycles for memory, {other} for another warp's turn");
    assert!(memory_of_eight > 3 * other_of_eight, "eight wait {memory_of_eight}, {other_of_eight}");
    assert!(eight.dram_utilisation > one.dram_utilisation.map(|share| 2.0 * share));
}

/// Table 5: with an out-of-order core, what blocks the GPU are the packets of the starts, which take the same time with
/// every core; with the simple core it is the firmware.
#[test]
fn packets_are_what_blocks_fibonacci_with_an_out_of_order_core() {
    let share_of_packets = |core: &str| {
        let core = format!("aggregator.core={core}");
        let with = stalled(&run("fibonacci", &["n=18"], &[&core]));
        let without = stalled(&run("fibonacci", &["n=18"], &[&core, "aggregator.packet_cycles=0"]));
        (with - without) / with
    };
    let (simple, four_way) = (share_of_packets("simple"), share_of_packets("4-way"));
    assert!(simple < 0.35, "{simple:.2}");
    assert!(four_way > 0.7, "{four_way:.2}");
}

/// Section 8.2.1: each group blocks the GPU until its count has been read, and the order of wavefronts for less.
#[test]
fn each_group_that_is_done_blocks_the_gpu() {
    let of = |n: &str, group: &str, latency: u32| {
        let latency = format!("aggregator.command_latency_cycles={latency}");
        run("fibonacci", &[n, "width=65536", group], &[&latency])
    };
    for n in ["n=18", "n=20"] {
        let (freed, kept) = (of(n, "group=64", 22), of(n, "group=65536", 22));
        // When it is freed, a store to its count and one to the head.
        let groups = freed.aggregator.as_ref().unwrap()["stores"] as f64 / 2.0;
        let each = (stalled(&freed) - stalled(&kept)) / groups;
        assert!((2.0..10.0).contains(&each), "{n}: {each:.1} cycles for each of {groups} groups");
        let order = (stalled(&of(n, "group=65536", 25)) - stalled(&kept)).abs();
        assert!(order < (stalled(&freed) - stalled(&kept)) / 2.0, "{n}: {order} cycles by another order");
    }
}
