//! `warploom correlate`: times on a real GPU beside those of its model.

use serde_json::json;
use warploom::{Chip, SimOptions};
use warploom_lab::conform::Origin;
use warploom_lab::correlate::{self, Class, Correlation, POINTS, Point, STORED};

use crate::cli::{ChipOptions, CorrelateOptions};
use crate::failure::{Exit, Failure};
use crate::machine;
use crate::output::{check_writable, print_json, write};
use crate::progress::Steps;
use crate::term::{self, seconds};

/// Measures the points on a real GPU, or compares its stored times with the model's.
pub(crate) fn correlate(options: &CorrelateOptions) -> Result<Exit, Failure> {
    let chosen = |point: &&Point| {
        point.name().contains(&options.points) || point.class.name().contains(&options.points)
    };
    let points: Vec<Point> = POINTS.iter().filter(chosen).copied().collect();
    if points.is_empty() {
        let classes = Class::ALL.map(Class::name).join(", ");
        return Err(Failure::input(format!(
            "no point contains `{}`; points are workloads with parameters, in the classes {classes}",
            options.points
        )));
    }
    match options.device {
        Some(device) => measure(options, device, &points),
        None => compare(options, &points),
    }
}

fn measure(
    options: &CorrelateOptions,
    device: crate::cli::DeviceName,
    points: &[Point],
) -> Result<Exit, Failure> {
    let chip = ChipOptions { chip: Some(options.chip.clone()), set: options.set.clone() };
    let mut gpu = machine::open_with(device, &chip, SimOptions::default())?;
    let origin = Origin::of(&gpu)?;
    let steps = Steps::new();
    let (times, failed) = correlate::measure(&mut gpu, points, options.repeat, &mut |p| steps.show(&p));
    drop(steps);
    for message in &failed {
        eprintln!("warning: {message}");
    }
    let command = format!("warploom correlate --device cuda --repeat {}", options.repeat);
    let stored = json!({ "command": command, "origin": origin, "times": times });
    term::print(&format!("{}\n", serde_json::to_string_pretty(&stored).expect("it is JSON")))?;
    Ok(if failed.is_empty() { Exit::Good } else { Exit::CheckFailed })
}

fn compare(options: &CorrelateOptions, points: &[Point]) -> Result<Exit, Failure> {
    let chip = Chip::load(&options.chip, &options.set).map_err(warploom::Error::from)?;
    let Some(stored) = correlate::stored(&chip.name) else {
        let known = STORED.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
        return Err(Failure::input(format!(
            "no times of a real `{}` are stored; there are those of {known}; measure with --device cuda",
            chip.name
        )));
    };
    if let Some(file) = &options.html {
        check_writable(file)?;
    }
    let stored = stored.map_err(|error| Failure::input(format!("stored times of {}: {error}", chip.name)))?;
    let steps = std::sync::Mutex::new(Steps::new());
    let show = |p| steps.lock().unwrap_or_else(std::sync::PoisonError::into_inner).show(&p);
    let correlation = Correlation::of(&chip, &stored.times, points, &show);
    drop(steps);
    if let Some(file) = &options.html {
        write(file, correlation.html(&stored.origin).as_bytes())?;
    }
    match options.json {
        true => print_json(json!({ "origin": stored.origin, "correlation": correlation }))?,
        false => term::print(&table(&correlation, &stored.origin))?,
    }
    Ok(if correlation.failed.is_empty() { Exit::Good } else { Exit::CheckFailed })
}

fn table(correlation: &Correlation, origin: &Origin) -> String {
    let mut text = format!(
        "{}: the model beside a real {} ({}, driver {}), the worst first\n\n\
         {:>10}  {:>10}  {:>6}  {:<15}  {:<48}  {}\n",
        correlation.chip,
        origin.chip,
        origin.date,
        origin.driver,
        "real",
        "model",
        "ratio",
        "class",
        "point",
        "mostly"
    );
    for pair in &correlation.pairs {
        text.push_str(&format!(
            "{:>10}  {:>10}  {:>6.2}  {:<15}  {:<48}  {}\n",
            seconds(pair.real_s),
            seconds(pair.model_s),
            pair.ratio,
            pair.class.name(),
            pair.point,
            pair.mostly
        ));
    }
    for message in &correlation.failed {
        text.push_str(&format!("failed: {message}\n"));
    }
    text.push_str(&format!("\nmean absolute error of {} points", correlation.pairs.len()));
    let classes = correlation.error_by_class.iter().map(|(class, error)| (*class, *error));
    for (class, error) in classes.chain([("all", correlation.error)]) {
        text.push_str(&format!("\n  {class:<15}  {:>5.1} %", 100.0 * error));
    }
    text.push('\n');
    text + &term::legend(&LEGEND)
}

/// What the columns mean.
const LEGEND: [(&str, &str); 4] = [
    ("real, model", "kernel time on the GPU and in the model, without launch overhead"),
    ("ratio", "the model's time over the real one"),
    ("class", "what the point is there to measure"),
    ("mostly", "the state in which the model's warps spend the most time"),
];
