//! `warploom run`: one launch, from the command line's arguments to a summary.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use warploom::isa::Ty;
use warploom::{Chip, Device, Divergence, Error, Estimate, HangKind, Kernel, Launch, Model, Report};
use warploom_lab::kernel::{self, ArgSpec, KernelFile, PrepareError, Prepared, format_value, json_value};

use crate::arg::BufferRef;
use crate::cli::{DeviceName, LaunchOptions, MachineOptions, RunOptions};
use crate::failure::{Exit, Failure};
use crate::input::{self, reason};
use crate::machine::{self, Control};
use crate::output::{check_writable, print_json, write};
use crate::plan;
use crate::profile;
use crate::report::{self, Page, ReportedRun};
use crate::term::{self, counted, dims, grouped, joules, seconds};

/// Runs the kernel, or the plan, and prints what it did.
pub(crate) fn run(options: &RunOptions) -> Result<Exit, Failure> {
    if plan::is_plan(&options.file) {
        return plan::run(options);
    }
    if let Some(param) = options.params.iter().find(|param| param.contains('=') && !Path::new(param).exists())
    {
        return Err(Failure::input(format!("`{param}`: a kernel's file has no parameters"))
            .help("give its arguments with --arg; parameters are those of a plan (docs/plans.md)"));
    }
    let others = options.params.iter().map(PathBuf::from);
    let file = input::read_linked([options.file.clone()].into_iter().chain(others), &options.cuda)?;
    let mut machine = options.machine.clone();
    let chosen = input::choose_chip(&file, &mut machine.chip);
    let mut gpu = machine::open(&machine)?;
    let ready =
        ready(&mut gpu, &file, &options.launch, |names, specs| check_references(options, names, specs))?;
    let arguments = &ready.arguments;

    let control = Control::new(&machine);
    let mut launch = control.apply(options.launch.shape());
    launch.cooperative = options.cooperative;
    let launched = ready.launch(&mut gpu, launch);
    drop(control);
    let trace = machine::write_observations(&mut gpu, &machine)?;
    if let Some(path) = &machine.report {
        let source = Some(options.file.as_path());
        let run = match &launched {
            Ok(report) => Some(ReportedRun::new(report, trace, source, summary_lines(report, None))),
            Err(error) => ReportedRun::of_failed(error, trace, source, |report| summary_lines(report, None)),
        };
        run.map_or(Ok(()), |run| report::write(path, &Page::of(title(options, &gpu), run)))?;
    }
    // Buffers of a launch that failed show how far it came.
    let ran = launched.as_ref().map_or_else(has_run, |_| true);
    let of = |buffer: &BufferRef| buffer.find(&ready.names).map(|at| (&ready.names[at], &arguments[at]));
    let (dumps, saved) = match ran {
        true => (dumps(&gpu, options, &of), save(&gpu, options, &of)),
        false => (Ok(Vec::new()), Ok(())),
    };
    let report = launched.map_err(|error| {
        let failure = launch_failure(error, &machine, file.target(), options.json);
        with_dumps(failure, (&dumps, &saved), options.json)
    })?;
    let dumps = dumps?;
    saved?;

    profile::write_graph(&report, &machine)?;
    if options.json {
        let mut object = serde_json::to_value(&report).map_err(std::io::Error::from)?;
        object["dumps"] = dumps.iter().map(Dump::json).collect();
        object["error"] = Value::Null;
        profile::add_sources(&mut object, Some(&options.file));
        print_json(object)?;
    } else {
        let mut text = before_summary(&report, &dumps);
        text.push_str(&summary(&report, chosen.as_deref()));
        text.push_str(&profile::text(&report, &machine, Some(&options.file)));
        term::print(&text)?;
    }
    Ok(judge_checks(&report))
}

/// The title of the report.
fn title(options: &RunOptions, gpu: &Device) -> String {
    let entry = options.launch.entry.as_ref().map(|entry| format!(" {entry}")).unwrap_or_default();
    format!("{}{entry} on {}", options.file.display(), gpu.name())
}

/// What the kernel printed, and the buffers that were asked for.
pub(crate) fn before_summary(report: &Report, dumps: &[Dump]) -> String {
    let mut text = report.output.clone();
    end_line(&mut text);
    for dump in dumps {
        text.push_str(&dump.text());
        text.push('\n');
    }
    if !text.is_empty() {
        text.push('\n');
    }
    text
}

/// Adds the buffers of a launch that failed to its JSON, or prints them; and says if one could not be saved.
pub(crate) fn with_dumps(
    failure: Failure,
    (dumps, saved): (&Result<Vec<Dump>, Failure>, &Result<(), Failure>),
    json: bool,
) -> Failure {
    let failure = match saved {
        Ok(()) => failure,
        Err(error) => failure.help(error.message()),
    };
    match dumps {
        Ok(dumps) if json => failure.with("dumps", dumps.iter().map(Dump::json).collect()),
        Ok(dumps) => {
            let _ = term::print(&dumps.iter().map(|dump| dump.text() + "\n").collect::<String>());
            failure
        }
        Err(_) => failure,
    }
}

/// Whether a launch that failed has run at all.
pub(crate) fn has_run(error: &Error) -> bool {
    matches!(error, Error::Fault { .. } | Error::Hang { .. } | Error::Interrupted { .. })
}

/// A kernel on a device, with its arguments.
pub(crate) struct Ready {
    kernel: Kernel,
    /// Of the parameters.
    names: Vec<String>,
    arguments: Vec<Prepared>,
}

impl Ready {
    pub(crate) fn launch(&self, gpu: &mut Device, launch: Launch) -> Result<Report, Error> {
        gpu.launch(&self.kernel, launch, self.arguments.iter().map(Prepared::arg).collect::<Vec<_>>())
    }
}

/// Loads a file's kernel and prepares its arguments. `check` gets the names of the parameters and their arguments
/// before any large buffer is made.
pub(crate) fn ready(
    gpu: &mut Device,
    file: &KernelFile,
    options: &LaunchOptions,
    check: impl FnOnce(&[String], &[ArgSpec]) -> Result<(), Failure>,
) -> Result<Ready, Failure> {
    let module = file.load(gpu)?;
    let kernel = kernel::choose(&module, file, options.entry.as_deref())?;
    let names = file.parameter_names(&kernel);
    let given = options.args.iter().map(|arg| (arg.name.clone(), arg.spec.clone())).collect();
    let specs = kernel::arrange(given, &kernel, &names)?;
    check(&names, &specs)?;
    let arguments = specs
        .iter()
        .zip(&names)
        .map(|(spec, name)| kernel::prepare(gpu, name, spec, Path::new("")).map_err(prepare_failure));
    let arguments = arguments.collect::<Result<_, _>>()?;
    Ok(Ready { kernel, names, arguments })
}

pub(crate) fn prepare_failure(error: PrepareError) -> Failure {
    match error {
        PrepareError::Device(error) => error.into(),
        PrepareError::Read { name, path, error } => {
            Failure::input(format!("{name}: cannot read `{}`: {}", path.display(), reason(&error)))
        }
        PrepareError::Size { message, help } => help.into_iter().fold(Failure::input(message), Failure::help),
    }
}

/// Finds mistakes in `--dump` and `--save` that would otherwise show only after a long launch.
fn check_references(options: &RunOptions, names: &[String], specs: &[ArgSpec]) -> Result<(), Failure> {
    let dumps = options.dump.iter().map(|d| ("--dump", &d.buffer, d.count.unwrap_or(0)));
    let saves = options.save.iter().map(|s| ("--save", &s.buffer, 0));
    for (option, buffer, count) in dumps.chain(saves) {
        match buffer.find(names).map(|at| &specs[at]) {
            Some(ArgSpec::Buffer(spec)) if count <= spec.count => {}
            Some(ArgSpec::Buffer(spec)) => {
                let has = spec.count;
                return Err(Failure::input(format!(
                    "{option} {buffer}:{count}: that buffer has {has} elements"
                )));
            }
            Some(_) => {
                return Err(Failure::input(format!("{option} {buffer}: argument {buffer} is no buffer")));
            }
            None => return Err(unknown_buffer(option, buffer, names)),
        }
    }
    options.save.iter().try_for_each(|save| check_writable(&save.file))
}

fn unknown_buffer(option: &str, buffer: &BufferRef, names: &[String]) -> Failure {
    let known = match names {
        [] => "there are no arguments".to_string(),
        names => format!("the arguments are {}, counted from 0", names.join(", ")),
    };
    Failure::input(format!("{option} {buffer}: there is no such argument")).help(known)
}

impl LaunchOptions {
    pub(crate) fn shape(&self) -> Launch {
        let (block, cluster) = (self.block, self.cluster);
        Launch { block, cluster, dynamic_shared_bytes: self.shared, ..Launch::grid(self.grid) }
    }
}

/// Prints what a failed launch did so far, and adds advice. `target` is that of its PTX.
pub(crate) fn launch_failure(
    error: Error,
    machine: &MachineOptions,
    target: Option<u32>,
    json: bool,
) -> Failure {
    let chip = Chip::load(machine.chip.name(), &machine.chip.set).ok();
    let of_the_stack = only_on_a_stack(&error, target, chip.as_ref());
    let limits = match &error {
        Error::Unlaunchable { shape, .. } => !shape.grid.contains(&0) && !shape.block.contains(&0),
        _ => false,
    };
    let failure = Failure::from(error);
    if let Some(report) = failure.report().filter(|_| !json) {
        let mut text = report.output.clone();
        end_line(&mut text);
        if failure.exit() == Exit::Interrupted {
            text.push_str(&summary(report, None));
        }
        text.push_str(&profile::text(report, machine, None));
        // The kernel's output comes before the error message.
        let _ = term::print(&text);
        // What the checks found may be the cause.
        judge_checks(report);
    }
    let failure = of_the_stack.into_iter().fold(failure, Failure::help);
    match limits && machine.device == DeviceName::Sim {
        true => failure.help(format!(
            "`warploom chips {}` shows the chip's limits; --set changes them",
            machine.chip.name()
        )),
        false => failure,
    }
}

/// What to say of a hang that only a SIMT stack has, if the chip has one and the code is for a GPU with independent
/// threads.
pub(crate) fn only_on_a_stack(error: &Error, target: Option<u32>, chip: Option<&Chip>) -> Option<String> {
    let target = target.filter(|target| *target >= 70)?;
    let Error::Hang { hang: Some(hang), .. } = error else { return None };
    let has_stack = chip.is_some_and(|chip| chip.sm.divergence == Divergence::SimtStack);
    (hang.kind == HangKind::SimdDeadlock && has_stack).then(|| {
        format!(
            "this holds for a SIMT stack; the code is compiled for sm_{target}, where threads of a warp are scheduled \
             independently and it may well end (--chip h200)"
        )
    })
}

/// Values of a buffer after the launch.
pub(crate) struct Dump {
    name: String,
    ty: Ty,
    bytes: Vec<u8>,
}

impl Dump {
    fn elements(&self) -> std::slice::Chunks<'_, u8> {
        self.bytes.chunks(self.ty.bytes() as usize)
    }

    fn text(&self) -> String {
        self.elements().map(|bytes| format_value(self.ty, bytes)).collect::<Vec<_>>().join(" ")
    }

    pub(crate) fn json(&self) -> Value {
        let values = self.elements().map(|bytes| json_value(self.ty, bytes)).collect::<Vec<_>>();
        json!({ "name": self.name, "type": self.ty.name(), "values": values })
    }
}

/// The buffers that `--dump` asks for; `of` finds a buffer and its name. Those that are not there were refused before.
pub(crate) fn dumps<'a>(
    gpu: &Device,
    options: &RunOptions,
    of: &dyn Fn(&BufferRef) -> Option<(&'a String, &'a Prepared)>,
) -> Result<Vec<Dump>, Failure> {
    let mut dumps = Vec::new();
    for dump in &options.dump {
        if let Some((name, Prepared::Buffer { ty, buffer })) = of(&dump.buffer) {
            let len = dump.count.map_or(buffer.len(), |count| count * ty.bytes() as usize);
            dumps.push(Dump { name: name.clone(), ty: *ty, bytes: buffer.read_range(gpu, 0, len)? });
        }
    }
    Ok(dumps)
}

/// Writes the buffers that `--save` names.
pub(crate) fn save<'a>(
    gpu: &Device,
    options: &RunOptions,
    of: &dyn Fn(&BufferRef) -> Option<(&'a String, &'a Prepared)>,
) -> Result<(), Failure> {
    for save in &options.save {
        if let Some((_, Prepared::Buffer { buffer, .. })) = of(&save.buffer) {
            write(&save.file, &buffer.read(gpu)?)?;
        }
    }
    Ok(())
}

pub(crate) fn end_line(text: &mut String) {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
}

/// Prints warnings about lock bits taken too late or left taken, and errors about reads of uninitialised memory and
/// about races. Only the errors fail the command.
pub(crate) fn judge_checks(report: &Report) -> Exit {
    for warning in &report.lock_warnings {
        let text = warning.message.replace('\n', "\n  ");
        let kernel = shown_name(&report.kernel);
        term::eprint(&format!("{} kernel `{kernel}`: {text}", term::paint("warning:", 33)));
    }
    let found = [uninitialised_text(report), races_text(report)];
    found.iter().flatten().for_each(|text| term::eprint(text));
    if found.iter().all(Option::is_none) { Exit::Good } else { Exit::CheckFailed }
}

fn uninitialised_text(report: &Report) -> Option<String> {
    let places = counted(report.uninitialised.len() as u64, "instruction");
    let found = report.uninitialised.iter().map(|read| (&read.message, read.count));
    found_text(report, &format!("reads uninitialised memory at {places}"), found)
}

/// The error about races, if there are any.
pub(crate) fn races_text(report: &Report) -> Option<String> {
    let pairs = counted(report.races.len() as u64, "pair");
    let found = report.races.iter().map(|race| (&race.message, race.count));
    found_text(report, &format!("has races: {pairs} of instructions"), found)
}

/// What a check found: messages, and how often each; `None` if there are none.
fn found_text<'a>(
    report: &Report,
    what: &str,
    found: impl Iterator<Item = (&'a String, u64)>,
) -> Option<String> {
    let found: String = found
        .map(|(message, count)| format!("\n  {} ({})", message.replace('\n', "\n  "), counted(count, "time")))
        .collect();
    let head = format!("{} kernel `{}` {what}", term::paint("error:", 31), shown_name(&report.kernel));
    (!found.is_empty()).then(|| head + &found)
}

/// The summary for people. `chosen` says why this chip, if the user did not.
pub(crate) fn summary(report: &Report, chosen: Option<&str>) -> String {
    aligned(&summary_lines(report, chosen))
}

fn summary_lines(report: &Report, chosen: Option<&str>) -> Vec<(&'static str, String)> {
    let chosen = chosen.map(|why| format!(" ({why})")).unwrap_or_default();
    let threads = |dims: [u32; 3]| dims.iter().map(|&d| d as u64).product::<u64>();
    let (ctas, block) = (threads(report.grid), threads(report.block));
    let mut lines = vec![
        (
            "kernel",
            format!("{} on {}{chosen}, {}", shown_name(&report.kernel), report.chip, how(report.model)),
        ),
        (
            "launch",
            format!(
                "grid {} x block {}: {}",
                dims(report.grid),
                dims(report.block),
                counted(ctas * block, "thread")
            ),
        ),
        (
            "needs",
            format!(
                "{} per thread, {} of shared memory per CTA, {} of local memory per thread",
                counted(report.registers as u64, "register"),
                counted(report.shared_bytes as u64, "byte"),
                counted(report.local_bytes as u64, "byte")
            ),
        ),
    ];
    if let Some(occupancy) = report.occupancy {
        lines.push(("occupancy", occupancy_text(&occupancy, report.achieved_occupancy)));
    }
    if report.gpu_s.is_some() {
        lines.push(("GPU time", gpu_time(report)));
        return lines;
    }
    lines.push((
        "executed",
        format!(
            "{}, {}",
            counted(report.warp_insts, "warp instruction"),
            counted(report.thread_insts, "thread instruction")
        ),
    ));
    lines.push(("SIMD", simd_text(report)));
    lines.extend(timing_lines(report));
    lines.push((
        "wall time",
        format!("{}, {:.1} M warp instructions/s", seconds(report.wall_s), report.warp_insts_per_s / 1e6),
    ));
    lines
}

/// Lines that only the timed model has; none for other models.
pub(crate) fn timing_lines(report: &Report) -> Vec<(&'static str, String)> {
    let (Some(ipc), Some(kernel_s)) = (report.ipc, report.kernel_s) else { return Vec::new() };
    let overhead = report.launch_overhead_ns.unwrap_or(0) as f64 / 1e9;
    let mut lines = vec![
        ("cycles", format!("{}, IPC {ipc:.3} (warp instructions per cycle)", grouped(report.cycles))),
        ("time", format!("kernel {} + launch overhead {}", seconds(kernel_s), seconds(overhead))),
    ];
    if let Some(estimate) = &report.estimate {
        lines.push(("estimate", estimate_text(report, estimate)));
    }
    if let (Some(stalls), Some(all)) = (&report.stalls, report.warp_cycles) {
        // A profile also knows which of these cycles were spent spinning.
        let text = match &report.profile {
            Some(profile) => shares(profile.time.iter(), all),
            None => shares(stalls.iter().map(|(name, cycles)| (*name, *cycles)), all),
        };
        lines.push(("warps", text));
    }
    if let Some(locks) = report.locks.as_ref().filter(|l| **l != Default::default()) {
        lines.push(("locks", locks_text(locks)));
    }
    if let (Some(back_off), Some(sib)) = (&report.back_off, &report.sib) {
        lines.push(("BOWS", back_off_text(back_off, sib, report.warp_cycles.unwrap_or(0))));
    }
    if let Some(ddos) = &report.ddos {
        lines.push(("DDOS", detection_text(ddos)));
    }
    let of = |counters: &Option<warploom::Counters>, name: &str| {
        counters.as_ref().and_then(|c| c.get(name)).copied().unwrap_or(0)
    };
    let hits = |counters: &Option<warploom::Counters>| {
        let (hits, misses) = (of(counters, "hits"), of(counters, "misses") + of(counters, "merges"));
        (hits + misses > 0).then(|| {
            format!("hit rate {:.1}% of {}", percent(hits, hits + misses), counted(hits + misses, "line"))
        })
    };
    if report.aggregator.is_some() {
        let of = |name: &str| of(&report.aggregator, name);
        lines.push((
            "aggregator",
            format!(
                "{} in {}; {}; no SM had a warp in {:.1}% of the cycles",
                counted(of("dispatched"), "CTA"),
                counted(of("starts"), "start"),
                counted(of("yields"), "yield"),
                percent(of("gpu_stalled_cycles"), report.cycles)
            ),
        ));
    }
    let levels = [("L1", hits(&report.l1)), ("L2", hits(&report.l2))];
    let mut memory =
        levels.into_iter().filter_map(|(level, text)| Some(format!("{level} {}", text?))).collect::<Vec<_>>();
    if let Some(share) = report.dram_utilisation {
        let bytes = of(&report.dram, "bytes");
        memory.push(format!(
            "DRAM {} kB, {:.1}% of its peak bandwidth",
            grouped(bytes / 1000),
            100.0 * share
        ));
    }
    lines.push(("memory", memory.join("; ")));
    if let Some(energy) = &report.energy_nj {
        lines.push(("energy", energy_text(energy, kernel_s)));
    }
    lines
}

/// How much of a run in the fast model was timed, and how far off its cycles may be.
fn estimate_text(report: &Report, estimate: &Estimate) -> String {
    let mut text = format!(
        "timed: {} of {} in {} of {}, {:.1}% of the warp instructions",
        grouped(estimate.timed_ctas),
        counted(report.ctas, "CTA"),
        grouped(estimate.timed_launches),
        counted(estimate.launches, "launch").replace("launchs", "launches"),
        percent(estimate.timed_warp_insts, report.warp_insts)
    );
    match estimate.timed_warp_insts < report.warp_insts {
        true => {
            let error = 100.0 * estimate.error;
            text.push_str(&format!("; samples differ by {error:.1}% of the cycles; {}", Estimate::MEASURED));
            text.push_str("; all counters are scaled");
        }
        false => text.push_str("; nothing is estimated"),
    }
    for reason in &estimate.timed_because {
        text.push_str(&format!("; as a whole where {reason}"));
    }
    text
}

/// What a real GPU took: the kernel alone, and what the events around it say.
pub(crate) fn gpu_time(report: &Report) -> String {
    let of = |time: Option<f64>| seconds(time.unwrap_or_default());
    format!(
        "{}, {} cycles at the peak clock; between the events {}, the least {}",
        of(report.kernel_s),
        grouped(report.cycles),
        of(report.gpu_s),
        of(report.gpu_least_s)
    )
}

/// Total, dynamic share, power, and the largest components.
fn energy_text(energy: &BTreeMap<&'static str, f64>, kernel_s: f64) -> String {
    let of = |name: &str| energy.get(name).copied().unwrap_or(0.0);
    let total = of("total");
    let watts = if kernel_s > 0.0 { total / 1e9 / kernel_s } else { 0.0 };
    let mut parts: Vec<_> = energy.iter().filter(|(name, _)| !ENERGY_SUMS.contains(name)).collect();
    parts.sort_by(|(a, x), (b, y)| y.total_cmp(x).then(a.cmp(b)));
    let share = |(name, nj): &(&&str, &f64)| {
        format!("{} {:.1}%", name.replace('_', " "), 100.0 * *nj / total.max(1e-9))
    };
    format!(
        "{}, {} of it dynamic, {watts:.1} W on average: {}",
        joules(total / 1e9),
        joules(of("dynamic") / 1e9),
        parts.iter().take(5).map(share).collect::<Vec<_>>().join(", ")
    )
}

/// Keys of a report's energies that are sums of the others.
const ENERGY_SUMS: [&str; 3] = ["dynamic", "static", "total"];

/// How warps spent their cycles, the largest share first.
pub(crate) fn shares(stalls: impl Iterator<Item = (&'static str, u64)>, all: u64) -> String {
    let mut shares = stalls.filter(|(_, cycles)| *cycles > 0).collect::<Vec<_>>();
    shares.sort_by_key(|&(name, cycles)| (std::cmp::Reverse(cycles), name));
    let text =
        |(name, cycles): (&str, u64)| format!("{} {:.1}%", name.replace('_', " "), percent(cycles, all));
    shares.into_iter().map(text).collect::<Vec<_>>().join(", ")
}

fn locks_text(locks: &warploom::Locks) -> String {
    let mut parts = Vec::new();
    let tries = locks.acquired + locks.failed_intra + locks.failed_inter;
    if tries > 0 {
        parts.push(format!(
            "{} taken in {}; failed: {} intra-warp, {} inter-warp",
            grouped(locks.acquired),
            counted(tries, "try").replace("trys", "tries"),
            grouped(locks.failed_intra),
            grouped(locks.failed_inter)
        ));
    }
    if locks.queued + locks.not_queued > 0 {
        parts.push(format!(
            "{} queued, {} granted, {} without a queue",
            grouped(locks.queued),
            grouped(locks.granted),
            grouped(locks.not_queued)
        ));
    }
    let waits = locks.wait_ok + locks.wait_fail;
    if waits > 0 {
        parts.push(format!(
            "{} in wait loops, {} successful",
            counted(waits, "poll"),
            grouped(locks.wait_ok)
        ));
    }
    parts.join("; ")
}

fn back_off_text(back_off: &warploom::BackOff, sib: &warploom::SpinBranches, all: u64) -> String {
    format!(
        "{}; warps backed off {}, {:.1}% of their time, limit up to {}",
        counted(sib.confirmed, "spin-inducing branch").replace("branchs", "branches"),
        counted(back_off.count, "time"),
        percent(back_off.warp_cycles, all),
        counted(back_off.longest_limit_cycles, "cycle")
    )
}

fn detection_text(ddos: &warploom::Detection) -> String {
    let of = |confirmed: u64, met: u64, ratio: Option<f64>| {
        let after = ratio.map(|ratio| format!(" after {:.1}% of their time", 100.0 * ratio));
        format!("{} of {} confirmed{}", grouped(confirmed), grouped(met), after.unwrap_or_default())
    };
    format!(
        "spin-inducing branches: {}; other backward branches: {} (each on every SM that took it)",
        of(ddos.true_confirmed, ddos.true_met, ddos.dpr_true),
        of(ddos.false_confirmed, ddos.false_met, ddos.dpr_false)
    )
}

pub(crate) fn percent(part: u64, all: u64) -> f64 {
    if all > 0 { 100.0 * part as f64 / all as f64 } else { 0.0 }
}

pub(crate) fn aligned(lines: &[(&str, String)]) -> String {
    lines.iter().map(|(label, text)| format!("{label:<11}{text}\n")).collect()
}

pub(crate) fn how(model: Model) -> &'static str {
    match model {
        Model::Timing => "timed model",
        Model::Functional => "functional model",
        Model::Fast => "fast model",
        Model::Hardware => "a real GPU",
    }
}

/// How many lanes of a warp instruction were active, on average.
pub(crate) fn simd_text(report: &Report) -> String {
    format!(
        "efficiency {:.1}%: {:.1} active threads per warp",
        100.0 * report.simd_efficiency,
        report.active_threads_per_warp
    )
}

/// A kernel's name for people: C++ names as they are in the source. Several are separated by commas.
pub(crate) fn shown_name(symbols: &str) -> String {
    symbols.split(", ").map(kernel::entry::demangled).collect::<Vec<_>>().join(", ")
}

/// How many CTAs fit on an SM and what limits them; with a timed run, how many warps there were.
pub(crate) fn occupancy_text(occupancy: &warploom::Occupancy, achieved: Option<f64>) -> String {
    let limit = match occupancy.limited_by {
        warploom::Limiter::Ctas => "CTA slots",
        warploom::Limiter::Warps => "warp slots",
        warploom::Limiter::Threads => "threads",
        warploom::Limiter::Registers => "registers",
        warploom::Limiter::SharedMemory => "shared memory",
    };
    let (warps, slots) =
        (occupancy.ctas_per_sm as u64 * occupancy.warps_per_cta as u64, occupancy.max_warps_per_sm as u64);
    let ctas = counted(occupancy.ctas_per_sm as u64, "CTA");
    let theoretical = format!(
        "theoretical {:.1}%: {ctas} per SM ({} of {} warps), limited by {limit}",
        percent(warps, slots),
        grouped(warps),
        grouped(slots)
    );
    match achieved {
        Some(achieved) => format!("{theoretical}; achieved {:.1}%", 100.0 * achieved),
        None => theoretical,
    }
}
