//! Room on an SM: what a CTA of a kernel needs, and what is free beside the CTAs of others.

use crate::chip::Chip;
use crate::exec::launch::Launch;

/// The resources that a CTA of a kernel needs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Needs {
    pub(crate) warps: u32,
    pub(crate) warp_registers: u32,
    shared_bytes: u32,
}

impl Needs {
    pub(crate) fn of(launch: &Launch<'_>) -> Needs {
        let sm = &launch.chip.sm;
        Needs {
            warps: launch.occupancy.warps_per_cta,
            warp_registers: (launch.occupancy.registers * sm.warp_lanes).next_multiple_of(sm.register_unit),
            shared_bytes: launch.occupancy.shared_bytes.next_multiple_of(sm.shared_unit_bytes),
        }
    }
}

/// The free resources of an SM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Free {
    pub(crate) ctas: u32,
    pub(crate) slots: u32,
    pub(crate) registers: u32,
    shared_bytes: u32,
}

impl Free {
    pub(crate) fn of_empty_sm(chip: &Chip) -> Free {
        let sm = &chip.sm;
        let slots = sm.max_warps.min(sm.max_threads / sm.warp_lanes);
        Free { ctas: sm.max_ctas, slots, registers: sm.registers, shared_bytes: sm.shared_bytes }
    }

    /// How many CTAs fit.
    pub(crate) fn holds(&self, needs: &Needs) -> u32 {
        [
            self.ctas,
            self.slots / needs.warps,
            self.registers / (needs.warps * needs.warp_registers).max(1),
            self.shared_bytes.checked_div(needs.shared_bytes).unwrap_or(u32::MAX),
        ]
        .into_iter()
        .min()
        .unwrap_or(0)
    }

    /// A CTA starts, for which there is room.
    pub(crate) fn start_cta(&mut self, needs: &Needs) {
        self.take(needs, needs.warps);
        self.shared_bytes -= needs.shared_bytes;
        self.ctas -= 1;
    }

    pub(crate) fn end_cta(&mut self, needs: &Needs) {
        self.give_back(needs, needs.warps);
        self.shared_bytes += needs.shared_bytes;
        self.ctas += 1;
    }

    /// Warps take slots and registers.
    pub(crate) fn take(&mut self, needs: &Needs, warps: u32) {
        self.slots -= warps;
        self.registers -= warps * needs.warp_registers;
    }

    pub(crate) fn give_back(&mut self, needs: &Needs, warps: u32) {
        self.slots += warps;
        self.registers += warps * needs.warp_registers;
    }
}
