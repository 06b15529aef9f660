//! One instruction: plain data of 72 bytes. The opcode carries everything that is not an operand. Start at [`Inst`].

use crate::bulk::Bulk;
use crate::matrix::*;
use crate::narrow::CvtNarrow;
use crate::texture::*;
use crate::types::*;
use crate::video::Video;

/// A newtype over a small integer that indexes a dense array.
macro_rules! index_type {
    ($(#[$doc:meta])* $vis:vis $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        $vis struct $name($vis u32);
        impl $name {
            #[inline(always)]
            $vis const fn index(self) -> usize {
                self.0 as usize
            }
        }
    };
}

index_type!(
    /// A 32-bit register, or the first of the two that hold a 64-bit value. Virtual in a [`crate::Body`]
    /// before allocation (then one number per value, whatever its width), physical afterwards.
    pub Reg
);
index_type!(
    /// A predicate register: one bit per lane.
    pub Pred
);
index_type!(
    /// An instruction's index: in its function's body before linking, in the kernel's code afterwards.
    pub Pc
);
index_type!(
    /// The register list of a vector load or store ([`crate::Body::vectors`]).
    pub VecId
);
index_type!(
    /// A 64-bit immediate ([`crate::Kernel::imms`]) that does not fit in 32 bits.
    pub ImmId
);
index_type!(
    /// A use of a symbol's address ([`crate::Body::symbols`]); linking turns it into an immediate.
    pub SymbolUseId
);

impl Pc {
    /// The reconvergence point of a branch whose paths meet only where the function returns.
    pub const RETURN: Pc = Pc(u32::MAX);
}

/// A source operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operand {
    /// Not used by this opcode.
    None,
    /// A register; two words for a wide type.
    Reg(Reg),
    /// The same 32 bits in every lane; zero-extended where the type is wide, truncated where it is narrow.
    Imm(u32),
    /// The same 64 bits in every lane.
    Imm64(ImmId),
    Pred(Pred),
    /// The complement of a predicate.
    NotPred(Pred),
    Vec(VecId),
    /// The address of a symbol. Linked code has none.
    Symbol(SymbolUseId),
    /// The start of the running function's frame in local memory.
    Frame,
}

/// A destination operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dst {
    /// No result, or one that is dropped (PTX's `_`).
    None,
    /// A register; two words for a wide type.
    Reg(Reg),
    Pred(Pred),
    Vec(VecId),
}

/// Which of the active lanes an instruction acts on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Guard {
    Always,
    /// Lanes whose predicate is true.
    If(Pred),
    /// Lanes whose predicate is false.
    Unless(Pred),
}

/// An instruction. Each opcode's comment says which operands it uses; the others are `None`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Inst {
    pub op: Op,
    pub guard: Guard,
    pub dst: Dst,
    /// A second result: the other predicate of `setp p|q`, a carry, `shfl`'s predicate.
    pub dst2: Dst,
    pub src: [Operand; 4],
}

impl Inst {
    /// Moves the instructions that this one points at: targets of branches and reconvergence points. One that lies past
    /// the end, as a listing may state it, stays.
    pub(crate) fn redirect(&mut self, places: &[Pc]) {
        let points = match self.op {
            Op::Ssy => 0..1,
            Op::Bra => 0..2,
            Op::Brx => 2..3,
            _ => return,
        };
        for point in &mut self.src[points] {
            if let Operand::Imm(pc) = point
                && let Some(place) = places.get(*pc as usize)
            {
                *pc = place.0;
            }
        }
    }
}

impl Inst {
    /// An unguarded instruction with up to four sources.
    pub fn new(op: Op, dst: Dst, sources: &[Operand]) -> Self {
        let mut src = [Operand::None; 4];
        src[..sources.len()].copy_from_slice(sources);
        Inst { op, guard: Guard::Always, dst, dst2: Dst::None, src }
    }
}

/// The operation. Comments name the sources in order (`a b c` = `src[0..3]`) and the results (`d` = `dst`,
/// `q` = `dst2`). Memory operands are a pair: a base address and a signed 32-bit byte offset (always an `Imm`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    // ---- moves and selections -------------------------------------------------------------------------
    /// d = a. `Ty` only gives the width: 32 bits or 64.
    Mov(Ty),
    /// d (predicate) = a (predicate or immediate 0/1).
    MovPred,
    /// d (64) = b:a, low word first. (`mov.b64 d, {a, b}`.)
    Pack64,
    /// d (32) = the low 16 bits of a, then of b. (`mov.b32 d, {a, b}`.)
    Pack32x16,
    /// d (32) = word `0` or `1` of the 64-bit a.
    Unpack64(u8),
    /// d (16) = half `0` or `1` of the 32-bit a.
    Unpack32(u8),
    /// d (32) = byte `0` to `3` of the 32-bit a.
    UnpackByte(u8),
    /// d = the value of a special register.
    Special(Special),
    /// d (32 or 64 by Ty) = c ? a : b, c a predicate.
    Selp(Ty),
    /// d = c >= 0 ? a : b; c is s32, or f32 if `float` (then NaN selects b; -0.0 selects a).
    Slct {
        /// Type of a, b and d. Only its width matters.
        ty: Ty,
        /// Whether c is f32.
        float: bool,
        ftz: bool,
    },
    /// d = lane-wise byte selection of b:a by c.
    Prmt(PrmtMode),

    // ---- integer arithmetic: Ty is U16 S16 U32 S32 U64 S64, U16x2 S16x2 where noted ---------------------
    /// d = a + b (also x2). Saturation is signed and for S32 (and the x2 types) only.
    IAdd(Ty, Clamp),
    /// d = a - b (S32 may saturate).
    ISub(Ty, Clamp),
    /// d = part of a * b. `Wide` on 16 gives 32 bits, on 32 gives 64.
    IMul(Ty, Part),
    /// d = part of a * b + c. With `Wide`, c and d have twice the width. Sat: S32 with `Hi` only.
    IMad(Ty, Part, Clamp),
    /// d = 24-bit product: bits 0–31 (`Lo`) or 16–47 (`Hi`). Ty is U32 or S32.
    Mul24(Ty, Part),
    /// d = 24-bit product + c. Sat: S32 with `Hi` only.
    Mad24(Ty, Part, Clamp),
    /// d = a + b (+ carry in), q = carry out. Ty is U32 or U64; c is the carry predicate or None. q may be None.
    AddCarry(Ty),
    /// d = a - b (- borrow in), q = carry out. Operands as for `AddCarry`. c and q hold the carry of a + !b + 1, which
    /// is set when there is *no* borrow. Without c, nothing is borrowed.
    SubBorrow(Ty),
    /// d = part of a * b + c (+ carry in), q = carry out; `src[3]` is the carry predicate or None. Lo or Hi.
    MadCarry(Ty, Part),
    /// d = a / b. Division by zero gives all ones; MIN / -1 gives MIN.
    IDiv(Ty),
    /// d = a % b. Division by zero gives all ones; MIN % -1 gives 0.
    IRem(Ty),
    /// d = |a|, wrapping at the type's minimum.
    IAbs(Ty),
    /// d = -a, wrapping at the type's minimum.
    INeg(Ty),
    /// d = min(a, b) (also x2; Relu on signed types).
    IMin(Ty, Clamp),
    /// d = max(a, b) (also x2; Relu on signed types).
    IMax(Ty, Clamp),
    /// d = c + |a - b|.
    Sad(Ty),
    /// d = c + dot product of four bytes of a and b; the flags say whether a's and b's bytes are signed.
    Dp4a(bool, bool),
    /// d = c + dot product of a's two halves with the low (or, third flag, high) two bytes of b.
    Dp2a(bool, bool, bool),

    // ---- bits -----------------------------------------------------------------------------------------
    /// d = a op b; Ty is B16, B32 or B64.
    Logic(Logic, Ty),
    /// d = ~a.
    Not(Ty),
    /// d = a == 0 ? 1 : 0.
    Cnot(Ty),
    /// d (predicate) = a op b, all predicates.
    LogicPred(Logic),
    /// d (predicate) = !a.
    NotPred,
    /// d = a, b and c combined bitwise by a truth table of eight bits.
    Lop3(u8),
    /// d = a << b (b is u32); 0 if b is at least the width. Ty is B16, B32, B64.
    Shl(Ty),
    /// d = a >> b, arithmetic for signed types; all sign bits (or 0) if b is at least the width.
    Shr(Ty),
    /// d = 32 bits out of b:a, shifted by c: left or right; wrapping (c mod 32) or clamped (c at most 32).
    Shf {
        /// Left: the upper word of (b:a << c); right: the lower word of (b:a >> c).
        left: bool,
        /// Shift count modulo 32 instead of clamped to 32.
        wrap: bool,
    },
    /// d (u32) = ones in a. Ty is B32 or B64.
    Popc(Ty),
    /// d (u32) = leading zeros of a.
    Clz(Ty),
    /// d = a with its bits in reverse order.
    Brev(Ty),
    /// d (u32) = position of the highest non-sign bit, or all ones; with the flag, the shift that moves it to the top.
    Bfind(Ty, bool),
    /// d = position of the c-th set bit of a, starting at bit b (downwards if c is negative), or all ones.
    Fns,
    /// d = the field of a at position b, length c (both u32, low 8 bits), sign- or zero-extended.
    Bfe(Ty),
    /// d = b with a's low bits inserted at position c, length `src[3]`. Ty is B32 or B64.
    Bfi(Ty),
    /// d = mask of b ones starting at bit a; the flag wraps instead of clamping.
    Bmsk(bool),
    /// d = a sign- (S32) or zero-extended (U32) from its low b bits; the flag wraps instead of clamping.
    Szext(Ty, bool),

    // ---- comparison ------------------------------------------------------------------------------------
    /// d (predicate) = (a cmp b) combine c; q = !(a cmp b) combine c. Any integer, bit or float type.
    Setp {
        cmp: Cmp,
        combine: Combine,
        /// Type of a and b. For F16x2/BF16x2, d is the low half's result and q the high half's.
        ty: Ty,
        ftz: bool,
    },
    /// d (predicate) = (a cmp b) combine c, where a and b are predicates too and cmp is Eq or Ne.
    SetpPred(Cmp, Combine),
    /// d = ((a cmp b) combine c) as all ones or 1.0.
    Set {
        cmp: Cmp,
        combine: Combine,
        src: Ty,
        /// U32, S32, F32, U16, S16, F16 or BF16; for x2 sources F16x2, BF16x2 or U16x2 (a U32 as two halves).
        dst: Ty,
        ftz: bool,
    },

    // ---- floating point: Ty is F16 F16x2 BF16 BF16x2 F32 F64 --------------------------------------------
    /// d = a + b.
    FAdd(Ty, FloatMode),
    /// d = a - b.
    FSub(Ty, FloatMode),
    /// d = a * b.
    FMul(Ty, FloatMode),
    /// d = a * b + c, one rounding.
    FFma(Ty, FloatMode),
    /// d = a / b, correctly rounded (F32, F64).
    FDiv(Ty, FloatMode),
    /// d = a / b within 2 ulp (`div.approx` and `div.full`), by way of a reciprocal; F32.
    FDivApprox {
        /// `div.full`: the reciprocal does not overflow.
        full: bool,
        ftz: bool,
    },
    /// d = |a|; the flag flushes subnormals. A NaN becomes canonical or, in F64, quiet with its sign.
    FAbs(Ty, bool),
    /// d = -a; flag and NaN as for `FAbs`.
    FNeg(Ty, bool),
    /// d = min(a, b).
    FMin(Ty, MinMax),
    /// d = max(a, b).
    FMax(Ty, MinMax),
    /// d = 1/a or sqrt(a), correctly rounded: `Approx` is Rcp or Sqrt; F32, F64.
    FRounded(Approx, Ty, FloatMode),
    /// d = approximation of f(a); the flag flushes subnormals. F32; Tanh and Ex2 also on the half types; Rcp and Rsqrt
    /// also on F64. In F64 the flag uses only the upper word of a and d; without it (Rsqrt only) both words count.
    FApprox(Approx, Ty, bool),
    /// d (predicate) = whether a is of that kind.
    Testp(TestKind, Ty),
    /// d = |b| with a's sign.
    Copysign(Ty),

    // ---- conversion -------------------------------------------------------------------------------------
    /// d = a converted.
    Cvt(Cvt),
    /// d = two converted floats: a to the upper, b to the lower half. `Cvt::to` is F16x2 or BF16x2, `from` F32.
    CvtPair(Cvt),
    /// d = saturated a and b packed below c: `cvt.pack.sat.to.s32.b32 d, a, b, c`; Ty is U16 S16 (c None) U8 S8.
    CvtPack(Ty),
    /// d = a, or a and b, converted to or from a format that threads do not compute in.
    CvtNarrow(CvtNarrow),
    /// d = a op b on parts of words; c is what the results are added to.
    Video(Video),

    // ---- memory -----------------------------------------------------------------------------------------
    /// d (register or vector) = [a + b]. Sub-word data extends to one word, or to two if `wide`.
    Ld {
        access: Access,
        /// The destination registers are 64 bits wide.
        wide: bool,
    },
    /// [a + b] = c (register, immediate or vector).
    St(Access),
    /// d = [a + b] of shared memory, q (predicate) = whether this lane took the word's lock bit.
    LdLock(Access),
    /// [a + b] = c of shared memory; then the word's lock bit is free.
    StUnlock(Access),
    /// d = old value of [a + b]; new = old op c (for Cas: `src[2]` is compared, `src[3]` stored). `dst` None is `red`.
    Atom(AtomOp, Access),
    /// d = a (address in the named space) as a generic address. Ty is U32 or U64.
    ToGeneric(Space, Ty),
    /// d = a (generic address) as an address in the named space.
    FromGeneric(Space, Ty),
    /// d (predicate) = whether generic address a lies in the space. Ty is U32 or U64: the address's width.
    IsSpace(Space, Ty),
    /// d = address a of shared memory, as it is in the CTA of rank b (u32) of the cluster. With the flag, a and d are
    /// generic addresses, otherwise addresses in shared memory. Ty is U32 or U64.
    Mapa(bool, Ty),
    /// d (u32) = the rank of the CTA whose shared memory address a is in. Flag and type as for `Mapa`.
    CtaRank(bool, Ty),
    Fence(Order, Scope),
    /// The hints prefetch, discard and applypriority: no effect, and the address a + b is not checked.
    Prefetch,
    /// Copy c bytes of global memory at b (64 bits wide) to shared memory at a (32 bits wide) and fill up with zeros to
    /// the size: 4, 8 or 16 bytes. c is at most the size.
    CpAsync(u8),
    /// Close the current group of asynchronous copies.
    CpAsyncCommit,
    /// Wait until at most a (Imm) groups are pending.
    CpAsyncWait,
    /// `[a] = b` (register or vector) in the shared memory of any CTA of the cluster; when the bytes are there, they
    /// count at the mbarrier c of that CTA. a and c are addresses in shared memory (32 bits).
    StAsync(Ty, u8),
    /// As `StAsync`, with an operation on the word.
    RedAsync(AtomOp, Ty),
    /// A bulk copy: a is an address in shared memory (32 bits), b one of global memory or the generic address of a
    /// tensor map, c (vector) the number of bytes or the coordinates, then the mask of a multicast, and `src[3]` the
    /// mbarrier at which the bytes count (an address in shared memory) or None.
    Bulk(Bulk),
    /// Close the current group of bulk copies.
    BulkCommit,
    /// Wait until at most a (Imm) groups of bulk copies are pending; with the flag, until the others have been read.
    BulkWait(bool),
    /// An mbarrier operation; the flag says whether the address register is 64 bits wide.
    Mbarrier(MbarrierOp, bool),

    // ---- textures and surfaces; handles have 64 bits --------------------------------------------------------
    /// d (vector) = texel of texture a with sampler b (None: the texture's own) at the coordinates c (vector), which
    /// begin with the layer, if there is any, and end with what the mode needs; `src[3]` = offsets in texels or None.
    Tex(Fetch),
    /// d (32) = a property of texture or surface a; b = its level or None. With the flag, a is a sampler.
    TexQuery(Query, bool),
    /// d (register or vector) = bytes of surface a at the coordinates b (vector).
    SurfaceLd(SurfaceAccess),
    /// Bytes of surface a at the coordinates b (vector) = c (register, immediate or vector).
    SurfaceSt(SurfaceAccess),
    /// Element of surface a at the coordinates b (vector) = element op c.
    SurfaceRed(AtomOp, SurfaceAccess),

    // ---- matrices -----------------------------------------------------------------------------------------
    /// d (vector) = a * b + c (vectors), matrices that the lanes of a warp hold together.
    Mma(Mma),
    /// d (vector) = matrices of shared memory, whose rows are at the addresses a + b of the first lanes.
    LdMatrix(MatrixAccess),
    /// Matrices of shared memory at [a + b] = c (vector).
    StMatrix(MatrixAccess),
    /// d = the transposed 8 x 8 matrix a of 16-bit elements.
    MovMatrix,

    /// d (vector) = a * b, plus `src[3]` if the predicate c is true, by four warps together. a is a vector or the
    /// descriptor of a matrix in shared memory, b a descriptor.
    Wgmma(Wgmma),
    /// Close the current group of such products.
    WgmmaCommit,
    /// Wait until at most a (Imm) groups of such products are pending.
    WgmmaWait,

    // ---- communication within a warp ------------------------------------------------------------------
    /// d = predicate (or ballot word); a = predicate; b = member mask, or None in the old form without a mask.
    Vote(VoteMode),
    /// d = a of another lane, q = whether that lane is in range; b = lane or delta, c = clamp and segment mask,
    /// `src[3]` = member mask or None.
    Shfl(ShflMode),
    /// d = mask of lanes whose a equals this lane's; b = member mask. Ty is B32 or B64.
    MatchAny(Ty),
    /// d = member mask if all a are equal, else 0; q = whether they are; b = member mask.
    MatchAll(Ty),
    /// d = reduction of a over the lanes of member mask b. Ty is U32, S32, B32 (F32 with Min/Max).
    Redux(ReduxOp, Ty),
    /// d = mask of the active lanes.
    ActiveMask,
    /// d = elected lane, q = whether this lane is elected; a = member mask.
    Elect,
    /// d (64) = mask of the active lanes of the whole wavefront whose predicate a is true.
    WaveBallot,
    /// d (64) = mask of the active lanes of the whole wavefront.
    WaveActive,
    /// d = a of lane b of the whole wavefront, or this lane's a if lane b is not active. Ty is B32 or B64.
    WaveShfl(Ty),

    // ---- synchronization ---------------------------------------------------------------------------------
    /// Named barrier: a = id, b = thread count or None. Reductions: c = predicate, d = predicate or count.
    Bar(BarMode),
    /// Wait for the lanes of mask a.
    BarWarp,
    /// The barrier of the cluster.
    ClusterBar(ClusterBar),
    /// Sleep about a nanoseconds.
    Nanosleep,
    /// The wavefront leaves the SM until the resource that a (64) names is free.
    Yield,

    // ---- control ------------------------------------------------------------------------------------------
    /// Branches from here until a (`Imm` pc) is reached reconverge at a. The instruction itself has no effect.
    Ssy,
    /// Jump to a (`Imm` pc); b is the reconvergence pc, which linking sets.
    Bra,
    /// Jump to entry a (register) of table b (`Imm`, [`crate::Body::tables`]); c is the reconvergence pc, as in `Bra`.
    Brx,
    /// Call site a (`Imm`, [`crate::Body::calls`]).
    Call,
    /// Return to the caller; in the kernel's own body the thread ends.
    Ret,
    /// The thread ends.
    Exit,
    /// The launch ends with an error.
    Trap,
    /// The top of the thread's stack; addresses (32 bits) are of local memory.
    Stack(StackOp),
    /// d (s32, may be None) = vprintf(format a, arguments b), generic addresses.
    Printf,
    /// The launch ends with an error: message a, file b, function `src[3]` (generic addresses), line c (u32).
    AssertFail,
    Nop,
}

impl Op {
    /// Whether it needs to know the cluster of its CTA.
    pub const fn is_of_clusters(self) -> bool {
        match self {
            Op::Mapa(..) | Op::CtaRank(..) | Op::ClusterBar(_) | Op::StAsync(..) | Op::RedAsync(..) => true,
            Op::Bulk(bulk) => bulk.is_of_clusters(),
            _ => false,
        }
    }

    /// Whether lanes of a warp tell each other something.
    pub const fn is_exchange(self) -> bool {
        matches!(
            self,
            Op::Vote(_)
                | Op::Shfl(_)
                | Op::MatchAny(_)
                | Op::MatchAll(_)
                | Op::Redux(..)
                | Op::ActiveMask
                | Op::Elect
                | Op::WaveBallot
                | Op::WaveActive
                | Op::WaveShfl(_)
        )
    }
}

/// How `min` and `max` treat NaN and signs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MinMax {
    /// The result is NaN if either input is. Otherwise the other input wins over NaN.
    pub nan: bool,
    pub ftz: bool,
    /// Magnitudes are compared; the result's sign is the XOR of the inputs' (`.xorsign.abs`).
    pub xorsign_abs: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Cvt {
    pub to: Ty,
    pub from: Ty,
    /// If `integral`, rounding to an integral value.
    pub round: Round,
    /// Float to float of the same type, rounded to an integral value (`.rni`, `.rzi`, `.rmi`, `.rpi`).
    pub integral: bool,
    /// Flush subnormals of f32. No effect from f32 to f16.
    pub ftz: bool,
    pub clamp: Clamp,
}

const _: () = assert!(size_of::<Op>() <= 12 && size_of::<Inst>() <= 72);
