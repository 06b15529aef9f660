//! One GPU in this process: memory, modules, launches.

use std::ffi::{CString, c_void};
use std::ptr;
use std::time::{Duration, Instant};

use cudarc::driver::result::{self, DriverError, ctx, device, event, function, occupancy, primary_ctx};
use cudarc::driver::sys::{self, CUfunction_attribute as FunctionAttribute, CUresult};

use crate::driver::{CudaError, failed, words};
use crate::info::{DeviceInfo, devices};
use crate::{CudaKernel, CudaModule, Driver, LaunchOptions, LaunchTime};

/// How much of the log of the driver's compiler is kept.
const LOG_BYTES: usize = 1 << 16;

const MAX_JIT_LEVEL: u32 = 4;

/// A kernel that takes 100 microseconds: longer than the host takes to submit a launch.
const BUSY: &str = "
.version 6.0
.target sm_50
.address_size 64
.visible .entry busy()
{
    .reg .u64 %now, %end;
    .reg .pred %p;
    mov.u64 %end, %globaltimer;
    add.u64 %end, %end, 100000;
LOOP:
    mov.u64 %now, %globaltimer;
    setp.lt.u64 %p, %now, %end;
    @%p bra LOOP;
    ret;
}
";

/// A GPU with its primary context.
#[derive(Debug)]
pub struct Gpu {
    info: DeviceInfo,
    device: sys::CUdevice,
    context: sys::CUcontext,
    /// Handles, indexed by the ids in [`CudaModule`] and [`CudaKernel`]. All are unloaded with the context.
    modules: Vec<sys::CUmodule>,
    kernels: Vec<sys::CUfunction>,
    /// Optimization level of the driver's compiler, 0 to 4. Not passed unless set, because with any level the
    /// driver refuses debug information.
    jit_level: Option<u32>,
    /// The kernel that keeps the GPU busy, once loaded.
    busy: Option<sys::CUfunction>,
    /// Why the process can no longer use the GPU. Most calls would block forever or repeat the error.
    lost: Option<CudaError>,
}

// SAFETY: a CUDA context may be used from any thread that makes it current, which every method does first.
unsafe impl Send for Gpu {}

impl Gpu {
    /// Opens the GPU with this number.
    pub fn new(ordinal: usize) -> Result<Gpu, CudaError> {
        let all = devices()?;
        let count = all.len();
        let info = all.into_iter().nth(ordinal).ok_or(CudaError::NoDevice { ordinal, count })?;
        let device = device::get(ordinal as i32).map_err(failed("opening the GPU"))?;
        // SAFETY: `device` comes from `device::get`.
        let context = unsafe { primary_ctx::retain(device) }.map_err(failed("making a context"))?;
        Ok(Gpu {
            info,
            device,
            context,
            modules: Vec::new(),
            kernels: Vec::new(),
            jit_level: None,
            busy: None,
            lost: None,
        })
    }

    /// Sets the optimization level of the driver's compiler for modules loaded from now on: 0 (none) to 4 (the
    /// default).
    pub fn set_jit_level(&mut self, level: u32) {
        self.jit_level = Some(level.min(MAX_JIT_LEVEL));
    }

    /// Makes the context current on this thread, or fails if the GPU is lost.
    fn enter(&self) -> Result<(), CudaError> {
        if let Some(lost) = &self.lost {
            return Err(lost.clone());
        }
        // SAFETY: the context is retained while `self` lives.
        unsafe { ctx::set_current(self.context) }.map_err(failed("using the GPU's context"))
    }

    fn handle(&self, kernel: &CudaKernel) -> Result<sys::CUfunction, CudaError> {
        let unknown = || failed("using a kernel")(DriverError(CUresult::CUDA_ERROR_INVALID_HANDLE));
        self.kernels.get(kernel.id as usize).copied().ok_or_else(unknown)
    }

    fn run(
        &mut self,
        kernel: &CudaKernel,
        options: &LaunchOptions,
        params: &[u8],
        start: sys::CUevent,
        end: sys::CUevent,
    ) -> Result<LaunchTime, CudaError> {
        let (handle, launching) = (self.handle(kernel)?, failed("launching the kernel"));
        let stream = result::stream::null();
        if options.behind_busy {
            self.keep_busy(stream)?;
        }
        // SAFETY: events and stream belong to the current context; the launch call copies `params`, which outlives it.
        unsafe { event::record(start, stream) }.map_err(&launching)?;
        unsafe { self.submit(handle, options, params, stream) }.map_err(&launching)?;
        unsafe { event::record(end, stream) }.map_err(&launching)?;
        if let Err(error) = self.wait(end, options.time_limit) {
            let kernel = kernel.name.clone();
            let (how, error) = match error {
                Waited::TooLong(seconds) => {
                    ("did not end", CudaError::TimeLimit { kernel: kernel.clone(), seconds })
                }
                Waited::Failed(error) => {
                    ("faulted", CudaError::Fault { kernel: kernel.clone(), reason: words(error) })
                }
            };
            self.lost = Some(CudaError::Lost { kernel, how: how.to_string() });
            return Err(error);
        }
        // SAFETY: both events were recorded and have completed.
        let milliseconds = unsafe { event::elapsed(start, end) }.map_err(failed("reading the time"))?;
        Ok(LaunchTime { seconds: milliseconds as f64 / 1000.0 })
    }

    /// Enqueues a kernel that spins for a while.
    fn keep_busy(&mut self, stream: sys::CUstream) -> Result<(), CudaError> {
        let busy = match self.busy {
            Some(busy) => busy,
            None => {
                let module = self.load("busy", BUSY)?;
                let unknown = || failed("using a kernel")(DriverError(CUresult::CUDA_ERROR_NOT_FOUND));
                let kernel = self.kernel(module, "busy")?.ok_or_else(unknown)?;
                let busy = self.handle(&kernel)?;
                self.busy = Some(busy);
                busy
            }
        };
        let one = LaunchOptions {
            grid: [1; 3],
            block: [1; 3],
            dynamic_shared_bytes: 0,
            cluster: None,
            cooperative: false,
            time_limit: None,
            behind_busy: false,
        };
        // SAFETY: the kernel was loaded in the current context, which owns the stream.
        unsafe { self.submit(busy, &one, &[], stream) }.map_err(failed("launching a kernel"))
    }

    /// Enqueues the kernel on the stream.
    ///
    /// # Safety
    /// The kernel's module must be loaded in the current context, which must own `stream`.
    unsafe fn submit(
        &self,
        kernel: sys::CUfunction,
        options: &LaunchOptions,
        params: &[u8],
        stream: sys::CUstream,
    ) -> Result<(), DriverError> {
        // CU_LAUNCH_PARAM_BUFFER_POINTER, CU_LAUNCH_PARAM_BUFFER_SIZE and CU_LAUNCH_PARAM_END of the driver's header.
        let mut size = params.len();
        let mut extra: [*mut c_void; 5] = [
            ptr::without_provenance_mut(1),
            params.as_ptr().cast_mut().cast(),
            ptr::without_provenance_mut(2),
            (&raw mut size).cast(),
            ptr::null_mut(),
        ];
        let [gx, gy, gz] = options.grid;
        let [bx, by, bz] = options.block;
        let attribute = sys::CUlaunchAttribute_st {
            id: sys::CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_COOPERATIVE,
            value: sys::CUlaunchAttributeValue { cooperative: options.cooperative as i32 },
            ..unsafe { std::mem::zeroed() }
        };
        let [cx, cy, cz] = options.cluster.unwrap_or([1; 3]);
        let dimensions = sys::CUlaunchAttributeValue_union__bindgen_ty_1 { x: cx, y: cy, z: cz };
        let cluster = sys::CUlaunchAttribute_st {
            id: sys::CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
            value: sys::CUlaunchAttributeValue { clusterDim: dimensions },
            ..attribute
        };
        let mut attributes = [attribute, cluster];
        let config = sys::CUlaunchConfig {
            gridDimX: gx,
            gridDimY: gy,
            gridDimZ: gz,
            blockDimX: bx,
            blockDimY: by,
            blockDimZ: bz,
            sharedMemBytes: options.dynamic_shared_bytes,
            hStream: stream,
            attrs: attributes.as_mut_ptr(),
            numAttrs: 1 + u32::from(options.cluster.is_some()),
        };
        // SAFETY: the configuration and the parameter buffer live until the call returns.
        unsafe { sys::cuLaunchKernelEx(&config, kernel, ptr::null_mut(), extra.as_mut_ptr()) }.result()
    }

    fn wait(&self, end: sys::CUevent, limit: Option<Duration>) -> Result<(), Waited> {
        let Some(limit) = limit else {
            // SAFETY: the event was recorded.
            return unsafe { event::synchronize(end) }.map_err(Waited::Failed);
        };
        let begun = Instant::now();
        loop {
            // SAFETY: the event was recorded.
            match unsafe { event::query(end) } {
                Ok(()) => return Ok(()),
                Err(DriverError(CUresult::CUDA_ERROR_NOT_READY)) if begun.elapsed() < limit => {
                    // Short kernels end within microseconds, so poll often at first.
                    let pause = (begun.elapsed() / 16).min(Duration::from_millis(1));
                    std::thread::sleep(pause);
                }
                Err(DriverError(CUresult::CUDA_ERROR_NOT_READY)) => {
                    return Err(Waited::TooLong(limit.as_secs()));
                }
                Err(error) => return Err(Waited::Failed(error)),
            }
        }
    }

    /// Opts a kernel in to more than 48 kB of shared memory, if it needs that.
    fn allow_shared(&self, kernel: &CudaKernel, dynamic: u32) -> Result<(), CudaError> {
        if kernel.static_shared_bytes + dynamic <= 48 << 10 {
            return Ok(());
        }
        let attribute = FunctionAttribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        // SAFETY: the kernel's module is loaded in this context.
        unsafe { function::set_function_attribute(self.handle(kernel)?, attribute, dynamic as i32) }
            .map_err(failed("asking for more than 48 kB of shared memory"))
    }
}

/// Why waiting for a kernel failed.
enum Waited {
    TooLong(u64),
    Failed(DriverError),
}

impl Driver for Gpu {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn is_lost(&self) -> bool {
        self.lost.is_some()
    }

    fn allocate(&mut self, bytes: u64) -> Result<u64, CudaError> {
        self.enter()?;
        // The driver refuses 0 bytes, but an empty buffer still needs a distinct address.
        // SAFETY: the result is only used as an address.
        let allocated = unsafe { result::malloc_sync(bytes.max(1) as usize) };
        allocated.map_err(|error| match error.0 {
            CUresult::CUDA_ERROR_OUT_OF_MEMORY => {
                let (free, total) = result::mem_get_info().unwrap_or((0, 0));
                CudaError::OutOfMemory { asked: bytes, free: free as u64, total: total as u64 }
            }
            _ => failed("allocating memory")(error),
        })
    }

    fn free(&mut self, address: u64) -> Result<(), CudaError> {
        self.enter()?;
        // SAFETY: the driver checks the address.
        unsafe { result::free_sync(address) }.map_err(failed("freeing memory"))
    }

    fn clear(&mut self, address: u64, bytes: u64) -> Result<(), CudaError> {
        self.enter()?;
        if bytes == 0 {
            return Ok(());
        }
        // SAFETY: the driver checks the range.
        unsafe { result::memset_d8_sync(address, 0, bytes as usize) }.map_err(failed("clearing memory"))
    }

    fn read(&mut self, address: u64, into: &mut [u8]) -> Result<(), CudaError> {
        self.enter()?;
        if into.is_empty() {
            return Ok(());
        }
        // SAFETY: the driver checks the device range; the host range is `into`.
        unsafe { result::memcpy_dtoh_sync(into, address) }.map_err(failed("copying from the GPU"))
    }

    fn write(&mut self, address: u64, data: &[u8]) -> Result<(), CudaError> {
        self.enter()?;
        if data.is_empty() {
            return Ok(());
        }
        // SAFETY: the driver checks the device range; the host range is `data`.
        unsafe { result::memcpy_htod_sync(address, data) }.map_err(failed("copying to the GPU"))
    }

    fn load(&mut self, name: &str, ptx: &str) -> Result<CudaModule, CudaError> {
        self.enter()?;
        let jit = |reason: String, log: String| CudaError::Jit { name: name.to_string(), reason, log };
        let text = CString::new(ptx.trim_end_matches('\0'))
            .map_err(|_| jit("the text has a zero byte".to_string(), String::new()))?;
        let mut log = vec![0u8; LOG_BYTES];
        let mut options = [
            sys::CUjit_option::CU_JIT_ERROR_LOG_BUFFER,
            sys::CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
            sys::CUjit_option::CU_JIT_OPTIMIZATION_LEVEL,
        ];
        // The driver takes some numbers in place of pointers.
        let mut values: [*mut c_void; 3] = [
            log.as_mut_ptr().cast(),
            ptr::without_provenance_mut(LOG_BYTES),
            ptr::without_provenance_mut(self.jit_level.unwrap_or(MAX_JIT_LEVEL) as usize),
        ];
        let count = if self.jit_level.is_some() { 3 } else { 2 };
        let mut handle = ptr::null_mut();
        // SAFETY: the text ends with a zero byte; the options describe `log`, which outlives the call.
        let loaded = unsafe {
            sys::cuModuleLoadDataEx(
                &mut handle,
                text.as_ptr().cast(),
                count,
                options.as_mut_ptr(),
                values.as_mut_ptr(),
            )
        };
        loaded.result().map_err(|error| {
            let end = log.iter().position(|&b| b == 0).unwrap_or(LOG_BYTES);
            jit(words(error), String::from_utf8_lossy(&log[..end]).into_owned())
        })?;
        self.modules.push(handle);
        Ok(CudaModule { id: self.modules.len() as u32 - 1 })
    }

    fn kernel(&mut self, module: CudaModule, name: &str) -> Result<Option<CudaKernel>, CudaError> {
        self.enter()?;
        let (Ok(c_name), Some(&module)) = (CString::new(name), self.modules.get(module.id as usize)) else {
            return Ok(None);
        };
        // SAFETY: the module is loaded in this context.
        let handle = match unsafe { result::module::get_function(module, c_name) } {
            Ok(handle) => handle,
            Err(DriverError(CUresult::CUDA_ERROR_NOT_FOUND)) => return Ok(None),
            Err(error) => return Err(failed("looking for a kernel")(error)),
        };
        // SAFETY: `handle` is a function of a loaded module.
        let attribute = |which| {
            let value = unsafe { function::get_function_attribute(handle, which) };
            value.map(|v| v as u32).map_err(failed("asking for a kernel's properties"))
        };
        self.kernels.push(handle);
        Ok(Some(CudaKernel {
            id: self.kernels.len() as u32 - 1,
            name: name.to_string(),
            registers: attribute(FunctionAttribute::CU_FUNC_ATTRIBUTE_NUM_REGS)?,
            static_shared_bytes: attribute(FunctionAttribute::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)?,
            local_bytes: attribute(FunctionAttribute::CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES)?,
        }))
    }

    fn global(&mut self, module: CudaModule, name: &str) -> Option<(u64, u64)> {
        self.enter().ok()?;
        let module = *self.modules.get(module.id as usize)?;
        // SAFETY: the module is loaded in this context.
        let found = unsafe { result::module::get_global(module, CString::new(name).ok()?) };
        found.ok().map(|(address, bytes)| (address, bytes as u64))
    }

    fn ctas_per_sm(
        &mut self,
        kernel: &CudaKernel,
        threads: u32,
        dynamic_shared: u32,
    ) -> Result<u32, CudaError> {
        self.enter()?;
        let handle = self.handle(kernel)?;
        self.allow_shared(kernel, dynamic_shared)?;
        // SAFETY: the kernel's module is loaded in this context.
        let ctas = unsafe {
            occupancy::max_active_block_per_multiprocessor(handle, threads as i32, dynamic_shared as usize)
        };
        ctas.map(|c| c as u32).map_err(failed("asking for the occupancy"))
    }

    fn launch(
        &mut self,
        kernel: &CudaKernel,
        options: &LaunchOptions,
        params: &[u8],
    ) -> Result<LaunchTime, CudaError> {
        self.enter()?;
        self.allow_shared(kernel, options.dynamic_shared_bytes)?;
        let events = failed("making an event");
        let flags = sys::CUevent_flags::CU_EVENT_DEFAULT;
        let (start, end) = (event::create(flags).map_err(&events)?, event::create(flags).map_err(&events)?);
        let ran = self.run(kernel, options, params, start, end);
        if !self.is_lost() {
            for event in [start, end] {
                // SAFETY: created above and not used elsewhere. A failure can be ignored.
                let _ = unsafe { event::destroy(event) };
            }
        }
        ran
    }
}

impl Drop for Gpu {
    fn drop(&mut self) {
        if !self.is_lost() {
            // SAFETY: retained in `new`. A failure can be ignored.
            let _ = unsafe { primary_ctx::release(self.device) };
        }
    }
}
