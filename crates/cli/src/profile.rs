//! A profile for people: what stands out, the hottest lines, locks and flags, who waits for whom, barriers.

use std::fmt::Write;
use std::path::Path;

use serde_json::{Value, json};
use warploom::Report;
use warploom::profile::{Line, Name, Profile, Wait, WordProfile};

use crate::cli::MachineOptions;
use crate::failure::Failure;
use crate::output::write;
use crate::run::{percent, shares, shown_name};
use crate::sources::Sources;
use crate::term::{counted, grouped, legend};

/// Words, edges and barriers that are shown.
const SHOWN: usize = 8;

/// The profile of a report, if it has one. `file` is the kernel's, near which its sources may lie.
pub(crate) fn text(report: &Report, options: &MachineOptions, file: Option<&Path>) -> String {
    match (&report.profile, options.profile) {
        (Some(profile), Some(lines)) => tables(profile, lines.into(), file),
        _ => String::new(),
    }
}

/// A profile with so many of its lines.
pub(crate) fn tables(profile: &Profile, lines: usize, file: Option<&Path>) -> String {
    let mut sources = Sources::of(file);
    let parts = [
        verdict(profile),
        hottest(profile, lines, &mut sources),
        words(profile),
        waits(profile),
        barriers(profile),
    ];
    parts.into_iter().filter(|part| !part.is_empty()).map(|part| format!("\n{part}")).collect()
}

/// Adds the text of source lines to the JSON of a report, so that it says what they were in this run.
pub(crate) fn add_sources(object: &mut Value, file: Option<&Path>) {
    let mut sources = Sources::of(file);
    let Some(Value::Array(lines)) = object.pointer_mut("/profile/lines") else { return };
    for line in lines {
        let source = line["line"].as_str().filter(|place| line["at"] != *place);
        if let Some(text) = source.and_then(|place| sources.line(place)) {
            line["source"] = json!(text);
        }
    }
}

/// Writes who waits for whom, if that was asked for.
pub(crate) fn write_graph(report: &Report, options: &MachineOptions) -> Result<(), Failure> {
    match (&report.profile, &options.profile_graph) {
        (Some(profile), Some(file)) => write(file, dot(profile).as_bytes()),
        _ => Ok(()),
    }
}

/// What the columns of the hottest lines mean.
const LINES: [(&str, &str); 6] = [
    ("time", "part of all warp time; the line below says in which states (docs/profile.md)"),
    ("executions", "times that a warp issued an instruction of the line"),
    ("threads/warp", "active threads per warp, on average"),
    ("trans./access", "transactions per memory access of a warp"),
    ("latency", "cycles of an access, from issue to write-back, on average"),
    ("failed polls", "reads of a lock or flag that have to be repeated, in threads"),
];

/// What the columns of the locks and flags mean.
const WORDS: [(&str, &str); 6] = [
    ("taken", "tries that took the lock, in threads"),
    (
        "intra-, inter-warp",
        "tries that failed because a thread of the same warp, or of another, took it last",
    ),
    ("wait", "from a thread's first try to the one that took it, or until it saw what it waited for"),
    ("hold", "from there to the release"),
    ("hand-off", "from a release to the next acquisition, if a thread was waiting"),
    ("queue", "most threads that waited at a time"),
];

fn verdict(profile: &Profile) -> String {
    profile.verdict.iter().map(|finding| format!("verdict    {}\n", finding.text)).collect()
}

fn hottest(profile: &Profile, count: usize, sources: &mut Sources<'_>) -> String {
    let all = profile.warp_cycles();
    let shown = profile.lines.iter().take(count).filter(|line| line.counts.warp_cycles > 0);
    let mut text = String::new();
    let several = profile.lines.iter().any(|line| line.kernel != profile.lines[0].kernel);
    for line in shown {
        let Line { kernel, line: place, text: instruction, at, inlined, counts } = line;
        let source = if place == at { None } else { sources.line(place) };
        let ratio = |part: u64, all: u64| match all {
            0 => "-".to_string(),
            all => format!("{:.1}", part as f64 / all as f64),
        };
        let latency = if counts.latency.count > 0 { grouped(counts.latency.mean()) } else { "-".to_string() };
        let polls = if counts.polls > 0 { grouped(counts.failed_polls) } else { "-".to_string() };
        let _ = writeln!(
            text,
            "{:>5.1}% {:>12} {:>12} {:>13} {:>8} {:>12}  {place}{}: {}",
            percent(counts.warp_cycles, all),
            grouped(counts.executions),
            ratio(counts.thread_executions, counts.executions),
            ratio(counts.transactions, counts.latency.count),
            latency,
            polls,
            if several { format!(" ({})", shown_name(kernel)) } else { String::new() },
            source.as_deref().unwrap_or(instruction),
        );
        let indent = " ".repeat(8);
        // What would be shown as 0.0 % says nothing of a line.
        let states = counts.time.iter().filter(|&(_, cycles)| percent(cycles, all) >= 0.05);
        let states = shares(states, all);
        if !states.is_empty() {
            let _ = writeln!(text, "{indent}{states}");
        }
        if !inlined.is_empty() {
            let _ = writeln!(text, "{indent}inlined: {}", inlined.join(" < "));
        }
    }
    if text.is_empty() {
        return text;
    }
    for file in sources.missing() {
        let _ = writeln!(text, "       `{file}` was not found; its lines are shown as PTX");
    }
    let more = profile.lines.len().saturating_sub(count);
    if more > 0 {
        let _ =
            writeln!(text, "       and {} (--profile={})", counted(more as u64, "line"), profile.lines.len());
    }
    let head = format!("hottest lines, by their part of {}\n", counted(all, "warp cycle"));
    head + "  time   executions threads/warp trans./access  latency failed polls  line\n"
        + &text
        + &legend(&LINES)
}

fn words(profile: &Profile) -> String {
    if profile.words.is_empty() {
        return String::new();
    }
    let shown = || profile.words.iter().take(SHOWN);
    let width = shown().map(|word| word.word.len()).max().unwrap_or(0).max(4);
    let mut text = format!(
        "locks and flags: {}; times in cycles, on average\n  {:<width$} {:>10} {:>10} {:>11} {:>9} {:>8} {:>8} {:>6}\n",
        counted(profile.words.len() as u64, "word"),
        "word",
        "taken",
        "intra-warp",
        "inter-warp",
        "wait",
        "hold",
        "hand-off",
        "queue"
    );
    for word in shown() {
        let wait = if word.acquired > 0 { word.wait } else { word.satisfied };
        let or_dash = |span: warploom::profile::Span| match span.count {
            0 => "-".to_string(),
            _ => grouped(span.mean()),
        };
        let _ = writeln!(
            text,
            "  {:<width$} {:>10} {:>10} {:>11} {:>9} {:>8} {:>8} {:>6}",
            word.word,
            grouped(word.acquired),
            grouped(word.failed_intra),
            grouped(word.failed_inter),
            or_dash(wait),
            or_dash(word.hold),
            or_dash(word.hand_off),
            grouped(word.longest_queue.into())
        );
        let _ = writeln!(text, "  {:<width$}   {}", "", whereabouts(word));
    }
    let more = profile.words.len().saturating_sub(SHOWN);
    if more > 0 {
        let _ = writeln!(text, "  and {} (--json has all)", counted(more as u64, "word"));
    }
    let [taken, failed] = profile.other_tries;
    if taken + failed > 0 {
        let _ = writeln!(
            text,
            "  and {} taken, {} failed at words beyond these",
            grouped(taken),
            grouped(failed)
        );
    }
    text + &legend(&WORDS)
}

/// The lines of a word, and who waited longest for it.
fn whereabouts(word: &WordProfile) -> String {
    let lines = |what: &str, lines: &[(Name, u64)]| {
        let first: Vec<&str> = lines.iter().take(2).map(|(line, _)| &**line).collect();
        (!first.is_empty()).then(|| format!("{what} {}", first.join(", ")))
    };
    let longest = word.longest_waits.first();
    let longest = longest.map(|(cycles, thread)| format!("{thread} waited {}", counted(*cycles, "cycle")));
    let memories = (word.memories > 1).then(|| format!("in {}", counted(word.memories, "CTA")));
    let parts = [
        memories,
        lines("taken at", &word.taken_at),
        lines("released at", &word.released_at),
        lines("failed at", &word.failed_at).filter(|_| word.taken_at.is_empty()),
        longest,
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join("; ")
}

/// An adjacency list: each line that waits, and below it those that it waits for.
fn waits(profile: &Profile) -> String {
    let shown: Vec<&Wait> = profile.waits.iter().take(SHOWN).collect();
    if shown.is_empty() {
        return String::new();
    }
    let mut text = "who waits for whom\n".to_string();
    let mut told: Vec<&str> = Vec::new();
    for wait in &shown {
        if told.contains(&&*wait.waits_at) {
            continue;
        }
        told.push(&wait.waits_at);
        let _ = writeln!(text, "  {} waits", wait.waits_at);
        for wait in shown.iter().filter(|other| other.waits_at == wait.waits_at) {
            let writer = match &wait.written_at {
                Some(line) => format!("for {line} to write"),
                None => "for what the kernel did not write:".to_string(),
            };
            let _ = writeln!(
                text,
                "    {writer} {}: {}, {} on average, {} at most",
                wait.memory,
                counted(wait.wait.count, "time"),
                counted(wait.wait.mean(), "cycle"),
                grouped(wait.wait.longest_cycles)
            );
        }
    }
    let more = profile.waits.len() - shown.len();
    if more > 0 {
        let _ = writeln!(text, "  and {} (--json has all)", counted(more as u64, "other pair of lines"));
    }
    text
}

fn barriers(profile: &Profile) -> String {
    let mut text = String::new();
    for barrier in profile.barriers.iter().take(SHOWN) {
        let _ = writeln!(
            text,
            "  {}: {}; the last warp arrives {} after the first on average, {} at most",
            barrier.line,
            counted(barrier.skew.count, "phase"),
            counted(barrier.skew.mean(), "cycle"),
            grouped(barrier.skew.longest_cycles)
        );
    }
    if text.is_empty() { text } else { format!("barriers\n{text}") }
}

/// The graph of who waits for whom: an arrow from a line that waits to the line that it waits for.
fn dot(profile: &Profile) -> String {
    let mut text = "digraph waits {\n  rankdir=LR;\n  node [shape=box];\n".to_string();
    for Wait { memory, waits_at, written_at, wait, .. } in &profile.waits {
        let writer = written_at.as_deref().unwrap_or("not written by the kernel");
        let label = format!("{memory}: {}, {}", counted(wait.count, "time"), counted(wait.mean(), "cycle"));
        let _ = writeln!(text, "  {waits_at:?} -> {writer:?} [label={label:?}];");
    }
    text + "}\n"
}

#[cfg(test)]
mod tests {
    use warploom::profile::Span;

    use super::*;

    #[test]
    fn a_graph_names_lines_and_waits() {
        let wait = Wait {
            memory: "buffer 0".into(),
            waits_at: "k.cu:5".into(),
            written_at: Some("k.cu:9".into()),
            words: 1,
            wait: Span { count: 2, cycles: 3000, longest_cycles: 2000 },
        };
        let profile = Profile { waits: vec![wait], ..Profile::default() };
        let arrow = "\"k.cu:5\" -> \"k.cu:9\" [label=\"buffer 0: 2 times, 1,500 cycles\"];";
        assert!(dot(&profile).contains(arrow), "{}", dot(&profile));
    }
}
