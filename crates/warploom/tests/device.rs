//! The library as a host program uses it: modules, buffers, arguments, launches and reports.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use warploom::observe::{Observer, State};
use warploom::sched::{Cycle, Issue, Policy, SlotSet, WarpSlot};
use warploom::{Arg, Chip, Device, Error, FaultKind, Launch, SimModel, SimOptions, args};

const VECADD: &str = warploom_kernels::text!("vecadd.ptx");
const SPINLOCK: &str = warploom_kernels::text!("spinlock.ptx");

/// A kernel that adds the numbers of a struct and stores the sum.
const STRUCT: &str = "
.version 6.3
.target sm_70
.address_size 64
.visible .global .align 4 .u32 offset = 100;
.visible .entry sum(.param .u64 out, .param .align 4 .b8 pair[8], .param .f64 unused)
{
    .reg .b32 %r<6>;
    .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [out];
    cvta.to.global.u64 %rd2, %rd1;
    ld.param.u32 %r1, [pair];
    ld.param.u32 %r2, [pair+4];
    ld.global.u32 %r3, [offset];
    add.u32 %r4, %r1, %r2;
    add.u32 %r5, %r4, %r3;
    st.global.u32 [%rd2], %r5;
    ret;
}";

#[test]
fn a_kernel_is_launched_again_and_again() {
    let mut gpu = Device::sim("gtx480").unwrap();
    let kernel = gpu.load_ptx(VECADD).unwrap().kernel("vecadd").unwrap();
    let (a, b) = (gpu.buffer(&[1.0f32; 100]).unwrap(), gpu.buffer(&[2.0f32; 100]).unwrap());
    for _ in 0..3 {
        gpu.launch(&kernel, Launch::grid(1).block(128), args![&a, &b, &a, 100u32]).unwrap();
    }
    assert_eq!(a.read(&gpu).unwrap(), [7.0; 100]);
    b.write_range(&mut gpu, 99, &[0.5]).unwrap();
    let report = gpu.launch(&kernel, Launch::grid(1).block(128), args![&a, &b, &a, 100u32]).unwrap();
    assert_eq!(a.read_range(&gpu, 98, 2).unwrap(), [9.0, 7.5]);
    assert_eq!((report.warps, report.ctas), (4, 1));
    assert!(report.simd_efficiency > 0.5 && report.simd_efficiency < 1.0);
}

#[test]
fn structs_and_globals() {
    let mut gpu = Device::sim("h200").unwrap();
    let module = gpu.load_ptx_named("sum.ptx", STRUCT).unwrap();
    let (address, bytes) = module.global("offset").unwrap();
    assert_eq!(gpu.read_bytes(address, bytes as usize).unwrap(), 100u32.to_le_bytes());
    gpu.write_bytes(address, &1000u32.to_le_bytes()).unwrap();
    let out = gpu.zeros::<u32>(1).unwrap();
    gpu.launch(module.kernel("sum").unwrap(), Launch::grid(1), args![&out, Arg::of(&[3u32, 4]), 0.0])
        .unwrap();
    assert_eq!(out.read(&gpu).unwrap(), [1007]);
    assert_eq!(module.kernel("sum").unwrap().info().signature(), "sum(u64 out, b8[8] pair, f64 unused)");
}

#[test]
fn dropped_buffers_are_given_back() {
    let chip = Chip::load("gtx480", &["memory.global_bytes=1000".to_string()]).unwrap();
    let mut gpu = Device::sim_with(chip, SimOptions::default());
    for _ in 0..10 {
        drop(gpu.zeros::<u8>(600).unwrap());
    }
    let kept = gpu.zeros::<u8>(600).unwrap();
    let error = gpu.zeros::<u8>(600).unwrap_err();
    assert!(matches!(error, Error::OutOfMemory(_)), "{error}");
    drop(kept);
    gpu.zeros::<u8>(600).unwrap();
    assert!(matches!(gpu.zeros::<u64>(usize::MAX).unwrap_err(), Error::OutOfMemory(_)));
}

#[test]
fn devices_do_not_mix() {
    let (mut one, mut two) = (Device::sim("gtx480").unwrap(), Device::sim("gtx480").unwrap());
    let kernel = one.load_ptx(VECADD).unwrap().kernel("vecadd").unwrap();
    let (a, foreign) = (one.zeros::<f32>(1).unwrap(), two.zeros::<f32>(1).unwrap());
    let misuse = |result: Result<warploom::Report, Error>| matches!(result.unwrap_err(), Error::Misuse(_));
    assert!(misuse(one.launch(&kernel, Launch::grid(1), args![&a, &foreign, &a, 1u32])));
    assert!(misuse(two.launch(&kernel, Launch::grid(1), args![&foreign, &foreign, &foreign, 1u32])));
    assert!(foreign.read(&one).is_err());
    assert!(a.write(&mut one, &[1.0, 2.0]).is_err());
    assert!(a.read_range(&one, 1, usize::MAX).is_err());
}

#[test]
fn faults_name_buffers_and_keep_the_report() {
    let mut gpu = Device::sim("gtx480").unwrap();
    let kernel = gpu.load_ptx_named("vecadd.ptx", VECADD).unwrap().kernel("vecadd").unwrap();
    let (a, b) = (gpu.zeros::<f32>(64).unwrap(), gpu.zeros::<f32>(64).unwrap());
    let c = gpu.buffer_named("the result", &[0.0f32; 63]).unwrap();
    let error = gpu.launch(&kernel, Launch::grid(2).block(32), args![&a, &b, &c, 64u32]).unwrap_err();
    let message = error.to_string();
    assert!(message.contains("past the end of the result (252 bytes)"), "{message}");
    assert!(error.report().unwrap().warp_insts > 0);
    let Error::Fault { fault: Some(fault), .. } = error else { panic!("{error}") };
    assert!(matches!(fault.kind, FaultKind::OutOfBounds { bytes: 4, .. }));
    assert_eq!((fault.cta, fault.thread), ([1, 0, 0], [31, 0, 0]));

    let small = gpu.zeros::<f32>(1).unwrap();
    let error = gpu.launch(&kernel, Launch::grid(2).block(32), args![&small, &b, &b, 64u32]).unwrap_err();
    assert!(error.to_string().contains("buffer 2 (4 bytes)"), "{error}");
}

#[test]
fn hangs_end_at_the_limit_and_on_demand() {
    let mut gpu = Device::sim("gtx480").unwrap();
    let kernel = gpu.load_ptx(SPINLOCK).unwrap().kernel("spinlock_inc").unwrap();
    let (held, counter) = (gpu.buffer(&[1u32]).unwrap(), gpu.zeros::<u32>(1).unwrap());
    let launch = Launch::grid(1).block(32);
    let error =
        gpu.launch(&kernel, launch.clone().max_cycles(500), args![&held, &counter, 1u32]).unwrap_err();
    assert!(matches!(&error, Error::Hang { report, .. } if report.cycles >= 500), "{error}");
    let stop = Arc::new(AtomicBool::new(true));
    let error = gpu.launch(&kernel, launch.interrupt(stop), args![&held, &counter, 1u32]).unwrap_err();
    assert!(matches!(error, Error::Interrupted { .. }), "{error}");
}

#[test]
fn uninitialised_reads_are_reported_when_asked_for() {
    let chip = Chip::load("gtx480", &[]).unwrap();
    let mut gpu = Device::sim_with(chip, SimOptions { check_uninitialised: true, ..SimOptions::default() });
    let kernel = gpu.load_ptx(VECADD).unwrap().kernel("vecadd").unwrap();
    let (a, b) = (gpu.zeros::<f32>(32).unwrap(), gpu.uninit::<f32>(32).unwrap());
    let report = gpu.launch(&kernel, Launch::grid(1).block(32), args![&a, &b, &a, 32u32]).unwrap();
    assert_eq!(report.uninitialised.len(), 1);
    let report = gpu.launch(&kernel, Launch::grid(1).block(32), args![&a, &a, &b, 32u32]).unwrap();
    assert_eq!(report.uninitialised, []);
}

#[test]
fn wrong_requests_are_told_apart() {
    let mut gpu = Device::sim("gtx480").unwrap();
    assert!(matches!(Device::sim("gtx9000").unwrap_err(), Error::Chip(_)));
    assert!(matches!(gpu.load_ptx("nonsense").unwrap_err(), Error::Load(_)));
    let module = gpu.load_ptx(SPINLOCK).unwrap();
    let error = module.kernel("nolock").unwrap_err().to_string();
    assert_eq!(error, "no kernel `nolock`; the module has `spinlock_inc`, `naivelock`, `crosscta`");
    let kernel = module.kernel("naivelock").unwrap();
    let error = gpu.launch(&kernel, Launch::grid(1), args![]).unwrap_err();
    assert!(matches!(error, Error::Args(_)), "{error}");
    let lock = gpu.zeros::<u32>(1).unwrap();
    for launch in
        [Launch::grid(0), Launch::grid(-1), Launch::grid(1u64 << 33), Launch::grid(1).block([64, 64])]
    {
        let error = gpu.launch(&kernel, launch, args![&lock, &lock]).unwrap_err();
        assert!(matches!(error, Error::Unlaunchable { .. }), "{error}");
    }
}

/// Takes the lowest ready slot.
struct Lowest;

impl Policy for Lowest {
    fn pick(&mut self, _now: Cycle, ready: SlotSet) -> Option<WarpSlot> {
        ready.first()
    }
    fn started(&mut self, _now: Cycle, _slot: WarpSlot, _age: u64) {}
    fn ended(&mut self, _now: Cycle, _slot: WarpSlot) {}
    fn issued(&mut self, _now: Cycle, _issue: &Issue) {}
}

/// Adds up the cycles of an SM's warps.
struct Cycles(Arc<AtomicU64>);

impl Observer for Cycles {
    fn spent(&mut self, _slot: WarpSlot, _state: State, _from: Cycle, cycles: u64) {
        self.0.fetch_add(cycles, Ordering::Relaxed);
    }
}

#[test]
fn a_policy_and_an_observer_of_ones_own() {
    let total = Arc::new(AtomicU64::new(0));
    let cycles = total.clone();
    let mut gpu = Device::sim("gtx480").unwrap().with_policy("lowest", |_| Box::new(Lowest)).unwrap();
    gpu = gpu.with_observer(move |_| Box::new(Cycles(cycles.clone()))).unwrap();
    let kernel = gpu.load_ptx(VECADD).unwrap().kernel("vecadd").unwrap();
    let a = gpu.buffer(&[1.0f32; 1000]).unwrap();
    let launch = Launch::grid(8).block(128);
    let report = gpu.launch(&kernel, launch, args![&a, &a, &a, 1000u32]).unwrap();
    assert_eq!(report.sched.as_deref(), Some("lowest"));
    // The observer is told of every cycle of every warp.
    assert_eq!(Some(total.load(Ordering::Relaxed)), report.warp_cycles);
}

#[test]
fn only_the_timed_model_takes_policies_and_observers() {
    let device = || {
        let options = SimOptions { model: SimModel::Functional, ..SimOptions::default() };
        Device::sim_with(Chip::load("gtx480", &[]).unwrap(), options)
    };
    let refusals = [
        device().with_policy("lowest", |_| Box::new(Lowest)).unwrap_err(),
        device().with_observer(|_| Box::new(Cycles(Arc::default()))).unwrap_err(),
    ];
    for refusal in refusals {
        assert!(refusal.to_string().ends_with("in the timed model only (SimOptions::model)"), "{refusal}");
    }
}

#[test]
fn reports_are_json() {
    let reports = [SimModel::Functional, SimModel::Timing].map(|model| {
        let chip = Chip::load("gtx480", &[]).unwrap();
        let mut gpu = Device::sim_with(chip, SimOptions { model, ..SimOptions::default() });
        let kernel = gpu.load_ptx(VECADD).unwrap().kernel("vecadd").unwrap();
        let a = gpu.zeros::<f32>(32).unwrap();
        gpu.launch(&kernel, Launch::grid(1).block(32), args![&a, &a, &a, 32u32]).unwrap()
    });
    let [functional, timed] = reports.map(|report| serde_json::to_value(report).unwrap());
    assert_eq!((&functional["model"], &timed["model"]), (&"functional".into(), &"timing".into()));
    for key in ["warp_insts", "thread_insts", "ctas", "occupancy", "grid", "simd_efficiency"] {
        assert_eq!(functional[key], timed[key], "{key}");
    }
    assert_eq!(functional["occupancy"]["limited_by"], "ctas");
    assert_eq!(functional["cycles"], functional["warp_insts"]);
    for key in ["sched", "ipc", "stalls", "l1", "l2", "dram", "locks"] {
        assert!(functional[key].is_null() && !timed[key].is_null(), "{key}");
    }
    // Every cycle of a warp has exactly one of these reasons.
    let stalls: u64 = timed["stalls"].as_object().unwrap().values().map(|v| v.as_u64().unwrap()).sum();
    assert_eq!(timed["warp_cycles"], stalls);
    assert!(timed["cycles"].as_u64() > timed["warp_insts"].as_u64());
}

/// Memory that was freed or whose buffer was dropped is not reached any more, by no way.
#[test]
fn memory_that_was_freed_is_refused() {
    for model in [SimModel::default(), SimModel::Functional] {
        let options = SimOptions { model, ..SimOptions::default() };
        let mut gpu = Device::sim_with(Chip::load("gtx480", &[]).unwrap(), options);
        let says = |error: Error, part: &str| assert!(error.to_string().contains(part), "{error}");
        let weights = gpu.allocate(64, "weights").unwrap();
        gpu.write_bytes(weights, &[1; 64]).unwrap();
        gpu.free(weights).unwrap();
        let freed = "at byte 0 of weights (64 bytes), which was freed";
        says(gpu.free(weights).unwrap_err(), freed);
        says(gpu.read_bytes(weights, 4).unwrap_err(), freed);
        says(gpu.write_bytes(weights, &[0; 4]).unwrap_err(), freed);
        says(gpu.free(weights + 8).unwrap_err(), "at byte 8 of weights");

        let kernel = gpu.load_ptx(VECADD).unwrap().kernel("vecadd").unwrap();
        let (kept, gone) = (gpu.buffer(&[1.0f32; 32]).unwrap(), gpu.buffer(&[1.0f32; 32]).unwrap());
        says(gpu.free(kept.address() + 4).unwrap_err(), "byte 4 of buffer");
        let address = gone.address();
        drop(gone);
        says(gpu.read_bytes(address + 8, 4).unwrap_err(), "dropped");
        says(gpu.write_bytes(address + 8, &[0; 4]).unwrap_err(), "which was freed");
        let error = gpu.launch(&kernel, Launch::grid(1).block(32), args![address, &kept, &kept, 32u32]);
        says(error.unwrap_err(), "which was freed");
    }
}
