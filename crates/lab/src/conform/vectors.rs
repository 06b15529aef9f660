//! The file format of recorded vectors.
//!
//! A file has the results of one group: a magic number, then, compressed, the length of a header, the header as JSON,
//! and the results of all cases one after another. Operands are not stored; the header has their hashes.

use std::path::{Path, PathBuf};

use miniz_oxide::deflate::compress_to_vec_zlib;
use miniz_oxide::inflate::decompress_to_vec_zlib_with_limit;
use serde::{Deserialize, Serialize};

use super::error::{Error, Result};
use super::origin::Origin;

const MAGIC: &[u8; 8] = b"WLOOMV1\n";
/// Limit when decompressing. No group comes near it.
const MOST_BYTES: usize = 1 << 28;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Header {
    pub(crate) group: String,
    pub(crate) origin: Origin,
    pub(crate) cases: Vec<Recorded>,
}

/// A case in the header.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Recorded {
    pub(crate) name: String,
    pub(crate) tuples: usize,
    /// See [`fingerprint`](super::run::fingerprint).
    pub(crate) fingerprint: u64,
    /// Bytes of results.
    pub(crate) bytes: usize,
}

/// The contents of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Vectors {
    pub(crate) header: Header,
    pub(crate) results: Vec<u8>,
}

/// The file of a group.
pub(crate) fn path(dir: &Path, group: &str) -> PathBuf {
    dir.join(format!("{group}.vec"))
}

impl Vectors {
    /// Writes the file and returns its size.
    pub(crate) fn write(&self, path: &Path) -> Result<usize> {
        let header = serde_json::to_vec(&self.header).map_err(|e| Error::format(path, e.to_string()))?;
        let mut plain = (header.len() as u32).to_le_bytes().to_vec();
        plain.extend_from_slice(&header);
        plain.extend_from_slice(&self.results);
        let mut file = MAGIC.to_vec();
        file.extend_from_slice(&compress_to_vec_zlib(&plain, 9));
        std::fs::write(path, &file).map_err(Error::file(path))?;
        Ok(file.len())
    }

    /// Reads a file; `None` if there is none.
    pub(crate) fn read(path: &Path) -> Result<Option<Vectors>> {
        let file = match std::fs::read(path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            other => other.map_err(Error::file(path))?,
        };
        let wrong = |reason: &str| Error::format(path, reason);
        let packed = file.strip_prefix(MAGIC).ok_or_else(|| wrong("not a file of recorded vectors"))?;
        let plain = decompress_to_vec_zlib_with_limit(packed, MOST_BYTES).map_err(|_| wrong("damaged"))?;
        let (length, rest) = plain.split_first_chunk::<4>().ok_or_else(|| wrong("too short"))?;
        let (header, results) =
            rest.split_at_checked(u32::from_le_bytes(*length) as usize).ok_or_else(|| wrong("too short"))?;
        let header: Header = serde_json::from_slice(header).map_err(|e| wrong(&e.to_string()))?;
        let sizes = header.cases.iter().try_fold(0usize, |sum, case| sum.checked_add(case.bytes));
        if sizes != Some(results.len()) {
            return Err(wrong("the results do not have the sizes that the header says"));
        }
        Ok(Some(Vectors { header, results: results.to_vec() }))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Recorded, &[u8])> {
        let mut rest = self.results.as_slice();
        self.header.cases.iter().map(move |case| {
            let (mine, others) = rest.split_at(case.bytes);
            rest = others;
            (case, mine)
        })
    }
}
