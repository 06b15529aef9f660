//! The source's own macros, as far as it matters which variables are behind them.

use std::collections::{BTreeMap, BTreeSet};

use crate::lex::{Kind, Token, lex};
use crate::parse::{is_spawn, is_sync};
use crate::syntax::Item;
use crate::{CilkError, Result};

/// Most tokens of an expression with its macros replaced.
const MOST_TOKENS: usize = 1 << 16;

struct Macro<'a> {
    parameters: Option<Vec<&'a str>>,
    body: Vec<Token<'a>>,
}

/// By name, what is defined. A macro inside an `#if` can have several definitions.
#[derive(Default)]
pub(crate) struct Macros<'a>(BTreeMap<&'a str, Vec<Macro<'a>>>);

impl<'a> Macros<'a> {
    pub(crate) fn of(items: &'a [Item<'a>]) -> Result<Macros<'a>> {
        let mut macros = Macros::default();
        for item in items {
            if let Item::Other { text, line } = item
                && let Some(definition) = text.strip_prefix('#').map(str::trim_start)
                && let Some(rest) = definition.strip_prefix("define")
                && let Ok(tokens) = lex(rest)
            {
                let tokens: Vec<Token<'a>> = tokens.into_iter().filter(|token| !token.is("\\")).collect();
                macros.define(&tokens, *line)?;
            }
        }
        Ok(macros)
    }

    fn define(&mut self, tokens: &[Token<'a>], line: u32) -> Result<()> {
        let Some((name, mut body)) = tokens.split_first() else { return Ok(()) };
        let mut parameters = None;
        if body.first().is_some_and(|open| open.is("(") && open.start == name.end()) {
            let end = body.iter().position(|token| token.is(")")).unwrap_or(body.len() - 1);
            let names = body[..end].iter().filter(|token| token.kind == Kind::Word);
            parameters = Some(names.map(|token| token.text).collect());
            body = &body[end + 1..];
        }
        let error = |message: &str| Err(CilkError::new(line, format!("the macro `{}` {message}", name.text)));
        if body.iter().any(|token| is_spawn(token) || is_sync(token)) {
            return error("hides a spawn or a sync; write it out");
        }
        if body.windows(2).any(|pair| pair[0].is("#") && pair[1].is("#")) {
            return error("joins words by `##`; write them out");
        }
        self.0.entry(name.text).or_default().push(Macro { parameters, body: body.to_vec() });
        Ok(())
    }

    /// The number that a macro stands for, if it has one definition and that is a number.
    pub(crate) fn number(&self, name: &str) -> Option<&'a str> {
        match &self.0.get(name)?[..] {
            [Macro { parameters: None, body }] => match &body[..] {
                [token] if token.kind == Kind::Number => Some(token.text),
                _ => None,
            },
            _ => None,
        }
    }

    /// An expression with its macros replaced. All definitions of a macro appear, one after the other.
    pub(crate) fn replaced(&self, tokens: &[Token<'a>]) -> Result<Vec<Token<'a>>> {
        let mut all = Vec::new();
        self.replace(tokens, &mut Vec::new(), &mut all)?;
        Ok(all)
    }

    /// The words of an expression and of all macros in it.
    pub(crate) fn words(&self, tokens: &[Token<'a>]) -> BTreeSet<&'a str> {
        let tokens = self.replaced(tokens).unwrap_or_else(|_| tokens.to_vec());
        tokens.iter().filter(|token| token.kind == Kind::Word).map(|token| token.text).collect()
    }

    fn replace(
        &self,
        tokens: &[Token<'a>],
        within: &mut Vec<&'a str>,
        into: &mut Vec<Token<'a>>,
    ) -> Result<()> {
        let mut at = 0;
        while let Some(&token) = tokens.get(at) {
            at += 1;
            if into.len() >= MOST_TOKENS {
                return Err(CilkError::new(token.line, "the macros of this expression are too long"));
            }
            // In itself a macro is not replaced.
            let definitions = self.0.get(token.text).filter(|_| !within.contains(&token.text));
            let Some(definitions) = definitions else {
                into.push(token);
                continue;
            };
            let (arguments, end) = arguments(&tokens[at..]);
            if definitions.iter().any(|definition| definition.parameters.is_some()) {
                at += end;
            }
            for Macro { parameters, body } in definitions {
                let mut tokens = Vec::new();
                for part in body {
                    let parameter = parameters.iter().flatten().position(|name| part.is(name));
                    match parameter.and_then(|number| arguments.get(number)) {
                        Some(argument) => tokens.extend(argument),
                        None => tokens.push(Token { line: token.line, ..*part }),
                    }
                    if tokens.len() > MOST_TOKENS {
                        return Err(CilkError::new(token.line, "the macros of this expression are too long"));
                    }
                }
                within.push(token.text);
                self.replace(&tokens, within, into)?;
                within.pop();
            }
        }
        Ok(())
    }
}

/// The arguments in brackets with which some tokens begin, and where they end.
fn arguments<'a>(tokens: &[Token<'a>]) -> (Vec<Vec<Token<'a>>>, usize) {
    let mut all = vec![Vec::new()];
    let mut open = 0usize;
    for (at, token) in tokens.iter().enumerate() {
        match token.text {
            "(" | "[" => open += 1,
            ")" | "]" => open = open.saturating_sub(1),
            _ => {}
        }
        match open {
            0 if at == 0 => return (Vec::new(), 0),
            0 => return (all, at + 1),
            1 if at == 0 => {}
            1 if token.is(",") => all.push(Vec::new()),
            _ => all.last_mut().into_iter().for_each(|last| last.push(*token)),
        }
    }
    (Vec::new(), 0)
}
