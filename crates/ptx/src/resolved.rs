//! The module after name resolution: scopes are gone, every name is an index, registers know their declared type,
//! variables have sizes and initial bytes, and a body is a flat list of instructions. Lowering reads only this.

use warploom_isa as isa;
use warploom_isa::{FuncId, Line, LockNote, Span, VarId};

/// A resolved text.
#[derive(Debug)]
pub struct Module {
    /// The text.
    pub source: isa::Source,
    /// `.version`.
    pub version: (u32, u32),
    /// `.target`, the first word.
    pub target: String,
    /// 32 or 64.
    pub address_bits: u8,
    /// In order of first appearance; a declaration and its definition are one.
    pub functions: Vec<Function>,
    /// Global, constant and shared variables of module and function scope.
    pub variables: Vec<isa::Variable>,
}

/// A function.
#[derive(Debug)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// `.entry`?
    pub is_kernel: bool,
    /// Results.
    pub returns: Vec<Formal>,
    /// Parameters.
    pub params: Vec<Formal>,
    /// `.maxntid` and its like.
    pub bounds: isa::LaunchBounds,
    /// The name in the text.
    pub span: Span,
    /// Absent for a declaration.
    pub body: Option<Body>,
}

/// A formal parameter or result.
#[derive(Debug, Clone)]
pub struct Formal {
    /// Its name (a declaration may leave it out: empty then).
    pub name: String,
    /// What it is; `bytes`, `align` from its type and array dimensions.
    pub ty: RegTy,
    /// Bytes in all.
    pub bytes: u32,
    /// Alignment: `.align`, else the type's size.
    pub align: u32,
    /// For `.reg` parameters, the register that receives it.
    pub reg: Option<RegId>,
    /// For `.param` parameters with a body: the frame variable (device functions).
    pub frame: Option<FrameId>,
    /// `.ptr` and its space.
    pub pointer: Option<isa::Space>,
    /// Where.
    pub span: Span,
}

/// Declared type of a register or parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegTy {
    /// `.pred`
    Pred,
    /// Any scalar type.
    Scalar(isa::Ty),
    /// `.b128`
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
    /// Registers of all scopes; the same name in two scopes is two registers.
    pub registers: Vec<Register>,
    /// Local variables, formal parameters of a device function, and parameters for calls.
    pub frame: Vec<FrameVar>,
    /// Labels of instructions.
    pub labels: Vec<Label>,
    /// `.branchtargets`.
    pub tables: Vec<Vec<LabelId>>,
    /// `.callprototype` and `.calltargets` (for the latter, the first target's own signature).
    pub prototypes: Vec<Prototype>,
    /// Instructions in text order.
    pub insts: Vec<Instruction>,
}

/// A register.
#[derive(Debug, Clone)]
pub struct Register {
    /// Its name.
    pub name: String,
    /// Its type.
    pub ty: RegTy,
}

/// A piece of the function's frame in local memory.
#[derive(Debug, Clone)]
pub struct FrameVar {
    /// Its name.
    pub name: String,
    /// Bytes.
    pub bytes: u32,
    /// Alignment.
    pub align: u32,
    /// What it is for.
    pub kind: FrameKind,
}

/// Why a frame variable exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameKind {
    /// `.local` variable.
    Local,
    /// `.param` variable inside a body, for calls.
    CallParam,
    /// Formal parameter (index) of this device function.
    Param(u32),
    /// Formal result (index) of this device function.
    Return(u32),
}

/// A label; `target` is the index of the next instruction (may equal the number of instructions).
#[derive(Debug, Clone)]
pub struct Label {
    /// Its name.
    pub name: String,
    /// Next instruction.
    pub target: u32,
    /// Where.
    pub span: Span,
}

/// The signature of an indirect call.
#[derive(Debug, Clone)]
pub struct Prototype {
    /// Results: (bytes, align).
    pub returns: Vec<(u32, u32)>,
    /// Parameters: (bytes, align).
    pub params: Vec<(u32, u32)>,
}

/// `@!p opcode.modifiers operands;`
#[derive(Debug, Clone)]
pub struct Instruction {
    /// Guard register and whether it is negated.
    pub guard: Option<(RegId, bool)>,
    /// `ld.global.v2.f32` as `["ld", "global", "v2", "f32"]`. (`::` stays inside a part: `shared::cta`, `L1::no_allocate`.)
    pub opcode: Vec<Word>,
    /// Operands, comma-separated.
    pub operands: Vec<Operand>,
    /// The whole instruction without guard and semicolon.
    pub span: Span,
    /// `.loc` in force.
    pub line: Option<Line>,
    /// `.pragma "warploom.lock …"` in front of it.
    pub lock_note: Option<LockNote>,
    /// Where `.pragma "warploom.sib"` stands in front of it.
    pub spin_note: Option<Span>,
}

/// A piece of an opcode.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    /// Text without the dot.
    pub text: String,
    /// Where.
    pub span: Span,
}

/// An operand and its place.
#[derive(Debug, Clone, PartialEq)]
pub struct Operand {
    /// What.
    pub kind: OperandKind,
    /// Where.
    pub span: Span,
}

/// What an operand is.
#[derive(Debug, Clone, PartialEq)]
pub enum OperandKind {
    /// A register.
    Reg(RegId),
    /// `!p`
    Not(RegId),
    /// An integer constant expression, evaluated to 64 bits (signed results in two's complement).
    Int(u64),
    /// `0f3F800000`
    F32(u32),
    /// `0d3FF0000000000000` or a decimal float literal.
    F64(u64),
    /// `%tid.x`, without resolution of which (the name with its component).
    Special(String),
    /// The address of a variable of the module (plus bytes).
    Var(VarId, i64),
    /// The address of a frame variable (plus bytes).
    Frame(FrameId, i64),
    /// The address of a kernel parameter (index, plus bytes).
    Param(u32, i64),
    /// A function.
    Func(FuncId),
    /// A label.
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
    /// `(a, b, …)`: the lists of a call. Empty lists are kept.
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
