//! Approximations. Each bound is the one that the PTX manual states for the instruction.

pub(super) const ROWS: &[&str] = &[
    // Within 2 ulp; `div.approx` for divisors from 2^-126 to 2^126. Beyond that, the result is defined as well.
    "div.{approx,full}{,.ftz}.f32 T = T T ~ulp:2",
    // Within 1 ulp over the full range.
    "rcp.approx{,.ftz}.f32 T = T ~ulp:1",
    // The upper 32 bits of the operand give the upper 32 bits of the result, 20 bits of mantissa.
    "rcp.approx.ftz.f64 T = T ~rel:-20",
    // Relative error 2^-23 over the positive finite range.
    "sqrt.approx{,.ftz}.f32 T = T ~rel:-23",
    // Relative error 2^-22.9 over the positive finite range.
    "rsqrt.approx{,.ftz}.f32 T = T ~rel:-22.9",
    // As `rcp.approx.ftz.f64`.
    "rsqrt.approx.ftz.f64 T = T ~rel:-20",
    // The manual states no bound. It stands for a sequence of instructions that is correctly rounded except for rare
    // operands.
    "rsqrt.approx.f64 T = T ~ulp:1",
    // Absolute error 2^-20.5 within two pi, 2^-14.7 within a hundred pi.
    "{sin,cos}.approx{,.ftz}.f32 T = T:angle ~angle",
    // Absolute error 2^-22 between 0.5 and 2, relative error 2^-22 elsewhere.
    "lg2.approx{,.ftz}.f32 T = T ~lg2",
    // Within 2 ulp over the full range.
    "ex2.approx{,.ftz}.f32 T = T ~ulp:2",
    // Relative error 2^-9.9.
    "ex2.approx.{f16,f16x2} T = T ~rel:-9.9",
    // Relative error 2^-7.
    "ex2.approx.ftz.{bf16,bf16x2} T = T ~rel:-7",
    // Relative error 2^-11.
    "tanh.approx.f32 T = T ~rel:-11",
    // Absolute error 2^-10.987.
    "tanh.approx.{f16,f16x2} T = T ~abs:-10.987",
    // Absolute error 2^-8.
    "tanh.approx.{bf16,bf16x2} T = T ~abs:-8",
];
