//! Firmware for a chip's control processor: the kernels it can start and its view of the machine. See
//! [`Device::run_firmware`](crate::Device::run_firmware).

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use warploom_sim::Limits;
use warploom_sim::aggregator::{Aggregator, Answer, MakeFirmware};

use warploom_sim::{Progress, Shape};

use crate::args::{Arg, pack};
use crate::error::{Error, Result};
use crate::kernel::Kernel;
use crate::launch::Dim;

/// A kernel that firmware can start, with CTAs of one fixed shape.
#[derive(Clone, Debug)]
pub struct Task {
    number: u16,
    kernel: Kernel,
    block: [u32; 3],
    dynamic_shared_bytes: u32,
}

impl Task {
    /// A kernel with `block` threads per CTA. `number` is the task's index in the list given to
    /// [`Firmware::new`]: [`Params`] made from this task start the task with that index.
    pub fn new(number: u16, kernel: Kernel, block: impl Into<Dim>) -> Task {
        Task { number, kernel, block: block.into().0, dynamic_shared_bytes: 0 }
    }

    /// Adds dynamic shared memory to what the kernel declares.
    pub fn shared_bytes(mut self, bytes: u32) -> Task {
        self.dynamic_shared_bytes = bytes;
        self
    }

    /// The task's index in the list of the run.
    pub fn number(&self) -> u16 {
        self.number
    }

    pub fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    /// Checks arguments against the kernel's parameters. The result is what [`Agg::start`] takes.
    pub fn params<'a>(&self, args: impl AsRef<[Arg<'a>]>) -> Result<Params> {
        let foreign = |arg: &Arg<'_>| arg.device().is_some_and(|device| device != self.kernel.device);
        if args.as_ref().iter().any(foreign) {
            let reason = format!("a buffer for kernel `{}` belongs to another device", self.kernel.name());
            return Err(Error::Misuse(reason));
        }
        Ok(Params { task: self.number, bytes: pack(self.kernel.info(), args.as_ref())? })
    }

    pub(crate) fn shape(&self) -> Shape {
        Shape {
            grid: [1; 3],
            block: self.block,
            dynamic_shared_bytes: self.dynamic_shared_bytes,
            cluster: None,
        }
    }
}

/// The parameters of a task's CTAs, made by [`Task::params`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Params {
    task: u16,
    bytes: Vec<u8>,
}

impl Params {
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Overwrites bytes of the parameter buffer, so that a start that differs in one argument need not pack all
    /// of them again. [`KernelInfo::params`](crate::KernelInfo::params) has the offsets.
    ///
    /// # Panics
    ///
    /// If the bytes do not lie inside the buffer.
    pub fn set(&mut self, offset: usize, bytes: &[u8]) {
        self.bytes[offset..offset + bytes.len()].copy_from_slice(bytes);
    }
}

/// A run of firmware: the kernels it can start, and what may end it early.
#[derive(Clone, Debug, Default)]
pub struct Firmware {
    pub(crate) tasks: Vec<Task>,
    max_cycles: Option<u64>,
    interrupt: Option<Arc<AtomicBool>>,
    progress: Option<Arc<Progress>>,
}

impl Firmware {
    /// Firmware that can start these tasks. A task's number becomes its index in this list.
    pub fn new(tasks: impl IntoIterator<Item = Task>) -> Firmware {
        let tasks = tasks.into_iter().enumerate().map(|(at, task)| Task { number: at as u16, ..task });
        Firmware { tasks: tasks.collect(), ..Firmware::default() }
    }

    /// Ends the run as a hang after so many cycles.
    pub fn max_cycles(mut self, cycles: u64) -> Firmware {
        self.max_cycles = Some(cycles);
        self
    }

    /// Ends the run soon after the flag becomes true.
    pub fn interrupt(mut self, flag: Arc<AtomicBool>) -> Firmware {
        self.interrupt = Some(flag);
        self
    }

    /// Keeps `progress` up to date while the run lasts, for another thread to show.
    pub fn progress(mut self, progress: Arc<Progress>) -> Firmware {
        self.progress = Some(progress);
        self
    }

    pub(crate) fn limits(&self) -> Limits {
        Limits {
            max_cycles: self.max_cycles,
            interrupt: self.interrupt.clone(),
            progress: self.progress.clone(),
        }
    }
}

/// The control processor as firmware sees it: an [`Aggregator`] that starts [`Task`]s. Clones are the same core.
#[derive(Clone, Debug)]
pub struct Agg(Aggregator);

impl Agg {
    /// Starts `ctas` CTAs of the task that `params` was made from. Completes when all of them have been placed
    /// on an SM.
    pub fn start(&self, params: &Params, ctas: u32) -> Answer<()> {
        self.0.dispatch(params.task, ctas, params.bytes.clone())
    }
}

impl From<Aggregator> for Agg {
    fn from(aggregator: Aggregator) -> Agg {
        Agg(aggregator)
    }
}

impl Deref for Agg {
    type Target = Aggregator;

    fn deref(&self) -> &Aggregator {
        &self.0
    }
}

/// A run of firmware, as a backend receives it.
pub(crate) struct FirmwareRun<'f> {
    pub tasks: &'f [Task],
    pub limits: Limits,
    pub firmware: MakeFirmware<'f>,
}
