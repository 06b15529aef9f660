//! `warploom repro`: runs the papers' experiments, judges and shows them.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::thread::available_parallelism;

use serde_json::json;
use warploom_lab::repro::{
    self, EXPERIMENTS, Evaluated, Experiment, ReproError, Reproduction, Row, Scale, Verdict, figure,
};
use warploom_lab::runs::slurm::Takes;
use warploom_lab::runs::{Limits, Plan, write_whole};

use crate::cli::ReproOptions;
use crate::failure::{Exit, Failure};
use crate::input::reason;
use crate::machine::interrupt_flag;
use crate::output::print_json;
use crate::place::{self, Place};
use crate::progress::Steps;
use crate::term::{self, counted, seconds};

/// Runs the chosen experiments, writes the report, and prints the numbers.
pub(crate) fn repro(options: &ReproOptions) -> Result<Exit, Failure> {
    let experiments = chosen(&options.names)?;
    if options.list {
        return list(&experiments, options.json);
    }
    let scale = if options.quick { Scale::Quick } else { Scale::Full };
    let runs = options.out.join("runs");
    let steps = Steps::new();
    let on = Place::new(&options.place, &options.out)?;
    let plan = Plan {
        reuse: !options.fresh,
        jobs: options.jobs.map_or_else(|| available_parallelism().map_or(1, usize::from), usize::from),
        // Its runs take from milliseconds to minutes: each is a task of its own.
        place: on.of(Limits::default(), Takes::default()),
        interrupt: interrupt_flag(),
        progress: &|step| steps.set_kept(step.kept, step.done, step.total, format!("runs, {}", step.run)),
        ..Plan::new(&runs)
    };
    let result = repro::reproduce(&experiments, scale, &plan);
    drop(steps);
    let reproduction = result.map_err(|error| failure(error, options))?;
    if let Some(why) = &reproduction.not_kept {
        term::eprint(&format!("warning: results could not be kept in {}: {why}", runs.display()));
    }
    // Shown in any case: on a full disk this is all that is left of hours.
    let written = write_report(&reproduction, &options.out);
    if options.json {
        print_json(serde_json::from_str(&reproduction.json()).map_err(std::io::Error::from)?)?;
    } else {
        term::print(&text(&reproduction, written.is_ok().then_some(&options.out)))?;
    }
    if let Err(failure) = written {
        term::eprint(&failure.text());
        return Ok(failure.exit());
    }
    Ok(if reproduction.count(Verdict::Out) > 0 { Exit::CheckFailed } else { Exit::Good })
}

/// The named experiments, each once, in the order of the registry.
fn chosen(names: &[String]) -> Result<Vec<&'static dyn Experiment>, Failure> {
    let mut ids = Vec::new();
    for name in names {
        let found = repro::find(name);
        if found.is_empty() {
            return Err(unknown(name));
        }
        ids.extend(found.iter().map(|experiment| experiment.about().id));
    }
    let wanted = |e: &&&'static dyn Experiment| names.is_empty() || ids.contains(&e.about().id);
    Ok(EXPERIMENTS.iter().filter(wanted).copied().collect())
}

fn unknown(name: &str) -> Failure {
    let near = repro::names()
        .into_iter()
        .map(|known| (strsim::damerau_levenshtein(known, &name.to_lowercase()), known))
        .min()
        .filter(|(distance, known)| *distance <= 1 + known.len() / 4);
    let failure = Failure::input(format!("no experiment or paper `{name}`"));
    match near {
        Some((_, known)) => failure.help(format!("did you mean `{known}`?")),
        None => failure.help("`warploom repro --list` shows them"),
    }
}

fn failure(error: ReproError, options: &ReproOptions) -> Failure {
    match error {
        ReproError::Interrupted { .. } => Failure::new(Exit::Interrupted, error.to_string()).help(format!(
            "the same command goes on from there; finished runs are in {}",
            options.out.join("runs").display()
        )),
        ReproError::Folder { path, error } => place::refused(&error).unwrap_or_else(|| {
            Failure::input(format!("cannot keep runs in `{}`: {}", path.display(), reason(&error)))
        }),
    }
}

/// Writes everything except the runs, which are on disk already.
fn write_report(reproduction: &Reproduction, folder: &Path) -> Result<(), Failure> {
    let plots = folder.join("plots");
    let failed =
        |path: &Path, error| Failure::input(format!("cannot write `{}`: {}", path.display(), reason(&error)));
    std::fs::create_dir_all(&plots).map_err(|error| failed(&plots, error))?;
    let mut files = vec![
        (folder.join("report.html"), reproduction.html()),
        (folder.join("report.json"), reproduction.json() + "\n"),
        (folder.join("data.csv"), reproduction.csv()),
    ];
    for experiment in &reproduction.experiments {
        for (i, plot) in experiment.outcome.plots.iter().enumerate() {
            let name = format!("{}-{i}", experiment.about.id);
            files.push((plots.join(format!("{name}.svg")), plot.svg(&name)));
        }
    }
    for (path, text) in files {
        write_whole(&path, text.as_bytes()).map_err(|error| failed(&path, error))?;
    }
    Ok(())
}

/// All numbers for people, and where the rest is, if it could be written.
fn text(reproduction: &Reproduction, folder: Option<&PathBuf>) -> String {
    let mut text = reproduction.headline_text().map(|line| line + "\n\n").unwrap_or_default();
    for experiment in &reproduction.experiments {
        let about = &experiment.about;
        let form = if reproduction.scale == Scale::Quick { ", quick form" } else { "" };
        let _ = writeln!(text, "{}: {} ({}{form})", about.id, about.title, experiment.chips().join(", "));
        text.push_str(&table(experiment));
        text.push('\n');
    }
    text.push_str(term::legend(&LEGEND).trim_start_matches('\n'));
    text.push('\n');
    let [inside, outside, reported] =
        [Verdict::In, Verdict::Out, Verdict::Report].map(|verdict| reproduction.count(verdict));
    let kept = match reproduction.kept {
        0 => String::new(),
        kept => format!(", {kept} kept from before"),
    };
    let _ = writeln!(
        text,
        "{} judged: {inside} inside their bands, {outside} outside; {reported} more only reported; {}{kept}, {}",
        inside + outside,
        counted(reproduction.runs as u64, "run"),
        seconds(reproduction.wall_s),
    );
    if let Some(folder) = folder {
        let _ = writeln!(text, "report in {}", folder.join("report.html").display());
    }
    text
}

/// Rows in columns of minimal width. The reason why a row is outside its band stands below it.
fn table(experiment: &Evaluated) -> String {
    let head = ["", "paper", "measured", "ratio", "verdict", "band"].map(String::from);
    let cells = |row: &Row| {
        let ratio = row.ratio().map_or("–".to_string(), figure);
        let verdict = row.verdict().word().to_string();
        [row.name.clone(), row.paper_text(), row.measured_text(), ratio, verdict, row.band_text()]
    };
    let rows: Vec<_> = experiment.outcome.rows.iter().map(|row| (cells(row), row.reason())).collect();
    let mut widths = head.each_ref().map(|cell| cell.chars().count());
    for (cells, _) in &rows {
        for (width, cell) in widths.iter_mut().zip(cells) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let [name, paper, measured, ratio, verdict, _] = widths;
    let mut text = String::new();
    for (cells, reason) in [(head, None)].into_iter().chain(rows) {
        let [a, b, c, d, e, f] = cells;
        let line = format!("  {a:<name$}  {b:>paper$}  {c:>measured$}  {d:>ratio$}  {e:<verdict$}  {f}");
        let _ = writeln!(text, "{}", line.trim_end());
        for line in reason.iter().flat_map(|reason| reason.lines()) {
            let _ = writeln!(text, "      {line}");
        }
    }
    text
}

/// What the columns of all tables mean.
const LEGEND: [(&str, &str); 4] = [
    ("paper, measured", "the paper's number and the simulator's"),
    ("ratio", "measured over paper"),
    ("verdict", "in or out of the band; `report`: there is no band, and nothing is judged"),
    ("band", "what the measured number may be; below a row that is out stands why"),
];

fn list(experiments: &[&'static dyn Experiment], json: bool) -> Result<Exit, Failure> {
    let runs = |e: &dyn Experiment, scale| e.runs(scale).len();
    if json {
        let each = experiments.iter().map(|e| {
            let about = e.about();
            json!({
                "id": about.id, "paper": about.paper, "title": about.title,
                "quick": { "runs": runs(*e, Scale::Quick), "seconds": about.quick_s },
                "full": { "runs": runs(*e, Scale::Full), "seconds": about.full_s },
            })
        });
        print_json(json!({ "experiments": each.collect::<Vec<_>>() }))?;
        return Ok(Exit::Good);
    }
    let widest = experiments.iter().map(|e| e.about().id.len()).max().unwrap_or(0);
    let mut text = String::new();
    let mut paper = "";
    for experiment in experiments {
        let about = experiment.about();
        if about.paper != paper {
            paper = about.paper;
            let _ = writeln!(text, "{}{paper}", if text.is_empty() { "" } else { "\n" });
        }
        let form = |scale, s| {
            format!("{} in about {}", counted(runs(*experiment, scale) as u64, "run"), duration(s))
        };
        let takes =
            format!("{}; quick: {}", form(Scale::Full, about.full_s), form(Scale::Quick, about.quick_s));
        let _ = writeln!(text, "  {:<widest$}  {}\n  {:<widest$}  {takes}", about.id, about.title, "");
    }
    text.push_str("\nTimes are those of one core. For example: warploom repro fidelity --quick\n");
    term::print(&text)?;
    Ok(Exit::Good)
}

/// A rough duration: `40 s`, `12 min`, `2 h`.
fn duration(s: u32) -> String {
    match s {
        0..100 => format!("{s} s"),
        100..5400 => format!("{} min", (s + 30) / 60),
        _ => format!("{} h", (s + 1800) / 3600),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times() {
        assert_eq!([2, 99, 600, 7200].map(duration), ["2 s", "99 s", "10 min", "2 h"]);
    }

    #[test]
    fn near_misses() {
        let help = |name: &str| unknown(name).text();
        assert!(help("fidelty").contains("did you mean `fidelity`?"), "{}", help("fidelty"));
        assert!(help("Fidelity").contains("did you mean `fidelity`?"));
        assert!(help("zzzzzzzz").contains("repro --list"));
    }
}
