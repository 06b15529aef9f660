//! Waits in libcu++ and cooperative groups, as nvcc compiles them: the user's line comes first, the chain of inlining
//! after it.

use warploom::{Chip, Device, HangKind, HangReason, Launch, SimModel, SimOptions, args};

use crate::hang_support::{hang, kernel, run};

/// Hangs in both models with this kind, and a message that contains all of `says`.
#[track_caller]
fn hangs(entry: &str, kind: HangKind, says: &[&str]) {
    let text = include_str!("library.ptx");
    for model in [SimModel::Timing, SimModel::Functional] {
        let chip = Chip::load("h200", &["sm.count=2".to_string()]).unwrap();
        let mut gpu = Device::sim_with(chip, SimOptions { model, ..SimOptions::default() });
        let (a, b) = (gpu.zeros_named::<u32>("a", 16).unwrap(), gpu.zeros_named::<u32>("b", 64).unwrap());
        let launch = Launch::grid(1).block(64).max_cycles(3_000_000);
        let hang = hang(run(&mut gpu, text, entry, launch, args![&a, &b]));
        assert_eq!(hang.kind, kind, "{hang}");
        for part in says {
            assert!(hang.to_string().contains(part), "no \"{part}\" in: {hang}");
        }
    }
}

#[test]
fn an_atomic_ref_that_is_kept() {
    let took = "spins at library.cu:17 until [a+0] is 0; it is 1: lane 0 of warp 0 took it at library.cu:17 and ended";
    let inner =
        "inlined   library.cu:17 is cuda/include/cuda/std/__atomic/functions/cuda_ptx_generated.h:2033 < ";
    let outer = "< cuda/include/cuda/std/__atomic/api/reference.h:";
    hangs("kept_lock", HangKind::LostToken, &[took, inner, outer, " < library.cu:17\n"]);
}

#[test]
fn a_barrier_that_threads_do_not_reach() {
    let waits =
        "spin at library.cu:38 until the phase of mbarrier [barrier+0] ends: 16 of 64 arrivals are missing";
    let chain = "library.cu:38 is cuda/include/cuda/__ptx/instructions/generated/mbarrier_try_wait.h:18 < ";
    hangs("barrier_short", HangKind::Barrier, &[waits, chain, " < library.cu:38\n"]);
}

#[test]
fn a_tile_that_waits_for_a_lane_that_polls() {
    let polls = "spin at library.cu:47 until [a+0] is not 0; it is 0; lanes 17-31 write it at library.cu:51";
    let waits = "wait at library.cu:50 for lane 0";
    let chain =
        "library.cu:50 is cuda/include/sm_30_intrinsics.hpp:111 < cuda/include/cooperative_groups.h:884";
    hangs("tile_meets_first", HangKind::SimdDeadlock, &[polls, waits, chain, " < library.cu:50\n"]);
}

/// The library sleeps between two looks for a time that depends on the clock, so there is no proof.
#[test]
fn a_semaphore_that_is_not_released() {
    let set = ["sm.count=2", "hang.suspect_cycles=200000"].map(String::from);
    for model in [SimModel::Timing, SimModel::Functional] {
        let options = SimOptions { model, ..SimOptions::default() };
        let mut gpu = Device::sim_with(Chip::load("h200", &set).unwrap(), options);
        let (a, b) = (gpu.zeros_named::<u32>("a", 16).unwrap(), gpu.zeros_named::<u32>("b", 64).unwrap());
        let launch = Launch::grid(1).block(64).max_cycles(3_000_000);
        let hang =
            hang(run(&mut gpu, include_str!("library.ptx"), "semaphore_not_released", launch, args![&a, &b]));
        assert_eq!(hang.kind, HangKind::LostToken, "{hang}");
        assert!(matches!(hang.reason, HangReason::Quiet(200_000..400_000)), "{hang}");
        let message = hang.to_string();
        assert!(
            message.contains("spins at library.cu:29 until [a+0] is not 0; it is 0: lane 0 of warp"),
            "{message}"
        );
        assert!(message.contains("took it at library.cu:29 and ended"), "{message}");
        assert!(message.contains(" < library.cu:29\n"), "{message}");
    }
}

/// Without a clock in the model, time passes with instructions: a poll that gives up after some time ends.
#[test]
fn a_poll_that_gives_up_by_the_clock_ends_in_the_functional_model() {
    let body = "    mov.u32 %r7, %clock;
WAIT:
    mov.u32 %r6, %clock;
    sub.u32 %r6, %r6, %r7;
    ld.volatile.global.u32 %r2, [%d0];
    setp.eq.u32 %p0, %r2, 0;
    setp.lt.and.u32 %p0, %r6, 1000000, %p0;
    @%p0 bra WAIT;";
    let set = ["sm.count=2", "hang.suspect_cycles=50000"].map(String::from);
    let options = SimOptions { model: SimModel::Functional, ..SimOptions::default() };
    let mut gpu = Device::sim_with(Chip::load("h200", &set).unwrap(), options);
    let (a, b) = (gpu.zeros_named::<u32>("a", 16).unwrap(), gpu.zeros_named::<u32>("b", 64).unwrap());
    run(&mut gpu, &kernel(body), "k", Launch::grid(1).block(64), args![&a, &b]).unwrap();
}
