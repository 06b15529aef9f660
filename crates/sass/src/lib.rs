//! Reads SASS listings into a [`warploom_isa::Module`]: `lex` → `parse` → `module` → `body`.
//!
//! A listing is code over physical registers in the style of Fermi's disassembler, with a few directives of our own;
//! `docs/sass.md` describes the language. The tables of mnemonics and operands are [`warploom_isa::spell`] and
//! [`warploom_isa::form`]. The printer ([`warploom_isa::print`]) uses the same tables, so every printed listing can be
//! read back.
//!
//! This crate prints nothing, and it reads no cubin. Every error points into the text ([`warploom_isa::diag`]). Start
//! at [`load`], then follow the passes in order.

mod ast;
mod body;
mod lex;
mod mnemonic;
mod module;
mod operand;
mod parse;

use warploom_isa::diag::{Diagnostic, LoadError};
use warploom_isa::{self as isa, Source, Span};

/// Reads a listing. Messages call it `name`, mostly a path.
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

/// As [`load`], for the bytes of a file. Refuses ELF files and invalid UTF-8 with a message.
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

/// Whether a text looks like a listing and not like PTX: its first word is a directive of listings.
pub fn is_listing(text: &str) -> bool {
    let ours =
        [".kernel", ".function", ".shared", ".address", ".file", ".let", ".extern", ".global", ".const"];
    let is_line = |line: &&str| !line.is_empty() && !line.starts_with("//") && !line.starts_with("/*");
    let first = text.lines().map(str::trim).find(is_line).and_then(|line| line.split_whitespace().next());
    // Some directives are also PTX's, but PTX always has a version.
    first.is_some_and(|word| ours.contains(&word)) && !text.contains(".version")
}

fn refuse(name: &str, text: &str, span: Span, message: &str) -> LoadError {
    let source = Source { name: name.to_string(), text: text.into(), files: Vec::new() };
    LoadError::new(source, vec![Diagnostic::new(span, message)])
}

/// The known name most similar to a misspelt one, if any is similar enough.
pub(crate) fn nearest<'n>(name: &str, known: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    let near = known.into_iter().map(|k| (distance(name, k), k)).min_by_key(|(d, _)| *d)?;
    (near.0 <= (name.len() / 4).max(1) && near.0 < name.len()).then_some(near.1)
}

/// Edit distance, ignoring case.
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
