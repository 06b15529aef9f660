//! Graphs on a device with an aggregator.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32};

use warploom::{Arg, Buffer, Device, Firmware, Module, Params, Progress, Report, Task};

use crate::aggregator::{Flow, levelized};
use crate::channel::{Channel, DESCRIPTOR_BYTES, WAVE};
use crate::error::{FlowError, Result};
use crate::graph::{Constant, Graph, Plan};
use crate::memory::Arena;

/// Bytes of `Work`, the first parameter of every kernel.
const WORK_BYTES: u32 = 24;

/// Words of the channels' memory that go to the device at a time.
const PIECE_WORDS: usize = 1024;

/// Where the channels of a graph lie.
#[derive(Clone, Debug)]
pub(crate) struct Placement {
    pub channels: Vec<Channel>,
    pub bytes: u64,
}

impl Placement {
    /// All descriptors, those of a stack side by side, then all arrays.
    pub fn new(graph: &Graph, plan: &Plan, base: u64) -> Placement {
        let mut arrays = base + plan.cells.len() as u64 * DESCRIPTOR_BYTES;
        let place = |(at, cell): (usize, &crate::graph::Cell)| {
            let shape = graph.stacks[cell.node.0].shape;
            let channel = Channel::at(shape, base + at as u64 * DESCRIPTOR_BYTES, arrays);
            arrays += shape.array_bytes();
            channel
        };
        let channels = plan.cells.iter().enumerate().map(place).collect();
        Placement { channels, bytes: arrays - base }
    }

    /// Writes descriptors, and the elements that are ready before the start. Returns how many each channel has of these.
    pub fn fill(&self, graph: &Graph, plan: &Plan, memory: &Arena<AtomicU32>) -> Vec<u32> {
        let mut initial = Vec::new();
        for (cell, channel) in plan.cells.iter().zip(&self.channels) {
            channel.describe(memory);
            let elements = &graph.stacks[cell.node.0].initial;
            let elements = if cell.level == 0 { &elements[..] } else { &[] };
            for element in elements {
                let position = channel.talloc(memory, 1).expect("the graph was checked");
                for (at, &word) in element.iter().enumerate() {
                    memory.store(channel.word(position, at as u32), word);
                }
                channel.enq(memory, position, 1);
            }
            initial.push(elements.len() as u32);
        }
        initial
    }
}

/// What may end a run early, and who is told how far it has come.
#[derive(Clone, Debug, Default)]
pub struct Limits {
    /// Ends the run as hanging after so many cycles.
    pub max_cycles: Option<u64>,
    /// Ends the run when it becomes true.
    pub interrupt: Option<Arc<AtomicBool>>,
    /// Is told how far the run has come.
    pub progress: Option<Arc<Progress>>,
}

/// A graph that is ready to run on a device.
#[derive(Debug)]
pub struct Execution<'d> {
    gpu: &'d mut Device,
    plan: Plan,
    channels: Vec<Channel>,
    initial: Vec<u32>,
    tasks: Vec<Task>,
    params: Vec<Params>,
    limits: Limits,
    effort: u64,
    /// The channels' memory, as long as they are used.
    _memory: Buffer<u32>,
}

impl Graph {
    /// Bytes that its channels take.
    pub fn bytes(&self) -> u64 {
        Placement::new(self, &Plan::new(self), 0).bytes
    }

    /// Places the graph on a device with the kernels of a module. It runs when it is [waited for](Execution::wait).
    pub fn execute<'d>(&self, gpu: &'d mut Device, module: &Module) -> Result<Execution<'d>> {
        self.check()?;
        let plan = Plan::new(self);
        let bytes = Placement::new(self, &plan, 0).bytes;
        let available = gpu.chip().map_or(u64::MAX, |chip| chip.memory.global_bytes);
        if bytes > available {
            return Err(FlowError::TooLarge { graph: self.name.clone(), bytes, available });
        }
        let memory = gpu.zeros_named::<u32>("channels", bytes.div_ceil(4) as usize)?;
        let placement = Placement::new(self, &plan, memory.address());
        let image = Arena::<AtomicU32>::new(memory.address(), bytes);
        let initial = placement.fill(self, &plan, &image);
        for (address, words) in image.pieces(PIECE_WORDS) {
            let start = ((address - memory.address()) / 4) as usize;
            memory.write_range(gpu, start, &words)?;
        }
        let mut tasks = Vec::new();
        let mut params = Vec::new();
        for (number, kernel) in self.kernels.iter().enumerate() {
            let task = Task::new(number as u16, module.kernel(&kernel.name)?, WAVE);
            let info = task.kernel().info();
            if info.params.first().is_none_or(|work| work.bytes != WORK_BYTES) {
                let (kernel, signature) = (kernel.name.clone(), info.signature());
                return Err(FlowError::NotAFlowKernel { kernel, signature });
            }
            let constant = |constant: &Constant| match *constant {
                Constant::Channel(node) => Arg::from(placement.channels[plan.first[node.0]].descriptor),
                Constant::Word(word) => Arg::from(word),
                Constant::Address(address) => Arg::from(address),
            };
            let work = Arg::bytes(&[0; WORK_BYTES as usize]);
            let args: Vec<_> = std::iter::once(work).chain(kernel.constants.iter().map(constant)).collect();
            params.push(task.params(args)?);
            tasks.push(task);
        }
        let channels = placement.channels;
        let limits = Limits::default();
        Ok(Execution { gpu, plan, channels, initial, tasks, params, limits, effort: 1, _memory: memory })
    }
}

impl Execution<'_> {
    /// With limits.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// The scheduler executes so many times the instructions between its accesses: how much would a clumsier one cost?
    pub fn effort(mut self, times: u64) -> Self {
        self.effort = times;
        self
    }

    /// Where a channel's descriptor lies, by its number: those of a stack side by side, stacks in the order of their making.
    pub fn channels(&self) -> &[Channel] {
        &self.channels
    }

    /// Runs the graph to its end under the [levelized] scheduler.
    pub fn wait(self) -> Result<Report> {
        self.wait_with(levelized)
    }

    /// Runs the graph to its end under a scheduler of one's own.
    pub fn wait_with<F>(self, scheduler: impl FnOnce(Flow) -> F + Send) -> Result<Report>
    where
        F: Future<Output = ()> + Send,
    {
        let mut firmware = Firmware::new(self.tasks);
        if let Some(cycles) = self.limits.max_cycles {
            firmware = firmware.max_cycles(cycles);
        }
        if let Some(flag) = self.limits.interrupt {
            firmware = firmware.interrupt(flag);
        }
        if let Some(progress) = self.limits.progress {
            firmware = firmware.progress(progress);
        }
        let (plan, channels, initial, params) = (&self.plan, &self.channels, &self.initial, self.params);
        let effort = self.effort;
        let main = |agg| scheduler(Flow::new(agg, plan, channels, initial, params, effort));
        let ((), report) = self.gpu.run_firmware(firmware, main)?;
        Ok(report)
    }
}
