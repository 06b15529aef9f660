//! L1s that a directory keeps coherent.

use warploom::{Chip, Device, Firmware, Launch, Report, SimOptions, Task, Timing, args};

use crate::support::{apu, load};

/// Threads write their own words, which share lines, read those of others, and add to counters in the same
/// lines. The values that a thread reads of a word never decrease, and it sees its own writes and additions.
/// Anything else counts as an error.
const SHARED_LINES: &str = "
    .visible .entry shared_lines(.param .u64 words, .param .u64 errors, .param .u32 turns, .param .u32 threads) {
        .reg .b32 %r<24>;
        .reg .b64 %rd<12>;
        .reg .pred %p<4>;
        ld.param.u64 %rd0, [words];
        ld.param.u64 %rd1, [errors];
        ld.param.u32 %r0, [turns];
        ld.param.u32 %r1, [threads];
        mov.u32 %r2, %ctaid.x;
        mov.u32 %r3, %ntid.x;
        mov.u32 %r4, %tid.x;
        mad.lo.u32 %r2, %r2, %r3, %r4;
        // Word t / 15 * 16 + 1 + t % 15 is the thread's own; the first word of a line is a counter.
        div.u32 %r5, %r2, 15;
        rem.u32 %r6, %r2, 15;
        mad.lo.u32 %r5, %r5, 16, %r6;
        add.u32 %r5, %r5, 1;
        mul.wide.u32 %rd2, %r5, 4;
        add.u64 %rd2, %rd2, %rd0;
        // Its partner.
        mad.lo.u32 %r7, %r2, 7, 3;
        rem.u32 %r7, %r7, %r1;
        div.u32 %r8, %r7, 15;
        rem.u32 %r9, %r7, 15;
        mad.lo.u32 %r8, %r8, 16, %r9;
        add.u32 %r8, %r8, 1;
        mul.wide.u32 %rd3, %r8, 4;
        add.u64 %rd3, %rd3, %rd0;
        mov.u32 %r10, 0;
        mov.u32 %r11, 0;
        mov.u32 %r12, 0;
        add.u32 %r13, %r1, 14;
        div.u32 %r13, %r13, 15;
        mad.lo.u32 %r14, %r2, 40503, 12345;
    turn:
        add.u32 %r10, %r10, 1;
        st.global.u32 [%rd2], %r10;
        ld.global.u32 %r15, [%rd2];
        setp.ne.u32 %p0, %r15, %r10;
        @%p0 add.u32 %r12, %r12, 1;
        ld.global.u32 %r16, [%rd3];
        setp.lt.u32 %p0, %r16, %r11;
        @%p0 add.u32 %r12, %r12, 65536;
        setp.gt.u32 %p0, %r16, %r0;
        @%p0 add.u32 %r12, %r12, 65536;
        mov.u32 %r11, %r16;
        mad.lo.u32 %r14, %r14, 1664525, 1013904223;
        shr.u32 %r17, %r14, 16;
        rem.u32 %r17, %r17, %r13;
        mul.wide.u32 %rd4, %r17, 64;
        add.u64 %rd4, %rd4, %rd0;
        atom.global.add.u32 %r18, [%rd4], 1;
        ld.global.u32 %r19, [%rd4];
        setp.le.u32 %p0, %r19, %r18;
        @%p0 add.u32 %r12, %r12, 16777216;
        setp.lt.u32 %p1, %r10, %r0;
        @%p1 bra turn;
        red.global.add.u32 [%rd1], %r12;
        ret;
    }
    .visible .entry passing(.param .u64 data, .param .u64 flag, .param .u64 out) {
        .reg .b32 %r<8>;
        .reg .b64 %rd<6>;
        .reg .pred %p<3>;
        ld.param.u64 %rd0, [data];
        ld.param.u64 %rd1, [flag];
        ld.param.u64 %rd2, [out];
        mov.u32 %r0, %ctaid.x;
        setp.ne.u32 %p0, %r0, 0;
        ld.global.u32 %r1, [%rd0];
        @%p0 bra read;
        st.global.u32 [%rd0], 42;
        membar.gl;
        st.global.u32 [%rd1], 1;
        ret;
    read:
        ld.global.u32 %r2, [%rd1];
        setp.eq.u32 %p1, %r2, 0;
        @%p1 bra read;
        membar.gl;
        ld.global.u32 %r3, [%rd0];
        mul.wide.u32 %rd3, %r0, 4;
        add.u64 %rd2, %rd2, %rd3;
        st.global.u32 [%rd2], %r3;
        ret;
    }";

fn device(changes: &[&str], threads: usize) -> Device {
    let changes: Vec<String> = changes.iter().map(|s| s.to_string()).collect();
    let timing = Timing { threads, ..Timing::default() };
    Device::sim_with(Chip::load("apu", &changes).unwrap(), SimOptions { timing, ..SimOptions::default() })
}

/// Runs the kernel and checks all words. Returns them with the report.
fn share_lines(gpu: &mut Device, ctas: u32, turns: u32) -> (Vec<u32>, Report) {
    let kernel = load(gpu, SHARED_LINES).kernel("shared_lines").unwrap();
    let threads = ctas * 64;
    let lines = threads.div_ceil(15);
    let words = gpu.zeros::<u32>(16 * lines as usize).unwrap();
    let errors = gpu.zeros::<u32>(1).unwrap();
    let launch = Launch::grid(ctas).block(64);
    let report = gpu
        .launch(&kernel, launch, args![&words, &errors, turns, threads])
        .unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(errors.read(gpu).unwrap(), [0], "a thread saw what cannot be");
    let found = words.read(gpu).unwrap();
    for t in 0..threads as usize {
        assert_eq!(found[t / 15 * 16 + 1 + t % 15], turns, "thread {t}");
    }
    let added: u32 = found.chunks(16).map(|line| line[0]).sum();
    assert_eq!(added, threads * turns);
    (found, report)
}

#[test]
fn words_that_share_lines_keep_their_order() {
    let (_, report) = share_lines(&mut device(&[], 1), 16, 6);
    let counts = report.coherence.unwrap();
    for name in ["cache_to_cache", "memory", "upgrades", "invalidations", "blocked"] {
        assert!(counts[name] > 0, "{name}: {counts:?}");
    }
    // Atomics own their line, as stores do.
    let (l1, l2) = (report.l1.unwrap(), report.l2.unwrap());
    assert_eq!(l2["atomics"], 0);
    assert!(l1["atomics"] > 0 && l1["atomic_lanes"] > l1["atomics"], "{l1:?}");
    let (_, report) = share_lines(&mut device(&["l1.cache.sets=1", "l1.cache.ways=2"], 1), 16, 6);
    let counts = report.coherence.unwrap();
    for name in ["l2_hits", "given_back"] {
        assert!(counts[name] > 0, "{name}: {counts:?}");
    }
}

#[test]
fn tiny_caches_do_not_deadlock() {
    for changes in [
        &["l1.cache.sets=1", "l1.cache.ways=1", "l1.mshrs=1", "l1.mshr_merges=1"][..],
        &["l1.cache.sets=1", "l1.cache.ways=2", "l2.cache.sets=1", "l2.cache.ways=2", "l2.mshrs=1"],
        &["l1.cache.sets=2", "l1.cache.ways=1", "interconnect.queue_packets=2", "l2.queue_requests=1"],
        &["sm.count=3", "l1.mshrs=2", "interconnect.latency_cycles=1", "aggregator.command_latency_cycles=1"],
    ] {
        let (_, report) = share_lines(&mut device(changes, 1), 6, 3);
        assert!(report.cycles > 0, "{changes:?}");
    }
}

#[test]
fn any_number_of_threads_does_the_same() {
    let strip = |mut report: Report| {
        (report.wall_s, report.warp_insts_per_s) = (0.0, 0.0);
        report
    };
    let (words, report) = share_lines(&mut device(&[], 1), 8, 3);
    for threads in [2, 8] {
        let (same, other) = share_lines(&mut device(&[], threads), 8, 3);
        assert_eq!((&words, strip(report.clone())), (&same, strip(other)), "{threads} threads");
    }
}

#[test]
fn a_message_is_seen_behind_its_flag() {
    for sms in ["sm.count=2", "sm.count=8"] {
        let mut gpu = device(&[sms], 1);
        let kernel = load(&mut gpu, SHARED_LINES).kernel("passing").unwrap();
        let (data, flag) = (gpu.zeros::<u32>(1).unwrap(), gpu.zeros::<u32>(1).unwrap());
        let out = gpu.zeros::<u32>(8).unwrap();
        gpu.launch(&kernel, Launch::grid(8).block(1), args![&data, &flag, &out]).unwrap();
        assert_eq!(out.read(&gpu).unwrap(), [0, 42, 42, 42, 42, 42, 42, 42]);
    }
}

#[test]
fn the_aggregator_has_a_part_in_it() {
    for changes in [
        &[][..],
        &["aggregator.core=simple"],
        &["aggregator.cache.sets=1", "aggregator.cache.ways=1", "aggregator.mshrs=1"],
    ] {
        let mut gpu = apu(changes, 1);
        let kernel = load(&mut gpu, SHARED_LINES).kernel("shared_lines").unwrap();
        let task = Task::new(0, kernel, 64);
        let words = gpu.zeros::<u32>(16 * 20).unwrap();
        let errors = gpu.zeros::<u32>(1).unwrap();
        let params = task.params(args![&words, &errors, 5u32, 4 * 64u32]).unwrap();
        // The last words of the lines belong to no thread: threads have 15 words of each, and the last of those
        // are unused.
        let (at, own) = (words.address(), words.address() + 4 * (16 * 17 + 2 + 1));
        let (seen, report) = gpu
            .run_firmware(Firmware::new([task]), |agg| async move {
                agg.start(&params, 4);
                let mut seen = Vec::new();
                for turn in 1..=200u32 {
                    agg.store32(own, turn);
                    seen.push((agg.load32(own).await, agg.load32(at + 4).await));
                    agg.add32(at, 1).await;
                    seen.push((agg.load32(own).await, seen[seen.len() - 1].1));
                }
                while agg.running().await > 0 {
                    agg.event().await;
                }
                seen
            })
            .unwrap_or_else(|error| panic!("{error}"));
        assert!(seen.iter().enumerate().all(|(i, &(own, _))| own == i as u32 / 2 + 1), "{seen:?}");
        assert!(seen.windows(2).all(|pair| pair[0].1 <= pair[1].1), "{seen:?}");
        assert_eq!(errors.read(&gpu).unwrap(), [0]);
        let found = words.read(&gpu).unwrap();
        assert_eq!(found.chunks(16).map(|line| line[0]).sum::<u32>(), 4 * 64 * 5 + 200);
        let aggregator = report.aggregator.unwrap();
        assert!(aggregator["hits"] > 0 && aggregator["misses"] > 0, "{aggregator:?}");
    }
}
