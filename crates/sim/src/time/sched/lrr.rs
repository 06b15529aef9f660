//! Loose round-robin: the next ready warp after the one that issued last, in the order of the slots.

use crate::kit::cycle::Cycle;
use crate::kit::ids::{SlotSet, WarpSlot};
use crate::time::sched::{Issue, Policy};

#[derive(Clone, Debug, Default)]
pub(crate) struct Lrr {
    /// The slot after the one that issued last: the first candidate.
    next: u32,
}

impl Policy for Lrr {
    fn pick(&mut self, _now: Cycle, ready: SlotSet) -> Option<WarpSlot> {
        let ahead = ready.0.rotate_right(self.next).trailing_zeros();
        Some(WarpSlot(((self.next + ahead) % u64::BITS) as u8))
    }

    fn started(&mut self, _now: Cycle, _slot: WarpSlot, _age: u64) {}

    fn ended(&mut self, _now: Cycle, _slot: WarpSlot) {}

    fn issued(&mut self, _now: Cycle, issue: &Issue) {
        self.next = (u32::from(issue.slot.0) + 1) % u64::BITS;
    }

    fn may_starve(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::sched::testing::{slots, turns};

    #[test]
    fn ready_warps_take_turns() {
        let mut policy = Lrr::default();
        assert_eq!(turns(&mut policy, 0, slots(&[0, 2, 4, 6]), 9), [0, 2, 4, 6, 0, 2, 4, 6, 0]);
    }

    #[test]
    fn a_stalled_warp_is_passed_over_and_gets_its_next_turn() {
        let mut policy = Lrr::default();
        assert_eq!(turns(&mut policy, 0, slots(&[1, 3, 5]), 1), [1]);
        assert_eq!(turns(&mut policy, 1, slots(&[1, 5]), 2), [5, 1]);
        assert_eq!(turns(&mut policy, 3, slots(&[1, 3, 5]), 3), [3, 5, 1]);
    }

    #[test]
    fn the_order_wraps_at_the_last_slot() {
        let mut policy = Lrr::default();
        assert_eq!(turns(&mut policy, 0, slots(&[63]), 2), [63, 63]);
        assert_eq!(turns(&mut policy, 2, slots(&[0, 63]), 3), [0, 63, 0]);
    }

    #[test]
    fn every_warp_that_stays_ready_issues_equally_often() {
        let mut policy = Lrr::default();
        let ready = SlotSet((1 << 24) - 1);
        let mut issues = [0; 24];
        for slot in turns(&mut policy, 0, ready, 24 * 100) {
            issues[slot as usize] += 1;
        }
        assert_eq!(issues, [100; 24]);
    }
}
