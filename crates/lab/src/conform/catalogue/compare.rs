//! Comparison and selection.

pub(super) const SETP: &[&str] = &[
    "setp.{eq,ne}.<bits> p|p = T T",
    "setp.{eq,ne}<bool>.<bits> p|p = T T p",
    "setp.<cmpu>.{u16,u32,u64} p|p = T T",
    "setp.<cmpu><bool>.{u16,u32,u64} p|p = T T p",
    "setp.<cmp>.{s16,s32,s64} p|p = T T",
    "setp.<cmp><bool>.{s16,s32,s64} p|p = T T p",
    "setp.<cmpf>.{f16x2,bf16x2,f32,f64} p|p = T T",
    "setp.<cmpf><bool>.{f16x2,bf16x2,f32,f64} p|p = T T p",
    "setp.<cmpf>.ftz.{f16x2,f32} p|p = T T",
    "setp.<cmpf><bool>.ftz.{f16x2,f32} p|p = T T p",
    // For a single half there is no second result.
    "setp.<cmpf>.{f16,bf16} p = T T",
    "setp.<cmpf><bool>.{f16,bf16} p = T T p",
    "setp.<cmpf>.ftz.f16 p = T T",
    "setp.<cmpf><bool>.ftz.f16 p = T T p",
];

pub(super) const SET: &[&str] = &[
    "set.{eq,ne}.{u32,s32,f32}.<bits> T = U U",
    "set.{eq,ne}<bool>.{u32,f32}.<bits> T = U U p",
    "set.<cmpu>.{u32,s32,f32}.{u16,u32,u64} T = U U",
    "set.<cmpu><bool>.{u32,f32}.{u32,u64} T = U U p",
    "set.<cmp>.{u32,s32,f32}.{s16,s32,s64} T = U U",
    "set.<cmp><bool>.{u32,f32}.{s32,s64} T = U U p",
    "set.<cmpf>.{u32,s32,f32}.{f32,f64} T = U U",
    "set.<cmpf><bool>.{u32,f32}.{f32,f64} T = U U p",
    "set.<cmpf>.ftz.{u32,s32,f32}.f32 T = U U",
    "set.<cmpf><bool>.ftz.{u32,f32}.f32 T = U U p",
    "set.<cmpf>.{f16,u32,s32,u16,s16}.f16 T = U U",
    "set.<cmpf>.ftz.{f16,u16}.f16 T = U U",
    "set.<cmpf><bool>.{f16,u32}.f16 T = U U p",
    "set.<cmpf>.{bf16,u32,s32,u16,s16}.bf16 T = U U",
    "set.<cmpf><bool>.{bf16,u32}.bf16 T = U U p",
    "set.<cmpf>.{f16x2,u32,s32}.f16x2 T = U U",
    "set.<cmpf>.ftz.f16x2.f16x2 T = U U",
    "set.<cmpf><bool>.{f16x2,u32}.f16x2 T = U U p",
    "set.<cmpf>.{bf16x2,u32,s32}.bf16x2 T = U U",
    "set.<cmpf><bool>.{bf16x2,u32}.bf16x2 T = U U p",
    "set.<cmpf>.{f16,bf16}.{f32,f64} T = U U",
    "set.<cmpu>.{f16,bf16}.{u16,u32,u64} T = U U",
    "set.<cmp>.{f16,bf16}.{s16,s32,s64} T = U U",
];

pub(super) const SELECT: &[&str] = &[
    "selp.{b16,b32,b64,u16,u32,u64,s16,s32,s64,f32,f64} T = T T p",
    "slct.{b16,b32,b64,u16,u32,u64,s16,s32,s64,f32,f64}.s32 T = T T s32",
    "slct.{b16,b32,b64,u16,u32,u64,s16,s32,s64,f32,f64}.f32 T = T T f32",
    "slct.ftz.{b32,u64,f32,f64}.f32 T = T T f32",
];
