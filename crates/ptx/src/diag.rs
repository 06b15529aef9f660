//! Errors that point at the text.

use std::fmt;

use warploom_isa::{Source, Span};

/// One thing wrong with the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// What is wrong, one sentence without a period: "`wgmma.mma_async` is not modelled".
    pub message: String,
    /// The offending text.
    pub span: Span,
    /// A few words at the span ("no such register"), may be empty.
    pub label: String,
    /// What to do about it.
    pub help: Option<String>,
}

impl Diagnostic {
    /// An error at a place.
    pub fn new(span: Span, message: impl Into<String>) -> Self {
        Diagnostic { message: message.into(), span, label: String::new(), help: None }
    }

    /// Adds words at the place.
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = label.into();
        self
    }

    /// Adds advice.
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

/// Why a text does not load: at least one diagnostic, and the text they point into.
#[derive(Clone, Debug)]
pub struct LoadError {
    /// The text.
    pub source: Source,
    /// In text order, at most [`MAX_DIAGNOSTICS`].
    pub diagnostics: Vec<Diagnostic>,
}

/// More errors than this are not shown; the first ones cause the others anyway.
pub const MAX_DIAGNOSTICS: usize = 20;

impl std::error::Error for LoadError {}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, d) in self.diagnostics.iter().enumerate() {
            if i > 0 {
                writeln!(f)?;
            }
            let (line, col) = self.source.line_col(d.span.start);
            write!(f, "{}:{line}:{col}: {}", self.source.name, d.message)?;
        }
        Ok(())
    }
}
