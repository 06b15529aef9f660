//! Lists with a circle: a loop that never ends and waits for no word, whoever waits behind it.

use warploom::{Chip, Device, Error, HangKind, HangReason, Launch, SimModel, SimOptions, args};

use crate::causes::CHIPS;
use crate::hang_support::{device, hang, kernel, run};

/// Nodes 0 to 7 are a circle, node 8 is a list of one. 99 ends a list.
fn list(gpu: &mut Device) -> warploom::Buffer<u32> {
    gpu.buffer_named("list", &[1, 2, 3, 4, 5, 6, 7, 0, 99, 99]).unwrap()
}

/// Lanes that `%p1` chooses walk the circle, the others the short list. Each counts its steps.
fn walk(chosen: &str, load: &str, behind: &str) -> String {
    kernel(&format!(
        "    {chosen}
    selp.u32 %r2, 0, 8, %p1;
    mov.u32 %r5, 0;
WALK:
    mul.wide.u32 %d2, %r2, 4;
    add.u64 %d3, %d0, %d2;
    {load} %r2, [%d3];
    add.u32 %r5, %r5, 1;
    setp.ne.u32 %p0, %r2, 99;
    @%p0 bra WALK;
{behind}
    mul.wide.u32 %d4, %r0, 4;
    add.u64 %d5, %d1, %d4;
    st.global.u32 [%d5], %r5;"
    ))
}

const ODD: &str = "and.b32 %r3, %r0, 1;\n    setp.ne.u32 %p1, %r3, 0;";
const LOADS: [&str; 3] = ["ld.global.u32", "ld.volatile.global.u32", "ld.relaxed.gpu.global.u32"];

fn launch(gpu: &mut Device, text: &str) -> Result<(), Error> {
    let (list, out) = (list(gpu), gpu.zeros_named::<u32>("out", 64).unwrap());
    run(gpu, text, "k", Launch::grid(1).block(64).max_cycles(3_000_000), args![&list, &out])
}

/// Lanes of a chip with independent threads that have come to the end of their list wait there for the others. They
/// run once all others are known to repeat themselves, so that the proof does not take millions of cycles.
#[test]
fn a_circle_is_proved_soon_and_waits_for_nothing() {
    for (chip, load) in CHIPS.iter().flat_map(|chip| LOADS.map(|load| (chip, load))) {
        for set in [&["sm.count=2"][..], &["sm.count=2", "issue.policy=lrr", "issue.bows.enabled=true"][..]] {
            let hang = hang(launch(&mut device(chip, set), &walk(ODD, load, "")));
            let verdict = (hang.kind, &hang.reason);
            assert_eq!(verdict, (HangKind::Endless, &HangReason::Repeats), "{load} on {chip}: {hang}");
            assert!(hang.cycles < 100_000, "{load} on {chip} {set:?}: {hang}");
        }
    }
}

/// What the loop only counts does not matter there, either.
#[test]
fn a_circle_is_proved_in_the_functional_model() {
    for (chip, load) in CHIPS.iter().flat_map(|chip| LOADS.map(|load| (chip, load))) {
        let options = SimOptions { model: SimModel::Functional, ..SimOptions::default() };
        let mut gpu = Device::sim_with(Chip::load(chip, &[]).unwrap(), options);
        let hang = hang(launch(&mut gpu, &walk(ODD, load, "")));
        let verdict = (hang.kind, &hang.reason);
        assert_eq!(verdict, (HangKind::Endless, &HangReason::Repeats), "{load} on {chip}: {hang}");
    }
}

/// The first lane of a warp waits behind the loop for the others, and opens the circle as soon as it may run: with
/// independent threads the kernel ends, and nothing else may be proved.
#[test]
fn lanes_that_wait_behind_the_loop_may_open_the_circle() {
    let not_first = "and.b32 %r3, %r0, 31;\n    setp.ne.u32 %p1, %r3, 0;";
    let opens = "    @!%p1 st.volatile.global.u32 [%d0+16], 99;";
    for load in &LOADS[1..] {
        let text = walk(not_first, load, opens);
        for set in [&["sm.count=2"][..], &["sm.count=2", "issue.policy=lrr", "issue.bows.enabled=true"][..]] {
            launch(&mut device("h200", set), &text).unwrap_or_else(|error| panic!("{load} {set:?}: {error}"));
        }
        for chip in ["gtx480", "gtx1080ti"] {
            assert!(launch(&mut device(chip, &["sm.count=2"]), &text).is_err(), "{load} on {chip}");
        }
    }
}
