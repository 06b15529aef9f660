//! The Cilk programs of the ISCA'14 paper on channels, and one conventional kernel that the paper compares them with.
//! Each program has a graph that runs on the device and on the host (`docs/channels.md`).

pub(crate) mod fibonacci;
mod flat;
#[cfg(test)]
mod lives;
pub(crate) mod queens;
pub(crate) mod sort;
pub(crate) mod strassen;
mod tree;

use std::sync::atomic::AtomicU32;

use warploom::{Error, Module, Result};
use warploom_flow::{Arena, FlowError, Graph, Layout, Schedule};

use super::{Bench, Param, Values, Workload};

pub(super) use fibonacci::WORKLOAD as FIBONACCI;
pub(super) use flat::WORKLOAD as QUEENS_FLAT;
pub(super) use queens::WORKLOAD as QUEENS;
pub(super) use sort::WORKLOAD as SORT;
pub(super) use strassen::WORKLOAD as STRASSEN;
pub(super) use tree::WORKLOAD as TREE;

const GROUP: Param = Param::new("group", "elements that share a count of the freed", 64).range(1, 1 << 20);
const LAYOUT: Param = Param::word(
    "layout",
    "elements as structures, as padded ones, or as arrays of their words",
    &["structures", "padded", "arrays"],
);
const RESERVE: Param = Param::word(
    "reserve",
    "one CAS for a wavefront, one for each lane, or one for a wavefront with a prefix sum in log steps (Figure 5)",
    &["wavefront", "lane", "steps"],
);
const EFFORT: Param =
    Param::new("effort", "times the instructions that the scheduler's firmware executes", 1).range(1, 1000);
const ON: Param = Param::word(
    "on",
    "a chip with an aggregator, the threads of the host, or a GPU without an aggregator, real or simulated",
    &["device", "host", "cuda"],
);
const SCHEDULE: Param = Param::word(
    "schedule",
    "with on=cuda: by a warp of a persistent kernel, a warp of each of its CTAs, or the host, level by level",
    &["persistent", "sm", "levels"],
);
const CTAS: Param =
    Param::new("ctas", "with on=cuda: CTAs of the persistent kernel, 0 for one per SM", 0).range(0, 1 << 16);

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
        name if name == TREE.name => tree::graph_of(values),
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

/// A program's kernels as PTX with the names that messages use: for an aggregator, the same with `reserve=steps`, and
/// for GPUs without an aggregator.
struct FlowPtx {
    aggregator: (&'static str, &'static str),
    steps: (&'static str, &'static str),
    gpu: (&'static str, &'static str),
}

macro_rules! flow_ptx {
    ($name:literal) => {
        crate::work::cilk::FlowPtx {
            aggregator: crate::work::ptx!("flow", $name),
            steps: crate::work::ptx!("flow/steps", $name),
            gpu: crate::work::ptx!("flow/gpu", $name),
        }
    };
}
use flow_ptx;

/// Whether a workload is to run on a GPU without an aggregator.
pub(super) fn wants_gpu(workload: &Workload, values: &Values) -> bool {
    workload.params.iter().any(|param| param.name == ON.name) && values.word(&ON) == "cuda"
}

/// What a program runs on.
enum Target<'b, 'a> {
    Device(&'b mut Bench<'a>, Module),
    Gpu(&'b mut Bench<'a>, Module),
    Host(Arena<AtomicU32>),
}

impl<'b, 'a> Target<'b, 'a> {
    fn new(bench: &'b mut Bench<'a>, values: &Values, kernels: FlowPtx) -> Result<Self> {
        Ok(match values.word(&ON) {
            "host" => Target::Host(Arena::new(0x1_0000, 0)),
            "cuda" => {
                let module = bench.load(kernels.gpu)?;
                Target::Gpu(bench, module)
            }
            _ => {
                if bench.gpu.chip().is_none_or(|chip| chip.aggregator.is_none()) {
                    return Err(Error::Misuse(format!(
                        "`{}` has no control processor to run this graph: take --chip apu, on=cuda, or on=host",
                        bench.gpu.name(),
                    )));
                }
                let steps = values.word(&RESERVE) == "steps";
                let module = bench.load(if steps { kernels.steps } else { kernels.aggregator })?;
                Target::Device(bench, module)
            }
        })
    }

    /// Allocates words that live as long as the target.
    fn words(&mut self, name: &str, words: &[u32]) -> Result<Words> {
        Ok(match self {
            Target::Device(bench, _) | Target::Gpu(bench, _) => {
                Words::Device(bench.gpu.buffer_named(name, words)?)
            }
            Target::Host(memory) => Words::Host(memory.buffer(words), words.len()),
        })
    }

    /// Runs a graph to its end.
    fn run(&mut self, values: &Values, graph: &mut Graph) -> Result<()> {
        shape(graph, values);
        match self {
            Target::Device(bench, module) => bench.flow(graph, module, values.get(&EFFORT)),
            Target::Gpu(bench, module) => {
                let schedules = [Schedule::Persistent, Schedule::PerSm, Schedule::Levels];
                let schedule = schedules[values.get::<usize>(&SCHEDULE)];
                bench.flow_on_gpu(graph, module, schedule, values.get(&CTAS))
            }
            Target::Host(memory) => graph.run_on_host(memory).map(|_| ()).map_err(refused),
        }
    }

    fn read(&self, words: &Words) -> Result<Vec<u32>> {
        match (self, words) {
            (Target::Device(bench, _) | Target::Gpu(bench, _), Words::Device(buffer)) => {
                buffer.read(bench.gpu)
            }
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
