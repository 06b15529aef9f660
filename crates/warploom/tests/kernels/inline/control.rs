//! Divergence: branches, loops, exits and returns that lanes take at different times.

use super::{check, check_threads, kernel, kernel_after};
use crate::support::Random;
use warploom::Launch;

#[test]
fn lanes_exit_one_by_one() {
    let body = "
        mov.u32 %r5, 0;
    AGAIN:
        st.global.u32 [%d2], %r5;
        setp.ge.u32 %p1, %r5, %r1;
        @%p1 exit;
        add.u32 %r5, %r5, 1;
        bra AGAIN;";
    check_threads(&kernel(1, body), (2, 50), &[0], |i| [i % 50 % 32]);
}

#[test]
fn lanes_return_early() {
    let body = "
        and.b32 %r5, %r2, 3;
        setp.eq.u32 %p1, %r5, 0;
        st.global.u32 [%d2], 1;
        @%p1 ret;
        st.global.u32 [%d2], 2;
        setp.eq.u32 %p2, %r5, 1;
        @!%p2 bra LATER;
        st.global.u32 [%d2], 3;
        ret;
    LATER:
        setp.eq.u32 %p3, %r5, 2;
        @%p3 exit;
        st.global.u32 [%d2], 4;";
    check_threads(&kernel(1, body), (1, 100), &[0], |i| [[1, 3, 2, 4][i as usize % 4]]);
}

/// Five levels of branches, each on another bit of the lane, with a sum along the path.
#[test]
fn nested_branches() {
    fn level(bit: u32) -> String {
        if bit == 5 {
            return "add.u32 %r10, %r10, 1;\n".to_string();
        }
        let inner = level(bit + 1);
        let labelled = |side: &str| {
            format!("{{\n{inner}}}\nmad.lo.u32 %r10, %r10, 3, {};\n", if side == "T" { bit + 1 } else { 0 })
        };
        format!(
            "{{
            .reg .pred %q;
            and.b32 %r11, %r1, {mask};
            setp.ne.u32 %q, %r11, 0;
            @%q bra TAKEN;
            {fallen}
            bra JOIN;
        TAKEN:
            {taken}
        JOIN:
            }}\n",
            mask = 1 << bit,
            fallen = labelled("F"),
            taken = labelled("T"),
        )
    }
    let body = format!("mov.u32 %r10, %r0;\n{}st.global.u32 [%d2], %r10;", level(0));
    check_threads(&kernel(1, &body), (2, 64), &[0], |i| {
        let sum = (0..5).rev().fold(i + 1, |sum, bit| 3 * sum + if i >> bit & 1 == 1 { bit + 1 } else { 0 });
        [sum]
    });
}

/// Nested loops with a different trip count per lane, a `break` and a `continue`.
#[test]
fn loops() {
    let body = "
        ld.global.u32 %r5, [%d3];
        mov.u32 %r6, 0;
        mov.u32 %r7, 0;
    OUTER:
        setp.ge.u32 %p1, %r7, %r5;
        @%p1 bra END;
        add.u32 %r7, %r7, 1;
        and.b32 %r8, %r7, 3;
        setp.eq.u32 %p2, %r8, 3;
        @%p2 bra OUTER;
        mov.u32 %r9, 0;
    INNER:
        add.u32 %r6, %r6, %r9;
        add.u32 %r6, %r6, 1;
        add.u32 %r9, %r9, 1;
        setp.gt.u32 %p3, %r6, 500;
        @%p3 bra END;
        setp.lt.u32 %p4, %r9, %r7;
        @%p4 bra INNER;
        bra OUTER;
    END:
        st.global.u32 [%d2], %r6;";
    let input = Random::new(1).words_below(96, 24);
    check_threads(&kernel(1, body), (1, 96), &input, |i| {
        let mut sum = 0;
        'outer: for turn in (1..=input[i as usize]).filter(|turn| turn % 4 != 3) {
            for step in 0..turn {
                sum += step + 1;
                if sum > 500 {
                    break 'outer;
                }
            }
        }
        [sum]
    });
}

/// Guards on instructions other than branches, of both polarities.
#[test]
fn guards() {
    let body = "
        and.b32 %r5, %r1, 1;
        setp.eq.u32 %p1, %r5, 1;
        mov.u32 %r6, 5;
        @%p1 add.u32 %r6, %r6, 10;
        @!%p1 mul.lo.u32 %r6, %r6, 7;
        @%p1 setp.lt.u32 %p2, %r1, 16;
        @!%p1 setp.lt.u32 %p2, %r1, 8;
        @%p2 st.global.u32 [%d2], %r6;
        @!%p2 st.global.u32 [%d2], %r1;";
    check_threads(&kernel(1, body), (1, 64), &[0], |i| {
        let lane = i % 32;
        let (odd, value) = (lane % 2 == 1, if lane % 2 == 1 { 15 } else { 35 });
        [if lane < if odd { 16 } else { 8 } { value } else { lane }]
    });
}

/// An indexed branch that sends lanes to five labels, two of them equal, and falls through to the next.
#[test]
fn indexed_branches() {
    let body = "
        rem.u32 %r5, %r0, 6;
        mov.u32 %r6, 0;
    ts: .branchtargets A, B, C, A, D, LAST;
        brx.idx %r5, ts;
    A:
        add.u32 %r6, %r6, 1;
    B:
        add.u32 %r6, %r6, 10;
        bra LAST;
    C:
        add.u32 %r6, %r6, 100;
    D:
        add.u32 %r6, %r6, 1000;
    LAST:
        st.global.u32 [%d2], %r6;";
    check_threads(&kernel(1, body), (2, 70), &[0], |i| [[11, 10, 1100, 11, 1000, 0][i as usize % 6]]);
}

/// A state machine: an indexed branch in a loop, each lane in its own state.
#[test]
fn indexed_branches_in_a_loop() {
    let body = "
        ld.global.u32 %r5, [%d3];
        mov.u32 %r6, 0;
        mov.u32 %r7, 0;
    ts: .branchtargets HALVE, GROW, STOP, SKIP;
    STEP:
        and.b32 %r8, %r5, 3;
        setp.ge.u32 %p1, %r7, 30;
        selp.u32 %r8, 2, %r8, %p1;
        add.u32 %r7, %r7, 1;
        brx.idx %r8, ts;
    HALVE:
        shr.u32 %r5, %r5, 1;
        add.u32 %r6, %r6, 1;
        bra STEP;
    GROW:
        mad.lo.u32 %r5, %r5, 5, 3;
        add.u32 %r6, %r6, 100;
        bra STEP;
    SKIP:
        shr.u32 %r5, %r5, 2;
        bra STEP;
    STOP:
        st.global.v2.u32 [%d2], {%r5, %r6};";
    let input = Random::new(2).words(128);
    check_threads(&kernel(2, body), (1, 128), &input, |i| {
        let (mut v, mut sum) = (input[i as usize], 0);
        for _ in 0..30 {
            match v % 4 {
                0 => (v, sum) = (v >> 1, sum + 1),
                1 => (v, sum) = (v.wrapping_mul(5).wrapping_add(3), sum + 100),
                2 => break,
                _ => v >>= 2,
            }
        }
        [v, sum]
    });
}

/// Lanes reconverge after a branch: all of them exchange a value.
#[test]
fn lanes_meet_after_a_branch() {
    let body = "
        setp.lt.u32 %p1, %r1, 10;
        mov.u32 %r5, 0;
        @%p1 bra LOW;
        mul.lo.u32 %r5, %r1, 3;
        bra MEET;
    LOW:
        add.u32 %r5, %r1, 1000;
    MEET:
        shfl.sync.bfly.b32 %r6, %r5, 31, 31, 0xffffffff;
        st.global.u32 [%d2], %r6;";
    check_threads(&kernel(1, body), (1, 64), &[0], |i| {
        let other = 31 - i % 32;
        [if other < 10 { other + 1000 } else { 3 * other }]
    });
}

/// `bar.warp.sync` waits for the lanes in its mask.
#[test]
fn lanes_wait_for_each_other() {
    let body = "
        mov.u32 %r5, box;
        mad.lo.u32 %r6, %r2, 4, %r5;
        mov.u32 %r7, 0;
    WORK:
        add.u32 %r7, %r7, 3;
        setp.lt.u32 %p1, %r7, %r1;
        @%p1 bra WORK;
        st.shared.u32 [%r6], %r7;
        bar.warp.sync 0xffffffff;
        xor.b32 %r8, %r2, 17;
        mad.lo.u32 %r8, %r8, 4, %r5;
        ld.shared.u32 %r9, [%r8];
        st.global.u32 [%d2], %r9;";
    check_threads(&kernel_after(".shared .align 4 .b8 box[512];", 1, body), (1, 96), &[0], |i| {
        [((i % 32) ^ 17).div_ceil(3).max(1) * 3]
    });
}

/// Spinning on a word that another warp of the CTA writes, and on one that another CTA writes.
#[test]
fn spinning_on_other_warps() {
    let body = "
        mov.u32 %r5, flag;
        setp.lt.u32 %p1, %r2, 64;
        @!%p1 bra GIVE;
    WAIT:
        ld.volatile.shared.u32 %r6, [%r5];
        nanosleep.u32 20;
        setp.eq.u32 %p2, %r6, 0;
        @%p2 bra WAIT;
        st.global.u32 [%d2], %r6;
        ret;
    GIVE:
        setp.eq.u32 %p3, %r2, 100;
        @%p3 st.volatile.shared.u32 [%r5], 9;";
    let before = ".shared .align 4 .u32 flag;";
    let expected: Vec<u32> = (0..256).map(|i| if i % 128 < 64 { 9 } else { 0 }).collect();
    check(&kernel_after(before, 1, body), Launch::grid(2).block(128), &[0], &expected);
}
