//! Matrix instructions on the h200, on both models: products of tiles that `ldmatrix` loads, and back to shared memory
//! with `stmatrix`. The shapes themselves are tested where they are computed (`exec`).

use warploom::{Chip, Device, Launch, SimModel, SimOptions, args};

/// D (16 x 8, f32) = A (16 x 16, f16) * B (16 x 8, f16): A in rows, B in rows and loaded transposed. D goes to `out`;
/// the low halves of A's registers go through `stmatrix` and `movmatrix` to `copy`.
const PTX: &str = r#"
.version 8.6
.target sm_90
.address_size 64
.visible .entry k(.param .u64 a, .param .u64 b, .param .u64 out, .param .u64 copy) {
    .reg .b32 %r<40>; .reg .f32 %f<8>; .reg .b64 %d<12>; .reg .pred %p<2>;
    .shared .align 16 .b8 at[512];
    .shared .align 16 .b8 bt[256];
    .shared .align 16 .b8 ct[512];
    ld.param.u64 %d0, [a]; ld.param.u64 %d1, [b]; ld.param.u64 %d2, [out]; ld.param.u64 %d3, [copy];
    mov.u32 %r0, %tid.x;
    // Each lane brings 16 bytes of A and 8 bytes of B.
    mul.wide.u32 %d4, %r0, 16; add.u64 %d4, %d0, %d4;
    ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%d4];
    shl.b32 %r5, %r0, 4; mov.u32 %r6, at; add.u32 %r6, %r6, %r5;
    st.shared.v4.u32 [%r6], {%r1, %r2, %r3, %r4};
    mul.wide.u32 %d5, %r0, 8; add.u64 %d5, %d1, %d5;
    ld.global.v2.u32 {%r1, %r2}, [%d5];
    shl.b32 %r7, %r0, 3; mov.u32 %r8, bt; add.u32 %r8, %r8, %r7;
    st.shared.v2.u32 [%r8], {%r1, %r2};
    bar.warp.sync -1;
    // Lane l has row l % 16 of A, and the right half of it in the upper lanes.
    and.b32 %r9, %r0, 15; shl.b32 %r9, %r9, 5; shr.u32 %r10, %r0, 4; shl.b32 %r10, %r10, 4;
    mov.u32 %r11, at; add.u32 %r11, %r11, %r9; add.u32 %r11, %r11, %r10;
    ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r12, %r13, %r14, %r15}, [%r11];
    and.b32 %r16, %r0, 15; shl.b32 %r16, %r16, 4; mov.u32 %r17, bt; add.u32 %r17, %r17, %r16;
    ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%r18, %r19}, [%r17];
    mov.f32 %f0, 0f00000000; mov.f32 %f1, 0f00000000; mov.f32 %f2, 0f00000000; mov.f32 %f3, 0f00000000;
    mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32
        {%f4, %f5, %f6, %f7}, {%r12, %r13, %r14, %r15}, {%r18, %r19}, {%f0, %f1, %f2, %f3};
    shr.u32 %r20, %r0, 2; and.b32 %r21, %r0, 3;
    shl.b32 %r22, %r20, 5; shl.b32 %r23, %r21, 3; add.u32 %r22, %r22, %r23;
    cvt.u64.u32 %d6, %r22; add.u64 %d6, %d2, %d6;
    st.global.v2.f32 [%d6], {%f4, %f5};
    st.global.v2.f32 [%d6+256], {%f6, %f7};
    // A transposed twice, once by movmatrix and once by stmatrix, is A again.
    movmatrix.sync.aligned.m8n8.trans.b16 %r24, %r12;
    movmatrix.sync.aligned.m8n8.trans.b16 %r25, %r13;
    movmatrix.sync.aligned.m8n8.trans.b16 %r26, %r14;
    movmatrix.sync.aligned.m8n8.trans.b16 %r27, %r15;
    mov.u32 %r28, ct; add.u32 %r28, %r28, %r9; add.u32 %r28, %r28, %r10;
    stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%r28], {%r24, %r25, %r26, %r27};
    bar.warp.sync -1;
    mov.u32 %r29, ct; add.u32 %r29, %r29, %r5;
    ld.shared.v4.u32 {%r1, %r2, %r3, %r4}, [%r29];
    mul.wide.u32 %d7, %r0, 16; add.u64 %d7, %d3, %d7;
    st.global.v4.u32 [%d7], {%r1, %r2, %r3, %r4};
    ret;
}
"#;

/// Small integers as halves: 0 to 7.
fn half(value: usize) -> u16 {
    [0, 0x3c00, 0x4000, 0x4200, 0x4400, 0x4500, 0x4600, 0x4700][value]
}

#[test]
fn a_tile_is_loaded_multiplied_and_stored() {
    let a = |row: usize, column: usize| (row * 5 + column * 3) % 8;
    let b = |row: usize, column: usize| (row * 3 + column * 7 + 1) % 8;
    let a_bits: Vec<u16> = (0..256).map(|at| half(a(at / 16, at % 16))).collect();
    let b_bits: Vec<u16> = (0..128).map(|at| half(b(at / 8, at % 8))).collect();
    for model in [SimModel::Functional, SimModel::Timing] {
        let chip = Chip::load("h200", &["sm.count=2".into()]).unwrap();
        let mut gpu = Device::sim_with(chip, SimOptions { model, ..SimOptions::default() });
        let kernel = gpu.load_ptx(PTX).unwrap().kernel("k").unwrap();
        let (x, y) = (gpu.buffer(&a_bits).unwrap(), gpu.buffer(&b_bits).unwrap());
        let (out, copy) = (gpu.zeros::<f32>(128).unwrap(), gpu.zeros::<u16>(256).unwrap());
        let report = gpu.launch(&kernel, Launch::grid(1).block(32), args![&x, &y, &out, &copy]).unwrap();
        let found = out.read(&gpu).unwrap();
        for (at, value) in found.into_iter().enumerate() {
            let wanted = (0..16).map(|k| a(at / 8, k) * b(k, at % 8)).sum::<usize>();
            assert_eq!(value, wanted as f32, "{model:?} {at}");
        }
        assert_eq!(copy.read(&gpu).unwrap(), a_bits, "{model:?}");
        assert!(report.warp_insts > 50);
    }
}

#[test]
fn what_ptx_does_not_have_is_refused() {
    let mut gpu = Device::sim("h200").unwrap();
    let mut refused = |from: &str, to: &str| {
        assert!(PTX.contains(from));
        gpu.load_ptx(&PTX.replace(from, to)).unwrap_err().to_string()
    };
    let shape = refused("m16n8k16.row.col", "m16n8k32.row.col");
    assert!(shape.contains("shape, orders and types do not go together"), "{shape}");
    let count = refused("{%r18, %r19}, {%f0", "{%r18}, {%f0");
    assert!(count.contains("takes 2 registers here, not 1"), "{count}");
    let small = refused("m8n8.x2.trans.shared.b16", "m16n16.x2.trans.shared.b8");
    assert!(small.contains("not modelled"), "{small}");
}
