//! Loads and stores: spaces, generic addresses, vectors, narrow and wide registers, parameters.

use warploom::{Arg, Launch, args};

use super::{check, check_threads, kernel, kernel_after, module};
use crate::support::{MACHINES, Random};

const WORDS: &str = "
    .global .align 4 .u32 in_global[4] = {10, 11, 12, 13};
    .const .align 4 .u32 in_const[4] = {40, 41, 42, 43};
    .shared .align 4 .u32 in_shared[64];";

/// The thread's generic address in `%d10`: in global, shared, local or constant memory, depending on the lane.
const ADDRESS: &str = "
    .local .align 4 .u32 in_local[4];
    and.b32 %r5, %r2, 3;
    mov.u64 %d5, in_global;
    cvta.global.u64 %d5, %d5;
    mov.u64 %d6, in_shared;
    cvta.shared.u64 %d6, %d6;
    mad.wide.u32 %d6, %r2, 4, %d6;
    mov.u64 %d7, in_local;
    cvta.local.u64 %d7, %d7;
    mov.u64 %d8, in_const;
    cvta.const.u64 %d8, %d8;
    setp.eq.u32 %p1, %r5, 1;
    setp.eq.u32 %p2, %r5, 2;
    setp.eq.u32 %p3, %r5, 3;
    selp.b64 %d10, %d6, %d5, %p1;
    selp.b64 %d10, %d7, %d10, %p2;
    selp.b64 %d10, %d8, %d10, %p3;";

#[test]
fn lanes_of_one_load_in_four_spaces() {
    let body = format!(
        "{ADDRESS}
        add.u32 %r6, %r2, 20;
        add.u32 %r7, %r2, 30;
        st.u32 [%d6], %r6;
        st.u32 [%d7], %r7;
        ld.u32 %r8, [%d10];
        st.u32 [%d2], %r8;"
    );
    check_threads(&kernel_after(WORDS, 1, &body), (2, 64), &[0], |i| {
        let thread = i % 64;
        [[10, thread + 20, thread + 30, 40][thread as usize % 4]]
    });
}

#[test]
fn lanes_of_one_store_in_three_spaces() {
    let body = format!(
        "{ADDRESS}
        @%p3 ret;
        selp.b64 %d10, %d10, %d2, %p1;
        selp.b64 %d10, %d7, %d10, %p2;
        mad.lo.u32 %r6, %r2, 5, 1;
        st.u32 [%d10], %r6;
        ld.global.u32 %r9, [%d2];
        @%p1 ld.shared.u32 %r9, [in_shared+4];
        @%p2 ld.local.u32 %r9, [in_local];
        st.global.u32 [%d2+4], %r9;"
    );
    check_threads(&kernel_after(WORDS, 2, &body), (1, 4), &[0], |i| match i {
        0 => [1, 1],
        1 => [0, 6],
        2 => [0, 11],
        _ => [0, 0],
    });
}

#[test]
fn spaces_of_addresses() {
    let body = format!(
        "{ADDRESS}
        isspacep.global %p4, %d10;
        isspacep.shared %p5, %d10;
        isspacep.local %p6, %d10;
        isspacep.const %p7, %d10;
        selp.u32 %r10, 1, 0, %p4;
        selp.u32 %r11, 2, 0, %p5;
        selp.u32 %r12, 4, 0, %p6;
        selp.u32 %r13, 8, 0, %p7;
        add.u32 %r10, %r10, %r11;
        add.u32 %r12, %r12, %r13;
        add.u32 %r10, %r10, %r12;
        st.u32 [%d2], %r10;"
    );
    check_threads(&kernel_after(WORDS, 1, &body), (1, 64), &[0], |i| [1 << (i % 4)]);
}

/// Conversion to a generic address and back gives the original address.
#[test]
fn there_and_back() {
    let body = format!(
        "{ADDRESS}
        cvta.to.shared.u64 %d11, %d6;
        cvta.to.local.u64 %d12, %d7;
        cvta.to.const.u64 %d13, %d8;
        cvta.to.global.u64 %d14, %d5;
        st.shared.u32 [%d11], 5;
        st.local.u32 [%d12], 6;
        ld.shared.u32 %r6, [%d11];
        ld.local.u32 %r7, [%d12];
        ld.const.u32 %r8, [%d13+8];
        ld.global.u32 %r9, [%d14+12];
        st.global.v4.u32 [%d2], {{%r6, %r7, %r8, %r9}};"
    );
    check_threads(&kernel_after(WORDS, 4, &body), (1, 33), &[0], |_| [5, 6, 42, 13]);
}

/// Vectors of every element size and length, through global, shared and local memory.
#[test]
fn vectors() {
    for (bits, count) in [(8, 2), (8, 4), (16, 2), (16, 4), (32, 2), (32, 4), (64, 2)] {
        for kind in ["b", "u", "s"] {
            let register = |at: usize| match bits {
                8 | 16 => format!("%h{}", at + 1),
                32 => format!("%r{}", at + 10),
                _ => format!("%d{}", at + 10),
            };
            let list = (0..count).map(register).collect::<Vec<_>>().join(", ");
            let bytes = bits / 8 * count;
            let ty = format!("v{count}.{kind}{bits}");
            let body = format!(
                ".local .align 16 .b8 mine[32];
                mov.u32 %r5, box;
                mad.lo.u32 %r5, %r2, 16, %r5;
                mad.wide.u32 %d5, %r0, {bytes}, %d1;
                mad.wide.u32 %d6, %r0, {bytes}, %d0;
                ld.global.{ty} {{{list}}}, [%d5];
                st.shared.{ty} [%r5], {{{list}}};
                ld.shared.{ty} {{{list}}}, [%r5];
                st.local.{ty} [mine+16], {{{list}}};
                ld.local.{ty} {{{list}}}, [mine+16];
                st.global.{ty} [%d6], {{{list}}};"
            );
            let input = Random::new(bits as u64).words(40 * bytes / 4 + 1);
            let input = &input[..40 * bytes / 4];
            check(
                &kernel_after(".shared .align 16 .b8 box[1024];", 1, &body),
                Launch::grid(2).block(20),
                input,
                input,
            );
        }
    }
}

/// Vectors of 32 bytes, which newer chips have.
#[test]
fn long_vectors() {
    let words = (10..18).map(|r| format!("%r{r}")).collect::<Vec<_>>().join(", ");
    let pairs = (10..14).map(|d| format!("%d{d}")).collect::<Vec<_>>().join(", ");
    for (ty, list) in [("v8.b32", words), ("v4.b64", pairs)] {
        let body = format!(
            "mad.wide.u32 %d5, %r0, 32, %d1;
            ld.global.{ty} {{{list}}}, [%d5];
            st.global.{ty} [%d2], {{{list}}};"
        );
        let text = kernel(8, &body).replace(".version 8.0\n.target sm_90", ".version 8.8\n.target sm_100");
        let input = Random::new(9).words(8 * 40);
        check(&text, Launch::grid(2).block(20), &input, &input);
    }
}

/// Elements may go to a sink, and accesses may be volatile or have any cache operator.
#[test]
fn sinks_and_cache_operators() {
    let body = "
        mad.wide.u32 %d5, %r0, 16, %d1;
        ld.global.nc.v4.u32 {_, %r10, _, %r11}, [%d5];
        ld.volatile.global.u32 %r12, [%d5];
        ld.global.cg.u32 %r13, [%d5+8];
        ld.relaxed.gpu.global.u32 %r14, [%d5+4];
        ld.global.L1::no_allocate.u32 %r14, [%d5+4];
        st.global.wt.u32 [%d2], %r12;
        st.volatile.global.u32 [%d2+4], %r10;
        st.global.cs.u32 [%d2+8], %r13;
        st.relaxed.sys.global.u32 [%d2+12], %r11;";
    let input = Random::new(4).words(4 * 70);
    check(&kernel(4, body), Launch::grid(2).block(35), &input, &input);
}

/// A load into a wider register extends by its type; a store takes the low bits.
#[test]
fn narrow_accesses_and_wide_registers() {
    let body = "
        ld.global.u8 %r5, [%d3];
        ld.global.s8 %r6, [%d3];
        ld.global.u16 %r7, [%d3+2];
        ld.global.s16 %r8, [%d3+2];
        ld.global.u8 %h1, [%d3+1];
        ld.global.s8 %h2, [%d3+1];
        ld.global.s8 %d10, [%d3+3];
        ld.global.u8 %d11, [%d3+3];
        ld.global.s16 %d12, [%d3];
        ld.global.s32 %d13, [%d3];
        ld.global.u32 %d14, [%d3];
        cvt.u32.u16 %r9, %h1;
        cvt.u32.u16 %r10, %h2;
        st.global.v4.u32 [%d2], {%r5, %r6, %r7, %r8};
        st.global.v2.u32 [%d2+16], {%r9, %r10};
        st.global.u64 [%d2+24], %d10;
        st.global.u64 [%d2+32], %d11;
        st.global.u64 [%d2+40], %d12;
        st.global.u64 [%d2+48], %d13;
        st.global.u64 [%d2+56], %d14;
        st.global.u8 [%d2+64], %r8;
        st.global.u16 [%d2+66], %d10;
        st.global.u8 [%d2+68], %h2;
        st.global.u32 [%d2+72], %d13;";
    let input = Random::new(5).words(64);
    check_threads::<20>(&kernel(20, body), (1, 64), &input, |i| {
        let [b0, b1, b2, b3] = input[i as usize].to_le_bytes();
        let (low, high) = (u16::from_le_bytes([b0, b1]), u16::from_le_bytes([b2, b3]));
        let s8 = |b: u8| i64::from(b as i8);
        let pair = |v: i64| [v as u32, (v >> 32) as u32];
        let word = input[i as usize];
        let wide = [s8(b3), i64::from(b3), i64::from(low as i16), i64::from(word as i32), i64::from(word)];
        let mut out = vec![u32::from(b0), s8(b0) as u32, u32::from(high), i64::from(high as i16) as u32];
        out.extend([u32::from(b1), u32::from(s8(b1) as u16)]);
        out.extend(wide.into_iter().flat_map(pair));
        out.push(u32::from(b2) | u32::from(s8(b3) as u16) << 16);
        out.extend([u32::from(b1), word, 0]);
        out.try_into().expect("twenty words")
    });
}

/// Stores of bytes and halves in shared and local memory leave their neighbours unchanged.
#[test]
fn parts_of_words() {
    let body = ".local .align 8 .b8 mine[16];
        mov.u32 %r5, box;
        mad.lo.u32 %r5, %r2, 8, %r5;
        st.shared.u64 [%r5], 0;
        st.local.u64 [mine], 0;
        st.local.u64 [mine+8], 0;
        ld.global.u32 %r6, [%d3];
        and.b32 %r7, %r6, 7;
        add.u32 %r8, %r5, %r7;
        st.shared.u8 [%r8], %r6;
        cvt.u64.u32 %d5, %r7;
        mov.u64 %d6, mine;
        add.u64 %d7, %d6, %d5;
        st.local.u8 [%d7], %r6;
        and.b32 %r7, %r6, 6;
        shr.u32 %r9, %r6, 8;
        cvt.u64.u32 %d5, %r7;
        add.u64 %d7, %d6, %d5;
        st.local.u16 [%d7+8], %r9;
        ld.local.u16 %r10, [%d7+8];
        ld.shared.u64 %d8, [%r5];
        ld.local.u64 %d9, [mine];
        ld.local.u64 %d10, [mine+8];
        st.global.u64 [%d2], %d8;
        st.global.u64 [%d2+8], %d9;
        st.global.u64 [%d2+16], %d10;
        st.global.u32 [%d2+24], %r10;";
    let input = Random::new(6).words(100);
    check_threads(&kernel_after(".shared .align 8 .b8 box[1024];", 8, body), (1, 100), &input, |i| {
        let word = input[i as usize];
        let byte = u64::from(word & 0xff) << (8 * (word & 7));
        let half = u64::from(word >> 8 & 0xffff) << (8 * (word & 6));
        let pair = |v: u64| [v as u32, (v >> 32) as u32];
        let [a, b] = pair(byte);
        let [c, d] = pair(half);
        [a, b, a, b, c, d, word >> 8 & 0xffff, 0]
    });
}

/// Each thread indexes its own local array with a computed index.
#[test]
fn local_arrays() {
    let body = ".local .align 4 .b8 mine[256];
        mov.u64 %d5, mine;
        mov.u32 %r5, 0;
    FILL:
        mad.wide.u32 %d6, %r5, 4, %d5;
        mad.lo.u32 %r6, %r0, 100, %r5;
        st.local.u32 [%d6], %r6;
        add.u32 %r5, %r5, 1;
        setp.lt.u32 %p1, %r5, 64;
        @%p1 bra FILL;
        mad.lo.u32 %r7, %r0, 37, 5;
        and.b32 %r7, %r7, 63;
        mad.wide.u32 %d6, %r7, 4, %d5;
        ld.local.u32 %r8, [%d6];
        cvta.local.u64 %d7, %d6;
        ld.u32 %r9, [%d7];
        st.global.v2.u32 [%d2], {%r8, %r9};";
    check_threads(&kernel(2, body), (10, 70), &[0], |i| [100 * i + (37 * i + 5) % 64; 2]);
}

/// Dynamic shared memory begins after the static part, and all its arrays are the same memory.
#[test]
fn dynamic_shared_memory() {
    let before = ".extern .shared .align 16 .b8 more[]; .extern .shared .align 4 .b8 again[];";
    let body = ".shared .align 4 .u32 fixed[5];
        mov.u32 %r5, more;
        mad.lo.u32 %r6, %r2, 4, %r5;
        add.u32 %r7, %r2, 500;
        st.shared.u32 [%r6], %r7;
        setp.lt.u32 %p1, %r2, 5;
        mov.u32 %r8, fixed;
        mad.lo.u32 %r8, %r2, 4, %r8;
        @%p1 st.shared.u32 [%r8], 7;
        bar.sync 0;
        mov.u32 %r5, again;
        xor.b32 %r9, %r2, 1;
        mad.lo.u32 %r6, %r9, 4, %r5;
        ld.shared.u32 %r7, [%r6];
        st.global.u32 [%d2], %r7;";
    let expected: Vec<u32> = (0..3).flat_map(|_| (0..128).map(|t| (t ^ 1) + 500)).collect();
    check(&kernel_after(before, 1, body), Launch::grid(3).block(128).shared_bytes(512), &[0], &expected);
}

#[test]
fn constants_by_index() {
    let before = ".const .align 8 .b64 wide[3] = {0x123456789, -2, 7};
        .const .align 2 .u16 narrow[4] = {1, 2, 3, 65535};
        .const .align 4 .f32 real = 0f3FC00000;";
    let body = "
        rem.u32 %r5, %r0, 3;
        mov.u64 %d5, wide;
        mad.wide.u32 %d5, %r5, 8, %d5;
        ld.const.u64 %d6, [%d5];
        and.b32 %r6, %r0, 3;
        mov.u64 %d5, narrow;
        mad.wide.u32 %d5, %r6, 2, %d5;
        ld.const.u16 %r7, [%d5];
        ld.const.b32 %r8, [real];
        st.global.u64 [%d2], %d6;
        st.global.v2.u32 [%d2+8], {%r7, %r8};";
    check_threads(&kernel_after(before, 4, body), (1, 50), &[0], |i| {
        let wide = [0x1_2345_6789u64, -2i64 as u64, 7][i as usize % 3];
        [wide as u32, (wide >> 32) as u32, [1, 2, 3, 65535][i as usize % 4], 0x3fc0_0000]
    });
}

/// A struct by value, whose words are read with a per-lane index.
#[test]
fn struct_parameters() {
    let text = module(
        ".visible .entry k(.param .u64 out, .param .align 8 .b8 s[40], .param .u8 small) {
            .reg .b32 %r<8>;
            .reg .b64 %d<8>;
            ld.param.u64 %d0, [out];
            mov.u32 %r0, %tid.x;
            mad.wide.u32 %d1, %r0, 16, %d0;
            mov.b64 %d2, s;
            rem.u32 %r1, %r0, 10;
            mad.wide.u32 %d2, %r1, 4, %d2;
            ld.param.u32 %r2, [%d2];
            ld.param.u32 %r3, [s+12];
            ld.param.u8 %r4, [small];
            ld.param.v2.u32 {%r5, %r6}, [s+32];
            st.global.v4.u32 [%d1], {%r2, %r3, %r4, %r6};
            ret;
        }",
    );
    for machine in MACHINES {
        let mut gpu = machine.small();
        let module = gpu.load_ptx(&text).unwrap();
        let kernel = module.kernel("k").unwrap();
        let out = gpu.zeros::<u32>(4 * 50).unwrap();
        let fields: [u32; 10] = std::array::from_fn(|k| 900 + k as u32);
        let args = [Arg::from(&out), Arg::of(&fields), Arg::from(200u8)];
        gpu.launch(&kernel, Launch::grid(1).block(50), args).unwrap();
        let expected: Vec<u32> = (0..50).flat_map(|i| [fields[i % 10], fields[3], 200, fields[9]]).collect();
        assert_eq!(out.read(&gpu).unwrap(), expected, "on {machine}");
    }
}

/// The host finds variables by name, and kernels read what it writes there.
#[test]
fn variables_of_the_host() {
    let text = kernel_after(
        ".visible .global .align 4 .u32 factor = 3; .visible .global .align 8 .u64 seen[2];",
        1,
        "ld.global.u32 %r5, [factor];
        mul.lo.u32 %r6, %r5, %r0;
        st.global.u32 [%d2], %r6;
        cvt.u64.u32 %d5, %r5;
        st.global.u64 [seen+8], %d5;",
    );
    for machine in MACHINES {
        let mut gpu = machine.small();
        let module = gpu.load_ptx(&text).unwrap();
        let kernel = module.kernel("k").unwrap();
        let (out, input) = (gpu.zeros::<u32>(4).unwrap(), gpu.zeros::<u32>(4).unwrap());
        let (factor, bytes) = module.global("factor").unwrap();
        let (seen, _) = module.global("seen").unwrap();
        assert_eq!((bytes, gpu.read_bytes(factor, 4).unwrap()), (4, vec![3, 0, 0, 0]));
        gpu.launch(&kernel, Launch::grid(1).block(4), args![&out, &input]).unwrap();
        assert_eq!(out.read(&gpu).unwrap(), [0, 3, 6, 9], "on {machine}");
        gpu.write_bytes(factor, &[100, 0, 0, 0]).unwrap();
        gpu.launch(&kernel, Launch::grid(1).block(4), args![&out, &input]).unwrap();
        assert_eq!(out.read(&gpu).unwrap(), [0, 100, 200, 300], "on {machine}");
        assert_eq!(gpu.read_bytes(seen + 8, 8).unwrap(), 100u64.to_le_bytes(), "on {machine}");
        assert_eq!(module.global("nothing"), None);
    }
}
