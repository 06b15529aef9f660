//! The front end: instruction fetch, and what the pipeline knows about each decoded instruction.

pub mod decode;
pub mod fetch;
pub mod operation;
