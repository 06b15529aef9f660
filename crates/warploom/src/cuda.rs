//! A real NVIDIA GPU as a [`Backend`]: in this process, or in a child process that survives faults.

use std::any::Any;
use std::collections::BTreeMap;
use std::process::Command;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use warploom_cuda::{ChildGpu, CudaError, CudaKernel, CudaModule, DeviceInfo, Driver, Gpu, LaunchOptions};
use warploom_isa::Param;
use warploom_ptx::resolved::{self, RegTy};
use warploom_sim::{Limiter, Occupancy, Shape};

use crate::backend::{Backend, LoadedModule};
use crate::error::{Error, Result};
use crate::kernel::{Kernel, KernelInfo};
use crate::launch::Launch;
use crate::report::{Model, Report, theoretical_occupancy};

/// A GPU, shared with its modules: they ask the driver for kernels.
#[derive(Clone, Debug)]
pub(crate) struct Cuda {
    gpu: Arc<Mutex<dyn Driver>>,
    info: DeviceInfo,
    name: String,
    /// Sizes of the buffers, by address.
    buffers: BTreeMap<u64, u64>,
    /// Seconds between the events around an empty kernel, once measured: on an idle GPU and on a busy one.
    overhead_s: [Option<f64>; 2],
}

/// Launches of an empty kernel that are timed.
const EMPTY_LAUNCHES: usize = 31;

const EMPTY: &str = ".version 6.0\n.target sm_50\n.address_size 64\n.visible .entry empty() { ret; }\n";

impl Cuda {
    /// Opens a GPU in this process.
    pub(crate) fn new(ordinal: usize, jit_level: Option<u32>) -> Result<Cuda> {
        let mut gpu = Gpu::new(ordinal)?;
        jit_level.into_iter().for_each(|level| gpu.set_jit_level(level));
        Ok(Cuda::over(gpu))
    }

    /// Opens a GPU in a child process started by `command`.
    pub(crate) fn in_child(ordinal: usize, jit_level: Option<u32>, command: Command) -> Result<Cuda> {
        Ok(Cuda::over(ChildGpu::new(ordinal, jit_level, command)?))
    }

    fn over(gpu: impl Driver + 'static) -> Cuda {
        let info = gpu.info().clone();
        let name = info.name.clone();
        Cuda { gpu: Arc::new(Mutex::new(gpu)), name, info, buffers: BTreeMap::new(), overhead_s: [None; 2] }
    }

    fn gpu(&self) -> MutexGuard<'_, dyn Driver + 'static> {
        // A panic elsewhere does not harm the GPU's state, which the driver keeps.
        self.gpu.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A module on the GPU. The resolved text has the parameter types that the driver does not report.
struct CudaText {
    cuda: Cuda,
    module: CudaModule,
    text: resolved::Module,
}

impl From<CudaError> for Error {
    fn from(error: CudaError) -> Error {
        match error {
            CudaError::OutOfMemory { .. } => Error::OutOfMemory(error.to_string()),
            CudaError::Jit { .. } => Error::Link(error.to_string()),
            other => Error::Cuda(other),
        }
    }
}

impl Backend for Cuda {
    fn name(&self) -> &str {
        &self.name
    }

    fn is_real(&self) -> bool {
        true
    }

    fn is_lost(&self) -> bool {
        self.gpu().is_lost()
    }

    fn is_renewed(&mut self) -> bool {
        self.gpu().is_renewed()
    }

    fn allocate(&mut self, bytes: u64, name: &str) -> Result<u64> {
        let address = self.gpu().allocate(bytes).map_err(|error| match error {
            CudaError::OutOfMemory { .. } => Error::OutOfMemory(format!("{name}: {error}")),
            other => other.into(),
        })?;
        self.buffers.insert(address, bytes);
        Ok(address)
    }

    fn allocate_zeroed(&mut self, bytes: u64, name: &str) -> Result<u64> {
        let address = self.allocate(bytes, name)?;
        self.gpu().clear(address, bytes)?;
        Ok(address)
    }

    fn free(&mut self, address: u64) -> Result<()> {
        self.buffers.remove(&address);
        Ok(self.gpu().free(address)?)
    }

    fn read(&self, address: u64, into: &mut [u8]) -> Result<()> {
        Ok(self.gpu().read(address, into)?)
    }

    fn write(&mut self, address: u64, data: &[u8]) -> Result<()> {
        Ok(self.gpu().write(address, data)?)
    }

    fn load_ptx(&mut self, name: &str, text: &[u8]) -> Result<Arc<dyn LoadedModule>> {
        let source = warploom_ptx::text_of(name, text)?;
        let resolved = warploom_ptx::resolve_text(name, source)?;
        refuse(name, &self.info, &resolved)?;
        let module = self.gpu().load(name, source)?;
        Ok(Arc::new(CudaText { cuda: self.clone(), module, text: resolved }))
    }

    fn load_sass(&mut self, name: &str, _: &[u8]) -> Result<Arc<dyn LoadedModule>> {
        Err(Error::Misuse(format!(
            "`{name}`: a listing cannot run on a real GPU, whose driver takes PTX; run it on a simulated chip"
        )))
    }

    fn sms(&self) -> u32 {
        self.info.sms
    }

    fn occupancy(&self, kernel: &Kernel, shape: Shape) -> Result<Occupancy> {
        let handle = cuda_kernel(kernel)?;
        let threads = shape.block.iter().product::<u32>();
        let ctas_per_sm = self.gpu().ctas_per_sm(handle, threads, shape.dynamic_shared_bytes)?;
        let shared_bytes = handle.static_shared_bytes + shape.dynamic_shared_bytes;
        let info = &self.info;
        let warps_per_cta = threads.div_ceil(info.warp_lanes);
        let limited_by = [
            (info.max_ctas_per_sm, Limiter::Ctas),
            (info.max_threads_per_sm / (warps_per_cta * info.warp_lanes).max(1), Limiter::Warps),
            (info.shared_bytes_per_sm.checked_div(shared_bytes).unwrap_or(u32::MAX), Limiter::SharedMemory),
        ];
        let limited_by = limited_by
            .into_iter()
            .find(|&(ctas, _)| ctas == ctas_per_sm)
            .map_or(Limiter::Registers, |(_, limiter)| limiter);
        let max_warps_per_sm = info.max_threads_per_sm / info.warp_lanes;
        Ok(Occupancy {
            ctas_per_sm,
            warps_per_cta,
            max_warps_per_sm,
            shared_bytes,
            registers: handle.registers,
            limited_by,
        })
    }

    fn launch(&mut self, kernel: &Kernel, shape: Shape, launch: &Launch, params: &[u8]) -> Result<Report> {
        let occupancy = self.occupancy(kernel, shape)?;
        let options = LaunchOptions {
            grid: shape.grid,
            block: shape.block,
            dynamic_shared_bytes: shape.dynamic_shared_bytes,
            cluster: shape.cluster,
            cooperative: launch.cooperative,
            time_limit: launch.time_limit,
            behind_busy: launch.repeat > 0,
        };
        let overhead_s = self.overhead(options.behind_busy)?;
        let begun = Instant::now();
        let result = self.time(cuda_kernel(kernel)?, &options, params, launch.repeat);
        let mut report = self.report(kernel, shape, occupancy);
        report.wall_s = begun.elapsed().as_secs_f64();
        match result {
            Ok(mut seconds) => {
                seconds.sort_by(f64::total_cmp);
                let (least, median) = (seconds[0], seconds[seconds.len() / 2]);
                let kernel_s = (median - overhead_s).max(0.0);
                report.cycles = (kernel_s * self.info.clock_mhz as f64 * 1e6).round() as u64;
                (report.gpu_s, report.gpu_least_s, report.kernel_s) =
                    (Some(median), Some(least), Some(kernel_s));
                report.launch_overhead_ns = Some((overhead_s * 1e9) as u64);
                Ok(report)
            }
            Err(error @ CudaError::Fault { .. }) => {
                Err(Error::Fault { message: error.to_string(), fault: None, report: Box::new(report) })
            }
            Err(error @ CudaError::TimeLimit { .. }) => {
                Err(Error::Hang { message: error.to_string(), hang: None, report: Box::new(report) })
            }
            Err(other) => Err(other.into()),
        }
    }
}

impl Cuda {
    /// Launches a kernel and returns its times in seconds: one, or `repeat` after a launch to warm up, each with the
    /// buffers as they were before.
    fn time(
        &self,
        kernel: &CudaKernel,
        options: &LaunchOptions,
        params: &[u8],
        repeat: u32,
    ) -> Result<Vec<f64>, CudaError> {
        let mut gpu = self.gpu();
        if repeat == 0 {
            return Ok(vec![gpu.launch(kernel, options, params)?.seconds]);
        }
        let mut saved = Vec::new();
        for (&address, &bytes) in &self.buffers {
            let mut contents = vec![0; bytes as usize];
            gpu.read(address, &mut contents)?;
            saved.push((address, contents));
        }
        gpu.launch(kernel, options, params)?;
        let mut times = Vec::new();
        for _ in 0..repeat {
            for (address, contents) in &saved {
                gpu.write(*address, contents)?;
            }
            times.push(gpu.launch(kernel, options, params)?.seconds);
        }
        Ok(times)
    }

    /// Seconds between the events around an empty kernel: what a launch takes besides its kernel.
    fn overhead(&mut self, behind_busy: bool) -> Result<f64, CudaError> {
        if let Some(seconds) = self.overhead_s[usize::from(behind_busy)] {
            return Ok(seconds);
        }
        let mut gpu = self.gpu();
        let module = gpu.load("empty", EMPTY)?;
        let Some(kernel) = gpu.kernel(module, "empty")? else { return Ok(0.0) };
        let options = LaunchOptions {
            grid: [1; 3],
            block: [1; 3],
            dynamic_shared_bytes: 0,
            cluster: None,
            cooperative: false,
            time_limit: None,
            behind_busy,
        };
        let mut times = Vec::new();
        for _ in 0..EMPTY_LAUNCHES {
            times.push(gpu.launch(&kernel, &options, &[])?.seconds);
        }
        drop(gpu);
        times.sort_by(f64::total_cmp);
        self.overhead_s[usize::from(behind_busy)] = Some(times[times.len() / 2]);
        Ok(times[times.len() / 2])
    }

    /// What the hardware reports; every other field stays empty.
    fn report(&self, kernel: &Kernel, shape: Shape, occupancy: Occupancy) -> Report {
        let ctas = shape.grid.iter().map(|&d| d as u64).product::<u64>();
        Report {
            kernel: kernel.name().to_string(),
            chip: self.name.clone(),
            model: Model::Hardware,
            grid: shape.grid,
            block: shape.block,
            registers: occupancy.registers,
            shared_bytes: occupancy.shared_bytes,
            local_bytes: kernel.info().local_bytes,
            occupancy: Some(occupancy),
            theoretical_occupancy: Some(theoretical_occupancy(&occupancy)),
            ctas,
            warps: ctas * occupancy.warps_per_cta as u64,
            ..Report::default()
        }
    }
}

impl LoadedModule for CudaText {
    fn kernel_names(&self) -> Vec<String> {
        let kernels = self.text.functions.iter().filter(|f| f.is_kernel && f.body.is_some());
        kernels.map(|f| f.name.clone()).collect()
    }

    fn kernel(&self, name: &str) -> Result<(KernelInfo, Arc<dyn Any + Send + Sync>)> {
        let no_kernel = || Error::NoKernel { name: name.to_string(), known: self.kernel_names() };
        let function =
            self.text.functions.iter().find(|f| f.is_kernel && f.name == name).ok_or_else(no_kernel)?;
        let handle = self.cuda.gpu().kernel(self.module, name)?.ok_or_else(no_kernel)?;
        let (params, param_bytes) = parameters(&function.params);
        let info = KernelInfo {
            name: name.to_string(),
            params,
            param_bytes,
            address_bits: self.text.address_bits,
            registers: handle.registers,
            static_shared_bytes: handle.static_shared_bytes,
            local_bytes: handle.local_bytes,
            bounds: function.bounds.clone(),
        };
        Ok((info, Arc::new(handle)))
    }

    fn global(&self, name: &str) -> Option<(u64, u64)> {
        self.cuda.gpu().global(self.module, name)
    }

    fn dialect(&self) -> String {
        let (major, minor) = self.text.version;
        format!("PTX {major}.{minor}, {}", self.text.target)
    }
}

/// Refuses what the driver would refuse too, with a better message.
fn refuse(name: &str, gpu: &DeviceInfo, text: &resolved::Module) -> Result<()> {
    let instructions = text.functions.iter().filter_map(|f| f.body.as_ref()).flat_map(|b| &b.insts);
    if let Some(own) = instructions.into_iter().find(|i| i.opcode.first().is_some_and(|w| w.text == "wl")) {
        let (line, _) = text.source.line_col(own.span.start);
        let instruction = own.opcode.iter().map(|w| w.text.as_str()).collect::<Vec<_>>().join(".");
        return Err(Error::Link(format!(
            "{name}:{line}: `{instruction}` needs lock bits; real GPUs since Maxwell have none"
        )));
    }
    let (major, minor) = gpu.compute_capability;
    let target = text
        .target
        .strip_prefix("sm_")
        .and_then(|t| t.trim_end_matches(char::is_alphabetic).parse::<u32>().ok());
    match target {
        Some(target) if target > 10 * major + minor => Err(Error::Link(format!(
            "`{name}` is compiled for {}, but {} is sm_{major}{minor}: compile it for an older target",
            text.target, gpu.name
        ))),
        _ => Ok(()),
    }
}

/// The parameters with their offsets in the parameter buffer, and its size.
fn parameters(formals: &[resolved::Formal]) -> (Vec<Param>, u32) {
    let (offsets, bytes) = warploom_isa::layout_params(formals.iter().map(|f| (f.bytes, f.align)));
    let params = formals.iter().zip(offsets).map(|(formal, offset)| Param {
        name: formal.name.clone(),
        ty: match formal.ty {
            RegTy::Scalar(ty) => ty,
            RegTy::Pred | RegTy::B128 => warploom_isa::Ty::B8,
        },
        bytes: formal.bytes,
        align: formal.align,
        offset,
        pointer: formal.pointer,
    });
    (params.collect(), bytes)
}

fn cuda_kernel(kernel: &Kernel) -> Result<&CudaKernel> {
    kernel
        .handle()
        .ok_or_else(|| Error::Misuse(format!("kernel `{}` is not one of a real GPU", kernel.name())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(target: &str, body: &str) -> Option<String> {
        let gpu = DeviceInfo {
            ordinal: 0,
            name: "NVIDIA H200".to_string(),
            compute_capability: (9, 0),
            driver_version: (13, 0),
            sms: 132,
            warp_lanes: 32,
            clock_mhz: 1980,
            memory_bytes: 1 << 37,
            l2_bytes: 60 << 20,
            max_threads_per_cta: 1024,
            max_threads_per_sm: 2048,
            max_ctas_per_sm: 32,
            max_shared_bytes_per_cta: 232_448,
            shared_bytes_per_sm: 233_472,
            registers_per_sm: 65_536,
            cooperative: true,
        };
        let text = format!(
            ".version 8.0\n.target {target}\n.address_size 64\n.entry k() {{\n.reg .b32 %r<4>;\n{body}\nret; }}"
        );
        let module = warploom_ptx::resolve_text("k.ptx", &text).unwrap();
        refuse("k.ptx", &gpu, &module).err().map(|error| error.to_string())
    }

    #[test]
    fn lock_bits_are_not_for_real_gpus() {
        let message = refusal("sm_70", "wl.ldslk.b32 %r1, [%r2];").unwrap();
        assert_eq!(message, "k.ptx:6: `wl.ldslk.b32` needs lock bits; real GPUs since Maxwell have none");
        assert_eq!(refusal("sm_70", "add.u32 %r1, %r1, %r2;"), None);
    }

    #[test]
    fn targets_must_not_be_newer_than_the_gpu() {
        let message = refusal("sm_100a", "").unwrap();
        let expected =
            "`k.ptx` is compiled for sm_100a, but NVIDIA H200 is sm_90: compile it for an older target";
        assert_eq!(message, expected);
        assert_eq!(refusal("sm_90a", ""), None);
    }
}
