//! Modules with 32-bit addresses.

use warploom::Launch;

use super::check;

#[test]
fn every_space() {
    let text = ".version 2.3
        .target sm_20
        .address_size 32
        .const .align 4 .u32 fixed[4] = {5, 6, 7, 8};
        .global .align 4 .u32 scale = 100;
        .entry k(.param .u32 out, .param .u32 in) {
            .reg .u32 %r<24>;
            .reg .pred %p<4>;
            .shared .align 4 .u32 box[64];
            .local .align 4 .u32 mine[4];
            ld.param.u32 %r0, [out];
            ld.param.u32 %r1, [in];
            mov.u32 %r2, %tid.x;
            shl.b32 %r3, %r2, 2;
            add.u32 %r4, %r1, %r3;
            ld.global.u32 %r5, [%r4];
            mov.u32 %r6, box;
            add.u32 %r6, %r6, %r3;
            st.shared.u32 [%r6], %r5;
            bar.sync 0;
            xor.b32 %r7, %r3, 12;
            mov.u32 %r8, box;
            add.u32 %r8, %r8, %r7;
            cvta.shared.u32 %r9, %r8;
            ld.u32 %r10, [%r9];
            and.b32 %r11, %r3, 12;
            mov.u32 %r12, mine;
            add.u32 %r12, %r12, %r11;
            st.local.u32 [%r12], %r10;
            cvta.local.u32 %r13, %r12;
            ld.u32 %r14, [%r13];
            mov.u32 %r15, fixed;
            add.u32 %r15, %r15, %r11;
            ld.const.u32 %r16, [%r15];
            ld.global.u32 %r17, [scale];
            mad.lo.u32 %r18, %r16, %r17, %r14;
            atom.global.add.u32 %r19, [scale], 0;
            add.u32 %r20, %r0, %r3;
            st.u32 [%r20+0], %r18;
            ret;
        }";
    let input: Vec<u32> = (0..64).map(|i| i * 1000).collect();
    let expected: Vec<u32> = (0..64).map(|i| (i ^ 3) * 1000 + (5 + i % 4) * 100).collect();
    check(text, Launch::grid(1).block(64), &input, &expected);
}

/// Function pointers have 32 bits too, and offsets may be negative.
#[test]
fn function_pointers() {
    let text = ".version 3.1
        .target sm_20
        .address_size 32
        .func (.param .u32 r) plus(.param .u32 a) {
            .reg .u32 %a; ld.param.u32 %a, [a]; add.u32 %a, %a, 5; st.param.u32 [r], %a; ret;
        }
        .func (.param .u32 r) times(.param .u32 a) {
            .reg .u32 %a; ld.param.u32 %a, [a]; mul.lo.u32 %a, %a, 5; st.param.u32 [r], %a; ret;
        }
        .global .u32 table[2] = {plus, times};
        .entry k(.param .u32 out, .param .u32 in) {
            .reg .u32 %r<16>;
            ld.param.u32 %r0, [out];
            mov.u32 %r2, %tid.x;
            and.b32 %r3, %r2, 1;
            shl.b32 %r3, %r3, 2;
            mov.u32 %r4, table;
            add.u32 %r4, %r4, %r3;
            ld.global.u32 %r5, [%r4];
            {
                .param .u32 a;
                .param .u32 r;
                st.param.u32 [a], %r2;
                p: .callprototype (.param .u32 _) _ (.param .u32 _);
                call (r), %r5, (a), p;
                ld.param.u32 %r6, [r];
            }
            shl.b32 %r7, %r2, 2;
            add.u32 %r7, %r7, %r0;
            add.u32 %r7, %r7, 64;
            st.global.u32 [%r7+-64], %r6;
            ret;
        }";
    let expected: Vec<u32> = (0..40).map(|i| if i % 2 == 0 { i + 5 } else { 5 * i }).collect();
    check(text, Launch::grid(1).block(40), &[0], &expected);
}
