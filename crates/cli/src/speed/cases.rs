//! The standard set: kernels that are limited by different parts of the machine.

use warploom::{Chip, Device, Kernel, Launch, Report, args, isa::Ty};
use warploom_kernels::text;
use warploom_lab::kernel::random;
use warploom_lab::runs::Run;
use warploom_lab::work::Workload;

use crate::failure::{Exit, Failure};

/// One kernel of the set, or one graph of kernels.
pub(super) struct Case {
    pub(super) name: &'static str,
    /// What limits it.
    pub(super) about: &'static str,
    /// Whether it needs a chip with an aggregator. The others run on chips without one.
    channels: bool,
    pub(super) run: fn(&mut Device) -> Result<Report, Failure>,
}

/// Changing a size makes results of different versions incomparable.
pub(super) const CASES: &[Case] = &[
    Case::kernel("vecadd", "memory", |gpu| work(gpu, "vecadd", &[])),
    Case::kernel("nbody", "arithmetic", nbody),
    Case::kernel("matmul", "shared memory, barriers", |gpu| work(gpu, "matmul", &[])),
    Case::kernel("classify", "divergence", classify),
    Case::kernel("localarray", "local memory", localarray),
    Case::kernel("hashtable", "locks, low contention", |gpu| {
        work(gpu, "hashtable", &["keys=40_000", "buckets=4_096"])
    }),
    Case::kernel("hashtable", "locks, high contention", |gpu| {
        work(gpu, "hashtable", &["keys=4_000", "buckets=64"])
    }),
    Case::graph("fibonacci", "channels", |gpu| work(gpu, "fibonacci", &["n=16"])),
];

impl Case {
    const fn kernel(
        name: &'static str,
        about: &'static str,
        run: fn(&mut Device) -> Result<Report, Failure>,
    ) -> Case {
        Case { name, about, channels: false, run }
    }

    const fn graph(
        name: &'static str,
        about: &'static str,
        run: fn(&mut Device) -> Result<Report, Failure>,
    ) -> Case {
        Case { name, about, channels: true, run }
    }

    pub(super) fn runs_on(&self, chip: &Chip) -> bool {
        self.channels == chip.aggregator.is_some()
    }
}

/// The part of the set with these names; without names, all of it.
pub(super) fn named(names: &[String]) -> Result<Vec<&'static Case>, Failure> {
    if let Some(name) = names.iter().find(|name| CASES.iter().all(|case| case.name != **name)) {
        let mut known: Vec<_> = CASES.iter().map(|case| case.name).collect();
        known.dedup();
        let message = format!("the set has no kernel `{name}`; there are {}", known.join(", "));
        return Err(Failure::input(message));
    }
    Ok(CASES.iter().filter(|case| names.is_empty() || names.iter().any(|name| name == case.name)).collect())
}

/// What shows the memory of a machine: work for every SM of a large chip, with 3 MB of buffers; or a graph of kernels.
pub(super) fn for_memory(chip: &Chip) -> Run {
    match chip.aggregator {
        Some(_) => Run::work("fibonacci").with("n", 12),
        None => Run::work("vecadd").with("size", 262_144),
    }
}

/// Runs a built-in workload. A wrong result is a failure.
pub(super) fn work(gpu: &mut Device, name: &str, params: &[&str]) -> Result<Report, Failure> {
    let workload = Workload::find(name)?;
    let outcome = workload.run(gpu, &workload.values(params)?, &|launch| launch)?;
    match outcome.check {
        Ok(_) => Ok(outcome.total),
        Err(wrong) => Err(Failure::new(Exit::CheckFailed, format!("workload `{name}`: {wrong}"))),
    }
}

pub(super) fn kernel(gpu: &mut Device, ptx: &str, name: &str) -> Result<Kernel, Failure> {
    Ok(gpu.load_ptx_named(&format!("{name}.ptx"), ptx)?.kernel(name)?)
}

fn nbody(gpu: &mut Device) -> Result<Report, Failure> {
    let n = 2048;
    let kernel = kernel(gpu, text!("nbody.ptx"), "nbody")?;
    let bodies = gpu.buffer(&random(Ty::F32, 4 * n, 1))?;
    let acc = gpu.zeros::<f32>(4 * n)?;
    Ok(gpu.launch(&kernel, Launch::grid(n / 256).block(256), args![&bodies, &acc, n as u32, 0.01f32])?)
}

fn classify(gpu: &mut Device) -> Result<Report, Failure> {
    let n = 1 << 18;
    let kernel = kernel(gpu, text!("switch.ptx"), "classify")?;
    let data = gpu.buffer(&random(Ty::U32, n, 1))?;
    let out = gpu.zeros::<u32>(n)?;
    Ok(gpu.launch(&kernel, Launch::grid(n / 256).block(256), args![&data, &out, n as u32])?)
}

fn localarray(gpu: &mut Device) -> Result<Report, Failure> {
    let n = 1 << 15;
    let kernel = kernel(gpu, text!("localarray.ptx"), "localarray")?;
    let data = gpu.buffer(&random(Ty::S32, 16 * n, 1))?;
    let out = gpu.zeros::<i32>(16 * n)?;
    Ok(gpu.launch(&kernel, Launch::grid(n / 256).block(256), args![&data, &out, n as u32])?)
}
