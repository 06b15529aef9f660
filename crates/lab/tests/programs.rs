//! Random programs have one result, whatever the chip does with divergence, however wide its warps are, and whether it is
//! simulated with timing or without.

use std::ops::Range;

use warploom::{Chip, Device, SimModel, SimOptions, Timing};
use warploom_lab::conform::fuzz::{Options, Program, compare, minimise};

fn functional(chip: &str) -> Device {
    let options = SimOptions { model: SimModel::Functional, ..SimOptions::default() };
    Device::sim_with(Chip::load(chip, &[]).unwrap(), options)
}

fn timed(chip: &str, policy: &str) -> Device {
    let timing = Timing { policy: Some(policy.to_string()), threads: 1, ..Timing::default() };
    Device::sim_with(Chip::load(chip, &[]).unwrap(), SimOptions { timing, ..SimOptions::default() })
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

/// Programs with each scheduler of a chip.
fn timing_changes_nothing(chip: &str, first_seed: u64) {
    const EACH: u64 = 32;
    for ((policy, _), at) in warploom::policies().into_iter().zip(0..) {
        let first = first_seed + at * EACH;
        agree(functional(chip), timed(chip, policy), first..first + EACH);
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
