//! Modules and kernels loaded on a chip.

use std::sync::Arc;

use warploom_isa::diag::LoadError;
use warploom_isa::{AddressMap, Kernel, LinkError, Module, Space, link};

use crate::exec::fault::Place;
use crate::exec::memory::store::OutOfMemory;

/// A module whose variables have addresses. Its kernels are linked on demand ([`LoadedModule::kernel`]).
#[derive(Debug)]
pub struct LoadedModule {
    pub(super) module: Arc<Module>,
    pub(super) addresses: AddressMap,
    /// The constant bank.
    pub(super) constants: Arc<Vec<u8>>,
    /// The chip's name, for messages.
    pub(super) chip: String,
}

impl LoadedModule {
    /// The module as the front end produced it.
    pub fn module(&self) -> &Module {
        &self.module
    }

    /// Address and size in bytes of a global variable.
    pub fn global(&self, name: &str) -> Option<(u64, u64)> {
        let at = self.module.variables.iter().position(|v| v.space == Space::Global && v.name == name)?;
        Some((self.addresses.variables[at], self.module.variables[at].bytes))
    }

    /// Links the kernel of that name.
    pub fn kernel(&self, name: &str) -> Result<LoadedKernel, ModuleError> {
        let at = self.module.functions.iter().position(|f| f.is_kernel && f.body.is_some() && f.name == name);
        let Some(at) = at else {
            return Err(ModuleError::NoKernel { name: name.to_string(), known: self.kernel_names() });
        };
        let kernel = link(&self.module, warploom_isa::FuncId(at as u32), &self.addresses).map_err(
            |error| match error {
                LinkError::NotModelled(refusals) => {
                    ModuleError::NotModelled(Box::new(LoadError::new(self.module.source.clone(), refusals)))
                }
                error => ModuleError::Link(error),
            },
        )?;
        if let Some(pc) = kernel.first_lock().filter(|_| !self.addresses.lock_bits) {
            let Place { file, line, instruction, .. } = Place::of(&kernel, pc);
            return Err(ModuleError::NoLockBits { chip: self.chip.clone(), file, line, instruction });
        }
        Ok(LoadedKernel { kernel: Arc::new(kernel), constants: self.constants.clone() })
    }

    pub fn kernel_names(&self) -> Vec<String> {
        let kernels = self.module.functions.iter().filter(|f| f.is_kernel && f.body.is_some());
        kernels.map(|f| f.name.clone()).collect()
    }
}

/// A kernel ready to launch.
#[derive(Clone, Debug)]
pub struct LoadedKernel {
    pub kernel: Arc<Kernel>,
    pub(super) constants: Arc<Vec<u8>>,
}

/// Why a module cannot be loaded, or one of its kernels cannot be linked.
#[derive(Debug, thiserror::Error)]
pub enum ModuleError {
    #[error("no kernel `{name}`; the module has {list}", list = list(known))]
    NoKernel { name: String, known: Vec<String> },
    #[error(transparent)]
    Link(#[from] LinkError),
    /// The kernel, or a function that it reaches, needs what the model does not have.
    #[error("{}", .0.render(false).trim_end())]
    NotModelled(Box<LoadError>),
    /// The kernel uses lock bits, and the chip has none. `instruction` is the first that needs them.
    #[error(
        "{file}:{line}: `{instruction}`: {chip} has no lock bits; run it on one that has (--chip gtx570), \
         or give it some (--set lock.bits=1024)"
    )]
    NoLockBits { chip: String, file: String, line: u32, instruction: String },
    /// The module's variables do not fit device memory.
    #[error(transparent)]
    Memory(#[from] OutOfMemory),
    /// The module's constants do not fit the chip's constant memory.
    #[error("the module has {needed} bytes of constants, the chip takes {limit} (memory.constant_bytes)")]
    Constants { needed: u64, limit: u32 },
}

fn list(names: &[String]) -> String {
    if names.is_empty() {
        return "none".to_string();
    }
    names.iter().map(|n| format!("`{n}`")).collect::<Vec<_>>().join(", ")
}
