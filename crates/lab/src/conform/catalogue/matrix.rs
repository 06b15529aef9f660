//! Products of matrices by a full warp. Operands are masked to numbers below one, so that sums stay finite; how a
//! sum is cut off shows in its last bits. Rows named `all` take any bits.

pub(super) const ROWS: &[&str] = &[
    "mma.sync.aligned.m16n8k8.row.col.f32.{f16.f16,bf16.bf16}.f32 b32 b32 b32 b32 = b32:0xbbffbbff b32:0xbbffbbff \
     b32:0xbbffbbff b32:0xbeffffff b32:0xbeffffff b32:0xbeffffff b32:0xbeffffff : \
     mma.sync.aligned.m16n8k8.row.col.f32.$1.f32 {%d0, %d1, %d2, %d3}, {%a0, %a1}, {%a2}, {%a3, %a4, %a5, %a6};",
    "mma.sync.aligned.m16n8k16.row.col.f32.{f16.f16,bf16.bf16}.f32 b32 b32 b32 b32 = b32:0xbbffbbff b32:0xbbffbbff \
     b32:0xbbffbbff b32:0xbbffbbff b32:0xbbffbbff b32:0xbbffbbff b32:0xbeffffff b32:0xbeffffff b32:0xbeffffff \
     b32:0xbeffffff : mma.sync.aligned.m16n8k16.row.col.f32.$1.f32 {%d0, %d1, %d2, %d3}, {%a0, %a1, %a2, %a3}, \
     {%a4, %a5}, {%a6, %a7, %a8, %a9};",
    "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32+all b32 b32 b32 b32 = b32 b32 b32 b32 b32 b32 b32 b32 b32 b32 : \
     mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%d0, %d1, %d2, %d3}, {%a0, %a1, %a2, %a3}, {%a4, %a5}, \
     {%a6, %a7, %a8, %a9};",
    "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 b32 b32 = b32:0xbbffbbff b32:0xbbffbbff b32:0xbbffbbff \
     b32:0xbbffbbff b32:0xbbffbbff b32:0xbbffbbff b32:0xbbffbbff b32:0xbbffbbff : \
     mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%d0, %d1}, {%a0, %a1, %a2, %a3}, {%a4, %a5}, {%a6, %a7};",
    "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 b32 b32 b32 b32 = b32:0xbeffffff b32:0xbeffffff \
     b32:0xbeffffff b32:0xbeffffff b32:0xbeffffff b32:0xbeffffff b32:0xbeffffff b32:0xbeffffff b32:0xbeffffff \
     b32:0xbeffffff : mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%d0, %d1, %d2, %d3}, \
     {%a0, %a1, %a2, %a3}, {%a4, %a5}, {%a6, %a7, %a8, %a9};",
    "mma.sync.aligned.m16n8k32.row.col.f32.{e4m3.e4m3,e5m2.e5m2,e4m3.e5m2}.f32 b32 b32 b32 b32 = b32:0xbbbbbbbb \
     b32:0xbbbbbbbb b32:0xbbbbbbbb b32:0xbbbbbbbb b32:0xbbbbbbbb b32:0xbbbbbbbb b32:0xbeffffff b32:0xbeffffff \
     b32:0xbeffffff b32:0xbeffffff : mma.sync.aligned.m16n8k32.row.col.f32.$1.f32 {%d0, %d1, %d2, %d3}, \
     {%a0, %a1, %a2, %a3}, {%a4, %a5}, {%a6, %a7, %a8, %a9};",
    "mma.sync.aligned.m16n8k32.row.col{,.satfinite}.s32.{s8.s8,u8.s8}.s32 b32 b32 b32 b32 = b32 b32 b32 b32 b32 b32 \
     b32 b32 b32 b32 : mma.sync.aligned.m16n8k32.row.col$1.s32.$2.s32 {%d0, %d1, %d2, %d3}, {%a0, %a1, %a2, %a3}, \
     {%a4, %a5}, {%a6, %a7, %a8, %a9};",
    "mma.sync.aligned.m16n8k64.row.col.s32.{s4.u4,u4.u4}.s32 b32 b32 b32 b32 = b32 b32 b32 b32 b32 b32 b32 b32 b32 \
     b32 : mma.sync.aligned.m16n8k64.row.col.s32.$1.s32 {%d0, %d1, %d2, %d3}, {%a0, %a1, %a2, %a3}, {%a4, %a5}, \
     {%a6, %a7, %a8, %a9};",
    "mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.{and,xor}.popc b32 b32 b32 b32 = b32 b32 b32 b32 b32 b32 b32 b32 \
     b32 b32 : mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.$1.popc {%d0, %d1, %d2, %d3}, {%a0, %a1, %a2, %a3}, \
     {%a4, %a5}, {%a6, %a7, %a8, %a9};",
    "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 f64 f64 = f64 f64 f64 f64 : \
     mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%d0, %d1}, {%a0}, {%a1}, {%a2, %a3};",
];
