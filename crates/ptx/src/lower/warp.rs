//! Communication among the lanes of a warp.

use isa::{Dst, Op, Operand, ReduxOp, ShflMode, Ty, VoteMode, Width};
use warploom_isa as isa;

use super::opcode::Opcode;
use super::{Builder, Result};

/// Whether the instruction names its members. Without them it is of PTX up to 6.3, or of chips before sm_70.
fn is_synced(b: &Builder<'_>, oc: &mut Opcode<'_>) -> Result<bool> {
    let sync = oc.has("sync");
    if !sync && b.cx.target.sm >= 70 && !b.cx.before(6, 4) {
        let message = format!("`{}` needs `.sync` and a member mask on sm_70 and later", oc.name());
        return Err(oc.error(message));
    }
    Ok(sync)
}

/// `vote[.sync].mode.pred p, {!}a[, mask]`, `vote[.sync].ballot.b32 d, {!}a[, mask]`
pub(super) fn vote(b: &mut Builder<'_>, oc: &mut Opcode<'_>) -> Result {
    let sync = is_synced(b, oc)?;
    let mode = oc.need(&[
        ("all", VoteMode::All),
        ("any", VoteMode::Any),
        ("uni", VoteMode::Uni),
        ("ballot", VoteMode::Ballot),
    ])?;
    if mode == VoteMode::Ballot {
        oc.ty(&[Ty::B32])?;
    } else {
        oc.need(&[("pred", ())])?;
    }
    let count = if sync { 3 } else { 2 };
    let operands = oc.operands_between(count, count)?;
    let dst =
        if mode == VoteMode::Ballot { b.dst(&operands[0], Ty::B32)? } else { b.dst_pred(&operands[0])? };
    let a = b.pred(&operands[1])?;
    let mask = if sync { b.src(&operands[2], Ty::B32)? } else { Operand::None };
    b.emit(Op::Vote(mode), dst, &[a, mask]);
    Ok(())
}

/// `shfl[.sync].mode.b32 d[|p], a, b, c[, mask]`
pub(super) fn shfl(b: &mut Builder<'_>, oc: &mut Opcode<'_>) -> Result {
    let sync = is_synced(b, oc)?;
    let mode = oc.need(&[
        ("up", ShflMode::Up),
        ("down", ShflMode::Down),
        ("bfly", ShflMode::Bfly),
        ("idx", ShflMode::Idx),
    ])?;
    oc.ty(&[Ty::B32])?;
    let count = if sync { 5 } else { 4 };
    let operands = oc.operands_between(count, count)?;
    let (d, p) = b.pair(&operands[0]);
    let d = b.dst_or_sink(d, Ty::B32)?;
    let p = match p {
        Some(p) => b.dst_pred(p)?,
        None => Dst::None,
    };
    let (a, lane, clamp) =
        (b.src(&operands[1], Ty::B32)?, b.src(&operands[2], Ty::B32)?, b.src(&operands[3], Ty::B32)?);
    let mask = if sync { b.src(&operands[4], Ty::B32)? } else { Operand::None };
    b.emit2(Op::Shfl(mode), d, p, &[a, lane, clamp, mask]);
    Ok(())
}

/// `match.any.sync.type d, a, mask`, `match.all.sync.type d[|p], a, mask`
pub(super) fn match_(b: &mut Builder<'_>, oc: &mut Opcode<'_>) -> Result {
    let all = oc.need(&[("any", false), ("all", true)])?;
    oc.need(&[("sync", ())])?;
    let ty = oc.ty(&[Ty::B32, Ty::B64])?;
    let [d, a, mask] = oc.operands()?;
    let (d, p) = if all { b.pair(d) } else { (d, None) };
    let d = if all { b.dst_or_sink(d, Ty::B32)? } else { b.dst(d, Ty::B32)? };
    let p = match p {
        Some(p) => b.dst_pred(p)?,
        None => Dst::None,
    };
    let (a, mask) = (b.src(a, ty)?, b.src(mask, Ty::B32)?);
    b.emit2(if all { Op::MatchAll(ty) } else { Op::MatchAny(ty) }, d, p, &[a, mask]);
    Ok(())
}

/// `redux.sync.op[.abs][.NaN].type d, a, mask`
pub(super) fn redux(b: &mut Builder<'_>, oc: &mut Opcode<'_>) -> Result {
    oc.need(&[("sync", ())])?;
    let op = oc.need(&[
        ("add", ReduxOp::Add),
        ("min", ReduxOp::Min),
        ("max", ReduxOp::Max),
        ("and", ReduxOp::And),
        ("or", ReduxOp::Or),
        ("xor", ReduxOp::Xor),
    ])?;
    let ty = oc.ty(match op {
        ReduxOp::Add => &[Ty::U32, Ty::S32],
        ReduxOp::Min | ReduxOp::Max => &[Ty::U32, Ty::S32, Ty::F32],
        _ => &[Ty::B32],
    })?;
    let magnitudes = ty == Ty::F32 && oc.has("abs");
    let op = match op {
        ReduxOp::Min if ty == Ty::F32 && oc.has("NaN") => ReduxOp::MinNan,
        ReduxOp::Max if ty == Ty::F32 && oc.has("NaN") => ReduxOp::MaxNan,
        op => op,
    };
    let [d, a, mask] = oc.operands()?;
    let (d, mut a, mask) = (b.dst(d, ty)?, b.src(a, ty)?, b.src(mask, Ty::B32)?);
    if magnitudes {
        a = b.value(Op::FAbs(Ty::F32, false), Width::One, &[a]);
    }
    b.emit(Op::Redux(op, ty), d, &[a, mask]);
    Ok(())
}

pub(super) fn activemask(b: &mut Builder<'_>, oc: &mut Opcode<'_>) -> Result {
    oc.ty(&[Ty::B32])?;
    let [d] = oc.operands()?;
    let d = b.dst(d, Ty::B32)?;
    b.emit(Op::ActiveMask, d, &[]);
    Ok(())
}

/// `elect.sync d|p, mask`
pub(super) fn elect(b: &mut Builder<'_>, oc: &mut Opcode<'_>) -> Result {
    oc.need(&[("sync", ())])?;
    let [d, mask] = oc.operands()?;
    let (lane, Some(p)) = b.pair(d) else {
        return Err(b.at(d, "`elect.sync` has two results: `d|p`"));
    };
    let (lane, p, mask) = (b.dst_or_sink(lane, Ty::B32)?, b.dst_pred(p)?, b.src(mask, Ty::B32)?);
    b.emit2(Op::Elect, lane, p, &[mask]);
    Ok(())
}
