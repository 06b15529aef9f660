//! PTX text to a [`warploom_isa::Module`], as a flat sequence of passes: [`lex`] → [`parse`] → [`resolve`] → [`lower`].
//!
//! Every error points at the text ([`diag`]); what is not modelled is refused here, when the module loads.

pub mod diag;
pub mod resolved;

pub use diag::{Diagnostic, LoadError};
