//! Reads PTX into a [`warploom_isa::Module`], in a sequence of passes: `lex` → `parse` → `resolve` → `lower`.
//!
//! Every error points into the text ([`warploom_isa::diag`]). Instructions that are not modelled are refused here, when
//! the module loads, and never skipped; [`support_page`] lists them all.
//!
//! This crate optimises nothing and knows no chip; [`link()`] joins the texts of several files. Start at [`load`];
//! `resolved.rs` is the form between the two halves: syntax and names before it, instructions after it.

mod ast;
mod families;
pub mod heap;
mod lex;
mod link;
mod lower;
mod parse;
mod resolve;
pub mod resolved;
mod target;

use warploom_isa::{self as isa, Source, Span};

pub use families::support_page;
pub use isa::diag::LoadError;
use isa::diag::{self, Diagnostic};
pub use link::link;

/// Reads a PTX module. Messages call it `name`, mostly a path.
pub fn load(name: &str, text: &str) -> Result<isa::Module, LoadError> {
    // Programs may pass a text with C's terminating zero.
    lower::lower(resolve_text(name, &heap::added(text.trim_end_matches('\0')))?)
}

/// As [`load`], for the bytes of a file ([`text_of`]).
pub fn load_bytes(name: &str, bytes: &[u8]) -> Result<isa::Module, LoadError> {
    load(name, text_of(name, bytes)?)
}

/// The passes up to name resolution. Instructions are not checked yet.
pub fn resolve_text(name: &str, text: &str) -> Result<resolved::Module, LoadError> {
    if text.len() > lex::MAX_TEXT {
        return Err(refuse(name, "", "the text is larger than 4 GB"));
    }
    let source =
        Source { name: name.to_string(), text: text.trim_end_matches('\0').into(), files: Vec::new() };
    let text = source.text.clone();
    parse::parse(&text)
        .and_then(|ast| resolve::resolve(source.clone(), &ast))
        .map_err(|diagnostics| LoadError::new(source, diagnostics))
}

/// The text of a file that should be PTX. Refuses cubins and other binaries, and invalid UTF-8, with a message.
pub fn text_of<'b>(name: &str, bytes: &'b [u8]) -> Result<&'b str, LoadError> {
    let binary = |what: &str| {
        let mut error = refuse(name, "", &format!("this is {what}, not PTX text"));
        error.diagnostics[0].help =
            Some("compile with `nvcc -ptx`, or extract the PTX with `cuobjdump -ptx`".into());
        error
    };
    match bytes {
        [0x7F, b'E', b'L', b'F', ..] => return Err(binary("a cubin or object file (ELF)")),
        [0x50, 0xED, 0x55, 0xBA, ..] => return Err(binary("a fatbin")),
        [b'B', b'C', 0xC0, 0xDE, ..] => return Err(binary("LLVM bitcode")),
        [0x1F, 0x8B, ..] => return Err(binary("a gzip archive")),
        _ => {}
    }
    std::str::from_utf8(bytes).map_err(|error| {
        let (valid, rest) = bytes.split_at(error.valid_up_to());
        let byte = rest.first().copied().unwrap_or_default();
        let text = std::str::from_utf8(valid).unwrap_or_default();
        let mut refused = refuse(name, text, &format!("not PTX text: byte 0x{byte:02X} is not UTF-8"));
        let end = valid.len().min(u32::MAX as usize) as u32;
        refused.diagnostics[0].span = Span { start: end.saturating_sub(1), end };
        refused.diagnostics[0].label = "after this".into();
        refused
    })
}

fn refuse(name: &str, text: &str, message: &str) -> LoadError {
    let source = Source { name: name.to_string(), text: text.into(), files: Vec::new() };
    LoadError::new(source, vec![Diagnostic::new(Span::default(), message)])
}
