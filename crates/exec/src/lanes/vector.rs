//! Loops over lane arrays. Everything here is inlined into its caller, so that it is compiled with the caller's vector
//! instructions. The loops have a constant trip count and no branches, and so vectorize.

use warploom_isa::Inst;

use crate::lanes::Registers;

/// A source operand: its low words and, for a wide value, its high words.
#[derive(Clone, Copy)]
pub(super) struct Source<'a, const N: usize> {
    pub(super) lo: &'a [u32; N],
    pub(super) hi: &'a [u32; N],
}

impl<const N: usize> Source<'_, N> {
    /// The 64-bit value of lane `i`.
    #[inline(always)]
    pub(super) fn wide(&self, i: usize) -> u64 {
        u64::from(self.lo[i]) | u64::from(self.hi[i]) << 32
    }
}

/// The inputs of an operation: its first three sources as arrays; others are read through `regs`.
#[derive(Clone, Copy)]
pub(super) struct Inputs<'a, const N: usize> {
    pub(super) inst: &'a Inst,
    pub(super) regs: &'a Registers<'a, N>,
    pub(super) a: Source<'a, N>,
    pub(super) b: Source<'a, N>,
    pub(super) c: Source<'a, N>,
}

/// The result of an operation, before it is written under the mask.
///
/// Returned by value from inlined functions, so that the arrays stay in host registers where possible.
#[allow(clippy::large_enum_variant)]
pub(super) enum Filled<const N: usize> {
    /// A word for `dst`.
    Word([u32; N]),
    /// The low and the high word of a 64-bit value for `dst`.
    Wide([u32; N], [u32; N]),
    /// A predicate for `dst`.
    Pred(u64),
    /// Predicates for `dst` and `dst2`.
    Preds(u64, u64),
    /// A word, and a carry for `dst2`.
    WordCarry([u32; N], u64),
    /// A 64-bit value, and a carry for `dst2`.
    WideCarry([u32; N], [u32; N], u64),
    /// Not an operation on lanes.
    Nothing,
}

/// The word of each lane, by its index.
#[inline(always)]
pub(super) fn lanes<const N: usize>(f: impl Fn(usize) -> u32) -> [u32; N] {
    let mut out = [0; N];
    for i in 0..N {
        out[i] = f(i);
    }
    out
}

/// The 32-bit result of lane `i` is `f(i)`.
#[inline(always)]
pub(super) fn word<const N: usize>(f: impl Fn(usize) -> u32) -> Filled<N> {
    Filled::Word(lanes(f))
}

/// The 64-bit result of lane `i` is `f(i)`.
#[inline(always)]
pub(super) fn wide<const N: usize>(f: impl Fn(usize) -> u64) -> Filled<N> {
    let (mut lo, mut hi) = ([0; N], [0; N]);
    for i in 0..N {
        let value = f(i);
        lo[i] = value as u32;
        hi[i] = (value >> 32) as u32;
    }
    Filled::Wide(lo, hi)
}

/// The result of lane `i` is `f(a[i])`.
#[inline(always)]
pub(super) fn map1<const N: usize>(a: &[u32; N], f: impl Fn(u32) -> u32) -> Filled<N> {
    word(|i| f(a[i]))
}

/// The result of lane `i` is `f(a[i], b[i])`.
#[inline(always)]
pub(super) fn map2<const N: usize>(a: &[u32; N], b: &[u32; N], f: impl Fn(u32, u32) -> u32) -> Filled<N> {
    word(|i| f(a[i], b[i]))
}

/// The result of lane `i` is `f(a[i], b[i], c[i])`.
#[inline(always)]
pub(super) fn map3<const N: usize>(
    a: &[u32; N],
    b: &[u32; N],
    c: &[u32; N],
    f: impl Fn(u32, u32, u32) -> u32,
) -> Filled<N> {
    word(|i| f(a[i], b[i], c[i]))
}

/// All ones if `condition`, else zero: the mask of a branch-free select.
#[inline(always)]
pub(super) fn ones(condition: bool) -> u32 {
    u32::from(condition).wrapping_neg()
}

/// As [`ones`], 64 bits wide.
#[inline(always)]
pub(super) fn ones64(condition: bool) -> u64 {
    u64::from(condition).wrapping_neg()
}

/// `k ? a : b`, bit by bit.
#[inline(always)]
pub(crate) fn blend(k: u32, a: u32, b: u32) -> u32 {
    (a & k) | (b & !k)
}

/// As [`blend`], 64 bits wide.
#[inline(always)]
pub(super) fn blend64(k: u64, a: u64, b: u64) -> u64 {
    (a & k) | (b & !k)
}

/// One word per lane: all ones where the lane's bit of `mask` is set.
#[inline(always)]
pub(crate) fn spread<const N: usize>(mask: u64) -> [u32; N] {
    let words = [mask as u32, (mask >> 32) as u32];
    let mut out = [0; N];
    for i in 0..N {
        out[i] = ones(words[i / 32] & (1 << (i % 32)) != 0);
    }
    out
}

/// One bit per lane: the results of `f`.
#[inline(always)]
pub(super) fn gather<const N: usize>(f: impl Fn(usize) -> bool) -> u64 {
    let mut mask = 0;
    for first in (0..N).step_by(32) {
        let mut bits = 0u32;
        for i in 0..32 {
            bits |= ones(f(first + i)) & (1 << i);
        }
        mask |= u64::from(bits) << first;
    }
    mask
}

/// Applies `f` to the two 16-bit halves of a word, zero-extended; its results are truncated to 16 bits.
#[inline(always)]
pub(super) fn halves2(a: u32, b: u32, f: impl Fn(u32, u32) -> u32) -> u32 {
    (f(a & 0xffff, b & 0xffff) & 0xffff) | f(a >> 16, b >> 16) << 16
}

/// The low 16 bits, sign-extended.
#[inline(always)]
pub(super) fn sext16(x: u32) -> i32 {
    i32::from(x as i16)
}
