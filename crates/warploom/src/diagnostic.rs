//! Load errors with the lines they point at.

use std::fmt::Write;

use warploom_ptx::{Diagnostic, LoadError};

/// Shows every diagnostic of a load error with its source line, in colour if asked for.
///
/// ```text
/// error: no such register
///   --> k.ptx:12:9
///    |
/// 12 |     mov.u32 %r7, 5;
///    |             ^^^ not declared
///    = help: declare it with .reg
/// ```
pub fn render(error: &LoadError, color: bool) -> String {
    let shown = error.diagnostics.iter().map(|d| render_one(error, d, color));
    shown.collect::<Vec<_>>().join("\n\n")
}

/// Lines longer than this are shown in part.
const WIDTH: usize = 110;

/// Columns between tab stops.
const TAB: usize = 4;

fn render_one(error: &LoadError, diagnostic: &Diagnostic, color: bool) -> String {
    let (red, blue, bold, plain) =
        if color { ("\x1b[1;31m", "\x1b[1;34m", "\x1b[1m", "\x1b[0m") } else { ("", "", "", "") };
    let source = &error.source;
    let (line, column) = source.line_col(diagnostic.span.start);
    let text = source.text.lines().nth(line as usize - 1).unwrap_or("");
    let length = (diagnostic.span.end.saturating_sub(diagnostic.span.start)) as usize;
    let (text, start, width) = window(text, column as usize - 1, length);
    let number = line.to_string();
    let margin = " ".repeat(number.len());

    let mut out = format!("{red}error{plain}{bold}: {}{plain}\n", diagnostic.message);
    let _ = write!(out, "{margin}{blue}-->{plain} {}:{line}:{column}", source.name);
    if !text.is_empty() {
        let _ = write!(out, "\n{margin} {blue}|{plain}\n{blue}{number} |{plain} {text}");
        let marks = format!("{}{red}{} {}", " ".repeat(start), "^".repeat(width), diagnostic.label);
        let _ = write!(out, "\n{margin} {blue}|{plain} {}{plain}", marks.trim_end());
    }
    if let Some(help) = &diagnostic.help {
        let _ = write!(out, "\n{margin} {blue}={plain} {bold}help{plain}: {help}");
    }
    out
}

/// The part of a line around a range of its bytes, as it is shown, and the columns of the range in it.
fn window(line: &str, start: usize, length: usize) -> (String, usize, usize) {
    let mut cells = Vec::new();
    let (mut from, mut to) = (None, None);
    for (at, c) in line.char_indices() {
        if at >= start {
            from.get_or_insert(cells.len());
        }
        if at >= start.saturating_add(length) {
            to.get_or_insert(cells.len());
        }
        match c {
            '\t' => cells.resize((cells.len() / TAB + 1) * TAB, ' '),
            c if c.is_control() => cells.push('·'),
            c => cells.push(c),
        }
    }
    let from = from.unwrap_or(cells.len());
    let to = to.unwrap_or(cells.len()).max(from + 1);
    let first = if to > WIDTH { from.saturating_sub(WIDTH / 3) } else { 0 };
    let last = cells.len().min(first + WIDTH);
    let mut text: String = cells[first.min(last)..last].iter().collect();
    let mut shift = 0;
    if first > 0 {
        text.insert_str(0, "… ");
        shift = 2;
    }
    if last < cells.len() {
        text.push_str(" …");
    }
    (text.trim_end().to_string(), from - first + shift, to.min(last.max(from + 1)) - from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use warploom_isa::{Source, Span};
    use warploom_ptx::Diagnostic;

    fn error(text: &str, start: u32, end: u32) -> LoadError {
        LoadError {
            source: Source { name: "k.ptx".into(), text: text.into(), files: Vec::new() },
            diagnostics: vec![
                Diagnostic::new(Span { start, end }, "no such thing").label("this").help("try that"),
            ],
        }
    }

    #[test]
    fn points_at_the_line() {
        let text = render(&error(".version 6.3\n\tfoo.bar\tx; // ü\n", 14, 21), false);
        let expected = "\
error: no such thing
 --> k.ptx:2:2
  |
2 |     foo.bar x; // ü
  |     ^^^^^^^ this
  = help: try that";
        assert_eq!(text, expected);
    }

    #[test]
    fn shows_part_of_a_long_line() {
        let line = format!("{}BAD{}", "a ".repeat(500), " b".repeat(500));
        let text = render(&error(&line, 1000, 1003), false);
        let shown = text.lines().nth(3).unwrap();
        assert!(shown.starts_with("1 | … ") && shown.ends_with(" …") && shown.chars().count() < WIDTH + 10);
        let mark = text.lines().nth(4).unwrap().chars().position(|c| c == '^').unwrap();
        assert_eq!(shown.chars().skip(mark).take(3).collect::<String>(), "BAD");
    }

    #[test]
    fn survives_spans_outside_the_text() {
        for (start, end) in [(0, 0), (1, 2), (100, 200), (2, 1), (0, u32::MAX)] {
            for text in ["", "abc", "ü\n", "\n\n"] {
                assert!(render(&error(text, start, end), true).contains("no such thing"));
            }
        }
    }
}
