//! Modules that a program hands over while it runs, by the driver's API: PTX, fat binaries, what a linker made of them.

use std::collections::{BTreeMap, HashMap};

use crate::core::error::{CudaError, Result};
use crate::core::fatbin::{FatBinary, Ptx};
use crate::core::linker::Linker;
use crate::core::process::{Process, Symbol};

/// Handles of the driver's API are numbers from here on: no pointer of the program is one.
const FIRST_HANDLE: u64 = 1 << 56;
const HANDLE_STEP: u64 = 16;

/// What has handles.
#[derive(Debug, Default)]
pub(crate) struct Modules {
    handles: u64,
    /// Modules by handle: the number of the image.
    modules: BTreeMap<u64, usize>,
    /// Handles of kernels, by image and name.
    functions: HashMap<(usize, String), u64>,
    pub(super) linkers: BTreeMap<u64, Linker>,
}

impl Modules {
    pub(super) fn new_handle(&mut self) -> u64 {
        self.handles += 1;
        FIRST_HANDLE + self.handles * HANDLE_STEP
    }
}

/// PTX text as an image of its own.
pub(crate) fn image_of_ptx(text: String) -> FatBinary {
    FatBinary { ptx: vec![Ptx { arch: target(&text).unwrap_or(0), text }], machine_code: Vec::new() }
}

/// The number in `.target sm_90a`.
fn target(text: &str) -> Option<u32> {
    let rest = text.split(".target").nth(1)?.trim_start();
    let digits = rest.strip_prefix("sm_").or_else(|| rest.strip_prefix("compute_"))?;
    let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    digits[..end].parse().ok()
}

impl Process {
    /// Loads a module at once, as the driver does. Says in words why that fails.
    pub(crate) fn load_module(
        &mut self,
        binaries: Vec<FatBinary>,
    ) -> std::result::Result<u64, (CudaError, String)> {
        let image = self.add_image(binaries);
        if let Err(failure) = self.module_or_reason(image) {
            self.images.truncate(image);
            return Err(failure);
        }
        let handle = self.modules.new_handle();
        self.modules.modules.insert(handle, image);
        Ok(handle)
    }

    /// Forgets a module and its kernels.
    pub(crate) fn unload_module(&mut self, handle: u64) -> Result {
        let gone = self.modules.modules.remove(&handle).ok_or(CudaError::INVALID_RESOURCE_HANDLE)?;
        if let Some(image) = self.images.get_mut(gone) {
            image.binaries = Vec::new();
            image.loaded = Some(Err(CudaError::INVALID_RESOURCE_HANDLE));
        }
        self.functions.retain(|_, function| function.image != gone);
        self.modules.functions.retain(|(image, _), _| *image != gone);
        Ok(())
    }

    fn image_of(&self, handle: u64) -> Result<usize> {
        self.modules.modules.get(&handle).copied().ok_or(CudaError::INVALID_RESOURCE_HANDLE)
    }

    /// The module that a kernel is of.
    pub(crate) fn module_of(&mut self, function: u64) -> Result<u64> {
        let image = self.function(function)?.image;
        let found = self.modules.modules.iter().find(|(_, of)| **of == image);
        found.map(|(&handle, _)| handle).ok_or(CudaError::INVALID_RESOURCE_HANDLE)
    }

    /// Names of a module's kernels.
    pub(crate) fn kernel_names(&mut self, handle: u64) -> Result<Vec<String>> {
        let image = self.image_of(handle)?;
        Ok(self.module(image)?.kernel_names())
    }

    /// The handle of a kernel by its name. A kernel that the chip cannot run is refused when it is used.
    pub(crate) fn module_function(&mut self, handle: u64, name: &str) -> Result<u64> {
        let image = self.image_of(handle)?;
        let key = (image, name.to_string());
        if let Some(&known) = self.modules.functions.get(&key) {
            return Ok(known);
        }
        if !self.module(image)?.kernel_names().iter().any(|known| known == name) {
            return Err(CudaError::SYMBOL_NOT_FOUND);
        }
        let function = self.modules.new_handle();
        self.add_function(image, function, name.to_string());
        self.modules.functions.insert(key, function);
        Ok(function)
    }

    /// Where a module's variable is.
    pub(crate) fn module_global(&mut self, handle: u64, name: &str) -> Result<Symbol> {
        let image = self.image_of(handle)?;
        self.symbol_of(image, name).map_err(|error| match error {
            CudaError::INVALID_SYMBOL => CudaError::SYMBOL_NOT_FOUND,
            other => other,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets() {
        assert_eq!(target(".version 8.0\n.target sm_90a, debug\n"), Some(90));
        assert_eq!(target(".version 9.0 .target sm_103\n"), Some(103));
        assert_eq!(target("nothing"), None);
    }
}
