//! The counts of each kernel, where several run together.

use crate::kit::cycle::Cycle;
use crate::kit::ids::WarpSlot;
use crate::time::sched::Issue;
use crate::time::sm::front_end::decode::Decoded;
use crate::time::sm::probe::{Probe, State};
use crate::time::sm::stats::SmStats;

/// Counts of the warps of an SM, by the kernel that they are of.
#[derive(Debug)]
pub(crate) struct ByKernel {
    /// The kernel of the warp in each slot.
    kernels: Vec<u16>,
    counts: Vec<SmStats>,
}

impl ByKernel {
    pub(crate) fn new(slots: u32) -> ByKernel {
        ByKernel { kernels: vec![0; slots as usize], counts: Vec::new() }
    }

    fn of(&mut self, slot: WarpSlot) -> &mut SmStats {
        &mut self.counts[usize::from(self.kernels[slot.index()])]
    }
}

impl Probe for ByKernel {
    fn issued(&mut self, now: Cycle, issue: &Issue, inst: &Decoded) {
        self.of(issue.slot).issued(now, issue, inst);
    }

    fn spent(&mut self, slot: WarpSlot, state: State, _from: Cycle, cycles: u64) {
        let counts = self.of(slot);
        counts.spent[state as usize] += cycles;
        counts.warp_cycles += cycles;
    }

    fn unit_busy(&mut self, slot: WarpSlot, cycles: u64) {
        self.of(slot).unit_busy += cycles;
    }

    fn cta_of_kernel(&mut self, kernel: u16, slots: &[Option<WarpSlot>]) {
        let needed = usize::from(kernel) + 1;
        if self.counts.len() < needed {
            self.counts.resize_with(needed, SmStats::default);
        }
        self.counts[usize::from(kernel)].ctas += 1;
        for slot in slots.iter().flatten() {
            self.kernels[slot.index()] = kernel;
        }
    }

    fn of_kernel(&self, kernel: u16) -> Option<&SmStats> {
        self.counts.get(usize::from(kernel))
    }
}
