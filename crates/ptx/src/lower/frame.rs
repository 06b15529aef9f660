//! A function's frame in local memory: first results and parameters, in the layout that every caller uses, then local
//! variables and the parameters of the calls it makes. A kernel's parameters are not in its frame.

use isa::{Access, Clamp, Cmp, Combine, Dst, Op, Operand, Space, Ty, Width, layout_params};
use warploom_isa as isa;

use super::address::extend;
use super::{Builder, Result, Slot};
use crate::resolved::{self, Formal, FrameId, FrameKind, FrameVar, Prototype};

/// Offsets of results and parameters.
pub(super) struct Layout {
    pub(super) returns: Vec<u32>,
    pub(super) params: Vec<u32>,
    /// Total size.
    pub(super) bytes: u32,
}

impl Layout {
    fn new(returns: &[(u32, u32)], params: &[(u32, u32)]) -> Self {
        let (mut offsets, bytes) = layout_params(returns.iter().chain(params).copied());
        let params = offsets.split_off(returns.len());
        Layout { returns: offsets, params, bytes }
    }

    pub(super) fn of_function(function: &resolved::Function) -> Self {
        let sizes = |formals: &[Formal]| formals.iter().map(|f| (f.bytes, f.align)).collect::<Vec<_>>();
        Layout::new(&sizes(&function.returns), &sizes(&function.params))
    }

    pub(super) fn of_prototype(prototype: &Prototype) -> Self {
        Layout::new(&prototype.returns, &prototype.params)
    }
}

/// Places every frame variable and returns their offsets. Sets the frame's size, alignment and names.
pub(super) fn lay_out(
    function: &resolved::Function,
    body: &resolved::Body,
    layout: &Layout,
    out: &mut isa::Body,
) -> Vec<u32> {
    let formals = function.returns.iter().chain(&function.params);
    out.frame_bytes = if function.is_kernel { 0 } else { layout.bytes };
    out.frame_align = if function.is_kernel { 1 } else { formals.map(|f| f.align).max().unwrap_or(1) };
    body.frame
        .iter()
        .map(|var| {
            let offset = match var.kind {
                FrameKind::Param(i) | FrameKind::Variadic(i) => layout.params[i as usize],
                FrameKind::Return(i) => layout.returns[i as usize],
                FrameKind::Local | FrameKind::CallParam => place(var, out),
            };
            out.frame_vars.push((var.name.clone(), offset, var.bytes));
            offset
        })
        .collect()
}

fn place(var: &FrameVar, out: &mut isa::Body) -> u32 {
    let align = var.align.max(1);
    let offset = out.frame_bytes.next_multiple_of(align);
    out.frame_bytes = offset + var.bytes;
    out.frame_align = out.frame_align.max(align);
    offset
}

impl Builder<'_> {
    /// A new unnamed part of the frame.
    pub(super) fn frame_slot(&mut self, bytes: u32, align: u32) -> u32 {
        let align = align.max(1);
        let offset = self.out.frame_bytes.next_multiple_of(align);
        self.out.frame_bytes = offset + bytes;
        self.out.frame_align = self.out.frame_align.max(align);
        offset
    }

    pub(super) fn load_frame(&mut self, reg: isa::Reg, ty: isa::Ty, offset: u32) {
        let op = Op::Ld { access: Access::plain(Space::Local, ty), wide: ty.is_wide() };
        self.emit(op, Dst::Reg(reg), &[Operand::Frame, Operand::Imm(offset)]);
    }

    pub(super) fn store_frame(&mut self, value: Operand, ty: isa::Ty, offset: u32) {
        let op = Op::St(Access::plain(Space::Local, ty));
        self.emit(op, Dst::None, &[Operand::Frame, Operand::Imm(offset), value]);
    }

    /// Loads `.reg` parameters, which are passed in the frame, into their registers.
    pub(super) fn prologue(&mut self) -> Result {
        for (formal, &offset) in self.function.params.iter().zip(&self.layout.params) {
            if let Some(id) = formal.reg {
                self.load_slot(self.slots[id.0 as usize], offset);
            }
        }
        Ok(())
    }

    /// Stores `.reg` results, which are returned in the frame.
    pub(super) fn epilogue(&mut self) {
        for (formal, &offset) in self.function.returns.iter().zip(&self.layout.returns) {
            if let Some(id) = formal.reg {
                self.store_slot(self.slots[id.0 as usize], offset);
            }
        }
    }

    /// Loads a register of any kind from the frame. A predicate is a byte there.
    pub(super) fn load_slot(&mut self, slot: Slot, offset: u32) {
        match slot {
            Slot::Reg(reg, ty) => self.load_frame(reg, ty, offset),
            Slot::Quad(low, high) => {
                self.load_frame(low, Ty::B64, offset);
                self.load_frame(high, Ty::B64, offset + 8);
            }
            Slot::Pred(p) => {
                let byte = self.fresh(Width::One);
                self.load_frame(byte, Ty::B8, offset);
                let op = Op::Setp { cmp: Cmp::Ne, combine: Combine::None, ty: Ty::B32, ftz: false };
                self.emit(op, Dst::Pred(p), &[Operand::Reg(byte), Operand::Imm(0)]);
            }
        }
    }

    /// Stores a register of any kind as [`Self::load_slot`] loads it.
    pub(super) fn store_slot(&mut self, slot: Slot, offset: u32) {
        match slot {
            Slot::Reg(reg, ty) => self.store_frame(Operand::Reg(reg), ty, offset),
            Slot::Quad(low, high) => {
                self.store_frame(Operand::Reg(low), Ty::B64, offset);
                self.store_frame(Operand::Reg(high), Ty::B64, offset + 8);
            }
            Slot::Pred(p) => {
                let sources = [Operand::Imm(1), Operand::Imm(0), Operand::Pred(p)];
                let byte = self.value(Op::Selp(Ty::B32), Width::One, &sources);
                self.store_frame(byte, Ty::B8, offset);
            }
        }
    }

    /// Whether a frame variable holds the address of the array that is passed for `name[]`.
    pub(super) fn is_variadic(&self, id: FrameId) -> bool {
        matches!(self.body.frame[id.0 as usize].kind, FrameKind::Variadic(_))
    }

    /// The address of the array that was passed for `name[]`, plus bytes: it is in the frame of the caller.
    pub(super) fn variadic_address(&mut self, id: FrameId, offset: i64, bits: u32) -> Operand {
        let held = self.fresh(Width::One);
        self.load_frame(held, Ty::U32, self.frame[id.0 as usize]);
        let sources = [Operand::Reg(held), Operand::Imm(offset as u32)];
        let at = self.value(Op::IAdd(Ty::U32, Clamp::None), Width::One, &sources);
        if bits == 32 {
            return at;
        }
        self.value(Op::Cvt(extend(Ty::U32, Ty::U64)), Width::Two, &[at])
    }
}
