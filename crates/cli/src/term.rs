//! Output to stdout and stderr, and formatting of numbers for people.

use std::io::{self, ErrorKind, IsTerminal, Write};

/// Writes to stdout. A closed pipe is no error: the reader has seen enough.
pub(crate) fn print(text: &str) -> io::Result<()> {
    print_bytes(text.as_bytes())
}

/// Like [`print()`], for bytes.
pub(crate) fn print_bytes(bytes: &[u8]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        result => result,
    }
}

/// Writes a line to stderr, ignoring errors.
pub(crate) fn eprint(line: &str) {
    let _ = writeln!(io::stderr().lock(), "{line}");
}

/// Whether messages on stderr are coloured: only on a terminal, and not if `NO_COLOR` is set.
pub(crate) fn color() -> bool {
    io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty())
}

/// `text` in bold and in a colour (`31` is red), if messages are coloured.
pub(crate) fn paint(text: &str, code: u8) -> String {
    if color() { format!("\x1b[1;{code}m{text}\x1b[0m") } else { text.to_string() }
}

pub(crate) use warploom::grouped;

/// A count with its noun: `1 loop`, `2 loops`.
pub(crate) fn counted(n: u64, noun: &str) -> String {
    format!("{} {noun}{}", grouped(n), if n == 1 { "" } else { "s" })
}

/// Seconds for people: `1.23 s`, `45.6 ms`, `7.8 us`.
pub(crate) fn seconds(s: f64) -> String {
    match s {
        s if s >= 1.0 => format!("{s:.2} s"),
        s if s >= 1e-3 => format!("{:.1} ms", s * 1e3),
        s => format!("{:.1} us", s * 1e6),
    }
}

/// A rough duration: `40 s`, `12 min`, `2 h`, `3 days`.
pub(crate) fn duration(s: f64) -> String {
    match s {
        s if s < 100.0 => format!("{s:.0} s"),
        s if s < 5400.0 => format!("{:.0} min", s / 60.0),
        s if s < 172_800.0 => format!("{:.1} h", s / 3600.0),
        s => format!("{:.1} days", s / 86_400.0),
    }
}

/// Joules for people: `1.23 J`, `45.6 mJ`, `7.8 uJ`.
pub(crate) fn joules(j: f64) -> String {
    match j {
        j if j >= 1.0 => format!("{j:.2} J"),
        j if j >= 1e-3 => format!("{:.1} mJ", j * 1e3),
        j => format!("{:.1} uJ", j * 1e6),
    }
}

/// Extents without trailing ones: `16x16`.
pub(crate) fn dims([x, y, z]: [u32; 3]) -> String {
    match (y, z) {
        (1, 1) => format!("{x}"),
        (_, 1) => format!("{x}x{y}"),
        _ => format!("{x}x{y}x{z}"),
    }
}

/// What the columns of the table above mean, below it.
pub(crate) fn legend(columns: &[(&str, &str)]) -> String {
    let width = columns.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    let lines = columns.iter().map(|(name, meaning)| format!("  {name:<width$}  {meaning}\n"));
    format!("\n{}", lines.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers() {
        assert_eq!(counted(1, "loop"), "1 loop");
        assert_eq!(counted(2, "loop"), "2 loops");
        assert_eq!(legend(&[("IPC", "per cycle"), ("n", "count")]), "\n  IPC  per cycle\n  n    count\n");
        assert_eq!(seconds(0.0123), "12.3 ms");
        assert_eq!(
            (joules(2.0), joules(0.0123), joules(5e-7)),
            ("2.00 J".into(), "12.3 mJ".into(), "0.5 uJ".into())
        );
        assert_eq!(
            [2.4, 99.0, 600.0, 7200.0, 4e5].map(duration),
            ["2 s", "99 s", "10 min", "2.0 h", "4.6 days"]
        );
        assert_eq!(dims([4, 1, 1]), "4");
        assert_eq!(dims([4, 1, 2]), "4x1x2");
    }
}
