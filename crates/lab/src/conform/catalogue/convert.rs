//! Conversions. 8-bit types are in registers of 32 bits, so that their extension is compared as well.

pub(super) const INTEGERS: &[&str] = &[
    "cvt.{u8,s8,u16,s16,u32,s32,u64,s64}.{u8,s8,u16,s16,u32,s32,u64,s64} T = U",
    // Saturation exists where the range of the result does not contain that of the operand.
    "cvt.sat.u8.{s8,u16,s16,u32,s32,u64,s64} T = U",
    "cvt.sat.s8.{u8,u16,s16,u32,s32,u64,s64} T = U",
    "cvt.sat.u16.{s8,s16,u32,s32,u64,s64} T = U",
    "cvt.sat.s16.{u16,u32,s32,u64,s64} T = U",
    "cvt.sat.u32.{s8,s16,s32,u64,s64} T = U",
    "cvt.sat.s32.{u32,u64,s64} T = U",
    "cvt.sat.u64.{s8,s16,s32,s64} T = U",
    "cvt.sat.s64.u64 T = U",
    "cvt.pack.sat.{u16,s16}.s32 b32 = U U",
    "cvt.pack.sat.{u8,s8}.s32.b32 b32 = U U b32",
];

pub(super) const FLOATS: &[&str] = &[
    // Same type: rounding to integers, or only flushing and saturation.
    "cvt{,.rni,.rzi,.rmi,.rpi}{,.ftz}{,.sat}.f32.f32 T = U",
    "cvt{,.rni,.rzi,.rmi,.rpi}{,.sat}.{f64.f64,f16.f16} T = U",
    "cvt{,.rni,.rzi,.rmi,.rpi}.bf16.bf16 T = U",
    // Wider.
    "cvt{,.ftz}{,.sat}.f32.f16 T = U",
    "cvt{,.ftz}{,.sat}.f64.f32 T = U",
    "cvt{,.sat}.f64.f16 T = U",
    "cvt{,.rn}{,.ftz}.f32.bf16 T = U",
    "cvt{,.rn}.f64.bf16 T = U",
    // Narrower.
    "cvt<rnd>{,.ftz}{,.sat}.f32.f64 T = U",
    "cvt<rnd>{,.sat}.f16.f64 T = U",
    "cvt<rnd>{,.ftz}{,.sat}.f16.f32 T = U",
    "cvt{.rn,.rz}.relu.f16.f32 T = U",
    "cvt<rnd>{,.ftz}.bf16.f32 T = U",
    "cvt{.rn,.rz}.relu.bf16.f32 T = U",
    "cvt<rnd>.bf16.f64 T = U",
    "cvt<rnd>.{f16.bf16,bf16.f16} T = U",
    "cvt{.rn,.rz}{,.relu}.{f16x2,bf16x2}.f32 T = U U",
];

pub(super) const MIXED: &[&str] = &[
    "cvt.{rni,rzi,rmi,rpi}{,.ftz}{,.sat}.{u8,s8,u16,s16,u32,s32,u64,s64}.f32 T = U",
    "cvt.{rni,rzi,rmi,rpi}{,.sat}.{u8,s8,u16,s16,u32,s32,u64,s64}.{f64,f16} T = U",
    "cvt.{rni,rzi,rmi,rpi}.{u16,s16,u32,s32,u64,s64}.bf16 T = U",
    "cvt<rnd>{,.sat}.{f32,f64,f16}.{u8,s8,u16,s16,u32,s32,u64,s64} T = U",
    "cvt<rnd>.bf16.{u16,s16,u32,s32,u64,s64} T = U",
    // With bf16, 8-bit operands are in registers of 8 bits.
    "cvt.{rni,rzi,rmi,rpi}.{u8,s8}.bf16 b32 = U : .reg .b8 %c; cvt.$1.$2.bf16 %c, %a0; cvt.u32.$2 %d0, %c;",
    "cvt<rnd>.bf16.{u8,s8} T = b32 : .reg .b8 %c; cvt.$2.u32 %c, %a0; cvt$1.bf16.$2 %d0, %c;",
];

/// 8-bit floating point and tf32. Types of fewer bits need a later chip than the H200.
pub(super) const NARROW: &[&str] = &[
    "cvt.{rna,rn,rz}.tf32.f32 b32 = f32",
    "cvt.{rn,rz}.relu.tf32.f32 b32 = f32",
    "cvt.rn.satfinite{,.relu}.{e4m3x2,e5m2x2}.f32 b16 = f32 f32",
    "cvt.rn.satfinite{,.relu}.{e4m3x2,e5m2x2}.f16x2 b16 = f16x2",
    "cvt.rn{,.relu}.f16x2.{e4m3x2,e5m2x2} f16x2 = b16",
];

/// Numbers out of range become the largest.
pub(super) const FINITE: &[&str] = &[
    "cvt{.rn,.rz}{,.relu}.satfinite.{f16,bf16}.f32 b16 = f32",
    "cvt{.rn,.rz}{,.relu}.satfinite.{f16x2,bf16x2}.f32 b32 = f32 f32",
    "cvt.rna.satfinite.tf32.f32 b32 = f32",
];
