//! Splits the text into tokens.
//!
//! An opcode is an identifier followed by dot-words (`ld` `.global` `.v2` `.f32`). Directives and the component of
//! `%tid.x` are dot-words too. Tokens are made on demand and never stored.

use logos::Logos;
use warploom_isa::Span;

/// The kind of a token. Those from [`Kind::Preprocessor`] on are mistakes, which no rule of the grammar accepts.
#[derive(Logos, Clone, Copy, Debug, PartialEq, Eq)]
#[logos(skip r"[ \t\r\n\x0C\x0B\u{FEFF}]+")]
// `@@` begins the debug lines of the first compilers.
#[logos(skip(r"(//|@@)[^\n]*", allow_greedy = true))]
#[logos(skip r"/\*[^*]*\*+([^/*][^*]*\*+)*/")]
pub(crate) enum Kind {
    #[regex(r"[a-zA-Z][a-zA-Z0-9_$]*")]
    #[regex(r"[_$%][a-zA-Z0-9_$]+")]
    Ident,
    /// `_` alone.
    #[token("_")]
    Underscore,
    /// `.global`, `.shared::cta`, `.16x256b`, and also `.5`.
    #[regex(r"\.[a-zA-Z0-9_$]+(::[a-zA-Z0-9_$]+)*")]
    DotWord,
    #[regex(r"0[xX][0-9a-fA-F]+U?", priority = 10)]
    #[regex(r"0[bB][01]+U?", priority = 10)]
    #[regex(r"[0-9]+U?", priority = 10)]
    Int,
    #[regex(r"0[fF][0-9a-fA-F]{8}", priority = 20)]
    HexF32,
    #[regex(r"0[dD][0-9a-fA-F]{16}", priority = 20)]
    HexF64,
    #[regex(r"[0-9]+\.[0-9]*([eE][+-]?[0-9]+)?", priority = 10)]
    #[regex(r"[0-9]+[eE][+-]?[0-9]+", priority = 10)]
    Decimal,
    #[regex(r#""[^"\n]*""#)]
    Str,
    #[token(",")]
    Comma,
    #[token(";")]
    Semicolon,
    #[token(":")]
    Colon,
    #[token("(")]
    ParenOpen,
    #[token(")")]
    ParenClose,
    #[token("[")]
    BracketOpen,
    #[token("]")]
    BracketClose,
    #[token("{")]
    BraceOpen,
    #[token("}")]
    BraceClose,
    #[token("<")]
    Less,
    #[token(">")]
    Greater,
    #[token("<=")]
    LessEqual,
    #[token(">=")]
    GreaterEqual,
    #[token("==")]
    EqualEqual,
    #[token("!=")]
    NotEqual,
    #[token("=")]
    Equal,
    #[token("+")]
    Plus,
    #[token("-")]
    Minus,
    #[token("*")]
    Star,
    #[token("/")]
    Slash,
    #[token("%")]
    Percent,
    #[token("<<")]
    ShiftLeft,
    #[token(">>")]
    ShiftRight,
    #[token("&")]
    And,
    #[token("|")]
    Or,
    #[token("^")]
    Xor,
    #[token("&&")]
    AndAnd,
    #[token("||")]
    OrOr,
    #[token("~")]
    Tilde,
    #[token("!")]
    Bang,
    #[token("?")]
    Question,
    #[token("@")]
    At,
    Eof,

    /// `#include` and other preprocessor lines.
    #[regex(r"#[^\n]*", allow_greedy = true)]
    Preprocessor,
    /// `12abc`, `0xZZ`, `0f12`.
    #[regex(r"[0-9][a-zA-Z0-9_$]*", priority = 5)]
    BadNumber,
    /// A string that is not closed on its line.
    #[token("\"")]
    OpenString,
    /// A comment that is never closed; it extends to the end of the text.
    #[token("/*")]
    OpenComment,
    /// Any other character.
    Unknown,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    pub kind: Kind,
    pub span: Span,
}

/// The tokens of a text, followed by [`Kind::Eof`] forever.
pub(crate) struct Lexer<'t> {
    inner: logos::Lexer<'t, Kind>,
}

impl<'t> Lexer<'t> {
    /// The tokens of `text`, which has at most [`MAX_TEXT`] bytes.
    pub(crate) fn new(text: &'t str) -> Self {
        debug_assert!(text.len() <= MAX_TEXT);
        Lexer { inner: Kind::lexer(text) }
    }

    pub(crate) fn token(&mut self) -> Token {
        let kind = match self.inner.next() {
            None => Kind::Eof,
            Some(Err(())) => Kind::Unknown,
            Some(Ok(Kind::OpenComment)) => {
                let span = self.inner.span();
                self.inner.bump(self.inner.remainder().len());
                return Token { kind: Kind::OpenComment, span: to_span(span) };
            }
            Some(Ok(kind)) => kind,
        };
        Token { kind, span: to_span(self.inner.span()) }
    }
}

/// Spans are 32 bits wide: they cannot point into a longer text.
pub(crate) const MAX_TEXT: usize = u32::MAX as usize - 1;

fn to_span(range: std::ops::Range<usize>) -> Span {
    Span { start: range.start as u32, end: range.end as u32 }
}

impl Kind {
    /// The name of this kind of token in a message.
    pub(crate) fn describe(self) -> &'static str {
        match self {
            Kind::Ident => "a name",
            Kind::DotWord => "a directive",
            Kind::Int => "an integer",
            Kind::HexF32 | Kind::HexF64 | Kind::Decimal => "a number",
            Kind::Str => "a string",
            Kind::Comma => "`,`",
            Kind::Semicolon => "`;`",
            Kind::Colon => "`:`",
            Kind::ParenOpen => "`(`",
            Kind::ParenClose => "`)`",
            Kind::BracketOpen => "`[`",
            Kind::BracketClose => "`]`",
            Kind::BraceOpen => "`{`",
            Kind::BraceClose => "`}`",
            Kind::Less => "`<`",
            Kind::Greater => "`>`",
            Kind::Eof => "the end of the text",
            _ => "this",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> String {
        let mut lexer = Lexer::new(text);
        let mut out = String::new();
        loop {
            let t = lexer.token();
            if t.kind == Kind::Eof {
                return out.trim_end().to_string();
            }
            out += &format!("{:?}({}) ", t.kind, &text[t.span.start as usize..t.span.end as usize]);
        }
    }

    #[test]
    fn opcodes_are_identifiers_and_dot_words() {
        assert_eq!(
            kinds("ld.global.L1::no_allocate.v2.f32 {%f1,_},[%rd1+-4];"),
            "Ident(ld) DotWord(.global) DotWord(.L1::no_allocate) DotWord(.v2) DotWord(.f32) BraceOpen({) Ident(%f1) \
             Comma(,) Underscore(_) BraceClose(}) Comma(,) BracketOpen([) Ident(%rd1) Plus(+) Minus(-) Int(4) \
             BracketClose(]) Semicolon(;)"
        );
        assert_eq!(
            kinds("mov.u32 %r1, %tid.x"),
            "Ident(mov) DotWord(.u32) Ident(%r1) Comma(,) Ident(%tid) DotWord(.x)"
        );
        assert_eq!(
            kinds("cp.async.bulk.mbarrier::complete_tx::bytes"),
            "Ident(cp) DotWord(.async) DotWord(.bulk) DotWord(.mbarrier::complete_tx::bytes)"
        );
    }

    #[test]
    fn numbers() {
        assert_eq!(
            kinds("0 17 017 0x1F 0b101U 12U"),
            "Int(0) Int(17) Int(017) Int(0x1F) Int(0b101U) Int(12U)"
        );
        assert_eq!(
            kinds("0f3F800000 0d3FF0000000000000 1.5 2. 1e5 2.5E-3"),
            "HexF32(0f3F800000) HexF64(0d3FF0000000000000) Decimal(1.5) Decimal(2.) Decimal(1e5) Decimal(2.5E-3)"
        );
        assert_eq!(kinds("0f3F80 12abc 0xG"), "BadNumber(0f3F80) BadNumber(12abc) BadNumber(0xG)");
    }

    #[test]
    fn names_comments_and_line_ends() {
        assert_eq!(
            kinds("$Lt_0_1: // no\r\n_Z3foo /* a * b ** */ %p %r<4>\r\n@@DWARF .byte 0\n@!%p"),
            "Ident($Lt_0_1) Colon(:) Ident(_Z3foo) Ident(%p) Ident(%r) Less(<) Int(4) Greater(>) At(@) Bang(!) \
             Ident(%p)"
        );
    }

    #[test]
    fn mistakes() {
        assert_eq!(kinds("#include <x>\n`"), "Preprocessor(#include <x>) Unknown(`)");
        assert_eq!(kinds("\"abc\n\""), "OpenString(\") Ident(abc) OpenString(\")");
        assert_eq!(kinds("a /* b c d"), "Ident(a) OpenComment(/*)");
        assert_eq!(kinds("ü"), "Unknown(ü)");
    }
}
