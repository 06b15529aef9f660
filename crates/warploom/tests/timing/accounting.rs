//! Every cycle of every warp has exactly one reason.

use warploom::{Bows, Buffer, Launch, Report, Timing, args, chip, policies};

use crate::bench::Bench;

/// Runs one of the kernels that come with Warploom in a small launch.
pub(crate) fn launch(bench: &mut Bench, name: &str) -> (Report, Vec<Buffer<u32>>) {
    macro_rules! text {
        ($file:literal) => {
            warploom_kernels::text!(concat!($file, ".ptx"))
        };
    }
    let numbers: Vec<u32> = (0..2048u32).map(|i| i.wrapping_mul(2654435761) >> 7).collect();
    let gpu = &mut bench.gpu;
    let (a, b) = (gpu.buffer(&numbers).unwrap(), gpu.zeros::<u32>(4096).unwrap());
    let locks = gpu.zeros::<u32>(64).unwrap();
    let (text, kernel, shape, arguments) = match name {
        "vecadd" => {
            (text!("vecadd"), "vecadd", Launch::grid(16).block(128), Vec::from(args![&a, &a, &b, 2048u32]))
        }
        "reduce" => {
            (text!("reduce"), "reduce", Launch::grid(8).block(256), Vec::from(args![&a, &b, 2048u32]))
        }
        "histogram" => {
            (text!("histogram"), "histogram", Launch::grid(8).block(192), Vec::from(args![&a, &b, 8192u32]))
        }
        "spinlock" => {
            (text!("spinlock"), "spinlock_inc", Launch::grid(4).block(33), Vec::from(args![&locks, &b, 1u32]))
        }
        "hashtable" => {
            gpu.write_bytes(locks.address() + 128, &[0xff; 128]).unwrap();
            let heads = locks.address() + 128;
            let arguments = Vec::from(args![&a, 700u32, &b, heads, &locks, 29u32]);
            (text!("hashtable"), "hashtable_insert", Launch::grid(10).block(64), arguments)
        }
        "sleep" => (SLEEP, "sleep", Launch::grid(3).block(96), Vec::from(args![&b])),
        name => unreachable!("{name}"),
    };
    let kernel = gpu.load_ptx(text).unwrap().kernel(kernel).unwrap();
    (gpu.launch(&kernel, shape, arguments).unwrap(), vec![a, b, locks])
}

/// Sleeps, votes, calls, fences, diverges, and waits at a barrier while others do so.
const SLEEP: &str = "
.version 7.0
.target sm_70
.address_size 64
.func (.reg .u32 %y) twice(.reg .u32 %x)
{
    add.u32 %y, %x, %x;
    ret;
}
.visible .entry sleep(.param .u64 out)
{
    .reg .pred %p<3>;
    .reg .b32 %r<8>;
    .reg .b64 %rd<2>;
    ld.param.u64 %rd0, [out];
    mov.u32 %r0, %tid.x;
    mad.wide.u32 %rd1, %r0, 4, %rd0;
    and.b32 %r1, %r0, 3;
    setp.eq.u32 %p0, %r1, 0;
    @%p0 bra NAP;
    call (%r2), twice, (%r0);
    st.global.u32 [%rd1], %r2;
    bra MEET;
NAP:
    nanosleep.u32 300;
    atom.global.add.u32 %r3, [%rd1], 1;
    membar.gl;
MEET:
    bar.sync 0;
    vote.sync.any.pred %p1, %p0, -1;
    @%p1 st.global.u32 [%rd1], %r1;
    ret;
}";

#[test]
fn the_reasons_add_up_to_the_cycles() {
    for chip in chip::names() {
        let with = |on| policies().into_iter().map(move |(policy, _)| (policy, on));
        for (policy, on) in with(false).chain(with(true)) {
            let bows = Bows { enabled: Some(on), ..Bows::default() };
            let timing = Timing { policy: Some(policy.to_string()), bows, threads: 1, ..Timing::default() };
            let mut bench = Bench::timed(chip, &["sm.count=3"], timing);
            for name in ["vecadd", "reduce", "histogram", "spinlock", "hashtable", "sleep"] {
                let (report, _) = launch(&mut bench, name);
                let what = format!("{name} on {chip}, {policy}, BOWS: {on}");
                let (stalls, warp_cycles) = (report.stalls.unwrap(), report.warp_cycles.unwrap());
                assert_eq!(stalls.values().sum::<u64>(), warp_cycles, "{what}: {stalls:?}");
                assert_eq!((report.sched.as_deref(), report.bows), (Some(policy), Some(on)));
                assert!(on || stalls["backed_off"] == 0, "{what}");
                // No warp is resident for longer than the launch, and each issues at most `width` instructions
                // per cycle.
                assert!(warp_cycles <= report.warps * report.cycles, "{what}");
                assert!(stalls["issued"] <= report.warp_insts, "{what}");
                assert!(report.warp_insts <= stalls["issued"] * u64::from(bench.chip.issue.width), "{what}");
                assert_eq!(report.classes.unwrap().values().sum::<u64>(), report.warp_insts, "{what}");
            }
        }
    }
}

#[test]
fn reasons_are_the_right_ones() {
    // With a single warp, the reason for each stall is known.
    let spent = |body: &str, threads: usize| {
        let mut bench = Bench::new("gtx480", &[]);
        let stalls = bench.run(&crate::bench::timed("", body), (1, threads), 0, 0).1.stalls.unwrap();
        move |reason: &str| stalls[reason]
    };
    let idle = spent("", 32);
    // Three times 100 ns at 700 MHz.
    let slept = spent("nanosleep.u32 100;", 32);
    assert_eq!((idle("sleeping"), slept("sleeping")), (0, 210));
    // Three times the latency.
    let met = spent("bar.sync 0;", 32);
    assert_eq!((idle("barrier"), met("barrier")), (0, 12));
    // Three times ten divisions. Besides its issue, each waits 147 cycles for the one before it: 27 of them for
    // all that time, the first ones of the second and third ten for what the loop overhead leaves of it.
    let divided = spent(&crate::bench::lines(10, "div.u32 %r8, %r8, %r1;"), 32);
    let waited = divided("execution_dependency") - idle("execution_dependency");
    assert!((27 * 147..29 * 147).contains(&waited), "{waited}");
}
