//! SASS listings to a [`warploom_isa::Module`]: [`lex`] → [`parse`] → [`module`] → [`body`].
//!
//! A listing is code for physical registers in the style of Fermi's disassembler, with a few directives of our own around
//! it; `docs/sass.md` describes it. What each mnemonic means and which operands it takes is in [`warploom_isa::spell`] and
//! [`warploom_isa::form`], by which [`warploom_isa::print`] writes listings, so that what is printed can be read.
//!
//! Every error points at the text ([`warploom_isa::diag`]).

pub mod ast;
pub mod body;
pub mod lex;
pub mod mnemonic;
pub mod module;
pub mod operand;
pub mod parse;

use warploom_isa::diag::{Diagnostic, LoadError};
use warploom_isa::{self as isa, Source, Span};

/// Reads a listing. `name` is what messages call it: a path, mostly.
pub fn load(name: &str, text: &str) -> Result<isa::Module, LoadError> {
    if text.len() > lex::MAX_TEXT {
        return Err(refuse(name, "", Span::default(), "the text is larger than 4 GB"));
    }
    let source =
        Source { name: name.to_string(), text: text.trim_end_matches('\0').into(), files: Vec::new() };
    let text = source.text.clone();
    parse::parse(&text)
        .and_then(|items| module::assemble(source.clone(), &items))
        .map_err(|diagnostics| LoadError::new(source, diagnostics))
}

/// As [`load`], for a file's bytes, which may turn out to be no text.
pub fn load_bytes(name: &str, bytes: &[u8]) -> Result<isa::Module, LoadError> {
    if bytes.starts_with(b"\x7FELF") {
        let mut error =
            refuse(name, "", Span::default(), "this is a cubin or object file (ELF), not a listing");
        error.diagnostics[0].help = Some("`cuobjdump -sass` shows the code of a cubin as text".into());
        return Err(error);
    }
    match std::str::from_utf8(bytes) {
        Ok(text) => load(name, text),
        Err(error) => {
            let (valid, rest) = bytes.split_at(error.valid_up_to());
            let byte = rest.first().copied().unwrap_or_default();
            let end = valid.len().min(u32::MAX as usize) as u32;
            let span = Span { start: end.saturating_sub(1), end };
            let text = std::str::from_utf8(valid).unwrap_or_default();
            Err(refuse(name, text, span, &format!("not a listing: byte 0x{byte:02X} is not UTF-8")))
        }
    }
}

/// Whether a text looks like a listing and not like PTX: its first directive is one of ours.
pub fn is_listing(text: &str) -> bool {
    let ours =
        [".kernel", ".function", ".shared", ".address", ".file", ".let", ".extern", ".global", ".const"];
    let is_line = |line: &&str| !line.is_empty() && !line.starts_with("//") && !line.starts_with("/*");
    let first = text.lines().map(str::trim).find(is_line).and_then(|line| line.split_whitespace().next());
    // PTX begins with its version.
    first.is_some_and(|word| ours.contains(&word)) && !text.contains(".version")
}

fn refuse(name: &str, text: &str, span: Span, message: &str) -> LoadError {
    let source = Source { name: name.to_string(), text: text.into(), files: Vec::new() };
    LoadError::new(source, vec![Diagnostic::new(span, message)])
}

/// The known name that a misspelt one is nearest to, if it is near at all.
pub(crate) fn nearest<'n>(name: &str, known: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    let near = known.into_iter().map(|k| (distance(name, k), k)).min_by_key(|(d, _)| *d)?;
    (near.0 <= (name.len() / 4).max(1) && near.0 < name.len()).then_some(near.1)
}

/// Letters to change, insert or delete.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<u8> = b.bytes().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate().take(64) {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let change = diagonal + usize::from(!x.eq_ignore_ascii_case(y));
            diagonal = row[j + 1];
            row[j + 1] = change.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}
