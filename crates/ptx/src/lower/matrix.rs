//! Matrix instructions: `mma`, `ldmatrix`, `stmatrix`, `movmatrix`.

use isa::{BitProduct, Dst, MatrixAccess, MatrixTy, Mma, Op, Operand, Space, Ty};
use warploom_isa as isa;

use super::address::{Place, place_or_generic};
use super::opcode::Opcode;
use super::{Builder, Result};
use crate::resolved::{self, OperandKind};

pub(super) const TYPES: &[(&str, MatrixTy)] = &[
    ("f16", MatrixTy::F16),
    ("bf16", MatrixTy::Bf16),
    ("tf32", MatrixTy::Tf32),
    ("f32", MatrixTy::F32),
    ("f64", MatrixTy::F64),
    ("e4m3", MatrixTy::E4m3),
    ("e5m2", MatrixTy::E5m2),
    ("s8", MatrixTy::S8),
    ("u8", MatrixTy::U8),
    ("s4", MatrixTy::S4),
    ("u4", MatrixTy::U4),
    ("b1", MatrixTy::B1),
    ("s32", MatrixTy::S32),
];

/// Whether A has 16 rows, and K.
const SHAPES: &[(&str, (bool, u32))] = &[
    ("m8n8k4", (false, 4)),
    ("m8n8k16", (false, 16)),
    ("m8n8k32", (false, 32)),
    ("m8n8k128", (false, 128)),
    ("m16n8k4", (true, 4)),
    ("m16n8k8", (true, 8)),
    ("m16n8k16", (true, 16)),
    ("m16n8k32", (true, 32)),
    ("m16n8k64", (true, 64)),
    ("m16n8k128", (true, 128)),
    ("m16n8k256", (true, 256)),
];

/// Words that name what is not modelled.
const UNMODELLED: &[(&str, &str)] = &[
    ("sp", "sparse matrices are not modelled"),
    ("sp::ordered_metadata", "sparse matrices are not modelled"),
    ("block_scale", "scaled matrices are not modelled"),
    ("kind::f8f6f4", "6-bit and 4-bit floating point is not modelled"),
    ("kind::mxf8f6f4", "scaled matrices are not modelled"),
    ("kind::mxf4", "scaled matrices are not modelled"),
    ("kind::mxf4nvf4", "scaled matrices are not modelled"),
];

/// The shapes that PTX has for a type of A, as (16 rows, K), and since which chip.
fn shapes(ty: MatrixTy) -> &'static [((bool, u32), &'static str)] {
    match ty {
        MatrixTy::F16 => &[((false, 4), "sm_70"), ((true, 8), "sm_75"), ((true, 16), "sm_80")],
        MatrixTy::Bf16 => &[((true, 8), "sm_80"), ((true, 16), "sm_80")],
        MatrixTy::Tf32 => &[((true, 4), "sm_80"), ((true, 8), "sm_80")],
        MatrixTy::F64 => {
            &[((false, 4), "sm_80"), ((true, 4), "sm_90"), ((true, 8), "sm_90"), ((true, 16), "sm_90")]
        }
        MatrixTy::E4m3 | MatrixTy::E5m2 => &[((true, 16), "sm_89"), ((true, 32), "sm_89")],
        MatrixTy::S8 | MatrixTy::U8 => {
            &[((false, 16), "sm_75"), ((true, 16), "sm_80"), ((true, 32), "sm_80")]
        }
        MatrixTy::S4 | MatrixTy::U4 => {
            &[((false, 32), "sm_75"), ((true, 32), "sm_80"), ((true, 64), "sm_80")]
        }
        MatrixTy::B1 => &[((false, 128), "sm_75"), ((true, 128), "sm_80"), ((true, 256), "sm_80")],
        MatrixTy::F32 | MatrixTy::S32 => &[],
    }
}

/// Whether A and B, and C and D, may be of these types together.
fn agree([d, a, b, c]: [MatrixTy; 4]) -> bool {
    use MatrixTy::{B1, Bf16, E4m3, E5m2, F16, F32, F64, S4, S8, S32, Tf32, U4, U8};
    let half_or_single = |ty| matches!(ty, F16 | F32);
    match a {
        F16 => b == F16 && half_or_single(c) && half_or_single(d),
        E4m3 | E5m2 => matches!(b, E4m3 | E5m2) && c == d && half_or_single(d),
        Bf16 | Tf32 => b == a && c == F32 && d == F32,
        F64 => [b, c, d] == [F64; 3],
        S8 | U8 => matches!(b, S8 | U8) && [c, d] == [S32; 2],
        S4 | U4 => matches!(b, S4 | U4) && [c, d] == [S32; 2],
        B1 => b == B1 && [c, d] == [S32; 2],
        F32 | S32 => false,
    }
}

/// `mma.sync.aligned.shape.alayout.blayout[.satfinite | .rnd].dtype.atype.btype.ctype[.op.popc] d, a, b, c`
pub(super) fn mma(b: &mut Builder<'_>, oc: &mut Opcode<'_>) -> Result {
    if let Some(why) = UNMODELLED.iter().find(|(word, _)| oc.peek(word)).map(|(_, why)| why) {
        return Err(oc.not_modelled(format!("`{}`: {why}", oc.name())));
    }
    oc.need(&[("sync", ())])?;
    oc.need(&[("aligned", ())])?;
    let shape = oc.need(SHAPES)?;
    let orders = &[("row", false), ("col", true)];
    let (a_columns, b_columns) = (oc.need(orders)?, oc.need(orders)?);
    let saturate = oc.has("satfinite");
    let nearest = oc.pick(&[("rn", true), ("rz", false), ("rm", false), ("rp", false)]);
    let types = [oc.need(TYPES)?, oc.need(TYPES)?, oc.need(TYPES)?, oc.need(TYPES)?];
    let [d, a, other, c] = types;
    let bits = match a {
        MatrixTy::B1 => {
            let product = oc.need(&[("and", BitProduct::And), ("xor", BitProduct::Xor)])?;
            oc.need(&[("popc", ())])?;
            Some(product)
        }
        _ => None,
    };
    let fours = (shape.1 / 4) as u8;
    let mma = Mma { tall: shape.0, fours, a, b: other, c, d, a_columns, b_columns, saturate, bits };
    let is_integer = matches!(a, MatrixTy::S8 | MatrixTy::U8 | MatrixTy::S4 | MatrixTy::U4);
    let ordered = mma.is_quad_pairs() || (!a_columns && b_columns);
    let chip = shapes(a).iter().find_map(|(known, chip)| (*known == shape).then_some(*chip));
    let rounds = nearest.is_some() && a != MatrixTy::F64;
    let (Some(chip), true) = (chip, agree(types) && ordered && !rounds && (is_integer || !saturate)) else {
        return Err(
            oc.error(format!("PTX has no `{}`: shape, orders and types do not go together", oc.name()))
        );
    };
    let chip = if bits == Some(BitProduct::And) { "sm_80" } else { chip };
    let version = match (chip, bits) {
        (_, Some(BitProduct::And)) => (7, 1),
        ("sm_70", _) => (6, 4),
        ("sm_75", None) => (6, 5),
        ("sm_89", _) => (8, 4),
        ("sm_90", _) => (7, 8),
        _ => (7, 0),
    };
    b.since(&format!("`{}`", oc.name()), version, chip)?;
    if nearest == Some(false) {
        return Err(oc.not_modelled(format!("`{}`: products are rounded to nearest only", oc.name())));
    }
    let counts = mma.registers();
    let operands: &[resolved::Operand; 4] = oc.operands()?;
    let to = list(b, &operands[0], counts[3], d, true)?;
    let mut sources = [Operand::None; 3];
    for (at, ty) in [a, other, c].into_iter().enumerate() {
        let registers = list(b, &operands[1 + at], counts[at], ty, false)?;
        sources[at] = Operand::Vec(b.vector(registers));
    }
    let to = b.vector(to);
    b.emit(Op::Mma(mma), Dst::Vec(to), &sources);
    Ok(())
}

/// The registers of a matrix: of 64 bits for doubles, otherwise of 32. D's are written.
pub(super) fn list(
    b: &mut Builder<'_>,
    op: &resolved::Operand,
    count: usize,
    ty: MatrixTy,
    written: bool,
) -> Result<Vec<Operand>> {
    let parts = match &op.kind {
        OperandKind::Vector(parts) => parts.as_slice(),
        _ => std::slice::from_ref(op),
    };
    if parts.len() != count {
        let have = parts.len();
        return Err(b.at(op, format!("`{}` takes {count} registers here, not {have}", b.name())));
    }
    let ty = match ty {
        MatrixTy::F64 => Ty::F64,
        MatrixTy::F32 => Ty::F32,
        _ => Ty::B32,
    };
    let mut list = Vec::with_capacity(count);
    for part in parts {
        list.push(match b.dst(part, ty) {
            Ok(Dst::Reg(reg)) => Operand::Reg(reg),
            Err(error) if written => return Err(error),
            _ => b.src(part, ty)?,
        });
    }
    Ok(list)
}

/// The shape and address space of `ldmatrix` and `stmatrix`.
fn access(oc: &mut Opcode<'_>) -> Result<(MatrixAccess, Place)> {
    oc.need(&[("sync", ())])?;
    oc.need(&[("aligned", ())])?;
    if ["m16n16", "m8n16", "m16n8", "b8"].iter().any(|word| oc.peek(word)) {
        let what = "matrices of elements of 8 bits and fewer are not modelled";
        return Err(oc.not_modelled(format!("`{}`: {what}", oc.name())));
    }
    oc.need(&[("m8n8", ())])?;
    let count = oc.need(&[("x1", 1), ("x2", 2), ("x4", 4)])?;
    let transposed = oc.has("trans");
    let place = place_or_generic(oc);
    oc.ty(&[Ty::B16])?;
    Ok((MatrixAccess { count, transposed, space: Space::Shared, wide_address: false }, place))
}

/// `ldmatrix.sync.aligned.m8n8.num[.trans][.shared].b16 r, [a]`
pub(super) fn ldmatrix(b: &mut Builder<'_>, oc: &mut Opcode<'_>) -> Result {
    let (matrix, place) = access(oc)?;
    let [to, address] = oc.operands()?;
    let to = list(b, to, matrix.count.into(), MatrixTy::F16, true)?;
    let address = b.address(address, place)?;
    let matrix = MatrixAccess { space: address.space, wide_address: address.is_wide(), ..matrix };
    let to = b.vector(to);
    b.emit(Op::LdMatrix(matrix), Dst::Vec(to), &[address.base, address.offset]);
    Ok(())
}

/// `stmatrix.sync.aligned.m8n8.num[.trans][.shared].b16 [a], r`
pub(super) fn stmatrix(b: &mut Builder<'_>, oc: &mut Opcode<'_>) -> Result {
    let (matrix, place) = access(oc)?;
    let [address, from] = oc.operands()?;
    let address = b.address(address, place)?;
    let from = list(b, from, matrix.count.into(), MatrixTy::F16, false)?;
    let matrix = MatrixAccess { space: address.space, wide_address: address.is_wide(), ..matrix };
    let from = Operand::Vec(b.vector(from));
    b.emit(Op::StMatrix(matrix), Dst::None, &[address.base, address.offset, from]);
    Ok(())
}

/// `movmatrix.sync.aligned.m8n8.trans.b16 d, a`
pub(super) fn movmatrix(b: &mut Builder<'_>, oc: &mut Opcode<'_>) -> Result {
    for word in ["sync", "aligned", "m8n8", "trans"] {
        oc.need(&[(word, ())])?;
    }
    oc.ty(&[Ty::B16])?;
    let [d, a] = oc.operands()?;
    let (d, a) = (b.dst(d, Ty::B32)?, b.src(a, Ty::B32)?);
    b.emit(Op::MovMatrix, d, &[a]);
    Ok(())
}
