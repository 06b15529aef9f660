//! A recursive-descent parser. This file has the token cursor and error recovery, `module.rs` the directives of module
//! scope, `variable.rs` declarations and initial values, `body.rs` statements and instructions, `constant.rs` constant
//! expressions. Start at [`parse`].
//!
//! A rule returns its first error. The loop over statements (or items) records it, skips to the start of the next one
//! and goes on, so that one run reports several errors.

mod body;
mod constant;
mod module;
mod variable;

use warploom_isa::Span;

use crate::ast;
use crate::diag::{Diagnostic, MAX_DIAGNOSTICS};
use crate::lex::{Kind, Lexer, Token};

/// Scopes, expressions, vectors and initial values nest at most this deep, so that no text can exhaust the stack.
pub(crate) const MAX_DEPTH: u32 = 200;

type Parse<T> = Result<T, Diagnostic>;

/// Parses a module of at most [`crate::lex::MAX_TEXT`] bytes.
pub(crate) fn parse(text: &str) -> Result<ast::Module<'_>, Vec<Diagnostic>> {
    let mut parser = Parser::new(text);
    let module = parser.module();
    if parser.errors.is_empty() { Ok(module) } else { Err(parser.errors) }
}

/// How far an error must unwind before parsing can go on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Unwind {
    /// To the next statement.
    No,
    /// Out of the function: its scopes are not closed.
    ToItem,
    /// Out of the whole text: it is nested too deeply.
    ToText,
}

struct Parser<'t> {
    text: &'t str,
    lexer: Lexer<'t>,
    /// The current token, and the one after it.
    token: Token,
    ahead: Token,
    /// End of the last consumed token.
    last_end: u32,
    depth: u32,
    /// Vector braces open in the current statement. Recovery must not mistake them for the scope's.
    open_braces: u32,
    /// An unclosed comment, already reported, extends to the end of the text.
    comment_open: bool,
    /// Set with the last error.
    unwind: Unwind,
    files: Vec<(u32, &'t str)>,
    errors: Vec<Diagnostic>,
}

impl<'t> Parser<'t> {
    fn new(text: &'t str) -> Self {
        let mut lexer = Lexer::new(text);
        let (token, ahead) = (lexer.token(), lexer.token());
        Parser {
            text,
            lexer,
            token,
            ahead,
            last_end: 0,
            depth: 0,
            open_braces: 0,
            comment_open: false,
            unwind: Unwind::No,
            files: Vec::new(),
            errors: Vec::new(),
        }
    }

    fn kind(&self) -> Kind {
        self.token.kind
    }

    fn span(&self) -> Span {
        self.token.span
    }

    fn text_of(&self, token: Token) -> &'t str {
        &self.text[token.span.start as usize..token.span.end as usize]
    }

    /// The text of the current token.
    fn word(&self) -> &'t str {
        self.text_of(self.token)
    }

    /// The span from `start` to the end of the last consumed token.
    fn since(&self, start: u32) -> Span {
        Span { start, end: self.last_end.max(start) }
    }

    fn bump(&mut self) -> Token {
        let token = self.token;
        self.last_end = token.span.end;
        self.comment_open |= token.kind == Kind::OpenComment;
        self.token = self.ahead;
        self.ahead = self.lexer.token();
        token
    }

    fn at(&self, kind: Kind) -> bool {
        self.token.kind == kind
    }

    fn at_word(&self, word: &str) -> bool {
        matches!(self.token.kind, Kind::DotWord | Kind::Ident) && self.word() == word
    }

    fn eat(&mut self, kind: Kind) -> bool {
        let found = self.at(kind);
        if found {
            self.bump();
        }
        found
    }

    fn eat_word(&mut self, word: &str) -> bool {
        let found = self.at_word(word);
        if found {
            self.bump();
        }
        found
    }

    fn expect(&mut self, kind: Kind) -> Parse<Token> {
        if self.at(kind) { Ok(self.bump()) } else { Err(self.unexpected(kind.describe())) }
    }

    fn name(&mut self, what: &str) -> Parse<ast::Name<'t>> {
        if !self.at(Kind::Ident) {
            return Err(self.unexpected(what));
        }
        let token = self.bump();
        Ok(ast::Name { text: self.text_of(token), span: token.span })
    }

    /// `a, b, c`: at least one name.
    fn names(&mut self, what: &str) -> Parse<Vec<ast::Name<'t>>> {
        let mut names = vec![self.name(what)?];
        while self.eat(Kind::Comma) {
            names.push(self.name(what)?);
        }
        Ok(names)
    }

    /// Runs a recursive rule, one level deeper.
    fn nested<T>(&mut self, rule: impl FnOnce(&mut Self) -> Parse<T>) -> Parse<T> {
        if self.depth == MAX_DEPTH {
            self.unwind = Unwind::ToText;
            return Err(Diagnostic::new(self.span(), format!("nested deeper than {MAX_DEPTH} levels")));
        }
        self.depth += 1;
        let result = rule(self);
        self.depth -= 1;
        result
    }

    /// The error for a current token that the grammar does not allow here.
    fn unexpected(&self, wanted: &str) -> Diagnostic {
        let span = self.span();
        let word = shorten(self.word());
        match self.kind() {
            Kind::Preprocessor => Diagnostic::new(span, "a preprocessor line is not PTX")
                .help("run the text through a preprocessor first (`cpp -P`)"),
            Kind::BadNumber => Diagnostic::new(span, format!("malformed number `{word}`")).help(
                "integers are `12`, `0x1F`, `017`, `0b101`; \
                 floats `1.5`, `0f3F800000` (8 digits), `0d…` (16 digits)",
            ),
            Kind::OpenString => Diagnostic::new(span, "this string is not closed on its line"),
            Kind::OpenComment => Diagnostic::new(span, "this comment is never closed"),
            Kind::Unknown => {
                Diagnostic::new(span, format!("unknown character {:?}", word.chars().next().unwrap_or(' ')))
            }
            Kind::Eof => {
                let end = self.last_end;
                let span = Span { start: end.saturating_sub(1), end };
                Diagnostic::new(span, format!("expected {wanted}, found the end of the text"))
                    .label("the text ends here")
            }
            // A missing `;` is shown where it belongs, not on the next line.
            _ if wanted == "`;`" && self.text[self.last_end as usize..span.start as usize].contains('\n') => {
                let end = self.last_end;
                let span = Span { start: end.saturating_sub(1), end };
                Diagnostic::new(span, format!("expected `;`, found `{word}` on a later line"))
                    .label("`;` missing here")
            }
            _ => Diagnostic::new(span, format!("expected {wanted}, found `{word}`"))
                .label(format!("expected {wanted}")),
        }
    }

    /// Records an error; false once there are too many to go on.
    fn report(&mut self, error: Diagnostic) -> bool {
        self.errors.push(error);
        self.errors.len() < MAX_DIAGNOSTICS
    }

    /// Skips to the end of a statement: past its `;`, or to the `}` of the scope.
    fn skip_statement(&mut self) {
        let mut open = std::mem::take(&mut self.open_braces);
        loop {
            match self.kind() {
                Kind::Eof => return,
                Kind::Semicolon => {
                    self.bump();
                    return;
                }
                Kind::BraceClose if open == 0 => return,
                Kind::BraceClose => open -= 1,
                Kind::BraceOpen => open += 1,
                Kind::DotWord if starts_item(self.word()) => return,
                _ => {}
            }
            self.bump();
        }
    }

    /// Skips to the end of an item: past its `;` or its body, or to the next item.
    fn skip_item(&mut self) {
        if self.open_braces > 0 {
            // Inside an initial value.
            return self.skip_statement();
        }
        let mut open = 0u32;
        loop {
            match self.kind() {
                Kind::Eof => return,
                Kind::Semicolon if open == 0 => {
                    self.bump();
                    return;
                }
                Kind::BraceOpen => open += 1,
                Kind::BraceClose if open <= 1 => {
                    self.bump();
                    return;
                }
                Kind::BraceClose => open -= 1,
                Kind::DotWord if starts_item(self.word()) => return,
                _ => {}
            }
            self.bump();
        }
    }

    /// Skips a balanced pair with its contents. The opening token must be next.
    fn skip_pair(&mut self, open: Kind, close: Kind) -> Parse<()> {
        let start = self.expect(open)?.span;
        let mut depth = 1u32;
        while depth > 0 {
            let kind = self.kind();
            if kind == Kind::Eof {
                return Err(Diagnostic::new(start, format!("this {} is never closed", open.describe())));
            }
            depth = if kind == open { depth.saturating_add(1) } else { depth };
            depth -= u32::from(kind == close);
            self.bump();
        }
        Ok(())
    }
}

/// Directives that only module scope has.
fn starts_item(word: &str) -> bool {
    matches!(word, ".entry" | ".func" | ".visible" | ".weak" | ".version" | ".section" | ".alias")
}

/// A token's text, cut where a message would become unreadable.
fn shorten(word: &str) -> String {
    let mut chars = word.chars();
    let head: String = chars.by_ref().take(40).collect();
    if chars.next().is_some() { head + "…" } else { head }
}
