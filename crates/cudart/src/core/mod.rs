//! What the runtime does, in safe code. The calls of C programs come in through `abi`.

pub(crate) mod arrays;
pub(crate) mod error;
pub(crate) mod fatbin;
pub(crate) mod graphs;
pub(crate) mod launch;
pub(crate) mod linker;
pub(crate) mod memory;
pub(crate) mod modules;
pub(crate) mod pending;
pub(crate) mod process;
pub(crate) mod properties;
pub(crate) mod record;
pub(crate) mod settings;
pub(crate) mod settle;
pub(crate) mod sharing;
pub(crate) mod streams;
pub(crate) mod timed;
pub(crate) mod timeline;
