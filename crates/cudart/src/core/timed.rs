//! Which launches are timed; the others are executed functionally.

use std::fmt;
use std::ops::Range;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Timed {
    #[default]
    All,
    /// The first so many launches of each kernel.
    First(u64),
    /// The first launch of each kernel, and then one of so many.
    Every(u64),
    /// All launches of the kernel of this name.
    Kernel(String),
    /// Launches by their number in the program, from 0.
    Range(Range<u64>),
}

impl Timed {
    /// Reads `all`, `first:N`, `every:N`, `kernel=NAME` or `range:A..B`.
    pub(crate) fn parse(text: &str) -> Result<Timed, String> {
        let number = |text: &str| {
            text.replace('_', "").parse::<u64>().map_err(|_| format!("`{text}` is no number of launches"))
        };
        let count = |text: &str| match number(text)? {
            0 => Err(format!("`{text}` launches are none")),
            count => Ok(count),
        };
        if text == "all" {
            return Ok(Timed::All);
        }
        if let Some(launches) = text.strip_prefix("first:") {
            return Ok(Timed::First(count(launches)?));
        }
        if let Some(launches) = text.strip_prefix("every:") {
            return Ok(Timed::Every(count(launches)?));
        }
        if let Some(name) = text.strip_prefix("kernel=").filter(|name| !name.is_empty()) {
            return Ok(Timed::Kernel(name.to_string()));
        }
        if let Some((first, end)) = text.strip_prefix("range:").and_then(|range| range.split_once("..")) {
            let range = number(first)?..if end.is_empty() { u64::MAX } else { number(end)? };
            if range.is_empty() {
                return Err(format!("`{text}` has no launch in it"));
            }
            return Ok(Timed::Range(range));
        }
        Err(format!("`{text}`: it is all, first:N, every:N, kernel=NAME or range:A..B"))
    }

    /// Whether a launch is timed: the program's launch number `launch`, number `of_kernel` of its kernel, whose
    /// mangled and plain names are given.
    pub(crate) fn holds(&self, launch: u64, of_kernel: u64, mangled: &str, plain: &str) -> bool {
        match self {
            Timed::All => true,
            Timed::First(count) => of_kernel < *count,
            Timed::Every(count) => of_kernel.is_multiple_of(*count),
            Timed::Kernel(name) => name == mangled || is_named(plain, name),
            Timed::Range(range) => range.contains(&launch),
        }
    }
}

impl fmt::Display for Timed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Timed::All => f.write_str("all"),
            Timed::First(count) => write!(f, "first:{count}"),
            Timed::Every(count) => write!(f, "every:{count}"),
            Timed::Kernel(name) => write!(f, "kernel={name}"),
            Timed::Range(Range { start, end: u64::MAX }) => write!(f, "range:{start}.."),
            Timed::Range(Range { start, end }) => write!(f, "range:{start}..{end}"),
        }
    }
}

/// Whether a demangled signature is of the function `name`, given with or without its parameters.
fn is_named(plain: &str, name: &str) -> bool {
    let without_params = plain.split('(').next().unwrap_or(plain);
    // A template's signature begins with the type that it returns.
    let without_return = without_params.strip_prefix("void ").unwrap_or(without_params);
    let without_arguments = without_return.split('<').next().unwrap_or(without_return);
    [plain, without_return, without_arguments].contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices() {
        let holds = |text: &str, launch, of_kernel| {
            Timed::parse(text).unwrap().holds(launch, of_kernel, "_Z3addPi", "add(int*)")
        };
        assert!(holds("all", 7, 7));
        assert!(holds("first:2", 9, 1) && !holds("first:2", 9, 2));
        assert!(holds("every:3", 9, 0) && !holds("every:3", 9, 2) && holds("every:3", 9, 3));
        assert!(holds("kernel=add", 0, 0) && holds("kernel=_Z3addPi", 0, 0) && !holds("kernel=ad", 0, 0));
        assert!(holds("range:2..4", 2, 0) && !holds("range:2..4", 4, 0) && holds("range:2..", 400, 0));
        assert!(is_named("void sum<int>(int*)", "sum") && is_named("void sum<int>(int*)", "sum<int>"));
    }

    #[test]
    fn they_are_written_as_they_are_read() {
        for text in ["all", "first:2", "every:3", "kernel=add", "range:2..4", "range:2.."] {
            assert_eq!(Timed::parse(text).unwrap().to_string(), text);
        }
    }

    #[test]
    fn mistakes() {
        for wrong in
            ["", "some", "first:x", "first:0", "every:0", "kernel=", "range:3", "range:2..1", "range:2..2"]
        {
            assert!(Timed::parse(wrong).is_err(), "{wrong}");
        }
    }
}
