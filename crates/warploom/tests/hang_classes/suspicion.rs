//! Who is suspected when nothing changes for long: only warps that nothing but another thread could free.

use warploom::{Device, Error, HangKind, HangReason, Launch, args};

use crate::causes::CHIPS;
use crate::hang_support::{device, hang, kernel, run, word};

const SUSPECT: [&str; 3] = ["sm.count=2", "hang.watch_cycles=500", "hang.suspect_cycles=20000"];

fn launch(gpu: &mut Device, body: &str, block: u32) -> Result<(), Error> {
    let (flag, out) = (word(gpu, "flag"), gpu.zeros_named::<u32>("out", 1).unwrap());
    run(gpu, &kernel(body), "k", Launch::grid(1).block(block).max_cycles(5_000_000), args![&flag, &out])
}

#[track_caller]
fn ends(body: &str) {
    for chip in CHIPS {
        launch(&mut device(chip, &SUSPECT), body, 64).unwrap_or_else(|error| panic!("on {chip}: {error}"));
    }
}

/// Polls at most so often, without any work between two polls.
#[test]
fn a_poll_that_gives_up_is_no_hang() {
    ends(
        "    mov.u32 %r5, 0;
WAIT:
    add.u32 %r5, %r5, 1;
    ld.volatile.global.u32 %r2, [%d0];
    setp.eq.u32 %p0, %r2, 0;
    setp.lt.and.u32 %p0, %r5, 2000, %p0;
    @%p0 bra WAIT;",
    );
}

#[test]
fn a_timeout_by_the_clock_is_no_hang() {
    ends(
        "    mov.u32 %r7, %clock;
WAIT:
    mov.u32 %r6, %clock;
    sub.u32 %r6, %r6, %r7;
    ld.volatile.global.u32 %r2, [%d0];
    setp.eq.u32 %p0, %r2, 0;
    setp.lt.and.u32 %p0, %r6, 60000, %p0;
    @%p0 bra WAIT;",
    );
}

/// Each iteration computes a little and looks at a stop flag.
#[test]
fn a_short_computation_with_a_stop_flag_is_no_hang() {
    ends(
        "    mov.u32 %r5, 1;
    mov.u32 %r3, 0;
WORK:
    mad.lo.u32 %r5, %r5, 1664525, 1013904223;
    add.u32 %r3, %r3, 1;
    ld.volatile.global.u32 %r2, [%d0];
    setp.ne.u32 %p0, %r2, 0;
    @%p0 bra DONE;
    setp.lt.u32 %p0, %r3, 3000;
    @%p0 bra WORK;
DONE:",
    );
}

/// The wait itself may count: that ends nothing.
#[test]
fn what_is_only_counted_is_no_progress() {
    let registers = "    mov.u32 %r5, 0;
WAIT:
    add.u32 %r5, %r5, 1;
    ld.volatile.global.u32 %r2, [%d0];
    setp.eq.u32 %p0, %r2, 0;
    @%p0 bra WAIT;
    st.global.u32 [%d1], %r5;";
    let stack = "    .local .align 4 .b32 count;
    mov.u64 %d4, count;
    st.local.u32 [%d4], 0;
WAIT:
    ld.local.u32 %r5, [%d4];
    add.u32 %r5, %r5, 1;
    st.local.u32 [%d4], %r5;
    ld.volatile.global.u32 %r2, [%d0];
    setp.eq.u32 %p0, %r2, 0;
    @%p0 bra WAIT;";
    for (body, chip) in [registers, stack].into_iter().flat_map(|body| CHIPS.map(|chip| (body, chip))) {
        let hang = hang(launch(&mut device(chip, &SUSPECT), body, 64));
        assert_eq!((hang.kind, &hang.reason), (HangKind::LostToken, &HangReason::Repeats), "{chip}: {hang}");
    }
}

/// Loops that wait by the clock, or around a barrier, between two polls, or that sleep for longer and longer, as those
/// of libcu++ do: no proof, but a verdict.
#[test]
fn waits_that_cannot_be_proved_are_suspected() {
    let clock = "WAIT:
    mov.u32 %r5, %clock;
INNER:
    mov.u32 %r6, %clock;
    sub.u32 %r6, %r6, %r5;
    setp.lt.u32 %p0, %r6, 500;
    @%p0 bra INNER;
    ld.volatile.global.u32 %r2, [%d0];
    setp.eq.u32 %p0, %r2, 0;
    @%p0 bra WAIT;";
    let barrier = "WAIT:
    bar.sync 0;
    ld.volatile.global.u32 %r2, [%d0];
    setp.eq.u32 %p0, %r2, 0;
    @%p0 bra WAIT;";
    let back_off = "    mov.u64 %d5, %globaltimer;
    mov.u32 %r5, 0;
    bra WAIT;
COUNT:
    add.u32 %r5, %r5, 1;
WAIT:
    ld.volatile.global.u32 %r2, [%d0];
    setp.ne.u32 %p0, %r2, 0;
    @%p0 bra DONE;
    setp.lt.u32 %p1, %r5, 16;
    @%p1 bra COUNT;
    mov.u64 %d6, %globaltimer;
    sub.s64 %d6, %d6, %d5;
    setp.lt.s64 %p1, %d6, 4000000;
    @%p1 bra SHORT;
    nanosleep.u32 1000000;
    bra WAIT;
SHORT:
    setp.lt.s64 %p1, %d6, 4000;
    @%p1 bra WAIT;
    shr.u64 %d7, %d6, 4;
    cvt.u32.u64 %r6, %d7;
    nanosleep.u32 %r6;
    bra WAIT;
DONE:";
    let bodies = [clock, barrier, back_off].into_iter();
    for (body, chip) in bodies.flat_map(|body| CHIPS.map(|chip| (body, chip))) {
        let hang = hang(launch(&mut device(chip, &SUSPECT), body, 64));
        assert_eq!(hang.kind, HangKind::LostToken, "{chip}: {hang}");
        assert!(matches!(hang.reason, HangReason::Quiet(20_000..25_000)), "{chip}: {hang}");
    }
}

/// Inserts `keys` keys into a hash table under GTO, with `rotation` in cycles.
fn insert(
    chip: &str,
    set: &[&str],
    rotation: u32,
    (ctas, keys, buckets): (u32, u32, u32),
) -> Result<(), Error> {
    let text = warploom_kernels::text!("hashtable.ptx");
    let rotation = format!("issue.gto.rotation_cycles={rotation}");
    let mut gpu = device(chip, &[set, &["issue.policy=gto", &rotation]].concat());
    let values: Vec<u32> = (0..keys).map(|i| i.wrapping_mul(2654435761) >> 7).collect();
    let values = gpu.buffer(&values).unwrap();
    let pool = gpu.zeros_named::<u32>("pool", 2 * keys as usize).unwrap();
    let heads = gpu.buffer(&vec![u32::MAX; buckets as usize]).unwrap();
    let locks = gpu.zeros_named::<u32>("locks", buckets as usize).unwrap();
    let launch = Launch::grid(ctas).block(256).max_cycles(3_000_000);
    run(&mut gpu, text, "hashtable_insert", launch, args![&values, keys, &pool, &heads, &locks, buckets])
}

/// A younger warp holds the lock; older ones poll and take every issue slot until the order rotates. Suspicion waits
/// for its turn.
#[test]
fn a_warp_that_is_passed_over_gets_its_turn() {
    let result = insert("gtx480", &["sm.count=2", "hang.suspect_cycles=10000"], 15_000, (12, 3072, 4));
    if let Err(Error::Hang { hang: Some(hang), .. }) = result {
        assert!(matches!(hang.reason, HangReason::CycleLimit(_)), "{hang}");
    }
}

/// The turn comes, but whenever the load/store unit is free, the warp that issued last wants it for its next try.
#[test]
fn a_warp_that_is_passed_over_in_its_turns_is_suspected() {
    let hang = hang(insert("gtx1080ti", &["hang.suspect_cycles=200000"], 10_000, (120, 61_440, 64)));
    assert_eq!(hang.kind, HangKind::Livelock, "{hang}");
    assert!(matches!(hang.reason, HangReason::Quiet(200_000..)), "{hang}");
}

/// The loop changes without a change in memory: the search for a repetition begins anew with the new loop.
#[test]
fn a_lost_wake_up_is_proved_soon() {
    let body = |last: &str| {
        format!(
            "    mov.u32 %r6, 0;
ROUND:
    mov.u32 %r3, 0;
POLL:
    ld.volatile.global.u32 %r2, [%d0];
    setp.ne.u32 %p0, %r2, 0;
    @%p0 bra DONE;
    add.u32 %r3, %r3, 1;
    setp.lt.u32 %p0, %r3, 10;
    @%p0 bra POLL;
    add.u32 %r6, %r6, 1;
    setp.lt.u32 %p0, %r6, 100;
    @%p0 bra ROUND;
{last}
DONE:"
        )
    };
    let wait = "LAST:
    ld.volatile.global.u32 %r2, [%d0];
    setp.eq.u32 %p0, %r2, 0;
    @%p0 bra LAST;";
    let mut gpu = device("gtx480", &["issue.bows.enabled=true"]);
    let flag = word(&mut gpu, "flag");
    let module = gpu.load_ptx_named("k.ptx", kernel(&body(""))).unwrap();
    let out = word(&mut gpu, "out");
    let launch = || Launch::grid(1).block(32);
    let before = gpu.launch(module.kernel("k").unwrap(), launch(), args![&flag, &out]).unwrap().cycles;
    let hang = hang(run(&mut gpu, &kernel(&body(wait)), "k", launch(), args![&flag, &out]));
    assert_eq!(hang.reason, HangReason::Repeats, "{hang}");
    assert!(hang.cycles < before + before / 4 + 100_000, "the rounds end after {before} cycles: {hang}");
}

/// Warp 0 counts; all warps pass two barriers in each iteration, and those that poll come late because they back off.
#[test]
fn warps_at_a_barrier_that_opens_again_and_again_do_not_wait() {
    let body = "    .shared .align 4 .b32 stop;
    mov.u32 %r5, 0;
    st.shared.u32 [stop], 0;
WAIT:
    bar.sync 0;
    add.u32 %r5, %r5, 1;
    setp.ne.u32 %p1, %r0, 0;
    @%p1 bra LOOK;
    setp.lt.u32 %p1, %r5, 60;
    @%p1 bra LOOK;
    st.volatile.shared.u32 [stop], 1;
LOOK:
    bar.sync 0;
    ld.volatile.shared.u32 %r2, [stop];
    setp.eq.u32 %p0, %r2, 0;
    @%p0 bra WAIT;";
    for chip in CHIPS {
        let mut set = SUSPECT.to_vec();
        set.push("issue.bows.enabled=true");
        launch(&mut device(chip, &set), body, 128).unwrap_or_else(|error| panic!("on {chip}: {error}"));
    }
}
