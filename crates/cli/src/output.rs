//! Files that commands write.

use std::path::Path;

use serde_json::{Value, json};

use crate::failure::Failure;
use crate::input::reason;
use crate::schema;
use crate::term;

/// Prints the object of a `--json`, with the version of its schema.
pub(crate) fn print_json(mut object: Value) -> std::io::Result<()> {
    object["schema_version"] = json!(schema::VERSION);
    term::print(&format!("{object}\n"))
}

/// Refuses a file that cannot be written, before the work. A file that is not there yet is not left behind.
pub(crate) fn check_writable(file: &Path) -> Result<(), Failure> {
    let there = std::fs::metadata(file);
    // A pipe would wait for its reader.
    if there.as_ref().is_ok_and(|there| !there.is_file() && !there.is_dir()) {
        return Ok(());
    }
    let is_new = there.is_err();
    let opened = std::fs::OpenOptions::new().append(true).create(true).open(file);
    opened.map_err(|e| Failure::input(format!("cannot write `{}`: {}", file.display(), reason(&e))))?;
    if is_new {
        let _ = std::fs::remove_file(file);
    }
    Ok(())
}

pub(crate) fn write(file: &Path, bytes: &[u8]) -> Result<(), Failure> {
    std::fs::write(file, bytes)
        .map_err(|e| Failure::input(format!("cannot write `{}`: {}", file.display(), reason(&e))))
}
