//! Firmware runs: the chip's control processor starts the kernels.

use super::*;
use crate::gpu::run::TimedRun;
use crate::time::aggregator::events::Events;
use crate::time::aggregator::{Aggregator, MakeFirmware, Unit};
use crate::time::machine::Dispatch;
use crate::time::machine::firmware::contexts;
use crate::time::sm::Context;
use crate::time::sm::front_end::decode::decode;

impl Gpu {
    /// Runs firmware on the chip's control processor until it and every CTA that it starts have ended. Firmware
    /// refers to `kernels` by their index; each has CTAs of one shape, and its grid is ignored. Only the timed model
    /// has a control processor.
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
        if timing.profile {
            return Err(Unlaunchable::ProfiledFirmware.into());
        }
        if let Some(options) = &timing.trace {
            if options.spans {
                return Err(Unlaunchable::FirmwareSpans.into());
            }
            if let Some(sm) = options.sms.unknown(self.chip.sm.count) {
                return Err(Unlaunchable::TracedSm { sm, count: self.chip.sm.count }.into());
            }
        }
        if self.checks.races {
            return Err(Unlaunchable::CheckedFirmware.into());
        }
        self.check_idle()?;
        self.launches += 1;
        let chip = self.chip.clone();
        let banks: Vec<_> = kernels.iter().map(|(kernel, _)| kernel.constants()).collect();
        let mut launches = Vec::new();
        for (at, (kernel, shape)) in kernels.iter().enumerate() {
            let shape = Shape { grid: [1; 3], ..*shape };
            let occupancy = check_launch(&chip, &kernel.kernel, shape)?;
            // Firmware starts CTAs on all SMs.
            let everywhere = Shape { grid: [u32::MAX, 1, 1], ..shape };
            launches.push(Launch {
                chip: &chip,
                kernel: &kernel.kernel,
                constants: &banks[at],
                params: &[],
                shape,
                occupancy,
                local_limit: LocalLimit::new(&chip, everywhere, occupancy.ctas_per_sm),
                limits,
                check_uninitialised: self.checks.uninitialised,
                races: None,
                grid_id: self.launches,
                first_cta: 0,
                workspace: 0,
                clusters: kernel.kernel.uses_clusters(),
                textures: &self.textures,
            });
        }
        let events = timing.trace.as_ref().map(|options| Events::new(&options.cycles, options.max_bytes));
        let handle = Aggregator::new(events);
        let firmware = (firmware(handle.clone()), handle.clone());
        let code: Vec<_> = launches.iter().map(|launch| decode(launch.kernel, &chip)).collect();
        let contexts = contexts(&launches, &code);
        let context = Context { others: &contexts[1..], ..contexts[0] };
        let unit = Unit::new(&chip, &launches, firmware, self.side.now());
        let (policies, observers) = (&self.policies, &self.observers);
        let aggregator = Some(handle);
        let run = TimedRun {
            context,
            timing,
            profiled: None,
            policies,
            observers,
            aggregator,
            until_settled: false,
        };
        run.start(Dispatch::Firmware(Box::new(unit)), &mut self.memory, &mut self.side)
    }
}
