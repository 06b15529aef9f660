//! The pipeline: fetch, issue, operands, units, write-back.

use crate::bench::{Bench, kernel, lines, near, repeated};

const CHIPS: [&str; 3] = ["gtx480", "gtx1080ti", "h200"];

/// Initial values.
const VALUES: &str = "
    mov.u32 %r8, 7;
    mov.u32 %r9, 3;
    mov.u32 %r10, 5;
    mov.f32 %f1, 0f3f800000;
    mov.f32 %f2, 0f3f800000;
    mov.f32 %f3, 0f3f800000;
    mov.f64 %fd1, 0d3ff0000000000000;
    mov.f64 %fd2, 0d3ff0000000000000;
    mov.f64 %fd3, 0d3ff0000000000000;";

/// Cycles from the issue of an operation to that of one that needs its result: one to the register banks, one
/// to read them, the operation, and one to write the result.
fn dependent(latency: u32) -> f64 {
    f64::from(1 + 1 + latency + 1)
}

#[test]
fn a_result_can_be_used_after_the_latency_and_three_cycles() {
    for name in CHIPS {
        let mut bench = Bench::new(name, &[]);
        let units = bench.chip.units.clone();
        for (line, [latency, _]) in [
            ("add.u32 %r8, %r8, %r9;", units.int.add),
            ("xor.b32 %r8, %r8, %r9;", units.int.add),
            ("max.u32 %r8, %r8, %r9;", units.int.max),
            ("mul.lo.u32 %r8, %r8, %r9;", units.int.mul),
            ("mad.lo.u32 %r8, %r8, %r9, %r10;", units.int.mad),
            ("div.u32 %r8, %r8, %r9;", units.int.div),
            ("add.f32 %f1, %f1, %f2;", units.f32.add),
            ("max.f32 %f1, %f1, %f2;", units.f32.max),
            ("mul.f32 %f1, %f1, %f2;", units.f32.mul),
            ("fma.rn.f32 %f1, %f1, %f2, %f3;", units.f32.mad),
            ("div.rn.f32 %f1, %f1, %f2;", units.f32.div),
            ("add.f64 %fd1, %fd1, %fd2;", units.f64.add),
            ("mul.f64 %fd1, %fd1, %fd2;", units.f64.mul),
            ("fma.rn.f64 %fd1, %fd1, %fd2, %fd3;", units.f64.mad),
            ("div.rn.f64 %fd1, %fd1, %fd2;", units.f64.div),
            ("ex2.approx.f32 %f1, %f1;", units.special),
            ("shfl.sync.idx.b32 %r8, %r8, 0, 31, -1;", units.exchange),
        ] {
            let measured = bench.step(VALUES, 32, 0, |n| lines(n, line));
            assert_eq!(measured, dependent(latency), "{name}: {line}");
        }
    }
}

#[test]
fn latencies_come_from_the_chip() {
    // 20 + 3.
    let mut bench = Bench::new("gtx480", &["units.int.add=[20, 1]"]);
    assert_eq!(bench.step(VALUES, 32, 0, |n| lines(n, "add.u32 %r8, %r8, %r9;")), 23.0);
}

#[test]
fn a_bank_gives_one_operand_a_cycle() {
    // 8 with any number of banks; with only one, two more operands take two more cycles.
    let mad = |n| lines(n, "mad.lo.u32 %r8, %r8, %r9, %r10;");
    assert_eq!(Bench::new("gtx480", &[]).step(VALUES, 32, 0, mad), 8.0);
    assert_eq!(Bench::new("gtx480", &["operands.banks=1"]).step(VALUES, 32, 0, mad), 10.0);
    // An operand named twice is read twice.
    let square = |n| lines(n, "mul.f32 %f1, %f1, %f1;");
    assert_eq!(Bench::new("gtx480", &[]).step(VALUES, 32, 0, square), 8.0);
}

/// Independent additions: each depends on the one 16 before it.
fn additions(n: usize) -> String {
    (0..n).map(|i| format!("add.u32 %r{0}, %r{0}, 1;\n", 8 + i % 16)).collect()
}

fn sixteen() -> String {
    (8..24).map(|r| format!("mov.u32 %r{r}, 0;\n")).collect()
}

#[test]
fn one_warp_issues_what_it_fetches() {
    // A fetch delivers two instructions. They issue in ceil(2 / width) cycles, and the next fetch begins in the
    // last of them. So 2 instructions take ceil(2 / width) - 1 + latency cycles: 3 on the gtx480, and 2 on the
    // gtx1080ti, which issues both at once. The h200 has room for another fetch while they wait, so it begins at once.
    for name in CHIPS {
        for latency in [1, 2, 5] {
            let mut bench = Bench::new(name, &[&format!("fetch.latency_cycles={latency}")]);
            let issue = 2u32.div_ceil(bench.chip.issue.width);
            let cycles = if name == "h200" { latency.max(issue) } else { issue - 1 + latency };
            let measured = bench.step(&sixteen(), 32, 0, additions);
            assert_eq!(measured, f64::from(cycles) / 2.0, "{name}, {latency}");
        }
    }
}

#[test]
fn many_warps_fill_the_schedulers_as_far_as_they_are_fed() {
    for name in CHIPS {
        let mut bench = Bench::one_sm(name, &[]);
        let Bench { chip, .. } = &bench;
        let (issue, units, operands) = (&chip.issue, &chip.units, &chip.operands);
        let limits = [
            ("issue", issue.schedulers * issue.width),
            ("fetch", chip.fetch.warps_per_cycle * chip.fetch.width.min(chip.fetch.buffer_entries)),
            ("units", units.sp / units.int.add[1]),
            ("ports", operands.writeback_ports),
            // An addition holds its collector for the issue cycle and the cycle that reads its operands.
            ("collectors", operands.sp_collectors / 2),
        ];
        let (limit, most) = limits.into_iter().min_by_key(|&(_, most)| most).unwrap();
        let rate = 64.0 * bench.rate(&sixteen(), &additions(64), (2, 768), 0);
        // 64 of the 67 instructions per iteration are counted.
        near(&format!("{name}: additions, by {limit}"), rate, f64::from(most), 0.93);
    }
}

#[test]
fn a_unit_takes_the_next_operation_after_its_interval() {
    for (line, count, gtx480, gtx1080ti) in [
        // 2 and 4 SP units, each one instruction every 2 cycles.
        ("mul.lo.u32 %r8, %r8, %r9;", 64, 2.0 / 2.0, 4.0 / 2.0),
        ("max.u32 %r8, %r8, %r9;", 64, 2.0 / 2.0, 4.0 / 2.0),
        // One SFU: one instruction every 8 cycles; 4; 8 and 1; 8 and 1.
        ("div.u32 %r8, %r8, %r9;", 8, 1.0 / 8.0, 1.0 / 8.0),
        ("div.rn.f32 %f1, %f1, %f2;", 8, 1.0 / 4.0, 1.0 / 4.0),
        ("add.f64 %fd1, %fd1, %fd2;", 32, 1.0 / 8.0, 1.0),
        ("ex2.approx.f32 %f1, %f1;", 32, 1.0 / 8.0, 1.0),
    ] {
        for (name, limit) in [("gtx480", gtx480), ("gtx1080ti", gtx1080ti)] {
            let rate = count as f64 * Bench::one_sm(name, &[]).rate(VALUES, &lines(count, line), (2, 768), 0);
            near(&format!("{name}: {line}"), rate, limit, 0.9);
        }
    }
}

#[test]
fn ports_and_collectors_come_from_the_chip() {
    // One result per cycle; one collector, held for two cycles per instruction.
    for (set, limit) in [("operands.writeback_ports=1", 1.0), ("operands.sp_collectors=1", 0.5)] {
        let mut bench = Bench::one_sm("gtx480", &[set]);
        near(set, 64.0 * bench.rate(&sixteen(), &additions(64), (2, 768), 0), limit, 0.93);
    }
}

#[test]
fn a_taken_branch_waits_for_its_target() {
    // From the branch to the fetch of its target, and to its decoding: 2 + 2. A branch that is not taken costs
    // only its issue: with the addition after it, the 1.5 cycles per instruction that one warp needs anyway.
    let jump = |i| format!("@%p1 bra L{i};\nadd.u32 %r{0}, %r{0}, 1;\nL{i}:\n", 8 + i % 16);
    let cost = |set: &[&str], setup: &str| {
        let setup = sixteen() + setup;
        Bench::new("gtx480", set).step(&setup, 32, 0, |n| (0..n).map(jump).collect())
    };
    let (always, never) = ("setp.lt.u32 %p1, %r1, 99;", "setp.gt.u32 %p1, %r1, 99;");
    assert_eq!(cost(&[], always), 4.0);
    assert_eq!(cost(&["units.branch_latency_cycles=7"], always), 9.0);
    assert_eq!(cost(&["units.branch_latency_cycles=1"], always), 3.0);
    assert_eq!(cost(&["fetch.latency_cycles=5"], always), 7.0);
    assert_eq!(cost(&[], never), 2.0 * 1.5);
}

#[test]
fn a_sleeping_warp_wakes_in_time() {
    // The issue, and 100 ns at 700 MHz.
    let nap = |n| lines(n, "nanosleep.u32 100;");
    assert_eq!(Bench::new("gtx480", &[]).step("", 32, 0, nap), 1.0 + 70.0);
}

#[test]
fn schedulers_have_equal_shares_of_a_unit() {
    // Each unit is always in demand, and free again after an even number of cycles.
    for line in
        ["ex2.approx.f32 %f{}, %f1;", "st.global.u32 [%rd1], %r{};", "red.global.add.u32 [%rd1], %r{};"]
    {
        for chip in CHIPS {
            let mut bench = Bench::one_sm(chip, &[]);
            let schedulers = bench.chip.issue.schedulers as usize;
            let counter = bench.gpu.zeros::<u32>(1).unwrap();
            let (warps, lanes) = (4 * schedulers, bench.chip.sm.warp_lanes as usize);
            let independent: String =
                (0..180).map(|i| line.replace("{}", &(2 + i % 6).to_string()) + "\n").collect();
            let text = kernel(&format!("{VALUES}\n{independent}\nmov.u32 %r5, %clock;"));
            let (ended, _) = bench.run(&text, (1, warps * lanes), counter.address(), 0);
            let of = |scheduler: usize| -> u32 {
                ended.iter().step_by(lanes).skip(scheduler).step_by(schedulers).sum()
            };
            let each: Vec<u32> = (0..schedulers).map(of).collect();
            let (first, last) = (each.iter().min().unwrap(), each.iter().max().unwrap());
            println!("{chip}, {line} {each:?}");
            assert!(last * 10 <= first * 11, "{chip}, {line} {each:?}");
        }
    }
}

#[test]
fn a_warp_alone_issues_every_cycle_where_it_fetches_ahead() {
    let independent = |n| lines(n, "bar.warp.sync -1;");
    assert_eq!(Bench::new("h200", &[]).step("", 32, 0, independent), 1.0);
    // With room for one fetch only, the next one begins when its instructions are gone.
    assert_eq!(Bench::new("h200", &["fetch.buffer_entries=2"]).step("", 32, 0, independent), 1.5);
}

#[test]
fn a_loop_that_loads_and_stores_what_others_do_yields_once_per_iteration() {
    let time = |body: &str, yields: u32| {
        let mut bench = Bench::new("h200", &[&format!("units.yield_cycles={yields}")]);
        let words = bench.gpu.zeros::<u32>(256).unwrap();
        let [few, many] = [8, 40].map(|n| {
            let (_, report) = bench.run(&repeated("", body), (1, 32), words.address(), n);
            report.cycles
        });
        (many - few) / 32
    };
    let both =
        "add.u32 %r9, %r9, 1;\nld.volatile.global.u32 %r8, [%rd1];\nst.volatile.global.u32 [%rd1+512], %r8;";
    assert_eq!(time(both, 55) - time(both, 0), 55);
    let load = "ld.volatile.global.u32 %r8, [%rd1];\nst.global.u32 [%rd1+512], %r8;";
    assert_eq!(time(load, 55), time(load, 0));
}
