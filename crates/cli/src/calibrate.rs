//! `warploom calibrate`: a chip file for the GPU of this computer.

use warploom::{Chip, SimOptions};
use warploom_lab::anchors::measure;
use warploom_lab::calibrate::{Costs, Queried, calibrate as fit, costs, costs_of};
use warploom_lab::conform::Origin;

use crate::cli::{CalibrateOptions, ChipOptions, DeviceName};
use crate::failure::{Exit, Failure};
use crate::machine;
use crate::progress::Steps;
use crate::term;

/// Measures the anchors on a GPU, or reads them, and prints a chip file whose model agrees with them.
pub(crate) fn calibrate(options: &CalibrateOptions) -> Result<Exit, Failure> {
    Chip::load(&options.base, &[]).map_err(warploom::Error::from)?;
    let (real, queried, gpu, origin) = match (&options.anchors, options.device) {
        (Some(file), _) => {
            let text = std::fs::read_to_string(file)
                .map_err(|error| Failure::input(format!("{}: {error}", file.display())))?;
            let real = costs(&text).map_err(|error| {
                let what = "not the output of `warploom anchors --device cuda --json`";
                Failure::input(format!("{}: {what}: {error}", file.display()))
            })?;
            (real, Vec::new(), "the GPU of the anchors".to_string(), format!("From {}.", file.display()))
        }
        (None, Some(device)) => measured(device, options.repeat)?,
        (None, None) => {
            return Err(Failure::input("nothing to calibrate to; give --device cuda or --anchors FILE"));
        }
    };
    let steps = Steps::new();
    let found = fit(&options.base, &queried, &real, &|_| true, &mut |p| steps.show(&p))?;
    drop(steps);
    let far = found.found.iter().filter(|each| (each.model / each.real - 1.0).abs() > 0.1);
    for each in far {
        eprintln!(
            "warning: {} is {:.1} on the GPU and {:.1} on the model, whatever {} is",
            each.anchor, each.real, each.model, each.key
        );
    }
    let description = format!("{gpu}, calibrated by its anchors, beside {}", options.base);
    term::print(&found.toml(&options.name, &description, &origin))?;
    Ok(Exit::Good)
}

/// The anchors of a real GPU, what its driver says, its name, and when it was.
fn measured(device: DeviceName, repeat: u32) -> Result<(Costs, Queried, String, String), Failure> {
    let chip = ChipOptions { chip: None, set: Vec::new() };
    let mut gpu = machine::open_with(device, &chip, SimOptions::default())?;
    let origin = Origin::of(&gpu)?;
    let steps = Steps::new();
    let report = measure(&mut gpu, repeat as usize, &mut |p| steps.show(&p))?;
    drop(steps);
    let when = format!("Measured on a real {} on {}, driver {}.", origin.chip, origin.date, origin.driver);
    Ok((costs_of(&report), queried(device, gpu.sms()), origin.chip, when))
}

/// What the driver knows that a chip file says.
#[cfg(feature = "cuda")]
fn queried(device: DeviceName, sms: u32) -> Queried {
    let mut settings = vec![("sm.count", sms.to_string())];
    let known = warploom::cuda_devices().unwrap_or_default();
    let info = known.into_iter().find(|info| device == DeviceName::Cuda(info.ordinal));
    if let Some(info) = info {
        settings.extend([
            ("clock.core_mhz", info.clock_mhz.to_string()),
            ("memory.global_bytes", info.memory_bytes.to_string()),
            ("sm.max_threads", info.max_threads_per_sm.to_string()),
            ("sm.max_ctas", info.max_ctas_per_sm.to_string()),
            ("sm.registers", info.registers_per_sm.to_string()),
            ("sm.shared_bytes", info.shared_bytes_per_sm.to_string()),
            ("launch.max_shared_bytes_per_cta", info.max_shared_bytes_per_cta.to_string()),
        ]);
    }
    settings
}

#[cfg(not(feature = "cuda"))]
fn queried(_: DeviceName, sms: u32) -> Queried {
    vec![("sm.count", sms.to_string())]
}
