//! Video instructions, on words, halves and bytes. Chips of today have none; their driver makes code for them. Here are
//! the forms whose code does what the manual says: docs/conformance.md has the others.

pub(super) const ROWS: &[&str] = &[
    "{vadd,vsub,vabsdiff,vmin,vmax}.{u32,s32}.{u32,s32}.{u32,s32} b32 = b32 b32",
    "{vadd,vsub,vabsdiff,vmin,vmax}.s32.{u32,s32}.{u32,s32}.sat b32 = b32 b32",
    "{vmin,vmax}.u32.{u32,s32}.{u32,s32}.sat b32 = b32 b32",
    "{vadd,vsub,vabsdiff}.u32.s32.s32.sat b32 = b32 b32",
    "{vadd,vsub,vabsdiff,vmin,vmax}.{u32.u32.u32,s32.s32.s32,s32.u32.s32,u32.s32.u32}.add b32 = b32 b32 b32",
    "{vadd,vsub,vmin,vmax}.s32.s32.s32{,.sat}.{min,max} b32 = b32 b32 b32",
    "{vabsdiff,vmin,vmax}.u32.u32.u32{,.sat}.{min,max} b32 = b32 b32 b32",
    "{vadd,vsub,vabsdiff,vmin,vmax}.{u32,s32}.{u32.s32,s32.u32}+{b0,b1,b2,b3,h0} b32 = b32 b32 b32 : \
     $1.$2.$3 %d0.$4, %a0.h1, %a1.b2, %a2;",
    "{vabsdiff,vmax}.{u32,s32}.{u32.s32,s32.u32}.sat+{b0,b1,b2,b3,h0} b32 = b32 b32 b32 : \
     $1.$2.$3.sat %d0.$4, %a0.h1, %a1.b2, %a2;",
    "vadd.s32.{u32,s32}.{u32,s32}+from+{b0,b1,b2,b3,h0,h1} b32 = b32 b32 : vadd.s32.$1.$2 %d0, %a0.$3, %a1.$3;",
    "vshl.{u32,s32}.{u32,s32}.u32{.clamp,.wrap} b32 = b32 b32:0x3f",
    "vshr.{u32,s32}.{u32,s32}.u32{,.sat}{.clamp,.wrap} b32 = b32 b32:0x3f",
    "{vshl,vshr}.{u32.u32,s32.s32,s32.u32,u32.s32}.u32.clamp.add b32 = b32 b32:0x3f b32",
    "vshr.{u32.u32,s32.s32}.u32.sat.clamp.add b32 = b32 b32:0x3f b32",
    "vshr.{u32.u32,s32.s32}.u32{,.sat}.clamp.{min,max} b32 = b32 b32:0x3f b32",
    "{vshl,vshr}.{u32.u32,s32.s32,s32.u32}.u32.wrap+{b0,b2} b32 = b32 b32 b32 : \
     $1.$2.u32.wrap %d0.$3, %a0.h0, %a1.b3, %a2;",
    "vmad.{u32,s32}.{u32,s32}.{u32,s32}{,.po} b32 = b32 b32 b32",
    "vmad.s32.s32.s32{,.po}{,.sat}{.shr7,.shr15} b32 = b32 b32 b32",
    "vmad.s32.{u32,s32}.{u32,s32}{,.sat}{,.shr7,.shr15}+a b32 = b32 b32 b32 : \
     vmad.s32.$1.$2$3$4 %d0, -%a0.h0, %a1.h1, %a2;",
    "vmad.s32.{u32,s32}.s32{,.sat}{,.shr7,.shr15}+b b32 = b32 b32 b32 : vmad.s32.$1.s32$2$3 %d0, %a0.b0, -%a1, %a2;",
    "vmad.s32.s32.{u32,s32}{,.sat}{,.shr7,.shr15}+ab b32 = b32 b32 b32 : \
     vmad.s32.s32.$1$2$3 %d0, -%a0, -%a1.b3, %a2;",
    "vmad.s32.s32.s32{,.sat}{,.shr7,.shr15}+c b32 = b32 b32 b32 : vmad.s32.s32.s32$1$2 %d0, %a0, %a1, -%a2;",
    "vset.{u32,s32}.{u32,s32}.<cmp> b32 = b32:few b32:few",
    "vset.{u32,s32}.{u32,s32}.{lt,ne}.add b32 = b32:few b32:few b32",
    "vset.u32.{u32,s32}.{lt,ne}.{min,max} b32 = b32:few b32:few b32",
    "vset.{u32,s32}.{u32,s32}.{le,eq}+{b0,b3} b32 = b32 b32 b32 : vset.$1.$2.$3 %d0.$4, %a0.b1, %a1.b1, %a2;",
    "{vadd,vsub,vavrg,vabsdiff,vmin,vmax}{2,4}.{u32,s32}.{u32,s32}.{u32,s32}{,.sat} b32 = b32 b32 b32",
    "{vadd,vsub,vavrg,vabsdiff,vmin,vmax}{2,4}.{u32,s32}.{u32,s32}.{u32,s32}.add b32 = b32 b32 b32",
    "{vadd,vavrg,vabsdiff}2.{u32.u32.s32,s32.s32.u32}{,.sat,.add}+{h0,h1,h10} b32 = b32 b32 b32 : \
     $12.$2$3 %d0.$4, %a0.h21, %a1.h03, %a2;",
    "{vsub,vavrg,vmin}4.{u32.u32.s32,s32.s32.u32}{,.sat,.add}+{b0,b21,b310,b3210} b32 = b32 b32 b32 : \
     $14.$2$3 %d0.$4, %a0.b7340, %a1.b1256, %a2;",
    "vset{2,4}.{u32,s32}.{u32,s32}.<cmp>{,.add} b32 = b32 b32 b32",
];
