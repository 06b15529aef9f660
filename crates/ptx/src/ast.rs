//! The text as a tree. Names are still text; constant expressions, which contain none, are already values.

use warploom_isa::Span;

/// A name and its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Name<'t> {
    /// As written.
    pub text: &'t str,
    /// Where.
    pub span: Span,
}

/// A whole text.
#[derive(Debug, Default)]
pub struct Module<'t> {
    /// `.version`.
    pub version: (u32, u32),
    /// `.target`, every word of it.
    pub target: Vec<Name<'t>>,
    /// `.address_size`, if it is there.
    pub address_bits: Option<u8>,
    /// `.file` directives, wherever they stand: number and name.
    pub files: Vec<(u32, &'t str)>,
    /// Variables, functions and aliases in text order.
    pub items: Vec<Item<'t>>,
}

/// A declaration of module scope.
#[derive(Debug)]
pub enum Item<'t> {
    /// A variable.
    Variable(Variable<'t>),
    /// A kernel or device function.
    Function(Function<'t>),
    /// `.alias name, target;`
    Alias(Name<'t>, Name<'t>),
}

/// How a symbol is seen by other modules, which matters only where two declarations of it meet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Linkage {
    /// Nothing written.
    #[default]
    Internal,
    /// `.extern`
    Extern,
    /// `.visible`
    Visible,
    /// `.weak`
    Weak,
    /// `.common`
    Common,
}

/// The state space of a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Space {
    Reg,
    Global,
    Const,
    Shared,
    Local,
    Param,
}

/// An element type; vectors are counted separately.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    Pred,
    Scalar(warploom_isa::Ty),
    B128,
}

/// A variable, a `.param` of a body, or a formal parameter.
#[derive(Debug)]
pub struct Variable<'t> {
    /// `.extern` and its like.
    pub linkage: Linkage,
    /// Where it lives.
    pub space: Space,
    /// `.align`, a power of two.
    pub align: Option<u32>,
    /// Element type.
    pub ty: Type,
    /// Elements of a vector type: 1, 2, 4 or 8.
    pub lanes: u8,
    /// Its name; empty for `_` and where a declaration leaves it out.
    pub name: Name<'t>,
    /// Array dimensions, outermost first; `None` is `[]`.
    pub dims: Vec<Option<u64>>,
    /// `.ptr`, and the space it names.
    pub pointer: Option<warploom_isa::Space>,
    /// Initial value.
    pub init: Option<Init<'t>>,
}

/// An initial value.
#[derive(Debug)]
pub struct Init<'t> {
    /// First byte in the text.
    pub at: u32,
    /// What.
    pub kind: InitKind<'t>,
}

/// What an initial value is. Kept small: tables of bytes make up most of some texts.
#[derive(Debug)]
pub enum InitKind<'t> {
    /// An integer.
    Int(u64),
    /// `0f3F800000`
    F32(u32),
    /// `0d3FF0000000000000`, `1.0`
    F64(u64),
    /// The address of a symbol.
    Address(Box<InitAddress<'t>>),
    /// `{…}`
    List(Box<[Init<'t>]>),
}

/// `0xFF00(generic(name)+4)`
#[derive(Debug)]
pub struct InitAddress<'t> {
    /// Whose.
    pub name: Name<'t>,
    /// Bytes to add.
    pub offset: i64,
    /// `generic(…)`
    pub generic: bool,
    /// The byte that a mask selects, from 0.
    pub byte: Option<u8>,
}

/// A kernel or device function.
#[derive(Debug)]
pub struct Function<'t> {
    /// `.extern` and its like.
    pub linkage: Linkage,
    /// `.entry`?
    pub is_kernel: bool,
    /// Its name.
    pub name: Name<'t>,
    /// Results.
    pub returns: Vec<Variable<'t>>,
    /// Parameters.
    pub params: Vec<Variable<'t>>,
    /// `.maxntid` and its like.
    pub bounds: warploom_isa::LaunchBounds,
    /// Absent for a declaration.
    pub body: Option<Vec<Statement<'t>>>,
}

/// A statement of a body.
#[derive(Debug)]
pub enum Statement<'t> {
    /// `.reg .b32 a, %r<4>;`
    Registers(Type, Vec<Registers<'t>>),
    /// A variable.
    Variable(Box<Variable<'t>>),
    /// `name:`
    Label(Name<'t>),
    /// `name: .branchtargets a, b;`
    BranchTargets(Name<'t>, Vec<Name<'t>>),
    /// `name: .calltargets f, g;`
    CallTargets(Name<'t>, Vec<Name<'t>>),
    /// `name: .callprototype (…) _ (…);`
    Prototype(Box<Prototype<'t>>),
    /// `.loc file line column`
    Loc {
        /// The number that `.file` gave.
        file: u32,
        /// From 1; 0 is "no line".
        line: u32,
    },
    /// `.pragma "warploom.lock …";`
    LockNote(warploom_isa::LockNote, Span),
    /// `.pragma "warploom.sib";`
    SpinNote(Span),
    /// `{ … }`
    Scope(Vec<Statement<'t>>),
    /// An instruction.
    Instruction(Instruction<'t>),
}

/// The signature for an indirect call.
#[derive(Debug)]
pub struct Prototype<'t> {
    /// The label.
    pub name: Name<'t>,
    /// Results.
    pub returns: Vec<Variable<'t>>,
    /// Parameters.
    pub params: Vec<Variable<'t>>,
}

/// One name of a `.reg` directive: `x`, or `%r<count>` for `%r0` … `%r(count-1)`.
#[derive(Clone, Copy, Debug)]
pub struct Registers<'t> {
    /// Name or prefix.
    pub name: Name<'t>,
    /// How many.
    pub count: Option<u32>,
}

/// `@!p opcode.modifiers operands;`
#[derive(Debug)]
pub struct Instruction<'t> {
    /// Guard and whether it is negated.
    pub guard: Option<(Name<'t>, bool)>,
    /// `ld`, `global`, `f32`: without dots.
    pub opcode: Vec<Name<'t>>,
    /// Operands.
    pub operands: Vec<Operand<'t>>,
    /// Opcode and operands.
    pub span: Span,
}

/// An operand and its place.
#[derive(Debug)]
pub struct Operand<'t> {
    /// What.
    pub kind: OperandKind<'t>,
    /// Where.
    pub span: Span,
}

/// What an operand is.
#[derive(Debug)]
pub enum OperandKind<'t> {
    /// A register, variable, parameter, function, label, …, plus bytes.
    Name(&'t str, i64),
    /// `%tid.x`: name and component.
    Component(&'t str, &'t str),
    /// `!p`
    Not(Name<'t>),
    /// A constant.
    Constant(Constant),
    /// `[name+4]`, `[16]`.
    Address(Option<Name<'t>>, i64),
    /// `[t, {x, y}]` and the like, of textures and tensor maps.
    Bracket(Vec<Operand<'t>>),
    /// `{a, b}`
    Vector(Vec<Operand<'t>>),
    /// `p|q`
    Pair(Box<Operand<'t>>, Box<Operand<'t>>),
    /// `(a, b)` of a call.
    List(Vec<Operand<'t>>),
    /// `_`
    Sink,
}

/// The value of a constant expression.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Constant {
    /// 64 bits, `.s64` or `.u64`.
    Int {
        /// The value, two's complement if signed.
        bits: u64,
        /// `.s64`
        signed: bool,
    },
    /// `0f3F800000`, which takes part in no expression.
    F32(u32),
    /// `0d3FF0000000000000`, or computed from decimal literals.
    F64(f64),
}
