//! Kernels by the names that their sources give them.

/// The qualified name that a C++ symbol begins with: `_ZN2ns4histEPj` is `ns::hist`. Template arguments and parameters
/// are left out. `None` if it is no such symbol.
fn plain_name(symbol: &str) -> Option<String> {
    let rest = symbol.strip_prefix("_Z")?;
    let (mut rest, nested) = rest.strip_prefix('N').map_or((rest, false), |rest| (rest, true));
    // `const` and the like of member functions, and internal linkage.
    rest = rest.trim_start_matches(['K', 'V', 'r', 'L']);
    let mut parts = Vec::new();
    while let Some((part, after)) = source_name(rest) {
        parts.push(part);
        rest = after;
        // Tags of the ABI are no part of the name.
        while let Some((_, after)) = rest.strip_prefix('B').and_then(source_name) {
            rest = after;
        }
        if !nested {
            break;
        }
    }
    (!parts.is_empty()).then(|| parts.join("::"))
}

/// A name with its length before it, and what follows.
fn source_name(text: &str) -> Option<(&str, &str)> {
    let digits = text.find(|c: char| !c.is_ascii_digit())?;
    let length: usize = text[..digits].parse().ok()?;
    text[digits..].split_at_checked(length)
}

/// The symbols that `wanted` may mean: the one of that name, or else those whose plain name it is, with or without
/// namespaces, template arguments and parameters.
pub(crate) fn matching<'a>(symbols: &'a [String], wanted: &str) -> Vec<&'a str> {
    if let Some(symbol) = symbols.iter().find(|symbol| *symbol == wanted) {
        return vec![symbol];
    }
    let name = wanted.split(['<', '(']).next().unwrap_or_default().trim();
    // A demangled name may begin with what the function returns.
    let name = name.rsplit(' ').next().unwrap_or_default();
    let means = |symbol: &&String| {
        plain_name(symbol).is_some_and(|plain| {
            plain.strip_suffix(name).is_some_and(|outer| outer.is_empty() || outer.ends_with("::"))
        })
    };
    if name.is_empty() { Vec::new() } else { symbols.iter().filter(means).map(String::as_str).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_have_plain_names() {
        let plain = |symbol| plain_name(symbol).unwrap_or_default();
        assert_eq!(plain("_Z4histPjS_"), "hist");
        assert_eq!(plain("_ZL4histPj"), "hist");
        assert_eq!(plain("_ZN2ns4histEPj"), "ns::hist");
        assert_eq!(plain("_Z3hitILi5EEvPj"), "hit");
        assert_eq!(plain("_ZN8__main__6vecaddB2v1B3cw5E5ArrayIfLi1EE"), "__main__::vecadd");
        assert_eq!((plain("hist"), plain("_Z"), plain("_Z99x")), Default::default());
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
        assert_eq!(found("void ns::hist(unsigned int*)"), ["_ZN2ns4histEPj"]);
        assert_eq!(found("hit<5>").len(), 2);
        assert_eq!((found("ist"), found(""), found("none")), (vec![], vec![], vec![]));
    }
}
