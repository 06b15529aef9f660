//! CUDA sources: found compilers, compilation to PTX with line information, and the cache of what was compiled.

mod cache;
mod compiler;
mod headers;

use std::io;
use std::path::{Path, PathBuf};
use std::process::Output;

use super::FileError;
use compiler::{Compiler, Kind};

/// How CUDA is compiled. The default is what most kernels need: a compiler that is found, and a target that every
/// compiler of these years has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CompileOptions {
    /// `sm_90`, `compute_90` or `90`.
    pub arch: Option<String>,
    /// A compiler to use instead of one that is found.
    pub compiler: Option<PathBuf>,
    /// More options for the compiler.
    pub flags: Vec<String>,
}

/// What became of a source.
pub(super) struct Compiled {
    /// The file that keeps the PTX.
    pub file: PathBuf,
    pub ptx: Vec<u8>,
    /// The source as the preprocessor left it.
    pub preprocessed: String,
    /// What the compiler said, though it compiled.
    pub warnings: String,
}

/// The target unless one is named: nvcc 13 has no older one, and clang has had it since version 8.
const DEFAULT_ARCH: &str = "75";

/// Compiles a source, or finds it compiled already.
///
/// The source is preprocessed each time. What that yields is all that the compiler sees of the source and of the
/// headers that it includes, so the cache cannot miss a change of any of them, or a header that now hides another.
pub(super) fn compile(path: &Path, options: &CompileOptions) -> Result<Compiled, FileError> {
    let arch = architecture(options.arch.as_deref().unwrap_or(DEFAULT_ARCH))?;
    let compiler = Compiler::find(options.compiler.as_deref(), path)?;
    let folder = cache::folder();
    let words = compiler.words(&arch, &folder, &options.flags)?;
    let refused = |output: &Output| refused(&compiler, path, output);
    let preprocessed = compiler.run(&words, &["-E"], path)?;
    if !preprocessed.status.success() {
        return Err(refused(&preprocessed));
    }
    let text = String::from_utf8_lossy(&preprocessed.stdout).into_owned();
    let entry = cache::Entry::new(&folder, path, &compiler, &words, &text);
    if let Some((ptx, warnings)) = entry.read() {
        let ptx = with_short_names(ptx);
        return Ok(Compiled { file: entry.ptx(), ptx, preprocessed: text, warnings });
    }
    let to_ptx = match compiler.kind {
        Kind::Nvcc => "-ptx",
        Kind::Clang => "-S",
    };
    let kept = |error: io::Error| {
        let (path, folder) = (path.display(), folder.display());
        FileError::new(format!("cannot keep the PTX of `{path}` in `{folder}`: {error}"))
            .help("XDG_CACHE_HOME names another folder for caches")
    };
    let part = entry.part().map_err(kept)?;
    let output = compiler.run(&words, &[to_ptx, "-o", &part.to_string_lossy()], path)?;
    if !output.status.success() {
        return Err(refused(&output));
    }
    let warnings = String::from_utf8_lossy(&output.stderr).into_owned();
    let ptx = with_short_names(entry.keep(&part, &warnings).map_err(kept)?);
    Ok(Compiled { file: entry.ptx(), ptx, preprocessed: text, warnings })
}

/// Names source files as seen from the current folder, where a compiler names them from the root.
fn with_short_names(ptx: Vec<u8>) -> Vec<u8> {
    let folder = std::env::current_dir().ok().map(|folder| format!("\"{}/", folder.display()));
    match (folder, String::from_utf8(ptx)) {
        (Some(folder), Ok(text)) => shortened(&text, &folder).into_bytes(),
        (None, Ok(text)) => text.into_bytes(),
        (_, Err(error)) => error.into_bytes(),
    }
}

/// Takes a folder, which follows a quotation mark, off the names of `.file` directives. Lines stay where they are.
fn shortened(ptx: &str, folder: &str) -> String {
    let is_file = |line: &str| line.trim_start().starts_with(".file");
    let short = |line: &str| if is_file(line) { line.replacen(folder, "\"", 1) } else { line.to_string() };
    ptx.split_inclusive('\n').map(short).collect()
}

/// The compiler's message, unchanged, below a line that says whose it is.
fn refused(compiler: &Compiler, path: &Path, output: &Output) -> FileError {
    let said = if output.stderr.is_empty() { &output.stdout } else { &output.stderr };
    let said = String::from_utf8_lossy(said);
    FileError::new(format!("{} does not compile `{}`:\n{}", compiler.name(), path.display(), said.trim_end()))
}

/// The number of a target with its letter: `90a`.
fn architecture(text: &str) -> Result<String, FileError> {
    let number = ["sm_", "compute_"].iter().find_map(|prefix| text.strip_prefix(prefix)).unwrap_or(text);
    let digits = number.trim_end_matches(['a', 'f']);
    match digits.parse::<u32>() {
        Ok(20..=999) if number.len() - digits.len() <= 1 => Ok(number.to_string()),
        _ => Err(FileError::new(format!("`{text}` is no target")).help("write it as sm_75 or sm_90a")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_below_the_current_folder_have_short_names() {
        let ptx = ".file 1 \"/home/me/k.cu\", 5, 6\n\t.file\t2 \"/usr/include/a.h\"\n.b8 \"/home/me/k.cu\"\n";
        let short = ".file 1 \"k.cu\", 5, 6\n\t.file\t2 \"/usr/include/a.h\"\n.b8 \"/home/me/k.cu\"\n";
        assert_eq!(shortened(ptx, "\"/home/me/"), short);
    }

    #[test]
    fn targets() {
        let number = |text| architecture(text).map_err(|error| error.message);
        assert_eq!(number("sm_75").as_deref(), Ok("75"));
        assert_eq!(number("compute_90a").as_deref(), Ok("90a"));
        assert_eq!(number("120").as_deref(), Ok("120"));
        for wrong in ["hopper", "sm_", "sm_9", "sm_90ab", "sm_-90"] {
            assert_eq!(number(wrong), Err(format!("`{wrong}` is no target")));
        }
    }
}
