//! Special registers: what a thread can ask about itself, its launch and the clock.

use warploom_isa::Special;

use super::clusters::cluster_special;
use super::*;
use crate::sync::vote::PTX_WARP;

/// A special register that is the same in all threads of a launch, unless firmware started them.
pub(crate) fn of_launch(launch: &Launch<'_>, special: Special) -> Option<u32> {
    let Launch { shape, occupancy, chip, workspace, .. } = launch;
    Some(match special {
        Special::NtidX => shape.block[0],
        Special::NtidY => shape.block[1],
        Special::NtidZ => shape.block[2],
        Special::NctaidX => shape.grid[0],
        Special::NctaidY => shape.grid[1],
        Special::NctaidZ => shape.grid[2],
        Special::NwarpId => shape.block.iter().product::<u32>().div_ceil(PTX_WARP as u32),
        Special::NsmId => chip.sm.count,
        Special::DynamicSmemSize => shape.dynamic_shared_bytes,
        Special::TotalSmemSize => occupancy.shared_bytes,
        Special::WorkspaceHi => (workspace >> 32) as u32,
        Special::WorkspaceLo => *workspace as u32,
        Special::Zero => 0,
        _ => return None,
    })
}

impl Execution<'_> {
    fn nanoseconds(&self) -> u64 {
        (self.clock as u128 * 1000 / self.launch.chip.clock.core_mhz as u128) as u64
    }

    pub(super) fn special<const N: usize>(
        &self,
        cta: &Cta,
        warp: &mut Warp<N>,
        activation: &Activation,
        inst: &Inst,
        special: Special,
        mask: LaneMask,
    ) {
        let lane_id = |lane: usize| (lane % PTX_WARP) as u32;
        let from_lane = |f: &dyn Fn(usize) -> u32| std::array::from_fn::<u32, N, _>(f);
        let halves = (N / PTX_WARP) as u32;
        let wide = |value: u64| [value; N];
        if special.is_wide() {
            let value = match special {
                Special::GridId => self.launch.grid_id,
                Special::Clock64 => self.clock,
                Special::GlobalTimer => self.nanoseconds(),
                _ => 0,
            };
            warp.registers(activation).write64(inst.dst, &wide(value), mask);
            return;
        }
        let values = match special {
            Special::NctaidX if cta.task.is_some() => [cta.task.as_ref().map_or(0, |task| task.ctas); N],
            Special::TidX => warp.tid[0],
            Special::TidY => warp.tid[1],
            Special::TidZ => warp.tid[2],
            Special::CtaidX => [cta.id[0]; N],
            Special::CtaidY => [cta.id[1]; N],
            Special::CtaidZ => [cta.id[2]; N],
            Special::LaneId => from_lane(&lane_id),
            Special::WaveLaneId => from_lane(&|lane| lane as u32),
            Special::WaveLanes => [N as u32; N],
            Special::WarpId => {
                let first = warp.id * halves;
                from_lane(&|lane| first + (lane / PTX_WARP) as u32)
            }
            Special::SmId => [cta.sm; N],
            Special::LanemaskEq => from_lane(&|lane| 1 << lane_id(lane)),
            Special::LanemaskLt => from_lane(&|lane| (1 << lane_id(lane)) - 1),
            Special::LanemaskLe => from_lane(&|lane| (2u32 << lane_id(lane)).wrapping_sub(1)),
            Special::LanemaskGe => from_lane(&|lane| u32::MAX << lane_id(lane)),
            Special::LanemaskGt => from_lane(&|lane| !(2u32 << lane_id(lane)).wrapping_sub(1)),
            Special::Clock => [self.clock as u32; N],
            Special::ClockHi => [(self.clock >> 32) as u32; N],
            Special::GlobalTimerLo => [self.nanoseconds() as u32; N],
            Special::GlobalTimerHi => [(self.nanoseconds() >> 32) as u32; N],
            special => {
                let of_cluster = || cluster_special(&self.launch.shape, cta.id, special);
                [of_launch(self.launch, special).unwrap_or_else(of_cluster); N]
            }
        };
        warp.registers(activation).write32(inst.dst, &values, mask);
    }
}
