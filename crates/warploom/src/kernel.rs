//! Loaded modules, their kernels, and what a host needs to know about a kernel.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use warploom_isa::{LaunchBounds, Param};

use crate::backend::LoadedModule;
use crate::error::{Error, Result};

/// A module loaded on a device: its kernels and global variables. Cheap to clone; clones share the module.
#[derive(Clone)]
pub struct Module {
    pub(crate) device: u64,
    pub(crate) inner: Arc<dyn LoadedModule>,
}

impl Module {
    /// Looks up a kernel by name, ready to launch on the device of this module.
    pub fn kernel(&self, name: &str) -> Result<Kernel> {
        let known = self.inner.kernel_names();
        if !known.iter().any(|k| k == name) {
            return Err(Error::NoKernel { name: name.to_string(), known });
        }
        let (info, handle) = self.inner.kernel(name)?;
        Ok(Kernel { device: self.device, info: Arc::new(info), handle })
    }

    /// Names of the kernels, in the order of the source text.
    pub fn kernel_names(&self) -> Vec<String> {
        self.inner.kernel_names()
    }

    /// Address and size in bytes of a global variable ([`Device::read_bytes`](crate::Device::read_bytes) reads it).
    pub fn global(&self, name: &str) -> Option<(u64, u64)> {
        self.inner.global(name)
    }

    /// Offset in the module's constant bank, and size in bytes, of a constant variable. `None` on a real GPU.
    pub fn constant(&self, name: &str) -> Option<(u64, u64)> {
        self.inner.constant(name)
    }

    /// Bytes of the module's constant bank, from `offset` on; `None` if they are not all inside.
    pub fn read_constants(&self, offset: u64, bytes: usize) -> Option<Vec<u8>> {
        self.inner.read_constants(offset, bytes)
    }

    /// Writes the module's constant bank, for all later launches of its kernels. Fails, and writes nothing, if the
    /// bytes are not all inside.
    pub fn write_constants(&self, offset: u64, data: &[u8]) -> Result<()> {
        match self.inner.write_constants(offset, data) {
            true => Ok(()),
            false => {
                let bytes = data.len();
                Err(Error::Misuse(format!(
                    "{bytes} bytes at {offset:#x} are not inside the module's constants"
                )))
            }
        }
    }

    /// The dialect that the text declares: `PTX 6.3, sm_70`.
    pub fn dialect(&self) -> String {
        self.inner.dialect()
    }
}

impl fmt::Debug for Module {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Module").field("kernels", &self.kernel_names()).finish_non_exhaustive()
    }
}

/// A kernel ready to launch. Cheap to clone; clones share the kernel. It runs only on the device that loaded it.
#[derive(Clone)]
pub struct Kernel {
    pub(crate) device: u64,
    info: Arc<KernelInfo>,
    handle: Arc<dyn Any + Send + Sync>,
}

impl Kernel {
    /// Parameters, registers, memory and launch bounds.
    pub fn info(&self) -> &KernelInfo {
        &self.info
    }

    pub fn name(&self) -> &str {
        &self.info.name
    }

    /// The backend's own data for this kernel, if it has type `T` (see [`LoadedModule::kernel`]).
    pub(crate) fn handle<T: Any>(&self) -> Option<&T> {
        self.handle.downcast_ref()
    }

    /// The linked program. `None` on a real GPU, which executes the driver's translation instead.
    pub fn program(&self) -> Option<&warploom_isa::Kernel> {
        self.handle::<warploom_sim::LoadedKernel>().map(|k| &*k.kernel)
    }
}

impl fmt::Debug for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kernel").field("info", &self.info).finish_non_exhaustive()
    }
}

/// What a host needs to know about a kernel: its parameters and what a launch of it takes.
#[derive(Clone, Debug)]
pub struct KernelInfo {
    pub name: String,
    /// Parameters, with their offsets in the parameter buffer.
    pub params: Vec<Param>,
    /// Size of the parameter buffer.
    pub param_bytes: u32,
    /// Width of a pointer: 32 or 64.
    pub address_bits: u8,
    /// 32-bit registers per thread.
    pub registers: u32,
    /// Shared memory per CTA that the kernel declares.
    pub static_shared_bytes: u32,
    /// Local memory per thread.
    pub local_bytes: u32,
    /// `.maxntid`, `.reqntid` and the like.
    pub bounds: LaunchBounds,
}

impl KernelInfo {
    /// The kernel with its parameters: `vecadd(u64 a, u64 b, u64 c, u32 n)`.
    pub fn signature(&self) -> String {
        signature(&self.name, &self.params)
    }
}

/// A kernel's name with its parameters: `vecadd(u64 a, u64 b, u64 c, u32 n)`.
pub(crate) fn signature(name: &str, params: &[Param]) -> String {
    let params = params.iter().map(|p| format!("{} {}", declared(p), p.name)).collect::<Vec<_>>();
    format!("{name}({})", params.join(", "))
}

/// A parameter's type as messages show it: `u64`, `b8[16]`, `u64 global*`.
pub fn declared(param: &Param) -> String {
    let elements = param.bytes / param.ty.bytes();
    let array = if elements == 1 { String::new() } else { format!("[{elements}]") };
    let pointer = param.pointer.map_or(String::new(), |space| format!(" {}*", space.name()));
    format!("{}{array}{pointer}", param.ty)
}
