//! `warploom schema`: what `--json` prints, as a JSON schema.

use crate::failure::{Exit, Failure};
use crate::term;

/// The version of the objects that `--json` prints, their key `schema_version`. It changes when a key goes away or
/// means something else, not when one is added.
pub(crate) const VERSION: u32 = 1;

/// One definition per command, in `$defs`. The tests hold every object that they see against it.
const SCHEMA: &str = include_str!("schema.json");

pub(crate) fn schema() -> Result<Exit, Failure> {
    term::print(SCHEMA)?;
    Ok(Exit::Good)
}
