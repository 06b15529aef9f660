//! Which stores a thread sees: its own, those of its CTA after a barrier, those of other CTAs after a fence.

use warploom::Launch;

use super::{check, check_threads, kernel};

/// Advances the thread's random number generator in `%r10`.
const STEP: &str = "mad.lo.u32 %r10, %r10, 1664525, 1013904223;";

fn step(x: u32) -> u32 {
    x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223)
}

/// Each thread writes bytes, halves, words and pairs of its 16 words at random and reads them in between: with plain
/// and volatile loads, bypassing the L1, and with atomics. Words of neighbouring threads share lines and sectors.
#[test]
fn own_stores() {
    let body = format!(
        "mad.lo.u32 %r10, %r0, 77, 5;
        mov.u32 %r11, 0;
        mov.u32 %r12, 0;
    AGAIN:
        {STEP}
        shr.u32 %r13, %r10, 8;
        and.b32 %r14, %r13, 15;
        mad.wide.u32 %d5, %r14, 4, %d2;
        shr.u32 %r15, %r10, 12;
        and.b32 %r15, %r15, 3;
        ts: .branchtargets PLAIN, VOLATILE, GLOBAL, ATOMIC;
        brx.idx %r15, ts;
    PLAIN:
        ld.global.u32 %r16, [%d5];
        bra.uni READ;
    VOLATILE:
        ld.volatile.global.u32 %r16, [%d5];
        bra.uni READ;
    GLOBAL:
        ld.global.cg.u32 %r16, [%d5];
        bra.uni READ;
    ATOMIC:
        atom.global.add.u32 %r16, [%d5], 3;
    READ:
        mad.lo.u32 %r11, %r11, 31, %r16;
        shr.u32 %r14, %r10, 14;
        and.b32 %r14, %r14, 15;
        mad.wide.u32 %d5, %r14, 4, %d2;
        and.b32 %r17, %r14, 14;
        mad.wide.u32 %d6, %r17, 4, %d2;
        shr.u32 %r15, %r10, 18;
        and.b32 %r15, %r15, 3;
        us: .branchtargets BYTE, HALF, WORD, PAIR;
        brx.idx %r15, us;
    BYTE:
        st.global.u8 [%d5+1], %r10;
        bra.uni WRITTEN;
    HALF:
        st.global.u16 [%d5+2], %r10;
        bra.uni WRITTEN;
    WORD:
        st.global.u32 [%d5], %r10;
        bra.uni WRITTEN;
    PAIR:
        st.global.v2.u32 [%d6], {{%r10, %r11}};
    WRITTEN:
        add.u32 %r12, %r12, 1;
        setp.lt.u32 %p1, %r12, 60;
        @%p1 bra AGAIN;
        st.global.u32 [%d2+64], %r11;"
    );
    check_threads(&kernel(18, &body), (3, 70), &[0], |i| {
        let (mut words, mut x, mut sum) = ([0u32; 18], i * 77 + 5, 0u32);
        for _ in 0..60 {
            x = step(x);
            let from = (x >> 8 & 15) as usize;
            sum = sum.wrapping_mul(31).wrapping_add(words[from]);
            if x >> 12 & 3 == 3 {
                words[from] = words[from].wrapping_add(3);
            }
            let to = (x >> 14 & 15) as usize;
            match x >> 18 & 3 {
                0 => words[to] = words[to] & !0xff00 | (x & 0xff) << 8,
                1 => words[to] = words[to] & 0xffff | x << 16,
                2 => words[to] = x,
                _ => (words[to & 14], words[to & 14 | 1]) = (x, sum),
            }
        }
        words[16] = sum;
        words
    });
}

/// Round after round, each thread passes a value to another thread of its CTA through global memory. CTAs share lines.
#[test]
fn neighbours_after_a_barrier() {
    const THREADS: u32 = 100;
    let body = "
        add.u32 %r5, %r2, 37;
        rem.u32 %r5, %r5, %r3;
        mad.lo.u32 %r5, %r4, %r3, %r5;
        mad.wide.u32 %d5, %r5, 4, %d0;
        mov.u32 %r10, %r0;
        mov.u32 %r12, 0;
    AGAIN:
        st.global.u32 [%d2], %r10;
        bar.sync 0;
        ld.global.u32 %r11, [%d5];
        mad.lo.u32 %r10, %r10, 3, %r11;
        bar.sync 0;
        add.u32 %r12, %r12, 1;
        setp.lt.u32 %p1, %r12, 12;
        @%p1 bra AGAIN;";
    let mut last: Vec<u32> = (0..5 * THREADS).collect();
    for _ in 1..12 {
        let other = |i: usize| i / 100 * 100 + (i % 100 + 37) % 100;
        last = (0..last.len()).map(|i| last[i].wrapping_mul(3).wrapping_add(last[other(i)])).collect();
    }
    check(&kernel(1, body), Launch::grid(5).block(THREADS), &[0], &last);
}

/// Every second CTA waits for the one before it to publish its values. It has read their addresses before, so its L1
/// may hold stale copies. `tell` sets the flag at `%d6`; `ask` reads it into `%r20`; `and_then` ends the wait.
fn message(tell: &str, ask: &str, and_then: &str) {
    const THREADS: u32 = 70;
    let body = format!(
        "mad.wide.u32 %d6, %r4, 4, %d1;
        setp.eq.u32 %p1, %r2, 0;
        and.b32 %r5, %r4, 1;
        setp.eq.u32 %p2, %r5, 1;
        @%p2 bra WAITS;
        mad.lo.u32 %r10, %r0, 7, 1;
        st.global.u32 [%d2], %r10;
        bar.sync 0;
        @!%p1 bra DONE;
        {tell}
        bra DONE;
    WAITS:
        sub.u32 %r7, %r0, %r3;
        mad.wide.u32 %d5, %r7, 4, %d0;
        ld.global.u32 %r12, [%d5];
        @!%p1 bra READ;
    AGAIN:
        {ask}
        setp.eq.u32 %p3, %r20, 0;
        @%p3 bra AGAIN;
        {and_then}
    READ:
        bar.sync 0;
        ld.global.u32 %r13, [%d5];
        add.u32 %r13, %r13, 1000;
        st.global.u32 [%d2], %r13;
    DONE:"
    );
    check_threads(&kernel(1, &body), (8, THREADS), &[0; 8], |i| {
        if (i / THREADS).is_multiple_of(2) { [7 * i + 1] } else { [7 * (i - THREADS) + 1001] }
    });
}

#[test]
fn messages_with_fences() {
    message(
        "membar.gl;\nst.volatile.global.u32 [%d6], 1;",
        "ld.volatile.global.u32 %r20, [%d6+-4];",
        "membar.gl;",
    );
}

#[test]
fn messages_with_release_and_acquire() {
    message("st.release.gpu.global.u32 [%d6], 1;", "ld.acquire.gpu.global.u32 %r20, [%d6+-4];", "");
}

#[test]
fn messages_with_atomics() {
    message(
        "fence.acq_rel.gpu;\natom.global.exch.b32 %r21, [%d6], 1;",
        "atom.global.cas.b32 %r20, [%d6+-4], 1, 0;",
        "fence.acq_rel.gpu;",
    );
}
