//! The names of a kernel's parameters, from its CUDA source. PTX has none: compilers call them `hist_param_0`.

/// The parameters of every kernel in a text of CUDA, by the kernel's name without namespaces. Both the text as it is
/// written and as the preprocessor leaves it are understood. A parameter without a name has an empty one.
pub(super) fn of_source(text: &str) -> Vec<(String, Vec<String>)> {
    let tokens = tokens(text);
    let mut found = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let after = match &tokens[at..] {
            ["__global__", ..] => at + 1,
            ["__attribute__", "(", "(", "global", ")", ")", ..] => at + 6,
            _ => {
                at += 1;
                continue;
            }
        };
        at = after;
        if let Some((name, list)) = declaration(&tokens[after..]) {
            found.push((name.to_string(), list));
        }
    }
    found
}

/// Identifiers and single characters, without comments, literals and lines of the preprocessor.
fn tokens(text: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut rest = text;
    let mut line_start = true;
    while let Some(c) = rest.chars().next() {
        let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
        let length = match c {
            '#' if line_start => directive(rest),
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => rest.find("*/").map_or(rest.len(), |end| end + 2),
            '"' | '\'' => literal(rest, c),
            c if is_word(c) => rest.find(|c| !is_word(c)).unwrap_or(rest.len()),
            c => c.len_utf8(),
        };
        let token = &rest[..length];
        line_start = c == '\n' || (line_start && c.is_whitespace());
        if !c.is_whitespace()
            && !matches!(c, '#' | '"' | '\'')
            && !["//", "/*"].iter().any(|s| token.starts_with(s))
        {
            tokens.push(token);
        }
        rest = &rest[length..];
    }
    tokens
}

/// The length of a preprocessor line, with the lines that it continues on.
fn directive(text: &str) -> usize {
    let mut length = 0;
    for line in text.split_inclusive('\n') {
        length += line.len();
        if !line.trim_end_matches(['\n', '\r']).ends_with('\\') {
            break;
        }
    }
    // The line break stays, to end the line.
    length - usize::from(text[..length].ends_with('\n'))
}

fn literal(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        if c == quote && !escaped {
            return at + 1;
        }
        escaped = c == '\\' && !escaped;
    }
    text.len()
}

/// The name and the parameters of the function that is declared after `__global__`.
fn declaration<'a>(tokens: &[&'a str]) -> Option<(&'a str, Vec<String>)> {
    /// Words whose parentheses are not a list of parameters.
    const ATTRIBUTES: [&str; 6] = [
        "__launch_bounds__",
        "__attribute__",
        "__cluster_dims__",
        "__maxnreg__",
        "__block_size__",
        "alignas",
    ];
    let mut at = 0;
    loop {
        at += tokens[at..].iter().position(|token| ["(", ";", "{"].contains(token))?;
        let before = tokens[..at].last()?;
        match (tokens[at], ATTRIBUTES.contains(before)) {
            ("(", true) => at += enclosed(&tokens[at..])?,
            ("(", false) => break,
            _ => return None,
        }
    }
    let list = &tokens[at + 1..at + enclosed(&tokens[at..])? - 1];
    // A specialisation has template arguments after its name.
    let name = match tokens[at - 1] {
        ">" => {
            let open = tokens[..at].iter().rposition(|token| *token == "<")?;
            tokens[..open].last()?
        }
        name => name,
    };
    is_identifier(name).then(|| (name, parameters(list)))
}

/// How many tokens a bracket encloses, with itself and the closing one.
fn enclosed(tokens: &[&str]) -> Option<usize> {
    let mut depth = 0;
    for (at, token) in tokens.iter().enumerate() {
        depth += i32::from(["(", "[", "{"].contains(token)) - i32::from([")", "]", "}"].contains(token));
        if depth == 0 {
            return Some(at + 1);
        }
    }
    None
}

fn parameters(list: &[&str]) -> Vec<String> {
    if list.is_empty() || list == ["void"] {
        return Vec::new();
    }
    let mut names = Vec::new();
    let (mut depth, mut start) = (0, 0);
    for (at, token) in list.iter().chain(&[","]).enumerate() {
        match *token {
            "(" | "[" | "{" | "<" => depth += 1,
            ")" | "]" | "}" | ">" => depth -= 1,
            "," if depth == 0 => {
                names.push(name(&list[start..at]).unwrap_or_default().to_string());
                start = at + 1;
            }
            _ => {}
        }
    }
    names
}

/// The name in one declaration: `const unsigned* __restrict__ data = nullptr` declares `data`.
fn name<'a>(declaration: &[&'a str]) -> Option<&'a str> {
    /// Words that end a type and are no name.
    const TYPES: [&str; 12] = [
        "int",
        "unsigned",
        "signed",
        "long",
        "short",
        "char",
        "float",
        "double",
        "bool",
        "const",
        "__restrict__",
        "__restrict",
    ];
    let end = declaration.iter().position(|token| ["=", "["].contains(token)).unwrap_or(declaration.len());
    let declaration = &declaration[..end];
    let last = declaration.last().filter(|last| declaration.len() > 1 && is_identifier(last))?;
    let after_scope = declaration.len() > 1 && declaration[declaration.len() - 2] == ":";
    (!TYPES.contains(last) && !after_scope).then_some(*last)
}

fn is_identifier(token: &str) -> bool {
    token.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<(String, String)> {
        of_source(text).into_iter().map(|(name, list)| (name, list.join(" "))).collect()
    }

    #[test]
    fn signatures() {
        for (text, name, names) in [
            (
                "__global__ void hist(const unsigned* __restrict__ data, unsigned *bins, int n) {",
                "hist",
                "data bins n",
            ),
            (
                "extern \"C\" __global__ void __launch_bounds__(256, 2) k(float4 v[], ns::T<int, 3> t = {1, 2})",
                "k",
                "v t",
            ),
            ("template <> __global__ void hit<5>(unsigned* p);", "hit", "p"),
            ("static __attribute__((global)) void old(void)", "old", ""),
            (
                "__global__ // __global__ void no(int x)\n void yes(int, unsigned int, char* c /* , int d */)",
                "yes",
                "  c",
            ),
        ] {
            assert_eq!(found(text), [(name.to_string(), names.to_string())], "{text}");
        }
    }

    #[test]
    fn what_is_no_signature() {
        let none: [(String, String); 0] = [];
        for text in [
            "#define K(n) __global__ void n##_k(int a) \\\n __global__ void b(int c)\nint x;",
            "const char* s = \"__global__ void k(int a)\";",
            "// __global__ void k(int a)",
            "__global__",
            "__global__ void k",
            "__global__ void k(",
        ] {
            assert_eq!(found(text), none, "{text}");
        }
    }
}
