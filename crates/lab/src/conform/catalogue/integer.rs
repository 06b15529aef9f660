//! Integer arithmetic.

pub(super) const ROWS: &[&str] = &[
    "{add,sub}.<int> T = T T",
    "add.{u16x2,s16x2} T = T T",
    "{add,sub}.sat.s32 T = T T",
    "mul.{lo,hi}.<int> T = T T",
    "mul.wide.{u16,s16,u32,s32} W = T T",
    "mad.{lo,hi}.<int> T = T T T",
    "mad.hi.sat.s32 T = T T T",
    "mad.wide.{u16,s16,u32,s32} W = T T W",
    "mul24.{lo,hi}.{u32,s32} T = T T",
    "mad24.{lo,hi}.{u32,s32} T = T T T",
    "mad24.hi.sat.s32 T = T T T",
    "sad.<int> T = T T T",
    "{div,rem}.<int> T = T T",
    "{abs,neg}.{s16,s32,s64} T = T",
    "{min,max}.{u16,s16,u32,s32,u64,s64,u16x2,s16x2} T = T T",
    "{min,max}.relu.{s32,s16x2} T = T T",
    "dp4a.{u32,s32}.{u32,s32} b32 = T U b32",
    "dp2a.{lo,hi}.{u32,s32}.{u32,s32} b32 = T U b32",
];

/// Chains, because the condition code itself is not visible.
pub(super) const CARRY: &[&str] = &[
    "add.cc+addc.cc+addc.{u32,s32,u64,s64} T T T = T T T T T T : \
     add.cc.$1 %d0, %a0, %a3; addc.cc.$1 %d1, %a1, %a4; addc.$1 %d2, %a2, %a5;",
    "sub.cc+subc.cc+subc.{u32,s32,u64,s64} T T T = T T T T T T : \
     sub.cc.$1 %d0, %a0, %a3; subc.cc.$1 %d1, %a1, %a4; subc.$1 %d2, %a2, %a5;",
    "mad.lo.cc+madc.hi.{u32,s32,u64,s64} T T = T T T T : \
     mad.lo.cc.$1 %d0, %a0, %a1, %a2; madc.hi.$1 %d1, %a0, %a1, %a3;",
    "mad.hi.cc+madc.lo.cc+addc.{u32,s32,u64,s64} T T T = T T T T : \
     mad.hi.cc.$1 %d0, %a0, %a1, %a2; madc.lo.cc.$1 %d1, %a0, %a1, %a3; addc.$1 %d2, %a2, %a3;",
    "add.cc+madc.hi.cc+addc.{u32,s32,u64,s64} T T T = T T T T : \
     add.cc.$1 %d0, %a0, %a2; madc.hi.cc.$1 %d1, %a1, %a3, %a2; addc.$1 %d2, %a0, %a3;",
    "add.cc+madc.lo.{u32,s32,u64,s64} T T = T T T T : \
     add.cc.$1 %d0, %a0, %a2; madc.lo.$1 %d1, %a1, %a3, %a2;",
    // Borrow and carry share one condition code.
    "sub.cc+addc.{u32,u64} T T = T T T T : sub.cc.$1 %d0, %a0, %a1; addc.$1 %d1, %a2, %a3;",
    "add.cc+subc.{u32,u64} T T = T T T T : add.cc.$1 %d0, %a0, %a1; subc.$1 %d1, %a2, %a3;",
];
