//! The syntax tree: statements as they are, expressions as their tokens.

use crate::lex::Token;

pub(crate) type Expression<'a> = Vec<Token<'a>>;

#[derive(Clone, Debug)]
pub(crate) struct Variable<'a> {
    /// The type without the array's length, words separated by one space: `const unsigned *`.
    pub ty: String,
    pub name: &'a str,
    /// The length of an array.
    pub length: Option<Expression<'a>>,
    pub line: u32,
}

/// Where the result of a spawned task goes: a variable, or an element of an array.
#[derive(Clone, Debug)]
pub(crate) struct Slot<'a> {
    pub name: &'a str,
    pub index: Option<Expression<'a>>,
}

#[derive(Clone, Debug)]
pub(crate) enum Statement<'a> {
    Declare {
        variable: Variable<'a>,
        value: Option<Expression<'a>>,
    },
    Expression(Expression<'a>),
    Spawn {
        slot: Option<Slot<'a>>,
        callee: &'a str,
        arguments: Vec<Expression<'a>>,
        line: u32,
        /// Where it stands in the source, which no other spawn does.
        id: usize,
    },
    Sync {
        line: u32,
    },
    If {
        condition: Expression<'a>,
        then: Vec<Statement<'a>>,
        otherwise: Vec<Statement<'a>>,
    },
    /// `while`, or `for` with an empty start and step.
    While {
        condition: Expression<'a>,
        step: Expression<'a>,
        body: Vec<Statement<'a>>,
    },
    DoWhile {
        condition: Expression<'a>,
        body: Vec<Statement<'a>>,
    },
    Block(Vec<Statement<'a>>),
    Return {
        value: Option<Expression<'a>>,
        line: u32,
    },
    /// `break` or `continue`.
    Jump(&'a str),
}

#[derive(Clone, Debug)]
pub(crate) struct Function<'a> {
    pub ty: String,
    pub name: &'a str,
    pub parameters: Vec<Variable<'a>>,
    pub body: Vec<Statement<'a>>,
    pub line: u32,
    /// The whole text, without `cilk` in front.
    pub text: &'a str,
}

#[derive(Clone, Debug)]
pub(crate) enum Item<'a> {
    Function(Function<'a>),
    /// Variables outside functions: the declaration's text, and their names.
    Globals {
        text: String,
        names: Vec<&'a str>,
        line: u32,
    },
    /// A type or a line of the preprocessor.
    Other {
        text: &'a str,
        line: u32,
    },
}

/// Calls a function for a statement and all statements within it.
pub(crate) fn walk<'s, 'a>(statements: &'s [Statement<'a>], visit: &mut dyn FnMut(&'s Statement<'a>)) {
    for statement in statements {
        visit(statement);
        match statement {
            Statement::If { then, otherwise, .. } => {
                walk(then, visit);
                walk(otherwise, visit);
            }
            Statement::While { body, .. } | Statement::DoWhile { body, .. } | Statement::Block(body) => {
                walk(body, visit);
            }
            _ => {}
        }
    }
}

impl<'a> Statement<'a> {
    /// The line on which it begins, if it has a text of its own.
    pub(crate) fn line(&self) -> Option<u32> {
        match self {
            Statement::Declare { variable, .. } => Some(variable.line),
            Statement::Spawn { line, .. } | Statement::Sync { line } | Statement::Return { line, .. } => {
                Some(*line)
            }
            _ => self.expressions().into_iter().flatten().map(|token| token.line).next(),
        }
    }

    /// The expressions of this statement itself.
    pub(crate) fn expressions<'s>(&'s self) -> Vec<&'s [Token<'a>]> {
        match self {
            Statement::Declare { variable, value } => {
                variable.length.iter().chain(value).map(|e| &e[..]).collect()
            }
            Statement::Expression(expression) => vec![expression],
            Statement::Spawn { slot, arguments, .. } => {
                let index = slot.as_ref().and_then(|slot| slot.index.as_ref());
                index.into_iter().chain(arguments).map(|e| &e[..]).collect()
            }
            Statement::If { condition, .. } | Statement::DoWhile { condition, .. } => vec![condition],
            Statement::While { condition, step, .. } => vec![condition, step],
            Statement::Return { value, .. } => value.iter().map(|e| &e[..]).collect(),
            Statement::Sync { .. } | Statement::Block(_) | Statement::Jump(_) => Vec::new(),
        }
    }
}

/// Whether any statement is a sync, with its line.
pub(crate) fn sync_in(statements: &[Statement<'_>]) -> Option<u32> {
    let mut found = None;
    walk(statements, &mut |statement| {
        if let Statement::Sync { line } = statement {
            found.get_or_insert(*line);
        }
    });
    found
}
