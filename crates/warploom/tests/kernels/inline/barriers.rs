//! `bar` and `barrier`: counts, names, arrivals without waiting, reductions.

use warploom::Launch;

use super::{check, check_on, check_threads, kernel, kernel_after};
use crate::support::machines_of;

const SHARED: &str = ".shared .align 4 .b8 box[4096];";

/// Stores `%r10` in the thread's word of the box.
const PUT: &str = "
    mov.u32 %r5, box;
    mad.lo.u32 %r6, %r2, 4, %r5;
    st.shared.u32 [%r6], %r10;";

#[test]
fn all_threads_meet() {
    let body = format!(
        "mad.lo.u32 %r10, %r0, 3, 1;
        {PUT}
        bar.sync 0;
        sub.u32 %r7, %r3, %r2;
        sub.u32 %r7, %r7, 1;
        mad.lo.u32 %r7, %r7, 4, %r5;
        ld.shared.u32 %r8, [%r7];
        st.global.u32 [%d2], %r8;"
    );
    let text = kernel_after(SHARED, 1, &body);
    for (ctas, threads) in [(1, 1), (12, 33), (2, 96), (1, 1024)] {
        check_threads(&text, (ctas, threads), &[0], |i| {
            let (cta, thread) = (i / threads, i % threads);
            [3 * (cta * threads + threads - 1 - thread) + 1]
        });
    }
}

/// Three groups of 64 threads, each with its own barrier, whose number is in a register.
#[test]
fn named_barriers_count_their_groups() {
    let body = format!(
        "add.u32 %r10, %r0, 100;
        {PUT}
        shr.u32 %r11, %r2, 6;
        add.u32 %r11, %r11, 1;
        mov.u32 %r12, 64;
        barrier.sync %r11, %r12;
        xor.b32 %r7, %r2, 63;
        mad.lo.u32 %r7, %r7, 4, %r5;
        ld.shared.u32 %r8, [%r7];
        st.global.u32 [%d2], %r8;"
    );
    check_threads(&kernel_after(SHARED, 1, &body), (2, 192), &[0], |i| {
        let (cta, thread) = (i / 192, i % 192);
        [cta * 192 + (thread ^ 63) + 100]
    });
}

/// 64 producers hand one value each to 64 consumers, round after round: barrier 1 means empty, barrier 2 full.
#[test]
fn producers_and_consumers() {
    let body = "
        mov.u32 %r5, box;
        and.b32 %r6, %r2, 63;
        mad.lo.u32 %r6, %r6, 4, %r5;
        mov.u32 %r9, 0;
        mov.u32 %r12, 0;
        setp.ge.u32 %p1, %r2, 64;
        @%p1 bra CONSUME;
    PRODUCE:
        bar.sync 1, 128;
        mad.lo.u32 %r10, %r9, 1000, %r2;
        st.shared.u32 [%r6], %r10;
        membar.cta;
        bar.arrive 2, 128;
        add.u32 %r9, %r9, 1;
        setp.lt.u32 %p2, %r9, 5;
        @%p2 bra PRODUCE;
        bra DONE;
    CONSUME:
        bar.arrive 1, 128;
        bar.sync 2, 128;
        ld.shared.u32 %r11, [%r6];
        mad.lo.u32 %r12, %r12, 3, %r11;
        add.u32 %r9, %r9, 1;
        setp.lt.u32 %p2, %r9, 5;
        @%p2 bra CONSUME;
    DONE:
        st.global.u32 [%d2], %r12;";
    check_threads(&kernel_after(SHARED, 1, body), (3, 128), &[0], |i| {
        let thread = i % 128;
        let taken = |from: u32| (0..5).fold(0, |sum, round| 3 * sum + 1000 * round + from);
        [thread.checked_sub(64).map_or(0, taken)]
    });
}

#[test]
fn reductions() {
    let body = "
        rem.u32 %r5, %r2, 3;
        setp.eq.u32 %p1, %r5, 0;
        setp.lt.u32 %p2, %r2, 1000;
        setp.eq.u32 %p3, %r2, 77;
        bar.red.popc.u32 %r6, 0, %p1;
        bar.red.popc.u32 %r7, 1, !%p1;
        bar.red.and.pred %p4, 0, %p2;
        bar.red.and.pred %p5, 0, %p1;
        bar.red.or.pred %p6, 0, %p3;
        bar.red.or.pred %p7, 0, !%p2;
        selp.u32 %r8, 1, 0, %p4;
        selp.u32 %r9, 2, 0, %p5;
        selp.u32 %r10, 4, 0, %p6;
        selp.u32 %r11, 8, 0, %p7;
        or.b32 %r8, %r8, %r9;
        or.b32 %r8, %r8, %r10;
        or.b32 %r8, %r8, %r11;
        st.global.u32 [%d2], %r6;
        st.global.u32 [%d2+4], %r7;
        st.global.u32 [%d2+8], %r8;";
    let text = kernel(3, body);
    // The last warp is partial.
    check_threads(&text, (2, 100), &[0], |_| [34, 66, 1 | 4]);
    check_threads(&text, (1, 64), &[0], |_| [22, 42, 1]);
}

#[test]
fn a_reduction_over_a_group() {
    let body = "
        mov.u32 %r6, 0;
        setp.ge.u32 %p1, %r2, 128;
        @%p1 bra DONE;
        and.b32 %r5, %r2, 1;
        setp.eq.u32 %p2, %r5, 1;
        bar.red.popc.u32 %r6, 5, 128, %p2;
    DONE:
        st.global.u32 [%d2], %r6;";
    check_threads(&kernel(1, body), (1, 192), &[0], |i| [if i < 128 { 64 } else { 0 }]);
}

/// A barrier does not wait for exited warps and lanes.
#[test]
fn the_ended_are_not_waited_for() {
    let body = format!(
        "setp.ge.u32 %p1, %r2, 100;
        @%p1 exit;
        and.b32 %r7, %r2, 1;
        setp.eq.u32 %p2, %r7, 1;
        @%p2 exit;
        add.u32 %r10, %r2, 7;
        {PUT}
        bar.sync 0;
        sub.u32 %r7, 98, %r2;
        mad.lo.u32 %r7, %r7, 4, %r5;
        ld.shared.u32 %r8, [%r7];
        st.global.u32 [%d2], %r8;"
    );
    check_threads(&kernel_after(SHARED, 1, &body), (1, 256), &[0], |i| {
        [if i < 100 && i % 2 == 0 { 98 - i + 7 } else { 0 }]
    });
}

/// Lanes of one warp arrive at the barrier from two places, which only independent threads can do.
#[test]
fn independent_threads_meet_from_different_places() {
    let body = format!(
        "add.u32 %r10, %r2, 7;
        {PUT}
        and.b32 %r7, %r2, 1;
        setp.eq.u32 %p1, %r7, 1;
        @%p1 bra ODD;
        barrier.sync 0;
        bra MET;
    ODD:
        barrier.sync 0;
    MET:
        xor.b32 %r7, %r2, 1;
        mad.lo.u32 %r7, %r7, 4, %r5;
        ld.shared.u32 %r8, [%r7];
        st.global.u32 [%d2], %r8;"
    );
    let expected: Vec<u32> = (0..96).map(|i| (i ^ 1) + 7).collect();
    check_on(
        machines_of("h200"),
        &kernel_after(SHARED, 1, &body),
        Launch::grid(1).block(96),
        &[0],
        &expected,
    );
}

/// Half of a warp arrives without waiting and continues. The other half waits with a load in flight, and needs
/// its value once another warp has arrived.
#[test]
fn half_a_warp_is_released_by_another() {
    let body = "
        mov.u32 %r9, 0;
        mov.u32 %r12, 0;
        mov.u32 %r13, 0;
        mov.u32 %r8, 0;
    AGAIN:
        mov.u32 %r10, 0;
        setp.ge.u32 %p1, %r2, 32;
        @%p1 bra OTHERS;
        setp.ge.u32 %p2, %r2, 16;
        @%p2 bra ARRIVES;
        mad.lo.u32 %r11, %r9, 512, %r2;
        mad.wide.u32 %d5, %r11, 4, %d1;
        ld.global.u32 %r8, [%d5];
        barrier.sync 1, 64;
        mad.lo.u32 %r12, %r12, 3, %r8;
        bra MEET;
    ARRIVES:
        barrier.arrive 1, 64;
    LONG:
        add.u32 %r10, %r10, 1;
        add.u32 %r20, %r20, 1;
        add.u32 %r21, %r21, 1;
        add.u32 %r22, %r22, 1;
        add.u32 %r23, %r23, 1;
        add.u32 %r24, %r24, 1;
        add.u32 %r25, %r25, 1;
        setp.lt.u32 %p3, %r10, 100;
        @%p3 bra LONG;
        bra MEET;
    OTHERS:
        add.u32 %r10, %r10, 1;
        setp.le.u32 %p3, %r10, %r9;
        @%p3 bra OTHERS;
        barrier.sync 1, 64;
    MEET:
        bar.sync 0;
        xor.b32 %r13, %r13, %r8;
        add.u32 %r9, %r9, 1;
        setp.lt.u32 %p4, %r9, 8;
        @%p4 bra AGAIN;
        st.global.v2.u32 [%d2], {%r12, %r13};";
    let input: Vec<u32> = (0..4096).map(|i| 7 * i + 1).collect();
    let both = |thread: u32| {
        let values = (0..8).map(|round| 7 * (512 * round + thread) + 1);
        [values.clone().fold(0, |sum, v| 3 * sum + v), values.fold(0, |all, v| all ^ v)]
    };
    let expected: Vec<u32> =
        (0..64).flat_map(|thread| if thread < 16 { both(thread) } else { [0, 0] }).collect();
    check_on(machines_of("h200"), &kernel(2, body), Launch::grid(1).block(64), &input, &expected);
}

/// The phases of one barrier follow each other, however far apart the warps are.
#[test]
fn phase_after_phase() {
    let body = "
        mov.u32 %r5, box;
        mad.lo.u32 %r6, %r2, 4, %r5;
        add.u32 %r7, %r2, 1;
        rem.u32 %r7, %r7, %r3;
        mad.lo.u32 %r7, %r7, 4, %r5;
        mov.u32 %r10, %r2;
        mov.u32 %r9, 0;
    AGAIN:
        st.shared.u32 [%r6], %r10;
        bar.sync 0;
        ld.shared.u32 %r10, [%r7];
        bar.sync 0;
        add.u32 %r9, %r9, 1;
        setp.lt.u32 %p1, %r9, 20;
        @%p1 bra AGAIN;
        st.global.u32 [%d2], %r10;";
    let expected: Vec<u32> = (0..150).map(|i| (i + 20) % 150).collect();
    check(&kernel_after(SHARED, 1, body), Launch::grid(1).block(150), &[0], &expected);
}
