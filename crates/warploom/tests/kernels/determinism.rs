//! Two identical launches are identical in memory, statistics and output, bit for bit.

use warploom::{Chip, Device, Launch, Report, SimModel, SimOptions, Timing, args};

use crate::support::{MACHINES, Random};

/// Drops the host's times, which differ from run to run.
fn timeless(report: Report) -> Report {
    Report { wall_s: 0.0, warp_insts_per_s: 0.0, ..report }
}

/// Locks, atomics and races: the order of events shows in the result.
const RACE: &str = "
    .version 8.0
    .target sm_90
    .address_size 64
    .visible .entry race(.param .u64 out) {
        .reg .b32 %r<16>;
        .reg .b64 %d<8>;
        .reg .pred %p<4>;
        ld.param.u64 %d0, [out];
        mov.u32 %r0, %tid.x;
        mov.u32 %r1, %ctaid.x;
        mov.u32 %r2, %ntid.x;
        mad.lo.u32 %r0, %r1, %r2, %r0;
        mov.u32 %r3, 0;
    AGAIN:
        atom.global.add.u32 %r4, [%d0], 1;
        and.b32 %r5, %r4, 63;
        mad.wide.u32 %d1, %r5, 4, %d0;
        ld.global.u32 %r6, [%d1+4];
        mad.lo.u32 %r6, %r6, 31, %r0;
        st.global.u32 [%d1+4], %r6;
        add.u32 %r3, %r3, 1;
        and.b32 %r7, %r0, 7;
        setp.le.u32 %p1, %r3, %r7;
        @%p1 bra AGAIN;
        ret;
    }";

#[test]
fn the_same_twice() {
    for machine in MACHINES {
        let once = |threads| {
            let timing = Timing { threads, ..Timing::default() };
            let options = SimOptions { timing, ..SimOptions::default() };
            let mut gpu = machine.with(&["sm.count=4", "sm.max_ctas=3"], options);
            let module = gpu.load_ptx(RACE).unwrap();
            let kernel = module.kernel("race").unwrap();
            let out = gpu.zeros::<u32>(65).unwrap();
            let report = gpu.launch(&kernel, Launch::grid(20).block(100), args![&out]).unwrap();
            (out.read(&gpu).unwrap(), timeless(report))
        };
        let first = once(1);
        assert_eq!(first, once(1), "on {machine}");
        assert_eq!(first, once(3), "on {machine} with three host threads");
        assert_eq!(first.0[0], (0..2000).map(|i| i % 8 + 1).sum::<u32>(), "on {machine}");
        assert!(first.1.warp_insts > 1000);
    }
}

/// A second launch on the same device differs from the first only in its memory and, with timing, in what the
/// L2 still holds.
#[test]
fn the_same_again_on_one_device() {
    let text = warploom_kernels::text!("histogram.ptx");
    for machine in MACHINES {
        let mut gpu = machine.small();
        let module = gpu.load_ptx(text).unwrap();
        let kernel = module.kernel("histogram").unwrap();
        let bytes: Vec<u8> = Random::new(1).words(3000).into_iter().map(|v| v as u8).collect();
        let input = gpu.buffer(&bytes).unwrap();
        let mut once = || {
            let bins = gpu.zeros::<u32>(256).unwrap();
            let report =
                gpu.launch(&kernel, Launch::grid(7).block(90), args![&input, &bins, 3000u32]).unwrap();
            (bins.read(&gpu).unwrap(), timeless(report))
        };
        let (first, second) = (once(), once());
        assert_eq!(first.0, second.0, "on {machine}");
        // With lock bits, how often an atomic finds them taken depends on timing.
        if machine.chip != "gtx570" {
            assert_eq!(first.1.warp_insts, second.1.warp_insts, "on {machine}");
        }
        match machine.policy {
            None => assert_eq!(first.1, second.1, "on {machine}"),
            // A hash puts the second buffer into other slices.
            Some(_) if machine.chip == "h200" => {
                assert!(second.1.cycles < first.1.cycles * 5 / 4, "on {machine}");
            }
            Some(_) => assert!(second.1.cycles < first.1.cycles, "on {machine}"),
        }
    }
}

/// Full-size chips, on one kernel with more CTAs than any of them holds.
#[test]
fn whole_chips() {
    let text = warploom_kernels::text!("vecadd.ptx");
    let n = 5000 * 32 - 5;
    let values: Vec<f32> = (0..n).map(|i| i as f32).collect();
    let models = [SimModel::Functional, SimModel::Timing];
    for (name, model) in
        warploom::chip::names().into_iter().flat_map(|name| models.map(|model| (name, model)))
    {
        let chip = Chip::load(name, &[]).unwrap();
        let mut gpu = Device::sim_with(chip, SimOptions { model, ..SimOptions::default() });
        let module = gpu.load_ptx(text).unwrap();
        let kernel = module.kernel("vecadd").unwrap();
        let (a, c) = (gpu.buffer(&values).unwrap(), gpu.zeros::<f32>(n).unwrap());
        let report = gpu.launch(&kernel, Launch::grid(5000).block(32), args![&a, &a, &c, n as u32]).unwrap();
        assert_eq!(report.ctas, 5000, "{name}");
        assert!(c.read(&gpu).unwrap().iter().zip(&values).all(|(c, a)| *c == 2.0 * a), "{name}");
    }
}
