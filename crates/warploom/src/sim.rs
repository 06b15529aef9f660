//! The simulated chip as a [`Backend`].

use std::any::Any;
use std::sync::Arc;
use std::time::{Duration, Instant};

use warploom_sim::gpu::Limits;
use warploom_sim::{
    Chip, Gpu, LaunchError, LoadedKernel, ModuleError, Occupancy, Shape, Stats, Unlaunchable,
};

use crate::backend::{Backend, LoadedModule};
use crate::error::{Error, Result};
use crate::kernel::{Kernel, KernelInfo};
use crate::launch::Launch;
use crate::report::{Model, Report, UninitialisedRead};

/// How a simulated device differs from the plain one.
#[derive(Clone, Debug, Default)]
pub struct SimOptions {
    /// Report reads of memory that nobody wrote ([`Report::uninitialised`]).
    pub check_uninitialised: bool,
}

/// A simulated chip.
#[derive(Debug)]
pub(crate) struct Sim {
    gpu: Gpu,
}

impl Sim {
    pub(crate) fn new(chip: Chip, options: SimOptions) -> Sim {
        Sim { gpu: Gpu::new(chip, options.check_uninitialised) }
    }
}

/// A module in the simulator's memory.
struct SimModule(warploom_sim::LoadedModule);

impl Backend for Sim {
    fn name(&self) -> &str {
        &self.gpu.chip().name
    }

    fn allocate(&mut self, bytes: u64, name: &str) -> Result<u64> {
        self.gpu.memory().allocate(bytes, 1, name).map_err(|e| Error::OutOfMemory(format!("{name}: {e}")))
    }

    fn allocate_zeroed(&mut self, bytes: u64, name: &str) -> Result<u64> {
        let address = self.allocate(bytes, name)?;
        // Fresh memory is zero already; it only has to count as written.
        self.gpu.memory().mark_written(address);
        Ok(address)
    }

    fn free(&mut self, address: u64) {
        self.gpu.memory().free(address);
    }

    fn read(&self, address: u64, into: &mut [u8]) -> Result<()> {
        let bytes =
            self.gpu.memory_ref().read(address, into.len()).ok_or_else(|| outside(address, into.len()))?;
        into.copy_from_slice(bytes);
        Ok(())
    }

    fn write(&mut self, address: u64, data: &[u8]) -> Result<()> {
        if self.gpu.memory().write(address, data) { Ok(()) } else { Err(outside(address, data.len())) }
    }

    fn load_ptx(&mut self, name: &str, text: &[u8]) -> Result<Arc<dyn LoadedModule>> {
        let module = warploom_ptx::load_bytes(name, text)?;
        Ok(Arc::new(SimModule(self.gpu.load(module)?)))
    }

    fn occupancy(&self, kernel: &Kernel, shape: Shape) -> Result<Occupancy> {
        self.gpu.occupancy(sim_kernel(kernel)?, shape).map_err(|e| unlaunchable(e, shape))
    }

    fn launch(&mut self, kernel: &Kernel, shape: Shape, launch: &Launch, params: &[u8]) -> Result<Report> {
        if launch.cooperative {
            let reason = "cooperative launches are not modelled".to_string();
            return Err(Error::Unlaunchable { reason, shape });
        }
        let occupancy = self.occupancy(kernel, shape)?;
        let limits = Limits {
            max_instructions: launch.max_instructions,
            interrupt: launch.interrupt.clone(),
            progress: launch.progress.clone(),
        };
        let start = Instant::now();
        let result = self.gpu.launch(sim_kernel(kernel)?, shape, params, &limits);
        let wall = start.elapsed();
        let report = |stats: Stats| report(self.gpu.chip(), kernel, shape, occupancy, stats, wall);
        match result {
            Ok(stats) => Ok(report(stats)),
            Err(LaunchError::Unlaunchable(e)) => Err(unlaunchable(e, shape)),
            Err(LaunchError::Fault { fault, stats }) => Err(Error::Fault {
                message: fault.to_string(),
                fault: Some(fault),
                report: Box::new(report(*stats)),
            }),
            Err(LaunchError::Hang { hang, stats }) => Err(Error::Hang {
                message: hang.to_string(),
                hang: Some(hang),
                report: Box::new(report(*stats)),
            }),
            Err(LaunchError::Interrupted { stats }) => {
                Err(Error::Interrupted { report: Box::new(report(*stats)) })
            }
        }
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
}

fn sim_kernel(kernel: &Kernel) -> Result<&LoadedKernel> {
    kernel
        .handle()
        .ok_or_else(|| Error::Misuse(format!("kernel `{}` is not one of a simulated chip", kernel.name())))
}

fn outside(address: u64, bytes: usize) -> Error {
    Error::Misuse(format!("{bytes} bytes at {address:#x} are not inside one allocation"))
}

fn unlaunchable(error: Unlaunchable, shape: Shape) -> Error {
    Error::Unlaunchable { reason: error.to_string(), shape }
}

impl From<ModuleError> for Error {
    fn from(error: ModuleError) -> Self {
        match error {
            ModuleError::NoKernel { name, known } => Error::NoKernel { name, known },
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
    Report {
        kernel: kernel.name().to_string(),
        chip: chip.name.clone(),
        model: Model::Functional,
        sched: None,
        bows: None,
        grid: shape.grid,
        block: shape.block,
        registers: occupancy.registers,
        shared_bytes: occupancy.shared_bytes,
        local_bytes: kernel.info().local_bytes,
        occupancy: Some(occupancy),
        cycles: warp_insts,
        ctas: stats.ctas,
        warps: stats.warps,
        warp_insts,
        thread_insts,
        ipc: None,
        simd_efficiency: ratio(thread_insts as f64, warp_insts as f64 * chip.sm.warp_lanes as f64),
        gpu_s: None,
        wall_s: wall.as_secs_f64(),
        warp_insts_per_s: ratio(warp_insts as f64, wall.as_secs_f64()),
        stalls: None,
        locks: None,
        sib: None,
        l1: None,
        l2: None,
        dram: None,
        energy_nj: None,
        output: stats.output,
        uninitialised: stats
            .uninitialised
            .into_iter()
            .map(|u| UninitialisedRead { message: u.message, count: u.count })
            .collect(),
    }
}
