//! Barriers, fences and sleep.

use isa::{BarMode, ClusterBar, Dst, Op, Operand, Order, Scope, Space, Ty};
use warploom_isa as isa;

use super::address::Place;
use super::memory::SCOPES;
use super::opcode::Opcode;
use super::{Builder, Result};
use crate::resolved::{self, OperandKind};

/// `bar`, `barrier` and `bar.warp`.
pub(super) fn bar(b: &mut Builder<'_>, oc: &mut Opcode<'_>) -> Result {
    if oc.mnemonic() == "bar" && oc.has("warp") {
        oc.need(&[("sync", ())])?;
        let [mask] = oc.operands()?;
        let mask = b.src(mask, Ty::B32)?;
        b.emit(Op::BarWarp, Dst::None, &[mask]);
        return Ok(());
    }
    if oc.mnemonic() == "barrier" && oc.has("cluster") {
        return cluster(b, oc);
    }
    oc.has("cta");
    if oc.mnemonic() == "barrier" {
        oc.has("aligned");
    }
    match oc.need(&[("sync", BarMode::Sync), ("arrive", BarMode::Arrive), ("red", BarMode::RedPopc)])? {
        BarMode::RedPopc => reduce(b, oc),
        mode => {
            let least = if mode == BarMode::Arrive { 2 } else { 1 };
            let operands = oc.operands_between(least, 2)?;
            let id = barrier(b, &operands[0])?;
            let count = match operands.get(1) {
                Some(count) => threads(b, count)?,
                None => Operand::None,
            };
            b.emit(Op::Bar(mode), Dst::None, &[id, count]);
            Ok(())
        }
    }
}

/// `barrier.cluster.arrive[.release | .relaxed][.aligned]` and `barrier.cluster.wait[.acquire][.aligned]`
fn cluster(b: &mut Builder<'_>, oc: &mut Opcode<'_>) -> Result {
    oc.has("aligned");
    let mode = match oc.need(&[("arrive", ClusterBar::Arrive), ("wait", ClusterBar::Wait)])? {
        ClusterBar::Wait => {
            oc.has("acquire");
            ClusterBar::Wait
        }
        _ if oc.has("relaxed") => ClusterBar::ArriveRelaxed,
        arrive => {
            oc.has("release");
            arrive
        }
    };
    let [] = oc.operands()?;
    b.emit(Op::ClusterBar(mode), Dst::None, &[]);
    Ok(())
}

/// `mapa[.shared::cluster].type d, a, rank`
pub(super) fn mapa(b: &mut Builder<'_>, oc: &mut Opcode<'_>) -> Result {
    let generic = !oc.has("shared::cluster");
    let ty = oc.ty(&[Ty::U32, Ty::U64])?;
    let [d, a, rank] = oc.operands()?;
    let (d, a, rank) = (b.dst(d, ty)?, b.src(a, ty)?, b.src(rank, Ty::U32)?);
    b.emit(Op::Mapa(generic, ty), d, &[a, rank]);
    Ok(())
}

/// `getctarank[.shared::cluster].type d, a`
pub(super) fn getctarank(b: &mut Builder<'_>, oc: &mut Opcode<'_>) -> Result {
    let generic = !oc.has("shared::cluster");
    let ty = oc.ty(&[Ty::U32, Ty::U64])?;
    let [d, a] = oc.operands()?;
    let (d, a) = (b.dst(d, Ty::B32)?, b.src(a, ty)?);
    b.emit(Op::CtaRank(generic, ty), d, &[a]);
    Ok(())
}

/// The number of a barrier, 0 to 15.
fn barrier(b: &mut Builder<'_>, op: &resolved::Operand) -> Result<Operand> {
    match op.kind {
        OperandKind::Int(_) => Ok(Operand::Imm(b.constant(op, 0, 15)?)),
        _ => b.src(op, Ty::U32),
    }
}

/// The number of threads that take part: whole warps.
fn threads(b: &mut Builder<'_>, op: &resolved::Operand) -> Result<Operand> {
    match op.kind {
        OperandKind::Int(count) if count == 0 || count % 32 != 0 => {
            Err(b.at(op, format!("a barrier counts whole warps: {count} is not a multiple of 32")))
        }
        _ => b.src(op, Ty::U32),
    }
}

/// `bar.red.popc.u32 d, a[, b], {!}c` and `bar.red.and.pred p, a[, b], {!}c`
fn reduce(b: &mut Builder<'_>, oc: &mut Opcode<'_>) -> Result {
    let mode = oc.need(&[("popc", BarMode::RedPopc), ("and", BarMode::RedAnd), ("or", BarMode::RedOr)])?;
    let counts = mode == BarMode::RedPopc;
    if counts {
        oc.ty(&[Ty::U32])?;
    } else {
        oc.need(&[("pred", ())])?;
    }
    let operands = oc.operands_between(3, 4)?;
    let dst = if counts { b.dst(&operands[0], Ty::U32)? } else { b.dst_pred(&operands[0])? };
    let id = barrier(b, &operands[1])?;
    let count = if operands.len() == 4 { threads(b, &operands[2])? } else { Operand::None };
    let c = b.pred(&operands[operands.len() - 1])?;
    b.emit(Op::Bar(mode), dst, &[id, count, c]);
    Ok(())
}

/// `membar.level` is `fence.sc.scope`.
pub(super) fn membar(b: &mut Builder<'_>, oc: &mut Opcode<'_>) -> Result {
    let proxy = oc.has("proxy") && oc.need(&[("alias", ())]).is_ok();
    let scope = if proxy {
        Scope::Sys
    } else {
        oc.need(&[("cta", Scope::Cta), ("gl", Scope::Gpu), ("sys", Scope::Sys)])?
    };
    let [] = oc.operands()?;
    b.emit(Op::Fence(Order::SeqCst, scope), Dst::None, &[]);
    Ok(())
}

pub(super) fn fence(b: &mut Builder<'_>, oc: &mut Opcode<'_>) -> Result {
    if oc.has("proxy") {
        // The model has one proxy, which sees all accesses in order.
        return proxy_fence(b, oc);
    }
    oc.has("mbarrier_init");
    if let Some((order, word)) = restricted(oc) {
        // A fence of all memory orders the shared memory of the cluster, too.
        b.since(&format!("`.{word}`"), (8, 6), "sm_90")?;
        oc.need(&[("cluster", ())])?;
        let [] = oc.operands()?;
        b.emit(Op::Fence(order, Scope::Cluster), Dst::None, &[]);
        return Ok(());
    }
    let order = oc
        .pick(&[
            ("sc", Order::SeqCst),
            ("acq_rel", Order::AcqRel),
            ("acquire", Order::Acquire),
            ("release", Order::Release),
        ])
        .unwrap_or(Order::AcqRel);
    let scope = oc.need(SCOPES)?;
    let [] = oc.operands()?;
    b.emit(Op::Fence(order, scope), Dst::None, &[]);
    Ok(())
}

/// `fence.acquire.sync_restrict::shared::cluster.cluster` and `fence.release.sync_restrict::shared::cta.cluster`: the
/// order, and the word that restricts it.
fn restricted(oc: &mut Opcode<'_>) -> Option<(Order, &'static str)> {
    let forms = [
        ("acquire", Order::Acquire, "sync_restrict::shared::cluster"),
        ("release", Order::Release, "sync_restrict::shared::cta"),
    ];
    let (name, order, word) = forms.into_iter().find(|(name, _, word)| oc.peek(name) && oc.peek(word))?;
    oc.has(name);
    oc.has(word);
    Some((order, word))
}

/// `fence.proxy.alias`, `.async[.space]`, `.async::generic.acquire | .release.sync_restrict::space.cluster` and
/// `.tensormap::generic.acquire | .release.scope`, of which the acquire names a tensor map.
fn proxy_fence(b: &mut Builder<'_>, oc: &mut Opcode<'_>) -> Result {
    let mut scope = Scope::Cta;
    match oc.need(&[("alias", 0), ("async", 1), ("async::generic", 2), ("tensormap::generic", 3)])? {
        1 => {
            oc.pick(&[("global", ()), ("shared::cta", ()), ("shared::cluster", ())]);
        }
        2 => {
            let acquires = oc.need(&[("acquire", true), ("release", false)])?;
            let place =
                if acquires { "sync_restrict::shared::cluster" } else { "sync_restrict::shared::cta" };
            oc.need(&[(place, ())])?;
            scope = oc.need(&[("cluster", Scope::Cluster)])?;
        }
        3 => {
            let acquires = oc.need(&[("acquire", true), ("release", false)])?;
            scope = oc.need(SCOPES)?;
            if acquires {
                let [map, size] = oc.operands()?;
                b.address(map, Place::In(Space::Generic))?;
                b.constant(size, 128, 128)?;
                b.emit(Op::Fence(Order::AcqRel, scope), Dst::None, &[]);
                return Ok(());
            }
        }
        _ => {}
    }
    let [] = oc.operands()?;
    b.emit(Op::Fence(Order::AcqRel, scope), Dst::None, &[]);
    Ok(())
}

pub(super) fn nanosleep(b: &mut Builder<'_>, oc: &mut Opcode<'_>) -> Result {
    oc.ty(&[Ty::U32])?;
    let [time] = oc.operands()?;
    let time = b.src(time, Ty::U32)?;
    b.emit(Op::Nanosleep, Dst::None, &[time]);
    Ok(())
}
