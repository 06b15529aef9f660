//! The fast model: right values, cycles near the timed model's, and what it says of itself.

use warploom::{
    Chip, Device, Error, Estimate, FaultKind, Kernel, Launch, Model, Report, SimModel, SimOptions, Timing,
};
use warploom_lab::work::Workload;

fn device(model: SimModel, threads: usize) -> Device {
    let timing = Timing { threads, ..Timing::default() };
    Device::sim_with(
        Chip::load("gtx480", &[]).unwrap(),
        SimOptions { model, timing, ..SimOptions::default() },
    )
}

/// Runs a workload, whose result must be right.
#[track_caller]
fn run(model: SimModel, threads: usize, name: &str, params: &str) -> Report {
    let workload = Workload::find(name).unwrap();
    let values = workload.values(&params.split_whitespace().collect::<Vec<_>>()).unwrap();
    let outcome = workload.run(&mut device(model, threads), &values, &|launch| launch).unwrap();
    assert!(outcome.check.is_ok(), "{name} {params}, {model:?}: {:?}", outcome.check);
    outcome.total
}

/// A workload whose cycles must be right within 5 %, and misses of the L1 within the share `off`, though at most the
/// share `most` of it is timed.
#[track_caller]
fn near(name: &str, params: &str, most: f64, off: f64) {
    let (timed, fast) = (run(SimModel::Timing, 1, name, params), run(SimModel::Fast, 1, name, params));
    let error = fast.cycles as f64 / timed.cycles as f64 - 1.0;
    assert!(error.abs() < 0.05, "{name} {params}: {} cycles instead of {}", fast.cycles, timed.cycles);
    assert_eq!((fast.warp_insts, fast.ctas, fast.model), (timed.warp_insts, timed.ctas, Model::Fast));
    let estimate = fast.estimate.unwrap();
    let share = estimate.timed_warp_insts as f64 / fast.warp_insts as f64;
    assert!(share <= most, "{name} {params}: {share} is timed");
    assert!(estimate.error > 0.0 && estimate.error < 0.1, "{estimate:?}");
    // Counters are scaled to the whole.
    let stalls: u64 = fast.stalls.unwrap().values().sum();
    assert_eq!(Some(stalls), fast.warp_cycles);
    let loads = |report: Option<warploom::Counters>| report.unwrap()["misses"] as f64;
    let ratio = loads(fast.l1) / loads(timed.l1);
    assert!((1.0 - off..1.0 + off).contains(&ratio), "{name} {params}: {ratio} times the L1 misses");
}

#[test]
fn ctas_are_sampled() {
    near("vecadd", "size=1_048_576", 0.2, 0.1);
}

#[test]
fn parts_of_long_ctas_are_sampled() {
    // Its L1s are emptier after each leap.
    near("lava", "boxes=8 each=32", 0.6, 0.2);
}

/// Threads read what they wrote, before a leap and in it, and what others of their CTA wrote, across barriers.
#[test]
fn what_is_written_in_leaps_is_read_behind_them() {
    let body = "mul.wide.u32 %rd4, %r1, 252;\nadd.u64 %rd3, %rd3, %rd4;\nmov.u32 %r2, %tid.x;\n\
                mul.wide.u32 %rd4, %r2, 4;\nadd.u64 %rd3, %rd3, %rd4;\n\
                mov.u32 %r3, 0;\nLOOP:\nld.global.u32 %r4, [%rd3];\nmad.lo.u32 %r4, %r4, 5, %r3;\n\
                st.global.u32 [%rd3], %r4;\nbar.sync 0;\nadd.u32 %r3, %r3, 1;\n\
                setp.lt.u32 %p1, %r3, 6000;\n@%p1 bra LOOP;";
    let of = |model| {
        let mut gpu = device(model, 2);
        let kernel = kernel(&mut gpu, body);
        let out = gpu.zeros::<u32>(100 * 64).unwrap();
        let report = gpu.launch(&kernel, Launch::grid(100).block(64), warploom::args![&out]).unwrap();
        (report, out.read(&gpu).unwrap())
    };
    let ((timed, right), (fast, read)) = (of(SimModel::Timing), of(SimModel::Fast));
    assert!(right == read);
    let estimate = fast.estimate.unwrap();
    assert_eq!(fast.warp_insts, timed.warp_insts);
    // Leaps go as far as they are meant to, though a warp waits after each eight instructions.
    let share = estimate.timed_warp_insts as f64 / fast.warp_insts as f64;
    assert!(share < 0.4, "{share} is timed");
    let error = fast.cycles as f64 / timed.cycles as f64 - 1.0;
    assert!(error.abs() < 0.05, "{} cycles instead of {}", fast.cycles, timed.cycles);
}

/// Some threads never leave a loop, others work on for a while.
#[test]
fn endless_loops_are_found_between_leaps() {
    let body = "setp.ge.u32 %p1, %r1, 50;\nmov.u32 %r3, 0;\nLOOP:\nadd.u32 %r3, %r3, 1;\n\
                setp.lt.u32 %p2, %r3, 30000;\n@%p2 bra LOOP;\n@!%p1 bra END;\nEVER:\n@%p1 bra EVER;\nEND:\n\
                st.global.u32 [%rd3], %r3;";
    let ended = launch(&mut device(SimModel::Fast, 1), body, |launch| launch);
    assert!(matches!(&ended, Err(Error::Hang { .. })), "{ended:?}");
}

#[test]
fn launches_are_sampled() {
    near("hotspot", "size=96 steps=40", 0.3, 0.1);
    near("streamcluster", "points=8_192 candidates=20", 0.4, 0.1);
}

#[test]
fn host_threads_do_not_matter() {
    let of = |threads| Report {
        wall_s: 0.0,
        warp_insts_per_s: 0.0,
        ..run(SimModel::Fast, threads, "vecadd", "size=524_288")
    };
    assert_eq!(of(1), of(3));
    let of = |threads| Report {
        wall_s: 0.0,
        warp_insts_per_s: 0.0,
        ..run(SimModel::Fast, threads, "lava", "boxes=6 each=32")
    };
    assert_eq!(of(1), of(3));
}

/// Locks, waits between CTAs, clusters and clocks: nothing is left out.
#[test]
fn kernels_that_wait_are_timed_as_a_whole() {
    for (name, params) in [("hashtable", "keys=2_000 buckets=16"), ("nw1", "size=128"), ("cloth", "rounds=2")]
    {
        let (timed, fast) = (run(SimModel::Timing, 2, name, params), run(SimModel::Fast, 2, name, params));
        assert_eq!((fast.cycles, &fast.stalls, &fast.locks), (timed.cycles, &timed.stalls, &timed.locks));
        let Estimate { timed_because, error, .. } = fast.estimate.unwrap();
        assert_eq!((timed_because, error), (vec!["its loops wait for other threads".to_string()], 0.0));
    }
}

/// A kernel of 1024 CTAs in each of which a thread does something at a place of its own.
fn kernel(gpu: &mut Device, body: &str) -> Kernel {
    let text = format!(
        ".version 6.0\n.target sm_20\n.address_size 64\n\
         .visible .entry k(.param .u64 out)\n{{\n\
         .reg .pred %p<4>;\n.reg .b32 %r<8>;\n.reg .b64 %rd<8>;\n\
         ld.param.u64 %rd1, [out];\nmov.u32 %r1, %ctaid.x;\nmul.wide.u32 %rd2, %r1, 4;\n\
         add.u64 %rd3, %rd1, %rd2;\n{body}\nret;\n}}\n"
    );
    gpu.load_ptx(&text).unwrap().kernel("k").unwrap()
}

fn launch(
    gpu: &mut Device,
    body: &str,
    limits: impl Fn(Launch) -> Launch,
) -> Result<(Report, Vec<u32>), Error> {
    let kernel = kernel(gpu, body);
    let out = gpu.zeros::<u32>(1024)?;
    let report = gpu.launch(&kernel, limits(Launch::grid(1024).block(32)), warploom::args![&out])?;
    Ok((report, out.read(gpu)?))
}

#[test]
fn clocks_are_those_of_the_timed_machine() {
    let body = "mov.u32 %r2, %clock;\nst.global.u32 [%rd3], %r2;";
    let of = |model| launch(&mut device(model, 1), body, |launch| launch).unwrap();
    let ((timed, clocks), (fast, same)) = (of(SimModel::Timing), of(SimModel::Fast));
    assert_eq!((timed.cycles, clocks), (fast.cycles, same));
    assert_eq!(fast.estimate.unwrap().timed_because, ["it reads the clock"]);
}

/// What goes wrong in a CTA that is not timed is found, too.
#[test]
fn faults_and_limits_of_the_rest() {
    let late = "setp.ne.u32 %p1, %r1, 1000;\n@%p1 bra LATE;\nst.global.u32 [%rd3+1], %r1;\nLATE:\n";
    let mut gpu = device(SimModel::Fast, 1);
    match launch(&mut gpu, late, |launch| launch) {
        Err(Error::Fault { fault: Some(fault), report, .. }) => {
            assert!(
                matches!(fault.kind, FaultKind::Misaligned { .. }) && fault.cta == [1000, 0, 0],
                "{fault}"
            );
            assert!(report.estimate.unwrap().timed_ctas < 1000);
        }
        other => panic!("{other:?}"),
    }
    let endless = "setp.ne.u32 %p1, %r1, 1000;\nLOOP:\n@!%p1 bra LOOP;\n";
    let limited = launch(&mut gpu, endless, |launch| launch.max_cycles(1_000_000));
    assert!(matches!(&limited, Err(Error::Hang { .. })), "{limited:?}");
}

#[test]
fn what_shows_every_cycle_is_refused() {
    let timing = Timing { profile: true, ..Timing::default() };
    let options = SimOptions { model: SimModel::Fast, timing, ..SimOptions::default() };
    let mut gpu = Device::sim_with(Chip::load("gtx480", &[]).unwrap(), options);
    let error = launch(&mut gpu, "", |launch| launch).unwrap_err().to_string();
    assert!(
        error.contains("cannot be profiled in the fast model") && error.contains("timed model"),
        "{error}"
    );
}
