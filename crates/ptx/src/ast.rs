//! The syntax tree, borrowed from the text. Names are not resolved yet. Constant expressions contain no names and are
//! values already.

use warploom_isa::Span;

/// A name with its place in the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Name<'t> {
    pub text: &'t str,
    pub span: Span,
}

/// A PTX module.
#[derive(Debug, Default)]
pub(crate) struct Module<'t> {
    pub version: (u32, u32),
    /// Every word of `.target`.
    pub target: Vec<Name<'t>>,
    /// `.address_size`, if it is stated.
    pub address_bits: Option<u8>,
    /// All `.file` directives: number and name.
    pub files: Vec<(u32, &'t str)>,
    /// In text order.
    pub items: Vec<Item<'t>>,
}

/// A declaration in module scope.
#[derive(Debug)]
pub(crate) enum Item<'t> {
    Variable(Variable<'t>),
    Function(Function<'t>),
    /// `.reg .b32 %r<4>;`, as compilers up to CUDA 3 have it.
    Registers(Type, Vec<Registers<'t>>),
    /// `.alias name, target;`
    Alias(Name<'t>, Name<'t>),
}

/// How other modules see a symbol. It matters only if a text declares the symbol twice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Linkage {
    /// Nothing stated.
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
pub(crate) enum Space {
    Reg,
    Global,
    Const,
    Shared,
    Local,
    Param,
}

/// An element type; vectors are counted separately.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Type {
    Pred,
    Scalar(warploom_isa::Ty),
    B128,
}

/// A variable, a `.param` of a body, or a formal parameter.
#[derive(Debug)]
pub(crate) struct Variable<'t> {
    pub linkage: Linkage,
    pub space: Space,
    /// `.align`, a power of two.
    pub align: Option<u32>,
    pub ty: Type,
    /// Elements of a vector type: 1, 2, 4 or 8.
    pub lanes: u8,
    /// Empty for `_` and for an unnamed parameter.
    pub name: Name<'t>,
    /// Array dimensions, outermost first; `None` is `[]`.
    pub dims: Vec<Option<u64>>,
    /// The space that `.ptr` names.
    pub pointer: Option<warploom_isa::Space>,
    /// `.texref`, `.samplerref` or `.surfref`.
    pub opaque: Option<warploom_isa::Opaque>,
    pub init: Option<Init<'t>>,
}

#[derive(Debug)]
pub(crate) struct Init<'t> {
    /// First byte in the text.
    pub at: u32,
    pub kind: InitKind<'t>,
}

/// An initial value. Kept small: some texts consist mostly of tables of bytes.
#[derive(Debug)]
pub(crate) enum InitKind<'t> {
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
pub(crate) struct InitAddress<'t> {
    pub name: Name<'t>,
    pub offset: i64,
    /// `generic(…)`
    pub generic: bool,
    /// The byte that a mask selects, counted from 0.
    pub byte: Option<u8>,
}

#[derive(Debug)]
pub(crate) struct Function<'t> {
    pub linkage: Linkage,
    /// `.entry` instead of `.func`.
    pub is_kernel: bool,
    pub name: Name<'t>,
    pub returns: Vec<Variable<'t>>,
    pub params: Vec<Variable<'t>>,
    pub bounds: warploom_isa::LaunchBounds,
    /// `None` for a declaration.
    pub body: Option<Vec<Statement<'t>>>,
}

#[derive(Debug)]
pub(crate) enum Statement<'t> {
    /// `.reg .b32 a, %r<4>;`
    Registers(Type, Vec<Registers<'t>>),
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
        /// The number in a `.file` directive.
        file: u32,
        /// Counted from 1; 0 means that no line is known.
        line: u32,
    },
    /// `.pragma "warploom.lock …";`
    LockNote(warploom_isa::LockNote, Span),
    /// `.pragma "warploom.sib";`
    SpinNote(Span),
    /// `{ … }`
    Scope(Vec<Statement<'t>>),
    Instruction(Instruction<'t>),
}

/// The signature for an indirect call.
#[derive(Debug)]
pub(crate) struct Prototype<'t> {
    pub name: Name<'t>,
    pub returns: Vec<Variable<'t>>,
    pub params: Vec<Variable<'t>>,
}

/// One name of a `.reg` directive: `x`, or `%r<count>` for `%r0` to `%r(count-1)`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Registers<'t> {
    /// The name, or the prefix of a family.
    pub name: Name<'t>,
    pub count: Option<u32>,
    /// Elements of each: 1, or 2 or 4 of `.v2` and `.v4`.
    pub lanes: u8,
}

/// `@!p opcode.modifiers operands;`
#[derive(Debug)]
pub(crate) struct Instruction<'t> {
    /// The guard, and whether it is negated.
    pub guard: Option<(Name<'t>, bool)>,
    /// `ld`, `global`, `f32`, without the dots.
    pub opcode: Vec<Name<'t>>,
    pub operands: Vec<Operand<'t>>,
    /// Opcode and operands, without guard and semicolon.
    pub span: Span,
}

#[derive(Debug)]
pub(crate) struct Operand<'t> {
    pub kind: OperandKind<'t>,
    pub span: Span,
}

#[derive(Debug)]
pub(crate) enum OperandKind<'t> {
    /// `name+4`: a register, variable, parameter, function or label, and a byte offset.
    Name(&'t str, i64),
    /// `%tid.x`, `v.x`, `%r1.b0`: name and component.
    Component(&'t str, &'t str),
    /// `!p`
    Not(Name<'t>),
    /// `-a`, as `vmad` has it.
    Minus(Box<Operand<'t>>),
    Constant(Constant),
    /// `[name+4]`, `[16]`.
    Address(Option<Name<'t>>, i64),
    /// `[t, {x, y}]`, as textures and tensor maps have it.
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
pub(crate) enum Constant {
    /// 64 bits, `.s64` or `.u64`.
    Int {
        /// In two's complement if signed.
        bits: u64,
        /// `.s64`
        signed: bool,
    },
    /// `0f3F800000`, which no expression may contain.
    F32(u32),
    /// `0d3FF0000000000000`, or computed from decimal literals.
    F64(f64),
}
