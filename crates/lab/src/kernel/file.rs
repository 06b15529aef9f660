//! Kernel files: PTX, SASS listings, and CUDA, which is compiled. What they are called, and the chip they are for.

use std::path::{Path, PathBuf};

use warploom::{Device, Error, Kernel, Module, ptx};

use super::cuda::{self, CompileOptions};
use super::prepare::{Language, language, read_at_most};
use super::{entry, parameters};

/// The PTX of the largest libraries has a tenth of that.
const LARGEST_KERNEL_FILE: u64 = 256 << 20;

/// What is wrong with a kernel file, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct FileError {
    pub message: String,
    pub help: Vec<String>,
}

impl FileError {
    pub(crate) fn new(message: impl Into<String>) -> FileError {
        FileError { message: message.into(), help: Vec::new() }
    }

    pub(super) fn help(mut self, help: impl Into<String>) -> FileError {
        self.help.push(help.into());
        self
    }
}

/// A kernel file as it was read or compiled.
pub struct KernelFile {
    /// The file with the text: PTX or a listing, or where the PTX of a CUDA source is kept.
    pub name: String,
    /// The file as it was named.
    pub given: String,
    pub text: Vec<u8>,
    pub language: Language,
    /// What a compiler said, though it compiled.
    pub warnings: String,
    path: PathBuf,
    /// A CUDA source after the preprocessor.
    source: Option<String>,
}

impl KernelFile {
    /// Reads a file, and compiles it if it is CUDA. Messages call it by its path.
    pub fn read(path: &Path, options: &CompileOptions) -> Result<KernelFile, FileError> {
        KernelFile::read_named(path, &path.display().to_string(), options)
    }

    /// Like [`KernelFile::read`], with another name in messages.
    pub fn read_named(path: &Path, name: &str, options: &CompileOptions) -> Result<KernelFile, FileError> {
        let extension = path.extension().and_then(|e| e.to_str()).unwrap_or_default();
        match extension {
            "py" => return Err(of_python(path, name)),
            "c" | "cc" | "cpp" | "cxx" | "cuh" => {
                return Err(FileError::new(format!("`{name}` is not CUDA by its name")).help(
                    "a file with kernels in CUDA is named KERNEL.cu; PTX and SASS listings run as they are",
                ));
            }
            _ => {}
        }
        let text = read_at_most(path, LARGEST_KERNEL_FILE + 1).map_err(|error| {
            let text = error.to_string();
            let reason = text.split(" (os error").next().unwrap_or(&text).to_lowercase();
            let failure = FileError::new(format!("cannot read `{name}`: {reason}"));
            let with_extension = path.with_extension("ptx");
            if extension.is_empty() && with_extension.is_file() {
                return failure.help(format!("did you mean `{}`?", with_extension.display()));
            }
            failure
        })?;
        if text.len() as u64 > LARGEST_KERNEL_FILE {
            let most = LARGEST_KERNEL_FILE >> 20;
            return Err(FileError::new(format!("`{name}` has more than {most} MiB: that is no kernel file")));
        }
        if text.iter().all(u8::is_ascii_whitespace) {
            return Err(FileError::new(format!("`{name}` is empty")));
        }
        if extension == "cu" {
            let compiled = cuda::compile(path, options)?;
            return Ok(KernelFile {
                name: compiled.file.display().to_string(),
                given: name.to_string(),
                text: compiled.ptx,
                language: Language::Ptx,
                warnings: compiled.warnings,
                path: path.to_path_buf(),
                source: Some(compiled.preprocessed),
            });
        }
        if *options != CompileOptions::default() {
            return Err(FileError::new(format!("`{name}` is compiled already"))
                .help("--arch, --cc and options after `--` are for CUDA sources, KERNEL.cu"));
        }
        Ok(KernelFile {
            name: name.to_string(),
            given: name.to_string(),
            language: language(path, &text),
            text,
            warnings: String::new(),
            path: path.to_path_buf(),
            source: None,
        })
    }

    /// One program of several files with PTX, which use functions and variables of each other.
    pub fn linked(mut files: Vec<KernelFile>) -> Result<KernelFile, FileError> {
        if files.len() == 1 {
            return Ok(files.remove(0));
        }
        let mut texts = Vec::new();
        for file in &files {
            if file.language != Language::Ptx {
                return Err(FileError::new(format!("`{}` is a listing: only PTX is linked", file.given)));
            }
            // What is wrong in one file is told in its own lines.
            let text = ptx::text_of(&file.name, &file.text);
            let text = text.and_then(|text| ptx::resolve_text(&file.name, text).map(|_| text));
            texts.push(text.map_err(|error| FileError::new(error.to_string()))?);
        }
        let names = |of: fn(&KernelFile) -> &str| files.iter().map(of).collect::<Vec<_>>().join(" + ");
        let sources: Vec<_> = files.iter().filter_map(|file| file.source.as_deref()).collect();
        let first = files.first().ok_or_else(|| FileError::new("no file to link"))?;
        Ok(KernelFile {
            name: names(|file| &file.name),
            given: names(|file| &file.given),
            text: ptx::link(&texts).into_bytes(),
            language: Language::Ptx,
            warnings: String::new(),
            path: first.path.clone(),
            source: (!sources.is_empty()).then(|| sources.join("\n")),
        })
    }

    /// Loads it on a device.
    pub fn load(&self, gpu: &mut Device) -> Result<Module, Error> {
        match self.language {
            Language::Ptx => gpu.load_ptx_named(&self.name, &self.text),
            Language::Sass => gpu.load_sass_named(&self.name, &self.text),
        }
    }

    /// The number of the target that the PTX was compiled for: 90 of `sm_90a`.
    pub fn target(&self) -> Option<u32> {
        let line = self.lines().find_map(|line| line.strip_prefix(".target"))?;
        let word = line.split(',').map(str::trim).find_map(|word| word.strip_prefix("sm_"))?;
        word.trim_end_matches(|c: char| !c.is_ascii_digit()).parse().ok()
    }

    /// The chip that runs it if none is named: one of its target's generation, as threads are scheduled there.
    pub fn chip(&self) -> &'static str {
        match self.target() {
            Some(70..) => "h200",
            Some(60..) => "gtx1080ti",
            _ => "gtx480",
        }
    }

    /// The names of a kernel's parameters. PTX mostly has none; they come from the source that was compiled, if it is
    /// found: as the line information names it, or beside the PTX under the same name. Otherwise they are `param_0`,
    /// `param_1` ….
    pub fn parameter_names(&self, kernel: &Kernel) -> Vec<String> {
        let declared = &kernel.info().params;
        let numbered = |at: usize| format!("param_{at}");
        let is_numbered = |(at, name): (usize, &str)| name == format!("{}_param_{at}", kernel.name());
        let names = declared.iter().map(|param| param.name.as_str());
        if !names.clone().enumerate().all(is_numbered) {
            return names.map(str::to_string).collect();
        }
        let plain = entry::plain(kernel.name());
        let plain = plain.split('<').next().unwrap_or_default();
        let plain = plain.rsplit("::").next().unwrap_or_default();
        let of_source = |text: &str| {
            let kernels = parameters::of_source(text).into_iter();
            // A template is mostly instantiated without names.
            let is_it = |(name, list): &(String, Vec<String>)| {
                name == plain && list.len() == declared.len() && list.iter().any(|name| !name.is_empty())
            };
            let mut named = kernels.filter(is_it);
            let (_, list) = named.next()?;
            // Overloads that call the same parameter differently say nothing about it.
            named.all(|(_, other)| other == list).then_some(list)
        };
        let found = match &self.source {
            Some(text) => of_source(text),
            None => self.sources().iter().find_map(|file| of_source(&std::fs::read_to_string(file).ok()?)),
        };
        let found = found.unwrap_or_else(|| vec![String::new(); declared.len()]);
        let name = |(at, name): (usize, String)| if name.is_empty() { numbered(at) } else { name };
        found.into_iter().enumerate().map(name).collect()
    }

    /// Where the source of a PTX file may be.
    fn sources(&self) -> Vec<PathBuf> {
        let folder = self.path.parent().unwrap_or(Path::new(""));
        let files = self.lines().filter_map(|line| line.strip_prefix(".file"));
        let named = files.filter_map(|line| line.split('"').nth_back(1)).filter(|file| file.ends_with(".cu"));
        let found = named.flat_map(|file| {
            let file = PathBuf::from(file);
            let beside = file.file_name().map(|name| folder.join(name));
            [Some(file), beside].into_iter().flatten()
        });
        found.chain([self.path.with_extension("cu")]).collect()
    }

    fn lines(&self) -> impl Iterator<Item = &str> {
        // Directives are ASCII, and other lines do not matter here.
        self.text
            .split(|byte| *byte == b'\n')
            .filter_map(|line| std::str::from_utf8(line).ok())
            .map(str::trim)
    }
}

/// How to get the PTX of a Python kernel.
fn of_python(path: &Path, name: &str) -> FileError {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let triton = "Triton: compiled = KERNEL[grid](…), or KERNEL.warmup(…, grid=grid); \
                  then open('kernel.ptx', 'w').write(compiled.asm['ptx'])";
    let numba = "Numba: from numba import cuda; ptx, _ = cuda.compile_ptx(FUNCTION, SIGNATURE, cc=(9, 0)); \
                 then open('kernel.ptx', 'w').write(ptx)";
    let error =
        FileError::new(format!("`{name}` is Python, not CUDA: its compiler runs in Python, and writes PTX"));
    match (text.contains("triton"), text.contains("numba")) {
        (true, false) => error.help(triton),
        (false, true) => error.help(numba),
        _ => error.help(triton).help(numba),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str) -> KernelFile {
        KernelFile {
            name: "k.ptx".to_string(),
            given: "k.ptx".to_string(),
            text: text.into(),
            language: Language::Ptx,
            warnings: String::new(),
            path: "k.ptx".into(),
            source: None,
        }
    }

    #[test]
    fn targets_choose_chips() {
        for (target, number, chip) in [
            (".target sm_20", Some(20), "gtx480"),
            ("// .target sm_90\n.target sm_52, debug", Some(52), "gtx480"),
            (".target sm_61, texmode_independent", Some(61), "gtx1080ti"),
            ("\t.target\tsm_70", Some(70), "h200"),
            (".target sm_90a", Some(90), "h200"),
            (".target sm_120f", Some(120), "h200"),
            ("", None, "gtx480"),
        ] {
            let file = file(target);
            assert_eq!((file.target(), file.chip()), (number, chip), "{target}");
        }
    }

    #[test]
    fn sources_are_looked_for_where_lines_say() {
        let file = file(
            ".file 1 \"/src/a.cu\"\n.file 2 \"/x\" \"b.cu\"\n.file 3 \"c.h\", 12, 3\n.file 4 \"d.cu\", 1, 2\n",
        );
        let paths = file.sources();
        let names: Vec<_> = paths.iter().map(|path| path.to_str().unwrap()).collect();
        assert_eq!(names, ["/src/a.cu", "a.cu", "b.cu", "b.cu", "d.cu", "d.cu", "k.cu"]);
    }
}
