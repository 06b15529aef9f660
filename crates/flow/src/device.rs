//! Runs graphs on a device with an aggregator.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use warploom::{Arg, Buffer, Device, Error, Firmware, Module, Params, Progress, Report, Task};

use crate::aggregator::{Flow, levelized};
use crate::audit::{Life, audit, describe};
use crate::channel::{Channel, DESCRIPTOR_BYTES, WAVE};
use crate::error::{FlowError, Result};
use crate::graph::{Constant, Graph, Plan};
use crate::memory::Words;

/// Size of `Work`, the first parameter of every kernel (`kernels/flow/channel.cuh`).
const WORK_BYTES: u32 = 24;

/// Where the channels of a graph lie in memory.
#[derive(Clone, Debug)]
pub(crate) struct Placement {
    pub channels: Vec<Channel>,
    /// By stack: the descriptor behind its last level. It stays zero, a channel without room: a wavefront that puts
    /// elements there yields, and firmware knows by its address what went wrong.
    pub ends: Vec<u64>,
    pub bytes: u64,
}

impl Placement {
    /// First all descriptors, those of a stack side by side with one more behind them, then all arrays.
    pub(crate) fn new(graph: &Graph, plan: &Plan, base: u64) -> Placement {
        let descriptor = |stack: usize, at: usize| base + (at + stack) as u64 * DESCRIPTOR_BYTES;
        let mut arrays = descriptor(graph.stacks.len(), plan.cells.len());
        let place = |(at, cell): (usize, &crate::graph::Cell)| {
            let shape = graph.stacks[cell.node.0].shape;
            let channel = Channel::at(shape, descriptor(cell.node.0, at), arrays);
            arrays += shape.array_bytes();
            channel
        };
        let channels = plan.cells.iter().enumerate().map(place).collect();
        let end =
            |(stack, &first): (usize, &usize)| descriptor(stack, first + graph.stacks[stack].levels as usize);
        let ends = plan.first.iter().enumerate().map(end).collect();
        Placement { channels, ends, bytes: arrays - base }
    }

    /// Gives descriptors and arrays, which lie in `memory`, the names of their channels.
    pub(crate) fn name(&self, plan: &Plan, gpu: &mut Device, memory: &Buffer<u32>) -> warploom::Result<()> {
        for (channel, name) in self.channels.iter().zip(&plan.names.channels) {
            let name = name.replace('`', "");
            let arrays = (channel.arrays(), channel.shape.array_bytes(), format!("arrays of {name}"));
            for (address, bytes, name) in [(channel.descriptor, DESCRIPTOR_BYTES, name), arrays] {
                let start = (address - memory.address()) / 4;
                memory.name_range(gpu, start as usize, (bytes / 4) as usize, &name)?;
            }
        }
        Ok(())
    }

    /// Stores descriptors and initial elements, word by word. Returns the number of initial elements per channel.
    pub(crate) fn fill(&self, graph: &Graph, plan: &Plan, mut store: impl FnMut(u64, u32)) -> Vec<u32> {
        let mut initial = Vec::new();
        for (cell, channel) in plan.cells.iter().zip(&self.channels) {
            let elements = &graph.stacks[cell.node.0].initial;
            let elements = if cell.level == 0 { &elements[..] } else { &[] };
            // What nobody declares to write nobody may write.
            let most = if cell.feeders.is_empty() { 0 } else { cell.most };
            let words = channel.constants(most).chain(channel.filled(elements));
            words.for_each(|(address, word)| store(address, word));
            initial.push(elements.len() as u32);
        }
        initial
    }
}

/// What may end a run early, and an observer of its progress.
#[derive(Clone, Debug, Default)]
pub struct Limits {
    /// Ends the run as a hang after so many cycles.
    pub max_cycles: Option<u64>,
    /// Ends the run soon after the flag becomes true.
    pub interrupt: Option<Arc<AtomicBool>>,
    /// Updated while the run lasts, for another thread to show.
    pub progress: Option<Arc<Progress>>,
}

/// A graph placed on a device, ready to run.
#[derive(Debug)]
pub struct Execution<'d> {
    gpu: &'d mut Device,
    graph: Graph,
    plan: Plan,
    placement: Placement,
    initial: Vec<u32>,
    tasks: Vec<Task>,
    params: Vec<Params>,
    limits: Limits,
    effort: u64,
    /// Keeps the channels' memory allocated.
    _memory: Buffer<u32>,
}

impl Graph {
    /// Bytes of memory that the channels take.
    pub fn bytes(&self) -> u64 {
        Placement::new(self, &Plan::new(self), 0).bytes
    }

    /// Places the graph on a device. Its kernels are looked up in `module` by name. [`Execution::wait`] runs it.
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
        placement.name(&plan, gpu, &memory)?;
        let mut words = Words::default();
        let initial = placement.fill(self, &plan, |address, word| words.store(address, word));
        words.write(&memory, gpu)?;
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
        let limits = Limits::default();
        let graph = self.clone();
        Ok(Execution {
            gpu,
            graph,
            plan,
            placement,
            initial,
            tasks,
            params,
            limits,
            effort: 1,
            _memory: memory,
        })
    }
}

impl Execution<'_> {
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Where the channels lie in memory, those of a stack one after the other, for observers of the run.
    pub fn channels(&self) -> &[Channel] {
        &self.placement.channels
    }

    /// Multiplies the instructions that the scheduler executes between its accesses, to see what a slower one
    /// would cost.
    pub fn effort(mut self, times: u64) -> Self {
        self.effort = times;
        self
    }

    /// Runs the graph to its end under the default scheduler: level by level, deepest first when a channel is full.
    pub fn wait(self) -> Result<Report> {
        self.wait_with(levelized)
    }

    /// Runs the graph to its end under another scheduler: an `async` function over a [`Flow`].
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
        let (plan, placement, initial, params) = (&self.plan, &self.placement, &self.initial, self.params);
        let aggregator = self.gpu.chip().and_then(|chip| chip.aggregator.as_ref());
        let work = (aggregator.map_or(0, |aggregator| aggregator.start_looks), self.effort);
        let arrivals = self.graph.arrivals();
        let mut given = initial.clone();
        for &(_, node, _) in &arrivals {
            given[plan.first[node.0]] += 1;
        }
        let main = |agg| {
            let mut flow = Flow::new(agg, plan, placement, initial, params, work);
            flow.expect(arrivals.into_iter().map(|(cycle, node, words)| (cycle, plan.first[node.0], words)));
            scheduler(flow)
        };
        let result = self.gpu.run_firmware(firmware, main);
        match result {
            Ok(((), report)) => {
                audit(&self.graph, plan, &given, &Life::all(self.gpu, placement)?)?;
                Ok(report)
            }
            Err(Error::Hang { mut message, hang, report }) => {
                message += &describe(plan, placement, &Life::all(self.gpu, placement)?);
                Err(Error::Hang { message, hang, report }.into())
            }
            Err(error) => Err(error.into()),
        }
    }
}
