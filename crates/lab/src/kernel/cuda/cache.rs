//! PTX that was compiled before, by a digest of everything that decides what the compiler writes.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

use super::compiler::Compiler;
use crate::runs::{Digest, write_whole};

/// The folder of all entries.
pub(super) fn folder() -> PathBuf {
    let of = |name: &str| env::var_os(name).map(PathBuf::from).filter(|folder| folder.is_absolute());
    let caches =
        of("XDG_CACHE_HOME").or_else(|| Some(of("HOME")?.join(".cache"))).unwrap_or_else(env::temp_dir);
    caches.join("warploom/cuda")
}

/// A place for one source compiled in one way.
pub(super) struct Entry {
    folder: PathBuf,
    stem: PathBuf,
}

impl Entry {
    /// `words` are the compiler's options, and `text` is the source after the preprocessor.
    pub(super) fn new(
        folder: &Path,
        source: &Path,
        compiler: &Compiler,
        words: &[OsString],
        text: &str,
    ) -> Entry {
        let mut digest = Digest::new().add(text).add(&compiler.version);
        digest = digest.add(compiler.program.as_os_str().as_encoded_bytes());
        // Another compiler can come to the same place with the same version, such as a nightly build.
        if let Ok(meta) = fs::metadata(&compiler.program) {
            digest = digest.add(meta.len().to_le_bytes()).add(format!("{:?}", meta.modified().ok()));
        }
        // Line tables have the source's path, and the current folder if that is relative.
        digest = digest.add(source.as_os_str().as_encoded_bytes());
        digest = digest.add(env::current_dir().unwrap_or_default().as_os_str().as_encoded_bytes());
        for word in words {
            digest = digest.add(word.as_encoded_bytes());
            // A file of options can say more than the preprocessor uses.
            let word = word.to_string_lossy();
            let file = word.rsplit_once('=').map_or(word.trim_start_matches('@'), |(_, file)| file);
            if let Ok(content) = fs::read(file) {
                digest = digest.add(content);
            }
        }
        for name in ["NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS", "CCC_OVERRIDE_OPTIONS"] {
            digest = digest.add(env::var_os(name).unwrap_or_default().as_encoded_bytes());
        }
        let stem = PathBuf::from(source.file_stem().unwrap_or_default());
        Entry { folder: folder.join(digest.hex()), stem }
    }

    pub(super) fn ptx(&self) -> PathBuf {
        self.folder.join(&self.stem).with_extension("ptx")
    }

    fn warnings(&self) -> PathBuf {
        self.folder.join(&self.stem).with_extension("txt")
    }

    /// The PTX and the warnings, if they are there.
    pub(super) fn read(&self) -> Option<(Vec<u8>, String)> {
        Some((fs::read(self.ptx()).ok()?, fs::read_to_string(self.warnings()).ok()?))
    }

    /// Where the compiler writes, until [`keep`](Entry::keep). No other process uses it.
    pub(super) fn part(&self) -> io::Result<PathBuf> {
        fs::create_dir_all(&self.folder)?;
        Ok(self.folder.join(format!("part-{}.ptx", std::process::id())))
    }

    /// Keeps what the compiler wrote. Each file appears whole, and the PTX last, so that another process never finds
    /// one without the other. Returns the PTX.
    pub(super) fn keep(&self, part: &Path, warnings: &str) -> io::Result<Vec<u8>> {
        write_whole(&self.warnings(), warnings.as_bytes())?;
        let ptx = fs::read(part)?;
        fs::rename(part, self.ptx())?;
        Ok(ptx)
    }
}
