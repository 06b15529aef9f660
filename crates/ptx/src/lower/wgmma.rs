//! `wgmma`: products of matrices by four warps, asynchronous to them.

use isa::{Dst, MatrixTy, Op, Operand, Ty, Wgmma};
use warploom_isa as isa;

use super::matrix::{TYPES, list};
use super::opcode::Opcode;
use super::{Builder, Result};
use crate::resolved::{self, OperandKind};

pub(super) fn wgmma(b: &mut Builder<'_>, oc: &mut Opcode<'_>) -> Result {
    let synced = |oc: &mut Opcode<'_>| {
        oc.need(&[("sync", ())])?;
        oc.need(&[("aligned", ())])
    };
    if oc.has("fence") {
        synced(oc)?;
        let [] = oc.operands()?;
        b.emit(Op::Nop, Dst::None, &[]);
        return Ok(());
    }
    if oc.has("commit_group") {
        synced(oc)?;
        let [] = oc.operands()?;
        b.emit(Op::WgmmaCommit, Dst::None, &[]);
        return Ok(());
    }
    if oc.has("wait_group") {
        synced(oc)?;
        let [pending] = oc.operands()?;
        let pending = b.constant(pending, 0, 7)?;
        b.emit(Op::WgmmaWait, Dst::None, &[Operand::Imm(pending)]);
        return Ok(());
    }
    oc.need(&[("mma_async", ())])?;
    synced(oc)?;
    multiply(b, oc)
}

/// N and K of `m64nNkK`.
fn shape(oc: &mut Opcode<'_>) -> Result<(u32, u32)> {
    let parsed = oc.take_map(|word| {
        let (n, k) = word.strip_prefix("m64n")?.split_once('k')?;
        Some((n.parse::<u32>().ok()?, k.parse::<u32>().ok()?))
    });
    parsed.ok_or_else(|| oc.error(format!("`{}` needs a shape: `.m64nNkK`", oc.name())))
}

/// Whether PTX multiplies these types in a shape.
fn exists([d, a, b]: [MatrixTy; 3], (n, k): (u32, u32)) -> bool {
    use MatrixTy::{B1, Bf16, E4m3, E5m2, F16, F32, S8, S32, Tf32, U8};
    let types = match a {
        F16 => b == F16 && matches!(d, F16 | F32),
        Bf16 | Tf32 => b == a && d == F32,
        E4m3 | E5m2 => matches!(b, E4m3 | E5m2) && matches!(d, F16 | F32),
        S8 | U8 => matches!(b, S8 | U8) && d == S32,
        B1 => b == B1 && d == S32,
        _ => return false,
    };
    // Integers have fewer widths.
    let widths = match a {
        S8 | U8 | B1 => n.is_multiple_of(8) && (n <= 32 || n.is_multiple_of(16)),
        _ => n.is_multiple_of(8),
    };
    types && widths && (8..=256).contains(&n) && k == 256 / a.bits()
}

/// `wgmma.mma_async.sync.aligned.shape[.satfinite].dtype.atype.btype[.and.popc] d, a | a-desc, b-desc, scale-d[, signs,
/// orders]`
fn multiply(b: &mut Builder<'_>, oc: &mut Opcode<'_>) -> Result {
    let shape = shape(oc)?;
    let saturate = oc.has("satfinite");
    let types = [oc.need(TYPES)?, oc.need(TYPES)?, oc.need(TYPES)?];
    let [d, a, other] = types;
    let integers = d == MatrixTy::S32;
    if a == MatrixTy::B1 {
        oc.need(&[("and", ())])?;
        oc.need(&[("popc", ())])?;
    }
    if !exists(types, shape) || saturate && (!integers || a == MatrixTy::B1) {
        return Err(oc.error(format!("PTX has no `{}`: shape and types do not go together", oc.name())));
    }
    let operands = oc.operands_between(4, 8)?;
    let a_shared = !matches!(operands[1].kind, OperandKind::Vector(_));
    // Halves have orders, of A only if it is in memory; integers have no signs.
    let orders = if a.bits() == 16 { 1 + usize::from(a_shared) } else { 0 };
    let signs = if integers { 0 } else { 2 };
    oc.operands_between(4 + signs + orders, 4 + signs + orders)?;
    let number = |b: &Builder<'_>, at: usize, choices: [i64; 2]| -> Result<bool> {
        match operands[at].kind {
            OperandKind::Int(value) if choices.contains(&(value as i64)) => Ok(value as i64 == choices[1]),
            _ => {
                let message = format!("`{}` takes {} or {} here", b.name(), choices[0], choices[1]);
                Err(b.at(&operands[at], message))
            }
        }
    };
    let sign = |b: &Builder<'_>, nth: usize| if integers { Ok(false) } else { number(b, 4 + nth, [1, -1]) };
    let order = |b: &Builder<'_>, at: usize| number(b, at, [0, 1]);
    let wgmma = Wgmma {
        eights: (shape.0 / 8) as u8,
        a,
        b: other,
        d,
        a_shared,
        a_negated: sign(b, 0)?,
        b_negated: sign(b, 1)?,
        a_transposed: orders == 2 && order(b, 6)?,
        b_transposed: orders > 0 && order(b, 5 + orders)?,
        saturate,
    };
    let to = list(b, &operands[0], wgmma.registers(), d, true)?;
    let left = if a_shared {
        descriptor(b, &operands[1])?
    } else {
        let registers = list(b, &operands[1], 4, a, false)?;
        Operand::Vec(b.vector(registers))
    };
    let right = descriptor(b, &operands[2])?;
    let adds = b.pred(&operands[3])?;
    // A list each, as the results may get other registers than the sums so far.
    let (sums, to) = (Operand::Vec(b.vector(to.clone())), b.vector(to));
    b.emit(Op::Wgmma(wgmma), Dst::Vec(to), &[left, right, adds, sums]);
    Ok(())
}

fn descriptor(b: &mut Builder<'_>, op: &resolved::Operand) -> Result<Operand> {
    b.src(op, Ty::B64)
}
