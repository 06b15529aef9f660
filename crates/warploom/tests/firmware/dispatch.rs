//! Firmware starts CTAs of several kernels and observes their end.

use warploom::{Agg, Error, Firmware, Report, Task, args};

use crate::support::{MARK, apu, load};

async fn all_ended(agg: &Agg) {
    while agg.running().await > 0 {
        agg.event().await;
    }
}

/// Marks 20 CTAs with 1, doubles them, and marks every CTA with its own value.
fn marks(changes: &[&str], threads: usize) -> (Vec<u32>, Report) {
    let mut gpu = apu(changes, threads);
    let module = load(&mut gpu, MARK);
    let mark = Task::new(0, module.kernel("mark").unwrap(), 64);
    let twice = Task::new(1, module.kernel("twice").unwrap(), 64);
    let out = gpu.zeros::<u32>(20 * 64).unwrap();
    let ones = mark.params(args![&out, 1u32]).unwrap();
    let doubled = twice.params(args![&out]).unwrap();
    let own: Vec<_> = (0..20u32)
        .map(|cta| mark.params(args![out.address() + cta as u64 * 256, 100 + cta]).unwrap())
        .collect();
    let (cycles, report) = gpu
        .run_firmware(Firmware::new([mark, twice]), |agg| async move {
            agg.start(&ones, 20).await;
            all_ended(&agg).await;
            agg.start(&doubled, 20).await;
            all_ended(&agg).await;
            for params in &own {
                agg.start(params, 1).await;
            }
            all_ended(&agg).await;
            agg.now().await
        })
        .unwrap_or_else(|error| panic!("{error}"));
    assert!(report.cycles.abs_diff(cycles) < 10, "{} cycles, firmware says {cycles}", report.cycles);
    (out.read(&gpu).unwrap(), report)
}

#[test]
fn tasks_of_two_kernels_run_with_their_parameters() {
    let (out, report) = marks(&[], 1);
    let expected: Vec<u32> = (0..20 * 64).map(|i| 2 + 100 + i / 64).collect();
    assert_eq!(out, expected);
    assert_eq!((report.ctas, report.warps), (60, 60));
    let aggregator = report.aggregator.as_ref().unwrap();
    assert_eq!((aggregator["dispatched"], aggregator["ended"]), (60, 60));
    let sms = report.sms.as_ref().unwrap();
    assert!(sms.iter().all(|sm| sm.ctas > 0 && sm.stalled_on_aggregator > 0));
    assert!(sms.iter().all(|sm| sm.stalled_on_aggregator < report.cycles));
    let stalls = report.stalls.as_ref().unwrap().values().sum::<u64>();
    assert_eq!(stalls, report.warp_cycles.unwrap());
}

/// A line of code that one compute unit has fetched is there for all that share the instruction cache.
#[test]
fn compute_units_share_the_instruction_cache() {
    let reads = |sharers: u32| {
        let mut gpu = apu(&[&format!("fetch.shared.sms={sharers}")], 2);
        let mark = Task::new(0, load(&mut gpu, MARK).kernel("mark").unwrap(), 64);
        let out = gpu.zeros::<u32>(64).unwrap();
        let params = mark.params(args![&out, 1u32]).unwrap();
        // One after the other, on the compute units in turn.
        let run = gpu.run_firmware(Firmware::new([mark]), |agg| async move {
            for _ in 0..8 {
                agg.start(&params, 1).await;
                all_ended(&agg).await;
            }
        });
        let ((), report) = run.unwrap_or_else(|error| panic!("{error}"));
        assert!(report.sms.as_ref().unwrap().iter().all(|sm| sm.ctas == 1));
        report.l2.as_ref().unwrap()["reads"]
    };
    let (alone, pairs, all) = (reads(1), reads(2), reads(8));
    assert!(alone > pairs && pairs > all, "{alone} {pairs} {all}");
    // Every cache takes the same lines.
    assert_eq!((alone - pairs) / 4, (pairs - all) / 3);
}

#[test]
fn the_run_is_the_same_on_any_number_of_threads() {
    let strip = |mut report: Report| {
        (report.wall_s, report.warp_insts_per_s) = (0.0, 0.0);
        report
    };
    let (out, report) = marks(&[], 1);
    for threads in [2, 5] {
        let (other, same) = marks(&[], threads);
        assert_eq!(out, other);
        assert_eq!(strip(report.clone()), strip(same), "{threads} threads");
    }
}

#[test]
fn one_compute_unit_holds_as_much_as_it_can() {
    let (out, _) = marks(&["sm.count=1", "sm.max_warps=4", "sm.max_threads=1024"], 1);
    assert_eq!(out[64 * 7 + 3], 2 + 107);
}

#[test]
fn firmware_reads_and_writes_memory() {
    let mut gpu = apu(&[], 1);
    let module = load(&mut gpu, MARK);
    let mark = Task::new(0, module.kernel("mark").unwrap(), 64);
    let words = gpu.buffer(&[5u32, 6, 7, 8]).unwrap();
    let at = words.address();
    let firmware = Firmware::new([mark]);
    let (got, report) = gpu
        .run_firmware(firmware, |agg| async move {
            let (a, b) = (agg.load32(at), agg.load64(at + 8));
            let (a, b) = (a.await, b.await);
            agg.store32(at, a + 10);
            let stored = agg.load32(at).await;
            let seen = agg.cas32(at + 4, 6, 60).await;
            let failed = agg.cas32(at + 4, 6, 61).await;
            let added = agg.add32(at + 12, 1).await;
            agg.store64(at + 8, (9 << 32) | 9);
            agg.fence().await;
            (a, b, stored, seen, failed, added)
        })
        .unwrap();
    assert_eq!(got, (5, 7 | 8 << 32, 15, 6, 60, 8));
    assert_eq!(words.read(&gpu).unwrap(), [15, 60, 9, 9]);
    assert_eq!(report.aggregator.unwrap()["loads"], 3);
}

#[test]
fn bad_firmware_is_reported() {
    let mut gpu = apu(&[], 1);
    let module = load(&mut gpu, MARK);
    let mark = || Task::new(0, module.kernel("mark").unwrap(), 64);
    let out = gpu.zeros::<u32>(64).unwrap();
    let at = out.address();
    let bad_load = gpu.run_firmware(Firmware::new([mark()]), |agg| async move {
        agg.load32(at + 256).await;
    });
    let message = bad_load.unwrap_err().to_string();
    assert!(message.starts_with("firmware: load of 4 bytes at 0x"), "{message}");
    let given_up = gpu.run_firmware(Firmware::new([mark()]), |agg| async move {
        agg.fail("the queue is broken");
        agg.sleep(10).await;
    });
    assert_eq!(given_up.unwrap_err().to_string(), "the queue is broken");
    let params = mark().params(args![at + 4096, 1u32]).unwrap();
    let faulted = gpu.run_firmware(Firmware::new([mark()]), |agg| async move { agg.start(&params, 1).await });
    assert!(matches!(faulted, Err(Error::Fault { .. })));
    let mut other = warploom::Device::sim("gtx480").unwrap();
    let module = load(&mut other, MARK);
    let task = Task::new(0, module.kernel("mark").unwrap(), 64);
    let refused = other.run_firmware(Firmware::new([task]), |_| async {});
    assert!(refused.unwrap_err().to_string().contains("no control processor"));
}

#[test]
fn no_event_is_missed_between_a_look_and_a_wait() {
    let mut gpu = apu(&["sm.count=2"], 1);
    let module = load(&mut gpu, MARK);
    let mark = Task::new(0, module.kernel("mark").unwrap(), 64);
    let out = gpu.zeros::<u32>(64).unwrap();
    let params = mark.params(args![&out, 1u32]).unwrap();
    let (_, report) = gpu
        .run_firmware(Firmware::new([mark]), |agg| async move {
            for instructions in 0..300 {
                agg.start(&params, 1);
                agg.compute(instructions);
                all_ended(&agg).await;
            }
        })
        .unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((report.ctas, out.read(&gpu).unwrap()[5]), (300, 300));
}
