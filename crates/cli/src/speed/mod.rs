//! `warploom speed`: how much this computer simulates per second, on a standard set of kernels.

mod cases;
mod counter;
mod fast;
mod peers;
mod table;

use std::thread::available_parallelism;
use std::time::{Duration, Instant};

use serde::Serialize;
use serde_json::json;
use warploom::{Chip, Device, Error, Launch, Report, SimOptions, Timing, args};
use warploom_kernels::text;

use crate::cli::{ModelName, SpeedOptions};
use crate::failure::{Exit, Failure};
use crate::output::print_json;
use crate::place;
use crate::term;

use cases::Case;
use counter::Counter;

/// The chips that are measured if none is named.
const CHIPS: [&str; 4] = ["gtx480", "gtx1080ti", "h200", "apu"];

/// What one kernel of the set took.
#[derive(Clone, Debug, Default, Serialize)]
struct Measured {
    kernel: &'static str,
    about: &'static str,
    cycles: u64,
    warp_insts: u64,
    thread_insts: u64,
    /// Of the fastest run with the first number of threads, as are the rates.
    wall_s: f64,
    warp_insts_per_s: f64,
    cycles_per_s: f64,
    /// Instructions of the host on one thread, with loading the kernel and checking the result.
    host_insts: Option<u64>,
    host_insts_per_warp_inst: Option<f64>,
    threads: Vec<WithThreads>,
}

/// The time with a number of host threads.
#[derive(Clone, Debug, Serialize)]
struct WithThreads {
    threads: usize,
    wall_s: f64,
    /// How many times as fast as the first number of threads.
    speedup: f64,
}

/// What a chip took.
#[derive(Debug, Serialize)]
struct OfChip {
    chip: String,
    kernels: Vec<Measured>,
    total: Measured,
    /// What a launch costs the host whatever it does.
    launch_s: f64,
    /// The most that a process has had which simulates all SMs of the chip, where the system says it.
    memory_bytes: Option<u64>,
}

/// Runs the set on each chip and prints what each kernel took.
pub(crate) fn speed(options: &SpeedOptions) -> Result<Exit, Failure> {
    if options.model == ModelName::Fast {
        return fast::speed(options);
    }
    let timed = options.model == ModelName::Timing;
    if !timed && !options.threads.is_empty() {
        return Err(Failure::input("--threads needs the timed model: the functional one uses one"));
    }
    let cases = cases::named(&options.kernels)?;
    let names = match &options.chips[..] {
        [] => CHIPS.to_vec(),
        given => given.iter().map(String::as_str).collect(),
    };
    let chips = names
        .into_iter()
        .map(|name| Chip::load(name, &options.set).map(|chip| (name, chip)))
        .collect::<Result<Vec<_>, _>>()
        .map_err(Error::from)?;
    let cores = available_parallelism().map_or(1, usize::from);
    let threads = match &options.threads[..] {
        [] => thread_counts(if timed { cores } else { 1 }),
        given => given.iter().map(|&threads| threads.into()).collect(),
    };
    let mut bench = Bench { options, threads, counter: Counter::new() };
    let mut all = Vec::new();
    for (name, chip) in &chips {
        let cases: Vec<_> = cases.iter().copied().filter(|case| case.runs_on(chip)).collect();
        if !cases.is_empty() {
            all.push(bench.chip(name, chip, &cases)?);
        }
    }
    if all.is_empty() {
        let message = "none of these kernels runs on these chips";
        return Err(Failure::input(message).help("graphs with channels need a chip with an aggregator: apu"));
    }
    let no_counter = bench.counter.err();
    if options.json {
        print_json(json!({
            "model": options.model.name(), "repeat": options.repeat,
            "no_host_insts": no_counter, "chips": all, "peers": peers::PEERS,
        }))?;
        return Ok(Exit::Good);
    }
    term::print(&table::legend())?;
    if let Some(reason) = no_counter {
        term::print(&format!("\nHost instructions are not counted: {reason}.\n"))?;
    }
    term::print(&peers::text())?;
    Ok(Exit::Good)
}

/// The numbers of host threads that are measured: one, twice as many each time, and all cores.
fn thread_counts(cores: usize) -> Vec<usize> {
    let mut counts: Vec<_> = std::iter::successors(Some(1), |threads| Some(2 * threads))
        .take_while(|&threads| threads < cores)
        .collect();
    counts.push(cores);
    counts
}

/// Launches of one warp, of which the fastest counts.
const LAUNCHES: u32 = 100;

/// What all measurements share.
struct Bench<'a> {
    options: &'a SpeedOptions,
    threads: Vec<usize>,
    /// Or why there is none.
    counter: Result<Counter, String>,
}

impl Bench<'_> {
    /// Measures the set on a chip, and prints each row as soon as it is known.
    fn chip(&mut self, name: &str, chip: &Chip, cases: &[&Case]) -> Result<OfChip, Failure> {
        let timed = self.options.model == ModelName::Timing;
        self.say(&table::heading(&chip.name, timed, &self.threads))?;
        let mut kernels = Vec::new();
        for case in cases {
            let measured = self.kernel(chip, case)?;
            self.say(&table::row(&measured))?;
            kernels.push(measured);
        }
        let total = sum(&kernels);
        self.say(&table::row(&total))?;
        let launch_s = self.launch(chip)?;
        let memory_bytes = if timed { self.memory(name, chip)? } else { None };
        self.say(&table::launch_and_memory(launch_s, memory_bytes))?;
        Ok(OfChip { chip: chip.name.clone(), kernels, total, launch_s, memory_bytes })
    }

    /// With `--json`, the object at the end is all that is printed.
    fn say(&self, text: &str) -> std::io::Result<()> {
        if self.options.json { Ok(()) } else { term::print(text) }
    }

    fn sim(&self, threads: usize) -> SimOptions {
        let timing = Timing { threads, ..Timing::default() };
        SimOptions { model: self.options.model.into(), timing, ..SimOptions::default() }
    }

    fn kernel(&mut self, chip: &Chip, case: &Case) -> Result<Measured, Failure> {
        let mut best: Option<Report> = None;
        let mut host_insts: Option<u64> = None;
        let mut times = Vec::new();
        for &threads in &self.threads {
            let mut wall_s = f64::INFINITY;
            for _ in 0..self.options.repeat {
                // A fresh device each time: the content of the L2 would change the second run.
                let mut gpu = Device::sim_with(chip.clone(), self.sim(threads));
                let (report, counted) = match &mut self.counter {
                    Ok(counter) if threads == 1 => counter.count(|| (case.run)(&mut gpu)),
                    _ => ((case.run)(&mut gpu), None),
                };
                let report = report?;
                wall_s = wall_s.min(report.wall_s);
                host_insts = host_insts.into_iter().chain(counted).min();
                best.get_or_insert(report);
            }
            times.push((threads, wall_s));
        }
        let best = best.ok_or_else(|| Failure::input("--repeat must be at least 1"))?;
        let measured = Measured {
            kernel: case.name,
            about: case.about,
            cycles: best.cycles,
            warp_insts: best.warp_insts,
            thread_insts: best.thread_insts,
            host_insts,
            ..Measured::default()
        };
        Ok(measured.with_times(times))
    }

    /// What a launch costs the host whatever it does, in seconds: a kernel of a few instructions, in one warp.
    fn launch(&self, chip: &Chip) -> Result<f64, Failure> {
        let mut gpu = Device::sim_with(chip.clone(), self.sim(1));
        let kernel = cases::kernel(&mut gpu, text!("vecadd.ptx"), "vecadd")?;
        let n = 32;
        let buffers = [gpu.zeros::<f32>(n)?, gpu.zeros::<f32>(n)?, gpu.zeros::<f32>(n)?];
        let [a, b, c] = &buffers;
        let mut least = Duration::MAX;
        for _ in 0..LAUNCHES {
            let start = Instant::now();
            gpu.launch(&kernel, Launch::grid(1).block(n), args![a, b, c, n as u32])?;
            least = least.min(start.elapsed());
        }
        Ok(least.as_secs_f64())
    }

    /// In a process of its own: this one has the memory of all that it has simulated.
    fn memory(&self, name: &str, chip: &Chip) -> Result<Option<u64>, Failure> {
        let set = self.options.set.iter().filter_map(|set| set.split_once('='));
        let run = cases::for_memory(chip).chip(name);
        place::peak_bytes(&set.fold(run, |run, (key, value)| run.set(key, value)))
    }
}

fn sum(set: &[Measured]) -> Measured {
    let add = |of: fn(&Measured) -> u64| set.iter().map(of).sum();
    let all = Measured {
        kernel: "total",
        cycles: add(|m| m.cycles),
        warp_insts: add(|m| m.warp_insts),
        thread_insts: add(|m| m.thread_insts),
        host_insts: set.iter().map(|m| m.host_insts).sum(),
        ..Measured::default()
    };
    let threads = set.first().map_or(0, |first| first.threads.len());
    let times = (0..threads).map(|at| {
        let wall_s = set.iter().map(|m| m.threads[at].wall_s).sum();
        (set[0].threads[at].threads, wall_s)
    });
    all.with_times(times.collect())
}

impl Measured {
    /// The first time is what the others are held against.
    fn with_times(mut self, times: Vec<(usize, f64)>) -> Measured {
        let ratio = |a: f64, b: f64| if b > 0.0 { a / b } else { 0.0 };
        let first = times.first().map_or(0.0, |&(_, wall_s)| wall_s);
        self.wall_s = first;
        self.warp_insts_per_s = ratio(self.warp_insts as f64, first);
        self.cycles_per_s = ratio(self.cycles as f64, first);
        self.host_insts_per_warp_inst =
            self.host_insts.map(|host_insts| ratio(host_insts as f64, self.warp_insts as f64));
        let with_threads = |(threads, wall_s)| WithThreads { threads, wall_s, speedup: ratio(first, wall_s) };
        self.threads = times.into_iter().map(with_threads).collect();
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_double_up_to_all_cores() {
        assert_eq!(thread_counts(1), [1]);
        assert_eq!(thread_counts(2), [1, 2]);
        assert_eq!(thread_counts(6), [1, 2, 4, 6]);
        assert_eq!(thread_counts(16), [1, 2, 4, 8, 16]);
    }

    fn measured(warp_insts: u64, host_insts: Option<u64>, times: [f64; 2]) -> Measured {
        let measured = Measured { kernel: "k", about: "a", warp_insts, host_insts, ..Measured::default() };
        measured.with_times(vec![(1, times[0]), (4, times[1])])
    }

    #[test]
    fn a_total_adds_up_counts_and_times() {
        let set = [measured(1_000_000, Some(3_000_000_000), [1.0, 0.25]), measured(0, Some(0), [1.0, 0.75])];
        let total = sum(&set);
        assert_eq!((total.wall_s, total.warp_insts_per_s), (2.0, 500_000.0));
        assert_eq!((total.host_insts, total.host_insts_per_warp_inst), (Some(3_000_000_000), Some(3000.0)));
        let speedups: Vec<_> = total.threads.iter().map(|with| (with.threads, with.speedup)).collect();
        assert_eq!(speedups, [(1, 1.0), (4, 2.0)]);
        let uncounted = sum(&[measured(1, Some(2), [1.0, 1.0]), measured(1, None, [1.0, 1.0])]);
        assert_eq!(uncounted.host_insts, None, "a sum without a part of it is no sum");
    }

    #[test]
    fn rows_stand_below_their_heads() {
        let row = table::row(&measured(1_000_000, Some(3_456_000_000), [0.5, 0.25]));
        let table = format!("{}{row}", table::heading("gtx480", true, &[1, 4]));
        let lines: Vec<_> = table.lines().skip(1).collect();
        assert_eq!(lines[0], "gtx480, timed model, one thread");
        let words = |line: &str| line.split_whitespace().map(str::to_string).collect::<Vec<_>>().join(" ");
        assert_eq!(
            words(lines[1]),
            "kernel bound by warp insts cycles time M insts/s k cycles/s host insts on 4"
        );
        assert_eq!(words(lines[2]), "k a 1,000,000 0 500.0 ms 2.00 0 3,456 2.00x");
        assert_eq!(lines[1].len(), lines[2].len());
        let row = table::row(&measured(1_000_000, None, [0.5, 0.25]));
        assert!(words(&row).ends_with("2.00 0 - 2.00x"), "{row}");
    }
}
