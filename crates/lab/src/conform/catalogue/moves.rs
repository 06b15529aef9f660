//! Moves, packing and unpacking.

pub(super) const ROWS: &[&str] = &[
    "mov.{b16,b32,b64,u16,u32,u64,s16,s32,s64,f32,f64} T = T",
    "mov.pred p = p",
    "mov.b64+pack2 T = b32 b32 : mov.b64 %d0, {%a0, %a1};",
    "mov.b64+pack4 T = b16 b16 b16 b16 : mov.b64 %d0, {%a0, %a1, %a2, %a3};",
    "mov.b32+pack2 T = b16 b16 : mov.b32 %d0, {%a0, %a1};",
    "mov.b64+unpack2 b32 b32 = T : mov.b64 {%d0, %d1}, %a0;",
    "mov.b64+unpack4 b16 b16 b16 b16 = T : mov.b64 {%d0, %d1, %d2, %d3}, %a0;",
    "mov.b32+unpack2 b16 b16 = T : mov.b32 {%d0, %d1}, %a0;",
    "mov.b64+high b32 = T : mov.b64 {_, %d0}, %a0;",
    "mov.b32+bytes+{0,1,2,3} b32 = b32 : .reg .b8 %c<4>; mov.b32 {%c0, %c1, %c2, %c3}, %a0; cvt.u32.u8 %d0, %c$1;",
    "mov.b32+from-bytes b32 = b32 : .reg .b8 %c<4>; mov.b32 {%c0, %c1, %c2, %c3}, %a0; mov.b32 %d0, {%c3, %c1, \
     %c2, %c0};",
    "mov.b16+bytes b16 = b16 : .reg .b8 %c<2>; mov.b16 {%c0, %c1}, %a0; mov.b16 %d0, {%c1, %c0};",
];
