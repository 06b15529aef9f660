//! `warploom run PLAN.toml`: several launches, from a file to one summary.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use warploom::{Device, Launch, Report};
use warploom_lab::kernel::KernelFile;
use warploom_lab::plan::{Plan, PlanError, PlanFile, PlanOutcome, PlanProblem};
use warploom_lab::work::total;

use crate::arg::BufferRef;
use crate::cli::{CudaOptions, LaunchOptions, RunOptions};
use crate::failure::{Exit, Failure};
use crate::input;
use crate::machine::{self, Control};
use crate::output::{check_writable, print_json};
use crate::profile;
use crate::report::{self, Page, ReportedRun};
use crate::run::{self, Dump, before_summary, judge_checks, launch_failure, with_dumps};
use crate::term::{self, grouped};
use crate::work::{per_launch, totals};

/// Whether a file is a plan, by its name.
pub(crate) fn is_plan(file: &Path) -> bool {
    file.extension().is_some_and(|extension| extension == "toml")
}

/// A plan with its kernels, and the folder that its files are relative to.
pub(crate) struct Planned {
    pub plan: Plan,
    pub kernels: KernelFile,
    base: PathBuf,
}

impl Planned {
    /// Reads a plan; `params` are `NAME=VALUE`.
    pub(crate) fn read(file: &Path, params: &[String]) -> Result<Planned, Failure> {
        let mut given = Vec::new();
        for param in params {
            let (name, value) = param.split_once('=').ok_or_else(|| {
                Failure::input(format!("`{param}` is no parameter of a plan")).help("write NAME=VALUE")
            })?;
            given.push((name.to_string(), value.to_string()));
        }
        let wrong = |problem: PlanProblem| {
            let failure = Failure::input(format!("{}: {problem}", file.display()));
            problem.help.into_iter().fold(failure, Failure::help)
        };
        let plan = PlanFile::read(file).and_then(|file| file.plan(&given, Path::new(""))).map_err(wrong)?;
        let base = file.parent().unwrap_or(Path::new("")).to_path_buf();
        let kernels = plan.read_kernels(&base)?;
        Ok(Planned { plan, kernels, base })
    }

    pub(crate) fn execute(&self, gpu: &mut Device, limit: &dyn Fn(Launch) -> Launch) -> PlanOutcome {
        self.plan.execute(gpu, &self.kernels, &self.base, limit)
    }
}

/// Refuses options that a plan's file has instead.
pub(crate) fn refuse_options(launch: &LaunchOptions, cuda: &CudaOptions) -> Result<(), Failure> {
    let shaped = launch.grid != [1; 3] || launch.block.is_some() || launch.shared != 0;
    if shaped || launch.entry.is_some() || !launch.args.is_empty() {
        return Err(Failure::input("a plan has its own launches").help(
            "--entry, --grid, --block, --shared and --arg are for a kernel's file; a plan's has them itself",
        ));
    }
    if cuda.arch.is_some() || cuda.cc.is_some() || !cuda.flags.is_empty() {
        return Err(Failure::input("a plan says itself how its CUDA is compiled")
            .help("write arch = \"sm_90\" and flags = [\"-DN=4\"] into its file"));
    }
    Ok(())
}

/// Runs a plan and prints what it did.
pub(crate) fn run(options: &RunOptions) -> Result<Exit, Failure> {
    refuse_options(&options.launch, &options.cuda)?;
    if options.cooperative {
        return Err(Failure::input("--cooperative is for a kernel's file, not for a plan"));
    }
    let planned = Planned::read(&options.file, &options.params)?;
    check_references(options, &planned.plan)?;
    let mut machine = options.machine.clone();
    let chosen = input::choose_chip(&planned.kernels, &mut machine.chip);
    let mut gpu = machine::open(&machine)?;
    let control = Control::new(&machine);
    let PlanOutcome { launches, buffers, end, check } =
        planned.execute(&mut gpu, &|launch| control.apply(launch));
    drop(control);
    let trace = machine::write_observations(&mut gpu, &machine)?;
    if let Some(path) = &machine.report {
        let title = format!("{} on {}", options.file.display(), gpu.name());
        let source = Some(options.file.as_path());
        let run = match &end {
            Err(PlanError::Device(error)) => ReportedRun::of_failed(error, trace, source, totals),
            _ => {
                let total = total(&launches);
                Some(ReportedRun::new(&total, trace, source, totals(&total)))
            }
        };
        run.map_or(Ok(()), |run| report::write(path, &Page::of(title, run)))?;
    }
    let of = |buffer: &BufferRef| match buffer {
        BufferRef::Name(name) => buffers.get_key_value(name),
        BufferRef::Index(_) => None,
    };
    let dumps = run::dumps(&gpu, options, &of);
    let saved = run::save(&gpu, options, &of);
    end.map_err(|error| {
        let done = launches.len();
        let failure = match error {
            PlanError::Device(error) => {
                let ran = run::has_run(&error);
                let failure = launch_failure(error, &machine, planned.kernels.target(), options.json);
                if ran { failure.help(format!("that was launch {} of the plan", done + 1)) } else { failure }
            }
            other => failure(other),
        };
        with_dumps(failure, (&dumps, &saved), options.json)
    })?;
    let dumps = dumps?;
    saved?;
    let report = total(&launches);
    let wrong = check.as_ref().and_then(|check| check.as_ref().err()).map(|reason| {
        Failure::new(
            Exit::CheckFailed,
            format!("the result of `{}` is wrong: {reason}", options.file.display()),
        )
    });
    profile::write_graph(&report, &machine)?;
    if options.json {
        let mut object = object(&report, &launches, &check)?;
        object["dumps"] = dumps.iter().map(Dump::json).collect();
        object["error"] = wrong.as_ref().map_or(Value::Null, Failure::json);
        profile::add_sources(&mut object, Some(&options.file));
        print_json(object)?;
    } else {
        let mut text = before_summary(&report, &dumps);
        text.push_str(&summary(&options.file, &launches, &report, &check, chosen.as_deref()));
        text.push_str(&profile::text(&report, &machine, Some(&options.file)));
        term::print(&text)?;
    }
    let exit = judge_checks(&report);
    Ok(match wrong {
        Some(wrong) => {
            term::eprint(&wrong.text());
            wrong.exit()
        }
        None => exit,
    })
}

/// Why a plan did not end, other than by a launch.
pub(crate) fn failure(error: PlanError) -> Failure {
    match error {
        PlanError::Device(error) => error.into(),
        PlanError::File(error) => error.into(),
        PlanError::Prepare(error) => run::prepare_failure(error),
        PlanError::Endless { .. } => Failure::new(Exit::Hang, error.to_string())
            .help("raise at_most if the plan needs more iterations, or see with --dump what it comes to"),
    }
}

/// Finds mistakes in `--dump` and `--save` that would otherwise show only after the launches.
fn check_references(options: &RunOptions, plan: &Plan) -> Result<(), Failure> {
    let names = plan.buffer_names();
    let dumps = options.dump.iter().map(|dump| ("--dump", &dump.buffer, dump.count.unwrap_or(0)));
    let saves = options.save.iter().map(|save| ("--save", &save.buffer, 0));
    for (option, buffer, count) in dumps.chain(saves) {
        let elements = match buffer {
            BufferRef::Name(name) => plan.elements(name),
            BufferRef::Index(_) => None,
        };
        match elements {
            Some(elements) if count <= elements => {}
            Some(elements) => {
                let message = format!("{option} {buffer}:{count}: that buffer has {elements} elements");
                return Err(Failure::input(message));
            }
            None => {
                let failure = Failure::input(format!("{option} {buffer}: the plan has no such buffer"));
                return Err(failure.help(format!("its buffers are {}", names.join(", "))));
            }
        }
    }
    options.save.iter().try_for_each(|save| check_writable(&save.file))
}

type Check = Option<Result<String, String>>;

fn object(report: &Report, launches: &[Report], check: &Check) -> Result<Value, Failure> {
    let mut object = serde_json::to_value(report).map_err(std::io::Error::from)?;
    object["check"] = json!(check.as_ref().map(Result::is_ok));
    object["check_message"] = json!(check.as_ref().map(|check| match check {
        Ok(message) | Err(message) => message,
    }));
    object["launches"] = json!(launches.len());
    object["longest_launch_cycles"] = json!(launches.iter().map(|report| report.cycles).max());
    object["per_launch"] = per_launch(launches);
    Ok(object)
}

fn summary(file: &Path, launches: &[Report], report: &Report, check: &Check, chosen: Option<&str>) -> String {
    let chosen = chosen.map(|why| format!(" ({why})")).unwrap_or_default();
    let on = format!("{} on {}{chosen}, {}", file.display(), report.chip, run::how(report.model));
    let mut lines = vec![("plan", on)];
    match check {
        Some(Ok(message)) => lines.push(("check", format!("ok: {message}"))),
        Some(Err(message)) => lines.push(("check", format!("WRONG: {message}"))),
        None => {}
    }
    lines.push(("launches", format!("{} of {}", grouped(launches.len() as u64), report.kernel)));
    lines.extend(totals(report));
    run::aligned(&lines)
}
