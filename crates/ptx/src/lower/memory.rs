//! Loads, stores and cache hints.

use isa::{Access, Cache, Dst, Op, Operand, Order, Scope, Space, Ty, VecId};
use warploom_isa as isa;

use super::address::{Place, place, place_or_generic};
use super::async_copy;
use super::opcode::Opcode;
use super::operand::Fit;
use super::{Builder, Result, Slot};
use crate::resolved::{self, OperandKind};

const LOADABLE: &[Ty] = &[
    Ty::B8,
    Ty::B16,
    Ty::B32,
    Ty::B64,
    Ty::U8,
    Ty::U16,
    Ty::U32,
    Ty::U64,
    Ty::S8,
    Ty::S16,
    Ty::S32,
    Ty::S64,
    Ty::F32,
    Ty::F64,
];

pub(super) const SCOPES: &[(&str, Scope)] =
    &[("cta", Scope::Cta), ("cluster", Scope::Cluster), ("gpu", Scope::Gpu), ("sys", Scope::Sys)];

const LOAD_CACHES: &[(&str, Cache)] = &[
    ("ca", Cache::All),
    ("cg", Cache::Cg),
    ("cs", Cache::Cs),
    ("lu", Cache::Lu),
    ("cv", Cache::Cv),
    ("nc", Cache::Nc),
];

const STORE_CACHES: &[(&str, Cache)] =
    &[("wb", Cache::All), ("cg", Cache::Cg), ("cs", Cache::Cs), ("wt", Cache::Cv)];

/// Cache hints, which have no effect in the model.
fn is_hint(word: &str) -> bool {
    matches!(
        word,
        "L1::evict_normal"
            | "L1::evict_unchanged"
            | "L1::evict_first"
            | "L1::evict_last"
            | "L1::no_allocate"
            | "L2::evict_normal"
            | "L2::evict_first"
            | "L2::evict_last"
            | "L2::64B"
            | "L2::128B"
            | "L2::256B"
    )
}

/// Takes the cache hints from the opcode. Returns whether a cache policy follows the operands.
pub(super) fn hints(oc: &mut Opcode<'_>) -> bool {
    oc.ignore(is_hint);
    oc.has("L2::cache_hint")
}

/// Order and scope of a load or store. `strong` is the order that only loads or only stores have.
fn order(oc: &mut Opcode<'_>, strong: (&str, Order)) -> Result<(Order, Scope)> {
    if oc.has("weak") {
        return Ok((Order::Weak, Scope::Sys));
    }
    if oc.has("volatile") {
        return Ok((Order::Volatile, Scope::Sys));
    }
    let mmio = oc.has("mmio");
    match oc.pick(&[("relaxed", Order::Relaxed), strong]) {
        Some(order) => Ok((if mmio { Order::Mmio } else { order }, oc.need(SCOPES)?)),
        None if mmio => Err(oc.error("`.mmio` needs `.relaxed`")),
        None => Ok((Order::Weak, Scope::Sys)),
    }
}

/// A load or store: what its opcode states, and its operands without the cache policy.
struct Form<'i> {
    place: Place,
    access: Access,
    /// Registers of 128 bits, which are accessed as two of 64.
    quad: bool,
    operands: &'i [resolved::Operand],
}

fn form<'i>(
    b: &mut Builder<'_>,
    oc: &mut Opcode<'i>,
    strong: (&str, Order),
    caches: &[(&str, Cache)],
) -> Result<Form<'i>> {
    let place = place_or_generic(oc);
    let (order, scope) = order(oc, strong)?;
    let stated = oc.pick(caches);
    if stated.is_some() && order != Order::Weak {
        return Err(oc.error(format!("`{}`: only weak accesses have a cache operator", oc.name())));
    }
    let mut cache = stated.unwrap_or(Cache::All);
    if cache == Cache::Nc || caches.contains(&("nc", Cache::Nc)) && oc.has("nc") {
        // In `.ca.nc` only the path matters.
        oc.pick(caches);
        cache = Cache::Nc;
        if place != Place::In(Space::Global) {
            return Err(oc.error("`.nc` reads global memory only"));
        }
    }
    let policy = hints(oc);
    let quad = oc.peek_none(&[("v2", ()), ("v4", ()), ("v8", ())]) && oc.has("b128");
    let (count, ty) = if quad {
        (2, Ty::B64)
    } else {
        (oc.pick(&[("v2", 2), ("v4", 4), ("v8", 8)]).unwrap_or(1), oc.ty(LOADABLE)?)
    };
    let access = Access { space: Space::Generic, ty, count, order, scope, cache, wide_address: true };
    if access.bytes() > 32 {
        return Err(oc.error(format!("`{}` moves {} bytes, more than 32", oc.name(), access.bytes())));
    }
    if access.bytes() > 16 {
        b.since(&format!("`{}`", oc.name()), (8, 8), "sm_100")?;
    }
    let operands = operands_and_policy(b, oc, 2, policy)?;
    Ok(Form { place, access, quad, operands })
}

/// `count` operands. The cache policy after them is checked and dropped.
pub(super) fn operands_and_policy<'i>(
    b: &mut Builder<'_>,
    oc: &Opcode<'i>,
    count: usize,
    policy: bool,
) -> Result<&'i [resolved::Operand]> {
    let all = count + usize::from(policy);
    let operands = oc.operands_between(all, all)?;
    if policy {
        b.src(&operands[count], Ty::B64)?;
    }
    Ok(&operands[..count])
}

pub(super) fn ld(b: &mut Builder<'_>, oc: &mut Opcode<'_>) -> Result {
    let form = form(b, oc, ("acquire", Order::Acquire), LOAD_CACHES)?;
    load(b, form)
}

/// `ldu` promises that all lanes have the same address. The machine detects that by itself.
pub(super) fn ldu(b: &mut Builder<'_>, oc: &mut Opcode<'_>) -> Result {
    let form = form(b, oc, ("acquire", Order::Acquire), &[])?;
    load(b, form)
}

fn load(b: &mut Builder<'_>, form: Form<'_>) -> Result {
    let Form { place, access, quad, operands } = form;
    let ty = access.ty;
    let mut widths = Vec::new();
    let mut list = Vec::new();
    // The upper halves of `.b128` registers that take less.
    let mut above = Vec::new();
    if quad {
        let (low, high) = b.quad(&operands[0])?;
        widths.push(true);
        list.extend([Operand::Reg(low), Operand::Reg(high)]);
    }
    for part in if quad { &[] } else { elements(b, &operands[0], access.count)? } {
        match part.kind {
            OperandKind::Sink => list.push(Operand::None),
            OperandKind::Reg(r) => {
                let (reg, declared) = b.register(part, r, ty, Fit::Wider)?;
                widths.push(declared.is_wide());
                list.push(Operand::Reg(reg));
                if let Slot::Quad(low, high) = b.slots[r.0 as usize] {
                    above.push((low, high));
                }
            }
            _ => {
                b.dst(part, ty)?;
            }
        }
    }
    let wide = widths.first().copied().unwrap_or(ty.is_wide());
    if widths.iter().any(|w| *w != wide) {
        return Err(b.at(&operands[0], "the registers of one vector have one width"));
    }
    let address = b.address(&operands[1], place)?;
    let access = Access { space: address.space, wide_address: address.is_wide(), ..access };
    let dst = match list.as_slice() {
        [Operand::Reg(reg)] => Dst::Reg(*reg),
        [_] => Dst::None,
        _ => Dst::Vec(b.vector(list)),
    };
    b.emit(Op::Ld { access, wide }, dst, &[address.base, address.offset]);
    for (low, high) in above {
        let sources = [Operand::Reg(low), Operand::Imm(63)];
        match ty.is_signed() {
            true => b.emit(Op::Shr(Ty::S64), Dst::Reg(high), &sources),
            false => b.emit(Op::Mov(Ty::B64), Dst::Reg(high), &[Operand::Imm(0)]),
        }
    }
    Ok(())
}

pub(super) fn st(b: &mut Builder<'_>, oc: &mut Opcode<'_>) -> Result {
    if oc.has("async") {
        return async_copy::st_async(b, oc);
    }
    let Form { place, access, quad, operands } = form(b, oc, ("release", Order::Release), STORE_CACHES)?;
    let address = b.address(&operands[0], place)?;
    if matches!(address.space, Space::Const | Space::Param) {
        return Err(b.at(&operands[0], format!("`.{}` memory cannot be written", address.space.name())));
    }
    let mut list = Vec::with_capacity(usize::from(access.count));
    if quad {
        list.extend(b.quad_source(&operands[1])?);
    }
    for part in if quad { &[] } else { elements(b, &operands[1], access.count)? } {
        list.push(b.src_or_wider(part, access.ty)?);
    }
    let value = if list.len() == 1 { list[0] } else { Operand::Vec(b.vector(list)) };
    let access = Access { space: address.space, wide_address: address.is_wide(), ..access };
    b.emit(Op::St(access), Dst::None, &[address.base, address.offset, value]);
    Ok(())
}

/// The elements of a vector operand, or the operand itself for a scalar access.
pub(super) fn elements<'o>(
    b: &Builder<'_>,
    op: &'o resolved::Operand,
    count: u8,
) -> Result<&'o [resolved::Operand]> {
    match &op.kind {
        OperandKind::Vector(parts) if parts.len() == usize::from(count) => Ok(parts),
        OperandKind::Vector(parts) => {
            let message = format!("`{}` moves {count} elements, the list has {}", b.name(), parts.len());
            Err(b.at(op, message))
        }
        _ if count == 1 => Ok(std::slice::from_ref(op)),
        _ => Err(b.at(op, format!("`{}` takes a list of {count} registers here", b.name()))),
    }
}

impl Builder<'_> {
    pub(super) fn vector(&mut self, list: Vec<Operand>) -> VecId {
        self.out.vectors.push(list);
        VecId(self.out.vectors.len() as u32 - 1)
    }
}

/// `prefetch[.space].level [a]`, `prefetchu.L1 [a]`
pub(super) fn prefetch(b: &mut Builder<'_>, oc: &mut Opcode<'_>) -> Result {
    if oc.mnemonic() == "prefetch" && oc.has("tensormap") {
        let place = oc
            .pick(&[("const", Place::In(Space::Const)), ("param", Place::Param)])
            .unwrap_or(Place::In(Space::Generic));
        let [map] = oc.operands()?;
        return hint_at(b, map, place);
    }
    let place = oc
        .pick(&[("global", Space::Global), ("local", Space::Local)])
        .map_or(Place::In(Space::Generic), Place::In);
    let levels = &[("L1", ()), ("L2", ()), ("L2::evict_last", ()), ("L2::evict_normal", ())];
    oc.need(if oc.mnemonic() == "prefetchu" { &levels[..1] } else { levels })?;
    let [address] = oc.operands()?;
    hint_at(b, address, place)
}

pub(super) fn discard(b: &mut Builder<'_>, oc: &mut Opcode<'_>) -> Result {
    sized_hint(b, oc, "L2")
}

pub(super) fn applypriority(b: &mut Builder<'_>, oc: &mut Opcode<'_>) -> Result {
    sized_hint(b, oc, "L2::evict_normal")
}

fn sized_hint(b: &mut Builder<'_>, oc: &mut Opcode<'_>, level: &str) -> Result {
    let place = place_or_generic(oc);
    oc.need(&[(level, ())])?;
    let [address, size] = oc.operands()?;
    b.constant(size, 128, 128)?;
    hint_at(b, address, place)
}

fn hint_at(b: &mut Builder<'_>, op: &resolved::Operand, place: Place) -> Result {
    let address = b.address(op, place)?;
    b.emit(Op::Prefetch, Dst::None, &[address.base, address.offset]);
    Ok(())
}

/// `createpolicy.…`: a policy is a hint without effect, so any value will do.
pub(super) fn createpolicy(b: &mut Builder<'_>, oc: &mut Opcode<'_>) -> Result {
    let kind = oc.need(&[("fractional", 0), ("range", 1), ("cvt", 2)])?;
    if kind == 2 {
        oc.need(&[("L2", ())])?;
    } else {
        place(oc);
        oc.ignore(|w| w.starts_with("L2::evict_"));
    }
    oc.ty(&[Ty::B64])?;
    let operands = oc.operands_between(1, 4)?;
    let d = b.dst(&operands[0], Ty::B64)?;
    b.emit(Op::Mov(Ty::B64), d, &[Operand::Imm(0)]);
    Ok(())
}
