//! Errors of recording and replaying.

use std::path::PathBuf;

pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why vectors cannot be recorded or replayed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The device refuses or fails.
    #[error(transparent)]
    Device(#[from] warploom::Error),
    /// A file cannot be read or written.
    #[error("{path}: {source}", path = path.display())]
    File { path: PathBuf, source: std::io::Error },
    /// A file is not what it should be.
    #[error("{path}: {reason}", path = path.display())]
    Format { path: PathBuf, reason: String },
    /// Results of a simulated chip would prove nothing about the simulator.
    #[error("`{0}` is a simulated chip: vectors are recorded on a real GPU")]
    Simulated(String),
    #[error("no recorded vectors in {}", .0.display())]
    NoVectors(PathBuf),
}

impl Error {
    /// For `map_err`: an error in reading or writing `path`.
    pub(crate) fn file(path: &std::path::Path) -> impl Fn(std::io::Error) -> Error {
        let path = path.to_path_buf();
        move |source| Error::File { path: path.clone(), source }
    }

    pub(crate) fn format(path: &std::path::Path, reason: impl Into<String>) -> Error {
        Error::Format { path: path.to_path_buf(), reason: reason.into() }
    }
}
