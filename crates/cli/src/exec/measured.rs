//! Programs that are run to be measured: their profile when they have ended, or one program under every scheduler.
//!
//! The command stays beside the program and reads what the runtime has written (`crates/cudart/src/core/record.rs`).

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Arc;

use serde::Deserialize;
use serde_json::json;
use warploom::profile::{OverTime, Profile};
use warploom::{Locks, Report};

use crate::cli::ExecOptions;
use crate::compare::{self, End, Row, Setting};
use crate::failure::{Exit, Failure};
use crate::input::reason;
use crate::output::check_writable;
use crate::profile;
use crate::report::{self, Page, ReportedRun};
use crate::run::timing_lines;
use crate::term::{self, counted, grouped};

/// The launches of a kernel, as the runtime writes them when one has ended. All but their number is of timed ones.
#[derive(Deserialize)]
struct ProfiledKernel {
    chip: String,
    name: String,
    launches: u64,
    timed: u64,
    failed: u64,
    cycles: u64,
    warp_cycles: u64,
    warp_insts: u64,
    simd_efficiency: f64,
    seconds: f64,
    locks: Counted,
    profile: Option<Profile>,
    over_time: Option<OverTime>,
}

/// Tries at locks and polls of flags.
#[derive(Clone, Copy, Default, Deserialize)]
struct Counted {
    acquired: u64,
    failed_intra: u64,
    failed_inter: u64,
    wait_ok: u64,
    wait_fail: u64,
}

impl From<Counted> for Locks {
    fn from(counted: Counted) -> Locks {
        let Counted { acquired, failed_intra, failed_inter, wait_ok, wait_fail } = counted;
        Locks { acquired, failed_intra, failed_inter, wait_ok, wait_fail, ..Locks::default() }
    }
}

impl ProfiledKernel {
    fn report(&self) -> Report {
        let mut profile = self.profile.clone();
        if let Some(profile) = &mut profile {
            profile.over_time.clone_from(&self.over_time);
        }
        let stalls = profile.as_ref().map(|profile| profile.time.iter().collect());
        Report {
            kernel: self.name.clone(),
            chip: self.chip.clone(),
            cycles: self.cycles,
            warp_cycles: Some(self.warp_cycles),
            warp_insts: self.warp_insts,
            ipc: Some(self.warp_insts as f64 / self.cycles.max(1) as f64),
            simd_efficiency: self.simd_efficiency,
            kernel_s: Some(self.seconds),
            stalls,
            locks: Some(self.locks.into()),
            profile: profile.map(Arc::new),
            ..Report::default()
        }
    }

    fn line(&self) -> [String; HEAD.len()] {
        [
            self.name.clone(),
            grouped(self.launches),
            grouped(self.timed),
            grouped(self.cycles),
            format!("{:.2} µs", 1e6 * self.seconds),
            grouped(self.warp_insts),
            format!("{:.2}", self.warp_insts as f64 / self.cycles.max(1) as f64),
            grouped(self.locks.failed_intra + self.locks.failed_inter),
            if self.failed > 0 { counted(self.failed, "failure") } else { "ok".to_string() },
        ]
    }
}

const HEAD: [&str; 9] =
    ["kernel", "launches", "timed", "cycles", "time", "warp insts", "IPC", "failed locks", "result"];

/// What the columns mean.
const LEGEND: [(&str, &str); 5] = [
    ("launches, timed", "all of the kernel's launches, and those in the timed model; the rest is of these"),
    ("time", "kernel time, without launch overhead"),
    ("warp insts", "instructions issued by warps"),
    ("IPC", "warp instructions per cycle"),
    ("failed locks", "tries to take a lock that failed, in threads"),
];

/// A file or folder of this process, removed in the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new(what: &str) -> Scratch {
        Scratch(std::env::temp_dir().join(format!("warploom-{}-{what}", std::process::id())))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = if self.0.is_dir() { fs::remove_dir_all(&self.0) } else { fs::remove_file(&self.0) };
    }
}

/// Runs the program, and shows where the time of its kernels went. Its exit code is the command's.
pub(super) fn profiled(mut command: Command, options: &ExecOptions) -> Result<Exit, Failure> {
    options.report.iter().try_for_each(|file| check_writable(file))?;
    let folder = Scratch::new("profiles");
    fs::create_dir(&folder.0)?;
    let status = run(command.env("WARPLOOM_PROFILE", &folder.0))?;
    let mut kernels = read_profiles(&folder.0)?;
    // Another exit code than 0 ends this process at once.
    drop(folder);
    let all = kernels.iter().map(|kernel| kernel.launches).sum();
    kernels.retain(|kernel| kernel.timed > 0);
    kernels.sort_by(|a, b| b.seconds.total_cmp(&a.seconds).then_with(|| a.name.cmp(&b.name)));
    if kernels.is_empty() {
        // The runtime itself says why none of several launches was timed.
        if all == 0 {
            eprintln!("warning: the program has launched no kernel: there is nothing to profile");
        }
        return ended(status);
    }
    let reports: Vec<Report> = kernels.iter().map(ProfiledKernel::report).collect();
    let program = Path::new(&options.program[0]);
    if let Some(lines) = options.profile {
        for (kernel, report) in kernels.iter().zip(&reports) {
            let Some(profile) = &report.profile else { continue };
            let tables = profile::tables(profile, lines.into(), Some(program));
            let head = format!("{}: {}", kernel.name, counted(kernel.cycles, "cycle"));
            term::eprint(&format!("\n{head} in {}\n{tables}", launches(kernel.timed)));
        }
    }
    if let Some(file) = &options.report {
        report::write(file, &page(program, all, &kernels, &reports))?;
    }
    ended(status)
}

/// What the runtime has written, a file for each kernel.
fn read_profiles(folder: &Path) -> Result<Vec<ProfiledKernel>, Failure> {
    let mut kernels = Vec::new();
    for file in fs::read_dir(folder)? {
        let path = file?.path();
        // Of a program that was killed, a file may not be complete.
        if path.extension().is_some_and(|extension| extension == "json") {
            kernels.push(serde_json::from_slice(&fs::read(&path)?).map_err(std::io::Error::from)?);
        }
    }
    Ok(kernels)
}

fn page(program: &Path, all: u64, kernels: &[ProfiledKernel], reports: &[Report]) -> Page {
    let runs = reports.iter().map(|report| {
        ReportedRun::new(report, None, Some(program), timing_lines(report)).named(&report.kernel)
    });
    let rows: Vec<_> = kernels.iter().map(ProfiledKernel::line).collect();
    let title = format!("Kernels, in {}", launches(all));
    let chip = &kernels[0].chip;
    Page {
        title: format!("{} on {chip}", program.display()),
        runs: runs.collect(),
        compare: json!({ "title": title, "head": HEAD, "rows": rows, "legend": LEGEND }),
        ..Page::default()
    }
}

fn launches(count: u64) -> String {
    format!("{} launch{}", grouped(count), if count == 1 { "" } else { "es" })
}

/// Runs the program under every scheduler, and prints one table.
pub(super) fn compared(make: impl Fn() -> Command) -> Result<Exit, Failure> {
    let mut rows = Vec::new();
    for setting in Setting::all(&[]) {
        let file = Scratch::new("launches.jsonl");
        fs::write(&file.0, "")?;
        let mut command = make();
        command.env("WARPLOOM_JSON", &file.0).env("WARPLOOM_QUIET", "1");
        command.env("WARPLOOM_BOWS", if setting.bows { "1" } else { "0" });
        setting.policy.iter().for_each(|policy| {
            command.env("WARPLOOM_SCHED", policy);
        });
        if !rows.is_empty() {
            command.stdout(Stdio::null()).stderr(Stdio::null());
        }
        let status = run(&mut command)?;
        let (report, failed) = total(&fs::read_to_string(&file.0)?)?;
        if report.cycles == 0 {
            return Err(Failure::input(format!("{}: the program has no timed launch", setting.name()))
                .help("`warploom exec` without --compare shows what it does"));
        }
        let end = match (status.success(), failed) {
            (true, 0) => End::Good(None),
            // A program may not look at errors.
            (true, failed) => End::Wrong(format!("{} failed", launches(failed))),
            (false, _) => End::Wrong(format!("the program ended with {status}")),
        };
        rows.push(Row { setting, trace: None, report, end });
    }
    term::eprint(&format!("\n{}", compare::table(&rows)));
    let mut bad = false;
    for row in &rows {
        if let End::Wrong(reason) = &row.end {
            bad = true;
            eprintln!("{}: {reason}", row.setting.name());
        }
    }
    Ok(if bad { Exit::CheckFailed } else { Exit::Good })
}

/// A line of the runtime's JSON, as far as it is summed.
#[derive(Deserialize)]
struct Line {
    model: String,
    cycles: u64,
    warp_insts: u64,
    simd_efficiency: f64,
    #[serde(default)]
    locks: Option<Counted>,
    #[serde(default)]
    energy_nj: Option<BTreeMap<String, f64>>,
    /// Of a launch that faulted, hung or was interrupted.
    #[serde(default)]
    error: Option<String>,
}

/// All timed launches together, and how many launches failed.
fn total(lines: &str) -> Result<(Report, u64), Failure> {
    let (mut sum, mut efficient, mut failed) = (Report::default(), 0.0, 0);
    let (mut locks, mut energy) = (Locks::default(), BTreeMap::from([("total", 0.0), ("dynamic", 0.0)]));
    for line in lines.lines() {
        let line: Line = serde_json::from_str(line).map_err(std::io::Error::from)?;
        failed += u64::from(line.error.is_some());
        if line.model != "timing" {
            continue;
        }
        sum.cycles += line.cycles;
        sum.warp_insts += line.warp_insts;
        efficient += line.simd_efficiency * line.warp_insts as f64;
        let of_launch = Locks::from(line.locks.unwrap_or_default());
        locks.acquired += of_launch.acquired;
        locks.failed_intra += of_launch.failed_intra;
        locks.failed_inter += of_launch.failed_inter;
        locks.wait_fail += of_launch.wait_fail;
        for (name, nj) in &mut energy {
            *nj += line.energy_nj.as_ref().and_then(|all| all.get(*name)).unwrap_or(&0.0);
        }
    }
    sum.simd_efficiency = efficient / sum.warp_insts.max(1) as f64;
    (sum.locks, sum.energy_nj) = (Some(locks), Some(energy));
    Ok((sum, failed))
}

fn run(command: &mut Command) -> Result<ExitStatus, Failure> {
    let program = command.get_program().to_owned();
    command.status().map_err(|error| {
        let program = Path::new(&program).display();
        Failure::input(format!("cannot run `{program}`: {}", reason(&error)))
    })
}

/// The program's exit code as the command's; a signal as a shell tells it.
fn ended(status: ExitStatus) -> Result<Exit, Failure> {
    #[cfg(unix)]
    let signal = std::os::unix::process::ExitStatusExt::signal(&status);
    #[cfg(not(unix))]
    let signal: Option<i32> = None;
    match status.code().or(signal.map(|signal| 128 + signal)) {
        Some(0) => Ok(Exit::Good),
        code => std::process::exit(code.unwrap_or(1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn launches_are_summed() {
        let line = |model: &str, cycles: u64, error: Option<&str>| {
            let locks = json!({
                "acquired": 2, "failed_intra": 1, "failed_inter": 3, "wait_ok": 0, "wait_fail": 4,
            });
            let energy = json!({ "total": 5.0, "dynamic": 1.0, "idle": 4.0 });
            let line = json!({
                "model": model, "cycles": cycles, "warp_insts": 10, "simd_efficiency": 0.5, "locks": locks,
                "energy_nj": energy, "error": error,
            });
            format!("{line}\n")
        };
        let all =
            [line("timing", 100, None), line("functional", 7, None), line("timing", 50, Some("a fault"))];
        let (sum, failed) = total(&all.concat()).unwrap();
        assert_eq!(failed, 1);
        assert_eq!((sum.cycles, sum.warp_insts, sum.simd_efficiency), (150, 20, 0.5));
        let locks = sum.locks.unwrap();
        assert_eq!((locks.acquired, locks.failed_inter, locks.wait_fail), (4, 6, 8));
        assert_eq!(sum.energy_nj.unwrap()["total"], 10.0);
        assert!(total("{}").is_err());
    }
}
