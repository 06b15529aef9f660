//! Conversions to and from formats that no arithmetic of a thread computes in.

use crate::types::{Round, Ty};

/// A floating-point format. Names of 8 bits and fewer say how many bits the exponent and the fraction have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NarrowFloat {
    F16,
    Bf16,
    /// A single-precision number whose lower 13 bits are zero.
    Tf32,
    E4m3,
    E5m2,
    E2m3,
    E3m2,
    E2m1,
    /// A power of two, without a sign.
    Ue8m0,
}

impl NarrowFloat {
    /// Bits of exponent and fraction.
    pub const fn fields(self) -> (u32, u32) {
        match self {
            NarrowFloat::F16 => (5, 10),
            NarrowFloat::Bf16 => (8, 7),
            NarrowFloat::Tf32 => (8, 10),
            NarrowFloat::E4m3 => (4, 3),
            NarrowFloat::E5m2 => (5, 2),
            NarrowFloat::E2m3 => (2, 3),
            NarrowFloat::E3m2 => (3, 2),
            NarrowFloat::E2m1 => (2, 1),
            NarrowFloat::Ue8m0 => (8, 0),
        }
    }

    /// Bits from one number of a pair to the next.
    pub const fn pair_bits(self) -> u32 {
        match self {
            NarrowFloat::Tf32 => 32,
            NarrowFloat::F16 | NarrowFloat::Bf16 => 16,
            NarrowFloat::E2m1 => 4,
            _ => 8,
        }
    }
}

/// `d = a`, or `d = {a, b}` with a in the upper half, in another format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CvtNarrow {
    /// The narrow format: of d if it `narrows`, otherwise of a.
    pub format: NarrowFloat,
    pub narrows: bool,
    /// The other side: F32 (a and b are one number each), F16x2 or BF16x2 (a or d is a pair).
    pub other: Ty,
    /// Two numbers. Otherwise one, in a.
    pub pair: bool,
    pub round: Round,
    /// Numbers out of range and infinities become the largest number (`.satfinite`).
    pub finite: bool,
    /// Negative to 0.
    pub relu: bool,
}
