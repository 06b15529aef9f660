//! Modules and kernels loaded on a chip.

use std::sync::{Arc, OnceLock, RwLock, RwLockReadGuard};

use warploom_isa::diag::LoadError;
use warploom_isa::{AddressMap, Kernel, LinkError, Module, Space, link};

use crate::exec::fault::Place;
use crate::exec::memory::store::OutOfMemory;
use crate::explain::profile::Code;

/// A module whose variables have addresses. Its kernels are linked on demand ([`LoadedModule::kernel`]).
#[derive(Debug)]
pub struct LoadedModule {
    pub(super) module: Arc<Module>,
    pub(super) addresses: AddressMap,
    /// The constant bank, which the host can write between launches.
    pub(super) constants: Arc<RwLock<Vec<u8>>>,
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

    /// Offset in the constant bank, and size in bytes, of a constant variable.
    pub fn constant(&self, name: &str) -> Option<(u64, u64)> {
        let at = self.module.variables.iter().position(|v| v.space == Space::Const && v.name == name)?;
        Some((self.addresses.variables[at], self.module.variables[at].bytes))
    }

    /// Bytes of the constant bank; `None` if they are not all inside.
    pub fn read_constants(&self, offset: u64, bytes: usize) -> Option<Vec<u8>> {
        let bank = self.constants.read().expect(UNPOISONED);
        let start = usize::try_from(offset).ok()?;
        bank.get(start..start.checked_add(bytes)?).map(<[u8]>::to_vec)
    }

    /// The host writes the constant bank, for all later launches. Returns false, and writes nothing, outside of it.
    pub fn write_constants(&self, offset: u64, data: &[u8]) -> bool {
        let mut bank = self.constants.write().expect(UNPOISONED);
        let Ok(start) = usize::try_from(offset) else { return false };
        let end = start.checked_add(data.len());
        let Some(target) = end.and_then(|end| bank.get_mut(start..end)) else { return false };
        target.copy_from_slice(data);
        true
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
        Ok(LoadedKernel {
            kernel: Arc::new(kernel),
            constants: self.constants.clone(),
            profiled: Arc::default(),
        })
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
    constants: Arc<RwLock<Vec<u8>>>,
    /// What profiles of its launches share, once there is one.
    profiled: Arc<OnceLock<Arc<Code>>>,
}

impl LoadedKernel {
    /// What a profile knows of its code.
    pub(super) fn profiled(&self) -> Arc<Code> {
        self.profiled.get_or_init(|| Arc::new(Code::new(&self.kernel))).clone()
    }

    /// The constant bank, which nobody writes while this lives.
    pub(super) fn constants(&self) -> RwLockReadGuard<'_, Vec<u8>> {
        self.constants.read().expect(UNPOISONED)
    }
}

/// Why a lock on a constant bank is not poisoned.
const UNPOISONED: &str = "a copy of bytes does not panic";

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
