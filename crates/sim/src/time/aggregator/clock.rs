//! The aggregator's time. One of its clocks has as many *slots* as instructions can begin in it.

use crate::chip::Chip;
use crate::chip::aggregator::AggregatorSpec;
use crate::kit::cycle::Cycle;

/// Converts between slots and core cycles.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    /// Slots per microsecond.
    slots: u64,
    /// Core cycles per microsecond.
    cycles: u64,
}

impl Clock {
    pub(crate) fn new(chip: &Chip, spec: &AggregatorSpec) -> Clock {
        let per_clock = spec.chosen().width as u64;
        Clock { slots: spec.clock_mhz as u64 * per_clock, cycles: chip.clock.core_mhz as u64 }
    }

    /// The core cycle that a slot is in.
    pub(crate) fn cycle_of(&self, slot: u64) -> Cycle {
        Cycle((slot as u128 * self.cycles as u128 / self.slots as u128) as u64)
    }

    /// The first slot of a core cycle.
    pub(crate) fn slot_from(&self, cycle: Cycle) -> u64 {
        (cycle.0 as u128 * self.slots as u128).div_ceil(self.cycles as u128) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_and_cycles_fit_each_other() {
        for (slots, cycles) in [(4000, 1000), (2000, 1000), (3000, 700), (500, 1400)] {
            let clock = Clock { slots, cycles };
            for cycle in (0..3000).map(Cycle) {
                let slot = clock.slot_from(cycle);
                assert!(clock.cycle_of(slot) >= cycle);
                assert!(slot == 0 || clock.cycle_of(slot - 1) < cycle);
            }
        }
    }
}
