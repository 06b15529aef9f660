//! Where a workload runs.

use std::collections::BTreeMap;

use warploom::{Arg, Device, Kernel, Launch, Module, Report, Result};

/// A device, and what the launches on it did.
pub struct Bench<'a> {
    /// The device.
    pub gpu: &'a mut Device,
    prepare: &'a dyn Fn(Launch) -> Launch,
    launches: Vec<Report>,
    figures: Figures,
}

/// What a workload measured itself, by name: with the clocks its kernels read, say.
pub type Figures = BTreeMap<&'static str, f64>;

impl<'a> Bench<'a> {
    pub(crate) fn new(gpu: &'a mut Device, prepare: &'a dyn Fn(Launch) -> Launch) -> Bench<'a> {
        Bench { gpu, prepare, launches: Vec::new(), figures: Figures::new() }
    }

    /// Loads PTX that messages call `name`.
    pub fn load(&mut self, (name, text): (&str, &str)) -> Result<Module> {
        self.gpu.load_ptx_named(name, text)
    }

    /// Runs a kernel to its end and keeps its report.
    pub fn launch<'b>(&mut self, kernel: &Kernel, launch: Launch, args: impl AsRef<[Arg<'b>]>) -> Result<()> {
        let report = self.gpu.launch(kernel, (self.prepare)(launch), args)?;
        self.launches.push(report);
        Ok(())
    }

    /// The report of the last launch.
    pub fn last(&self) -> Option<&Report> {
        self.launches.last()
    }

    /// Keeps a number that the workload measured itself.
    pub fn figure(&mut self, name: &'static str, value: f64) {
        self.figures.insert(name, value);
    }

    pub(crate) fn into_parts(self) -> (Vec<Report>, Figures) {
        (self.launches, self.figures)
    }
}
