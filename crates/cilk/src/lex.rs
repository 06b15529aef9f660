//! Tokens of C, each with its place in the source.

use crate::{CilkError, Result};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Word,
    Number,
    /// A string or a character.
    Quoted,
    Sign,
    /// A line of the preprocessor.
    Directive,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Token<'a> {
    pub text: &'a str,
    pub kind: Kind,
    pub line: u32,
    /// The byte at which it begins.
    pub start: usize,
}

impl Token<'_> {
    pub(crate) fn is(&self, text: &str) -> bool {
        self.text == text
    }

    pub(crate) fn end(&self) -> usize {
        self.start + self.text.len()
    }
}

/// Signs of more than one character, the longest first.
const LONG: [&str; 22] = [
    "<<=", ">>=", "...", "->", "++", "--", "<<", ">>", "<=", ">=", "==", "!=", "&&", "||", "+=", "-=", "*=",
    "/=", "%=", "&=", "|=", "^=",
];

/// Splits a source into tokens. Comments vanish.
pub(crate) fn lex(source: &str) -> Result<Vec<Token<'_>>> {
    let mut tokens = Vec::new();
    let (mut at, mut line) = (0, 1);
    let mut line_begins = true;
    while at < source.len() {
        let rest = &source[at..];
        let first = rest.chars().next().unwrap_or(' ');
        let (length, kind) = if first.is_whitespace() {
            line_begins |= first == '\n';
            (first.len_utf8(), None)
        } else if rest.starts_with("//") {
            (rest.find('\n').unwrap_or(rest.len()), None)
        } else if let Some(comment) = rest.strip_prefix("/*") {
            match comment.find("*/") {
                Some(end) => (end + 4, None),
                None => return Err(CilkError::new(line, "this comment has no end: `*/` is missing")),
            }
        } else if first == '#' && line_begins {
            (directive(rest), Some(Kind::Directive))
        } else if first.is_ascii_alphabetic() || first == '_' {
            (
                rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len()),
                Some(Kind::Word),
            )
        } else if first.is_ascii_digit() {
            let in_number = |c: char| c.is_ascii_alphanumeric() || c == '.' || c == '_';
            (rest.find(|c| !in_number(c)).unwrap_or(rest.len()), Some(Kind::Number))
        } else if first == '"' || first == '\'' {
            (quoted(rest, first, line)?, Some(Kind::Quoted))
        } else {
            let long = LONG.iter().find(|sign| rest.starts_with(**sign));
            (long.map_or(first.len_utf8(), |sign| sign.len()), Some(Kind::Sign))
        };
        let text = &rest[..length];
        if let Some(kind) = kind {
            tokens.push(Token { text, kind, line, start: at });
            line_begins = false;
        }
        line += text.matches('\n').count() as u32;
        at += length;
    }
    Ok(tokens)
}

/// The length of a line of the preprocessor, with the lines that a backslash adds.
fn directive(rest: &str) -> usize {
    let mut end = 0;
    loop {
        match rest[end..].find('\n') {
            None => return rest.len(),
            Some(more) if rest[..end + more].trim_end().ends_with('\\') => end += more + 1,
            Some(more) => return end + more,
        }
    }
}

/// The length of a string or a character.
fn quoted(rest: &str, quote: char, line: u32) -> Result<usize> {
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            '\n' => break,
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if c == quote => return Ok(at + 1),
            _ => {}
        }
    }
    Err(CilkError::new(line, format!("this line has a {quote} without an end")))
}
