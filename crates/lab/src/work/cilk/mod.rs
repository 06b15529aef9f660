//! The Cilk programs of the ISCA'14 paper on channels, and one conventional kernel that the paper compares them with.
//! Each program has a graph that runs on the device and on the host (`docs/channels.md`).

pub(crate) mod fibonacci;
mod flat;
pub(crate) mod queens;
pub(crate) mod sort;
pub(crate) mod strassen;

use std::sync::atomic::AtomicU32;

use warploom::{Device, Error, Module, Result};
use warploom_flow::{Arena, FlowError, Graph, Layout};

use super::{Bench, Param, Values, Workload};

pub(super) use fibonacci::WORKLOAD as FIBONACCI;
pub(super) use flat::WORKLOAD as QUEENS_FLAT;
pub(super) use queens::WORKLOAD as QUEENS;
pub(super) use sort::WORKLOAD as SORT;
pub(super) use strassen::WORKLOAD as STRASSEN;

const GROUP: Param = Param::new("group", "elements that share a count of the freed", 64).range(1, 1 << 20);
const LAYOUT: Param = Param::word(
    "layout",
    "elements as structures, as padded ones, or as arrays of their words",
    &["structures", "padded", "arrays"],
);
const RESERVE: Param =
    Param::word("reserve", "one CAS for a wavefront, or one for each lane", &["wavefront", "lane"]);
const EFFORT: Param =
    Param::new("effort", "times the instructions that the scheduler's firmware executes", 1).range(1, 1000);
const ON: Param = Param::word("on", "runs on the device, or on the threads of the host", &["device", "host"]);

/// The width of a channel. The default is the paper's.
const fn width(default: i64) -> Param {
    Param::new("width", "elements of a channel, a power of two", default).range(0, 1 << 28)
}

/// The graph that a workload runs with these values, if it runs one.
pub(super) fn graph_of(workload: &Workload, values: &Values) -> Option<Graph> {
    let mut graph = match workload.name {
        name if name == FIBONACCI.name => fibonacci::graph_of(values),
        name if name == QUEENS.name => queens::graph_of(values),
        name if name == SORT.name => sort::graph_of(values),
        name if name == STRASSEN.name => strassen::graph_of(values),
        _ => return None,
    };
    shape(&mut graph, values);
    Some(graph)
}

fn shape(graph: &mut Graph, values: &Values) {
    let layouts = [Layout::Structures, Layout::Padded, Layout::Arrays];
    graph.layout(layouts[values.get::<usize>(&LAYOUT)]);
    graph.group(values.get(&GROUP)).lane_by_lane(values.word(&RESERVE) == "lane");
}

/// What a program runs on.
enum Target<'b, 'a> {
    Device(&'b mut Bench<'a>, Module),
    Host(Arena<AtomicU32>),
}

impl<'b, 'a> Target<'b, 'a> {
    fn new(bench: &'b mut Bench<'a>, values: &Values, kernels: (&str, &str)) -> Result<Self> {
        if values.word(&ON) == "host" {
            return Ok(Target::Host(Arena::new(0x1_0000, 0)));
        }
        let module = bench.load(kernels)?;
        Ok(Target::Device(bench, module))
    }

    /// Allocates words that live as long as the target.
    fn words(&mut self, name: &str, words: &[u32]) -> Result<Words> {
        Ok(match self {
            Target::Device(bench, _) => Words::Device(bench.gpu.buffer_named(name, words)?),
            Target::Host(memory) => Words::Host(memory.buffer(words), words.len()),
        })
    }

    /// Runs a graph to its end.
    fn run(&mut self, values: &Values, graph: &mut Graph) -> Result<()> {
        shape(graph, values);
        match self {
            Target::Device(bench, module) => bench.flow(graph, module, values.get(&EFFORT)),
            Target::Host(memory) => graph.run_on_host(memory).map(|_| ()).map_err(refused),
        }
    }

    fn read(&self, words: &Words) -> Result<Vec<u32>> {
        match (self, words) {
            (Target::Device(bench, _), Words::Device(buffer)) => buffer.read(bench.gpu),
            (Target::Host(memory), &Words::Host(address, count)) => Ok(memory.read(address, count)),
            _ => Ok(Vec::new()),
        }
    }
}

/// Words in the memory of a [`Target`].
enum Words {
    Device(warploom::Buffer<u32>),
    Host(u64, usize),
}

impl Words {
    fn address(&self) -> u64 {
        match self {
            Words::Device(buffer) => buffer.address(),
            Words::Host(address, _) => *address,
        }
    }
}

/// An address as two words, as elements hold it.
fn halves(address: u64) -> [u32; 2] {
    [address as u32, (address >> 32) as u32]
}

fn whole([low, high]: [u32; 2]) -> u64 {
    low as u64 | (high as u64) << 32
}

/// The device's error, or the reason why a graph is refused.
pub(super) fn refused(error: FlowError) -> Error {
    match error {
        FlowError::Device(error) => error,
        refused => Error::Misuse(refused.to_string()),
    }
}

/// Whether a device can run graphs.
pub(super) fn has_aggregator(gpu: &Device) -> bool {
    gpu.chip().is_some_and(|chip| chip.aggregator.is_some())
}
