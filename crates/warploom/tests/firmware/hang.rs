//! Runs of firmware that never end.

use warploom::{Error, Firmware, HangKind, HangReason, Task, args};

use crate::support::{apu, load};

const YIELDER: &str = "
    .visible .entry yielder(.param .u64 out) {
        .reg .b64 %rd<2>;
        mov.u64 %rd1, 42;
        wl.yield.b64 %rd1;
        ret;
    }
    .visible .entry waiter(.param .u64 flag) {
        .reg .b32 %r<2>;
        .reg .b64 %rd<2>;
        .reg .pred %p<2>;
        ld.param.u64 %rd0, [flag];
    again:
        ld.volatile.global.u32 %r0, [%rd0];
        setp.eq.u32 %p0, %r0, 0;
        @%p0 bra again;
        ret;
    }";

#[test]
fn a_wavefront_that_nobody_restarts() {
    let mut gpu = apu(&[], 1);
    let module = load(&mut gpu, YIELDER);
    let task = Task::new(0, module.kernel("yielder").unwrap(), 64);
    let params = task.params(args![0u64]).unwrap();
    let result = gpu.run_firmware(Firmware::new([task]), |agg| async move {
        agg.start(&params, 1).await;
        loop {
            agg.event().await;
        }
    });
    let Err(Error::Hang { message, hang: Some(hang), .. }) = result.map(|((), _)| ()) else {
        panic!("it hangs");
    };
    assert_eq!((hang.kind, &hang.reason), (HangKind::Starved, &HangReason::Blocked));
    let guide = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/hangs.md")).unwrap();
    assert!(guide.contains(&format!("```text\n{message}\n```")), "docs/hangs.md does not show:\n{message}");
}

/// Nothing changes for a long time, but only because firmware computes.
#[test]
fn long_computations_are_no_hang() {
    let mut gpu = apu(&["hang.watch_cycles=100", "hang.suspect_cycles=1000"], 1);
    let module = load(&mut gpu, YIELDER);
    let task = Task::new(0, module.kernel("waiter").unwrap(), 64);
    let flag = gpu.zeros::<u32>(1).unwrap();
    let params = task.params(args![&flag]).unwrap();
    let at = flag.address();
    let (cycles, report) = gpu
        .run_firmware(Firmware::new([task]), |agg| async move {
            agg.start(&params, 1).await;
            agg.compute(80_000);
            agg.store32(at, 1).await;
            agg.compute(80_000);
            agg.now().await
        })
        .unwrap();
    assert!(cycles >= 40_000 && report.cycles >= cycles, "{cycles} {}", report.cycles);
}

#[test]
fn wavefronts_that_wait_for_firmware_that_polls() {
    let mut gpu = apu(&["hang.watch_cycles=2000", "hang.suspect_cycles=20000"], 1);
    let module = load(&mut gpu, YIELDER);
    let task = Task::new(0, module.kernel("waiter").unwrap(), 64);
    let flag = gpu.zeros_named::<u32>("flag", 1).unwrap();
    let work = gpu.zeros_named::<u32>("work", 1).unwrap();
    let params = task.params(args![&flag]).unwrap();
    let at = work.address();
    let result = gpu.run_firmware(Firmware::new([task]), |agg| async move {
        agg.start(&params, 2).await;
        while agg.load32(at).await == 0 {
            agg.sleep(50).await;
        }
    });
    let Err(Error::Hang { message, hang: Some(hang), .. }) = result else { panic!("it hangs") };
    assert!(matches!(hang.reason, HangReason::Quiet(_)));
    assert!(
        message.contains("aggregator") && message.contains("polls [work+0]; has nothing to start"),
        "{message}"
    );
    assert!(message.contains("[flag+0]"), "{message}");
}
