//! Greedy, then oldest: the warp that issued last as long as it is ready, then the oldest ready one.
//!
//! Order of age alone can starve the warp that holds a lock for ever: older warps spin on it and always come first. So
//! the order rotates, as in the BOWS paper (ElTantawy and Aamodt, HPCA 2018, Section IV-C): at the end of
//! each period the oldest warp becomes the youngest. That does not help a warp that needs a unit which is free only
//! when the warp that issued last wants it, too.

use crate::chip::timing::GtoSpec;
use crate::kit::cycle::Cycle;
use crate::kit::ids::{SlotSet, WarpSlot};
use crate::time::sched::{Issue, Policy};

#[derive(Clone, Debug)]
pub(crate) struct Gto {
    spec: GtoSpec,
    /// The scheduler's warps, oldest first.
    order: Vec<WarpSlot>,
    /// By slot, the warps that are older: the age matrix of issue queues, which finds the oldest ready warp in a step
    /// or two. Follows from `order`.
    older: [SlotSet; 64],
    ages: [u64; 64],
    /// The warp that issued last.
    last: Option<WarpSlot>,
    /// The cycle in which the order rotates next.
    rotates_at: Cycle,
}

impl Gto {
    pub(crate) fn new(spec: &GtoSpec) -> Self {
        let rotates_at = if spec.rotation_cycles == 0 { Cycle::NEVER } else { Cycle(spec.rotation_cycles) };
        Gto {
            spec: spec.clone(),
            order: Vec::new(),
            older: [SlotSet::default(); 64],
            ages: [0; 64],
            last: None,
            rotates_at,
        }
    }

    /// Recomputes `older` after a change of `order`.
    fn reordered(&mut self) {
        let mut older = SlotSet::default();
        for &slot in &self.order {
            self.older[slot.index()] = older;
            older.insert(slot);
        }
    }

    fn oldest(&self, ready: SlotSet) -> Option<WarpSlot> {
        let mut oldest = ready.first()?;
        while let Some(older) = (ready & self.older[oldest.index()]).first() {
            oldest = older;
        }
        Some(oldest)
    }

    /// Catches up with the rotations that are due, one warp for each period that ended.
    ///
    /// A period may end while nothing is ready and there is no call. Each call that reads or changes the order
    /// catches up first, so that the order is the same as if every rotation had happened in its own cycle.
    #[inline(always)]
    fn rotate(&mut self, now: Cycle) {
        if now >= self.rotates_at {
            self.catch_up(now);
        }
    }

    #[cold]
    fn catch_up(&mut self, now: Cycle) {
        let periods = (now - self.rotates_at) / self.spec.rotation_cycles + 1;
        self.rotates_at += periods * self.spec.rotation_cycles;
        let warps = self.order.len() as u64;
        if warps > 0 {
            self.order.rotate_left((periods % warps) as usize);
            self.reordered();
        }
    }
}

impl Policy for Gto {
    fn pick(&mut self, now: Cycle, ready: SlotSet) -> Option<WarpSlot> {
        if let Some(last) = self.last.filter(|&last| ready.contains(last)) {
            return Some(last);
        }
        self.rotate(now);
        self.oldest(ready)
    }

    fn started(&mut self, now: Cycle, slot: WarpSlot, age: u64) {
        self.rotate(now);
        self.ages[slot.index()] = age;
        // Behind the last one that is older. A warp that a rotation sent to the back stays older than a new one.
        let older = self.order.iter().rposition(|other| self.ages[other.index()] < age);
        self.order.insert(older.map_or(0, |at| at + 1), slot);
        self.reordered();
    }

    fn ended(&mut self, now: Cycle, slot: WarpSlot) {
        self.rotate(now);
        self.order.retain(|&other| other != slot);
        self.reordered();
        self.last = self.last.filter(|&last| last != slot);
    }

    fn issued(&mut self, _now: Cycle, issue: &Issue) {
        self.last = Some(issue.slot);
    }

    /// The oldest warp may find its unit busy whenever the scheduler leaves the warp that issued last.
    fn may_starve(&self) -> bool {
        true
    }

    fn turn_cycles(&self) -> u64 {
        self.spec.rotation_cycles.saturating_mul(self.order.len() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::sched::testing::{slots, turns};

    /// A scheduler whose warps have started in this order of slots.
    fn gto(rotation_cycles: u64, started: &[u8]) -> Gto {
        let mut policy = Gto::new(&GtoSpec { rotation_cycles });
        for (age, &slot) in started.iter().enumerate() {
            policy.started(Cycle(0), WarpSlot(slot), age as u64);
        }
        policy
    }

    /// The warps' slots, oldest first, as `oldest` finds them.
    fn order(policy: &Gto) -> Vec<u8> {
        let mut left: SlotSet = policy.order.iter().copied().collect();
        std::iter::from_fn(|| policy.oldest(left).inspect(|&slot| left.remove(slot)))
            .map(|slot| slot.0)
            .collect()
    }

    #[test]
    fn it_stays_with_a_warp_until_it_stalls_then_takes_the_oldest() {
        let mut policy = gto(0, &[4, 0, 2]);
        let all = slots(&[0, 2, 4]);
        assert_eq!(turns(&mut policy, 0, all, 3), [4, 4, 4]);
        assert_eq!(turns(&mut policy, 3, slots(&[0, 2]), 2), [0, 0]);
        // Older ones that are ready again do not interrupt it.
        assert_eq!(turns(&mut policy, 5, all, 1), [0]);
        assert_eq!(turns(&mut policy, 6, slots(&[2, 4]), 1), [4]);
        assert_eq!(turns(&mut policy, 7, slots(&[2]), 1), [2]);
        assert_eq!(turns(&mut policy, 8, slots(&[0, 4]), 1), [4]);
    }

    #[test]
    fn the_oldest_of_any_ready_set_is_the_first_in_order() {
        let policy = gto(0, &[5, 2, 7, 0, 4, 1, 6, 3]);
        for ready in (0..256).map(SlotSet) {
            assert_eq!(policy.oldest(ready), ready.first_of(&policy.order), "{ready:?}");
        }
    }

    #[test]
    fn age_decides_and_not_the_slot_or_the_order_of_the_calls() {
        let mut policy = Gto::new(&GtoSpec { rotation_cycles: 0 });
        for (slot, age) in [(0, 30), (2, 10), (4, 20)] {
            policy.started(Cycle(0), WarpSlot(slot), age);
        }
        assert_eq!(order(&policy), [2, 4, 0]);
    }

    #[test]
    fn a_slot_that_is_used_again_holds_the_youngest_warp() {
        let mut policy = gto(0, &[0, 2, 4]);
        assert_eq!(turns(&mut policy, 0, slots(&[0, 2, 4]), 1), [0]);
        policy.ended(Cycle(1), WarpSlot(0));
        policy.started(Cycle(2), WarpSlot(0), 3);
        assert_eq!(order(&policy), [2, 4, 0]);
        // The greedy choice was the warp that ended, not its slot.
        assert_eq!(turns(&mut policy, 3, slots(&[0, 2, 4]), 1), [2]);
    }

    #[test]
    fn the_oldest_becomes_the_youngest_after_each_period() {
        let mut policy = gto(100, &[0, 2, 4]);
        assert_eq!(turns(&mut policy, 99, slots(&[0, 2]), 1), [0]);
        assert_eq!(turns(&mut policy, 100, slots(&[2, 4]), 1), [2]);
        assert_eq!(order(&policy), [2, 4, 0]);
        assert_eq!(turns(&mut policy, 101, slots(&[0, 4]), 1), [4]);
        assert_eq!(turns(&mut policy, 200, slots(&[0, 2]), 1), [0]);
        assert_eq!(order(&policy), [4, 0, 2]);
    }

    #[test]
    fn a_rotation_does_not_interrupt_the_warp_that_issues() {
        let mut policy = gto(100, &[0, 2]);
        assert_eq!(turns(&mut policy, 98, slots(&[0, 2]), 4), [0, 0, 0, 0]);
        assert_eq!(turns(&mut policy, 102, slots(&[2]), 1), [2]);
        assert_eq!(order(&policy), [2, 0]);
    }

    #[test]
    fn rotations_without_a_call_are_caught_up_with() {
        let mut policy = gto(100, &[0, 2, 4]);
        // At 100, 200, 300 and 400: a whole rotation and one more.
        assert_eq!(turns(&mut policy, 450, slots(&[0, 2, 4]), 1), [2]);
        assert_eq!(order(&policy), [2, 4, 0]);
        assert_eq!(policy.rotates_at, Cycle(500));
    }

    #[test]
    fn rotations_come_before_the_warps_that_start_or_end_after_them() {
        let mut policy = gto(100, &[0, 2, 4]);
        policy.started(Cycle(150), WarpSlot(6), 3);
        assert_eq!(order(&policy), [2, 4, 0, 6]);
        policy.ended(Cycle(250), WarpSlot(2));
        assert_eq!(order(&policy), [4, 0, 6]);
        for slot in [0, 4, 6] {
            policy.ended(Cycle(260), WarpSlot(slot));
        }
        // Periods also end while there is no warp.
        policy.started(Cycle(1050), WarpSlot(0), 4);
        policy.started(Cycle(1060), WarpSlot(2), 5);
        assert_eq!((order(&policy), policy.rotates_at), (vec![0, 2], Cycle(1100)));
    }

    #[test]
    fn without_a_period_the_order_stays() {
        let mut policy = gto(0, &[0, 2]);
        assert_eq!(turns(&mut policy, u64::MAX - 1, slots(&[0, 2]), 1), [0]);
        assert_eq!(order(&policy), [0, 2]);
    }
}
