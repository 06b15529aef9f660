//! The operands of each operation in a listing, in the order of the text. The printer and the SASS front end both go by
//! this table; start at [`form`].

use crate::inst::Op;
use crate::types::*;
use crate::video::VideoOp;

/// One operand position in an instruction's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slot {
    /// The result's register or registers; `RZ` if the result is dropped.
    Dst,
    /// The result's predicate; `PT` if the result is dropped.
    DstPred,
    /// The second result's predicate; `PT` if that is dropped.
    Dst2Pred,
    /// A source: register, immediate or address.
    Src(u8),
    /// A source that may be omitted at the end.
    Opt(u8),
    /// The thread count of a barrier: `RZ`, or omitted at the end, means all threads.
    Count(u8),
    /// A predicate that is read.
    Pred(u8),
    /// A predicate that is read; `PT` if omitted at the end.
    OptPred(u8),
    /// The predicate that a comparison is combined with; `PT` with `AND` means no combination.
    Combined(u8),
    /// The memory operand: `src[0]` and the offset `src[1]`.
    Memory,
    Special,
    /// A word that is always the same: a hardware operand that the operation does not use.
    Fixed(&'static str),
    /// The target of `SSY` or `BRA`.
    Target,
    /// The targets of `BRX`.
    Table,
    /// The callee, and the bytes copied between the frames.
    Callee,
}

use Slot::{
    Callee, Combined, Count, Dst, Dst2Pred, DstPred, Fixed, Memory, Opt, OptPred, Pred, Src, Table, Target,
};

/// The operands of an operation. `returns` says whether an atomic has a result: without one it is a `RED`.
pub const fn form(op: Op, returns: bool) -> &'static [Slot] {
    match op {
        Op::Mov(_)
        | Op::Unpack64(_)
        | Op::Unpack32(_)
        | Op::UnpackByte(_)
        | Op::IAbs(_)
        | Op::INeg(_)
        | Op::Not(_)
        | Op::Cnot(_)
        | Op::Popc(_)
        | Op::Clz(_)
        | Op::Brev(_)
        | Op::Bfind(..)
        | Op::FAbs(..)
        | Op::FNeg(..)
        | Op::FRounded(..)
        | Op::FApprox(..)
        | Op::Cvt(_)
        | Op::ToGeneric(..)
        | Op::FromGeneric(..)
        | Op::CtaRank(..)
        | Op::MovMatrix
        | Op::Mbarrier(MbarrierOp::PendingCount, _) => &[Dst, Src(0)],
        Op::Pack64
        | Op::Pack32x16
        | Op::IAdd(..)
        | Op::ISub(..)
        | Op::IMul(..)
        | Op::Mul24(..)
        | Op::IDiv(_)
        | Op::IRem(_)
        | Op::IMin(..)
        | Op::IMax(..)
        | Op::Logic(..)
        | Op::Shl(_)
        | Op::Shr(_)
        | Op::Bmsk(_)
        | Op::Szext(..)
        | Op::FAdd(..)
        | Op::FSub(..)
        | Op::FMul(..)
        | Op::FDiv(..)
        | Op::FDivApprox { .. }
        | Op::FMin(..)
        | Op::FMax(..)
        | Op::Copysign(_)
        | Op::CvtPair(_)
        | Op::MatchAny(_)
        | Op::Redux(..)
        | Op::WaveShfl(_)
        | Op::Mapa(..)
        | Op::Printf => &[Dst, Src(0), Src(1)],
        Op::Slct { .. }
        | Op::IMad(..)
        | Op::Mad24(..)
        | Op::Sad(_)
        | Op::Dp4a(..)
        | Op::Dp2a(..)
        | Op::Lop3(_)
        | Op::Shf { .. }
        | Op::Fns
        | Op::Bfe(_)
        | Op::Mma(_)
        | Op::FFma(..) => &[Dst, Src(0), Src(1), Src(2)],
        // Fermi puts the selector between the words.
        Op::Prmt(_) => &[Dst, Src(0), Src(2), Src(1)],
        Op::Bfi(_) => &[Dst, Src(0), Src(1), Src(2), Src(3)],
        Op::CvtPack(_) => &[Dst, Src(0), Src(1), Opt(2)],
        Op::Video(video) if video.summed != 0 || matches!(video.op, VideoOp::Mad(_)) => {
            &[Dst, Src(0), Src(1), Src(2)]
        }
        Op::Video(_) => &[Dst, Src(0), Src(1)],
        Op::Stack(StackOp::Alloca(_)) => &[Dst, Src(0)],
        Op::Stack(StackOp::Save) => &[Dst],
        Op::Stack(StackOp::Restore) => &[Src(0)],
        Op::CvtNarrow(_) => &[Dst, Src(0), Opt(1)],
        Op::Selp(_) => &[Dst, Src(0), Src(1), Pred(2)],
        Op::Special(_) => &[Dst, Slot::Special],
        Op::MovPred | Op::NotPred => &[DstPred, Pred(0)],
        Op::LogicPred(_) => &[DstPred, Fixed("PT"), Pred(0), Pred(1), Fixed("PT")],
        Op::SetpPred(..) => &[DstPred, Dst2Pred, Pred(0), Pred(1), Combined(2)],
        Op::AddCarry(_) | Op::SubBorrow(_) => &[Dst, Dst2Pred, Src(0), Src(1), OptPred(2)],
        Op::MadCarry(..) => &[Dst, Dst2Pred, Src(0), Src(1), Src(2), OptPred(3)],
        Op::Setp { .. } => &[DstPred, Dst2Pred, Src(0), Src(1), Combined(2)],
        Op::Set { .. } => &[Dst, Src(0), Src(1), Combined(2)],
        Op::Testp(..) | Op::IsSpace(..) => &[DstPred, Src(0)],

        Op::Ld { .. } | Op::LdMatrix(_) => &[Dst, Memory],
        Op::LdLock(_) => &[Dst2Pred, Dst, Memory],
        Op::St(_) | Op::StMatrix(_) | Op::StUnlock(_) => &[Memory, Src(2)],
        Op::Atom(AtomOp::Cas, _) if returns => &[Dst, Memory, Src(2), Src(3)],
        Op::Atom(AtomOp::Cas, _) => &[Memory, Src(2), Src(3)],
        Op::Atom(..) if returns => &[Dst, Memory, Src(2)],
        Op::Atom(..) => &[Memory, Src(2)],
        Op::Prefetch => &[Memory],
        Op::CpAsync(_) | Op::StAsync(..) | Op::RedAsync(..) => &[Src(0), Src(1), Src(2)],
        Op::Bulk(_) => &[Src(0), Src(1), Src(2), Opt(3)],
        Op::Wgmma(_) => &[Dst, Src(0), Src(1), Pred(2)],
        Op::WgmmaWait | Op::BulkWait(_) | Op::CpAsyncWait | Op::BarWarp | Op::Nanosleep | Op::Yield => {
            &[Src(0)]
        }
        Op::Tex(_) => &[Dst, Src(0), Opt(1), Src(2), Opt(3)],
        Op::TexQuery(..) => &[Dst, Src(0), Opt(1)],
        Op::SurfaceLd(_) => &[Dst, Src(0), Src(1)],
        Op::SurfaceSt(_) | Op::SurfaceRed(..) => &[Src(0), Src(1), Src(2)],
        Op::Mbarrier(op, _) => match op {
            MbarrierOp::Init | MbarrierOp::ExpectTx | MbarrierOp::CompleteTx => &[Memory, Src(2)],
            MbarrierOp::Inval | MbarrierOp::PendingCount => &[Memory],
            MbarrierOp::Arrive | MbarrierOp::ArriveDrop | MbarrierOp::ArriveExpectTx => {
                &[Dst, Memory, Src(2)]
            }
            MbarrierOp::TestWait | MbarrierOp::TestWaitParity => &[DstPred, Memory, Src(2)],
        },

        // Fermi's vote writes a register and a predicate; each of our modes has only one of them.
        Op::Vote(VoteMode::Ballot) => &[Dst, Fixed("PT"), Pred(0), Opt(1)],
        Op::Vote(_) => &[Fixed("RZ"), DstPred, Pred(0), Opt(1)],
        Op::Shfl(_) => &[Dst2Pred, Dst, Src(0), Src(1), Src(2), Opt(3)],
        Op::MatchAll(_) => &[Dst2Pred, Dst, Src(0), Src(1)],
        Op::Elect => &[Dst2Pred, Dst, Src(0)],
        Op::ActiveMask | Op::WaveActive => &[Dst],
        Op::WaveBallot => &[Dst, Pred(0)],
        Op::Bar(BarMode::Sync | BarMode::Arrive) => &[Src(0), Count(1)],
        Op::Bar(BarMode::RedPopc) => &[Dst, Src(0), Count(1), OptPred(2)],
        Op::Bar(BarMode::RedAnd | BarMode::RedOr) => &[DstPred, Src(0), Count(1), OptPred(2)],

        Op::Ssy | Op::Bra => &[Target],
        Op::Brx => &[Src(0), Table],
        Op::Call => &[Callee],
        Op::AssertFail => &[Src(0), Src(1), Src(2), Src(3)],
        Op::Fence(..)
        | Op::ClusterBar(_)
        | Op::CpAsyncCommit
        | Op::BulkCommit
        | Op::WgmmaCommit
        | Op::Ret
        | Op::Exit
        | Op::Trap
        | Op::Nop => &[],
    }
}

/// The type of an operation's floating-point immediates, which a listing writes as decimal numbers.
pub fn float_immediate(op: Op) -> Option<Ty> {
    let ty = match op {
        Op::FAdd(ty, _)
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
        | Op::Setp { ty, .. }
        | Op::Set { src: ty, .. } => ty,
        Op::FDivApprox { .. } => Ty::F32,
        Op::Cvt(cvt) | Op::CvtPair(cvt) => cvt.from,
        Op::Atom(_, access) => access.ty,
        _ => return None,
    };
    matches!(ty, Ty::F32 | Ty::F64).then_some(ty)
}
