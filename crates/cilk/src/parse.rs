//! From tokens to the syntax tree.

use std::collections::BTreeSet;

use crate::lex::{Kind, Token, lex};
use crate::syntax::{Expression, Function, Item, Slot, Statement, Variable};
use crate::{CilkError, Result};

/// Words of which types consist.
const TYPE_WORDS: [&str; 19] = [
    "void", "char", "short", "int", "long", "float", "double", "signed", "unsigned", "const", "bool",
    "_Bool", "size_t", "int32_t", "uint32_t", "int64_t", "uint64_t", "volatile", "struct",
];

/// Statements of C that are not understood here.
const REFUSED: [&str; 6] = ["switch", "case", "default", "goto", "asm", "cilk_for"];

/// How deep statements may be nested.
const DEEPEST: usize = 64;

struct Parser<'a> {
    source: &'a str,
    tokens: Vec<Token<'a>>,
    at: usize,
    types: BTreeSet<&'a str>,
    depth: usize,
}

/// Reads a source.
pub(crate) fn parse(source: &str) -> Result<Vec<Item<'_>>> {
    let tokens = lex(source)?;
    let types = TYPE_WORDS.into_iter().collect();
    let mut parser = Parser { source, tokens, at: 0, types, depth: 0 };
    let mut items = Vec::new();
    while parser.peek().is_some() {
        parser.item(&mut items)?;
    }
    Ok(items)
}

fn is_spawn(token: &Token<'_>) -> bool {
    token.is("spawn") || token.is("cilk_spawn")
}

fn is_sync(token: &Token<'_>) -> bool {
    token.is("sync") || token.is("cilk_sync")
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Option<Token<'a>> {
        self.tokens.get(self.at).copied()
    }

    fn next_is(&self, text: &str) -> bool {
        self.peek().is_some_and(|token| token.is(text))
    }

    /// The line of the next token, or the last line.
    fn line(&self) -> u32 {
        self.peek().or(self.tokens.last().copied()).map_or(1, |token| token.line)
    }

    fn error<T>(&self, message: impl Into<String>) -> Result<T> {
        Err(CilkError::new(self.line(), message))
    }

    fn take(&mut self) -> Result<Token<'a>> {
        let Some(token) = self.peek() else {
            return self.error("the source ends in the middle of something");
        };
        self.at += 1;
        Ok(token)
    }

    fn skip(&mut self, text: &str) -> bool {
        let there = self.next_is(text);
        self.at += there as usize;
        there
    }

    fn expect(&mut self, text: &str) -> Result<()> {
        if self.skip(text) {
            return Ok(());
        }
        match self.peek() {
            Some(token) => self.error(format!("`{}` where `{text}` must be", token.text)),
            None => self.error(format!("the source ends where `{text}` must be")),
        }
    }

    fn name(&mut self) -> Result<&'a str> {
        let token = self.take()?;
        if token.kind != Kind::Word || self.types.contains(token.text) {
            return Err(CilkError::new(token.line, format!("`{}` where a name must be", token.text)));
        }
        Ok(token.text)
    }

    fn text_from(&self, start: usize) -> &'a str {
        let end =
            self.at.checked_sub(1).and_then(|last| self.tokens.get(last)).map_or(start, |last| last.end());
        &self.source[start..end.max(start)]
    }

    fn item(&mut self, items: &mut Vec<Item<'a>>) -> Result<()> {
        let first = self.take()?;
        if first.kind == Kind::Directive {
            // What is included is for the plain program; kernels bring what they need.
            if !first.text[1..].trim_start().starts_with("include") {
                items.push(Item::Other(first.text));
            }
            return Ok(());
        }
        if first.is(";") {
            return Ok(());
        }
        let is_struct = first.is("struct")
            && self.tokens.get(self.at + 1).is_some_and(|token| token.is("{") || token.is(";"));
        if first.is("typedef") || is_struct {
            let mut last = first;
            let mut open = 0usize;
            loop {
                let token = self.take()?;
                open = if token.is("{") { open + 1 } else { open.saturating_sub(token.is("}") as usize) };
                if open == 0 && token.is(";") {
                    break;
                }
                last = if token.kind == Kind::Word { token } else { last };
            }
            if first.is("typedef") {
                self.types.insert(last.text);
            }
            items.push(Item::Other(self.text_from(first.start)));
            return Ok(());
        }
        self.at -= 1;
        while ["cilk", "static", "inline", "extern"].iter().any(|word| self.skip(word)) {}
        let start = self.tokens.get(self.at).map_or(self.source.len(), |token| token.start);
        let line = self.line();
        let ty = self.ty()?;
        let name = self.name()?;
        if !self.skip("(") {
            return self.globals(start, name, items);
        }
        let parameters = self.parameters()?;
        if self.skip(";") {
            // A declaration: order does not matter here.
            return Ok(());
        }
        let body = self.block()?;
        items.push(Item::Function(Function {
            ty,
            name,
            parameters,
            body,
            line,
            text: self.text_from(start),
        }));
        Ok(())
    }

    fn globals(&mut self, start: usize, first: &'a str, items: &mut Vec<Item<'a>>) -> Result<()> {
        let mut names = vec![first];
        let mut open = 0usize;
        loop {
            let token = self.take()?;
            match token.text {
                "(" | "[" | "{" => open += 1,
                ")" | "]" | "}" => open = open.saturating_sub(1),
                "," if open == 0 => {
                    while self.skip("*") {}
                    names.push(self.name()?);
                }
                ";" if open == 0 => break,
                _ => {}
            }
        }
        items.push(Item::Globals { text: self.text_from(start), names });
        Ok(())
    }

    fn is_type(&self, token: &Token<'_>) -> bool {
        token.kind == Kind::Word && self.types.contains(token.text)
    }

    fn ty(&mut self) -> Result<String> {
        let mut words: Vec<&str> = Vec::new();
        while let Some(token) = self.peek().filter(|token| self.is_type(token)) {
            self.at += 1;
            words.push(token.text);
            if token.is("struct") {
                words.push(self.take()?.text);
            }
        }
        if words.is_empty() {
            let found = self.peek().map_or("the end", |token| token.text);
            return self.error(format!("`{found}` where a type must be"));
        }
        while self.skip("*") {
            words.push("*");
        }
        Ok(words.join(" "))
    }

    fn parameters(&mut self) -> Result<Vec<Variable<'a>>> {
        let mut parameters = Vec::new();
        if self.next_is("void") && self.tokens.get(self.at + 1).is_some_and(|token| token.is(")")) {
            self.at += 1;
        }
        while !self.skip(")") {
            if !parameters.is_empty() {
                self.expect(",")?;
            }
            let line = self.line();
            let mut ty = self.ty()?;
            let name = self.name()?;
            while self.skip("[") {
                while !self.skip("]") {
                    self.take()?;
                }
                ty += " *";
            }
            parameters.push(Variable { ty, name, length: None, line });
        }
        Ok(parameters)
    }

    /// Tokens up to one of the signs outside all brackets, which is taken too.
    fn until(&mut self, ends: &[&str]) -> Result<(Expression<'a>, &'a str)> {
        let mut tokens: Expression<'a> = Vec::new();
        let mut open: Vec<&str> = Vec::new();
        loop {
            let token = self.take()?;
            if open.is_empty() && ends.contains(&token.text) {
                return Ok((tokens, token.text));
            }
            if is_spawn(&token) || is_sync(&token) {
                let form = "it stands alone: `x = spawn f(…);`, `spawn f(…);` or `sync;`";
                return Err(CilkError::new(
                    token.line,
                    format!("`{}` inside an expression; {form}", token.text),
                ));
            }
            match token.text {
                "(" => open.push(")"),
                "[" => open.push("]"),
                "{" => open.push("}"),
                ")" | "]" | "}" if open.pop() != Some(token.text) => {
                    return Err(CilkError::new(token.line, format!("`{}` closes nothing", token.text)));
                }
                ";" => return Err(CilkError::new(token.line, "a bracket before this `;` is not closed")),
                _ => {}
            }
            tokens.push(token);
        }
    }

    fn block(&mut self) -> Result<Vec<Statement<'a>>> {
        self.expect("{")?;
        let mut statements = Vec::new();
        while !self.skip("}") {
            self.statement(&mut statements)?;
        }
        Ok(statements)
    }

    /// The statements of a branch or a loop.
    fn body(&mut self) -> Result<Vec<Statement<'a>>> {
        let mut statements = Vec::new();
        self.statement(&mut statements)?;
        Ok(match <[_; 1]>::try_from(statements) {
            Ok([Statement::Block(inner)]) => inner,
            Ok([one]) => vec![one],
            Err(statements) => statements,
        })
    }

    fn statement(&mut self, into: &mut Vec<Statement<'a>>) -> Result<()> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return self.error(format!("statements are nested more than {DEEPEST} deep"));
        }
        let result = self.statement_within(into);
        self.depth -= 1;
        result
    }

    fn statement_within(&mut self, into: &mut Vec<Statement<'a>>) -> Result<()> {
        let Some(token) = self.peek() else { return self.error("a block has no end: `}` is missing") };
        if REFUSED.contains(&token.text) {
            return self.error(format!("`{}` is not understood; use if, while, for and calls", token.text));
        }
        match token.text {
            "{" => into.push(Statement::Block(self.block()?)),
            ";" => self.at += 1,
            "if" => {
                self.at += 1;
                self.expect("(")?;
                let (condition, _) = self.until(&[")"])?;
                let then = self.body()?;
                let otherwise = if self.skip("else") { self.body()? } else { Vec::new() };
                into.push(Statement::If { condition, then, otherwise });
            }
            "while" => {
                self.at += 1;
                self.expect("(")?;
                let (condition, _) = self.until(&[")"])?;
                let body = self.body()?;
                into.push(Statement::While { condition, step: Vec::new(), body });
            }
            "do" => {
                self.at += 1;
                let body = self.body()?;
                self.expect("while")?;
                self.expect("(")?;
                let (condition, _) = self.until(&[")"])?;
                self.expect(";")?;
                into.push(Statement::DoWhile { condition, body });
            }
            "for" => {
                self.at += 1;
                self.expect("(")?;
                let mut all = Vec::new();
                if !self.skip(";") {
                    self.simple(&mut all)?;
                }
                let (condition, _) = self.until(&[";"])?;
                let (step, _) = self.until(&[")"])?;
                let body = self.body()?;
                all.push(Statement::While { condition, step, body });
                into.push(Statement::Block(all));
            }
            "return" => {
                self.at += 1;
                let (value, _) = self.until(&[";"])?;
                let value = if value.is_empty() { None } else { Some(value) };
                into.push(Statement::Return { value, line: token.line });
            }
            "break" | "continue" => {
                self.at += 1;
                self.expect(";")?;
                into.push(Statement::Jump(token.text));
            }
            _ if is_sync(&token) => {
                self.at += 1;
                self.expect(";")?;
                into.push(Statement::Sync { line: token.line });
            }
            _ => self.simple(into)?,
        }
        Ok(())
    }

    /// A declaration, an assignment, a spawn or another expression, with its `;`.
    fn simple(&mut self, into: &mut Vec<Statement<'a>>) -> Result<()> {
        let Some(first) = self.peek() else { return self.error("a statement is missing") };
        if is_spawn(&first) {
            let spawn = self.spawn(None)?;
            into.push(spawn);
            return self.expect(";");
        }
        if self.is_type(&first) {
            return self.declarations(into);
        }
        // `x = spawn f(…);` and `x[i] = spawn f(…);`.
        let start = self.at;
        if first.kind == Kind::Word {
            let name = self.name()?;
            let index = if self.skip("[") { Some(self.until(&["]"])?.0) } else { None };
            if self.next_is("=") && self.tokens.get(self.at + 1).is_some_and(is_spawn) {
                self.at += 1;
                let spawn = self.spawn(Some(Slot { name, index }))?;
                into.push(spawn);
                return self.expect(";");
            }
        }
        self.at = start;
        let (expression, _) = self.until(&[";"])?;
        into.push(Statement::Expression(expression));
        Ok(())
    }

    fn declarations(&mut self, into: &mut Vec<Statement<'a>>) -> Result<()> {
        let base = self.ty()?;
        let mut ty = base.clone();
        loop {
            let line = self.line();
            let name = self.name()?;
            let length = if self.skip("[") { Some(self.until(&["]"])?.0) } else { None };
            if self.next_is("[") {
                return self.error(format!("`{name}` has two dimensions; give it one"));
            }
            let variable = Variable { ty, name, length, line };
            if self.next_is("=") && self.tokens.get(self.at + 1).is_some_and(is_spawn) {
                self.at += 1;
                into.push(Statement::Declare { variable, value: None });
                let spawn = self.spawn(Some(Slot { name, index: None }))?;
                into.push(spawn);
                let end = self.take()?;
                if end.is(";") {
                    return Ok(());
                }
                if !end.is(",") {
                    return Err(CilkError::new(end.line, format!("`{}` after a spawn", end.text)));
                }
            } else {
                let has_value = self.skip("=");
                let (value, end) = self.until(&[",", ";"])?;
                if !has_value && !value.is_empty() {
                    return Err(CilkError::new(
                        line,
                        format!("the declaration of `{name}` is not understood"),
                    ));
                }
                into.push(Statement::Declare { variable, value: has_value.then_some(value) });
                if end == ";" {
                    return Ok(());
                }
            }
            ty = base.trim_end_matches([' ', '*']).to_string();
            while self.skip("*") {
                ty += " *";
            }
        }
    }

    /// `spawn f(…)`.
    fn spawn(&mut self, slot: Option<Slot<'a>>) -> Result<Statement<'a>> {
        let line = self.take()?.line;
        let callee = self.name()?;
        self.expect("(")?;
        let mut arguments = Vec::new();
        if !self.skip(")") {
            loop {
                let (argument, end) = self.until(&[",", ")"])?;
                arguments.push(argument);
                if end == ")" {
                    break;
                }
            }
        }
        Ok(Statement::Spawn { slot, callee, arguments, line })
    }
}
