//! What the persistent kernel finds in memory: the channels, and the graph as `Run` of `persistent.cuh` describes it.

use warploom::{Buffer, Device, Launch, Module, args};

use super::no_program;
use crate::channel::DESCRIPTOR_BYTES;
use crate::device::Placement;
use crate::error::{FlowError, Result};
use crate::graph::{Constant, Graph, Plan};
use crate::memory::Words;

/// Room for the names of a module's kernels. A name takes two characters at least, with its comma.
const NAMES_BYTES: usize = 1 << 14;

/// Sizes of the structures of `persistent.cuh`.
const RUN_BYTES: u64 = 192;
const CELL_BYTES: u64 = 56;
/// Of the constants of a channel.
const CHANNEL_BYTES: u64 = 64;
const FEED_BYTES: u64 = 8;
const CONSTANT_BYTES: u64 = 8;
/// Words of the scheduler's state of a channel.
const STATE_WORDS: u64 = 6;

/// Where `Channel` has the address for faults, and the count of finished chunks and elements.
const FAULT: u64 = 48;
const FINISHED: u64 = 192;

/// Where `Run` has what a run leaves behind.
const RUN_FAULT: u64 = 64;

/// In a fault: a lane has put more at once than the graph declares.
pub(super) const EXCESS: u64 = 1 << 32;

/// Places of the ring besides those that workers wait at and those that are filled ahead.
const SPARE_PLACES: u32 = 128;

/// How a run ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct End {
    pub fault: u64,
    pub status: u32,
    pub rounds: u32,
    pub chunks: u64,
    pub elements: u64,
}

/// A graph in the memory of a device.
#[derive(Debug)]
pub(super) struct Image {
    pub placement: Placement,
    /// Elements of each channel at the start.
    pub initial: Vec<u32>,
    /// Channels in the scheduler's order, the deepest last.
    pub order: Vec<usize>,
    run: u64,
    _memory: Buffer<u32>,
}

/// The feeds and feeders of all channels, one after the other, each a channel and a bound.
struct Feeds {
    all: Vec<[u32; 2]>,
    /// By channel: where its feeds and its feeders begin and end.
    ranges: Vec<[u32; 4]>,
}

impl Feeds {
    /// Channels are numbered by `rank`. A kernel that writes a channel twice may put the sum of both bounds.
    fn new(plan: &Plan, order: &[usize]) -> Feeds {
        let mut rank = vec![0; order.len()];
        order.iter().enumerate().for_each(|(at, &cell)| rank[cell] = at as u32);
        let to = |from: usize| {
            let mut sums = std::collections::BTreeMap::new();
            for &(to, most) in &plan.cells[from].feeds {
                *sums.entry(to).or_insert(0u32) += most;
            }
            sums
        };
        let mut feeds = Feeds { all: Vec::new(), ranges: Vec::new() };
        for &cell in order {
            let start = feeds.all.len() as u32;
            feeds.all.extend(to(cell).into_iter().map(|(to, most)| [rank[to], most.max(1)]));
            let middle = feeds.all.len() as u32;
            let mut feeders = plan.cells[cell].feeders.clone();
            feeders.sort_unstable();
            feeders.dedup();
            feeds.all.extend(feeders.into_iter().map(|from| [rank[from], to(from)[&cell].max(1)]));
            feeds.ranges.push([start, middle, middle, feeds.all.len() as u32]);
        }
        feeds
    }
}

impl Image {
    /// Shared memory of a CTA: its copy of the graph and the scheduler's state.
    pub(super) fn shared_bytes(graph: &Graph, plan: &Plan) -> u32 {
        let feeds = Feeds::new(plan, &order(plan)).all.len() as u64;
        let constants: usize = graph.kernels.iter().map(|kernel| kernel.constants.len()).sum();
        let cells = plan.cells.len() as u64;
        let descriptors = u64::from(descriptors(graph, plan)) * CHANNEL_BYTES;
        let cells = cells * (CELL_BYTES + 4 * STATE_WORDS);
        (descriptors + cells + feeds * FEED_BYTES + constants as u64 * CONSTANT_BYTES) as u32
    }

    /// Writes a graph with its initial elements, and a ring for so many workers.
    pub(super) fn new(
        graph: &Graph,
        plan: &Plan,
        gpu: &mut Device,
        module: &Module,
        workers: u32,
    ) -> Result<Image> {
        let numbers = numbers(graph, gpu, module)?;
        let order = order(plan);
        let feeds = Feeds::new(plan, &order);
        let constants: usize = graph.kernels.iter().map(|kernel| kernel.constants.len()).sum();
        let places = (2 * workers + SPARE_PLACES).next_power_of_two();
        let channels = Placement::new(graph, plan, 0).bytes.next_multiple_of(64);
        let cells = channels + RUN_BYTES;
        let feeds_at = cells + order.len() as u64 * CELL_BYTES;
        let constants_at = feeds_at + feeds.all.len() as u64 * FEED_BYTES;
        let ring = (constants_at + constants as u64 * CONSTANT_BYTES).next_multiple_of(64);
        let bytes = ring + 8 * u64::from(places);
        let descriptors = descriptors(graph, plan);
        let available = gpu.chip().map_or(u64::MAX, |chip| chip.memory.global_bytes);
        if bytes > available {
            return Err(FlowError::TooLarge { graph: graph.name.clone(), bytes, available });
        }
        let memory = gpu.zeros_named::<u32>("channels", bytes.div_ceil(4) as usize)?;
        let base = memory.address();
        let mut image = Words::default();
        let placement = Placement::new(graph, plan, base);
        placement.name(plan, gpu, &memory)?;
        let initial = placement.fill(graph, plan, |address, word| image.store(address, word));
        let run = base + channels;
        for descriptor in
            placement.channels.iter().map(|channel| channel.descriptor).chain(placement.ends.clone())
        {
            image.store64(descriptor + FAULT, run + RUN_FAULT);
            // The host's own elements were counted here as entries.
            image.store64(descriptor + FINISHED, 0);
        }
        let parts = [base + cells, base + feeds_at, base + constants_at, base + ring, base];
        parts.into_iter().enumerate().for_each(|(at, address)| image.store64(run + 8 * at as u64, address));
        let counts = [order.len() as u32, feeds.all.len() as u32, constants as u32, descriptors, places - 1];
        counts.into_iter().enumerate().for_each(|(at, count)| image.store(run + 40 + 4 * at as u64, count));
        let mut first_constant = Vec::new();
        let mut next_constant = 0;
        for kernel in &graph.kernels {
            first_constant.push(next_constant);
            for constant in &kernel.constants {
                let value = match *constant {
                    Constant::Channel(node) => {
                        number(base, placement.channels[plan.first[node.0]].descriptor).into()
                    }
                    Constant::Word(word) => word.into(),
                    Constant::Address(address) => address,
                };
                image.store64(base + constants_at + u64::from(next_constant) * CONSTANT_BYTES, value);
                next_constant += 1;
            }
        }
        for (at, &cell) in order.iter().enumerate() {
            let address = base + cells + at as u64 * CELL_BYTES;
            let (channel, planned) = (&placement.channels[cell], &plan.cells[cell]);
            image.store64(address, channel.descriptor);
            let kernel = planned.kernel;
            let [feeds, feeds_end, feeders, feeders_end] = feeds.ranges[at];
            let words = [
                number(base, channel.descriptor),
                channel.shape.width,
                numbers[kernel],
                planned.level,
                planned.depth,
                planned.after_sync.into(),
                first_constant[kernel],
                feeds,
                feeds_end,
                feeders,
                feeders_end,
                window(plan, cell, channel.shape.width),
            ];
            words.into_iter().enumerate().for_each(|(i, word)| image.store(address + 8 + 4 * i as u64, word));
        }
        for (at, [cell, most]) in feeds.all.iter().enumerate() {
            image.store(base + feeds_at + at as u64 * FEED_BYTES, *cell);
            image.store(base + feeds_at + at as u64 * FEED_BYTES + 4, *most);
        }
        image.write(&memory, gpu)?;
        Ok(Image { placement, initial, order, run, _memory: memory })
    }

    /// The address of the descriptor that a fault names, 0 if it names none.
    pub(super) fn faulty(&self, fault: u64) -> u64 {
        match (fault & !EXCESS).checked_sub(1) {
            Some(number) => self.placement.channels[0].descriptor + number * DESCRIPTOR_BYTES,
            None => 0,
        }
    }

    /// The address of `Run`, the kernels' first parameter.
    pub(super) fn run(&self) -> u64 {
        self.run
    }

    /// What a run left in `Run`.
    pub(super) fn end(&self, gpu: &Device) -> Result<End> {
        let bytes = gpu.read_bytes(self.run + RUN_FAULT, 32)?;
        let long =
            |at: usize| bytes[at..at + 8].iter().rev().fold(0, |all, &byte| all << 8 | u64::from(byte));
        let (words, chunks, elements) = (long(8), long(16), long(24));
        Ok(End { fault: long(0), status: words as u32, rounds: (words >> 32) as u32, chunks, elements })
    }

    /// Tells kernels that all elements of a channel before a position are free.
    pub(super) fn free(&self, gpu: &mut Device, cell: usize, position: u32) -> Result<()> {
        let channel = &self.placement.channels[cell];
        // For the audit: all that are free were ready once.
        gpu.write_bytes(channel.ready(), &position.to_le_bytes())?;
        Ok(gpu.write_bytes(channel.head(), &position.to_le_bytes())?)
    }

    /// How many elements were reserved in each channel so far.
    pub(super) fn tails(&self, gpu: &Device) -> Result<Vec<u32>> {
        let first = self.placement.channels[0].descriptor;
        let last = self.placement.channels.last().map_or(first, |channel| channel.descriptor);
        let bytes = gpu.read_bytes(first, (last - first + DESCRIPTOR_BYTES) as usize)?;
        let word = |address: u64| {
            let at = (address - first) as usize;
            bytes[at..at + 4].iter().rev().fold(0, |all, &byte| all << 8 | u32::from(byte))
        };
        let channels = self.placement.channels.iter();
        Ok(channels.map(|channel| word(channel.tail())).collect())
    }
}

/// How many descriptors a graph has: of its channels, and one behind each stack.
fn descriptors(graph: &Graph, plan: &Plan) -> u32 {
    (plan.cells.len() + graph.stacks.len()) as u32
}

/// The number of a descriptor among all of them.
fn number(base: u64, descriptor: u64) -> u32 {
    ((descriptor - base) / DESCRIPTOR_BYTES) as u32
}

/// How far elements of a channel may be handed out ahead of the first one in use: half of its width if its elements can
/// come back to it, else all.
fn window(plan: &Plan, cell: usize, width: u32) -> u32 {
    let mut reached = vec![false; plan.cells.len()];
    let mut to_visit = vec![cell];
    while let Some(at) = to_visit.pop() {
        for &(to, _) in &plan.cells[at].feeds {
            if !std::mem::replace(&mut reached[to], true) {
                to_visit.push(to);
            }
        }
    }
    if reached[cell] { width / 2 } else { width }
}

fn order(plan: &Plan) -> Vec<usize> {
    let mut order: Vec<usize> = (0..plan.cells.len()).collect();
    order.sort_by_key(|&at| (plan.cells[at].depth, at));
    order
}

/// The number of each of the graph's kernels in the module's list.
fn numbers(graph: &Graph, gpu: &mut Device, module: &Module) -> Result<Vec<u32>> {
    let describe = module.kernel("flow_kernels").map_err(|_| no_program(&graph.name))?;
    let (names, counts) = (gpu.zeros::<u8>(NAMES_BYTES)?, gpu.zeros::<u32>(NAMES_BYTES / 2)?);
    gpu.launch(&describe, Launch::grid(1).block(1), args![&names, NAMES_BYTES as u32, &counts])?;
    let (names, counts) = (names.read(gpu)?, counts.read(gpu)?);
    let names = String::from_utf8_lossy(&names);
    let names: Vec<&str> = names.trim_end_matches('\0').split(',').map(str::trim).collect();
    let number = |kernel: &crate::graph::Kernel| {
        let Some(number) = names.iter().position(|name| *name == kernel.name) else {
            let (kernel, listed) = (kernel.name.clone(), names.join(", "));
            return Err(FlowError::NotListed { kernel, listed });
        };
        let (given, expected) = (kernel.constants.len(), counts[number] as usize);
        if given != expected {
            return Err(FlowError::WrongConstants { kernel: kernel.name.clone(), given, expected });
        }
        Ok(number as u32)
    };
    graph.kernels.iter().map(number).collect()
}
