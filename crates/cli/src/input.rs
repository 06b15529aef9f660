//! Kernel files: reading them, and advice about those that cannot be run.

use std::path::Path;

use warploom::{Device, Module};
use warploom_lab::kernel::{Language, language, read_at_most};

use crate::failure::Failure;

/// The PTX of the largest libraries has a tenth of that.
const LARGEST_KERNEL_FILE: u64 = 256 << 20;

/// Reads a file and loads it on a device.
pub(crate) fn load(gpu: &mut Device, path: &Path) -> Result<Module, Failure> {
    let (bytes, language) = read(path)?;
    let name = path.display().to_string();
    Ok(match language {
        Language::Ptx => gpu.load_ptx_named(&name, bytes)?,
        Language::Sass => gpu.load_sass_named(&name, bytes)?,
    })
}

/// Reads a kernel file. Its extension gives the language, or else its first line.
pub(crate) fn read(path: &Path) -> Result<(Vec<u8>, Language), Failure> {
    let shown = path.display();
    let extension = path.extension().and_then(|e| e.to_str()).unwrap_or_default();
    let stem = path.with_extension("").display().to_string();
    match extension {
        "cu" | "cpp" | "cc" | "c" => {
            return Err(Failure::input(format!("`{shown}` is source code; this runs PTX and SASS listings"))
                .help(format!(
                    "compile it first: `nvcc -ptx {shown} -o {stem}.ptx`, or `clang++ --cuda-device-only \
                 --cuda-gpu-arch=sm_70 -O2 -S {shown} -o {stem}.ptx`"
                )));
        }
        _ => {}
    }
    let bytes = read_at_most(path, LARGEST_KERNEL_FILE + 1).map_err(|error| {
        let failure = Failure::input(format!("cannot read `{shown}`: {}", reason(&error)));
        let with_extension = path.with_extension("ptx");
        if extension.is_empty() && with_extension.is_file() {
            return failure.help(format!("did you mean `{}`?", with_extension.display()));
        }
        failure
    })?;
    if bytes.len() as u64 > LARGEST_KERNEL_FILE {
        let most = LARGEST_KERNEL_FILE >> 20;
        return Err(Failure::input(format!("`{shown}` has more than {most} MiB: that is no kernel file")));
    }
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Err(Failure::input(format!("`{shown}` is empty")));
    }
    let language = language(path, &bytes);
    Ok((bytes, language))
}

/// The text of an operating-system error without its number.
pub(crate) fn reason(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_lowercase()
}
