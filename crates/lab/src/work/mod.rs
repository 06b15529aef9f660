//! Workloads: kernels with an input, as many launches as they need, and a check of the result.
//!
//! Each is one file and one line of [`WORKLOADS`]: a name, parameters, and a function that makes the input from a
//! seed, launches on a `Bench` and compares the result with a plain computation on the host. The same function runs
//! on a simulated chip and on a real GPU.
//!
//! ```
//! use warploom::Device;
//! use warploom_lab::work::Workload;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let workload = Workload::find("nw")?;
//! let mut gpu = Device::sim("gtx480")?;
//! let outcome = workload.run(&mut gpu, &workload.values(&["size=62"])?, &|launch| launch)?;
//! assert_eq!(outcome.check, Ok("3,969 scores equal the host's".to_string()));
//! assert_eq!(outcome.launches.len(), 3);
//! # Ok(())
//! # }
//! ```
//!
//! Start reading at [`Workload`], then `vecadd.rs`, the shortest one.

mod bench;
mod check;
mod params;
mod total;

mod atm;
mod barneshut;
mod chain;
pub(crate) mod cilk;
mod cloth;
mod free;
mod hashtable;
mod matmul;
pub(crate) mod nw;
mod primitives;
mod tsp;
mod vecadd;
mod wavefront;

use serde::Serialize;
use warploom::{Device, Launch, Report, Result};

pub(crate) use bench::Bench;
pub use bench::Figures;
pub use chain::SCHEMES as CHAIN_SCHEMES;
pub use check::Check;
pub(crate) use check::equal;
pub(crate) use params::SEED;
pub use params::{Param, ParamError, Values};
pub use primitives::PRIMITIVES;
pub use total::total;

/// All workloads, in the order of lists.
pub const WORKLOADS: &[Workload] = &[
    vecadd::WORKLOAD,
    matmul::WORKLOAD,
    hashtable::WORKLOAD,
    nw::WORKLOAD,
    chain::WORKLOAD,
    primitives::WORKLOAD,
    barneshut::BUILD,
    barneshut::SORT,
    cloth::WORKLOAD,
    atm::WORKLOAD,
    wavefront::NW1,
    wavefront::NW2,
    tsp::WORKLOAD,
    free::KMEANS,
    free::MERGESORT,
    free::HEARTWALL,
    free::HOTSPOT,
    free::BFS,
    free::BACKPROP,
    free::LUD,
    free::GAUSSIAN,
    free::PATHFINDER,
    free::SRAD,
    free::STREAMCLUSTER,
    free::NN,
    free::CFD,
    free::LAVA,
    cilk::FIBONACCI,
    cilk::QUEENS,
    cilk::QUEENS_FLAT,
    cilk::SORT,
    cilk::STRASSEN,
    cilk::TREE,
];

/// One or several kernels with an input and a check of the result.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Workload {
    pub name: &'static str,
    /// One line on what it does.
    pub about: &'static str,
    pub params: &'static [Param],
    /// Makes the input, launches, and checks the result.
    #[serde(skip)]
    run: fn(&mut Bench<'_>, &Values) -> Result<Check>,
}

/// What a run of a workload did.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// One report per launch, in order.
    pub launches: Vec<Report>,
    /// All launches in one report.
    pub total: Report,
    /// `Err` if the result is wrong.
    pub check: Check,
    /// What the workload measured itself.
    pub figures: Figures,
}

impl Outcome {
    /// The launch with the most cycles.
    pub fn longest(&self) -> Option<&Report> {
        self.launches.iter().max_by_key(|report| report.cycles)
    }
}

impl Workload {
    /// Finds a workload by name.
    pub fn find(name: &str) -> Result<&'static Workload, ParamError> {
        WORKLOADS.iter().find(|w| w.name == name).ok_or_else(|| ParamError::NoWorkload {
            name: name.to_string(),
            known: WORKLOADS.iter().map(|w| w.name).collect(),
        })
    }

    /// The chip to simulate if the user names none.
    pub fn chip(&self, values: &Values) -> &'static str {
        let asked = match self.name {
            // Some versions need lock bits.
            name if name == nw::WORKLOAD.name => nw::chip(values),
            _ if self.wants_gpu(values) => Some("h200"),
            // Graphs need an aggregator.
            _ => self.graph(values).map(|_| "apu"),
        };
        asked.unwrap_or("gtx480")
    }

    /// Whether the workload asks for a real GPU, or a simulated one that is named: its values say `on=cuda`.
    pub fn wants_gpu(&self, values: &Values) -> bool {
        cilk::wants_gpu(self, values)
    }

    /// The channel-flow graph that the workload runs, if it runs one.
    pub fn graph(&self, values: &Values) -> Option<warploom_flow::Graph> {
        cilk::graph_of(self, values)
    }

    /// Parses `name=value` texts. Parameters that are not given have their defaults.
    pub fn values<S: AsRef<str>>(&self, given: &[S]) -> Result<Values, ParamError> {
        Values::parse(self, given)
    }

    /// Runs the workload. `prepare` sees every launch before it starts: the place to set limits or follow the
    /// progress.
    pub fn run(
        &self,
        gpu: &mut Device,
        values: &Values,
        prepare: &dyn Fn(Launch) -> Launch,
    ) -> Result<Outcome> {
        let mut bench = Bench::new(gpu, prepare);
        let check = (self.run)(&mut bench, values)?;
        let (launches, figures) = bench.into_parts();
        Ok(Outcome { total: total(&launches), launches, check, figures })
    }
}

/// The checked-in PTX of `kernels/`, with the name that messages use.
macro_rules! ptx {
    ($name:literal) => {
        (concat!("kernels/", $name, ".ptx"), warploom_kernels::text!(concat!($name, ".ptx")))
    };
    ($folder:literal, $name:literal) => {
        (
            concat!("kernels/", $folder, "/", $name, ".ptx"),
            warploom_kernels::text!(concat!($folder, "/", $name, ".ptx")),
        )
    };
}
use ptx;
