//! Lane arithmetic: what the execution units of an SM compute, on all lanes of a warp at once. Start at [`execute`].
//!
//! [`execute`] runs one instruction that only reads and writes registers. Registers are lane arrays, so every operation
//! is a loop over a constant number of lanes that the compiler turns into vector instructions. The frequent ones are
//! compiled for several vector instruction sets, one of which is chosen at run time. The rare ones (directed rounding,
//! division, transcendental functions, half precision) are ordinary functions.
//!
//! Results are the same bits on every host. Where the PTX manual leaves a result open, the choice is made in
//! `format.rs` (NaNs) or at the operation, with a comment.

// Lane loops index several arrays by the same lane; iterators over them would hide that and vectorize no better.
#![allow(clippy::needless_range_loop)]

mod approx;
mod atomic;
mod bits;
mod compare;
mod convert;
mod exact;
mod float;
pub(crate) mod format;
pub mod frequent;
mod half;
mod integer;
mod moves;
mod narrow;
mod vector;
mod video;

use multiversion::multiversion;
use warploom_isa::{Dst, Inst, Op, Operand};

use crate::kit::lane_mask::LaneMask;
pub use crate::lanes::atomic::{AtomicUnit, atomic, exchanged};
use crate::lanes::vector::{Filled, Inputs, Source};
pub(crate) use crate::lanes::vector::{blend, spread};

/// The registers of the function a warp is running, as lane arrays.
pub struct Registers<'a, const N: usize> {
    /// The 32-bit registers. A 64-bit value has its low word in register `r` and its high word in `r + 1`; 8- and
    /// 16-bit values are in the low bits of a word, whose upper bits are ignored when read.
    pub words: &'a mut [[u32; N]],
    /// The predicate registers, lane `i` in bit `i`.
    pub preds: &'a mut [u64],
    /// The address of the function's frame in local memory: the value of [`Operand::Frame`].
    pub frame: u32,
}

#[inline(always)]
pub(crate) const fn all_lanes<const N: usize>() -> LaneMask {
    LaneMask(if N >= 64 { u64::MAX } else { (1 << N) - 1 })
}

impl<const N: usize> Registers<'_, N> {
    /// A 32-bit (or narrower) source. An absent operand reads as zero.
    #[inline(always)]
    pub fn read32(&self, operand: Operand) -> [u32; N] {
        match operand {
            Operand::Reg(r) => self.words[r.index()],
            Operand::Imm(value) => [value; N],
            Operand::Frame => [self.frame; N],
            _ => [0; N],
        }
    }

    /// A 64-bit source. `imms` has the immediates that [`Operand::Imm64`] refers to; [`Operand::Imm`] is zero-extended.
    #[inline(always)]
    pub fn read64(&self, operand: Operand, imms: &[u64]) -> [u64; N] {
        let mut out = [0; N];
        match operand {
            Operand::Reg(r) => {
                let (lo, hi) = (&self.words[r.index()], &self.words[r.index() + 1]);
                for i in 0..N {
                    out[i] = u64::from(lo[i]) | u64::from(hi[i]) << 32;
                }
            }
            Operand::Imm(value) => out = [u64::from(value); N],
            Operand::Frame => out = [u64::from(self.frame); N],
            Operand::Imm64(id) => out = [imms[id.index()]; N],
            _ => {}
        }
        out
    }

    /// A predicate source: a predicate, its complement, or an immediate 0 or 1. An absent operand is false. Bits beyond
    /// the last lane are unspecified.
    #[inline(always)]
    pub fn read_pred(&self, operand: Operand) -> u64 {
        match operand {
            Operand::Pred(p) => self.preds[p.index()],
            Operand::NotPred(p) => !self.preds[p.index()],
            Operand::Imm(value) => vector::ones64(value != 0),
            _ => 0,
        }
    }

    /// Writes the lanes of `mask`.
    #[inline(always)]
    pub fn write32(&mut self, dst: Dst, value: &[u32; N], mask: LaneMask) {
        if let Dst::Reg(r) = dst {
            let register = &mut self.words[r.index()];
            if mask & all_lanes::<N>() == all_lanes::<N>() {
                *register = *value;
            } else {
                merge(register, value, &spread(mask.0));
            }
        }
    }

    /// Writes the lanes of `mask`, low words to the destination and high words to the register after it.
    #[inline(always)]
    pub fn write64(&mut self, dst: Dst, value: &[u64; N], mask: LaneMask) {
        let (mut lo, mut hi) = ([0; N], [0; N]);
        for i in 0..N {
            lo[i] = value[i] as u32;
            hi[i] = (value[i] >> 32) as u32;
        }
        self.write_words(dst, &lo, &hi, mask);
    }

    /// Writes the lanes of `mask`.
    #[inline(always)]
    pub fn write_pred(&mut self, dst: Dst, value: u64, mask: LaneMask) {
        if let Dst::Pred(p) = dst {
            let mask = (mask & all_lanes::<N>()).0;
            let pred = &mut self.preds[p.index()];
            *pred = (value & mask) | (*pred & !mask);
        }
    }

    #[inline(always)]
    fn write_words(&mut self, dst: Dst, lo: &[u32; N], hi: &[u32; N], mask: LaneMask) {
        if let Dst::Reg(r) = dst {
            let [low, high] = &mut self.words[r.index()..r.index() + 2] else { return };
            if mask & all_lanes::<N>() == all_lanes::<N>() {
                (*low, *high) = (*lo, *hi);
            } else {
                let k = spread::<N>(mask.0);
                merge(low, lo, &k);
                merge(high, hi, &k);
            }
        }
    }
}

/// Lanes that take part in an instruction.
#[derive(Clone, Copy)]
pub(crate) struct Taking<'a, const N: usize> {
    pub(crate) mask: LaneMask,
    /// They are all that there are.
    pub(crate) full: bool,
    /// A word of each lane, all ones if it takes part; `None` if nobody has made them yet.
    pub(crate) words: Option<&'a [u32; N]>,
}

impl<const N: usize> Taking<'_, N> {
    #[inline(always)]
    pub(crate) fn of(mask: LaneMask) -> Self {
        Taking { mask, full: mask & all_lanes::<N>() == all_lanes::<N>(), words: None }
    }

    #[inline(always)]
    pub(crate) fn words(&self) -> [u32; N] {
        match self.words {
            Some(words) => *words,
            None => spread(self.mask.0),
        }
    }
}

/// Replaces the lanes of `register` whose word in `k` is all ones by those of `value`.
#[inline(always)]
pub(crate) fn merge<const N: usize>(register: &mut [u32; N], value: &[u32; N], k: &[u32; N]) {
    for i in 0..N {
        register[i] = blend(k[i], value[i], register[i]);
    }
}

/// Executes a lane operation on the lanes of `mask`, which already includes the guard. Returns false, and does nothing,
/// if `inst.op` is something else: memory, communication, control, special registers.
#[multiversion(targets(
    "x86_64+avx+avx2+bmi1+bmi2+f16c+fma+lzcnt+movbe+popcnt+sse3+sse4.1+sse4.2+ssse3+xsave",
))]
pub fn execute<const N: usize>(
    inst: &Inst,
    regs: &mut Registers<'_, N>,
    imms: &[u64],
    mask: LaneMask,
) -> bool {
    step::<N>(inst, regs, imms, mask)
}

/// Binds a source operand: a view of its register, or of an array filled with the immediate.
macro_rules! source {
    ($name:ident, $operand:expr, $regs:ident, $imms:ident) => {
        let (low, high);
        let $name = match $operand {
            Operand::Reg(r) => {
                let lo = &$regs.words[r.index()];
                Source { lo, hi: $regs.words.get(r.index() + 1).unwrap_or(lo) }
            }
            Operand::Imm(value) => {
                low = [value; N];
                Source { lo: &low, hi: const { &[0; N] } }
            }
            Operand::Imm64(id) => {
                let value: u64 = $imms[id.index()];
                low = [value as u32; N];
                high = [(value >> 32) as u32; N];
                Source { lo: &low, hi: &high }
            }
            Operand::Frame => {
                low = [$regs.frame; N];
                Source { lo: &low, hi: const { &[0; N] } }
            }
            _ => Source { lo: const { &[0; N] }, hi: const { &[0; N] } },
        };
    };
}

#[inline(always)]
fn step<const N: usize>(inst: &Inst, regs: &mut Registers<'_, N>, imms: &[u64], mask: LaneMask) -> bool {
    source!(a, inst.src[0], regs, imms);
    source!(b, inst.src[1], regs, imms);
    source!(c, inst.src[2], regs, imms);
    let filled = compute(Inputs { inst, regs, a, b, c });
    write(inst, regs, filled, mask)
}

/// Writes a result under the mask. Returns false if there is none.
#[inline(always)]
fn write<const N: usize>(
    inst: &Inst,
    regs: &mut Registers<'_, N>,
    filled: Filled<N>,
    mask: LaneMask,
) -> bool {
    match filled {
        Filled::Word(lo) => regs.write32(inst.dst, &lo, mask),
        Filled::Wide(lo, hi) => regs.write_words(inst.dst, &lo, &hi, mask),
        Filled::Pred(p) => regs.write_pred(inst.dst, p, mask),
        Filled::Preds(p, q) => {
            regs.write_pred(inst.dst, p, mask);
            regs.write_pred(inst.dst2, q, mask);
        }
        Filled::WordCarry(lo, carry) => {
            regs.write32(inst.dst, &lo, mask);
            regs.write_pred(inst.dst2, carry, mask);
        }
        Filled::WideCarry(lo, hi, carry) => {
            regs.write_words(inst.dst, &lo, &hi, mask);
            regs.write_pred(inst.dst2, carry, mask);
        }
        Filled::Nothing => return false,
    }
    true
}

#[inline(always)]
fn compute<const N: usize>(inputs: Inputs<'_, N>) -> Filled<N> {
    use Op::*;
    let Inputs { inst, regs, a, b, c } = inputs;
    // A copy for the functions that are not inlined, so that `inputs` is in memory only on their paths.
    let again = || Inputs { inst, regs, a, b, c };
    match inst.op {
        Mov(_)
        | MovPred
        | Pack64
        | Pack32x16
        | Unpack64(_)
        | Unpack32(_)
        | UnpackByte(_)
        | Selp(_)
        | Slct { .. }
        | Prmt(_) => moves::compute(inputs),

        IAdd(..) | ISub(..) | IMul(..) | IMad(..) | AddCarry(_) | SubBorrow(_) | IAbs(_) | INeg(_)
        | IMin(..) | IMax(..) => integer::compute(inputs),
        Mul24(..) | Mad24(..) | MadCarry(..) | IDiv(_) | IRem(_) | Sad(_) | Dp4a(..) | Dp2a(..) => {
            integer::compute_rare(again())
        }

        Logic(..)
        | Not(_)
        | Cnot(_)
        | LogicPred(_)
        | NotPred
        | Lop3(_)
        | Shl(_)
        | Shr(_)
        | Shf { .. }
        | Popc(_)
        | Clz(_)
        | Bfe(_)
        | Bfi(_) => bits::compute(inputs),
        Brev(_) | Bfind(..) | Fns | Bmsk(_) | Szext(..) => bits::compute_rare(again()),

        Setp { .. } | SetpPred(..) | Set { .. } => compare::compute(inputs),
        Testp(kind, ty) => compare::testp(kind, ty, a),

        FAdd(..) | FSub(..) | FMul(..) | FFma(..) | FDiv(..) | FAbs(..) | FNeg(..) | FMin(..) | FMax(..)
        | Copysign(_) => float::compute(inputs),
        FRounded(..) => float::rounded_rare(again()),
        FDivApprox { .. } | FApprox(..) => approx::compute_rare(again()),

        Cvt(cvt) => convert::compute(cvt, a),
        CvtPair(cvt) => convert::pair_rare(cvt, a, b),
        CvtPack(ty) => convert::pack_rare(ty, again()),
        CvtNarrow(cvt) => narrow::convert_rare(cvt, a, b),
        Video(video) => video::compute_rare(video, a, b, c),

        _ => Filled::Nothing,
    }
}
