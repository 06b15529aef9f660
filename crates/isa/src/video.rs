//! Video instructions: arithmetic on bytes, halves and words with one more bit than their width.

use crate::types::Cmp;

/// d = a op b, on one number of 32 bits, two of 16, or four of 8, each exact and then clamped or cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Video {
    pub op: VideoOp,
    /// Of each number: 32, 16 or 8.
    pub bits: u8,
    /// The numbers of a are signed.
    pub a_signed: bool,
    pub b_signed: bool,
    /// Results are clamped to signed numbers; c of `Mad` is signed.
    pub d_signed: bool,
    /// Results are clamped to this many bits; 0: they are cut off.
    pub clamp: u8,
    /// d = c plus the results of these numbers, a bit each; 0: d is the results themselves.
    pub summed: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum VideoOp {
    Add,
    Sub,
    AbsDiff,
    Min,
    Max,
    /// Half of the sum, rounded away from zero.
    Average,
    /// By b, which is u32: modulo 32 if the flag is set, or else at most 32.
    Shl(bool),
    Shr(bool),
    /// 1 or 0.
    Set(Cmp),
    Mad(VideoMad),
}

/// d = ±(a * b) ± c, shifted right. If clamped, d is signed when any of the operands or signs is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct VideoMad {
    pub negative_product: bool,
    pub negative_c: bool,
    /// One is added, as in an average (`.po`).
    pub plus_one: bool,
    /// 0, 7 or 15.
    pub shift: u8,
}
