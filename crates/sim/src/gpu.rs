//! The chip as a host sees it: memory, loaded modules, launches.

mod firmware;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};

use serde::Serialize;
use warploom_isa::{AddressMap, Kernel, LinkError, Module, Space, VarId, link, variable_image};

use crate::chip::Chip;
use crate::fault::{Fault, Place};
use crate::functional;
use crate::hang::Hang;
use crate::lock_warnings::LockWarning;
use crate::machine::{self, MemorySide, Timing};
use crate::mem::store::{Memory, OutOfMemory};
use crate::occupancy::{Occupancy, Unlaunchable, check_launch};
use crate::report::TimedStats;
use crate::stats::SmStats;
use crate::trace::{Recording, Timeline};

/// A module whose variables have their place in memory.
#[derive(Debug)]
pub struct LoadedModule {
    module: Arc<Module>,
    addresses: AddressMap,
    /// The constant bank.
    constants: Arc<Vec<u8>>,
    /// The chip it is loaded for.
    chip: String,
}

impl LoadedModule {
    /// The module as the front end made it.
    pub fn module(&self) -> &Module {
        &self.module
    }

    /// Address and size of a global variable, for the host.
    pub fn global(&self, name: &str) -> Option<(u64, u64)> {
        let at = self.module.variables.iter().position(|v| v.space == Space::Global && v.name == name)?;
        Some((self.addresses.variables[at], self.module.variables[at].bytes))
    }

    /// Links a kernel.
    pub fn kernel(&self, name: &str) -> Result<LoadedKernel, ModuleError> {
        let at = self.module.functions.iter().position(|f| f.is_kernel && f.body.is_some() && f.name == name);
        let Some(at) = at else {
            return Err(ModuleError::NoKernel { name: name.to_string(), known: self.kernel_names() });
        };
        let kernel = link(&self.module, warploom_isa::FuncId(at as u32), &self.addresses)?;
        if let Some(pc) = kernel.first_lock().filter(|_| !self.addresses.lock_bits) {
            let Place { file, line, instruction, .. } = Place::of(&kernel, pc);
            return Err(ModuleError::NoLockBits { chip: self.chip.clone(), file, line, instruction });
        }
        Ok(LoadedKernel { kernel: Arc::new(kernel), constants: self.constants.clone() })
    }

    /// Names of the kernels in the module.
    pub fn kernel_names(&self) -> Vec<String> {
        let kernels = self.module.functions.iter().filter(|f| f.is_kernel && f.body.is_some());
        kernels.map(|f| f.name.clone()).collect()
    }
}

/// A kernel ready to launch.
#[derive(Clone, Debug)]
pub struct LoadedKernel {
    /// Its code and needs.
    pub kernel: Arc<Kernel>,
    constants: Arc<Vec<u8>>,
}

/// Why a module or a kernel of it cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum ModuleError {
    /// No kernel of that name.
    #[error("no kernel `{name}`; the module has {list}", list = list(known))]
    NoKernel {
        /// What was asked for.
        name: String,
        /// What there is.
        known: Vec<String>,
    },
    /// Linking failed.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// It uses lock bits, and the chip has none.
    #[error(
        "{file}:{line}: `{instruction}`: {chip} has no lock bits; run it on one that has (--chip gtx570), or give it some (--set lock.bits=1024)"
    )]
    NoLockBits {
        /// The chip.
        chip: String,
        /// The text.
        file: String,
        /// The line of the first instruction that needs them.
        line: u32,
        /// That instruction.
        instruction: String,
    },
    /// Its variables do not fit.
    #[error(transparent)]
    Memory(#[from] OutOfMemory),
    /// Its constants do not fit.
    #[error("the module has {needed} bytes of constants, the chip takes {limit} (memory.constant_bytes)")]
    Constants {
        /// Bytes needed.
        needed: u64,
        /// Bytes there are.
        limit: u32,
    },
}

fn list(names: &[String]) -> String {
    if names.is_empty() {
        return "none".to_string();
    }
    names.iter().map(|n| format!("`{n}`")).collect::<Vec<_>>().join(", ")
}

/// The shape of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Shape {
    /// CTAs.
    pub grid: [u32; 3],
    /// Threads of a CTA.
    pub block: [u32; 3],
    /// Bytes of shared memory besides what the kernel declares.
    pub dynamic_shared_bytes: u32,
}

impl Shape {
    /// Where in the grid the CTA of a number is.
    pub fn cta(&self, number: u64) -> [u32; 3] {
        let [x, y, _] = self.grid.map(u64::from);
        [(number % x) as u32, (number / x % y) as u32, (number / x / y) as u32]
    }
}

/// What ends a launch from outside.
#[derive(Clone, Debug, Default)]
pub struct Limits {
    /// Cycles. (The functional model has one cycle a warp instruction.)
    pub max_cycles: Option<u64>,
    /// Becomes true when the user wants to stop.
    pub interrupt: Option<Arc<AtomicBool>>,
    /// Is told how far the launch has come.
    pub progress: Option<Arc<Progress>>,
}

/// How far a launch has come, for whoever watches from another thread.
#[derive(Debug, Default)]
pub struct Progress {
    /// Warp instructions executed.
    pub instructions: AtomicU64,
    /// CTAs that have ended.
    pub ctas_done: AtomicU64,
    /// CTAs of the grid.
    pub ctas: AtomicU64,
}

/// What a launch did.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stats {
    /// Instructions executed by warps.
    pub warp_instructions: u64,
    /// The same, each counted once for every active lane, guarded off or not.
    pub thread_instructions: u64,
    /// CTAs run.
    pub ctas: u64,
    /// Warps run.
    pub warps: u64,
    /// What the kernel printed, by CTA and thread.
    pub output: String,
    /// Reads of memory that nobody wrote, one for each instruction, if they were asked for.
    pub uninitialised: Vec<UninitialisedRead>,
    /// What looks wrong with the use of lock bits.
    pub lock_warnings: Vec<LockWarning>,
    /// What the timed model adds.
    pub timed: Option<Box<TimedStats>>,
}

/// A read of memory that was never written.
#[derive(Clone, Debug, PartialEq)]
pub struct UninitialisedRead {
    /// The first occurrence, in words.
    pub message: String,
    /// How often a warp did it with that instruction.
    pub count: u64,
}

/// Why a launch failed.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// It cannot run on this chip.
    #[error(transparent)]
    Unlaunchable(#[from] Unlaunchable),
    /// A thread did something wrong.
    #[error("{fault}")]
    Fault {
        /// What and where.
        fault: Box<Fault>,
        /// What happened until then.
        stats: Box<Stats>,
    },
    /// Nothing moves any more, or a limit was reached.
    #[error("{hang}")]
    Hang {
        /// Who waits for what.
        hang: Box<Hang>,
        /// What happened until then.
        stats: Box<Stats>,
    },
    /// Firmware did something wrong, or gave up.
    #[error("{message}")]
    Firmware {
        /// What.
        message: String,
        /// What happened until then.
        stats: Box<Stats>,
    },
    /// The user stopped it.
    #[error("stopped by the user after {} warp instructions", stats.warp_instructions)]
    Interrupted {
        /// What happened until then.
        stats: Box<Stats>,
    },
}

/// A simulated GPU.
#[derive(Debug)]
pub struct Gpu {
    chip: Chip,
    memory: Memory,
    check_uninitialised: bool,
    launches: u64,
    side: MemorySide,
}

/// How a launch is executed.
#[derive(Clone, Debug)]
pub enum Model {
    /// Values only.
    Functional,
    /// Cycle by cycle.
    Timed(Timing),
}

impl Gpu {
    /// A chip with empty memory. With `check_uninitialised`, reads of never-written memory are reported.
    pub fn new(chip: Chip, check_uninitialised: bool) -> Gpu {
        let memory = Memory::new(chip.memory.global_bytes, check_uninitialised);
        let side = MemorySide::new(&chip);
        Gpu { chip, memory, check_uninitialised, launches: 0, side }
    }

    /// The chip.
    pub fn chip(&self) -> &Chip {
        &self.chip
    }

    /// Device memory, for the host.
    pub fn memory(&mut self) -> &mut Memory {
        &mut self.memory
    }

    /// Device memory, to look at.
    pub fn memory_ref(&self) -> &Memory {
        &self.memory
    }

    /// Gives the module's variables their place and initial values.
    pub fn load(&mut self, module: Module) -> Result<LoadedModule, ModuleError> {
        let mut addresses =
            AddressMap { variables: vec![0; module.variables.len()], ..AddressMap::default() };
        addresses.lock_bits = self.chip.lock.bits > 0;
        let mut constant_bytes = 0u64;
        for (variable, address) in module.variables.iter().zip(&mut addresses.variables) {
            match variable.space {
                Space::Global => {
                    let name = format!("variable `{}`", variable.name);
                    *address = self.memory.allocate(variable.bytes, variable.align as u64, name)?;
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
            match variable.space {
                // What has no initial value is zero, as memory is; an image of it would only cost memory.
                Space::Global if variable.init.is_empty() && variable.relocations.is_empty() => {
                    self.memory.mark_written(address);
                }
                Space::Global => {
                    let image = variable_image(&module, VarId(at as u32), &addresses)?;
                    self.memory.write(address, &image);
                }
                Space::Const => {
                    let image = variable_image(&module, VarId(at as u32), &addresses)?;
                    constants[address as usize..][..image.len()].copy_from_slice(&image);
                }
                _ => {}
            }
        }
        let chip = self.chip.name.clone();
        Ok(LoadedModule { module: Arc::new(module), addresses, constants: Arc::new(constants), chip })
    }

    /// What of the kernel fits on an SM, or why it cannot run.
    pub fn occupancy(&self, kernel: &LoadedKernel, shape: Shape) -> Result<Occupancy, Unlaunchable> {
        check_launch(&self.chip, &kernel.kernel, shape)
    }

    /// Runs a kernel to its end. `params` are the bytes of its parameter buffer.
    pub fn launch(
        &mut self,
        model: &Model,
        kernel: &LoadedKernel,
        shape: Shape,
        params: &[u8],
        limits: &Limits,
    ) -> Result<Stats, LaunchError> {
        let occupancy = self.occupancy(kernel, shape)?;
        if params.len() != kernel.kernel.param_bytes as usize {
            return Err(LaunchError::Unlaunchable(Unlaunchable::Params {
                given: params.len(),
                needed: kernel.kernel.param_bytes,
            }));
        }
        self.launches += 1;
        let launch = functional::Launch {
            chip: &self.chip,
            kernel: &kernel.kernel,
            constants: &kernel.constants,
            params,
            shape,
            occupancy,
            limits,
            check_uninitialised: self.check_uninitialised,
            grid_id: self.launches,
        };
        match (model, self.chip.sm.warp_lanes) {
            (Model::Functional, 32) => functional::run::<32>(&launch, &mut self.memory),
            (Model::Functional, _) => functional::run::<64>(&launch, &mut self.memory),
            (Model::Timed(timing), lanes) => {
                check_policy(timing)?;
                let count = self.chip.sm.count;
                let traced = timing.trace.iter().flat_map(|trace| &trace.sms);
                if let Some(&sm) = traced.into_iter().find(|&&sm| sm >= count) {
                    return Err(Unlaunchable::TracedSm { sm, count }.into());
                }
                match lanes {
                    32 => timed::<32>(&launch, timing, &mut self.memory, &mut self.side),
                    _ => timed::<64>(&launch, timing, &mut self.memory, &mut self.side),
                }
            }
        }
    }
}

/// Refuses a warp scheduler that does not exist.
fn check_policy(timing: &Timing) -> Result<(), Unlaunchable> {
    match timing.policy.as_deref().filter(|name| !crate::sched::names().contains(name)) {
        Some(name) => Err(Unlaunchable::Policy(name.to_string())),
        None => Ok(()),
    }
}

/// Runs the timed machine, with a timeline of the SMs that are traced.
fn timed<const N: usize>(
    launch: &functional::Launch<'_>,
    timing: &Timing,
    memory: &mut Memory,
    side: &mut MemorySide,
) -> Result<Stats, LaunchError> {
    let Some(options) = &timing.trace else {
        return machine::run::<N, ()>(launch, timing, memory, side, |_, _| (SmStats::default(), ())).0;
    };
    let room = options.max_bytes / options.sms.len().max(1) as u64;
    let timeline = |sm, start| {
        let slots = launch.chip.sm.max_warps;
        let traced = options.sms.contains(&sm);
        (SmStats::default(), traced.then(|| Timeline::new(sm, slots, start, options, room)))
    };
    let (mut result, timelines) = machine::run::<N, Option<Timeline>>(launch, timing, memory, side, timeline);
    if let Some(timed) = stats_of(&mut result).and_then(|stats| stats.timed.as_deref_mut()) {
        let recording = Recording { launch, memory, cycles: timed.cycles, policy: &timed.policy };
        let timelines = timelines.into_iter().flatten().collect();
        timed.trace = Some(crate::trace::write(&recording, options, timelines));
    }
    result
}

/// What a launch did, whether it ended well or not.
fn stats_of(result: &mut Result<Stats, LaunchError>) -> Option<&mut Stats> {
    match result {
        Ok(stats) => Some(stats),
        Err(LaunchError::Unlaunchable(_)) => None,
        Err(
            LaunchError::Fault { stats, .. }
            | LaunchError::Hang { stats, .. }
            | LaunchError::Firmware { stats, .. }
            | LaunchError::Interrupted { stats },
        ) => Some(stats),
    }
}
