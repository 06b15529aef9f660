//! Barriers.

use crate::bench::{Bench, lines};

fn cost(name: &str, set: &[&str], warps: usize) -> f64 {
    Bench::new(name, set).step("", 32 * warps, 0, |n| lines(n, "bar.sync 0;"))
}

#[test]
fn a_barrier_takes_its_latency_after_the_last_arrival() {
    // Issue and latency. With one warp per scheduler, all arrive in one cycle.
    for (name, set, warps, expected) in [
        ("gtx480", &[][..], 1, 1.0 + 4.0),
        ("gtx480", &[], 2, 1.0 + 4.0),
        ("gtx480", &["units.barrier_latency_cycles=20"], 1, 21.0),
        ("gtx480", &["units.barrier_latency_cycles=20"], 2, 21.0),
        ("gtx1080ti", &[], 1, 1.0 + 4.0),
        ("h200", &[], 1, 1.0 + 13.0),
        // Arrivals count two cycles apart.
        ("h200", &[], 4, 1.0 + 13.0 + 3.0 * 2.0),
    ] {
        let measured = cost(name, set, warps);
        // Of several warps, one occasionally waits a cycle for another's fetch.
        let off = if warps > 1 { 0.1 } else { 0.0 };
        let what = format!("{name} {set:?}, {warps} warps: {measured}, not {expected}");
        assert!((measured - expected).abs() <= off, "{what}");
    }
}

#[test]
fn a_warp_can_arrive_when_its_stores_are_done() {
    let pair = |kind: &str, set: &[&str]| {
        let mut bench = Bench::new("gtx570", set);
        let word = bench.gpu.zeros::<u32>(1).unwrap();
        let pair = format!("st.{kind}\nbar.sync 0;");
        bench.step("mov.u32 %r8, words;", 1, word.address(), |n| lines(n, &pair))
    };
    let (shared, global) = ("shared.u32 [%r8], %r8;", "global.u32 [%rd1], %r8;");
    let at_once = ["units.barrier_after_stores=false"];
    // Reading the operands, and the pass through shared memory.
    let waited = pair(shared, &[]) - pair(shared, &at_once);
    assert!((25.0..=30.0).contains(&waited), "{waited}");
    assert_eq!(pair(global, &[]), pair(global, &at_once), "a store to global memory is not waited for");
}

#[test]
fn many_warps_arrive_one_after_the_other() {
    // At best they issue one warp per scheduler and cycle; at worst they fetch one after another.
    for (name, schedulers) in [("gtx480", 2.0), ("gtx1080ti", 4.0), ("h200", 4.0)] {
        for warps in [8, 16, 32] {
            let set = ["units.barrier_latency_cycles=4", "units.barrier_interval_cycles=0"];
            let measured = cost(name, &set, warps);
            let range = warps as f64 / schedulers + 4.0..=warps as f64 + 4.0;
            assert!(range.contains(&measured), "{name}, {warps} warps: {measured}, not {range:?}");
        }
    }
}
