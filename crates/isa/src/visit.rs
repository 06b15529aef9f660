//! Which registers and predicates an instruction reads and writes, and how many words of each.
//!
//! [`Op::shape`] is the one place that knows the width of every operand; everything else (liveness, register
//! allocation, a machine's scoreboard) goes through [`Inst::for_each_use`] and [`Inst::for_each_def`]. They work on
//! bodies with virtual or physical registers and on linked kernels alike: what differs is only where vector and
//! call operands are kept, which [`Lists`] hides.

use crate::inst::*;
use crate::kernel::*;
use crate::module::*;
use crate::types::*;

impl Width {
    pub const fn words(self) -> u32 {
        match self {
            Width::One => 1,
            Width::Two => 2,
        }
    }

    /// The width of a register that holds a value of this type.
    pub const fn of(ty: Ty) -> Width {
        Width::wide(ty.is_wide())
    }

    pub const fn wide(wide: bool) -> Width {
        if wide { Width::Two } else { Width::One }
    }
}

/// A register or predicate that an instruction accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Value {
    /// A register and how many of its words are accessed.
    Reg(Reg, Width),
    Pred(Pred),
}

/// The widths of an instruction's register operands. For a vector operand it is the width of each element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Width of `dst`. (`dst2` is a predicate or one word.)
    pub dst: Width,
    pub src: [Width; 4],
}

/// The operand lists of a program that do not fit into an instruction.
pub trait Lists {
    /// The elements of a vector operand.
    fn vector(&self, id: VecId) -> &[Operand];
    /// The operand that holds the callee's handle, if call site `site` is indirect.
    fn indirect_callee(&self, site: u32) -> Option<Operand>;
}

impl Lists for Body {
    fn vector(&self, id: VecId) -> &[Operand] {
        &self.vectors[id.index()]
    }
    fn indirect_callee(&self, site: u32) -> Option<Operand> {
        match self.calls[site as usize].callee {
            Callee::Indirect(operand) => Some(operand),
            Callee::Direct(_) => None,
        }
    }
}

impl Lists for Kernel {
    fn vector(&self, id: VecId) -> &[Operand] {
        &self.vectors[id.index()]
    }
    fn indirect_callee(&self, site: u32) -> Option<Operand> {
        match self.calls[site as usize].callee {
            LinkedCallee::Indirect(operand) => Some(operand),
            LinkedCallee::Direct(_) => None,
        }
    }
}

impl Op {
    /// The width of each operand. An operand with the module's address width (`printf`, a function handle) is given as
    /// one word. That is enough to order it after its definition, which always writes both words.
    pub const fn shape(self) -> Shape {
        use Width::{One, Two};
        const fn shape(dst: Width, src: [Width; 4]) -> Shape {
            Shape { dst, src }
        }
        const fn all(ty: Ty) -> Shape {
            let w = Width::of(ty);
            shape(w, [w; 4])
        }
        match self {
            Op::Mov(ty)
            | Op::IAdd(ty, _)
            | Op::ISub(ty, _)
            | Op::AddCarry(ty)
            | Op::SubBorrow(ty)
            | Op::MadCarry(ty, _)
            | Op::IDiv(ty)
            | Op::IRem(ty)
            | Op::IAbs(ty)
            | Op::INeg(ty)
            | Op::IMin(ty, _)
            | Op::IMax(ty, _)
            | Op::Sad(ty)
            | Op::Logic(_, ty)
            | Op::Not(ty)
            | Op::Cnot(ty)
            | Op::Brev(ty)
            | Op::FAdd(ty, _)
            | Op::FSub(ty, _)
            | Op::FMul(ty, _)
            | Op::FFma(ty, _)
            | Op::FDiv(ty, _)
            | Op::FAbs(ty, _)
            | Op::FNeg(ty, _)
            | Op::FMin(ty, _)
            | Op::FMax(ty, _)
            | Op::FRounded(_, ty, _)
            | Op::FApprox(_, ty, _)
            | Op::Testp(_, ty)
            | Op::Copysign(ty)
            | Op::Selp(ty)
            | Op::ToGeneric(_, ty)
            | Op::FromGeneric(_, ty)
            | Op::IsSpace(_, ty) => all(ty),

            Op::Pack64 | Op::WaveBallot | Op::WaveActive => shape(Two, [One; 4]),
            Op::Yield => shape(One, [Two, One, One, One]),
            Op::Mma(mma) => shape(Width::wide(mma.d.bits() == 64), [Width::wide(mma.a.bits() == 64); 4]),
            Op::Wgmma(wgmma) => shape(One, [Width::wide(wgmma.a_shared), Two, One, One]),
            Op::LdMatrix(access) | Op::StMatrix(access) => {
                shape(One, [Width::wide(access.wide_address), One, One, One])
            }
            Op::Mapa(_, ty) => shape(Width::of(ty), [Width::of(ty), One, One, One]),
            Op::CtaRank(_, ty) => shape(One, [Width::of(ty), One, One, One]),
            Op::Unpack64(_) => shape(One, [Two; 4]),
            Op::Special(special) => shape(Width::wide(special.is_wide()), [One; 4]),
            Op::Slct { ty, .. } => {
                let w = Width::of(ty);
                shape(w, [w, w, One, One])
            }
            Op::IMul(ty, part) | Op::IMad(ty, part, _) => {
                let w = Width::of(ty);
                let d = match part {
                    Part::Wide => Width::wide(ty.bytes() >= 4),
                    Part::Lo | Part::Hi => w,
                };
                shape(d, [w, w, d, One])
            }
            Op::Shl(ty) | Op::Shr(ty) | Op::Bfe(ty) | Op::WaveShfl(ty) => {
                let w = Width::of(ty);
                shape(w, [w, One, One, One])
            }
            Op::Popc(ty) | Op::Clz(ty) | Op::Bfind(ty, _) | Op::MatchAny(ty) | Op::MatchAll(ty) => {
                shape(One, [Width::of(ty), One, One, One])
            }
            Op::Bfi(ty) => {
                let w = Width::of(ty);
                shape(w, [w, w, One, One])
            }
            Op::Setp { ty, .. } => {
                let w = Width::of(ty);
                shape(One, [w, w, One, One])
            }
            Op::Set { src, dst, .. } => {
                let w = Width::of(src);
                shape(Width::of(dst), [w, w, One, One])
            }
            Op::Cvt(cvt) | Op::CvtPair(cvt) => shape(Width::of(cvt.to), [Width::of(cvt.from); 4]),
            Op::Ld { access, wide } => shape(
                Width::wide(wide || access.ty.is_wide()),
                [Width::wide(access.wide_address), One, One, One],
            ),
            Op::LdLock(access) | Op::StUnlock(access) | Op::St(access) | Op::Atom(_, access) => {
                let w = Width::of(access.ty);
                shape(w, [Width::wide(access.wide_address), One, w, w])
            }
            Op::CpAsync(_) | Op::Bulk(_) => shape(One, [One, Two, One, One]),
            Op::Tex(_) => shape(One, [Two, Two, One, One]),
            Op::TexQuery(..) => shape(One, [Two, One, One, One]),
            Op::SurfaceLd(access) | Op::SurfaceSt(access) | Op::SurfaceRed(_, access) => {
                let w = Width::of(access.ty);
                shape(w, [Two, One, w, One])
            }
            Op::StAsync(ty, _) | Op::RedAsync(_, ty) => shape(One, [One, Width::of(ty), One, One]),
            Op::Mbarrier(op, wide_address) => {
                let address = Width::wide(wide_address);
                match op {
                    MbarrierOp::Arrive | MbarrierOp::ArriveDrop | MbarrierOp::ArriveExpectTx => {
                        shape(Two, [address, One, One, One])
                    }
                    MbarrierOp::TestWait => shape(One, [address, One, Two, One]),
                    MbarrierOp::PendingCount => shape(One, [Two, One, One, One]),
                    MbarrierOp::Init
                    | MbarrierOp::Inval
                    | MbarrierOp::ExpectTx
                    | MbarrierOp::CompleteTx
                    | MbarrierOp::TestWaitParity => shape(One, [address, One, One, One]),
                }
            }

            Op::MovPred
            | Op::Pack32x16
            | Op::Unpack32(_)
            | Op::UnpackByte(_)
            | Op::Prmt(_)
            | Op::Mul24(..)
            | Op::Mad24(..)
            | Op::Dp4a(..)
            | Op::Dp2a(..)
            | Op::LogicPred(_)
            | Op::NotPred
            | Op::Lop3(_)
            | Op::Shf { .. }
            | Op::Fns
            | Op::Bmsk(_)
            | Op::Szext(..)
            | Op::SetpPred(..)
            | Op::FDivApprox { .. }
            | Op::CvtPack(_)
            | Op::CvtNarrow(_)
            | Op::Video(_)
            | Op::Stack(_)
            | Op::Fence(..)
            | Op::Prefetch
            | Op::CpAsyncCommit
            | Op::BulkCommit
            | Op::WgmmaCommit
            | Op::WgmmaWait
            | Op::BulkWait(_)
            | Op::CpAsyncWait
            | Op::Vote(_)
            | Op::Shfl(_)
            | Op::Redux(..)
            | Op::ActiveMask
            | Op::Elect
            | Op::Bar(_)
            | Op::BarWarp
            | Op::MovMatrix
            | Op::ClusterBar(_)
            | Op::Nanosleep
            | Op::Ssy
            | Op::Bra
            | Op::Brx
            | Op::Call
            | Op::Ret
            | Op::Exit
            | Op::Trap
            | Op::Printf
            | Op::AssertFail
            | Op::Nop => shape(One, [One; 4]),
        }
    }
}

impl Guard {
    /// The guarding predicate, if there is one.
    pub(crate) const fn pred(self) -> Option<Pred> {
        match self {
            Guard::Always => None,
            Guard::If(p) | Guard::Unless(p) => Some(p),
        }
    }
}

impl Inst {
    /// Calls `f` for every register and predicate that is read: the guard, the sources in order with the elements of
    /// vectors, and the operand of an indirect call.
    pub fn for_each_use(&self, lists: &impl Lists, mut f: impl FnMut(Value)) {
        if let Some(p) = self.guard.pred() {
            f(Value::Pred(p));
        }
        let shape = self.op.shape();
        for (&operand, width) in self.src.iter().zip(shape.src) {
            if let Operand::Vec(id) = operand {
                lists
                    .vector(id)
                    .iter()
                    .for_each(|&element| operand_value(element, width).into_iter().for_each(&mut f));
            } else if let Some(value) = operand_value(operand, width) {
                f(value);
            }
        }
        if let (Op::Call, Operand::Imm(site)) = (self.op, self.src[0])
            && let Some(operand) = lists.indirect_callee(site)
            && let Some(value) = operand_value(operand, Width::One)
        {
            f(value);
        }
    }

    /// Calls `f` for every register and predicate that is written. If the instruction is guarded, lanes
    /// that it does not act on keep the old value.
    pub fn for_each_def(&self, lists: &impl Lists, mut f: impl FnMut(Value)) {
        let shape = self.op.shape();
        for (dst, width) in [(self.dst, shape.dst), (self.dst2, Width::One)] {
            match dst {
                Dst::None => {}
                Dst::Reg(r) => f(Value::Reg(r, width)),
                Dst::Pred(p) => f(Value::Pred(p)),
                Dst::Vec(id) => lists
                    .vector(id)
                    .iter()
                    .for_each(|&element| operand_value(element, width).into_iter().for_each(&mut f)),
            }
        }
    }

    /// Whether control never continues at the next instruction: an unguarded jump or end.
    pub const fn ends_flow(&self) -> bool {
        matches!(self.guard, Guard::Always)
            && matches!(self.op, Op::Bra | Op::Brx | Op::Ret | Op::Exit | Op::Trap | Op::AssertFail)
    }

    /// The target of a `bra`.
    pub const fn branch_target(&self) -> Option<Pc> {
        match (self.op, self.src[0]) {
            (Op::Bra, Operand::Imm(pc)) => Some(Pc(pc)),
            _ => None,
        }
    }

    /// The reconvergence point of a branch, once it is set.
    pub const fn reconvergence(&self) -> Option<Pc> {
        match (self.op, self.src[1], self.src[2]) {
            (Op::Bra, Operand::Imm(pc), _) | (Op::Brx, _, Operand::Imm(pc)) => Some(Pc(pc)),
            _ => None,
        }
    }
}

fn operand_value(operand: Operand, width: Width) -> Option<Value> {
    match operand {
        Operand::Reg(r) => Some(Value::Reg(r, width)),
        Operand::Pred(p) | Operand::NotPred(p) => Some(Value::Pred(p)),
        _ => None,
    }
}
