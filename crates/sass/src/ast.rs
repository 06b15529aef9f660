//! A listing taken apart, with nothing looked up yet.

use warploom_isa::Span;

use crate::lex::Token;

/// Something and its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Spanned<T> {
    /// What.
    pub node: T,
    /// Where.
    pub span: Span,
}

/// A line, or a part of one.
#[derive(Clone, Debug)]
pub enum Item<'t> {
    /// `.name arguments`
    Directive {
        /// The name, with its dot.
        name: Spanned<&'t str>,
        /// The rest of the line.
        args: Vec<Token>,
    },
    /// `name:`
    Label(Spanned<&'t str>),
    /// An instruction.
    Inst(Inst<'t>),
}

/// An instruction as it is written.
#[derive(Clone, Debug)]
pub struct Inst<'t> {
    /// All of it, without its address.
    pub span: Span,
    /// `/*00a0*/`
    pub address: Option<u32>,
    /// `@P0`, `@!P0`: the predicate and whether it is inverted.
    pub guard: Option<(Spanned<&'t str>, bool)>,
    /// `ISETP.EQ.AND`
    pub mnemonic: Spanned<&'t str>,
    /// What follows it.
    pub operands: Vec<Spanned<Term<'t>>>,
    /// `(MEET label)`
    pub meet: Option<Spanned<Term<'t>>>,
}

/// One operand.
#[derive(Clone, Debug, PartialEq)]
pub enum Term<'t> {
    /// A register, a predicate, a label, a special register, `FRAME`.
    Word(&'t str),
    /// `!P0`
    Not(&'t str),
    /// `-R4`
    Negative(&'t str),
    /// `-0x4`
    Int(i128),
    /// `1.5`, `-1.5`: the digits, and whether a minus stands before them.
    Float(&'t str, bool),
    /// `[R7+-0x4]`
    Memory(Box<Sum<'t>>),
    /// `c[0x0][0x20]`
    Bank(u64, Box<Sum<'t>>),
    /// `&name+0x4`, `generic(&name)+0x4`
    Address {
        /// Whose.
        name: &'t str,
        /// What is added.
        offset: i64,
        /// As a generic address.
        generic: bool,
    },
    /// `{R4, R7}`
    List(Vec<Spanned<Term<'t>>>),
    /// `IN 0x0 0x10 4`: what a call copies from (`OUT`: to) its caller's frame.
    Copy {
        /// Back to the caller.
        out: bool,
        /// Offset in the caller's frame, in the callee's, and bytes.
        numbers: [u64; 3],
    },
}

/// What stands in brackets.
#[derive(Clone, Debug, PartialEq)]
pub struct Sum<'t> {
    /// A register, a number, a symbol or a parameter's name.
    pub base: Spanned<Term<'t>>,
    /// What is added.
    pub offset: i64,
}
