//! What a workload runs on: the device, with a record of its launches.

use std::collections::BTreeMap;

use warploom::{Arg, Device, Error, Kernel, Launch, Module, Report, Result, Shape, grouped};
use warploom_flow::{Graph, Limits, Schedule};

use super::cilk;

/// A device that keeps the reports of its launches.
pub(crate) struct Bench<'a> {
    pub gpu: &'a mut Device,
    prepare: &'a dyn Fn(Launch) -> Launch,
    launches: Vec<Report>,
    figures: Figures,
}

/// What a workload measured itself, by name, for example with clocks that its kernels read.
pub type Figures = BTreeMap<&'static str, f64>;

impl<'a> Bench<'a> {
    pub(crate) fn new(gpu: &'a mut Device, prepare: &'a dyn Fn(Launch) -> Launch) -> Bench<'a> {
        Bench { gpu, prepare, launches: Vec::new(), figures: Figures::new() }
    }

    /// Loads PTX under the name that messages use.
    pub(crate) fn load(&mut self, (name, text): (&str, &str)) -> Result<Module> {
        self.gpu.load_ptx_named(name, text)
    }

    /// Runs a kernel to its end and keeps its report.
    pub(crate) fn launch<'b>(
        &mut self,
        kernel: &Kernel,
        launch: Launch,
        args: impl AsRef<[Arg<'b>]>,
    ) -> Result<()> {
        let report = self.gpu.launch(kernel, (self.prepare)(launch), args)?;
        self.launches.push(report);
        Ok(())
    }

    /// [`launch`](Bench::launch) for a kernel whose CTAs wait for each other. Refused unless all of them can be
    /// resident at once, because otherwise it would deadlock.
    pub(crate) fn launch_resident<'b>(
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
            let shape = Shape {
                grid,
                block,
                dynamic_shared_bytes: launch.dynamic_shared_bytes,
                cluster: launch.cluster,
            };
            return Err(Error::Unlaunchable { reason, shape });
        }
        self.launch(kernel, launch, args)
    }

    /// Warp width of the device, derived from the kernel's occupancy.
    pub(crate) fn lanes(&self, kernel: &Kernel) -> Result<u32> {
        const THREADS: u32 = 64;
        Ok(THREADS / self.gpu.occupancy(kernel, &Launch::grid(1).block(THREADS))?.warps_per_cta.max(1))
    }

    /// Runs a graph to its end and keeps its report. The scheduler executes `effort` times the instructions between
    /// its memory accesses.
    pub(crate) fn flow(&mut self, graph: &Graph, module: &Module, effort: u64) -> Result<()> {
        let Launch { max_cycles, interrupt, progress, .. } = (self.prepare)(Launch::grid(1));
        let limits = Limits { max_cycles, interrupt, progress };
        let execution = graph.execute(self.gpu, module).map_err(cilk::refused)?;
        self.launches.push(execution.limits(limits).effort(effort).wait().map_err(cilk::refused)?);
        Ok(())
    }

    /// Runs a graph on a GPU without an aggregator. `ctas`: of the persistent kernel, 0 for one per SM.
    pub(crate) fn flow_on_gpu(
        &mut self,
        graph: &Graph,
        module: &Module,
        schedule: Schedule,
        ctas: u32,
    ) -> Result<()> {
        let execution = graph.execute_on_gpu(self.gpu, module).map_err(cilk::refused)?.schedule(schedule);
        let execution = if ctas > 0 { execution.ctas(ctas) } else { execution };
        let run = execution.wait(self.prepare).map_err(cilk::refused)?;
        self.figure("chunks", run.chunks as f64);
        self.figure("elements", run.elements as f64);
        self.figure("rounds", run.rounds as f64);
        // Of a simulated GPU that would be the simulation's time.
        if self.gpu.chip().is_none() {
            self.figure("seconds", run.seconds);
        }
        self.launches.extend(run.launches);
        Ok(())
    }

    pub(crate) fn last(&self) -> Option<&Report> {
        self.launches.last()
    }

    /// Keeps a number that the workload measured itself.
    pub(crate) fn figure(&mut self, name: &'static str, value: f64) {
        self.figures.insert(name, value);
    }

    pub(crate) fn into_parts(self) -> (Vec<Report>, Figures) {
        (self.launches, self.figures)
    }
}
