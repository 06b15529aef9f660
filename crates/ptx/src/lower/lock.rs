//! `wl.ldslk` and `wl.stsul`: loads and stores of shared memory that take and free lock bits.

use isa::{Access, Cache, Dst, Op, Order, Scope, Space, Ty};
use warploom_isa as isa;

use super::address::{Place, place_or_generic};
use super::opcode::Opcode;
use super::{Builder, Result};
use crate::resolved;

const LOCKABLE: &[Ty] = &[Ty::B32, Ty::U32, Ty::S32, Ty::F32, Ty::B64, Ty::U64, Ty::S64, Ty::F64];

/// `wl.ldslk[.shared].type d[|p], [a]`: d is the word, p whether this lane took its lock bit.
pub(super) fn ldslk(b: &mut Builder<'_>, oc: &mut Opcode<'_>) -> Result {
    let (place, ty) = (place_or_generic(oc), oc.ty(LOCKABLE)?);
    let [results, address] = oc.operands()?;
    let (d, p) = b.pair(results);
    let dst = b.dst_or_sink(d, ty)?;
    let taken = p.map_or(Ok(Dst::None), |p| b.dst_pred(p))?;
    let (access, sources) = word(b, address, place, ty)?;
    b.emit2(Op::LdLock(access), dst, taken, &sources);
    Ok(())
}

/// `wl.stsul[.shared].type [a], v`
pub(super) fn stsul(b: &mut Builder<'_>, oc: &mut Opcode<'_>) -> Result {
    let (place, ty) = (place_or_generic(oc), oc.ty(LOCKABLE)?);
    let [address, value] = oc.operands()?;
    let (access, [base, offset]) = word(b, address, place, ty)?;
    let value = b.src(value, ty)?;
    b.emit(Op::StUnlock(access), Dst::None, &[base, offset, value]);
    Ok(())
}

fn word(
    b: &mut Builder<'_>,
    op: &resolved::Operand,
    place: Place,
    ty: Ty,
) -> Result<(Access, [isa::Operand; 2])> {
    let address = b.address(op, place)?;
    if !matches!(address.space, Space::Shared | Space::Generic) {
        let message = format!("`.{}` memory has no lock bits", address.space.name());
        return Err(b.at(op, message).help("only shared memory has them"));
    }
    let access = Access {
        space: address.space,
        ty,
        count: 1,
        order: Order::Relaxed,
        scope: Scope::Cta,
        cache: Cache::All,
        wide_address: address.is_wide(),
    };
    Ok((access, [address.base, address.offset]))
}
