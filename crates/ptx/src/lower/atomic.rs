//! `atom` and `red`.

use isa::{Access, AtomOp, Cache, Dst, Op, Operand, Order, Scope, Space, Ty, Width};
use warploom_isa as isa;

use super::address::{Address, Place, place_or_generic};
use super::async_copy;
use super::memory::{SCOPES, elements, hints, operands_and_policy};
use super::opcode::Opcode;
use super::{Builder, Result};
use crate::resolved::OperandKind;

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

/// Those that need no result: all but the last two.
pub(super) const REDUCTIONS: &[(&str, AtomOp)] = OPS.split_at(OPS.len() - 2).0;

const ORDERS: &[(&str, Order)] = &[
    ("relaxed", Order::Relaxed),
    ("acquire", Order::Acquire),
    ("release", Order::Release),
    ("acq_rel", Order::AcqRel),
];

/// One element at an address.
fn access_of(address: &Address, ty: Ty, order: Order, scope: Scope) -> Access {
    let wide_address = address.is_wide();
    Access { space: address.space, ty, count: 1, order, scope, cache: Cache::All, wide_address }
}

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
    let op = oc.need(if returns { OPS } else { REDUCTIONS })?;
    let policy = op != AtomOp::Cas && hints(oc);
    if let Some(count) = oc.pick(&[("v2", 2), ("v4", 4), ("v8", 8)]) {
        return vector(b, oc, returns, (place, order, scope), (op, count), policy);
    }
    if returns && matches!(op, AtomOp::Exch | AtomOp::Cas) && oc.has("b128") {
        return quad(b, oc, (place, order, scope), op, policy);
    }
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
    let access = access_of(&address, ty, order, scope);
    let value = b.src(&operands[first + 1], ty)?;
    let swap = match operands.get(first + 2) {
        Some(op) => b.src(op, ty)?,
        None => Operand::None,
    };
    b.emit(Op::Atom(op, access), dst, &[address.base, address.offset, value, swap]);
    Ok(())
}

/// `atom….exch.b128 d, [a], b`, `atom….cas.b128 d, [a], b, c`: one access of two elements of 64 bits.
fn quad(
    b: &mut Builder<'_>,
    oc: &mut Opcode<'_>,
    (place, order, scope): (Place, Order, Scope),
    op: AtomOp,
    policy: bool,
) -> Result {
    let operands = operands_and_policy(b, oc, if op == AtomOp::Cas { 4 } else { 3 }, policy)?;
    let mut found = vec![Operand::None; 2];
    if operands[0].kind != OperandKind::Sink {
        let (low, high) = b.quad(&operands[0])?;
        found = vec![Operand::Reg(low), Operand::Reg(high)];
    }
    let address = b.address(&operands[1], place)?;
    if !matches!(address.space, Space::Generic | Space::Global | Space::Shared) {
        return Err(b.at(&operands[1], "atomics work on global, shared and generic addresses"));
    }
    let access = Access { count: 2, ..access_of(&address, Ty::B64, order, scope) };
    let mut sources = [address.base, address.offset, Operand::None, Operand::None];
    for (source, operand) in sources[2..].iter_mut().zip(&operands[2..]) {
        let halves = b.quad_source(operand)?;
        *source = Operand::Vec(b.vector(halves.to_vec()));
    }
    let dst = Dst::Vec(b.vector(found));
    b.emit(Op::Atom(op, access), dst, &sources);
    Ok(())
}

/// `atom….op.vec.type d, [a], b` and `red` without d: elements are changed one by one, as PTX promises no more.
fn vector(
    b: &mut Builder<'_>,
    oc: &mut Opcode<'_>,
    returns: bool,
    (place, order, scope): (Place, Order, Scope),
    (op, count): (AtomOp, u8),
    policy: bool,
) -> Result {
    let ty = oc.ty(&[Ty::F32, Ty::F16, Ty::BF16, Ty::F16x2, Ty::BF16x2])?;
    let half = ty != Ty::F32;
    let noftz = oc.has("noftz");
    let exists = op == AtomOp::Add || half && matches!(op, AtomOp::Min | AtomOp::Max);
    // Up to 16 bytes.
    let fits = u32::from(count) * ty.bytes() <= 16;
    if !exists || !fits || noftz != half || !matches!(place, Place::In(Space::Global | Space::Generic)) {
        return Err(oc.error(format!("PTX has no `{}`", oc.name())));
    }
    let first = usize::from(returns);
    let operands = operands_and_policy(b, oc, first + 2, policy)?;
    let address = b.address(&operands[first], place)?;
    let Operand::Imm(offset) = address.offset else { unreachable!("offsets are immediates") };
    let access = access_of(&address, ty, order, scope);
    let mut values = Vec::with_capacity(count.into());
    for part in elements(b, &operands[first + 1], count)? {
        values.push(b.src(part, ty)?);
    }
    let mut found = Vec::new();
    for (at, value) in (0..).zip(values) {
        let offset = Operand::Imm(offset.wrapping_add(at * ty.bytes()));
        let sources = [address.base, offset, value, Operand::None];
        if returns {
            found.push(b.value(Op::Atom(op, access), Width::of(ty), &sources));
        } else {
            b.emit(Op::Atom(op, access), Dst::None, &sources);
        }
    }
    if returns {
        // Only now, as a result may replace the address.
        for (part, from) in elements(b, &operands[0], count)?.iter().zip(found) {
            let to = b.dst_or_sink(part, ty)?;
            b.emit(Op::Mov(Ty::B32), to, &[from]);
        }
    }
    Ok(())
}
