//! Communication between the lanes of a full warp.

pub(super) const ROWS: &[&str] = &[
    "vote.sync.{all,any,uni}.pred p = p:warp #0xffffffff",
    "vote.sync.ballot.b32 b32 = p:warp #0xffffffff",
    "vote.sync.{all,any,uni}.pred+not p = p:warp : vote.sync.$1.pred %d0, !%a0, 0xffffffff;",
    // Bits 0 to 4 of the last operand clamp, bits 8 to 12 divide the warp into segments.
    "shfl.sync.{up,down,bfly,idx}.b32 b32|p = b32 b32:0x1f b32:0x1f1f #0xffffffff",
    "shfl.sync.{up,down,bfly,idx}.b32 b32|p = b32 b32:0x7 #{0,0x1f,0x181f,0x1007} #0xffffffff",
    "shfl.sync.{up,down,bfly,idx}.b32+beyond b32|p = b32 b32 b32:0x1f1f : \
     shfl.sync.$1.b32 %d0|%d1, %a0, %a1, %a2, 0xffffffff;",
    "match.any.sync.{b32,b64} b32 = T:warp #0xffffffff",
    "match.all.sync.{b32,b64} b32|p = T:warp #0xffffffff",
    "redux.sync.{add,min,max}.{u32,s32} T = T #0xffffffff",
    "redux.sync.{and,or,xor}.b32 T = T #0xffffffff",
    "activemask.b32 b32 =",
    "elect.sync b32|p = #0xffffffff",
];
