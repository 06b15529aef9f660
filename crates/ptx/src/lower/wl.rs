//! Warploom's own instructions, `wl.…`: lock bits ([`super::lock`]), whole wavefronts, yield.

use isa::{Dst, Op, Ty};
use warploom_isa as isa;

use super::lock::{ldslk, stsul};
use super::opcode::Opcode;
use super::{Builder, Handler, Result};

const INSTRUCTIONS: &[(&str, Handler)] = &[
    ("ldslk", ldslk),
    ("stsul", stsul),
    ("ballot", ballot),
    ("activemask", activemask),
    ("shfl", shfl),
    ("yield", yield_),
];

pub(super) fn wl(b: &mut Builder<'_>, oc: &mut Opcode<'_>) -> Result {
    match oc.pick(INSTRUCTIONS) {
        Some(lower) => lower(b, oc),
        None => {
            let names: Vec<_> = INSTRUCTIONS.iter().map(|(name, _)| format!("`wl.{name}`")).collect();
            Err(oc
                .error(format!("`{}` is not an instruction of Warploom", oc.name()))
                .help(format!("there are {}", names.join(", "))))
        }
    }
}

/// `wl.ballot.b64 d, {!}p`
fn ballot(b: &mut Builder<'_>, oc: &mut Opcode<'_>) -> Result {
    oc.ty(&[Ty::B64])?;
    let [d, p] = oc.operands()?;
    let (d, p) = (b.dst(d, Ty::B64)?, b.pred(p)?);
    b.emit(Op::WaveBallot, d, &[p]);
    Ok(())
}

/// `wl.activemask.b64 d`
fn activemask(b: &mut Builder<'_>, oc: &mut Opcode<'_>) -> Result {
    oc.ty(&[Ty::B64])?;
    let [d] = oc.operands()?;
    let d = b.dst(d, Ty::B64)?;
    b.emit(Op::WaveActive, d, &[]);
    Ok(())
}

/// `wl.shfl.idx.type d, a, lane`
fn shfl(b: &mut Builder<'_>, oc: &mut Opcode<'_>) -> Result {
    oc.need(&[("idx", ())])?;
    let ty = oc.ty(&[Ty::B32, Ty::B64])?;
    let [d, a, lane] = oc.operands()?;
    let (d, a, lane) = (b.dst(d, ty)?, b.src(a, ty)?, b.src(lane, Ty::B32)?);
    b.emit(Op::WaveShfl(ty), d, &[a, lane]);
    Ok(())
}

/// `wl.yield.b64 resource`
fn yield_(b: &mut Builder<'_>, oc: &mut Opcode<'_>) -> Result {
    oc.ty(&[Ty::B64])?;
    let [resource] = oc.operands()?;
    let resource = b.src(resource, Ty::B64)?;
    b.emit(Op::Yield, Dst::None, &[resource]);
    Ok(())
}
