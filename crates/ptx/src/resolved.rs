//! The module after name resolution, the input of lowering. There are no scopes; every name is an index, registers have
//! their declared type, variables have sizes and initial bytes, and a body is a flat list of instructions. Start at
//! [`Module`].

use warploom_isa as isa;
use warploom_isa::{FuncId, Line, LockNote, Span, VarId};

/// A PTX module whose names are resolved.
#[derive(Debug)]
pub struct Module {
    pub source: isa::Source,
    pub version: (u32, u32),
    /// The first word of `.target`.
    pub target: String,
    /// 32 or 64.
    pub address_bits: u8,
    /// In order of first appearance. A declaration and its definition are one function.
    pub functions: Vec<Function>,
    /// Global, constant and shared variables of module and function scope.
    pub variables: Vec<isa::Variable>,
}

/// A kernel or device function.
#[derive(Debug)]
pub struct Function {
    pub name: String,
    /// `.entry` instead of `.func`.
    pub is_kernel: bool,
    pub returns: Vec<Formal>,
    pub params: Vec<Formal>,
    pub bounds: isa::LaunchBounds,
    /// The function's name in the text.
    pub span: Span,
    /// `None` for a declaration.
    pub body: Option<Body>,
    /// What the body uses and the module does not have. Instructions that use it are left out.
    pub refusals: Vec<isa::diag::Diagnostic>,
}

/// A formal parameter or result.
#[derive(Debug, Clone)]
pub struct Formal {
    /// Empty if a declaration omits it.
    pub name: String,
    /// The element type.
    pub ty: RegTy,
    /// Total size, including array dimensions.
    pub bytes: u32,
    /// `.align`, or else the natural alignment of the type.
    pub align: u32,
    /// `name[]`: an array of any size. What is passed is its address in the caller's frame, so `bytes` is 4.
    pub variadic: bool,
    /// The register of a `.reg` parameter.
    pub reg: Option<RegId>,
    /// The frame variable of a `.param` parameter, in device functions with a body.
    pub frame: Option<FrameId>,
    /// The space that `.ptr` names.
    pub pointer: Option<isa::Space>,
    pub span: Span,
}

/// The declared type of a register or parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegTy {
    Pred,
    Scalar(isa::Ty),
    B128,
}

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub struct $name(pub u32);
    )*};
}
ids! {
    /// Index into [`Body::registers`].
    RegId
    /// Index into [`Body::frame`].
    FrameId
    /// Index into [`Body::labels`].
    LabelId
    /// Index into [`Body::tables`].
    TableId
    /// Index into [`Body::prototypes`].
    ProtoId
}

/// A function's code.
#[derive(Debug, Default)]
pub struct Body {
    /// Registers of all scopes. The same name in two scopes is two registers.
    pub registers: Vec<Register>,
    /// Local variables, the formal parameters of a device function, and the parameters of calls.
    pub frame: Vec<FrameVar>,
    /// Labels of instructions, in no particular order.
    pub labels: Vec<Label>,
    /// The `.branchtargets` lists.
    pub tables: Vec<Vec<LabelId>>,
    /// The `.callprototype` and `.calltargets` signatures; of the latter, that of the first target.
    pub prototypes: Vec<Prototype>,
    /// In text order.
    pub insts: Vec<Instruction>,
}

#[derive(Debug, Clone)]
pub struct Register {
    pub name: String,
    pub ty: RegTy,
}

/// A part of the function's frame in local memory.
#[derive(Debug, Clone)]
pub struct FrameVar {
    pub name: String,
    pub bytes: u32,
    pub align: u32,
    pub kind: FrameKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameKind {
    /// A `.local` variable.
    Local,
    /// A `.param` variable inside a body, which a call passes.
    CallParam,
    /// A formal parameter of this device function, by index.
    Param(u32),
    /// A formal result of this device function, by index.
    Return(u32),
    /// The last formal parameter of a device function, `name[]`, by index. Here is the address of the array.
    Variadic(u32),
}

/// A label in a body.
#[derive(Debug, Clone)]
pub struct Label {
    pub name: String,
    /// Index of the next instruction; the number of instructions if there is none.
    pub target: u32,
}

/// The signature of an indirect call.
#[derive(Debug, Clone)]
pub struct Prototype {
    /// (bytes, align) of each result.
    pub returns: Vec<(u32, u32)>,
    /// (bytes, align) of each parameter.
    pub params: Vec<(u32, u32)>,
    /// The last parameter is an array of any size, `_[]`.
    pub variadic: bool,
}

/// `@!p opcode.modifiers operands;`
#[derive(Debug, Clone)]
pub struct Instruction {
    /// The guard, and whether it is negated.
    pub guard: Option<(RegId, bool)>,
    /// `ld.global.v2.f32` as `["ld", "global", "v2", "f32"]`. `shared::cta` is one word.
    pub opcode: Vec<Word>,
    pub operands: Vec<Operand>,
    /// The whole instruction without guard and semicolon.
    pub span: Span,
    /// The `.loc` in force.
    pub line: Option<Line>,
    /// From `.pragma "warploom.lock …"` in front of the instruction.
    pub lock_note: Option<LockNote>,
    /// The span of `.pragma "warploom.sib"` in front of the instruction.
    pub spin_note: Option<Span>,
}

/// A word of an opcode.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    /// Without the dot.
    pub text: String,
    pub span: Span,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Operand {
    pub kind: OperandKind,
    pub span: Span,
}

#[derive(Debug, Clone, PartialEq)]
pub enum OperandKind {
    Reg(RegId),
    /// `!p`
    Not(RegId),
    /// `%r1+4`: the value of a register plus a constant.
    Sum(RegId, i64),
    /// `%r1.b0`, `%r1.h10`: parts of a register, as video instructions select them.
    Part(RegId, String),
    /// `-a`
    Minus(Box<Operand>),
    /// The 64-bit value of an integer constant expression, in two's complement if signed.
    Int(u64),
    /// `0f3F800000`
    F32(u32),
    /// `0d3FF0000000000000` or a decimal float literal.
    F64(u64),
    /// `%tid.x`: the name of a special register with its component, if it has one.
    Special(String),
    /// The address of a module variable, plus bytes.
    Var(VarId, i64),
    /// The address of a frame variable, plus bytes.
    Frame(FrameId, i64),
    /// The address of a kernel parameter, by index, plus bytes.
    Param(u32, i64),
    Func(FuncId),
    Label(LabelId),
    /// A `.branchtargets` list.
    Table(TableId),
    /// A `.callprototype` or `.calltargets` name.
    Proto(ProtoId),
    /// `[base + offset]`
    Address(Base, i64),
    /// `{a, b, …}`
    Vector(Vec<Operand>),
    /// `p|q`
    Pair(Box<Operand>, Box<Operand>),
    /// `(a, b, …)`: a list of results or arguments of a call. Empty lists are kept.
    List(Vec<Operand>),
    /// `_`
    Sink,
}

/// The base of an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Base {
    /// `[%r1+4]`
    Reg(RegId),
    /// `[x+4]`
    Var(VarId),
    /// `[local+4]`, `[param0+4]`
    Frame(FrameId),
    /// `[kernel_param+4]`
    Param(u32),
    /// `[16]`
    Absolute,
}
