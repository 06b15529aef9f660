//! Kernels that never end: how each hang is detected and what the message says. Kernels that are only slow, and more
//! hangs on every chip, are in `hang_classes/`.
//!
//! The kernels of `kernels/hangs/` are also the examples of `docs/hangs.md`, which shows the same messages.

mod hang_support;

use hang_support::{device, example, hang, kernel, run, word};
use warploom::{Chip, Device, Hang, HangKind, HangReason, Launch, SimModel, SimOptions, args};

/// Replaces the cycle counts in a message, which change with every latency.
fn timeless(message: &str) -> String {
    let mut words: Vec<String> = message.split(' ').map(String::from).collect();
    for at in 1..words.len() {
        let is_count = words[at - 1].starts_with(|c: char| c.is_ascii_digit());
        let told = |word: &str| ["after", "for", "of"].contains(&word);
        if words[at].trim_end().starts_with("cycles") && is_count && at >= 2 && told(&words[at - 2]) {
            words[at - 1] = "N".to_string();
            if words[at - 2] == "of" {
                words[at - 3] = "N".to_string();
            }
        }
    }
    words.join(" ")
}

/// Compares the message with a snapshot, apart from its cycle counts.
macro_rules! assert_message {
    ($hang:expr) => {
        insta::assert_snapshot!(timeless(&$hang.to_string()))
    };
}

/// `docs/hangs.md`, with what the command prints as the library says it: without indentation and the chip's name.
fn page() -> String {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/hangs.md");
    let page = std::fs::read_to_string(path).expect("the page is there");
    let lines = page.lines().map(|line| line.strip_prefix("    ").unwrap_or(line));
    let page = lines.collect::<Vec<_>>().join("\n");
    page.replace("error: kernel", "kernel")
        .replace("` on gtx480 hangs", "` hangs")
        .replace("` on gtx480 seems", "` seems")
}

/// Also checks that `docs/hangs.md` shows the message.
macro_rules! assert_documented {
    ($hang:expr) => {{
        let message = $hang.to_string();
        insta::assert_snapshot!(timeless(&message));
        let found = timeless(&page()).contains(&timeless(&format!("\n{message}\n")));
        assert!(found, "docs/hangs.md does not show:\n{message}");
    }};
}

// Lanes that wait for lanes of the same warp.

#[test]
fn simd_deadlock() {
    let text = example("simd_deadlock.ptx");
    let mut gpu = device("gtx480", &[]);
    let (lock, count) = (word(&mut gpu, "lock"), word(&mut gpu, "count"));
    let hang = hang(run(&mut gpu, &text, "naive_lock", Launch::grid(1).block(32), args![&lock, &count]));
    assert_eq!((hang.kind, &hang.reason), (HangKind::SimdDeadlock, &HangReason::Repeats));
    assert_documented!(hang);
}

/// The other warps and CTAs only wait for the first, so it is named first.
#[test]
fn simd_deadlock_and_those_who_wait_behind_it() {
    let text = kernel(
        "    shr.u32 %r2, %r0, 5;
    or.b32 %r2, %r2, %r1;
    setp.eq.u32 %p0, %r2, 0;
    @%p0 bra AGAIN;
    mov.u32 %r3, 200;
LATER:
    sub.u32 %r3, %r3, 1;
    setp.ne.u32 %p0, %r3, 0;
    @%p0 bra LATER;
AGAIN:
    atom.global.cas.b32 %r2, [%d0], 0, 1;
    setp.ne.u32 %p0, %r2, 0;
    @%p0 bra AGAIN;
    atom.global.exch.b32 %r2, [%d0], 0;",
    );
    let mut gpu = device("gtx480", &["sm.count=2", "atomic.word_cycles=1.0"]);
    let (lock, b) = (word(&mut gpu, "lock"), word(&mut gpu, "b"));
    let hang = hang(run(&mut gpu, &text, "k", Launch::grid(12).block(256), args![&lock, &b]));
    assert_eq!((hang.kind, hang.live_warps), (HangKind::SimdDeadlock, 96));
    assert_message!(hang);
}

/// With independent threads the lane that holds the lock makes progress, though it may be scheduled late.
#[test]
fn independent_threads_release_the_lock() {
    for block in [32, 64] {
        let mut gpu = device("h200", &["sm.count=2"]);
        let (lock, count) = (word(&mut gpu, "lock"), word(&mut gpu, "count"));
        let text = example("simd_deadlock.ptx");
        run(&mut gpu, &text, "naive_lock", Launch::grid(1).block(block), args![&lock, &count]).unwrap();
        assert_eq!(count.read(&gpu).unwrap(), [block as u32]);
    }
}

/// Lanes that never start their side of a branch, because the other side never ends.
#[test]
fn simd_deadlock_before_the_turn() {
    let text = kernel(
        "    setp.ge.u32 %p0, %r0, 1;
    @%p0 bra WAIT;
    st.volatile.global.u32 [%d0], 1;
    bra MEET;
WAIT:
    ld.volatile.global.u32 %r2, [%d0];
    setp.eq.u32 %p1, %r2, 0;
    @%p1 bra WAIT;
MEET:
    st.global.u32 [%d1], %r0;",
    );
    let mut gpu = device("gtx480", &[]);
    let (flag, out) = (word(&mut gpu, "flag"), word(&mut gpu, "out"));
    let stuck = hang(run(&mut gpu, &text, "k", Launch::grid(1).block(32), args![&flag, &out]));
    assert_eq!(stuck.kind, HangKind::SimdDeadlock);
    assert_message!(stuck);
    let mut gpu = device("h200", &["sm.count=1"]);
    let (flag, out) = (word(&mut gpu, "flag"), word(&mut gpu, "out"));
    run(&mut gpu, &text, "k", Launch::grid(1).block(32), args![&flag, &out]).unwrap();
}

/// `shfl.sync` names lanes that spin until the others release the lock.
#[test]
fn lanes_that_are_named_but_spin() {
    let text = kernel(
        "AGAIN:
    atom.global.cas.b32 %r2, [%d0], 0, 1;
    setp.ne.u32 %p0, %r2, 0;
    @%p0 bra AGAIN;
    bar.warp.sync 0xffffffff;
    atom.global.exch.b32 %r2, [%d0], 0;",
    );
    let mut gpu = device("h200", &["sm.count=1"]);
    let (lock, out) = (word(&mut gpu, "lock"), word(&mut gpu, "out"));
    let hang = hang(run(&mut gpu, &text, "k", Launch::grid(1).block(32), args![&lock, &out]));
    assert_eq!(hang.kind, HangKind::SimdDeadlock);
    assert_message!(hang);
}

// Locks.

#[test]
fn lock_cycle() {
    let text = example("lock_cycle.ptx");
    for chip in ["gtx480", "h200"] {
        let mut gpu = device(chip, &["sm.count=2"]);
        let (locks, both) =
            (gpu.zeros_named::<u32>("locks", 2).unwrap(), gpu.zeros_named::<u32>("both", 2).unwrap());
        let hang = hang(run(&mut gpu, &text, "two_locks", Launch::grid(1).block(64), args![&locks, &both]));
        assert_eq!((hang.kind, &hang.reason), (HangKind::LockCycle, &HangReason::Repeats), "on {chip}");
        if chip == "gtx480" {
            assert_documented!(hang);
        }
    }
}

/// Warps that sleep in lock queues, each holding the lock that the other wants.
#[test]
fn lock_cycle_of_sleeping_warps() {
    for mode in ["ideal", "hql"] {
        let mut gpu = device("gtx480", &["sm.count=2", &format!("lock_queue.mode={mode}")]);
        let (locks, both) =
            (gpu.zeros_named::<u32>("locks", 2).unwrap(), gpu.zeros_named::<u32>("both", 2).unwrap());
        let text = example("lock_cycle.ptx");
        let hang = hang(run(&mut gpu, &text, "two_locks", Launch::grid(1).block(64), args![&locks, &both]));
        assert_eq!((hang.kind, &hang.reason), (HangKind::LockCycle, &HangReason::Blocked), "{mode}");
        if mode == "ideal" {
            assert_documented!(hang);
        }
    }
}

#[test]
fn lock_taken_twice() {
    let mut gpu = device("gtx480", &[]);
    let lock = word(&mut gpu, "lock");
    let launch = Launch::grid(1).block(1);
    let hang = hang(run(&mut gpu, &example("lock_cycle.ptx"), "taken_twice", launch, args![&lock]));
    assert_eq!(hang.kind, HangKind::LockCycle);
    assert_message!(hang);
}

/// Each CTA holds the lock that the next one wants.
#[test]
fn lock_cycle_of_ctas() {
    let text = kernel(
        "    mov.u32 %r3, %nctaid.x;
    add.u32 %r4, %r1, 1;
    rem.u32 %r4, %r4, %r3;
    mad.wide.u32 %d2, %r1, 4, %d0;
    mad.wide.u32 %d3, %r4, 4, %d0;
FIRST:
    atom.global.cas.b32 %r2, [%d2], 0, 1;
    setp.ne.u32 %p0, %r2, 0;
    @%p0 bra FIRST;
    atom.global.add.u32 %r2, [%d1], 1;
ALL:
    ld.volatile.global.u32 %r2, [%d1];
    setp.lt.u32 %p0, %r2, %r3;
    @%p0 bra ALL;
SECOND:
    atom.global.cas.b32 %r2, [%d3], 0, 1;
    setp.ne.u32 %p0, %r2, 0;
    @%p0 bra SECOND;",
    );
    let mut gpu = device("gtx480", &["sm.count=4"]);
    let (locks, come) = (gpu.zeros_named::<u32>("locks", 12).unwrap(), word(&mut gpu, "come"));
    let hang = hang(run(&mut gpu, &text, "k", Launch::grid(12).block(1), args![&locks, &come]));
    assert_eq!(hang.kind, HangKind::LockCycle);
    assert_message!(hang);
}

/// Inserts keys into a hash table until the cycle limit ends the launch.
fn insert(buckets: u32, limit: u64) -> Hang {
    const KEYS: u32 = 9216;
    let mut gpu = device("gtx480", &["sm.count=6", "issue.policy=gto"]);
    let keys: Vec<u32> = (0..KEYS).map(|i| i.wrapping_mul(2654435761) >> 7).collect();
    let keys = gpu.buffer(&keys).unwrap();
    let pool = gpu.zeros_named::<u32>("pool", 2 * KEYS as usize).unwrap();
    let heads = gpu.buffer(&vec![u32::MAX; buckets as usize]).unwrap();
    let locks = gpu.zeros_named::<u32>("locks", buckets as usize).unwrap();
    let text = warploom_kernels::text!("hashtable.ptx");
    let launch = Launch::grid(36).block(256).max_cycles(limit);
    let arguments = args![&keys, KEYS, &pool, &heads, &locks, buckets];
    hang(run(&mut gpu, text, "hashtable_insert", launch, arguments))
}

/// Locks are released far too seldom, because spinning warps keep the load/store units busy.
#[test]
fn livelock() {
    let hang = insert(16, 100_000);
    assert_eq!((hang.kind, &hang.reason), (HangKind::Livelock, &HangReason::CycleLimit(100_000)));
    let livelock = hang.livelock.as_ref().unwrap();
    assert!(livelock.pace.failed >= 100 * livelock.pace.taken.max(1), "{hang}");
    assert!(livelock.pace.cycles > 50_000 && livelock.pace.cycles <= 100_000, "{hang}");
    assert_eq!(livelock.policy, ("gto".to_string(), false));
    assert!(livelock.spinning_warps > 0 && livelock.spinning_warps <= hang.live_warps, "{hang}");
    // The threads that hold locks and could run but do not, longest wait first.
    assert!(livelock.holders[0].locks > 0 && livelock.holders[0].cycles > 1000, "{hang}");
    assert!(livelock.holders.is_sorted_by_key(|holder| std::cmp::Reverse(holder.cycles)), "{hang}");
    // The numbers depend on every latency; the words do not.
    let is_number = |word: &str| {
        let number = word.trim_end_matches([';', ':']);
        number.starts_with(|c: char| c.is_ascii_digit()) && number.ends_with(|c: char| c.is_ascii_digit())
    };
    let plain = |line: &str| {
        let words = line.split_whitespace().map(|word| if is_number(word) { "N" } else { word });
        words.collect::<Vec<_>>().join(" ")
    };
    let message = hang.to_string();
    let lines = message.lines().filter(|line| !line.contains("holds") && !line.contains("more holder"));
    let squeezed: Vec<String> = lines.map(plain).collect();
    insta::assert_snapshot!(squeezed.join("\n"));
}

/// While locks are acquired all the time there is no livelock, and a cycle that exists for a moment is no deadlock.
#[test]
fn contention_is_no_livelock() {
    let hang = insert(512, 20_000);
    assert_eq!((hang.kind, &hang.livelock), (HangKind::Unknown, &None), "{hang}");
}

// Barriers.

fn barrier_deadlock(entry: &str, block: u32) -> Hang {
    let mut gpu = device("gtx480", &[]);
    let out = gpu.zeros_named::<u32>(if entry == "lock_and_barrier" { "lock" } else { "out" }, 128).unwrap();
    let launch = Launch::grid(1).block(block);
    let hang = hang(run(&mut gpu, &example("barrier_deadlock.ptx"), entry, launch, args![&out]));
    assert_eq!(hang.kind, HangKind::Barrier, "{hang}");
    hang
}

#[test]
fn barrier_that_misses_a_warp() {
    let hang = barrier_deadlock("left_early", 128);
    assert_eq!(hang.reason, HangReason::Blocked);
    assert_documented!(hang);
}

#[test]
fn two_barriers() {
    assert_documented!(barrier_deadlock("two_barriers", 128));
}

#[test]
fn barrier_in_divergent_code() {
    assert_documented!(barrier_deadlock("divergent", 64));
}

#[test]
fn barrier_and_lock() {
    let hang = barrier_deadlock("lock_and_barrier", 64);
    assert_eq!(hang.reason, HangReason::Repeats);
    assert_documented!(hang);
}

/// A count greater than the CTA's threads.
#[test]
fn barrier_that_counts_too_many() {
    let mut gpu = device("h200", &["sm.count=2"]);
    let (a, b) = (word(&mut gpu, "a"), word(&mut gpu, "b"));
    let hang =
        hang(run(&mut gpu, &kernel("    bar.sync 3, 96;"), "k", Launch::grid(40).block(64), args![&a, &b]));
    assert_eq!((hang.kind, hang.live_warps), (HangKind::Barrier, 80));
    assert_message!(hang);
}

#[test]
fn mbarrier_that_misses_arrivals() {
    let text = kernel(
        "    .shared .align 8 .b64 phase;
    mov.u32 %r2, phase;
    setp.ne.u32 %p0, %r0, 0;
    @!%p0 mbarrier.init.shared.b64 [%r2], 64;
    bar.sync 0;
    mbarrier.arrive.shared.b64 %d2, [%r2];
AGAIN:
    mbarrier.test_wait.shared.b64 %p1, [%r2], %d2;
    @!%p1 bra AGAIN;",
    );
    let mut gpu = device("h200", &["sm.count=1"]);
    let (a, b) = (word(&mut gpu, "a"), word(&mut gpu, "b"));
    let hang = hang(run(&mut gpu, &text, "k", Launch::grid(1).block(48), args![&a, &b]));
    assert_eq!(hang.kind, HangKind::Barrier);
    assert_message!(hang);
}

#[test]
fn mbarrier_that_misses_bytes() {
    let text = kernel(
        "    .shared .align 8 .b64 phase;
    .shared .align 16 .b8 tile[64];
    mov.u32 %r2, phase;
    mov.u32 %r3, tile;
    setp.ne.u32 %p0, %r0, 0;
    @%p0 bra BEGUN;
    mbarrier.init.shared.b64 [%r2], 1;
    mbarrier.arrive.expect_tx.shared.b64 _, [%r2], 48;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r3], [%d0], 16, [%r2];
BEGUN:
    bar.sync 0;
AGAIN:
    mbarrier.try_wait.parity.shared.b64 %p1, [%r2], 0;
    @!%p1 bra AGAIN;",
    );
    let mut gpu = device("h200", &["sm.count=1"]);
    let (a, b) = (gpu.zeros_named::<u32>("a", 4).unwrap(), word(&mut gpu, "b"));
    let hang = hang(run(&mut gpu, &text, "k", Launch::grid(1).block(32), args![&a, &b]));
    assert_eq!(hang.kind, HangKind::Barrier);
    assert_message!(hang);
}

#[test]
fn mbarrier_with_the_wrong_parity() {
    let text = kernel(
        "    .shared .align 8 .b64 phase;
    mov.u32 %r2, phase;
    mbarrier.init.shared.b64 [%r2], 1;
    mbarrier.arrive.shared.b64 _, [%r2];
AGAIN:
    mbarrier.try_wait.parity.shared.b64 %p1, [%r2], 1;
    @!%p1 bra AGAIN;",
    );
    let mut gpu = device("h200", &["sm.count=1"]);
    let (a, b) = (word(&mut gpu, "a"), word(&mut gpu, "b"));
    let hang = hang(run(&mut gpu, &text, "k", Launch::grid(1).block(1), args![&a, &b]));
    assert_message!(hang);
}

// Words that no thread writes.

#[test]
fn lost_token() {
    let mut gpu = device("gtx480", &[]);
    let (flag, out) = (word(&mut gpu, "flag"), gpu.zeros_named::<u32>("out", 64).unwrap());
    let launch = Launch::grid(1).block(64);
    let hang = hang(run(&mut gpu, &example("lost_token.ptx"), "never_set", launch, args![&flag, &out]));
    assert_eq!((hang.kind, &hang.reason), (HangKind::LostToken, &HangReason::Repeats));
    assert_documented!(hang);
}

#[test]
fn lost_token_in_a_loop_that_sleeps() {
    for chip in ["gtx480", "h200"] {
        let mut gpu = device(chip, &["sm.count=2"]);
        let (flag, out) = (word(&mut gpu, "flag"), gpu.zeros_named::<u32>("out", 64).unwrap());
        let launch = Launch::grid(3).block(64);
        let hang = hang(run(&mut gpu, &example("lost_token.ptx"), "sleeping", launch, args![&flag, &out]));
        assert_eq!((hang.kind, &hang.reason), (HangKind::LostToken, &HangReason::Repeats), "on {chip}");
        if chip == "gtx480" {
            assert_message!(hang);
        }
    }
}

#[test]
fn lock_that_is_not_released() {
    // One CTA after another.
    let mut gpu = device("gtx480", &["sm.count=1", "sm.max_ctas=1"]);
    let (lock, length) = (word(&mut gpu, "lock"), word(&mut gpu, "length"));
    let launch = Launch::grid(2).block(32);
    let hang = hang(run(&mut gpu, &example("lost_token.ptx"), "not_released", launch, args![&lock, &length]));
    assert_eq!(hang.kind, HangKind::LostToken);
    assert_documented!(hang);
}

#[test]
fn lock_in_shared_memory() {
    for chip in ["gtx480", "h200"] {
        let mut gpu = device(chip, &["sm.count=2"]);
        let out = gpu.zeros_named::<u32>("out", 64).unwrap();
        let launch = Launch::grid(2).block(96);
        let hang = hang(run(&mut gpu, &example("lost_token.ptx"), "shared_lock", launch, args![&out]));
        assert_eq!((hang.kind, &hang.reason), (HangKind::LostToken, &HangReason::Repeats), "on {chip}");
        if chip == "gtx480" {
            assert_message!(hang);
        }
    }
}

/// Locks in shared memory are counted like those in global memory.
#[test]
fn locks_in_shared_memory_are_counted() {
    let text = kernel(
        "    .shared .align 4 .u32 lock;
    setp.eq.u32 %p0, %r0, 0;
    @%p0 st.shared.u32 [lock], 0;
    bar.sync 0;
AGAIN:
    atom.shared.cas.b32 %r2, [lock], 0, 1;
    setp.ne.u32 %p0, %r2, 0;
    @%p0 bra NEXT;
    ld.volatile.global.u32 %r3, [%d0];
    add.u32 %r3, %r3, 1;
    st.volatile.global.u32 [%d0], %r3;
    membar.gl;
    atom.shared.exch.b32 %r4, [lock], 0;
NEXT:
    @%p0 bra AGAIN;",
    );
    for chip in ["gtx480", "gtx570", "h200"] {
        let mut gpu = device(chip, &["sm.count=1"]);
        let (count, b) = (word(&mut gpu, "count"), word(&mut gpu, "b"));
        let module = gpu.load_ptx(&text).unwrap();
        let launch = Launch::grid(1).block(64);
        let report = gpu.launch(module.kernel("k").unwrap(), launch, args![&count, &b]).unwrap();
        assert_eq!(count.read(&gpu).unwrap(), [64], "on {chip}");
        let locks = report.locks.unwrap();
        assert_eq!(locks.acquired, 64, "on {chip}");
        assert!(locks.failed_intra > 0 && locks.failed_inter > 0, "on {chip}: {locks:?}");
    }
}

#[test]
fn ctas_that_cannot_start() {
    let mut gpu = device("gtx480", &["sm.count=2", "sm.max_ctas=3"]);
    let (come, out) = (word(&mut gpu, "come"), gpu.zeros_named::<u32>("out", 10).unwrap());
    let launch = Launch::grid(10).block(64);
    let hang = hang(run(&mut gpu, &example("cannot_start.ptx"), "grid_barrier", launch, args![&come, &out]));
    assert_eq!((hang.kind, hang.unstarted_ctas), (HangKind::NotResident, 4));
    assert_documented!(hang);
    let mut gpu = device("gtx480", &["sm.count=2", "sm.max_ctas=5"]);
    let (come, out) = (word(&mut gpu, "come"), gpu.zeros_named::<u32>("out", 10).unwrap());
    let launch = Launch::grid(10).block(64);
    run(&mut gpu, &example("cannot_start.ptx"), "grid_barrier", launch, args![&come, &out]).unwrap();
}

#[test]
fn stale_copy() {
    let mut gpu = device("gtx480", &[]);
    let (flag, out) = (word(&mut gpu, "flag"), word(&mut gpu, "out"));
    let launch = Launch::grid(2).block(1);
    let hang = hang(run(&mut gpu, &example("stale_copy.ptx"), "cached_flag", launch, args![&flag, &out]));
    assert_eq!((hang.kind, &hang.reason), (HangKind::Stale, &HangReason::Repeats));
    assert_documented!(hang);
    // A load that bypasses the L1 sees the flag.
    let text = example("stale_copy.ptx").replace("ld.global.ca", "ld.global.cg");
    run(&mut gpu, &text, "cached_flag", Launch::grid(2).block(1), args![&flag, &out]).unwrap();
    assert_eq!(out.read(&gpu).unwrap(), [1]);
}

// Loops.

#[test]
fn endless_loop() {
    let mut gpu = device("gtx480", &[]);
    let out = gpu.zeros_named::<u32>("out", 64).unwrap();
    let launch = Launch::grid(1).block(64);
    let hang = hang(run(&mut gpu, &example("endless_loop.ptx"), "no_way_out", launch, args![&out, 0u32]));
    assert_eq!((hang.kind, &hang.reason), (HangKind::Endless, &HangReason::Repeats));
    assert_documented!(hang);
}

#[test]
fn suspicion() {
    let mut gpu = device("gtx480", &["hang.suspect_cycles=20000"]);
    let (flag, out) = (word(&mut gpu, "flag"), gpu.zeros_named::<u32>("out", 64).unwrap());
    let launch = Launch::grid(1).block(64);
    let hang = hang(run(&mut gpu, &example("endless_loop.ptx"), "by_the_clock", launch, args![&flag, &out]));
    assert!(matches!(hang.reason, HangReason::Quiet(20_000..21_000)), "{hang}");
    assert_documented!(hang);
}

#[test]
fn cycle_limit() {
    let text = example("endless_loop.ptx");
    let launch = |cycles: u64| Launch::grid(1).block(64).max_cycles(cycles);
    let mut gpu = device("gtx480", &[]);
    let (flag, out) = (word(&mut gpu, "flag"), gpu.zeros_named::<u32>("out", 64).unwrap());
    let spinning = hang(run(&mut gpu, &text, "counting", launch(3000), args![&flag, &out]));
    let round = kernel("AGAIN:\n    bra AGAIN;");
    let computing = hang(run(&mut gpu, &round, "k", launch(3000), args![&flag, &out]));
    assert_eq!(computing.reason, HangReason::CycleLimit(3000));
    assert_message!(format!("{spinning}\n\n{computing}"));
}

/// A sleep longer than the limit does not outlast it, and who ends before the limit does not hang.
#[test]
fn cycle_limit_of_a_sleeper() {
    let text = kernel("    nanosleep.u32 100000;\n    mov.u32 %r3, 7;\n    st.global.u32 [%d0], %r3;");
    let with_limit = |limit: u64| {
        let mut gpu = device("h200", &[]);
        let out = word(&mut gpu, "out");
        let kernel = gpu.load_ptx(&text).unwrap().kernel("k").unwrap();
        let result = gpu.launch(&kernel, Launch::grid(1).block(1).max_cycles(limit), args![&out, 0u64]);
        (out.read(&gpu).unwrap()[0], result)
    };
    let (unwritten, asleep) = with_limit(3000);
    assert_eq!((unwritten, hang(asleep.map(|_| ())).reason), (0, HangReason::CycleLimit(3000)));
    let cycles = with_limit(1_000_000).1.unwrap().cycles;
    assert!(cycles > 100_000);
    assert_eq!(with_limit(cycles + 1).1.unwrap().cycles, cycles);
}

/// The functional model explains what it can.
#[test]
fn without_timing() {
    let functional = || {
        let options = SimOptions { model: SimModel::Functional, ..SimOptions::default() };
        Device::sim_with(Chip::load("gtx480", &[]).unwrap(), options)
    };
    let mut gpu = functional();
    let out = gpu.zeros_named::<u32>("out", 128).unwrap();
    let blocked = Launch::grid(1).block(128);
    let blocked = hang(run(&mut gpu, &example("barrier_deadlock.ptx"), "left_early", blocked, args![&out]));
    assert_eq!(blocked.reason, HangReason::Blocked);
    let (lock, count) = (word(&mut gpu, "lock"), word(&mut gpu, "count"));
    let launch = Launch::grid(1).block(32).max_cycles(10_000);
    let limited =
        hang(run(&mut gpu, &example("simd_deadlock.ptx"), "naive_lock", launch, args![&lock, &count]));
    assert_eq!((limited.kind, &limited.reason), (HangKind::SimdDeadlock, &HangReason::CycleLimit(10_000)));
    assert_message!(format!("{blocked}\n\n{limited}"));
}

/// Without timing, CTAs that have nothing to do with each other run one by one. If one does not end, the others run,
/// too.
#[test]
fn endless_loops_without_timing() {
    let options = SimOptions { model: SimModel::Functional, ..SimOptions::default() };
    let mut gpu = Device::sim_with(Chip::load("gtx480", &[]).unwrap(), options);
    let out = gpu.zeros_named::<u32>("out", 5).unwrap();
    let text = kernel(
        "mad.wide.u32 %d2, %r1, 4, %d0;
         st.global.u32 [%d2], 1;
         and.b32 %r2, %r1, 1;
         setp.eq.u32 %p1, %r2, 0;
         @%p1 ret;
     AGAIN:
         bra AGAIN;",
    );
    let hang = hang(run(&mut gpu, &text, "k", Launch::grid(5).block(64), args![&out, &out]));
    assert_eq!((hang.kind, &hang.reason), (HangKind::Endless, &HangReason::Repeats));
    assert_eq!((hang.live_warps, hang.unstarted_ctas), (4, 0));
    assert_eq!(out.read(&gpu).unwrap(), [1; 5]);
}

/// The message does not depend on the number of host threads.
#[test]
fn explanations_are_deterministic() {
    let tell = |threads: usize| {
        let mut options = SimOptions::default();
        options.timing.threads = threads;
        let mut gpu = Device::sim_with(Chip::load("gtx480", &["sm.count=4".to_string()]).unwrap(), options);
        let (lock, count) = (word(&mut gpu, "lock"), word(&mut gpu, "count"));
        let launch = Launch::grid(9).block(96);
        hang(run(&mut gpu, &example("simd_deadlock.ptx"), "naive_lock", launch, args![&lock, &count]))
    };
    assert_eq!(tell(1), tell(3));
}
