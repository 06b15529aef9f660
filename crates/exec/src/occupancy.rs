//! Occupancy: how many CTAs of a kernel fit on an SM, and why a launch cannot run at all.

use serde::Serialize;
use warploom_isa::Kernel;

use crate::chip::Chip;
use crate::launch::Shape;

/// The occupancy of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Occupancy {
    /// Resident CTAs per SM.
    pub ctas_per_sm: u32,
    pub warps_per_cta: u32,
    /// The chip's limit.
    pub max_warps_per_sm: u32,
    /// Static and dynamic shared memory per CTA.
    pub shared_bytes: u32,
    /// Registers per thread.
    pub registers: u32,
    /// The resource that runs out first.
    pub limited_by: Limiter,
}

impl Occupancy {
    /// CTAs that are resident on a chip at once.
    pub fn wave(&self, chip: &Chip) -> u64 {
        u64::from(self.ctas_per_sm) * u64::from(chip.sm.count)
    }
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
    /// A zero dimension of the grid or the block (`what`).
    #[error("the {what} is {x}x{y}x{z}: every dimension must be at least 1")]
    Empty { what: &'static str, x: u32, y: u32, z: u32 },
    /// A dimension of the grid or the block (`what`) beyond the chip's limit.
    #[error("the {what}'s {axis} is {value}, the chip `{chip}` takes at most {limit}")]
    Dimension { what: &'static str, axis: char, value: u32, limit: u32, chip: String },
    /// More threads per CTA than the chip, an SM or the kernel (`whose`) allows.
    #[error("the block has {threads} threads, {whose} takes at most {limit}")]
    Threads { threads: u64, limit: u32, whose: String },
    #[error("kernel `{kernel}` must be launched with a block of {x}x{y}x{z} (.reqntid)")]
    RequiredBlock { kernel: String, x: u32, y: u32, z: u32 },
    #[error(
        "kernel `{kernel}` needs {needed} bytes of shared memory per CTA ({fixed} declared + {dynamic} dynamic), \
         the chip `{chip}` has {limit}"
    )]
    Shared { kernel: String, needed: u64, fixed: u32, dynamic: u32, limit: u32, chip: String },
    /// The register file is too small for one CTA.
    #[error(
        "one CTA of kernel `{kernel}` needs {needed} registers ({warps} warps, {registers} registers per thread), \
         an SM of `{chip}` has {limit}"
    )]
    Registers { kernel: String, needed: u64, warps: u32, registers: u32, limit: u32, chip: String },
    /// The launch gives more or fewer bytes of parameters than the kernel takes.
    #[error("the kernel takes {needed} bytes of parameters, {given} are given")]
    Params { given: usize, needed: u32 },
    /// The kernel has more parameters than the chip allows.
    #[error("kernel `{kernel}` has {bytes} bytes of parameters, the chip `{chip}` takes at most {limit}")]
    TooManyParams { kernel: String, bytes: u32, limit: u32, chip: String },
    /// The kernel's own frame does not fit local memory.
    #[error(
        "kernel `{kernel}` needs {needed} bytes of local memory per thread, \
         the chip `{chip}` has {limit} (memory.local_bytes_per_thread)"
    )]
    Local { kernel: String, needed: u32, limit: u32, chip: String },
    /// The frames of all resident threads together are more than this computer should hold.
    #[error(
        "kernel `{kernel}` needs {needed} bytes of local memory per thread, {all} MiB for the {threads} threads that \
         are resident at the same time; this computer simulates at most {most} MiB: use a smaller grid, or fewer SMs \
         (sm.count)"
    )]
    LocalOfAll { kernel: String, needed: u32, threads: u64, all: u64, most: u64 },
    /// No such warp scheduling policy.
    #[error("no warp scheduler `{name}`; there are {list}", list = known.join(", "))]
    Policy { name: String, known: Vec<String> },
    #[error("SM {sm} cannot be traced: the chip has {count}, numbered from 0")]
    TracedSm { sm: u32, count: u32 },
    #[error("the chip `{0}` has no control processor that could run firmware; the apu has")]
    NoAggregator(String),
    #[error("firmware needs 1 to 65535 kernels to start, not {0}")]
    KernelCount(usize),
    #[error("kernels that run together cannot be {0}: launch them one by one")]
    Together(&'static str),
    #[error("a launch cannot be {0} in the fast model, which times only parts of it: use the timed model")]
    Fast(&'static str),
    #[error("a plan of {0} kernels; there can be 1 to 65535")]
    PlannedKernels(usize),
    #[error("piece {piece} of a plan is to follow piece {before}, which comes later")]
    PlannedOrder { piece: usize, before: usize },
    #[error("a plan of {count} pieces cannot be carried out until piece {piece}")]
    PlannedUntil { piece: usize, count: usize },
    #[error("a plan pauses: let it run to its end before other launches")]
    PlanPauses,
    /// A copy or fill of a plan that is not inside of one allocation.
    #[error("{bytes} bytes at {address:#x}, which a copy of the plan needs, are not inside one allocation")]
    PlannedCopy { address: u64, bytes: u64 },
    #[error(
        "a run of firmware has no spans: its timeline is for the Perfetto viewer (TraceOptions::perfetto)"
    )]
    FirmwareSpans,
    #[error("runs of firmware cannot be profiled")]
    ProfiledFirmware,
    #[error("runs of firmware cannot be checked for races")]
    CheckedFirmware,
    #[error("the chip `{0}` has no tensor cores; the h200 has")]
    NoMatrices(String),
    #[error("the chip `{0}` has no copy engine for bulk copies; the h200 has")]
    NoCopyEngine(String),
    #[error("the chip `{0}` has no texture units (texture)")]
    NoTextures(String),
    #[error("the chip `{0}` has no clusters; the h200 has")]
    NoClusters(String),
    #[error("kernel `{0}` is for clusters (.explicitcluster), but the launch does not say of how many CTAs")]
    ClusterNotGiven(String),
    #[error("kernel `{kernel}` requires clusters of {x} x {y} x {z} CTAs (.reqnctapercluster)")]
    RequiredCluster { kernel: String, x: u32, y: u32, z: u32 },
    #[error("a cluster of {ctas} CTAs; {whose} takes at most {limit}")]
    ClusterCtas { ctas: u64, limit: u32, whose: String },
    #[error("the grid has {grid} CTAs in {axis}, which is no multiple of the {cluster} of a cluster")]
    ClusterDivides { axis: char, grid: u32, cluster: u32 },
    /// CTAs of a cluster run at the same time on neighbouring SMs.
    #[error("a cluster of {ctas} CTAs does not fit: {room} fit on the {sms} SMs that can have one")]
    ClusterRoom { ctas: u32, room: u32, sms: u32 },
    #[error("launches of kernels that use clusters cannot be checked for races")]
    CheckedCluster,
}

/// Local memory of all resident threads together that the host can be asked for.
const MOST_LOCAL_BYTES: u64 = 4 << 30;

/// How much local memory a thread can use.
#[derive(Clone, Copy, Debug)]
pub struct LocalLimit {
    pub bytes: u32,
    /// The threads that share the host's memory, if that is the limit and not the chip's.
    pub shared_by: Option<u64>,
}

impl LocalLimit {
    pub fn new(chip: &Chip, shape: Shape, ctas_per_sm: u32) -> LocalLimit {
        let ctas = shape.ctas();
        let resident = ctas.min(u64::from(chip.sm.count) * u64::from(ctas_per_sm));
        let threads = shape.block.iter().map(|&d| u64::from(d)).product::<u64>();
        let threads = resident * threads.next_multiple_of(u64::from(chip.sm.warp_lanes));
        let (of_chip, of_host) = (chip.memory.local_bytes_per_thread, MOST_LOCAL_BYTES / threads.max(1));
        match u32::try_from(of_host) {
            Ok(of_host) if of_host < of_chip => LocalLimit { bytes: of_host, shared_by: Some(threads) },
            _ => LocalLimit { bytes: of_chip, shared_by: None },
        }
    }
}

/// The occupancy of a launch, checked against the chip's limits and the kernel's own.
pub fn check_launch(chip: &Chip, kernel: &Kernel, shape: Shape) -> Result<Occupancy, Unlaunchable> {
    let name = || kernel.name.clone();
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
    check_cluster(chip, kernel, shape)?;
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
    // A compiler for this chip would spill the registers beyond what a thread can have, or do with fewer if no CTA
    // could run.
    let for_one_cta = sm.registers / warps / sm.register_unit * sm.register_unit / sm.warp_lanes;
    let most = sm.max_registers_per_thread.min(for_one_cta).max(1);
    let registers = kernel.registers.clamp(1, most);
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
    if let LocalLimit { bytes, shared_by: Some(threads) } = LocalLimit::new(chip, shape, ctas_per_sm)
        && needed > bytes
    {
        let all = (threads * u64::from(needed)) >> 20;
        let most = MOST_LOCAL_BYTES >> 20;
        return Err(Unlaunchable::LocalOfAll { kernel: name(), needed, threads, all, most });
    }
    if let Some(cluster) = chip.cluster.as_ref().filter(|_| shape.cluster_ctas() > 1) {
        let sms = if cluster.gpc_sms == 0 { sm.count } else { cluster.gpc_sms.min(sm.count) };
        let (ctas, room) = (shape.cluster_ctas(), ctas_per_sm * sms);
        if ctas > room && room > 0 {
            return Err(Unlaunchable::ClusterRoom { ctas, room, sms });
        }
    }
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

/// The shape of clusters, against what the chip and the kernel allow.
fn check_cluster(chip: &Chip, kernel: &Kernel, shape: Shape) -> Result<(), Unlaunchable> {
    let bounds = &kernel.bounds;
    let required = bounds.required_cluster.filter(|&required| shape.cluster != Some(required));
    if let Some([x, y, z]) = required {
        return Err(Unlaunchable::RequiredCluster { kernel: kernel.name.clone(), x, y, z });
    }
    if chip.units.matrix.is_none() && kernel.uses_matrices() {
        return Err(Unlaunchable::NoMatrices(chip.name.clone()));
    }
    if chip.copy_engine.is_none() && kernel.uses_bulk_copies() {
        return Err(Unlaunchable::NoCopyEngine(chip.name.clone()));
    }
    if chip.texture.is_none() && kernel.uses_textures() {
        return Err(Unlaunchable::NoTextures(chip.name.clone()));
    }
    if chip.cluster.is_none() && kernel.uses_clusters() {
        return Err(Unlaunchable::NoClusters(chip.name.clone()));
    }
    let Some(dims) = shape.cluster else {
        return match bounds.explicit_cluster {
            true => Err(Unlaunchable::ClusterNotGiven(kernel.name.clone())),
            false => Ok(()),
        };
    };
    let Some(cluster) = &chip.cluster else { return Err(Unlaunchable::NoClusters(chip.name.clone())) };
    let [x, y, z] = dims;
    if dims.contains(&0) {
        return Err(Unlaunchable::Empty { what: "cluster", x, y, z });
    }
    let ctas = dims.iter().map(|&d| u64::from(d)).product::<u64>();
    if ctas > u64::from(cluster.max_ctas) {
        let whose = format!("the chip `{}`", chip.name);
        return Err(Unlaunchable::ClusterCtas { ctas, limit: cluster.max_ctas, whose });
    }
    if let Some(limit) = bounds.max_cluster_ctas.filter(|&limit| ctas > u64::from(limit)) {
        let whose = format!("kernel `{}` (.maxclusterrank)", kernel.name);
        return Err(Unlaunchable::ClusterCtas { ctas, limit, whose });
    }
    for ((axis, grid), cluster) in ['x', 'y', 'z'].into_iter().zip(shape.grid).zip(dims) {
        if !grid.is_multiple_of(cluster) {
            return Err(Unlaunchable::ClusterDivides { axis, grid, cluster });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limit(chip: &str, grid: u32) -> LocalLimit {
        let chip = Chip::load(chip, &[]).unwrap();
        let shape = Shape { grid: [grid, 1, 1], block: [256, 1, 1], dynamic_shared_bytes: 0, cluster: None };
        LocalLimit::new(&chip, shape, 4)
    }

    #[test]
    fn resident_threads_share_the_memory_of_the_host() {
        let alone = limit("gtx480", 1);
        assert_eq!((alone.bytes, alone.shared_by), (512 << 10, None), "the chip's own limit");
        let threads = 15 * 4 * 256;
        for grid in [60, 1000] {
            let full = limit("gtx480", grid);
            assert_eq!(full.shared_by, Some(threads));
            assert_eq!(u64::from(full.bytes), MOST_LOCAL_BYTES / threads);
        }
    }
}
