//! Arithmetic of atomics. Each thread has its own address. The results are the old and the new value.

pub(super) const ROWS: &[&str] = &[
    "atom.{global,shared}.add.{u32,s32,u64,f32,f64} T T = T T : \
     st.$1.$b [$m], %a0; atom.$1.add.$2 %d0, [$m], %a1; ld.$1.$b %d1, [$m];",
    "atom.{global,shared}.add.noftz.{f16,bf16,f16x2,bf16x2} T T = T T : \
     st.$1.$b [$m], %a0; atom.$1.add.noftz.$2 %d0, [$m], %a1; ld.$1.$b %d1, [$m];",
    "atom.{global,shared}.{min,max}.{u32,s32,u64,s64} T T = T T : \
     st.$1.$b [$m], %a0; atom.$1.$2.$3 %d0, [$m], %a1; ld.$1.$b %d1, [$m];",
    "atom.{global,shared}.{and,or,xor}.{b32,b64} T T = T T : \
     st.$1.$b [$m], %a0; atom.$1.$2.$3 %d0, [$m], %a1; ld.$1.$b %d1, [$m];",
    "atom.{global,shared}.{inc,dec}.u32 T T = T T : \
     st.$1.$b [$m], %a0; atom.$1.$2.u32 %d0, [$m], %a1; ld.$1.$b %d1, [$m];",
    "atom.{global,shared}.{inc,dec}.u32+few T T = T:few T:few : \
     st.$1.$b [$m], %a0; atom.$1.$2.u32 %d0, [$m], %a1; ld.$1.$b %d1, [$m];",
    "atom.{global,shared}.exch.{b32,b64} T T = T T : \
     st.$1.$b [$m], %a0; atom.$1.exch.$2 %d0, [$m], %a1; ld.$1.$b %d1, [$m];",
    "atom.{global,shared}.cas.{b16,b32,b64} T T = T:few T:few T : \
     st.$1.$b [$m], %a0; atom.$1.cas.$2 %d0, [$m], %a1, %a2; ld.$1.$b %d1, [$m];",
    "red.{global,shared}.add.{u32,s32,u64,f32,f64} T = T T : \
     st.$1.$b [$m], %a0; red.$1.add.$2 [$m], %a1; ld.$1.$b %d0, [$m];",
    "red.{global,shared}.add.noftz.{f16,bf16,f16x2,bf16x2} T = T T : \
     st.$1.$b [$m], %a0; red.$1.add.noftz.$2 [$m], %a1; ld.$1.$b %d0, [$m];",
    "red.{global,shared}.{min,max}.{u32,s32,u64,s64} T = T T : \
     st.$1.$b [$m], %a0; red.$1.$2.$3 [$m], %a1; ld.$1.$b %d0, [$m];",
    "red.{global,shared}.{and,or,xor}.{b32,b64} T = T T : \
     st.$1.$b [$m], %a0; red.$1.$2.$3 [$m], %a1; ld.$1.$b %d0, [$m];",
    "red.{global,shared}.{inc,dec}.u32 T = T T : \
     st.$1.$b [$m], %a0; red.$1.$2.u32 [$m], %a1; ld.$1.$b %d0, [$m];",
];
