//! Reading what `--json --profile` wrote, for `warploom diff`.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::failure::Failure;
use crate::input::reason;
use crate::run::shown_name;
use crate::term::dims;

/// A run, as its JSON tells it.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Run {
    pub(super) kernel: String,
    pub(super) chip: String,
    pub(super) sched: Option<String>,
    pub(super) bows: Option<bool>,
    pub(super) grid: [u32; 3],
    pub(super) block: [u32; 3],
    pub(super) cycles: u64,
    pub(super) warp_insts: u64,
    pub(super) ipc: Option<f64>,
    pub(super) simd_efficiency: f64,
    pub(super) warp_cycles: Option<u64>,
    pub(super) locks: Option<Locks>,
    pub(super) energy_nj: Option<BTreeMap<String, f64>>,
    pub(super) workload: Option<String>,
    pub(super) profile: Option<Profile>,
    pub(super) error: Option<Ended>,
}

/// Why a run ended early.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Ended {
    pub(super) kind: String,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Locks {
    pub(super) acquired: u64,
    pub(super) failed_intra: u64,
    pub(super) failed_inter: u64,
}

#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct Profile {
    pub(super) time: BTreeMap<String, u64>,
    pub(super) lines: Vec<Line>,
    pub(super) words: Vec<Word>,
}

/// A line of the source.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(super) struct Line {
    pub(super) line: String,
    pub(super) text: String,
    /// The line of the source, if the run found it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) source: Option<String>,
    pub(super) warp_cycles: u64,
    pub(super) executions: u64,
    pub(super) time: BTreeMap<String, u64>,
    pub(super) failed_polls: u64,
}

/// A lock or a flag.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(super) struct Word {
    pub(super) word: String,
    pub(super) acquired: u64,
    pub(super) failed_intra: u64,
    pub(super) failed_inter: u64,
    pub(super) wait: Span,
    pub(super) satisfied: Span,
    pub(super) hold: Span,
    pub(super) hand_off: Span,
    pub(super) longest_queue: u64,
}

impl Line {
    /// What it says: the source, or else the instruction with the most time.
    pub(super) fn says(&self) -> &str {
        self.source.as_ref().unwrap_or(&self.text)
    }
}

impl Word {
    /// All cycles that threads waited for it.
    pub(super) fn waited(&self) -> u64 {
        self.wait.cycles + self.satisfied.cycles
    }

    pub(super) fn failed(&self) -> u64 {
        self.failed_intra + self.failed_inter
    }
}

#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
pub(super) struct Span {
    pub(super) count: u64,
    pub(super) cycles: u64,
}

impl Span {
    pub(super) fn mean(self) -> Option<u64> {
        self.cycles.checked_div(self.count)
    }
}

const MEND: &str = "write one with `warploom run … --profile --json > A.json`, or the same with `work`";

/// Reads a run with its profile.
pub(super) fn read(file: &Path) -> Result<(Run, Profile), Failure> {
    let shown = file.display();
    let bytes = std::fs::read(file)
        .map_err(|error| Failure::input(format!("cannot read `{shown}`: {}", reason(&error))))?;
    let object: Value = serde_json::from_slice(&bytes)
        .map_err(|error| Failure::input(format!("`{shown}` is not JSON: {error}")).help(MEND))?;
    if let Some(rows) = object.get("rows").and_then(Value::as_array) {
        let rows = rows.len();
        return Err(
            Failure::input(format!("`{shown}` is a comparison with {rows} rows, not one run")).help(MEND)
        );
    }
    let has_profile = object.get("profile").is_some_and(|profile| !profile.is_null());
    // The names of missing and wrong keys are in the error.
    let run = Run::deserialize(object)
        .map_err(|error| Failure::input(format!("`{shown}` is not the JSON of a run: {error}")).help(MEND))?;
    match run.profile.clone() {
        Some(profile) if has_profile => Ok((run, profile)),
        _ => Err(Failure::input(format!("`{shown}` has no profile"))
            .help(format!("only runs with --profile have one: {MEND}"))),
    }
}

impl Run {
    /// What ran, and how.
    pub(super) fn title(&self) -> String {
        let name = self.workload.clone().unwrap_or_else(|| shown_name(&self.kernel));
        let sched = self.sched.as_deref().unwrap_or("-");
        let bows = if self.bows == Some(true) { "+bows" } else { "" };
        let ended = self.error.as_ref().map(|error| format!("; ended early: {}", error.kind));
        format!(
            "{name} on {}, {sched}{bows}, grid {} x block {}{}",
            self.chip,
            dims(self.grid),
            dims(self.block),
            ended.unwrap_or_default()
        )
    }
}
