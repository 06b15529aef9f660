//! `cp.async` and `mbarrier`.

use isa::{AtomOp, Dst, MbarrierOp, Op, Operand, Space, Ty, Width};
use warploom_isa as isa;

use super::address::{Address, Place, place};
use super::bulk;
use super::memory::{elements, hints};
use super::opcode::Opcode;
use super::{Builder, Result, Slot};
use crate::resolved::{self, OperandKind};

pub(super) fn cp(b: &mut Builder<'_>, oc: &mut Opcode<'_>) -> Result {
    let reduces = oc.has("reduce");
    oc.need(&[("async", ())])?;
    if oc.has("bulk") || reduces {
        return bulk::bulk(b, oc, reduces);
    }
    if oc.has("commit_group") {
        let [] = oc.operands()?;
        b.emit(Op::CpAsyncCommit, Dst::None, &[]);
    } else if oc.has("wait_group") {
        let [pending] = oc.operands()?;
        let pending = b.constant(pending, 0, i64::from(u32::MAX))?;
        b.emit(Op::CpAsyncWait, Dst::None, &[Operand::Imm(pending)]);
    } else if oc.has("wait_all") {
        let [] = oc.operands()?;
        wait_all(b);
    } else if oc.has("mbarrier") {
        return mbarrier_arrive(b, oc);
    } else {
        return copy(b, oc);
    }
    Ok(())
}

/// Waits for all copies, including those that are not in a group yet.
fn wait_all(b: &mut Builder<'_>) {
    b.emit(Op::CpAsyncCommit, Dst::None, &[]);
    b.emit(Op::CpAsyncWait, Dst::None, &[Operand::Imm(0)]);
}

/// `cp.async.mbarrier.arrive[.noinc]…b64 [bar]`: the thread's copies arrive at the barrier when they complete. Here
/// the thread waits for them immediately. Without `.noinc` the pending count is first incremented and then
/// decremented by the arrival, so there is nothing to emit.
fn mbarrier_arrive(b: &mut Builder<'_>, oc: &mut Opcode<'_>) -> Result {
    oc.need(&[("arrive", ())])?;
    let arrives = oc.has("noinc");
    let place = place(oc);
    oc.ty(&[Ty::B64])?;
    let [barrier] = oc.operands()?;
    let address = b.shared_address(barrier, place)?;
    wait_all(b);
    if arrives {
        let sources = [address.base, address.offset, Operand::Imm(1)];
        b.emit(Op::Mbarrier(MbarrierOp::Arrive, address.is_wide()), Dst::None, &sources);
    }
    Ok(())
}

/// `cp.async.ca.shared.global [dst], [src], size[, src-size | ignore-src][, policy]`
fn copy(b: &mut Builder<'_>, oc: &mut Opcode<'_>) -> Result {
    let sizes: &[u32] = if oc.need(&[("ca", true), ("cg", false)])? { &[4, 8, 16] } else { &[16] };
    oc.need(&[("shared", ()), ("shared::cta", ())])?;
    oc.need(&[("global", ())])?;
    let policy = hints(oc);
    let operands = oc.operands_between(3 + usize::from(policy), 4 + usize::from(policy))?;
    let to = b.shared_address(&operands[0], Some(Place::In(Space::Shared)))?;
    let from = b.address(&operands[1], Place::In(Space::Global))?;
    let size = b.constant(&operands[2], 4, 16)?;
    if !sizes.contains(&size) {
        return Err(b.at(&operands[2], format!("`{}` does not copy {size} bytes", b.name())));
    }
    let extra = if operands.len() == 4 + usize::from(policy) { operands.get(3) } else { None };
    let bytes = match extra {
        None => Operand::Imm(size),
        Some(op) if is_pred(b, op) => {
            let ignore = b.pred(op)?;
            b.value(Op::Selp(Ty::B32), Width::One, &[Operand::Imm(0), Operand::Imm(size), ignore])
        }
        Some(op) => b.src(op, Ty::U32)?,
    };
    let (to, from) = (b.whole(to, 32), b.whole(from, 64));
    b.emit(Op::CpAsync(size as u8), Dst::None, &[to, from, bytes]);
    Ok(())
}

/// The words that `st.async` and `red.async` have in common.
fn async_words(oc: &mut Opcode<'_>) -> Result {
    if let Some(word) = ["mmio", "global"].into_iter().find(|word| oc.peek(word)) {
        return Err(oc.not_modelled(format!("`.{word}` of `{}` is not modelled", oc.name())));
    }
    oc.need(&[("shared::cluster", ())])?;
    oc.need(&[("mbarrier::complete_tx::bytes", ())])
}

/// An address in shared memory as a value of 32 bits.
fn shared_value(b: &mut Builder<'_>, op: &resolved::Operand) -> Result<Operand> {
    let address = b.shared_address(op, Some(Place::Cluster))?;
    Ok(b.whole(address, 32))
}

/// `st.async[.weak].shared::cluster.mbarrier::complete_tx::bytes[.vec].type [a], b, [mbar]`
pub(super) fn st_async(b: &mut Builder<'_>, oc: &mut Opcode<'_>) -> Result {
    oc.has("weak");
    async_words(oc)?;
    let count = oc.pick(&[("v2", 2), ("v4", 4)]).unwrap_or(1);
    let ty = oc.ty(&[Ty::B32, Ty::B64, Ty::U32, Ty::U64, Ty::S32, Ty::S64, Ty::F32, Ty::F64])?;
    let [to, value, barrier] = oc.operands()?;
    if u32::from(count) * ty.bytes() > 16 {
        return Err(oc.error(format!("`{}` stores more than 16 bytes", oc.name())));
    }
    let to = shared_value(b, to)?;
    let mut list = Vec::new();
    for part in elements(b, value, count)? {
        list.push(b.src(part, ty)?);
    }
    let value = if list.len() == 1 { list[0] } else { Operand::Vec(b.vector(list)) };
    let barrier = shared_value(b, barrier)?;
    b.emit(Op::StAsync(ty, count), Dst::None, &[to, value, barrier]);
    Ok(())
}

/// `red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.op.type [a], b, [mbar]`
pub(super) fn red_async(b: &mut Builder<'_>, oc: &mut Opcode<'_>, ops: &[(&str, AtomOp)]) -> Result {
    oc.has("relaxed");
    oc.has("cluster");
    async_words(oc)?;
    let op = oc.need(&ops[..8])?;
    let types: &[Ty] = match op {
        AtomOp::Add => &[Ty::U32, Ty::S32, Ty::U64],
        AtomOp::Min | AtomOp::Max => &[Ty::U32, Ty::S32],
        AtomOp::Inc | AtomOp::Dec => &[Ty::U32],
        _ => &[Ty::B32],
    };
    let ty = oc.ty(types)?;
    let [to, value, barrier] = oc.operands()?;
    let to = shared_value(b, to)?;
    let value = b.src(value, ty)?;
    let barrier = shared_value(b, barrier)?;
    b.emit(Op::RedAsync(op, ty), Dst::None, &[to, value, barrier]);
    Ok(())
}

fn is_pred(b: &Builder<'_>, op: &resolved::Operand) -> bool {
    match op.kind {
        OperandKind::Reg(r) => matches!(b.slots[r.0 as usize], Slot::Pred(_)),
        OperandKind::Not(_) => true,
        _ => false,
    }
}

pub(super) fn mbarrier(b: &mut Builder<'_>, oc: &mut Opcode<'_>) -> Result {
    let verb = oc.need(&[
        ("init", MbarrierOp::Init),
        ("inval", MbarrierOp::Inval),
        ("arrive", MbarrierOp::Arrive),
        ("arrive_drop", MbarrierOp::ArriveDrop),
        ("expect_tx", MbarrierOp::ExpectTx),
        ("complete_tx", MbarrierOp::CompleteTx),
        ("test_wait", MbarrierOp::TestWait),
        ("try_wait", MbarrierOp::TestWait),
        ("pending_count", MbarrierOp::PendingCount),
    ])?;
    if matches!(verb, MbarrierOp::ExpectTx | MbarrierOp::CompleteTx) || oc.peek("expect_tx") {
        b.since("the transaction count of `mbarrier`", (8, 0), "sm_90")?;
    }
    oc.ty(&[Ty::B64])?;
    if verb == MbarrierOp::PendingCount {
        let [count, state] = oc.operands()?;
        let (count, state) = (b.dst(count, Ty::B32)?, b.src(state, Ty::B64)?);
        b.emit(Op::Mbarrier(verb, true), count, &[state]);
        return Ok(());
    }
    let place = place(oc);
    if !matches!(verb, MbarrierOp::Init | MbarrierOp::Inval) {
        // Shared memory is in order within an SM, so the stated order has no effect.
        oc.pick(&[("relaxed", ()), ("acquire", ()), ("release", ())]);
        oc.pick(&[("cta", ()), ("cluster", ())]);
    }
    match verb {
        MbarrierOp::Init | MbarrierOp::ExpectTx | MbarrierOp::CompleteTx => {
            let [barrier, count] = oc.operands()?;
            let (at, count) = (barrier_address(b, barrier, place)?, b.src(count, Ty::U32)?);
            b.emit(Op::Mbarrier(verb, at.is_wide()), Dst::None, &[at.base, at.offset, count]);
        }
        MbarrierOp::Inval => {
            let [barrier] = oc.operands()?;
            let at = barrier_address(b, barrier, place)?;
            b.emit(Op::Mbarrier(verb, at.is_wide()), Dst::None, &[at.base, at.offset]);
        }
        MbarrierOp::TestWait => return wait(b, oc, place),
        _ => return arrive(b, oc, verb, place),
    }
    Ok(())
}

/// The address of a barrier. One in the cluster becomes generic: as an offset it could be taken for another CTA's.
fn barrier_address(b: &mut Builder<'_>, op: &resolved::Operand, place: Option<Place>) -> Result<Address> {
    match place {
        Some(Place::Cluster) => b.address(op, Place::Cluster),
        _ => b.shared_address(op, place),
    }
}

/// `mbarrier.arrive[_drop][.noComplete | .expect_tx]… state, [bar][, count]`
fn arrive(b: &mut Builder<'_>, oc: &mut Opcode<'_>, verb: MbarrierOp, place: Option<Place>) -> Result {
    let counted = oc.has("noComplete");
    let expects = oc.has("expect_tx");
    let operands = oc.operands_between(if counted || expects { 3 } else { 2 }, 3)?;
    let state = b.dst_or_sink(&operands[0], Ty::B64)?;
    let at = barrier_address(b, &operands[1], place)?;
    let count = match operands.get(2) {
        Some(count) => b.src(count, Ty::U32)?,
        None => Operand::Imm(1),
    };
    let (verb, count) = match verb {
        MbarrierOp::Arrive if expects => (MbarrierOp::ArriveExpectTx, count),
        _ if expects => {
            let sources = [at.base, at.offset, count];
            b.emit(Op::Mbarrier(MbarrierOp::ExpectTx, at.is_wide()), Dst::None, &sources);
            (verb, Operand::Imm(1))
        }
        _ => (verb, count),
    };
    b.emit(Op::Mbarrier(verb, at.is_wide()), state, &[at.base, at.offset, count]);
    Ok(())
}

/// `mbarrier.test_wait[.parity]… p, [bar], state`, and `try_wait` with an optional time limit. Neither blocks.
fn wait(b: &mut Builder<'_>, oc: &mut Opcode<'_>, place: Option<Place>) -> Result {
    let parity = oc.has("parity");
    let most = if oc.has_verb("try_wait") { 4 } else { 3 };
    let operands = oc.operands_between(3, most)?;
    let done = b.dst_pred(&operands[0])?;
    let at = barrier_address(b, &operands[1], place)?;
    let (verb, ty) =
        if parity { (MbarrierOp::TestWaitParity, Ty::U32) } else { (MbarrierOp::TestWait, Ty::B64) };
    let phase = b.src(&operands[2], ty)?;
    if let Some(limit) = operands.get(3) {
        b.src(limit, Ty::U32)?;
    }
    b.emit(Op::Mbarrier(verb, at.is_wide()), done, &[at.base, at.offset, phase]);
    Ok(())
}
