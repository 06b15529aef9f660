//! Special registers.

use warploom::{Launch, SimOptions, args};

use super::{check, check_threads, kernel, module};
use crate::support::MACHINES;

/// Every coordinate and extent of a three-dimensional grid and block.
#[test]
fn coordinates() {
    let names = ["%tid.x", "%tid.y", "%tid.z", "%ctaid.x", "%ctaid.y", "%ctaid.z"]
        .into_iter()
        .chain(["%ntid.x", "%ntid.y", "%ntid.z", "%nctaid.x", "%nctaid.y", "%nctaid.z"])
        .collect::<Vec<_>>();
    let each: String = names
        .iter()
        .enumerate()
        .map(|(at, name)| format!("mov.u32 %r9, {name};\nst.global.u32 [%d1+{}], %r9;\n", 4 * at))
        .collect();
    let text = module(&format!(
        ".visible .entry k(.param .u64 out, .param .u64 in) {{
            .reg .b32 %r<16>;
            .reg .b64 %d<4>;
            ld.param.u64 %d0, [out];
            mov.u32 %r0, %ctaid.z;
            mov.u32 %r1, %nctaid.y;
            mov.u32 %r2, %ctaid.y;
            mad.lo.u32 %r0, %r0, %r1, %r2;
            mov.u32 %r1, %nctaid.x;
            mov.u32 %r2, %ctaid.x;
            mad.lo.u32 %r0, %r0, %r1, %r2;
            mov.u32 %r1, %ntid.z;
            mov.u32 %r2, %tid.z;
            mad.lo.u32 %r0, %r0, %r1, %r2;
            mov.u32 %r1, %ntid.y;
            mov.u32 %r2, %tid.y;
            mad.lo.u32 %r0, %r0, %r1, %r2;
            mov.u32 %r1, %ntid.x;
            mov.u32 %r2, %tid.x;
            mad.lo.u32 %r0, %r0, %r1, %r2;
            mad.wide.u32 %d1, %r0, 48, %d0;
            {each}
            ret;
        }}"
    ));
    for (grid, block) in [([3u32, 2, 2], [5u32, 3, 2]), ([1, 1, 4], [1, 7, 9]), ([2, 5, 1], [33, 2, 1])] {
        let ([gx, gy, gz], [bx, by, bz]) = (grid, block);
        let mut expected = Vec::new();
        for cta in (0..gz).flat_map(|z| (0..gy).flat_map(move |y| (0..gx).map(move |x| [x, y, z]))) {
            for tid in (0..bz).flat_map(|z| (0..by).flat_map(move |y| (0..bx).map(move |x| [x, y, z]))) {
                expected.extend([tid, cta, block, grid].concat());
            }
        }
        check(&text, Launch::grid(grid).block(block), &[0], &expected);
    }
}

#[test]
fn lanes_and_warps() {
    let names = [
        "%laneid",
        "%warpid",
        "%nwarpid",
        "%lanemask_eq",
        "%lanemask_lt",
        "%lanemask_le",
        "%lanemask_gt",
        "%lanemask_ge",
    ];
    let each: String = names
        .iter()
        .enumerate()
        .map(|(at, name)| format!("mov.u32 %r9, {name};\nst.global.u32 [%d2+{}], %r9;\n", 4 * at))
        .collect();
    check_threads(&kernel(8, &each), (3, 100), &[0], |i| {
        let (lane, warp) = (i % 100 % 32, i % 100 / 32);
        let (eq, lt) = (1u32 << lane, (1u32 << lane) - 1);
        [lane, warp, 4, eq, lt, lt | eq, !(lt | eq), !lt]
    });
}

/// Warps consist of threads in the order of x, then y, then z.
#[test]
fn warps_of_a_cube() {
    let text = module(
        ".visible .entry k(.param .u64 out, .param .u64 in) {
            .reg .b32 %r<8>;
            .reg .b64 %d<4>;
            ld.param.u64 %d0, [out];
            mov.u32 %r0, %tid.z;
            mov.u32 %r1, %tid.y;
            mad.lo.u32 %r0, %r0, 5, %r1;
            mov.u32 %r1, %tid.x;
            mad.lo.u32 %r0, %r0, 6, %r1;
            mad.wide.u32 %d1, %r0, 8, %d0;
            mov.u32 %r2, %laneid;
            mov.u32 %r3, %warpid;
            st.global.v2.u32 [%d1], {%r2, %r3};
            ret;
        }",
    );
    let expected: Vec<u32> = (0..120).flat_map(|i| [i % 32, i / 32]).collect();
    check(&text, Launch::grid(1).block([6, 5, 4]), &[0], &expected);
}

#[test]
fn sizes_of_shared_memory() {
    let body = ".shared .align 16 .b8 fixed[400];
        mov.u32 %r5, %dynamic_smem_size;
        mov.u32 %r6, fixed;
        st.shared.u32 [%r6], %r5;
        ld.shared.u32 %r5, [%r6];
        st.global.u32 [%d2], %r5;";
    check(&kernel(1, body), Launch::grid(1).block(1).shared_bytes(640), &[0], &[640]);
}

/// Clocks never run backwards, SM numbers are within the chip, and grids have numbers.
#[test]
fn clocks_and_numbers() {
    let text = kernel(
        6,
        "mov.u64 %d5, %clock64;
        mov.u32 %r5, %clock;
        mov.u64 %d6, %clock64;
        setp.lt.u64 %p1, %d5, %d6;
        selp.u32 %r6, 1, 0, %p1;
        mov.u32 %r7, %smid;
        mov.u32 %r8, %nsmid;
        setp.lt.u32 %p2, %r7, %r8;
        selp.u32 %r9, 1, 0, %p2;
        mov.u64 %d7, %gridid;
        cvt.u32.u64 %r10, %d7;
        mov.u64 %d8, %globaltimer;
        st.global.u32 [%d2], %r6;
        st.global.u32 [%d2+4], %r9;
        st.global.u32 [%d2+8], %r8;
        st.global.u32 [%d2+12], %r10;",
    );
    for machine in MACHINES {
        let mut gpu = machine.with(&["sm.count=3"], SimOptions::default());
        let module = gpu.load_ptx(&text).unwrap();
        let kernel = module.kernel("k").unwrap();
        let (out, input) = (gpu.zeros::<u32>(6 * 64).unwrap(), gpu.zeros::<u32>(64).unwrap());
        let mut grids = Vec::new();
        for _ in 0..2 {
            gpu.launch(&kernel, Launch::grid(2).block(32), args![&out, &input]).unwrap();
            for words in out.read(&gpu).unwrap().chunks(6) {
                assert_eq!(words[..3], [1, 1, 3], "on {machine}");
                grids.push(words[3]);
            }
        }
        grids.dedup();
        assert_eq!(grids.len(), 2, "a launch has one number, and the next another");
    }
}
