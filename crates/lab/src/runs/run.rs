//! A run: everything that decides what a simulation computes, as a value.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};
use warploom::{SimModel, chip};

use super::digest::Digest;
use super::procedure::Procedure;
use super::procedures::PROCEDURES;
use super::provenance;
use crate::kernel::{CompileOptions, KernelFile};
use crate::plan::Plan;

/// The description of one simulation. Runs with equal descriptions are executed once, even across experiments.
///
/// ```
/// use warploom_lab::runs::Run;
///
/// let run = Run::work("hashtable").with("buckets", 64).chip("gtx1080ti").set("sm.count", 4).sched("lrr");
/// assert_eq!(run.to_string(), "work hashtable buckets=64 on gtx1080ti (sm.count=4), lrr");
/// ```
#[derive(Clone, Debug)]
pub struct Run {
    pub(super) what: What,
    pub(super) params: BTreeMap<String, Setting>,
    pub(super) chip: String,
    pub(super) set: Vec<String>,
    pub(super) sched: Option<String>,
    pub(super) model: SimModel,
    pub(super) max_cycles: Option<u64>,
    /// Measure by line and by lock, too.
    pub(super) profile: bool,
    /// The folder that its files are relative to. No part of the description: a folder can be moved.
    pub(super) base: PathBuf,
}

#[derive(Clone, Debug)]
pub(super) enum What {
    /// A workload by name.
    Work(String),
    /// A function for what no workload can measure.
    Procedure(&'static Procedure),
    /// Kernels of a user's file.
    Plan(Arc<Plan>),
}

/// The value of a parameter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Setting {
    Number(i64),
    Word(String),
}

/// A run as JSON: what kept results are compared by, and what a process that executes runs is sent.
#[derive(Serialize, Deserialize)]
struct Description {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    work: Option<String>,
    /// A procedure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    task: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    kernel: Option<Plan>,
    params: BTreeMap<String, Setting>,
    chip: String,
    set: Vec<String>,
    sched: Option<String>,
    model: String,
    max_cycles: Option<u64>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    profile: bool,
}

impl Run {
    /// Runs a workload of [`work`](crate::work) with its defaults on `gtx480`.
    pub fn work(workload: impl Into<String>) -> Run {
        Run::new(What::Work(workload.into()))
    }

    /// Runs a procedure with its defaults on `gtx480`.
    pub(crate) fn procedure(procedure: &'static Procedure) -> Run {
        Run::new(What::Procedure(procedure))
    }

    /// Runs kernels of a file on `gtx480`.
    pub(crate) fn plan(plan: Plan) -> Run {
        Run::new(What::Plan(Arc::new(plan)))
    }

    fn new(what: What) -> Run {
        Run {
            what,
            params: BTreeMap::new(),
            chip: "gtx480".to_string(),
            set: Vec::new(),
            sched: None,
            model: SimModel::Timing,
            max_cycles: None,
            profile: false,
            base: PathBuf::new(),
        }
    }

    /// Sets a parameter of the workload or procedure.
    pub fn with(mut self, param: impl Into<String>, value: impl Into<Setting>) -> Run {
        self.params.insert(param.into(), value.into());
        self
    }

    /// Selects another chip, by name or by file.
    pub fn chip(mut self, chip: &str) -> Run {
        self.chip = chip.to_string();
        self
    }

    /// Changes one value of the chip, as `--set` does.
    pub fn set(mut self, key: &str, value: impl fmt::Display) -> Run {
        self.set.push(format!("{key}={value}"));
        self
    }

    /// Selects another warp scheduler than the chip's.
    pub fn sched(mut self, policy: &str) -> Run {
        self.sched = Some(policy.to_string());
        self
    }

    /// Runs without timing.
    pub fn functional(mut self) -> Run {
        self.model = SimModel::Functional;
        self
    }

    /// Times samples, and estimates the rest.
    pub fn fast(mut self) -> Run {
        self.model = SimModel::Fast;
        self
    }

    /// Limits the cycles of a launch. A launch that exceeds them counts as hanging.
    pub fn max_cycles(mut self, cycles: u64) -> Run {
        self.max_cycles = Some(cycles);
        self
    }

    /// Measures by line and by lock, too.
    pub fn profile(mut self) -> Run {
        self.profile = true;
        self
    }

    /// Sets the folder that chip files, kernels and data are relative to; otherwise the current one.
    pub(crate) fn relative_to(mut self, base: &Path) -> Run {
        self.base = base.to_path_buf();
        self
    }

    /// The chip's name, or the path of its file.
    pub(crate) fn chip_name(&self) -> &str {
        &self.chip
    }

    /// What chips are loaded by: the name of a built-in one, or the path of the file.
    pub(super) fn chip_path(&self) -> String {
        match chip::names().contains(&self.chip.as_str()) {
            true => self.chip.clone(),
            false => self.base.join(&self.chip).to_string_lossy().into_owned(),
        }
    }

    /// What its chip is loaded by.
    pub(crate) fn chip_and_changes(&self) -> (String, &[String]) {
        (self.chip_path(), &self.set)
    }

    /// The description as JSON, in which kept results are compared.
    pub(super) fn description(&self) -> serde_json::Value {
        let (mut work, mut task, mut kernel) = (None, None, None);
        match &self.what {
            What::Work(name) => work = Some(name.clone()),
            What::Procedure(procedure) => task = Some(procedure.name.to_string()),
            What::Plan(plan) => kernel = Some(plan.as_ref().clone()),
        }
        let description = Description {
            work,
            task,
            kernel,
            params: self.params.clone(),
            chip: self.chip.clone(),
            set: self.set.clone(),
            sched: self.sched.clone(),
            model: model_name(self.model).to_string(),
            max_cycles: self.max_cycles,
            profile: self.profile,
        };
        // Plain structures always serialize.
        serde_json::to_value(description).unwrap_or_default()
    }

    /// The run that a description describes.
    pub(super) fn from_description(description: serde_json::Value, base: &Path) -> Result<Run, String> {
        let of: Description = serde_json::from_value(description).map_err(|error| error.to_string())?;
        let what = match (of.work, of.task, of.kernel) {
            (Some(name), None, None) => What::Work(name),
            (None, Some(name), None) => {
                let known = PROCEDURES.iter().find(|procedure| procedure.name == name);
                What::Procedure(known.ok_or_else(|| format!("no procedure `{name}`"))?)
            }
            (None, None, Some(plan)) => What::Plan(Arc::new(plan)),
            _ => return Err("a run is a workload, a procedure or kernels of a file".to_string()),
        };
        let models = [SimModel::Timing, SimModel::Functional, SimModel::Fast];
        let model = models.into_iter().find(|model| model_name(*model) == of.model);
        Ok(Run {
            what,
            params: of.params,
            chip: of.chip,
            set: of.set,
            sched: of.sched,
            model: model.ok_or_else(|| format!("no model `{}`", of.model))?,
            max_cycles: of.max_cycles,
            profile: of.profile,
            base: base.to_path_buf(),
        })
    }

    /// Equal for equal description, chip file, kernels and data files, model and version, and for nothing else.
    pub fn key(&self) -> Key {
        // A chip that cannot be read fails when the run is executed, with a full message.
        let chip = chip::text(&self.chip_path()).unwrap_or_default();
        // A chip with a base names only the keys in which it differs.
        let base = base_of(&chip).and_then(|base| chip::text(base).ok()).unwrap_or_default();
        let mut digest = Digest::new().add(provenance::VERSION).add(provenance::MODEL);
        digest = digest.add(self.description().to_string()).add(chip).add(base);
        if let What::Plan(plan) = &self.what {
            let (file, options) = plan.kernel_file();
            digest = digest.add(kernel_digest(&self.base.join(file), &options));
            for file in plan.data_files() {
                digest = digest.add(file_digest(&self.base.join(file)));
            }
        }
        Key(digest.hex())
    }

    /// The kernel and data files that it reads, relative to its folder.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        match &self.what {
            What::Plan(plan) => std::iter::once(plan.kernel_file().0).chain(plan.data_files()).collect(),
            What::Work(_) | What::Procedure(_) => Vec::new(),
        }
    }
}

fn model_name(model: SimModel) -> &'static str {
    match model {
        SimModel::Timing => "timing",
        SimModel::Functional => "functional",
        SimModel::Fast => "fast",
    }
}

/// The digest of a kernel file. Of CUDA, that of its PTX, which also depends on headers and on the compiler; a source
/// is compiled once for all runs of a process. What does not compile fails when the run is executed.
fn kernel_digest(path: &Path, options: &CompileOptions) -> String {
    static COMPILED: Mutex<Vec<(PathBuf, CompileOptions, String)>> = Mutex::new(Vec::new());
    if path.extension().is_none_or(|extension| extension != "cu") {
        return file_digest(path);
    }
    let mut compiled = COMPILED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, _, digest)) = compiled.iter().find(|(file, with, _)| file == path && with == options) {
        return digest.clone();
    }
    let digest =
        KernelFile::read(path, options).map(|file| Digest::new().add(file.text).hex()).unwrap_or_default();
    compiled.push((path.to_path_buf(), options.clone(), digest.clone()));
    digest
}

/// The digest of a file, read again only if it has changed: a sweep's runs share their kernel and data. A file that
/// cannot be read fails when the run is executed.
fn file_digest(path: &Path) -> String {
    type Known = HashMap<PathBuf, (Option<SystemTime>, u64, String)>;
    static KNOWN: Mutex<Option<Known>> = Mutex::new(None);
    let Ok(meta) = std::fs::metadata(path) else { return String::new() };
    let (modified, length) = (meta.modified().ok(), meta.len());
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let known = known.get_or_insert_default();
    if let Some((when, size, digest)) = known.get(path)
        && (*when, *size) == (modified, length)
    {
        return digest.clone();
    }
    let digest = std::fs::read(path).map(|content| Digest::new().add(content).hex()).unwrap_or_default();
    known.insert(path.to_path_buf(), (modified, length, digest.clone()));
    digest
}

/// The chip that a chip file starts from.
fn base_of(chip: &str) -> Option<&str> {
    let (_, value) =
        chip.lines().filter_map(|line| line.split_once('=')).find(|(key, _)| key.trim() == "base")?;
    value.split('"').nth(1)
}

/// Identifies a run; also the name of its file.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key(String);

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.what {
            What::Work(name) => write!(f, "work {name}")?,
            What::Procedure(procedure) => write!(f, "{}", procedure.name)?,
            What::Plan(plan) => write!(f, "{plan}")?,
        }
        for (name, value) in &self.params {
            write!(f, " {name}={value}")?;
        }
        write!(f, " on {}", self.chip)?;
        if !self.set.is_empty() {
            write!(f, " ({})", self.set.join(", "))?;
        }
        if let Some(sched) = &self.sched {
            write!(f, ", {sched}")?;
        }
        if self.model != SimModel::Timing {
            write!(f, ", {}", model_name(self.model))?;
        }
        if let Some(cycles) = self.max_cycles {
            write!(f, ", at most {cycles} cycles")?;
        }
        if self.profile {
            write!(f, ", profiled")?;
        }
        Ok(())
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Setting::Number(number) => write!(f, "{number}"),
            Setting::Word(word) => f.write_str(word),
        }
    }
}

impl From<&str> for Setting {
    fn from(word: &str) -> Setting {
        Setting::Word(word.to_string())
    }
}

macro_rules! setting_from {
    ($($number:ty),*) => {$(
        impl From<$number> for Setting {
            fn from(number: $number) -> Setting {
                Setting::Number(number.into())
            }
        }
    )*};
}

setting_from!(i64, i32, u32, u16);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_follow_the_description() {
        let run = || Run::work("nw").with("size", 62).with("penalty", 3);
        assert_eq!(run().key(), run().key());
        assert_eq!(run().key(), Run::work("nw").with("penalty", 3).with("size", 62).key());
        let others = [
            Run::work("nw"),
            Run::work("vecadd").with("size", 62).with("penalty", 3),
            run().with("size", 63),
            run().chip("gtx570"),
            run().set("sm.count", 1),
            run().set("sm.count", 2),
            run().sched("lrr"),
            run().functional(),
            run().max_cycles(5),
            run().profile(),
        ];
        let mut keys: Vec<_> = others.iter().map(Run::key).chain([run().key()]).collect();
        keys.sort();
        keys.dedup();
        assert_eq!(keys.len(), others.len() + 1);
    }

    #[test]
    fn a_changed_chip_file_is_another_run() {
        let file = std::env::temp_dir().join(format!("warploom-key-{}.toml", std::process::id()));
        let text = chip::text("gtx480").unwrap();
        std::fs::write(&file, &text).unwrap();
        let run = Run::work("nw").chip(&file.to_string_lossy());
        let before = run.key();
        std::fs::write(&file, text + "\n# another\n").unwrap();
        assert_ne!(run.key(), before);
        std::fs::remove_file(&file).unwrap();
    }

    #[test]
    fn a_chips_base_belongs_to_it() {
        assert_eq!(base_of(&chip::text("gtx480-hpca18").unwrap()), Some("gtx480"));
        assert_eq!(base_of("a = 1\n\nbase=\"apu\"  # why\n"), Some("apu"));
        assert_eq!(base_of(&chip::text("gtx480").unwrap()), None);
    }

    #[test]
    fn descriptions_are_whole() {
        let run = Run::work("nw").with("size", 62).set("sm.count", 1).max_cycles(9).functional();
        assert_eq!(run.to_string(), "work nw size=62 on gtx480 (sm.count=1), functional, at most 9 cycles");
        let json = serde_json::json!({
            "work": "nw", "params": {"size": 62}, "chip": "gtx480", "set": ["sm.count=1"], "sched": null,
            "model": "functional", "max_cycles": 9,
        });
        assert_eq!(run.description(), json);
        let procedure = Run::procedure(PROCEDURES[0]).with("word", "x").sched("lrr").profile();
        for run in [run, procedure] {
            let read = Run::from_description(run.description(), Path::new("")).unwrap();
            assert_eq!((read.description(), read.key()), (run.description(), run.key()));
        }
    }
}
