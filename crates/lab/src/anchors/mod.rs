//! Anchors: micro-benchmarks that tell what one operation costs, on a real GPU or a model of one, in the same form.
//!
//! Each is a kernel that reads the cycle counter, performs an operation some thousand times, each depending on the last
//! one, and reads the counter again. The figures of a real chip are the raw material of its model's description.

mod kernels;

use std::time::Duration;

use serde::Serialize;
use warploom::{Device, Launch, Result, args};

pub use kernels::{Anchor, Data, anchors};

use crate::conform::{Progress, Report};

/// What the anchors measured on a device.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AnchorReport {
    /// The device.
    pub device: String,
    /// Whether it is hardware.
    pub real: bool,
    /// One entry an anchor.
    pub anchors: Vec<Figure>,
}

/// What one operation costs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figure {
    /// The anchor: `shared/load`.
    pub name: &'static str,
    /// What is measured.
    pub what: &'static str,
    /// Warps that take part.
    pub warps: u32,
    /// Operations measured.
    pub operations: u64,
    /// Cycles of all of them, the median of the runs.
    pub cycles: u64,
    /// Cycles of one.
    pub cycles_per_operation: f64,
}

/// Launches that end no later than this on any device worth measuring.
const TIME_LIMIT: Duration = Duration::from_secs(20);

/// Runs all anchors; each `runs` times after one to warm up.
pub fn measure(device: &mut Device, runs: usize, report: Report<'_>) -> Result<AnchorReport> {
    let anchors = anchors();
    let total = anchors.len();
    let mut figures = Vec::new();
    for (done, anchor) in anchors.iter().enumerate() {
        report(Progress { stage: anchor.name.to_string(), done, total });
        figures.push(figure(device, anchor, runs)?);
    }
    Ok(AnchorReport { device: device.name().to_string(), real: device.is_real(), anchors: figures })
}

fn figure(device: &mut Device, anchor: &Anchor, runs: usize) -> Result<Figure> {
    let module = device.load_ptx_named(anchor.name, anchor.ptx())?;
    let kernel = module.kernel("anchor")?;
    let words = match anchor.data {
        Data::Zeros { words } => words,
        Data::Chain { links, stride_words } => links * stride_words,
    };
    let data = device.zeros::<u64>(words)?;
    if let Data::Chain { links, stride_words } = anchor.data {
        data.write(device, &chain(data.address(), links, stride_words))?;
    }
    // Cycles, a result that keeps the compiler honest, and where a chain goes on.
    let out = device.buffer(&[0, 0, data.address()])?;
    let mut cycles = Vec::new();
    for _ in 0..=runs {
        let launch = Launch::grid(1).block(32 * anchor.warps).time_limit(TIME_LIMIT);
        device.launch(&kernel, launch, args![&out, &data, anchor.rounds, 1u32])?;
        cycles.push(out.read(device)?[0]);
    }
    cycles.remove(0);
    cycles.sort_unstable();
    let cycles = cycles[cycles.len() / 2];
    let operations = anchor.rounds as u64 * anchor.unrolled as u64;
    Ok(Figure {
        name: anchor.name,
        what: anchor.what,
        warps: anchor.warps,
        operations,
        cycles,
        cycles_per_operation: cycles as f64 / operations as f64,
    })
}

/// Pointers that lead through all links once, in an order that no prefetcher guesses, and back to the first.
fn chain(base: u64, links: usize, stride_words: usize) -> Vec<u64> {
    let mut order: Vec<usize> = (0..links).collect();
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    for i in (1..links).rev() {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        order.swap(i, ((state >> 33) as usize) % (i + 1));
    }
    // The kernel starts at the first link.
    let first = order.iter().position(|&link| link == 0).unwrap_or(0);
    order.swap(0, first);
    let mut words = vec![0; links * stride_words];
    for (at, &link) in order.iter().enumerate() {
        let next = order[(at + 1) % links];
        words[link * stride_words] = base + (next * stride_words * 8) as u64;
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_visits_every_link() {
        let words = chain(1000, 64, 4);
        let (mut at, mut seen) = (0, 0);
        loop {
            at = ((words[at] - 1000) / 8) as usize;
            seen += 1;
            if at == 0 {
                break;
            }
        }
        assert_eq!(seen, 64);
    }

    #[test]
    fn every_anchor_runs_on_the_machine() {
        let mut gpu = Device::sim("h200").unwrap();
        let report = measure(&mut gpu, 1, &mut |_| {}).unwrap();
        assert_eq!(report.anchors.len(), anchors().len());
        for figure in &report.anchors {
            // Without timing an operation costs at least the instructions it takes.
            assert!(figure.cycles_per_operation >= 1.0, "{figure:?}");
        }
    }
}
