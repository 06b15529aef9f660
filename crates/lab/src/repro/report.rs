//! Runs experiments and judges them: from [`reproduce`] to a [`Reproduction`].

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use super::row::{Failed, Row, Verdict};
use super::{About, Experiment, Scale};
use crate::plot::Plot;
use crate::runs::{Ended, Execute, Key, Metrics, Plan, Run, execute, execute_all_with};

/// What the runs of an experiment measured. Results are looked up by the run's description.
#[derive(Debug)]
pub struct Results {
    scale: Scale,
    ended: BTreeMap<Key, Ended>,
}

impl Results {
    pub fn scale(&self) -> Scale {
        self.scale
    }

    /// All figures of a run.
    pub(super) fn of(&self, run: &Run) -> Result<&Metrics, Failed> {
        let failed = |message: &str| Failed { run: run.to_string(), message: message.to_string() };
        match self.ended.get(&run.key()) {
            Some(ended) => ended.result().map_err(failed),
            None => Err(failed("the experiment does not have it among its runs")),
        }
    }

    /// One number that a run measured, by its path: `cycles`, `stalls.long_scoreboard`.
    pub fn number(&self, run: &Run, path: &str) -> Result<f64, Failed> {
        let missing = || Failed { run: run.to_string(), message: format!("it measured no `{path}`") };
        self.of(run)?.number(path).ok_or_else(missing)
    }
}

/// What an experiment makes of its results, built by chained calls.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    pub rows: Vec<Row>,
    pub plots: Vec<Plot>,
    /// Sentences on how to read the numbers.
    pub(super) notes: Vec<String>,
    /// Units whose rows are in a chart beside the paper's.
    compared: Vec<&'static str>,
}

/// Rows of one chart: of more, the names would not fit below their bars.
const COMPARED: usize = 7;

impl Outcome {
    pub fn new() -> Outcome {
        Outcome::default()
    }

    pub fn row(mut self, row: Row) -> Outcome {
        self.rows.push(row);
        self
    }

    pub fn rows(mut self, rows: impl IntoIterator<Item = Row>) -> Outcome {
        self.rows.extend(rows);
        self
    }

    pub fn plot(mut self, plot: Plot) -> Outcome {
        self.plots.push(plot);
        self
    }

    /// Adds a sentence on how to read the numbers.
    pub fn note(mut self, note: impl Into<String>) -> Outcome {
        self.notes.push(note.into());
        self
    }

    /// Adds a bar chart of the rows so far that have a paper's number in `unit`: the paper's beside ours, with bands.
    pub fn compared(mut self, title: &str, theirs: &str, unit: &'static str) -> Outcome {
        self.compared.push(unit);
        let rows: Vec<&Row> =
            self.rows.iter().filter(|row| row.unit == unit && row.paper.is_some()).collect();
        let charts = rows.len().div_ceil(COMPARED).max(1);
        let parts = rows.chunks(rows.len().div_ceil(charts).max(1));
        let count = parts.len();
        let plots: Vec<Plot> = (1..)
            .zip(parts)
            .map(|(part, rows)| {
                let title =
                    if count > 1 { format!("{title} ({part} of {count})") } else { title.to_string() };
                rows.iter().fold(Plot::bars(title, [theirs, "Warploom"]).y(unit), |plot, row| {
                    let plot = plot.group(&row.name, [row.paper, row.value()]);
                    match row.limits() {
                        Some((Some(low), Some(high))) => plot.band(low, high),
                        _ => plot,
                    }
                })
            })
            .collect();
        self.plots.extend(plots);
        self
    }

    /// With a chart of the paper's numbers beside ours for every unit that has none yet.
    fn with_paper(self, about: &About) -> Outcome {
        let (title, theirs) = match about.citation() {
            Some(_) => ("The paper's numbers and ours", "paper"),
            None => ("Reference numbers and ours", "reference"),
        };
        let units: BTreeSet<_> =
            self.rows.iter().filter(|row| row.ratio().is_some()).map(|row| row.unit).collect();
        let left = units.into_iter().filter(|unit| !self.compared.contains(unit)).collect::<Vec<_>>();
        left.into_iter().fold(self, |outcome, unit| outcome.compared(title, theirs, unit))
    }
}

/// A run of an experiment as the report lists it.
#[derive(Clone, Debug)]
pub(super) struct RunLine {
    pub(super) run: String,
    pub(super) chip: String,
    /// Host seconds that it took when it was executed.
    pub(super) wall_s: Option<f64>,
    /// Whether the result was kept from before.
    pub(super) kept: bool,
    pub(super) failure: Option<String>,
}

/// An experiment with its outcome.
#[derive(Clone, Debug)]
pub struct Evaluated {
    pub about: About,
    pub(super) runs: Vec<RunLine>,
    pub outcome: Outcome,
}

impl Evaluated {
    fn new(experiment: &dyn Experiment, results: &Results) -> Evaluated {
        let runs = experiment.runs(results.scale);
        let line = |run: &Run| {
            let ended = results.ended.get(&run.key());
            RunLine {
                run: run.to_string(),
                chip: run.chip_name().to_string(),
                wall_s: ended.map(|ended| ended.end.wall_s),
                kept: ended.is_some_and(|ended| ended.kept),
                failure: results.of(run).err().map(|failed| failed.message),
            }
        };
        let mut outcome = experiment.evaluate(results);
        // A failure that no row reports gets its own row.
        for failed in runs.iter().filter_map(|run| results.of(run).err()) {
            if !outcome.rows.iter().any(|row| row.measured.as_ref() == Err(&failed)) {
                outcome.rows.push(Row::new(failed.run.clone(), "").measured(Err(failed)));
            }
        }
        let about = experiment.about();
        let outcome = outcome.with_paper(&about);
        Evaluated { about, runs: runs.iter().map(line).collect(), outcome }
    }

    /// `Out` if any row is.
    pub(super) fn verdict(&self) -> Verdict {
        Verdict::of(self.outcome.rows.iter().map(Row::verdict))
    }

    /// The chips of its runs, each once.
    pub fn chips(&self) -> Vec<&str> {
        let mut chips: Vec<&str> = Vec::new();
        for run in &self.runs {
            if !chips.contains(&run.chip.as_str()) {
                chips.push(&run.chip);
            }
        }
        chips
    }

    /// Host seconds of its runs, added up.
    pub(super) fn wall_s(&self) -> f64 {
        self.runs.iter().filter_map(|run| run.wall_s).sum()
    }
}

/// Experiments, run and judged. Shown as [`json`](Reproduction::json), [`csv`](Reproduction::csv) and
/// [`html`](Reproduction::html).
#[derive(Clone, Debug)]
pub struct Reproduction {
    pub scale: Scale,
    /// In the order in which they were requested.
    pub experiments: Vec<Evaluated>,
    /// Distinct runs.
    pub runs: usize,
    /// Distinct runs whose results were kept from before.
    pub kept: usize,
    /// The last error in writing a result to disk.
    pub not_kept: Option<String>,
    /// Host seconds from beginning to end.
    pub wall_s: f64,
}

impl Reproduction {
    pub fn count(&self, verdict: Verdict) -> usize {
        let rows = self.experiments.iter().flat_map(|experiment| &experiment.outcome.rows);
        rows.filter(|row| row.verdict() == verdict).count()
    }

    /// The headline rows with this verdict, and their experiments.
    pub fn headlines(&self, verdict: Verdict) -> impl Iterator<Item = (&Evaluated, &Row)> {
        let rows =
            self.experiments.iter().flat_map(|each| each.outcome.rows.iter().map(move |row| (each, row)));
        rows.filter(move |(_, row)| row.headline && row.verdict() == verdict)
    }

    /// One line that says whether the headline rows are inside their bands. `None` if there are none.
    pub fn headline_text(&self) -> Option<String> {
        let missed: Vec<String> = self
            .headlines(Verdict::Out)
            .map(|(experiment, row)| {
                let (ours, paper) = (row.measured_text(), row.paper_text());
                format!("{}: {} {ours}, not {paper}", experiment.about.id, row.name)
            })
            .collect();
        match (missed.len(), self.headlines(Verdict::In).count()) {
            (0, 0) => None,
            (0, inside) => Some(format!("headline rows: all {inside} inside their bands")),
            (out, inside) => {
                let all = out + inside;
                let missed = missed.join("; ");
                Some(format!(
                    "not reproduced: {out} of {all} headline rows are outside their bands ({missed})"
                ))
            }
        }
    }
}

/// Why there is no [`Reproduction`].
#[derive(Debug, thiserror::Error)]
pub enum ReproError {
    /// The folder for finished runs cannot be used.
    #[error("cannot keep runs in `{}`: {error}", path.display())]
    Folder { path: PathBuf, error: std::io::Error },
    /// The user interrupted it. Runs that have ended are kept.
    #[error("interrupted: {done} of {total} runs have ended and are kept")]
    Interrupted { done: usize, total: usize },
}

/// Runs experiments and judges their results. Fails only if results cannot be kept or the user interrupts.
pub fn reproduce(
    experiments: &[&dyn Experiment],
    scale: Scale,
    plan: &Plan<'_>,
) -> Result<Reproduction, ReproError> {
    reproduce_with(experiments, scale, plan, &execute)
}

fn reproduce_with(
    experiments: &[&dyn Experiment],
    scale: Scale,
    plan: &Plan<'_>,
    execute: Execute<'_>,
) -> Result<Reproduction, ReproError> {
    let start = Instant::now();
    let runs: Vec<Run> = experiments.iter().flat_map(|experiment| experiment.runs(scale)).collect();
    let ended = Mutex::new(BTreeMap::new());
    let executed = execute_all_with(&runs, plan, execute, &|_, key, end| {
        ended.lock().unwrap_or_else(PoisonError::into_inner).insert(key.clone(), end);
    });
    let executed = executed.map_err(|error| ReproError::Folder { path: plan.runs.to_path_buf(), error })?;
    if !executed.is_complete() {
        return Err(ReproError::Interrupted { done: executed.done, total: executed.total });
    }
    let results = Results { scale, ended: ended.into_inner().unwrap_or_else(PoisonError::into_inner) };
    Ok(Reproduction {
        scale,
        experiments: experiments.iter().map(|experiment| Evaluated::new(*experiment, &results)).collect(),
        runs: executed.total,
        kept: executed.kept,
        not_kept: executed.not_kept.map(|error| error.to_string()),
        wall_s: start.elapsed().as_secs_f64(),
    })
}

#[cfg(test)]
pub(super) mod tests;
