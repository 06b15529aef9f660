//! `warploom diff`: two runs side by side, by line and by lock.

mod changes;
mod input;

use std::fmt::Write;
use std::path::Path;

use serde_json::{Value, json};

use crate::cli::DiffOptions;
use crate::failure::{Exit, Failure};
use crate::output::check_writable;
use crate::report;
use crate::run::percent;
use crate::term::{self, counted, grouped};
use changes::{Changes, Number, Pair, line_time};
use input::{Line, Run, Word, read};

/// Compares two runs and prints what changed.
pub(crate) fn diff(options: &DiffOptions) -> Result<Exit, Failure> {
    options.report.iter().try_for_each(|file| check_writable(file))?;
    let (a, profile_a) = read(&options.a)?;
    let (b, profile_b) = read(&options.b)?;
    let changes = Changes::between((&a, &profile_a), (&b, &profile_b));
    let runs = [(&options.a, &a), (&options.b, &b)];
    if let Some(file) = &options.report {
        report::write(file, &page(runs, &changes))?;
    }
    match options.json {
        true => term::print(&format!("{}\n", object(runs, &changes)))?,
        false => term::print(&text(runs, &changes, options.lines.into()))?,
    }
    Ok(Exit::Good)
}

type Runs<'a, File> = [(File, &'a Run); 2];

fn object(runs: Runs<'_, impl AsRef<Path>>, changes: &Changes) -> Value {
    let run = |(file, run): &(_, &Run)| {
        let file: &Path = AsRef::<Path>::as_ref(file);
        json!({ "file": file.display().to_string(), "title": run.title(), "cycles": run.cycles })
    };
    let mut object = json!(changes);
    object["a"] = run(&(&runs[0].0, runs[0].1));
    object["b"] = run(&(&runs[1].0, runs[1].1));
    object["error"] = Value::Null;
    object
}

fn page(runs: Runs<'_, impl AsRef<Path>>, changes: &Changes) -> report::Page {
    let [a, b] = [0, 1].map(|at| runs[at].0.as_ref().display().to_string());
    report::Page { title: format!("{a} and {b}"), diff: object(runs, changes), ..report::Page::default() }
}

fn text(runs: Runs<'_, impl AsRef<Path>>, changes: &Changes, shown: usize) -> String {
    let mut text = String::new();
    for (name, (file, run)) in ["A", "B"].into_iter().zip(&runs) {
        let _ = writeln!(text, "{name}  {}: {}", file.as_ref().display(), run.title());
    }
    let _ = writeln!(text, "\n{:<24}{:>16}{:>16}{:>10}", "", "A", "B", "change");
    for Number { name, a, b } in &changes.numbers {
        let of = |number: &Option<f64>| number.map_or_else(|| "-".to_string(), number_text);
        let change = a.zip(*b).filter(|(a, _)| *a > 0.0);
        let change = change.map(|(a, b)| format!("{:+.1}%", 100.0 * (b / a - 1.0))).unwrap_or_default();
        let _ = writeln!(text, "{name:<24}{:>16}{:>16}{change:>10}", of(a), of(b));
    }
    let all = changes.categories.iter().map(|pair| pair.a).sum();
    let _ = writeln!(text, "\nwarp time by category, in cycles; the change as a part of A's warp time");
    for Pair { name, a, b } in &changes.categories {
        let _ =
            writeln!(text, "  {name:<22}{:>16}{:>16}{:>10}", grouped(*a), grouped(*b), change(*a, *b, all));
    }
    text + &lines_text(&changes.lines, shown, all) + &words_text(&changes.words, shown)
}

fn lines_text(lines: &[Pair<Option<Line>>], shown: usize, all: u64) -> String {
    let mut text = String::new();
    let changed = || lines.iter().filter(|pair| line_time(&pair.a) != line_time(&pair.b));
    for Pair { a, b, .. } in changed().take(shown) {
        let (from, to) = (line_time(a), line_time(b));
        let _ = writeln!(
            text,
            "{:>9}{:>16}{:>16}  {}",
            change(from, to, all),
            grouped(from),
            grouped(to),
            place(a.as_ref(), b.as_ref())
        );
    }
    if text.is_empty() {
        return "\nno line takes more or less time\n".to_string();
    }
    let more = changed().count().saturating_sub(shown);
    if more > 0 {
        let _ = writeln!(text, "           and {} (--lines {})", counted(more as u64, "line"), more + shown);
    }
    let head = "\nlines, in warp cycles; what changed most first\n";
    format!("{head}{:>9}{:>16}{:>16}  line\n{text}", "change", "A", "B")
}

/// Where a line is in both runs.
fn place(a: Option<&Line>, b: Option<&Line>) -> String {
    match (a, b) {
        (Some(a), Some(b)) if a.line == b.line && a.says() == b.says() => format!("{}: {}", a.line, a.says()),
        (Some(a), Some(b)) if a.says() == b.says() => format!("{} (now {}): {}", a.line, b.line, a.says()),
        (Some(a), Some(b)) => format!("{}: {} (now {})", b.line, a.says(), b.says()),
        (Some(a), None) => format!("{}: {} (only in A)", a.line, a.says()),
        (None, Some(b)) => format!("{}: {} (only in B)", b.line, b.says()),
        (None, None) => String::new(),
    }
}

fn words_text(words: &[Pair<Option<Word>>], shown: usize) -> String {
    if words.is_empty() {
        return String::new();
    }
    let width = words.iter().take(shown).map(|pair| pair.name.len()).max().unwrap_or(0).max(4);
    let mut text = format!(
        "\nlocks and flags, A and B below each other; times in cycles, on average; what changed most first\n  \
         {:<width$} {:>3}{:>12}{:>12}{:>16}{:>10}{:>10}{:>10}{:>7}\n",
        "word", "", "taken", "failed", "waited in all", "wait", "hold", "hand-off", "queue"
    );
    for Pair { name, a, b } in words.iter().take(shown) {
        for (run, word, name) in [("A", a, name.as_str()), ("B", b, "")] {
            let Some(word) = word else {
                let _ = writeln!(text, "  {name:<width$} {run:>3}{:>12}", "-");
                continue;
            };
            let mean = |span: input::Span| span.mean().map_or_else(|| "-".to_string(), grouped);
            let wait = if word.acquired > 0 { word.wait } else { word.satisfied };
            let _ = writeln!(
                text,
                "  {name:<width$} {run:>3}{:>12}{:>12}{:>16}{:>10}{:>10}{:>10}{:>7}",
                grouped(word.acquired),
                grouped(word.failed()),
                grouped(word.waited()),
                mean(wait),
                mean(word.hold),
                mean(word.hand_off),
                grouped(word.longest_queue)
            );
        }
    }
    let more = words.len().saturating_sub(shown);
    if more > 0 {
        let _ = writeln!(text, "  and {} (--lines {})", counted(more as u64, "word"), words.len());
    }
    text + &term::legend(&WORDS)
}

/// What the columns of the locks and flags mean.
const WORDS: [(&str, &str); 6] = [
    ("taken, failed", "tries that took the lock, and that did not, in threads"),
    ("waited in all", "cycles that threads waited for it, all together"),
    ("wait", "from a thread's first try to the one that took it, or until it saw what it waited for"),
    ("hold", "from there to the release"),
    ("hand-off", "from a release to the next acquisition, if a thread was waiting"),
    ("queue", "most threads that waited at a time"),
];

/// A change as a part of A's warp time.
fn change(a: u64, b: u64, all: u64) -> String {
    let sign = if b < a { "-" } else { "+" };
    format!("{sign}{:.1}%", percent(a.abs_diff(b), all))
}

fn number_text(number: f64) -> String {
    if number.fract() == 0.0 || number >= 1000.0 {
        grouped(number.round() as u64)
    } else {
        format!("{number:.3}")
    }
}
