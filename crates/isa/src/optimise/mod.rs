//! What a compiler does between PTX and machine code, as far as it changes how long a kernel takes.
//!
//! Copies disappear (`copies`), a product and a sum become one instruction (`fuse`), and the instructions of a block
//! are reordered so that loads start early and their results are used late (`schedule`). Atomics whose result nobody
//! reads have none (`unused`). Additions of a warp to one word are found (`aggregate`). Values and the order of
//! synchronization stay as they are. Machine code from a listing has been through a compiler and is left alone.
//!
//! Start at [`optimise`].

mod aggregate;
mod copies;
mod fuse;
mod schedule;
mod unused;

use crate::cfg::*;
use crate::inst::*;
use crate::liveness::*;
use crate::module::*;
use crate::webs::*;

pub(crate) use aggregate::uniform_additions;

/// The body with a virtual register per web, without copies, and scheduled.
pub(crate) fn optimise(body: &Body) -> Body {
    let mut body = separate(body, &Liveness::new(body, &Cfg::new(body)));
    remove(&mut body, &copies::forward);
    remove(&mut body, &copies::coalesce);
    remove(&mut body, &fuse::products);
    unused::results(&mut body);
    schedule::schedule(&mut body);
    body
}

/// Runs a pass that says which instructions are no longer needed, and takes these out.
fn remove(body: &mut Body, pass: &dyn Fn(&mut Body) -> Vec<bool>) {
    let gone = pass(body);
    if gone.contains(&true) {
        take_out(body, &gone);
    }
}

/// Takes instructions out. What pointed at one points at the next that stays. The last instruction must stay.
fn take_out(body: &mut Body, gone: &[bool]) {
    let mut next = 0;
    let mut places: Vec<Pc> = Vec::with_capacity(gone.len() + 1);
    for &gone in gone {
        places.push(Pc(next));
        next += u32::from(!gone);
    }
    places.push(Pc(next));
    let stays = |pc: &Pc| !gone[pc.index()];
    let mut at = 0..gone.len();
    body.insts.retain(|_| at.next().is_some_and(|at| !gone[at]));
    let mut at = 0..gone.len();
    body.origins.retain(|_| at.next().is_some_and(|at| !gone[at]));
    body.insts.iter_mut().for_each(|inst| inst.redirect(&places));
    body.tables.iter_mut().flatten().for_each(|pc| *pc = places[pc.index()]);
    body.labels.iter_mut().for_each(|(pc, _)| *pc = places[pc.index()]);
    body.lock_notes.retain(|(pc, _)| stays(pc));
    body.lock_notes.iter_mut().for_each(|(pc, _)| *pc = places[pc.index()]);
    body.sibs.retain(stays);
    body.sibs.iter_mut().for_each(|pc| *pc = places[pc.index()]);
}

/// How often each register is written, in whole or in part.
fn definitions(body: &Body) -> Vec<u32> {
    let mut counts = vec![0; body.registers.len()];
    for inst in &body.insts {
        inst.for_each_def(body, |value| {
            if let crate::visit::Value::Reg(reg, _) = value {
                counts[reg.index()] += 1;
            }
        });
    }
    counts
}

/// Replaces registers everywhere.
fn rename(body: &mut Body, name: impl Fn(Reg) -> Reg) {
    let operand = |operand: &mut Operand| {
        if let Operand::Reg(reg) = operand {
            *reg = name(*reg);
        }
    };
    for inst in &mut body.insts {
        inst.src.iter_mut().for_each(operand);
        for dst in [&mut inst.dst, &mut inst.dst2] {
            if let Dst::Reg(reg) = dst {
                *reg = name(*reg);
            }
        }
    }
    body.vectors.iter_mut().flatten().for_each(operand);
    for call in &mut body.calls {
        if let Callee::Indirect(callee) = &mut call.callee {
            operand(callee);
        }
    }
}
