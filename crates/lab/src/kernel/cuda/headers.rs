//! The headers that clang needs in the place of CUDA's: they are inside this program.

use std::fs;
use std::path::{Path, PathBuf};

use super::super::FileError;
use crate::runs::{Digest, write_whole};

/// Included before every source.
pub(super) const PRELUDE: &str = "warploom_prelude.cuh";

/// CUDA's headers that sources include, though compilers include them anyway.
const FORWARDED: [&str; 4] = ["cuda.h", "cuda_runtime.h", "cuda_runtime_api.h", "device_launch_parameters.h"];

fn headers() -> Vec<(&'static str, String)> {
    let mut headers = vec![
        (PRELUDE, include_str!("prelude.cuh").to_string()),
        ("warploom.cuh", warploom_kernels::text!("warploom.cuh").to_string()),
        // The host's would define an `assert` that no kernel can call.
        ("assert.h", "#include \"warploom.cuh\"\n".to_string()),
    ];
    headers.extend(FORWARDED.map(|name| (name, format!("#include \"{PRELUDE}\"\n"))));
    headers
}

/// The folder with the headers, written if it is not there.
pub(super) fn written(cache: &Path) -> Result<PathBuf, FileError> {
    let headers = headers();
    let digest = headers.iter().fold(Digest::new(), |digest, (name, text)| digest.add(name).add(text));
    let folder = cache.join(format!("include-{}", digest.hex()));
    let write = || {
        fs::create_dir_all(&folder)?;
        headers.iter().try_for_each(|(name, text)| match folder.join(name) {
            there if fs::read(&there).is_ok_and(|content| content == text.as_bytes()) => Ok(()),
            missing => write_whole(&missing, text.as_bytes()),
        })
    };
    match write() {
        Ok(()) => Ok(folder),
        Err(error) => Err(FileError::new(format!("cannot write headers to `{}`: {error}", folder.display()))
            .help("XDG_CACHE_HOME names another folder for caches")),
    }
}
