//! Loaded modules and their kernels.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use warploom_isa::{LaunchBounds, Param};

use crate::backend::LoadedModule;
use crate::error::{Error, Result};

/// A module loaded on a device. Clones are the same module.
#[derive(Clone)]
pub struct Module {
    pub(crate) device: u64,
    pub(crate) inner: Arc<dyn LoadedModule>,
}

impl Module {
    /// A kernel by name.
    pub fn kernel(&self, name: &str) -> Result<Kernel> {
        let known = self.inner.kernel_names();
        if !known.iter().any(|k| k == name) {
            return Err(Error::NoKernel { name: name.to_string(), known });
        }
        let (info, handle) = self.inner.kernel(name)?;
        Ok(Kernel { device: self.device, info: Arc::new(info), handle })
    }

    /// Names of the kernels, in the order of the text.
    pub fn kernel_names(&self) -> Vec<String> {
        self.inner.kernel_names()
    }

    /// Address and size in bytes of a global variable.
    pub fn global(&self, name: &str) -> Option<(u64, u64)> {
        self.inner.global(name)
    }

    /// The text's own statement of its dialect: `PTX 6.3, sm_70`.
    pub fn dialect(&self) -> String {
        self.inner.dialect()
    }
}

impl fmt::Debug for Module {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Module").field("kernels", &self.kernel_names()).finish_non_exhaustive()
    }
}

/// A kernel ready to launch. Clones are the same kernel.
#[derive(Clone)]
pub struct Kernel {
    pub(crate) device: u64,
    info: Arc<KernelInfo>,
    handle: Arc<dyn Any + Send + Sync>,
}

impl Kernel {
    /// What a host needs to know about it.
    pub fn info(&self) -> &KernelInfo {
        &self.info
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.info.name
    }

    /// What the backend keeps for it, as the type the backend gave to [`LoadedModule::kernel`].
    pub fn handle<T: Any>(&self) -> Option<&T> {
        self.handle.downcast_ref()
    }

    /// The linked program, on devices that execute it themselves.
    pub fn program(&self) -> Option<&warploom_isa::Kernel> {
        self.handle::<warploom_sim::LoadedKernel>().map(|k| &*k.kernel)
    }
}

impl fmt::Debug for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kernel").field("info", &self.info).finish_non_exhaustive()
    }
}

/// What a host needs to know about a kernel.
#[derive(Clone, Debug)]
pub struct KernelInfo {
    /// Its name.
    pub name: String,
    /// Parameters, with their places in the parameter buffer.
    pub params: Vec<Param>,
    /// Bytes of the parameter buffer.
    pub param_bytes: u32,
    /// Width of a pointer: 32 or 64.
    pub address_bits: u8,
    /// 32-bit registers of a thread.
    pub registers: u32,
    /// Shared memory it declares.
    pub static_shared_bytes: u32,
    /// Local memory of a thread.
    pub local_bytes: u32,
    /// Limits it states.
    pub bounds: LaunchBounds,
}

impl KernelInfo {
    /// The kernel with its parameters: `vecadd(u64 a, u64 b, u64 c, u32 n)`.
    pub fn signature(&self) -> String {
        signature(&self.name, &self.params)
    }
}

/// A name with its parameters: `vecadd(u64 a, u64 b, u64 c, u32 n)`.
pub fn signature(name: &str, params: &[Param]) -> String {
    let params = params.iter().map(|p| format!("{} {}", declared(p), p.name)).collect::<Vec<_>>();
    format!("{name}({})", params.join(", "))
}

/// A parameter's type: `u64`, `b8[16]`, `u64 global*`.
pub fn declared(param: &Param) -> String {
    let elements = param.bytes / param.ty.bytes();
    let array = if elements == 1 { String::new() } else { format!("[{elements}]") };
    let pointer = param.pointer.map_or(String::new(), |space| format!(" {}*", space.name()));
    format!("{}{array}{pointer}", param.ty)
}
