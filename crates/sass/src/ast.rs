//! The syntax tree of a listing. No name is resolved yet.

use warploom_isa::Span;

use crate::lex::Token;

/// A node with its place in the text.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Spanned<T> {
    pub node: T,
    pub span: Span,
}

/// A statement; a line may hold several.
#[derive(Clone, Debug)]
pub(crate) enum Item<'t> {
    /// `.name arguments`
    Directive {
        /// With its dot.
        name: Spanned<&'t str>,
        /// The rest of the line.
        args: Vec<Token>,
    },
    /// `name:`
    Label(Spanned<&'t str>),
    Inst(Inst<'t>),
}

#[derive(Clone, Debug)]
pub(crate) struct Inst<'t> {
    /// The whole instruction without its address.
    pub span: Span,
    /// `/*00a0*/`
    pub address: Option<u32>,
    /// `@P0`, `@!P0`: the predicate and whether it is inverted.
    pub guard: Option<(Spanned<&'t str>, bool)>,
    /// `ISETP.EQ.AND`
    pub mnemonic: Spanned<&'t str>,
    /// In the order of the text.
    pub operands: Vec<Spanned<Term<'t>>>,
    /// `(MEET label)`
    pub meet: Option<Spanned<Term<'t>>>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Term<'t> {
    /// A register, a predicate, a label, a special register, `FRAME`.
    Word(&'t str),
    /// `!P0`
    Not(&'t str),
    /// `-R4`
    Negative(&'t str),
    /// `-0x4`
    Int(i128),
    /// `1.5`, `-1.5`: the digits, and whether the number is negative.
    Float(&'t str, bool),
    /// `[R7+-0x4]`
    Memory(Box<Sum<'t>>),
    /// `c[0x0][0x20]`
    Bank(u64, Box<Sum<'t>>),
    /// `&name+0x4`, `generic(&name)+0x4`
    Address { name: &'t str, offset: i64, generic: bool },
    /// `{R4, R7}`
    List(Vec<Spanned<Term<'t>>>),
    /// `IN 0x0 0x10 4`: bytes that a call copies from its caller's frame to its callee's, or back (`OUT`).
    Copy {
        out: bool,
        /// Offset in the caller's frame, offset in the callee's frame, bytes.
        numbers: [u64; 3],
    },
}

/// An address in brackets.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Sum<'t> {
    /// A register, a number, a symbol or a parameter's name.
    pub base: Spanned<Term<'t>>,
    pub offset: i64,
}
