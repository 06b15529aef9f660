//! From tokens to the syntax tree.

use std::collections::BTreeMap;

use crate::lex::{Kind, Token, lex};
use crate::syntax::{Expression, Function, Item, Slot, Statement, Variable};
use crate::{CilkError, Result};

/// Words of which types consist.
const TYPE_WORDS: [&str; 16] = [
    "void", "char", "short", "int", "long", "float", "double", "signed", "unsigned", "const", "bool",
    "_Bool", "size_t", "volatile", "struct", "enum",
];

/// The types of `<stdint.h>`.
pub(crate) const FIXED_WIDTH: [(&str, &str); 8] = [
    ("int8_t", "signed char"),
    ("uint8_t", "unsigned char"),
    ("int16_t", "short"),
    ("uint16_t", "unsigned short"),
    ("int32_t", "int"),
    ("uint32_t", "unsigned"),
    ("int64_t", "long"),
    ("uint64_t", "unsigned long"),
];

/// Names that C allows and CUDA C++ does not.
const RESERVED: [&str; 61] = [
    "alignas",
    "alignof",
    "and",
    "and_eq",
    "asm",
    "bitand",
    "bitor",
    "catch",
    "char16_t",
    "char32_t",
    "class",
    "compl",
    "const_cast",
    "constexpr",
    "decltype",
    "delete",
    "dynamic_cast",
    "explicit",
    "export",
    "false",
    "friend",
    "mutable",
    "namespace",
    "new",
    "noexcept",
    "not",
    "not_eq",
    "nullptr",
    "operator",
    "or",
    "or_eq",
    "private",
    "protected",
    "public",
    "reinterpret_cast",
    "static_assert",
    "static_cast",
    "template",
    "this",
    "thread_local",
    "throw",
    "true",
    "try",
    "typeid",
    "typename",
    "using",
    "virtual",
    "wchar_t",
    "xor",
    "xor_eq",
    "assert",
    "atomicAdd",
    "atomicCAS",
    "atomicExch",
    "atomicMax",
    "atomicMin",
    "blockDim",
    "blockIdx",
    "gridDim",
    "threadIdx",
    "warpSize",
];

/// Statements of C that are not understood here.
const REFUSED: [&str; 6] = ["switch", "case", "default", "goto", "asm", "cilk_for"];

/// Kinds of variables inside functions that tasks cannot have.
const STORAGE: [&str; 4] = ["static", "extern", "register", "typedef"];

/// How deep statements may be nested.
const DEEPEST: usize = 64;

struct Parser<'a> {
    source: &'a str,
    tokens: Vec<Token<'a>>,
    at: usize,
    /// Words that begin types, and what they stand for.
    types: BTreeMap<&'a str, String>,
    depth: usize,
    /// `#if`s that are open.
    conditions: usize,
}

/// A source as it was read.
pub(crate) struct Parsed<'a> {
    pub items: Vec<Item<'a>>,
    /// Words that begin types.
    pub types: Vec<&'a str>,
}

/// Reads a source.
pub(crate) fn parse(source: &str) -> Result<Parsed<'_>> {
    let tokens = lex(source)?;
    let own = TYPE_WORDS.into_iter().map(|word| (word, word));
    let types = own.chain(FIXED_WIDTH).map(|(word, meaning)| (word, meaning.to_string())).collect();
    let mut parser = Parser { source, tokens, at: 0, types, depth: 0, conditions: 0 };
    let mut items = Vec::new();
    while parser.peek().is_some() {
        parser.item(&mut items)?;
    }
    Ok(Parsed { items, types: parser.types.into_keys().collect() })
}

pub(crate) fn is_spawn(token: &Token<'_>) -> bool {
    token.is("spawn") || token.is("cilk_spawn")
}

pub(crate) fn is_sync(token: &Token<'_>) -> bool {
    token.is("sync") || token.is("cilk_sync")
}

fn directive(token: &Token<'_>) -> CilkError {
    let line = token.text.lines().next().unwrap_or_default();
    CilkError::new(token.line, format!("`{line}` is inside a function; move it outside"))
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
        let error = |message: String| Err(CilkError::new(token.line, message));
        if token.kind != Kind::Word || self.types.contains_key(token.text) {
            return error(format!("`{}` where a name must be", token.text));
        }
        if RESERVED.contains(&token.text)
            || token.text.starts_with("__")
            || token.text.starts_with("cilk_") && !is_spawn(&token) && !is_sync(&token)
        {
            return error(format!("`{}` has another meaning in the kernels; take another name", token.text));
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
            let directive = first.text[1..].trim_start();
            if directive.starts_with("if") {
                self.conditions += 1;
            } else if directive.starts_with("endif") {
                self.conditions = self.conditions.saturating_sub(1);
            }
            // What is included is for the plain program; kernels bring what they need.
            if !directive.starts_with("include") {
                items.push(Item::Other { text: first.text, line: first.line });
            }
            return Ok(());
        }
        if first.is(";") {
            return Ok(());
        }
        let follows =
            |at: usize, signs: &[&str]| self.tokens.get(at).is_some_and(|token| signs.contains(&token.text));
        let defines = (first.is("struct") || first.is("enum"))
            && (follows(self.at, &["{"]) || follows(self.at + 1, &["{", ";"]));
        if first.is("typedef") || defines {
            let start = self.at;
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
                let end = std::mem::replace(&mut self.at, start);
                // What is more than another name for a number or a pointer stands for itself, and no task can hold it.
                let meaning = self.ty().ok().filter(|_| self.next_is(last.text) && self.at + 2 == end);
                self.types.insert(last.text, meaning.unwrap_or_else(|| last.text.to_string()));
                self.at = end;
            }
            items.push(Item::Other { text: self.text_from(first.start), line: first.line });
            return Ok(());
        }
        self.at -= 1;
        while ["cilk", "static", "inline", "extern"].iter().any(|word| self.skip(word)) {}
        let start = self.tokens.get(self.at).map_or(self.source.len(), |token| token.start);
        let line = self.line();
        let ty = self.ty()?;
        if self.next_is("main") {
            return self.error(
                "`main` is not understood: leave it out, and give the call on the command line, as in 'fib(24)'",
            );
        }
        let name = self.name()?;
        if self.conditions > 0 {
            return Err(CilkError::new(line, format!("`{name}` is inside an `#if`; only constants can be")));
        }
        if !self.skip("(") {
            return self.globals(line, &ty, name, items);
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

    fn globals(&mut self, line: u32, ty: &str, first: &'a str, items: &mut Vec<Item<'a>>) -> Result<()> {
        let start = self.tokens[self.at - 1].start;
        let pointer = |name: &str| {
            let message = format!(
                "`{name}` is a pointer outside functions, whose address means nothing on the device; keep an index"
            );
            Err(CilkError::new(line, message))
        };
        if ty.ends_with('*') {
            return pointer(first);
        }
        let mut names = vec![first];
        let mut open = 0usize;
        loop {
            let token = self.take()?;
            match token.text {
                "(" | "[" | "{" => open += 1,
                ")" | "]" | "}" => open = open.saturating_sub(1),
                "," if open == 0 => {
                    let is_pointer = self.skip("*");
                    names.push(self.name()?);
                    if is_pointer {
                        return pointer(names[names.len() - 1]);
                    }
                }
                ";" if open == 0 => break,
                _ => {}
            }
        }
        // Constants are written before a run like all others, so they are in memory that can be written.
        let words: Vec<&str> = ty.split(' ').filter(|word| *word != "const").collect();
        let text = format!("{} {}", words.join(" "), self.text_from(start));
        items.push(Item::Globals { text, names, line });
        Ok(())
    }

    fn is_type(&self, token: &Token<'_>) -> bool {
        token.kind == Kind::Word && self.types.contains_key(token.text)
    }

    /// A type, with aliases replaced by what they stand for.
    fn ty(&mut self) -> Result<String> {
        let mut words: Vec<String> = Vec::new();
        while let Some(token) = self.peek().filter(|token| self.is_type(token)) {
            self.at += 1;
            match token.text {
                "struct" => words.push(format!("struct {}", self.take()?.text)),
                "enum" => {
                    self.take()?;
                    words.push("int".to_string());
                }
                _ => words.push(self.types[token.text].clone()),
            }
        }
        if words.is_empty() {
            let found = self.peek().map_or("the end", |token| token.text);
            return self.error(format!("`{found}` where a type must be"));
        }
        while self.skip("*") {
            words.push("*".to_string());
            while self.skip("const") {}
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
            if token.kind == Kind::Directive {
                return Err(directive(&token));
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
        if token.kind == Kind::Directive {
            return Err(directive(&token));
        }
        if STORAGE.contains(&token.text) {
            let message = format!("`{}` inside a function is not understood; move it outside", token.text);
            return self.error(message);
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
            let name = self.take()?.text;
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
        let keyword = self.take()?;
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
        Ok(Statement::Spawn { slot, callee, arguments, line: keyword.line, id: keyword.start })
    }
}
