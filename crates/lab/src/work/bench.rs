//! Where a workload runs.

use std::collections::BTreeMap;

use warploom::{Arg, Device, Error, Kernel, Launch, Module, Report, Result, Shape, grouped};
use warploom_flow::{Graph, Limits};

use super::cilk;

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

    /// The same for a kernel whose CTAs wait for any other ones: refused unless all of them can be resident together.
    pub fn launch_resident<'b>(
        &mut self,
        kernel: &Kernel,
        launch: Launch,
        args: impl AsRef<[Arg<'b>]>,
    ) -> Result<()> {
        let ctas = launch.grid.iter().map(|&n| u64::from(n)).product::<u64>();
        let room = u64::from(self.gpu.sms()) * u64::from(self.gpu.occupancy(kernel, &launch)?.ctas_per_sm);
        if ctas > room {
            let reason = format!(
                "CTAs of kernel `{}` wait for each other, and {} can be resident together on {}, not {}",
                kernel.name(),
                grouped(room),
                self.gpu.name(),
                grouped(ctas)
            );
            let (grid, block) = (launch.grid, launch.block.unwrap_or([1; 3]));
            let shape = Shape { grid, block, dynamic_shared_bytes: launch.dynamic_shared_bytes };
            return Err(Error::Unlaunchable { reason, shape });
        }
        self.launch(kernel, launch, args)
    }

    /// Lanes of a warp, as a launch of the kernel shows them.
    pub fn lanes(&self, kernel: &Kernel) -> Result<u32> {
        const THREADS: u32 = 64;
        Ok(THREADS / self.gpu.occupancy(kernel, &Launch::grid(1).block(THREADS))?.warps_per_cta.max(1))
    }

    /// Runs a graph to its end and keeps its report. The scheduler takes `effort` times the instructions between its accesses.
    pub fn flow(&mut self, graph: &Graph, module: &Module, effort: u64) -> Result<()> {
        if !cilk::has_aggregator(self.gpu) {
            return Err(Error::Misuse(format!(
                "`{}` has no control processor to run graph `{}`: take --chip apu, or on=host",
                self.gpu.name(),
                graph.name()
            )));
        }
        let Launch { max_cycles, interrupt, progress, .. } = (self.prepare)(Launch::grid(1));
        let limits = Limits { max_cycles, interrupt, progress };
        let execution = graph.execute(self.gpu, module).map_err(cilk::refused)?;
        self.launches.push(execution.limits(limits).effort(effort).wait().map_err(cilk::refused)?);
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
