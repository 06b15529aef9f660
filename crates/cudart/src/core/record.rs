//! What the program's launches did: a line of JSON for each as it ends, a file with the profile of each kernel, and one
//! table of kernels at the end.

use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::io::Write;
use std::path::PathBuf;

use serde_json::{Value, json};
use warploom::profile::Profile;
use warploom::{Estimate, Locks, Report};

/// Launches of one kernel.
#[derive(Debug, Default)]
struct Totals {
    launches: u64,
    /// Launches that were timed, if only in part; the sums below are of these, except for instructions, and of those
    /// that the fast model has estimated.
    timed: u64,
    cycles: u64,
    seconds: f64,
    warp_insts: u64,
    timed_insts: u64,
    stalls: BTreeMap<&'static str, u64>,
    locks: Locks,
    /// SIMD efficiency times instructions.
    efficient_insts: f64,
    warp_cycles: u64,
    profile: Option<Profile>,
    /// Launches that faulted, hung or were interrupted.
    failed: u64,
}

impl Totals {
    fn add_locks(&mut self, report: &Report) {
        let Some(locks) = &report.locks else { return };
        self.locks.acquired += locks.acquired;
        self.locks.failed_intra += locks.failed_intra;
        self.locks.failed_inter += locks.failed_inter;
        self.locks.wait_ok += locks.wait_ok;
        self.locks.wait_fail += locks.wait_fail;
    }

    fn add_profile(&mut self, report: &Report) {
        match (&mut self.profile, &report.profile) {
            (Some(sum), Some(profile)) => sum.merge([&**profile]),
            (sum, profile) => *sum = sum.take().or_else(|| profile.as_deref().cloned()),
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct Record {
    /// By plain name, in order of the first launch.
    kernels: Vec<(String, Totals)>,
    launches: u64,
    json: Option<File>,
    /// The folder of profiles.
    profiles: Option<PathBuf>,
    /// Kernels and lines whose loads outside of allocations were told.
    told: HashSet<(String, String)>,
    /// What the fast model says of each launch, with its cycles.
    estimates: Vec<(Estimate, u64)>,
}

/// A launch that has ended.
pub(crate) struct Launched<'a> {
    /// The kernel's plain name.
    pub(crate) name: &'a str,
    /// Its number in the program.
    pub(crate) number: u64,
    pub(crate) report: &'a Report,
    /// When it started, in simulated seconds.
    pub(crate) start_s: f64,
    /// What it takes in simulated time; an estimate if it was not timed.
    pub(crate) seconds: f64,
    pub(crate) stream: u64,
    pub(crate) error: Option<&'a str>,
}

impl Record {
    /// Profiles go into a folder, which is made if there is none.
    pub(crate) fn new(json: Option<File>, profiles: Option<PathBuf>) -> Record {
        Record { json, profiles, ..Record::default() }
    }

    /// Whether loads outside of allocations by this line of a kernel are to be told: once in a program. Also whether
    /// they are the first of all.
    pub(crate) fn tells(&mut self, name: &str, place: &str) -> (bool, bool) {
        let first = self.told.is_empty();
        (self.told.insert((name.to_string(), place.to_string())), first)
    }

    /// The number of launches so far, of the program and of a kernel.
    pub(crate) fn counts(&self, name: &str) -> (u64, u64) {
        let of_kernel = self.kernels.iter().find(|(known, _)| known == name);
        (self.launches, of_kernel.map_or(0, |(_, totals)| totals.launches))
    }

    /// Cycles that a functional launch of so many warp instructions would take, at the rate of the timed launches of
    /// the same kernel, or else of all. `None` if none was timed.
    pub(crate) fn estimate_cycles(&self, name: &str, warp_insts: u64) -> Option<f64> {
        let sum = |totals: &mut dyn Iterator<Item = &Totals>| {
            totals.fold((0, 0), |(cycles, insts), t| (cycles + t.cycles, insts + t.timed_insts))
        };
        let same = sum(&mut self.kernels.iter().filter(|(known, _)| known == name).map(|(_, t)| t));
        let all = sum(&mut self.kernels.iter().map(|(_, t)| t));
        let (cycles, insts) = if same.1 > 0 { same } else { all };
        (insts > 0).then(|| warp_insts as f64 * cycles as f64 / insts as f64)
    }

    /// Adds a launch, and writes its line and its kernel's profile: the program may be killed. An error is that of a
    /// file.
    pub(crate) fn add(&mut self, launched: &Launched<'_>) -> std::io::Result<()> {
        self.launches += 1;
        let at = self.kernels.iter().position(|(known, _)| known == launched.name).unwrap_or_else(|| {
            self.kernels.push((launched.name.to_string(), Totals::default()));
            self.kernels.len() - 1
        });
        let totals = &mut self.kernels[at].1;
        let report = launched.report;
        totals.launches += 1;
        totals.warp_insts += report.warp_insts;
        totals.failed += u64::from(launched.error.is_some());
        if report.model.is_timed() {
            totals.timed += report.estimate.as_ref().map_or(1, |estimate| estimate.timed_launches);
            totals.cycles += report.cycles;
            self.estimates.extend(report.estimate.clone().map(|estimate| (estimate, report.cycles)));
            totals.seconds += report.kernel_s.unwrap_or(0.0);
            totals.timed_insts += report.warp_insts;
            for (reason, count) in report.stalls.iter().flatten() {
                *totals.stalls.entry(reason).or_default() += count;
            }
            totals.efficient_insts += report.simd_efficiency * report.warp_insts as f64;
            totals.warp_cycles += report.warp_cycles.unwrap_or(0);
            totals.add_locks(report);
            totals.add_profile(report);
            self.write_profile(at, &report.chip)?;
        }
        let Some(file) = &mut self.json else { return Ok(()) };
        let mut line = serde_json::to_value(report).map_err(std::io::Error::from)?;
        if let Value::Object(fields) = &mut line {
            // An entry for each SM would be most of the line.
            fields.remove("sms");
            fields.insert("launch".into(), json!(launched.number));
            fields.insert("name".into(), json!(launched.name));
            fields.insert("stream".into(), json!(launched.stream));
            fields.insert("start_s".into(), json!(launched.start_s));
            fields.insert("seconds".into(), json!(launched.seconds));
            fields.insert("error".into(), json!(launched.error));
        }
        // One write, so that a program that is killed leaves whole lines.
        file.write_all(format!("{line}\n").as_bytes())
    }

    /// Kernels, those that take longest first.
    fn sorted(&self) -> Vec<&(String, Totals)> {
        let mut kernels: Vec<_> = self.kernels.iter().collect();
        kernels
            .sort_by(|(_, a), (_, b)| b.seconds.total_cmp(&a.seconds).then(b.warp_insts.cmp(&a.warp_insts)));
        kernels
    }

    /// Writes a kernel's file of profiles, as `warploom exec --profile` reads it, if they are asked for.
    fn write_profile(&self, kernel: usize, chip: &str) -> std::io::Result<()> {
        let Some(folder) = &self.profiles else { return Ok(()) };
        let (name, totals) = &self.kernels[kernel];
        let object = json!({
            "chip": chip,
            "name": shorten(name),
            "launches": totals.launches,
            "timed": totals.timed,
            "failed": totals.failed,
            "cycles": totals.cycles,
            "seconds": totals.seconds,
            "warp_cycles": totals.warp_cycles,
            "warp_insts": totals.timed_insts,
            "simd_efficiency": totals.efficient_insts / totals.timed_insts.max(1) as f64,
            "stalls": totals.stalls,
            "locks": totals.locks,
            "profile": totals.profile,
            "over_time": totals.profile.as_ref().map(|profile| &profile.over_time),
        });
        std::fs::create_dir_all(folder)?;
        // It appears at once, so that a program that is killed leaves whole files. Each process has its own.
        let file = folder.join(format!("{}-{kernel}.json", std::process::id()));
        let new = file.with_extension("new");
        std::fs::write(&new, object.to_string())?;
        std::fs::rename(&new, &file)
    }

    /// Writes all profiles once more, with the launches that were not timed.
    pub(crate) fn write_profiles(&self, chip: &str) -> std::io::Result<()> {
        (0..self.kernels.len()).try_for_each(|kernel| self.write_profile(kernel, chip))
    }

    /// The number of launches and the names of their kernels, if there were some and none was timed.
    pub(crate) fn untimed(&self) -> Option<(u64, Vec<&str>)> {
        let none = self.launches > 0 && self.kernels.iter().all(|(_, totals)| totals.timed == 0);
        none.then(|| (self.launches, self.kernels.iter().map(|(name, _)| name.as_str()).collect()))
    }

    /// The table of kernels, those that take longest first; empty without launches.
    pub(crate) fn table(&self, chip: &str, seconds: f64) -> String {
        if self.kernels.is_empty() {
            return String::new();
        }
        let kernels = self.sorted();
        let mut rows = vec![
            [
                "kernel",
                "launches",
                "timed",
                "cycles",
                "time",
                "warp insts",
                "IPC",
                "failed locks",
                "warps' time",
            ]
            .map(str::to_string),
        ];
        for (name, totals) in kernels {
            let timed = totals.timed > 0;
            let of_timed = |text: String| if timed { text } else { "-".to_string() };
            let ipc = totals.timed_insts as f64 / totals.cycles.max(1) as f64;
            let mut name = shorten(name);
            if totals.failed > 0 {
                name.push_str(" (failed)");
            }
            rows.push([
                name,
                grouped(totals.launches),
                grouped(totals.timed),
                of_timed(grouped(totals.cycles)),
                of_timed(duration(totals.seconds)),
                grouped(totals.warp_insts),
                of_timed(format!("{ipc:.2}")),
                of_timed(grouped(totals.locks.failed_intra + totals.locks.failed_inter)),
                of_timed(top_stalls(&totals.stalls)),
            ]);
        }
        let launches = grouped(self.launches);
        let plural = if self.launches == 1 { "" } else { "es" };
        let time = duration(seconds);
        let head = format!("warploom: {launches} launch{plural} on {chip}, {time} of simulated time");
        format!("{head}\n{}{}", aligned(&rows), self.estimate())
    }

    /// How much the fast model has timed, and how far off the cycles may be; empty for other models.
    fn estimate(&self) -> String {
        if self.estimates.is_empty() {
            return String::new();
        }
        let all = Estimate::of_all(self.estimates.iter().map(|(estimate, cycles)| (estimate, *cycles)));
        let instructions: u64 = self.kernels.iter().map(|(_, totals)| totals.warp_insts).sum();
        format!(
            "  fast model: {} of {} launches timed, {:.1}% of the warp instructions; samples differ by {:.1}% of the \
             cycles; {}\n",
            grouped(all.timed_launches),
            grouped(all.launches),
            100.0 * all.timed_warp_insts as f64 / instructions.max(1) as f64,
            100.0 * all.error,
            Estimate::MEASURED
        )
    }
}

/// The three most frequent reasons: `memory 61%, issued 20%, …`.
fn top_stalls(stalls: &BTreeMap<&'static str, u64>) -> String {
    let all = stalls.values().sum::<u64>().max(1);
    let mut sorted: Vec<_> = stalls.iter().filter(|(_, count)| **count > 0).collect();
    sorted.sort_by(|a, b| b.1.cmp(a.1));
    let share = |(reason, count): &(&&str, &u64)| {
        format!("{} {:.0}%", reason.replace('_', " "), 100.0 * **count as f64 / all as f64)
    };
    sorted.iter().take(3).map(share).collect::<Vec<_>>().join(", ")
}

/// Columns as wide as their widest cell; numbers to the right, first and last column to the left.
fn aligned(rows: &[[String; 9]]) -> String {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; 9] = std::array::from_fn(width);
    let mut text = String::new();
    for row in rows {
        let mut line = String::from("  ");
        for (column, cell) in row.iter().enumerate() {
            match column {
                0 => line.push_str(&format!("{cell:<w$}", w = widths[0])),
                8 => line.push_str(&format!("  {cell}")),
                _ => line.push_str(&format!("  {cell:>w$}", w = widths[column])),
            }
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// A template's name can be longer than a screen: its arguments and parameters go first, then its namespaces.
fn shorten(name: &str) -> String {
    const MOST: usize = 60;
    if name.chars().count() <= MOST {
        return name.to_string();
    }
    let without = match name.find(['<', '(']) {
        Some(at) => format!("{}{}", &name[..at], if name[at..].starts_with('<') { "<…>" } else { "(…)" }),
        None => name.to_string(),
    };
    match without.chars().count().checked_sub(MOST) {
        None | Some(0) => without,
        Some(over) => format!("…{}", without.chars().skip(over + 1).collect::<String>()),
    }
}

fn grouped(number: u64) -> String {
    warploom::grouped(number)
}

fn duration(seconds: f64) -> String {
    match seconds {
        s if s < 1e-3 => format!("{:.2} µs", s * 1e6),
        s if s < 1.0 => format!("{:.3} ms", s * 1e3),
        s => format!("{s:.3} s"),
    }
}

#[cfg(test)]
mod tests {
    use warploom::Model;

    use super::*;

    fn report(model: Model, cycles: u64) -> Report {
        let stalls = BTreeMap::from([("issued", 25), ("memory", 75)]);
        let timed = model.is_timed();
        Report {
            model,
            cycles,
            warp_insts: 2000,
            kernel_s: timed.then_some(cycles as f64 * 1e-9),
            stalls: timed.then_some(stalls),
            ..Report::default()
        }
    }

    fn add(record: &mut Record, name: &str, report: &Report) {
        let launched =
            Launched { name, number: 0, report, start_s: 0.0, seconds: 0.0, stream: 0, error: None };
        record.add(&launched).unwrap();
    }

    #[test]
    fn launches_that_were_not_timed() {
        let mut record = Record::default();
        assert_eq!(record.untimed(), None);
        add(&mut record, "a", &report(Model::Functional, 2000));
        add(&mut record, "b", &report(Model::Functional, 2000));
        assert_eq!(record.untimed(), Some((2, vec!["a", "b"])));
        add(&mut record, "a", &report(Model::Timing, 1000));
        assert_eq!(record.untimed(), None);
    }

    #[test]
    fn launches_in_the_fast_model() {
        let mut record = Record::default();
        let estimate = |timed: u64, error| Estimate {
            launches: 1,
            timed_launches: timed.min(1),
            timed_warp_insts: timed,
            error,
            ..Estimate::default()
        };
        for (timed, error) in [(2000, 0.0), (0, 0.04)] {
            let report = report(Model::Fast, 1000);
            add(&mut record, "a", &Report { estimate: Some(estimate(timed, error)), ..report });
        }
        let table = record.table("gtx480", 0.0);
        assert!(table.contains("  a              2      1   2,000"), "{table}");
        let said =
            "  fast model: 1 of 2 launches timed, 50.0% of the warp instructions; samples differ by 2.0% of";
        assert!(table.contains(said), "{table}");
    }

    #[test]
    fn long_names() {
        assert_eq!(shorten("add(int*)"), "add(int*)");
        let long = format!("lib::sort<{}>(int*)", "int, ".repeat(20));
        assert_eq!(shorten(&long), "lib::sort<…>");
        let path = format!("{}sort(int)", "very::long::".repeat(10));
        let short = shorten(&path);
        assert!(
            short.starts_with('…') && short.ends_with("sort(…)") && short.chars().count() == 60,
            "{short}"
        );
    }

    #[test]
    fn one_table_of_kernels() {
        let mut record = Record::default();
        assert_eq!(record.table("gtx480", 0.0), "");
        add(&mut record, "small", &report(Model::Timing, 1000));
        add(&mut record, "big", &report(Model::Timing, 4000));
        add(&mut record, "big", &report(Model::Functional, 2000));
        assert_eq!(record.counts("big"), (3, 2));
        assert_eq!(record.estimate_cycles("big", 100), Some(200.0));
        assert_eq!(record.estimate_cycles("new", 4000), Some(5000.0));
        let table = "\
warploom: 3 launches on gtx480, 6.00 µs of simulated time
  kernel  launches  timed  cycles     time  warp insts   IPC  failed locks  warps' time
  big            2      1   4,000  4.00 µs       4,000  0.50             0  memory 75%, issued 25%
  small          1      1   1,000  1.00 µs       2,000  2.00             0  memory 75%, issued 25%
";
        assert_eq!(record.table("gtx480", 6e-6), table);
    }
}
