//! Energy follows from what was executed, at the chip file's costs.

use std::collections::BTreeMap;

use warploom::{Device, Launch, Report, SimModel, SimOptions, args, chip};

use crate::accounting::launch;
use crate::bench::{Bench, kernel, lines, repeated};

/// The energy of `more` beyond that of `less`.
fn besides(more: &Report, less: &Report) -> BTreeMap<&'static str, f64> {
    let of = |report: &Report| report.energy_nj.clone().unwrap();
    let less = of(less);
    of(more).into_iter().map(|(name, nj)| (name, nj - less[name])).collect()
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-6 * a.abs().max(b.abs()).max(1.0)
}

#[test]
fn an_instruction_more_costs_what_the_chip_file_says() {
    let mut bench = Bench::one_sm("gtx480", &[]);
    let each = bench.chip.energy.clone();
    let (read, write) = (each.register_read_pj, each.register_write_pj);
    for (line, component, pj, registers) in [
        ("add.u32 %r8, %r8, %r9;", "integer", each.int_add_pj, 2.0 * read + write),
        ("mul.lo.u32 %r8, %r8, 3;", "integer", each.int_mul_pj, read + write),
        ("div.u32 %r8, %r8, %r9;", "integer", each.int_div_pj, 2.0 * read + write),
        ("add.f32 %f1, %f1, %f2;", "float", each.float_add_pj, 2.0 * read + write),
        ("fma.rn.f32 %f1, %f1, %f2, %f3;", "float", each.float_fma_pj, 3.0 * read + write),
        ("fma.rn.f64 %fd1, %fd1, %fd2, %fd3;", "double", each.double_fma_pj, 6.0 * read + 2.0 * write),
        ("sqrt.approx.f32 %f1, %f1;", "special", each.special_pj, read + write),
        ("div.rn.f32 %f1, %f1, %f2;", "special", each.float_div_pj, 2.0 * read + write),
        ("ld.shared.u32 %r8, [words];", "shared", each.shared_word_pj + each.shared_turn_pj / 24.0, write),
    ] {
        let setup =
            "mov.u32 %r8, 7;\nmov.u32 %r9, 3;\nmov.f32 %f1, 0f3F800000;\nmov.f32 %f2, %f1;\nmov.f32 %f3, %f1;
                     mov.f64 %fd1, 0d3FF0000000000000;\nmov.f64 %fd2, %fd1;\nmov.f64 %fd3, %fd1;\n";
        // 24 lanes, and 16 more instructions.
        let mut run = |n| bench.run(&kernel(&format!("{setup}{}", lines(n, line))), (1, 24), 0, 0).1;
        let (few, many) = (run(16), run(32));
        let more = besides(&many, &few);
        let lanes = 16.0 * 24.0 / 1e3;
        assert!(close(more[component], lanes * pj), "{line}: {more:?}");
        assert!(close(more["register_file"], lanes * registers), "{line}: {more:?}");
        assert!(close(more["pipeline"], lanes * each.pipeline_pj), "{line}: {more:?}");
        assert!(close(more["scheduler"], 16.0 * each.schedule_pj / 1e3), "{line}: {more:?}");
    }
}

#[test]
fn lanes_that_are_off_cost_nothing_but_their_warp_does() {
    let mut bench = Bench::one_sm("gtx480", &[]);
    let mut run =
        |threads| bench.run(&repeated("", &lines(8, "add.u32 %r5, %r5, 1;")), (1, threads), 0, 50).1;
    let (one, half, all) = (run(1), run(16), run(32));
    let [one, half, all] = [&one, &half, &all].map(|report| report.energy_nj.as_ref().unwrap());
    for component in ["pipeline", "register_file", "integer"] {
        assert!(close(half[component], 16.0 * one[component]), "{component}");
        assert!(close(all[component], 2.0 * half[component]), "{component}");
    }
    for component in ["fetch_decode", "scheduler", "constant"] {
        assert_eq!((one[component], half[component]), (all[component], all[component]), "{component}");
    }
}

#[test]
fn twice_the_work_takes_twice_the_energy() {
    let mut bench = Bench::new("gtx480", &[]);
    let data = bench.gpu.zeros::<u32>(1 << 16).unwrap();
    let body = "mul.wide.u32 %rd4, %r4, 4;\nadd.u64 %rd4, %rd4, %rd1;\n\
                ld.global.cg.u32 %r8, [%rd4];\nadd.u32 %r5, %r5, %r8;
                mad.lo.u32 %r5, %r5, %r8, %r4;\n";
    let mut run = |n| bench.run(&repeated("", body), (60, 256), data.address(), n).1;
    let (once, twice) = (run(100), run(200));
    let of = |report: &Report, name| report.energy_nj.as_ref().unwrap()[name];
    for name in ["dynamic", "total", "interconnect", "l2"] {
        let ratio = of(&twice, name) / of(&once, name);
        assert!((1.9..2.1).contains(&ratio), "{name}: {ratio}");
    }
}

#[test]
fn the_parts_make_up_the_whole_on_every_chip() {
    for chip in chip::names() {
        for name in ["reduce", "hashtable", "sleep"] {
            let report = launch(&mut Bench::new(chip, &[]), name).0;
            let energy = report.energy_nj.unwrap();
            let parts: f64 = energy
                .iter()
                .filter(|(n, _)| !["total", "dynamic", "static"].contains(n))
                .map(|(_, nj)| nj)
                .sum();
            assert!(close(parts, energy["total"]), "{name} on {chip}: {energy:?}");
            assert!(close(energy["dynamic"] + energy["static"], energy["total"]));
            assert!(energy["dynamic"] > 0.0 && energy.values().all(|nj| nj.is_finite() && *nj >= 0.0));
            // Watts times seconds.
            let spec = &bench_chip(chip).energy;
            let sms = f64::from(bench_chip(chip).sm.count);
            let watts = sms * (spec.idle_sm_w + spec.leakage_sm_w) + spec.idle_chip_w + spec.leakage_chip_w;
            assert!(close(energy["static"], watts * report.kernel_s.unwrap() * 1e9));
        }
    }
}

fn bench_chip(name: &str) -> warploom::Chip {
    warploom::Chip::load(name, &[]).unwrap()
}

/// Multiplications and additions on all lanes of all SMs: no card exceeds its power limit, and a busy one comes
/// near it.
#[test]
fn a_busy_chip_takes_a_plausible_power() {
    for (chip, tdp) in
        [("gtx480", 250.0), ("gtx570", 219.0), ("gtx1080ti", 250.0), ("apu", 95.0), ("h200", 700.0)]
    {
        let mut bench = Bench::new(chip, &[]);
        let (sms, threads) = (bench.chip.sm.count as usize, bench.chip.sm.max_threads as usize);
        let body: String =
            (1..=6).cycle().take(24).map(|f| format!("fma.rn.f32 %f{f}, %f{f}, %f7, %f7;\n")).collect();
        let setup: String = (1..=7).map(|f| format!("mov.f32 %f{f}, 0f3F800000;\n")).collect();
        let report = bench.run(&repeated(&setup, &body), (sms * threads / 256, 256), 0, 10).1;
        let watts = report.energy_nj.as_ref().unwrap()["total"] / 1e9 / report.kernel_s.unwrap();
        println!("{chip}: {watts:.0} W of {tdp}, IPC {:.1}", report.ipc.unwrap());
        assert!(watts < tdp && watts > 0.25 * tdp, "{chip}: {watts} W");
    }
}

#[test]
fn without_a_clock_there_is_no_energy() {
    let options = SimOptions { model: SimModel::Functional, ..SimOptions::default() };
    let mut gpu = Device::sim_with(bench_chip("gtx480"), options);
    let kernel = gpu.load_ptx(&kernel("")).unwrap().kernel("bench").unwrap();
    let out = gpu.zeros::<u32>(32).unwrap();
    let report = gpu.launch(&kernel, Launch::grid(1).block(32), args![&out, 0u64, 0u32]).unwrap();
    assert_eq!(report.energy_nj, None);
}
