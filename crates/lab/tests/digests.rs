//! Reports stay the same to the last byte: about forty runs over chips and policies, against the digests in
//! `digests.txt`, one line per run:
//!
//!     CHIP[,KEY=VALUE…] POLICY[+OPTION…] WORKLOAD [PARAM=VALUE…] : CYCLES DIGEST
//!
//! Options are `bows`, `profile`, `samples`, `trace`, `functional` and `limit`, which stops launches early.
//!
//! A change that is to make the simulator faster must leave them alone. A change of the model renews them:
//!
//!     RENEW_DIGESTS=1 cargo test -p warploom-lab --test digests

use std::fmt::Write;

use rayon::prelude::*;
use serde_json::{Value, json};

use warploom::{Bows, Chip, Device, Report, SimModel, SimOptions, Timing, TraceOptions};
use warploom_lab::work::Workload;

#[path = "../src/runs/digest.rs"]
mod digest;

use digest::Digest;

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/digests.txt");

/// A launch with option `limit` is stopped after so many cycles.
const LIMIT: u64 = 1000;

/// Everything in a report but how long the host took.
fn without_host_time(report: &Report) -> Value {
    json!(Report { wall_s: 0.0, warp_insts_per_s: 0.0, ..report.clone() })
}

/// What comes after the colon: the cycles of a run, and the digest of all that can be known of it.
fn result_of(run: &str) -> String {
    let words: Vec<_> = run.split_whitespace().collect();
    let [chip, policy, workload, params @ ..] = &words[..] else { panic!("`{run}`: a word is missing") };
    let mut sets = chip.split(',');
    let chip = sets.next().unwrap_or_default();
    let sets: Vec<_> = sets.map(str::to_string).collect();
    let chip = Chip::load(chip, &sets).unwrap_or_else(|error| panic!("`{run}`: {error}"));
    let mut parts = policy.split('+');
    let policy = parts.next().map(str::to_string);
    let mut options = SimOptions { timing: Timing { policy, ..Timing::default() }, ..SimOptions::default() };
    let mut limit = None;
    for option in parts {
        match option {
            "bows" => options.timing.bows = Bows::on(),
            "profile" => options.timing.profile = true,
            "samples" => options.timing.sample_cycles = Some(200),
            "trace" => options.timing.trace = Some(TraceOptions::default()),
            "functional" => options.model = SimModel::Functional,
            "limit" => limit = Some(LIMIT),
            other => panic!("`{run}`: no option `{other}`"),
        }
    }
    // Two threads, also where there are fewer cores: results do not depend on it.
    options.timing.threads = 2;
    let mut gpu = Device::sim_with(chip, options);
    let workload = Workload::find(workload).unwrap_or_else(|error| panic!("`{run}`: {error}"));
    let values = workload.values(params).unwrap_or_else(|error| panic!("`{run}`: {error}"));
    let prepare = |launch: warploom::Launch| match limit {
        Some(cycles) => launch.max_cycles(cycles),
        None => launch,
    };
    let outcome = workload.run(&mut gpu, &values, &prepare);
    let trace = gpu.take_trace().map(|trace| trace.bytes).unwrap_or_default();
    let digest = Digest::new().add(trace).add(format!("{:?}", gpu.take_samples()));
    match outcome {
        Ok(outcome) => {
            assert_eq!(outcome.check.as_ref().err(), None, "`{run}`");
            let reports: Vec<_> = outcome.launches.iter().map(without_host_time).collect();
            let digest = digest.add(json!(reports).to_string()).add(format!("{:?}", outcome.check));
            format!("{} {}", outcome.total.cycles, digest.hex())
        }
        Err(error) => format!("stopped {}", digest.add(error.to_string()).hex()),
    }
}

#[test]
fn reports_are_the_same_to_the_last_byte() {
    let text = std::fs::read_to_string(FILE).unwrap();
    let lines: Vec<_> = text.lines().filter(|line| !line.is_empty()).collect();
    assert!(lines.len() >= 40, "{} runs", lines.len());
    let runs: Vec<_> =
        lines.iter().map(|line| line.split_once(':').map_or(*line, |(run, _)| run).trim()).collect();
    let results: Vec<_> = runs.par_iter().map(|run| result_of(run)).collect();
    let now: Vec<_> = runs.iter().zip(&results).map(|(run, result)| format!("{run} : {result}")).collect();
    if std::env::var_os("RENEW_DIGESTS").is_some() {
        return std::fs::write(FILE, now.join("\n") + "\n").unwrap();
    }
    let mut changed = String::new();
    for (was, is) in lines.iter().zip(&now).filter(|(was, is)| *was != is) {
        writeln!(changed, "  was {was}\n  is  {is}").unwrap();
    }
    assert!(changed.is_empty(), "reports changed (see the head of {}):\n{changed}", file!());
}
