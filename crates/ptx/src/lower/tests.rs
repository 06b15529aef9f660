//! Small texts and the instructions they become, whole files of many compilers, and what is refused.

mod corpus;

use std::fmt::Write as _;

use warploom_isa as isa;

use crate::diag::LoadError;

fn load(text: &str) -> Result<isa::Module, LoadError> {
    crate::resolve_text("test.ptx", text).and_then(super::lower)
}
