//! Splits the text into tokens. Statements end with their line, so the end of a line is a token.

use warploom_isa::Span;
use warploom_isa::diag::Diagnostic;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A name with its dot-words: `ISETP.EQ.AND`, `R4`, `SR_TID.X`.
    Word,
    /// A directive: `.kernel`.
    Directive,
    /// `17`, `0x1F`. A minus before it is a separate token.
    Int,
    /// `1.5`, `2e-3`.
    Float,
    /// `"…"`.
    Str,
    /// `/*00a0*/`: the address of the next instruction.
    Address,
    /// `...`: omitted code.
    Ellipsis,
    /// One of `, ; : [ ] { } ( ) + - ! @ & = | ~`.
    Sign(u8),
    Newline,
    End,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    pub kind: Kind,
    pub span: Span,
}

/// Spans are 32 bits wide: they cannot point into a longer text.
pub(crate) const MAX_TEXT: usize = u32::MAX as usize - 1;

/// The tokens of a text, with `End` last, and errors about characters that begin no token.
pub(crate) fn tokens(text: &str) -> (Vec<Token>, Vec<Diagnostic>) {
    let mut lexer = Lexer { text, bytes: text.as_bytes(), at: 0, tokens: Vec::new(), errors: Vec::new() };
    while lexer.at < text.len() && lexer.errors.len() < warploom_isa::diag::MAX_DIAGNOSTICS {
        lexer.step();
    }
    let end = Span { start: text.len() as u32, end: text.len() as u32 };
    lexer.tokens.push(Token { kind: Kind::Newline, span: end });
    lexer.tokens.push(Token { kind: Kind::End, span: end });
    (lexer.tokens, lexer.errors)
}

struct Lexer<'t> {
    text: &'t str,
    bytes: &'t [u8],
    at: usize,
    tokens: Vec<Token>,
    errors: Vec<Diagnostic>,
}

impl Lexer<'_> {
    fn step(&mut self) {
        let start = self.at;
        let rest = &self.text[start..];
        match self.bytes[start] {
            b'\n' => self.token(Kind::Newline, 1),
            b' ' | b'\t' | b'\r' | 0 => self.at += 1,
            _ if rest.starts_with("//") || rest.starts_with('#') => {
                self.at += rest.find('\n').unwrap_or(rest.len());
            }
            _ if rest.starts_with("/*") => self.comment(rest),
            _ if rest.starts_with("...") => self.token(Kind::Ellipsis, 3),
            b'"' => match rest[1..].find(['"', '\n']) {
                Some(end) if rest.as_bytes()[1 + end] == b'"' => self.token(Kind::Str, end + 2),
                _ => {
                    self.error(1, "this string is not closed on its line");
                    self.at += rest.find('\n').unwrap_or(rest.len());
                }
            },
            b'0'..=b'9' => self.number(rest),
            b'.' if rest.len() > 1 && is_name(rest.as_bytes()[1]) => {
                let length = 1 + name_length(&rest[1..], false);
                self.token(Kind::Directive, length);
            }
            b if is_name(b) => self.token(Kind::Word, name_length(rest, true)),
            b @ (b',' | b';' | b':' | b'[' | b']' | b'{' | b'}' | b'(' | b')' | b'+' | b'-' | b'!' | b'@'
            | b'&' | b'=' | b'|' | b'~' | b'<' | b'>' | b'*') => self.token(Kind::Sign(b), 1),
            _ => {
                let c = rest.chars().next().unwrap_or_default();
                self.error(c.len_utf8(), format!("`{}` has no meaning in a listing", c.escape_debug()));
                self.at += c.len_utf8();
            }
        }
    }

    fn token(&mut self, kind: Kind, length: usize) {
        self.tokens.push(Token { kind, span: self.span(length) });
        self.at += length;
    }

    fn span(&self, length: usize) -> Span {
        Span { start: self.at as u32, end: (self.at + length) as u32 }
    }

    fn error(&mut self, length: usize, message: impl Into<String>) {
        self.errors.push(Diagnostic::new(self.span(length), message));
    }

    /// Skips a comment, unless it is an address. A newline inside a comment does not end the line.
    fn comment(&mut self, rest: &str) {
        let Some(length) = rest[2..].find("*/") else {
            self.error(2, "this comment is not closed");
            self.at = self.text.len();
            return;
        };
        let inner = rest[2..2 + length].trim();
        let is_address = (4..=8).contains(&inner.len()) && inner.bytes().all(|b| b.is_ascii_hexdigit());
        if is_address { self.token(Kind::Address, length + 4) } else { self.at += length + 4 }
    }

    fn number(&mut self, rest: &str) {
        let bytes = rest.as_bytes();
        let digits = |from: usize| {
            bytes[from..].iter().take_while(|b| b.is_ascii_alphanumeric() || **b == b'_').count()
        };
        let mut length = digits(0);
        let hex = rest.starts_with("0x") || rest.starts_with("0X");
        let mut kind = Kind::Int;
        if !hex && bytes.get(length) == Some(&b'.') && bytes.get(length + 1).is_some_and(u8::is_ascii_digit) {
            kind = Kind::Float;
            length += 1;
            length += digits(length);
        }
        let text = &rest[..length];
        if !hex && text.ends_with(['e', 'E']) && matches!(bytes.get(length), Some(b'-' | b'+')) {
            length += 1;
            length += digits(length);
        }
        let text = &rest[..length];
        if !hex && (kind == Kind::Float || text.contains(['e', 'E'])) {
            kind = Kind::Float;
            if text.parse::<f64>().is_err() {
                self.error(length, format!("`{text}` is no number"));
            }
        } else if int(text).is_none() {
            let wrong = if text.bytes().all(|b| b.is_ascii_hexdigit() || b == b'x' || b == b'X') && hex
                || text.bytes().all(|b| b.is_ascii_digit())
            {
                "does not fit in 64 bits"
            } else {
                "is no number"
            };
            self.error(length, format!("`{text}` {wrong}"));
        }
        self.token(kind, length);
    }
}

/// The value of an integer token.
pub(crate) fn int(text: &str) -> Option<u64> {
    let text = text.replace('_', "");
    match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

fn is_name(b: u8) -> bool {
    b.is_ascii_alphabetic() || matches!(b, b'_' | b'$' | b'%')
}

/// Length of the name at the start of the text; with `dotted`, including the dot-words that follow it.
fn name_length(text: &str, dotted: bool) -> usize {
    let bytes = text.as_bytes();
    let in_name = |b: u8| is_name(b) || b.is_ascii_digit();
    let mut at = 0;
    loop {
        at += bytes[at..].iter().take_while(|&&b| in_name(b)).count();
        let more = dotted && bytes.get(at) == Some(&b'.') && bytes.get(at + 1).is_some_and(|&b| in_name(b));
        if !more {
            return at;
        }
        at += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> String {
        let (tokens, errors) = tokens(text);
        let show = |t: &Token| format!("{:?}({})", t.kind, &text[t.span.start as usize..t.span.end as usize]);
        let kinds: Vec<String> = tokens[..tokens.len() - 2].iter().map(show).collect();
        format!("{} {}", kinds.join(" "), errors.len())
    }

    #[test]
    fn a_line_of_the_paper() {
        assert_eq!(
            kinds("/*0100*/ @!P1 LDSLK P1, [R7+-0x4];//get west"),
            "Address(/*0100*/) Sign(64)(@) Sign(33)(!) Word(P1) Word(LDSLK) Word(P1) Sign(44)(,) Sign(91)([) Word(R7) \
             Sign(43)(+) Sign(45)(-) Int(0x4) Sign(93)(]) Sign(59)(;) 0"
        );
    }

    #[test]
    fn numbers() {
        assert_eq!(kinds("1 0x1F 1.5 2e-3 1e5"), "Int(1) Int(0x1F) Float(1.5) Float(2e-3) Float(1e5) 0");
        assert_eq!(kinds("12ab"), "Int(12ab) 1");
        assert_eq!(kinds("0xfffffffffffffffff"), "Int(0xfffffffffffffffff) 1");
    }

    #[test]
    fn comments_and_mistakes() {
        assert_eq!(kinds("/* a\nb */ x // y\n# z"), "Word(x) Newline(\n) 0");
        assert_eq!(kinds("/* open"), " 1");
        assert_eq!(kinds("ä\"x\n"), "Newline(\n) 2");
        assert_eq!(kinds("... .kernel k.x"), "Ellipsis(...) Directive(.kernel) Word(k.x) 0");
    }
}
