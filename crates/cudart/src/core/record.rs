//! What the program's launches did: a line of JSON for each as it ends, and one table of kernels at the end.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;

use serde_json::{Value, json};
use warploom::{Model, Report};

/// Launches of one kernel.
#[derive(Debug, Default)]
struct Totals {
    launches: u64,
    /// Launches in the timed model; the sums below are of these, except for instructions.
    timed: u64,
    cycles: u64,
    seconds: f64,
    warp_insts: u64,
    timed_insts: u64,
    stalls: BTreeMap<&'static str, u64>,
    failed_locks: u64,
    /// Launches that faulted, hung or were interrupted.
    failed: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Record {
    /// By plain name, in order of the first launch.
    kernels: Vec<(String, Totals)>,
    launches: u64,
    json: Option<File>,
}

/// A launch that has ended.
pub(crate) struct Launched<'a> {
    /// The kernel's plain name.
    pub(crate) name: &'a str,
    pub(crate) report: &'a Report,
    /// When it started, in simulated seconds.
    pub(crate) start_s: f64,
    /// What it takes in simulated time; an estimate if it was not timed.
    pub(crate) seconds: f64,
    pub(crate) stream: u64,
    pub(crate) error: Option<&'a str>,
}

impl Record {
    pub(crate) fn new(json: Option<File>) -> Record {
        Record { json, ..Record::default() }
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

    /// Adds a launch, and writes its line. An error is that of the JSON file.
    pub(crate) fn add(&mut self, launched: &Launched<'_>) -> std::io::Result<()> {
        let number = self.launches;
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
        if report.model == Model::Timing {
            totals.timed += 1;
            totals.cycles += report.cycles;
            totals.seconds += report.kernel_s.unwrap_or(0.0);
            totals.timed_insts += report.warp_insts;
            for (reason, count) in report.stalls.iter().flatten() {
                *totals.stalls.entry(reason).or_default() += count;
            }
            totals.failed_locks += report.locks.as_ref().map_or(0, |l| l.failed_intra + l.failed_inter);
        }
        let Some(file) = &mut self.json else { return Ok(()) };
        let mut line = serde_json::to_value(report).map_err(std::io::Error::from)?;
        if let Value::Object(fields) = &mut line {
            // An entry for each SM would be most of the line.
            fields.remove("sms");
            fields.insert("launch".into(), json!(number));
            fields.insert("name".into(), json!(launched.name));
            fields.insert("stream".into(), json!(launched.stream));
            fields.insert("start_s".into(), json!(launched.start_s));
            fields.insert("seconds".into(), json!(launched.seconds));
            fields.insert("error".into(), json!(launched.error));
        }
        // One write, so that a program that is killed leaves whole lines.
        file.write_all(format!("{line}\n").as_bytes())
    }

    /// The table of kernels, those that take longest first; empty without launches.
    pub(crate) fn table(&self, chip: &str, seconds: f64) -> String {
        if self.kernels.is_empty() {
            return String::new();
        }
        let mut kernels: Vec<_> = self.kernels.iter().collect();
        kernels
            .sort_by(|(_, a), (_, b)| b.seconds.total_cmp(&a.seconds).then(b.warp_insts.cmp(&a.warp_insts)));
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
                of_timed(grouped(totals.failed_locks)),
                of_timed(top_stalls(&totals.stalls)),
            ]);
        }
        let launches = grouped(self.launches);
        let plural = if self.launches == 1 { "" } else { "es" };
        let time = duration(seconds);
        format!("warploom: {launches} launch{plural} on {chip}, {time} of simulated time\n{}", aligned(&rows))
    }
}

/// The three most frequent reasons: `memory 61%, issued 20%, …`.
fn top_stalls(stalls: &BTreeMap<&'static str, u64>) -> String {
    let all = stalls.values().sum::<u64>().max(1);
    let mut sorted: Vec<_> = stalls.iter().filter(|(_, count)| **count > 0).collect();
    sorted.sort_by(|a, b| b.1.cmp(a.1));
    let share =
        |(reason, count): &(&&str, &u64)| format!("{reason} {:.0}%", 100.0 * **count as f64 / all as f64);
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

/// A template's name can be longer than a screen.
fn shorten(name: &str) -> String {
    const MOST: usize = 60;
    match name.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", &name[..end]),
        None => name.to_string(),
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
    use super::*;

    fn report(model: Model, cycles: u64) -> Report {
        let stalls = BTreeMap::from([("issued", 25), ("memory", 75)]);
        let timed = model == Model::Timing;
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
        let launched = Launched { name, report, start_s: 0.0, seconds: 0.0, stream: 0, error: None };
        record.add(&launched).unwrap();
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
