//! Random programs have one result, whatever the chip does with divergence and however wide its warps are.

use warploom::Device;
use warploom_lab::conform::fuzz::{Options, Program, compare, minimise};

fn agree(a: &str, b: &str, seeds: std::ops::Range<u64>) {
    let (mut a, mut b) = (Device::sim(a).unwrap(), Device::sim(b).unwrap());
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
    agree("gtx480", "h200", 0..200);
}

#[test]
fn narrow_and_wide_warps_agree() {
    agree("h200", "apu", 0..200);
}
