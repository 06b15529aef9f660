//! Compilers of CUDA: where they are, and how they are called.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use super::super::FileError;
use super::headers;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Nvcc,
    Clang,
}

pub(super) struct Compiler {
    pub program: PathBuf,
    pub kind: Kind,
    /// What `--version` prints.
    pub version: String,
}

/// Newest first. Debian's package `clang` brings `clang`, `clang-19` only that name.
const CLANG_VERSIONS: std::ops::RangeInclusive<u32> = 14..=30;

impl Compiler {
    /// The compiler at `given`; or else nvcc, or else clang, if there is one.
    pub(super) fn find(given: Option<&Path>, source: &Path) -> Result<Compiler, FileError> {
        if let Some(program) = given {
            return Compiler::at(program).ok_or_else(|| {
                FileError::new(format!("`{}` is neither nvcc nor clang", program.display()))
                    .help("--cc is the path of one of them, or its name if it is on the path")
            });
        }
        let found = nvcc().and_then(|program| Compiler::at(&program));
        found.or_else(|| clang().and_then(|program| Compiler::at(&program))).ok_or_else(|| {
            FileError::new(format!(
                "`{}` is CUDA, and there is no compiler for it: neither nvcc nor clang is installed",
                source.display()
            ))
            .help("on Debian and Ubuntu: apt-get install clang")
            .help("with pip, which also needs g++: pip install nvidia-cuda-nvcc nvidia-cuda-cccl")
            .help("--cc PATH names one that is elsewhere")
        })
    }

    /// `None` if the program cannot be started or is something else.
    fn at(program: &Path) -> Option<Compiler> {
        let output = Command::new(program).arg("--version").output().ok().filter(|o| o.status.success())?;
        let version = String::from_utf8_lossy(&output.stdout).into_owned();
        let kind = match () {
            () if version.contains("Cuda compiler driver") => Kind::Nvcc,
            () if version.contains("clang version") => Kind::Clang,
            () => return None,
        };
        let program = on_path(program).unwrap_or_else(|| program.to_path_buf());
        Some(Compiler { program, kind, version })
    }

    pub(super) fn name(&self) -> &'static str {
        match self.kind {
            Kind::Nvcc => "nvcc",
            Kind::Clang => "clang",
        }
    }

    /// The options of both preprocessing and compiling. The last ones are the user's, so that they win.
    pub(super) fn words(
        &self,
        arch: &str,
        cache: &Path,
        flags: &[String],
    ) -> Result<Vec<OsString>, FileError> {
        let mut words: Vec<OsString> = match self.kind {
            Kind::Nvcc => {
                [format!("-arch=compute_{arch}"), "-lineinfo".to_string()].map(OsString::from).to_vec()
            }
            Kind::Clang => {
                let folder = headers::written(cache)?;
                let mut words: Vec<OsString> = [
                    "-x",
                    "cuda",
                    "--cuda-device-only",
                    "-nocudainc",
                    "-nocudalib",
                    "-O2",
                    "-gline-tables-only",
                    // Lines are named as the user named the file, not by a path of this computer.
                    "-fdebug-compilation-dir=.",
                    &format!("--cuda-gpu-arch=sm_{arch}"),
                ]
                .map(OsString::from)
                .to_vec();
                words.extend(self.ptx_option(ptx_version(arch)).into_iter().map(OsString::from));
                words.extend(["-include".into(), folder.join(headers::PRELUDE).into_os_string()]);
                words.extend(["-I".into(), folder.into_os_string()]);
                words
            }
        };
        words.extend(flags.iter().map(OsString::from));
        Ok(words)
    }

    /// How clang is asked for a version of PTX. Before 17 its driver had no option for that.
    fn ptx_option(&self, version: u32) -> Vec<String> {
        let release = self.version.split("clang version ").nth(1).and_then(|rest| rest.split('.').next());
        let feature = format!("+ptx{version}");
        match release.and_then(|major| major.parse::<u32>().ok()) {
            Some(..17) => ["-Xclang", "-target-feature", "-Xclang", &feature].map(str::to_string).to_vec(),
            _ => vec![format!("--cuda-feature={feature}")],
        }
    }

    pub(super) fn run(&self, words: &[OsString], more: &[&str], source: &Path) -> Result<Output, FileError> {
        let mut command = Command::new(&self.program);
        command.args(words).args(more).arg(source).stdin(std::process::Stdio::null());
        command
            .output()
            .map_err(|error| FileError::new(format!("cannot start `{}`: {error}", self.program.display())))
    }
}

/// The version of PTX that a target needs; for older ones, what their `.sync` instructions need.
fn ptx_version(arch: &str) -> u32 {
    match arch.trim_end_matches(|c: char| c.is_ascii_alphabetic()).parse::<u32>().unwrap_or_default() {
        ..70 => 50,
        70..80 => 63,
        80..86 => 70,
        86..89 => 74,
        89..90 => 78,
        90..100 => 80,
        _ => 87,
    }
}

/// On the path, where CUDA's installers put it, or in the package of pip.
fn nvcc() -> Option<PathBuf> {
    let homes = ["CUDA_HOME", "CUDA_PATH"].iter().filter_map(std::env::var_os).map(PathBuf::from);
    let homes = homes.chain([PathBuf::from("/usr/local/cuda")]).map(|home| home.join("bin/nvcc"));
    on_path(Path::new("nvcc")).or_else(|| homes.into_iter().find(|nvcc| nvcc.is_file())).or_else(of_pip)
}

/// The wheel `nvidia-cuda-nvcc` puts it into a folder of its own beside other packages, on no path.
fn of_pip() -> Option<PathBuf> {
    let script = "import nvidia, glob; \
                  print(*[f for p in nvidia.__path__ for f in sorted(glob.glob(p + '/*/bin/nvcc'))], sep='\\n')";
    let output = Command::new("python3").args(["-c", script]).output().ok()?;
    // The last is that of the newest CUDA.
    let last = String::from_utf8(output.stdout).ok()?.lines().last()?.to_string();
    Some(PathBuf::from(last)).filter(|nvcc| nvcc.is_file())
}

fn clang() -> Option<PathBuf> {
    let versions = CLANG_VERSIONS.rev().map(|version| format!("clang-{version}"));
    std::iter::once("clang".to_string()).chain(versions).find_map(|name| on_path(Path::new(&name)))
}

/// Where the shell would find a program.
fn on_path(program: &Path) -> Option<PathBuf> {
    if program.components().count() > 1 {
        return program.is_file().then(|| program.to_path_buf());
    }
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|file| file.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_need_versions_of_ptx() {
        assert_eq!(["60", "75", "80", "90a", "120"].map(ptx_version), [50, 63, 70, 80, 87]);
    }

    #[test]
    fn programs_that_are_no_compilers_are_refused() {
        for program in ["/bin/true", "/bin/false", "/nonexistent/nvcc"] {
            let error = Compiler::find(Some(Path::new(program)), Path::new("k.cu")).err().unwrap();
            assert_eq!(error.message, format!("`{program}` is neither nvcc nor clang"));
        }
    }
}
