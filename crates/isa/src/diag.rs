//! Diagnostics: errors that point into the source text. A front end collects [`Diagnostic`]s and returns them as one
//! [`LoadError`], which renders itself for a terminal.

use std::fmt::{self, Write as _};

use crate::module::{Source, Span};

/// One error, with its place in the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// One sentence without a period: "`wgmma.mma_async` is not modelled".
    pub message: String,
    /// The offending text, which the rendering underlines.
    pub span: Span,
    /// A few words beside the underline ("no such register"); may be empty.
    pub label: String,
    /// Advice on how to fix it.
    pub help: Option<String>,
    /// The text is good, but asks for what the model does not have. Only the function around it is refused.
    pub not_modelled: bool,
}

impl Diagnostic {
    /// An error without label and help. Very long messages are cut.
    pub fn new(span: Span, message: impl Into<String>) -> Self {
        Diagnostic {
            message: clip(message.into()),
            span,
            label: String::new(),
            help: None,
            not_modelled: false,
        }
    }

    /// An error about something that the model does not have.
    pub fn not_modelled(span: Span, message: impl Into<String>) -> Self {
        Diagnostic { not_modelled: true, ..Diagnostic::new(span, message) }
    }

    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = clip(label.into());
        self
    }

    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(clip(help.into()));
        self
    }
}

/// Cuts a message that quotes a very long name.
fn clip(mut text: String) -> String {
    if text.len() > MAX_MESSAGE {
        text.truncate(char_boundary(&text, MAX_MESSAGE));
        text.push('…');
    }
    text
}

/// The start of the character that byte `i` belongs to.
fn char_boundary(text: &str, mut i: usize) -> usize {
    while !text.is_char_boundary(i) {
        i -= 1;
    }
    i
}

/// Why a text does not load: at least one diagnostic, and the text they point into.
#[derive(Clone, Debug)]
pub struct LoadError {
    pub source: Source,
    /// In text order, at most [`MAX_DIAGNOSTICS`].
    pub diagnostics: Vec<Diagnostic>,
}

/// Later errors are dropped: mostly the first ones cause them.
pub const MAX_DIAGNOSTICS: usize = 20;

/// Longer messages are cut, in bytes. Large enough for most mangled template names.
const MAX_MESSAGE: usize = 1000;

/// Longer lines are shown in part, in bytes.
const MAX_SHOWN: usize = 120;

impl LoadError {
    /// Sorts diagnostics by position and keeps the first [`MAX_DIAGNOSTICS`].
    pub fn new(source: Source, mut diagnostics: Vec<Diagnostic>) -> Self {
        diagnostics.sort_by_key(|d| d.span.start);
        diagnostics.truncate(MAX_DIAGNOSTICS);
        LoadError { source, diagnostics }
    }

    /// The errors for a terminal: each with its file, line, column and an excerpt of the text.
    pub fn render(&self, color: bool) -> String {
        let mut out = String::new();
        for (i, diagnostic) in self.diagnostics.iter().enumerate() {
            if i > 0 {
                out.push('\n');
            }
            render_one(&mut out, &self.source, diagnostic, &if color { COLOR } else { PLAIN });
        }
        out
    }
}

impl std::error::Error for LoadError {}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, d) in self.diagnostics.iter().enumerate() {
            if i > 0 {
                writeln!(f)?;
            }
            let (file, line, column) = self.source.place(d.span.start);
            write!(f, "{file}:{line}:{column}: {}", d.message)?;
        }
        Ok(())
    }
}

/// Terminal escape sequences.
struct Style {
    error: &'static str,
    bold: &'static str,
    frame: &'static str,
    off: &'static str,
}

const COLOR: Style = Style { error: "\x1b[1;31m", bold: "\x1b[1m", frame: "\x1b[1;34m", off: "\x1b[0m" };
const PLAIN: Style = Style { error: "", bold: "", frame: "", off: "" };

fn render_one(out: &mut String, source: &Source, diagnostic: &Diagnostic, style: &Style) {
    let Style { error, bold, frame, off } = style;
    let (file, line, column) = source.place(diagnostic.span.start);
    let margin = " ".repeat(line.to_string().len());
    // Writing to a string cannot fail.
    let _ = writeln!(out, "{error}error{off}{bold}: {}{off}", diagnostic.message);
    let _ = writeln!(out, "{margin}{frame}-->{off} {file}:{line}:{column}");
    if let Some((text, before, width)) = excerpt(&source.text, diagnostic.span) {
        let label =
            if diagnostic.label.is_empty() { String::new() } else { format!(" {}", diagnostic.label) };
        let (gap, carets) = (" ".repeat(before), "^".repeat(width));
        let _ = writeln!(out, "{margin} {frame}|{off}");
        let _ = writeln!(out, "{frame}{line} |{off} {text}");
        let _ = writeln!(out, "{margin} {frame}|{off} {gap}{error}{carets}{label}{off}");
    }
    if let Some(help) = &diagnostic.help {
        let _ = writeln!(out, "{margin} {frame}={off} {bold}help{off}: {help}");
    }
}

/// The line of a span, ready to print, with the span's position and width in it. Looks only at the part of the text
/// that it shows: a line can be as long as the file.
fn excerpt(text: &str, span: Span) -> Option<(String, usize, usize)> {
    let floor = |i: usize| char_boundary(text, i);
    let start = floor((span.start as usize).min(text.len()));
    let end = floor((span.end as usize).clamp(start, text.len()));
    let window_start = floor(start.saturating_sub(MAX_SHOWN / 2));
    let window_end = floor((start + MAX_SHOWN).min(text.len()));
    let line_start = text[window_start..start].rfind('\n').map(|i| window_start + i + 1);
    let line_end = text[start..window_end].find('\n').map_or(window_end, |i| start + i);
    let cut_front = line_start.is_none() && window_start > 0;
    let cut_back = line_end == window_end && window_end < text.len() && !text[window_end..].starts_with('\n');
    let line_start = line_start.unwrap_or(window_start);
    let line = &text[line_start..line_end];
    if line.trim().is_empty() {
        return None;
    }
    let mut shown = String::from(if cut_front { "…" } else { "" });
    let (mut before, mut width) = (shown.chars().count(), 0);
    for (i, c) in line.char_indices() {
        let printed = match c {
            '\t' => 4,
            '\r' => 0,
            _ => 1,
        };
        match c {
            '\t' => shown.push_str("    "),
            '\r' => {}
            c if c.is_control() => shown.push('\u{FFFD}'),
            c => shown.push(c),
        }
        let position = line_start + i;
        before += if position < start { printed } else { 0 };
        width += if (start..end).contains(&position) { printed } else { 0 };
    }
    if cut_back {
        shown.push('…');
    }
    Some((shown.trim_end().to_string(), before, width.max(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn render(text: &str, start: u32, end: u32) -> String {
        let source = Source { name: "k.ptx".into(), text: text.into(), files: Vec::new() };
        let diagnostic = Diagnostic::new(Span { start, end }, "wrong").label("here").help("do right");
        LoadError::new(source, vec![diagnostic]).render(false)
    }

    #[test]
    fn shows_line_and_place() {
        let shown = render("a;\n\tmov.u32 x, y;\r\nb;\n", 12, 13);
        let wanted = "error: wrong\n --> k.ptx:2:10\n  |\n2 |     mov.u32 x, y;\n  |             ^ here\n\
            \x20 = help: do right\n";
        assert_eq!(shown, wanted);
    }

    #[test]
    fn cuts_long_lines() {
        let text = "x".repeat(1_000_000);
        let shown = render(&text, 500_000, 900_000);
        assert!(shown.len() < 1000 && shown.contains("…"), "{shown}");
    }

    #[test]
    fn survives_any_span() {
        for text in ["", "\n", "äöü\n\0", "abc"] {
            for start in 0..8 {
                for end in start..9 {
                    render(text, start, end);
                }
            }
        }
    }
}
