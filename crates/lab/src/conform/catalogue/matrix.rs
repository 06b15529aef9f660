//! Products of matrices by a full warp. Operands are masked to numbers below one, so that sums stay finite; how a
//! sum is cut off shows in its last bits. Rows named `all` take any bits.

pub(super) const PRODUCTS: &[&str] = &[
    "mma.sync.aligned.m16n8k8.row.col.f32.{f16.f16,bf16.bf16}.f32 b32 b32 b32 b32 = b32:0xbbffbbff b32:0xbbffbbff \
     b32:0xbbffbbff b32:0xbeffffff b32:0xbeffffff b32:0xbeffffff b32:0xbeffffff : \
     mma.sync.aligned.m16n8k8.row.col.f32.$1.f32 {%d0, %d1, %d2, %d3}, {%a0, %a1}, {%a2}, {%a3, %a4, %a5, %a6};",
    "mma.sync.aligned.m16n8k16.row.col.f32.{f16.f16,bf16.bf16}.f32 b32 b32 b32 b32 = b32:0xbbffbbff \
     b32:0xbbffbbff b32:0xbbffbbff b32:0xbbffbbff b32:0xbbffbbff b32:0xbbffbbff b32:0xbeffffff b32:0xbeffffff \
     b32:0xbeffffff b32:0xbeffffff : mma.sync.aligned.m16n8k16.row.col.f32.$1.f32 {%d0, %d1, %d2, %d3}, {%a0, \
     %a1, %a2, %a3}, {%a4, %a5}, {%a6, %a7, %a8, %a9};",
    "mma.sync.aligned.m16n8k16.row.col.f32.{f16.f16,bf16.bf16}.f32+all b32 b32 b32 b32 = b32 b32 b32 b32 b32 b32 \
     b32 b32 b32 b32 : mma.sync.aligned.m16n8k16.row.col.f32.$1.f32 {%d0, %d1, %d2, %d3}, {%a0, %a1, %a2, %a3}, \
     {%a4, %a5}, {%a6, %a7, %a8, %a9};",
    "mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 b32 b32 = b32:0xbbffbbff b32:0xbbffbbff b32:0xbbffbbff \
     b32:0xbbffbbff b32:0xbbffbbff : mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 {%d0, %d1}, {%a0, %a1}, \
     {%a2}, {%a3, %a4};",
    "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 b32 b32 = b32:0xbbffbbff b32:0xbbffbbff b32:0xbbffbbff \
     b32:0xbbffbbff b32:0xbbffbbff b32:0xbbffbbff b32:0xbbffbbff b32:0xbbffbbff : \
     mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%d0, %d1}, {%a0, %a1, %a2, %a3}, {%a4, %a5}, {%a6, %a7};",
    "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16+all b32 b32 = b32 b32 b32 b32 b32 b32 b32 b32 : \
     mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%d0, %d1}, {%a0, %a1, %a2, %a3}, {%a4, %a5}, {%a6, %a7};",
    "mma.sync.aligned.m8n8k4.{row,col}.{row,col}.f32.f16.f16.f32 b32 b32 b32 b32 b32 b32 b32 b32 = b32:0xbbffbbff \
     b32:0xbbffbbff b32:0xbbffbbff b32:0xbbffbbff b32:0xbeffffff b32:0xbeffffff b32:0xbeffffff b32:0xbeffffff \
     b32:0xbeffffff b32:0xbeffffff b32:0xbeffffff b32:0xbeffffff : mma.sync.aligned.m8n8k4.$1.$2.f32.f16.f16.f32 \
     {%d0, %d1, %d2, %d3, %d4, %d5, %d6, %d7}, {%a0, %a1}, {%a2, %a3}, {%a4, %a5, %a6, %a7, %a8, %a9, %a10, \
     %a11};",
    "mma.sync.aligned.m8n8k4.{row,col}.{row,col}.f16.f16.f16.f16 b32 b32 b32 b32 = b32:0xbbffbbff b32:0xbbffbbff \
     b32:0xbbffbbff b32:0xbbffbbff b32:0xbbffbbff b32:0xbbffbbff b32:0xbbffbbff b32:0xbbffbbff : \
     mma.sync.aligned.m8n8k4.$1.$2.f16.f16.f16.f16 {%d0, %d1, %d2, %d3}, {%a0, %a1}, {%a2, %a3}, {%a4, %a5, %a6, \
     %a7};",
    "mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32 b32 b32 b32 b32 = b32:0xbeffffff b32:0xbeffffff \
     b32:0xbeffffff b32:0xbeffffff b32:0xbeffffff b32:0xbeffffff b32:0xbeffffff : \
     mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32 {%d0, %d1, %d2, %d3}, {%a0, %a1}, {%a2}, {%a3, %a4, %a5, \
     %a6};",
    "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 b32 b32 b32 b32 = b32:0xbeffffff b32:0xbeffffff \
     b32:0xbeffffff b32:0xbeffffff b32:0xbeffffff b32:0xbeffffff b32:0xbeffffff b32:0xbeffffff b32:0xbeffffff \
     b32:0xbeffffff : mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%d0, %d1, %d2, %d3}, {%a0, %a1, %a2, \
     %a3}, {%a4, %a5}, {%a6, %a7, %a8, %a9};",
    "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32+all b32 b32 b32 b32 = b32 b32 b32 b32 b32 b32 b32 b32 b32 \
     b32 : mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%d0, %d1, %d2, %d3}, {%a0, %a1, %a2, %a3}, {%a4, \
     %a5}, {%a6, %a7, %a8, %a9};",
    "mma.sync.aligned.m16n8k32.row.col.f32.{e4m3.e4m3,e5m2.e5m2,e4m3.e5m2,e5m2.e4m3}.f32 b32 b32 b32 b32 = \
     b32:0xbbbbbbbb b32:0xbbbbbbbb b32:0xbbbbbbbb b32:0xbbbbbbbb b32:0xbbbbbbbb b32:0xbbbbbbbb b32:0xbeffffff \
     b32:0xbeffffff b32:0xbeffffff b32:0xbeffffff : mma.sync.aligned.m16n8k32.row.col.f32.$1.f32 {%d0, %d1, %d2, \
     %d3}, {%a0, %a1, %a2, %a3}, {%a4, %a5}, {%a6, %a7, %a8, %a9};",
    "mma.sync.aligned.m16n8k32.row.col.f32.{e4m3.e4m3,e5m2.e5m2}.f32+all b32 b32 b32 b32 = b32 b32 b32 b32 b32 \
     b32 b32 b32 b32 b32 : mma.sync.aligned.m16n8k32.row.col.f32.$1.f32 {%d0, %d1, %d2, %d3}, {%a0, %a1, %a2, \
     %a3}, {%a4, %a5}, {%a6, %a7, %a8, %a9};",
    "mma.sync.aligned.m8n8k16.row.col{,.satfinite}.s32.{s8.s8,u8.u8}.s32 b32 b32 = b32 b32 b32 b32 : \
     mma.sync.aligned.m8n8k16.row.col$1.s32.$2.s32 {%d0, %d1}, {%a0}, {%a1}, {%a2, %a3};",
    "mma.sync.aligned.m16n8k16.row.col.s32.{s8.u8,u8.s8}.s32 b32 b32 b32 b32 = b32 b32 b32 b32 b32 b32 b32 : \
     mma.sync.aligned.m16n8k16.row.col.s32.$1.s32 {%d0, %d1, %d2, %d3}, {%a0, %a1}, {%a2}, {%a3, %a4, %a5, %a6};",
    "mma.sync.aligned.m16n8k32.row.col{,.satfinite}.s32.{s8.s8,u8.s8,s8.u8,u8.u8}.s32 b32 b32 b32 b32 = b32 b32 \
     b32 b32 b32 b32 b32 b32 b32 b32 : mma.sync.aligned.m16n8k32.row.col$1.s32.$2.s32 {%d0, %d1, %d2, %d3}, {%a0, \
     %a1, %a2, %a3}, {%a4, %a5}, {%a6, %a7, %a8, %a9};",
    "mma.sync.aligned.m8n8k32.row.col.s32.{s4.s4,u4.u4}.s32 b32 b32 = b32 b32 b32 b32 : \
     mma.sync.aligned.m8n8k32.row.col.s32.$1.s32 {%d0, %d1}, {%a0}, {%a1}, {%a2, %a3};",
    "mma.sync.aligned.m16n8k32.row.col.s32.{s4.s4,u4.s4}.s32 b32 b32 b32 b32 = b32 b32 b32 b32 b32 b32 b32 : \
     mma.sync.aligned.m16n8k32.row.col.s32.$1.s32 {%d0, %d1, %d2, %d3}, {%a0, %a1}, {%a2}, {%a3, %a4, %a5, %a6};",
    "mma.sync.aligned.m16n8k64.row.col{,.satfinite}.s32.{s4.u4,u4.u4,s4.s4}.s32 b32 b32 b32 b32 = b32 b32 b32 b32 \
     b32 b32 b32 b32 b32 b32 : mma.sync.aligned.m16n8k64.row.col$1.s32.$2.s32 {%d0, %d1, %d2, %d3}, {%a0, %a1, \
     %a2, %a3}, {%a4, %a5}, {%a6, %a7, %a8, %a9};",
    "mma.sync.aligned.m8n8k128.row.col.s32.b1.b1.s32.{and,xor}.popc b32 b32 = b32 b32 b32 b32 : \
     mma.sync.aligned.m8n8k128.row.col.s32.b1.b1.s32.$1.popc {%d0, %d1}, {%a0}, {%a1}, {%a2, %a3};",
    "mma.sync.aligned.m16n8k128.row.col.s32.b1.b1.s32.{and,xor}.popc b32 b32 b32 b32 = b32 b32 b32 b32 b32 b32 \
     b32 : mma.sync.aligned.m16n8k128.row.col.s32.b1.b1.s32.$1.popc {%d0, %d1, %d2, %d3}, {%a0, %a1}, {%a2}, \
     {%a3, %a4, %a5, %a6};",
    "mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.{and,xor}.popc b32 b32 b32 b32 = b32 b32 b32 b32 b32 b32 \
     b32 b32 b32 b32 : mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.$1.popc {%d0, %d1, %d2, %d3}, {%a0, %a1, \
     %a2, %a3}, {%a4, %a5}, {%a6, %a7, %a8, %a9};",
    "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 f64 f64 = f64 f64 f64 f64 : \
     mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%d0, %d1}, {%a0}, {%a1}, {%a2, %a3};",
    "mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64 f64 f64 f64 f64 = f64 f64 f64 f64 f64 f64 f64 : \
     mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64 {%d0, %d1, %d2, %d3}, {%a0, %a1}, {%a2}, {%a3, %a4, %a5, \
     %a6};",
    "mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 f64 f64 f64 f64 = f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 : \
     mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%d0, %d1, %d2, %d3}, {%a0, %a1, %a2, %a3}, {%a4, %a5}, \
     {%a6, %a7, %a8, %a9};",
    "mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64 f64 f64 f64 f64 = f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 \
     f64 f64 f64 f64 f64 f64 : mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64 {%d0, %d1, %d2, %d3}, {%a0, %a1, \
     %a2, %a3, %a4, %a5, %a6, %a7}, {%a8, %a9, %a10, %a11}, {%a12, %a13, %a14, %a15};",
];

/// Each warp has 256 bytes of shared memory, which are 16 rows of a matrix.
pub(super) const MOVES: &[&str] = &[
    "movmatrix.sync.aligned.m8n8.trans.b16 b32 = b32",
    "ldmatrix.sync.aligned.m8n8.x1{,.trans}.shared.b16 b32 = b64 : .reg .b32 %x; .reg .b32 %y; mov.u32 %x, \
     %laneid; and.b32 %y, %x, 15; shl.b32 %y, %y, 1; sub.u32 %y, %y, %x; shl.b32 %y, %y, 3; add.u32 %y, %shared, \
     %y; st.shared.b64 [%shared], %a0; bar.warp.sync -1; ldmatrix.sync.aligned.m8n8.x1$1.shared.b16 {%d0}, [%y];",
    "ldmatrix.sync.aligned.m8n8.x2{,.trans}.shared.b16 b32 b32 = b64 : .reg .b32 %x; .reg .b32 %y; mov.u32 %x, \
     %laneid; and.b32 %y, %x, 15; shl.b32 %y, %y, 1; sub.u32 %y, %y, %x; shl.b32 %y, %y, 3; add.u32 %y, %shared, \
     %y; st.shared.b64 [%shared], %a0; bar.warp.sync -1; ldmatrix.sync.aligned.m8n8.x2$1.shared.b16 {%d0, %d1}, \
     [%y];",
    "ldmatrix.sync.aligned.m8n8.x4{,.trans}.shared.b16 b32 b32 b32 b32 = b64 : .reg .b32 %x; .reg .b32 %y; \
     mov.u32 %x, %laneid; and.b32 %y, %x, 15; shl.b32 %y, %y, 1; sub.u32 %y, %y, %x; shl.b32 %y, %y, 3; add.u32 \
     %y, %shared, %y; st.shared.b64 [%shared], %a0; bar.warp.sync -1; ldmatrix.sync.aligned.m8n8.x4$1.shared.b16 \
     {%d0, %d1, %d2, %d3}, [%y];",
    "stmatrix.sync.aligned.m8n8.x1{,.trans}.shared.b16 b64 = b32 : .reg .b32 %x; .reg .b32 %y; mov.u32 %x, \
     %laneid; and.b32 %y, %x, 15; shl.b32 %y, %y, 1; sub.u32 %y, %y, %x; shl.b32 %y, %y, 3; add.u32 %y, %shared, \
     %y; st.shared.b64 [%shared], 0; bar.warp.sync -1; stmatrix.sync.aligned.m8n8.x1$1.shared.b16 [%y], {%a0}; \
     bar.warp.sync -1; ld.shared.b64 %d0, [%shared];",
    "stmatrix.sync.aligned.m8n8.x2{,.trans}.shared.b16 b64 = b32 b32 : .reg .b32 %x; .reg .b32 %y; mov.u32 %x, \
     %laneid; and.b32 %y, %x, 15; shl.b32 %y, %y, 1; sub.u32 %y, %y, %x; shl.b32 %y, %y, 3; add.u32 %y, %shared, \
     %y; st.shared.b64 [%shared], 0; bar.warp.sync -1; stmatrix.sync.aligned.m8n8.x2$1.shared.b16 [%y], {%a0, \
     %a1}; bar.warp.sync -1; ld.shared.b64 %d0, [%shared];",
];

/// By four warps. The first matrix is in registers, the second, 8 columns of 32 bytes, in shared memory.
pub(super) const WARP_GROUPS: &[&str] = &[
    "wgmma.mma_async.sync.aligned.m64n8k16.f32.{f16.f16,bf16.bf16} b32 b32 b32 b32 = b64:0xbbffbbffbbffbbff \
     b32:0xbbffbbff b32:0xbbffbbff b32:0xbbffbbff b32:0xbbffbbff b32:0xbeffffff b32:0xbeffffff b32:0xbeffffff \
     b32:0xbeffffff : st.shared.b64 [%shared], %a0; fence.proxy.async; bar.sync 0; .reg .b32 %x; .reg .b64 %b; \
     .reg .pred %p; mov.u32 %x, %tid.x; setp.eq.u32 %p, %x, %x; shl.b32 %x, %x, 3; sub.u32 %x, %shared, %x; \
     shr.u32 %x, %x, 4; cvt.u64.u32 %b, %x; or.b64 %b, %b, 0x800080000; mov.b32 %d0, %a5; mov.b32 %d1, %a6; \
     mov.b32 %d2, %a7; mov.b32 %d3, %a8; wgmma.fence.sync.aligned; wgmma.mma_async.sync.aligned.m64n8k16.f32.$1 \
     {%d0, %d1, %d2, %d3}, {%a1, %a2, %a3, %a4}, %b, %p, 1, 1, 0; wgmma.commit_group.sync.aligned; \
     wgmma.wait_group.sync.aligned 0;",
    "wgmma.mma_async.sync.aligned.m64n8k16.f32.{f16.f16,bf16.bf16}+all b32 b32 b32 b32 = b64 b32 b32 b32 b32 b32 \
     b32 b32 b32 : st.shared.b64 [%shared], %a0; fence.proxy.async; bar.sync 0; .reg .b32 %x; .reg .b64 %b; .reg \
     .pred %p; mov.u32 %x, %tid.x; setp.eq.u32 %p, %x, %x; shl.b32 %x, %x, 3; sub.u32 %x, %shared, %x; shr.u32 \
     %x, %x, 4; cvt.u64.u32 %b, %x; or.b64 %b, %b, 0x800080000; mov.b32 %d0, %a5; mov.b32 %d1, %a6; mov.b32 %d2, \
     %a7; mov.b32 %d3, %a8; wgmma.fence.sync.aligned; wgmma.mma_async.sync.aligned.m64n8k16.f32.$1 {%d0, %d1, \
     %d2, %d3}, {%a1, %a2, %a3, %a4}, %b, %p, 1, 1, 0; wgmma.commit_group.sync.aligned; \
     wgmma.wait_group.sync.aligned 0;",
    "wgmma.mma_async.sync.aligned.m64n8k16.f16.f16.f16 b32 b32 = b64:0xbbffbbffbbffbbff b32:0xbbffbbff \
     b32:0xbbffbbff b32:0xbbffbbff b32:0xbbffbbff b32:0xbbffbbff b32:0xbbffbbff : st.shared.b64 [%shared], %a0; \
     fence.proxy.async; bar.sync 0; .reg .b32 %x; .reg .b64 %b; .reg .pred %p; mov.u32 %x, %tid.x; setp.eq.u32 \
     %p, %x, %x; shl.b32 %x, %x, 3; sub.u32 %x, %shared, %x; shr.u32 %x, %x, 4; cvt.u64.u32 %b, %x; or.b64 %b, \
     %b, 0x800080000; mov.b32 %d0, %a5; mov.b32 %d1, %a6; wgmma.fence.sync.aligned; \
     wgmma.mma_async.sync.aligned.m64n8k16.f16.f16.f16 {%d0, %d1}, {%a1, %a2, %a3, %a4}, %b, %p, -1, 1, 0; \
     wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;",
    "wgmma.mma_async.sync.aligned.m64n8k8.f32.tf32.tf32 b32 b32 b32 b32 = b64:0xbeffffffbeffffff b32:0xbeffffff \
     b32:0xbeffffff b32:0xbeffffff b32:0xbeffffff b32:0xbeffffff b32:0xbeffffff b32:0xbeffffff b32:0xbeffffff : \
     st.shared.b64 [%shared], %a0; fence.proxy.async; bar.sync 0; .reg .b32 %x; .reg .b64 %b; .reg .pred %p; \
     mov.u32 %x, %tid.x; setp.eq.u32 %p, %x, %x; shl.b32 %x, %x, 3; sub.u32 %x, %shared, %x; shr.u32 %x, %x, 4; \
     cvt.u64.u32 %b, %x; or.b64 %b, %b, 0x800080000; mov.b32 %d0, %a5; mov.b32 %d1, %a6; mov.b32 %d2, %a7; \
     mov.b32 %d3, %a8; wgmma.fence.sync.aligned; wgmma.mma_async.sync.aligned.m64n8k8.f32.tf32.tf32 {%d0, %d1, \
     %d2, %d3}, {%a1, %a2, %a3, %a4}, %b, %p, 1, -1; wgmma.commit_group.sync.aligned; \
     wgmma.wait_group.sync.aligned 0;",
    "wgmma.mma_async.sync.aligned.m64n8k32.f32.{e4m3.e4m3,e5m2.e5m2,e4m3.e5m2} b32 b32 b32 b32 = \
     b64:0xbbbbbbbbbbbbbbbb b32:0xbbbbbbbb b32:0xbbbbbbbb b32:0xbbbbbbbb b32:0xbbbbbbbb b32:0xbeffffff \
     b32:0xbeffffff b32:0xbeffffff b32:0xbeffffff : st.shared.b64 [%shared], %a0; fence.proxy.async; bar.sync 0; \
     .reg .b32 %x; .reg .b64 %b; .reg .pred %p; mov.u32 %x, %tid.x; setp.eq.u32 %p, %x, %x; shl.b32 %x, %x, 3; \
     sub.u32 %x, %shared, %x; shr.u32 %x, %x, 4; cvt.u64.u32 %b, %x; or.b64 %b, %b, 0x800080000; mov.b32 %d0, \
     %a5; mov.b32 %d1, %a6; mov.b32 %d2, %a7; mov.b32 %d3, %a8; wgmma.fence.sync.aligned; \
     wgmma.mma_async.sync.aligned.m64n8k32.f32.$1 {%d0, %d1, %d2, %d3}, {%a1, %a2, %a3, %a4}, %b, %p, 1, 1; \
     wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;",
    "wgmma.mma_async.sync.aligned.m64n8k32.f32.{e4m3.e4m3,e5m2.e5m2}+all b32 b32 b32 b32 = b64 b32 b32 b32 b32 \
     b32 b32 b32 b32 : st.shared.b64 [%shared], %a0; fence.proxy.async; bar.sync 0; .reg .b32 %x; .reg .b64 %b; \
     .reg .pred %p; mov.u32 %x, %tid.x; setp.eq.u32 %p, %x, %x; shl.b32 %x, %x, 3; sub.u32 %x, %shared, %x; \
     shr.u32 %x, %x, 4; cvt.u64.u32 %b, %x; or.b64 %b, %b, 0x800080000; mov.b32 %d0, %a5; mov.b32 %d1, %a6; \
     mov.b32 %d2, %a7; mov.b32 %d3, %a8; wgmma.fence.sync.aligned; wgmma.mma_async.sync.aligned.m64n8k32.f32.$1 \
     {%d0, %d1, %d2, %d3}, {%a1, %a2, %a3, %a4}, %b, %p, 1, 1; wgmma.commit_group.sync.aligned; \
     wgmma.wait_group.sync.aligned 0;",
    "wgmma.mma_async.sync.aligned.m64n8k32.f16.e4m3.e4m3 b32 b32 = b64:0xbbbbbbbbbbbbbbbb b32:0xbbbbbbbb \
     b32:0xbbbbbbbb b32:0xbbbbbbbb b32:0xbbbbbbbb b32:0xbbffbbff b32:0xbbffbbff : st.shared.b64 [%shared], %a0; \
     fence.proxy.async; bar.sync 0; .reg .b32 %x; .reg .b64 %b; .reg .pred %p; mov.u32 %x, %tid.x; setp.eq.u32 \
     %p, %x, %x; shl.b32 %x, %x, 3; sub.u32 %x, %shared, %x; shr.u32 %x, %x, 4; cvt.u64.u32 %b, %x; or.b64 %b, \
     %b, 0x800080000; mov.b32 %d0, %a5; mov.b32 %d1, %a6; wgmma.fence.sync.aligned; \
     wgmma.mma_async.sync.aligned.m64n8k32.f16.e4m3.e4m3 {%d0, %d1}, {%a1, %a2, %a3, %a4}, %b, %p, 1, 1; \
     wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;",
    "wgmma.mma_async.sync.aligned.m64n8k32{,.satfinite}.s32.{s8.s8,u8.u8} b32 b32 b32 b32 = b64 b32 b32 b32 b32 \
     b32 b32 b32 b32 : st.shared.b64 [%shared], %a0; fence.proxy.async; bar.sync 0; .reg .b32 %x; .reg .b64 %b; \
     .reg .pred %p; mov.u32 %x, %tid.x; setp.eq.u32 %p, %x, %x; shl.b32 %x, %x, 3; sub.u32 %x, %shared, %x; \
     shr.u32 %x, %x, 4; cvt.u64.u32 %b, %x; or.b64 %b, %b, 0x800080000; mov.b32 %d0, %a5; mov.b32 %d1, %a6; \
     mov.b32 %d2, %a7; mov.b32 %d3, %a8; wgmma.fence.sync.aligned; wgmma.mma_async.sync.aligned.m64n8k32$1.s32.$2 \
     {%d0, %d1, %d2, %d3}, {%a1, %a2, %a3, %a4}, %b, %p; wgmma.commit_group.sync.aligned; \
     wgmma.wait_group.sync.aligned 0;",
];
