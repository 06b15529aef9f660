//! The simulated chip as a [`Backend`].

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use warploom_sim::Limits;

use warploom_sim::sched::NamedPolicy;
use warploom_sim::texture::Object;
use warploom_sim::{
    Checks, Chip, Energy, Gpu, L1Stats, LaunchError, LoadedKernel, MakeObserver, ModuleError, Occupancy,
    OutsideLoads, Sample, Shape, SmStats, Stats, TimedStats, Timing, Trace, Unlaunchable,
};

use crate::backend::{Backend, LoadedModule};
use crate::error::{Error, Result};
use crate::estimate;
use crate::firmware::{FirmwareRun, Task};
use crate::kernel::{Kernel, KernelInfo};
use crate::launch::Launch;
use crate::plan::{Piece, Plan, PlanRun, Work};
use crate::report::{
    BackOff, Counters, Detection, LockWarning, Locks, Model, OutsideLoad, Race, RaceAccess, Report, SmReport,
    SpinBranches, UninitialisedRead, theoretical_occupancy,
};

/// Options of a simulated device ([`Device::sim_with`](crate::Device::sim_with)).
#[derive(Clone, Debug, Default)]
pub struct SimOptions {
    /// Report reads of memory that was never written ([`Report::uninitialised`]). Buffers then lie farther apart, so
    /// that an index far past one is a fault; that can change cycles.
    pub check_uninitialised: bool,
    /// Report accesses that race ([`Report::races`]). The timed model then runs on one host thread.
    pub check_races: bool,
    /// What loads outside of all allocations do.
    pub outside_loads: OutsideLoads,
    pub model: SimModel,
    /// Scheduler, BOWS, host threads, samples, profile and trace. Only the timed model uses it.
    pub timing: Timing,
}

/// How the simulator executes a launch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SimModel {
    /// Cycle by cycle: warps, caches, network and DRAM.
    #[default]
    Timing,
    /// Values only: warps run one after the other, as fast as the host can, and no cycle is modelled.
    Functional,
    /// Samples of CTAs and launches cycle by cycle; the rest has the right values and estimated cycles
    /// ([`Report::estimate`]). For large programs. No trace, profile, samples over time or observers.
    Fast,
}

/// The warp scheduling policies of the timed model: name and a line of description.
pub fn policies() -> Vec<(&'static str, &'static str)> {
    warploom_sim::sched::POLICIES.iter().map(|&(name, about, _)| (name, about)).collect()
}

#[derive(Debug)]
pub(crate) struct Sim {
    gpu: Gpu,
    model: warploom_sim::Model,
    /// How launches are timed that ask for it on a functional device.
    timing: Timing,
    /// Where the CTAs of cooperative launches synchronize; made by the first one.
    workspace: Option<u64>,
    /// Trace and samples of the last launch, until the host takes them.
    trace: Option<Trace>,
    samples: Vec<Sample>,
    planned: Planned,
}

/// A plan that pauses.
#[derive(Debug, Default)]
struct Planned {
    /// How many pieces it has.
    pieces: usize,
    /// The shape of one of its kernels.
    shape: Option<Shape>,
    /// The kernels that have not ended, by the number of their piece.
    kernels: BTreeMap<usize, (Kernel, Shape, Occupancy)>,
}

impl Sim {
    pub(crate) fn new(chip: Chip, options: SimOptions) -> Sim {
        let timing = options.timing.clone();
        let model = match options.model {
            SimModel::Timing => warploom_sim::Model::Timed(options.timing),
            SimModel::Functional => warploom_sim::Model::Functional,
            SimModel::Fast => warploom_sim::Model::Fast(options.timing),
        };
        let checks = Checks {
            uninitialised: options.check_uninitialised,
            races: options.check_races,
            outside_loads: options.outside_loads,
        };
        let gpu = Gpu::new(chip, checks);
        Sim {
            gpu,
            model,
            timing,
            workspace: None,
            trace: None,
            samples: Vec::new(),
            planned: Planned::default(),
        }
    }

    /// The workspace of a cooperative launch, as it is before its first barrier. Refuses a grid whose CTAs are not all
    /// resident at once.
    fn workspace(&mut self, shape: Shape, occupancy: Occupancy) -> Result<u64> {
        let ctas = shape.ctas();
        let resident = occupancy.wave(self.gpu.chip());
        if ctas > resident {
            let reason =
                format!("a cooperative launch of {ctas} CTAs, of which {resident} are resident at once");
            return Err(Error::Unlaunchable { reason, shape });
        }
        let address = match self.workspace {
            Some(address) => address,
            None => self.allocate(WORKSPACE_BYTES as u64, "the workspace of cooperative launches")?,
        };
        self.workspace = Some(address);
        self.write(address, &[0; WORKSPACE_BYTES])?;
        Ok(address)
    }

    /// How launches are timed, for what only the timed model does.
    fn timing(&mut self, what: &str) -> Result<&mut Timing> {
        match &mut self.model {
            warploom_sim::Model::Timed(timing) => Ok(timing),
            warploom_sim::Model::Functional | warploom_sim::Model::Fast(_) => {
                Err(Error::Misuse(format!("{what} in the timed model only (SimOptions::model)")))
            }
        }
    }

    /// How kernels run together that firmware or a plan starts. The fast model times all of them.
    fn timing_together(&self, what: &str) -> Result<&Timing> {
        match &self.model {
            warploom_sim::Model::Timed(timing) | warploom_sim::Model::Fast(timing) => Ok(timing),
            warploom_sim::Model::Functional => Err(Error::Misuse(format!("only the timed model {what}"))),
        }
    }
}

/// Holds the barrier of cooperative groups: its size and one word of state.
const WORKSPACE_BYTES: usize = 64;

struct SimModule(warploom_sim::LoadedModule);

impl Backend for Sim {
    fn name(&self) -> &str {
        &self.gpu.chip().name
    }

    fn chip(&self) -> Option<&Chip> {
        Some(self.gpu.chip())
    }

    fn allocate(&mut self, bytes: u64, name: &str) -> Result<u64> {
        self.gpu.memory().allocate(bytes, 1, name).map_err(|e| Error::OutOfMemory(format!("{name}: {e}")))
    }

    fn allocate_zeroed(&mut self, bytes: u64, name: &str) -> Result<u64> {
        let address = self.allocate(bytes, name)?;
        // Fresh memory is zero already. It only has to count as written for `check_uninitialised`.
        self.gpu.mark_written(address, bytes);
        Ok(address)
    }

    fn name_part(&mut self, address: u64, bytes: u64, name: &str) {
        self.gpu.memory().name_part(address, bytes, name);
    }

    fn free(&mut self, address: u64) -> Result<()> {
        let memory = self.gpu.memory();
        if memory.free(address) {
            return Ok(());
        }
        let place = memory.name(address).map(|(name, offset)| format!("byte {offset} of {name}"));
        let place = place.unwrap_or_else(|| memory.describe(address, 1));
        Err(Error::Misuse(format!("no allocation begins at {address:#x}: {place}")))
    }

    fn create_texture(&mut self, object: Object) -> Result<u64> {
        check_texture(&self.gpu, &object)?;
        Ok(self.gpu.textures().create(object))
    }

    fn destroy_texture(&mut self, handle: u64) -> Result<()> {
        match self.gpu.textures().destroy(handle) {
            true => Ok(()),
            false => Err(Error::Misuse(format!("handle {handle:#x} names no texture, surface or sampler"))),
        }
    }

    fn bind_texture(&mut self, address: u64, object: Option<Object>) -> Result<()> {
        if let Some(object) = &object {
            check_texture(&self.gpu, object)?;
        }
        self.gpu.textures().bind(address, object);
        Ok(())
    }

    fn read(&self, address: u64, into: &mut [u8]) -> Result<()> {
        let bytes = self.gpu.memory_ref().read(address, into.len());
        let bytes = bytes.ok_or_else(|| outside(&self.gpu, address, into.len()))?;
        into.copy_from_slice(bytes);
        Ok(())
    }

    fn write(&mut self, address: u64, data: &[u8]) -> Result<()> {
        if self.gpu.write(address, data) { Ok(()) } else { Err(outside(&self.gpu, address, data.len())) }
    }

    fn load_ptx(&mut self, name: &str, text: &[u8]) -> Result<Arc<dyn LoadedModule>> {
        let module = warploom_ptx::load_bytes(name, text)?;
        Ok(Arc::new(SimModule(self.gpu.load(module)?)))
    }

    fn allocate_at(&mut self, address: u64, bytes: u64, name: &str) -> Result<()> {
        let placed = self.gpu.memory().allocate_at(address, bytes, name);
        placed.map_err(|e| Error::OutOfMemory(format!("{name}: {e}")))?;
        self.gpu.mark_written(address, bytes);
        Ok(())
    }

    fn load_ptx_placed(
        &mut self,
        name: &str,
        text: &[u8],
        placed: &[(&str, u64)],
    ) -> Result<Arc<dyn LoadedModule>> {
        let module = warploom_ptx::load_bytes(name, text)?;
        Ok(Arc::new(SimModule(self.gpu.load_placed(module, placed)?)))
    }

    fn load_sass(&mut self, name: &str, text: &[u8]) -> Result<Arc<dyn LoadedModule>> {
        let module = warploom_sass::load_bytes(name, text)?;
        Ok(Arc::new(SimModule(self.gpu.load(module)?)))
    }

    fn sms(&self) -> u32 {
        self.gpu.chip().sm.count
    }

    fn occupancy(&self, kernel: &Kernel, shape: Shape) -> Result<Occupancy> {
        self.gpu.occupancy(sim_kernel(kernel)?, shape).map_err(|e| unlaunchable(e, shape))
    }

    fn launch(&mut self, kernel: &Kernel, shape: Shape, launch: &Launch, params: &[u8]) -> Result<Report> {
        let occupancy = self.occupancy(kernel, shape)?;
        let workspace = if launch.cooperative { self.workspace(shape, occupancy)? } else { 0 };
        let limits = Limits {
            max_cycles: launch.max_cycles,
            interrupt: launch.interrupt.clone(),
            progress: launch.progress.clone(),
        };
        (self.trace, self.samples) = (None, Vec::new());
        let start = Instant::now();
        let model = match launch.model {
            None => &self.model,
            Some(SimModel::Functional) => &warploom_sim::Model::Functional,
            Some(SimModel::Timing) => &warploom_sim::Model::Timed(self.timing.clone()),
            Some(SimModel::Fast) => &warploom_sim::Model::Fast(self.timing.clone()),
        };
        let result = self.gpu.launch(model, sim_kernel(kernel)?, shape, params, &limits, workspace);
        let wall = start.elapsed();
        let report = |mut stats: Stats| {
            if let Some(timed) = &mut stats.timed {
                self.trace = stats.trace.take();
                self.samples = std::mem::take(&mut timed.samples);
            }
            report(self.gpu.chip(), kernel, shape, occupancy, stats, wall)
        };
        outcome(result, shape, report)
    }

    fn run_firmware(&mut self, run: FirmwareRun<'_>) -> Result<Report> {
        let FirmwareRun { tasks, limits, firmware } = run;
        let timing = &self.timing_together("runs firmware")?.clone();
        let shapes = tasks.iter().map(Task::shape);
        let mut kernels = Vec::new();
        for (task, shape) in tasks.iter().zip(shapes) {
            kernels.push((sim_kernel(task.kernel())?.clone(), shape));
        }
        let Some((task, &(_, shape))) = tasks.first().zip(kernels.first()) else {
            return Err(Error::Misuse("firmware has no kernel to start".to_string()));
        };
        let occupancy = self.occupancy(task.kernel(), shape)?;
        (self.trace, self.samples) = (None, Vec::new());
        let start = Instant::now();
        let result = self.gpu.run_firmware(timing, &kernels, &limits, firmware);
        let wall = start.elapsed();
        let report = |mut stats: Stats| {
            if let Some(timed) = &mut stats.timed {
                self.trace = stats.trace.take();
                self.samples = std::mem::take(&mut timed.samples);
            }
            let mut report = report(self.gpu.chip(), task.kernel(), shape, occupancy, stats, wall);
            // Several kernels ran, each with its own occupancy.
            report.kernel = "firmware".to_string();
            (report.occupancy, report.theoretical_occupancy) = (None, None);
            report
        };
        outcome(result, shape, report)
    }

    fn run_plan(&mut self, plan: Plan) -> Result<PlanRun> {
        let timing = &self.timing_together("runs kernels together")?.clone();
        let before = self.planned.pieces;
        if plan.before != before {
            return Err(Error::Misuse(match before {
                0 => "no plan pauses to which there could be more".to_string(),
                _ => format!("a plan of {before} pieces pauses: go on with `Plan::more({before})`"),
            }));
        }
        let mut added = BTreeMap::new();
        let mut pieces = Vec::new();
        for (at, Piece { after, not_before, work }) in plan.pieces.into_iter().enumerate() {
            let work = match work {
                Work::Copy { cycles, moves } => warploom_sim::plan::Work::Copy { cycles, moves },
                Work::Kernel { kernel, shape, priority, params } => {
                    let loaded = sim_kernel(&kernel)?.clone();
                    let occupancy = self.gpu.occupancy(&loaded, shape).map_err(|e| unlaunchable(e, shape))?;
                    added.insert(before + at, (kernel, shape, occupancy));
                    let planned =
                        warploom_sim::plan::PlannedKernel { kernel: loaded, shape, priority, params };
                    warploom_sim::plan::Work::Kernel(planned)
                }
            };
            pieces.push(warploom_sim::plan::Piece { after, not_before, work });
        }
        let added_shape = added.values().map(|&(_, shape, _)| shape).next();
        let Some(shape) = self.planned.shape.or(added_shape) else {
            return Err(Error::Misuse("a plan needs a kernel".to_string()));
        };
        let count = before + pieces.len();
        let limits = Limits { max_cycles: plan.max_cycles, interrupt: plan.interrupt, progress: None };
        (self.trace, self.samples) = (None, Vec::new());
        let start = Instant::now();
        let run = self.gpu.run_plan(timing, pieces, plan.most_kernels, &plan.until, &limits);
        let run = run.map_err(|e| unlaunchable(e, shape))?;
        let wall = start.elapsed() / run.kernels.len().max(1) as u32;
        self.planned.kernels.append(&mut added);
        let mut kernels = Vec::new();
        for (piece, result) in run.kernels {
            let Some((kernel, shape, occupancy)) = self.planned.kernels.remove(&piece) else { continue };
            let report = |stats| report(self.gpu.chip(), &kernel, shape, occupancy, stats, wall);
            kernels.push((piece, outcome(result, shape, report)));
        }
        match run.is_over {
            true => self.planned = Planned::default(),
            false => (self.planned.pieces, self.planned.shape) = (count, Some(shape)),
        }
        Ok(PlanRun { times: run.times, kernels, is_over: run.is_over })
    }

    fn add_policy(&mut self, policy: NamedPolicy) -> Result<()> {
        let timing = self.timing("warps are scheduled")?;
        timing.policy = Some(policy.name.clone());
        self.gpu.add_policy(policy);
        Ok(())
    }

    fn add_observer(&mut self, make: MakeObserver) -> Result<()> {
        self.timing("SMs are observed")?;
        self.gpu.add_observer(make);
        Ok(())
    }

    fn take_trace(&mut self) -> Option<Trace> {
        self.trace.take()
    }

    fn take_samples(&mut self) -> Vec<Sample> {
        std::mem::take(&mut self.samples)
    }
}

impl LoadedModule for SimModule {
    fn kernel_names(&self) -> Vec<String> {
        self.0.kernel_names()
    }

    fn kernel(&self, name: &str) -> Result<(KernelInfo, Arc<dyn Any + Send + Sync>)> {
        let loaded = self.0.kernel(name)?;
        let kernel = &loaded.kernel;
        let info = KernelInfo {
            name: kernel.name.clone(),
            params: kernel.params.clone(),
            param_bytes: kernel.param_bytes,
            address_bits: kernel.address_bits,
            registers: kernel.registers,
            static_shared_bytes: kernel.static_shared_bytes,
            local_bytes: kernel.local_bytes,
            bounds: kernel.bounds.clone(),
        };
        Ok((info, Arc::new(loaded)))
    }

    fn global(&self, name: &str) -> Option<(u64, u64)> {
        self.0.global(name)
    }

    fn dialect(&self) -> String {
        self.0.module().dialect.clone()
    }

    fn constant(&self, name: &str) -> Option<(u64, u64)> {
        self.0.constant(name)
    }

    fn read_constants(&self, offset: u64, bytes: usize) -> Option<Vec<u8>> {
        self.0.read_constants(offset, bytes)
    }

    fn write_constants(&self, offset: u64, data: &[u8]) -> bool {
        self.0.write_constants(offset, data)
    }
}

/// A texture or surface must have an extent, and memory that holds it.
fn check_texture(gpu: &Gpu, object: &Object) -> Result<()> {
    let (Object::Texture(image, _) | Object::Surface(image)) = object else { return Ok(()) };
    let what = object.name();
    if let Some(problem) = image.problem() {
        return Err(Error::Misuse(format!("this {what} {problem}")));
    }
    let bytes = usize::try_from(image.bytes()).unwrap_or(usize::MAX);
    match gpu.memory_ref().read(image.address, bytes) {
        Some(_) => Ok(()),
        None => Err(outside(gpu, image.address, bytes)),
    }
}

fn sim_kernel(kernel: &Kernel) -> Result<&LoadedKernel> {
    kernel
        .handle()
        .ok_or_else(|| Error::Misuse(format!("kernel `{}` is not one of a simulated chip", kernel.name())))
}

/// Turns the simulator's result into the host's: errors carry the report of what ran until then.
fn outcome(
    result: std::result::Result<Stats, LaunchError>,
    shape: Shape,
    report: impl FnOnce(Stats) -> Report,
) -> Result<Report> {
    match result {
        Ok(stats) => Ok(report(stats)),
        Err(LaunchError::Unlaunchable(e)) => Err(unlaunchable(e, shape)),
        Err(LaunchError::Fault { fault, stats }) => Err(Error::Fault {
            message: fault.to_string(),
            fault: Some(fault),
            report: Box::new(report(*stats)),
        }),
        Err(LaunchError::Hang { hang, stats }) => {
            Err(Error::Hang { message: hang.to_string(), hang: Some(hang), report: Box::new(report(*stats)) })
        }
        Err(LaunchError::Firmware { message, stats }) => {
            Err(Error::Firmware { message, report: Box::new(report(*stats)) })
        }
        Err(LaunchError::Beside { kernel, stats }) => {
            let message = format!("ended because kernel `{kernel}`, beside it or before it, failed");
            Err(Error::Beside { message, report: Box::new(report(*stats)) })
        }
        Err(LaunchError::Interrupted { state, stats }) => {
            Err(Error::Interrupted { state: Some(state), report: Box::new(report(*stats)) })
        }
    }
}

fn outside(gpu: &Gpu, address: u64, bytes: usize) -> Error {
    let place = gpu.memory_ref().describe(address, bytes as u64);
    Error::Misuse(format!("{bytes} bytes at {address:#x} are not inside one allocation: {place}"))
}

fn unlaunchable(error: Unlaunchable, shape: Shape) -> Error {
    Error::Unlaunchable { reason: error.to_string(), shape }
}

impl From<ModuleError> for Error {
    fn from(error: ModuleError) -> Self {
        match error {
            ModuleError::NoKernel { name, known } => Error::NoKernel { name, known },
            ModuleError::NotModelled(error) => Error::Load(error),
            ModuleError::Memory(e) => Error::OutOfMemory(e.to_string()),
            other => Error::Link(other.to_string()),
        }
    }
}

fn report(
    chip: &Chip,
    kernel: &Kernel,
    shape: Shape,
    occupancy: Occupancy,
    stats: Stats,
    wall: Duration,
) -> Report {
    let ratio = |a: f64, b: f64| if b > 0.0 { a / b } else { 0.0 };
    let (warp_insts, thread_insts) = (stats.warp_instructions, stats.thread_instructions);
    let mut report = Report {
        kernel: kernel.name().to_string(),
        chip: chip.name.clone(),
        model: Model::Functional,
        grid: shape.grid,
        block: shape.block,
        registers: occupancy.registers,
        shared_bytes: occupancy.shared_bytes,
        local_bytes: kernel.info().local_bytes,
        occupancy: Some(occupancy),
        theoretical_occupancy: Some(theoretical_occupancy(&occupancy)),
        cycles: warp_insts,
        ctas: stats.ctas,
        warps: stats.warps,
        warp_insts,
        thread_insts,
        simd_efficiency: ratio(thread_insts as f64, warp_insts as f64 * chip.sm.warp_lanes as f64),
        active_threads_per_warp: ratio(thread_insts as f64, warp_insts as f64),
        wall_s: wall.as_secs_f64(),
        warp_insts_per_s: ratio(warp_insts as f64, wall.as_secs_f64()),
        output: stats.output,
        uninitialised: stats
            .uninitialised
            .into_iter()
            .map(|u| UninitialisedRead { message: u.message, count: u.count })
            .collect(),
        races: stats.races.into_iter().map(race).collect(),
        lock_warnings: stats
            .lock_warnings
            .into_iter()
            .map(|w| LockWarning { message: w.message, count: w.count })
            .collect(),
        outside_loads: stats
            .outside_loads
            .into_iter()
            .map(|load| OutsideLoad { message: load.message, place: load.place, count: load.count })
            .collect(),
        profile: stats.profile,
        ..Report::default()
    };
    if let Some(timed) = stats.timed {
        add_timing(&mut report, chip, &timed);
        if let Some(estimate) = stats.estimate {
            add_estimate(&mut report, chip, &timed, estimate);
        }
    }
    report
}

/// Makes the figures of the timed part those of the whole launch.
fn add_estimate(report: &mut Report, chip: &Chip, timed: &TimedStats, estimate: warploom_sim::Estimate) {
    report.model = Model::Fast;
    let share = |whole: u64, part: u64| whole as f64 / part.max(1) as f64;
    let work = share(report.warp_insts, timed.total.warp_instructions());
    set_cycles(report, chip, estimate.cycles);
    if estimate.timed_warp_instructions < report.warp_insts {
        estimate::scale(report, work, share(estimate.cycles, timed.cycles));
    }
    report.estimate = Some(estimate.into());
}

fn set_cycles(report: &mut Report, chip: &Chip, cycles: u64) {
    report.cycles = cycles;
    report.ipc = Some(if cycles > 0 { report.warp_insts as f64 / cycles as f64 } else { 0.0 });
    report.kernel_s = Some(cycles as f64 / (chip.clock.core_mhz as f64 * 1e6));
}

fn race(race: warploom_sim::Race) -> Race {
    let message = race.to_string();
    let accesses = race.accesses.map(|access| RaceAccess {
        kind: access.kind,
        cta: access.cta,
        thread: access.thread,
        line: access.place.short(),
    });
    Race { message, memory: race.memory, offset: race.offset, bytes: race.bytes, accesses, count: race.count }
}

/// The report of an SM without work. On a large chip, a small launch leaves most SMs alone.
static IDLE: LazyLock<Arc<SmReport>> =
    LazyLock::new(|| Arc::new(of_sm(&SmStats::default(), &L1Stats::default())));

fn of_sm(sm: &SmStats, l1: &L1Stats) -> SmReport {
    SmReport {
        ctas: sm.ctas,
        warp_insts: sm.warp_instructions(),
        thread_insts: sm.thread_instructions,
        warp_cycles: sm.warp_cycles,
        stalls: sm.stalls().into_iter().collect(),
        classes: sm.classes().collect(),
        l1: l1.named().collect(),
        stalled_on_aggregator: sm.stalled_on_aggregator,
    }
}

/// Fills in what only the timed model knows.
fn add_timing(report: &mut Report, chip: &Chip, timed: &TimedStats) {
    let locks = &timed.locks;
    report.model = Model::Timing;
    report.sched = Some(timed.policy.clone());
    report.bows = Some(timed.bows.is_some());
    set_cycles(report, chip, timed.cycles);
    let possible = chip.peak_dram_bytes_per_cycle() * timed.cycles as f64;
    report.dram_utilisation = Some(if possible > 0.0 { timed.dram.bytes as f64 / possible } else { 0.0 });
    report.launch_overhead_ns = Some(chip.launch.overhead_ns as u64);
    report.warp_cycles = Some(timed.total.warp_cycles);
    report.stalls = Some(timed.total.stalls().into_iter().collect());
    report.classes = Some(timed.total.classes().collect());
    report.locks = Some(Locks {
        acquired: locks.acquired,
        failed_intra: locks.failed_intra,
        failed_inter: locks.failed_inter,
        wait_ok: locks.wait_ok,
        wait_fail: locks.wait_fail,
        queued: locks.queued,
        granted: locks.granted,
        not_queued: locks.not_queued,
        bits_explicit: timed.lock_bits[0],
        bits_implicit: timed.lock_bits[1],
    });
    report.sib = Some(SpinBranches::default());
    if let Some(bows) = &timed.bows {
        let found = &bows.detection;
        report.sib = Some(SpinBranches { detected: found.suspected, confirmed: found.confirmed });
        report.back_off = Some(BackOff {
            count: bows.back_offs.count,
            warp_cycles: bows.back_offs.warp_cycles,
            longest_limit_cycles: bows.back_offs.longest_limit,
        });
        report.ddos = bows.by_ddos.then(|| Detection {
            tsdr: found.spinning.rate(),
            fsdr: found.others.rate(),
            dpr_true: found.spinning.phase_ratio(),
            dpr_false: found.others.phase_ratio(),
            true_met: found.spinning.met,
            true_confirmed: found.spinning.confirmed,
            false_met: found.others.met,
            false_confirmed: found.others.confirmed,
        });
    }
    report.l1 = Some(timed.l1.named().collect());
    report.l2 = Some(timed.l2.named().collect());
    report.dram = Some(timed.dram.named().collect());
    let mut network = Counters::new();
    for (name, value) in timed.requests.named() {
        network.insert(name, value);
    }
    for (name, value) in timed.replies.named() {
        *network.entry(name).or_default() += value;
    }
    report.interconnect = Some(network);
    report.coherence = timed.coherence.as_ref().map(|directory| directory.named().collect());
    report.aggregator = timed.aggregator.as_ref().map(|aggregator| aggregator.named().collect());
    // The energy of what several kernels did at a time is nobody's alone.
    report.energy_nj = timed.beside.is_none().then(|| Energy::of(chip, timed).named().collect());
    report.beside = timed.beside;
    let (no_warps, no_accesses) = (SmStats::default(), L1Stats::default());
    let of_sms = timed.sms.iter().map(|(sm, l1)| match (sm, l1) {
        (sm, l1) if *sm == no_warps && *l1 == no_accesses => IDLE.clone(),
        (sm, l1) => Arc::new(of_sm(sm, l1)),
    });
    report.sms = Some(of_sms.collect());
    let busy_sms = timed.sms.iter().filter(|(sm, _)| sm.ctas > 0).count() as f64;
    let slots = timed.cycles as f64 * busy_sms * f64::from(chip.sm.max_warps);
    report.achieved_occupancy = (slots > 0.0).then(|| timed.total.warp_cycles as f64 / slots);
}
