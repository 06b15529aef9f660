//! Cilk-C sources as channel-flow graphs.
//!
//! A source has functions with `spawn` and `sync` (or `cilk_spawn` and `cilk_sync`), helper functions, globals and
//! `#define`s. [`Program::parse`] reads the statements and leaves expressions as they are. Each function that spawns is
//! cut at its `sync`s. Every part becomes a kernel over a stack of channels: [`Program::cuda`] is their source,
//! [`Program::graph`] connects them. [`Program::plain`] is the same program in C, with the keywords removed, whose
//! result the graph's must equal.
//!
//! This crate compiles and runs nothing: that is the command's part. `docs/channels.md` describes the language.

mod cut;
mod emit;
mod layout;
mod lex;
mod macros;
mod parse;
mod plain;
mod program;
mod syntax;

pub use plain::PlainRun;
pub use program::{Call, Program};

/// What is wrong with a source, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {message}")]
pub struct CilkError {
    pub line: u32,
    pub message: String,
}

impl CilkError {
    pub(crate) fn new(line: u32, message: impl Into<String>) -> CilkError {
        CilkError { line, message: message.into() }
    }
}

pub(crate) type Result<T> = std::result::Result<T, CilkError>;
