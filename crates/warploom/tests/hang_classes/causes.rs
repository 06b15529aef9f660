//! The cause of a hang on every chip: its kind, and what the message says about words, threads and lines.

use warploom::{Device, Hang, HangKind, HangReason, Launch, args};

use crate::hang_support::{device, hang, kernel, run};

pub(crate) const CHIPS: [&str; 5] = ["gtx480", "gtx570", "gtx1080ti", "h200", "apu"];

/// Only the first lane of each 32 goes on.
pub(crate) const ONE_OF_32: &str =
    "    and.b32 %r9, %r0, 31;\n    setp.ne.u32 %p7, %r9, 0;\n    @%p7 bra DONE;\n";

/// Runs `k(a, b)` with two named buffers of zeros.
fn launch(gpu: &mut Device, text: &str, block: u32) -> Hang {
    let a = gpu.zeros_named::<u32>("a", 16).unwrap();
    let b = gpu.zeros_named::<u32>("b", 16).unwrap();
    hang(run(gpu, text, "k", Launch::grid(1).block(block), args![&a, &b]))
}

/// Proved on every chip of `chips`, with this kind, and a message that contains all of `says`.
#[track_caller]
fn proved(chips: &[&str], text: &str, block: u32, kind: HangKind, says: &[&str]) {
    for chip in chips {
        let hang = launch(&mut device(chip, &["sm.count=2"]), text, block);
        assert_eq!((hang.kind, &hang.reason), (kind, &HangReason::Repeats), "on {chip}: {hang}");
        for part in says {
            assert!(hang.to_string().contains(part), "on {chip}, no \"{part}\" in: {hang}");
        }
    }
}

/// Chips on which lanes of a warp wait for each other.
const STACKS: [&str; 4] = ["gtx480", "gtx570", "gtx1080ti", "apu"];

/// A kernel that waits until `body` does not set `%p0`.
fn wait_while(body: &str) -> String {
    kernel(&format!("WAIT:\n{body}\n    @%p0 bra WAIT;"))
}

#[test]
fn a_difference_of_two_words() {
    let text = kernel(
        "    setp.ne.u32 %p1, %r0, 0;
    @%p1 bra DONE;
    st.volatile.global.u32 [%d0], 20;
    st.volatile.global.u32 [%d0+4], 4;
WAIT:
    ld.volatile.global.u32 %r2, [%d0];
    ld.volatile.global.u32 %r3, [%d0+4];
    sub.u32 %r4, %r2, %r3;
    setp.ge.u32 %p0, %r4, 16;
    @%p0 bra WAIT;
DONE:",
    );
    let says = "k.ptx:17 until [a+0] - [a+4] is below 16; it is 16: [a+0] is 20 and [a+4] is 4";
    proved(&CHIPS, &text, 32, HangKind::LostToken, &[says]);
}

/// A reader waits until no writer is at work and none came while it read. That a word equals itself is not told.
#[test]
fn a_writer_that_never_ends() {
    let text = kernel(
        "    setp.ne.u32 %p1, %r0, 0;
    @%p1 bra DONE;
    st.volatile.global.u32 [%d0], 3;
WAIT:
    ld.volatile.global.u32 %r2, [%d0];
    and.b32 %r3, %r2, 1;
    setp.ne.u32 %p0, %r3, 0;
    @%p0 bra WAIT;
    ld.volatile.global.u32 %r5, [%d1];
    ld.volatile.global.u32 %r4, [%d0];
    setp.ne.u32 %p0, %r4, %r2;
    @%p0 bra WAIT;
DONE:",
    );
    let says = "until [a+0] & 1 is 0; it is 1: [a+0] is 3";
    proved(&CHIPS, &text, 32, HangKind::LostToken, &[says]);
}

#[test]
fn bits_of_a_word() {
    let text = wait_while(
        "    ld.volatile.global.u32 %r2, [%d0];
    and.b32 %r2, %r2, 4;
    setp.eq.u32 %p0, %r2, 0;",
    );
    proved(&CHIPS, &text, 64, HangKind::LostToken, &["until [a+0] & 4 is not 0; it is 0: [a+0] is 0"]);
}

#[test]
fn the_high_half_of_a_word() {
    let text = wait_while(
        "    ld.volatile.global.u64 %d2, [%d0];
    shr.u64 %d3, %d2, 32;
    cvt.u32.u64 %r3, %d3;
    setp.eq.u32 %p0, %r3, 0;",
    );
    proved(&CHIPS, &text, 64, HangKind::LostToken, &["until [a+0] >> 32 is not 0"]);
}

#[test]
fn a_float() {
    let text = wait_while(
        "    .reg .f32 %f<2>;
    ld.volatile.global.f32 %f0, [%d0];
    setp.lt.f32 %p0, %f0, 0f3F000000;",
    );
    proved(&CHIPS, &text, 64, HangKind::LostToken, &["until [a+0] is at least 0.5; it is 0"]);
}

#[test]
fn two_words_of_two_buffers() {
    let text = wait_while(
        "    ld.volatile.global.u32 %r2, [%d0];
    ld.volatile.global.u32 %r3, [%d1];
    setp.eq.u32 %p1, %r2, 0;
    setp.eq.u32 %p2, %r3, 0;
    or.pred %p0, %p1, %p2;",
    );
    let says = "until [a+0] is not 0 and [b+0] is not 0; [a+0] is 0 and [b+0] is 0";
    proved(&CHIPS, &text, 64, HangKind::LostToken, &[says]);
}

/// The lane that writes the flag waits where the paths meet, for lanes that poll with a load.
#[test]
fn a_flag_written_after_the_loop() {
    let text = kernel(
        "    setp.eq.u32 %p1, %r0, 0;
    @%p1 bra MEET;
WAIT:
    ld.volatile.global.u32 %r2, [%d0];
    setp.eq.u32 %p0, %r2, 0;
    @%p0 bra WAIT;
MEET:
    setp.ne.u32 %p1, %r0, 0;
    @%p1 bra DONE;
    st.volatile.global.u32 [%d0], 1;
DONE:",
    );
    let says =
        ["spin at k.ptx:15 until [a+0] is not 0", "lane 0, which writes it at k.ptx:21, waits for them"];
    proved(&STACKS, &text, 32, HangKind::SimdDeadlock, &says);
}

/// A ticket lock taken by the lanes of one warp: the lane that is served waits for the others.
#[test]
fn a_ticket_lock_in_a_warp() {
    let text = kernel(
        "    atom.global.add.u32 %r4, [%d0], 1;
AGAIN:
    ld.volatile.global.u32 %r2, [%d0+4];
    setp.ne.u32 %p0, %r2, %r4;
    @%p0 bra AGAIN;
    add.u32 %r3, %r4, 1;
    st.volatile.global.u32 [%d0+4], %r3;",
    );
    let says = ["until [a+4] is 1; it is 0, and lane 0, which writes it at k.ptx:18, waits for it"];
    proved(&STACKS, &text, 32, HangKind::SimdDeadlock, &says);
}

#[test]
fn flags_that_wait_for_each_other() {
    let text = kernel(&format!(
        "{ONE_OF_32}    shr.u32 %r4, %r0, 6;
    and.b32 %r9, %r0, 63;
    setp.ne.u32 %p7, %r9, 0;
    @%p7 bra DONE;
    xor.b32 %r5, %r4, 1;
    mad.wide.u32 %d2, %r4, 4, %d0;
    mad.wide.u32 %d3, %r5, 4, %d0;
WAIT:
    ld.volatile.global.u32 %r2, [%d3];
    setp.eq.u32 %p0, %r2, 0;
    @%p0 bra WAIT;
    st.volatile.global.u32 [%d2], 1;
DONE:"
    ));
    let says = ["writes it at k.ptx:26, but spins on [a+0]", "writes it at k.ptx:26, but spins on [a+4]"];
    proved(&CHIPS, &text, 128, HangKind::WaitCycle, &says);
}

/// Threads 0 and 128 take the lock and leave its release to thread 64, which waits for a flag.
#[test]
fn a_lock_that_another_thread_gives_back() {
    let text = kernel(
        "    and.b32 %r9, %r0, 63;
    setp.ne.u32 %p7, %r9, 0;
    @%p7 bra DONE;
    setp.eq.u32 %p1, %r0, 64;
    @%p1 bra RELEASER;
AGAIN:
    atom.global.cas.b32 %r2, [%d0], 0, 1;
    setp.ne.u32 %p0, %r2, 0;
    @%p0 bra AGAIN;
    bra DONE;
RELEASER:
    ld.volatile.global.u32 %r2, [%d1];
    setp.ne.u32 %p0, %r2, 2;
    @%p0 bra RELEASER;
    atom.global.exch.b32 %r2, [%d0], 0;
DONE:",
    );
    let says =
        ["lost token at [b+0]", "until [b+0] is 2; it is 0", "writes it at k.ptx:26, but spins on [b+0]"];
    proved(&CHIPS, &text, 192, HangKind::LostToken, &says);
}

/// The poll is in a function of a library that is inlined twice: the user's line comes first, then how it came there.
#[test]
fn a_poll_that_was_inlined() {
    let mut text = kernel(
        "    .loc 1 7 3
WAIT:
    .loc 2 30 1, function_name $L__i0, inlined_at 1 7 3
    .loc 3 90 1, function_name $L__i0, inlined_at 2 30 1
    ld.volatile.global.u32 %r2, [%d0];
    setp.eq.u32 %p0, %r2, 0;
    @%p0 bra WAIT;",
    );
    text += "\n.file 1 \"k.cu\"\n.file 2 \"/cuda/include/cuda/atomic\"\n";
    text += ".file 3 \"/cuda/include/cuda/std/atomic_ops.h\"\n";
    text += ".section .debug_str\n{\n$L__i0:\n.b8 119\n.b8 0\n}\n";
    for chip in CHIPS {
        let hang = launch(&mut device(chip, &["sm.count=1"]), &text, 32);
        let message = hang.to_string();
        assert!(message.contains("spins at k.cu:7 until [a+0] is not 0"), "on {chip}: {message}");
        let chain =
            "k.cu:7 is /cuda/include/cuda/std/atomic_ops.h:90 < /cuda/include/cuda/atomic:30 < k.cu:7";
        assert!(message.contains(chain), "on {chip}: {message}");
    }
}

/// Thread 64 gives a lock back and then sets it again without taking it.
#[test]
fn a_lock_that_was_set_after_it_was_given_back() {
    let text = kernel(
        "    and.b32 %r9, %r0, 63;
    setp.ne.u32 %p7, %r9, 0;
    @%p7 bra DONE;
    setp.eq.u32 %p1, %r0, 64;
    @%p1 bra FIRST;
LATER:
    ld.volatile.global.u32 %r2, [%d1];
    setp.eq.u32 %p0, %r2, 0;
    @%p0 bra LATER;
FIRST:
    atom.global.cas.b32 %r2, [%d0], 0, 1;
    setp.ne.u32 %p0, %r2, 0;
    @%p0 bra FIRST;
    atom.global.exch.b32 %r2, [%d0], 0;
    st.volatile.global.u32 [%d0], 3;
    membar.gl;
    st.volatile.global.u32 [%d1], 1;
DONE:",
    );
    let chips = ["gtx480", "gtx570", "gtx1080ti", "h200"];
    let says = ["it is 3, last written at k.ptx:26 by lane 0 of warp 2", "which has ended"];
    proved(&chips, &text, 128, HangKind::LostToken, &says);
}

/// Each of two warps takes a bit of one word and waits for the other's; a third bit is taken by a warp that ended.
#[test]
fn locks_that_are_bits_of_a_word() {
    let text = kernel(
        "    and.b32 %r9, %r0, 63;
    setp.ne.u32 %p7, %r9, 0;
    @%p7 bra DONE;
    shr.u32 %r4, %r0, 6;
    mov.u32 %r5, 1;
    shl.b32 %r5, %r5, %r4;
TAKE:
    atom.global.or.b32 %r2, [%d0], %r5;
    and.b32 %r2, %r2, %r5;
    setp.ne.u32 %p0, %r2, 0;
    @%p0 bra TAKE;
    atom.global.add.u32 %r2, [%d1], 1;
    setp.eq.u32 %p1, %r4, 2;
    @%p1 bra DONE;
ALL:
    ld.volatile.global.u32 %r2, [%d1];
    setp.ne.u32 %p0, %r2, 3;
    @%p0 bra ALL;
    xor.b32 %r6, %r5, 3;
SECOND:
    atom.global.or.b32 %r2, [%d0], %r6;
    and.b32 %r2, %r2, %r6;
    setp.ne.u32 %p0, %r2, 0;
    @%p0 bra SECOND;
    not.b32 %r6, 3;
    atom.global.and.b32 %r2, [%d0], %r6;
DONE:",
    );
    for chip in CHIPS {
        let hang = launch(&mut device(chip, &["sm.count=2"]), &text, 192);
        assert_eq!(
            (hang.kind, &hang.reason),
            (HangKind::LockCycle, &HangReason::Repeats),
            "on {chip}: {hang}"
        );
        let message = hang.to_string();
        let (first, second) = if chip == "apu" { (0, 1) } else { (0, 2) };
        for (bit, other) in [(2, second), (1, first)] {
            let says =
                format!("until [a+0] & {bit} is 0; it is {bit}: [a+0] is 7, taken by lane 0 of warp {other}");
            assert!(message.contains(&says), "on {chip}, no \"{says}\" in: {message}");
        }
    }
}

/// A bit that a warp took and kept; others took and freed bits of the same word since.
#[test]
fn a_bit_that_was_kept() {
    let text = kernel(
        "    and.b32 %r9, %r0, 63;
    setp.ne.u32 %p7, %r9, 0;
    @%p7 bra DONE;
    shr.u32 %r4, %r0, 6;
    setp.eq.u32 %p1, %r4, 0;
    @%p1 bra FIRST;
WAIT:
    ld.volatile.global.u32 %r2, [%d1];
    setp.lt.u32 %p0, %r2, %r4;
    @%p0 bra WAIT;
FIRST:
    mov.u32 %r5, 8;
    setp.ne.u32 %p2, %r4, 1;
    @%p2 bra TAKE;
    mov.u32 %r5, 1;
TAKE:
    ld.volatile.global.u32 %r2, [%d0];
    and.b32 %r3, %r2, %r5;
    setp.ne.u32 %p0, %r3, 0;
    @%p0 bra TAKE;
    or.b32 %r3, %r2, %r5;
    atom.global.cas.b32 %r6, [%d0], %r2, %r3;
    setp.ne.u32 %p0, %r6, %r2;
    @%p0 bra TAKE;
    setp.ne.u32 %p1, %r4, 1;
    @%p1 bra KEEP;
    atom.global.and.b32 %r2, [%d0], 0xfffffffe;
KEEP:
    membar.gl;
    atom.global.add.u32 %r2, [%d1], 1;
DONE:",
    );
    for chip in CHIPS {
        let hang = launch(&mut device(chip, &["sm.count=2"]), &text, 192);
        assert_eq!(
            (hang.kind, &hang.reason),
            (HangKind::LostToken, &HangReason::Repeats),
            "on {chip}: {hang}"
        );
        let message = hang.to_string();
        let says = ["[a+0] & 8 is 0", "lane 0 of warp 0", "took it at k.ptx:33 and ended"];
        for says in says {
            assert!(message.contains(says), "on {chip}, no \"{says}\" in: {message}");
        }
    }
}

/// Of three threads that take a unit of a semaphore one gives it back.
#[test]
fn units_of_a_semaphore_that_are_kept() {
    let text = kernel(
        "    and.b32 %r9, %r0, 63;
    setp.ne.u32 %p7, %r9, 0;
    @%p7 bra DONE;
    shr.u32 %r4, %r0, 6;
    setp.ne.u32 %p1, %r4, 0;
    @%p1 bra OTHERS;
    st.volatile.global.u32 [%d0], 2;
    membar.gl;
    bra NEXT;
OTHERS:
    ld.volatile.global.u32 %r2, [%d1];
    setp.lt.u32 %p0, %r2, %r4;
    @%p0 bra OTHERS;
TAKE:
    ld.volatile.global.u32 %r2, [%d0];
    setp.eq.u32 %p0, %r2, 0;
    @%p0 bra TAKE;
    sub.u32 %r3, %r2, 1;
    atom.global.cas.b32 %r6, [%d0], %r2, %r3;
    setp.ne.u32 %p0, %r6, %r2;
    @%p0 bra TAKE;
    setp.ne.u32 %p1, %r4, 1;
    @%p1 bra NEXT;
    atom.global.add.u32 %r2, [%d0], 1;
NEXT:
    membar.gl;
    atom.global.add.u32 %r2, [%d1], 1;
DONE:",
    );
    for chip in CHIPS {
        let hang = launch(&mut device(chip, &["sm.count=2"]), &text, 320);
        assert_eq!(
            (hang.kind, &hang.reason),
            (HangKind::LostToken, &HangReason::Repeats),
            "on {chip}: {hang}"
        );
        let message = hang.to_string();
        let warp = |thread: u32| if chip == "apu" { thread / 64 } else { thread / 32 };
        let says = [
            format!("lane 0 of warp {} took it at k.ptx:30 and ended", warp(192)),
            format!("lane 0 of warp {} took it, too", warp(128)),
        ];
        for says in says {
            assert!(message.contains(&says), "on {chip}, no \"{says}\" in: {message}");
        }
    }
}

/// `while (a == 0 && b == 0);` as compilers write it: a branch out of the middle.
#[test]
fn one_of_two_words_would_do() {
    let text = kernel(
        "WAIT:
    ld.volatile.global.u32 %r2, [%d0];
    setp.ne.u32 %p0, %r2, 0;
    @%p0 bra DONE;
    ld.volatile.global.u32 %r3, [%d1];
    setp.eq.u32 %p0, %r3, 0;
    @%p0 bra WAIT;
DONE:",
    );
    let says = "until [a+0] is not 0 or [b+0] is not 0; [a+0] is 0 and [b+0] is 0";
    proved(&CHIPS, &text, 64, HangKind::LostToken, &[says]);
}

/// `while (a == 0 || b == 0);`: two branches back. The first word is there.
#[test]
fn the_second_of_two_words_is_missing() {
    let text = kernel(
        "    st.volatile.global.u32 [%d0], 1;
WAIT:
    ld.volatile.global.u32 %r2, [%d0];
    setp.eq.u32 %p0, %r2, 0;
    @%p0 bra WAIT;
    ld.volatile.global.u32 %r3, [%d1];
    setp.eq.u32 %p0, %r3, 0;
    @%p0 bra WAIT;",
    );
    let says = "until [a+0] is not 0 and [b+0] is not 0; [a+0] is 1 and [b+0] is 0";
    proved(&CHIPS, &text, 64, HangKind::LostToken, &["lost token at [b+0]", says]);
}

/// `while (a == 0 || b < 4);`: the loop does not come to the second word, which is named all the same.
#[test]
fn both_of_two_words_are_missing() {
    let text = kernel(
        "WAIT:
    ld.volatile.global.u32 %r2, [%d0];
    setp.eq.u32 %p0, %r2, 0;
    @%p0 bra WAIT;
    ld.volatile.global.u32 %r3, [%d1];
    setp.lt.u32 %p0, %r3, 4;
    @%p0 bra WAIT;",
    );
    let says = "until [a+0] is not 0 and [b+0] is at least 4; [a+0] is 0 and [b+0] is 0";
    proved(&CHIPS, &text, 64, HangKind::LostToken, &["lost token at [a+0]", says]);
}

#[test]
fn computed_conditions() {
    let sum = "    .reg .f32 %f<3>;
    ld.volatile.global.f32 %f0, [%d0];
    ld.volatile.global.f32 %f1, [%d1];
    add.f32 %f2, %f0, %f1;
    setp.lt.f32 %p0, %f2, 0f3F800000;";
    let least = "    ld.volatile.global.u32 %r2, [%d0];
    ld.volatile.global.u32 %r3, [%d1];
    min.u32 %r4, %r2, %r3;
    setp.lt.u32 %p0, %r4, 3;";
    let ones = "    ld.volatile.global.u32 %r2, [%d0];
    popc.b32 %r4, %r2;
    setp.lt.u32 %p0, %r4, 32;";
    let negative = "    ld.volatile.global.s32 %r2, [%d0];
    setp.ge.s32 %p0, %r2, -5;";
    let second = "    ld.volatile.global.v2.u32 {%r2, %r3}, [%d0];
    setp.eq.u32 %p0, %r3, 0;";
    let unordered = "    .reg .f64 %e<1>;
    ld.volatile.global.f64 %e0, [%d0];
    setp.neu.f64 %p0, %e0, 0d4008000000000000;";
    for (body, says) in [
        (sum, "until [a+0] + [b+0] is at least 1; it is 0: [a+0] is 0 and [b+0] is 0"),
        (least, "until min([a+0], [b+0]) is at least 3; it is 0: [a+0] is 0 and [b+0] is 0"),
        (ones, "until popc([a+0]) is at least 32; it is 0: [a+0] is 0"),
        (negative, "until [a+0] is below -5; it is 0"),
        (second, "until [a+4] is not 0; it is 0"),
        (unordered, "until [a+0] is 3; it is 0"),
    ] {
        proved(&CHIPS, &wait_while(body), 64, HangKind::LostToken, &[says]);
    }
}

/// Multiply-adds, signed numbers and minima, as they are computed, with their values.
#[test]
fn sums_of_products_and_signed_numbers() {
    let load = "    ld.volatile.global.u32 %r2, [%d0];\n    ld.volatile.global.u32 %r3, [%d1];\n";
    for (compute, says) in [
        (
            "mad.lo.u32 %r4, %r2, 3, %r3; setp.lt.u32 %p0, %r4, 10;",
            "until ([a+0] * 3) + [b+0] is at least 10; it is 0: [a+0] is 0 and [b+0] is 0",
        ),
        (
            "min.s32 %r4, %r2, %r3; setp.gt.s32 %p0, %r4, -4;",
            "until min([a+0], [b+0]) is at most -4; it is 0",
        ),
        (
            "sub.s32 %r4, %r2, 7; abs.s32 %r4, %r4; add.s32 %r4, %r4, %r3; setp.gt.s32 %p0, %r4, 3;",
            "until abs([a+0] - 7) + [b+0] is at most 3; it is 7",
        ),
        (
            "sub.s32 %r4, %r2, 64; shr.s32 %r4, %r4, 3; add.s32 %r4, %r4, %r3; setp.lt.s32 %p0, %r4, 0;",
            "until (([a+0] - 64) >> 3) + [b+0] is at least 0; it is -8",
        ),
    ] {
        let text = wait_while(&format!("{load}    {compute}"));
        proved(&CHIPS, &text, 64, HangKind::LostToken, &[says]);
    }
}

/// The greatest value so far is nobody's, so that nobody holds it.
#[test]
fn a_maximum_is_no_lock() {
    let text = wait_while("    atom.global.max.u32 %r2, [%d0], 3;\n    setp.lt.u32 %p0, %r2, 10;");
    proved(&CHIPS, &text, 64, HangKind::LostToken, &["until [a+0] is at least 10; it is 3"]);
}

/// The loop looks at the word in a function that it calls.
#[test]
fn a_poll_in_a_function() {
    let look = ".func (.param .b32 r) look(.param .b64 p) {
    .reg .b32 %r<1>;
    .reg .b64 %d<1>;
    ld.param.b64 %d0, [p];
    ld.volatile.global.u32 %r0, [%d0];
    st.param.b32 [r], %r0;
    ret;
}
.visible .entry";
    let text = kernel(
        "WAIT:
    {
    .param .b64 x;
    .param .b32 y;
    st.param.b64 [x], %d0;
    call (y), look, (x);
    ld.param.b32 %r3, [y];
    }
    setp.eq.u32 %p0, %r3, 0;
    @%p0 bra WAIT;",
    );
    let text = text.replace(".visible .entry", look);
    proved(&CHIPS, &text, 64, HangKind::LostToken, &["lost token at [a+0]", "until [a+0] changes; it is 0"]);
}

/// Thread 0 waits for a value that only code writes which thread 64 never comes to.
#[test]
fn code_that_a_thread_jumps_over_is_not_its_own() {
    let text = kernel(
        "    and.b32 %r9, %r0, 63;
    setp.ne.u32 %p7, %r9, 0;
    @%p7 bra DONE;
    setp.eq.u32 %p1, %r0, 0;
    @%p1 bra FIRST;
SECOND:
    ld.volatile.global.u32 %r2, [%d1];
    setp.ne.u32 %p0, %r2, 9;
    @%p0 bra SECOND;
    bra DONE;
FIRST:
    atom.global.cas.b32 %r2, [%d0], 1, 2;
    setp.ne.u32 %p0, %r2, 1;
    @%p0 bra FIRST;
DONE:",
    );
    let says = [
        "until [a+0] is 1; it is 0, and no thread that can run changes it",
        "until [b+0] is 9; it is 0, and no thread that can run changes it",
    ];
    proved(&CHIPS, &text, 128, HangKind::LostToken, &says);
}

/// Of the threads that count themselves in, without waiting, those of the first warps do not count themselves out.
/// `KEEPS` sets `%p1` for those; all of them then report in `b`, and thread 256 waits.
const COUNTED: &str = "    and.b32 %r9, %r0, 63;
    setp.ne.u32 %p7, %r9, 0;
    @%p7 bra DONE;
    shr.u32 %r4, %r0, 6;
    setp.eq.u32 %p1, %r4, 4;
    @%p1 bra REPORTED;
    TAKE
    KEEPS
    @%p1 bra KEPT;
    GIVE
KEPT:
    membar.gl;
    atom.global.add.u32 %r2, [%d1], 1;
    bra DONE;
REPORTED:
    ld.volatile.global.u32 %r2, [%d1];
    setp.ne.u32 %p0, %r2, 4;
    @%p0 bra REPORTED;
WAIT:
    POLL
    @%p0 bra WAIT;
DONE:";

/// The kernel, with `[counts]` as the address of the counted word.
fn counted(take: &str, keeps: &str, give: &str, poll: &str) -> String {
    let body =
        COUNTED.replace("TAKE", take).replace("KEEPS", keeps).replace("GIVE", give).replace("POLL", poll);
    kernel(&body)
}

const FIRST_KEEPS: &str = "setp.eq.u32 %p1, %r4, 0;";

/// A reader-writer lock, units of a semaphore, a sequence lock, a flag and a try: each kept by a thread that ended.
#[test]
fn counts_that_were_taken_without_waiting() {
    let add = "atom.global.add.u32 %r2, [%d0], 1;";
    let subtract = "atom.global.add.u32 %r2, [%d0], -1;";
    let readers = counted(
        add,
        "setp.lt.u32 %p1, %r4, 2;",
        subtract,
        "atom.global.cas.b32 %r2, [%d0], 0, 9;\n    setp.ne.u32 %p0, %r2, 0;",
    );
    let units = counted(
        subtract,
        FIRST_KEEPS,
        add,
        "ld.volatile.global.s32 %r2, [%d0];\n    setp.lt.s32 %p0, %r2, 0;",
    );
    let odd = counted(
        add,
        FIRST_KEEPS,
        add,
        "ld.volatile.global.u32 %r2, [%d0];
    and.b32 %r3, %r2, 1;
    setp.eq.b32 %p2, %r3, 1;
    mov.pred %p3, 0;
    xor.pred %p0, %p2, %p3;",
    );
    let flag = counted(
        "mov.u32 %r5, 1;\n    shl.b32 %r5, %r5, %r4;\n    atom.global.or.b32 %r2, [%d0], %r5;",
        FIRST_KEEPS,
        "not.b32 %r5, %r5;\n    atom.global.and.b32 %r2, [%d0], %r5;",
        "ld.volatile.global.u32 %r2, [%d0];\n    and.b32 %r2, %r2, 1;\n    setp.ne.u32 %p0, %r2, 0;",
    );
    let by_one = "it is 1: lane 0 of warp 0 changed it by 1 at k.ptx:18 and ended";
    for (text, says) in [
        (&readers, "changed it by 1 at k.ptx:18 and ended; lane 0 of warp"),
        (
            &units,
            "until [a+0] is at least 0; it is 0xffffffff: lane 0 of warp 0 changed it by -1 at k.ptx:18 and ended",
        ),
        (
            &odd,
            "until [a+0] & 1 is not 1; it is 1: [a+0] is 7: lane 0 of warp 0 changed it by 1 at k.ptx:18 and ended",
        ),
        (
            &flag,
            "until [a+0] & 1 is 0; it is 1: [a+0] is 1: lane 0 of warp 0 changed it by 1 at k.ptx:20 and ended",
        ),
    ] {
        proved(&CHIPS, text, 320, HangKind::LostToken, &[says]);
    }
    let once = counted(
        add,
        FIRST_KEEPS,
        subtract,
        "ld.volatile.global.u32 %r2, [%d0];\n    setp.ne.u32 %p0, %r2, 0;",
    );
    proved(&CHIPS, &once, 320, HangKind::LostToken, &[by_one]);
    let shared = once
        .replace("[%d0]", "[s]")
        .replace(".global.add.u32 %r2, [s]", ".shared.add.u32 %r2, [s]")
        .replace("volatile.global.u32 %r2, [s]", "volatile.shared.u32 %r2, [s]")
        .replace(
            "    ld.param.u64 %d0, [a];",
            "    .shared .align 4 .b32 s;\n    st.shared.u32 [s], 0;\n    bar.sync 0;",
        );
    let says = "until [s+0] is 0; it is 1: lane 0 of warp 0 changed it by 1 at k.ptx:20 and ended";
    proved(&CHIPS, &shared, 320, HangKind::LostToken, &[says]);
}

/// Arrivals at a counter, and the turns of threads that wait for theirs, are nobody's.
#[test]
fn counts_that_nobody_holds() {
    let arrivals = counted(
        "atom.global.add.u32 %r2, [%d0], 1;",
        "setp.eq.u32 %p1, %r4, %r4;",
        "",
        "ld.volatile.global.u32 %r2, [%d0];\n    setp.lt.u32 %p0, %r2, 5;",
    );
    let turns = counted(
        "add.u32 %r5, %r4, 1;
TURN:
    atom.global.cas.b32 %r2, [%d0], %r4, %r5;
    setp.ne.u32 %p0, %r2, %r4;
    @%p0 bra TURN;",
        "setp.eq.u32 %p1, %r4, %r4;",
        "",
        "atom.global.cas.b32 %r2, [%d0], 6, 7;\n    setp.ne.u32 %p0, %r2, 6;",
    );
    for (text, says) in [
        (arrivals, "until [a+0] is at least 5; it is 4, and no thread that can run changes it"),
        (turns, "until [a+0] is 6; it is 4, and no thread that can run changes it"),
    ] {
        proved(&CHIPS, &text, 320, HangKind::LostToken, &[says]);
    }
}

/// The value that is compared is in a register that the result overwrites, and comes from the loop itself.
#[test]
fn a_lock_whose_free_value_is_moved_in_the_loop() {
    let text = kernel(&format!(
        "{ONE_OF_32}    and.b32 %r9, %r0, 63;
    setp.ne.u32 %p7, %r9, 0;
    @%p7 bra DONE;
    setp.ne.u32 %p1, %r0, 0;
    @%p1 bra LATER;
    atom.global.exch.b32 %r2, [%d0], 100;
    st.volatile.global.u32 [%d1], 1;
    bra DONE;
LATER:
    ld.volatile.global.u32 %r2, [%d1];
    setp.eq.u32 %p0, %r2, 0;
    @%p0 bra LATER;
TAKE:
    mov.u32 %r6, 0;
    atom.global.cas.b32 %r7, [%d0], %r6, 7;
    setp.ne.u32 %p0, %r7, 0;
    @%p0 bra TAKE;
DONE:"
    ));
    for policy in ["lrr", "gto"] {
        for chip in CHIPS {
            let set = ["sm.count=2".to_string(), format!("issue.policy=\"{policy}\"")];
            let set: Vec<&str> = set.iter().map(String::as_str).chain(["issue.bows.enabled=true"]).collect();
            let hang = launch(&mut device(chip, &set), &text, 128);
            let says =
                "until [a+0] is 0; it is 100, last written at k.ptx:20 by lane 0 of warp 0, which has ended";
            assert!(hang.to_string().contains(says), "on {chip}: {hang}");
        }
    }
}
