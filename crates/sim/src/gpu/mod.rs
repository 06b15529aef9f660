//! The chip as a host sees it: memory, loaded modules, launches. Start at [`Gpu`].

mod fast;
mod firmware;
mod module;
mod observers;
pub(crate) mod outcome;
mod plan;
mod run;
mod timing;

use std::fmt;
use std::sync::{Arc, Mutex, RwLock};

use warploom_isa::{AddressMap, Module, Opaque, Space, VarId, variable_image};

use crate::chip::Chip;
use crate::exec::launch::{Launch, Limits, Shape};
use crate::exec::memory::store::Memory;
use crate::exec::occupancy::{LocalLimit, Occupancy, Unlaunchable, check_launch};
use crate::exec::outside::OutsideLoads;
use crate::exec::races::Races;
use crate::exec::texture::{Object, Sampler, Textures};
pub use crate::gpu::fast::Estimate;
use crate::gpu::fast::Histories;
pub use crate::gpu::module::{LoadedKernel, LoadedModule, ModuleError};
pub use crate::gpu::observers::MakeObserver;
use crate::gpu::outcome::{LaunchError, Stats};
use crate::gpu::plan::Begun;
pub use crate::gpu::plan::{Piece, PlanRun, PlannedKernel, Work};
use crate::gpu::run::{TimedGrid, run_functional, stats_of};
pub use crate::gpu::timing::Timing;
use crate::time::machine::MemorySide;
use crate::time::sched::{NamedPolicy, Policies};

/// A simulated GPU. Memory and the L2 keep their contents from one launch to the next.
pub struct Gpu {
    chip: Chip,
    memory: Memory,
    /// Textures, surfaces and samplers.
    textures: Textures,
    checks: Checks,
    launches: u64,
    /// L2 and DRAM of the timed model, which keep their state between launches.
    side: MemorySide,
    policies: Policies,
    observers: Vec<MakeObserver>,
    /// The plan that pauses, if one does.
    begun: Option<Begun>,
    /// The launches of the fast model.
    histories: Histories,
}

impl fmt::Debug for Gpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gpu")
            .field("chip", &self.chip.name)
            .field("launches", &self.launches)
            .finish_non_exhaustive()
    }
}

/// What a [`Gpu`] looks for while kernels run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Checks {
    /// Reads of memory that was never written ([`Stats::uninitialised`]).
    pub uninitialised: bool,
    /// Accesses that race ([`Stats::races`]).
    pub races: bool,
    /// Loads outside of all allocations.
    pub outside_loads: OutsideLoads,
}

/// How a launch is executed.
#[derive(Clone, Debug)]
pub enum Model {
    /// Values only, without timing.
    Functional,
    /// Cycle by cycle.
    Timed(Timing),
    /// Samples cycle by cycle, the rest estimated.
    Fast(Timing),
}

impl Gpu {
    /// A chip with empty memory.
    pub fn new(chip: Chip, checks: Checks) -> Gpu {
        let memory = Memory::new(chip.memory.global_bytes, checks.uninitialised);
        let memory = memory.outside_loads(checks.outside_loads);
        let side = MemorySide::new(&chip);
        Gpu {
            chip,
            memory,
            textures: Textures::default(),
            checks,
            launches: 0,
            side,
            policies: Policies::default(),
            observers: Vec::new(),
            begun: None,
            histories: Histories::default(),
        }
    }

    pub fn chip(&self) -> &Chip {
        &self.chip
    }

    /// Adds a warp scheduling policy to those that launches can name.
    pub fn add_policy(&mut self, policy: NamedPolicy) {
        self.policies.add(policy);
    }

    /// From now on `make` creates an observer for every SM of every timed launch.
    pub fn add_observer(&mut self, make: MakeObserver) {
        self.observers.push(make);
    }

    /// Device memory, for the host.
    pub fn memory(&mut self) -> &mut Memory {
        &mut self.memory
    }

    /// Textures, surfaces and samplers, for the host.
    pub fn textures(&mut self) -> &mut Textures {
        &mut self.textures
    }

    /// Device memory, read-only.
    pub fn memory_ref(&self) -> &Memory {
        &self.memory
    }

    /// Writes device memory for the host. Returns false, and writes nothing, outside of an allocation.
    pub fn write(&mut self, address: u64, data: &[u8]) -> bool {
        let written = self.memory.write(address, data);
        if written {
            self.written_by_host(address, data.len() as u64);
        }
        written
    }

    /// Counts fresh memory, which is zero, as written by the host.
    pub fn mark_written(&mut self, address: u64, bytes: u64) {
        self.memory.mark_written(address);
        self.written_by_host(address, bytes);
    }

    fn written_by_host(&mut self, address: u64, bytes: u64) {
        if self.chip.l2.host_writes {
            self.side.write_by_host(address, bytes);
        }
    }

    /// Allocates the module's variables and writes their initial values.
    pub fn load(&mut self, module: Module) -> Result<LoadedModule, ModuleError> {
        self.load_placed(module, &[])
    }

    /// Like [`Gpu::load`], with the addresses of some global variables chosen by the host.
    pub fn load_placed(
        &mut self,
        module: Module,
        placed: &[(&str, u64)],
    ) -> Result<LoadedModule, ModuleError> {
        let mut addresses =
            AddressMap { variables: vec![0; module.variables.len()], ..AddressMap::default() };
        addresses.lock_bits = self.chip.lock.bits > 0;
        addresses.optimise = self.chip.compiler.optimise;
        let mut constant_bytes = 0u64;
        for (variable, address) in module.variables.iter().zip(&mut addresses.variables) {
            match variable.space {
                Space::Global => {
                    let name = format!("variable `{}`", variable.name);
                    match placed.iter().find(|(placed, _)| *placed == variable.name) {
                        Some(&(_, chosen)) => {
                            self.memory.allocate_at(chosen, variable.bytes, name)?;
                            *address = chosen;
                        }
                        None => {
                            let align = variable.align as u64;
                            *address = self.memory.allocate(variable.bytes, align, name)?;
                        }
                    }
                }
                Space::Const => {
                    *address = constant_bytes.next_multiple_of(variable.align.max(1) as u64);
                    constant_bytes = address.saturating_add(variable.bytes);
                }
                _ => {}
            }
        }
        let limit = self.chip.memory.constant_bytes;
        if constant_bytes > limit as u64 {
            return Err(ModuleError::Constants { needed: constant_bytes, limit });
        }
        let mut constants = vec![0; constant_bytes as usize];
        for (at, variable) in module.variables.iter().enumerate() {
            let address = addresses.variables[at];
            if let Some(Opaque::Sampler(state)) = variable.opaque {
                let sampler = Sampler {
                    address: state.address,
                    linear: state.linear,
                    normalized: !state.unnormalized,
                    ..Sampler::default()
                };
                self.textures.bind(address, Some(Object::Sampler(sampler)));
            }
            match variable.space {
                // A variable without initial value is zero, as fresh memory is; an image would only cost host memory.
                Space::Global if variable.init.is_empty() && variable.relocations.is_empty() => {
                    self.mark_written(address, variable.bytes);
                }
                Space::Global => {
                    let image = variable_image(&module, VarId(at as u32), &addresses)?;
                    self.write(address, &image);
                }
                Space::Const => {
                    let image = variable_image(&module, VarId(at as u32), &addresses)?;
                    constants[address as usize..][..image.len()].copy_from_slice(&image);
                }
                _ => {}
            }
        }
        let chip = self.chip.name.clone();
        Ok(LoadedModule {
            module: Arc::new(module),
            addresses,
            constants: Arc::new(RwLock::new(constants)),
            chip,
        })
    }

    /// How many CTAs of the kernel fit on an SM, or why it cannot run.
    pub fn occupancy(&self, kernel: &LoadedKernel, shape: Shape) -> Result<Occupancy, Unlaunchable> {
        check_launch(&self.chip, &kernel.kernel, shape)
    }

    /// No plan pauses, so that the machine is free for other launches.
    fn check_idle(&self) -> Result<(), Unlaunchable> {
        self.begun.is_none().then_some(()).ok_or(Unlaunchable::PlanPauses)
    }

    /// Runs a kernel to its end. `params` are the bytes of its parameter buffer; `workspace` is the device memory
    /// through which the CTAs of a cooperative launch synchronize, 0 in other launches.
    pub fn launch(
        &mut self,
        model: &Model,
        kernel: &LoadedKernel,
        shape: Shape,
        params: &[u8],
        limits: &Limits,
        workspace: u64,
    ) -> Result<Stats, LaunchError> {
        self.check_idle()?;
        let occupancy = self.occupancy(kernel, shape)?;
        if params.len() != kernel.kernel.param_bytes as usize {
            return Err(LaunchError::Unlaunchable(Unlaunchable::Params {
                given: params.len(),
                needed: kernel.kernel.param_bytes,
            }));
        }
        self.launches += 1;
        let constants = kernel.constants();
        let mut launch = Launch {
            chip: &self.chip,
            kernel: &kernel.kernel,
            constants: &constants,
            params,
            shape,
            occupancy,
            local_limit: LocalLimit::new(&self.chip, shape, occupancy.ctas_per_sm),
            limits,
            check_uninitialised: self.checks.uninitialised,
            races: None,
            grid_id: self.launches,
            first_cta: 0,
            workspace,
            clusters: shape.cluster.is_some() || kernel.kernel.uses_clusters(),
            textures: &self.textures,
        };
        if self.checks.races && launch.clusters {
            return Err(Unlaunchable::CheckedCluster.into());
        }
        let races = self.checks.races.then(|| Mutex::new(Races::new(&launch)));
        launch.races = races.as_ref();
        let mut result = match model {
            Model::Functional => run_functional(&launch, &mut self.memory),
            Model::Timed(timing) => {
                let count = self.chip.sm.count;
                if let Some(sm) = timing.trace.as_ref().and_then(|trace| trace.sms.unknown(count)) {
                    return Err(Unlaunchable::TracedSm { sm, count }.into());
                }
                let profiled = timing.profile.then(|| kernel.profiled());
                let (policies, observers) = (&self.policies, &self.observers);
                let grid = TimedGrid { launch: &launch, timing, profiled, policies, observers };
                grid.run(&mut self.memory, &mut self.side, false)
            }
            Model::Fast(timing) => {
                if let Some(what) = fast::refuses(timing, &self.observers) {
                    return Err(Unlaunchable::Fast(what).into());
                }
                let (policies, observers) = (&self.policies, &self.observers);
                let grid = TimedGrid { launch: &launch, timing, profiled: None, policies, observers };
                self.histories.run(&grid, &mut self.memory, &mut self.side)
            }
        };
        if let (Some(races), Some(stats)) = (&races, stats_of(&mut result)) {
            let races = races.lock().expect("the launch is over");
            stats.races = races.explain(&launch, &self.memory);
        }
        result
    }
}
