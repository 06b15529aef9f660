//! Parses tokens into labels, directives and instructions with their operands. Start at [`parse`].

use std::collections::BTreeMap;

use warploom_isa::Span;
use warploom_isa::diag::{Diagnostic, MAX_DIAGNOSTICS};

use crate::ast::*;
use crate::lex::{Kind, Token, int, tokens};

type Result<T = ()> = std::result::Result<T, Diagnostic>;

/// Bounds the recursion: deeper nesting is a mistake or an attack on the stack.
const MAX_NESTING: u32 = 16;

/// The statements of a text, or its errors.
pub(crate) fn parse(text: &str) -> std::result::Result<Vec<Item<'_>>, Vec<Diagnostic>> {
    let (tokens, mut errors) = tokens(text);
    let mut parser =
        Parser { text, tokens: &tokens, at: 0, nesting: 0, aliases: BTreeMap::new(), items: Vec::new() };
    while parser.peek().kind != Kind::End && errors.len() < MAX_DIAGNOSTICS {
        if let Err(error) = parser.statement() {
            errors.push(error);
            parser.skip_line();
        }
    }
    if errors.is_empty() { Ok(parser.items) } else { Err(errors) }
}

struct Parser<'t, 'k> {
    text: &'t str,
    tokens: &'k [Token],
    at: usize,
    nesting: u32,
    /// The terms that `.let` gave to texts in parentheses, in the current function.
    aliases: BTreeMap<String, Term<'t>>,
    items: Vec<Item<'t>>,
}

impl<'t> Parser<'t, '_> {
    fn peek(&self) -> Token {
        self.tokens[self.at.min(self.tokens.len() - 1)]
    }

    fn peek_second(&self) -> Token {
        self.tokens[(self.at + 1).min(self.tokens.len() - 1)]
    }

    fn next(&mut self) -> Token {
        let token = self.peek();
        self.at += 1;
        token
    }

    fn text_of(&self, token: Token) -> &'t str {
        &self.text[token.span.start as usize..token.span.end as usize]
    }

    fn is(&self, sign: u8) -> bool {
        self.peek().kind == Kind::Sign(sign)
    }

    fn eat(&mut self, sign: u8) -> bool {
        let here = self.is(sign);
        self.at += usize::from(here);
        here
    }

    fn expect(&mut self, sign: u8) -> Result {
        if self.eat(sign) { Ok(()) } else { Err(self.unexpected(&format!("`{}`", char::from(sign)))) }
    }

    fn unexpected(&self, wanted: &str) -> Diagnostic {
        let token = self.peek();
        let found = match token.kind {
            Kind::Newline | Kind::End => "the end of the line".to_string(),
            _ => format!("`{}`", self.text_of(token)),
        };
        Diagnostic::new(token.span, format!("expected {wanted}, found {found}"))
    }

    fn skip_line(&mut self) {
        while !matches!(self.next().kind, Kind::Newline | Kind::End) {}
        self.at = self.at.min(self.tokens.len() - 1);
    }

    fn statement(&mut self) -> Result {
        let token = self.peek();
        match token.kind {
            Kind::Newline | Kind::Sign(b';') => self.at += 1,
            Kind::Directive => self.directive()?,
            Kind::Ellipsis => {
                return Err(Diagnostic::new(token.span, "`...` stands for code that is left out here")
                    .help("write the instructions that belong there, or delete the line"));
            }
            Kind::Word if self.peek_second().kind == Kind::Sign(b':') => {
                self.at += 2;
                let label = Spanned { node: self.text_of(token), span: token.span };
                self.items.push(Item::Label(label));
            }
            Kind::Address | Kind::Word | Kind::Sign(b'@' | b'!') => self.instruction()?,
            _ => return Err(self.unexpected("an instruction, a label or a directive")),
        }
        Ok(())
    }

    fn directive(&mut self) -> Result {
        let token = self.next();
        let name = Spanned { node: self.text_of(token), span: token.span };
        match name.node {
            ".let" => return self.alias(),
            ".kernel" | ".function" => self.aliases.clear(),
            _ => {}
        }
        let mut args = Vec::new();
        while !matches!(self.peek().kind, Kind::Newline | Kind::End | Kind::Sign(b';')) {
            args.push(self.next());
        }
        self.items.push(Item::Directive { name, args });
        Ok(())
    }

    /// `.let (A[tid]) = [R5]`
    fn alias(&mut self) -> Result {
        if !self.is(b'(') {
            return Err(self.unexpected("a text in parentheses").help("such as `.let (A[tid]) = [R5]`"));
        }
        let (key, _) = self.parenthesised()?;
        self.expect(b'=')?;
        let term = self.term()?;
        if !matches!(self.peek().kind, Kind::Newline | Kind::Sign(b';')) {
            return Err(self.unexpected("the end of the line"));
        }
        self.aliases.insert(key, term.node);
        Ok(())
    }

    /// The text between parentheses, without spaces, and its span.
    fn parenthesised(&mut self) -> Result<(String, Span)> {
        let open = self.next();
        let (mut depth, mut key) = (1, String::new());
        loop {
            let token = self.next();
            match token.kind {
                Kind::Newline | Kind::End => {
                    return Err(Diagnostic::new(open.span, "this parenthesis is not closed on its line"));
                }
                Kind::Sign(b'(') => depth += 1,
                Kind::Sign(b')') => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                return Ok((key, Span { start: open.span.start, end: token.span.end }));
            }
            key.push_str(self.text_of(token));
        }
    }

    fn instruction(&mut self) -> Result {
        let mut address = None;
        while self.peek().kind == Kind::Address {
            let token = self.next();
            let digits = self.text_of(token).trim_matches(['/', '*']).trim();
            address = u32::from_str_radix(digits, 16).ok();
        }
        if !matches!(self.peek().kind, Kind::Word | Kind::Sign(b'@' | b'!')) {
            // A comment at the end of a line that only looks like an address.
            return Ok(());
        }
        let start = self.peek().span.start;
        let guard = self.guard()?;
        let word = self.peek();
        if word.kind != Kind::Word {
            return Err(self.unexpected("an instruction"));
        }
        self.at += 1;
        let mnemonic = Spanned { node: self.text_of(word), span: word.span };
        let mut operands = Vec::new();
        let mut meet = None;
        let ends = |kind: Kind| matches!(kind, Kind::Newline | Kind::End | Kind::Sign(b';') | Kind::Address);
        if !ends(self.peek().kind) {
            operands.push(self.term()?);
            loop {
                if self.eat(b',') {
                    operands.push(self.term()?);
                } else if self.is(b'(') && self.text_of(self.peek_second()).eq_ignore_ascii_case("MEET") {
                    self.at += 2;
                    meet = Some(self.term()?);
                    self.expect(b')')?;
                } else {
                    break;
                }
            }
        }
        let last = self.tokens[self.at - 1].span.end;
        if !ends(self.peek().kind) {
            return Err(self.unexpected("`,` or `;`"));
        }
        self.eat(b';');
        self.items.push(Item::Inst(Inst {
            span: Span { start, end: last },
            address,
            guard,
            mnemonic,
            operands,
            meet,
        }));
        Ok(())
    }

    /// `@P0`, `@!P0`, and `!@P0`, which the paper prints once.
    fn guard(&mut self) -> Result<Option<(Spanned<&'t str>, bool)>> {
        let before = self.eat(b'!');
        if !self.eat(b'@') {
            return if before { Err(self.unexpected("`@`")) } else { Ok(None) };
        }
        let negated = self.eat(b'!') ^ before;
        let token = self.peek();
        if token.kind != Kind::Word {
            return Err(self.unexpected("a predicate"));
        }
        self.at += 1;
        Ok(Some((Spanned { node: self.text_of(token), span: token.span }, negated)))
    }

    fn term(&mut self) -> Result<Spanned<Term<'t>>> {
        self.nesting += 1;
        let start = self.peek().span;
        let term = if self.nesting > MAX_NESTING {
            Err(Diagnostic::new(start, "this is nested too deeply"))
        } else {
            self.term_inside()
        };
        self.nesting -= 1;
        let end = self.tokens[self.at.saturating_sub(1)].span.end;
        Ok(Spanned { node: term?, span: Span { start: start.start, end: end.max(start.end) } })
    }

    fn term_inside(&mut self) -> Result<Term<'t>> {
        let token = self.peek();
        match token.kind {
            Kind::Int | Kind::Float => self.number(false),
            Kind::Sign(b'-') => {
                self.at += 1;
                match self.peek().kind {
                    Kind::Word => {
                        let word = self.next();
                        Ok(Term::Negative(self.text_of(word)))
                    }
                    _ => self.number(true),
                }
            }
            Kind::Sign(b'!') => {
                self.at += 1;
                let word = self.peek();
                if word.kind != Kind::Word {
                    return Err(self.unexpected("a predicate"));
                }
                self.at += 1;
                Ok(Term::Not(self.text_of(word)))
            }
            Kind::Sign(b'&') => {
                let name = self.address_name()?;
                Ok(Term::Address { name, offset: self.displacement()?, generic: false })
            }
            Kind::Sign(b'[') => {
                self.at += 1;
                Ok(Term::Memory(Box::new(self.sum()?)))
            }
            Kind::Sign(b'{') => {
                self.at += 1;
                let mut list = Vec::new();
                while !self.eat(b'}') {
                    if !list.is_empty() {
                        self.expect(b',')?;
                    }
                    list.push(self.term()?);
                }
                Ok(Term::List(list))
            }
            Kind::Sign(b'(') => {
                let (key, span) = self.parenthesised()?;
                self.aliases.get(&key).cloned().ok_or_else(|| {
                    Diagnostic::new(span, format!("nothing says what `({key})` stands for")).help(format!(
                        "say it before the code, such as `.let ({key}) = R4` or `.let ({key}) = [R4]`"
                    ))
                })
            }
            Kind::Sign(b'|' | b'~') => {
                let what = if self.is(b'|') { "absolute values" } else { "inverted operands" };
                Err(Diagnostic::new(token.span, format!("{what} of operands are not modelled"))
                    .help("compute them with an instruction of their own: IABS, FABS, LOP.NOT"))
            }
            Kind::Word => self.word(),
            Kind::Ellipsis => Err(Diagnostic::new(token.span, "`...` stands for code that is left out here")),
            _ => Err(self.unexpected("an operand")),
        }
    }

    fn word(&mut self) -> Result<Term<'t>> {
        let token = self.next();
        let text = self.text_of(token);
        let upper = text.to_ascii_uppercase();
        match upper.as_str() {
            "C" if self.is(b'[') => {
                self.at += 1;
                let Term::Int(bank) = self.number(false)? else {
                    return Err(self.unexpected("a bank's number"));
                };
                self.expect(b']')?;
                self.expect(b'[')?;
                Ok(Term::Bank(bank as u64, Box::new(self.sum()?)))
            }
            "GENERIC" if self.is(b'(') => {
                self.at += 1;
                let name = self.address_name()?;
                self.expect(b')')?;
                Ok(Term::Address { name, offset: self.displacement()?, generic: true })
            }
            "IN" | "OUT" if self.peek().kind == Kind::Int => {
                let mut numbers = [0; 3];
                for number in &mut numbers {
                    let Term::Int(n) = self.number(false)? else { return Err(self.unexpected("an integer")) };
                    *number = n as u64;
                }
                Ok(Term::Copy { out: upper == "OUT", numbers })
            }
            _ => Ok(Term::Word(text)),
        }
    }

    fn address_name(&mut self) -> Result<&'t str> {
        self.expect(b'&')?;
        let word = self.peek();
        if word.kind != Kind::Word {
            return Err(self.unexpected("a name"));
        }
        self.at += 1;
        Ok(self.text_of(word))
    }

    fn number(&mut self, negative: bool) -> Result<Term<'t>> {
        let token = self.peek();
        let text = self.text_of(token);
        let term = match token.kind {
            Kind::Int => {
                let value = i128::from(int(text).unwrap_or_default());
                Term::Int(if negative { -value } else { value })
            }
            Kind::Float => Term::Float(text, negative),
            _ => return Err(self.unexpected("a number")),
        };
        self.at += 1;
        Ok(term)
    }

    /// The rest of `[base + offset]`.
    fn sum(&mut self) -> Result<Sum<'t>> {
        let mut base = self.term()?;
        let mut offset = self.displacement()?;
        if let Term::Address { offset: inner, .. } = &mut base.node {
            // `&name+4` was parsed as one term: its offset is the sum's.
            offset = offset.wrapping_add(std::mem::take(inner));
        }
        self.expect(b']')?;
        Ok(Sum { base, offset })
    }

    /// `+0x4`, `+-0x4`, `-0x4`, or nothing.
    fn displacement(&mut self) -> Result<i64> {
        let mut sum = 0i128;
        while self.is(b'+') || self.is(b'-') {
            let mut negative = false;
            while self.is(b'+') || self.is(b'-') {
                negative ^= self.is(b'-');
                self.at += 1;
            }
            let span = self.peek().span;
            let Term::Int(value) = self.number(negative)? else { return Err(self.unexpected("an integer")) };
            sum += value;
            if i64::try_from(sum).is_err() {
                return Err(Diagnostic::new(span, "this offset does not fit in 64 bits"));
            }
        }
        Ok(sum as i64)
    }
}
