//! Atomics on global memory, which are executed at the L2.

use warploom::Chip;

use crate::bench::{Bench, lines, near, repeated};
use crate::caches::crossing;

/// A chain of atomics, each of which needs the value of the one before it.
fn chain(n: usize) -> String {
    lines(n, "atom.global.add.u64 %rd3, [%rd1], 0;\nadd.u64 %rd1, %rd1, %rd3;")
}

#[test]
fn an_atomic_takes_a_trip_to_the_l2() {
    // Like a load that bypasses the L1, but every lane's operand travels there and every lane's value comes
    // back, in whole sectors. The atomic unit takes one cycle per lane on the same word, or per group of lanes
    // that it handles at once, and at least as long as the port, which moves their sectors. Then the addition
    // to the address: 7. On the gtx480, for one lane: 2 + (8 + 1) + 120 + 1 + (8 + 1) + 1 + 7 = 149.
    for name in ["gtx480", "gtx1080ti"] {
        for (lanes, apart) in [(1u32, false), (32, false), (4, true), (16, true)] {
            let mut bench = Bench::new(name, &["atomic.word_cycles=1.0"]);
            let Chip { l2, atomic, units, .. } = bench.chip.clone();
            let data = bench.gpu.zeros::<u64>(32).unwrap();
            let sectors = if apart { lanes / 4 } else { 1 };
            let same = if apart { 1 } else { lanes };
            let work = lanes.div_ceil(atomic.lanes_per_cycle).max(same);
            let done = work.max((sectors * 32).div_ceil(l2.port_bytes));
            let ways = 2 * crossing(&bench.chip, (8 * lanes).next_multiple_of(32));
            let expected = 1 + 1 + ways + l2.latency_cycles + done + 1 + 3 + units.int.add[0];
            let setup = if apart { "mad.wide.u32 %rd1, %r1, 8, %rd1;" } else { "" };
            let measured = bench.step(setup, lanes as usize, data.address(), chain);
            assert_eq!(measured, f64::from(expected), "{name}, {lanes} lanes, apart: {apart}");
        }
    }
}

#[test]
fn atomics_on_one_word_take_as_long_as_the_chip_says() {
    // In nine cycles on the gtx480, in one on the gtx1080ti, in 1.31 on the h200, where each lane is a request unless
    // the compiler knows that all lanes add to one word.
    for (name, set, cycles) in [
        ("gtx480", "", 9.0),
        ("gtx1080ti", "", 1.0),
        ("h200", "compiler.optimise=false", 1.31),
        ("h200", "", 1.31 / 32.0),
    ] {
        let set: &[&str] = if set.is_empty() { &[] } else { &[set] };
        let mut bench = Bench::new(name, set);
        let word = bench.gpu.zeros::<u32>(1).unwrap();
        let (grid, block) = (bench.chip.sm.count as usize, 128);
        let rate = 32.0 * bench.rate("", "red.global.add.u32 [%rd1], 1;", (grid, block), word.address());
        near(&format!("{name}: atomics on one word a cycle"), rate, 1.0 / cycles, 0.95);
        assert_eq!(word.read(&bench.gpu).unwrap(), [(grid * block * (20 + 80)) as u32]);
    }
}

#[test]
fn the_other_half_of_the_l2_is_farther_for_atomics_and_for_the_first_read() {
    let in_turn = "l2.placement=interleaved";
    let mut near = Bench::new("h200", &[in_turn]);
    let far = ["l2.far_cycles=99", "interconnect.far_span_cycles=0"];
    let mut halves = Bench::new("h200", &[in_turn, far[0], far[1]]);
    let [near_one, halves_one] = [&mut near, &mut halves].map(|bench| {
        // A word in each of two neighbouring partitions, of which one is in the other half.
        let data = bench.gpu.zeros::<u64>(256).unwrap();
        let mut both = [0, 256].map(|offset| bench.step("", 1, data.address() + offset, chain));
        both.sort_by(f64::total_cmp);
        both
    });
    // The clocks of the SMs and of the L2 are no multiples of each other.
    let like = |cycles: f64, expected: f64| assert!((cycles - expected).abs() < 0.1, "{cycles} {expected}");
    like(near_one[1], near_one[0]);
    like(halves_one[0], near_one[0]);
    like(halves_one[1], near_one[0] + 2.0 * 99.0);
}

#[test]
fn atomics_on_many_words_keep_all_slices_busy() {
    // On the gtx480, 12 slices handle 2 lanes per cycle each. On the gtx1080ti, 22 slices handle 8: a line of
    // 32 lanes takes a slice 4 cycles, and its 128 bytes take as long at the port.
    for (name, limit) in [("gtx480", 24.0), ("gtx1080ti", 176.0)] {
        let mut bench = Bench::new(name, &[]);
        let Chip { l2, atomic, sm, .. } = bench.chip.clone();
        assert_eq!(f64::from(l2.partitions * l2.slices_per_partition * atomic.lanes_per_cycle), limit);
        let (grid, block) = (2 * sm.count as usize, 256);
        let words = bench.gpu.zeros::<u32>(1 << 15).unwrap();
        // Each warp moves from partition to partition.
        let setup = "
    mul.wide.u32 %rd3, %r4, 4;
    and.b64 %rd3, %rd3, 0x1ffff;";
        let body = "
    add.u64 %rd4, %rd1, %rd3;
    red.global.add.u32 [%rd4], 1;
    add.u64 %rd3, %rd3, 256;
    and.b64 %rd3, %rd3, 0x1ffff;";
        bench.run(&repeated(setup, body), (grid, block), words.address(), 10);
        let rate = 32.0 * bench.rate(setup, body, (grid, block), words.address());
        near(&format!("{name}: atomics on many words a cycle"), rate, limit, 0.85);
        let sum = words.read(&bench.gpu).unwrap().iter().map(|&word| word as usize).sum::<usize>();
        assert_eq!(sum, grid * block * (10 + 20 + 80));
    }
}

#[test]
fn a_warp_adds_once_where_the_address_is_known_to_be_one() {
    let body =
        |address: &str| format!("atom.global.add.u64 %rd3, [{address}], 1;\nadd.u64 %rd4, %rd4, %rd3;");
    // The same word in all lanes, but by the lane's number: the compiler does not see it.
    let setup = "shr.u32 %r6, %r1, 5;\nmad.wide.u32 %rd2, %r6, 8, %rd1;\nmov.u64 %rd4, 0;";
    let lanes = |address: &str, threads: usize| {
        let mut bench = Bench::new("h200", &[]);
        let word = bench.gpu.zeros::<u64>(1).unwrap();
        let (_, report) =
            bench.run(&crate::bench::timed(setup, &body(address)), (1, threads), word.address(), 0);
        // The code is executed three times.
        assert_eq!(word.read(&bench.gpu).unwrap(), [3 * threads as u64]);
        report.l2.unwrap()["atomic_lanes"]
    };
    assert_eq!([lanes("%rd1", 32), lanes("%rd2", 32), lanes("%rd1", 31)], [3, 96, 93]);
}

#[test]
fn an_atomic_whose_result_nobody_reads_is_not_waited_for() {
    let exchanges = |n| lines(n, "atom.global.exch.b32 %r8, [%rd1], 0;");
    let time = |set: &[&str]| {
        let mut bench = Bench::new("h200", set);
        let word = bench.gpu.zeros::<u32>(1).unwrap();
        bench.step("", 1, word.address(), exchanges)
    };
    // One follows another as fast as lanes go into the load/store unit, and as an SM sends them. Without a compiler all
    // are written to one register, in order.
    assert_eq!(time(&[]), 4.0);
    assert_eq!(time(&["units.access_interval_cycles=1"]), 2.0);
    assert_eq!(time(&["units.access_interval_cycles=1", "atomic.sm_cycles=5"]), 5.0);
    assert!(time(&["compiler.optimise=false"]) > 200.0);
}
