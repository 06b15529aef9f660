//! `warploom compare`: one kernel or workload under every warp scheduler, with and without BOWS, in one table.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::prelude::*;
use serde_json::{Value, json};
use warploom::{Bows, Chip, Device, Error, Launch, Report, SimOptions, Sms, Timing, Trace, TraceOptions};
use warploom_lab::kernel::KernelFile;
use warploom_lab::plan::PlanError;
use warploom_lab::work::{Values, Workload, total};

use crate::cli::{CompareOptions, LaunchOptions};
use crate::failure::{Exit, Failure};
use crate::input;
use crate::machine::interrupt_flag;
use crate::output::{check_writable, print_json};
use crate::plan::{self, Planned};
use crate::progress::Steps;
use crate::report::{self, Page, ReportedRun};
use crate::run;
use crate::term::{self, counted, dims, grouped, joules};

/// Runs all settings and prints one table.
pub(crate) fn compare(options: &CompareOptions) -> Result<Exit, Failure> {
    let subject = Subject::of(options)?;
    let name = options.chip.chip.as_deref().unwrap_or_else(|| subject.chip());
    let chip = Chip::load(name, &options.chip.set).map_err(Error::from)?;
    // Report a mistake in the input once, not in every row.
    if let Subject::Kernel { file, launch, .. } = &subject {
        run::ready(&mut device(&chip, &Setting::plain(), options), file, launch, |_, _| Ok(()))?;
    }
    options.report.iter().try_for_each(|file| check_writable(file))?;
    let mut rows = run_all(&subject, &chip, options)?;
    if let Some(file) = &options.report {
        report::write(file, &page(&subject, &chip, &mut rows))?;
    }
    if options.json {
        print_json(object(&subject, &chip, &rows)?)?;
    } else {
        let why = match (&options.chip.chip, subject.target()) {
            (None, Some(target)) => format!(" (chosen for sm_{target})"),
            _ => String::new(),
        };
        term::print(&format!("{} on {}{why}\n\n{}", subject.title(), chip.name, table(&rows)))?;
    }
    print_failures(&rows);
    Ok(exit(&rows))
}

/// What is compared.
enum Subject<'a> {
    Kernel { path: &'a Path, file: KernelFile, launch: &'a LaunchOptions },
    Plan { path: &'a Path, plan: Planned },
    Workload { workload: &'static Workload, values: Values },
}

impl<'a> Subject<'a> {
    /// A path means a file. A word means a workload, unless there is a file of that name.
    fn of(options: &'a CompareOptions) -> Result<Subject<'a>, Failure> {
        let CompareOptions { what: path, launch, params, cuda, .. } = options;
        if plan::is_plan(path) {
            plan::refuse_options(launch, cuda)?;
            return Ok(Subject::Plan { path, plan: Planned::read(path, params)? });
        }
        let named = path.to_str().filter(|name| !name.contains(['/', '\\', '.']) && !path.is_file());
        let Some(name) = named else {
            return match params.first() {
                None => Ok(Subject::Kernel { path, file: input::read(path, cuda)?, launch }),
                Some(param) => Err(Failure::input(format!("`{param}`: a kernel's file has no parameters"))
                    .help("give its arguments with --arg; `warploom run --help` explains them")),
            };
        };
        let workload = Workload::find(name)?;
        let shaped = launch.grid != [1; 3] || launch.block.is_some() || launch.shared != 0;
        if shaped || launch.entry.is_some() || !launch.args.is_empty() {
            return Err(Failure::input(format!("workload `{name}` has its own kernels and arguments"))
                .help("--entry, --grid, --block, --shared and --arg are for a kernel from a file"));
        }
        Ok(Subject::Workload { workload, values: workload.values(params)? })
    }

    /// The chip if none is named.
    fn chip(&self) -> &'static str {
        match self {
            Subject::Kernel { file, .. } => file.chip(),
            Subject::Plan { plan, .. } => plan.kernels.chip(),
            Subject::Workload { workload, values } => workload.chip(values),
        }
    }

    /// The target of its PTX, which chooses the chip.
    fn target(&self) -> Option<u32> {
        match self {
            Subject::Kernel { file, .. } => file.target(),
            Subject::Plan { plan, .. } => plan.kernels.target(),
            Subject::Workload { .. } => None,
        }
    }

    fn title(&self) -> String {
        match self {
            Subject::Plan { path, .. } => path.display().to_string(),
            Subject::Kernel { path, launch, .. } => {
                let entry = launch.entry.as_ref().map(|entry| format!(" {entry}")).unwrap_or_default();
                let block = launch.block.map(|block| format!(" x block {}", dims(block))).unwrap_or_default();
                format!("{}{entry}, grid {}{block}", path.display(), dims(launch.grid))
            }
            Subject::Workload { workload, values } => format!("{}: {values}", workload.name),
        }
    }

    /// Runs the subject once. Returns the report and the result of the check, if there is one.
    fn run(
        &self,
        gpu: &mut Device,
        prepare: &dyn Fn(Launch) -> Launch,
    ) -> Result<(Report, Option<Result<String, String>>), Failure> {
        match self {
            Subject::Kernel { file, launch, .. } => {
                let ready = run::ready(gpu, file, launch, |_, _| Ok(()))?;
                let launched = ready.launch(gpu, prepare(launch.shape()));
                Ok((launched.map_err(|error| self.launch_failure(error, gpu))?, None))
            }
            Subject::Plan { plan, .. } => {
                let outcome = plan.execute(gpu, prepare);
                outcome.end.map_err(|error| match error {
                    PlanError::Device(error) => self.launch_failure(error, gpu),
                    other => plan::failure(other),
                })?;
                Ok((total(&outcome.launches), outcome.check))
            }
            Subject::Workload { workload, values } => {
                let outcome = workload.run(gpu, values, prepare)?;
                Ok((outcome.total, Some(outcome.check)))
            }
        }
    }

    fn launch_failure(&self, error: Error, gpu: &Device) -> Failure {
        let of_the_stack = run::only_on_a_stack(&error, self.target(), gpu.chip());
        of_the_stack.into_iter().fold(Failure::from(error), Failure::help)
    }
}

/// How a row's warps are scheduled.
#[derive(Clone, Debug)]
pub(crate) struct Setting {
    pub(crate) policy: Option<String>,
    pub(crate) bows: bool,
}

impl Setting {
    /// The chip's own policy, without BOWS.
    fn plain() -> Setting {
        Setting { policy: None, bows: false }
    }

    /// The policies of these names, or all, each without BOWS and with it.
    pub(crate) fn all(policies: &[String]) -> Vec<Setting> {
        let every = || warploom::policies().iter().map(|&(name, _)| name.to_string()).collect();
        let policies: Vec<String> = match policies {
            [] => every(),
            some => some.to_vec(),
        };
        let both = |policy: String| [false, true].map(|bows| Setting { policy: Some(policy.clone()), bows });
        policies.into_iter().flat_map(both).collect()
    }

    pub(crate) fn name(&self) -> String {
        let bows = if self.bows { "+bows" } else { "" };
        format!("{}{bows}", self.policy.as_deref().unwrap_or_default())
    }
}

fn device(chip: &Chip, setting: &Setting, options: &CompareOptions) -> Device {
    let bows = Bows { enabled: Some(setting.bows), limit: options.bows_limit, sib: options.sib };
    let trace = options.report.as_ref().map(|_| TraceOptions {
        sms: Sms::All,
        max_bytes: LONGEST_TIMELINES / Setting::all(&options.policy).len().max(1) as u64,
        perfetto: false,
        spans: true,
        ..TraceOptions::default()
    });
    let timing = Timing {
        policy: setting.policy.clone(),
        bows,
        threads: 1,
        profile: trace.is_some(),
        over_time: trace.is_some(),
        trace,
        ..Timing::default()
    };
    let check_races = options.check_races;
    Device::sim_with(chip.clone(), SimOptions { timing, check_races, ..SimOptions::default() })
}

/// Bytes that the timelines of all rows may take, as [`TraceOptions::max_bytes`] counts them.
const LONGEST_TIMELINES: u64 = 128 << 20;

/// A run and how it ended.
pub(crate) struct Row {
    pub(crate) setting: Setting,
    /// The timeline of the last launch, for the report.
    pub(crate) trace: Option<Trace>,
    /// Of a failed run, what it did until then.
    pub(crate) report: Report,
    pub(crate) end: End,
}

pub(crate) enum End {
    /// With the message of the check, if there is one.
    Good(Option<String>),
    Wrong(String),
    /// The kernel faulted or hangs.
    Failed(Failure),
}

impl End {
    fn word(&self) -> &'static str {
        match self {
            End::Good(_) => "ok",
            End::Wrong(_) => "wrong",
            End::Failed(failure) if failure.exit() == Exit::Fault => "fault",
            End::Failed(_) => "hang",
        }
    }
}

impl Row {
    /// Cycles of a run that ended; a failed run has no meaningful time.
    fn cycles(&self) -> Option<f64> {
        (!matches!(self.end, End::Failed(_))).then_some(self.report.cycles as f64)
    }
}

/// A run without BOWS is ended after this multiple of the longest run with BOWS, if no limit is given. A
/// livelock would never end.
const PATIENCE: u64 = 20;

fn run_all(subject: &Subject<'_>, chip: &Chip, options: &CompareOptions) -> Result<Vec<Row>, Failure> {
    let settings = Setting::all(&options.policy);
    let (interrupt, steps, done) = (interrupt_flag(), Steps::new(), AtomicUsize::new(0));
    let show = |done| steps.set(done, settings.len(), subject.title());
    show(0);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(options.threads.unwrap_or(0).into()).build();
    let pool = pool.map_err(|error| Failure::input(format!("cannot start threads: {error}")))?;
    let run = |bows: bool, max_cycles: Option<u64>| -> Result<Vec<Row>, Failure> {
        let wanted: Vec<&Setting> = settings.iter().filter(|setting| setting.bows == bows).collect();
        let rows = wanted.into_par_iter().with_max_len(1).map(|setting| {
            let prepare =
                |launch: Launch| Launch { max_cycles, interrupt: Some(interrupt.clone()), ..launch };
            let row = run_one(subject, &mut device(chip, setting, options), setting, &prepare);
            show(done.fetch_add(1, Ordering::Relaxed) + 1);
            row
        });
        // All rows run. If several fail, the first in the table's order is reported.
        rows.collect::<Vec<_>>().into_iter().collect()
    };
    pool.install(|| {
        let backing_off = run(true, options.max_cycles)?;
        let longest = backing_off.iter().map(|row| row.report.cycles).max().unwrap_or_default();
        let plain = run(false, options.max_cycles.or((longest > 0).then_some(PATIENCE * longest)))?;
        Ok(plain.into_iter().zip(backing_off).flat_map(|(plain, backing_off)| [plain, backing_off]).collect())
    })
}

/// Runs one row. Faults and hangs become part of the row; any other error fails the command.
fn run_one(
    subject: &Subject<'_>,
    gpu: &mut Device,
    setting: &Setting,
    prepare: &dyn Fn(Launch) -> Launch,
) -> Result<Row, Failure> {
    let (report, end) = match subject.run(gpu, prepare) {
        Ok((report, None)) => (report, End::Good(None)),
        Ok((report, Some(Ok(message)))) => (report, End::Good(Some(message))),
        Ok((report, Some(Err(message)))) => (report, End::Wrong(message)),
        Err(failure) if matches!(failure.exit(), Exit::Fault | Exit::Hang) => {
            (failure.report().cloned().unwrap_or_default(), End::Failed(failure))
        }
        Err(failure) => return Err(failure),
    };
    Ok(Row { setting: setting.clone(), trace: gpu.take_trace(), report, end })
}

fn exit(rows: &[Row]) -> Exit {
    let any = |word: &str| rows.iter().any(|row| row.end.word() == word);
    match () {
        () if any("wrong") || rows.iter().any(|row| !row.report.races.is_empty()) => Exit::CheckFailed,
        () if any("ok") => Exit::Good,
        () if any("hang") => Exit::Hang,
        () => Exit::Fault,
    }
}

/// Prints why runs failed and which races they have, each explanation once with the rows that have it.
fn print_failures(rows: &[Row]) {
    let mut messages: Vec<(String, Vec<String>)> = Vec::new();
    for row in rows {
        let failure = match &row.end {
            End::Good(_) => None,
            End::Wrong(message) => {
                Some(format!("{} the result is wrong: {message}", term::paint("error:", 31)))
            }
            End::Failed(failure) => Some(failure.text()),
        };
        for text in failure.into_iter().chain(run::races_text(&row.report)) {
            match messages.iter_mut().find(|(known, _)| *known == text) {
                Some((_, names)) => names.push(row.setting.name()),
                None => messages.push((text, vec![row.setting.name()])),
            }
        }
    }
    for (text, names) in messages {
        term::eprint(&format!("{}: {text}", names.join(", ")));
    }
}

/// The table and every run of it, as a page.
fn page(subject: &Subject<'_>, chip: &Chip, rows: &mut [Row]) -> Page {
    let bases = bases(rows);
    let cells: Vec<_> = rows.iter().map(|row| line(row, bases)).collect();
    let file = match subject {
        Subject::Kernel { path, .. } | Subject::Plan { path, .. } => Some(*path),
        Subject::Workload { .. } => None,
    };
    let runs = rows.iter_mut().map(|row| {
        let summary = run::timing_lines(&row.report);
        let reported = ReportedRun::new(&row.report, row.trace.take(), file, summary);
        let reported = reported.named(&row.setting.name());
        match &row.end {
            End::Good(_) => reported,
            End::Wrong(message) => reported.ended(&format!("the result is wrong: {message}")),
            End::Failed(failure) => reported.ended(failure.message()),
        }
    });
    Page {
        title: format!("{} on {}", subject.title(), chip.name),
        runs: runs.collect(),
        compare: json!({
            "title": "Schedulers, with BOWS and without", "head": HEAD, "rows": cells, "legend": LEGEND,
        }),
        ..Page::default()
    }
}

/// Cycles of the first row and of the best.
fn bases(rows: &[Row]) -> [Option<f64>; 2] {
    let best = rows.iter().filter_map(Row::cycles).min_by(f64::total_cmp);
    [rows.first().and_then(Row::cycles), best]
}

fn object(subject: &Subject<'_>, chip: &Chip, rows: &[Row]) -> Result<Value, Failure> {
    let bases = bases(rows);
    let mut objects = Vec::new();
    for row in rows {
        let mut object = serde_json::to_value(&row.report).map_err(std::io::Error::from)?;
        // A launch that failed before it began has no scheduler in its report.
        object["sched"] = json!(row.setting.policy);
        object["bows"] = json!(row.setting.bows);
        object["result"] = json!(row.end.word());
        object["check_message"] = match &row.end {
            End::Good(message) => json!(message),
            End::Wrong(message) => json!(message),
            End::Failed(_) => Value::Null,
        };
        let [first, best] = bases.map(|base| relative(row, base));
        object["relative_to_first"] = json!(first);
        object["relative_to_best"] = json!(best);
        object["error"] = match &row.end {
            End::Failed(failure) => failure.json(),
            _ => Value::Null,
        };
        objects.push(object);
    }
    let mut object = json!({ "chip": chip.name, "rows": objects, "error": null });
    match subject {
        Subject::Kernel { path, .. } | Subject::Plan { path, .. } => {
            object["file"] = json!(path.display().to_string());
        }
        Subject::Workload { workload, values } => {
            object["workload"] = json!(workload.name);
            object["params"] = json!(values);
        }
    }
    Ok(object)
}

fn relative(row: &Row, base: Option<f64>) -> Option<f64> {
    Some(row.cycles()? / base.filter(|&cycles| cycles > 0.0)?)
}

/// What the columns mean, in the text and on the page.
const LEGEND: [(&str, &str); 8] = [
    ("/first, /best", "cycles as a multiple of the first row's and of the fewest"),
    ("warp insts", "instructions issued by warps"),
    ("inter-warp", "tries to take a lock that failed because another warp held it, in threads"),
    ("intra-warp", "the same, because a thread of the same warp held it"),
    ("waits", "polls of a flag that found it not yet set, in threads"),
    ("SIMD", "SIMD efficiency: active threads per warp as a share of the warp"),
    ("energy", "all energy, static and dynamic"),
    ("dynamic", "of that, the energy of events: instructions, accesses"),
];

const HEAD: [&str; 12] = [
    "policy",
    "cycles",
    "/first",
    "/best",
    "warp insts",
    "inter-warp",
    "intra-warp",
    "waits",
    "SIMD",
    "energy",
    "dynamic",
    "result",
];

pub(crate) fn table(rows: &[Row]) -> String {
    let bases = bases(rows);
    let mut cells = vec![HEAD.map(str::to_string)];
    cells.extend(rows.iter().map(|row| line(row, bases)));
    let widths: [usize; HEAD.len()] =
        std::array::from_fn(|column| cells.iter().map(|row| row[column].len()).max().unwrap_or_default());
    let mut text = String::new();
    for row in &cells {
        let aligned = row.iter().zip(widths).enumerate().map(|(column, (cell, width))| match column {
            0 | 11 => format!("{cell:<width$}"),
            _ => format!("{cell:>width$}"),
        });
        text.push_str(aligned.collect::<Vec<_>>().join("  ").trim_end());
        text.push('\n');
    }
    text + &term::legend(&LEGEND)
}

fn line(row: &Row, bases: [Option<f64>; 2]) -> [String; HEAD.len()] {
    let report = &row.report;
    let [first, best] =
        bases.map(|base| relative(row, base).map_or_else(|| "-".to_string(), |ratio| format!("{ratio:.2}")));
    let locks = report.locks.clone().unwrap_or_default();
    let energy = |name| report.energy_nj.as_ref().and_then(|nj| nj.get(name)).map_or(0.0, |nj| nj / 1e9);
    let result = match &row.end {
        End::Failed(_) => format!("{} after {}", row.end.word(), counted(report.cycles, "cycle")),
        end => end.word().to_string(),
    };
    [
        row.setting.name(),
        grouped(report.cycles),
        first,
        best,
        grouped(report.warp_insts),
        grouped(locks.failed_inter),
        grouped(locks.failed_intra),
        grouped(locks.wait_fail),
        format!("{:.1}%", 100.0 * report.simd_efficiency),
        joules(energy("total")),
        joules(energy("dynamic")),
        result,
    ]
}
