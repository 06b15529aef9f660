//! What stands behind a [`Device`](crate::Device): memory, modules and launches of one machine.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use warploom_sim::{Chip, Occupancy, Sample, Shape, Trace};

use crate::error::{Error, Result};
use crate::firmware::FirmwareRun;
use crate::kernel::{Kernel, KernelInfo};
use crate::launch::Launch;
use crate::report::Report;

/// A machine that runs kernels. [`Device`](crate::Device) adds types and checks on top, so a backend sees only
/// kernels and addresses that are its own, and parameter buffers of the right size.
pub trait Backend: fmt::Debug + Send {
    /// What users call it: `gtx480`.
    fn name(&self) -> &str;

    /// Whether it is hardware, and not a model of it.
    fn is_real(&self) -> bool {
        false
    }

    /// The chip that it models, if it is a model.
    fn chip(&self) -> Option<&Chip> {
        None
    }

    /// Whether a kernel's fault or hang made it useless for the rest of the process.
    fn is_lost(&self) -> bool {
        false
    }

    /// Whether memory and modules were lost since this was last asked, and it goes on without them.
    fn is_renewed(&mut self) -> bool {
        false
    }

    /// Takes memory whose content is undefined. `name` is for messages about it.
    fn allocate(&mut self, bytes: u64, name: &str) -> Result<u64>;

    /// Takes memory that holds zeros.
    fn allocate_zeroed(&mut self, bytes: u64, name: &str) -> Result<u64>;

    /// Gives an allocation back.
    fn free(&mut self, address: u64);

    /// Copies bytes to the host.
    fn read(&self, address: u64, into: &mut [u8]) -> Result<()>;

    /// Copies bytes from the host.
    fn write(&mut self, address: u64, data: &[u8]) -> Result<()>;

    /// Loads PTX, the bytes of a file. `name` is what messages call it: its path, mostly.
    fn load_ptx(&mut self, name: &str, text: &[u8]) -> Result<Arc<dyn LoadedModule>>;

    /// Loads a SASS listing, the bytes of a file.
    fn load_sass(&mut self, name: &str, text: &[u8]) -> Result<Arc<dyn LoadedModule>>;

    /// How many SMs it has.
    fn sms(&self) -> u32;

    /// What of a launch fits on an SM, or why it cannot run.
    fn occupancy(&self, kernel: &Kernel, shape: Shape) -> Result<Occupancy>;

    /// Runs a kernel to its end. `shape` is the launch's, with the block decided.
    fn launch(&mut self, kernel: &Kernel, shape: Shape, launch: &Launch, params: &[u8]) -> Result<Report>;

    /// Runs firmware on the chip's control processor, which can start kernels of these shapes, by number.
    fn run_firmware(&mut self, run: FirmwareRun<'_>) -> Result<Report> {
        let FirmwareRun { .. } = run;
        Err(Error::Misuse(format!("`{}` has no control processor that could run firmware", self.name())))
    }

    /// The timeline of the last launch, if it was recorded and nobody took it yet.
    fn take_trace(&mut self) -> Option<Trace> {
        None
    }

    /// Counters over the time of the last launch, if they were sampled and nobody took them yet.
    fn take_samples(&mut self) -> Vec<Sample> {
        Vec::new()
    }
}

/// A module on a machine.
pub trait LoadedModule: Send + Sync {
    /// Names of its kernels, in the order of the text.
    fn kernel_names(&self) -> Vec<String>;

    /// Prepares a kernel: what the host needs to know, and what the backend wants to find again at the launch.
    fn kernel(&self, name: &str) -> Result<(KernelInfo, Arc<dyn Any + Send + Sync>)>;

    /// Address and size of a global variable.
    fn global(&self, name: &str) -> Option<(u64, u64)>;

    /// The text's own statement of its dialect.
    fn dialect(&self) -> String;
}
