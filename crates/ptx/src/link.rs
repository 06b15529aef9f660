//! Linking of PTX modules: programs of several files whose kernels use functions and variables of each other
//! (`nvcc -rdc=true`) come as one PTX text per file.
//!
//! The texts become one. A declaration goes if another file has the definition; of weak definitions the first stays; a
//! name that is private to its file and taken elsewhere gets another one.

use std::collections::{HashMap, HashSet};

use warploom_isa::LINKED_PART;

/// Follows the name of a private function without a body, so that it does not get that of another file. Messages leave
/// it out.
pub(crate) const UNDEFINED: &str = "$undefined";

/// A piece of a text: a word, a number, a mark, or the space between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token<'a> {
    Word(&'a str),
    Other(&'a str),
}

impl<'a> Token<'a> {
    fn text(self) -> &'a str {
        match self {
            Token::Word(text) | Token::Other(text) => text,
        }
    }
}

/// A declaration or definition of a file, or a directive.
#[derive(Debug)]
struct Item<'a> {
    tokens: Vec<Token<'a>>,
    kind: Kind<'a>,
    /// Line and column in its file, from 1.
    place: (usize, usize),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind<'a> {
    /// `.version` with its number, `.target`, `.address_size`: one of each for all.
    Header,
    Symbol {
        name: &'a str,
        linkage: Linkage,
        /// Whether a body or a variable is there, and not just announced.
        defined: bool,
    },
    /// Debug sections, which refer to their own file by number.
    Section,
    /// `.file`, and what else there may be.
    Plain,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Linkage {
    Private,
    Visible,
    Weak,
    Extern,
}

/// Links the texts of several files. One text stays as it is.
pub fn link(texts: &[&str]) -> String {
    if let [text] = texts {
        return text.to_string();
    }
    let files: Vec<Vec<Item<'_>>> = texts.iter().map(|text| items(text)).collect();
    let mut taken: HashSet<&str> = HashSet::new();
    let mut defined_for_all: HashSet<&str> = HashSet::new();
    for item in files.iter().flatten() {
        if let Kind::Symbol { name, linkage, defined } = item.kind {
            if linkage != Linkage::Private {
                taken.insert(name);
            }
            if defined && matches!(linkage, Linkage::Visible | Linkage::Weak) {
                defined_for_all.insert(name);
            }
        }
    }
    let mut out = newest_header(&files);
    let mut emitted: HashSet<&str> = HashSet::new();
    let mut source_files = 0;
    for (number, file) in files.iter().enumerate() {
        let renamed = renamed(file, &mut taken, number);
        let mut most = 0;
        for item in file {
            let keep = match item.kind {
                Kind::Header | Kind::Section => false,
                Kind::Plain => true,
                Kind::Symbol { name, linkage: Linkage::Extern, .. } => {
                    !defined_for_all.contains(name) && emitted.insert(name)
                }
                Kind::Symbol { name, linkage: Linkage::Weak, defined: true } => emitted.insert(name),
                Kind::Symbol { .. } => true,
            };
            if keep {
                let (line, column) = item.place;
                out.push_str(&format!("{LINKED_PART}{number} {line} {column}\n"));
                most = most.max(write(&mut out, item, &renamed, source_files));
            }
        }
        source_files += most;
    }
    out
}

/// The header of the newest file.
fn newest_header(files: &[Vec<Item<'_>>]) -> String {
    let header = |file: &Vec<Item<'_>>| -> String {
        let lines = file.iter().filter(|item| item.kind == Kind::Header);
        lines.map(|item| item.tokens.iter().map(|token| token.text()).collect::<String>() + "\n").collect()
    };
    let version = |file: &Vec<Item<'_>>| {
        let text = header(file);
        let number = text.split(".version").nth(1).and_then(|rest| rest.split_whitespace().next());
        let parts = number.and_then(|number| number.split_once('.'));
        parts.and_then(|(major, minor)| Some((major.parse::<u32>().ok()?, minor.parse::<u32>().ok()?)))
    };
    files.iter().max_by_key(|file| version(file)).map(header).unwrap_or_default()
}

/// New names for the private symbols of a file whose names are taken.
fn renamed<'a>(file: &[Item<'a>], taken: &mut HashSet<&'a str>, number: usize) -> HashMap<&'a str, String> {
    let mut renamed = HashMap::new();
    let is_defined = |symbol: &str| {
        file.iter()
            .any(|item| matches!(item.kind, Kind::Symbol { name, defined: true, .. } if name == symbol))
    };
    for item in file {
        let Kind::Symbol { name, linkage: Linkage::Private, .. } = item.kind else { continue };
        if taken.contains(name) && !renamed.contains_key(name) {
            let mark = if is_defined(name) { "_file" } else { UNDEFINED };
            renamed.insert(name, format!("{name}{mark}{number}"));
        }
    }
    for item in file {
        if let Kind::Symbol { name, .. } = item.kind {
            taken.insert(name);
        }
    }
    renamed
}

/// Writes an item with its new names. Numbers of source files move up by `source_files`; returns the greatest that it
/// had.
fn write(out: &mut String, item: &Item<'_>, renamed: &HashMap<&str, String>, source_files: u32) -> u32 {
    let (mut most, mut after_file) = (0, false);
    for token in &item.tokens {
        let text = token.text();
        match token {
            Token::Word(word) if after_file && word.starts_with(|c: char| c.is_ascii_digit()) => {
                let number: u32 = word.parse().unwrap_or(0);
                most = most.max(number);
                out.push_str(&(number + source_files).to_string());
                after_file = false;
            }
            Token::Word(word) => {
                after_file = [".file", ".loc", "inlined_at"].contains(word);
                out.push_str(renamed.get(word).map_or(text, String::as_str));
            }
            Token::Other(_) => out.push_str(text),
        }
    }
    out.push('\n');
    most
}

/// Splits a text into its items.
fn items(text: &str) -> Vec<Item<'_>> {
    let mut items = Vec::new();
    let mut current: Vec<Token<'_>> = Vec::new();
    let mut depth = 0u32;
    let (mut here, mut place) = ((1, 1), (1, 1));
    for token in tokens(text) {
        if current.is_empty() {
            place = here;
        }
        here = moved(here, token.text());
        let word = matches!(token, Token::Word(_));
        // A directive without an end mark ends where the next one begins; attributes come before their symbol.
        let first = current.iter().find_map(|token| match token {
            Token::Word(word) => Some(*word),
            Token::Other(_) => None,
        });
        let line_ends = token.text().contains('\n');
        let one_line = matches!(first, Some(".version" | ".target" | ".address_size" | ".file"));
        if depth == 0 && !word && line_ends && one_line {
            items.push(item(std::mem::take(&mut current), place));
            continue;
        }
        current.push(token);
        match token.text() {
            "{" | "(" => depth += 1,
            "}" | ")" => depth = depth.saturating_sub(1),
            _ => {}
        }
        let ends = depth == 0
            && match token.text() {
                ";" => true,
                "}" => !is_variable(&current),
                _ => false,
            };
        if ends {
            items.push(item(std::mem::take(&mut current), place));
        }
    }
    if current.iter().any(|token| !token.text().trim().is_empty()) {
        items.push(item(current, place));
    }
    items
}

/// Line and column after a text.
fn moved((line, column): (usize, usize), text: &str) -> (usize, usize) {
    match text.rsplit_once('\n') {
        Some((_, last)) => (line + text.matches('\n').count(), 1 + last.len()),
        None => (line, column + text.len()),
    }
}

/// Whether the words so far are those of a variable, whose initial value may be in braces.
fn is_variable(tokens: &[Token<'_>]) -> bool {
    let has = |wanted: &[&str]| tokens.iter().any(|token| wanted.contains(&token.text()));
    !has(&[".func", ".entry", ".section"]) && has(&[".global", ".const", ".shared", ".local"])
}

fn item(tokens: Vec<Token<'_>>, place: (usize, usize)) -> Item<'_> {
    let kind = kind(&tokens);
    Item { tokens, kind, place }
}

fn kind<'a>(tokens: &[Token<'a>]) -> Kind<'a> {
    let words: Vec<&'a str> = tokens
        .iter()
        .filter_map(|token| match token {
            Token::Word(word) => Some(*word),
            Token::Other(_) => None,
        })
        .collect();
    let has = |word: &str| words.contains(&word);
    match words.first() {
        Some(&(".version" | ".target" | ".address_size")) => return Kind::Header,
        Some(&".section") => return Kind::Section,
        Some(&".file") | None => return Kind::Plain,
        _ => {}
    }
    let before_body = tokens.iter().position(|token| token.text() == "{").unwrap_or(tokens.len());
    let linkage = match () {
        () if words.iter().take(3).any(|word| *word == ".extern") => Linkage::Extern,
        () if words.iter().take(3).any(|word| [".weak", ".common"].contains(word)) => Linkage::Weak,
        () if words.iter().take(3).any(|word| *word == ".visible") => Linkage::Visible,
        () => Linkage::Private,
    };
    let is_function = tokens[..before_body].iter().any(|t| [".func", ".entry"].contains(&t.text()));
    let name = if is_function { function_name(&tokens[..before_body]) } else { variable_name(tokens) };
    let is_symbol = is_function || is_variable(tokens);
    let Some(name) = name.filter(|_| is_symbol) else { return Kind::Plain };
    // The size of shared memory without one comes with the launch, in all files.
    let shared = has(".shared") && !is_function && linkage == Linkage::Extern;
    let defined = if is_function { before_body < tokens.len() } else { linkage != Linkage::Extern };
    let linkage = if shared { Linkage::Weak } else { linkage };
    Kind::Symbol { name, linkage, defined: defined || shared }
}

/// The word after `.entry`, or after `.func` and the results in parentheses.
fn function_name<'a>(tokens: &[Token<'a>]) -> Option<&'a str> {
    let at = tokens.iter().position(|token| [".func", ".entry"].contains(&token.text()))?;
    let mut depth = 0;
    for token in &tokens[at + 1..] {
        match token {
            Token::Other(text) => {
                depth += text.matches('(').count() as i32 - text.matches(')').count() as i32
            }
            Token::Word(word) if depth == 0 && !word.starts_with('.') => return Some(word),
            Token::Word(_) => {}
        }
    }
    None
}

/// The word before a size in brackets, an initial value, or the end.
fn variable_name<'a>(tokens: &[Token<'a>]) -> Option<&'a str> {
    let end = tokens.iter().position(|token| ["[", "=", ";"].contains(&token.text()))?;
    tokens[..end].iter().rev().find_map(|token| match token {
        Token::Word(word) => Some(*word),
        Token::Other(_) => None,
    })
}

/// Splits a text into words and what is between them. Comments and strings are not words; each mark is by itself.
fn tokens(text: &str) -> Vec<Token<'_>> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '%' | '.');
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let bytes = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        } else if first == '"' {
            rest[1..].find('"').map_or(rest.len(), |end| end + 2)
        } else if is_word(first) {
            rest.find(|c| !is_word(c)).unwrap_or(rest.len())
        } else if first.is_whitespace() {
            rest.find(|c: char| !c.is_whitespace()).unwrap_or(rest.len())
        } else {
            first.len_utf8()
        };
        let (token, after) = rest.split_at(bytes);
        tokens.push(if is_word(first) { Token::Word(token) } else { Token::Other(token) });
        rest = after;
    }
    tokens
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = "\
.version 8.0
.target sm_75
.address_size 64
.file 1 \"one.cu\"
.extern .func (.param .b32 r) other(.param .b32 x) ;
.extern .global .align 4 .u32 offset;
.extern .shared .align 4 .b8 part[];
.global .align 4 .u32 own = 1;
.weak .func (.param .b32 r) both(.param .b32 x) { ret; }
.visible .entry kernel(.param .u64 p) { // uses { own }
\t.reg .b32 %r1;
\t.param .b32 r, x;
\t.loc 1 2 3
\tld.global.u32 %r1, [own];
\tcall (r), other, (x);
\tret;
}
";
    const TWO: &str = "\
.version 8.3
.target sm_75
.address_size 64
.file 1 \"two.cu\"
.extern .shared .align 4 .b8 part[];
.global .align 4 .u32 own[2] = {2, 3};
.visible .global .align 4 .u32 offset = 7;
.weak .func (.param .b32 r) both(.param .b32 x) { ret; }
.visible .func (.param .b32 r) other(.param .b32 x) {
\t.reg .b32 %r1;
\t.loc 1 5 1
\tld.global.u32 %r1, [own+4];
\tret;
}
";

    #[test]
    fn two_files_become_one() {
        let linked = link(&[ONE, TWO]);
        let count = |text: &str| linked.matches(text).count();
        assert_eq!((count(".version"), count(".version 8.3"), count(".target")), (1, 1, 1));
        assert_eq!((count(".extern .func"), count(".extern .global"), count("part[]")), (0, 0, 1));
        assert_eq!((count("both("), count(".visible .func (.param .b32 r) other")), (1, 1));
        assert_eq!((count("[own]"), count("[own_file1+4]"), count("own_file1[2] = {2, 3}")), (1, 1, 1));
        assert_eq!(
            (count(".file 1 \"one.cu\""), count(".file 2 \"two.cu\""), count(".loc 2 5 1")),
            (1, 1, 1)
        );
        crate::load("linked", &linked).expect("PTX");
    }

    #[test]
    fn places_are_those_of_the_files() {
        let wrong = TWO.replace("ld.global.u32 %r1, [own+4]", "ld.global.u32 %r9, [own+4]");
        let error = crate::load("one.ptx + two.ptx", &link(&[ONE, &wrong])).unwrap_err();
        let (line, _) = wrong.lines().enumerate().find(|(_, line)| line.contains("%r9")).unwrap();
        assert!(error.to_string().starts_with(&format!("two.ptx:{}:16: ", line + 1)), "{error}");
    }

    #[test]
    fn a_prototype_without_a_body_keeps_its_name() {
        let head = ".version 7.8\n.target sm_80\n.address_size 64\n";
        let caller = format!("{head}.func f();\n.visible .entry k() {{ call f, (); ret; }}\n");
        let other = format!("{head}.visible .func f() {{ ret; }}\n");
        let error = crate::load("a.ptx + b.ptx", &link(&[&caller, &other])).unwrap_err();
        assert!(error.to_string().starts_with("a.ptx:5:28: no body for `f`: "), "{error}");
    }

    #[test]
    fn one_file_stays() {
        assert_eq!(link(&[ONE]), ONE);
    }
}
