//! Kernels by the names that their sources give them.

use cpp_demangle::Symbol;

/// The name in the source: `_ZN2ns4histEPj` is `ns::hist(unsigned int*)`. A symbol that is no C++ is its own name.
pub fn demangled(symbol: &str) -> String {
    // Without the prefix, `b` would be the type `bool`.
    let mangled = Some(symbol).filter(|symbol| symbol.starts_with("_Z"));
    let name = mangled.and_then(|symbol| Symbol::new(symbol).ok()?.demangle().ok());
    name.map_or_else(|| symbol.to_string(), |name| without_tags(&name))
}

/// Removes tags of the ABI, `[abi:v1]`, which no source has.
fn without_tags(name: &str) -> String {
    let mut rest = name;
    let mut out = String::new();
    while let Some((before, after)) = rest.split_once("[abi:") {
        out.push_str(before);
        rest = after.split_once(']').map_or("", |(_, after)| after);
    }
    out + rest
}

/// The name without what it returns and takes: `ns::hit<5>`.
pub fn plain(symbol: &str) -> String {
    let name = demangled(symbol);
    without_parameters(&comparable(&name)).to_string()
}

/// A name without spaces and without the `void` that all kernels return.
fn comparable(name: &str) -> String {
    name.trim().strip_prefix("void ").unwrap_or(name).split_whitespace().collect()
}

fn without_parameters(name: &str) -> &str {
    without_last(name, '(', ')')
}

/// Cuts off a last pair of brackets with all that they enclose.
fn without_last(name: &str, open: char, close: char) -> &str {
    if !name.ends_with(close) {
        return name;
    }
    let mut depth = 0;
    for (at, c) in name.char_indices().rev() {
        depth += i32::from(c == close) - i32::from(c == open);
        if depth == 0 {
            return &name[..at];
        }
    }
    name
}

/// The symbols that `wanted` may mean: the one of that name; or else those with that name in the source, whole, without
/// parameters, or without template arguments. Namespaces may be left out.
pub fn matching<'a>(symbols: &'a [String], wanted: &str) -> Vec<&'a str> {
    if let Some(symbol) = symbols.iter().find(|symbol| *symbol == wanted) {
        return vec![symbol];
    }
    let wanted = comparable(wanted);
    if wanted.is_empty() {
        return Vec::new();
    }
    let means = |name: &str| {
        name.strip_suffix(wanted.as_str()).is_some_and(|outer| outer.is_empty() || outer.ends_with("::"))
    };
    let levels: [fn(&str) -> &str; 3] =
        [|name| name, without_parameters, |name| without_last(without_parameters(name), '<', '>')];
    let found = levels.iter().map(|level| {
        let named = |symbol: &&String| means(level(&comparable(&demangled(symbol))));
        symbols.iter().filter(named).map(String::as_str).collect::<Vec<_>>()
    });
    found.into_iter().find(|found| !found.is_empty()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_have_plain_names() {
        assert_eq!(demangled("_ZN2ns4histEPj"), "ns::hist(unsigned int*)");
        assert_eq!((demangled("b"), demangled("w")), ("b".to_string(), "w".to_string()));
        assert_eq!(plain("_Z4histPjS_"), "hist");
        assert_eq!(plain("_ZL4histPj"), "hist");
        assert_eq!(plain("_ZN2ns4histEPj"), "ns::hist");
        assert_eq!(plain("_Z3hitILi5EEvPj"), "hit<5>");
        assert_eq!(plain("_ZN8__main__6vecaddB2v1B3cw5E5ArrayIfLi1EE"), "__main__::vecadd");
        assert_eq!([plain("hist"), plain("_Z"), plain("_Z99x")], ["hist", "_Z", "_Z99x"]);
    }

    #[test]
    fn names_find_their_symbols() {
        let symbols = ["_Z4histPjS_", "_ZN2ns4histEPj", "_Z3hitILi5EEvPj", "_Z3hitILi7EEvPj", "plain"];
        let symbols = symbols.map(String::from);
        let found = |wanted| matching(&symbols, wanted);
        assert_eq!(found("plain"), ["plain"]);
        assert_eq!(found("_Z4histPjS_"), ["_Z4histPjS_"]);
        assert_eq!(found("hist"), ["_Z4histPjS_", "_ZN2ns4histEPj"]);
        assert_eq!(found("ns::hist"), ["_ZN2ns4histEPj"]);
        assert_eq!(found("void ns::hist(unsigned int *)"), ["_ZN2ns4histEPj"]);
        assert_eq!(found("hist(unsigned int*, unsigned int*)"), ["_Z4histPjS_"]);
        assert_eq!(found("hit<5>"), ["_Z3hitILi5EEvPj"]);
        assert_eq!(found("hit").len(), 2);
        assert_eq!((found("ist"), found(""), found("none")), (vec![], vec![], vec![]));
    }
}
