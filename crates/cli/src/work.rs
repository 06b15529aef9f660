//! `warploom work`: runs a built-in workload on its own input and checks the result.

use std::fmt::Write;

use serde_json::{Value, json};
use warploom::Report;
use warploom_lab::align::Alignment;
use warploom_lab::repro::figure;
use warploom_lab::work::{Outcome, ParamError, Values, WORKLOADS, Workload};

use crate::cli::{DeviceName, WorkOptions};
use crate::failure::{Exit, Failure};
use crate::fasta;
use crate::machine::{self, Control};
use crate::output::print_json;
use crate::profile;
use crate::report::{self, Page, ReportedRun};
use crate::run::{
    aligned, end_line, how, judge_checks, launch_failure, occupancy_text, shown_name, simd_text, timing_lines,
};
use crate::term::{self, counted, grouped, seconds};

/// Runs the workload, prints what it did, and checks the result.
pub(crate) fn work(options: &WorkOptions) -> Result<Exit, Failure> {
    // Without a name the command line must ask for the list.
    let Some(name) = &options.name else { return list(options.json) };
    let workload = Workload::find(name)?;
    let values = workload.values(&options.params)?;
    let pair = fasta::read(workload, &options.fasta)?;
    let mut machine = options.machine.clone();
    // A chip that is named stands in for the real GPU.
    if workload.wants_gpu(&values) && machine.chip.chip.is_none() && machine.device == DeviceName::Sim {
        machine.device = DeviceName::Cuda(0);
    }
    machine.chip.chip.get_or_insert_with(|| workload.chip(&values).to_string());
    let mut gpu = machine::open(&machine).map_err(|failure| match workload.wants_gpu(&values) {
        true => failure.help("--chip h200 simulates a GPU"),
        false => failure,
    })?;

    let control = Control::new(&machine);
    let ran = match &pair {
        None => {
            workload.run(&mut gpu, &values, &|launch| control.apply(launch)).map(|outcome| (outcome, None))
        }
        Some(pair) => pair
            .align(&mut gpu, &values, &|launch| control.apply(launch))
            .map(|(outcome, alignment)| (outcome, Some(alignment))),
    };
    drop(control);
    let trace = machine::write_observations(&mut gpu, &machine)?;
    if let Some(file) = &machine.report {
        let title = format!("{} on {}: {values}", workload.name, gpu.name());
        let run = match &ran {
            Ok((outcome, _)) => {
                let summary = summary_lines(workload, &values, outcome);
                Some(ReportedRun::new(&outcome.total, trace, None, summary))
            }
            Err(error) => ReportedRun::of_failed(error, trace, None, timing_lines),
        };
        run.map_or(Ok(()), |run| report::write(file, &Page::of(title, run)))?;
    }
    let (outcome, alignment) = ran.map_err(|error| launch_failure(error, &machine, None, options.json))?;

    let wrong = outcome.check.as_ref().err().map(|reason| {
        let message = format!("the result of workload `{}` is wrong: {reason}", workload.name);
        Failure::new(Exit::CheckFailed, message)
    });
    profile::write_graph(&outcome.total, &machine)?;
    if options.json {
        let mut object = object(workload, &values, &outcome)?;
        if let Some(alignment) = &alignment {
            object["alignment"] = json!(alignment);
        }
        object["error"] = wrong.as_ref().map_or(Value::Null, Failure::json);
        profile::add_sources(&mut object, None);
        print_json(object)?;
    } else {
        let mut text = outcome.total.output.clone();
        end_line(&mut text);
        if !text.is_empty() {
            text.push('\n');
        }
        match &alignment {
            Some(alignment) => text.push_str(&aligned_text(alignment, &outcome)),
            None => text.push_str(&summary(workload, &values, &outcome)),
        }
        text.push_str(&profile::text(&outcome.total, &machine, None));
        term::print(&text)?;
    }
    let exit = judge_checks(&outcome.total);
    Ok(match wrong {
        Some(wrong) => {
            term::eprint(&wrong.text());
            wrong.exit()
        }
        None => exit,
    })
}

/// The JSON object.
fn object(workload: &Workload, values: &Values, outcome: &Outcome) -> Result<Value, Failure> {
    let mut object = serde_json::to_value(&outcome.total).map_err(std::io::Error::from)?;
    object["workload"] = json!(workload.name);
    object["params"] = json!(values);
    object["check"] = json!(outcome.check.is_ok());
    object["check_message"] = json!(message(outcome));
    object["figures"] = json!(outcome.figures);
    object["launches"] = json!(outcome.launches.len());
    object["longest_launch_cycles"] = json!(outcome.longest().map(|r| r.cycles));
    object["per_launch"] = per_launch(&outcome.launches);
    Ok(object)
}

/// A few numbers of each launch.
pub(crate) fn per_launch(launches: &[Report]) -> Value {
    let each = |r: &Report| {
        json!({
            "kernel": r.kernel, "grid": r.grid, "block": r.block, "cycles": r.cycles, "warp_insts": r.warp_insts,
            "thread_insts": r.thread_insts, "gpu_s": r.gpu_s,
        })
    };
    launches.iter().map(each).collect()
}

fn message(outcome: &Outcome) -> &str {
    match &outcome.check {
        Ok(message) | Err(message) => message,
    }
}

/// The alignment, with a comment on how it was made.
fn aligned_text(alignment: &Alignment, outcome: &Outcome) -> String {
    let total = &outcome.total;
    let time = match total.gpu_s {
        Some(gpu_s) => seconds(gpu_s),
        None => counted(total.cycles, "cycle"),
    };
    let launches = outcome.launches.len();
    format!(
        "# Program: warploom, {} on {}, {launches} launches, {time}\n{alignment}",
        total.kernel, total.chip
    )
}

/// The summary for people.
fn summary(workload: &Workload, values: &Values, outcome: &Outcome) -> String {
    aligned(&summary_lines(workload, values, outcome))
}

fn summary_lines(workload: &Workload, values: &Values, outcome: &Outcome) -> Vec<(&'static str, String)> {
    let total = &outcome.total;
    let verdict = if outcome.check.is_ok() { "ok" } else { "WRONG" };
    let check = ("check", format!("{verdict}: {}", message(outcome)));
    if outcome.launches.is_empty() {
        // Only the host's threads ran.
        return vec![("workload", format!("{} on this computer: {values}", workload.name)), check];
    }
    let mut lines = vec![
        ("workload", format!("{} on {}, {}: {values}", workload.name, total.chip, how(total.model))),
        check,
        ("launches", format!("{} of {}", grouped(outcome.launches.len() as u64), shown_name(&total.kernel))),
    ];
    if !outcome.figures.is_empty() {
        let each = outcome.figures.iter().map(|(name, value)| format!("{name} {}", figure(*value)));
        lines.push(("measured", each.collect::<Vec<_>>().join(", ")));
    }
    lines.extend(totals(total));
    lines
}

/// The lines of several launches together.
pub(crate) fn totals(total: &Report) -> Vec<(&'static str, String)> {
    if total.gpu_s.is_some() {
        return vec![("GPU time", crate::run::gpu_time(total))];
    }
    let threads = counted(total.thread_insts, "thread instruction");
    let mut lines = vec![
        ("executed", format!("{}, {threads}", counted(total.warp_insts, "warp instruction"))),
        ("SIMD", simd_text(total)),
    ];
    if let (Some(occupancy), achieved @ Some(_)) = (total.occupancy, total.achieved_occupancy) {
        lines.push(("occupancy", occupancy_text(&occupancy, achieved)));
    }
    lines.extend(timing_lines(total));
    let rate = total.warp_insts_per_s / 1e6;
    lines.push(("wall time", format!("{}, {rate:.1} M warp instructions/s", seconds(total.wall_s))));
    lines
}

fn list(json: bool) -> Result<Exit, Failure> {
    if json {
        print_json(json!({ "workloads": WORKLOADS }))?;
        return Ok(Exit::Good);
    }
    let mut text = String::new();
    for workload in WORKLOADS {
        let _ = writeln!(text, "{:<10} {}", workload.name, workload.about);
        for param in workload.params {
            let default = format!("{}={}", param.name, param.text(param.default));
            let _ = write!(text, "    {default:<15}  {}", param.about);
            let _ = match param.words {
                [] => writeln!(text),
                words => writeln!(text, ": {}", words.join(", ")),
            };
        }
        text.push('\n');
    }
    text.push_str("Values are the defaults. For example: warploom work hashtable keys=5_000 buckets=64\n");
    term::print(&text)?;
    Ok(Exit::Good)
}

impl From<ParamError> for Failure {
    fn from(error: ParamError) -> Failure {
        Failure::input(error.to_string())
            .help("`warploom work --list` shows the workloads and their parameters")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_result_is_reported() {
        let workload = Workload::find("vecadd").unwrap();
        let values = workload.values(&["size=32"]).unwrap();
        let mut gpu = warploom::Device::sim("gtx480").unwrap();
        let mut outcome = workload.run(&mut gpu, &values, &|launch| launch).unwrap();
        outcome.check = Err("1 of 32 sums differ".to_string());
        let text = summary(workload, &values, &outcome);
        assert!(text.contains("check      WRONG: 1 of 32 sums differ\n"), "{text}");
        let object = object(workload, &values, &outcome).unwrap();
        assert_eq!(
            (&object["check"], &object["check_message"]),
            (&json!(false), &json!("1 of 32 sums differ"))
        );
    }
}
