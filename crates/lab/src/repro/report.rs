//! Experiments, run and judged.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Instant;

use super::execute::{Ended, Execute, Plan, execute_all};
use super::metrics::Metrics;
use super::row::{Failed, Row, Verdict};
use super::run::{Key, Run};
use super::{About, Experiment, Scale, task};
use crate::plot::Plot;

/// What the runs of an experiment measured.
#[derive(Debug)]
pub struct Results {
    scale: Scale,
    ended: BTreeMap<Key, Ended>,
}

impl Results {
    /// Whether the runs are those of the quick form.
    pub fn scale(&self) -> Scale {
        self.scale
    }

    /// What a run measured.
    pub fn of(&self, run: &Run) -> Result<&Metrics, Failed> {
        let failed = |message: &str| Failed { run: run.to_string(), message: message.to_string() };
        match self.ended.get(&run.key()) {
            Some(Ended { result: Ok(finished), .. }) => Ok(&finished.metrics),
            Some(Ended { result: Err(message), .. }) => Err(failed(message)),
            None => Err(failed("the experiment does not have it among its runs")),
        }
    }

    /// A number that a run measured, by its path: `cycles`, `stalls.memory`.
    pub fn number(&self, run: &Run, path: &str) -> Result<f64, Failed> {
        let missing = || Failed { run: run.to_string(), message: format!("it measured no `{path}`") };
        self.of(run)?.number(path).ok_or_else(missing)
    }
}

/// What an experiment makes of its results.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// The numbers beside the paper's.
    pub rows: Vec<Row>,
    /// What is worth seeing.
    pub plots: Vec<Plot>,
    /// How the numbers are to be read, in sentences.
    pub notes: Vec<String>,
}

impl Outcome {
    /// Nothing yet.
    pub fn new() -> Outcome {
        Outcome::default()
    }

    /// With a row.
    pub fn row(mut self, row: Row) -> Outcome {
        self.rows.push(row);
        self
    }

    /// With many.
    pub fn rows(mut self, rows: impl IntoIterator<Item = Row>) -> Outcome {
        self.rows.extend(rows);
        self
    }

    /// With a plot.
    pub fn plot(mut self, plot: Plot) -> Outcome {
        self.plots.push(plot);
        self
    }

    /// With a sentence.
    pub fn note(mut self, note: impl Into<String>) -> Outcome {
        self.notes.push(note.into());
        self
    }

    /// With bars of the rows so far that have a number of the paper in a unit, beside ours, and their bands.
    pub fn compared(self, title: &str, theirs: &str, unit: &'static str) -> Outcome {
        let mut plot = Plot::bars(title, [theirs, "Warploom"]).y(unit);
        for row in self.rows.iter().filter(|row| row.unit == unit && row.paper.is_some()) {
            plot = plot.group(&row.name, [row.paper, row.value()]);
            if let Some((Some(low), Some(high))) = row.limits() {
                plot = plot.band(low, high);
            }
        }
        self.plot(plot)
    }
}

/// A run of an experiment, for the record.
#[derive(Clone, Debug)]
pub struct RunLine {
    /// Its description, for people.
    pub run: String,
    /// Its chip.
    pub chip: String,
    /// Seconds that it took when it was executed.
    pub wall_s: Option<f64>,
    /// Whether its result was there already.
    pub kept: bool,
    /// Why it has no result.
    pub failure: Option<String>,
}

/// An experiment with its outcome.
#[derive(Clone, Debug)]
pub struct Evaluated {
    /// What it is.
    pub about: About,
    /// Its runs.
    pub runs: Vec<RunLine>,
    /// What came out.
    pub outcome: Outcome,
}

impl Evaluated {
    fn new(experiment: &dyn Experiment, results: &Results) -> Evaluated {
        let runs = experiment.runs(results.scale);
        let line = |run: &Run| {
            let ended = results.ended.get(&run.key());
            let finished = ended.and_then(|ended| ended.result.as_ref().ok());
            RunLine {
                run: run.to_string(),
                chip: run.chip_name().to_string(),
                wall_s: finished.map(|finished| finished.wall_s),
                kept: ended.is_some_and(|ended| ended.kept),
                failure: results.of(run).err().map(|failed| failed.message),
            }
        };
        let mut outcome = experiment.evaluate(results);
        // A failure that no row speaks of gets one of its own.
        for failed in runs.iter().filter_map(|run| results.of(run).err()) {
            if !outcome.rows.iter().any(|row| row.measured.as_ref() == Err(&failed)) {
                outcome.rows.push(Row::new(failed.run.clone(), "").measured(Err(failed)));
            }
        }
        Evaluated { about: experiment.about(), runs: runs.iter().map(line).collect(), outcome }
    }

    /// Out if a row is.
    pub fn verdict(&self) -> Verdict {
        Verdict::of(self.outcome.rows.iter().map(Row::verdict))
    }

    /// The chips it ran on, each once.
    pub fn chips(&self) -> Vec<&str> {
        let mut chips: Vec<&str> = Vec::new();
        for run in &self.runs {
            if !chips.contains(&run.chip.as_str()) {
                chips.push(&run.chip);
            }
        }
        chips
    }

    /// Seconds that its runs took, one after the other.
    pub fn wall_s(&self) -> f64 {
        self.runs.iter().filter_map(|run| run.wall_s).sum()
    }
}

/// Experiments, run and judged. [`json`](Reproduction::json), [`csv`](Reproduction::csv) and
/// [`html`](Reproduction::html) show them.
#[derive(Clone, Debug)]
pub struct Reproduction {
    /// How much was run.
    pub scale: Scale,
    /// In the order they were asked for.
    pub experiments: Vec<Evaluated>,
    /// Runs in all, each counted once.
    pub runs: usize,
    /// Those among them whose results were there already.
    pub kept: usize,
    /// Why results could not be kept, if one could not.
    pub not_kept: Option<String>,
    /// Seconds from the beginning to the end.
    pub wall_s: f64,
}

impl Reproduction {
    /// Rows with a verdict.
    pub fn count(&self, verdict: Verdict) -> usize {
        let rows = self.experiments.iter().flat_map(|experiment| &experiment.outcome.rows);
        rows.filter(|row| row.verdict() == verdict).count()
    }
}

/// Why there is nothing to show.
#[derive(Debug, thiserror::Error)]
pub enum ReproError {
    /// The folder for finished runs cannot be used.
    #[error("cannot keep runs in `{}`: {error}", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// The user stopped it.
    #[error("interrupted: {done} of {total} runs have ended and are kept")]
    Interrupted {
        /// Runs that have ended.
        done: usize,
        /// Runs in all.
        total: usize,
    },
}

/// Runs experiments and judges what comes out.
pub fn reproduce(
    experiments: &[&dyn Experiment],
    scale: Scale,
    plan: &Plan<'_>,
) -> Result<Reproduction, ReproError> {
    reproduce_with(experiments, scale, plan, &task::execute)
}

fn reproduce_with(
    experiments: &[&dyn Experiment],
    scale: Scale,
    plan: &Plan<'_>,
    execute: Execute<'_>,
) -> Result<Reproduction, ReproError> {
    let start = Instant::now();
    let runs: Vec<Run> = experiments.iter().flat_map(|experiment| experiment.runs(scale)).collect();
    let executed = execute_all(&runs, plan, execute)
        .map_err(|error| ReproError::Folder { path: plan.runs.to_path_buf(), error })?;
    if !executed.complete {
        let mut keys: Vec<Key> = runs.iter().map(Run::key).collect();
        keys.sort();
        keys.dedup();
        return Err(ReproError::Interrupted { done: executed.ended.len(), total: keys.len() });
    }
    let results = Results { scale, ended: executed.ended };
    Ok(Reproduction {
        scale,
        experiments: experiments.iter().map(|experiment| Evaluated::new(*experiment, &results)).collect(),
        runs: results.ended.len(),
        kept: results.ended.values().filter(|ended| ended.kept).count(),
        not_kept: executed.not_kept,
        wall_s: start.elapsed().as_secs_f64(),
    })
}

#[cfg(test)]
pub(super) mod tests;
