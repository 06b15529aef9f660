//! The process's one simulated device, and what the program has registered with it: fat binaries, kernels, variables.
//!
//! Registering happens before `main`, so nothing is opened for it: the device with the first call that needs it, a
//! fat binary's module with the first use of one of its symbols, a kernel with its first launch.

use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::fs::OpenOptions;
use std::sync::{LazyLock, Mutex, PoisonError};

use warploom::ptx::heap::{self, HEAP_BYTES};
use warploom::ptx::link;
use warploom::{Device, Kernel, Module};

use crate::core::arrays::Arrays;
use crate::core::error::{CudaError, Result};
use crate::core::fatbin::{FatBinary, Ptx};
use crate::core::graphs::Graphs;
use crate::core::memory::Memory;
use crate::core::modules::Modules;
use crate::core::pending::{Awaited, Outstanding};
use crate::core::properties::Properties;
use crate::core::record::Record;
use crate::core::settings::Settings;
use crate::core::streams::Streams;

/// Everything that calls of the runtime share.
pub(crate) struct Process {
    pub(crate) settings: Settings,
    /// The process that opened the device. A child by `fork` cannot use it, but may open one if its parent had none.
    pub(super) pid: u32,
    pub(super) images: Vec<Image>,
    pub(super) functions: HashMap<u64, Function>,
    variables: HashMap<u64, Variable>,
    /// Texture references, and whether they read integers as fractions.
    references: HashMap<u64, bool>,
    open: Option<Open>,
    /// The error of a kernel that failed: all later calls give it, too.
    pub(super) sticky: Option<CudaError>,
    /// The CUDA version of the program: 11, 12 or 13.
    pub(crate) cuda_version: u32,
    /// What the program has loaded by the driver's API.
    pub(super) modules: Modules,
    pub(crate) graphs: Graphs,
    /// Bytes of the heap of modules that are loaded from now on.
    pub(crate) heap_bytes: u64,
}

/// The opened device.
pub(crate) struct Open {
    pub(crate) gpu: Device,
    pub(crate) properties: Properties,
    pub(crate) memory: Memory,
    pub(crate) streams: Streams,
    pub(crate) arrays: Arrays,
    pub(crate) record: Record,
    /// Work of streams that is put off, with its stream.
    pub(super) pending: Outstanding,
    /// What kernels have printed and the host has not seen yet.
    pub(super) printed: String,
}

/// Kernels of the program: one fat binary, or several that are linked.
pub(super) struct Image {
    pub(super) binaries: Vec<FatBinary>,
    pub(super) loaded: Option<Result<Module>>,
    /// Managed variables, with the address that the host knows them by.
    managed: Vec<(String, u64)>,
}

/// A kernel, by the address of its stub in the host's program.
pub(crate) struct Function {
    pub(super) image: usize,
    /// Its mangled name.
    pub(crate) name: String,
    pub(crate) plain: String,
    kernel: Option<Result<Kernel>>,
    /// Dynamic shared memory that the program has allowed it.
    pub(crate) max_dynamic_shared: Option<u32>,
    /// Whether the program has allowed it clusters that not every GPU has.
    pub(crate) any_cluster: bool,
}

/// A device variable, by the address of its shadow in the host's program.
#[derive(Clone)]
struct Variable {
    image: usize,
    name: String,
}

/// Where a device variable is.
pub(crate) struct Symbol {
    pub(crate) address: u64,
    pub(crate) bytes: u64,
}

/// Addresses that stand for the constants of modules, one window each: copies may have them, but no kernel and no
/// pointer of the host does.
pub(super) const CONSTANTS: u64 = 1 << 52;
const CONSTANT_WINDOW: u64 = 1 << 24;

thread_local! {
    /// Complaints of this thread.
    static COMPLAINTS: Cell<u64> = const { Cell::new(0) };
}

/// Says on stderr what is wrong.
pub(crate) fn complain(message: impl std::fmt::Display) {
    COMPLAINTS.set(COMPLAINTS.get() + 1);
    eprintln!("warploom: {message}");
}

/// The same, but the same words only once in a program.
pub(crate) fn complain_once(message: String) {
    static TOLD: LazyLock<Mutex<HashSet<String>>> = LazyLock::new(Mutex::default);
    if TOLD.lock().unwrap_or_else(PoisonError::into_inner).insert(message.clone()) {
        complain(message);
    }
}

/// How often this thread has complained.
pub(crate) fn complaints() -> u64 {
    COMPLAINTS.get()
}

impl Process {
    pub(crate) fn new(settings: Settings, cuda_version: u32) -> Process {
        Process {
            cuda_version: settings.cuda_version.unwrap_or(cuda_version),
            settings,
            pid: std::process::id(),
            images: Vec::new(),
            functions: HashMap::new(),
            variables: HashMap::new(),
            references: HashMap::new(),
            open: None,
            sticky: None,
            modules: Modules::default(),
            graphs: Graphs::default(),
            heap_bytes: HEAP_BYTES,
        }
    }

    /// The program's version of CUDA as CUDA numbers them: 12040 for 12.4. The number behind the point is that of the
    /// nvcc that wrote the program's PTX, as far as that can be seen.
    pub(crate) fn version_number(&self) -> u32 {
        let texts = self.images.iter().flat_map(|image| &image.binaries).flat_map(|binary| &binary.ptx);
        let versions = texts.filter_map(|ptx| cuda_of_ptx(&ptx.text));
        let minor = versions.filter(|(major, _)| *major == self.cuda_version).map(|(_, minor)| minor).max();
        1000 * self.cuda_version + 10 * minor.unwrap_or(0)
    }

    /// Adds fat binaries, to be linked if there are several, and returns their number.
    pub(crate) fn add_image(&mut self, binaries: Vec<FatBinary>) -> usize {
        self.images.push(Image { binaries, loaded: None, managed: Vec::new() });
        self.images.len() - 1
    }

    pub(crate) fn add_function(&mut self, image: usize, host: u64, name: String) {
        let plain = plain_name(&name);
        let function =
            Function { image, name, plain, kernel: None, max_dynamic_shared: None, any_cluster: false };
        self.functions.insert(host, function);
    }

    pub(crate) fn add_variable(&mut self, image: usize, host: u64, name: String) {
        self.variables.insert(host, Variable { image, name });
    }

    /// A texture reference of the program.
    pub(crate) fn add_reference(&mut self, image: usize, host: u64, name: String, normalized_read: bool) {
        self.add_variable(image, host, name);
        self.references.insert(host, normalized_read);
    }

    /// Whether a texture reference reads integers as fractions.
    pub(crate) fn reads_normalized(&self, host: u64) -> Result<bool> {
        self.references.get(&host).copied().ok_or(CudaError::INVALID_TEXTURE)
    }

    /// The host knows a variable of the image by this address, and so does the device.
    pub(crate) fn add_managed(&mut self, image: usize, host: u64, name: String, address: u64) {
        self.variables.insert(host, Variable { image, name: name.clone() });
        if let Some(image) = self.images.get_mut(image) {
            image.managed.push((name, address));
        }
    }

    /// The newest target of the program's PTX.
    fn newest_ptx(&self) -> Option<u32> {
        let of_image = |image: &Image| newest_of_all(&image.binaries);
        self.images.iter().filter_map(of_image).max()
    }

    /// Whether the device can be used, and is not spoilt by a kernel that failed.
    pub(crate) fn check(&self) -> Result {
        if self.open.is_some() && self.pid != std::process::id() {
            complain_once(
                "the device was opened before a fork, and the child process cannot use it: \
                 call CUDA after the fork only"
                    .to_string(),
            );
            return Err(CudaError::INITIALIZATION);
        }
        self.sticky.map_or(Ok(()), Err)
    }

    /// The device with all work done, opened if it was not. A kernel that fails in this work gives its error here.
    pub(crate) fn open(&mut self) -> Result<&mut Open> {
        self.check()?;
        self.settle()?;
        self.open_busy()
    }

    /// The device with the work of a stream done, or that before an event. Other work may be pending.
    pub(crate) fn open_after(&mut self, awaited: Awaited) -> Result<&mut Open> {
        self.check()?;
        self.settle_until(awaited)?;
        self.open_busy()
    }

    /// The same for the handle of a stream.
    pub(crate) fn open_after_stream(&mut self, handle: u64) -> Result<&mut Open> {
        let stream = self.open_busy()?.streams.find(handle)?;
        self.open_after(Awaited::Stream(stream))
    }

    /// The device, whose work may be pending, opened if it was not: for what neither changes that work nor sees what
    /// it does. Settings that describe no device end the process: no call could say so.
    pub(crate) fn open_busy(&mut self) -> Result<&mut Open> {
        self.check()?;
        if self.open.is_none() {
            self.pid = std::process::id();
            let newest = self.newest_ptx();
            let opened = self.settings.chip(newest).and_then(|chip| {
                let open = |path| OpenOptions::new().create(true).append(true).open(path);
                let json = self.settings.json.as_ref().map(open).transpose();
                let json = json.map_err(|error| format!("the JSON file cannot be written: {error}"))?;
                // Compilers that a program calls while it runs make code for 7.5 and later.
                let properties = Properties::new(&chip, newest.or(Some(75)));
                let gpu = Device::sim_with(chip, self.settings.sim_options());
                let streams = Streams::default();
                let memory = Memory::new(self.settings.allocation_granule());
                let printed = String::new();
                let (arrays, record) = (Arrays::default(), Record::new(json, self.settings.profile.clone()));
                Ok(Open {
                    gpu,
                    properties,
                    memory,
                    streams,
                    arrays,
                    record,
                    pending: Outstanding::default(),
                    printed,
                })
            });
            self.open = Some(opened.unwrap_or_else(|error| {
                complain(error);
                std::process::exit(2);
            }));
        }
        self.open.as_mut().ok_or(CudaError::INITIALIZATION)
    }

    /// The device if it is open, whatever state it is in.
    pub(crate) fn opened(&mut self) -> Option<&mut Open> {
        self.open.as_mut().filter(|_| self.pid == std::process::id())
    }

    /// Forgets the device, as `cudaDeviceReset` does. Memory, modules and streams are gone; the record stays.
    pub(crate) fn reset(&mut self) -> Result {
        // A kernel that fails now is told of; the error itself is forgotten with the device.
        let _ = self.settle();
        if let Some(open) = self.opened() {
            let record = std::mem::take(&mut open.record);
            self.open = None;
            self.sticky = None;
            for image in &mut self.images {
                image.loaded = None;
            }
            for function in self.functions.values_mut() {
                function.kernel = None;
            }
            self.open()?.record = record;
        }
        Ok(())
    }

    /// Says that no launch was one of those to be timed, if that is so.
    pub(crate) fn missed_timing(&mut self) -> Option<String> {
        const MOST_NAMES: usize = 8;
        let (is_timed, timed) = (self.settings.is_timed(), self.settings.timed.clone());
        let (launches, mut names) = self.opened().filter(|_| is_timed)?.record.untimed()?;
        let more = if names.len() > MOST_NAMES { ", …" } else { "" };
        names.truncate(MOST_NAMES);
        let none = if launches == 1 {
            "the one launch was not".to_string()
        } else {
            format!("none of {launches} launches was")
        };
        Some(format!(
            "{none} timed: --timed {timed} (WARPLOOM_TIMED) chooses none of them; kernels: {}{more}",
            names.join(", ")
        ))
    }

    /// The module of an image, loaded if it was not.
    pub(super) fn module(&mut self, image: usize) -> Result<Module> {
        self.module_or_reason(image).map_err(|(error, reason)| {
            // Told once: later uses of the image give the error alone.
            if !reason.is_empty() {
                complain(reason);
            }
            error
        })
    }

    /// The same, with the reason in words when it fails for the first time.
    pub(super) fn module_or_reason(
        &mut self,
        image: usize,
    ) -> std::result::Result<Module, (CudaError, String)> {
        let silent = |error| (error, String::new());
        self.open_busy().map_err(silent)?;
        let (Some(image), Some(open)) = (self.images.get_mut(image), self.open.as_mut()) else {
            return Err(silent(CudaError::INVALID_VALUE));
        };
        if let Some(loaded) = &image.loaded {
            return loaded.clone().map_err(silent);
        }
        let loaded = load(image, open, self.heap_bytes);
        image.loaded = Some(loaded.clone().map_err(|(error, _)| error));
        loaded
    }

    /// Loads all variables of an image, so that the host sees the first values of managed ones.
    pub(crate) fn init_module(&mut self, image: usize) -> Result {
        self.module(image).map(|_| ())
    }

    /// The function of a stub.
    pub(crate) fn function(&mut self, host: u64) -> Result<&mut Function> {
        self.functions.get_mut(&host).ok_or_else(|| {
            complain(format!(
                "the program has no kernel at {host:#x}: a launch needs the address of a __global__ function"
            ));
            CudaError::INVALID_DEVICE_FUNCTION
        })
    }

    /// The kernel of a stub, ready to be launched, and what the program has set for it.
    pub(crate) fn kernel(&mut self, host: u64) -> Result<Kernel> {
        let function = self.function(host)?;
        if let Some(kernel) = &function.kernel {
            return kernel.clone();
        }
        let (image, name) = (function.image, function.name.clone());
        let module = self.module(image)?;
        let kernel = module.kernel(&name).map_err(|error| {
            complain(&error);
            match error {
                warploom::Error::NoKernel { .. } => CudaError::INVALID_DEVICE_FUNCTION,
                _ => CudaError::NOT_SUPPORTED,
            }
        });
        self.function(host)?.kernel = Some(kernel.clone());
        kernel
    }

    /// The target of the PTX that a stub's kernel comes from, for a device of this capability.
    pub(crate) fn ptx_target(&mut self, host: u64, capability: u32) -> Result<u32> {
        let image = self.function(host)?.image;
        let binaries = self.images.get(image).map_or(&[][..], |image| &image.binaries);
        let targets = binaries.iter().filter_map(|binary| Some(best(&binary.ptx, capability)?.arch));
        targets.min().ok_or(CudaError::NO_KERNEL_IMAGE)
    }

    /// Where the variable of a shadow is.
    pub(crate) fn symbol(&mut self, host: u64) -> Result<Symbol> {
        let known = self.variables.get(&host).cloned();
        let Variable { image, name } = known.ok_or_else(|| {
            complain(format!(
                "the program has no device variable at {host:#x}: a symbol is a __device__ or __constant__ variable"
            ));
            CudaError::INVALID_SYMBOL
        })?;
        self.symbol_of(image, &name)
    }

    /// Where the variable of a name in an image is.
    pub(super) fn symbol_of(&mut self, image: usize, name: &str) -> Result<Symbol> {
        let module = self.module(image)?;
        if let Some((address, bytes)) = module.global(name) {
            return Ok(Symbol { address, bytes });
        }
        let (offset, bytes) = module.constant(name).ok_or(CudaError::INVALID_SYMBOL)?;
        Ok(Symbol { address: CONSTANTS + image as u64 * CONSTANT_WINDOW + offset, bytes })
    }

    /// The module and the offset in its constants that an address stands for.
    pub(super) fn constant(&mut self, address: u64) -> Option<(Module, u64)> {
        let at = address.checked_sub(CONSTANTS)?;
        let module = self.module((at / CONSTANT_WINDOW) as usize).ok()?;
        Some((module, at % CONSTANT_WINDOW))
    }
}

/// The CUDA whose nvcc writes this version of PTX: 12 and 4 for 8.4. Of two that do, the first.
fn cuda_of_ptx(text: &str) -> Option<(u32, u32)> {
    let number = text.split_once(".version")?.1.split_whitespace().next()?;
    let (major, minor) = number.split_once('.')?;
    let (major, minor) = (major.parse::<u32>().ok()?, minor.parse::<u32>().ok()?);
    match (major, minor) {
        (7, 0..=8) => Some((11, minor)),
        // 12.6 writes 8.5, as 12.5 does.
        (8, 0..=5) => Some((12, minor)),
        (8, 6..=8) => Some((12, minor + 1)),
        (9, 0..) => Some((13, minor)),
        _ => None,
    }
}

/// Loads the PTX of an image.
fn load(image: &Image, open: &mut Open, heap_bytes: u64) -> std::result::Result<Module, (CudaError, String)> {
    let chip = open.gpu.name().to_string();
    let capability = open.properties.capability();
    let mut chosen: Vec<_> = image
        .binaries
        .iter()
        .filter_map(|binary| Some(best(&binary.ptx, capability)?.text.as_str()))
        .collect();
    if chosen.is_empty() {
        let archs = image.binaries.iter().flat_map(|b| &b.machine_code).map(|arch| format!("sm_{arch}"));
        let reason = format!(
            "the program has machine code only ({}), which {chip} does not run: build it with PTX, \
             such as nvcc -gencode arch=compute_75,code=compute_75",
            archs.collect::<Vec<_>>().join(", ")
        );
        return Err((CudaError::NO_KERNEL_IMAGE, reason));
    }
    let heap = heap::needed(&chosen, heap_bytes);
    chosen.extend(heap.as_deref());
    let placed: Vec<_> = image.managed.iter().map(|(name, address)| (name.as_str(), *address)).collect();
    let module = open.gpu.load_ptx_placed("<ptx>", link(&chosen), &placed).map_err(|error| {
        let code = match error {
            warploom::Error::OutOfMemory(_) => CudaError::MEMORY_ALLOCATION,
            _ => CudaError::INVALID_PTX,
        };
        (code, error.to_string())
    })?;
    for (name, _) in &image.managed {
        if let Some((address, bytes)) = module.global(name) {
            let shown = open.memory.show_managed(&open.gpu, address, bytes);
            shown.map_err(|error| (error, format!("no memory for the managed variable `{name}`")))?;
        }
    }
    Ok(module)
}

/// The newest target that all files of a program have PTX for, as far as they have any: a library among them may have
/// newer PTX than the program.
fn newest_of_all(binaries: &[FatBinary]) -> Option<u32> {
    binaries.iter().filter_map(|binary| binary.ptx.iter().map(|ptx| ptx.arch).max()).min()
}

/// The newest PTX that the capability covers, or else the oldest.
fn best(images: &[Ptx], capability: u32) -> Option<&Ptx> {
    let covered = images.iter().filter(|ptx| ptx.arch <= capability).max_by_key(|ptx| ptx.arch);
    covered.or_else(|| images.iter().min_by_key(|ptx| ptx.arch))
}

/// A kernel's name as its programmer wrote it.
fn plain_name(mangled: &str) -> String {
    // Without the prefix, `b` would be the type `bool`.
    let symbol = Some(mangled).filter(|name| name.starts_with("_Z"));
    let symbol = symbol.and_then(|name| cpp_demangle::Symbol::new(name).ok());
    let name = symbol.and_then(|symbol| symbol.demangle().ok()).unwrap_or_else(|| mangled.to_string());
    // Templates have the type that they return in front, and all kernels return none.
    name.strip_prefix("void ").map_or(name.clone(), str::to_string)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_image() {
        let images = [75, 90, 80].map(|arch| Ptx { arch, text: String::new() });
        let arch = |capability| best(&images, capability).map(|ptx| ptx.arch);
        assert_eq!((arch(90), arch(86), arch(61)), (Some(90), Some(80), Some(75)));
        assert_eq!(best(&[], 90), None);
    }

    #[test]
    fn versions_of_cuda() {
        let of = |version: &str| cuda_of_ptx(&format!("// by nvcc\n.version {version}\n.target sm_75\n"));
        assert_eq!([of("7.8"), of("8.4")], [Some((11, 8)), Some((12, 4))]);
        assert_eq!([of("8.7"), of("9.0")], [Some((12, 8)), Some((13, 0))]);
        assert_eq!([of("6.4"), of("x"), cuda_of_ptx("")], [None; 3]);
    }

    #[test]
    fn plain_names() {
        assert_eq!(plain_name("_Z3addPii"), "add(int*, int)");
        assert_eq!(plain_name("_Z3addIiEvPT_"), "add<int>(int*)");
        assert_eq!(plain_name("add"), "add");
    }
}
