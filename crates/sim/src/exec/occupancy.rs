//! How many CTAs of a kernel fit on an SM, and what keeps a launch from running at all.

use serde::Serialize;
use warploom_isa::Kernel;

use crate::chip::Chip;
use crate::exec::launch::Shape;

/// What fits on an SM.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Occupancy {
    /// CTAs resident on an SM.
    pub ctas_per_sm: u32,
    /// Warps of one CTA.
    pub warps_per_cta: u32,
    /// Warps an SM can hold.
    pub max_warps_per_sm: u32,
    /// Shared memory of one CTA, static and dynamic.
    pub shared_bytes: u32,
    /// Registers of a thread.
    pub registers: u32,
    /// What ends first.
    pub limited_by: Limiter,
}

/// The resource that bounds the number of resident CTAs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Limiter {
    Ctas,
    Warps,
    Threads,
    Registers,
    SharedMemory,
}

/// Why a launch cannot run on this chip.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unlaunchable {
    /// A zero dimension.
    #[error("the {what} is {x}x{y}x{z}: every dimension must be at least 1")]
    Empty {
        /// Grid or block.
        what: &'static str,
        /// Its size.
        x: u32,
        /// Its size.
        y: u32,
        /// Its size.
        z: u32,
    },
    /// A dimension beyond the chip's.
    #[error("the {what}'s {axis} is {value}, the chip `{chip}` takes at most {limit}")]
    Dimension {
        /// Grid or block.
        what: &'static str,
        /// x, y or z.
        axis: char,
        /// Asked for.
        value: u32,
        /// The chip's.
        limit: u32,
        /// Which chip.
        chip: String,
    },
    /// Too many threads.
    #[error("the block has {threads} threads, {whose} takes at most {limit}")]
    Threads {
        /// Asked for.
        threads: u64,
        /// Possible.
        limit: u32,
        /// The chip or the kernel.
        whose: String,
    },
    /// The kernel wants another block.
    #[error("kernel `{kernel}` must be launched with a block of {x}x{y}x{z} (.reqntid)")]
    RequiredBlock {
        /// Which.
        kernel: String,
        /// Needed.
        x: u32,
        /// Needed.
        y: u32,
        /// Needed.
        z: u32,
    },
    /// Too much shared memory.
    #[error(
        "kernel `{kernel}` needs {needed} bytes of shared memory a CTA ({fixed} declared + {dynamic} dynamic), the chip `{chip}` has {limit}"
    )]
    Shared {
        /// Which.
        kernel: String,
        /// All of it.
        needed: u64,
        /// Declared.
        fixed: u32,
        /// Asked for by the launch.
        dynamic: u32,
        /// The chip's.
        limit: u32,
        /// Which chip.
        chip: String,
    },
    /// One CTA does not fit.
    #[error(
        "one CTA of kernel `{kernel}` needs {needed} registers ({warps} warps, {registers} registers a thread), an SM of `{chip}` has {limit}"
    )]
    Registers {
        /// Which.
        kernel: String,
        /// All of them.
        needed: u64,
        /// Warps of a CTA.
        warps: u32,
        /// Registers of a thread.
        registers: u32,
        /// The chip's.
        limit: u32,
        /// Which chip.
        chip: String,
    },
    /// Parameter bytes that do not fit the kernel's.
    #[error("the kernel takes {needed} bytes of parameters, {given} are given")]
    Params {
        /// Given.
        given: usize,
        /// Needed.
        needed: u32,
    },
    /// More parameters than the chip takes.
    #[error("kernel `{kernel}` has {bytes} bytes of parameters, the chip `{chip}` takes at most {limit}")]
    TooManyParams {
        /// Which.
        kernel: String,
        /// Bytes.
        bytes: u32,
        /// The chip's.
        limit: u32,
        /// Which chip.
        chip: String,
    },
    /// The kernel's own frame does not fit local memory.
    #[error(
        "kernel `{kernel}` needs {needed} bytes of local memory a thread, the chip `{chip}` has {limit} (memory.local_bytes_per_thread)"
    )]
    Local {
        /// Which.
        kernel: String,
        /// Bytes.
        needed: u32,
        /// The chip's.
        limit: u32,
        /// Which chip.
        chip: String,
    },
    /// No such warp scheduler.
    #[error("no warp scheduler `{name}`; there are {list}", list = known.join(", "))]
    Policy { name: String, known: Vec<String> },
    /// An SM that is to be traced does not exist.
    #[error("SM {sm} cannot be traced: the chip has {count}, numbered from 0")]
    TracedSm {
        /// Asked for.
        sm: u32,
        /// The chip's.
        count: u32,
    },
    /// The chip has no control processor.
    #[error("the chip `{0}` has no control processor that could run firmware; the apu has")]
    NoAggregator(String),
    /// Too few or too many kernels.
    #[error("firmware needs 1 to 65535 kernels to start, not {0}")]
    KernelCount(usize),
    /// A timeline of a run of firmware.
    #[error("runs of firmware cannot be traced")]
    TracedFirmware,
    /// Clusters.
    #[error("kernel `{0}` asks for a cluster launch; clusters are not modelled")]
    Cluster(String),
}

/// Checks a launch against the chip and the kernel's own bounds.
pub(crate) fn check_launch(chip: &Chip, kernel: &Kernel, shape: Shape) -> Result<Occupancy, Unlaunchable> {
    let name = || kernel.name.clone();
    if kernel.bounds.cluster {
        return Err(Unlaunchable::Cluster(name()));
    }
    for (what, dims, limits) in
        [("grid", shape.grid, chip.launch.max_grid_dims), ("block", shape.block, chip.launch.max_cta_dims)]
    {
        if dims.contains(&0) {
            return Err(Unlaunchable::Empty { what, x: dims[0], y: dims[1], z: dims[2] });
        }
        for ((axis, value), limit) in ['x', 'y', 'z'].into_iter().zip(dims).zip(limits) {
            if value > limit {
                let chip = chip.name.clone();
                return Err(Unlaunchable::Dimension { what, axis, value, limit, chip });
            }
        }
    }
    let threads = shape.block.iter().map(|&d| d as u64).product::<u64>();
    let limit = chip.launch.max_threads_per_cta;
    if threads > limit as u64 {
        return Err(Unlaunchable::Threads { threads, limit, whose: format!("the chip `{}`", chip.name) });
    }
    if let Some(limit) = kernel.bounds.max_threads.filter(|&m| threads > m as u64) {
        return Err(Unlaunchable::Threads {
            threads,
            limit,
            whose: format!("kernel `{}` (.maxntid)", name()),
        });
    }
    if let Some([x, y, z]) = kernel.bounds.required_block.filter(|&block| block != shape.block) {
        return Err(Unlaunchable::RequiredBlock { kernel: name(), x, y, z });
    }
    if kernel.param_bytes > chip.launch.max_param_bytes {
        return Err(Unlaunchable::TooManyParams {
            kernel: name(),
            bytes: kernel.param_bytes,
            limit: chip.launch.max_param_bytes,
            chip: chip.name.clone(),
        });
    }
    let (needed, limit) = (kernel.functions[0].frame_bytes, chip.memory.local_bytes_per_thread);
    if needed > limit {
        return Err(Unlaunchable::Local { kernel: name(), needed, limit, chip: chip.name.clone() });
    }
    let fixed = if shape.dynamic_shared_bytes > 0 {
        kernel.dynamic_shared_offset.max(kernel.static_shared_bytes)
    } else {
        kernel.static_shared_bytes
    };
    let shared = fixed as u64 + shape.dynamic_shared_bytes as u64;
    if shared > chip.launch.max_shared_bytes_per_cta as u64 {
        return Err(Unlaunchable::Shared {
            kernel: name(),
            needed: shared,
            fixed,
            dynamic: shape.dynamic_shared_bytes,
            limit: chip.launch.max_shared_bytes_per_cta,
            chip: chip.name.clone(),
        });
    }
    let sm = &chip.sm;
    let warps = (threads as u32).div_ceil(sm.warp_lanes);
    // A kernel with more registers than a thread can have would spill the rest.
    let registers = kernel.registers.clamp(1, sm.max_registers_per_thread);
    let cta_registers = warps as u64 * (registers * sm.warp_lanes).next_multiple_of(sm.register_unit) as u64;
    let cta_shared = (shared as u32).next_multiple_of(sm.shared_unit_bytes);
    let (ctas_per_sm, limited_by) = [
        (sm.max_ctas, Limiter::Ctas),
        (sm.max_warps / warps, Limiter::Warps),
        (sm.max_threads / (warps * sm.warp_lanes), Limiter::Threads),
        ((sm.registers as u64 / cta_registers) as u32, Limiter::Registers),
        (sm.shared_bytes.checked_div(cta_shared).unwrap_or(u32::MAX), Limiter::SharedMemory),
    ]
    .into_iter()
    .min_by_key(|&(ctas, _)| ctas)
    .expect("the list is not empty");
    match (ctas_per_sm, limited_by) {
        (0, Limiter::Registers) => Err(Unlaunchable::Registers {
            kernel: name(),
            needed: cta_registers,
            warps,
            registers,
            limit: sm.registers,
            chip: chip.name.clone(),
        }),
        (0, _) => Err(Unlaunchable::Threads {
            threads,
            limit: sm.max_threads.min(sm.max_warps * sm.warp_lanes),
            whose: format!("an SM of `{}`", chip.name),
        }),
        _ => Ok(Occupancy {
            ctas_per_sm,
            warps_per_cta: warps,
            max_warps_per_sm: sm.max_warps,
            shared_bytes: shared as u32,
            registers,
            limited_by,
        }),
    }
}
