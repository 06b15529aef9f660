//! `warploom sweep`: executes the runs of a sweep file, tells how far they are, and writes their results.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::io::{BufRead, IsTerminal};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::available_parallelism;
use std::time::Instant;

use serde_json::{Value, json};
use warploom_lab::runs::slurm::{self, JobStatus};
use warploom_lab::runs::{self, Executed, Finished, Kept, Plan, Run, Status, Step, execute_all};
use warploom_lab::sweep::{Chart, Estimate, Folder, Planned, Sweep, SweepError, Table, sample, tables};

use crate::cli::{SweepAction, SweepOptions, SweepResultsOptions, SweepRunOptions, SweepStatusOptions};
use crate::failure::{Exit, Failure};
use crate::input::reason;
use crate::machine::interrupt_flag;
use crate::output::{print_json, write};
use crate::place::{self, Place};
use crate::progress::Steps;
use crate::term::{self, counted, duration, grouped, seconds};

/// More combinations are a mistake more often than not.
const MANY: u128 = 1_000_000;

pub(crate) fn sweep(options: &SweepOptions) -> Result<Exit, Failure> {
    match &options.action {
        SweepAction::Run(options) => run(options),
        SweepAction::Status(options) => status(options),
        SweepAction::Results(options) => results(options),
    }
}

impl From<SweepError> for Failure {
    fn from(error: SweepError) -> Failure {
        error.help.into_iter().fold(Failure::input(error.message), Failure::help)
    }
}

fn run(options: &SweepRunOptions) -> Result<Exit, Failure> {
    let sweep = Sweep::read(&options.file)?;
    if sweep.combinations() > MANY && !options.dry_run && !options.yes {
        confirm(&sweep)?;
    }
    if options.dry_run && sweep.combinations() > MANY {
        let many = sweep.combinations();
        return show(options, json!({ "name": sweep.name, "combinations": many as f64 }), || {
            format!("{}: {} combinations, before filters: {}\n", sweep.name, large(many), sweep.shape())
        });
    }
    let planned = sweep.runs()?;
    if options.dry_run {
        return show(options, json!({ "name": sweep.name, "runs": planned.len() }), || {
            format!("{}: {}: {}\n", sweep.name, counted(planned.len() as u64, "run"), sweep.shape())
        });
    }
    sweep.check_files(&planned)?;
    let path = options.out.clone().unwrap_or_else(|| Folder::default_for(&options.file));
    let folder = Folder::open(&path, &options.file, &sweep)?;
    let place = Place::new(&options.place, &path)?;
    let work = Work {
        planned: &planned,
        folder: &folder,
        place: &place,
        jobs: options.jobs.map_or_else(|| available_parallelism().map_or(1, usize::from), usize::from),
        sweep: &sweep,
        interrupt: interrupt_flag(),
    };
    let start = Instant::now();
    let say = |line: &str| {
        if !options.json {
            term::eprint(line);
        }
    };
    if options.retry {
        forget_failures(&planned, &folder)?;
    }
    let known = Known::of(&planned, &folder)?;
    say(&format!(
        "{}: {}: {}; {} kept from before",
        sweep.name,
        counted(planned.len() as u64, "run"),
        sweep.shape(),
        known.ended
    ));
    let mut estimate = known.estimate;
    if estimate.runs == 0 {
        // The first results tell what the others will take.
        let first: Vec<Run> = sample(&planned, 2 * work.jobs).map(|planned| planned.run.clone()).collect();
        estimate = work.execute(&first, "first runs, for an estimate", None)?.1.estimate;
    }
    let left = planned.len().saturating_sub(known.ended.max(estimate.runs));
    if left > 0 {
        say(&foreseen(&estimate, left, work.jobs));
    }
    let all: Vec<Run> = planned.iter().map(|planned| planned.run.clone()).collect();
    let (executed, known) = work.execute(&all, "runs", Some(&estimate))?;
    let wall_s = start.elapsed().as_secs_f64();
    let object = json!({
        "name": sweep.name, "folder": path, "runs": executed.total, "kept_runs": executed.kept,
        "status": known.counts(), "wall_s": wall_s,
    });
    show(options, object, || {
        let mut text = format!(
            "{}: all {} have ended ({}), {}\n",
            sweep.name,
            counted(executed.total as u64, "run"),
            known.text(),
            seconds(wall_s)
        );
        let _ = writeln!(text, "results in {}; `warploom sweep results {0}` writes tables", path.display());
        text
    })
}

/// What all steps of a `sweep run` share.
struct Work<'a> {
    planned: &'a [Planned],
    folder: &'a Folder,
    place: &'a Place,
    jobs: usize,
    sweep: &'a Sweep,
    interrupt: Arc<AtomicBool>,
}

impl Work<'_> {
    /// Executes runs, and tells how they ended. Without an estimate that is here, with one where the user says.
    fn execute(
        &self,
        list: &[Run],
        what: &str,
        estimate: Option<&Estimate>,
    ) -> Result<(Executed, Known), Failure> {
        let steps = Steps::new();
        let progress = |step: Step<'_>| {
            steps.set_kept(step.kept, step.done, step.total, format!("{what}, {}", step.run));
        };
        let runs = self.folder.runs();
        let place = match estimate {
            None => self.place.local(self.sweep.limits),
            Some(estimate) => self.place.of(self.sweep.limits, estimate.takes()),
        };
        let plan = Plan {
            retry: false,
            stop_if_not_kept: true,
            jobs: self.jobs,
            place,
            interrupt: self.interrupt.clone(),
            progress: &progress,
            ..Plan::new(&runs)
        };
        let known = Mutex::new(Known::default());
        let executed = execute_all(list, &plan, &|run, _, ended| {
            known.lock().unwrap_or_else(PoisonError::into_inner).add(run, &ended.end);
        });
        drop(steps);
        let executed =
            executed.map_err(|error| place::refused(&error).unwrap_or_else(|| self.not_kept(&error)))?;
        if let Some(error) = &executed.not_kept {
            return Err(self.not_kept(error));
        }
        if !executed.is_complete() {
            let known = Known::of(self.planned, self.folder)?;
            let message = format!(
                "interrupted: {} of {} runs have ended and are kept",
                known.ended,
                self.planned.len()
            );
            let help = match self.place.is_slurm() {
                true => {
                    "Slurm's tasks go on; the same command waits for them again, and `scancel -n warploom` ends them"
                }
                false => "the same command goes on from there",
            };
            return Err(Failure::new(Exit::Interrupted, message).help(help));
        }
        Ok((executed, known.into_inner().unwrap_or_else(PoisonError::into_inner)))
    }

    fn not_kept(&self, error: &std::io::Error) -> Failure {
        let ended = Known::of(self.planned, self.folder).map_or(0, |known| known.ended);
        Failure::input(format!(
            "cannot keep results in `{}`: {}; {} of {} runs are kept, {} are missing",
            self.folder.path().display(),
            reason(error),
            ended,
            self.planned.len(),
            self.planned.len() - ended
        ))
        .help("make room there, then the same command goes on with the missing ones")
    }
}

fn kept(folder: &Folder) -> Result<Kept, Failure> {
    let runs = folder.runs();
    Kept::open(&runs).map_err(|error| {
        Failure::input(format!("cannot use the folder `{}`: {}", runs.display(), reason(&error)))
    })
}

/// Forgets runs that ended for a reason of the host, to execute them again.
fn forget_failures(planned: &[Planned], folder: &Folder) -> Result<(), Failure> {
    let kept = kept(folder)?;
    for Planned { run, key, .. } in planned {
        if kept.get(run, key).is_some_and(|end| end.status.is_of_the_host()) {
            kept.remove(key)?;
        }
    }
    Ok(())
}

/// The results that are there.
#[derive(Default)]
struct Known {
    ended: usize,
    by_status: BTreeMap<Status, usize>,
    /// The first message of each kind of failure.
    messages: BTreeMap<Status, String>,
    estimate: Estimate,
    /// Files in the folder that belong to no run of the sweep, or not to this version.
    others: usize,
}

impl Known {
    fn of(planned: &[Planned], folder: &Folder) -> Result<Known, Failure> {
        let kept = kept(folder)?;
        let mut known = Known::default();
        for Planned { run, key, .. } in planned {
            if let Some(end) = kept.get(run, key) {
                known.add(run, &end);
            }
        }
        known.others = kept.count().saturating_sub(known.ended);
        Ok(known)
    }

    fn add(&mut self, run: &Run, end: &Finished) {
        self.ended += 1;
        *self.by_status.entry(end.status).or_default() += 1;
        self.estimate.add(end);
        if let Some(message) = &end.message {
            self.messages.entry(end.status).or_insert_with(|| format!("{run}: {message}"));
        }
    }

    fn counts(&self) -> Value {
        self.by_status.iter().map(|(status, count)| (status.name().to_string(), json!(count))).collect()
    }

    /// `1,990 ok, 10 hang`.
    fn text(&self) -> String {
        let each = self
            .by_status
            .iter()
            .map(|(status, count)| format!("{} {}", grouped(*count as u64), status.name()));
        each.collect::<Vec<_>>().join(", ")
    }
}

fn show(options: &SweepRunOptions, object: Value, text: impl FnOnce() -> String) -> Result<Exit, Failure> {
    if options.json {
        print_json(object)?
    } else {
        term::print(&text())?
    }
    Ok(Exit::Good)
}

/// Asks whether so many runs are meant.
fn confirm(sweep: &Sweep) -> Result<(), Failure> {
    let question =
        format!("{} has {} combinations: {}", sweep.name, large(sweep.combinations()), sweep.shape());
    if std::io::stdin().is_terminal() && std::io::stderr().is_terminal() {
        term::eprint(&format!("{question}. Execute them? [y/N]"));
        let mut answer = String::new();
        let read = std::io::stdin().lock().read_line(&mut answer);
        if read.is_ok() && answer.trim().eq_ignore_ascii_case("y") {
            return Ok(());
        }
    }
    Err(Failure::input(question).help("--yes executes them; --dry-run only counts"))
}

/// A number that may be larger than any count of runs.
fn large(number: u128) -> String {
    u64::try_from(number).map_or_else(|_| format!("{:.1e}", number as f64), grouped)
}

/// What the rest will take, and a warning if that is more memory than there is.
fn foreseen(estimate: &Estimate, left: usize, jobs: usize) -> String {
    let jobs = jobs.min(left);
    let mut text = format!(
        "{} left: about {} on {}, each {}",
        grouped(left as u64),
        duration(estimate.seconds(left, jobs)),
        counted(jobs as u64, "core"),
        seconds(estimate.mean_s())
    );
    if estimate.peak_bytes > 0 {
        let all = estimate.peak_bytes * jobs as u64;
        let _ = write!(text, " and up to {}", bytes(estimate.peak_bytes));
        if let Some(free) = available_memory().filter(|free| *free < all) {
            let _ = write!(
                text,
                "\nwarning: {jobs} beside each other need up to {}, and {} are free; --jobs makes it fewer",
                bytes(all),
                bytes(free)
            );
        }
    }
    text
}

fn bytes(bytes: u64) -> String {
    match bytes {
        1_000_000_000.. => format!("{:.1} GB", bytes as f64 / 1e9),
        _ => format!("{} MB", bytes.div_ceil(1_000_000)),
    }
}

fn available_memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    Some(1024 * line.split_whitespace().next()?.parse::<u64>().ok()?)
}

/// The sweep and its folder, by the file or by the folder.
fn found(sweep: &Path, out: &Option<PathBuf>) -> Result<(Sweep, Folder), Failure> {
    if sweep.is_dir() {
        return Ok(Folder::sweep(sweep)?);
    }
    let described = Sweep::read(sweep)?;
    let path = out.clone().unwrap_or_else(|| Folder::default_for(sweep));
    let (_, folder) = Folder::sweep(&path)?;
    Ok((described, folder))
}

fn status(options: &SweepStatusOptions) -> Result<Exit, Failure> {
    let (sweep, folder) = found(&options.sweep, &options.out)?;
    let planned = sweep.runs()?;
    let known = Known::of(&planned, &folder)?;
    let in_flight = runs::in_flight(&folder.runs());
    let missing = planned.len() - known.ended;
    let jobs = slurm::jobs(&place::jobs(folder.path()));
    let cores = available_parallelism().map_or(1, usize::from);
    if options.json {
        let job = |job: &JobStatus| json!({ "job": job.job, "tasks": job.tasks, "states": job.states });
        let object = json!({
            "name": sweep.name, "folder": folder.path(), "runs": planned.len(), "ended": known.ended,
            "missing": missing, "in_flight": in_flight, "status": known.counts(), "of_other_versions": known.others,
            "slurm": jobs.iter().map(job).collect::<Vec<_>>(),
            "mean_s": known.estimate.mean_s(), "peak_bytes": known.estimate.peak_bytes,
        });
        print_json(object)?;
        return Ok(Exit::Good);
    }
    let mut text = format!(
        "{}: {} of {}",
        sweep.name,
        grouped(known.ended as u64),
        counted(planned.len() as u64, "run")
    );
    let _ = writeln!(
        text,
        " have ended{}",
        if known.ended == 0 { String::new() } else { format!(": {}", known.text()) }
    );
    if in_flight > 0 {
        let _ = writeln!(text, "{} in flight", grouped(in_flight as u64));
    }
    for job in &jobs {
        let states = match &job.states {
            None => "Slurm does not answer".to_string(),
            Some(states) if states.is_empty() => "forgotten by Slurm".to_string(),
            Some(states) => {
                let each = states.iter().map(|(state, count)| format!("{count} {state}"));
                each.collect::<Vec<_>>().join(", ")
            }
        };
        let _ = writeln!(text, "Slurm job {}, {}: {states}", job.job, counted(job.tasks as u64, "task"));
    }
    if missing > 0 && known.estimate.runs > 0 {
        let _ = writeln!(text, "{}", foreseen(&known.estimate, missing, cores));
    }
    if known.others > 0 {
        let _ = writeln!(
            text,
            "{} kept by another version of Warploom or of the sweep, not used",
            counted(known.others as u64, "run")
        );
    }
    for (status, message) in &known.messages {
        let _ = writeln!(text, "\nthe first of status {}: {message}", status.name());
    }
    term::print(&text)?;
    Ok(Exit::Good)
}

fn results(options: &SweepResultsOptions) -> Result<Exit, Failure> {
    let (sweep, folder) = found(&options.sweep, &options.out)?;
    let planned = sweep.runs()?;
    let kept = kept(&folder)?;
    let made = tables(&sweep, &planned, &kept, options.host, &options.filters)?;
    let Some(of_runs) = made.first() else { return Ok(Exit::Good) };
    let mut written = Vec::new();
    if let Some(file) = &options.csv {
        if file == Path::new("-") {
            term::print(&of_runs.csv())?;
        } else {
            for table in &made {
                let path = beside(file, table);
                write(&path, table.csv().as_bytes())?;
                written.push((path, table));
            }
        }
    }
    if let Some(file) = &options.parquet {
        if file == Path::new("-") {
            return Err(Failure::input(
                "--parquet needs the name of a file: it is several tables, and no text",
            )
            .help("--parquet results.parquet, or --csv - for text on stdout"));
        }
        for table in &made {
            let path = beside(file, table);
            write(&path, &table.parquet()?)?;
            written.push((path, table));
        }
    }
    if !options.plot.is_empty() {
        let chart = Chart::parse(&options.plot)?;
        let picture = match options.to.extension().and_then(|extension| extension.to_str()) {
            Some("svg") => chart.svg(&sweep, of_runs)?,
            Some("html") => chart.html(&sweep, of_runs)?,
            _ => {
                return Err(Failure::input(format!(
                    "`{}`: a plot is a .svg or a .html file",
                    options.to.display()
                ))
                .help("name it with --to, such as --to plot.svg"));
            }
        };
        write(&options.to, picture.as_bytes())?;
        written.push((options.to.clone(), of_runs));
    }
    if options.json {
        let tables: serde_json::Map<String, Value> =
            made.iter().map(|table| (table.name.clone(), table.json())).collect();
        let object =
            json!({ "name": sweep.name, "missing": planned.len() - of_runs.rows.len(), "tables": tables });
        print_json(object)?;
        return Ok(Exit::Good);
    }
    if options.csv.as_deref() != Some(Path::new("-")) {
        let mut text = String::new();
        for (path, table) in &written {
            let _ = writeln!(text, "{}: {}", path.display(), counted(table.rows.len() as u64, "row"));
        }
        if written.is_empty() {
            let rows = of_runs.rows.len();
            let _ = writeln!(
                text,
                "{}: {} of {} have ended",
                sweep.name,
                rows,
                counted(planned.len() as u64, "run")
            );
            for table in &made {
                let (rows, columns) = (counted(table.rows.len() as u64, "row"), table.columns.join(" "));
                let _ = writeln!(text, "\n{}: {rows}\n{columns}", table.name);
            }
            text.push_str("\n--csv, --parquet, --json and --plot write them.\n");
        }
        term::print(&text)?;
    }
    Ok(Exit::Good)
}

/// The file of a table: that of runs has the name that was asked for, the others have theirs added.
fn beside(file: &Path, table: &Table) -> PathBuf {
    if table.name == "runs" {
        return file.to_path_buf();
    }
    let stem = file.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let extension = file.extension().map(|extension| extension.to_string_lossy().into_owned());
    file.with_file_name(match extension {
        Some(extension) => format!("{stem}-{}.{extension}", table.name),
        None => format!("{stem}-{}", table.name),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        assert_eq!([1, 5_000_000, 2_500_000_000].map(bytes), ["1 MB", "5 MB", "2.5 GB"]);
        assert_eq!([large(12_345), large(1 << 100)], ["12,345", "1.3e30"]);
    }

    #[test]
    fn tables_beside_each_other() {
        let table = |name: &str| Table { name: name.to_string(), columns: Vec::new(), rows: Vec::new() };
        assert_eq!(beside(Path::new("a/b.csv"), &table("runs")), Path::new("a/b.csv"));
        assert_eq!(beside(Path::new("a/b.csv"), &table("sms")), Path::new("a/b-sms.csv"));
        assert_eq!(beside(Path::new("b"), &table("sms")), Path::new("b-sms"));
    }
}
