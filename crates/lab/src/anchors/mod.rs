//! Anchors: micro-benchmarks that measure what one operation costs, on a real GPU or on a model of one.
//!
//! Each is a kernel that reads the cycle counter, performs some thousand operations, each dependent on the previous
//! one, and reads the counter again. The figures of a real chip are the raw material of its chip file. Start at
//! [`measure`].

mod kernels;

use std::time::Duration;

use serde::Serialize;
use warploom::{Buffer, Device, Kernel, Launch, Result, SimOptions, args};

use crate::conform::{OnProgress, Progress};
use kernels::{Anchor, Ctas, Data, anchors};

/// What the anchors measured on a device.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AnchorReport {
    pub device: String,
    /// Whether the device is hardware.
    pub real: bool,
    pub anchors: Vec<Figure>,
}

/// What one operation costs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figure {
    /// The unit and the operation, such as `shared/load`.
    pub name: &'static str,
    pub what: &'static str,
    pub ctas: u32,
    /// Warps in a CTA.
    pub warps: u32,
    /// Count of operations measured.
    pub operations: u64,
    /// Cycles of all operations together: the median of the runs.
    pub cycles: u64,
    pub cycles_per_operation: f64,
}

/// Where an anchor's memory begins, as CUDA places large allocations. Which slices of the L2 a few pages share depends
/// on it.
const ALIGNMENT: u64 = 2 << 20;

/// No anchor takes this long on any device worth measuring.
const TIME_LIMIT: Duration = Duration::from_secs(20);

/// Measures all anchors. Each runs once to warm up and then `runs` times.
pub fn measure(device: &mut Device, runs: usize, report: OnProgress<'_>) -> Result<AnchorReport> {
    measure_some(device, runs, &|_| true, report)
}

/// Measures the anchors with some names.
pub fn measure_some(
    device: &mut Device,
    runs: usize,
    wanted: &dyn Fn(&str) -> bool,
    report: OnProgress<'_>,
) -> Result<AnchorReport> {
    let mut anchors = anchors();
    anchors.retain(|anchor| wanted(anchor.name));
    let total = anchors.len();
    let mut figures = Vec::new();
    for (done, anchor) in anchors.iter().enumerate() {
        report(Progress { stage: anchor.name.to_string(), done, total });
        // What an anchor costs on the model does not depend on where buffers of earlier ones are.
        let mut fresh = device.chip().map(|chip| Device::sim_with(chip.clone(), SimOptions::default()));
        figures.push(figure(fresh.as_mut().unwrap_or(device), anchor, runs)?);
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
    let data = device.zeros::<u64>(words + (ALIGNMENT / 8) as usize)?;
    let base = data.address().next_multiple_of(ALIGNMENT);
    if let Data::Chain { links, stride_words } = anchor.data {
        let mut contents = vec![0; ((base - data.address()) / 8) as usize];
        contents.extend(chain(base, links, stride_words));
        contents.resize(data.len(), 0);
        data.write(device, &contents)?;
    }
    let ctas = match anchor.ctas {
        Ctas::One => 1,
        Ctas::Some(ctas) => ctas.min(device.sms()),
        Ctas::PerSm => device.sms(),
    };
    // A model takes as many cycles each time.
    let runs = if device.is_real() { runs } else { 1 };
    let (places, which) = anchor.place.tried();
    let mut cycles = places
        .map(|start| measured(device, anchor, &kernel, (&data, base, base + start as u64), ctas, runs))
        .collect::<Result<Vec<_>>>()?;
    cycles.sort_unstable();
    let cycles = cycles[which];
    let operations = anchor.rounds as u64 * anchor.unrolled as u64;
    Ok(Figure {
        name: anchor.name,
        what: anchor.what,
        ctas,
        warps: anchor.warps,
        operations,
        cycles,
        cycles_per_operation: cycles as f64 / operations as f64,
    })
}

/// The median of the cycles that an anchor takes. Its memory is part of `data` and begins at `start`, a chain's at
/// `base`.
fn measured(
    device: &mut Device,
    anchor: &Anchor,
    kernel: &Kernel,
    (data, base, start): (&Buffer<u64>, u64, u64),
    ctas: u32,
    runs: usize,
) -> Result<u64> {
    // Out: the cycles, a result so that no compiler removes the work, where the next run continues the chain, how many
    // CTAs have begun, and a zero.
    let out = device.buffer(&[0, 0, base, 0, 0])?;
    let mut cycles = Vec::new();
    for _ in 0..=runs {
        let next = out.read(device)?[2];
        out.write(device, &[0, 0, next, 0, 0])?;
        if anchor.ctas != Ctas::One {
            data.write(device, &vec![0; data.len()])?;
        }
        let launch = Launch::grid(ctas).block(32 * anchor.warps).time_limit(TIME_LIMIT);
        let arguments = args![&out, start, anchor.rounds, 1u32];
        device.launch(kernel, launch, arguments)?;
        cycles.push(out.read(device)?[0]);
    }
    cycles.remove(0);
    cycles.sort_unstable();
    Ok(cycles[cycles.len() / 2])
}

/// A cycle of pointers that visits every link once, in an order that no prefetcher guesses.
fn chain(base: u64, links: usize, stride_words: usize) -> Vec<u64> {
    let mut order: Vec<usize> = (0..links).collect();
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    for i in (1..links).rev() {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        order.swap(i, ((state >> 33) as usize) % (i + 1));
    }
    // The kernel starts at link 0.
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
        // With few SMs, which take less host time.
        let chip = warploom::Chip::load("h200", &["sm.count=6".to_string()]).unwrap();
        let mut gpu = Device::sim_with(chip, warploom::SimOptions::default());
        let report = measure(&mut gpu, 1, &mut |_| {}).unwrap();
        assert_eq!(report.anchors.len(), anchors().len());
        for figure in &report.anchors {
            // Even without timing, an operation costs at least its instructions.
            assert!(figure.cycles_per_operation >= 1.0, "{figure:?}");
        }
    }
}
