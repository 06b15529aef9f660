//! `atom` and `red`.

use isa::{Access, AtomOp, Cache, Dst, Op, Operand, Order, Scope, Space, Ty};
use warploom_isa as isa;

use super::address::place_or_generic;
use super::async_copy;
use super::memory::{SCOPES, hints, operands_and_policy};
use super::opcode::Opcode;
use super::{Builder, Result};

const OPS: &[(&str, AtomOp)] = &[
    ("add", AtomOp::Add),
    ("min", AtomOp::Min),
    ("max", AtomOp::Max),
    ("and", AtomOp::And),
    ("or", AtomOp::Or),
    ("xor", AtomOp::Xor),
    ("inc", AtomOp::Inc),
    ("dec", AtomOp::Dec),
    ("exch", AtomOp::Exch),
    ("cas", AtomOp::Cas),
];

const ORDERS: &[(&str, Order)] = &[
    ("relaxed", Order::Relaxed),
    ("acquire", Order::Acquire),
    ("release", Order::Release),
    ("acq_rel", Order::AcqRel),
];

/// The types that an operation accepts.
fn types(op: AtomOp) -> &'static [Ty] {
    match op {
        AtomOp::Add => {
            &[Ty::U32, Ty::S32, Ty::U64, Ty::F16, Ty::F16x2, Ty::BF16, Ty::BF16x2, Ty::F32, Ty::F64]
        }
        AtomOp::Min | AtomOp::Max => &[Ty::U32, Ty::S32, Ty::U64, Ty::S64],
        AtomOp::And | AtomOp::Or | AtomOp::Xor => &[Ty::B32, Ty::B64],
        AtomOp::Inc | AtomOp::Dec => &[Ty::U32],
        // Texts before PTX 2.0 write `exch.u32` and `cas.s32`.
        AtomOp::Exch => &[Ty::B32, Ty::B64, Ty::U32, Ty::S32, Ty::U64, Ty::F32],
        AtomOp::Cas => &[Ty::B16, Ty::B32, Ty::B64, Ty::U32, Ty::S32, Ty::U64],
    }
}

pub(super) fn atom(b: &mut Builder<'_>, oc: &mut Opcode<'_>) -> Result {
    atomic(b, oc, true)
}

pub(super) fn red(b: &mut Builder<'_>, oc: &mut Opcode<'_>) -> Result {
    if oc.has("async") {
        return async_copy::red_async(b, oc, OPS);
    }
    atomic(b, oc, false)
}

/// `atom[.sem][.scope][.space].op.type d, [a], b[, c]`, and `red` without d.
fn atomic(b: &mut Builder<'_>, oc: &mut Opcode<'_>, returns: bool) -> Result {
    let place = place_or_generic(oc);
    let orders: &[_] =
        if returns { ORDERS } else { &[("relaxed", Order::Relaxed), ("release", Order::Release)] };
    let order = oc.pick(orders).unwrap_or(Order::Relaxed);
    let scope = oc.pick(SCOPES).unwrap_or(Scope::Gpu);
    let op = oc.need(if returns { OPS } else { &OPS[..8] })?;
    let policy = hints(oc);
    let ty = oc.ty(types(op))?;
    if matches!(ty, Ty::F16 | Ty::F16x2 | Ty::BF16 | Ty::BF16x2) {
        oc.need(&[("noftz", ())])?;
    }
    let first = usize::from(returns);
    let count = first + if op == AtomOp::Cas { 3 } else { 2 };
    let operands = operands_and_policy(b, oc, count, policy)?;
    let dst = if returns { b.dst_or_sink(&operands[0], ty)? } else { Dst::None };
    let address = b.address(&operands[first], place)?;
    if !matches!(address.space, Space::Generic | Space::Global | Space::Shared) {
        return Err(b.at(&operands[first], "atomics work on global, shared and generic addresses"));
    }
    let access = Access {
        space: address.space,
        ty,
        count: 1,
        order,
        scope,
        cache: Cache::All,
        wide_address: address.is_wide(),
    };
    let value = b.src(&operands[first + 1], ty)?;
    let swap = match operands.get(first + 2) {
        Some(op) => b.src(op, ty)?,
        None => Operand::None,
    };
    b.emit(Op::Atom(op, access), dst, &[address.base, address.offset, value, swap]);
    Ok(())
}
