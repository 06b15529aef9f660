//! A wavefront that yields resumes with all its state.

use std::fmt::Write as _;

use warploom::{Agg, Device, Firmware, Report, Task, Yielded, args};

use crate::support::{apu, load};

const WORDS: usize = 24;
const PREDS: usize = 7;

/// A kernel that fills registers and predicates with values that depend on the thread, yields in divergent code
/// inside a function, and stores its whole state and the active lanes.
fn kernel() -> String {
    let mut text = String::from(
        ".func (.reg .b32 %ret) inner(.reg .b32 %a, .reg .b64 %resource) {
            .reg .b32 %x<3>;
            .reg .pred %q;
            and.b32 %x0, %a, 1;
            setp.eq.u32 %q, %x0, 0;
            mov.u32 %x1, 100;
            @%q bra even;
            wl.yield.b64 %resource;
            mov.u32 %x1, 200;
        even:
            add.u32 %ret, %a, %x1;
            ret;
        }
        .visible .entry keep(.param .u64 out, .param .u64 resource) {
        .reg .b32 %r<40>;
        .reg .b32 %t<8>;
        .reg .b64 %rd<8>;
        .reg .pred %p<8>;
        ld.param.u64 %rd0, [out];
        ld.param.u64 %rd1, [resource];
        mov.u32 %t0, %ctaid.x;
        mov.u32 %t1, %ntid.x;
        mov.u32 %t2, %tid.x;
        mad.lo.u32 %t0, %t0, %t1, %t2;
        mul.wide.u32 %rd2, %t0, 128;
        add.u64 %rd2, %rd2, %rd0;
        mul.lo.u32 %t1, %t0, 2654435761;\n",
    );
    for r in 0..WORDS {
        let _ = writeln!(text, "add.u32 %r{r}, %t1, {};", 77777 * r);
    }
    for p in 0..PREDS {
        let _ = writeln!(text, "shr.u32 %t3, %t1, {p}; and.b32 %t3, %t3, 1; setp.eq.u32 %p{p}, %t3, 1;");
    }
    text += "setp.gt.u32 %p7, %t2, 40;
        @%p7 bra skip;
        {
            .param .b32 in; .param .b64 res; .param .b32 back;
            call (%t4), inner, (%t0, %rd1);
        }
        bra stored;
    skip:
        mov.u32 %t4, 7;
    stored:
        wl.activemask.b64 %rd3;
        st.global.u64 [%rd2+120], %rd3;
        st.global.u32 [%rd2+112], %t4;
        mov.u32 %t5, 0;\n";
    for p in 0..PREDS {
        let _ = writeln!(text, "selp.u32 %t6, {}, 0, %p{p}; or.b32 %t5, %t5, %t6;", 1 << p);
    }
    text += "st.global.u32 [%rd2+116], %t5;\n";
    for r in 0..WORDS {
        let _ = writeln!(text, "st.global.u32 [%rd2+{}], %r{r};", 4 * r);
    }
    text + "ret; }"
}

/// What thread `t` of a CTA of 64 stores.
fn expected(t: u32) -> Vec<u32> {
    let base = t.wrapping_mul(2654435761);
    let mut row: Vec<u32> = (0..WORDS as u32).map(|r| base.wrapping_add(77777 * r)).collect();
    row.resize(28, 0);
    row.push(if t % 64 > 40 { 7 } else { t + if t.is_multiple_of(2) { 100 } else { 200 } });
    row.push(base & 0x7f);
    row.extend([u32::MAX; 2]);
    row
}

/// Restarts all wavefronts in reverse order, `patience` cycles after all of them have yielded.
async fn restart_all(agg: Agg, wavefronts: u64, patience: u64) -> Vec<Yielded> {
    let mut seen = Vec::new();
    while (seen.len() as u64) < wavefronts {
        match agg.next_yield().await {
            Some(wavefront) => seen.push(wavefront),
            None => agg.event().await,
        }
    }
    agg.sleep(patience).await;
    for &wavefront in seen.iter().rev() {
        agg.restart(wavefront).await;
    }
    while agg.running().await > 0 {
        agg.event().await;
    }
    seen
}

fn run(gpu: &mut Device, block: u32, ctas: u32, wavefronts: u64) -> (Vec<Yielded>, Vec<u32>, Report) {
    let keep = Task::new(0, load(gpu, &kernel()).kernel("keep").unwrap(), block);
    let out = gpu.zeros::<u32>((32 * block * ctas) as usize).unwrap();
    let params = keep.params(args![&out, 0xabcd_0000_1234u64]).unwrap();
    let (seen, report) = gpu
        .run_firmware(Firmware::new([keep]), |agg| async move {
            agg.start(&params, ctas);
            restart_all(agg, wavefronts, 1000).await
        })
        .unwrap_or_else(|error| panic!("{error}"));
    (seen, out.read(gpu).unwrap(), report)
}

#[test]
fn every_register_comes_back() {
    let mut gpu = apu(&[], 1);
    let (seen, out, report) = run(&mut gpu, 64, 5, 5);
    for (t, row) in out.chunks(32).enumerate() {
        assert_eq!(row, expected(t as u32), "thread {t}");
    }
    assert!(seen.iter().all(|y| y.resource == 0xabcd_0000_1234 && y.kernel == 0));
    let aggregator = report.aggregator.as_ref().unwrap();
    assert_eq!((aggregator["yields"], aggregator["restarts"]), (5, 5));
    let stalls = report.stalls.as_ref().unwrap().values().sum::<u64>();
    assert_eq!(stalls, report.warp_cycles.unwrap(), "cycles in memory are nobody's");
}

#[test]
fn many_more_wavefronts_than_slots_yield() {
    let mut gpu = apu(&["sm.count=2", "sm.max_warps=4", "sm.max_threads=1024"], 2);
    let (seen, out, report) = run(&mut gpu, 64, 40, 40);
    for (t, row) in out.chunks(32).enumerate() {
        assert_eq!(row, expected(t as u32), "thread {t}");
    }
    assert_eq!(seen.len(), 40);
    let lines = |name: &str| report.l2.as_ref().unwrap()[name];
    let bytes = 856 + (WORDS as u64 + 6) * 256;
    assert!(lines("writes") > 40 * bytes / 64 && lines("reads") > 40 * bytes / 64, "{:?}", report.l2);
}

/// Wavefronts keep their slots until the restart channel has room for their records.
#[test]
fn a_short_restart_channel_holds_wavefronts_up() {
    let cycles = |records: u32| {
        let records = format!("yield.restart_records={records}");
        let mut gpu = apu(&["sm.count=2", "sm.max_warps=8", "sm.max_threads=1024", &records], 2);
        let (seen, out, report) = run(&mut gpu, 64, 40, 40);
        for (t, row) in out.chunks(32).enumerate() {
            assert_eq!(row, expected(t as u32), "thread {t}");
        }
        assert_eq!(seen.len(), 40);
        let aggregator = report.aggregator.as_ref().unwrap();
        assert!(aggregator["loads"] >= 3 * 40, "a look and two words for each: {aggregator:?}");
        assert!(aggregator["stores"] >= 40, "{aggregator:?}");
        report.cycles
    };
    assert!(cycles(1) > cycles(64));
}

#[test]
fn a_cta_of_several_wavefronts_keeps_its_place() {
    let mut gpu = apu(&["sm.count=1"], 1);
    // In the first wavefront only lanes above 40 skip the call; in the others all lanes do.
    let (_, out, _) = run(&mut gpu, 256, 2, 2);
    for (t, row) in out.chunks(32).enumerate() {
        let mut expected = expected(t as u32);
        expected[28] = if t % 256 > 40 { 7 } else { t as u32 + if t % 2 == 0 { 100 } else { 200 } };
        assert_eq!(row, expected, "thread {t}");
    }
}

#[test]
fn elsewhere_it_does_nothing() {
    let mut gpu = apu(&[], 1);
    let keep = load(&mut gpu, &kernel()).kernel("keep").unwrap();
    let out = gpu.zeros::<u32>(32 * 64).unwrap();
    gpu.launch(&keep, warploom::Launch::grid(1).block(64), args![&out, 0u64]).unwrap();
    assert_eq!(out.read(&gpu).unwrap()[32 * 9..32 * 10], expected(9));
}
