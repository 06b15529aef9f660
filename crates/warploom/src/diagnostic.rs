//! Load errors with the lines they point at.

use ariadne::{CharSet, Color, Config, IndexType, Label, Report, ReportKind, Source};
use warploom_ptx::LoadError;

/// Shows every diagnostic of a load error with its source line, in colour if asked for.
pub fn render(error: &LoadError, color: bool) -> String {
    let name = error.source.name.as_str();
    let cache = (name, Source::from(error.source.text.to_string()));
    let config = Config::default()
        .with_color(color)
        .with_index_type(IndexType::Byte)
        .with_char_set(CharSet::Unicode)
        .with_tab_width(4);
    let mut out = Vec::new();
    for diagnostic in &error.diagnostics {
        let length = error.source.text.len();
        let start = (diagnostic.span.start as usize).min(length);
        let range = start..(diagnostic.span.end as usize).clamp(start, length);
        let mut report = Report::build(ReportKind::Custom("error", Color::Red), (name, range.clone()))
            .with_config(config)
            .with_message(&diagnostic.message);
        let label = if diagnostic.label.is_empty() { "here" } else { &diagnostic.label };
        report = report.with_label(Label::new((name, range)).with_message(label).with_color(Color::Red));
        if let Some(help) = &diagnostic.help {
            report = report.with_help(help);
        }
        if report.finish().write(&mut (cache.0, &cache.1), &mut out).is_err() {
            return error.to_string();
        }
    }
    String::from_utf8_lossy(&out).trim_end().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use warploom_isa::{Source, Span};
    use warploom_ptx::Diagnostic;

    fn error(text: &str, start: u32, end: u32) -> LoadError {
        LoadError {
            source: Source { name: "k.ptx".into(), text: text.into(), files: Vec::new() },
            diagnostics: vec![Diagnostic::new(Span { start, end }, "no such thing").label("this").help("try that")],
        }
    }

    #[test]
    fn points_at_the_line() {
        let text = render(&error(".version 6.3\n\tfoo.bar\tx; // ü\n", 14, 21), false);
        for part in ["error: no such thing", "k.ptx:2:2", "foo.bar", "this", "try that"] {
            assert!(text.contains(part), "{part:?} is missing in\n{text}");
        }
        assert!(!text.contains('\x1b'));
    }

    #[test]
    fn survives_spans_outside_the_text() {
        for (start, end) in [(0, 0), (100, 200), (2, 1)] {
            assert!(render(&error("", start, end), false).contains("no such thing"));
            assert!(render(&error("abc", start, end), false).contains("no such thing"));
        }
    }
}
