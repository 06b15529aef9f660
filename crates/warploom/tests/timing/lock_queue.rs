//! Blocking locks: threads sleep in queues at the L2 instead of spinning.

use warploom::{Bows, Launch, Report, Timing, args, policies};

use crate::accounting::launch;
use crate::bench::Bench;

const MODES: [&str; 3] = ["off", "ideal", "hql"];

/// Inserts 1500 keys into a hash table on two SMs, and checks its chains.
fn insert(chip: &str, timing: Timing, set: &[&str], buckets: u32) -> Report {
    const KEYS: u32 = 1500;
    let mut bench = Bench::timed(chip, &[&["sm.count=2"], set].concat(), timing);
    let gpu = &mut bench.gpu;
    let keys: Vec<u32> = (0..KEYS).map(|i| i.wrapping_mul(2654435761) >> 7).collect();
    let input = gpu.buffer(&keys).unwrap();
    let pool = gpu.zeros::<u32>(2 * KEYS as usize).unwrap();
    let heads = gpu.buffer(&vec![u32::MAX; buckets as usize]).unwrap();
    let locks = gpu.zeros::<u32>(buckets as usize).unwrap();
    let module = gpu.load_ptx(warploom_kernels::text!("hashtable.ptx")).unwrap();
    let arguments = args![&input, KEYS, &pool, &heads, &locks, buckets];
    let report = gpu
        .launch(module.kernel("hashtable_insert").unwrap(), Launch::grid(6).block(128), arguments)
        .unwrap_or_else(|error| panic!("{set:?}: {error}"));
    let (pool, heads) = (pool.read(gpu).unwrap(), heads.read(gpu).unwrap());
    let mut found = 0;
    for (bucket, &head) in heads.iter().enumerate() {
        let mut at = head;
        while at != u32::MAX {
            let [key, next] = [pool[2 * at as usize], pool[2 * at as usize + 1]];
            assert_eq!((key, key % buckets), (keys[at as usize], bucket as u32), "{set:?}");
            (at, found) = (next, found + 1);
            assert!(found <= KEYS, "a chain is a circle: {set:?}");
        }
    }
    assert_eq!(found, KEYS, "{set:?}");
    assert!(locks.read(gpu).unwrap().iter().all(|&lock| lock == 0), "{set:?}");
    let stalls = report.stalls.as_ref().unwrap();
    assert_eq!(stalls.values().sum::<u64>(), report.warp_cycles.unwrap(), "{set:?}: {stalls:?}");
    report
}

fn under(policy: &str, bows: Bows) -> Timing {
    Timing { policy: Some(policy.to_string()), bows, threads: 1, ..Timing::default() }
}

#[test]
fn the_result_is_right_in_all_modes_under_every_policy() {
    for chip in ["gtx480", "h200"] {
        for (policy, _) in policies() {
            for mode in MODES {
                for bows in [Bows::default(), Bows::on()] {
                    let report = insert(chip, under(policy, bows), &[&format!("lock_queue.mode={mode}")], 32);
                    let (locks, on) = (report.locks.unwrap(), mode != "off");
                    assert_eq!(locks.acquired, 1500, "{chip}, {policy}, {mode}");
                    assert_eq!(locks.queued > 0, on, "{chip}, {policy}, {mode}");
                    assert!(locks.granted <= locks.queued, "{chip}, {policy}, {mode}");
                    assert_eq!(locks.not_queued, 0, "{chip}, {policy}, {mode}");
                    let slept = report.stalls.unwrap()["lock_queue"];
                    assert_eq!(slept > 0, on, "{chip}, {policy}, {mode}");
                }
            }
        }
    }
}

#[test]
fn who_sleeps_does_not_issue() {
    for policy in ["lrr", "gto", "cawa"] {
        let run = |mode: &str| {
            let report =
                insert("gtx480", under(policy, Bows::default()), &[&format!("lock_queue.mode={mode}")], 32);
            report.warp_insts
        };
        let [off, ideal, hql] = MODES.map(run);
        assert!(ideal < off && hql < off, "{policy}: {ideal} {hql} {off}");
    }
}

#[test]
fn locks_for_which_a_set_has_no_way_are_spun_for() {
    // 1024 locks in 32 lines; each slice has room for one locked line.
    let run = |set: &[&str]| insert("gtx480", under("gto", Bows::default()), set, 1024).locks.unwrap();
    let tight = run(&["lock_queue.mode=hql", "lock_queue.sets=1", "lock_queue.ways=1"]);
    assert!(tight.not_queued > 0, "{tight:?}");
    let wide = run(&["lock_queue.mode=hql"]);
    assert_eq!(wide.not_queued, 0, "{wide:?}");
}

#[test]
fn host_threads_do_not_matter_to_queues() {
    for mode in ["ideal", "hql"] {
        let run = |threads| {
            let timing = Timing { threads, sample_cycles: Some(1000), ..Timing::default() };
            let set = ["sm.count=13", &format!("lock_queue.mode={mode}")];
            let mut bench = Bench::timed("gtx480", &set, timing);
            ["spinlock", "hashtable"].map(|name| {
                let (report, buffers) = launch(&mut bench, name);
                let timeless = Report { wall_s: 0.0, warp_insts_per_s: 0.0, ..report };
                let buffers: Vec<_> = buffers.iter().map(|buffer| buffer.read(&bench.gpu).unwrap()).collect();
                (timeless, buffers)
            })
        };
        let one = run(1);
        assert!(one.iter().all(|(report, _)| report.locks.as_ref().unwrap().queued > 0), "{mode}");
        for threads in [2, 7] {
            assert!(run(threads) == one, "{mode}, {threads} threads");
        }
    }
}

#[test]
fn a_kernel_without_locks_runs_as_without_queues() {
    for name in ["vecadd", "reduce", "histogram", "sleep"] {
        let [off, ideal, hql] = MODES.map(|mode| {
            let set = ["sm.count=2", &format!("lock_queue.mode={mode}")];
            let report = launch(&mut Bench::timed("gtx480", &set, under("gto", Bows::default())), name).0;
            (report.cycles, report.warp_insts, report.stalls)
        });
        assert_eq!((&off, &off), (&ideal, &hql), "{name}");
    }
}

/// Warps take two locks, one inside the other. Words of a line share a queue under `hql`, so a grant for the outer lock
/// can go to a thread that waits for the inner one; words of other lines may share a slice and a set.
#[test]
fn nested_locks_end() {
    let text = r#"
.version 7.0
.target sm_70
.address_size 64
.visible .entry nested(.param .u64 words)
{
    .reg .pred %p<4>;
    .reg .b32 %r<8>;
    .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [words];
    cvta.to.global.u64 %rd1, %rd1;
    mov.u32 %r1, %tid.x;
    and.b32 %r2, %r1, 31;
    setp.ne.u32 %p1, %r2, 0;
    @%p1 bra END;
    mov.u32 %r3, 0;
AGAIN:
OUTER:
    atom.global.cas.b32 %r4, [%rd1], 0, 1;
    setp.ne.u32 %p2, %r4, 0;
    @%p2 bra OUTER;
INNER:
    atom.global.cas.b32 %r4, [%rd1+4], 0, 1;
    setp.ne.u32 %p2, %r4, 0;
    @%p2 bra INNER;
    ld.volatile.global.u32 %r5, [%rd1+8];
    add.u32 %r5, %r5, 1;
    st.volatile.global.u32 [%rd1+8], %r5;
    membar.gl;
    atom.global.exch.b32 %r4, [%rd1], 0;
    atom.global.exch.b32 %r4, [%rd1+4], 0;
    add.u32 %r3, %r3, 1;
    setp.lt.u32 %p3, %r3, 8;
    @%p3 bra AGAIN;
END:
    ret;
}
"#;
    for (mode, inner) in MODES.iter().flat_map(|mode| [4, 128, 8192].map(|inner| (mode, inner))) {
        let tight = ["lock_queue.sets=1", "lock_queue.ways=1"];
        for tight in [&[][..], &tight[..]] {
            let mode_key = format!("lock_queue.mode={mode}");
            let set: Vec<&str> = ["sm.count=2", &mode_key].into_iter().chain(tight.iter().copied()).collect();
            let mut bench = Bench::timed("gtx480", &set, Timing::default());
            let text = text.replace("[%rd1+4]", &format!("[%rd1+{inner}]"));
            let module = bench.gpu.load_ptx_named("nested.ptx", &text).unwrap();
            let words = bench.gpu.zeros_named::<u32>("words", 4096).unwrap();
            let launch = Launch::grid(2).block(256);
            let launched = bench.gpu.launch(module.kernel("nested").unwrap(), launch, args![&words]);
            assert!(launched.is_ok(), "{mode} {inner} {tight:?}: {}", launched.unwrap_err());
            let words = words.read(&bench.gpu).unwrap();
            assert_eq!((words[0], words[2], words[inner / 4]), (0, 16 * 8, 0), "{mode} {inner} {tight:?}");
        }
    }
}
