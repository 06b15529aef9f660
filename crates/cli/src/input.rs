//! Kernel files on a device: read, compiled if they are CUDA, and the chip that they are for.

use std::path::{Path, PathBuf};

use warploom_lab::kernel::{FileError, KernelFile};

use crate::cli::{ChipOptions, CudaOptions};
use crate::failure::Failure;
use crate::term;

/// Reads a kernel file. What a compiler says about a CUDA source that it compiled goes to stderr, unchanged.
pub(crate) fn read(path: &Path, options: &CudaOptions) -> Result<KernelFile, Failure> {
    let file = KernelFile::read(path, &options.compile())?;
    if !file.warnings.trim().is_empty() {
        term::eprint(file.warnings.trim_end());
    }
    Ok(file)
}

/// Reads the files of a program and links them.
pub(crate) fn read_linked(
    paths: impl IntoIterator<Item = PathBuf>,
    options: &CudaOptions,
) -> Result<KernelFile, Failure> {
    let files: Result<Vec<_>, _> = paths.into_iter().map(|path| read(&path, options)).collect();
    Ok(KernelFile::linked(files?)?)
}

/// Names the chip that a kernel file is for, unless one is named. Returns why that one.
pub(crate) fn choose_chip(file: &KernelFile, chip: &mut ChipOptions) -> Option<String> {
    if chip.chip.is_some() {
        return None;
    }
    chip.chip = Some(file.chip().to_string());
    Some(match file.target() {
        Some(target) => format!("chosen for sm_{target}"),
        None => "the default".to_string(),
    })
}

impl From<FileError> for Failure {
    fn from(error: FileError) -> Failure {
        error.help.into_iter().fold(Failure::input(error.message), Failure::help)
    }
}

/// The text of an operating-system error without its number.
pub(crate) fn reason(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_lowercase()
}
