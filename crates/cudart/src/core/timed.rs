//! Which launches are timed; the others are executed functionally.

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
        if text == "all" {
            return Ok(Timed::All);
        }
        if let Some(count) = text.strip_prefix("first:") {
            return Ok(Timed::First(number(count)?));
        }
        if let Some(count) = text.strip_prefix("every:") {
            return Ok(Timed::Every(number(count)?.max(1)));
        }
        if let Some(name) = text.strip_prefix("kernel=").filter(|name| !name.is_empty()) {
            return Ok(Timed::Kernel(name.to_string()));
        }
        if let Some((first, end)) = text.strip_prefix("range:").and_then(|range| range.split_once("..")) {
            let end = if end.is_empty() { u64::MAX } else { number(end)? };
            return Ok(Timed::Range(number(first)?..end));
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
    fn mistakes() {
        for wrong in ["", "some", "first:x", "kernel=", "range:3"] {
            assert!(Timed::parse(wrong).is_err(), "{wrong}");
        }
    }
}
