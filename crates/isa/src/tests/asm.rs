//! A small assembler for hand-written bodies.

use crate::*;

pub(super) fn r(n: u32) -> Operand {
    Operand::Reg(Reg(n))
}

pub(super) fn imm(v: u32) -> Operand {
    Operand::Imm(v)
}

pub(super) fn p(n: u32) -> Operand {
    Operand::Pred(Pred(n))
}

pub(super) fn dr(n: u32) -> Dst {
    Dst::Reg(Reg(n))
}

pub(super) fn dp(n: u32) -> Dst {
    Dst::Pred(Pred(n))
}

pub(super) fn add(d: u32, a: Operand, b: Operand) -> Inst {
    Inst::new(Op::IAdd(Ty::U32, Clamp::None), dr(d), &[a, b])
}

pub(super) fn mov(d: u32, a: Operand) -> Inst {
    Inst::new(Op::Mov(Ty::B32), dr(d), &[a])
}

pub(super) fn setp(cmp: Cmp, d: u32, a: Operand, b: Operand) -> Inst {
    Inst::new(Op::Setp { cmp, combine: Combine::None, ty: Ty::S32, ftz: false }, dp(d), &[a, b])
}

pub(super) fn bra(target: u32) -> Inst {
    Inst::new(Op::Bra, Dst::None, &[imm(target)])
}

pub(super) fn ret() -> Inst {
    Inst::new(Op::Ret, Dst::None, &[])
}

pub(super) fn op(op: Op) -> Inst {
    Inst::new(op, Dst::None, &[])
}

pub(super) fn access(space: Space) -> Access {
    Access::plain(space, Ty::U32)
}

pub(super) fn volatile(space: Space) -> Access {
    Access { order: Order::Volatile, ..access(space) }
}

/// `d = [base + offset]`; base is a wide register.
pub(super) fn ld(access: Access, d: u32, base: Operand, offset: i32) -> Inst {
    Inst::new(Op::Ld { access, wide: false }, dr(d), &[base, imm(offset as u32)])
}

pub(super) fn st(access: Access, base: Operand, offset: i32, value: Operand) -> Inst {
    Inst::new(Op::St(access), Dst::None, &[base, imm(offset as u32), value])
}

pub(super) fn atom(op: AtomOp, d: u32, base: Operand, values: &[Operand]) -> Inst {
    let mut src = vec![base, imm(0)];
    src.extend(values);
    Inst::new(Op::Atom(op, access(Space::Global)), dr(d), &src)
}

pub(super) trait Guarded {
    fn when(self, p: u32) -> Inst;
    fn unless(self, p: u32) -> Inst;
}

impl Guarded for Inst {
    fn when(self, p: u32) -> Inst {
        Inst { guard: Guard::If(Pred(p)), ..self }
    }
    fn unless(self, p: u32) -> Inst {
        Inst { guard: Guard::Unless(Pred(p)), ..self }
    }
}

/// A body whose registers in `wide` take two words.
pub(super) fn body(registers: u32, wide: &[u32], predicates: u32, insts: Vec<Inst>) -> Body {
    let width = |r| if wide.contains(&r) { Width::Two } else { Width::One };
    Body {
        origins: vec![Origin::default(); insts.len()],
        insts,
        registers: (0..registers).map(width).collect(),
        predicates,
        frame_align: 1,
        ..Body::default()
    }
}

/// A function without parameters.
pub(super) fn function(name: &str, is_kernel: bool, body: Option<Body>) -> Function {
    Function {
        name: name.into(),
        is_kernel,
        returns: Vec::new(),
        params: Vec::new(),
        param_bytes: 0,
        bounds: LaunchBounds::default(),
        body,
        refusals: Vec::new(),
        span: Span::default(),
    }
}

pub(super) fn variable(name: &str, space: Space, align: u32, bytes: u64) -> Variable {
    Variable {
        name: name.into(),
        space,
        align,
        bytes,
        init: Vec::new(),
        relocations: Vec::new(),
        opaque: None,
        span: Span::default(),
    }
}

pub(super) fn module(functions: Vec<Function>, variables: Vec<Variable>) -> Module {
    Module { source: Source::default(), dialect: String::new(), address_bits: 64, functions, variables }
}
