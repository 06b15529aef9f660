//! Calls: parameters and results of every kind, recursion, function pointers, stack frames.

use super::{check_threads, kernel_after};
use crate::support::Random;

/// Four functions and a table of their addresses.
const TABLE: &str = "
    .func (.param .b32 r) twice(.param .b32 a) {
        .reg .b32 %a; ld.param.b32 %a, [a]; shl.b32 %a, %a, 1; st.param.b32 [r], %a; ret;
    }
    .func (.param .b32 r) square(.param .b32 a) {
        .reg .b32 %a; ld.param.b32 %a, [a]; mul.lo.u32 %a, %a, %a; st.param.b32 [r], %a; ret;
    }
    .func (.param .b32 r) count(.param .b32 a) {
        .reg .b32 %a, %n; .reg .pred %p;
        ld.param.b32 %a, [a];
        mov.u32 %n, 0;
    MORE:
        setp.eq.u32 %p, %a, 0;
        @%p bra DONE;
        add.u32 %n, %n, 1;
        shr.u32 %a, %a, 1;
        bra MORE;
    DONE:
        st.param.b32 [r], %n;
        ret;
    }
    .global .align 8 .u64 table[3] = {twice, square, count};";

fn by_table(which: u32, v: u32) -> u32 {
    match which {
        0 => v.wrapping_mul(2),
        1 => v.wrapping_mul(v),
        _ => 32 - v.leading_zeros(),
    }
}

/// Lanes of a warp call three functions with one instruction, and reconverge after it.
#[test]
fn divergent_indirect_calls() {
    let body = "
        ld.global.u32 %r5, [%d3];
        rem.u32 %r6, %r0, 3;
        mov.u64 %d5, table;
        mad.wide.u32 %d5, %r6, 8, %d5;
        ld.global.u64 %d6, [%d5];
        {
            .param .b32 a;
            .param .b32 r;
            st.param.b32 [a], %r5;
            proto: .callprototype (.param .b32 _) _ (.param .b32 _);
            call (r), %d6, (a), proto;
            ld.param.b32 %r7, [r];
        }
        shfl.sync.bfly.b32 %r8, %r7, 1, 31, 0xffffffff;
        st.global.v2.u32 [%d2], {%r7, %r8};";
    let input = Random::new(1).words_below(128, 70000);
    check_threads(&kernel_after(TABLE, 2, body), (2, 64), &input, |i| {
        let value = |i: u32| by_table(i % 3, input[i as usize]);
        [value(i), value(i ^ 1)]
    });
}

/// A function address taken in code, and a call guarded by a predicate.
#[test]
fn guarded_calls() {
    let body = "
        mov.u64 %d5, square;
        and.b32 %r5, %r0, 1;
        setp.eq.u32 %p1, %r5, 1;
        mov.u32 %r7, 1000;
        {
            .param .b32 a;
            .param .b32 r;
            st.param.b32 [a], %r0;
            @!%p1 bra SKIP;
            targets: .calltargets twice, square;
            call (r), %d5, (a), targets;
            ld.param.b32 %r7, [r];
        SKIP:
        }
        st.global.u32 [%d2], %r7;";
    check_threads(&kernel_after(TABLE, 1, body), (1, 70), &[0], |i| [if i % 2 == 1 { i * i } else { 1000 }]);
}

/// Lanes recurse to different depths; each activation keeps its own registers and local array.
#[test]
fn divergent_recursion() {
    let before = "
        .func (.param .b32 r) sum(.param .b32 n, .param .b32 salt) {
            .local .align 8 .b8 frame[16];
            .reg .b32 %n, %m, %s, %t, %u;
            .reg .b64 %f, %g;
            .reg .pred %p;
            ld.param.b32 %n, [n];
            ld.param.b32 %s, [salt];
            mov.u64 %f, frame;
            cvta.local.u64 %g, %f;
            st.u32 [%g+4], %n;
            st.local.u32 [%f+8], %s;
            mov.u32 %t, 0;
            setp.eq.u32 %p, %n, 0;
            @%p bra BOTTOM;
            sub.u32 %m, %n, 1;
            mad.lo.u32 %u, %s, 3, 1;
            {
                .param .b32 a;
                .param .b32 b;
                .param .b32 c;
                st.param.b32 [a], %m;
                st.param.b32 [b], %u;
                call (c), sum, (a, b);
                ld.param.b32 %t, [c];
            }
        BOTTOM:
            ld.local.u32 %m, [%f+4];
            ld.u32 %u, [%g+8];
            mad.lo.u32 %t, %m, %u, %t;
            st.param.b32 [r], %t;
            ret;
        }";
    let body = "
        ld.global.u32 %r5, [%d3];
        {
            .param .b32 a;
            .param .b32 b;
            .param .b32 c;
            st.param.b32 [a], %r5;
            st.param.b32 [b], %r0;
            call (c), sum, (a, b);
            ld.param.b32 %r6, [c];
        }
        st.global.u32 [%d2], %r6;";
    let input = Random::new(2).words_below(150, 12);
    check_threads(&kernel_after(before, 1, body), (3, 50), &input, |i| {
        fn sum(n: u32, salt: u32) -> u32 {
            let below = if n == 0 { 0 } else { sum(n - 1, salt.wrapping_mul(3).wrapping_add(1)) };
            n.wrapping_mul(salt).wrapping_add(below)
        }
        [sum(input[i as usize], i)]
    });
}

/// Two functions that call each other, one of them only for some lanes.
#[test]
fn mutual_recursion() {
    let before = "
        .func (.param .b32 r) odd(.param .b32 n);
        .func (.param .b32 r) even(.param .b32 n) {
            .reg .b32 %n; .reg .pred %p;
            ld.param.b32 %n, [n];
            setp.eq.u32 %p, %n, 0;
            @%p bra YES;
            sub.u32 %n, %n, 1;
            { .param .b32 a; .param .b32 b; st.param.b32 [a], %n; call.uni (b), odd, (a); ld.param.b32 %n, [b]; }
            st.param.b32 [r], %n;
            ret;
        YES:
            st.param.b32 [r], 1;
            ret;
        }
        .func (.param .b32 r) odd(.param .b32 n) {
            .reg .b32 %n; .reg .pred %p;
            ld.param.b32 %n, [n];
            setp.eq.u32 %p, %n, 0;
            @%p bra NO;
            sub.u32 %n, %n, 1;
            { .param .b32 a; .param .b32 b; st.param.b32 [a], %n; call.uni (b), even, (a); ld.param.b32 %n, [b]; }
            st.param.b32 [r], %n;
            ret;
        NO:
            st.param.b32 [r], 0;
            ret;
        }";
    let body = "
        ld.global.u32 %r5, [%d3];
        { .param .b32 a; .param .b32 b; st.param.b32 [a], %r5; call (b), even, (a); ld.param.b32 %r6, [b]; }
        st.global.u32 [%d2], %r6;";
    let input = Random::new(3).words_below(64, 20);
    check_threads(&kernel_after(before, 1, body), (1, 64), &input, |i| {
        [u32::from(input[i as usize].is_multiple_of(2))]
    });
}

/// Structs by value as parameter and result, with a byte and a 64-bit field. The callee may write its copy.
#[test]
fn structs_by_value() {
    let before = "
        .func (.param .align 8 .b8 r[24]) turn(.param .align 8 .b8 s[24], .param .b32 k) {
            .reg .b32 %a, %b, %k;
            .reg .b64 %c;
            .reg .b16 %h;
            ld.param.b32 %a, [s];
            ld.param.u8 %h, [s+4];
            ld.param.b64 %c, [s+8];
            ld.param.b32 %b, [s+20];
            ld.param.b32 %k, [k];
            add.u32 %a, %a, %k;
            add.u16 %h, %h, 1;
            add.u64 %c, %c, %c;
            st.param.b32 [r+20], %a;
            st.param.b8 [r+4], %h;
            st.param.b64 [r+8], %c;
            st.param.b32 [r], %b;
            ret;
        }";
    let body = "
        {
            .param .align 8 .b8 s[24];
            .param .b32 k;
            .param .align 8 .b8 r[24];
            st.param.b32 [s], %r0;
            st.param.b8 [s+4], %r1;
            cvt.u64.u32 %d5, %r0;
            mul.lo.u64 %d5, %d5, 0x100000001;
            st.param.b64 [s+8], %d5;
            st.param.b32 [s+20], 77;
            st.param.b32 [k], 1000;
            call (r), turn, (s, k);
            ld.param.b32 %r5, [r];
            ld.param.u8 %r6, [r+4];
            ld.param.b64 %d6, [r+8];
            ld.param.b32 %r7, [r+20];
            ld.param.b32 %r8, [s];
        }
        st.global.v2.u32 [%d2], {%r5, %r6};
        st.global.v2.u32 [%d2+8], {%r7, %r8};
        st.global.u64 [%d2+16], %d6;";
    check_threads(&kernel_after(before, 6, body), (2, 40), &[0], |i| {
        [77, (i % 40 % 32) + 1, i + 1000, i, 2 * i, 2 * i]
    });
}

/// Every width of scalar, several at once, and parameters in registers with two results.
#[test]
fn scalars_of_every_width() {
    let before = "
        .func (.reg .u32 %lo, .reg .u64 %hi) split(.reg .u64 %x, .reg .u16 %h, .reg .f64 %f) {
            .reg .b64 %t;
            .reg .b32 %u;
            cvt.u32.u64 %lo, %x;
            cvt.u32.u16 %u, %h;
            add.u32 %lo, %lo, %u;
            mov.b64 %t, %f;
            add.u64 %hi, %x, %t;
            ret;
        }
        .func (.param .b8 r) low(.param .b8 a, .param .b16 b) {
            .reg .b16 %a, %b;
            ld.param.b8 %a, [a];
            ld.param.b16 %b, [b];
            add.u16 %a, %a, %b;
            st.param.b8 [r], %a;
            ret;
        }";
    let body = "
        .reg .f64 %f1;
        cvt.u64.u32 %d5, %r0;
        cvt.u16.u32 %h1, %r1;
        mov.f64 %f1, 0d3FF0000000000000;
        call (%r5, %d6), split, (%d5, %h1, %f1);
        {
            .param .b8 a;
            .param .b16 b;
            .param .b8 r;
            st.param.b8 [a], %h1;
            st.param.b16 [b], 255;
            call (r), low, (a, b);
            ld.param.b8 %r6, [r];
        }
        st.global.v2.u32 [%d2], {%r5, %r6};
        st.global.u64 [%d2+8], %d6;";
    check_threads(&kernel_after(before, 4, body), (1, 64), &[0], |i| {
        let lane = i % 32;
        [i + lane, (lane + 255) & 0xff, i, 0x3ff0_0000]
    });
}

/// Lanes return from a function at different places and different times.
#[test]
fn divergent_returns() {
    let before = "
        .func (.param .b32 r) pick(.param .b32 n) {
            .reg .b32 %n, %k; .reg .pred %p;
            ld.param.b32 %n, [n];
            mov.u32 %k, 0;
        AGAIN:
            st.param.b32 [r], %k;
            setp.ge.u32 %p, %k, %n;
            @%p ret;
            add.u32 %k, %k, 2;
            bra AGAIN;
        }";
    let body = "
        { .param .b32 a; .param .b32 b; st.param.b32 [a], %r1; call (b), pick, (a); ld.param.b32 %r5, [b]; }
        { .param .b32 a; .param .b32 b; st.param.b32 [a], %r5; call (b), pick, (a); ld.param.b32 %r6, [b]; }
        shfl.sync.idx.b32 %r7, %r6, 5, 31, 0xffffffff;
        st.global.v2.u32 [%d2], {%r6, %r7};";
    check_threads(&kernel_after(before, 2, body), (1, 64), &[0], |i| [(i % 32).next_multiple_of(2), 6]);
}

/// A thread may end inside a function.
#[test]
fn exits_inside_functions() {
    let before = "
        .func leave(.param .b32 n, .param .b64 at) {
            .reg .b32 %n; .reg .b64 %at; .reg .pred %p;
            ld.param.b32 %n, [n];
            ld.param.b64 %at, [at];
            and.b32 %n, %n, 1;
            setp.eq.u32 %p, %n, 1;
            @%p st.u32 [%at], 5;
            @%p exit;
            st.u32 [%at], 6;
            ret;
        }";
    let body = "
        { .param .b32 a; .param .b64 b; st.param.b32 [a], %r0; st.param.b64 [b], %d2; call leave, (a, b); }
        ld.global.u32 %r5, [%d2];
        add.u32 %r5, %r5, 100;
        st.global.u32 [%d2], %r5;";
    check_threads(&kernel_after(before, 1, body), (2, 50), &[0], |i| [if i % 2 == 1 { 5 } else { 106 }]);
}

/// A pointer to the caller's local array as an argument: generic addresses of frames differ from call to call.
#[test]
fn pointers_to_callers_frames() {
    let before = "
        .func add_up(.param .b64 where, .param .b32 depth) {
            .local .align 4 .b8 mine[8];
            .reg .b64 %w, %m; .reg .b32 %d, %v, %x; .reg .pred %p;
            ld.param.b64 %w, [where];
            ld.param.b32 %d, [depth];
            ld.u32 %v, [%w];
            add.u32 %v, %v, %d;
            mov.u64 %m, mine;
            cvta.local.u64 %m, %m;
            st.u32 [%m], %d;
            st.u32 [%m+4], %v;
            setp.eq.u32 %p, %d, 0;
            @%p bra OUT;
            sub.u32 %d, %d, 1;
            add.u64 %m, %m, 4;
            { .param .b64 a; .param .b32 b; st.param.b64 [a], %m; st.param.b32 [b], %d; call add_up, (a, b); }
            ld.u32 %v, [%m];
            ld.local.u32 %x, [mine];
            mad.lo.u32 %v, %x, 100, %v;
        OUT:
            st.u32 [%w], %v;
            ret;
        }";
    let body = "
        .local .align 4 .u32 total;
        mov.u64 %d5, total;
        cvta.local.u64 %d5, %d5;
        st.u32 [%d5], %r0;
        rem.u32 %r5, %r0, 7;
        { .param .b64 a; .param .b32 b; st.param.b64 [a], %d5; st.param.b32 [b], %r5; call add_up, (a, b); }
        ld.local.u32 %r6, [total];
        st.global.u32 [%d2], %r6;";
    check_threads(&kernel_after(before, 1, body), (1, 64), &[0], |i| [i + 101 * (0..=i % 7).sum::<u32>()]);
}
