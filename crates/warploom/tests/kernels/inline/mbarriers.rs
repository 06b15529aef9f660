//! `mbarrier` objects and asynchronous copies.

use warploom::Launch;

use super::{check, check_threads, kernel_after};
use crate::support::Random;

/// Every thread arrives and waits for the phase, three times.
#[test]
fn phases() {
    let before = ".shared .align 8 .b64 barrier; .shared .align 4 .b8 box[1024];";
    for wait in [
        "mbarrier.test_wait.shared.b64 %p2, [%r20], %d5;",
        "mbarrier.try_wait.shared.b64 %p2, [%r20], %d5;",
        "mbarrier.test_wait.parity.shared.b64 %p2, [%r20], %r9;",
        "mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r20], %r9, 100;",
    ] {
        let body = format!(
            "mov.u32 %r20, barrier;
            mov.u32 %r5, box;
            setp.eq.u32 %p1, %r2, 0;
            @%p1 mbarrier.init.shared.b64 [%r20], %r3;
            bar.sync 0;
            mov.u32 %r10, %r2;
            mov.u32 %r11, 0;
        ROUND:
            mad.lo.u32 %r6, %r2, 4, %r5;
            and.b32 %r9, %r11, 1;
            mad.lo.u32 %r7, %r9, 512, %r6;
            st.shared.u32 [%r7], %r10;
            mbarrier.arrive.shared.b64 %d5, [%r20];
        WAIT:
            {wait}
            @!%p2 bra WAIT;
            add.u32 %r8, %r2, 1;
            rem.u32 %r8, %r8, %r3;
            mad.lo.u32 %r8, %r8, 4, %r5;
            mad.lo.u32 %r8, %r9, 512, %r8;
            ld.shared.u32 %r10, [%r8];
            add.u32 %r11, %r11, 1;
            setp.lt.u32 %p3, %r11, 3;
            @%p3 bra ROUND;
            st.global.u32 [%d2], %r10;"
        );
        check_threads(&kernel_after(before, 1, &body), (2, 100), &[0], |i| [(i % 100 + 3) % 100]);
    }
}

/// Counts: several arrivals at once, the pending count, arrivals dropped for good, invalidation.
#[test]
fn counts() {
    let before = ".shared .align 8 .b64 barrier;";
    let body = "
        mov.u32 %r20, barrier;
        mbarrier.init.shared.b64 [%r20], 5;
        mbarrier.arrive.noComplete.shared.b64 %d5, [%r20], 3;
        mbarrier.arrive.shared.b64 %d6, [%r20];
        mbarrier.test_wait.shared.b64 %p1, [%r20], %d5;
        mbarrier.pending_count.b64 %r5, %d5;
        mbarrier.pending_count.b64 %r6, %d6;
        mbarrier.arrive_drop.shared.b64 %d7, [%r20];
        mbarrier.test_wait.shared.b64 %p2, [%r20], %d5;
        mbarrier.arrive.noComplete.shared.b64 %d8, [%r20], 3;
        mbarrier.arrive.shared.b64 _, [%r20];
        mbarrier.test_wait.shared.b64 %p3, [%r20], %d8;
        mbarrier.inval.shared.b64 [%r20];
        selp.u32 %r7, 1, 0, %p1;
        selp.u32 %r8, 1, 0, %p2;
        selp.u32 %r9, 1, 0, %p3;
        st.global.u32 [%d2], %r5;
        st.global.u32 [%d2+4], %r6;
        st.global.u32 [%d2+8], %r7;
        st.global.u32 [%d2+12], %r8;
        st.global.u32 [%d2+16], %r9;";
    check(&kernel_after(before, 5, body), Launch::grid(1).block(1), &[0], &[5, 2, 0, 1, 1]);
}

/// A phase with transactions ends when all bytes have arrived.
#[test]
fn transactions() {
    let before = ".shared .align 8 .b64 barrier;";
    let body = "
        mov.u32 %r20, barrier;
        mbarrier.init.shared.b64 [%r20], 1;
        mbarrier.arrive.expect_tx.shared.b64 %d5, [%r20], 32;
        mbarrier.test_wait.shared.b64 %p1, [%r20], %d5;
        mbarrier.complete_tx.relaxed.cta.shared.b64 [%r20], 16;
        mbarrier.complete_tx.relaxed.cta.shared.b64 [%r20], 16;
        mbarrier.test_wait.shared.b64 %p2, [%r20], %d5;
        selp.u32 %r7, 1, 0, %p1;
        selp.u32 %r8, 1, 0, %p2;
        st.global.u32 [%d2], %r7;
        st.global.u32 [%d2+4], %r8;";
    check(&kernel_after(before, 2, body), Launch::grid(1).block(1), &[0], &[0, 1]);
}

/// Copies of every size, in groups, and with fewer source bytes than the copy's size: the rest is zeroed.
#[test]
fn asynchronous_copies() {
    let before = ".shared .align 16 .b8 box[4096];";
    let body = "
        mov.u32 %r5, box;
        mad.lo.u32 %r5, %r2, 64, %r5;
        mad.wide.u32 %d5, %r0, 64, %d1;
        cp.async.ca.shared.global [%r5], [%d5], 4;
        cp.async.ca.shared.global [%r5+8], [%d5+8], 8;
        cp.async.commit_group;
        cp.async.cg.shared.global [%r5+16], [%d5+16], 16;
        cp.async.commit_group;
        cp.async.wait_group 1;
        mov.u32 %r6, 7;
        cp.async.ca.shared.global [%r5+32], [%d5+32], 16, %r6;
        and.b32 %r7, %r2, 1;
        setp.eq.u32 %p1, %r7, 1;
        cp.async.ca.shared.global [%r5+48], [%d5+48], 8, %p1;
        cp.async.ca.shared.global [%r5+56], [%d5+60], 4, 0;
        cp.async.wait_all;
        mad.wide.u32 %d6, %r0, 64, %d0;
        ld.shared.v4.u32 {%r10, %r11, %r12, %r13}, [%r5];
        st.global.v4.u32 [%d6], {%r10, 0, %r12, %r13};
        ld.shared.v4.u32 {%r10, %r11, %r12, %r13}, [%r5+16];
        st.global.v4.u32 [%d6+16], {%r10, %r11, %r12, %r13};
        ld.shared.v4.u32 {%r10, %r11, %r12, %r13}, [%r5+32];
        st.global.v4.u32 [%d6+32], {%r10, %r11, %r12, %r13};
        ld.shared.v4.u32 {%r10, %r11, %r12, %r13}, [%r5+48];
        st.global.v4.u32 [%d6+48], {%r10, %r11, %r12, 0};";
    let input = Random::new(1).words(16 * 60);
    let mut expected = input.clone();
    for (thread, words) in expected.chunks_mut(16).enumerate() {
        words[1] = 0;
        words[9] &= 0x00ff_ffff;
        (words[10], words[11]) = (0, 0);
        if thread % 2 == 1 {
            (words[12], words[13]) = (0, 0);
        }
        (words[14], words[15]) = (0, 0);
    }
    check(&kernel_after(before, 1, body), Launch::grid(2).block(30), &input, &expected);
}

/// Each thread's copies arrive at the barrier on its behalf.
#[test]
fn copies_arrive_at_a_barrier() {
    let before = ".shared .align 8 .b64 barrier; .shared .align 16 .b8 box[1024];";
    let body = "
        mov.u32 %r20, barrier;
        mov.u32 %r5, box;
        mad.lo.u32 %r6, %r2, 4, %r5;
        setp.eq.u32 %p1, %r2, 0;
        @%p1 mbarrier.init.shared.b64 [%r20], %r3;
        bar.sync 0;
        cp.async.ca.shared.global [%r6], [%d3], 4;
        cp.async.mbarrier.arrive.noinc.shared.b64 [%r20];
    WAIT:
        mbarrier.test_wait.parity.shared.b64 %p2, [%r20], 0;
        @!%p2 bra WAIT;
        xor.b32 %r7, %r2, 63;
        mad.lo.u32 %r7, %r7, 4, %r5;
        ld.shared.u32 %r8, [%r7];
        st.global.u32 [%d2], %r8;";
    let input = Random::new(2).words(64);
    check_threads(&kernel_after(before, 1, body), (1, 64), &input, |i| [input[(i ^ 63) as usize]]);
}
