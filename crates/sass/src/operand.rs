//! Reads operands: registers, predicates, immediates, memory.

use warploom_isa::diag::Diagnostic;
use warploom_isa::form::float_immediate;
use warploom_isa::print::{FERMI_REGISTERS, PARAM_BASE};
use warploom_isa::{
    Access, Dst, ImmId, Inst, MbarrierOp, Op, Operand, Reg, Space, Span, SymbolUse, SymbolUseId, Ty, VecId,
    Width, spell,
};

use crate::ast::{Spanned, Sum, Term};
use crate::body::{Builder, Result};
use crate::nearest;

enum Register {
    /// `RZ`
    Zero,
    /// `R4`
    At(Reg),
}

impl<'t> Builder<'_, '_, 't> {
    /// The destination register or registers.
    pub(crate) fn dst(&mut self, term: &Spanned<Term<'t>>, op: Op) -> Result<Dst> {
        let width = op.shape().dst;
        let count = elements(op);
        if let Term::List(list) = &term.node {
            if count == 1 {
                return Err(Diagnostic::new(term.span, "the result is one register here, not a list"));
            }
            return self.list(term.span, list, width, count, true).map(Dst::Vec);
        }
        match self.named_register(term, width)? {
            Some(Register::Zero) => Ok(Dst::None),
            Some(Register::At(first)) if count > 1 => {
                self.consecutive(term.span, first, width, count).map(Dst::Vec)
            }
            Some(Register::At(reg)) => Ok(Dst::Reg(reg)),
            None => Err(Diagnostic::new(term.span, "the result goes to a register here")
                .help("R0, R1 …, or RZ to drop it")),
        }
    }

    /// The destination predicate.
    pub(crate) fn dst_pred(&mut self, term: &Spanned<Term<'t>>) -> Result<Dst> {
        match term.node {
            Term::Word(name) => {
                let p = self.predicate(&Spanned { node: name, span: term.span })?;
                Ok(p.map_or(Dst::None, Dst::Pred))
            }
            _ => Err(Diagnostic::new(term.span, "the result goes to a predicate here")
                .help("P0 to P6, or PT to drop it")),
        }
    }

    /// A source predicate; `PT` is the immediate 1.
    pub(crate) fn pred_source(&mut self, term: &Spanned<Term<'t>>) -> Result<Operand> {
        let (name, negated) = match term.node {
            Term::Word("_") => return Ok(Operand::None),
            Term::Word(name) => (name, false),
            Term::Not(name) => (name, true),
            _ => return Err(Diagnostic::new(term.span, "expected a predicate").help("such as P0, !P0 or PT")),
        };
        let p = self.predicate(&Spanned { node: name, span: term.span })?;
        Ok(match (p, negated) {
            (Some(p), false) => Operand::Pred(p),
            (Some(p), true) => Operand::NotPred(p),
            (None, negated) => Operand::Imm(u32::from(!negated)),
        })
    }

    pub(crate) fn special(&self, term: &Spanned<Term<'t>>) -> Result<Op> {
        let Term::Word(name) = term.node else {
            return Err(Diagnostic::new(term.span, "expected a special register").help("such as SR_Tid_X"));
        };
        spell::special_named(name).map(Op::Special).ok_or_else(|| {
            let error = Diagnostic::new(term.span, format!("there is no special register `{name}`"));
            match nearest(name, spell::specials()) {
                Some(near) => error.help(format!("did you mean `{near}`?")),
                None => {
                    error.help("such as SR_Tid_X, SR_CTAid_X, SR_NTid_X, SR_LaneId; docs/sass.md lists all")
                }
            }
        })
    }

    /// A source value.
    pub(crate) fn source(&mut self, term: &Spanned<Term<'t>>, op: Op, width: Width) -> Result<Operand> {
        let count = if matches!(op, Op::St(_)) { elements(op) } else { 1 };
        match &term.node {
            Term::Word("_") => Ok(Operand::None),
            Term::Word(word) if word.eq_ignore_ascii_case("FRAME") => Ok(Operand::Frame),
            Term::Word(_) => match self.named_register(term, width)? {
                Some(Register::Zero) if count > 1 => {
                    let zeros = vec![Operand::Imm(0); count];
                    Ok(Operand::Vec(self.vector(zeros)))
                }
                Some(Register::Zero) => Ok(Operand::Imm(0)),
                Some(Register::At(first)) if count > 1 => {
                    self.consecutive(term.span, first, width, count).map(Operand::Vec)
                }
                Some(Register::At(reg)) => Ok(Operand::Reg(reg)),
                None => Err(self.not_a_value(term)),
            },
            Term::Int(value) => self.integer(*value, term.span, width),
            Term::Float(digits, negative) => self.float(digits, *negative, term.span, op, width),
            Term::Address { name, offset, generic } => {
                let symbol = self.symbol(name, term.span)?;
                self.body.symbols.push(SymbolUse { symbol, offset: *offset, generic: *generic });
                Ok(Operand::Symbol(SymbolUseId(self.body.symbols.len() as u32 - 1)))
            }
            Term::List(list) if count > 1 => {
                self.list(term.span, list, width, count, false).map(Operand::Vec)
            }
            Term::Negative(_) => {
                Err(Diagnostic::new(term.span, "only IADD and FADD take one negative register")
                    .help("negate it before, with INEG or FNEG"))
            }
            Term::Bank(..) => Err(Diagnostic::new(term.span, "only MOV and LDC read constant memory")
                .help("load it into a register before, such as `MOV R4, c[0x0][0x20]`")),
            Term::Memory(_) => Err(Diagnostic::new(term.span, "expected a register or a number, not memory")),
            Term::Not(_) | Term::List(_) | Term::Copy { .. } => Err(self.not_a_value(term)),
        }
    }

    fn not_a_value(&self, term: &Spanned<Term<'_>>) -> Diagnostic {
        let error = Diagnostic::new(term.span, "expected a register or a number");
        match term.node {
            Term::Word(name) if self.names.symbol(name).is_some() => {
                error.help(format!("`&{name}` is the address of `{name}`"))
            }
            _ => error.help("such as R4, RZ, 0x10, -0x4, 1.5 or &name"),
        }
    }

    /// A register, if the term is one. A wide value needs an even one.
    fn named_register(&mut self, term: &Spanned<Term<'_>>, width: Width) -> Result<Option<Register>> {
        let Term::Word(name) = term.node else { return Ok(None) };
        let upper = name.to_ascii_uppercase();
        if upper == "RZ" {
            return Ok(Some(Register::Zero));
        }
        let digits =
            upper.strip_prefix('R').filter(|d| !d.is_empty() && d.bytes().all(|b| b.is_ascii_digit()));
        let Some(digits) = digits else { return Ok(None) };
        let number = digits.parse::<u32>().unwrap_or(u32::MAX);
        self.register(number, term.span, width).map(|r| Some(Register::At(r)))
    }

    fn register(&mut self, number: u32, span: Span, width: Width) -> Result<Reg> {
        let limit = self.draft.register_limit;
        let end = number.saturating_add(width.words());
        if number >= limit || end > limit {
            let message =
                format!("there is no R{}: the last register is R{}", end.saturating_sub(1), limit - 1);
            return Err(Diagnostic::new(span, message).help(match number {
                63 if limit == FERMI_REGISTERS => "RZ, which is always zero, has no number".to_string(),
                _ => format!(
                    "a thread of Fermi has {FERMI_REGISTERS}; `.registers {end}` in the kernel allows more"
                ),
            }));
        }
        if width == Width::Two && number % 2 == 1 {
            let message =
                format!("R{number} cannot hold a 64-bit value: that takes an even register and the next");
            return Err(Diagnostic::new(span, message).help(format!("R{} or R{}", number - 1, number + 1)));
        }
        self.registers = self.registers.max(end);
        Ok(Reg(number))
    }

    /// Consecutive registers, as in Fermi's vector accesses.
    fn consecutive(&mut self, span: Span, first: Reg, width: Width, count: usize) -> Result<VecId> {
        let regs = (0..count as u32).map(|i| {
            let reg = self.register(first.0 + i * width.words(), span, width)?;
            Ok(Operand::Reg(reg))
        });
        let list = regs.collect::<Result<Vec<_>>>()?;
        Ok(self.vector(list))
    }

    fn vector(&mut self, list: Vec<Operand>) -> VecId {
        self.body.vectors.push(list);
        VecId(self.body.vectors.len() as u32 - 1)
    }

    fn list(
        &mut self,
        span: Span,
        terms: &[Spanned<Term<'t>>],
        width: Width,
        count: usize,
        result: bool,
    ) -> Result<VecId> {
        if terms.len() != count {
            let message = format!("this moves {count} elements, the list has {}", terms.len());
            return Err(Diagnostic::new(span, message));
        }
        let mut list = Vec::with_capacity(count);
        for term in terms {
            list.push(match self.named_register(term, width)? {
                Some(Register::At(reg)) => Operand::Reg(reg),
                Some(Register::Zero) if result => Operand::None,
                Some(Register::Zero) => Operand::Imm(0),
                None if result => return Err(Diagnostic::new(term.span, "expected a register")),
                None => self.source(term, Op::Mov(Ty::B32), width)?,
            });
        }
        Ok(self.vector(list))
    }

    fn integer(&mut self, value: i128, span: Span, width: Width) -> Result<Operand> {
        let (least, most, bits) = match width {
            Width::One => (i128::from(i32::MIN), i128::from(u32::MAX), 32),
            Width::Two => (i128::from(i64::MIN), i128::from(u64::MAX), 64),
        };
        if !(least..=most).contains(&value) {
            let sign = if value < 0 { "-" } else { "" };
            let message = format!("{sign}{:#x} does not fit in {bits} bits", value.unsigned_abs());
            return Err(Diagnostic::new(span, message));
        }
        Ok(match width {
            Width::One => Operand::Imm(value as u32),
            Width::Two => self.immediate(value as u64),
        })
    }

    fn immediate(&mut self, value: u64) -> Operand {
        match u32::try_from(value) {
            Ok(small) => Operand::Imm(small),
            Err(_) => {
                self.body.imms.push(value);
                Operand::Imm64(ImmId(self.body.imms.len() as u32 - 1))
            }
        }
    }

    fn float(&mut self, digits: &str, negative: bool, span: Span, op: Op, width: Width) -> Result<Operand> {
        let wide = float_immediate(op).map_or(width == Width::Two, |ty| ty == Ty::F64);
        let bits = if wide {
            digits
                .parse::<f64>()
                .ok()
                .filter(|v| v.is_finite())
                .map(|v| if negative { -v } else { v }.to_bits())
        } else {
            let single = digits.parse::<f32>().ok().filter(|v| v.is_finite());
            single.map(|v| u64::from(if negative { -v } else { v }.to_bits()))
        };
        let Some(bits) = bits else {
            return Err(
                Diagnostic::new(span, "this number is too large").help("bits are written as 0x7f800000")
            );
        };
        Ok(self.immediate(bits))
    }

    /// `[R4+0x8]` or `c[0x0][0x20]`.
    pub(crate) fn memory(&mut self, term: &Spanned<Term<'t>>, inst: &mut Inst) -> Result {
        let constant =
            matches!(inst.op, Op::Ld { access, .. } if matches!(access.space, Space::Const | Space::Param));
        match &term.node {
            Term::Memory(sum) if !constant => self.address(sum, 0, inst),
            Term::Bank(bank, sum) if constant => self.bank(term.span, *bank, sum, inst),
            _ if constant => Err(Diagnostic::new(term.span, "constant memory is written with its bank")
                .help("`c[0x0][0x20]` is the first parameter, `c[0x2][&name]` a constant variable")),
            Term::Bank(..) => Err(Diagnostic::new(term.span, "only MOV and LDC read constant memory")),
            _ => Err(Diagnostic::new(term.span, "expected an address in brackets").help("such as [R4+0x8]")),
        }
    }

    fn bank(&mut self, span: Span, bank: u64, sum: &Sum<'t>, inst: &mut Inst) -> Result {
        let Op::Ld { access, wide } = inst.op else { return Ok(()) };
        let space = match bank {
            0 => Space::Param,
            2 => Space::Const,
            _ => {
                return Err(Diagnostic::new(span, format!("constant bank {bank:#x} is not modelled"))
                    .help("the parameters are in c[0x0], from 0x20 on; constant variables in c[0x2]"));
            }
        };
        inst.op = Op::Ld { access: Access { space, ..access }, wide };
        if space == Space::Const {
            return self.address(sum, 0, inst);
        }
        let function = &self.draft.function;
        if !function.is_kernel {
            return Err(Diagnostic::new(span, "a function's parameters are in its frame")
                .help("read them with `LDL R4, [FRAME+0x0]`"));
        }
        let at = match sum.base.node {
            Term::Int(at) => at + i128::from(sum.offset) - i128::from(PARAM_BASE),
            Term::Word(name) => match function.params.iter().find(|p| p.name == name) {
                Some(param) => i128::from(param.offset) + i128::from(sum.offset),
                None if is_register(name) => return self.address(sum, i64::from(PARAM_BASE), inst),
                None => {
                    let error = Diagnostic::new(sum.base.span, format!("there is no parameter `{name}`"));
                    return Err(match nearest(name, function.params.iter().map(|p| p.name.as_str())) {
                        Some(near) => error.help(format!("did you mean `{near}`?")),
                        None => error.help(format!("declare it with `.param {name} u32`")),
                    });
                }
            },
            _ => return self.address(sum, i64::from(PARAM_BASE), inst),
        };
        if at < 0 || at + i128::from(access.bytes()) > i128::from(function.param_bytes) {
            let (first, end) = (PARAM_BASE, PARAM_BASE + function.param_bytes);
            return Err(Diagnostic::new(span, "this is outside of the parameters").help(
                match function.params.len() {
                    0 => format!("`{}` has none: declare them with `.param NAME TYPE`", function.name),
                    _ => format!(
                        "those of `{}` are c[0x0][{first:#x}] to before c[0x0][{end:#x}]",
                        function.name
                    ),
                },
            ));
        }
        inst.src[0] = Operand::Imm(at as u32);
        inst.src[1] = Operand::Imm(0);
        self.set_address_width(inst);
        Ok(())
    }

    /// Reads base and offset. `bias` is the listing's address of the first byte of the space.
    fn address(&mut self, sum: &Sum<'t>, bias: i64, inst: &mut Inst) -> Result {
        let span = sum.base.span;
        let mut offset = sum.offset.wrapping_sub(bias);
        let base = match &sum.base.node {
            Term::Address { name, generic, .. } => {
                let symbol = self.symbol(name, span)?;
                let inner = if i32::try_from(offset).is_ok() { 0 } else { std::mem::take(&mut offset) };
                self.body.symbols.push(SymbolUse { symbol, offset: inner, generic: *generic });
                Operand::Symbol(SymbolUseId(self.body.symbols.len() as u32 - 1))
            }
            Term::Word(_) => {
                let width = inst.op.shape().src[0];
                self.source(&sum.base, Op::Mov(Ty::B64), width)?
            }
            Term::Int(value) => self.integer(*value, span, Width::Two)?,
            _ => {
                return Err(
                    Diagnostic::new(span, "expected a register, a number or a name").help("such as [R4+0x8]")
                );
            }
        };
        let Ok(offset) = i32::try_from(offset) else {
            return Err(Diagnostic::new(span, format!("the offset {offset:#x} does not fit in 32 bits")));
        };
        inst.src[0] = base;
        inst.src[1] = Operand::Imm(offset as u32);
        self.set_address_width(inst);
        Ok(())
    }

    /// An address that is not in a register has the module's address width.
    fn set_address_width(&self, inst: &mut Inst) {
        if matches!(inst.src[0], Operand::Reg(_)) {
            return;
        }
        let wide_address = self.address_bits == 64;
        let set = |access: Access| Access { wide_address, ..access };
        inst.op = match inst.op {
            Op::Ld { access, wide } => Op::Ld { access: set(access), wide },
            Op::St(access) => Op::St(set(access)),
            Op::LdLock(access) => Op::LdLock(set(access)),
            Op::StUnlock(access) => Op::StUnlock(set(access)),
            Op::Atom(op, access) => Op::Atom(op, set(access)),
            Op::Mbarrier(op, _) if op != MbarrierOp::PendingCount => Op::Mbarrier(op, wide_address),
            op => op,
        };
    }
}

/// Number of elements that a load or store moves.
fn elements(op: Op) -> usize {
    match op {
        Op::Ld { access, .. } | Op::St(access) => usize::from(access.count),
        _ => 1,
    }
}

fn is_register(name: &str) -> bool {
    let upper = name.to_ascii_uppercase();
    upper == "RZ"
        || upper.strip_prefix('R').is_some_and(|d| !d.is_empty() && d.bytes().all(|b| b.is_ascii_digit()))
}
