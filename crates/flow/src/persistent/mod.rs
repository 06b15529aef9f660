//! Runs graphs on GPUs that have no aggregator, real or simulated: the same graph and the same kernels, compiled with
//! `FLOW_GPU` (`kernels/flow/persistent.cuh` is the device's half).
//!
//! There are three schedules. In the first two, a persistent kernel has everything in it, one scheduler or one per CTA
//! too. In the third, the host looks at the channels and launches a batch at a time, which is the baseline.

mod image;
mod levels;

use std::time::Duration;

use warploom::{Device, Divergence, Error, Launch, Module, Report, args};

use crate::audit::{Life, audit, suspects};
use crate::error::{FlowError, Result, too_many_at_once};
use crate::graph::{Graph, Level, Plan};
use image::{EXCESS, Image};

/// Lanes of a warp, and elements of a chunk.
const LANES: u32 = 32;

/// Threads per CTA, as the kernels' launch bounds say.
const THREADS: u32 = 256;

/// A real GPU cannot be interrupted, so a launch without another limit ends as a hang after this time.
const TIME_LIMIT: Duration = Duration::from_secs(60);

/// Who looks at the channels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Schedule {
    /// A warp of the persistent kernel.
    #[default]
    Persistent,
    /// A warp of each CTA of the persistent kernel, for the elements that are dealt to it.
    PerSm,
    /// The host, which launches a batch of one channel at a time.
    Levels,
}

/// What a run on a GPU did.
#[derive(Clone, Debug)]
pub struct GpuRun {
    /// One per launch, in order.
    pub launches: Vec<Report>,
    /// Elements processed.
    pub elements: u64,
    /// Warps that processed them, of up to 32 elements each.
    pub chunks: u64,
    /// How often the scheduler looked at all channels.
    pub rounds: u64,
    /// Seconds on the host from the first look or launch to the last.
    pub seconds: f64,
}

/// A graph placed on a GPU without an aggregator.
#[derive(Debug)]
pub struct GpuExecution<'d> {
    gpu: &'d mut Device,
    graph: Graph,
    module: Module,
    plan: Plan,
    schedule: Schedule,
    ctas: Option<u32>,
}

impl Graph {
    /// Prepares the graph for a GPU without an aggregator. `module` has its kernels, compiled with `FLOW_GPU`.
    pub fn execute_on_gpu<'d>(&self, gpu: &'d mut Device, module: &Module) -> Result<GpuExecution<'d>> {
        self.check()?;
        if let Some(chip) = gpu.chip().filter(|chip| chip.sm.divergence != Divergence::IndependentThreads) {
            let reason = format!(
                "lanes of its scheduler wait for each other, which takes independent threads; `{}` has a SIMT stack: \
                 take --chip h200, or an apu's aggregator",
                chip.name
            );
            return Err(FlowError::Misuse { graph: self.name.clone(), reason });
        }
        if let Some(stack) = self.stacks.iter().find(|stack| !stack.arrivals.is_empty()) {
            let reason = format!(
                "elements of channel `{}` come while it runs (`put_at`), which takes an aggregator; `put` them before",
                stack.name
            );
            return Err(FlowError::Misuse { graph: self.name.clone(), reason });
        }
        Ok(GpuExecution {
            gpu,
            graph: self.clone(),
            module: module.clone(),
            plan: Plan::new(self),
            schedule: Schedule::default(),
            ctas: None,
        })
    }
}

/// How a run on the device ended: `Status` in `persistent.cuh`.
const FINISHED: u32 = 1;
const STUCK: u32 = 2;

impl GpuExecution<'_> {
    pub fn schedule(mut self, schedule: Schedule) -> Self {
        self.schedule = schedule;
        self
    }

    /// Sets the CTAs of the persistent kernel, 8 warps each, at most as many as fit. One per SM is the default, and was
    /// best or close to it on an H200. The first warp is the scheduler, of the grid or of its CTA.
    pub fn ctas(mut self, ctas: u32) -> Self {
        self.ctas = Some(ctas);
        self
    }

    /// Runs the graph to its end. `prepare` sets the limits of each launch.
    pub fn wait(self, prepare: &dyn Fn(Launch) -> Launch) -> Result<GpuRun> {
        match self.schedule {
            Schedule::Persistent => self.run_persistent("flow_persistent", prepare),
            Schedule::PerSm => self.run_persistent("flow_per_sm", prepare),
            Schedule::Levels => levels::run(self, prepare),
        }
    }

    fn run_persistent(self, entry: &str, prepare: &dyn Fn(Launch) -> Launch) -> Result<GpuRun> {
        let kernel = self.module.kernel(entry).map_err(|_| no_program(&self.graph.name))?;
        let shared_bytes = Image::shared_bytes(&self.graph, &self.plan);
        let one = Launch::grid(1).block(THREADS).shared_bytes(shared_bytes);
        let fit = self.gpu.occupancy(&kernel, &one)?.ctas_per_sm;
        let fit = self.gpu.sms() * fit;
        let ctas = self.ctas.unwrap_or(self.gpu.sms()).clamp(1, fit.max(1));
        let image = Image::new(&self.graph, &self.plan, self.gpu, &self.module, ctas * (THREADS / LANES))?;
        let launch = Launch::grid(ctas).block(THREADS).shared_bytes(shared_bytes).cooperative();
        let launch = limited(prepare(launch));
        let begun = std::time::Instant::now();
        let report = self.gpu.launch(&kernel, launch, args![image.run()])?;
        let seconds = begun.elapsed().as_secs_f64();
        let end = image.end(self.gpu)?;
        if end.fault != 0 || !matches!(end.status, FINISHED | STUCK) {
            return Err(self.no_room(&image, end.fault)?);
        }
        if end.status == STUCK {
            return Err(self.stuck(&image)?);
        }
        self.audit(&image)?;
        let (elements, chunks, rounds) = (end.elements, end.chunks, end.rounds.into());
        Ok(GpuRun { launches: vec![report], elements, chunks, rounds, seconds })
    }

    /// Refuses the result of a run whose kernels did something else than the graph declares.
    fn audit(&self, image: &Image) -> Result<()> {
        let lives = Life::all(self.gpu, &image.placement)?;
        for (at, life) in lives.iter().enumerate() {
            let put = life.put(image.initial[at]);
            if put > 0 && self.plan.cells[at].feeders.is_empty() {
                let (channel, suspects) =
                    (&self.plan.names.channels[at], suspects(&self.graph, &self.plan, at));
                let reason = format!(
                    "{put} elements were put into {channel}, and {suspects} does not declare it; add `writes` or \
                     `spawns` to the graph"
                );
                return Err(FlowError::Misuse { graph: self.graph.name.clone(), reason });
            }
        }
        audit(&self.graph, &self.plan, &image.initial, &lives)
    }

    /// Why a kernel could not put into the channel that a fault names (0: the scheduler found it overfull).
    fn no_room(&self, image: &Image, fault: u64) -> Result<FlowError> {
        let address = image.faulty(fault);
        let graph = self.graph.name.clone();
        let names = &self.plan.names;
        if let Some(stack) = image.placement.ends.iter().position(|&end| end == address) {
            let writes = |kernel: &&crate::graph::Kernel| {
                kernel
                    .writes
                    .iter()
                    .any(|writes| writes.node.0 == stack && matches!(writes.level, Level::Next | Level::Any))
            };
            let kernels: Vec<&str> =
                self.graph.kernels.iter().filter(writes).map(|kernel| &*kernel.name).collect();
            let (name, levels) = &names.stacks[stack];
            let reason = format!(
                "kernel `{}` puts elements behind the last level of channel `{name}`, which has {levels}: give its \
                 recursion as many levels as this input needs",
                kernels.join("` or `")
            );
            return Ok(FlowError::Misuse { graph, reason });
        }
        let lives = Life::all(self.gpu, &image.placement)?;
        let overfull = |at: usize| lives[at].used() > image.placement.channels[at].shape.width;
        let channels = &image.placement.channels;
        let known = channels.iter().position(|channel| channel.descriptor == address);
        let at = known.or_else(|| (0..channels.len()).find(|&at| overfull(at)));
        let channel = at.map_or("a channel", |at| &*names.channels[at]);
        let mut kernels: Vec<&str> = at.map_or(Vec::new(), |at| {
            let feeders = self.plan.cells[at].feeders.iter();
            feeders.map(|&from| &*names.kernels[self.plan.cells[from].kernel]).collect()
        });
        kernels.dedup();
        let kernels = kernels.join("` or `");
        let reason = match at {
            Some(at) if fault & EXCESS != 0 && kernels.is_empty() => format!(
                "{} puts elements into {channel} and does not declare it; add `writes` or `spawns` to the graph",
                suspects(&self.graph, &self.plan, at)
            ),
            Some(at) if fault & EXCESS != 0 => too_many_at_once(&kernels, channel, self.plan.cells[at].most),
            _ => format!(
                "more elements were put into {channel} than kernel `{kernels}` declares: it is full; raise the bound \
                 of `writes` or `spawns`"
            ),
        };
        Ok(FlowError::Misuse { graph, reason })
    }

    /// Why nothing could be handed out though nothing was in flight.
    fn stuck(&self, image: &Image) -> Result<FlowError> {
        let lives = Life::all(self.gpu, &image.placement)?;
        let held = (0..lives.len()).filter(|&at| lives[at].used() > 0);
        let names: Vec<&str> = held.map(|at| &*self.plan.names.channels[at]).collect();
        Ok(FlowError::Stuck {
            graph: self.graph.name.clone(),
            reason: format!(
                "no room for what the elements of {} may produce; take wider channels",
                names.join(", ")
            ),
        })
    }
}

/// A launch that ends.
fn limited(mut launch: Launch) -> Launch {
    launch.time_limit.get_or_insert(TIME_LIMIT);
    launch
}

fn no_program(graph: &str) -> FlowError {
    FlowError::Device(Error::Misuse(format!(
        "the module of graph `{graph}` has no kernels for a GPU without an aggregator: end its source with FLOW_MAIN \
         and compile it with -DFLOW_GPU"
    )))
}
