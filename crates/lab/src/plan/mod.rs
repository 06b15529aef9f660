//! Plans: buffers, launches one after the other, loops until a word is zero, and checks of the results.
//!
//! `warploom run PLAN.toml` executes one, and a sweep has one for its kernels. `file.rs` reads the file, and
//! `execute.rs` carries it out. `docs/plans.md` is the guide.
//!
//! ```
//! use std::path::Path;
//! use warploom_lab::plan::PlanFile;
//!
//! let text = "file = 'k.ptx'\n[buffers]\ndata = 'u32:{n}=iota'\n[params]\nn = 64\n\
//!             [[launch]]\ngrid = 2\nargs = ['data', 'u32:{n}']\n";
//! let plan = PlanFile::parse(text)?.plan(&[("n".to_string(), "128".to_string())], Path::new(""))?;
//! assert_eq!(plan.to_string(), "k.ptx <2,1,1>(data, u32:128)");
//! # Ok::<(), warploom_lab::plan::PlanProblem>(())
//! ```

mod check;
mod execute;
mod file;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::kernel::{ArgSpec, CompileOptions, FileError, Fill, KernelFile};

pub use execute::{PlanError, PlanOutcome};
pub use file::PlanFile;
pub(crate) use file::PlanTable;

/// What is launched with what. A plan is also a part of a run's description.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The folder that its files are relative to, itself relative to the run's.
    folder: PathBuf,
    /// PTX, a SASS listing, or CUDA.
    file: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    arch: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    flags: Vec<String>,
    /// Buffers by name: `u32:1024=zero`. They keep their content from launch to launch.
    buffers: BTreeMap<String, String>,
    steps: Vec<Step>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    checks: BTreeMap<String, Expected>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Step {
    Launch(PlannedLaunch),
    Loop(PlannedLoop),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct PlannedLaunch {
    /// Not needed if the file has only one kernel.
    entry: Option<String>,
    grid: [u32; 3],
    block: Option<[u32; 3]>,
    shared_bytes: u32,
    /// Names of buffers, or values as `--arg` of `warploom run` takes them, with `NAME=` before them or not.
    args: Vec<String>,
    /// How often it is launched.
    times: u32,
    /// Content that buffers get before each launch.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    fill: BTreeMap<String, String>,
    /// Buffers that change names after each launch.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    swap: Vec<[String; 2]>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct PlannedLoop {
    until_zero: Word,
    /// How often at most.
    at_most: u32,
    steps: Vec<Step>,
}

/// An element of a buffer: `changed` or `changed[3]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Word {
    buffer: String,
    index: usize,
}

/// The content that a buffer must have at the end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Expected {
    /// As after the `=` of a buffer: `zero`, `list:1,2` ….
    content: String,
    /// How far elements may be from it.
    within: f64,
}

/// What stands for the number of a loop's iteration, from 0, in the texts of its launches.
const ITERATION: &str = "{iteration}";

/// What is wrong with a plan, where, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{message}", line.map(|line| format!("line {line}: ")).unwrap_or_default())]
pub struct PlanProblem {
    /// The line of the file.
    pub line: Option<usize>,
    pub message: String,
    pub help: Option<String>,
}

impl PlanProblem {
    fn new(message: impl Into<String>) -> PlanProblem {
        PlanProblem { line: None, message: message.into(), help: None }
    }

    fn help(self, help: impl Into<String>) -> PlanProblem {
        PlanProblem { help: Some(help.into()), ..self }
    }

    /// At a place of the text, unless its place is known already.
    fn at(self, text: &str, place: usize) -> PlanProblem {
        let line = text[..place.min(text.len())].matches('\n').count() + 1;
        PlanProblem { line: self.line.or(Some(line)), ..self }
    }
}

impl Plan {
    /// The folder of its files, for a run whose own folder is `base`.
    fn base(&self, base: &Path) -> PathBuf {
        base.join(&self.folder)
    }

    /// The kernel file with its path relative to the run's folder, and how it is compiled.
    pub(crate) fn kernel_file(&self) -> (PathBuf, CompileOptions) {
        (self.folder.join(&self.file), self.compile_options())
    }

    fn compile_options(&self) -> CompileOptions {
        CompileOptions { arch: self.arch.clone(), compiler: None, flags: self.flags.clone() }
    }

    /// Reads the kernel file, and compiles it if it is CUDA. Messages call it as the plan does.
    pub fn read_kernels(&self, base: &Path) -> Result<KernelFile, FileError> {
        KernelFile::read_named(&self.base(base).join(&self.file), &self.file, &self.compile_options())
    }

    /// The files with the content of buffers, relative to the run's folder.
    pub(crate) fn data_files(&self) -> Vec<PathBuf> {
        let contents = self.buffers.values().map(|text| format!("buf:{text}").parse());
        let launches = self.launches();
        let args = launches.iter().flat_map(|launch| &launch.args).map(|text| text.parse());
        let files = contents.chain(args).filter_map(|spec| match spec {
            Ok(ArgSpec::Buffer(buffer)) => match buffer.fill {
                Fill::File(path) => Some(self.folder.join(path)),
                _ => None,
            },
            _ => None,
        });
        files.collect()
    }

    pub fn buffer_names(&self) -> Vec<&str> {
        self.buffers.keys().map(String::as_str).collect()
    }

    /// The number of a buffer's elements.
    pub fn elements(&self, buffer: &str) -> Option<usize> {
        Some(check::content(self.buffers.get(buffer)?).ok()?.spec().count)
    }

    /// The launches in the order of the file, those in loops too.
    fn launches(&self) -> Vec<&PlannedLaunch> {
        fn collect<'a>(steps: &'a [Step], found: &mut Vec<&'a PlannedLaunch>) {
            for step in steps {
                match step {
                    Step::Launch(launch) => found.push(launch),
                    Step::Loop(planned) => collect(&planned.steps, found),
                }
            }
        }
        let mut found = Vec::new();
        collect(&self.steps, &mut found);
        found
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        for launch in self.launches() {
            let [x, y, z] = launch.grid;
            write!(f, " {}<{x},{y},{z}>({})", launch.entry.as_deref().unwrap_or(""), launch.args.join(", "))?;
        }
        Ok(())
    }
}

impl fmt::Display for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}[{}]", self.buffer, self.index)
    }
}
