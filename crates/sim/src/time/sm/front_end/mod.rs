//! The front end: instruction fetch, and what the pipeline knows about each decoded instruction.

pub(crate) mod decode;
pub(crate) mod fetch;
pub(crate) mod operation;
