//! Fourteen kernels free of synchronization beyond barriers, of the kinds in Rodinia: a detector of spinning must
//! leave them alone. Integers are checked for equality, floats within the tolerance that each kernel states.

mod flows;
mod graphs;
mod grids;
mod matrices;
mod network;
mod points;
mod sorting;
mod tracking;

use super::{Bench, Check, Param, SEED, Values, Workload, check, ptx};

pub(super) const KMEANS: Workload = points::KMEANS;
pub(super) const STREAMCLUSTER: Workload = points::STREAMCLUSTER;
pub(super) const NN: Workload = points::NN;
pub(super) const MERGESORT: Workload = sorting::WORKLOAD;
pub(super) const HEARTWALL: Workload = tracking::WORKLOAD;
pub(super) const HOTSPOT: Workload = grids::HOTSPOT;
pub(super) const SRAD: Workload = grids::SRAD;
pub(super) const PATHFINDER: Workload = grids::PATHFINDER;
pub(super) const BFS: Workload = graphs::WORKLOAD;
pub(super) const BACKPROP: Workload = network::WORKLOAD;
pub(super) const LUD: Workload = matrices::LUD;
pub(super) const GAUSSIAN: Workload = matrices::GAUSSIAN;
pub(super) const CFD: Workload = flows::CFD;
pub(super) const LAVA: Workload = flows::LAVA;
