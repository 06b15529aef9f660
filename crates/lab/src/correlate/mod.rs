//! Correlation: the times of workloads on a real GPU beside those of its model.
//!
//! [`POINTS`] are workloads with inputs, each of a [`Class`]. [`measure`] times them on a device; the times of a real
//! chip are stored (`crates/lab/correlate/`), so that [`Correlation::of`] needs no GPU. Start there.

mod page;
mod points;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use warploom::{Chip, Device, Launch, Report, Result, args};

pub use points::{Class, POINTS, Point};

use crate::conform::{OnProgress, Origin, Progress};
use crate::work::Workload;

/// Times of a real chip, with where they come from.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Stored {
    pub command: String,
    pub origin: Origin,
    pub times: Vec<Time>,
}

/// What a point took on a real GPU.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Time {
    /// The point's name.
    pub point: String,
    /// Seconds of its kernels, without what a launch takes besides: each kernel's median, all launches added.
    pub kernel_s: f64,
    /// The same with each kernel's least time instead of its median.
    pub least_s: f64,
    pub launches: usize,
}

/// Chips whose real times are stored.
pub const STORED: &[(&str, &str)] = &[("h200", include_str!("../../correlate/h200.json"))];

/// The stored times of a chip.
pub fn stored(chip: &str) -> Option<std::result::Result<Stored, serde_json::Error>> {
    STORED.iter().find(|(name, _)| *name == chip).map(|(_, text)| serde_json::from_str(text))
}

/// Times points on a real GPU, each launch `repeat` times. Points that fail are left out, with their message.
pub fn measure(
    device: &mut Device,
    points: &[Point],
    repeat: u32,
    report: OnProgress<'_>,
) -> (Vec<Time>, Vec<String>) {
    let (mut times, mut failed) = (Vec::new(), Vec::new());
    for (done, point) in points.iter().enumerate() {
        report(Progress { stage: point.name(), done, total: points.len() });
        match time(device, point, repeat) {
            Ok(time) => times.push(time),
            Err(message) => failed.push(format!("{}: {message}", point.name())),
        }
    }
    (times, failed)
}

fn time(device: &mut Device, point: &Point, repeat: u32) -> Result<Time, String> {
    let (launches, total) = run(device, point, repeat)?;
    let overhead = total.launch_overhead_ns.unwrap_or(0) as f64 * 1e-9;
    Ok(Time {
        point: point.name(),
        kernel_s: total.kernel_s.unwrap_or(0.0),
        least_s: (total.gpu_least_s.unwrap_or(0.0) - overhead).max(0.0),
        launches,
    })
}

/// Runs a point and checks its result. Returns the number of launches and their sum.
fn run(device: &mut Device, point: &Point, repeat: u32) -> Result<(usize, Report), String> {
    let workload = Workload::find(point.workload).map_err(|e| e.to_string())?;
    let values = workload.values(&point.assignments()).map_err(|e| e.to_string())?;
    let outcome =
        workload.run(device, &values, &|launch| launch.repeat(repeat)).map_err(|e| e.to_string())?;
    outcome.check?;
    Ok((outcome.launches.len(), outcome.total))
}

/// A point on the real chip and in the model.
#[derive(Clone, Debug, Serialize)]
pub struct Pair {
    pub point: String,
    pub class: Class,
    pub real_s: f64,
    /// The median over the placements of the buffers.
    pub model_s: f64,
    /// The least and the most.
    pub model_range_s: [f64; 2],
    /// The model's time over the real one.
    pub ratio: f64,
    /// What most of the warps' time went to in the model.
    pub mostly: String,
}

impl Pair {
    /// How far the model is off, as a share of the real time.
    pub fn error(&self) -> f64 {
        (self.ratio - 1.0).abs()
    }

    /// How many times too long or too short it is.
    pub fn factor(&self) -> f64 {
        self.ratio.max(1.0 / self.ratio)
    }
}

/// All points on the real chip and in the model.
#[derive(Clone, Debug, Serialize)]
pub struct Correlation {
    pub chip: String,
    /// The worst first.
    pub pairs: Vec<Pair>,
    /// Points that could not be run, with the reason.
    pub failed: Vec<String>,
    /// Mean absolute error, as a share of the real time.
    pub error: f64,
    pub error_by_class: BTreeMap<&'static str, f64>,
}

impl Correlation {
    /// Simulates points on a chip, several at a time, and compares them with the real times.
    pub fn of(
        chip: &Chip,
        real: &[Time],
        points: &[Point],
        report: &(dyn Fn(Progress) + Sync),
    ) -> Correlation {
        use rayon::prelude::*;
        let done = std::sync::atomic::AtomicUsize::new(0);
        let known: Vec<(&Point, &Time)> = points
            .iter()
            .filter_map(|point| Some((point, real.iter().find(|time| time.point == point.name())?)))
            .collect();
        let runs: Vec<(&Point, u32)> = known
            .iter()
            .flat_map(|(point, _)| point.placements().iter().map(|&pages| (*point, pages)))
            .collect();
        let times: Vec<Result<(f64, String), String>> = runs
            .par_iter()
            .map(|(point, pages)| {
                let time = model_time(chip, point, *pages);
                let done = done.fetch_add(1, std::sync::atomic::Ordering::Relaxed) + 1;
                report(Progress { stage: point.name(), done, total: runs.len() });
                time.map_err(|message| format!("{}: {message}", point.name()))
            })
            .collect();
        let mut times = times.into_iter();
        let results: Vec<Result<Pair, String>> = known
            .iter()
            .map(|(point, time)| {
                let of_point: Result<Vec<_>, String> =
                    times.by_ref().take(point.placements().len()).collect();
                of_point.map(|times| pair(point, time, times))
            })
            .collect();
        let (pairs, failed): (Vec<_>, Vec<_>) = results.into_iter().partition(Result::is_ok);
        let failed = failed.into_iter().filter_map(Result::err).collect();
        Correlation::from_pairs(chip.name.clone(), pairs.into_iter().flatten().collect(), failed)
    }

    fn from_pairs(chip: String, mut pairs: Vec<Pair>, failed: Vec<String>) -> Correlation {
        pairs.sort_by(|a, b| b.factor().total_cmp(&a.factor()));
        let mean = |errors: Vec<f64>| errors.iter().sum::<f64>() / errors.len().max(1) as f64;
        let mut error_by_class = BTreeMap::new();
        for class in Class::ALL {
            let errors: Vec<_> = pairs.iter().filter(|pair| pair.class == class).map(Pair::error).collect();
            if !errors.is_empty() {
                error_by_class.insert(class.name(), mean(errors));
            }
        }
        let error = mean(pairs.iter().map(Pair::error).collect());
        Correlation { chip, pairs, failed, error, error_by_class }
    }
}

/// Seconds of an empty kernel in the model.
fn empty(device: &mut Device) -> Result<f64, String> {
    const TEXT: &str = ".version 6.0\n.target sm_50\n.address_size 64\n.visible .entry empty() { ret; }\n";
    let module = device.load_ptx_named("empty", TEXT).map_err(|e| e.to_string())?;
    let kernel = module.kernel("empty").map_err(|e| e.to_string())?;
    let report = device.launch(&kernel, Launch::grid(1).block(1), args![]).map_err(|e| e.to_string())?;
    report.kernel_s.ok_or_else(|| "the model gave no time".to_string())
}

impl Point {
    /// How many pages of 4 kB the buffers lie behind the first. Where threads contend, time depends on which slices of
    /// the L2 have the hot words, and the hash of the real chip is not known bit by bit.
    fn placements(&self) -> &'static [u32] {
        match self.class {
            Class::LowContention | Class::HighContention => &[0, 5, 10],
            _ => &[0],
        }
    }
}

/// The seconds that a point takes in the model, and what most of them went to.
fn model_time(chip: &Chip, point: &Point, pages: u32) -> Result<(f64, String), String> {
    let timing = warploom::Timing { threads: 1, ..Default::default() };
    let options = warploom::SimOptions { timing, ..Default::default() };
    let mut device = Device::sim_with(chip.clone(), options);
    let empty_s = empty(&mut device)?;
    let _before = device.zeros::<u8>(4096 * pages as usize + 1).map_err(|e| e.to_string())?;
    let (launches, total) = run(&mut device, point, 0)?;
    let model_s = total.kernel_s.ok_or("the model gave no time")?;
    let mostly = total.stalls.iter().flatten().max_by_key(|(_, cycles)| **cycles);
    let mostly = mostly.map_or(String::new(), |(what, &cycles)| {
        format!("{what} {:.0} %", 100.0 * cycles as f64 / total.warp_cycles.unwrap_or(1).max(1) as f64)
    });
    // A real kernel's time is what it takes longer than an empty one, so the model's is, too.
    Ok((model_s - launches as f64 * empty_s, mostly))
}

fn pair(point: &Point, time: &Time, mut model: Vec<(f64, String)>) -> Pair {
    model.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    let model_range_s = [model[0].0, model[model.len() - 1].0];
    let (model_s, mostly) = model.swap_remove(model.len() / 2);
    let (real_s, ratio) = (time.kernel_s, model_s / time.kernel_s);
    Pair { point: point.name(), class: point.class, real_s, model_s, model_range_s, ratio, mostly }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(class: Class, ratio: f64) -> Pair {
        let (point, mostly) = (ratio.to_string(), String::new());
        Pair { point, class, real_s: 1.0, model_s: ratio, model_range_s: [ratio; 2], ratio, mostly }
    }

    #[test]
    fn errors_are_means_and_the_worst_comes_first() {
        let pairs = vec![
            pair(Class::Memory, 1.1),
            pair(Class::Memory, 0.5),
            pair(Class::Arithmetic, 1.5),
            pair(Class::Launches, 1.0),
        ];
        let correlation = Correlation::from_pairs("x".to_string(), pairs, Vec::new());
        let order: Vec<_> = correlation.pairs.iter().map(|pair| pair.ratio).collect();
        assert_eq!(order, [0.5, 1.5, 1.1, 1.0]);
        let close = |a: f64, b: f64| (a - b).abs() < 1e-9;
        assert!(close(correlation.error, (0.1 + 0.5 + 0.5) / 4.0));
        assert!(close(correlation.error_by_class["memory"], 0.3));
        assert_eq!(correlation.error_by_class.len(), 3);
    }

    #[test]
    fn the_stored_times_are_those_of_points() {
        for (chip, _) in STORED {
            let stored = stored(chip).unwrap().unwrap();
            for time in &stored.times {
                assert!(POINTS.iter().any(|point| point.name() == time.point), "{}", time.point);
                assert!(time.kernel_s > 0.0 && time.least_s <= time.kernel_s * 1.001, "{time:?}");
            }
        }
    }
}
