//! The device: what a host program talks to. Everything else in this crate is made by one or passed to one.

use std::borrow::Borrow;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use bytemuck::Pod;
use warploom_sim::observe::Observer;
use warploom_sim::sched::{NamedPolicy, Policy};
use warploom_sim::texture::Object;
use warploom_sim::{Chip, Occupancy, Sample, Shape, Trace};

use crate::args::{Arg, pack};
use crate::backend::Backend;
use crate::buffer::{Buffer, Dropped};
#[cfg(feature = "cuda")]
use crate::cuda::Cuda;
use crate::error::{Error, Result};
use crate::firmware::{Agg, Firmware, FirmwareRun};
use crate::kernel::{Kernel, Module};
use crate::launch::Launch;
use crate::plan::{Plan, PlanRun, Work};
use crate::report::Report;
use crate::sim::{Sim, SimOptions};

/// A GPU: its memory, the modules loaded on it, and its launches.
///
/// Buffers, modules and kernels belong to the device that made them; another device refuses them with
/// [`Error::Misuse`]. Launches run to their end before [`Device::launch`] returns.
#[derive(Debug)]
pub struct Device {
    backend: Box<dyn Backend>,
    /// Identifies the device to its buffers, modules and kernels. A real GPU gets a new id when a fault costs
    /// it all memory and modules.
    id: u64,
    /// Ids before each loss of memory and modules, for a better message.
    lost_ids: Vec<u64>,
    /// Number of buffers made so far, for their default names.
    buffers: u64,
    dropped: Dropped,
}

impl Device {
    /// A simulated chip with default options: a built-in one by name (`gtx480`), or a chip file by path.
    pub fn sim(chip: &str) -> Result<Device> {
        Ok(Device::sim_with(Chip::load(chip, &[])?, SimOptions::default()))
    }

    /// A simulated chip with options. [`Chip::load`] reads a chip and overrides some of its values.
    ///
    /// ```
    /// use warploom::{Chip, Device, SimOptions};
    ///
    /// # fn main() -> Result<(), warploom::Error> {
    /// let chip = Chip::load("gtx480", &["sm.count=1".to_string()])?;
    /// let gpu = Device::sim_with(chip, SimOptions { check_uninitialised: true, ..SimOptions::default() });
    /// assert_eq!(gpu.name(), "gtx480");
    /// # Ok(())
    /// # }
    /// ```
    pub fn sim_with(chip: Chip, options: SimOptions) -> Device {
        Device::with_backend(Box::new(Sim::new(chip, options)))
    }

    /// A real NVIDIA GPU; 0 is the driver's first. Fails if there is no driver or no such GPU. Needs the cargo
    /// feature `cuda`, which is on by default.
    ///
    /// The driver runs in this process. A kernel that faults or hangs therefore makes the GPU unusable until
    /// the process ends ([`Device::is_lost`]); [`Device::cuda_in_child`] avoids that.
    #[cfg(feature = "cuda")]
    pub fn cuda(ordinal: usize) -> Result<Device> {
        Ok(Device::with_backend(Box::new(Cuda::new(ordinal, None)?)))
    }

    /// Like [`Device::cuda`], with the optimization level of the driver's compiler: 0 (none) to 4 (the default).
    #[cfg(feature = "cuda")]
    pub fn cuda_optimised(ordinal: usize, jit_level: u32) -> Result<Device> {
        Ok(Device::with_backend(Box::new(Cuda::new(ordinal, Some(jit_level))?)))
    }

    /// A real NVIDIA GPU in a child process, which survives kernels that fault or hang: the device goes on with
    /// a new process and a new context. Buffers and modules of the old context are lost and refused by name.
    ///
    /// `command` starts the process, which must call [`serve_cuda`](crate::serve_cuda) and nothing else.
    /// `jit_level` is as for [`Device::cuda_optimised`].
    #[cfg(feature = "cuda")]
    pub fn cuda_in_child(
        ordinal: usize,
        jit_level: Option<u32>,
        command: std::process::Command,
    ) -> Result<Device> {
        Ok(Device::with_backend(Box::new(Cuda::in_child(ordinal, jit_level, command)?)))
    }

    /// The device with a warp scheduling policy of one's own, which its launches use from now on. `make` makes the
    /// policy of one scheduler; every scheduler of every SM has its own. BOWS wraps it like any other
    /// ([`Timing::bows`](crate::Timing::bows)). `name` is for reports and messages; it may be that of a built-in
    /// policy, which it then replaces.
    ///
    /// Refused by hardware and by the functional model, which schedule no warps.
    ///
    /// ```
    /// use warploom::Device;
    /// use warploom::sched::{Cycle, Issue, Policy, SlotSet, WarpSlot};
    ///
    /// /// Always the lowest slot.
    /// struct Lowest;
    ///
    /// impl Policy for Lowest {
    ///     fn pick(&mut self, _now: Cycle, ready: SlotSet) -> Option<WarpSlot> {
    ///         ready.first()
    ///     }
    ///     fn started(&mut self, _now: Cycle, _slot: WarpSlot, _age: u64) {}
    ///     fn ended(&mut self, _now: Cycle, _slot: WarpSlot) {}
    ///     fn issued(&mut self, _now: Cycle, _issue: &Issue) {}
    /// }
    ///
    /// # fn main() -> Result<(), warploom::Error> {
    /// let gpu = Device::sim("gtx480")?.with_policy("lowest", |_chip| Box::new(Lowest))?;
    /// # drop(gpu);
    /// # Ok(())
    /// # }
    /// ```
    pub fn with_policy(
        mut self,
        name: &str,
        make: impl Fn(&Chip) -> Box<dyn Policy> + Send + Sync + 'static,
    ) -> Result<Device> {
        self.backend.add_policy(NamedPolicy { name: name.to_string(), make: Arc::new(make) })?;
        Ok(self)
    }

    /// The device with observers: `make` makes one for each SM of every launch, by the SM's number. An observer is
    /// told what the warps of its SM do ([`observe::Observer`](crate::observe::Observer)), and changes nothing. It is
    /// dropped when the launch has ended, so it leaves what it found where its maker finds it: in a channel, or
    /// behind a lock.
    ///
    /// Refused by hardware and by the functional model.
    pub fn with_observer(
        mut self,
        make: impl Fn(u32) -> Box<dyn Observer> + Send + Sync + 'static,
    ) -> Result<Device> {
        self.backend.add_observer(Arc::new(make))?;
        Ok(self)
    }

    /// Whether this is hardware and not a simulated chip.
    pub fn is_real(&self) -> bool {
        self.backend.is_real()
    }

    /// The simulated chip; `None` for hardware.
    pub fn chip(&self) -> Option<&Chip> {
        self.backend.chip()
    }

    /// Whether a fault or hang made the device useless for the rest of the process, because CUDA gives a process no
    /// second context after either. A simulated chip is never lost, nor is a GPU in a child (`Device::cuda_in_child`).
    pub fn is_lost(&self) -> bool {
        self.backend.is_lost()
    }

    fn with_backend(backend: Box<dyn Backend>) -> Device {
        Device { backend, id: next_id(), lost_ids: Vec::new(), buffers: 0, dropped: Dropped::default() }
    }

    /// The chip's name (`gtx480`), or the driver's name for the GPU.
    pub fn name(&self) -> &str {
        self.backend.name()
    }

    /// Loads PTX text. Messages call it `<ptx>`; [`Device::load_ptx_named`] gives it a name.
    pub fn load_ptx(&mut self, text: &str) -> Result<Module> {
        self.load_ptx_named("<ptx>", text)
    }

    /// Loads PTX, as text or as the bytes of a file. Messages call it `name`, usually its path.
    pub fn load_ptx_named(&mut self, name: &str, text: impl AsRef<[u8]>) -> Result<Module> {
        let inner = self.backend.load_ptx(name, text.as_ref())?;
        Ok(Module { device: self.id, inner })
    }

    /// Like [`Device::load_ptx_named`], with the addresses of some global variables chosen by the host: those of
    /// managed variables, which host and device share. Simulated chips only.
    pub fn load_ptx_placed(
        &mut self,
        name: &str,
        text: impl AsRef<[u8]>,
        placed: &[(&str, u64)],
    ) -> Result<Module> {
        let inner = self.backend.load_ptx_placed(name, text.as_ref(), placed)?;
        Ok(Module { device: self.id, inner })
    }

    /// Loads a SASS listing (`docs/sass.md`) on a simulated chip. Messages call it `<sass>`;
    /// [`Device::load_sass_named`] gives it a name.
    ///
    /// ```
    /// use warploom::{Device, Launch, args};
    ///
    /// # fn main() -> Result<(), warploom::Error> {
    /// let mut gpu = Device::sim("gtx480")?;
    /// let text = ".kernel lanes
    ///     .param out u64
    ///     S2R R0, SR_LaneId;
    ///     LDC.64 R2, c[0x0][out];
    ///     IMAD.WIDE.U32 R2, R0, 0x4, R2;
    ///     STG.E [R2], R0;
    ///     EXIT;";
    /// let kernel = gpu.load_sass(text)?.kernel("lanes")?;
    /// let out = gpu.zeros::<u32>(32)?;
    /// gpu.launch(&kernel, Launch::grid(1).block(32), args![&out])?;
    /// assert_eq!(out.read(&gpu)?[5], 5);
    /// # Ok(())
    /// # }
    /// ```
    pub fn load_sass(&mut self, text: &str) -> Result<Module> {
        self.load_sass_named("<sass>", text)
    }

    /// Loads a SASS listing, as text or as the bytes of a file. Messages call it `name`, usually its path.
    pub fn load_sass_named(&mut self, name: &str, text: impl AsRef<[u8]>) -> Result<Module> {
        let inner = self.backend.load_sass(name, text.as_ref())?;
        Ok(Module { device: self.id, inner })
    }

    /// Makes a buffer with a copy of `data`. Messages call it `buffer 0`, `buffer 1` … in order of creation.
    pub fn buffer<T: Pod>(&mut self, data: &[T]) -> Result<Buffer<T>> {
        let name = self.next_name();
        self.buffer_named(&name, data)
    }

    /// Like [`Device::buffer`], with a name for messages.
    pub fn buffer_named<T: Pod>(&mut self, name: &str, data: &[T]) -> Result<Buffer<T>> {
        let buffer = self.uninit_named(name, data.len())?;
        buffer.write(self, data)?;
        Ok(buffer)
    }

    /// Makes a buffer of `len` zeros.
    pub fn zeros<T: Pod>(&mut self, len: usize) -> Result<Buffer<T>> {
        let name = self.next_name();
        self.zeros_named(&name, len)
    }

    /// Like [`Device::zeros`], with a name for messages.
    pub fn zeros_named<T: Pod>(&mut self, name: &str, len: usize) -> Result<Buffer<T>> {
        self.free_dropped();
        let address = self.backend.allocate_zeroed(bytes_of::<T>(len)?, name)?;
        Ok(self.own(address, len))
    }

    /// Makes a buffer of `len` elements without writing them. A simulated chip can report kernels that read
    /// them anyway ([`SimOptions::check_uninitialised`]).
    pub fn uninit<T: Pod>(&mut self, len: usize) -> Result<Buffer<T>> {
        let name = self.next_name();
        self.uninit_named(&name, len)
    }

    /// Like [`Device::uninit`], with a name for messages.
    pub fn uninit_named<T: Pod>(&mut self, name: &str, len: usize) -> Result<Buffer<T>> {
        self.free_dropped();
        let address = self.backend.allocate(bytes_of::<T>(len)?, name)?;
        Ok(self.own(address, len))
    }

    /// Takes `bytes` zero bytes at an address that the host has chosen. They must not touch another allocation, and
    /// live until [`Device::free`]. Simulated chips only.
    pub fn allocate_at(&mut self, address: u64, bytes: u64, name: &str) -> Result<()> {
        self.free_dropped();
        self.backend.allocate_at(address, bytes, name)
    }

    /// Takes `bytes` bytes without writing them, and returns their address: for a host that keeps addresses and no
    /// [`Buffer`]. They live until [`Device::free`].
    pub fn allocate(&mut self, bytes: u64, name: &str) -> Result<u64> {
        self.free_dropped();
        self.backend.allocate(bytes, name)
    }

    /// Gives back what [`Device::allocate`] or [`Device::allocate_at`] took. The address of anything else, such as one
    /// that was freed before, is refused.
    pub fn free(&mut self, address: u64) -> Result<()> {
        self.backend.free(address)
    }

    /// Makes a texture, surface or sampler of device memory and returns its handle, a kernel's parameter of 64 bits.
    /// The memory must live as long. Simulated chips only.
    pub fn create_texture(&mut self, object: Object) -> Result<u64> {
        self.backend.create_texture(object)
    }

    /// The handle names nothing any more: kernels that use it fault.
    pub fn destroy_texture(&mut self, handle: u64) -> Result<()> {
        self.backend.destroy_texture(handle)
    }

    /// Binds the texture, surface or sampler reference whose variable is at `address` ([`Module::global`]), or unbinds
    /// it.
    pub fn bind_texture(&mut self, address: u64, object: Option<Object>) -> Result<()> {
        self.backend.bind_texture(address, object)
    }

    /// Copies bytes from a device address to the host. They must lie inside one allocation, such as a module's
    /// [global](Module::global).
    pub fn read_bytes(&self, address: u64, len: usize) -> Result<Vec<u8>> {
        let dropped = self.dropped.lock().ok();
        let is_dropped = |&(base, bytes): &(u64, u64)| address.wrapping_sub(base) < bytes;
        if dropped.is_some_and(|dropped| dropped.iter().any(is_dropped)) {
            return Err(Error::Misuse(format!(
                "{len} bytes at {address:#x} are of a buffer that was dropped"
            )));
        }
        let mut data = vec![0; len];
        self.backend.read(address, &mut data)?;
        Ok(data)
    }

    /// Copies bytes from the host to a device address. They must lie inside one allocation, such as a module's
    /// [global](Module::global).
    pub fn write_bytes(&mut self, address: u64, data: &[u8]) -> Result<()> {
        self.free_dropped();
        self.backend.write(address, data)
    }

    /// Number of SMs. Times [`Occupancy::ctas_per_sm`] it is the number of CTAs that can be resident together,
    /// and so wait for each other.
    pub fn sms(&self) -> u32 {
        self.backend.sms()
    }

    /// How many CTAs of a launch fit on an SM and what limits them, or why the launch cannot run.
    pub fn occupancy(&self, kernel: impl Borrow<Kernel>, launch: &Launch) -> Result<Occupancy> {
        let kernel = kernel.borrow();
        self.owns("kernel", kernel.device)?;
        self.backend.occupancy(kernel, shape(kernel, launch))
    }

    /// Runs a kernel to its end. The arguments come from [`args!`](crate::args!) and are checked against the
    /// kernel's parameters.
    ///
    /// A launch that faults, hangs or is interrupted returns an [`Error`] whose [`Error::report`] says what ran
    /// until then.
    pub fn launch<'a>(
        &mut self,
        kernel: impl Borrow<Kernel>,
        launch: Launch,
        args: impl AsRef<[Arg<'a>]>,
    ) -> Result<Report> {
        let kernel = kernel.borrow();
        self.owns("kernel", kernel.device)?;
        for device in args.as_ref().iter().filter_map(Arg::device) {
            self.owns("buffer", device)?;
        }
        let params = pack(kernel.info(), args.as_ref())?;
        self.free_dropped();
        let result = self.backend.launch(kernel, shape(kernel, &launch), &launch, &params);
        if result.is_err() && self.backend.is_renewed() {
            // The new context may reuse the addresses of old buffers, so dropping those must not free them.
            self.lost_ids.push(std::mem::replace(&mut self.id, next_id()));
            self.dropped = Dropped::default();
        }
        result
    }

    /// Carries out a plan: kernels and copies of several streams, which overlap wherever they need not wait for each
    /// other. Only the timed model of a simulated chip can do this, without traces, profiles and checks.
    ///
    /// While a plan pauses ([`Plan::until`]), the next one must be [`Plan::more`] of it; other launches are refused.
    ///
    /// The error is that of a plan that cannot begin. A kernel that fails ends the plan, and has its error in
    /// [`PlanRun::kernels`].
    pub fn run_plan(&mut self, plan: Plan) -> Result<PlanRun> {
        for piece in &plan.pieces {
            if let Work::Kernel { kernel, .. } = &piece.work {
                self.owns("kernel", kernel.device)?;
            }
        }
        self.free_dropped();
        self.backend.run_plan(plan)
    }

    /// Runs firmware on the chip's control processor: an `async` function that decides which kernels run, when
    /// and with which arguments (`docs/aggregator.md`). Returns the function's result and one report of
    /// everything that ran. Only the timed model of a chip with a control processor (`apu`) can do this.
    ///
    /// ```
    /// use warploom::{Device, Firmware, Task, args};
    ///
    /// # fn main() -> Result<(), warploom::Error> {
    /// let mut gpu = Device::sim("apu")?;
    /// # let text = warploom_kernels::text!("vecadd.ptx");
    /// let vecadd = Task::new(0, gpu.load_ptx(text)?.kernel("vecadd")?, 64);
    /// let xs = gpu.buffer(&[1.0f32; 256])?;
    /// let ys = gpu.zeros::<f32>(256)?;
    /// let params = vecadd.params(args![&xs, &xs, &ys, 256u32])?;
    /// let sum = ys.address();
    /// let (bits, report) = gpu.run_firmware(Firmware::new([vecadd]), |agg| async move {
    ///     agg.start(&params, 4).await;
    ///     while agg.running().await > 0 {
    ///         agg.event().await;
    ///     }
    ///     agg.load32(sum).await
    /// })?;
    /// assert_eq!(f32::from_bits(bits), 2.0);
    /// assert_eq!(report.ctas, 4);
    /// # Ok(())
    /// # }
    /// ```
    pub fn run_firmware<'f, T, F>(
        &mut self,
        firmware: Firmware,
        main: impl FnOnce(Agg) -> F + Send + 'f,
    ) -> Result<(T, Report)>
    where
        T: Send + 'f,
        F: Future<Output = T> + Send + 'f,
    {
        for task in &firmware.tasks {
            self.owns("kernel", task.kernel().device)?;
        }
        self.free_dropped();
        let result = Arc::new(Mutex::new(None));
        let put = result.clone();
        let run = FirmwareRun {
            tasks: &firmware.tasks,
            limits: firmware.limits(),
            firmware: Box::new(move |aggregator| {
                Box::pin(async move {
                    let value = main(Agg::from(aggregator)).await;
                    *put.lock().expect("nobody panics with it") = Some(value);
                })
            }),
        };
        let report = self.backend.run_firmware(run)?;
        let value = result.lock().expect("nobody panics with it").take();
        Ok((value.expect("firmware that ended has left its result"), report))
    }

    /// Takes the timeline of the last launch, for the Perfetto viewer, if the device records one
    /// ([`Timing::trace`](crate::Timing::trace)). A failed launch has one too.
    ///
    /// ```
    /// use warploom::{Chip, Device, Launch, SimOptions, Timing, TraceOptions, args};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let timing = Timing { trace: Some(TraceOptions::default()), ..Timing::default() };
    /// let options = SimOptions { timing, ..SimOptions::default() };
    /// let mut gpu = Device::sim_with(Chip::load("gtx480", &[])?, options);
    /// # let text = warploom_kernels::text!("vecadd.ptx");
    /// let kernel = gpu.load_ptx(text)?.kernel("vecadd")?;
    /// let xs = gpu.buffer(&[1.0f32; 256])?;
    /// gpu.launch(&kernel, Launch::grid(2).block(128), args![&xs, &xs, &xs, 256u32])?;
    /// let trace = gpu.take_trace().expect("the device records one");
    /// # let folder = std::env::temp_dir().join(format!("warploom-doc-{}", std::process::id()));
    /// # std::fs::create_dir_all(&folder)?;
    /// # let file = folder.join("vecadd.pftrace");
    /// std::fs::write(&file, &trace.bytes)?; // opens in https://ui.perfetto.dev
    /// # std::fs::remove_dir_all(&folder)?;
    /// # assert_eq!(trace.cut, None);
    /// # Ok(())
    /// # }
    /// ```
    pub fn take_trace(&mut self) -> Option<Trace> {
        self.backend.take_trace()
    }

    /// Takes the counters sampled during the last launch, if the device samples them
    /// ([`Timing::sample_cycles`](crate::Timing::sample_cycles)). [`samples_csv`](crate::samples_csv) prints
    /// them as CSV.
    pub fn take_samples(&mut self) -> Vec<Sample> {
        self.backend.take_samples()
    }

    /// Refuses a buffer, module or kernel of another device.
    pub(crate) fn owns(&self, what: &str, device: u64) -> Result<()> {
        if device == self.id {
            return Ok(());
        }
        let reason = if self.lost_ids.contains(&device) {
            format!("the {what} was lost with the GPU's context when a kernel failed: make it again")
        } else {
            format!("the {what} belongs to another device than `{}`", self.name())
        };
        Err(Error::Misuse(reason))
    }

    pub(crate) fn backend(&self) -> &dyn Backend {
        &*self.backend
    }

    pub(crate) fn backend_mut(&mut self) -> &mut dyn Backend {
        &mut *self.backend
    }

    fn next_name(&mut self) -> String {
        self.buffers += 1;
        format!("buffer {}", self.buffers - 1)
    }

    fn own<T: Pod>(&self, address: u64, len: usize) -> Buffer<T> {
        Buffer { device: self.id, address, len, dropped: self.dropped.clone(), element: PhantomData }
    }

    /// Frees the memory of dropped buffers. A buffer cannot free itself because it does not hold its device.
    fn free_dropped(&mut self) {
        let dropped = self.dropped.lock().map(|mut d| std::mem::take(&mut *d)).unwrap_or_default();
        for (address, _) in dropped {
            // After a fault of a real GPU, its memory is gone already.
            let _ = self.backend.free(address);
        }
    }
}

fn next_id() -> u64 {
    static IDS: AtomicU64 = AtomicU64::new(0);
    IDS.fetch_add(1, Ordering::Relaxed)
}

fn bytes_of<T>(len: usize) -> Result<u64> {
    let bytes = len.checked_mul(size_of::<T>());
    let too_large =
        || Error::OutOfMemory(format!("{len} elements of {} bytes fit no memory", size_of::<T>()));
    bytes.map(|b| b as u64).ok_or_else(too_large)
}

pub(crate) fn shape(kernel: &Kernel, launch: &Launch) -> Shape {
    let bounds = &kernel.info().bounds;
    let cluster = launch.cluster.or(bounds.required_cluster);
    let scale = if bounds.blocks_are_clusters { cluster.unwrap_or([1; 3]) } else { [1; 3] };
    Shape {
        grid: std::array::from_fn(|axis| launch.grid[axis].saturating_mul(scale[axis])),
        block: launch.block.or(bounds.required_block).unwrap_or([1; 3]),
        dynamic_shared_bytes: launch.dynamic_shared_bytes,
        cluster,
    }
}
