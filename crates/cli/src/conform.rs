//! `warploom conform`: compares the simulator with real GPUs.

use std::fmt::Write;
use std::ops::Range;

use serde_json::{Value, json};
use warploom::{Chip, Device, SimModel, SimOptions, Timing};
use warploom_lab::conform::fuzz::{self, Difference, FuzzReport, Options, Program, StoredReport};
use warploom_lab::conform::{self, ConformReport};

use crate::cli::{ConformAction, ConformOptions, DeviceName};
use crate::devices::open_gpu;
use crate::failure::{Exit, Failure};
use crate::output::print_json;
use crate::progress::Steps;
use crate::term::{self, counted, grouped};

/// Optimization level of the driver's compiler for recording programs. Its optimizer miscompiles too many of them.
const PROGRAM_LEVEL: u32 = 0;

/// Number of differences shown in full.
const SHOWN: usize = 10;

/// Replays, records, or compares.
pub(crate) fn conform(options: &ConformOptions) -> Result<Exit, Failure> {
    match &options.action {
        None => replay(options),
        Some(ConformAction::Record) => record(options),
        Some(ConformAction::Fuzz { count, seed, jit_level, record }) => {
            let seeds = *seed..seed.saturating_add(*count);
            match options.device {
                _ if *record => record_fuzz(options, seeds, *jit_level),
                DeviceName::Cuda(ordinal) => compare_with_gpu(options, ordinal, seeds, *jit_level),
                DeviceName::Sim => compare_models(options, seeds),
            }
        }
        Some(ConformAction::Export { dir, programs }) => {
            let files = conform::export_ptx(dir, *programs)?;
            let object = json!({ "files": files });
            say(
                options,
                object,
                format!("{} written to {}\n", counted(files.len() as u64, "file"), dir.display()),
            )
        }
    }
}

fn say(options: &ConformOptions, object: Value, text: String) -> Result<Exit, Failure> {
    if options.json {
        print_json(object)?
    } else {
        term::print(&text)?
    }
    Ok(Exit::Good)
}

fn open(options: &ConformOptions) -> Result<Device, Failure> {
    match options.device {
        DeviceName::Sim => sim(&options.chip, SimModel::Functional),
        DeviceName::Cuda(ordinal) => open_gpu(ordinal, None),
    }
}

fn sim(chip: &str, model: SimModel) -> Result<Device, Failure> {
    let chip = Chip::load(chip, &[]).map_err(warploom::Error::from)?;
    // Programs are too small to split over host threads.
    let timing = Timing { threads: 1, ..Timing::default() };
    Ok(Device::sim_with(chip, SimOptions { model, timing, ..SimOptions::default() }))
}

impl From<conform::Error> for Failure {
    fn from(error: conform::Error) -> Failure {
        match error {
            conform::Error::Device(error) => Failure::from(error),
            error @ conform::Error::Simulated(_) => Failure::input(error.to_string())
                .help("give `--device cuda`, on a computer with an NVIDIA GPU"),
            other => Failure::input(other.to_string()),
        }
    }
}

fn replay(options: &ConformOptions) -> Result<Exit, Failure> {
    let mut device = open(options)?;
    let steps = Steps::new();
    let report = conform::replay(&mut device, &options.vectors, &mut |p| steps.show(&p))?;
    // Programs are replayed at the level of the driver's compiler at which they were recorded.
    let mut device = match options.device {
        DeviceName::Sim => device,
        DeviceName::Cuda(ordinal) => open_gpu(ordinal, Some(PROGRAM_LEVEL))?,
    };
    let programs = match conform::replay_fuzz(&mut device, &options.vectors, &mut |p| steps.show(&p)) {
        // Instructions may have been recorded without programs.
        Err(conform::Error::NoVectors(_)) => StoredReport::default(),
        other => other?,
    };
    drop(steps);
    let good = report.is_clean() && programs.is_clean();
    let object = json!({ "instructions": report, "programs": programs, "equal": good });
    say(options, object, replay_text(&report, &programs))?;
    Ok(if good { Exit::Good } else { Exit::CheckFailed })
}

fn replay_text(report: &ConformReport, programs: &StoredReport) -> String {
    let mut text = format!(
        "{:<12}  {:>6}  {:>9}  {:>9}  {:>8}  {:>7}  {:>9}\n",
        "group", "cases", "vectors", "equal", "in bound", "max ulp", "different"
    );
    for group in &report.groups {
        let _ = writeln!(
            text,
            "{:<12}  {:>6}  {:>9}  {:>9}  {:>8}  {:>7}  {:>9}",
            group.group,
            group.cases,
            grouped(group.vectors as u64),
            grouped(group.equal as u64),
            grouped(group.within_bound as u64),
            group.max_error_ulp,
            group.different
        );
    }
    let sum = |f: fn(&conform::GroupReport) -> usize| report.groups.iter().map(f).sum::<usize>() as u64;
    let _ = writeln!(
        text,
        "\n{} of {} on {}: {} equal, {} within the manual's bound, {} different",
        counted(sum(|g| g.vectors), "vector"),
        counted(sum(|g| g.cases), "instruction"),
        report.device,
        grouped(sum(|g| g.equal)),
        grouped(sum(|g| g.within_bound)),
        grouped(sum(|g| g.different))
    );
    if let Some(group) = report.groups.first() {
        let _ = writeln!(text, "recorded on {}", group.origin);
    }
    let all = programs.equal + programs.different.len() + programs.failed.len() + programs.stale.len();
    let _ = writeln!(text, "{}: {} equal", counted(all as u64, "random program"), programs.equal);
    for difference in report.groups.iter().flat_map(|g| &g.differences).take(SHOWN) {
        let _ = writeln!(
            text,
            "\ndifferent: {} ({} of {})\n  operands  {}\n  recorded  {}\n  machine   {}",
            difference.case,
            difference.different,
            difference.vectors,
            difference.operands.join(", "),
            difference.expected.join(", "),
            difference.got.join(", ")
        );
    }
    for refusal in report.groups.iter().flat_map(|g| &g.refused).take(SHOWN) {
        let _ = writeln!(text, "\nrefused: {}: {}", refusal.case, refusal.reason);
    }
    let stale = report.groups.iter().map(|g| g.stale.len()).sum::<usize>() + programs.stale.len();
    if stale > 0 {
        let _ = writeln!(
            text,
            "\n{} no longer fit what was recorded: record again",
            counted(stale as u64, "case")
        );
    }
    for seed in programs.different.iter().take(SHOWN) {
        let _ = writeln!(text, "\ndifferent: the program of seed {seed}");
    }
    for (seed, reason) in programs.failed.iter().take(SHOWN) {
        let _ = writeln!(text, "\nfailed: the program of seed {seed}: {reason}");
    }
    text
}

fn record(options: &ConformOptions) -> Result<Exit, Failure> {
    let mut device = open(options)?;
    let steps = Steps::new();
    let summary = conform::record(&mut device, &options.vectors, &mut |p| steps.show(&p))?;
    drop(steps);
    let text = format!(
        "{} of {} on {}: {} bytes in {}\n",
        counted(summary.vectors as u64, "vector"),
        counted(summary.cases as u64, "instruction"),
        summary.origin,
        grouped(summary.bytes as u64),
        options.vectors.display()
    );
    say(options, json!(summary), text)
}

fn record_fuzz(options: &ConformOptions, seeds: Range<u64>, jit_level: u32) -> Result<Exit, Failure> {
    let mut device = match options.device {
        DeviceName::Sim => open(options)?,
        DeviceName::Cuda(ordinal) => open_gpu(ordinal, Some(jit_level))?,
    };
    let steps = Steps::new();
    let recorded = conform::record_fuzz(&mut device, &options.vectors, seeds, &mut |p| steps.show(&p))?;
    drop(steps);
    let text = format!("{} recorded on {}\n", counted(recorded as u64, "program"), device.name());
    say(options, json!({ "recorded": recorded, "device": device.name() }), text)
}

/// Without a GPU, compares the chip's two models with each other.
fn compare_models(options: &ConformOptions, seeds: Range<u64>) -> Result<Exit, Failure> {
    let mut machine = sim(&options.chip, SimModel::Functional)?;
    let mut timed = sim(&options.chip, SimModel::Timing)?;
    let steps = Steps::new();
    let mut report =
        fuzz::compare(&mut machine, &mut timed, seeds, Options::default(), &mut |p| steps.show(&p));
    drop(steps);
    report.devices[1] += " with timing";
    let text = fuzz_text(&report, &mut machine, &mut timed);
    let good = report.differences.is_empty();
    say(options, json!(report), text)?;
    Ok(if good { Exit::Good } else { Exit::CheckFailed })
}

/// Levels of the driver's compiler that are tried when a program's result differs.
const OTHER_LEVELS: [u32; 4] = [4, 1, 2, 0];

/// Runs programs on the simulator and on a real GPU. A program's meaning does not depend on how it is
/// optimized. So if another level of the driver's compiler gives the simulator's result, the compiler
/// contradicts itself and the difference is not the simulator's.
fn compare_with_gpu(
    options: &ConformOptions,
    ordinal: usize,
    seeds: Range<u64>,
    jit_level: u32,
) -> Result<Exit, Failure> {
    let mut machine = sim(&options.chip, SimModel::Functional)?;
    let steps = Steps::new();
    let mut compare = |seeds: Range<u64>, level: u32| {
        let mut gpu = open_gpu(ordinal, Some(level))?;
        let mut show = |p: conform::Progress| steps.show(&p);
        Ok::<_, Failure>(fuzz::compare(&mut machine, &mut gpu, seeds, Options::default(), &mut show))
    };
    let mut all = compare(seeds, jit_level)?;
    let mut compiler = Vec::new();
    for difference in std::mem::take(&mut all.differences) {
        let one = difference.seed..difference.seed + 1;
        let mut agrees = None;
        for level in OTHER_LEVELS.into_iter().filter(|&level| level != jit_level) {
            if compare(one.clone(), level)?.differences.is_empty() {
                agrees = Some(level);
                break;
            }
        }
        match agrees {
            Some(level) => compiler.push((difference, level)),
            None => all.differences.push(difference),
        }
    }
    drop(steps);
    let mut text = format!(
        "{} on {} and {}: {} different\n",
        counted(all.programs as u64, "program"),
        all.devices[0],
        all.devices[1],
        all.differences.len()
    );
    for (difference, level) in &compiler {
        let Difference { seed, what } = difference;
        let _ =
            writeln!(text, "\nseed {seed}: compiled at level {jit_level}: {what}; at level {level}: equal");
    }
    for difference in &all.differences {
        let _ = writeln!(text, "\nseed {}: {}", difference.seed, difference.what);
    }
    let contradictions: Vec<_> = compiler
        .iter()
        .map(|(d, level)| json!({ "seed": d.seed, "what": d.what, "level": jit_level, "equal_at_level": level }))
        .collect();
    let object = json!({ "report": all, "compiler": contradictions });
    say(options, object, text)?;
    Ok(if all.differences.is_empty() { Exit::Good } else { Exit::CheckFailed })
}

fn fuzz_text(report: &FuzzReport, machine: &mut Device, other: &mut Device) -> String {
    let mut text = format!(
        "{} on {} and {}: {} different\n",
        counted(report.programs as u64, "program"),
        report.devices[0],
        report.devices[1],
        report.differences.len()
    );
    for difference in report.differences.iter().take(SHOWN) {
        let _ = writeln!(text, "\nseed {}: {}", difference.seed, difference.what);
    }
    if let Some(first) = report.differences.first() {
        let program = Program::generate(first.seed, Options::default());
        if let Some(minimal) = fuzz::minimise(machine, other, &program) {
            let _ = writeln!(text, "\nthe first one, made smaller: {}\n\n{}", minimal.what, minimal.ptx);
        }
    }
    text
}
