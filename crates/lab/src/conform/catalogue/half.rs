//! f16 and bf16 arithmetic.

pub(super) const ROWS: &[&str] = &[
    "{add,sub,mul}{,.rn}{,.ftz}{,.sat}.{f16,f16x2} T = T T",
    "{add,sub,mul}{,.rn}.{bf16,bf16x2} T = T T",
    "fma.rn{,.ftz}{,.sat,.relu}.{f16,f16x2} T = T T T",
    "fma.rn{,.relu}.{bf16,bf16x2} T = T T T",
    "{abs,neg}{,.ftz}.{f16,f16x2} T = T",
    "{abs,neg}.{bf16,bf16x2} T = T",
    "{min,max}{,.ftz}{,.NaN}{,.xorsign.abs}.{f16,f16x2} T = T T",
    "{min,max}{,.NaN}{,.xorsign.abs}.{bf16,bf16x2} T = T T",
];
