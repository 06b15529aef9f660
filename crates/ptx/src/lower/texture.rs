//! Textures and surfaces: `tex`, `tld4`, `txq`, `suld`, `sust`, `sured`, `suq`.

use isa::{
    Access, AtomOp, Beyond, Dst, Fetch, FetchMode, Geometry, Op, Opaque, Operand, Query, Space,
    SurfaceAccess, Symbol, Ty, Width,
};
use warploom_isa as isa;

use super::memory::elements;
use super::opcode::Opcode;
use super::operand::Fit;
use super::{Builder, Result};
use crate::resolved::{self, Base, OperandKind};

const GEOMETRIES: &[(&str, Geometry)] = &[
    ("1d", Geometry::D1),
    ("2d", Geometry::D2),
    ("3d", Geometry::D3),
    ("a1d", Geometry::A1),
    ("a2d", Geometry::A2),
    ("cube", Geometry::Cube),
    ("acube", Geometry::ACube),
];

/// What a handle must name.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wanted {
    Texture,
    Sampler,
    /// A texture's own sampler will do, too.
    AnySampler,
    Surface,
}

impl Wanted {
    fn is(self, opaque: Option<Opaque>) -> bool {
        match opaque {
            Some(Opaque::Texture) => matches!(self, Wanted::Texture | Wanted::AnySampler),
            Some(Opaque::Sampler(_)) => matches!(self, Wanted::Sampler | Wanted::AnySampler),
            Some(Opaque::Surface) => self == Wanted::Surface,
            None => false,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Wanted::Texture => "`.texref`",
            Wanted::Sampler | Wanted::AnySampler => "`.samplerref`",
            Wanted::Surface => "`.surfref`",
        }
    }
}

impl Builder<'_> {
    /// A handle: a reference by name, a register, or a kernel's parameter.
    fn handle(&mut self, op: &resolved::Operand, wanted: Wanted) -> Result<Operand> {
        let kind = match &op.kind {
            OperandKind::Address(Base::Reg(reg), 0) => OperandKind::Reg(*reg),
            OperandKind::Address(Base::Var(id), 0) => OperandKind::Var(*id, 0),
            OperandKind::Address(Base::Param(index), 0) => OperandKind::Param(*index, 0),
            kind => kind.clone(),
        };
        match kind {
            OperandKind::Reg(_) => self.src(&resolved::Operand { kind, span: op.span }, Ty::U64),
            OperandKind::Var(id, 0) => {
                let variable = &self.cx.module.variables[id.index()];
                if !wanted.is(variable.opaque) {
                    let message = format!("`{}` is no {} variable", variable.name, wanted.name());
                    return Err(self.at(op, message));
                }
                Ok(self.symbol(Symbol::Variable(id), 0, false))
            }
            OperandKind::Param(index, 0) if self.function.is_kernel => {
                let at = Operand::Imm(self.layout.params[index as usize]);
                let access = Access { wide_address: false, ..Access::plain(Space::Param, Ty::U64) };
                Ok(self.value(Op::Ld { access, wide: true }, Width::Two, &[at, Operand::Imm(0)]))
            }
            _ => Err(self.at(op, format!("`{}` takes a handle or a reference here", self.name()))),
        }
    }

    /// `[a, c]` or `[a, b, c]`: handle, sampler and coordinates.
    fn bracket<'o>(&self, op: &'o resolved::Operand) -> Result<&'o [resolved::Operand]> {
        match &op.kind {
            OperandKind::Vector(parts) if (2..=3).contains(&parts.len()) => Ok(parts),
            _ => Err(self.at(op, format!("`{}` takes `[a, {{x, …}}]` here", self.name()))),
        }
    }

    /// Adds `count` 32-bit values of a vector to a list. Texts may write more than there are, up to four.
    fn values(&mut self, op: &resolved::Operand, count: usize, list: &mut Vec<Operand>) -> Result {
        let parts = match &op.kind {
            OperandKind::Vector(parts) => parts.as_slice(),
            _ => std::slice::from_ref(op),
        };
        if parts.len() < count || parts.len() > 4 {
            let (name, have) = (self.name(), parts.len());
            return Err(self.at(op, format!("`{name}` takes {count} values here, there are {have}")));
        }
        for part in &parts[..count] {
            list.push(self.src(part, Ty::B32)?);
        }
        Ok(())
    }
}

/// The geometry. The message about one that an instruction does not have is about that word.
fn geometry(oc: &mut Opcode<'_>, known: &[(&str, Geometry)]) -> Result<Geometry> {
    let is_geometry = |word: &&str| word.trim_end_matches("ms").ends_with('d') || word.ends_with("cube");
    match (oc.peek_none(known), oc.words_left().find(is_geometry)) {
        (true, Some(word)) => {
            let list: Vec<_> = known.iter().map(|(name, _)| format!(".{name}")).collect();
            let message = format!("`.{word}` is not a geometry of `{}`", oc.mnemonic());
            Err(oc.not_modelled(message).help(format!("it takes {}", list.join(" "))))
        }
        _ => oc.need(known),
    }
}

fn multisampled(oc: &Opcode<'_>) -> Result {
    match ["2dms", "a2dms"].iter().any(|word| oc.peek(word)) {
        true => Err(oc.not_modelled(format!("`{}`: multisample textures are not modelled", oc.name()))),
        false => Ok(()),
    }
}

/// `tex[.mip].geom.v4.dtype.ctype d[|p], [a, [b,] c] [, lod | dPdx, dPdy] [, e]`
pub(super) fn tex(b: &mut Builder<'_>, oc: &mut Opcode<'_>) -> Result {
    multisampled(oc)?;
    let mode = oc.pick(&[("base", FetchMode::Plain), ("level", FetchMode::Level), ("grad", FetchMode::Grad)]);
    let geometry = geometry(oc, GEOMETRIES)?;
    fetch(b, oc, geometry, mode.unwrap_or(FetchMode::Plain))
}

/// `tld4.comp.geom.v4.dtype.f32 d[|p], [a, [b,] c] [, e]`
pub(super) fn tld4(b: &mut Builder<'_>, oc: &mut Opcode<'_>) -> Result {
    let channel = oc.need(&[("r", 0), ("g", 1), ("b", 2), ("a", 3)])?;
    let geometry = geometry(oc, &[GEOMETRIES[1], GEOMETRIES[4], GEOMETRIES[5], GEOMETRIES[6]])?;
    fetch(b, oc, geometry, FetchMode::Gather(channel))
}

fn fetch(b: &mut Builder<'_>, oc: &mut Opcode<'_>, geometry: Geometry, mode: FetchMode) -> Result {
    let count = oc.need(&[("v4", 4), ("v2", 2)])?;
    let types: &[Ty] = if count == 2 { &[Ty::F16x2] } else { &[Ty::U32, Ty::S32, Ty::F32] };
    if oc.peek_type() == Some(Ty::F16) {
        return Err(oc.not_modelled(format!("`{}`: write halves in pairs (`.v2.f16x2`)", oc.name())));
    }
    let ty = oc.ty(types)?;
    let gathers = matches!(mode, FetchMode::Gather(_));
    let integer = oc.ty(if gathers { &[Ty::F32] } else { &[Ty::S32, Ty::F32] })? == Ty::S32;
    if integer && geometry.is_cube() {
        return Err(oc.error(format!("`{}`: a direction is not an integer", oc.name())));
    }
    let operands = oc.operands_between(2, 6)?;
    let (to, resident) = b.pair(&operands[0]);
    let mut results = Vec::with_capacity(4);
    for part in elements(b, to, count)? {
        results.push(match b.dst_or_sink(part, if ty == Ty::F16x2 { Ty::B32 } else { ty })? {
            Dst::Reg(reg) => Operand::Reg(reg),
            _ => Operand::None,
        });
    }
    let parts = b.bracket(&operands[1])?;
    let texture = b.handle(&parts[0], Wanted::Texture)?;
    let sampler = if parts.len() == 3 { b.handle(&parts[1], Wanted::Sampler)? } else { Operand::None };
    let axes = geometry.axes();
    let mut values = Vec::new();
    b.values(&parts[parts.len() - 1], axes + usize::from(geometry.is_layered()), &mut values)?;
    let levels = match mode {
        FetchMode::Level => 1,
        FetchMode::Grad => 2,
        _ => 0,
    };
    let rest = &operands[2..];
    if rest.len() < levels {
        return Err(oc.error(format!("`{}` takes {levels} operands after the coordinates", oc.name())));
    }
    for operand in &rest[..levels] {
        b.values(operand, if mode == FetchMode::Grad { axes } else { 1 }, &mut values)?;
    }
    let shifts = match &rest[levels..] {
        [] => Operand::None,
        [shift] if matches!(shift.kind, OperandKind::Vector(_)) || axes == 1 => {
            let mut list = Vec::new();
            b.values(shift, axes, &mut list)?;
            Operand::Vec(b.vector(list))
        }
        _ => return Err(oc.not_modelled(format!("`{}`: comparisons of depth are not modelled", oc.name()))),
    };
    let resident = resident.map(|p| b.dst_pred(p)).transpose()?;
    let to = Dst::Vec(b.vector(results));
    let values = Operand::Vec(b.vector(values));
    b.emit(Op::Tex(Fetch { geometry, ty, integer, mode }), to, &[texture, sampler, values, shifts]);
    if let Some(resident) = resident {
        // All memory is resident.
        b.emit(Op::MovPred, resident, &[Operand::Imm(1)]);
    }
    Ok(())
}

const QUERIES: &[(&str, Query)] = &[
    ("width", Query::Width),
    ("height", Query::Height),
    ("depth", Query::Depth),
    ("array_size", Query::ArraySize),
    ("channel_data_type", Query::ChannelType),
    ("channel_order", Query::ChannelOrder),
    ("memory_layout", Query::MemoryLayout),
    ("num_mipmap_levels", Query::Levels),
    ("num_samples", Query::Samples),
    ("normalized_coords", Query::NormalizedCoords),
    ("force_unnormalized_coords", Query::ForceUnnormalizedCoords),
    ("filter_mode", Query::FilterMode),
    ("addr_mode_0", Query::AddressMode(0)),
    ("addr_mode_1", Query::AddressMode(1)),
    ("addr_mode_2", Query::AddressMode(2)),
];

/// `txq.query.b32 d, [a]`, `txq.level.query.b32 d, [a], lod`
pub(super) fn txq(b: &mut Builder<'_>, oc: &mut Opcode<'_>) -> Result {
    let level = oc.has("level");
    let query = oc.need(QUERIES)?;
    let of_sampler =
        matches!(query, Query::ForceUnnormalizedCoords | Query::FilterMode | Query::AddressMode(_));
    let wanted = match query {
        // A texture with a sampler of its own does not force anything.
        Query::ForceUnnormalizedCoords => Wanted::Sampler,
        _ if of_sampler => Wanted::AnySampler,
        _ => Wanted::Texture,
    };
    ask(b, oc, (query, of_sampler), wanted, level)
}

/// `suq.query.b32 d, [a]`
pub(super) fn suq(b: &mut Builder<'_>, oc: &mut Opcode<'_>) -> Result {
    let query = oc.need(&QUERIES[..7])?;
    ask(b, oc, (query, false), Wanted::Surface, false)
}

fn ask(
    b: &mut Builder<'_>,
    oc: &mut Opcode<'_>,
    (query, of_sampler): (Query, bool),
    wanted: Wanted,
    level: bool,
) -> Result {
    oc.ty(&[Ty::B32])?;
    let count = if level { 3 } else { 2 };
    let operands = oc.operands_between(count, count)?;
    let d = b.dst(&operands[0], Ty::B32)?;
    let handle = b.handle(&operands[1], wanted)?;
    let level = if level { b.src(&operands[2], Ty::B32)? } else { Operand::None };
    b.emit(Op::TexQuery(query, of_sampler), d, &[handle, level]);
    Ok(())
}

/// What `suld`, `sust` and `sured` have in common. The types are those of raw accesses, and of formatted ones if the
/// instruction has them.
fn surface(oc: &mut Opcode<'_>, raw: &[Ty], formatted: &[Ty], vectors: bool) -> Result<SurfaceAccess> {
    let forms = [("b", (raw, false)), ("p", (formatted, true))];
    let (types, formatted) = oc.need(if formatted.is_empty() { &forms[..1] } else { &forms })?;
    let geometry = geometry(oc, &GEOMETRIES[..5])?;
    oc.pick(&[("ca", ()), ("cg", ()), ("cs", ()), ("cv", ()), ("wb", ()), ("wt", ())]);
    let count = if vectors { oc.pick(&[("v2", 2), ("v4", 4)]).unwrap_or(1) } else { 1 };
    let beyond = oc.pick(&[("trap", Beyond::Trap), ("clamp", Beyond::Clamp), ("zero", Beyond::Zero)]);
    let ty = oc.ty(types)?;
    let access = SurfaceAccess { geometry, ty, count, beyond: beyond.unwrap_or(Beyond::Trap), formatted };
    if ty.bytes() * u32::from(count) > 16 {
        return Err(oc.error(format!("`{}` moves more than 16 bytes", oc.name())));
    }
    Ok(access)
}

/// The handle and the coordinates of a surface.
fn surface_place(b: &mut Builder<'_>, op: &resolved::Operand, geometry: Geometry) -> Result<[Operand; 2]> {
    let parts = b.bracket(op)?;
    if parts.len() != 2 {
        return Err(b.at(op, format!("`{}` takes `[a, {{x, …}}]` here", b.name())));
    }
    let handle = b.handle(&parts[0], Wanted::Surface)?;
    let mut values = Vec::new();
    b.values(&parts[1], geometry.axes() + usize::from(geometry.is_layered()), &mut values)?;
    Ok([handle, Operand::Vec(b.vector(values))])
}

const RAW: &[Ty] = &[Ty::B8, Ty::B16, Ty::B32, Ty::B64];

/// `suld.b.geom[.cop][.vec].dtype[.clamp] d, [a, b]`
pub(super) fn suld(b: &mut Builder<'_>, oc: &mut Opcode<'_>) -> Result {
    let access = surface(oc, RAW, &[], true)?;
    let [to, from] = oc.operands()?;
    let mut list = Vec::with_capacity(4);
    for part in elements(b, to, access.count)? {
        list.push(match part.kind {
            OperandKind::Sink => Operand::None,
            OperandKind::Reg(r) => {
                let (reg, declared) = b.register(part, r, access.ty, Fit::Wider)?;
                if declared.is_wide() != access.ty.is_wide() {
                    let message = format!("`{}` takes registers of up to 32 bits here", b.name());
                    return Err(b.at(part, message));
                }
                Operand::Reg(reg)
            }
            _ => return Err(b.at(part, format!("the result of `{}` goes to a register", b.name()))),
        });
    }
    let place = surface_place(b, from, access.geometry)?;
    let dst = match list.as_slice() {
        [Operand::Reg(reg)] => Dst::Reg(*reg),
        [_] => Dst::None,
        _ => Dst::Vec(b.vector(list)),
    };
    b.emit(Op::SurfaceLd(access), dst, &place);
    Ok(())
}

/// `sust.b.geom[.cop][.vec].ctype[.clamp] [a, b], c`, `sust.p.geom[.vec].b32[.clamp] [a, b], c`
pub(super) fn sust(b: &mut Builder<'_>, oc: &mut Opcode<'_>) -> Result {
    let access = surface(oc, RAW, &[Ty::B32], true)?;
    let [to, from] = oc.operands()?;
    let [handle, at] = surface_place(b, to, access.geometry)?;
    let mut list = Vec::with_capacity(4);
    for part in elements(b, from, access.count)? {
        list.push(b.src_or_wider(part, access.ty)?);
    }
    let value = if list.len() == 1 { list[0] } else { Operand::Vec(b.vector(list)) };
    b.emit(Op::SurfaceSt(access), Dst::None, &[handle, at, value]);
    Ok(())
}

/// `sured.b.op.geom.ctype[.clamp] [a, b], c`, `sured.p.op.geom.ctype[.clamp] [a, b], c`
pub(super) fn sured(b: &mut Builder<'_>, oc: &mut Opcode<'_>) -> Result {
    let op = oc.pick(&[
        ("add", AtomOp::Add),
        ("min", AtomOp::Min),
        ("max", AtomOp::Max),
        ("and", AtomOp::And),
        ("or", AtomOp::Or),
    ]);
    let (raw, formatted): (&[Ty], &[Ty]) = match op {
        Some(AtomOp::And | AtomOp::Or) => (&[Ty::B32], &[Ty::B32]),
        Some(AtomOp::Add) => (&[Ty::U32, Ty::S32, Ty::U64], &[Ty::B32]),
        _ => (&[Ty::U32, Ty::S32, Ty::U64, Ty::S64], &[Ty::B32, Ty::B64]),
    };
    let access = surface(oc, raw, formatted, false)?;
    let op = op.ok_or_else(|| oc.error(format!("`{}` needs an operation such as `.add`", oc.name())))?;
    let [to, from] = oc.operands()?;
    let [handle, at] = surface_place(b, to, access.geometry)?;
    let value = b.src(from, access.ty)?;
    b.emit(Op::SurfaceRed(op, access), Dst::None, &[handle, at, value]);
    Ok(())
}
