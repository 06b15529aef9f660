//! `warploom anchors`: measures what single operations cost.

use serde_json::json;
use warploom::SimOptions;
use warploom_lab::anchors::{AnchorReport, measure_some};
use warploom_lab::conform::Origin;

use crate::cli::AnchorsOptions;
use crate::failure::{Exit, Failure};
use crate::machine;
use crate::output::print_json;
use crate::progress::Steps;
use crate::term::{self, grouped};

/// Measures the anchors and prints a table.
pub(crate) fn anchors(options: &AnchorsOptions) -> Result<Exit, Failure> {
    let mut device = machine::open_with(options.device, &options.chip, SimOptions::default())?;
    let origin = Origin::of(&device).ok();
    let steps = Steps::new();
    let wanted = |name: &str| name.contains(&options.only);
    let report = measure_some(&mut device, options.repeat as usize, &wanted, &mut |p| steps.show(&p))?;
    drop(steps);
    if report.anchors.is_empty() {
        return Err(Failure::input(format!("no anchor's name contains `{}`", options.only))
            .help("`warploom anchors` has all of them"));
    }
    match options.json {
        true => print_json(json!({ "origin": origin, "report": report }))?,
        false => term::print(&table(&report))?,
    }
    Ok(Exit::Good)
}

fn table(report: &AnchorReport) -> String {
    let kind = if report.real { "a real GPU" } else { "timed model" };
    let mut text = format!(
        "{}, {kind}\n\n{:<16}  {:>4}  {:>5}  {:>10}  {:>9}\n",
        report.device, "anchor", "CTAs", "warps", "cycles", "each"
    );
    for figure in &report.anchors {
        text.push_str(&format!(
            "{:<16}  {:>4}  {:>5}  {:>10}  {:>9.1}  {}\n",
            figure.name,
            figure.ctas,
            figure.warps,
            grouped(figure.cycles),
            figure.cycles_per_operation,
            figure.what
        ));
    }
    text + &term::legend(&LEGEND)
}

/// What the columns mean.
const LEGEND: [(&str, &str); 3] = [
    ("warps", "warps per CTA"),
    ("cycles", "of all operations together: the median of the runs"),
    ("each", "cycles per operation; what an operation is stands beside it"),
];
