//! The options that every command with launches has: which device, and what each launch is told.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use warploom::{Chip, Device, Error, Launch, Progress, SimOptions, Timing};

use crate::cli::{ChipOptions, DeviceName, MachineOptions};
use crate::failure::{Exit, Failure};
use crate::progress::Watch;

/// The device to run on.
pub fn open(options: &MachineOptions) -> Result<Device, Failure> {
    if options.check_uninit && options.device != DeviceName::Sim {
        return Err(Failure::input(
            "--check-uninit needs the simulator: a real GPU does not know who wrote what",
        ));
    }
    open_with(
        options.device,
        &options.chip,
        SimOptions {
            check_uninitialised: options.check_uninit,
            model: options.model.into(),
            timing: Timing {
                policy: options.sched.clone(),
                threads: options.threads.unwrap_or(0).into(),
                ..Timing::default()
            },
        },
    )
}

/// A device; the chip and its options count where it is simulated.
pub fn open_with(device: DeviceName, chip: &ChipOptions, sim: SimOptions) -> Result<Device, Failure> {
    match device {
        DeviceName::Sim => {
            let chip = Chip::load(&chip.chip, &chip.set).map_err(Error::from)?;
            Ok(Device::sim_with(chip, sim))
        }
        DeviceName::Cuda(ordinal) => Ok(Device::cuda(ordinal)?),
    }
}

/// What the launches of a command have in common: limits, Ctrl-C, and a line on the terminal that shows how far they are,
/// until this is dropped.
pub struct Control {
    max_cycles: Option<u64>,
    time_limit: Option<Duration>,
    interrupt: Arc<AtomicBool>,
    progress: Arc<Progress>,
    _watch: Watch,
}

impl Control {
    /// Begins to listen and to watch. A process has one.
    pub fn new(options: &MachineOptions) -> Control {
        let (watch, progress) = Watch::new();
        Control {
            max_cycles: options.max_cycles,
            time_limit: options.time_limit.map(Duration::from_secs),
            interrupt: interrupt_flag(),
            progress,
            _watch: watch,
        }
    }

    /// Tells a launch about it.
    pub fn apply(&self, launch: Launch) -> Launch {
        Launch {
            time_limit: self.time_limit,
            max_cycles: self.max_cycles,
            interrupt: Some(self.interrupt.clone()),
            progress: Some(self.progress.clone()),
            ..launch
        }
    }
}

/// A flag that Ctrl-C sets; a second Ctrl-C ends the process at once.
fn interrupt_flag() -> Arc<AtomicBool> {
    let flag = Arc::new(AtomicBool::new(false));
    let set = flag.clone();
    // Without a handler Ctrl-C still ends the process, only less politely.
    let _ = ctrlc::set_handler(move || {
        if set.swap(true, Ordering::Relaxed) {
            std::process::exit(Exit::Interrupted as i32);
        }
    });
    flag
}
