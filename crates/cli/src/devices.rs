//! The real GPUs of this computer: `warploom devices` lists them, `--device cuda` opens one. `no_devices.rs` stands
//! in where the build has no CUDA support.

use std::process::Command;

use serde_json::{Value, json};
use warploom::{CudaError, Device, DeviceInfo, Error};

use crate::cli::DevicesOptions;
use crate::failure::{Exit, Failure};
use crate::output::print_json;
use crate::term::{self, grouped};

/// Lists the GPUs. Having none is no error: the simulator needs none.
pub(crate) fn devices(options: &DevicesOptions) -> Result<Exit, Failure> {
    let found = match warploom::cuda_devices() {
        Ok(found) => Ok(found),
        Err(error @ (CudaError::NoDriver | CudaError::Simulated | CudaError::BadDriver(_))) => {
            Err(error.to_string())
        }
        Err(other) => return Err(Error::from(other).into()),
    };
    if options.json {
        let devices = found.iter().flatten().map(describe).collect::<Vec<_>>();
        let object = json!({ "devices": devices, "driver": found.as_ref().err() });
        print_json(object)?;
        return Ok(Exit::Good);
    }
    let text = match &found {
        Err(reason) => format!("{reason}\nno real GPU to run on; `--device sim` needs none\n"),
        Ok(found) if found.is_empty() => "the NVIDIA driver shows no GPU\n".to_string(),
        Ok(found) => found.iter().map(table).collect::<Vec<_>>().join("\n"),
    };
    term::print(&text)?;
    Ok(Exit::Good)
}

/// A real GPU, in a process of its own: a kernel that takes it down takes only that process with it.
pub(crate) fn open_gpu(ordinal: usize, jit_level: Option<u32>) -> Result<Device, Failure> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("serve-gpu");
    Ok(Device::cuda_in_child(ordinal, jit_level, command)?)
}

/// That process.
pub(crate) fn serve_gpu() -> Result<Exit, Failure> {
    warploom::serve_cuda(std::io::stdin().lock(), std::io::stdout().lock())?;
    Ok(Exit::Good)
}

fn table(gpu: &DeviceInfo) -> String {
    let (major, minor) = gpu.compute_capability;
    let (driver_major, driver_minor) = gpu.driver_version;
    let number = |n: u32| grouped(n as u64);
    let lines = [
        (
            "chip",
            format!(
                "compute capability {major}.{minor} (sm_{major}{minor}), CUDA {driver_major}.{driver_minor} driver"
            ),
        ),
        ("SMs", format!("{} at {} MHz, warps of {}", gpu.sms, gpu.clock_mhz, gpu.warp_lanes)),
        ("memory", format!("{} MB, L2 {} kB", grouped(gpu.memory_bytes >> 20), grouped(gpu.l2_bytes >> 10))),
        (
            "an SM",
            format!(
                "{} threads, {} CTAs, {} registers, {} bytes shared",
                number(gpu.max_threads_per_sm),
                gpu.max_ctas_per_sm,
                number(gpu.registers_per_sm),
                number(gpu.shared_bytes_per_sm)
            ),
        ),
        (
            "a CTA",
            format!(
                "{} threads, {} bytes shared",
                number(gpu.max_threads_per_cta),
                number(gpu.max_shared_bytes_per_cta)
            ),
        ),
        ("launches", if gpu.cooperative { "plain and cooperative" } else { "plain" }.to_string()),
    ];
    let lines = lines.iter().map(|(label, text)| format!("  {label:<10}{text}\n"));
    format!("cuda:{}  {}\n{}", gpu.ordinal, gpu.name, lines.collect::<String>())
}

fn describe(gpu: &DeviceInfo) -> Value {
    json!({
        "device": format!("cuda:{}", gpu.ordinal),
        "name": gpu.name,
        "compute_capability": format!("{}.{}", gpu.compute_capability.0, gpu.compute_capability.1),
        "driver_version": format!("{}.{}", gpu.driver_version.0, gpu.driver_version.1),
        "sms": gpu.sms,
        "warp_lanes": gpu.warp_lanes,
        "clock_mhz": gpu.clock_mhz,
        "memory_bytes": gpu.memory_bytes,
        "l2_bytes": gpu.l2_bytes,
        "max_threads_per_cta": gpu.max_threads_per_cta,
        "max_threads_per_sm": gpu.max_threads_per_sm,
        "max_ctas_per_sm": gpu.max_ctas_per_sm,
        "max_shared_bytes_per_cta": gpu.max_shared_bytes_per_cta,
        "shared_bytes_per_sm": gpu.shared_bytes_per_sm,
        "registers_per_sm": gpu.registers_per_sm,
        "cooperative": gpu.cooperative,
    })
}
