//! Clusters of CTAs on the h200, on both models: shared memory of other CTAs, the cluster's barrier, mbarriers of other
//! CTAs, asynchronous stores, and what goes wrong with them.

use warploom::{Chip, Device, Error, Launch, Report, SimModel, SimOptions, args};

const HEAD: &str = ".version 8.6\n.target sm_90\n.address_size 64\n";

/// A kernel with registers %r, %d, %p, the parameter `out` in %d0, the thread in %r0 and the rank in %r1.
fn kernel(directives: &str, body: &str) -> String {
    format!(
        "{HEAD}.shared .align 8 .b8 mine[256];\n.visible .entry k(.param .u64 out) {directives} {{
            .reg .b32 %r<16>; .reg .b64 %d<8>; .reg .pred %p<4>;
            ld.param.u64 %d0, [out];
            mov.u32 %r0, %tid.x;
            mov.u32 %r1, %cluster_ctarank;
            {body}
        }}"
    )
}

/// `out[ctaid * ntid + tid] = %r2`
const STORE: &str = "
    mov.u32 %r13, %ctaid.x; mov.u32 %r14, %ntid.x; mad.lo.u32 %r13, %r13, %r14, %r0;
    mul.wide.u32 %d7, %r13, 4; add.u64 %d7, %d0, %d7; st.global.u32 [%d7], %r2;";

const SYNC: &str = "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;";

fn device(chip: &str, model: SimModel) -> Device {
    let chip = Chip::load(chip, &["sm.count=8".into()]).unwrap();
    Device::sim_with(chip, SimOptions { model, ..SimOptions::default() })
}

fn run(text: &str, model: SimModel, launch: Launch, count: usize) -> Result<(Vec<u32>, Report), Error> {
    let mut gpu = device("h200", model);
    let module = gpu.load_ptx_named("k.ptx", text)?;
    let kernel = module.kernel("k")?;
    let out = gpu.zeros::<u32>(count)?;
    let report = gpu.launch(&kernel, launch, args![&out])?;
    Ok((out.read(&gpu)?, report))
}

fn on_both(text: &str, launch: impl Fn() -> Launch, count: usize) -> Vec<u32> {
    let [functional, timed] =
        [SimModel::Functional, SimModel::Timing].map(|model| run(text, model, launch(), count).unwrap().0);
    assert_eq!(functional, timed);
    timed
}

#[test]
fn ctas_read_and_change_the_shared_memory_of_others() {
    // Every thread writes 100 * rank + tid, and reads that of the next rank.
    let body = format!(
        "mad.lo.u32 %r3, %r1, 100, %r0;
         mov.u32 %r4, mine; shl.b32 %r5, %r0, 2; add.u32 %r4, %r4, %r5;
         st.shared.u32 [%r4], %r3;
         {SYNC}
         mov.u32 %r6, %cluster_nctarank;
         add.u32 %r7, %r1, 1; rem.u32 %r7, %r7, %r6;
         mapa.shared::cluster.u32 %r8, %r4, %r7;
         ld.shared::cluster.u32 %r2, [%r8];
         getctarank.shared::cluster.u32 %r9, %r8;
         mad.lo.u32 %r2, %r9, 10000, %r2;
         {STORE} {SYNC} ret;"
    );
    let found = on_both(&kernel("", &body), || Launch::grid(8).block(64).cluster(4), 8 * 64);
    for (at, value) in found.into_iter().enumerate() {
        let (rank, thread) = ((at / 64 + 1) % 4, at % 64);
        assert_eq!(value as usize, 10000 * rank + 100 * rank + thread);
    }
    // All threads of a cluster add to a word of rank 0 through a generic address.
    let body = format!(
        "mov.u32 %r2, 0;
         mov.u64 %d3, mine; cvta.shared.u64 %d1, %d3;
         st.u32 [%d1], %r2;
         {SYNC}
         mapa.u64 %d2, %d1, 0;
         atom.relaxed.cluster.add.u32 %r3, [%d2], 1;
         {SYNC}
         ld.u32 %r2, [%d2];
         {STORE} {SYNC} ret;"
    );
    let text = kernel(".reqnctapercluster 2, 1, 1", &body);
    assert_eq!(on_both(&text, || Launch::grid(6).block(32), 192), [64; 192]);
}

#[test]
fn special_registers_of_clusters() {
    let names = [
        "%clusterid.x",
        "%clusterid.y",
        "%nclusterid.x",
        "%nclusterid.y",
        "%cluster_ctaid.x",
        "%cluster_ctaid.y",
        "%cluster_nctaid.x",
        "%cluster_nctaid.y",
        "%cluster_ctarank",
        "%cluster_nctarank",
    ];
    let reads: String = names
        .iter()
        .enumerate()
        .map(|(at, name)| format!("mov.u32 %r2, {name}; st.global.u32 [%d7+{}], %r2;\n", 4 * at))
        .collect();
    let body = format!(
        "mov.u32 %r3, %ctaid.x; mov.u32 %r4, %ctaid.y; mov.u32 %r5, %nctaid.x; mad.lo.u32 %r3, %r4, %r5, %r3;
         mul.wide.u32 %d7, %r3, 40; add.u64 %d7, %d0, %d7; {reads} ret;"
    );
    let found = on_both(&kernel("", &body), || Launch::grid([4, 4]).block(1).cluster([2, 4]), 160);
    // CTA (3, 1) is (1, 1) of cluster (1, 0).
    assert_eq!(found[10 * 7..10 * 8], [1, 0, 2, 1, 1, 1, 2, 4, 3, 8]);
    let plain = on_both(&kernel("", &body), || Launch::grid([4, 4]).block(1), 160);
    assert_eq!(plain[10 * 7..10 * 8], [3, 1, 4, 4, 0, 0, 1, 1, 0, 1]);
}

/// Two CTAs signal each other in turn: each waits at its own mbarrier for the other one.
#[test]
fn two_ctas_take_turns_by_mbarriers_of_each_other() {
    let body = format!(
        "mov.u32 %r4, mine; setp.ne.u32 %p0, %r0, 0; setp.ne.u32 %p1, %r1, 0;
         @!%p0 mbarrier.init.shared.b64 [%r4], 1;
         {SYNC}
         mov.u32 %r2, 0;
         @%p0 bra DONE;
         xor.b32 %r3, %r1, 1; mapa.shared::cluster.u32 %r8, %r4, %r3;
         TURN: @!%p1 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r8];
         and.b32 %r5, %r2, 1;
         WAIT: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p2, [%r4], %r5;
         @!%p2 bra WAIT;
         @%p1 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r8];
         add.u32 %r2, %r2, 1; setp.lt.u32 %p2, %r2, 5; @%p2 bra TURN;
         DONE: {SYNC} {STORE} {SYNC} ret;"
    );
    let found = on_both(&kernel("", &body), || Launch::grid(2).block(32).cluster(2), 64);
    assert_eq!((found[0], found[32]), (5, 5));
}

/// Rank 0 waits at its mbarrier for what the others do to it; `act` has its address there in %r8, and a word after it
/// in %r9.
fn at_mbarrier(expected: u32, act: &str) -> String {
    let body = format!(
        "mov.u32 %r4, mine; setp.ne.u32 %p0, %r0, 0;
         @%p0 bra READY;
         mov.u32 %r3, 7; st.shared.u32 [%r4+8], %r3;
         mbarrier.init.shared.b64 [%r4], {expected};
         READY: {SYNC}
         @%p0 bra DONE;
         mapa.shared::cluster.u32 %r8, %r4, 0; add.u32 %r9, %r8, 8;
         {act}
         setp.ne.u32 %p1, %r1, 0;
         @%p1 bra DONE;
         WAIT: mbarrier.try_wait.parity.shared.b64 %p2, [%r4], 0;
         @!%p2 bra WAIT;
         DONE: {SYNC}
         mov.u32 %r2, 0; setp.ne.u32 %p1, %r1, 0; @%p1 bra STORE;
         ld.shared.u32 %r2, [%r4+8];
         STORE: {STORE} {SYNC} ret;"
    );
    kernel("", &body)
}

#[test]
fn bytes_and_arrivals_from_other_ctas_end_a_phase() {
    let arrive = "red.relaxed.cluster.shared::cluster.add.u32 [%r9], 5;
                  fence.acq_rel.cluster;
                  mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r8];";
    let found = on_both(&at_mbarrier(4, arrive), || Launch::grid(4).block(32).cluster(4), 128);
    assert_eq!((found[0], found[127]), (7 + 4 * 5, 0));
    let reduce = "mbarrier.arrive.expect_tx.release.cluster.shared::cluster.b64 _, [%r8], 4;
                  red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%r9], 3, [%r8];";
    let found = on_both(&at_mbarrier(4, reduce), || Launch::grid(4).block(32).cluster(4), 128);
    assert_eq!(found[0], 7 + 4 * 3);
    let store = "setp.ne.u32 %p1, %r1, 0;
                 @!%p1 mbarrier.arrive.expect_tx.shared.b64 _, [%r4], 16;
                 mov.u32 %r10, 40; mov.u32 %r11, 50; shl.b32 %r12, %r1, 3; add.u32 %r12, %r9, %r12;
                 st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.b32 [%r12], {%r10, %r11}, [%r8];";
    let found = on_both(&at_mbarrier(1, store), || Launch::grid(2).block(32).cluster(2), 64);
    assert_eq!(found[0], 40);
}

fn message(error: Error) -> String {
    error.to_string()
}

#[test]
fn hangs_and_faults_are_explained() {
    for model in [SimModel::Functional, SimModel::Timing] {
        // Bytes that never come.
        let lost = "mbarrier.arrive.expect_tx.release.cluster.shared::cluster.b64 _, [%r8], 4;";
        let hang =
            message(run(&at_mbarrier(2, lost), model, Launch::grid(2).block(32).cluster(2), 64).unwrap_err());
        assert!(hang.contains("until the phase of mbarrier [mine+0] ends"), "{hang}");
        assert!(hang.contains("all arrivals have come; 8 bytes of those announced at k.ptx:"), "{hang}");
        // Rank 1 waits at another barrier instead.
        let body = format!("setp.eq.u32 %p0, %r1, 1; @%p0 barrier.sync 1, 64; {SYNC} ret;");
        let hang =
            message(run(&kernel("", &body), model, Launch::grid(2).block(32).cluster(2), 1).unwrap_err());
        assert!(hang.contains("barrier deadlock"), "{hang}");
        assert!(hang.contains("at the barrier of the cluster (k.ptx:"), "{hang}");
        assert!(hang.contains("1 of 2 CTAs have come; warp 0 of CTA (1,0,0) waits at barrier 1"), "{hang}");
        // Rank 0 ends while rank 1 still reads its memory.
        let body = format!(
            "mov.u32 %r4, mine; mapa.shared::cluster.u32 %r5, %r4, 0; {SYNC}
             setp.eq.u32 %p0, %r1, 0; @%p0 exit;
             mov.u32 %r6, 100;
             LOOP: nanosleep.u32 1000; sub.u32 %r6, %r6, 1; setp.ne.u32 %p1, %r6, 0; @%p1 bra LOOP;
             ld.shared::cluster.u32 %r2, [%r5]; {STORE} ret;"
        );
        let fault =
            message(run(&kernel("", &body), model, Launch::grid(2).block(32).cluster(2), 64).unwrap_err());
        assert!(fault.contains("of the CTA of rank 0, which has left the cluster"), "{fault}");
        assert!(
            fault.contains("of CTA (1,0,0)") && fault.contains("ld.shared::cluster.u32 %r2, [%r5]"),
            "{fault}"
        );
        // A rank that there is not, and a wait without an arrival.
        let body = "mov.u32 %r4, mine; mapa.shared::cluster.u32 %r5, %r4, 5; ld.shared::cluster.u32 %r2, [%r5]; ret;";
        let fault =
            message(run(&kernel("", body), model, Launch::grid(2).block(32).cluster(2), 1).unwrap_err());
        assert!(fault.contains("of the CTA of rank 5 of a cluster of 2"), "{fault}");
        let fault = message(
            run(&kernel("", "barrier.cluster.wait; ret;"), model, Launch::grid(2).block(32).cluster(2), 1)
                .unwrap_err(),
        );
        assert!(fault.contains("waits at the barrier of its cluster without having arrived"), "{fault}");
    }
}

#[test]
fn launches_that_cannot_be() {
    let plain = kernel("", "ret;");
    let refused = |text: &str, launch: Launch| {
        message(run(text, SimModel::Functional, launch, 1).map(|_| ()).unwrap_err())
    };
    assert!(
        refused(&plain, Launch::grid(6).block(32).cluster(4)).contains("no multiple of the 4 of a cluster")
    );
    assert!(refused(&plain, Launch::grid(64).block(32).cluster(32)).contains("takes at most 16"));
    let explicit = kernel(".explicitcluster", "ret;");
    assert!(refused(&explicit, Launch::grid(2).block(32)).contains("does not say of how many CTAs"));
    let limited = kernel(".maxclusterrank 2", "ret;");
    assert!(refused(&limited, Launch::grid(4).block(32).cluster(4)).contains(".maxclusterrank"));
    let mut old = device("gtx480", SimModel::Functional);
    let module = old.load_ptx_named("k.ptx", kernel("", &format!("{SYNC} ret;"))).unwrap();
    let out = old.zeros::<u32>(1).unwrap();
    let error = old.launch(module.kernel("k").unwrap(), Launch::grid(1).block(32), args![&out]).unwrap_err();
    assert!(error.to_string().contains("has no clusters"), "{error}");
}

#[test]
fn remote_memory_and_the_barrier_take_their_time() {
    // Eight barriers, and eight dependent loads, by the clock.
    let timed = |work: &str| {
        let body = format!(
            "mov.u32 %r4, mine; mov.u32 %r5, 0; st.shared.u32 [%r4], %r5; xor.b32 %r6, %r1, 1;
             mapa.shared::cluster.u32 %r7, %r4, %r6; {SYNC} mov.u32 %r8, %r7;
             mov.u32 %r9, %clock; {} mov.u32 %r10, %clock; sub.u32 %r2, %r10, %r9; {SYNC} {STORE} ret;",
            work.repeat(8)
        );
        run(&kernel("", &body), SimModel::Timing, Launch::grid(2).block(32).cluster(2), 64).unwrap().0[0] / 8
    };
    let barrier = timed(SYNC);
    assert!((330..370).contains(&barrier), "{barrier}");
    let load = timed("ld.volatile.shared::cluster.u32 %r5, [%r8]; add.u32 %r8, %r7, %r5;");
    assert!((170..215).contains(&load), "{load}");
}
