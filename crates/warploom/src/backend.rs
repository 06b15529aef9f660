//! The interface between a [`Device`](crate::Device) and the machine behind it: the simulator (`sim.rs`) or a
//! real GPU (`cuda.rs`).

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use warploom_sim::sched::NamedPolicy;
use warploom_sim::texture::Object;
use warploom_sim::{Chip, MakeObserver, Occupancy, Sample, Shape, Trace};

use crate::error::{Error, Result};
use crate::firmware::FirmwareRun;
use crate::kernel::{Kernel, KernelInfo};
use crate::launch::Launch;
use crate::plan::{Plan, PlanRun};
use crate::report::Report;

/// A machine that runs kernels. [`Device`](crate::Device) adds types and checks on top: a backend only sees its
/// own kernels and addresses, and parameter buffers of the right size.
pub(crate) trait Backend: fmt::Debug + Send {
    /// The name in reports and messages: `gtx480`.
    fn name(&self) -> &str;

    /// Whether this is hardware and not a model.
    fn is_real(&self) -> bool {
        false
    }

    /// The simulated chip; `None` for hardware.
    fn chip(&self) -> Option<&Chip> {
        None
    }

    /// Whether a fault or hang made the device useless for the rest of the process.
    fn is_lost(&self) -> bool {
        false
    }

    /// Whether all memory and modules were lost since the last call. The device itself goes on, empty.
    fn is_renewed(&mut self) -> bool {
        false
    }

    /// Allocates memory with undefined content. `name` appears in messages.
    fn allocate(&mut self, bytes: u64, name: &str) -> Result<u64>;

    /// Allocates memory that is all zeros.
    fn allocate_zeroed(&mut self, bytes: u64, name: &str) -> Result<u64>;

    /// Gives a part of an allocation a name for messages.
    fn name_part(&mut self, _address: u64, _bytes: u64, _name: &str) {}

    /// Fails if no allocation begins there.
    fn free(&mut self, address: u64) -> Result<()>;

    /// Allocates memory that is all zeros at an address that the host has chosen.
    fn allocate_at(&mut self, address: u64, bytes: u64, name: &str) -> Result<()> {
        Err(Error::Misuse(format!(
            "{name}: `{}` places no {bytes} bytes at {address:#x}, its driver chooses addresses",
            self.name()
        )))
    }

    /// Makes a texture, surface or sampler. Returns its handle.
    fn create_texture(&mut self, _object: Object) -> Result<u64> {
        Err(Error::Misuse(format!("`{}` takes no textures from here: it is hardware", self.name())))
    }

    /// Fails if the handle names nothing.
    fn destroy_texture(&mut self, handle: u64) -> Result<()> {
        Err(Error::Misuse(format!("`{}` has no texture {handle}", self.name())))
    }

    /// Binds the reference whose variable is at an address, or unbinds it.
    fn bind_texture(&mut self, _address: u64, _object: Option<Object>) -> Result<()> {
        Err(Error::Misuse(format!("`{}` takes no textures from here: it is hardware", self.name())))
    }

    fn read(&self, address: u64, into: &mut [u8]) -> Result<()>;

    fn write(&mut self, address: u64, data: &[u8]) -> Result<()>;

    /// Loads PTX from the bytes of a file. Messages call it `name`, usually its path.
    fn load_ptx(&mut self, name: &str, text: &[u8]) -> Result<Arc<dyn LoadedModule>>;

    /// Like [`Backend::load_ptx`], with the addresses of some global variables chosen by the host.
    fn load_ptx_placed(
        &mut self,
        name: &str,
        text: &[u8],
        placed: &[(&str, u64)],
    ) -> Result<Arc<dyn LoadedModule>> {
        match placed.first() {
            None => self.load_ptx(name, text),
            Some((variable, _)) => {
                let driver = "its driver chooses addresses";
                Err(Error::Misuse(format!("{name}: `{}` does not place `{variable}`, {driver}", self.name())))
            }
        }
    }

    /// Loads a SASS listing from the bytes of a file.
    fn load_sass(&mut self, name: &str, text: &[u8]) -> Result<Arc<dyn LoadedModule>>;

    fn sms(&self) -> u32;

    /// How many CTAs of a launch fit on an SM, or why it cannot run.
    fn occupancy(&self, kernel: &Kernel, shape: Shape) -> Result<Occupancy>;

    /// Runs a kernel to its end. `shape` is that of `launch`, with the block decided.
    fn launch(&mut self, kernel: &Kernel, shape: Shape, launch: &Launch, params: &[u8]) -> Result<Report>;

    /// Adds a warp scheduling policy and uses it from now on.
    fn add_policy(&mut self, policy: NamedPolicy) -> Result<()> {
        let NamedPolicy { name, .. } = policy;
        Err(Error::Misuse(format!(
            "`{}` does not run policy `{name}`: its warp schedulers are hardware",
            self.name()
        )))
    }

    /// Has the SMs of every launch observed from now on.
    fn add_observer(&mut self, _make: MakeObserver) -> Result<()> {
        Err(Error::Misuse(format!("`{}` cannot be observed: it is hardware", self.name())))
    }

    /// Runs kernels and copies together.
    fn run_plan(&mut self, _plan: Plan) -> Result<PlanRun> {
        Err(Error::Misuse(format!("`{}` has streams of its own: plans are for simulated chips", self.name())))
    }

    /// Runs firmware on the chip's control processor.
    fn run_firmware(&mut self, run: FirmwareRun<'_>) -> Result<Report> {
        let FirmwareRun { .. } = run;
        Err(Error::Misuse(format!("`{}` has no control processor that could run firmware", self.name())))
    }

    /// The timeline of the last launch, if one was recorded and not yet taken.
    fn take_trace(&mut self) -> Option<Trace> {
        None
    }

    /// The counter samples of the last launch, if there are any and they were not yet taken.
    fn take_samples(&mut self) -> Vec<Sample> {
        Vec::new()
    }
}

/// A module on a backend.
pub(crate) trait LoadedModule: Send + Sync {
    /// Names of the kernels, in the order of the source text.
    fn kernel_names(&self) -> Vec<String>;

    /// Prepares a kernel. Returns what the host needs to know and what the backend needs at the launch
    /// ([`Kernel::handle`]).
    fn kernel(&self, name: &str) -> Result<(KernelInfo, Arc<dyn Any + Send + Sync>)>;

    /// Address and size in bytes of a global variable.
    fn global(&self, name: &str) -> Option<(u64, u64)>;

    /// The dialect that the text declares.
    fn dialect(&self) -> String;

    /// Offset in the module's constant bank, and size in bytes, of a constant variable.
    fn constant(&self, _name: &str) -> Option<(u64, u64)> {
        None
    }

    /// Bytes of the constant bank; `None` if they are not all inside, or the backend does not show it.
    fn read_constants(&self, _offset: u64, _bytes: usize) -> Option<Vec<u8>> {
        None
    }

    /// Writes the constant bank for later launches. Returns whether it did.
    fn write_constants(&self, _offset: u64, _data: &[u8]) -> bool {
        false
    }
}
