//! A function's frame in local memory: first results and parameters, in the layout that every caller uses, then local
//! variables and the parameters of the calls it makes. A kernel's parameters are not in its frame.

use isa::{Access, Dst, Op, Operand, Space, layout_params};
use warploom_isa as isa;

use super::{Builder, Result, Slot};
use crate::diag::Diagnostic;
use crate::resolved::{self, Formal, FrameKind, FrameVar, Prototype};

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
                FrameKind::Param(i) => layout.params[i as usize],
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
            if let Some((reg, ty)) = self.formal_register(formal)? {
                self.load_frame(reg, ty, offset);
            }
        }
        for formal in &self.function.returns {
            self.formal_register(formal)?;
        }
        Ok(())
    }

    /// Stores `.reg` results, which are returned in the frame.
    pub(super) fn epilogue(&mut self) {
        for (formal, &offset) in self.function.returns.iter().zip(&self.layout.returns) {
            if let Ok(Some((reg, ty))) = self.formal_register(formal) {
                self.store_frame(Operand::Reg(reg), ty, offset);
            }
        }
    }

    fn formal_register(&self, formal: &Formal) -> Result<Option<(isa::Reg, isa::Ty)>> {
        let Some(id) = formal.reg else { return Ok(None) };
        match self.slots[id.0 as usize] {
            Slot::Reg(reg, ty) => Ok(Some((reg, ty))),
            Slot::Pred(_) => Err(Diagnostic::new(formal.span, "predicates cannot be passed to functions")),
            Slot::B128 => Err(Diagnostic::not_modelled(formal.span, "`.b128` registers are not modelled")),
        }
    }
}
