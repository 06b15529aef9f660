//! A run: everything that decides what a simulation computes, as a value.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;
use warploom::{SimModel, chip};

use super::digest::Digest;
use super::procedure::Procedure;
use super::provenance;

/// The description of one simulation. Runs with equal descriptions are executed once, even across experiments.
///
/// ```
/// use warploom_lab::repro::Run;
///
/// let run = Run::work("hashtable").with("buckets", 64).chip("gtx1080ti").set("sm.count", 4).sched("lrr");
/// assert_eq!(run.to_string(), "work hashtable buckets=64 on gtx1080ti (sm.count=4), lrr");
/// ```
#[derive(Clone, Debug)]
pub struct Run {
    pub(super) what: What,
    pub(super) params: BTreeMap<&'static str, Setting>,
    pub(super) chip: String,
    pub(super) set: Vec<String>,
    pub(super) sched: Option<&'static str>,
    pub(super) model: SimModel,
    pub(super) max_cycles: Option<u64>,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum What {
    /// A workload by name.
    Work(&'static str),
    /// A function for what no workload can measure.
    Procedure(&'static Procedure),
}

/// The value of a parameter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Setting {
    Number(i64),
    Word(&'static str),
}

impl Run {
    /// Runs a workload of [`work`](crate::work) with its defaults on `gtx480`.
    pub fn work(workload: &'static str) -> Run {
        Run::new(What::Work(workload))
    }

    /// Runs a procedure with its defaults on `gtx480`.
    pub(super) fn procedure(procedure: &'static Procedure) -> Run {
        Run::new(What::Procedure(procedure))
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
        }
    }

    /// Sets a parameter of the workload or procedure.
    pub fn with(mut self, param: &'static str, value: impl Into<Setting>) -> Run {
        self.params.insert(param, value.into());
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
    pub fn sched(mut self, policy: &'static str) -> Run {
        self.sched = Some(policy);
        self
    }

    /// Runs without timing.
    pub fn functional(mut self) -> Run {
        self.model = SimModel::Functional;
        self
    }

    /// Limits the cycles of a launch. A launch that exceeds them counts as hanging.
    pub fn max_cycles(mut self, cycles: u64) -> Run {
        self.max_cycles = Some(cycles);
        self
    }

    /// The chip's name, or the path of its file.
    pub(super) fn chip_name(&self) -> &str {
        &self.chip
    }

    /// The description as JSON, in which kept results are compared.
    pub(super) fn description(&self) -> serde_json::Value {
        let (kind, name) = match self.what {
            What::Work(name) => ("work", name),
            // The key under which kept results and keys know a procedure.
            What::Procedure(procedure) => ("task", procedure.name),
        };
        let model = match self.model {
            SimModel::Timing => "timing",
            SimModel::Functional => "functional",
        };
        serde_json::json!({
            kind: name, "params": self.params, "chip": self.chip, "set": self.set, "sched": self.sched,
            "model": model, "max_cycles": self.max_cycles,
        })
    }

    /// Equal for equal description, chip file, model and kernels, and for nothing else.
    pub(super) fn key(&self) -> Key {
        // A chip that cannot be read fails when the run is executed, with a full message.
        let chip = chip::text(&self.chip).unwrap_or_default();
        // A chip with a base names only the keys in which it differs.
        let base = base_of(&chip).and_then(|base| chip::text(base).ok()).unwrap_or_default();
        let digest = Digest::new().add(provenance::VERSION).add(provenance::MODEL);
        Key(digest.add(self.description().to_string()).add(chip).add(base).hex())
    }
}

/// The chip that a chip file starts from.
fn base_of(chip: &str) -> Option<&str> {
    let (_, value) =
        chip.lines().filter_map(|line| line.split_once('=')).find(|(key, _)| key.trim() == "base")?;
    value.split('"').nth(1)
}

/// Identifies a run; also the name of its file.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Key(String);

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.what {
            What::Work(name) => write!(f, "work {name}")?,
            What::Procedure(procedure) => write!(f, "{}", procedure.name)?,
        }
        for (name, value) in &self.params {
            write!(f, " {name}={value}")?;
        }
        write!(f, " on {}", self.chip)?;
        if !self.set.is_empty() {
            write!(f, " ({})", self.set.join(", "))?;
        }
        if let Some(sched) = self.sched {
            write!(f, ", {sched}")?;
        }
        if self.model == SimModel::Functional {
            write!(f, ", functional")?;
        }
        if let Some(cycles) = self.max_cycles {
            write!(f, ", at most {cycles} cycles")?;
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

impl From<&'static str> for Setting {
    fn from(word: &'static str) -> Setting {
        Setting::Word(word)
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
    }
}
