//! Youngest first: of the ready warps, the one that started last.

use super::{Issue, Policy, SlotSet, WarpSlot};

/// Youngest first.
#[derive(Default)]
pub struct Youngest {
    /// The scheduler's warps, youngest first.
    order: Vec<WarpSlot>,
}

impl Policy for Youngest {
    fn pick(&mut self, _now: u64, ready: SlotSet) -> Option<WarpSlot> {
        ready.first_of(&self.order)
    }

    fn started(&mut self, _now: u64, slot: WarpSlot, _age: u64) {
        self.order.insert(0, slot);
    }

    fn ended(&mut self, _now: u64, slot: WarpSlot) {
        self.order.retain(|&other| other != slot);
    }

    fn issued(&mut self, _now: u64, _issue: &Issue) {}
}

#[cfg(test)]
mod tests {
    use super::super::testing::{slots, turns};
    use super::*;

    #[test]
    fn the_youngest_ready_warp_issues() {
        let mut policy = Youngest::default();
        for (age, slot) in [0, 2, 4].into_iter().enumerate() {
            policy.started(0, WarpSlot(slot), age as u64);
        }
        assert_eq!(turns(&mut policy, 0, slots(&[0, 2, 4]), 2), [4, 4]);
        assert_eq!(turns(&mut policy, 2, slots(&[0, 2]), 1), [2]);
        policy.ended(3, WarpSlot(4));
        policy.started(4, WarpSlot(4), 3);
        assert_eq!(turns(&mut policy, 5, slots(&[0, 4]), 1), [4]);
    }
}
