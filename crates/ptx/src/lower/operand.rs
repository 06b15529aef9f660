//! Lowers operands to registers, immediates and addresses, and checks them against the instruction's type.

use isa::{Dst, ImmId, Op, Operand, Reg, Symbol, SymbolUse, SymbolUseId, Ty, Width};
use warploom_isa as isa;

use super::special::EXPLICIT_CLUSTER;
use super::{Builder, Result, Slot};
use crate::diag::Diagnostic;
use crate::resolved::{self, OperandKind, RegId};

/// How a register's width must relate to the instruction's type.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Fit {
    /// The same width.
    Exact,
    /// The same width or a larger one (`ld`, `st`, `cvt`).
    Wider,
}

/// The integer type of an address.
pub(super) fn address_type(bits: u32) -> Ty {
    if bits == 64 { Ty::U64 } else { Ty::U32 }
}

impl Builder<'_> {
    pub(super) fn text(&self, op: &resolved::Operand) -> String {
        match &op.kind {
            OperandKind::Reg(r) => self.register_name(*r).to_owned(),
            _ => self.cx.module.source.snippet(op.span).to_owned(),
        }
    }

    fn register_name(&self, reg: RegId) -> &str {
        &self.body.registers[reg.0 as usize].name
    }

    pub(super) fn at(&self, op: &resolved::Operand, message: impl Into<String>) -> Diagnostic {
        Diagnostic::new(op.span, message)
    }

    /// A source of exactly the type's width.
    pub(super) fn src(&mut self, op: &resolved::Operand, ty: Ty) -> Result<Operand> {
        self.source(op, ty, Fit::Exact)
    }

    /// A source whose register may be wider than the type.
    pub(super) fn src_or_wider(&mut self, op: &resolved::Operand, ty: Ty) -> Result<Operand> {
        self.source(op, ty, Fit::Wider)
    }

    fn source(&mut self, op: &resolved::Operand, ty: Ty, fit: Fit) -> Result<Operand> {
        match &op.kind {
            OperandKind::Reg(r) => Ok(Operand::Reg(self.register(op, *r, ty, fit)?.0)),
            OperandKind::Sum(r, offset) => self.sum(op, *r, *offset, ty),
            OperandKind::Int(value) => self.integer(op, *value, ty),
            OperandKind::F32(bits) => self.float(op, f64::from(f32::from_bits(*bits)), Some(*bits), ty),
            OperandKind::F64(bits) => self.float(op, f64::from_bits(*bits), None, ty),
            OperandKind::Special(name) => self.special(op, name, ty),
            OperandKind::Var(..) | OperandKind::Frame(..) | OperandKind::Param(..) | OperandKind::Func(_) => {
                self.address_value(op, ty)
            }
            OperandKind::Label(_) => {
                Err(self
                    .at(op, format!("`{}` is a label; addresses of labels are not modelled", self.text(op))))
            }
            _ => Err(self.at(op, format!("`{}` takes a register or an immediate here", self.name()))),
        }
    }

    /// `%r1+4`: an addition in the width of the type.
    fn sum(&mut self, op: &resolved::Operand, reg: RegId, offset: i64, ty: Ty) -> Result<Operand> {
        let unsigned = match ty.bits() {
            16 => Ty::U16,
            32 => Ty::U32,
            64 => Ty::U64,
            bits => return Err(self.at(op, format!("a register of {bits} bits has no constant added to it"))),
        };
        if ty.is_float() {
            let message =
                format!("`{}` takes a floating-point number, which has no constant added", self.name());
            return Err(self.at(op, message).help("use an `add` instruction"));
        }
        let reg = Operand::Reg(self.register(op, reg, ty, Fit::Exact)?.0);
        let offset = if ty.is_wide() { self.imm64(offset as u64) } else { Operand::Imm(offset as u32) };
        Ok(self.value(Op::IAdd(unsigned, isa::Clamp::None), Width::of(ty), &[reg, offset]))
    }

    /// A register of the right width and class, and its declared type.
    pub(super) fn register(&self, op: &resolved::Operand, reg: RegId, ty: Ty, fit: Fit) -> Result<(Reg, Ty)> {
        let name = self.register_name(reg);
        let (reg, declared) = match self.slots[reg.0 as usize] {
            Slot::Reg(reg, declared) => (reg, declared),
            Slot::Pred(_) => {
                let message = format!(
                    "`{name}` is a predicate, `{}` takes a {}-bit register here",
                    self.name(),
                    ty.bits()
                );
                return Err(self.at(op, message));
            }
            // Its low part serves where a register may be wider than the type.
            Slot::Quad(low, _) if fit == Fit::Wider => (low, Ty::B64),
            Slot::Quad(..) => {
                let message = format!("`{name}` is 128 bits wide, `{}` takes {}", self.name(), ty.bits());
                return Err(self.at(op, message).label("declared `.b128`"));
            }
        };
        let (have, want) = (declared.bits(), ty.bits());
        // A floating-point number may be in a larger register only if that is of plain bits.
        let bits = matches!(declared, Ty::B16 | Ty::B32 | Ty::B64);
        let wider_is_fine = fit == Fit::Wider && (!ty.is_float() || bits);
        if have != want && !(wider_is_fine && have > want) {
            let message = format!("`{name}` is {have} bits wide, `{}` takes {want}", self.name());
            return Err(self.at(op, message).label(format!("declared `.{declared}`")));
        }
        if mismatch(declared, ty) {
            let kind = if ty.is_float() { "a floating-point number" } else { "an integer" };
            let message = format!("`{name}` is declared `.{declared}`, `{}` takes {kind}", self.name());
            return Err(self.at(op, message).help(format!("declare it `.b{have}` to use it both ways")));
        }
        Ok((reg, declared))
    }

    /// The destination register.
    pub(super) fn dst(&mut self, op: &resolved::Operand, ty: Ty) -> Result<Dst> {
        match op.kind {
            OperandKind::Reg(r) => Ok(Dst::Reg(self.register(op, r, ty, Fit::Exact)?.0)),
            _ => Err(self.at(op, format!("the result of `{}` goes to a register", self.name()))),
        }
    }

    /// As [`Self::dst`], but `_` drops the result.
    pub(super) fn dst_or_sink(&mut self, op: &resolved::Operand, ty: Ty) -> Result<Dst> {
        if op.kind == OperandKind::Sink { Ok(Dst::None) } else { self.dst(op, ty) }
    }

    /// A source predicate, plain or negated.
    pub(super) fn pred(&mut self, op: &resolved::Operand) -> Result<Operand> {
        let (reg, negated) = match op.kind {
            OperandKind::Reg(r) => (r, false),
            OperandKind::Not(r) => (r, true),
            OperandKind::Int(value) => {
                let p = self.fresh_pred();
                self.emit(Op::MovPred, Dst::Pred(p), &[Operand::Imm(u32::from(value != 0))]);
                return Ok(Operand::Pred(p));
            }
            OperandKind::Special(ref name) if name == EXPLICIT_CLUSTER => {
                return Ok(self.explicit_cluster());
            }
            _ => return Err(self.at(op, format!("`{}` takes a predicate here", self.name()))),
        };
        match self.slots[reg.0 as usize] {
            Slot::Pred(p) if negated => Ok(Operand::NotPred(p)),
            Slot::Pred(p) => Ok(Operand::Pred(p)),
            _ => Err(self.not_a_predicate(op, reg)),
        }
    }

    /// The destination predicate; `_` drops the result.
    pub(super) fn dst_pred(&mut self, op: &resolved::Operand) -> Result<Dst> {
        match op.kind {
            OperandKind::Sink => Ok(Dst::None),
            OperandKind::Reg(r) => match self.slots[r.0 as usize] {
                Slot::Pred(p) => Ok(Dst::Pred(p)),
                _ => Err(self.not_a_predicate(op, r)),
            },
            _ => Err(self.at(op, format!("the result of `{}` goes to a predicate", self.name()))),
        }
    }

    fn not_a_predicate(&self, op: &resolved::Operand, reg: RegId) -> Diagnostic {
        let ty = match self.body.registers[reg.0 as usize].ty {
            resolved::RegTy::Scalar(ty) => ty.name(),
            resolved::RegTy::B128 => "b128",
            resolved::RegTy::Pred => "pred",
        };
        let message =
            format!("`{}` is declared `.{ty}`, `{}` takes a predicate here", self.text(op), self.name());
        self.at(op, message)
    }

    /// `d|p`, or `d` alone.
    pub(super) fn pair<'o>(
        &self,
        op: &'o resolved::Operand,
    ) -> (&'o resolved::Operand, Option<&'o resolved::Operand>) {
        match &op.kind {
            OperandKind::Pair(a, b) => (a, Some(b)),
            _ => (op, None),
        }
    }

    /// An integer that must be a constant.
    pub(super) fn constant(&self, op: &resolved::Operand, least: i64, most: i64) -> Result<u32> {
        match op.kind {
            OperandKind::Int(value) if (least..=most).contains(&(value as i64)) => Ok(value as u32),
            OperandKind::Int(value) => {
                let message = format!("`{}` is not between {least} and {most}", value as i64);
                Err(self.at(op, message))
            }
            _ => Err(self.at(op, format!("`{}` takes an integer constant here", self.name()))),
        }
    }

    fn integer(&mut self, op: &resolved::Operand, value: u64, ty: Ty) -> Result<Operand> {
        if matches!(ty, Ty::F32 | Ty::F64) {
            let message = format!("`{}` takes a floating-point literal, not an integer", self.name());
            return Err(self.at(op, message));
        }
        let bits = ty.bits();
        let fits =
            bits == 64 || value >> bits == 0 || (value as i64) >= -(1i64 << (bits - 1)) && (value as i64) < 0;
        if !fits {
            return Err(self.at(op, format!("`{}` does not fit in {bits} bits", self.text(op))));
        }
        Ok(if bits == 64 { self.imm64(value) } else { Operand::Imm(value as u32) })
    }

    /// A 64-bit immediate, in the 32-bit form if the value fits.
    pub(super) fn imm64(&mut self, value: u64) -> Operand {
        if let Ok(low) = u32::try_from(value) {
            return Operand::Imm(low);
        }
        Operand::Imm64(ImmId(share(&mut self.out.imms, value)))
    }

    /// A floating-point literal. `exact` has the bits of an f32 literal, which preserve a NaN's payload.
    fn float(&mut self, op: &resolved::Operand, value: f64, exact: Option<u32>, ty: Ty) -> Result<Operand> {
        match ty {
            Ty::F32 => Ok(Operand::Imm(exact.unwrap_or((value as f32).to_bits()))),
            Ty::B32 if exact.is_some() => Ok(Operand::Imm(exact.unwrap_or_default())),
            Ty::F64 | Ty::B64 if exact.is_none() => Ok(self.imm64(value.to_bits())),
            // `ptxas` takes a 32-bit literal as the low bits of a double. That is never intended, so it is refused
            // here.
            Ty::B32 | Ty::F64 | Ty::B64 => {
                let (have, want) = if exact.is_some() { (32, 64) } else { (64, 32) };
                let message = format!("`{}` takes {want} bits, this literal has {have}", self.name());
                Err(self.at(op, message).help("`0f` begins a literal of 32 bits, `0d` one of 64"))
            }
            Ty::F16 => Ok(Operand::Imm(u32::from(half::f16::from_f64(value).to_bits()))),
            Ty::BF16 => Ok(Operand::Imm(u32::from(half::bf16::from_f64(value).to_bits()))),
            _ => {
                let message = format!("`{}` takes an integer, not a floating-point literal", self.name());
                Err(self.at(op, message))
            }
        }
    }

    /// The address of a variable, parameter or function as a value.
    pub(super) fn address_value(&mut self, op: &resolved::Operand, ty: Ty) -> Result<Operand> {
        let bits = ty.bits();
        if ty.is_float() || bits < 32 {
            let message = format!("`{}` takes no address", self.name());
            return Err(self.at(op, message));
        }
        match op.kind {
            OperandKind::Var(id, offset) => {
                let variable = &self.cx.module.variables[id.index()];
                if bits == 32 && self.cx.module.address_bits == 64 && variable.space == isa::Space::Global {
                    let message = format!(
                        "the address of `{}` is 64 bits wide, `{}` takes 32",
                        variable.name,
                        self.name()
                    );
                    return Err(self.at(op, message));
                }
                Ok(self.symbol(Symbol::Variable(id), offset, false))
            }
            OperandKind::Func(id) => {
                self.callable(op, id)?;
                Ok(self.symbol(Symbol::Function(id), 0, true))
            }
            OperandKind::Param(index, offset) => {
                let at = self.displaced(op, self.layout.params[index as usize], offset)?;
                Ok(Operand::Imm(at as u32))
            }
            OperandKind::Frame(id, offset) if self.is_variadic(id) => {
                self.displaced(op, 0, offset)?;
                Ok(self.variadic_address(id, offset, bits))
            }
            OperandKind::Frame(id, offset) => {
                let at = self.displaced(op, self.frame[id.0 as usize], offset)?;
                Ok(self.frame_address(at, bits))
            }
            _ => Err(self.at(op, format!("`{}` takes an address here", self.name()))),
        }
    }

    /// `start + offset` in the frame or the parameter buffer, checked for overflow.
    pub(super) fn displaced(&self, op: &resolved::Operand, start: u32, offset: i64) -> Result<i64> {
        let at = i64::from(start).checked_add(offset);
        at.filter(|at| i32::try_from(*at).is_ok())
            .ok_or_else(|| self.at(op, format!("the offset {offset} leaves the address space")))
    }

    pub(super) fn frame_address(&mut self, offset: i64, bits: u32) -> Operand {
        if offset == 0 {
            return Operand::Frame;
        }
        let ty = address_type(bits);
        let offset = if bits == 64 { self.imm64(offset as u64) } else { Operand::Imm(offset as u32) };
        let width = if bits == 64 { Width::Two } else { Width::One };
        self.value(Op::IAdd(ty, isa::Clamp::None), width, &[Operand::Frame, offset])
    }

    pub(super) fn symbol(&mut self, symbol: Symbol, offset: i64, generic: bool) -> Operand {
        let at = share(&mut self.out.symbols, SymbolUse { symbol, offset, generic });
        Operand::Symbol(SymbolUseId(at))
    }
}

/// The index of a value in a list. The value is appended unless it is among the latest entries.
fn share<T: PartialEq>(list: &mut Vec<T>, value: T) -> u32 {
    const LATEST: usize = 64;
    let start = list.len().saturating_sub(LATEST);
    let at = list[start..].iter().position(|v| *v == value).map_or(list.len(), |i| start + i);
    if at == list.len() {
        list.push(value);
    }
    at as u32
}

/// Whether a register declared with one type cannot hold another: integers are not floats, but untyped bits are
/// anything. Half-precision values may be in any register of their size, since older compilers had no type for them.
fn mismatch(declared: Ty, ty: Ty) -> bool {
    let untyped = |t: Ty| {
        matches!(
            t,
            Ty::B8
                | Ty::B16
                | Ty::B32
                | Ty::B64
                | Ty::F16
                | Ty::BF16
                | Ty::F16x2
                | Ty::BF16x2
                | Ty::U16x2
                | Ty::S16x2
        )
    };
    !untyped(declared) && !untyped(ty) && declared.is_float() != ty.is_float()
}
