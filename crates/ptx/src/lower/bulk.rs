//! Bulk copies (`cp.async.bulk`, `cp.reduce.async.bulk`, boxes of tensors) and tensor maps.

use isa::{Access, AtomOp, Bulk, BulkWay, Dst, Op, Operand, Order, Part, Space, Special, Ty, Width};
use warploom_isa as isa;

use super::address::{Place, extend, place};
use super::atomic::REDUCTIONS;
use super::memory::hints;
use super::opcode::Opcode;
use super::{Builder, Result};
use crate::resolved::{self, OperandKind};

const DIMENSIONS: &[(&str, u8)] = &[("1d", 1), ("2d", 2), ("3d", 3), ("4d", 4), ("5d", 5)];

/// Words that name what is not modelled.
const UNMODELLED: &[&str] = &[
    "im2col",
    "im2col_no_offs",
    "im2col::w",
    "im2col::w::128",
    "tile::gather4",
    "tile::scatter4",
    "cp_mask",
    "ignore_oob",
    "cta_group::1",
    "cta_group::2",
];

/// `cp.async.bulk…` and `cp.reduce.async.bulk…`, after `.bulk`.
pub(super) fn bulk(b: &mut Builder<'_>, oc: &mut Opcode<'_>, reduces: bool) -> Result {
    if let Some(word) = UNMODELLED.iter().find(|word| oc.peek(word)) {
        return Err(oc.not_modelled(format!("`.{word}` of `{}` is not modelled", oc.name())));
    }
    if oc.has("commit_group") {
        let [] = oc.operands()?;
        b.emit(Op::BulkCommit, Dst::None, &[]);
        return Ok(());
    }
    if oc.has("wait_group") {
        let read = oc.has("read");
        let [pending] = oc.operands()?;
        let pending = b.constant(pending, 0, i64::from(u32::MAX))?;
        b.emit(Op::BulkWait(read), Dst::None, &[Operand::Imm(pending)]);
        return Ok(());
    }
    if oc.has("prefetch") {
        return prefetch(b, oc);
    }
    let dims = match oc.has("tensor") {
        true => oc.need(DIMENSIONS)?,
        false => 0,
    };
    if dims > 0 {
        oc.has("tile");
    }
    let way = way(oc)?;
    if reduces && way == BulkWay::ToShared || dims > 0 && way == BulkWay::ToCluster {
        return Err(oc.error(format!("PTX has no `{}`", oc.name())));
    }
    let counts_bytes = way != BulkWay::ToGlobal;
    oc.need(&[if counts_bytes { ("mbarrier::complete_tx::bytes", ()) } else { ("bulk_group", ()) }])?;
    let multicast = way == BulkWay::ToShared && oc.has("multicast::cluster");
    let policy = hints(oc);
    let reduce = if reduces { Some(reduction(oc, way, dims > 0)?) } else { None };
    let operands = operands(oc, dims, way, multicast, policy)?;
    let bulk = Bulk { way, dims, reduce, multicast };
    let mut list = Vec::new();
    let far = match dims {
        0 => {
            let far = usize::from(way != BulkWay::ToGlobal);
            let from = match way {
                BulkWay::ToCluster => b.shared_address(&operands[far], Some(Place::In(Space::Shared)))?,
                _ => b.address(&operands[far], Place::In(Space::Global))?,
            };
            list.push(size(b, &operands[2])?);
            b.whole(from, 64)
        }
        dims => {
            let at = usize::from(way != BulkWay::ToGlobal);
            let (map, coordinates) = tensor(b, &operands[at], dims)?;
            list = coordinates;
            map
        }
    };
    let near = usize::from(way == BulkWay::ToGlobal);
    let place = if way == BulkWay::ToGlobal { Place::In(Space::Shared) } else { Place::Cluster };
    let near = b.shared_address(&operands[near], Some(place))?;
    let near = b.whole(near, 32);
    let after = if dims == 0 { 3 } else { 2 };
    let mbarrier = match counts_bytes {
        true => {
            let at = b.shared_address(&operands[after], Some(Place::Cluster))?;
            b.whole(at, 32)
        }
        false => Operand::None,
    };
    if multicast {
        list.push(b.src(&operands[after + 1], Ty::B16)?);
    }
    let list = Operand::Vec(b.vector(list));
    b.emit(Op::Bulk(bulk), Dst::None, &[near, far, list, mbarrier]);
    Ok(())
}

/// From where to where; the destination comes first.
fn way(oc: &mut Opcode<'_>) -> Result<BulkWay> {
    if oc.is_before("global", "shared::cta") && oc.peek("shared::cta") && oc.peek("global") {
        oc.has("global");
        oc.has("shared::cta");
        return Ok(BulkWay::ToGlobal);
    }
    if oc.has("global") {
        oc.need(&[("shared::cluster", ()), ("shared::cta", ())])?;
        return Ok(BulkWay::ToShared);
    }
    oc.need(&[("shared::cluster", ())])?;
    oc.need(&[("shared::cta", ())])?;
    Ok(BulkWay::ToCluster)
}

fn operands<'i>(
    oc: &mut Opcode<'i>,
    dims: u8,
    way: BulkWay,
    multicast: bool,
    policy: bool,
) -> Result<&'i [resolved::Operand]> {
    let count = 2
        + usize::from(dims == 0)
        + usize::from(way != BulkWay::ToGlobal)
        + usize::from(multicast)
        + usize::from(policy);
    oc.operands_between(count, count)
}

/// The bytes of a copy: pieces of 16.
fn size(b: &mut Builder<'_>, op: &resolved::Operand) -> Result<Operand> {
    match op.kind {
        OperandKind::Int(bytes) if bytes % 16 != 0 => {
            Err(b.at(op, format!("`{}` copies multiples of 16 bytes", b.name())))
        }
        _ => b.src(op, Ty::U32),
    }
}

/// `[map, {x, y, …}]`
fn tensor(b: &mut Builder<'_>, op: &resolved::Operand, dims: u8) -> Result<(Operand, Vec<Operand>)> {
    let message = |b: &Builder<'_>| {
        let plural = if dims == 1 { "" } else { "s" };
        format!("`{}` takes `[tensor map, {{{dims} coordinate{plural}}}]` here", b.name())
    };
    let OperandKind::Vector(parts) = &op.kind else { return Err(b.at(op, message(b))) };
    let [map, coordinates] = parts.as_slice() else { return Err(b.at(op, message(b))) };
    let coordinates = match &coordinates.kind {
        OperandKind::Vector(list) => list.as_slice(),
        _ => std::slice::from_ref(coordinates),
    };
    if coordinates.len() != usize::from(dims) {
        return Err(b.at(op, message(b)));
    }
    let map = match map.kind {
        OperandKind::Param(..) => {
            let at = b.src(map, Ty::U64)?;
            b.value(Op::ToGeneric(Space::Param, Ty::U64), Width::Two, &[at])
        }
        OperandKind::Var(id, _) if b.cx.module.variables[id.index()].space != Space::Global => {
            let space = b.cx.module.variables[id.index()].space;
            let at = b.src(map, Ty::U64)?;
            b.value(Op::ToGeneric(space, Ty::U64), Width::Two, &[at])
        }
        _ => b.src(map, Ty::U64)?,
    };
    let mut list = Vec::with_capacity(coordinates.len() + 1);
    for coordinate in coordinates {
        list.push(b.src(coordinate, Ty::S32)?);
    }
    Ok((map, list))
}

/// The operation and type of `cp.reduce.async.bulk`. A tensor's map has the type.
fn reduction(oc: &mut Opcode<'_>, way: BulkWay, of_tensor: bool) -> Result<(AtomOp, Ty)> {
    let op = oc.need(REDUCTIONS)?;
    if of_tensor {
        return Ok((op, Ty::B32));
    }
    let noftz = oc.has("noftz");
    let to_global = way == BulkWay::ToGlobal;
    let types: &[Ty] = match (op, to_global) {
        (AtomOp::Add, true) => &[Ty::U32, Ty::S32, Ty::U64, Ty::F16, Ty::BF16, Ty::F32, Ty::F64],
        (AtomOp::Min | AtomOp::Max, true) => &[Ty::U32, Ty::S32, Ty::U64, Ty::S64, Ty::F16, Ty::BF16],
        (AtomOp::And | AtomOp::Or | AtomOp::Xor, true) => &[Ty::B32, Ty::B64],
        (AtomOp::Add, false) => &[Ty::U32, Ty::S32, Ty::U64],
        (AtomOp::Min | AtomOp::Max, false) => &[Ty::U32, Ty::S32],
        (AtomOp::And | AtomOp::Or | AtomOp::Xor, false) => &[Ty::B32],
        _ => &[Ty::U32],
    };
    let ty = oc.ty(types)?;
    let half = matches!(ty, Ty::F16 | Ty::BF16);
    if noftz != (half && op == AtomOp::Add) {
        return Err(
            oc.error(format!("`{}`: `.noftz` goes with sums of halves, and only with them", oc.name()))
        );
    }
    let ty = match ty {
        Ty::F16 => Ty::F16x2,
        Ty::BF16 => Ty::BF16x2,
        ty => ty,
    };
    Ok((op, ty))
}

/// `cp.async.bulk.prefetch[.tensor.dim].L2.global… [a], size` or `[map, {…}]`: checked, then ignored, as other hints.
fn prefetch(b: &mut Builder<'_>, oc: &mut Opcode<'_>) -> Result {
    oc.need(&[("L2", ())])?;
    oc.need(&[("global", ())])?;
    let dims = if oc.has("tensor") { oc.need(DIMENSIONS)? } else { 0 };
    oc.has("tile");
    let policy = hints(oc);
    let count = 1 + usize::from(dims == 0) + usize::from(policy);
    let operands = oc.operands_between(count, count)?;
    if dims > 0 {
        let (map, _) = tensor(b, &operands[0], dims)?;
        b.emit(Op::Prefetch, Dst::None, &[map, Operand::Imm(0)]);
    } else {
        let at = b.address(&operands[0], Place::In(Space::Global))?;
        size(b, &operands[1])?;
        b.emit(Op::Prefetch, Dst::None, &[at.base, at.offset]);
    }
    Ok(())
}

/// A field of a tensor map, as the encoding in `exec` has it.
#[derive(Clone, Copy)]
struct Field {
    /// The byte at which the first one begins.
    start: u32,
    /// Of each.
    bytes: u32,
    count: u8,
    /// Its value is a constant of the instruction.
    is_constant: bool,
}

const fn field(start: u32, bytes: u32, count: u8) -> Field {
    Field { start, bytes, count, is_constant: false }
}

const fn constant(start: u32) -> Field {
    Field { start, bytes: 1, count: 1, is_constant: true }
}

/// Behind the address, with which it is written.
const MARK_AT: u32 = 8;

const FIELDS: &[(&str, Field)] = &[
    ("global_address", field(0, 8, 1)),
    ("elemtype", constant(12)),
    ("rank", field(13, 1, 1)),
    ("interleave_layout", constant(14)),
    ("swizzle_mode", constant(15)),
    ("fill_mode", constant(16)),
    ("global_dim", field(20, 4, 5)),
    ("global_stride", field(40, 8, 4)),
    ("box_dim", field(72, 4, 5)),
    ("element_stride", field(92, 4, 5)),
];

/// The element types of PTX by number, as `cuTensorMapEncodeTiled` numbers them.
const ELEMENT_TYPES: [u32; 13] = [0, 1, 2, 3, 4, 5, 6, 7, 10, 8, 9, 11, 12];

/// `tensormap.replace.tile.field[.space].b1024.type [map], [n,] value`
pub(super) fn tensormap(b: &mut Builder<'_>, oc: &mut Opcode<'_>) -> Result {
    if oc.has("cp_fenceproxy") {
        return copy_map(b, oc);
    }
    oc.need(&[("replace", ())])?;
    oc.need(&[("tile", ())])?;
    if oc.peek("swizzle_atomicity") {
        return Err(oc.not_modelled(format!("`{}`: swizzle atomicity is not modelled", oc.name())));
    }
    let Field { start, bytes, count, is_constant } = oc.need(FIELDS)?;
    let is_type = oc.has_verb("elemtype");
    let place = place(oc);
    oc.need(&[("b1024", ())])?;
    let ty = oc.ty(&[if bytes == 8 { Ty::B64 } else { Ty::B32 }])?;
    let operands = if count > 1 { oc.operands_between(3, 3)? } else { oc.operands_between(2, 2)? };
    let nth = if count > 1 { b.constant(&operands[1], 0, i64::from(count) - 1)? } else { 0 };
    let value = &operands[operands.len() - 1];
    let value = if is_constant {
        let most = if is_type { ELEMENT_TYPES.len() as i64 - 1 } else { 3 };
        let number = b.constant(value, 0, most)?;
        Operand::Imm(if is_type { ELEMENT_TYPES[number as usize] } else { number })
    } else {
        b.src(value, ty)?
    };
    let place = place.unwrap_or(Place::In(Space::Generic));
    let address = b.address(&operands[0], place)?;
    let stored = match bytes {
        8 => Ty::B64,
        4 => Ty::B32,
        _ => Ty::B8,
    };
    let bits = if address.is_wide() { 64 } else { 32 };
    let base = b.whole(address, bits);
    let access = Access { wide_address: bits == 64, ..Access::plain(address.space, stored) };
    b.emit(Op::St(access), Dst::None, &[base, Operand::Imm(start + bytes * nth), value]);
    if start == 0 {
        // Zeros become a map.
        let mark = Access { ty: Ty::B32, ..access };
        let sources = [base, Operand::Imm(MARK_AT), Operand::Imm(isa::TENSOR_MAP_MARK)];
        b.emit(Op::St(mark), Dst::None, &sources);
    }
    Ok(())
}

/// `tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.scope.sync.aligned [dst], [src], 128`: each
/// lane copies four bytes.
fn copy_map(b: &mut Builder<'_>, oc: &mut Opcode<'_>) -> Result {
    for word in ["global", "shared::cta", "tensormap::generic", "release", "sync", "aligned"] {
        oc.need(&[(word, ())])?;
    }
    let scope = oc.need(super::memory::SCOPES)?;
    let [to, from, size] = oc.operands()?;
    b.constant(size, 128, 128)?;
    let to = b.address(to, Place::In(Space::Global))?;
    let from = b.address(from, Place::In(Space::Shared))?;
    let lane = b.value(Op::Special(Special::LaneId), Width::One, &[]);
    let offset = b.value(Op::IMul(Ty::U32, Part::Lo), Width::One, &[lane, Operand::Imm(4)]);
    let from = b.whole(from, 32);
    let add = |ty| Op::IAdd(ty, isa::Clamp::None);
    let from = b.value(add(Ty::U32), Width::One, &[from, offset]);
    let load = Access { wide_address: false, ..Access::plain(Space::Shared, Ty::B32) };
    let word = b.value(Op::Ld { access: load, wide: false }, Width::One, &[from, Operand::Imm(0)]);
    let to = b.whole(to, 64);
    let offset = b.value(Op::Cvt(extend(Ty::U32, Ty::U64)), Width::Two, &[offset]);
    let to = b.value(add(Ty::U64), Width::Two, &[to, offset]);
    let store = Op::St(Access::plain(Space::Global, Ty::B32));
    b.emit(store, Dst::None, &[to, Operand::Imm(0), word]);
    b.emit(Op::Fence(Order::AcqRel, scope), Dst::None, &[]);
    Ok(())
}
