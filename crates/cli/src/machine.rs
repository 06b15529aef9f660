//! Options shared by all commands that launch kernels: which device, and the limits of each launch.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use warploom::{Bows, Chip, Device, Error, Launch, Progress, SimOptions, Sms, Timing, Trace, TraceOptions};

use crate::cli::{ChipOptions, DeviceName, MachineOptions, ModelName};
use crate::devices::open_gpu;
use crate::failure::{Exit, Failure};
use crate::output::{check_writable, write};
use crate::progress::Watch;
use crate::term::{self, grouped};

/// Writes the timeline and the samples of the last launch, if they were asked for. A failed launch has them too.
/// Returns the timeline, for the report.
pub(crate) fn write_observations(
    gpu: &mut Device,
    options: &MachineOptions,
) -> Result<Option<Trace>, Failure> {
    let trace = gpu.take_trace();
    if let (Some(file), Some(trace)) = (&options.trace, &trace) {
        write(file, &trace.bytes)?;
        let size = trace.bytes.len() / 1000;
        let end = trace.cut.map(|cycle| format!(", cut at cycle {} (--trace-mb)", grouped(cycle)));
        let end = end.unwrap_or_default();
        term::eprint(&format!("timeline in {}: {} kB{end}", file.display(), grouped(size as u64)));
    }
    if let Some(sample) = &options.sample {
        write(&sample.file, warploom::samples_csv(&gpu.take_samples()).as_bytes())?;
    }
    Ok(trace)
}

/// Options that show what every cycle of a launch was spent on.
const OF_WHOLE_LAUNCHES: [&str; 4] = ["--profile", "--report", "--trace", "--sample"];

fn refuse_on_hardware(options: &MachineOptions) -> Result<(), Failure> {
    let asked = [
        (options.profile.is_some(), "--profile"),
        (options.report.is_some(), "--report"),
        (options.trace.is_some(), "--trace"),
        (options.sample.is_some(), "--sample"),
        (options.sim.sched.is_some(), "--sched"),
        (options.sim.bows, "--bows"),
        (options.sim.bows_limit.is_some(), "--bows-limit"),
        (options.sim.sib.is_some(), "--sib"),
        // Last, because the functional model can do these.
        (options.check_uninit, "--check-uninit"),
        (options.check_races, "--check-races"),
    ];
    if options.device == DeviceName::Sim && options.repeat > 0 {
        return Err(Failure::input(
            "--repeat needs a real GPU (--device cuda): a simulated launch always takes as long",
        ));
    }
    if options.device == DeviceName::Sim && options.time_limit.is_some() {
        return Err(Failure::input("--time-limit needs a real GPU (--device cuda)")
            .help("a simulated launch is limited by cycles: --max-cycles N"));
    }
    match asked.into_iter().find(|(asked, _)| *asked) {
        Some((_, option)) if options.device != DeviceName::Sim => {
            Err(Failure::input(format!("{option} needs the simulator: a real GPU does not show that")))
        }
        Some((_, option)) if options.sim.model == ModelName::Functional && !option.starts_with("--check") => {
            Err(Failure::input(format!("{option} needs the timed model: the functional one has no clock")))
        }
        Some((_, option)) if options.sim.model == ModelName::Fast && OF_WHOLE_LAUNCHES.contains(&option) => {
            Err(Failure::input(format!(
                "{option} needs the timed model: the fast one times only parts of a run"
            )))
        }
        _ => Ok(()),
    }
}

/// Opens the device to run on.
pub(crate) fn open(options: &MachineOptions) -> Result<Device, Failure> {
    refuse_on_hardware(options)?;
    options.report.iter().try_for_each(|file| check_writable(file))?;
    open_with(
        options.device,
        &options.chip,
        SimOptions {
            check_uninitialised: options.check_uninit,
            check_races: options.check_races,
            model: options.sim.model.into(),
            timing: Timing {
                policy: options.sim.sched.clone(),
                bows: bows(options),
                threads: options.sim.threads.unwrap_or(0).into(),
                sample_cycles: options.sample.as_ref().map(|sample| sample.cycles),
                profile: options.profile.is_some() || options.report.is_some(),
                over_time: options.report.is_some(),
                trace: timeline(options),
            },
            ..SimOptions::default()
        },
    )
}

/// The timeline that was asked for: for the Perfetto viewer, for a report, or both.
fn timeline(options: &MachineOptions) -> Option<TraceOptions> {
    let (perfetto, spans) = (options.trace.is_some(), options.report.is_some());
    let sms = if spans { Sms::All } else { Sms::Only(vec![0]) };
    (perfetto || spans).then(|| TraceOptions {
        sms: options.trace_sm.clone().unwrap_or(sms),
        cycles: options.trace_cycles.clone().unwrap_or(0..u64::MAX),
        max_bytes: u64::from(options.trace_mb) << 20,
        perfetto,
        spans,
    })
}

/// Any option about back-off switches it on.
fn bows(options: &MachineOptions) -> Bows {
    let on = options.sim.bows || options.sim.bows_limit.is_some() || options.sim.sib.is_some();
    Bows { enabled: on.then_some(true), limit: options.sim.bows_limit, sib: options.sim.sib }
}

/// Opens a device. `chip` and `sim` only apply to a simulated one.
pub(crate) fn open_with(device: DeviceName, chip: &ChipOptions, sim: SimOptions) -> Result<Device, Failure> {
    match device {
        DeviceName::Sim => {
            let chip = Chip::load(chip.name(), &chip.set).map_err(Error::from)?;
            Ok(Device::sim_with(chip, sim))
        }
        DeviceName::Cuda(ordinal) => open_gpu(ordinal, None),
    }
}

/// What all launches of a command share: limits, Ctrl-C, and a progress line on the terminal until this is dropped.
pub(crate) struct Control {
    max_cycles: Option<u64>,
    time_limit: Option<Duration>,
    repeat: u32,
    interrupt: Arc<AtomicBool>,
    progress: Arc<Progress>,
    _watch: Watch,
}

impl Control {
    /// Installs the Ctrl-C handler and starts the progress line. At most one per process.
    pub(crate) fn new(options: &MachineOptions) -> Control {
        let (watch, progress) = Watch::new();
        Control {
            max_cycles: options.max_cycles,
            time_limit: options.time_limit.map(Duration::from_secs),
            repeat: options.repeat,
            interrupt: interrupt_flag(),
            progress,
            _watch: watch,
        }
    }

    /// Adds limits, interrupt flag and progress to a launch.
    pub(crate) fn apply(&self, launch: Launch) -> Launch {
        Launch {
            time_limit: self.time_limit,
            repeat: self.repeat,
            max_cycles: self.max_cycles,
            interrupt: Some(self.interrupt.clone()),
            progress: Some(self.progress.clone()),
            ..launch
        }
    }
}

/// A flag that Ctrl-C sets; a second Ctrl-C ends the process at once. Call it once per process.
pub(crate) fn interrupt_flag() -> Arc<AtomicBool> {
    let flag = Arc::new(AtomicBool::new(false));
    let set = flag.clone();
    // Without a handler Ctrl-C still ends the process, only without a report.
    let _ = ctrlc::set_handler(move || {
        if set.swap(true, Ordering::Relaxed) {
            std::process::exit(Exit::Interrupted as i32);
        }
    });
    flag
}
