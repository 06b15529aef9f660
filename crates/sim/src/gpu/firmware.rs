//! Runs of firmware: kernels that the chip's control processor starts.

use super::*;
use crate::aggregator::Aggregator;
use crate::machine::MakeFirmware;

impl Gpu {
    /// Runs firmware on the chip's control processor to its end, and every CTA that it starts. `kernels` are what it can
    /// start, by number, each with CTAs of one shape; their grids do not matter. Only the timed model has such a processor.
    pub fn run_firmware<'f>(
        &mut self,
        timing: &Timing,
        kernels: &[(LoadedKernel, Shape)],
        limits: &Limits,
        firmware: MakeFirmware<'f>,
    ) -> Result<Stats, LaunchError> {
        if self.chip.aggregator.is_none() {
            return Err(Unlaunchable::NoAggregator(self.chip.name.clone()).into());
        }
        if kernels.is_empty() || kernels.len() > u16::MAX as usize {
            return Err(Unlaunchable::KernelCount(kernels.len()).into());
        }
        if timing.trace.is_some() {
            return Err(Unlaunchable::TracedFirmware.into());
        }
        check_policy(timing)?;
        self.launches += 1;
        let chip = self.chip.clone();
        let mut launches = Vec::new();
        for (kernel, shape) in kernels {
            let shape = Shape { grid: [1; 3], ..*shape };
            launches.push(functional::Launch {
                chip: &chip,
                kernel: &kernel.kernel,
                constants: &kernel.constants,
                params: &[],
                shape,
                occupancy: check_launch(&chip, &kernel.kernel, shape)?,
                limits,
                check_uninitialised: self.check_uninitialised,
                grid_id: self.launches,
            });
        }
        let handle = Aggregator::new();
        let firmware = (firmware(handle.clone()), handle);
        let (memory, side) = (&mut self.memory, &mut self.side);
        let probe = |_, _| (SmStats::default(), ());
        match chip.sm.warp_lanes {
            32 => machine::run_firmware::<32, ()>(&launches, firmware, timing, memory, side, probe).0,
            _ => machine::run_firmware::<64, ()>(&launches, firmware, timing, memory, side, probe).0,
        }
    }
}
