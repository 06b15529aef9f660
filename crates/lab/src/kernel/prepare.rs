//! Arguments on a device, and the language of a kernel file.

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use warploom::isa::Ty;
use warploom::{Arg, Buffer, Device, Error};

use super::arg::{ArgSpec, BufferSpec, Fill};
use super::fill;

/// The language of a kernel file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    Ptx,
    Sass,
}

/// The language of a kernel file: by its extension, or else by its first line.
pub(super) fn language(path: &Path, content: &[u8]) -> Language {
    let is_listing = || std::str::from_utf8(content).is_ok_and(warploom::sass::is_listing);
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("sass") => Language::Sass,
        Some("ptx") => Language::Ptx,
        _ if is_listing() => Language::Sass,
        _ => Language::Ptx,
    }
}

/// Reads a file, but no more than so many bytes: a device or a pipe may have no end.
pub(super) fn read_at_most(path: &Path, bytes: u64) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    std::fs::File::open(path)?.take(bytes).read_to_end(&mut content)?;
    Ok(content)
}

/// An argument ready for a launch.
pub enum Prepared {
    Scalar(Arg<'static>),
    Buffer { ty: Ty, buffer: Buffer<u8> },
}

impl Prepared {
    pub fn arg(&self) -> Arg<'_> {
        match self {
            Prepared::Scalar(arg) => arg.clone(),
            Prepared::Buffer { buffer, .. } => Arg::from(buffer),
        }
    }
}

/// Why an argument cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum PrepareError {
    #[error(transparent)]
    Device(#[from] Error),
    #[error("{name}: cannot read `{}`: {error}", path.display())]
    Read { name: String, path: PathBuf, error: io::Error },
    /// The content does not fit the buffer; `help` says what would.
    #[error("{message}")]
    Size { message: String, help: Option<String> },
}

/// Makes an argument. `name` is the buffer's name in messages; files are relative to the folder `base`.
pub fn prepare(gpu: &mut Device, name: &str, spec: &ArgSpec, base: &Path) -> Result<Prepared, PrepareError> {
    Ok(match spec {
        // PTX declares 16-bit floats as untyped.
        ArgSpec::Scalar { ty: Ty::F16 | Ty::BF16, bytes } => Prepared::Scalar(Arg::scalar(Ty::B16, bytes)),
        ArgSpec::Scalar { ty, bytes } => Prepared::Scalar(Arg::scalar(*ty, bytes)),
        ArgSpec::Bytes(bytes) => Prepared::Scalar(Arg::bytes(bytes)),
        ArgSpec::Buffer(spec) => {
            Prepared::Buffer { ty: spec.ty, buffer: prepare_buffer(gpu, name, spec, base)? }
        }
    })
}

fn prepare_buffer(
    gpu: &mut Device,
    name: &str,
    spec: &BufferSpec,
    base: &Path,
) -> Result<Buffer<u8>, PrepareError> {
    let bytes = size_of(name, spec)?;
    if spec.fill == Fill::Zero {
        return Ok(gpu.zeros_named(name, bytes)?);
    }
    // Allocate first: filling a huge buffer that does not fit would take long for nothing.
    let buffer = gpu.uninit_named(name, bytes)?;
    if spec.fill != Fill::Uninit {
        buffer.write(gpu, &content_of(name, spec, base)?)?;
    }
    Ok(buffer)
}

fn size_of(name: &str, spec: &BufferSpec) -> Result<usize, PrepareError> {
    let message = || format!("{name}: {} elements fit no memory", spec.count);
    spec.bytes().ok_or_else(|| PrepareError::Size { message: message(), help: None })
}

/// The content of a buffer; an uninitialised one has zeros.
pub(crate) fn content_of(name: &str, spec: &BufferSpec, base: &Path) -> Result<Vec<u8>, PrepareError> {
    let (ty, count, bytes) = (spec.ty, spec.count, size_of(name, spec)?);
    Ok(match &spec.fill {
        Fill::Zero | Fill::Uninit => vec![0; bytes],
        Fill::Iota => fill::iota(ty, count),
        Fill::Random(seed) => fill::random(ty, count, *seed),
        Fill::Value(element) => fill::repeat(element, count),
        Fill::List(bytes) => bytes.clone(),
        Fill::File(path) => of_file(name, spec, bytes, path, base)?,
    })
}

/// The content of a file that must have exactly so many bytes.
fn of_file(
    name: &str,
    spec: &BufferSpec,
    bytes: usize,
    shown: &Path,
    base: &Path,
) -> Result<Vec<u8>, PrepareError> {
    let path = base.join(shown);
    let (ty, count, shown) = (spec.ty, spec.count, shown.display());
    let data = read_at_most(&path, bytes as u64 + 1).map_err(|error| PrepareError::Read {
        name: name.to_string(),
        path: path.clone(),
        error,
    })?;
    // Of a device or a pipe only a little more than is wanted was read.
    let of_file = std::fs::metadata(&path).ok().filter(|file| file.is_file()).map(|file| file.len());
    let has = of_file.map_or(data.len(), |len| len as usize);
    if has == bytes {
        return Ok(data);
    }
    let element = ty.bytes() as usize;
    let more = if of_file.is_none() && has > bytes { "more than " } else { "" };
    let shown_size = if more.is_empty() { has } else { bytes };
    let message =
        format!("{name}: `{shown}` has {more}{shown_size} bytes, {count} elements of {ty} are {bytes} bytes");
    let help = match has % element {
        _ if of_file.is_none() => None,
        0 => Some(format!("the whole file is buf:{ty}:{}=@{shown}", has / element)),
        _ => Some(format!("the file's size is no multiple of {element}")),
    };
    Err(PrepareError::Size { message, help })
}
