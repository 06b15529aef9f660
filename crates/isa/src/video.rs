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

impl Video {
    /// As in PTX, in upper case: `VADD4.S32.U32.U32.SAT`. Listings show it; it cannot be read back.
    pub fn mnemonic(&self) -> String {
        let operation = format!("{:?}", self.op).to_uppercase();
        let name = operation.split('(').next().unwrap_or_default();
        let count = if self.bits == 32 { String::new() } else { (32 / self.bits).to_string() };
        let ty = |signed: bool| if signed { "S32" } else { "U32" };
        let (d, a, b) = (ty(self.d_signed), ty(self.a_signed), ty(self.b_signed));
        let mut text = format!("V{name}{count}.{d}.{a}.{b}");
        if let VideoOp::Set(cmp) = self.op {
            text += &format!(".{cmp:?}").to_uppercase();
        }
        if self.clamp != 0 {
            text += ".SAT";
        }
        if self.summed != 0 {
            text += ".ADD";
        }
        text
    }
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
