//! Kernels and copies of several streams on one machine.

use warploom::{
    Buffer, Chip, Device, Error, Kernel, Launch, Module, Move, MoveFrom, Plan, PlanRun, Report, SimOptions,
    Timing, TraceOptions, args,
};

const KERNELS: &str = r#"
.version 6.0
.target sm_60
.address_size 64

// Waits until *flag is not 0, then writes what it found to *out.
.visible .entry wait_for(.param .u64 flag, .param .u64 out)
{
    .reg .pred %p;
    .reg .b32 %r<3>;
    .reg .b64 %a, %b;
    ld.param.u64 %a, [flag];
    ld.param.u64 %b, [out];
again:
    ld.volatile.global.u32 %r1, [%a];
    setp.eq.u32 %p, %r1, 0;
    @%p bra again;
    st.global.u32 [%b], %r1;
    ret;
}

.visible .entry set_flag(.param .u64 flag, .param .u32 value)
{
    .reg .b32 %r1;
    .reg .b64 %a;
    ld.param.u64 %a, [flag];
    ld.param.u32 %r1, [value];
    st.volatile.global.u32 [%a], %r1;
    ret;
}

// Each thread adds to 64 words, 4 * stride bytes apart, the sum of all words that it has read.
.visible .entry stream(.param .u64 words, .param .u32 stride)
{
    .reg .pred %p;
    .reg .b32 %r<8>;
    .reg .b64 %a, %d;
    ld.param.u64 %a, [words];
    ld.param.u32 %r1, [stride];
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %ntid.x;
    mov.u32 %r4, %tid.x;
    mad.lo.u32 %r2, %r2, %r3, %r4;
    mul.wide.u32 %d, %r2, 4;
    add.u64 %a, %a, %d;
    mul.wide.u32 %d, %r1, 4;
    mov.u32 %r5, 0;
    mov.u32 %r7, 0;
next:
    ld.global.cg.u32 %r6, [%a];
    add.u32 %r7, %r7, %r6;
    st.global.u32 [%a], %r7;
    add.u64 %a, %a, %d;
    add.u32 %r5, %r5, 1;
    setp.lt.u32 %p, %r5, 64;
    @%p bra next;
    ret;
}

// *out = *in + 1, by every thread, through the L1.
.visible .entry follow(.param .u64 in, .param .u64 out)
{
    .reg .b32 %r<6>;
    .reg .b64 %a, %b, %d;
    ld.param.u64 %a, [in];
    ld.param.u64 %b, [out];
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %ntid.x;
    mov.u32 %r4, %tid.x;
    mad.lo.u32 %r2, %r2, %r3, %r4;
    mul.wide.u32 %d, %r2, 4;
    add.u64 %b, %b, %d;
    ld.global.ca.u32 %r1, [%a];
    add.u32 %r1, %r1, 1;
    st.global.u32 [%b], %r1;
    ret;
}

.visible .entry compute(.param .u64 out)
{
    .reg .pred %p;
    .reg .b32 %r<4>;
    .reg .b64 %a;
    ld.param.u64 %a, [out];
    mov.u32 %r1, 0;
    mov.u32 %r2, 1;
again:
    mad.lo.u32 %r2, %r2, 1664525, 1013904223;
    add.u32 %r1, %r1, 1;
    setp.lt.u32 %p, %r1, 500;
    @%p bra again;
    st.global.u32 [%a], %r2;
    ret;
}

.visible .entry stray(.param .u64 out)
{
    .reg .b64 %a;
    mov.u64 %a, 8;
    st.global.u32 [%a], 1;
    ret;
}
"#;

struct Host {
    gpu: Device,
    module: Module,
}

fn host_with(chip: &str, timing: Timing) -> Host {
    let options = SimOptions { timing, ..SimOptions::default() };
    let mut gpu = Device::sim_with(Chip::load(chip, &[]).unwrap(), options);
    let module = gpu.load_ptx(KERNELS).unwrap();
    Host { gpu, module }
}

fn host(chip: &str) -> Host {
    host_with(chip, Timing { threads: 1, ..Timing::default() })
}

impl Host {
    fn kernel(&self, name: &str) -> Kernel {
        self.module.kernel(name).unwrap()
    }

    fn words(&mut self, count: usize) -> Buffer<u32> {
        self.gpu.zeros::<u32>(count).unwrap()
    }

    fn run(&mut self, plan: Plan) -> PlanRun {
        self.gpu.run_plan(plan).unwrap()
    }
}

fn report(run: &PlanRun, at: usize) -> &Report {
    run.kernels[at].1.as_ref().unwrap()
}

fn one() -> Launch {
    Launch::grid(1).block(32)
}

/// The one that waits comes first, and neither could end alone before the other begins.
#[test]
fn a_kernel_waits_for_one_in_another_stream() {
    for chip in ["gtx480", "gtx1080ti", "h200", "apu"] {
        let mut host = host(chip);
        let (flag, out) = (host.words(1), host.words(1));
        let mut plan = Plan::new(16);
        plan.kernel(&[], 0, &host.kernel("wait_for"), &one(), args![&flag, &out]).unwrap();
        plan.kernel(&[], 5000, &host.kernel("set_flag"), &one(), args![&flag, 7u32]).unwrap();
        let run = host.run(plan);
        assert_eq!(out.read(&host.gpu).unwrap(), [7], "{chip}");
        let [(waits, woken), (sets, set)] = [run.times[0].unwrap(), run.times[1].unwrap()];
        // With the first window after its time.
        assert!(waits == 0 && (5000..5100).contains(&sets), "{chip}: {waits} {sets}");
        assert!(woken > sets && set > sets, "{chip}: {woken} {set}");
        assert_eq!((report(&run, 0).beside, report(&run, 1).beside), (Some(1), Some(1)));
        assert_eq!(report(&run, 0).cycles, woken);
    }
}

#[test]
fn a_copy_wakes_a_kernel() {
    let mut host = host("gtx1080ti");
    let (flag, out) = (host.words(1), host.words(2));
    let mut plan = Plan::new(16);
    let waits = plan.kernel(&[], 0, &host.kernel("wait_for"), &one(), args![&flag, &out]).unwrap();
    let nine = MoveFrom::Host(9u32.to_le_bytes().to_vec());
    let copy = plan.copy(&[], 1000, 2000, vec![Move { to: flag.address(), from: nine }]);
    let back = MoveFrom::Device { address: out.address(), bytes: 4 };
    let last = plan.copy(&[waits], 0, 100, vec![Move { to: out.address() + 4, from: back }]);
    let run = host.run(plan);
    assert_eq!(out.read(&host.gpu).unwrap(), [9, 9]);
    assert_eq!(run.times[copy], Some((1000, 3000)));
    let end = run.times[waits].unwrap().1;
    assert!(end > 3000 && end < 6000, "{end}");
    assert_eq!(run.times[last], Some((end, end + 100)));
}

/// Alone, each has a quarter of the SMs; together nothing keeps them apart.
#[test]
fn small_kernels_overlap() {
    let alone = {
        let mut host = host("gtx1080ti");
        let out = host.words(1);
        host.gpu.launch(host.kernel("compute"), Launch::grid(7).block(128), args![&out]).unwrap()
    };
    let mut host = host("gtx1080ti");
    let outs = [host.words(1), host.words(1)];
    let mut plan = Plan::new(32);
    for out in &outs {
        plan.kernel(&[], 0, &host.kernel("compute"), &Launch::grid(7).block(128), args![out]).unwrap();
    }
    let run = host.run(plan);
    for at in 0..2 {
        let (start, end) = run.times[at].unwrap();
        let longer = (end - start) as f64 / alone.cycles as f64;
        assert!(start < 100 && (0.98..1.06).contains(&longer), "{start} {end}, alone {}", alone.cycles);
        let own = report(&run, at);
        assert_eq!((own.ctas, own.warps, own.warp_insts), (7, 28, alone.warp_insts));
        assert_eq!(own.warp_cycles, own.stalls.as_ref().map(|stalls| stalls.values().sum()));
        assert!(own.energy_nj.is_none() && own.beside == Some(1));
    }
}

#[test]
fn kernels_share_the_memory_bandwidth() {
    const COUNT: usize = 64 * 15_360;
    let launch = Launch::grid(60).block(256);
    let alone = {
        let mut host = host("gtx480");
        let words = host.words(COUNT);
        host.gpu.launch(host.kernel("stream"), launch.clone(), args![&words, 15_360u32]).unwrap()
    };
    let mut host = host("gtx480");
    let words = [host.words(COUNT), host.words(COUNT)];
    let mut plan = Plan::new(16);
    for words in &words {
        plan.kernel(&[], 0, &host.kernel("stream"), &launch, args![words, 15_360u32]).unwrap();
    }
    let run = host.run(plan);
    let slower = |at: usize| report(&run, at).cycles as f64 / alone.cycles as f64;
    // The one that came first has its CTAs on the chip first.
    assert!(slower(0) > 1.25 && slower(1) > 1.5, "{} and {}", slower(0), slower(1));
    let whole = run.times.iter().map(|time| time.unwrap().1).max().unwrap() as f64;
    assert!(whole < 2.2 * alone.cycles as f64, "{whole}, alone {}", alone.cycles);
}

/// The first fills the chip. The second gets what becomes free, and does not wait for all of it.
#[test]
fn the_later_kernel_takes_what_is_left() {
    let mut host = host("gtx480");
    let outs = [host.words(1), host.words(1)];
    let mut plan = Plan::new(16);
    for (out, grid) in outs.iter().zip([15 * 8 + 15, 30]) {
        plan.kernel(&[], 0, &host.kernel("compute"), &Launch::grid(grid).block(192), args![out]).unwrap();
    }
    let run = host.run(plan);
    let [first, second] = [run.times[0].unwrap(), run.times[1].unwrap()];
    assert!(second.0 > first.0 && second.0 < first.1, "{first:?} {second:?}");
    assert_eq!((report(&run, 0).ctas, report(&run, 1).ctas), (135, 30));
}

/// CTAs of a kernel of higher priority start as soon as others end.
#[test]
fn the_first_priority_goes_first() {
    let second = |priority| {
        let mut host = host("gtx480");
        let out = host.words(1);
        let mut plan = Plan::new(16);
        let launch = Launch::grid(15 * 8 * 4).block(192);
        plan.kernel(&[], 0, &host.kernel("compute"), &launch, args![&out]).unwrap();
        let other = Launch { priority, ..Launch::grid(15).block(192) };
        plan.kernel(&[], 2000, &host.kernel("compute"), &other, args![&out]).unwrap();
        let run = host.run(plan);
        let [first, second] = [0, 1].map(|at| run.times[at].unwrap());
        (first, second)
    };
    let (long, plain) = second(0);
    assert!(plain.0 > long.1 * 2 / 3, "{long:?} {plain:?}");
    let (long, urgent) = second(-1);
    assert!(urgent.1 < long.1 * 2 / 3, "{long:?} {urgent:?}");
    assert_eq!(second(1), second(0));
}

#[test]
fn no_more_kernels_than_the_chip_takes() {
    let mut host = host("gtx480");
    let out = host.words(1);
    let mut plan = Plan::new(2);
    for _ in 0..3 {
        plan.kernel(&[], 0, &host.kernel("compute"), &one(), args![&out]).unwrap();
    }
    let run = host.run(plan);
    let times: Vec<_> = run.times.iter().map(|time| time.unwrap()).collect();
    assert!(times[1].0 < times[0].1 && times[2].0 >= times[0].1.min(times[1].1), "{times:?}");
}

/// The L1 of an SM may hold what a kernel before has read: the next one must see what was written since.
#[test]
fn later_kernels_see_what_earlier_ones_wrote() {
    for chip in ["gtx480", "gtx1080ti", "h200", "apu"] {
        let mut host = host(chip);
        let (value, other) = (host.words(1), host.words(1));
        let outs = [host.words(64 * 128), host.words(64 * 128)];
        let launch = Launch::grid(64).block(128);
        let mut plan = Plan::new(16);
        let reads = plan.kernel(&[], 0, &host.kernel("follow"), &launch, args![&value, &outs[0]]).unwrap();
        let writes =
            plan.kernel(&[reads], 0, &host.kernel("set_flag"), &one(), args![&value, 41u32]).unwrap();
        plan.kernel(&[writes], 0, &host.kernel("follow"), &launch, args![&value, &outs[1]]).unwrap();
        // All the time.
        plan.kernel(&[], 0, &host.kernel("compute"), &launch, args![&other]).unwrap();
        let run = host.run(plan);
        let found: Vec<u32> = outs[0].read(&host.gpu).unwrap();
        assert!(found.iter().all(|&word| word == 1), "{chip}");
        let found: Vec<u32> = outs[1].read(&host.gpu).unwrap();
        assert!(found.iter().all(|&word| word == 42), "{chip}");
        let time = |at: usize| run.times[at].unwrap();
        assert!(time(0).1 <= time(1).0 && time(1).1 <= time(2).0, "{chip}: {:?}", run.times);
    }
}

/// Times, reports and memory after a plan.
type Everything = (Vec<Option<(u64, u64)>>, Vec<Report>, Vec<u32>);

/// With `pauses` the plan is carried out in three parts, and its last kernels are added to the second and the third.
fn everything(threads: usize, bows: bool, pauses: bool) -> Everything {
    let mut timing = Timing { threads, ..Timing::default() };
    if bows {
        timing.bows = warploom::Bows::on();
    }
    let mut host = host_with("gtx480", timing);
    let (flag, out, words) = (host.words(1), host.words(1), host.words(64 * 1024));
    let mut plan = Plan::new(16);
    let launch = Launch::grid(8).block(128);
    plan.kernel(&[], 0, &host.kernel("wait_for"), &one(), args![&flag, &out]).unwrap();
    let first = plan.kernel(&[], 100, &host.kernel("stream"), &launch, args![&words, 1024u32]).unwrap();
    plan.kernel(&[], 0, &host.kernel("compute"), &Launch::grid(40).block(256), args![&out]).unwrap();
    let mut kernels = Vec::new();
    let mut pause = |host: &mut Host, plan: &mut Plan, piece, count| {
        if pauses {
            plan.until = vec![piece];
            let run = host.run(std::mem::replace(plan, Plan::more(count)));
            assert!(!run.is_over && run.times[piece].is_some(), "{:?}", run.times);
            kernels.extend(run.kernels);
        }
    };
    pause(&mut host, &mut plan, first, 3);
    let second = plan.kernel(&[first], 0, &host.kernel("stream"), &launch, args![&words, 512u32]).unwrap();
    pause(&mut host, &mut plan, second, 4);
    let spin = &host.kernel("set_flag");
    let last = plan.kernel(&[first, second], 0, spin, &one(), args![&flag, 3u32]).unwrap();
    assert_eq!((first, second, last), (1, 3, 4));
    let run = host.run(plan);
    assert!(run.is_over);
    kernels.extend(run.kernels);
    kernels.sort_by_key(|(piece, _)| *piece);
    let reports = kernels.into_iter().map(|(_, report)| {
        let report = report.unwrap();
        Report { wall_s: 0.0, warp_insts_per_s: 0.0, ..report }
    });
    (run.times, reports.collect(), words.read(&host.gpu).unwrap())
}

#[test]
fn the_same_on_any_number_of_threads() {
    for bows in [false, true] {
        assert_eq!(everything(1, bows, false), everything(3, bows, false));
    }
}

/// A plan that pauses is the same as one whose pieces were all known from the start.
#[test]
fn a_pause_changes_nothing() {
    for (threads, bows) in [(1, false), (1, true), (3, false)] {
        assert_eq!(everything(threads, bows, true), everything(1, bows, false), "{threads}, {bows}");
    }
}

/// While the plan pauses, the host reads what a kernel wrote, and writes what another waits for.
#[test]
fn the_host_has_memory_while_a_plan_pauses() {
    for chip in ["gtx480", "h200"] {
        let mut host = host(chip);
        let (flag, other, out) = (host.words(1), host.words(1), host.words(1));
        let mut plan = Plan::new(16);
        plan.kernel(&[], 0, &host.kernel("wait_for"), &one(), args![&flag, &out]).unwrap();
        let set = plan.kernel(&[], 0, &host.kernel("set_flag"), &one(), args![&other, 9u32]).unwrap();
        plan.until = vec![set];
        let run = host.run(plan);
        assert_eq!((run.kernels.len(), run.is_over, run.times[0]), (1, false, None));
        assert_eq!(
            (other.read(&host.gpu).unwrap(), out.read(&host.gpu).unwrap()),
            (vec![9], vec![0]),
            "{chip}"
        );
        let refused = host.gpu.launch(host.kernel("set_flag"), one(), args![&other, 1u32]).unwrap_err();
        assert!(refused.to_string().contains("a plan pauses"), "{refused}");
        let refused = host.gpu.run_plan(Plan::new(16)).unwrap_err().to_string();
        assert!(refused.contains("go on with `Plan::more(2)`"), "{refused}");
        let mut wrong = Plan::more(2);
        wrong.until = vec![2];
        assert!(host.gpu.run_plan(wrong).unwrap_err().to_string().contains("until piece 2"));
        flag.write(&mut host.gpu, &[5]).unwrap();
        let run = host.run(Plan::more(2));
        assert_eq!((run.kernels[0].0, run.is_over), (0, true));
        assert_eq!(out.read(&host.gpu).unwrap(), [5], "{chip}");
        host.gpu.launch(host.kernel("set_flag"), one(), args![&other, 1u32]).unwrap();
        assert!(host.gpu.run_plan(Plan::more(2)).is_err());
    }
    // Only a copy is left when the plan goes on.
    let mut host = self::host("gtx480");
    let out = host.words(1);
    let mut plan = Plan::new(16);
    let first = plan.kernel(&[], 0, &host.kernel("set_flag"), &one(), args![&out, 9u32]).unwrap();
    let bytes = MoveFrom::Host(3u32.to_le_bytes().to_vec());
    plan.copy(&[first], 0, 5000, vec![Move { to: out.address(), from: bytes }]);
    plan.until = vec![first];
    assert!(!host.run(plan).is_over);
    assert_eq!(out.read(&host.gpu).unwrap(), [9]);
    let run = host.run(Plan::more(2));
    assert!(run.is_over && run.kernels.is_empty() && run.times[1].is_some());
    assert_eq!(out.read(&host.gpu).unwrap(), [3]);
    let mut host = self::host("apu");
    let out = host.words(1);
    let mut plan = Plan::new(16);
    plan.kernel(&[], 0, &host.kernel("set_flag"), &one(), args![&out, 9u32]).unwrap();
    plan.until = vec![0];
    let refused = host.gpu.run_plan(plan).unwrap_err().to_string();
    assert!(refused.contains("paused on a chip with coherent L1s"), "{refused}");
}

#[test]
fn a_kernel_that_waits_for_one_without_room_hangs() {
    let mut host = host("gtx480");
    let (flag, out) = (host.words(1), host.words(1));
    let mut plan = Plan::new(16);
    let full = Launch::grid(15 * 8).block(192);
    plan.kernel(&[], 0, &host.kernel("wait_for"), &full, args![&flag, &out]).unwrap();
    plan.kernel(&[], 0, &host.kernel("set_flag"), &one(), args![&flag, 7u32]).unwrap();
    let run = host.run(plan);
    let Err(Error::Hang { message, .. }) = &run.kernels[0].1 else { panic!("{:?}", run.kernels[0]) };
    for part in ["wait_for", "1 CTAs of `set_flag` find no room", "make room for all kernels"] {
        assert!(message.contains(part), "{part}: {message}");
    }
    assert!(matches!(run.kernels[1].1, Err(Error::Beside { .. })), "{:?}", run.kernels[1]);
    assert_eq!(run.times, [None, None]);
    // The chip is as good as new.
    host.gpu.launch(host.kernel("set_flag"), one(), args![&flag, 1u32]).unwrap();
}

#[test]
fn a_fault_ends_all_but_those_that_are_over() {
    let mut host = host("h200");
    let out = host.words(1);
    let mut plan = Plan::new(16);
    let early = plan.kernel(&[], 0, &host.kernel("set_flag"), &one(), args![&out, 1u32]).unwrap();
    plan.kernel(&[early], 0, &host.kernel("compute"), &one(), args![&out]).unwrap();
    plan.kernel(&[early], 0, &host.kernel("stray"), &one(), args![&out]).unwrap();
    plan.kernel(&[2], 0, &host.kernel("set_flag"), &one(), args![&out, 2u32]).unwrap();
    let run = host.run(plan);
    assert_eq!(report(&run, 0).ctas, 1);
    assert!(matches!(&run.kernels[2].1, Err(Error::Fault { message, .. }) if message.contains("stray")));
    for at in [1, 3] {
        assert!(
            matches!(&run.kernels[at].1, Err(Error::Beside { message, .. }) if message.contains("stray"))
        );
    }
}

#[test]
fn what_cannot_run_together_is_refused() {
    let refused = |timing: Timing| {
        let mut host = host_with("gtx480", timing);
        let out = host.words(1);
        let mut plan = Plan::new(16);
        plan.kernel(&[], 0, &host.kernel("compute"), &one(), args![&out]).unwrap();
        host.gpu.run_plan(plan).unwrap_err().to_string()
    };
    let traced = refused(Timing { trace: Some(TraceOptions::default()), ..Timing::default() });
    assert!(traced.contains("cannot be traced"), "{traced}");
    let profiled = refused(Timing { profile: true, ..Timing::default() });
    assert!(profiled.contains("cannot be profiled"), "{profiled}");
    let mut host = host("gtx480");
    let out = host.words(1);
    let mut plan = Plan::new(16);
    plan.kernel(&[3], 0, &host.kernel("compute"), &one(), args![&out]).unwrap();
    assert!(host.gpu.run_plan(plan).unwrap_err().to_string().contains("which comes later"));
    let mut plan = Plan::new(16);
    plan.kernel(&[], 0, &host.kernel("compute"), &one(), args![&out]).unwrap();
    plan.copy(&[], 0, 1, vec![Move { to: out.address(), from: MoveFrom::Host(vec![0; 4096]) }]);
    assert!(host.gpu.run_plan(plan).unwrap_err().to_string().contains("not inside one allocation"));
}
