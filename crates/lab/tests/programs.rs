//! Random programs have one result on every chip: with any kind of divergence, any warp width, and with or without
//! timing.

use std::ops::Range;

use warploom::{Chip, Device, SimModel, SimOptions, Timing};
use warploom_lab::conform::fuzz::{Options, Program, compare, minimise};

fn functional(chip: &str) -> Device {
    let options = SimOptions { model: SimModel::Functional, ..SimOptions::default() };
    Device::sim_with(Chip::load(chip, &[]).unwrap(), options)
}

fn timed(chip: Chip, policy: &str) -> Device {
    let timing = Timing { policy: Some(policy.to_string()), threads: 1, ..Timing::default() };
    Device::sim_with(chip, SimOptions { timing, ..SimOptions::default() })
}

fn agree(mut a: Device, mut b: Device, seeds: Range<u64>) {
    let report = compare(&mut a, &mut b, seeds.clone(), Options::default(), &mut |_| ());
    assert_eq!(report.programs, (seeds.end - seeds.start) as usize);
    let Some(first) = report.differences.first() else { return };
    let program = Program::generate(first.seed, Options::default());
    let minimal = minimise(&mut a, &mut b, &program);
    let text = minimal.map_or(String::new(), |m| format!("{}\n{}", m.what, m.ptx));
    let seeds: Vec<_> = report.differences.iter().map(|d| d.seed).collect();
    panic!("{:?} differ in seeds {seeds:?}; {}; at its smallest:\n{text}", report.devices, first.what);
}

#[test]
fn stack_and_independent_threads_agree() {
    agree(functional("gtx480"), functional("h200"), 0..200);
}

#[test]
fn narrow_and_wide_warps_agree() {
    agree(functional("h200"), functional("apu"), 0..200);
}

/// Compares every scheduler of a chip with the run without timing.
fn timing_changes_nothing(chip: &str, first_seed: u64) {
    const EACH: u64 = 32;
    for ((policy, _), at) in warploom::policies().into_iter().zip(0..) {
        let first = first_seed + at * EACH;
        agree(functional(chip), timed(Chip::load(chip, &[]).unwrap(), policy), first..first + EACH);
    }
}

#[test]
fn timing_changes_nothing_on_gtx480() {
    timing_changes_nothing("gtx480", 1000);
}

#[test]
fn timing_changes_nothing_on_gtx570() {
    timing_changes_nothing("gtx570", 2000);
}

#[test]
fn timing_changes_nothing_on_gtx1080ti() {
    timing_changes_nothing("gtx1080ti", 3000);
}

#[test]
fn timing_changes_nothing_on_h200() {
    timing_changes_nothing("h200", 4000);
}

#[test]
fn timing_changes_nothing_on_apu() {
    timing_changes_nothing("apu", 5000);
}

/// Chips with one of each resource: everything that waits for room must get it in the end.
#[test]
fn timing_changes_nothing_on_the_smallest_chips() {
    const ONES: &[&str] = &[
        "sm.count",
        "issue.schedulers",
        "fetch.buffer_entries",
        "fetch.width",
        "fetch.cache.sets",
        "fetch.cache.ways",
        "operands.banks",
        "operands.sp_collectors",
        "operands.sfu_collectors",
        "operands.memory_collectors",
        "operands.writeback_ports",
        "shared.banks",
        "l1.mshrs",
        "l1.mshr_merges",
        "l1.cache.sets",
        "l1.cache.ways",
        "constant.cache.sets",
        "constant.cache.ways",
        "interconnect.latency_cycles",
        "interconnect.queue_packets",
        "l2.partitions",
        "l2.slices_per_partition",
        "l2.mshrs",
        "l2.mshr_merges",
        "l2.queue_requests",
        "l2.cache.sets",
        "l2.cache.ways",
        "dram.queue_requests",
    ];
    let settings: Vec<String> = ONES.iter().map(|key| format!("{key}=1")).collect();
    for (chip, first) in ["gtx480", "gtx1080ti", "h200", "apu"].into_iter().zip((6000..).step_by(100)) {
        let mut settings = settings.clone();
        if chip == "apu" {
            // The apu's aggregator sends two at once.
            settings.push("interconnect.queue_packets=2".to_string());
        }
        if chip == "h200" {
            // One for each half, and one atomic at a time.
            settings.extend(["l2.partitions=2", "interconnect.atomic_window=1"].map(String::from));
        }
        agree(functional(chip), timed(Chip::load(chip, &settings).unwrap(), "lrr"), first..first + 8);
    }
}
