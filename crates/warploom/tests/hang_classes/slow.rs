//! Kernels that are only slow, and hangs that are hard to prove.

use warploom::{Chip, Device, Error, HangKind, HangReason, Launch, SimModel, SimOptions, args};

use crate::causes::CHIPS;
use crate::hang_support::{device, example, hang, kernel, run, word};

// Kernels that are only slow must not be reported as hangs.

/// The most impatient hang detection possible.
const IMPATIENT: &[&str] = &["sm.count=2", "hang.watch_cycles=50"];

/// Runs `k(a, b)` with the impatient detection on a chip of each kind. Returns what `b` holds.
#[track_caller]
fn ends(text: &str, launch: Launch) -> u32 {
    let results = ["gtx480", "h200"].map(|chip| {
        let mut gpu = device(chip, IMPATIENT);
        let (a, b) = (word(&mut gpu, "a"), word(&mut gpu, "b"));
        run(&mut gpu, text, "k", launch.clone(), args![&a, &b]).unwrap_or_else(|e| panic!("on {chip}: {e}"));
        b.read(&gpu).unwrap()[0]
    });
    assert_eq!(results[0], results[1]);
    results[0]
}

#[test]
fn long_computation() {
    let text = kernel(
        "    mov.u32 %r2, 20000;
AGAIN:
    sub.u32 %r2, %r2, 1;
    setp.ne.u32 %p0, %r2, 0;
    @%p0 bra AGAIN;
    st.global.u32 [%d1], 7;",
    );
    assert_eq!(ends(&text, Launch::grid(1).block(64)), 7);
}

/// All threads but one spin without any change of state, while one thread computes.
#[test]
fn slow_producer() {
    let text = kernel(
        "    or.b32 %r2, %r0, %r1;
    setp.eq.u32 %p0, %r2, 0;
    @%p0 bra PRODUCE;
WAIT:
    ld.volatile.global.u32 %r2, [%d0];
    setp.eq.u32 %p1, %r2, 0;
    @%p1 bra WAIT;
    bra DONE;
PRODUCE:
    mov.u32 %r3, 10000;
COUNT:
    sub.u32 %r3, %r3, 1;
    setp.ne.u32 %p1, %r3, 0;
    @%p1 bra COUNT;
    st.volatile.global.u32 [%d0], 1;
DONE:
    setp.eq.u32 %p2, %r0, 32;
    @%p2 st.global.u32 [%d1], 5;",
    );
    // Lane 0 is alone in its warp: on a SIMT stack its warp must not wait for itself.
    let text = text.replace("or.b32 %r2, %r0, %r1;", "shr.u32 %r2, %r0, 5;\n    or.b32 %r2, %r2, %r1;");
    assert_eq!(ends(&text, Launch::grid(4).block(64)), 5);
}

/// A loop that ends by the clock. The register with the time is reused before the loop closes.
#[test]
fn timeout_by_the_clock() {
    let text = kernel(
        "    mov.u32 %r2, %clock;
    add.u32 %r2, %r2, 30000;
AGAIN:
    mov.u32 %r3, %clock;
    setp.lt.u32 %p0, %r3, %r2;
    ld.volatile.global.u32 %r3, [%d0];
    setp.eq.and.u32 %p0, %r3, 0, %p0;
    @%p0 bra AGAIN;
    st.global.u32 [%d1], 9;",
    );
    assert_eq!(ends(&text, Launch::grid(1).block(32)), 9);
}

/// Warp 0 iterates by a vote at a barrier, until warp 1 changes the vote. Then it computes, and warp 1 waits for it.
#[test]
fn votes_of_another_warp() {
    let text = kernel(
        "    mov.u32 %r2, 0;
    setp.lt.u32 %p1, %r0, 32;
AGAIN:
    add.u32 %r2, %r2, 1;
    @%p1 mov.u32 %r2, 0;
    setp.eq.u32 %p2, %r2, 100;
    barrier.red.or.pred %p3, 0, %p2;
    @!%p3 bra AGAIN;
    @!%p1 bra MEET;
    mov.u32 %r2, 3000;
COUNT:
    sub.u32 %r2, %r2, 1;
    setp.ne.u32 %p2, %r2, 0;
    @%p2 bra COUNT;
MEET:
    bar.sync 0;
    st.global.u32 [%d1], 3;",
    );
    assert_eq!(ends(&text, Launch::grid(1).block(64)), 3);
}

/// The only store is still in flight when all others already spin: memory is slow, and the storing thread has exited.
#[test]
fn store_on_its_way() {
    let text = kernel(
        "    setp.lt.u32 %p0, %r0, 32;
    @%p0 bra WAIT;
    st.volatile.global.u32 [%d0], 1;
    ret;
WAIT:
    ld.volatile.global.u32 %r2, [%d0];
    setp.eq.u32 %p1, %r2, 0;
    @%p1 bra WAIT;
    st.global.u32 [%d1], 2;",
    );
    assert_eq!(ends(&text, Launch::grid(1).block(64)), 2);
}

/// Each CTA waits for the one before it, which ends late.
#[test]
fn chain_of_ctas() {
    let text = kernel(
        "    mov.u32 %r4, 300;
COUNT:
    sub.u32 %r4, %r4, 1;
    setp.ne.u32 %p0, %r4, 0;
    @%p0 bra COUNT;
WAIT:
    ld.volatile.global.u32 %r2, [%d0];
    setp.ne.u32 %p0, %r2, %r1;
    @%p0 bra WAIT;
    bar.sync 0;
    add.u32 %r2, %r1, 1;
    st.volatile.global.u32 [%d0], %r2;
    st.volatile.global.u32 [%d1], %r2;",
    );
    assert_eq!(ends(&text, Launch::grid(40).block(64)), 40);
}

/// Locks that work, under contention and with waits between CTAs, on every kind of chip.
#[test]
fn locks_that_work() {
    let text = warploom_kernels::text!("spinlock.ptx");
    for chip in ["gtx480", "h200", "apu"] {
        let mut gpu = device(chip, &["sm.count=2", "sm.max_ctas=4", "hang.watch_cycles=1"]);
        let (lock, count) = (word(&mut gpu, "lock"), word(&mut gpu, "count"));
        let args = args![&lock, &count, 1u32];
        run(&mut gpu, text, "spinlock_inc", Launch::grid(10).block(32), args)
            .unwrap_or_else(|e| panic!("{chip}: {e}"));
        assert_eq!((count.read(&gpu).unwrap()[0], lock.read(&gpu).unwrap()[0]), (10 * 32, 0), "on {chip}");
        let (flag, out) = (word(&mut gpu, "flag"), gpu.zeros_named::<u32>("out", 20).unwrap());
        let launch = Launch::grid(20).block(64);
        run(&mut gpu, text, "crosscta", launch, args![&flag, &out]).unwrap_or_else(|e| panic!("{chip}: {e}"));
        assert_eq!(out.read(&gpu).unwrap()[0], 1020, "on {chip}");
    }
}

// Warps that work are not suspected, however long nothing changes in memory.

/// Runs `k(flag, out)` where a suspicion needs no more than 20,000 cycles.
fn ends_soon_suspected(chip: &str, text: &str, block: u32, flag: u32) -> u32 {
    let mut gpu = device(chip, &["hang.watch_cycles=500", "hang.suspect_cycles=20000"]);
    let (flag, out) = (gpu.buffer(&[flag]).unwrap(), word(&mut gpu, "out"));
    run(&mut gpu, text, "k", Launch::grid(1).block(block), args![&flag, &out])
        .unwrap_or_else(|error| panic!("{chip}: {error}"));
    out.read(&gpu).unwrap()[0]
}

/// The thread leaves its spin loop in the middle, and then computes for long.
#[test]
fn a_loop_left_in_the_middle_is_no_wait() {
    let text = kernel(
        "    mov.u32 %r4, 0;
WAIT:
    add.u32 %r4, %r4, 1;
    ld.volatile.global.u32 %r2, [%d0];
    setp.ne.u32 %p0, %r2, 0;
    setp.gt.and.u32 %p0, %r4, 3, %p0;
    @%p0 bra WORK;
    setp.lt.u32 %p1, %r4, 2000000000;
    @%p1 bra WAIT;
WORK:
    mov.u32 %r3, 2000;
COUNT:
    sub.u32 %r3, %r3, 1;
    setp.ne.u32 %p1, %r3, 0;
    @%p1 bra COUNT;
    st.global.u32 [%d1], 5;",
    );
    for chip in ["gtx480", "h200"] {
        assert_eq!(ends_soon_suspected(chip, &text, 32, 1), 5);
    }
}

/// The thread computes, and looks at a stop flag in each iteration.
#[test]
fn a_stop_flag_is_no_wait() {
    let work = "    mad.lo.u32 %r5, %r5, %r5, %r3;\n".repeat(60);
    let text = kernel(&format!(
        "    mov.u32 %r3, 0;
    mov.u32 %r5, 1;
WORK:
{work}
    add.u32 %r3, %r3, 1;
    ld.volatile.global.u32 %r2, [%d0];
    setp.eq.u32 %p0, %r2, 0;
    setp.lt.and.u32 %p0, %r3, 200, %p0;
    @%p0 bra WORK;
    st.global.u32 [%d1], 6;"
    ));
    for chip in ["gtx480", "h200"] {
        assert_eq!(ends_soon_suspected(chip, &text, 32, 0), 6);
    }
}

/// On independent threads, one lane works while the others poll.
#[test]
fn a_lane_that_works_among_lanes_that_poll() {
    let text = kernel(
        "    setp.eq.u32 %p0, %r0, 0;
    @%p0 bra WORK;
    mov.u32 %r4, 0;
WAIT:
    add.u32 %r4, %r4, 1;
    ld.volatile.global.u32 %r2, [%d0];
    setp.eq.u32 %p1, %r2, 0;
    @%p1 bra WAIT;
    bra DONE;
WORK:
    mov.u32 %r3, 3000;
COUNT:
    sub.u32 %r3, %r3, 1;
    setp.ne.u32 %p1, %r3, 0;
    @%p1 bra COUNT;
    st.volatile.global.u32 [%d0], 1;
DONE:
    st.global.u32 [%d1], 7;",
    );
    assert_eq!(ends_soon_suspected("h200", &text, 32, 0), 7);
}

// Hangs in which an access is always in flight, or which change their loop, or without a clock.

#[test]
fn a_loop_that_only_stores() {
    let text = kernel("    mov.u32 %r2, 7;\nAGAIN:\n    st.global.u32 [%d0], %r2;\n    bra AGAIN;");
    for chip in ["gtx480", "gtx1080ti", "h200"] {
        let mut gpu = device(chip, &["sm.count=2"]);
        let (a, b) = (word(&mut gpu, "a"), word(&mut gpu, "b"));
        let hang = hang(run(&mut gpu, &text, "k", Launch::grid(2).block(64), args![&a, &b]));
        assert_eq!((hang.kind, &hang.reason), (HangKind::Endless, &HangReason::Repeats), "on {chip}: {hang}");
    }
}

/// A loop of many iterations comes before the one that never ends: the search starts anew with it.
#[test]
fn a_late_loop_is_proved_soon() {
    let text = kernel(
        "    mov.u32 %r3, 3000;
COUNT:
    sub.u32 %r3, %r3, 1;
    setp.ne.u32 %p1, %r3, 0;
    @%p1 bra COUNT;
WAIT:
    ld.volatile.global.u32 %r2, [%d0];
    setp.eq.u32 %p1, %r2, 0;
    @%p1 bra WAIT;",
    );
    let mut gpu = device("gtx480", &[]);
    let module = gpu.load_ptx_named("k.ptx", &text).unwrap();
    let (flag, out, set) = (word(&mut gpu, "flag"), word(&mut gpu, "out"), gpu.buffer(&[1u32]).unwrap());
    let launch = || Launch::grid(1).block(32);
    let ending = gpu.launch(module.kernel("k").unwrap(), launch(), args![&set, &out]).unwrap();
    let hang = hang(run(&mut gpu, &text, "k", launch(), args![&flag, &out]));
    assert_eq!((hang.kind, &hang.reason), (HangKind::LostToken, &HangReason::Repeats), "{hang}");
    assert!(hang.cycles < ending.cycles + 20_000, "the loop ends after {} cycles, {hang}", ending.cycles);
}

#[test]
fn the_functional_model_proves_hangs_too() {
    for (chip, file, entry, kind) in [
        ("gtx480", "simd_deadlock.ptx", "naive_lock", HangKind::SimdDeadlock),
        ("gtx480", "lost_token.ptx", "never_set", HangKind::LostToken),
        ("h200", "lost_token.ptx", "never_set", HangKind::LostToken),
        ("gtx480", "lock_cycle.ptx", "two_locks", HangKind::LockCycle),
        ("h200", "lock_cycle.ptx", "two_locks", HangKind::LockCycle),
    ] {
        let options = SimOptions { model: SimModel::Functional, ..SimOptions::default() };
        let mut gpu = Device::sim_with(Chip::load(chip, &[]).unwrap(), options);
        let (a, b) = (gpu.zeros_named::<u32>("a", 2).unwrap(), gpu.zeros_named::<u32>("b", 64).unwrap());
        let launch = Launch::grid(1).block(if kind == HangKind::LockCycle { 64 } else { 32 });
        let hang = hang(run(&mut gpu, &example(file), entry, launch, args![&a, &b]));
        assert_eq!((hang.kind, &hang.reason), (kind, &HangReason::Repeats), "{entry} on {chip}: {hang}");
    }
}

/// The functional model: what a loop only counts, in a register or by a clock that it reads in vain, does not keep it
/// from repeating itself. What ends the loop or is written does.
#[test]
fn the_functional_model_ignores_what_is_only_counted() {
    let wait = |count: &str, more: &str| {
        let body = format!(
            "    mov.u32 %r5, 0;
    mov.u32 %r6, 0;
WAIT:
    {count}
    ld.volatile.global.u32 %r2, [%d0];
    setp.eq.u32 %p0, %r2, 0;
    {more}
    @%p0 bra WAIT;
    st.global.u32 [%d1], %r5;"
        );
        kernel(&body)
    };
    let launch = |chip: &str, text: &str| {
        let options = SimOptions { model: SimModel::Functional, ..SimOptions::default() };
        let mut gpu = Device::sim_with(Chip::load(chip, &["sm.count=2".to_string()]).unwrap(), options);
        let (a, b) = (gpu.zeros_named::<u32>("a", 1).unwrap(), gpu.zeros_named::<u32>("b", 16).unwrap());
        run(&mut gpu, text, "k", Launch::grid(2).block(64).max_cycles(40_000_000), args![&a, &b])
    };
    for chip in ["gtx480", "gtx570", "h200", "apu"] {
        for count in
            ["add.u32 %r5, %r5, 1;", "mov.u32 %r5, %clock;", "xor.b32 %r5, %r5, 9; add.u32 %r6, %r6, %r5;"]
        {
            let hang = hang(launch(chip, &wait(count, "")));
            assert_eq!(
                (hang.kind, &hang.reason),
                (HangKind::LostToken, &HangReason::Repeats),
                "{chip}: {hang}"
            );
            assert!(hang.to_string().contains("until [a+0] is not 0; it is 0"), "{chip}: {hang}");
        }
        let gives_up = "setp.lt.and.u32 %p0, %r5, 300000, %p0;";
        launch(chip, &wait("add.u32 %r5, %r5, 1;", gives_up)).unwrap_or_else(|e| panic!("{chip}: {e}"));
        let by_clock = "setp.lt.and.u32 %p0, %r5, 2000000, %p0;";
        launch(chip, &wait("mov.u32 %r5, %clock;", by_clock)).unwrap_or_else(|e| panic!("{chip}: {e}"));
        let sets = "setp.eq.u32 %p1, %r5, 200000; @%p1 st.volatile.global.u32 [%d0], 1;";
        launch(chip, &wait("add.u32 %r5, %r5, 1;", sets)).unwrap_or_else(|e| panic!("{chip}: {e}"));
    }
}

#[test]
fn a_stopped_launch_says_where_every_warp_is() {
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;
    for model in [SimModel::Timing, SimModel::Functional] {
        let options = SimOptions { model, ..SimOptions::default() };
        let set = ["hang.watch_cycles=1000000000", "hang.suspect_cycles=0"].map(String::from);
        let mut gpu = Device::sim_with(Chip::load("gtx480", &set).unwrap(), options);
        let (flag, out) = (word(&mut gpu, "flag"), gpu.zeros_named::<u32>("out", 64).unwrap());
        let launch = Launch { interrupt: Some(Arc::new(AtomicBool::new(true))), ..Launch::grid(1).block(64) };
        let launched = run(&mut gpu, &example("lost_token.ptx"), "never_set", launch, args![&flag, &out]);
        let Err(Error::Interrupted { state: Some(state), .. }) = launched else {
            panic!("{model:?} was not stopped");
        };
        let message = state.to_string();
        assert!(message.contains("was stopped after") && message.contains(": 2 warps left"), "{message}");
    }
}

/// Warps look at a flag and count between two barriers. Whenever the limit ends them, some have not come to the barrier
/// yet: that is no deadlock.
#[test]
fn a_limit_between_two_barriers_is_no_deadlock() {
    let text = kernel(
        "    mov.u32 %r4, 0;
AGAIN:
    ld.volatile.global.u32 %r2, [%d1];
    setp.ne.u32 %p0, %r2, 0;
    @%p0 bra DONE;
    atom.global.add.u32 %r3, [%d0], 1;
    bar.sync 0;
    setp.lt.u32 %p0, %r3, 100000000;
    @%p0 bra AGAIN;
    st.volatile.global.u32 [%d1], 1;
    bra AGAIN;
DONE:",
    );
    for chip in CHIPS {
        for limit in (0..8).map(|step| 20_000 + 97 * step) {
            let mut gpu = device(chip, &["sm.count=1"]);
            let (a, b) = (word(&mut gpu, "a"), word(&mut gpu, "b"));
            let launch = Launch::grid(1).block(256).max_cycles(limit);
            let hang = hang(run(&mut gpu, &text, "k", launch, args![&a, &b]));
            assert_eq!(hang.kind, HangKind::Unknown, "on {chip}: {hang}");
        }
    }
}
