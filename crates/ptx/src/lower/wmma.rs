//! `wmma`: a warp loads, multiplies and stores matrices whose spread over its lanes programs do not know.
//!
//! Here fragments are those of `mma` ([`Spread`]), tile by tile, so that `wmma.mma` is one `mma` for each tile of 16 or
//! 8 rows and 8 columns, as later chips execute it. Loads and stores are plain accesses of the lanes.

use isa::{
    Access, BitProduct, Clamp, Dst, MatrixTy, Mma, Op, Operand, Part, PrmtMode, Space, Special, Ty, Width,
};
use warploom_isa as isa;

use super::address::{Address, extend, place_or_generic};
use super::matrix::{TYPES, list};
use super::opcode::Opcode;
use super::operand::address_type;
use super::{Builder, Result};
use crate::resolved;

/// M, N and K.
type Shape = (u32, u32, u32);

const SHAPES: &[(&str, Shape)] = &[
    ("m16n16k16", (16, 16, 16)),
    ("m8n32k16", (8, 32, 16)),
    ("m32n8k16", (32, 8, 16)),
    ("m16n16k8", (16, 16, 8)),
    ("m8n8k4", (8, 8, 4)),
    ("m8n8k32", (8, 8, 32)),
    ("m8n8k128", (8, 8, 128)),
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    A,
    B,
    /// C and D.
    C,
}

/// Whether PTX multiplies elements of this type in this shape.
fn has_shape(ty: MatrixTy, shape: Shape) -> bool {
    match ty {
        MatrixTy::F16 | MatrixTy::Bf16 | MatrixTy::S8 | MatrixTy::U8 => {
            matches!(shape, (16, 16, 16) | (8, 32, 16) | (32, 8, 16))
        }
        MatrixTy::Tf32 => shape == (16, 16, 8),
        MatrixTy::F64 => shape == (8, 8, 4),
        MatrixTy::S4 | MatrixTy::U4 => shape == (8, 8, 32),
        MatrixTy::B1 => shape == (8, 8, 128),
        _ => false,
    }
}

/// Whether C and D have elements of this type in this shape.
fn has_sums(ty: MatrixTy, shape: Shape) -> bool {
    let of = |inputs: &[MatrixTy]| inputs.iter().any(|&input| has_shape(input, shape));
    match ty {
        MatrixTy::F16 => of(&[MatrixTy::F16]),
        MatrixTy::F32 => of(&[MatrixTy::F16, MatrixTy::Tf32]),
        MatrixTy::F64 => of(&[MatrixTy::F64]),
        MatrixTy::S32 => of(&[MatrixTy::S8, MatrixTy::S4, MatrixTy::B1]),
        _ => false,
    }
}

/// How a matrix is spread over the registers of a warp: lane `l` is thread `l % 4` of group `l / 4`. This is the whole
/// table; see [`Spread::place`].
#[derive(Clone, Copy)]
struct Spread {
    role: Role,
    ty: MatrixTy,
    shape: Shape,
}

impl Spread {
    /// Elements of a register; single bits are counted in words.
    fn per_register(self) -> u32 {
        match self.ty {
            MatrixTy::F64 | MatrixTy::B1 => 1,
            ty => 32 / ty.bits(),
        }
    }

    /// Registers that hold the matrix once.
    fn registers(self) -> u32 {
        let (m, n, k) = self.shape;
        let k = if self.ty == MatrixTy::B1 { k / 32 } else { k };
        let elements = match self.role {
            Role::A => m * k,
            Role::B => k * n,
            Role::C => m * n,
        };
        elements / self.per_register() / 32
    }

    /// Registers that PTX names. Matrices of halves are held in as many as the largest needs, so several times.
    fn named(self) -> u32 {
        if self.ty == MatrixTy::F16 && self.role != Role::C { 8 } else { self.registers() }
    }

    /// The element of thread 0 of group 0 that a register begins with, as (row, column) of A and C and (column, row) of
    /// B. A register continues along the second coordinate. Lanes are `group` further along the first, and `thread`
    /// registers, or pairs of columns of C, along the second.
    fn place(self, register: u32) -> (u32, u32) {
        let (m, n, k) = self.shape;
        let per = self.per_register();
        let k = if self.ty == MatrixTy::B1 { k / 32 } else { k };
        let steps = k / (4 * per);
        match self.role {
            // Blocks of 16 rows: the upper and the lower half of a step of K, then the next step.
            Role::A if m >= 16 => {
                let (block, at) = (register / (2 * steps), register % (2 * steps));
                (16 * block + 8 * (at % 2), at / 2 * 4 * per)
            }
            Role::A => (0, register * 4 * per),
            Role::B => (8 * (register / steps), register % steps * 4 * per),
            // Tiles of 16 or 8 rows and 8 columns, in rows of tiles: two columns of the upper half, two of the lower.
            Role::C => {
                let element = register * per;
                let in_tile = if m >= 16 { 4 } else { 2 };
                let (tile, at) = (element / in_tile, element % in_tile);
                let tiles = n / 8;
                (16 * (tile / tiles) + 8 * (at / 2), 8 * (tile % tiles) + at % 2)
            }
        }
    }
}

pub(super) fn wmma(b: &mut Builder<'_>, oc: &mut Opcode<'_>) -> Result {
    if oc.has("mma") {
        return multiply(b, oc);
    }
    let loads = oc.need(&[("load", true), ("store", false)])?;
    let role = if loads {
        oc.need(&[("a", Role::A), ("b", Role::B), ("c", Role::C)])?
    } else {
        oc.need(&[("d", Role::C)])?
    };
    oc.need(&[("sync", ())])?;
    oc.need(&[("aligned", ())])?;
    let rows = oc.need(&[("row", true), ("col", false)])?;
    let shape = oc.need(SHAPES)?;
    let place = place_or_generic(oc);
    let ty = oc.need(TYPES)?;
    let exists = if role == Role::C { has_sums(ty, shape) } else { has_shape(ty, shape) };
    // Elements of less than a byte lie along K.
    let ordered = ty.bits() >= 8 || rows == (role == Role::A);
    let operands = oc.operands_between(2, 3)?;
    if !exists || !ordered {
        return Err(oc.error(format!("PTX has no `{}`: shape, order and type do not go together", oc.name())));
    }
    let (memory, fragment) = if loads { (&operands[1], &operands[0]) } else { (&operands[0], &operands[1]) };
    let spread = Spread { role, ty, shape };
    let registers = list(b, fragment, spread.named() as usize, ty, loads)?;
    let address = b.address(memory, place)?;
    // The coordinate along which registers continue is the one along which elements are neighbours in memory.
    let along = rows != (role == Role::B);
    let walk = Walk::new(b, spread, along, address, operands.get(2))?;
    let once = spread.registers() as usize;
    for (number, &register) in registers.iter().enumerate() {
        match number.checked_sub(once) {
            Some(_) => {
                let Operand::Reg(to) = register else { continue };
                b.emit(Op::Mov(Ty::B32), Dst::Reg(to), &[registers[number % once]]);
            }
            None if loads => walk.load(b, number as u32, register),
            None => walk.store(b, number as u32, register),
        }
    }
    Ok(())
}

/// The accesses of a lane to a matrix in memory.
struct Walk {
    spread: Spread,
    /// Whether the elements of a register are neighbours in memory.
    along: bool,
    space: Space,
    bits: u32,
    /// Where the lane's first element is.
    start: Operand,
    /// Bytes from one row to the next, or from one column to the next.
    stride: Operand,
}

impl Walk {
    fn new(
        b: &mut Builder<'_>,
        spread: Spread,
        along: bool,
        address: Address,
        stride: Option<&resolved::Operand>,
    ) -> Result<Walk> {
        let bits = if address.is_wide() { 64 } else { 32 };
        let Spread { role, ty, shape: (m, n, k) } = spread;
        let per = spread.per_register();
        // Elements from one lane to the next of a group; those of C are two columns apart.
        let step = if role == Role::C { 2 } else { per };
        let stride = match stride {
            Some(stride) => {
                let elements = b.src(stride, Ty::B32)?;
                match (elements, ty.bits()) {
                    (Operand::Imm(count), bits) => {
                        Operand::Imm((u64::from(count) * u64::from(bits) / 8) as u32)
                    }
                    (count, 1 | 4) => {
                        let shift = Operand::Imm(if ty.bits() == 1 { 3 } else { 1 });
                        b.value(Op::Shr(Ty::U32), Width::One, &[count, shift])
                    }
                    (count, bits) => {
                        let shift = Operand::Imm((bits / 8).trailing_zeros());
                        b.value(Op::Shl(Ty::B32), Width::One, &[count, shift])
                    }
                }
            }
            None => {
                let elements = match (role, along) {
                    (Role::A, true) | (Role::B, true) => k,
                    (Role::A, false) | (Role::C, false) => m,
                    (Role::B, false) | (Role::C, true) => n,
                };
                Operand::Imm(elements * ty.bits() / 8)
            }
        };
        let lane = b.value(Op::Special(Special::LaneId), Width::One, &[]);
        let group = b.value(Op::Shr(Ty::U32), Width::One, &[lane, Operand::Imm(2)]);
        let logic = Op::Logic(isa::Logic::And, Ty::B32);
        let thread = b.value(logic, Width::One, &[lane, Operand::Imm(3)]);
        let bytes = if ty == MatrixTy::B1 { 4 } else { ty.bits().max(8) / 8 };
        let times = |b: &mut Builder<'_>, x: Operand, y: Operand| {
            b.value(Op::IMul(Ty::U32, Part::Lo), Width::One, &[x, y])
        };
        let inner = if ty.bits() < 8 { 4 } else { step * bytes };
        let offset = if along {
            let far = times(b, group, stride);
            let mad = Op::IMad(Ty::U32, Part::Lo, Clamp::None);
            b.value(mad, Width::One, &[thread, Operand::Imm(inner), far])
        } else {
            let steps = times(b, thread, Operand::Imm(step));
            let far = times(b, steps, stride);
            let mad = Op::IMad(Ty::U32, Part::Lo, Clamp::None);
            b.value(mad, Width::One, &[group, Operand::Imm(bytes), far])
        };
        let offset = match bits {
            64 => b.value(Op::Cvt(extend(Ty::U32, Ty::U64)), Width::Two, &[offset]),
            _ => offset,
        };
        let base = b.whole(address, bits);
        let width = if bits == 64 { Width::Two } else { Width::One };
        let start = b.value(Op::IAdd(address_type(bits), Clamp::None), width, &[base, offset]);
        Ok(Walk { spread, along, space: address.space, bits, start, stride })
    }

    /// Base and offset of an element of a register: the `nth` along the second coordinate.
    fn at(&self, b: &mut Builder<'_>, register: u32, nth: u32) -> (Operand, Operand) {
        let (first, second) = self.spread.place(register);
        let second = second + nth;
        let (strides, elements) = if self.along { (first, second) } else { (second, first) };
        let bits = if self.spread.ty == MatrixTy::B1 { 32 } else { self.spread.ty.bits() };
        let offset = elements * bits / 8;
        let known = match self.stride {
            Operand::Imm(stride) => u64::from(strides) * u64::from(stride) + u64::from(offset),
            _ if strides == 0 => offset.into(),
            _ => u64::MAX,
        };
        if i32::try_from(known).is_ok() {
            return (self.start, Operand::Imm(known as u32));
        }
        let offset = Operand::Imm(offset);
        let sources = [self.stride, Operand::Imm(strides), self.start];
        let (part, width) = if self.bits == 64 { (Part::Wide, Width::Two) } else { (Part::Lo, Width::One) };
        (b.value(Op::IMad(Ty::U32, part, Clamp::None), width, &sources), offset)
    }

    fn access(&self, bits: u32) -> Access {
        let ty = match bits {
            64 => Ty::B64,
            32 => Ty::B32,
            16 => Ty::B16,
            _ => Ty::B8,
        };
        Access { wide_address: self.bits == 64, ..Access::plain(self.space, ty) }
    }

    /// Bits of each access: a register, or an element if its neighbours are elsewhere.
    fn unit(&self) -> u32 {
        let whole = self.spread.ty.bits().max(32);
        if self.along || self.spread.ty.bits() < 8 { whole } else { self.spread.ty.bits() }
    }

    fn load(&self, b: &mut Builder<'_>, number: u32, to: Operand) {
        let Operand::Reg(to) = to else { return };
        let load = Op::Ld { access: self.access(self.unit()), wide: self.unit() == 64 };
        if self.unit() >= 32 {
            let (base, offset) = self.at(b, number, 0);
            b.emit(load, Dst::Reg(to), &[base, offset]);
            return;
        }
        let parts: Vec<Operand> = (0..self.spread.per_register())
            .map(|nth| {
                let (base, offset) = self.at(b, number, nth);
                b.value(load, Width::One, &[base, offset])
            })
            .collect();
        let pack = Op::Pack32x16;
        match parts[..] {
            [low, high] => b.emit(pack, Dst::Reg(to), &[low, high]),
            [first, second, third, fourth] => {
                // The low byte of one below the low byte of the other.
                let bytes = Op::Prmt(PrmtMode::Index);
                let low = b.value(bytes, Width::One, &[first, second, Operand::Imm(0x0040)]);
                let high = b.value(bytes, Width::One, &[third, fourth, Operand::Imm(0x0040)]);
                b.emit(pack, Dst::Reg(to), &[low, high]);
            }
            _ => {}
        }
    }

    fn store(&self, b: &mut Builder<'_>, number: u32, from: Operand) {
        let store = Op::St(self.access(self.unit()));
        if self.unit() >= 32 {
            let (base, offset) = self.at(b, number, 0);
            b.emit(store, Dst::None, &[base, offset, from]);
            return;
        }
        for half in 0..2 {
            let (base, offset) = self.at(b, number, half);
            let value = b.value(Op::Unpack32(half as u8), Width::One, &[from]);
            b.emit(store, Dst::None, &[base, offset, value]);
        }
    }
}

/// The types of `wmma.mma`: D, A, B, C. Those of halves are not named.
fn types(oc: &mut Opcode<'_>) -> Result<[MatrixTy; 4]> {
    let first = oc.need(TYPES)?;
    let second = oc.need(TYPES)?;
    if matches!(second, MatrixTy::F16 | MatrixTy::F32) && oc.peek_none(TYPES) {
        return Ok([first, MatrixTy::F16, MatrixTy::F16, second]);
    }
    Ok([first, second, oc.need(TYPES)?, oc.need(TYPES)?])
}

fn agree([d, a, b, c]: [MatrixTy; 4]) -> bool {
    use MatrixTy::{B1, Bf16, F16, F32, F64, S4, S8, S32, Tf32, U4, U8};
    match a {
        F16 => b == F16 && [c, d].iter().all(|ty| matches!(ty, F16 | F32)),
        Bf16 | Tf32 => b == a && [c, d] == [F32; 2],
        F64 => [b, c, d] == [F64; 3],
        S8 | U8 | S4 | U4 | B1 => b == a && [c, d] == [S32; 2],
        _ => false,
    }
}

/// `wmma.mma[.op.popc].sync.aligned.alayout.blayout.shape[.dtype.atype.btype.ctype | .dtype.ctype][.rnd] d, a, b, c`
fn multiply(b: &mut Builder<'_>, oc: &mut Opcode<'_>) -> Result {
    oc.need(&[("sync", ())])?;
    oc.need(&[("aligned", ())])?;
    let bits = oc.pick(&[("and", BitProduct::And), ("xor", BitProduct::Xor)]);
    if bits.is_some() {
        oc.need(&[("popc", ())])?;
    }
    let orders = &[("row", true), ("col", false)];
    let (a_rows, b_rows) = (oc.need(orders)?, oc.need(orders)?);
    let shape = oc.need(SHAPES)?;
    let types = types(oc)?;
    let [d, a, other, c] = types;
    let saturate = oc.has("satfinite");
    let nearest = oc.pick(&[("rn", true), ("rz", false), ("rm", false), ("rp", false)]);
    let integers = c == MatrixTy::S32 && a != MatrixTy::B1;
    let ordered = a.bits() >= 8 || a_rows && !b_rows;
    let operands: &[resolved::Operand; 4] = oc.operands()?;
    let popc = bits.is_some() == (a == MatrixTy::B1);
    if !agree(types)
        || !has_shape(a, shape)
        || !ordered
        || !popc
        || saturate && !integers
        || nearest.is_some() && a != MatrixTy::F64
    {
        return Err(
            oc.error(format!("PTX has no `{}`: shape, orders and types do not go together", oc.name()))
        );
    }
    if nearest == Some(false) {
        let message = format!("`{}`: products are rounded to nearest only", oc.name());
        return Err(oc.not_modelled(message));
    }
    let spreads = [(Role::A, a), (Role::B, other), (Role::C, c), (Role::C, d)];
    let spreads = spreads.map(|(role, ty)| Spread { role, ty, shape });
    let mut fragments = Vec::with_capacity(4);
    for (spread, at) in spreads.iter().zip([1, 2, 3, 0]) {
        fragments.push(list(b, &operands[at], spread.named() as usize, spread.ty, at == 0)?);
    }
    let (m, n, k) = shape;
    let mma = Mma {
        tall: m >= 16,
        fours: (k / 4) as u8,
        a,
        b: other,
        c,
        d,
        a_columns: false,
        b_columns: true,
        saturate,
        bits,
    };
    // A tile must not overwrite what a later one reads.
    let tiles = (m.div_ceil(16) * (n / 8)) as usize;
    let results = fragments.pop().unwrap_or_default();
    let reused = tiles > 1 && fragments.iter().flatten().any(|source| results.contains(source));
    let width = Width::wide(d == MatrixTy::F64);
    let targets: Vec<Operand> =
        if reused { results.iter().map(|_| Operand::Reg(b.fresh(width))).collect() } else { results.clone() };
    let counts = mma.registers();
    for tile in 0..tiles {
        let (block, column) = (tile / (n / 8) as usize, tile % (n / 8) as usize);
        let first = [block * counts[0], column * counts[1], tile * counts[2], tile * counts[3]];
        let part = |list: &[Operand], at: usize| list[first[at]..first[at] + counts[at]].to_vec();
        let sources: [Operand; 3] =
            std::array::from_fn(|at| Operand::Vec(b.vector(part(&fragments[at], at))));
        let to = b.vector(part(&targets, 3));
        b.emit(Op::Mma(mma), Dst::Vec(to), &sources);
    }
    if reused {
        let ty = if d == MatrixTy::F64 { Ty::B64 } else { Ty::B32 };
        for (to, from) in results.into_iter().zip(targets) {
            let Operand::Reg(to) = to else { continue };
            b.emit(Op::Mov(ty), Dst::Reg(to), &[from]);
        }
    }
    Ok(())
}
